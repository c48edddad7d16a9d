//! Divides a run into batches of equal length, each with all its latencies, and derives the precision of a metric from
//! them by the method of batch means.
//!
//! If batches are long enough to be independent, their means vary as those of whole runs do, only more. There are never
//! more than [`BATCHES_MAX`]: in a longer run, pairs of neighbours are joined.

use std::collections::VecDeque;

use super::confidence::{lag_one_autocorrelation, relative_half_width};
use super::{Count, Distribution};

/// Largest number of batches: half of them can still be joined twice.
const BATCHES_MAX: usize = 160;
/// Smallest number of batches from which their variation can be estimated.
pub const BATCHES_MIN: usize = 20;
/// Autocorrelation below which batches count as independent.
const AUTOCORRELATION_MAX: f64 = 0.2;

/// Requests completed in one part of a run.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Length of the batch, in seconds.
    pub seconds: u64,
    /// Number of complete responses.
    pub completed: u64,
    /// The latencies of these responses, in nanoseconds.
    pub latency: Distribution<u64>,
}

/// The batches of a run, all of the same length.
#[derive(Debug)]
pub struct Batches {
    /// Length of each batch: a second times a power of two.
    seconds: u64,
    complete: Vec<Batch>,
    /// The batch in progress, if at least one of its seconds has ended.
    begun: Option<Batch>,
    /// The unfinished seconds in which responses have been recorded, in order.
    open: VecDeque<Batch>,
}

/// How precisely a metric is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionEstimate {
    /// Half the width of the 95 % confidence interval, as a share of the metric's value.
    pub half_width: f64,
    /// Number of batches behind the estimate.
    pub batches: usize,
}

/// Reasons why the precision of a metric is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// There are fewer than [`BATCHES_MIN`] batches with enough responses.
    Short,
    /// Batches long enough to be independent of their neighbours would be fewer than [`BATCHES_MIN`].
    Dependent,
}

impl Batches {
    /// Records responses in an unfinished second, `ahead` seconds after the first such second.
    pub fn record<C: Count>(&mut self, ahead: usize, completed: u64, latency: &Distribution<C>) {
        if self.open.len() <= ahead {
            self.open.resize_with(ahead + 1, Batch::default);
        }
        self.open[ahead].completed += completed;
        self.open[ahead].latency += latency;
    }

    /// Ends the first unfinished second: its responses become part of a batch.
    pub fn end_second(&mut self) {
        let second = Batch { seconds: 1, ..self.open.pop_front().unwrap_or_default() };
        let begun = match self.begun.take() {
            Some(mut begun) => {
                begun.add(&second);
                begun
            }
            None => second,
        };
        if begun.seconds < self.seconds {
            self.begun = Some(begun);
            return;
        }
        self.complete.push(begun);
        if self.complete.len() == BATCHES_MAX {
            self.seconds *= 2;
            self.complete = self.complete.chunks(2).map(sum).collect();
        }
    }

    /// The precision of a metric of the run, from batches with at least `completed_min` responses each.
    ///
    /// # Errors
    ///
    /// If there are too few such batches that are independent of one another.
    pub fn estimate_precision(
        &self,
        completed_min: u64,
        figure: impl Fn(&Batch) -> f64,
    ) -> Result<PrecisionEstimate, Unknown> {
        let of = |batches: &[Batch]| match batches {
            [only] => figure(only),
            batches => figure(&sum(batches)),
        };
        let mut unknown = Unknown::Short;
        let mut joined = 1;
        while self.complete.len() / joined >= BATCHES_MIN {
            let batches = self.complete.chunks_exact(joined);
            let has_enough = |batches: &[Batch]| batches.iter().map(|it| it.completed).sum::<u64>() >= completed_min;
            if batches.clone().all(has_enough) {
                let figures: Vec<f64> = batches.map(of).collect();
                if lag_one_autocorrelation(&figures) < AUTOCORRELATION_MAX {
                    let half_width = relative_half_width(&figures, of(&self.complete));
                    return Ok(PrecisionEstimate { half_width, batches: figures.len() });
                }
                unknown = Unknown::Dependent;
            }
            joined *= 2;
        }
        Err(unknown)
    }
}

