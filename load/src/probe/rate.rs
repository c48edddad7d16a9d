//! Response rate and its error, from counts in ticks of equal length, and the elasticity between two rates.
//!
//! The error comes from batches of ticks, not from the number of responses. With constant service, that varies less
//! than with random service; with a queue of many phases, it varies more. Correlated batches reveal less than their
//! number suggests. With constant service times, responses arrive in bursts, and a partial burst at either end is due
//! to chance.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::figures::batches::batch_variance;
use crate::run::Elasticity;

/// Number of batches per window, if it has that many ticks.
const BATCHES: usize = 40;
/// Minimum number of batches for an estimate of the error.
pub const BATCHES_MIN: usize = 8;
/// One-sided error probability at each look. Together they miss in 1 of 200 comparisons. A probe makes two comparisons,
/// so at most 1 probe in 100 is on the wrong side. After O'Brien and Fleming, most of the error is spent on the last
/// look.
const TAILS: [f64; LOOKS] = [0.000_25, 0.000_5, 0.001_25, 0.003];
/// Maximum number of looks.
pub const LOOKS: usize = 4;
/// Shortfall of a window, as a fraction of a cycle, that still counts as a whole cycle.
const ROUNDING: f64 = 0.05;
/// Responses are considered even if their bursts contain less than this share of the requests in flight.
const EVEN: f64 = 0.25;
/// Minimum number of ticks per cycle that show its bursts.
const RESOLVED: f64 = 4.0;
/// From this many cycles on, a partial cycle does not matter.
const CYCLES: f64 = 16.0;
/// A run with fewer ticks than this is too short to estimate how its rate varies.
const TELLING: usize = 20;
/// Lower bound of a window's dispersion, as a fraction of the run's.
const LEAST_OF_RUN: f64 = 0.5;

/// The response rate with a given number of requests in flight, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRate {
    /// Number of requests in flight.
    pub in_flight: u32,
    /// Number of ticks over which responses were counted.
    pub ticks: usize,
    /// Number of responses.
    pub responses: f64,
    /// Responses per tick.
    pub per_tick: f64,
    /// Variance of the number of responses, divided by its mean: 1 for a Poisson process.
    pub dispersion: f64,
    /// Number of batches behind the dispersion.
    batches: usize,
    /// The bursts in which responses arrive.
    pub bursts: Bursts,
    /// Number of responses that may be missing or extra because the window cuts a burst.
    cut: f64,
}

/// Responses that arrive together because their requests left together and take equally long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Number of ticks between two bursts; zero if responses arrive evenly.
    pub cycle: f64,
    /// Number of responses in a burst.
    pub size: f64,
}

impl MeasuredRate {
    /// The rate over these ticks; `None` if there are too few, or no responses in them.
    pub fn from_ticks(ticks: &[f64], in_flight: u32, bursts: Bursts) -> Option<Self> {
        let responses: f64 = ticks.iter().sum();
        let per_tick = responses / ticks.len() as f64;
        if ticks.len() < BATCHES_MIN || responses <= 0.0 {
            return None;
        }
        let size = batch_size(ticks.len(), f64::from(in_flight) / per_tick);
        let batches: Vec<f64> = ticks.rchunks_exact(size).map(|ticks| ticks.iter().sum()).collect();
        let mean = batches.iter().sum::<f64>() / batches.len() as f64;
        let dispersion = if mean > 0.0 { batch_variance(&batches) / mean } else { 0.0 };
        let cut = bursts.remainder(ticks.len() as f64);
        Some(Self {
            in_flight,
            ticks: ticks.len(),
            responses,
            per_tick,
            dispersion,
            batches: batches.len(),
            bursts,
            cut,
        })
    }

    /// The rate at the end of a run, over whole cycles if partial ones matter; `None` as for [`Self::from_ticks`].
    pub fn from_end_of_run(ticks: &[f64], in_flight: u32) -> Option<Self> {
        let bursts = Bursts::from_ticks(ticks, in_flight);
        let length = (bursts.whole_cycles(ticks.len() as f64).round() as usize).max(BATCHES_MIN).min(ticks.len());
        Self::from_ticks(&ticks[ticks.len() - length..], in_flight, bursts)
    }

    /// Rate in shorter ticks, of which `times` make one of the present ticks.
    pub fn in_shorter_ticks(self, times: u32) -> Self {
        let times = f64::from(times);
        let bursts = Bursts { cycle: self.bursts.cycle * times, ..self.bursts };
        Self { per_tick: self.per_tick / times, bursts, ..self }
    }

