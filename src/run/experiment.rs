//! The experiment after a run, and what followed from it.

use serde::{Deserialize, Serialize};

/// An experiment after the run: two numbers of requests in flight, in turns. No other figure includes any of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Probe {
    /// How long it took, in seconds; zero if none took place.
    pub duration_s: f64,
    /// The requests that it sent, without those of its warm-up.
    pub requests: u64,
    /// The length of a batch, in seconds.
    pub tick_s: f64,
    /// Its slots, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<Slot>,
    /// What followed from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticity: Option<Elasticity>,
    /// Why it tells nothing, as the end of a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Where none took place: whether more in flight were asked for, instead of fewer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub up: bool,
    /// The shortest experiment that might tell, in seconds, where none took place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_s: Option<f64>,
}

/// A time with one number of requests in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slot {
    /// The requests in flight.
    pub in_flight: u32,
    /// The responses in each batch of its counted part.
    pub completed: Vec<u64>,
}

/// By how much the rate follows the requests in flight: 1, in proportion; 0, not at all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Elasticity {
    /// The estimate.
    pub value: f64,
    /// The lower end of its 98 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Probe {
    /// The requests in flight in the run, and the other number; `None` if no experiment took place.
    pub fn in_flight(&self) -> Option<(u32, u32)> {
        let first = self.slots.first()?.in_flight;
        Some((first, self.slots.iter().map(|slot| slot.in_flight).find(|&count| count != first)?))
    }

    /// The responses per second in the slots with this many requests in flight.
    pub fn rate_per_s(&self, in_flight: u32) -> f64 {
        let counts = self.slots.iter().filter(|slot| slot.in_flight == in_flight).flat_map(|slot| &slot.completed);
        let (sum, batches) = counts.fold((0, 0_u32), |(sum, batches), count| (sum + count, batches + 1));
        sum as f64 / (f64::from(batches) * self.tick_s).max(f64::MIN_POSITIVE)
    }
}
