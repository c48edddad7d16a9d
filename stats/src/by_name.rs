//! What became of requests by the name that a list gives them: the rare slow one disappears among many fast ones.

use std::ops::AddAssign;

use super::bins::COARSE;
use super::{Count, Distribution};

/// The requests of each name.
#[derive(Clone, Debug)]
pub struct ByName<C: Count> {
    /// By the number of the name; `None` until there is a request.
    names: Vec<Option<Box<OfName<C>>>>,
}

/// The requests of one name.
#[derive(Clone, Debug)]
pub struct OfName<C: Count> {
    /// The latencies that the report shows, in nanoseconds, one per response, with two digits: with a schedule since the
    /// requests were due.
    pub latency: Distribution<C, COARSE>,
    /// The statuses of the responses, and how often each came.
    statuses: Vec<(u16, u64)>,
    /// Requests that got no complete response because something failed, or were abandoned, or late at the end.
    pub failed: u64,
    /// Complete responses that were late or have a status that failed, each once.
    pub unsuccessful: u64,
}

impl<C: Count> ByName<C> {
    /// The requests of the name with this number; allocates for a number that is new.
    #[inline]
    pub fn of(&mut self, name: u16) -> &mut OfName<C> {
        let at = usize::from(name);
        if self.names.len() <= at {
            self.names.resize_with(at + 1, || None);
        }
        self.names[at].get_or_insert_default()
    }

    /// The numbers of names that had requests, ascending, and these.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &OfName<C>)> {
        (0..).zip(&self.names).filter_map(|(number, of_name)| Some((number, of_name.as_deref()?)))
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.names.iter_mut().flatten().for_each(|of_name| of_name.clear());
    }
}

impl<C: Count> OfName<C> {
    /// Records a response, with its latency in nanoseconds.
    #[inline]
    pub fn record(&mut self, status: Option<u16>, latency_ns: u64, is_unsuccessful: bool) {
        self.latency.record(latency_ns);
        self.unsuccessful += u64::from(is_unsuccessful);
        if let Some(status) = status {
            self.add_status(status, 1);
        }
    }

    /// The statuses of the responses, and how often each came.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        self.statuses.iter().copied().filter(|(_, count)| *count > 0)
    }

    fn add_status(&mut self, status: u16, times: u64) {
        match self.statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += times,
            None => self.statuses.push((status, times)),
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
        Self { names: Vec::new() }
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
            let mine = self.of(number);
            mine.latency += &theirs.latency;
            theirs.statuses().for_each(|(status, count)| mine.add_status(status, count));
            mine.failed += theirs.failed;
            mine.unsuccessful += theirs.unsuccessful;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_own_figures_and_sums_have_all() {
        let mut one = ByName::<u32>::default();
        one.of(2).record(Some(200), 5_000, false);
        one.of(2).record(Some(503), 7_000, true);
        one.of(0).failed += 1;
        let mut sum = ByName::<u64>::default();
        sum += &one;
        one.clear();
        one.of(2).record(Some(200), 9_000, true);
        one.of(1).record(None, 1_000, false);
        sum += &one;
        let figures: Vec<_> = sum
            .iter()
            .map(|(number, of)| {
                (number, of.latency.sum(), of.statuses().collect::<Vec<_>>(), of.failed, of.unsuccessful)
            })
            .collect();
        assert_eq!(
            figures,
            [(0, 0, vec![], 1, 0), (1, 1_000, vec![], 0, 0), (2, 21_000, vec![(200, 2), (503, 1)], 0, 2)]
        );
    }
}
