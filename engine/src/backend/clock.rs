//! The monotonic clock, in nanoseconds since the run was set up, and other clocks.

use std::mem::MaybeUninit;
use std::time::Instant;

use onrush_proto::Nanos;

/// A monotonic clock whose origin all threads of a run share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    /// The origin on the kernel's clock, in nanoseconds. The engine reads the time several times per request.
    /// Subtracting two `Instant`s takes four times as long as reading one.
    origin_ns: u64,
}

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        // If the thread is preempted between the two readings, they are far apart, so the quickest of several tries is
        // used.
        let tries = (0..4).map(|_| {
            let (origin_ns, origin) = (monotonic_ns(), Instant::now());
            (monotonic_ns() - origin_ns, Self { origin, origin_ns })
        });
        tries.min_by_key(|(took_ns, _)| *took_ns).expect("there are four tries").1
    }

    /// The nanoseconds since the clock's origin.
    pub fn now(&self) -> Nanos {
        Nanos(monotonic_ns() - self.origin_ns)
    }

    /// The nanoseconds from the origin to a reading of the monotonic clock; zero for an earlier one.
    pub fn from_monotonic_ns(&self, monotonic_ns: u64) -> Nanos {
        Nanos(monotonic_ns.saturating_sub(self.origin_ns))
    }

    /// The nanoseconds from the origin to a moment; zero for an earlier one.
    pub fn from_instant(&self, moment: Instant) -> Nanos {
        Nanos(moment.saturating_duration_since(self.origin).as_nanos() as u64)
    }
}

/// Makes the kernel wake the calling thread as precisely as it can; by default it groups timers within 50 µs.
pub fn request_precise_timers() {
    // SAFETY: the call changes this thread's timer slack and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Processor time used by the calling thread so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time used by all threads of this process so far, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time that the calling thread has spent in the kernel, in nanoseconds; may be a tick late.
pub fn thread_system_ns() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the struct is ours, every thread has these counters, and zeros are valid.
    let system = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_stime
    };
    system.tv_sec as u64 * 1_000_000_000 + system.tv_usec as u64 * 1_000
}

/// The kernel's monotonic time, in nanoseconds since an origin chosen by the kernel; not the time of a [`Clock`].
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The wall clock, in nanoseconds since 1970. It may be set at any time: only short differences are meaningful.
pub fn wall_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Time this machine has spent suspended since boot, in nanoseconds. The boot-time clock runs while suspended; the
/// monotonic clock does not. A time namespace adds a constant, so only the difference of two readings is meaningful.
pub fn suspended_ns() -> i64 {
    let reading = || {
        let awake_ns = monotonic_ns();
        read(libc::CLOCK_BOOTTIME) as i64 - awake_ns as i64
    };
    // Some time passes between reading the two clocks. The smallest of several differences includes the least of it.
    (0..4).map(|_| reading()).min().unwrap_or_default()
}

/// Wall-clock time less the time since boot, suspended time included, in nanoseconds. The difference between two
/// readings is the amount by which the wall clock was set in between.
pub fn wall_offset_ns() -> i64 {
    offset_ns(read)
}

/// Wall-clock time less the time of another clock, read just before and after it. If the thread is preempted in
/// between, the readings are far apart, so the quickest of several tries is used.
fn offset_ns(mut read: impl FnMut(libc::clockid_t) -> u64) -> i64 {
    let tries = (0..4).map(|_| {
        let before_ns = read(libc::CLOCK_BOOTTIME);
        let wall_ns = read(libc::CLOCK_REALTIME);
        (read(libc::CLOCK_BOOTTIME) - before_ns, wall_ns as i64 - before_ns as i64)
    });
    tries.min().map_or(0, |(_, offset_ns)| offset_ns)
}

/// The kernel's monotonic time in nanoseconds, up to one kernel tick (10 ms at most) old. Reading it costs next to
/// nothing.
pub fn coarse_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

fn read(clock: libc::clockid_t) -> u64 {
    // Other C libraries have more than these two fields.
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // Through the C library: rustix reads the kernel's vDSO, which valgrind removes. SAFETY: the struct is ours, these
    // clocks always exist, and zeros are a valid time.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clock_and_instant_share_one_origin() {
        let clock = Clock::start();
        let (before, moment, after) = (clock.now(), Instant::now(), clock.now());
        // The two forms of the origin are one clock reading apart. In the best of four tries nothing lengthens it.
        let tolerance_ns = 100_000;
        let at = clock.from_instant(moment);
        assert!(before.0 <= at.0 + tolerance_ns && at.0 <= after.0 + tolerance_ns, "{before:?} {at:?} {after:?}");
        assert_eq!(clock.from_instant(moment - Duration::from_secs(1)), Nanos(0));
    }

    #[test]
    fn preemption_between_clock_readings_is_no_step() {
        const OFFSET_NS: u64 = 1_700_000_000_000_000_000;
        // The three readings of the one undisturbed try are 50 ns apart.
        for lucky in 0..4 {
            for preempted in 0..3 {
                let (mut now_ns, mut readings) = (1_000, 0);
                let offset_ns = offset_ns(|clock| {
                    let is_late = readings / 3 != lucky && readings % 3 >= preempted;
                    now_ns += if is_late { 60_000_000 } else { 50 };
                    readings += 1;
                    if clock == libc::CLOCK_REALTIME { now_ns + OFFSET_NS } else { now_ns }
                });
                let error_ns = offset_ns - OFFSET_NS as i64;
                assert!((0..1_000).contains(&error_ns), "try {lucky}, reading {preempted}: {error_ns} ns");
            }
        }
    }
}
