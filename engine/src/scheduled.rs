//! A worker's requests by the plan's schedule.

use onrush_proto::Nanos;

use onrush_plan::schedule::{CatchUp, Dues};

/// Delay, in nanoseconds, from which a request counts as held up, and the worker catches up.
const STALL_NS: u64 = 1_000_000;

/// Number of unsent requests up to which they are counted one by one; above it, in groups.
const PASSED_SINGLY: u64 = 100_000;

/// A worker's requests by the plan's schedule, and the catch-up of late ones.
#[derive(Clone)]
pub struct Scheduled {
    dues: Dues,
    begin: Nanos,
    catch_up: Option<CatchUp>,
    /// Length of the slices into which sends are gathered; 0: no slices.
    slice_ns: u64,
    /// The last held-up request.
    resumed: Option<Resumed>,
    next_at: Nanos,
}

/// A held-up request.
#[derive(Clone)]
struct Resumed {
    at: Nanos,
    due_ns: u64,
}

impl Scheduled {
    /// A schedule that starts at zero. Late requests leave at once, or no faster than `catch_up` allows. If `slice_ns`
    /// is not zero, each request leaves at the end of its slice of that many nanoseconds.
    pub fn new(dues: Dues, catch_up: Option<CatchUp>, slice_ns: u64) -> Self {
        let (begin, next_at) = (Nanos::default(), Nanos::default());
        let mut new = Self { dues, begin, catch_up, slice_ns, resumed: None, next_at };
        new.compute_next_start();
        new
    }

    /// Moves the start of the schedule to this moment.
    pub fn begin_schedule(&mut self, at: Nanos) {
        self.begin = at;
        self.compute_next_start();
    }

    /// Earliest start of the next request; [`Nanos::MAX`]: never.
    pub fn next_at(&self) -> Nanos {
        self.next_at
    }

    /// Due time of the next request; [`Nanos::MAX`]: never.
    pub fn due_at(&self) -> Nanos {
        self.begin + self.dues.next_ns()
    }

    /// Skips the next requests, at most `most`, due before a moment and not sent. Reports each due time; if there are
    /// very many, reports groups by their last request.
    pub fn skip_due_before(&mut self, moment: Nanos, most: u64, mut say: impl FnMut(Nanos, u64)) {
        let mut left = most;
        while left > 0 && !self.dues.can_leap(moment.since(self.begin)) && self.due_at() < moment {
            say(self.due_at(), 1);
            self.dues.skip_batch(1);
            left -= 1;
        }
        // From here on many can be skipped at once, or there are no more.
        left = self.count_before(moment, left);
        let together = left / PASSED_SINGLY + 1;
        while left > 0 {
            let requests = left.min(together);
            self.dues.skip_batch(requests - 1);
            say(self.due_at(), requests);
            self.dues.skip_batch(1);
            left -= requests;
        }
        self.compute_next_start();
    }

    /// Number of the next requests, at most `most`, due before a moment.
    pub fn count_before(&self, moment: Nanos, most: u64) -> u64 {
        self.dues.count_before(moment.since(self.begin), most)
    }

    /// Number of the next requests due before a moment. If due times are random, it is exact up to a million, and a
    /// mean beyond that.
    pub fn count_about_before(&self, moment: Nanos) -> u64 {
        self.dues.count_about_before(moment.since(self.begin))
    }

    /// Starts a batch of this many requests, the first of which may start. Returns the first one's due time.
    /// `is_excused`: if the batch is late, the catch-up pace does not count from it.
    pub fn take_due(&mut self, requests: u64, now: Nanos, is_excused: bool) -> Nanos {
        let due = self.due_at();
        if now.since(self.next_at) > STALL_NS && !is_excused {
            self.resumed = Some(Resumed { at: now, due_ns: self.dues.next_ns() });
        }
        self.dues.skip_batch(requests);
        self.compute_next_start();
        due
    }

    /// Computes the earliest start of the next request. After a held-up request, the schedule runs faster until it has
    /// caught up; from then on due times are later than the factor allows.
    fn compute_next_start(&mut self) {
        self.next_at = self.due_at();
        if let (Some(factor), Some(resumed)) = (self.catch_up, &self.resumed) {
            let since_ns = factor.catch_up_time_ns(self.dues.next_ns() - resumed.due_ns);
            self.next_at = self.next_at.max(resumed.at + since_ns);
        }
        self.next_at = self.slice_end(self.next_at);
    }

    /// The end of the slice around this moment. Slices start with the schedule. A request due exactly at the end of a
    /// slice leaves then. A request that would leave after the end of the run leaves at its due time.
    fn slice_end(&self, at: Nanos) -> Nanos {
        let end_ns = at.since(self.begin).checked_next_multiple_of(self.slice_ns);
        end_ns.filter(|&end_ns| end_ns < self.dues.end_ns()).map_or(at, |end_ns| self.begin + end_ns)
    }
}
