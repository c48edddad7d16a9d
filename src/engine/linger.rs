//! How long a wait for answers may linger.
//!
//! A server that is slower than we are wakes us for each answer, and waking up takes more processor time than the rest. To
//! wait a moment longer brings several answers at once. In a closed loop their successors leave later by that moment,
//! which a busy server does not notice, because others wait in front of it; a server that is not busy would be asked
//! less. So the moment is a small part of a latency, and nobody lingers unless something is to be expected meanwhile.

use crate::backend::Linger;

/// The part of a latency that a wait may linger. On average an answer waits for half of it, which makes the rate of a
/// server that is not busy less by at most one part in 64.
const PART: u64 = 32;
/// The most that a wait may linger, in nanoseconds.
const MOST_NS: u64 = 30_000;
/// The part of the requests in flight whose answers are enough.
const ENOUGH: u64 = 8;

/// How long waits may linger with so many requests `open`, when so many were `completed` in the time that has `elapsed`.
pub fn linger(open: u64, completed: u64, elapsed_ns: u64) -> Linger {
    // The mean latency is the number in flight divided by the rate (Little's law).
    let latency_ns = (open * elapsed_ns).checked_div(completed).unwrap_or(0);
    let ns = (latency_ns / PART).min(MOST_NS);
    let expected = (ns * completed).checked_div(elapsed_ns).unwrap_or(0);
    if expected == 0 { Linger::default() } else { Linger { count: (open / ENOUGH) as u32, ns } }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn waits_linger_where_that_brings_more_and_takes_little() {
        let none = Linger::default();
        assert_eq!(linger(50, 0, SECOND_NS), none, "no answers");
        assert_eq!(linger(50, 10, 0), none, "no time");
        assert_eq!(linger(0, 10, SECOND_NS), none, "nothing in flight");
        assert_eq!(linger(31, 100_000, SECOND_NS), none, "too few in flight");
        assert_eq!(linger(50, 1_000, SECOND_NS), none, "the next answer is a millisecond away");
        // 640 µs each, of which a thirty-second part may pass.
        assert_eq!(linger(64, 100_000, SECOND_NS), Linger { count: 8, ns: 20_000 });
        assert_eq!(linger(1_000, 100_000, SECOND_NS), Linger { count: 125, ns: MOST_NS });
    }
}
