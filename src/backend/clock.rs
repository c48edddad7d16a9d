//! The monotonic clock, in nanoseconds since the run was set up, and the others that are needed beside it.

use std::mem::MaybeUninit;
use std::time::Instant;

use onrush_proto::Nanos;

/// A monotonic clock with an origin that all threads of a run share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// The nanoseconds since the origin.
    pub fn now(&self) -> Nanos {
        Nanos(self.origin.elapsed().as_nanos() as u64)
    }

    /// The nanoseconds from the origin to a moment; none to an earlier one.
    pub fn at(&self, moment: Instant) -> Nanos {
        Nanos(moment.saturating_duration_since(self.origin).as_nanos() as u64)
    }
}

/// Has the kernel wake this thread as exactly as it can: usually it gathers what is due within 50 µs.
pub fn precise_timers() {
    // SAFETY: it changes how long this thread sleeps, and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// The processor time that this thread has taken so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How much of that was inside the kernel, in nanoseconds, as far as it knows: it may be a tick late.
pub fn thread_system_ns() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the record is ours, a thread always has it, and zeros would be one, too.
    let system = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_stime
    };
    system.tv_sec as u64 * 1_000_000_000 + system.tv_usec as u64 * 1_000
}

/// The monotonic time in nanoseconds, since a moment of the kernel's choice.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// The wall clock, in nanoseconds since 1970. It may be set at any time: only differences over a short while mean anything.
pub fn wall_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// How long this machine has been suspended since it was started, in nanoseconds: the monotonic clock stands still then, the
/// other one does not. In a time namespace there is a constant in it, so that only a difference of two readings is a time.
pub fn suspended_ns() -> i64 {
    let reading = || {
        let awake_ns = monotonic_ns();
        read(libc::CLOCK_BOOTTIME) as i64 - awake_ns as i64
    };
    // Time passes between the two clocks; of several readings the least has the least of it.
    (0..4).map(|_| reading()).min().unwrap_or_default()
}

/// A monotonic time in nanoseconds that moves on with the ticks of the kernel only, of up to 10 ms each: what to read costs
/// next to nothing.
pub fn coarse_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

fn read(clock: libc::clockid_t) -> u64 {
    // Other C libraries have more fields in it than the two that matter.
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // The C library's way, not rustix's: that one reads the kernel's vDSO, which valgrind takes away.
    // SAFETY: the record is ours, these clocks are always there, and zeros would be a time, too.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
