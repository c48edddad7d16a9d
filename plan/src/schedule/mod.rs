//! The schedule of an open loop, which sets the due times of requests: plain data, and a pure function of it.
//!
//! There is one schedule for the whole run, however many threads and machines take part: request k belongs to part k
//! mod n of n. No clock is read: times count from the start of the run.

mod arrivals;
mod catch_up;
mod dues;
mod rate;
mod stage;

pub use arrivals::Arrivals;
pub use catch_up::CatchUp;
pub use dues::{Dues, ScheduleSpan};
pub use rate::Rate;
pub use stage::Stage;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{POISSON_RATE_MAX, SEND_SLICE_MAX, TIME_MAX};
use super::part::Partition;

/// A request sent more than this after its due time is late.
pub const LATE: Duration = Duration::from_millis(1);

/// The due times of requests, and what happens to late ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The distribution of due times at a given rate.
    pub arrivals: Arrivals,
    /// The rate over time, in at least one stage. The first stage begins after the warm-up, which runs at the initial
    /// rate of that stage.
    pub stages: Vec<Stage>,
    /// The part of the requests sent here.
    pub part: Partition,
    /// The pace at which late requests are sent; `None`: as fast as possible.
    pub catch_up: Option<CatchUp>,
    /// Lateness beyond which a request is dropped instead of sent; `None`: no request is dropped.
    pub max_late: Option<Duration>,
    /// Length of the slices in which sends are gathered: requests due within a slice are sent at its end; `None`: each
    /// is sent at its due time.
    pub send_slice: Option<Duration>,
}

impl Schedule {
    /// The due times of one worker, which takes one part of this share. The seed matters only if due times are drawn.
    pub fn dues(&self, worker: Partition, span: ScheduleSpan, seed: u64) -> Dues {
        Dues::new(self.arrivals, &self.stages, self.part.part_of_part(worker), span, seed)
    }

    /// The mean number of requests per second due here between two times after the warm-up, the earlier one first; zero
    /// after the last stage.
    pub fn per_second_between(&self, from: Duration, until: Duration) -> f64 {
        (self.requests_until(until) - self.requests_until(from)) / (until - from).as_secs_f64()
    }

    /// Mean number of requests due here up to this time after the warm-up.
    fn requests_until(&self, mut until: Duration) -> f64 {
        let mut requests = 0.0;
        for stage in &self.stages {
            let length = stage.length.unwrap_or(Duration::MAX);
            let part = until.min(length);
            let (from, to) = (stage.from.per_second(), stage.to.per_second());
            // The mean rate of the part is the rate in its middle.
            let done = part.as_secs_f64() / length.as_secs_f64();
            requests += part.as_secs_f64() * (from + (to - from) * done / 2.0);
            until -= part;
        }
        requests / self.part.of as f64
    }

    /// The periods in which no request is due: start and end of each, in nanoseconds after the warm-up, in order. They
    /// are the stages at a rate of zero, and the time after the last stage.
    pub fn idle_times(&self) -> Vec<(u64, u64)> {
        let (mut from_ns, mut idle) = (0, Vec::new());
        for stage in &self.stages {
            let until_ns = stage.length_ns().saturating_add(from_ns);
            idle.extend(stage.is_idle().then_some((from_ns, until_ns)));
            from_ns = until_ns;
        }
        idle.push((from_ns, u64::MAX));
        idle
    }

    /// The length of all stages together; `None`: the last stage is open-ended.
    pub fn length(&self) -> Option<Duration> {
        self.stages.iter().map(|stage| stage.length).sum()
    }

    /// The highest number of requests per second due here.
    pub fn most_per_second(&self) -> f64 {
        let most = self.stages.iter().map(|stage| stage.from.max(stage.to)).max();
        most.map_or(0.0, Rate::per_second) / self.part.of as f64
    }

    /// The delay after its due time from which a request is late.
    pub fn late_after(&self) -> Duration {
        LATE + self.send_slice.unwrap_or_default()
    }

    /// True if due times would have to be drawn at a higher rate than one thread can ([`POISSON_RATE_MAX`]).
    pub fn is_too_fast_to_draw(&self) -> bool {
        let is_too_fast = |stage: &Stage| stage.from.max(stage.to).per_second() > POISSON_RATE_MAX as f64;
        self.arrivals == Arrivals::Poisson && self.stages.iter().any(is_too_fast)
    }

    /// The share of one of several machines.
    pub fn share(&self, index: u32, parts: u32) -> Self {
        Self { part: self.part.part_of_part(Partition::new(index, parts)), ..self.clone() }
    }

    /// The contradiction in a schedule read from a plan, if there is one.
    pub fn contradiction(&self) -> Option<&'static str> {
        let Some((last, others)) = self.stages.split_last() else { return Some("the schedule has no stage") };
        if others.iter().any(|stage| stage.length.is_none()) || (last.length.is_none() && last.from != last.to) {
            return Some("only the last stage of a schedule may be open-ended, at one rate");
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
