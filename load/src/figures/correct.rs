//! The latencies that wrk would print, with its correction for "coordinated omission", for comparison with old results.
//!
//! wrk takes E, the mean spacing of responses on one connection. For every recorded latency n of at least 2 E, wrk adds
//! latencies n − E, n − 2 E and so on, as long as they are larger than E. Two faults of wrk are not copied: E is
//! computed from pipelined batches, like the latencies, and not from responses; and the minimum moves when values are
//! added below it.
//!
//! The values added for one recorded latency are evenly spaced. Their count, sum, sum of squares and number below any
//! bound are therefore formulas: nothing is added bin by bin, no matter how long the tail.

use std::collections::HashMap;
use std::time::Duration;

use onrush_plan::Plan;
use onrush_stats::{Distribution, Moments, rank, sample_stdev};

use super::SummaryStatistics;
use crate::run::{Outcome, nanos};

/// The latencies that wrk would print for this run.
pub fn rewrite_as_wrk(plan: &Plan, outcome: &Outcome) -> CorrectedLatencies {
    let totals = &outcome.totals;
    // For wrk, a batch is one request.
    let latency = totals.batch_latency.as_deref().unwrap_or(&totals.latency);
    CorrectedLatencies::new(latency, plan.timeout, batch_spacing_us(plan, outcome))
}

/// wrk's E for this run, in whole microseconds.
pub fn batch_spacing_us(plan: &Plan, outcome: &Outcome) -> u64 {
    let counters = &outcome.totals.counters;
    // Connections that were no longer needed did not contribute to the rate.
    let unneeded = counters.occupancy.done_ns / (outcome.elapsed.as_nanos() as u64).max(1);
    let connections = match &plan.levels {
        Some(_) => plan.load.connections.saturating_sub(unneeded as u32),
        None => plan.load.connections,
    };
    mean_spacing_us(outcome.elapsed, counters.batches, connections)
}

/// Latencies in whole microseconds, corrected as wrk does it.
#[derive(Clone, Debug)]
pub struct CorrectedLatencies {
    /// The recorded values in ascending order.
    trains: Vec<CorrectionSeries>,
    /// E in microseconds; if it is zero, no values are added.
    spacing_us: u64,
    min_us: u64,
    max_us: u64,
    count: u64,
    sum: u128,
    sum_of_squares: u128,
}

/// A recorded value and the evenly spaced values that wrk adds below it.
#[derive(Clone, Copy, Debug)]
struct CorrectionSeries {
    value: u64,
    count: u64,
    /// Number of values added below each of the recorded ones.
    added: u64,
}

impl CorrectedLatencies {
    /// Corrects the measured latencies, leaving out those above `timeout`. `spacing_us` is E. The number of values must
    /// fit 64 bits: [`rewritten_count`] computes it beforehand.
    pub fn new(latency: &Distribution<u64>, timeout: Option<Duration>, spacing_us: u64) -> Self {
        let longest = timeout.map_or(u64::MAX, nanos);
        let mut rewritten = Self {
            trains: Vec::new(),
            spacing_us,
            min_us: round_to_us(latency.min().unwrap_or(0)),
            max_us: round_to_us(latency.max().unwrap_or(0).min(longest)),
            count: 0,
            sum: 0,
            sum_of_squares: 0,
        };
        for (value, count) in latency.values().filter(|&(value, _)| value <= longest) {
            rewritten.add(round_to_us(value), count);
        }
        rewritten
    }

    /// The figures of the report's latency row, in microseconds.
    pub fn summary_us(&self) -> SummaryStatistics {
        let Some(mean) = self.mean_us() else { return SummaryStatistics::default() };
        let stdev = sample_stdev(self.count, self.sum, self.sum_of_squares);
        // Values are whole numbers, so the bound can be one as well.
        let below = ((mean - stdev).ceil() as u64).checked_sub(1).map_or(0, |bound| self.count_up_to(bound));
        let within = self.count_up_to((mean + stdev) as u64) - below;
        let within = Some(within as f64 / self.count as f64);
        SummaryStatistics { mean, stdev, max: self.max_us as f64, min: self.min_us as f64, within }
    }

