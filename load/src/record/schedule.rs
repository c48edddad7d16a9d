//! When requests are due, as a document has it.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use onrush_plan::schedule::{self, Arrivals};

/// When requests are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Schedule {
    /// The distribution of due times: `uniform`, `poisson`, or `burst:` and the number of requests at once.
    pub arrivals: String,
    /// The rate over time, one stage after the other.
    pub stages: Vec<Stage>,
    /// The factor by which late requests are made up for; left out: as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<f64>,
    /// The lateness beyond which a request is not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_late_s: Option<f64>,
    /// The length of the slices in which sends are gathered; left out: each request is sent when it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_slice_s: Option<f64>,
}

/// A stage in which the rate stays the same or changes evenly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Stage {
    /// How long it lasts; left out: until the run ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_s: Option<f64>,
    /// Requests per second at its beginning.
    pub from_per_s: f64,
    /// Requests per second at its end.
    pub to_per_s: f64,
}

impl Schedule {
    /// The rate over time in the syntax of `--stages`, or without a length in that of `--rate`.
    pub fn asked(&self) -> String {
        let stage = |stage: &Stage| {
            // One a minute is 0.016667 a second, and not sixteen digits.
            let short = |number: f64| (number * 1e6).round() / 1e6;
            let length = stage.length_s.map_or(String::new(), |seconds| format!("{seconds}s:"));
            let (from, to) = (short(stage.from_per_s), short(stage.to_per_s));
            let end = if from == to { String::new() } else { format!("..{to}") };
            format!("{length}{from}{end}")
        };
        self.stages.iter().map(stage).collect::<Vec<_>>().join(",")
    }

    /// The highest number of requests per second that are due.
    pub fn most_per_second(&self) -> f64 {
        self.stages.iter().map(|stage| stage.from_per_s.max(stage.to_per_s)).fold(0.0, f64::max)
    }

    /// How many requests are due at once, if they are in bursts.
    pub fn burst(&self) -> Option<NonZeroU64> {
        self.arrivals.strip_prefix("burst:")?.parse().ok()
    }

    /// A schedule as files show it: all of it, even if only a part was sent from here.
    pub fn of(schedule: &schedule::Schedule) -> Self {
        let schedule::Schedule { arrivals, stages, part: _, catch_up, max_late, send_slice } = schedule;
        let stage = |stage: &schedule::Stage| Stage {
            length_s: stage.length.as_ref().map(Duration::as_secs_f64),
            from_per_s: stage.from.per_second(),
            to_per_s: stage.to.per_second(),
        };
        Self {
            arrivals: match arrivals {
                Arrivals::Uniform => "uniform".to_owned(),
                Arrivals::Poisson => "poisson".to_owned(),
                Arrivals::Burst(count) => format!("burst:{count}"),
            },
            stages: stages.iter().map(stage).collect(),
            catch_up: catch_up.map(|factor| u64::from(factor) as f64 / 1e3),
            max_late_s: max_late.as_ref().map(Duration::as_secs_f64),
            send_slice_s: send_slice.as_ref().map(Duration::as_secs_f64),
        }
    }
}
