//! Measurements of scheduled requests, including the time that a due request waits to be sent.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Count, Distribution, Wrk2};

/// Measurements of scheduled requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct OpenLoopStats<C: Count> {
    /// From a request's due time to the last byte of its response, in nanoseconds. One per complete response.
    pub scheduled: Distribution<C>,
    /// From a request's due time to the hand-over of its first byte to the kernel, in nanoseconds. One per request.
    pub lateness: Distribution<C>,
    /// The latencies of requests due by the end and answered after it, in a run that continued in order to learn them.
    /// `None`: there are none.
    pub later: Option<Box<Distribution<C>>>,
    /// Requests due by the end that failed after it, in a run that continued.
    pub later_failed: u64,
    /// Requests due by the end that were dropped after it, in a run that continued.
    pub later_dropped: u64,
    /// The ages of requests without a complete response, in nanoseconds since they were due: when they were dropped or
    /// abandoned, or when the run stopped. They are lower bounds of latencies. Failed requests are in no distribution.
    pub censored: Distribution<C>,
    /// The part of `censored` from requests in flight or unsent when the run stopped. `None`: there are none.
    pub open: Option<Box<Distribution<C>>>,
    /// The ages, at the start of measuring, of requests due during the warm-up. `None`: there are none.
    pub entered: Option<Box<Distribution<C>>>,
    /// The latencies as recorded by wrk2. `None` unless wrk2 is imitated.
    pub wrk2: Option<Box<Wrk2<C>>>,
    /// Service latencies, in nanoseconds, of responses possibly held up by a time without responses or by its backlog,
    /// except for the responses that ended such a time. `None` until there is one.
    pub held: Option<Box<Distribution<C>>>,
    /// Requests due since measuring began.
    pub due: u64,
    /// Requests that would have been due while a thread was at work if there were no limit on the number of requests.
    pub beyond: u64,
    /// Requests due before measuring began and not sent by then.
    pub carried: u64,
    /// Requests sent more than a millisecond after they were due.
    pub late: u64,
    /// Requests never sent because it was too late (`--max-late`).
    pub dropped: u64,
    /// Requests due and not sent by the end of the run.
    pub unsent: u64,
    /// Number of the `dropped` and `unsent` requests that were held back while late ones were caught up slowly
    /// (`--catch-up`).
    pub held_back: u64,
    /// Batched receives (`--send-slice`) without a usable kernel timestamp. They are assigned the time at which they
    /// were noticed, up to a slice after their arrival.
    pub untimestamped: u64,
    /// Time for which requests were due while every connection had one in flight or paused for a script, in
    /// nanoseconds, summed over all threads.
    pub all_busy_ns: u64,
    /// Longest time for which a request waited for a connection meanwhile, in nanoseconds.
    pub all_busy_max_ns: u64,
    /// Total time for which scripts made connections pause before batches, in nanoseconds.
    pub paused_ns: u64,
    /// Complete responses to requests sent while less than half of the connections had a request in flight, including
    /// the warm-up.
    pub calm: u64,
    /// Sum, over the `calm` requests, of the requests in flight on their threads when they were sent, themselves
    /// included.
    pub calm_in_flight: u64,
    /// Sum of the service latencies of the `calm` requests, in nanoseconds.
    pub calm_ns: u64,
}

impl<C: Count> OpenLoopStats<C> {
    /// Records a complete response, with the nanoseconds since its request was due and since it was sent; `as_wrk2`:
    /// also records the latencies as wrk2 does.
    pub fn record_response(&mut self, scheduled_ns: u64, service_ns: u64, as_wrk2: bool) {
        self.scheduled.record(scheduled_ns);
        if as_wrk2 {
            self.wrk2.get_or_insert_default().record(scheduled_ns, service_ns);
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.scheduled.clear();
        self.lateness.clear();
        self.censored.clear();
        [&mut self.later, &mut self.open, &mut self.entered].into_iter().flatten().for_each(|times| times.clear());
        (self.later_failed, self.later_dropped) = (0, 0);
        if let Some(wrk2) = &mut self.wrk2 {
            wrk2.clear();
        }
        if let Some(held) = &mut self.held {
            held.clear();
        }
        (self.due, self.beyond) = (0, 0);
        (self.carried, self.late, self.dropped, self.unsent, self.held_back) = (0, 0, 0, 0, 0);
        self.untimestamped = 0;
        (self.all_busy_ns, self.all_busy_max_ns, self.paused_ns) = (0, 0, 0);
        (self.calm, self.calm_in_flight, self.calm_ns) = (0, 0, 0);
    }
}

impl<C: Count> Default for OpenLoopStats<C> {
    fn default() -> Self {
        Self {
            scheduled: Distribution::default(),
            lateness: Distribution::default(),
            later: None,
            later_failed: 0,
            later_dropped: 0,
            censored: Distribution::default(),
            open: None,
            entered: None,
            wrk2: None,
            held: None,
            due: 0,
            beyond: 0,
            carried: 0,
            late: 0,
            dropped: 0,
            unsent: 0,
            held_back: 0,
            untimestamped: 0,
            all_busy_ns: 0,
            all_busy_max_ns: 0,
            paused_ns: 0,
            calm: 0,
            calm_in_flight: 0,
            calm_ns: 0,
        }
    }
}

impl<A: Count, B: Count> AddAssign<&OpenLoopStats<B>> for OpenLoopStats<A> {
    fn add_assign(&mut self, other: &OpenLoopStats<B>) {
        self.scheduled += &other.scheduled;
        self.lateness += &other.lateness;
        self.censored += &other.censored;
        let parts =
            [(&mut self.later, &other.later), (&mut self.open, &other.open), (&mut self.entered, &other.entered)];
        for (mine, theirs) in parts {
            if let Some(theirs) = theirs.as_deref().filter(|theirs| theirs.count() > 0) {
                **mine.get_or_insert_default() += theirs;
            }
        }
        self.later_failed += other.later_failed;
        self.later_dropped += other.later_dropped;
        if let Some(wrk2) = other.wrk2.as_deref() {
            **self.wrk2.get_or_insert_default() += wrk2;
        }
        if let Some(held) = other.held.as_deref().filter(|held| held.count() > 0) {
            **self.held.get_or_insert_default() += held;
        }
        self.due += other.due;
        self.beyond += other.beyond;
        self.carried += other.carried;
        self.late += other.late;
        self.dropped += other.dropped;
        self.unsent += other.unsent;
        self.held_back += other.held_back;
        self.untimestamped += other.untimestamped;
        self.all_busy_ns += other.all_busy_ns;
        self.all_busy_max_ns = self.all_busy_max_ns.max(other.all_busy_max_ns);
        self.paused_ns += other.paused_ns;
        self.calm += other.calm;
        self.calm_in_flight += other.calm_in_flight;
        self.calm_ns += other.calm_ns;
    }
}