impl Default for Batches {
    fn default() -> Self {
        Self { seconds: 1, complete: Vec::new(), begun: None, open: VecDeque::new() }
    }
}

impl Batch {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.completed += other.completed;
        self.latency += &other.latency;
    }
}

fn sum(batches: &[Batch]) -> Batch {
    let mut sum = Batch::default();
    batches.iter().for_each(|batch| sum.add(batch));
    sum
}

#[cfg(test)]
mod tests {
    use onrush_plan::Random;

    use super::*;

    /// Latencies around 1,000,000 with a deviation of 100,000, and with this correlation of neighbours.
    struct Series {
        random: Random,
        correlation: f64,
        deviation: f64,
        latency: Distribution<u32>,
    }

    impl Series {
        fn new(seed: u64, correlation: f64) -> Self {
            let mut random = Random::new(seed);
            let deviation = random.normal();
            Self { random, correlation, deviation, latency: Distribution::new() }
        }

        fn simulate_second(&mut self, batches: &mut Batches, requests: u64) {
            self.latency.clear();
            for _ in 0..requests {
                let noise = (1.0 - self.correlation * self.correlation).sqrt() * self.random.normal();
                self.deviation = self.correlation * self.deviation + noise;
                self.latency.record((1e6 + 1e5 * self.deviation) as u64);
            }
            batches.record(0, requests, &self.latency);
            batches.end_second();
        }
    }

    const REQUESTS: u64 = 100;
    const P90: f64 = 1e6 + 1.281_552e5;

    fn p90(batch: &Batch) -> f64 {
        batch.latency.percentile(90.0) as f64
    }

    fn mean(batch: &Batch) -> f64 {
        batch.latency.mean().unwrap_or_default()
    }

    /// The metric and its precision after a number of seconds.
    fn after(
        seconds: u64,
        seed: u64,
        correlation: f64,
        figure: fn(&Batch) -> f64,
    ) -> (f64, Result<PrecisionEstimate, Unknown>) {
        let (mut series, mut batches) = (Series::new(seed, correlation), Batches::default());
        (0..seconds).for_each(|_| series.simulate_second(&mut batches, REQUESTS));
        (figure(&sum(&batches.complete)), batches.estimate_precision(REQUESTS, figure))
    }

    /// The estimate as soon as the half-width is at most this, checked as often as in runs.
    fn stopped(half_width: f64, seed: u64, correlation: f64, figure: fn(&Batch) -> f64) -> (f64, PrecisionEstimate) {
        let (mut series, mut batches) = (Series::new(seed, correlation), Batches::default());
        let (mut seconds, mut look_at) = (0, 20);
        loop {
            series.simulate_second(&mut batches, REQUESTS);
            seconds += 1;
            if seconds < look_at {
                continue;
            }
            look_at = seconds + (seconds / 10_u64).max(1);
            match batches.estimate_precision(REQUESTS, figure) {
                Ok(estimate) if estimate.half_width <= half_width => {
                    return (figure(&sum(&batches.complete)), estimate);
                }
                _ => assert!(seconds < 1_000, "seed {seed}"),
            }
        }
    }

    /// Smallest share of successful trials to expect if `share` of 1,000 succeeded: three deviations of a binomial
    /// distribution below it.
    fn at_least(share: f64, trials: usize) -> f64 {
        share - 3.0 * (share * (1.0 - share) / trials as f64).sqrt()
    }

