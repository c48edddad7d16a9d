//! Bounds for percentiles of the latency since requests were due, because it is unknown how long requests without a
//! complete response would have lasted.

use crate::stats::{Distribution, rank};

/// The latencies of complete responses, and the ages of the requests without one.
#[derive(Clone, Debug)]
pub struct Bounds<'a> {
    completed: &'a Distribution<u64>,
    /// Latencies and ages together: each request without a complete response lasted at least as long as its age.
    all: Distribution<u64>,
}

impl<'a> Bounds<'a> {
    /// The bounds for these latencies and these ages.
    pub fn new(completed: &'a Distribution<u64>, censored: &Distribution<u64>) -> Self {
        let mut all = completed.clone();
        all += censored;
        Self { completed, all }
    }

    /// The latencies together with the ages of requests without a complete response; their percentiles are the lower
    /// bounds.
    pub fn least(&self) -> &Distribution<u64> {
        &self.all
    }

    /// The percentile, in nanoseconds, if every request without a complete response had lasted for ever; `None`: the
    /// percentile would be infinite, too. Never less than the lower bound, although the two histograms resolve values
    /// within a bin differently.
    pub fn upper_ns(&self, percent: f64) -> Option<u64> {
        let rank = rank(percent, self.all.count()).min(self.all.count());
        (rank <= self.completed.count()).then(|| self.completed.at_rank(rank).max(self.all.at_rank(rank)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution<u64> {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|value| distribution.record(value));
        distribution
    }

    #[test]
    fn what_is_not_complete_counts_at_its_age_or_as_infinitely_long() {
        let (completed, censored) = (of(1..=90), of(41..=50));
        let bounds = Bounds::new(&completed, &censored);
        for (percent, lower_ns, upper_ns) in
            [(10.0, 11, Some(11)), (50.0, 46, Some(51)), (89.0, 80, Some(90)), (90.0, 81, None), (100.0, 90, None)]
        {
            let got = (bounds.least().percentile(percent), bounds.upper_ns(percent));
            assert_eq!(got, (lower_ns, upper_ns), "{percent} %");
        }
    }

    #[test]
    fn the_bounds_are_never_the_wrong_way_round() {
        // These values share a bin that is 512 wide.
        for (completed, censored) in [(vec![600_000], vec![600_060]), (vec![600_000; 3], vec![600_050; 2])] {
            let (completed, censored) = (of(completed), of(censored));
            let bounds = Bounds::new(&completed, &censored);
            for percent in [0.0, 10.0, 50.0] {
                let lower_ns = bounds.least().percentile(percent);
                assert!(bounds.upper_ns(percent).is_none_or(|upper_ns| upper_ns >= lower_ns), "{percent} %");
            }
        }
    }

    #[test]
    fn where_all_are_complete_the_bounds_are_one() {
        let completed = of(1..=100);
        let bounds = Bounds::new(&completed, &Distribution::new());
        for percent in [0.0, 50.0, 99.0, 100.0] {
            let measured = completed.percentile(percent);
            assert_eq!((bounds.least().percentile(percent), bounds.upper_ns(percent)), (measured, Some(measured)));
        }
    }
}
