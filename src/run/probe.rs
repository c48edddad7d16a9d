//! The probe after a run, and its results.

use serde::{Deserialize, Serialize};

/// A probe after the run, with other numbers of requests in flight, which no other figure includes; or the evidence of
/// the run's stages in its place, without a request of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Probe {
    /// How long it took, in seconds; zero if none took place.
    pub duration_s: f64,
    /// The requests that it sent.
    pub requests: u64,
    /// The end of the run, and times in the probe, with one number of requests in flight each; first the two that are
    /// compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<Slot>,
    /// The elasticity that it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// Why it has no result, as the end of a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// True if a probe with more requests in flight was wanted, not with fewer; only for one that was too short or did
    /// not take place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub up: bool,
    /// True if a probe was to follow, for which there was too little time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_planned: bool,
    /// A probe that might tell, in seconds, where none took place or it was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_s: Option<f64>,
}

/// A time with one number of requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slot {
    /// The requests in flight.
    pub in_flight: u32,
    /// The length of a batch, in seconds.
    pub tick_s: f64,
    /// The responses in each batch of its counted part.
    pub completed: Vec<u64>,
}

/// By how much the rate follows the requests in flight: 1, in proportion; 0, not at all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Elasticity {
    /// The estimate.
    pub value: f64,
    /// The lower end of its interval, which holds the true value in 99 of 100 cases, although there were several looks
    /// at it.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Elasticity {
    /// The rate follows the requests in flight from this elasticity on ...
    pub const FOLLOWS: f64 = 0.7;
    /// ... and below this one, it does not.
    pub const STAYS: f64 = 0.3;
}

impl Probe {
    /// Why a probe that a signal ended has no result.
    pub const SIGNAL: &str = "a signal ended it";

    /// True if a signal ended it.
    pub fn is_interrupted(&self) -> bool {
        self.failed.as_deref() == Some(Self::SIGNAL)
    }

    /// True if nothing was sent for it: the stages of the run gave the answer.
    pub fn is_of_stages(&self) -> bool {
        self.requests == 0 && !self.slots.is_empty()
    }

    /// The requests in flight in the run, and the other number; `None` if no probe took place.
    pub fn in_flight(&self) -> Option<(u32, u32)> {
        let first = self.slots.first()?.in_flight;
        Some((first, self.slots.iter().map(|slot| slot.in_flight).find(|&count| count != first)?))
    }

    /// The responses per second in the slots with this many requests in flight.
    pub fn rate_per_s(&self, in_flight: u32) -> f64 {
        let slots = self.slots.iter().filter(|slot| slot.in_flight == in_flight);
        let (sum, seconds) = slots.fold((0, 0.0), |(sum, seconds), Slot { tick_s, completed, .. }| {
            (sum + completed.iter().sum::<u64>(), seconds + completed.len() as f64 * tick_s)
        });
        sum as f64 / seconds.max(f64::MIN_POSITIVE)
    }

    /// The probes after several runs as one, with only their common results; `None` if there was none. `overlap`: some
    /// of the runs took place at the same time.
    pub fn of_several(each: &[Option<&Self>], overlap: bool) -> Option<Self> {
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
        if failed.is_some() && there.iter().all(|probe| probe.is_of_stages()) {
            return None;
        }
        let (None, None, Some(intervals)) = (&failed, sum.needed_s, intervals) else {
            return Some(Self { failed, ..sum });
        };
        // Wide enough for all of them.
        let elasticity = Elasticity {
            value: intervals.iter().map(|it| it.value).sum::<f64>() / intervals.len() as f64,
            low: intervals.iter().map(|it| it.low).fold(f64::INFINITY, f64::min),
            high: intervals.iter().map(|it| it.high).fold(f64::NEG_INFINITY, f64::max),
        };
        let slots = there.iter().flat_map(|probe| probe.slots.clone()).collect();
        Some(Self { slots, elasticity: Some(elasticity), ..sum })
    }
}
