//! The limit of a sleeping schedule: a thread that only wakes up at every due time.
//!
//! Usage: `bare-sleep RATE SECONDS`. Prints the lateness and the processor time per wake-up. After a wake-up that is
//! later than the next due time, the thread does not sleep until that time, just as a generator would not.

use std::env;
use std::io;
use std::num::NonZeroU64;

use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};

const SECOND: u64 = 1_000_000_000;

fn main() -> io::Result<()> {
    let numbers: Option<Vec<u64>> = env::args().skip(1).map(|word| word.parse().ok().filter(|&n| n > 0)).collect();
    let Some(&[rate, seconds]) = numbers.as_deref() else {
        return Err(io::Error::other("usage: bare-sleep RATE SECONDS"));
    };
    // By default, timers fire up to 50 µs late, to share wake-ups.
    set_current_timer_slack(NonZeroU64::new(1))?;
    let (begin, cpu_before) = (now(ClockId::Monotonic), now(ClockId::ThreadCPUTime));
    let mut lateness: Vec<u64> = Vec::with_capacity((rate * seconds) as usize);
    let mut sleeps = 0_u64;
    for number in 1..=rate * seconds {
        let due = begin + (u128::from(number) * u128::from(SECOND) / u128::from(rate)) as u64;
        if now(ClockId::Monotonic) < due {
            sleep_until(due)?;
            sleeps += 1;
        }
        lateness.push(now(ClockId::Monotonic) - due);
    }
    let cpu = now(ClockId::ThreadCPUTime) - cpu_before;
    lateness.sort_unstable();
    let at = |share: f64| lateness[((lateness.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!("late: 50% {:.1} us, 99% {:.1} us, at most {:.1} us", at(0.5), at(0.99), at(1.0));
    println!(
        "CPU: {:.2} us per sleep, {:.2} us per due time",
        cpu as f64 / 1e3 / sleeps as f64,
        cpu as f64 / 1e3 / lateness.len() as f64
    );
    Ok(())
}

/// Current time of a clock, in nanoseconds.
fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Sleeps until this time of the monotonic clock, in nanoseconds.
fn sleep_until(moment: u64) -> io::Result<()> {
    let time = Timespec { tv_sec: (moment / SECOND) as i64, tv_nsec: (moment % SECOND) as i64 };
    Ok(clock_nanosleep_absolute(ClockId::Monotonic, &time)?)
}
