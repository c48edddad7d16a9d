//! When requests are due. Methods called for every request are inlined: in a closed loop they cost a branch.

use onrush_proto::Nanos;

use super::scheduled::Scheduled;

/// When the requests of a worker are due: an enum, to avoid virtual calls.
#[derive(Clone, Default)]
#[expect(clippy::large_enum_variant, reason = "a worker has one, and reads it for every request")]
pub enum Pacer {
    /// Always: a request starts as soon as there is room for it.
    #[default]
    Closed,
    /// At the moments of a schedule.
    Scheduled(Scheduled),
}

impl Pacer {
    /// Begins the run, and with it the schedule.
    pub fn begin(&mut self, at: Nanos) {
        match self {
            Self::Closed => {}
            Self::Scheduled(schedule) => schedule.begin(at),
        }
    }

    /// When the next request may start: when it is due, or later while late ones are made up for; possibly long past.
    /// [`Nanos::MAX`]: never.
    #[inline]
    pub fn next_at(&self) -> Nanos {
        match self {
            Self::Closed => Nanos::default(),
            Self::Scheduled(schedule) => schedule.next_at(),
        }
    }

    /// When the next request is due; [`Nanos::MAX`]: never.
    #[inline]
    pub fn due_at(&self) -> Nanos {
        match self {
            Self::Closed => Nanos::default(),
            Self::Scheduled(schedule) => schedule.due_at(),
        }
    }

    /// How many of the next requests, at most `most`, are due before a moment; in a closed loop none waits.
    pub fn count_before(&self, moment: Nanos, most: u64) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Scheduled(schedule) => schedule.count_before(moment, most),
        }
    }

    /// How many of the next requests are due before a moment, drawn up to a number and then on average; in a closed
    /// loop none waits.
    pub fn count_about_before(&self, moment: Nanos) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Scheduled(schedule) => schedule.count_about_before(moment),
        }
    }

    /// Skips the requests, at most `most`, that are due before a moment and are not sent, and reports when they were
    /// due; in a closed loop none waits.
    pub fn pass(&mut self, moment: Nanos, most: u64, say: impl FnMut(Nanos, u64)) {
        match self {
            Self::Closed => {}
            Self::Scheduled(schedule) => schedule.pass(moment, most, say),
        }
    }

    /// Starts a batch of this many requests, of which the first may start; `is_excused`: if it is late, the pace at
    /// which late requests are made up for does not count from it. Returns when it was due, at `now` or before.
    #[inline]
    pub fn take(&mut self, requests: u64, now: Nanos, is_excused: bool) -> Nanos {
        match self {
            Self::Closed => now,
            Self::Scheduled(schedule) => schedule.take(requests, now, is_excused),
        }
    }
}
