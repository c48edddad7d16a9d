//! Latencies by status class: fast error pages make percentiles look better, slow ones worse.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Count, Distribution};

/// The latencies of responses with a status of 300 to 599, by status class.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ByClass<C: Count> {
    /// `None` until a response has the class.
    classes: [Option<Box<Distribution<C>>>; 3],
}

impl<C: Count> ByClass<C> {
    /// First digits of the statuses, in the order of `classes`.
    pub const CLASSES: [u16; 3] = [3, 4, 5];

    /// Records the latency, in nanoseconds, of a response with this status; ignores other classes.
    pub fn record(&mut self, status: u16, latency_ns: u64) {
        if let Some(index) = Self::CLASSES.iter().position(|class| *class == status / 100) {
            self.classes[index].get_or_insert_default().record(latency_ns);
        }
    }

    /// The latencies of the responses with a status of one of [`Self::CLASSES`], if any.
    pub fn latencies_of_class(&self, class: u16) -> Option<&Distribution<C>> {
        let index = Self::CLASSES.iter().position(|known| *known == class)?;
        self.classes[index].as_deref().filter(|latencies| latencies.count() > 0)
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.classes.iter_mut().flatten().for_each(|latencies| latencies.clear());
    }
}

impl<C: Count> Default for ByClass<C> {
    fn default() -> Self {
        Self { classes: [const { None }; 3] }
    }
}

impl<A: Count, B: Count> AddAssign<&ByClass<B>> for ByClass<A> {
    fn add_assign(&mut self, other: &ByClass<B>) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            if let Some(theirs) = theirs.as_deref().filter(|theirs| theirs.count() > 0) {
                **mine.get_or_insert_default() += theirs;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_own_latencies() {
        let mut one = ByClass::<u32>::default();
        [(200, 1), (302, 2), (404, 3), (499, 5), (600, 9)].into_iter().for_each(|(status, ns)| one.record(status, ns));
        let mut sum = ByClass::<u64>::default();
        sum += &one;
        one.clear();
        one.record(503, 7);
        sum += &one;
        let counts = [2, 3, 4, 5, 6]
            .map(|class| sum.latencies_of_class(class).map(|latencies| (latencies.count(), latencies.sum())));
        assert_eq!(counts, [None, Some((1, 2)), Some((2, 8)), Some((1, 7)), None]);
    }
}
