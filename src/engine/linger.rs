//! How long a wait for answers may linger.
//!
//! A server that is slower than we are wakes us for each answer, and waking up takes more processor time than the rest. To
//! wait a moment longer brings several answers at once. In a closed loop their successors leave later by that moment,
//! which a busy server does not notice, because others wait in front of it; a server that is not busy would be asked
//! less. So the moment is a small part of the mean latency, and nobody lingers unless something is to be expected meanwhile.

use crate::backend::Linger;

/// The part of a latency that a wait may linger. On average an answer waits for half of it, which makes the rate of a
/// server that is not busy less by at most one part in 64.
const PART: u64 = 32;
/// The most that a wait may linger, in nanoseconds.
const MOST_NS: u64 = 30_000;
/// The part of the requests in flight whose answers are enough.
const ENOUGH: u64 = 8;
/// And so many answers are enough in any case: their successors leave together, with one time for all, and each of them
/// takes the kernel some microseconds.
const ENOUGH_MAX: u64 = 32;

/// A thread that is busy for more than this part of the time finds several answers whenever it looks.
const BUSY: (u64, u64) = (9, 10);

/// How long waits may linger with so many requests `open`, when so many were `completed` in the time that has `elapsed`,
/// with that mean latency, and the thread was busy for so long.
pub fn linger(open: u64, completed: u64, elapsed_ns: u64, latency_ns: u64, busy_ns: u64) -> Linger {
    let ns = (latency_ns / PART).min(MOST_NS);
    let expected = ns.saturating_mul(completed).checked_div(elapsed_ns).unwrap_or(0);
    let count = (open / ENOUGH).min(ENOUGH_MAX) as u32;
    let never_sleeps = busy_ns > elapsed_ns / BUSY.1 * BUSY.0;
    if expected == 0 || count < 2 || never_sleeps { Linger::default() } else { Linger { count, ns } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn waits_linger_where_that_brings_more_and_takes_little() {
        let (none, us) = (Linger::default(), 1_000);
        assert_eq!(linger(50, 0, SECOND_NS, 0, 0), none, "no answers");
        assert_eq!(linger(50, 10, 0, 500 * us, 0), none, "no time");
        assert_eq!(linger(0, 100_000, SECOND_NS, 500 * us, 0), none, "nothing in flight");
        assert_eq!(linger(31, 100_000, SECOND_NS, 310 * us, 0), none, "too few in flight");
        assert_eq!(linger(50, 1_000, SECOND_NS, 50_000 * us, 0), none, "the next answer is a millisecond away");
        assert_eq!(linger(100, 50_000, SECOND_NS, 60 * us, 0), none, "a few connections are fast, and all others wait");
        assert_eq!(linger(64, 100_000, SECOND_NS, 640 * us, 0), Linger { count: 8, ns: 20 * us });
        assert_eq!(linger(64, 100_000, SECOND_NS, 640 * us, 901_000 * us), none, "there is no time to sleep");
        assert_eq!(linger(1_000, 100_000, SECOND_NS, 10_000 * us, 0), Linger { count: 32, ns: 30 * us });
        assert_eq!(linger(u64::MAX, u64::MAX, 1, u64::MAX, 0), Linger { count: 32, ns: 30 * us });
    }
}
