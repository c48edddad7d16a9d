//! What only the report's text has, kept in the document so that the text can be printed again.

use onrush_plan::{Breakout, Show};
use serde::{Deserialize, Serialize};

use super::super::table::Figures;

/// What the report of the run showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shown {
    /// Whether percentiles of the latency were asked for. If no tool was imitated, it had some in any case.
    pub percentiles: bool,
    /// Whether it had their spectrum, as in wrk2; where a tool was imitated, only with a rate.
    pub spectrum: bool,
    /// Whether it had the service latency next to the scheduled one.
    pub service_latency: bool,
    /// Which phases had rows: `none`, `wrk-cmm` for connect, first byte and last byte, or `all`.
    pub breakout: String,
    /// Whether it had wrk-cmm's layout.
    pub cmm_layout: bool,
}

/// The threads' requests per second, sampled during the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadRates {
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation.
    pub stdev: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// The share (0 to 1) of samples at most one standard deviation from the mean; left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
}

impl Shown {
    /// What is shown of this run.
    pub fn of(show: &Show) -> Self {
        Self {
            percentiles: show.percentiles,
            spectrum: show.spectrum,
            service_latency: show.u_latency,
            breakout: show.breakout.name().to_owned(),
            cmm_layout: show.cmm_layout,
        }
    }

    /// The phases that had rows.
    pub fn phases(&self) -> Breakout {
        Breakout::named(&self.breakout)
    }
}

impl ThreadRates {
    /// From these figures; `None` if any of them is not a number.
    pub fn of(figures: Figures) -> Option<Self> {
        let Figures { mean, stdev, min, max, within } = figures;
        [mean, stdev, min, max].iter().all(|figure| figure.is_finite()).then_some(Self {
            mean,
            stdev,
            min,
            max,
            within,
        })
    }

    /// The figures as the table shows them.
    pub fn figures(self) -> Figures {
        let Self { mean, stdev, min, max, within } = self;
        Figures { mean, stdev, min, max, within }
    }
}