    #[test]
    fn intervals_have_their_claimed_coverage() {
        for (correlation, figure, truth) in
            [(0.0, mean as fn(&Batch) -> f64, 1e6), (0.9, mean, 1e6), (0.0, p90, P90), (0.9, p90, P90)]
        {
            let known: Vec<(f64, PrecisionEstimate)> = (0..100)
                .filter_map(|seed| {
                    let (found, estimate) = after(60, seed, correlation, figure);
                    Some((found, estimate.ok()?))
                })
                .collect();
            // Of 1,000 seeds, 969 to 984 had an interval, and 93.8 to 94.9 % of the intervals covered the true value.
            assert!(known.len() as f64 / 100.0 > at_least(0.969, 100), "{correlation}: {}", known.len());
            let covers = known.iter().filter(|(found, estimate)| (found / truth - 1.0).abs() <= estimate.half_width);
            let covered = covers.count() as f64 / known.len() as f64;
            assert!(covered > at_least(0.938, known.len()), "{correlation}: {covered}");
            if truth == 1e6 {
                // The deviation of the mean of such a series.
                let expected = 1.96 * 0.1 * ((1.0 + correlation) / (1.0 - correlation) / 6_000.0_f64).sqrt();
                let wide = known.iter().map(|(_, estimate)| estimate.half_width).sum::<f64>() / known.len() as f64;
                assert!((0.9..1.15).contains(&(wide / expected)), "{correlation}: {wide} instead of {expected}");
            }
        }
    }

    #[test]
    fn repeated_looks_cost_little_confidence() {
        // The last number is the share of 1,000 seeds whose interval covered the true value; with one look it would be
        // 95 %. It is below 93 % only where values are correlated over a hundred of them.
        for (correlation, half_width, figure, truth, share) in [
            (0.9, 0.01, mean as fn(&Batch) -> f64, 1e6, 0.937),
            (0.99, 0.04, mean, 1e6, 0.863),
            (0.9, 0.01, p90, P90, 0.938),
        ] {
            let stopped = (0..100).map(|seed| stopped(half_width, seed, correlation, figure));
            let covered =
                stopped.filter(|(found, estimate)| (found / truth - 1.0).abs() <= estimate.half_width).count();
            let (covered, deviation) = (covered as f64 / 100.0, (share * (1.0 - share) / 100.0_f64).sqrt());
            assert!((covered - share).abs() < 3.0 * deviation, "{correlation}: {covered}");
        }
    }

    #[test]
    fn batches_are_joined_if_too_short_or_correlated() {
        let mut batches = Batches::default();
        let mut random = Random::new(3);
        for second in 0..80 {
            let latency = crate::distribution::tests::distribution(&[1_000_000 + random.below(1_000)]);
            batches.record(0, if second % 4 == 0 { 0 } else { 10 }, &latency);
            batches.end_second();
        }
        let of = |completed_min| batches.estimate_precision(completed_min, mean);
        assert_eq!(of(0).unwrap().batches, 80);
        assert_eq!(of(10).unwrap().batches, 40);
        assert_eq!(of(30).unwrap().batches, 20);
        assert_eq!(of(31), Err(Unknown::Short));
        assert_eq!(after(19, 1, 0.0, mean).1, Err(Unknown::Short));
        assert_eq!(after(40, 1, 0.9999, mean).1, Err(Unknown::Dependent));
    }

    #[test]
    fn batches_are_bounded_without_loss() {
        let mut batches = Batches::default();
        for second in 0..1_003 {
            batches.record(1, 2, &crate::distribution::tests::distribution(&[second, second]));
            batches.record(0, 1, &crate::distribution::tests::distribution(&[second]));
            batches.end_second();
            assert!(batches.complete.len() < BATCHES_MAX);
        }
        let whole = sum(&batches.complete);
        assert!(batches.complete.iter().all(|batch| batch.seconds == 8));
        assert_eq!((batches.seconds, batches.complete.len(), batches.begun.unwrap().seconds), (8, 125, 3));
        assert_eq!((whole.seconds, whole.completed, whole.latency.count()), (1_000, 2_998, 2_998));
    }
}
