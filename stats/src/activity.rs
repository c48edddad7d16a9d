//! How a worker spent its time, and how late it was: this tells a slow generator from a slow target.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// A worker's activity while it measured. The number of connections it opened is
/// [`connects`](super::Counters::connects); the mean number of its requests in flight is
/// [`in_flight_ns`](super::Occupancy::in_flight_ns) divided by the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Elapsed nanoseconds; zero in a simulation, like everything that only the kernel knows.
    pub wall_ns: u64,
    /// Nanoseconds of processor time outside the kernel, busy-polling included.
    pub user_ns: u64,
    /// Nanoseconds of processor time inside the kernel, busy-polling included.
    pub system_ns: u64,
    /// Nanoseconds in the run queue: ready to run, but without a processor. `None`: the kernel does not report some of
    /// the time.
    pub queued_ns: Option<u64>,
    /// Nanoseconds of processor time spent busy-polling for completions.
    pub spun_ns: u64,
    /// Nanoseconds spent inside a script, estimated.
    pub script_ns: u64,
    /// The part of `script_ns` spent in long calls, or in many calls in close succession, during which the worker did
    /// nothing else.
    pub held_up_ns: u64,
    /// Number of waits for completions, blocking or not; a series of polls is one wait.
    pub waits: u64,
    /// Number of completions handled.
    pub completions: u64,
    /// Largest number of completions handled after one wait.
    pub completions_max: u64,
    /// Number of waits that were allowed to go on after the first completion, to collect several.
    pub lingers: u64,
    /// Longest time that any such wait was allowed to take, in nanoseconds.
    pub linger_max_ns: u64,
    /// Number of requests with a known lateness.
    pub submissions: u64,
    /// Total lateness of these requests, from due time to hand-over to the kernel, in nanoseconds.
    pub lateness_sum_ns: u64,
    /// Largest lateness, in nanoseconds.
    pub lateness_max_ns: u64,
}

impl Activity {
    /// Counts a wait and the completions handled after it.
    pub fn count_wait(&mut self, completions: usize) {
        let completions = completions as u64;
        self.waits += 1;
        self.completions += completions;
        self.completions_max = self.completions_max.max(completions);
    }

    /// Counts a wait that was allowed to take this long, in nanoseconds, to collect several completions.
    pub fn count_linger(&mut self, allowed_ns: u64) {
        self.lingers += 1;
        self.linger_max_ns = self.linger_max_ns.max(allowed_ns);
    }

    /// Counts a request handed to the kernel, with the nanoseconds since it was due.
    pub fn count_submission(&mut self, late_ns: u64) {
        self.submissions += 1;
        self.lateness_sum_ns += late_ns;
        self.lateness_max_ns = self.lateness_max_ns.max(late_ns);
    }

    /// Nanoseconds of processor time, in and outside the kernel, busy-polling included.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Nanoseconds of processor time, without busy-polling.
    pub fn worked_ns(&self) -> u64 {
        self.cpu_ns().saturating_sub(self.spun_ns)
    }

    /// Nanoseconds in which the worker neither ran nor was ready to run: blocked in a wait, or stopped. `None`: the
    /// kernel does not report the run-queue time.
    pub fn asleep_ns(&self) -> Option<u64> {
        Some(self.wall_ns.saturating_sub(self.cpu_ns() + self.queued_ns?))
    }
}

impl AddAssign for Activity {
    fn add_assign(&mut self, other: Self) {
        let Self {
            wall_ns,
            user_ns,
            system_ns,
            queued_ns,
            spun_ns,
            script_ns,
            held_up_ns,
            waits,
            completions,
            completions_max,
            lingers,
            linger_max_ns,
            submissions,
            lateness_sum_ns,
            lateness_max_ns,
        } = other;
        self.queued_ns = match (self.queued_ns, queued_ns) {
            // An empty interval has no time to report.
            (_, theirs) if self.wall_ns == 0 => theirs,
            (mine, _) if wall_ns == 0 => mine,
            (mine, theirs) => mine.zip(theirs).map(|(mine, theirs)| mine + theirs),
        };
        self.wall_ns += wall_ns;
        self.user_ns += user_ns;
        self.system_ns += system_ns;
        self.spun_ns += spun_ns;
        self.script_ns += script_ns;
        self.held_up_ns += held_up_ns;
        self.waits += waits;
        self.completions += completions;
        self.completions_max = self.completions_max.max(completions_max);
        self.lingers += lingers;
        self.linger_max_ns = self.linger_max_ns.max(linger_max_ns);
        self.submissions += submissions;
        self.lateness_sum_ns += lateness_sum_ns;
        self.lateness_max_ns = self.lateness_max_ns.max(lateness_max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Activity = Activity {
        wall_ns: 100,
        user_ns: 20,
        system_ns: 30,
        queued_ns: Some(10),
        spun_ns: 4,
        script_ns: 5,
        held_up_ns: 4,
        waits: 6,
        completions: 7,
        completions_max: 8,
        lingers: 5,
        linger_max_ns: 6,
        submissions: 9,
        lateness_sum_ns: 10,
        lateness_max_ns: 11,
    };

    #[test]
    fn merging_adds_sums_and_keeps_maxima() {
        let mut sum = ONE;
        sum += Activity { completions_max: 2, linger_max_ns: 7, lateness_max_ns: 12, ..ONE };
        let expected = Activity {
            wall_ns: 200,
            user_ns: 40,
            system_ns: 60,
            queued_ns: Some(20),
            spun_ns: 8,
            script_ns: 10,
            held_up_ns: 8,
            waits: 12,
            completions: 14,
            completions_max: 8,
            lingers: 10,
            linger_max_ns: 7,
            submissions: 18,
            lateness_sum_ns: 20,
            lateness_max_ns: 12,
        };
        assert_eq!(sum, expected);
        assert_eq!((sum.cpu_ns(), sum.asleep_ns()), (100, Some(80)));
    }

    #[test]
    fn unknown_run_queue_waits_stay_unknown() {
        let unknown = Activity { queued_ns: None, ..ONE };
        let sum = |parts: &[Activity]| {
            let mut sum = Activity::default();
            parts.iter().for_each(|part| sum += *part);
            (sum.queued_ns, sum.asleep_ns())
        };
        assert_eq!(sum(&[ONE, Activity::default(), ONE]), (Some(20), Some(80)));
        assert_eq!([sum(&[ONE, unknown]), sum(&[unknown, ONE]), sum(&[])], [(None, None); 3]);
    }

    #[test]
    fn waits_and_submissions_are_counted_with_their_extremes() {
        let mut activity = Activity::default();
        [3, 0, 5, 1].into_iter().for_each(|completions| activity.count_wait(completions));
        assert_eq!((activity.waits, activity.completions, activity.completions_max), (4, 9, 5));
        [20, 40, 30].into_iter().for_each(|allowed_ns| activity.count_linger(allowed_ns));
        assert_eq!((activity.lingers, activity.linger_max_ns), (3, 40));
        [30, 50, 0].into_iter().for_each(|late_ns| activity.count_submission(late_ns));
        assert_eq!((activity.submissions, activity.lateness_sum_ns, activity.lateness_max_ns), (3, 80, 50));
    }
}
