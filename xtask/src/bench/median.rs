//! Medians of paired ratios with their intervals. Pure arithmetic.

const CONFIDENCE: f64 = 0.95;

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianEstimate {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The probability that the interval contains the true median. It is below 0.95 with fewer than six values; the
    /// interval is then the whole range.
    pub confidence: f64,
}

impl MedianEstimate {
    /// Median of some values, with the interval from the k-th smallest to the k-th largest value.
    ///
    /// Each value exceeds the true median with probability 1/2, so the number of larger values is binomial for any
    /// distribution. k is the largest number whose interval has a confidence of at least 95 %. For 21 values, these are
    /// the 6th smallest and the 6th largest (97.3 %). `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let (inner, confidence) = interval_ranks(sorted.len());
        Some(Self { median: median_of_sorted(&sorted), low: sorted[inner], high: sorted[last - inner], confidence })
    }

    /// A value without variation.
    pub fn exact(value: f64) -> Self {
        Self { median: value, low: value, high: value, confidence: 1.0 }
    }

    /// True if there were enough values for a 95 % interval.
    pub fn is_sure(&self) -> bool {
        self.confidence >= CONFIDENCE
    }
}

/// Ratios of two series, round by round.
pub fn ratios(ours: &[f64], others: &[f64]) -> Vec<f64> {
    ours.iter().zip(others).map(|(ours, other)| ours / other).collect()
}

/// Median of sorted values.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// Number of values outside the interval on each side, and its confidence.
fn interval_ranks(count: usize) -> (usize, f64) {
    // Probability of exactly `outside` values on one side of the median, and of at most `outside`.
    let mut exactly = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut at_most = exactly;
    let mut best = (0, 1.0 - 2.0 * at_most);
    for outside in 1..count.div_ceil(2) {
        exactly *= (count + 1 - outside) as f64 / outside as f64;
        at_most += exactly;
        if 1.0 - 2.0 * at_most < CONFIDENCE {
            break;
        }
        best = (outside, 1.0 - 2.0 * at_most);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_intervals_match_the_tables() {
        // Count, rank of the lower end and confidence in per cent, from tables of the sign test.
        for (count, rank, confidence) in
            [(6, 1, 96.9), (8, 1, 99.2), (10, 2, 97.9), (15, 4, 96.5), (20, 6, 95.9), (21, 6, 97.3), (30, 10, 95.7)]
        {
            let (outside, sure) = interval_ranks(count);
            assert_eq!(outside + 1, rank, "{count}");
            assert!((sure * 100.0 - confidence).abs() < 0.06, "{count}: {sure}");
        }
    }

    #[test]
    fn round_order_does_not_matter() {
        let values: Vec<f64> = (0..21).map(|number| f64::from(number * 8 % 21)).collect();
        let estimate = MedianEstimate::from_values(&values).unwrap();
        assert_eq!((estimate.median, estimate.low, estimate.high), (10.0, 5.0, 15.0));
    }

    #[test]
    fn few_values_give_their_whole_range() {
        let estimate = MedianEstimate::from_values(&[3.0, 1.0, 2.0, 4.0]).unwrap();
        assert_eq!(estimate, MedianEstimate { median: 2.5, low: 1.0, high: 4.0, confidence: 0.875 });
        assert_eq!(MedianEstimate::from_values(&[2.0]).unwrap().confidence, 0.0);
        assert_eq!(MedianEstimate::from_values(&[]), None);
    }

    #[test]
    fn rounds_are_compared_with_themselves() {
        assert_eq!(ratios(&[1.0, 4.0], &[2.0, 2.0]), [0.5, 2.0]);
    }
}
