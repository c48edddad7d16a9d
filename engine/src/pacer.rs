//! Due times of requests. In a closed loop, methods called for every request cost only a branch.

use onrush_proto::Nanos;

use super::scheduled::Scheduled;

/// Due times of a worker's requests; an enum, to avoid virtual calls.
#[derive(Clone, Default)]
#[expect(clippy::large_enum_variant, reason = "a worker has one, and reads it for every request")]
pub enum Pacer {
    /// Closed loop: a request starts as soon as there is room for it.
    #[default]
    Closed,
    /// Open loop: requests start by a schedule.
    Scheduled(Scheduled),
}

impl Pacer {
    /// Starts the run and its schedule.
    pub fn begin_schedule(&mut self, at: Nanos) {
        match self {
            Self::Closed => {}
            Self::Scheduled(schedule) => schedule.begin_schedule(at),
        }
    }

    /// Earliest start of the next request: its due time, or later while late requests are made up for; possibly long
    /// past. [`Nanos::MAX`]: never.
    pub fn next_at(&self) -> Nanos {
        match self {
            Self::Closed => Nanos::default(),
            Self::Scheduled(schedule) => schedule.next_at(),
        }
    }

    /// Due time of the next request; [`Nanos::MAX`]: never.
    pub fn due_at(&self) -> Nanos {
        match self {
            Self::Closed => Nanos::default(),
            Self::Scheduled(schedule) => schedule.due_at(),
        }
    }

    /// Number of the next requests, at most `most`, due before a moment. Zero in a closed loop.
    pub fn count_before(&self, moment: Nanos, most: u64) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Scheduled(schedule) => schedule.count_before(moment, most),
        }
    }

    /// Number of the next requests due before a moment. If due times are random, it is exact up to a million, and a
    /// mean beyond that. Zero in a closed loop.
    pub fn count_about_before(&self, moment: Nanos) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Scheduled(schedule) => schedule.count_about_before(moment),
        }
    }

    /// Skips the next requests, at most `most`, due before a moment and not sent, and reports their due times. Does
    /// nothing in a closed loop.
    pub fn skip_due_before(&mut self, moment: Nanos, most: u64, say: impl FnMut(Nanos, u64)) {
        match self {
            Self::Closed => {}
            Self::Scheduled(schedule) => schedule.skip_due_before(moment, most, say),
        }
    }

    /// Starts a batch of this many requests, the first of which may start. Returns the first one's due time, at `now`
    /// or before. `is_excused`: if the batch is late, the catch-up pace does not count from it.
    pub fn take_due(&mut self, requests: u64, now: Nanos, is_excused: bool) -> Nanos {
        match self {
            Self::Closed => now,
            Self::Scheduled(schedule) => schedule.take_due(requests, now, is_excused),
        }
    }
}