    /// Expected rate in a window of this many ticks, with the same dispersion.
    pub fn expected_in_window(&self, in_flight: u32, per_tick: f64, ticks: f64, bursts: Bursts) -> Self {
        let (batches, cut) = (BATCHES.min(ticks as usize), bursts.remainder(ticks));
        Self { in_flight, responses: per_tick * ticks, per_tick, batches, bursts, cut, ..*self }
    }

    /// Bursts to be expected with another number of requests in flight, after `added` requests were sent at once.
    pub fn bursts_with(&self, in_flight: u32, added: u32) -> Bursts {
        let in_flight = f64::from(in_flight);
        let size = (self.bursts.size * in_flight / f64::from(self.in_flight)).max(added.into());
        let is_even = self.bursts.cycle == 0.0 && size < EVEN * in_flight;
        Bursts { cycle: if is_even { 0.0 } else { self.cycle() }, size }
    }

    /// Number of ticks in which as many responses arrive as requests are in flight.
    pub fn cycle(&self) -> f64 {
        f64::from(self.in_flight) / self.per_tick
    }

    /// This rate, with a dispersion of at least half that of `run`.
    pub fn with_minimum_dispersion(self, run: &Self) -> Self {
        Self { dispersion: self.dispersion.max(LEAST_OF_RUN * run.dispersion), ..self }
    }

    /// This rate, with a dispersion of at most 1, as of a Poisson process, if the run is too short for a reliable one.
    pub fn with_capped_dispersion(self) -> Self {
        let is_short = self.ticks < TELLING;
        Self { dispersion: if is_short { self.dispersion.min(1.0) } else { self.dispersion }, ..self }
    }

    /// Standard error of the logarithm of the rate, without the error from cut bursts.
    pub fn standard_error(&self) -> f64 {
        // A difference of one response is always due to chance.
        (self.dispersion * self.responses + 1.0).sqrt() / self.responses
    }

    /// Error of the logarithm of the rate due to a cut burst.
    fn burst_error(&self) -> f64 {
        (self.cut / self.responses).min(1.0)
    }

    /// Half-width of the interval at this look, in standard errors.
    fn quantile(&self, look: usize) -> f64 {
        let of_few = StudentsT::new(0.0, 1.0, (self.batches.max(2) - 1) as f64);
        of_few.map_or(f64::INFINITY, |it| it.inverse_cdf(1.0 - TAILS[look.min(LOOKS - 1)]))
    }
}

impl Bursts {
    /// Bursts in these ticks: the range of the deviation from a constant rate, if the ticks are short and numerous
    /// enough to show it, and otherwise all requests in flight.
    pub fn from_ticks(ticks: &[f64], in_flight: u32) -> Self {
        let (in_flight, per_tick) = (f64::from(in_flight), ticks.iter().sum::<f64>() / ticks.len() as f64);
        let cycle = in_flight / per_tick;
        if cycle < RESOLVED || cycle * 2.0 > ticks.len() as f64 {
            return Self { cycle, size: in_flight };
        }
        let (mut deviation, mut low, mut high) = (0.0_f64, 0.0_f64, 0.0_f64);
        for responses in ticks {
            deviation += responses - per_tick;
            (low, high) = (low.min(deviation), high.max(deviation));
        }
        let size = (high - low).min(in_flight);
        Self { cycle: if size < EVEN * in_flight { 0.0 } else { cycle }, size }
    }

    /// Length of the longest window within `ticks` that consists of whole cycles; `ticks` itself if partial cycles do
    /// not matter.
    pub fn whole_cycles(self, ticks: f64) -> f64 {
        let is_even = self.cycle == 0.0;
        if is_even || self.cycle * CYCLES < ticks {
            ticks
        } else {
            (ticks / self.cycle + ROUNDING).floor() * self.cycle
        }
    }

    /// Number of responses in a window that are due to chance, because a burst is cut off.
    fn remainder(self, ticks: f64) -> f64 {
        let is_whole = self.cycle * CYCLES >= ticks && (ticks - self.whole_cycles(ticks)).abs() <= 1.0;
        self.size * if is_whole { 1.0 / 8.0 } else { 1.0 / 2.0 }
    }
}

/// Number of ticks per batch: whole cycles, if the window has enough of them.
fn batch_size(ticks: usize, cycle: f64) -> usize {
    let least = ticks.div_ceil(BATCHES);
    let cycles = (least as f64 / cycle).ceil().max(1.0);
    let whole = (cycles * cycle).round() as usize;
    if whole >= least && whole > 0 && ticks / whole >= BATCHES_MIN { whole } else { least }
}

