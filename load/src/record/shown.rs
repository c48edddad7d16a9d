//! What only the report's text has, kept in the document so that the text can be printed again.

use onrush_plan::{Breakout, OutputOptions};
use serde::{Deserialize, Serialize};

/// What the report of the run showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
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

impl Shown {
    /// What is shown of this run.
    pub fn of(show: &OutputOptions) -> Self {
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