    /// The mean in microseconds; `None` without values.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The value at rank floor(`p` / 100 · count) + 1, limited to count; zero without values.
    pub fn percentile_us(&self, p: f64) -> u64 {
        let rank = rank(p, self.count);
        if rank >= self.count {
            return if self.count == 0 { 0 } else { self.max_us };
        }
        let (mut below, mut reached) = (0, self.max_us);
        while below < reached {
            let middle = below + (reached - below) / 2;
            if self.count_up_to(middle) >= rank {
                reached = middle;
            } else {
                below = middle + 1;
            }
        }
        reached
    }

    /// All values, recorded and added, in ascending order with their counts. The time and memory needed grow with the
    /// number of different values.
    pub fn value_counts(&self) -> Vec<(u64, u64)> {
        let mut counts = HashMap::new();
        for train in &self.trains {
            for step in 0..=train.added {
                *counts.entry(train.value - step * self.spacing_us).or_default() += train.count;
            }
        }
        let mut values: Vec<_> = counts.into_iter().collect();
        values.sort_unstable();
        values
    }

    /// Adds a recorded value, and everything that wrk derives from it.
    fn add(&mut self, value: u64, count: u64) {
        let spacing = self.spacing_us;
        let added = added_count(value, spacing);
        self.trains.push(CorrectionSeries { value, count, added });
        self.min_us = self.min_us.min(value - added * spacing);
        self.count += count * (1 + added);
        let [n, k, m, e] = [value, count, added, spacing].map(u128::from);
        // Sums over n − j·e for j from 0 to m.
        self.sum += k * ((m + 1) * n - e * m * (m + 1) / 2);
        self.sum_of_squares += k * ((m + 1) * n * n + e * e * m * (m + 1) * (2 * m + 1) / 6 - n * e * m * (m + 1));
    }

    /// The values in bins, in nanoseconds, with the exact figures.
    pub fn distribution(&self) -> Distribution<u64> {
        let mut bins = Distribution::new();
        for &CorrectionSeries { mut value, count, added } in &self.trains {
            let mut left = added + 1;
            while left > 0 {
                // All values in the same bin are recorded at once.
                let start_us = bins.bin_start(value * 1000).div_ceil(1000);
                let here = ((value - start_us) / self.spacing_us.max(1) + 1).min(left);
                bins.record_many(value * 1000, here * count);
                left -= here;
                value = value.saturating_sub(here * self.spacing_us);
            }
        }
        if let Some(mean_us) = self.mean_us() {
            let (mean, stdev) = (mean_us * 1e3, sample_stdev(self.count, self.sum, self.sum_of_squares) * 1e3);
            let (min, max) = (self.min_us * 1000, self.max_us * 1000);
            let set = bins.set_moments(Moments { count: self.count, mean, stdev, min, max, ..Moments::default() });
            debug_assert_eq!(set, Ok(()), "every value is in a bin");
        }
        bins
    }

    /// Number of values, recorded or added, that are at most `bound`.
    fn count_up_to(&self, bound: u64) -> u64 {
        let up_to = |train: &CorrectionSeries| match train.value.checked_sub(bound) {
            None | Some(0) => 1 + train.added,
            Some(excess) if train.added > 0 => (train.added + 1).saturating_sub(excess.div_ceil(self.spacing_us)),
            Some(_) => 0,
        };
        self.trains.iter().map(|train| train.count * up_to(train)).sum()
    }
}

