//! Outcomes of requests by their name in a list: a rare slow request disappears among many fast ones.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::bins::COARSE;
use super::{Count, Distribution};

/// Number of responses kept before they are sorted by name: those of a quick thread in 100 ms, 1 MiB.
const FRESH_MAX: usize = 1 << 16;

/// The outcomes of the requests with each name.
///
/// A thread only stores its responses in order of arrival; they are sorted by name when intervals are added up.
/// Hundreds of histograms in every thread would leave the processor's cache between any two uses.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ByName<C: Count> {
    /// Indexed by the number of the name; `None` until there is a request.
    names: Vec<Option<Box<OfName<C>>>>,
    /// Responses not yet sorted into `names`; empty in a sum.
    #[serde(skip)]
    fresh: Vec<NamedResponse>,
}

/// A response in its thread's list.
#[derive(Clone, Copy, Debug)]
struct NamedResponse {
    latency_ns: u64,
    name: u16,
    status: Option<u16>,
    is_unsuccessful: bool,
}

/// The outcomes of the requests with one name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct OfName<C: Count> {
    /// The latencies shown in the report, in nanoseconds, one per response, with two digits; with a schedule, from due
    /// times.
    pub latency: Distribution<C, COARSE>,
    /// The statuses of the responses, ascending, and the number of each.
    statuses: Vec<(u16, u64)>,
    /// Requests without a complete response because they failed, were abandoned, or had exceeded `--timeout` at the
    /// end.
    pub failed: u64,
    /// Complete responses that were late or have a failing status, each counted once.
    pub unsuccessful: u64,
}

impl<C: Count> ByName<C> {
    /// Counts a response to a request whose name has this number, with its latency in nanoseconds. Without a `status`,
    /// none is counted.
    pub fn record_response(&mut self, name: u16, status: Option<u16>, latency_ns: u64, is_unsuccessful: bool) {
        if self.fresh.len() == FRESH_MAX {
            self.sort();
        }
        self.fresh.push(NamedResponse { latency_ns, name, status, is_unsuccessful });
    }

    /// Counts a request without a complete response whose name has this number.
    pub fn record_failure(&mut self, name: u16) {
        self.entry_of(name).failed += 1;
    }

    #[cold]
    fn sort(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        self.record(&fresh);
        self.fresh = fresh;
        self.fresh.clear();
    }

    fn record(&mut self, responses: &[NamedResponse]) {
        for NamedResponse { latency_ns, name, status, is_unsuccessful } in responses {
            self.entry_of(*name).record(*status, *latency_ns, *is_unsuccessful);
        }
    }

    /// The requests of the name with this number; allocates for a new number.
    fn entry_of(&mut self, name: u16) -> &mut OfName<C> {
        let at = usize::from(name);
        if self.names.len() <= at {
            self.names.resize_with(at + 1, || None);
        }
        self.names[at].get_or_insert_default()
    }

    /// The numbers of the names that had requests, ascending, with the outcomes. Only for sums: in a thread's own
    /// interval, responses not yet sorted are missing.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &OfName<C>)> {
        (0..).zip(&self.names).filter_map(|(number, of_name)| Some((number, of_name.as_deref()?)))
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.names.iter_mut().flatten().for_each(|of_name| of_name.clear());
        self.fresh.clear();
    }
}

impl<C: Count> OfName<C> {
    fn record(&mut self, status: Option<u16>, latency_ns: u64, is_unsuccessful: bool) {
        self.latency.record(latency_ns);
        self.unsuccessful += u64::from(is_unsuccessful);
        if let Some(status) = status {
            self.add_status(status, 1);
        }
    }

    /// The statuses of the responses, ascending, and the number of each.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        self.statuses.iter().copied()
    }

    fn add_status(&mut self, status: u16, times: u64) {
        match self.statuses.binary_search_by_key(&status, |(known, _)| *known) {
            Ok(at) => self.statuses[at].1 += times,
            Err(at) => self.statuses.insert(at, (status, times)),
        }
    }

    fn clear(&mut self) {
        self.latency.clear();
        self.statuses.clear();
        (self.failed, self.unsuccessful) = (0, 0);
    }
}

impl<C: Count> Default for ByName<C> {
    fn default() -> Self {
        Self { names: Vec::new(), fresh: Vec::new() }
    }
}

impl<C: Count> Default for OfName<C> {
    fn default() -> Self {
        Self { latency: Distribution::new(), statuses: Vec::new(), failed: 0, unsuccessful: 0 }
    }
}

impl<A: Count, B: Count> AddAssign<&ByName<B>> for ByName<A> {
    fn add_assign(&mut self, other: &ByName<B>) {
        for (number, theirs) in other.iter() {
            *self.entry_of(number) += theirs;
        }
        self.record(&other.fresh);
    }
}

impl<A: Count, B: Count> AddAssign<&OfName<B>> for OfName<A> {
    fn add_assign(&mut self, other: &OfName<B>) {
        self.latency += &other.latency;
        other.statuses().for_each(|(status, count)| self.add_status(status, count));
        self.failed += other.failed;
        self.unsuccessful += other.unsuccessful;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a name, the sum of its latencies, its statuses, and its failed and unsuccessful requests.
    type RawName = (u16, u128, Vec<(u16, u64)>, u64, u64);

    fn figures(sum: &ByName<u64>) -> Vec<RawName> {
        let of = |(number, of): (u16, &OfName<u64>)| {
            (number, of.latency.sum(), of.statuses().collect(), of.failed, of.unsuccessful)
        };
        sum.iter().map(of).collect()
    }

    #[test]
    fn merged_names_keep_their_own_figures() {
        let mut one = ByName::<u32>::default();
        one.record_response(2, Some(200), 5_000, false);
        one.record_response(2, Some(503), 7_000, true);
        one.record_failure(0);
        let mut sum = ByName::<u64>::default();
        sum += &one;
        one.clear();
        one.record_response(2, Some(200), 9_000, true);
        one.record_response(1, None, 1_000, false);
        sum += &one;
        let expected = [(0, 0, vec![], 1, 0), (1, 1_000, vec![], 0, 0), (2, 21_000, vec![(200, 2), (503, 1)], 0, 2)];
        assert_eq!(figures(&sum), expected);
    }

    #[test]
    fn sums_by_name_are_commutative() {
        let [one, other] = [[503, 200], [200, 404]].map(|statuses| {
            let mut by_name = ByName::<u32>::default();
            statuses.into_iter().for_each(|status| by_name.record_response(0, Some(status), 1_000, false));
            by_name
        });
        let sums = [[&one, &other], [&other, &one]].map(|parts| {
            let mut sum = ByName::<u64>::default();
            parts.into_iter().for_each(|part| sum += part);
            figures(&sum)
        });
        assert_eq!(sums[0], sums[1]);
        assert_eq!(sums[0], [(0, 4_000, vec![(200, 2), (404, 1), (503, 1)], 0, 0)]);
    }

    #[test]
    fn long_kept_responses_are_not_lost() {
        let mut one = ByName::<u32>::default();
        let number = 2 * FRESH_MAX as u64 + 7;
        (0..number).for_each(|n| one.record_response((n % 2) as u16, Some(200), 1, false));
        assert!(one.fresh.len() <= FRESH_MAX);
        let mut sum = ByName::<u64>::default();
        sum += &one;
        let of = |name, count| (name, u128::from(count), vec![(200, count)], 0, 0);
        assert_eq!(figures(&sum), [of(0, number.div_ceil(2)), of(1, number / 2)]);
    }
}
