//! Results of the probe after a run.

use serde::{Deserialize, Serialize};

/// A probe after the run: a series of short periods with other numbers of requests in flight. No other figure includes
/// it. If the stages of a run already give the answer, they replace the probe, and no further request is sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Probe {
    /// Duration in seconds; zero without a probe.
    pub duration_s: f64,
    /// Requests sent by the probe.
    pub requests: u64,
    /// The end of the run and the slots of the probe, each with one number of requests in flight. The first two are
    /// compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<Slot>,
    /// The estimated elasticity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// Reason for a missing result, as the end of a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// True if a probe with more requests in flight was wanted, false for one with fewer. Set only if the probe was too
    /// short or did not take place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub up: bool,
    /// True if a probe was planned but too little time was left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_planned: bool,
    /// Duration in seconds of a probe that may give a result; only if the probe was too short or did not take place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_s: Option<f64>,
}

/// A period with one number of requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Slot {
    /// Number of requests in flight.
    pub in_flight: u32,
    /// Length of the period that each entry of `completed` counts, in seconds.
    pub tick_s: f64,
    /// Number of responses in each such period. The start of the slot, while the queues settle, is left out.
    pub completed: Vec<u64>,
}

/// Elasticity of the rate with respect to the requests in flight: 1 is proportional, 0 is no effect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Elasticity {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval, which holds the true value in 99 of 100 cases, with repeated evaluation accounted
    /// for.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Elasticity {
    /// From this elasticity on, the rate follows the requests in flight ...
    pub const FOLLOWS: f64 = 0.7;
    /// ... and below this elasticity, the rate does not follow.
    pub const STAYS: f64 = 0.3;
}

impl Probe {
    /// Reason for a missing result if a signal ended the probe.
    pub const SIGNAL: &str = "a signal ended it";

    /// True if a signal ended the probe.
    pub fn is_interrupted(&self) -> bool {
        self.failed.as_deref() == Some(Self::SIGNAL)
    }

    /// True if the stages of the run gave the answer and the probe sent nothing.
    pub fn is_from_stages(&self) -> bool {
        self.requests == 0 && !self.slots.is_empty()
    }

    /// Requests in flight in the run, and in the compared slot; `None` without a probe.
    pub fn in_flight(&self) -> Option<(u32, u32)> {
        let first = self.slots.first()?.in_flight;
        Some((first, self.slots.iter().map(|slot| slot.in_flight).find(|&count| count != first)?))
    }

    /// Mean responses per second over all slots with this number of requests in flight; zero if there is none.
    pub fn rate_per_s(&self, in_flight: u32) -> f64 {
        let slots = self.slots.iter().filter(|slot| slot.in_flight == in_flight);
        let (sum, seconds) = slots.fold((0, 0.0), |(sum, seconds), Slot { tick_s, completed, .. }| {
            (sum + completed.iter().sum::<u64>(), seconds + completed.len() as f64 * tick_s)
        });
        sum as f64 / seconds.max(f64::MIN_POSITIVE)
    }

    /// Combines the probes of several runs into one with only their common results; `None` if no run had a probe, or if
    /// only stages were evaluated and they do not agree. `overlap`: some of the runs took place at the same time.
    pub fn combine_runs(each: &[Option<&Self>], overlap: bool) -> Option<Self> {
        if let [only] = each {
            return only.cloned();
        }
        let there: Vec<&Self> = each.iter().copied().flatten().collect();
        let first = there.first()?;
        let needed_s = there.iter().filter_map(|probe| probe.needed_s).reduce(f64::max);
        let sum = Self {
            duration_s: there.iter().map(|probe| probe.duration_s).sum(),
            requests: there.iter().map(|probe| probe.requests).sum(),
            up: needed_s.is_some() && there.iter().all(|probe| probe.up),
            was_planned: there.iter().any(|probe| probe.was_planned),
            needed_s,
            ..Self::default()
        };
        let intervals: Option<Vec<Elasticity>> = there.iter().map(|probe| probe.elasticity).collect();
        let failed = there.iter().find_map(|probe| probe.failed.clone()).or_else(|| {
            let why = if there.iter().all(|probe| probe.slots.is_empty()) {
                return None;
            } else if overlap {
                "probes after runs at the same time disturb each other"
            } else if there.len() < each.len() {
                "only some of the runs had one"
            } else if needed_s.is_none() && there.iter().any(|probe| probe.in_flight() != first.in_flight()) {
                "the runs had probes with different numbers in flight"
            } else {
                return None;
            };
            Some(why.to_owned())
        });
        if failed.is_some() && there.iter().all(|probe| probe.is_from_stages()) {
            return None;
        }
        let (None, None, Some(intervals)) = (&failed, sum.needed_s, intervals) else {
            return Some(Self { failed, ..sum });
        };
        // Wide enough to cover the interval of every run.
        let elasticity = Elasticity {
            value: intervals.iter().map(|it| it.value).sum::<f64>() / intervals.len() as f64,
            low: intervals.iter().map(|it| it.low).fold(f64::INFINITY, f64::min),
            high: intervals.iter().map(|it| it.high).fold(f64::NEG_INFINITY, f64::max),
        };
        let slots = there.iter().flat_map(|probe| probe.slots.clone()).collect();
        Some(Self { slots, elasticity: Some(elasticity), ..sum })
    }
}