/// Number of latencies after the correction, which may exceed 64 bits.
pub fn rewritten_count(latency: &Distribution<u64>, timeout: Option<Duration>, spacing_us: u64) -> u128 {
    let longest = timeout.map_or(u64::MAX, nanos);
    let values = latency.values().filter(|&(value, _)| value <= longest);
    values.map(|(value, count)| u128::from(count) * (1 + u128::from(added_count(round_to_us(value), spacing_us)))).sum()
}

/// Number of values that wrk adds below `value` with this E.
fn added_count(value: u64, spacing: u64) -> u64 {
    if spacing == 0 || value / 2 < spacing { 0 } else { value.div_ceil(spacing) - 2 }
}

/// wrk's E: the mean spacing of batches on a connection, in whole microseconds. Zero if there were fewer batches than
/// connections, in which case wrk corrects nothing.
pub fn mean_spacing_us(elapsed: Duration, batches: u64, connections: u32) -> u64 {
    let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    let per_connection = batches / u64::from(connections.max(1));
    elapsed_us.checked_div(per_connection).unwrap_or(0)
}

/// Rounds nanoseconds to whole microseconds. On average, this equals the difference of two clock readings in whole
/// microseconds.
fn round_to_us(ns: u64) -> u64 {
    (ns + 500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of wrk's histogram, added one by one as wrk does.
    fn one_by_one(values: &[u64], spacing: u64) -> Vec<u64> {
        let mut all = values.to_vec();
        for &value in values.iter().filter(|&&value| value >= 2 * spacing) {
            let mut earlier = value - spacing;
            while earlier > spacing {
                all.push(earlier);
                earlier -= spacing;
            }
        }
        all.sort_unstable();
        all
    }

    fn of_us(values: impl IntoIterator<Item = (u64, u64)>) -> Distribution<u64> {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|(value, count)| distribution.record_many(value * 1000, count));
        distribution
    }

    #[test]
    fn correction_formulas_match_step_by_step() {
        for spacing in [1, 2, 3, 7, 50, 113, 400] {
            // Up to a millisecond, bins are narrower than a microsecond and lose nothing.
            let values: Vec<u64> = (0..300).map(|i: u64| i * i % 997 + 20).collect();
            let all = one_by_one(&values, spacing);
            let rewritten = CorrectedLatencies::new(&of_us(values.iter().map(|&value| (value, 1))), None, spacing);
            let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
            let squares: f64 = all.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
            let stdev = (squares / (all.len() - 1) as f64).sqrt();
            let within = all.iter().filter(|&&value| (value as f64 - mean).abs() <= stdev).count();
            let figures = rewritten.summary_us();
            assert_eq!(figures.mean, mean, "E = {spacing}");
            assert!((figures.stdev - stdev).abs() < 1e-6, "E = {spacing}: {} instead of {stdev}", figures.stdev);
            assert_eq!(figures.within, Some(within as f64 / all.len() as f64), "E = {spacing}");
            assert_eq!((figures.min, figures.max), (all[0] as f64, all[all.len() - 1] as f64), "E = {spacing}");
            let bins = rewritten.distribution();
            assert_eq!(bins.count(), all.len() as u64, "E = {spacing}");
            assert!((bins.mean().unwrap() / 1e3 - mean).abs() < 1e-6, "E = {spacing}");
            for p in [10.0, 50.0, 99.0] {
                let rank = (p / 100.0 * all.len() as f64) as usize;
                let (got, expected) = (bins.percentile(p) as f64 / 1e3, all[rank] as f64);
                assert!(
                    (got - expected).abs() <= expected / 500.0,
                    "E = {spacing}, {p} %: {got} instead of {expected}"
                );
            }
            for p in [0.0, 10.0, 50.0, 75.0, 90.0, 99.0, 99.99] {
                let rank = (p / 100.0 * all.len() as f64) as usize;
                assert_eq!(rewritten.percentile_us(p), all[rank], "E = {spacing}, {p} %");
            }
        }
    }

    #[test]
    fn latencies_below_twice_the_spacing_stay() {
        let rewritten = CorrectedLatencies::new(&of_us([(100, 3), (200, 1)]), None, 100);
        assert_eq!((rewritten.count, rewritten.percentile_us(99.0)), (4, 200));
        let rewritten = CorrectedLatencies::new(&of_us([(100, 3), (201, 1)]), None, 100);
        assert_eq!((rewritten.count, rewritten.percentile_us(60.0)), (5, 101));
    }

    #[test]
    fn minimum_follows_added_values() {
        let rewritten = CorrectedLatencies::new(&of_us([(1_000, 1)]), None, 300);
        let figures = rewritten.summary_us();
        assert_eq!((figures.min, figures.max, figures.mean), (400.0, 1_000.0, 700.0));
    }

    #[test]
    fn stalls_are_corrected_like_in_wrk() {
        // 4 connections; every 100th request stalls for 50 ms. An instrumented wrk measured a mean of 552 us and
        // printed a mean of 12.02 ms, 75 % of 23.90 ms and 90 % of 40.04 ms.
        let measured = of_us([(50, 7_500), (53, 1_500), (64, 900), (50_000, 100)]);
        let rewritten = CorrectedLatencies::new(&measured, None, 552);
        let close =
            |figure: f64, printed: f64| assert!((figure / printed - 1.0).abs() < 0.03, "{figure} for {printed}");
        close(measured.mean().unwrap() / 1000.0, 552.0);
        close(rewritten.summary_us().mean, 12_020.0);
        close(rewritten.percentile_us(75.0) as f64, 23_900.0);
        close(rewritten.percentile_us(90.0) as f64, 40_040.0);
    }

    #[test]
    fn pipelines_keep_batch_latencies() {
        // 16 batches of 3 in a second, 61 ms each. With E from the 48 responses, wrk printed a mean of 29.67 ms and
        // percentiles of zero.
        let latency = of_us([(61_000, 16)]);
        let spacing = mean_spacing_us(Duration::from_secs(1), 16, 1);
        let rewritten = CorrectedLatencies::new(&latency, None, spacing);
        assert_eq!(spacing, 62_500);
        assert_eq!((rewritten.summary_us().mean, rewritten.summary_us().stdev), (61_000.0, 0.0));
        assert_eq!([50.0, 75.0, 90.0, 99.0].map(|p| rewritten.percentile_us(p)), [61_000; 4]);
        assert_eq!(rewritten.summary_us().within, Some(1.0));
    }

    #[test]
    fn spacing_is_that_of_one_connection() {
        let second = Duration::from_secs(1);
        let table = [((1_000, 10), 10_000), ((19, 10), 1_000_000), ((9, 10), 0), ((0, 10), 0), ((7, 0), 142_857)];
        for ((batches, connections), spacing) in table {
            assert_eq!(mean_spacing_us(second, batches, connections), spacing, "{batches} on {connections}");
        }
    }

    #[test]
    fn values_above_the_timeout_are_left_out() {
        let measured = of_us([(1_000, 5), (3_000_000, 5)]);
        let rewritten = CorrectedLatencies::new(&measured, Some(Duration::from_secs(2)), 0);
        assert_eq!((rewritten.count, rewritten.mean_us()), (5, Some(1_000.0)));
        let nothing = CorrectedLatencies::new(&measured, Some(Duration::ZERO), 100);
        assert_eq!(
            (nothing.mean_us(), nothing.summary_us(), nothing.percentile_us(50.0)),
            (None, SummaryStatistics::default(), 0)
        );
    }

    #[test]
    fn correcting_an_hour_is_fast() {
        let rewritten = CorrectedLatencies::new(&of_us([(3_600_000_000, 1_000)]), None, 1);
        assert_eq!(rewritten.count, 3_599_999_999_000);
        assert!((rewritten.percentile_us(50.0) as f64 / 1.8e9 - 1.0).abs() < 1e-6);
    }
}
