//! When requests are due in an open loop: data, and a pure function of it.
//!
//! The schedule is one for the whole run, however many threads and machines carry it out: request k of it falls to part
//! k mod n of n. It knows no clock: times count from the start of the run.

mod arrivals;
mod catch_up;
mod dues;
mod rate;
mod stage;

pub use arrivals::Arrivals;
pub use catch_up::CatchUp;
pub use dues::{Dues, Span};
pub use rate::Rate;
pub use stage::Stage;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{POISSON_RATE_MAX, SEND_SLICE_MAX, TIME_MAX};
use super::part::Part;

/// Requests that are sent more than this after they might have been are late.
const LATE: Duration = Duration::from_millis(1);

/// When requests are due, and what becomes of those that are late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// How due times are spread at a given rate.
    pub arrivals: Arrivals,
    /// The rate over time, one stage after the other, at least one. They begin when the warm-up is over; that has the rate
    /// with which the first one begins.
    pub stages: Vec<Stage>,
    /// Which of the requests are sent here.
    pub part: Part,
    /// How fast late requests are made up for; `None`: as fast as possible.
    pub catch_up: Option<CatchUp>,
    /// A request that would start later than this after it was due is dropped; `None`: none is.
    pub max_late: Option<Duration>,
    /// Requests that are due within a slice of this length leave together at its end; `None`: each leaves when it is due.
    pub send_slice: Option<Duration>,
}

impl Schedule {
    /// When the requests of one worker are due: of one part of what is sent here.
    pub fn dues(&self, worker: Part, span: Span, seed: u64) -> Dues {
        Dues::new(self.arrivals, &self.stages, self.part.part(worker), span, seed)
    }

    /// How many requests per second are due here on average between two times after the warm-up, the first of which is the
    /// earlier; none when all stages are over.
    pub fn per_second_between(&self, from: Duration, until: Duration) -> f64 {
        (self.requests_until(until) - self.requests_until(from)) / (until - from).as_secs_f64()
    }

    /// How many requests are due here until this long after the warm-up.
    fn requests_until(&self, mut until: Duration) -> f64 {
        let mut requests = 0.0;
        for stage in &self.stages {
            let length = stage.length.unwrap_or(Duration::MAX);
            let part = until.min(length);
            let (from, to) = (stage.from.per_second(), stage.to.per_second());
            // On average it has the rate of its middle.
            let done = part.as_secs_f64() / length.as_secs_f64();
            requests += part.as_secs_f64() * (from + (to - from) * done / 2.0);
            until -= part;
        }
        requests / self.part.of as f64
    }

    /// How long its stages last; `None`: the last one is open.
    pub fn length(&self) -> Option<Duration> {
        self.stages.iter().map(|stage| stage.length).sum()
    }

    /// The most requests per second that are ever due here.
    pub fn most_per_second(&self) -> f64 {
        let most = self.stages.iter().map(|stage| stage.from.max(stage.to)).max();
        most.map_or(0.0, Rate::per_second) / self.part.of as f64
    }

    /// Requests that are sent more than this after they were due are late.
    pub fn late_after(&self) -> Duration {
        LATE + self.send_slice.unwrap_or_default()
    }

    /// Whether more requests are due per second than can be drawn.
    pub fn is_too_fast_to_draw(&self) -> bool {
        let is_too_fast = |stage: &Stage| stage.from.max(stage.to).per_second() > POISSON_RATE_MAX as f64;
        self.arrivals == Arrivals::Poisson && self.stages.iter().any(is_too_fast)
    }

    /// The same schedule for one of several machines.
    pub fn share(&self, index: u32, parts: u32) -> Self {
        Self { part: self.part.part(Part::new(index, parts)), ..self.clone() }
    }

    /// What is wrong with a schedule from another source.
    pub fn contradiction(&self) -> Option<&'static str> {
        let Some((last, others)) = self.stages.split_last() else { return Some("the schedule has no stage") };
        if others.iter().any(|stage| stage.length.is_none()) || (last.length.is_none() && last.from != last.to) {
            return Some("only the last stage of a schedule may be open, at one rate");
        }
        if self.stages.iter().any(|stage| stage.length == Some(Duration::ZERO)) {
            return Some("a stage of the schedule has no length");
        }
        let total = self.stages.iter().try_fold(Duration::ZERO, |sum, stage| sum.checked_add(stage.length?));
        if last.length.is_some() && total.is_none_or(|total| total > TIME_MAX) {
            return Some("the schedule is too long");
        }
        if self.stages.iter().all(Stage::is_idle) {
            return Some("no request is ever due");
        }
        if self.is_too_fast_to_draw() {
            return Some("the rate is too high for Poisson arrivals");
        }
        if self.send_slice.is_some_and(|slice| slice.is_zero() || slice > SEND_SLICE_MAX) {
            return Some("the slices of the schedule are empty or too long");
        }
        self.part.contradiction()
    }
}

#[cfg(test)]
mod tests;
