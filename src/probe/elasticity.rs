//! By how much the rate follows the number of requests in flight.
//!
//! The elasticity is ln(X ÷ X′) ÷ ln(c ÷ c′) for the rates X and X′ with c and c′ requests in flight: one where the
//! rate is proportional to them, zero where it does not depend on them. Its interval holds the true value in 98 of 100
//! cases. Its half is the larger of two: one by the noise between batches within slots, which are many, and one by the
//! differences of neighbouring slots, which a drift or a noisy machine makes larger. Where these differ by more than their
//! batches explain, they alone decide, and few of them are worth little.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use crate::run::{Elasticity, Probe};

/// The share of intervals that may miss the true value, on either side.
const TAIL: f64 = 0.01;
/// From this many pairs of slots on, their differences alone tell how precise the mean is.
const PAIRS_MIN: usize = 8;
/// With fewer, pairs differ by more than their batches explain if that came by chance in less than this share of cases.
const BY_CHANCE: f64 = 0.05;

/// The elasticity; `None`: some slot is empty, or there are too few.
pub fn elasticity(probe: &Probe) -> Option<Elasticity> {
    let first = probe.slots.first()?.in_flight;
    let other = probe.slots.iter().map(|slot| slot.in_flight).find(|&count| count != first)?;
    let unit = (f64::from(first) / f64::from(other)).ln();
    let (a, b) = (Side::of(probe, first)?, Side::of(probe, other)?);
    let differences: Vec<f64> = a.slots.iter().zip(&b.slots).map(|(a, b)| (a / b).ln() / unit).collect();
    let pairs = differences.len();
    let mean = differences.iter().sum::<f64>() / pairs as f64;
    let between =
        (differences.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (pairs - 1) as f64 / pairs as f64).sqrt();
    let within = (a.error.powi(2) + b.error.powi(2)).sqrt() / unit.abs();
    let (freedom, of_batches) = ((pairs - 1) as f64, quantile(a.freedom + b.freedom)?);
    let explained = FisherSnedecor::new(freedom, a.freedom + b.freedom).ok()?.inverse_cdf(1.0 - BY_CHANCE);
    let is_explained = pairs < PAIRS_MIN && between.powi(2) <= explained * within.powi(2);
    let of_pairs = if is_explained { of_batches } else { quantile(freedom)? };
    let half = (of_batches * within).max(of_pairs * between);
    let value = (a.total / b.total).ln() / unit;
    Some(Elasticity { value, low: value - half, high: value + half })
}

/// The quantile of Student's distribution beyond which the tail is.
fn quantile(freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(1.0 - TAIL))
}

/// The slots with one number of requests in flight.
struct Side {
    /// The responses in each.
    slots: Vec<f64>,
    total: f64,
    /// The standard error of the logarithm of the rate, by the batches.
    error: f64,
    freedom: f64,
}

impl Side {
    /// `None`: there are fewer than two slots, or one is empty.
    fn of(probe: &Probe, in_flight: u32) -> Option<Self> {
        let of_side = probe.slots.iter().filter(|slot| slot.in_flight == in_flight);
        let batches: Vec<Vec<f64>> =
            of_side.map(|slot| slot.completed.iter().map(|&count| count as f64).collect()).collect();
        let slots: Vec<f64> = batches.iter().map(|batches| batches.iter().sum()).collect();
        if slots.len() < 2 || slots.contains(&0.0) {
            return None;
        }
        let squares = |batches: &Vec<f64>| {
            let mean = batches.iter().sum::<f64>() / batches.len() as f64;
            batches.iter().map(|it| (it - mean).powi(2)).sum::<f64>()
        };
        let count = batches.iter().map(Vec::len).sum::<usize>() as f64;
        let freedom = count - slots.len() as f64;
        let variance = batches.iter().map(squares).sum::<f64>() / freedom;
        let total: f64 = slots.iter().sum();
        let error = (variance / count).sqrt() / (total / count);
        Some(Self { slots, total, error, freedom })
    }
}
