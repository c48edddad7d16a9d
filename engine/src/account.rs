//! The kernel's accounting of a worker's thread, read only when an interval is handed over.

use std::os::fd::OwnedFd;

use onrush_stats::Activity;

use crate::backend::{monotonic_ns, thread_cpu_ns, thread_system_ns};

/// The kernel's counters for the calling thread.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// The thread's `schedstat`, if there is one.
    schedstat: Option<OwnedFd>,
    last: Reading,
}

/// The counters at a moment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    wall_ns: u64,
    user_ns: u64,
    system_ns: u64,
    queued_ns: Option<u64>,
}

impl Account {
    /// An account that reads the time in the run queue from this file.
    pub fn new(schedstat: Option<OwnedFd>) -> Self {
        Self { schedstat, ..Self::default() }
    }

    /// Starts a new period without returning the last one.
    pub fn restart_counting(&mut self) {
        self.last = self.read_counters();
    }

    /// Returns the activity since the last reading and starts the next period.
    pub fn take_activity(&mut self) -> Activity {
        let before = self.last;
        self.restart_counting();
        let queued = self.last.queued_ns.zip(before.queued_ns);
        Activity {
            wall_ns: self.last.wall_ns - before.wall_ns,
            user_ns: self.last.user_ns - before.user_ns,
            system_ns: self.last.system_ns - before.system_ns,
            queued_ns: queued.map(|(now_ns, before_ns)| now_ns.saturating_sub(before_ns)),
            ..Activity::default()
        }
    }

    /// Processor time of the calling thread since the last reading, in nanoseconds.
    pub fn cpu_ns_since_reading(&self) -> u64 {
        thread_cpu_ns() - (self.last.user_ns + self.last.system_ns)
    }

    fn read_counters(&self) -> Reading {
        let (wall_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
        let (user_ns, system_ns) = self.last.split(cpu_ns, thread_system_ns());
        Reading { wall_ns, user_ns, system_ns, queued_ns: self.queued_ns() }
    }

    fn queued_ns(&self) -> Option<u64> {
        // Room for three numbers and their separators.
        let mut text = [0; 64];
        let length = rustix::io::pread(self.schedstat.as_ref()?, &mut text, 0).ok()?;
        queued_ns(&text[..length])
    }
}

impl Reading {
    /// Splits processor time into user and system time, given the kernel's system time. The sum is exact; the split may
    /// be a tick late. Neither part ever decreases.
    fn split(&self, cpu_ns: u64, system_ns: u64) -> (u64, u64) {
        let user_ns = cpu_ns.saturating_sub(system_ns).max(self.user_ns);
        (user_ns, cpu_ns - user_ns)
    }
}

/// The second number of a `schedstat`: processor time, run-queue time, number of times scheduled. A kernel without this
/// accounting writes three zeros. The reading thread has run at least once, so zeros mean unknown.
fn queued_ns(text: &[u8]) -> Option<u64> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let [_, queued_ns, turns] = [numbers.next()??, numbers.next()??, numbers.next()??];
    (turns > 0).then_some(queued_ns)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn run_queue_time_is_read_from_schedstat() {
        assert_eq!(queued_ns(b"1030788 16229207 2\n"), Some(16_229_207));
        assert_eq!(queued_ns(b"1030788 0 2\n"), Some(0));
        for text in ["0 0 0\n", "", "1 2\n", "1 x 2\n", "-1 2 3\n"] {
            assert_eq!(queued_ns(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn accounted_times_add_up_to_elapsed_time() {
        let mut account = Account::new(File::open("/proc/thread-self/schedstat").ok().map(OwnedFd::from));
        let begin_ns = thread_cpu_ns();
        account.restart_counting();
        let mut sum = Activity::default();
        for round in 0..6 {
            let began = Instant::now();
            if round % 2 == 0 {
                while began.elapsed() < Duration::from_millis(5) {}
            } else {
                std::thread::sleep(Duration::from_millis(20));
            }
            sum += account.take_activity();
        }
        let cpu_ns = thread_cpu_ns() - begin_ns;
        assert!(sum.cpu_ns() <= cpu_ns && cpu_ns < sum.cpu_ns() + 2_000_000, "{sum:?}, {cpu_ns}");
        let asleep_ns = sum.asleep_ns().expect("this kernel has a schedstat");
        assert!(asleep_ns >= 59_000_000, "{sum:?}");
        assert_eq!(sum.wall_ns, sum.cpu_ns() + sum.queued_ns.unwrap() + asleep_ns);
    }

    #[test]
    fn user_and_system_times_never_decrease() {
        let mut last = Reading::default();
        let table = [(100, 0, (100, 0)), (200, 150, (100, 100)), (300, 160, (140, 160)), (300, 160, (140, 160))];
        for (cpu_ns, system_ns, expected) in table {
            let (user_ns, system_ns) = last.split(cpu_ns, system_ns);
            assert_eq!((user_ns, system_ns), expected);
            assert!(user_ns >= last.user_ns && system_ns >= last.system_ns && user_ns + system_ns == cpu_ns);
            last = Reading { user_ns, system_ns, ..last };
        }
    }

    #[test]
    fn missing_schedstat_leaves_only_processor_time() {
        let mut account = Account::default();
        account.restart_counting();
        let activity = account.take_activity();
        assert!(activity.wall_ns > 0 && activity.cpu_ns() > 0, "{activity:?}");
        assert_eq!((activity.queued_ns, activity.asleep_ns()), (None, None));
    }
}
