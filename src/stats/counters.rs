//! Plain counts: requests, bytes, connections and statuses.

use std::ops::AddAssign;

use super::Occupancy;

/// Everything that is only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests whose first byte was handed to the kernel.
    pub started: u64,
    /// Requests that were in flight when measuring began.
    pub carried: u64,
    /// Requests that the server announced it had not processed. They were sent again, and count as started once.
    pub returned: u64,
    /// Responses read to their last byte, of any status.
    pub completed: u64,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes received, heads included.
    pub bytes_received: u64,
    /// Connections established, those that replaced another included.
    pub connects: u64,
    /// Interim responses (1xx).
    pub interim: u64,
    /// Requests that exceeded `--timeout`, whether or not a response came later.
    pub late: u64,
    /// Complete responses that took longer than `--timeout` or have a status of 400 or more, each once.
    pub unsuccessful: u64,
    /// Requests that got no complete response because something failed.
    pub failed: u64,
    /// Requests abandoned after `--give-up`.
    pub abandoned: u64,
    /// Requests without a complete response when the run ended.
    pub open_at_end: u64,
    /// Those of them that had exceeded `--timeout`.
    pub open_late_at_end: u64,
    /// Latencies recorded or left out as too late: of responses, or of whole batches if requests are pipelined.
    pub batches: u64,
    /// Connection slots that were connected at least once.
    pub slots_opened: u64,
    /// Bodies whose beginning alone was given to a script.
    pub cut_bodies: u64,
    /// Connections that reached their limit of requests and that the server did not close, so that onrush did.
    pub closed_first: u64,
    /// Connections that the server closed while they were idle until a request was due.
    pub idle_closed: u64,
    /// Where requests and connections spent the time.
    pub occupancy: Occupancy,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.started += other.started;
        self.carried += other.carried;
        self.returned += other.returned;
        self.completed += other.completed;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.connects += other.connects;
        self.interim += other.interim;
        self.late += other.late;
        self.unsuccessful += other.unsuccessful;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.open_at_end += other.open_at_end;
        self.open_late_at_end += other.open_late_at_end;
        self.batches += other.batches;
        self.slots_opened += other.slots_opened;
        self.cut_bodies += other.cut_bodies;
        self.closed_first += other.closed_first;
        self.idle_closed += other.idle_closed;
        self.occupancy += other.occupancy;
    }
}

/// A status has three digits.
const CODES: usize = 1000;

/// The number of responses with each status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses {
    counts: Box<[u64; CODES]>,
}

impl Statuses {
    /// Counts one final status; anything above 999 is counted as 999.
    #[inline]
    pub fn record(&mut self, status: u16) {
        self.counts[usize::from(status).min(CODES - 1)] += 1;
    }

    /// The statuses that occurred, ascending, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.counts.iter().copied()).filter(|&(_, count)| count > 0)
    }

    /// The number of statuses of a class: 2 means 200 to 299.
    pub fn class_total(&self, class: u16) -> u64 {
        self.iter().filter(|&(status, _)| status / 100 == class).map(|(_, count)| count).sum()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }
}

impl Default for Statuses {
    fn default() -> Self {
        Self { counts: Box::new([0; CODES]) }
    }
}

impl AddAssign<&Self> for Statuses {
    fn add_assign(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_added() {
        let one = Counters {
            started: 1,
            completed: 2,
            bytes_sent: 3,
            bytes_received: 4,
            connects: 5,
            interim: 6,
            late: 7,
            abandoned: 8,
            open_at_end: 9,
            open_late_at_end: 10,
            batches: 11,
            slots_opened: 12,
            returned: 13,
            failed: 14,
            cut_bodies: 17,
            closed_first: 18,
            carried: 19,
            idle_closed: 28,
            unsuccessful: 29,
            occupancy: Occupancy {
                in_flight_ns: 20,
                busy_ns: 21,
                open_ns: 22,
                connecting_ns: 23,
                waiting_ns: 24,
                absent_ns: 25,
                done_ns: 26,
                leaving_ns: 27,
            },
        };
        let mut sum = one;
        sum += one;
        let doubled = Counters {
            started: 2,
            completed: 4,
            bytes_sent: 6,
            bytes_received: 8,
            connects: 10,
            interim: 12,
            late: 14,
            abandoned: 16,
            open_at_end: 18,
            open_late_at_end: 20,
            batches: 22,
            slots_opened: 24,
            returned: 26,
            failed: 28,
            cut_bodies: 34,
            closed_first: 36,
            carried: 38,
            idle_closed: 56,
            unsuccessful: 58,
            occupancy: Occupancy {
                in_flight_ns: 40,
                busy_ns: 42,
                open_ns: 44,
                connecting_ns: 46,
                waiting_ns: 48,
                absent_ns: 50,
                done_ns: 52,
                leaving_ns: 54,
            },
        };
        assert_eq!(sum, doubled);
    }

    #[test]
    fn statuses_are_counted_by_code_and_by_class() {
        let mut statuses = Statuses::default();
        [200, 204, 200, 503, 999, 1000].into_iter().for_each(|status| statuses.record(status));
        let mut sum = statuses.clone();
        sum += &statuses;
        assert_eq!(sum.iter().collect::<Vec<_>>(), [(200, 4), (204, 2), (503, 2), (999, 4)]);
        assert_eq!([2, 3, 5, 9].map(|class| sum.class_total(class)), [6, 0, 2, 4]);
        sum.clear();
        assert_eq!(sum, Statuses::default());
    }
}
