//! The precision of the figures of `--until`, as a document has it.

use serde::{Deserialize, Serialize};

use crate::run;

/// What `--until` asked for, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Until {
    /// Whether every figure was precise enough, which ended the run.
    pub reached: bool,
    /// The part of the run that the estimate covers, in seconds from its start.
    pub at_s: f64,
    /// The figures.
    pub terms: Vec<Known>,
}

/// The precision of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Known {
    /// The stop term as it was typed.
    pub term: String,
    /// Half the width of the 95 % confidence interval, as a share of the figure; left out where there were fewer than
    /// 20 batches that are long enough and independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
    /// The number of batches it was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<usize>,
    /// Half the width that was asked for, as a share of the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<f64>,
    /// Why the precision is unknown, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// How many responses each batch needs for this figure, if there were too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_min: Option<u64>,
}

/// Why a precision is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// There were fewer than 20 batches that are long enough.
    Short,
    /// The figure changes so slowly that there were fewer than 20 independent ones.
    Dependent,
}

impl Known {
    /// The figure as it was typed.
    pub fn name(&self) -> &str {
        self.term.split(['+', '±']).next().unwrap_or_default().trim_end()
    }

    /// Whether it is known as precisely as requested.
    pub fn is_enough(&self) -> bool {
        self.half_width.zip(self.asked).is_some_and(|(is, asked)| is <= asked)
    }
}

impl Until {
    pub(super) fn of(until: &run::StopRuleResult) -> Self {
        let known = |known: &run::MetricPrecision| {
            let estimate = known.estimate.ok();
            Known {
                term: known.term.text.clone(),
                half_width: estimate.map(|estimate| estimate.half_width),
                batches: estimate.map(|estimate| estimate.batches),
                asked: Some(known.term.half_width),
                unknown: known.estimate.err().map(|unknown| match unknown {
                    onrush_stats::Unknown::Short => Unknown::Short,
                    onrush_stats::Unknown::Dependent => Unknown::Dependent,
                }),
                completed_min: (known.estimate == Err(onrush_stats::Unknown::Short)).then(|| known.completed_min()),
            }
        };
        Self { reached: until.reached, at_s: until.at.as_secs_f64(), terms: until.terms.iter().map(known).collect() }
    }
}
