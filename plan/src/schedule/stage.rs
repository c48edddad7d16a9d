//! A stage of a schedule, in which the rate is constant or changes linearly.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rate::Rate;

/// A stage of a schedule, in which the rate is constant or changes linearly.
///
/// Requests are counted in grains, so that every stage contains a whole number of grains: a rate of one request per
/// minute is two grains per nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The length of the stage; `None`: until the run ends.
    pub length: Option<Duration>,
    /// Rate at the beginning of the stage.
    pub from: Rate,
    /// Rate at the end of the stage; if it differs from `from`, the rate changes linearly.
    pub to: Rate,
}

impl Stage {
    /// Grains per request: twice the nanoseconds in a minute.
    pub const GRAINS: u64 = 2 * 60_000_000_000;

    /// A constant rate until the run ends.
    pub fn open_ended(rate: Rate) -> Self {
        Self { length: None, from: rate, to: rate }
    }

    /// True if no request is due in the stage.
    pub fn is_idle(&self) -> bool {
        self.grains() == 0
    }

    pub(super) fn length_ns(&self) -> u64 {
        self.length.map_or(u64::MAX, |length| length.as_nanos().try_into().unwrap_or(u64::MAX))
    }

    pub(super) fn grains(&self) -> u128 {
        u128::from(self.from.per_minute() + self.to.per_minute()) * u128::from(self.length_ns())
    }

    /// The time at which this many grains have passed, in nanoseconds since the beginning of the stage, rounded down.
    /// The stage must contain more grains than that.
    pub(super) fn time_of_grain_ns(&self, grains: u128) -> u64 {
        let (from, to) = (self.from.per_minute(), self.to.per_minute());
        if from == to {
            return (grains / u128::from(2 * from)) as u64;
        }
        // The estimate is at most a few nanoseconds off, even over a year.
        let mut at_ns = self.estimate_time_ns(grains).min(self.length_ns() - 1);
        while self.has_passed_at_most(at_ns + 1, grains) {
            at_ns += 1;
        }
        while !self.has_passed_at_most(at_ns, grains) {
            at_ns -= 1;
        }
        at_ns
    }

    /// Solves the quadratic equation for the time in floating point. A falling ramp is solved from its end, because
    /// near a rate of zero the difference of two large numbers would lose all precision.
    fn estimate_time_ns(&self, grains: u128) -> u64 {
        let (from, to) = (self.from.per_minute() as f64, self.to.per_minute() as f64);
        let length = self.length_ns() as f64;
        let since = |rate: f64, grains: u128| {
            let grains = grains as f64;
            let slope = (to - from).abs() / length;
            grains / (rate + (rate * rate + slope * grains).sqrt())
        };
        let at = if from < to { since(from, grains) } else { length - since(to, self.grains() - grains) };
        // Zero divided by zero, at the beginning of a ramp from zero, becomes zero.
        at as u64
    }

    /// True if at most this many grains have passed this many nanoseconds after the beginning. Exact: 2 from t + (to -
    /// from) t² / length <= grains.
    pub(super) fn has_passed_at_most(&self, at_ns: u64, grains: u128) -> bool {
        let (from, to) = (self.from.per_minute(), self.to.per_minute());
        let even = u128::from(2 * from) * u128::from(at_ns);
        let bend = wide_product(u128::from(from.abs_diff(to)) * u128::from(at_ns), at_ns);
        let length_ns = self.length_ns();
        if from < to {
            grains.checked_sub(even).is_some_and(|rest| bend <= wide_product(rest, length_ns))
        } else {
            even.checked_sub(grains).is_none_or(|excess| wide_product(excess, length_ns) <= bend)
        }
    }
}

/// A product of 192 bits: the upper 128 and the lower 64.
fn wide_product(a: u128, b: u64) -> (u128, u64) {
    let b = u128::from(b);
    let low = u128::from(a as u64) * b;
    ((a >> 64) * b + (low >> 64), low as u64)
}