/// Elasticity of the rate with respect to the requests in flight, with its interval at this look, counted from 0.
pub fn elasticity(a: &MeasuredRate, b: &MeasuredRate, look: usize) -> Elasticity {
    let unit = (f64::from(a.in_flight) / f64::from(b.in_flight)).ln();
    let value = (a.per_tick / b.per_tick).ln() / unit;
    let half = half_width(a, b, look, 0.0);
    Elasticity { value, low: value - half, high: value + half }
}

/// Half-width of the interval of [`elasticity`], with `more` additional standard errors.
pub fn half_width(a: &MeasuredRate, b: &MeasuredRate, look: usize, more: f64) -> f64 {
    let unit = (f64::from(a.in_flight) / f64::from(b.in_flight)).ln().abs();
    let [of_a, of_b] = [a, b].map(|rate| (rate.quantile(look) + more) * rate.standard_error());
    of_a.hypot(of_b).hypot(a.burst_error() + b.burst_error()) / unit
}

/// True if two rates with the same number of requests in flight differ by a fifth and by three standard errors.
pub fn has_drifted(run: &MeasuredRate, later: &MeasuredRate) -> bool {
    let difference = (later.per_tick / run.per_tick).ln().abs();
    // With few batches, the quantile equivalent to three standard errors of a large sample.
    let last = LOOKS - 1;
    let of_many = Normal::standard().inverse_cdf(1.0 - TAILS[last]);
    let [of_run, of_later] = [run, later].map(|rate| 3.0 * rate.quantile(last) / of_many * rate.standard_error());
    difference > 1.2_f64.ln() && difference > of_run.hypot(of_later).hypot(later.burst_error() + run.burst_error())
}

#[cfg(test)]
mod tests {
    use onrush_plan::Random;

    use super::*;

    fn of_cycle(in_flight: u32, cycle: f64) -> Bursts {
        Bursts { cycle, size: in_flight.into() }
    }

    #[test]
    fn errors_come_from_batches_and_not_from_counts() {
        let mut random = Random::new(3);
        let mut poisson = |mean: f64| {
            let (mut count, mut left) = (0.0, mean);
            loop {
                left += (1.0 - random.uniform()).ln();
                if left < 0.0 {
                    return count;
                }
                count += 1.0;
            }
        };
        let constant = MeasuredRate::from_ticks(&[10.0; 400], 4, of_cycle(4, 0.4)).unwrap();
        assert!(constant.dispersion < 0.01 && constant.standard_error() < 0.001, "{constant:?}");
        let random: Vec<MeasuredRate> = (0..200)
            .map(|_| {
                MeasuredRate::from_ticks(&(0..400).map(|_| poisson(10.0)).collect::<Vec<_>>(), 4, of_cycle(4, 0.4))
                    .unwrap()
            })
            .collect();
        let mean = random.iter().map(|rate| rate.dispersion).sum::<f64>() / 200.0;
        assert!((0.9..1.5).contains(&mean), "{mean}");
        // All requests in flight form one burst. The cycle is not a multiple of a tick.
        let bursts: Vec<f64> = (0..400).map(|tick| if (tick * 10 % 37) < 10 { 8.0 } else { 0.0 }).collect();
        let bursts = MeasuredRate::from_ticks(&bursts, 8, of_cycle(8, 3.7)).unwrap();
        assert!(bursts.standard_error() < 0.02, "{bursts:?}");
    }

    #[test]
    fn drift_needs_a_fifth_and_three_errors() {
        let at = |per_tick: f64, ticks: usize| {
            let counts: Vec<f64> = (0..ticks).map(|tick| per_tick + [-0.1, 0.1][tick % 2] * per_tick).collect();
            MeasuredRate::from_ticks(&counts, 4, of_cycle(4, 0.4)).unwrap()
        };
        for (later, has) in [(7.5, true), (8.5, false), (12.5, true), (11.5, false)] {
            assert_eq!(has_drifted(&at(10.0, 400), &at(later, 20)), has, "{later}");
        }
        // By chance, half the rate in a window with few responses.
        let few = MeasuredRate::from_ticks(&[0.0, 1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0], 4, of_cycle(4, 8.0)).unwrap();
        assert!(!has_drifted(&at(1.2, 400), &few), "{few:?}");
    }

    #[test]
    fn even_responses_have_whole_windows() {
        let even = Bursts { cycle: 0.0, size: 0.0 };
        assert_eq!([0.0, 7.0].map(|ticks| even.whole_cycles(ticks)), [0.0, 7.0]);
    }

    #[test]
    fn too_few_ticks_and_silence_have_no_rate() {
        assert_eq!(MeasuredRate::from_ticks(&[5.0; BATCHES_MIN - 1], 4, of_cycle(4, 1.0)), None);
        assert_eq!(MeasuredRate::from_ticks(&[0.0; 100], 4, of_cycle(4, 1.0)), None);
    }
}
