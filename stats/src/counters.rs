//! Plain counts: requests, bytes, connections and statuses.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::Occupancy;

/// Counts of what happened while measuring.
#[derive(derive_more::AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Requests whose first byte was handed to the kernel.
    pub started: u64,
    /// Requests in flight when measuring began.
    pub carried: u64,
    /// Requests that the server reported as unprocessed. They were sent again, and count as started once.
    pub returned: u64,
    /// Responses read to their last byte, of any status.
    pub completed: u64,
    /// Completed responses that arrived before the whole request had been sent; the rest of the request was not sent.
    pub early: u64,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes received, heads included.
    pub bytes_received: u64,
    /// Connections established, including replacements.
    pub connects: u64,
    /// Interim responses (1xx).
    pub interim: u64,
    /// Requests that exceeded `--timeout`, whether or not a response came later.
    pub late: u64,
    /// Late requests that have ended, with or without a response.
    pub late_ended: u64,
    /// Complete responses that took longer than `--timeout`, have an unsuccessful status or failed a check, each
    /// counted once.
    pub unsuccessful: u64,
    /// Requests without a complete response because of a failure.
    pub failed: u64,
    /// Requests abandoned after `--give-up`.
    pub abandoned: u64,
    /// Requests without a complete response when the run ended.
    pub open_at_end: u64,
    /// Requests open at the end that had exceeded `--timeout`.
    pub open_late_at_end: u64,
    /// Number of latencies recorded, or omitted as too late: one per response, or per batch if requests are pipelined.
    pub batches: u64,
    /// Connection slots that were connected at least once.
    pub slots_opened: u64,
    /// Responses of which only the beginning was given to a script.
    pub cut_responses: u64,
    /// Connections that reached their request limit and were closed by onrush, because the server did not close them.
    pub closed_first: u64,
    /// Idle connections that the server closed without announcing it.
    pub idle_closed: u64,
    /// Requests passed on to the request log.
    pub logged: u64,
    /// Requests missing from the log, because it was not written fast enough.
    pub unlogged: u64,
    /// How requests and connections spent their time.
    pub occupancy: Occupancy,
}

/// Number of different statuses: a status has three digits.
const CODES: usize = 1000;

/// The number of responses with each status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<(u16, u64)>", from = "Vec<(u16, u64)>")]
pub struct Statuses {
    counts: Box<[u64; CODES]>,
}

impl Statuses {
    /// Counts one final status; anything above 999 counts as 999.
    pub fn record(&mut self, status: u16) {
        self.counts[usize::from(status).min(CODES - 1)] += 1;
    }

    /// The statuses that occurred, ascending, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.counts.iter().copied()).filter(|&(_, count)| count > 0)
    }

    /// The number of responses with a status of this class: 2 means 200 to 299.
    pub fn class_total(&self, class: u16) -> u64 {
        self.iter().filter(|&(status, _)| status / 100 == class).map(|(_, count)| count).sum()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }
}

impl From<Statuses> for Vec<(u16, u64)> {
    fn from(statuses: Statuses) -> Self {
        statuses.iter().collect()
    }
}

impl From<Vec<(u16, u64)>> for Statuses {
    fn from(counts: Vec<(u16, u64)>) -> Self {
        let mut statuses = Self::default();
        for (status, count) in counts {
            let known = &mut statuses.counts[usize::from(status).min(CODES - 1)];
            *known = known.saturating_add(count);
        }
        statuses
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
