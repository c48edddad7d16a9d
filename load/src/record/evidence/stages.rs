//! The experiment that the stages of a closed loop are: does the rate follow the number of connections?
//!
//! The times with the most connections are compared with those with about half as many. A target that becomes faster or slower
//! meanwhile looks like one that follows the number, or does not: where the few come on one side of the many only, the slope
//! within both is what the time may have done between them.

use std::ops::{Range, RangeInclusive};

use onrush_plan::{ConnectionLevels, Plan};
use onrush_stats::Timeline;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Elasticity, Probe, Slot};
use crate::figures::batches::batch_variance;
use crate::figures::slope::linear_slope;
use crate::run::{Outcome, RUN_TICK, nanos};

/// The many are at least this share of the most connections.
const MANY: f64 = 0.9;
/// The few are about half of the most, or as many as the stage within these shares that is nearest to half.
const FEW: RangeInclusive<f64> = 0.2..=0.75;
/// With fewer than this share, only a rate that does not follow tells anything.
const NEAR: f64 = 0.3;
/// How much more or less they may be, as a share of the most.
const ABOUT: f64 = 0.1;
/// The fewest batches of each that tell an error, and the most into which they are divided.
const BATCHES_MIN: usize = 8;
const BATCHES_MAX: usize = 40;
/// The share of intervals that may miss the true value on either side.
const TAIL: f64 = 0.005;
/// Rates that differ by less have not drifted.
const DRIFT_MIN: f64 = 0.05;
/// Above this elasticity, connections are not alike.
const BEYOND: f64 = 1.3;
/// Connections are missing from this share of those that there were.
const MISSING: f64 = 0.05;

/// The result of comparing the stages of a closed loop, as a probe has it; `None`: they cannot be
/// compared.
pub(super) fn compare(plan: &Plan, outcome: &Outcome) -> Option<Probe> {
    let levels = plan.levels.as_ref().filter(|_| plan.schedule.is_none() && !outcome.pauses && outcome.batch == 1)?;
    let occupancy = &outcome.totals.counters.occupancy;
    let missing_ns = occupancy.absent_ns + occupancy.waiting_ns + occupancy.connecting_ns;
    (missing_ns as f64 <= MISSING * occupancy.open_ns as f64).then_some(())?;
    let streams = f64::from(outcome.streams_per_connection(plan));
    let ticks = Ticks::of(levels, outcome, streams);
    let half = |share: &f64| (share - 0.5).abs();
    let stages = levels.stages.iter().filter(|stage| stage.from == stage.to);
    let shares = stages.map(|stage| f64::from(stage.to) * streams / ticks.most);
    let few = shares.filter(|share| FEW.contains(share)).min_by(|one, other| half(one).total_cmp(&half(other)));
    let few = few.unwrap_or(0.5) * ticks.most;
    let is_few = |in_flight: f64| (in_flight - few).abs() <= ABOUT * ticks.most;
    let many = ticks.part(0..ticks.responses.len(), |in_flight| in_flight >= MANY * ticks.most)?;
    let few = ticks.part(0..ticks.responses.len(), is_few)?;
    let sides = [0..many.ticks.start, many.ticks.end..ticks.responses.len()].map(|range| ticks.part(range, is_few));

    let (value, error) = ((many.per_tick / few.per_tick).ln(), many.error.hypot(few.error));
    let (mut low, mut high) = (value - error, value + error);
    if let [Some(before), Some(after)] = &sides {
        let drift = (after.per_tick / before.per_tick).ln().abs();
        (drift <= DRIFT_MIN.max(before.error.hypot(after.error))).then_some(())?;
    } else {
        let apart = many.middle - few.middle;
        let drift = apart * many.slope.midpoint(few.slope);
        let uncertain = (apart * many.slope_error.hypot(few.slope_error) / 2.0).abs();
        // A target that becomes faster is usual, as it warms up; one that becomes slower must show it.
        let has_drifted = drift.abs() > DRIFT_MIN.max(uncertain);
        let [least, most] = [-1.0, 1.0].map(|side| value - drift + side * error.hypot(uncertain));
        low = if has_drifted || sides[1].is_none() { low.min(least) } else { low };
        high = if has_drifted || sides[0].is_none() { high.max(most) } else { high };
    }
    let unit = (many.in_flight / few.in_flight).ln();
    let elasticity = Elasticity { value: value / unit, low: low / unit, high: high / unit };
    let Elasticity { low, high, .. } = elasticity;
    // With very few, the rate may have stopped following long before the most.
    let are_near = few.in_flight >= NEAR * many.in_flight;
    let is_knee = low > Elasticity::STAYS && high < Elasticity::FOLLOWS && are_near;
    let follows = low > Elasticity::FOLLOWS && elasticity.value < BEYOND && are_near;
    let slots = [many, few].map(|part| part.slot).into();
    (high < Elasticity::STAYS || is_knee || follows).then(|| Probe {
        slots,
        elasticity: Some(elasticity),
        ..Probe::default()
    })
}

/// A run in parts of equal length.
struct Ticks {
    length_s: f64,
    responses: Vec<f64>,
    /// How many requests could be in flight in each, on average.
    in_flight: Vec<f64>,
    /// The most of these.
    most: f64,
}

impl Ticks {
    fn of(levels: &ConnectionLevels, outcome: &Outcome, streams: f64) -> Self {
        let length_ns = nanos(RUN_TICK);
        // Of several machines only whole rows are known, and of a long run not all of its tenths of a second.
        let is_whole = outcome.recent.len() as u64 == nanos(outcome.elapsed) / length_ns && outcome.machines.is_empty();
        let (length_ns, responses): (u64, Vec<f64>) = if is_whole {
            (length_ns, outcome.recent.clone())
        } else {
            let Timeline { length_ns, rows } = &outcome.timeline;
            (*length_ns, rows.iter().map(|row| row.completed as f64).take(rows.len().saturating_sub(1)).collect())
        };
        let at = |ns: u64| f64::from(levels.connections_at(ns).0) * streams;
        let ticks = 0..responses.len() as u64;
        let in_flight: Vec<f64> =
            ticks.map(|tick| at(tick * length_ns).midpoint(at((tick + 1) * length_ns - 1))).collect();
        let most = in_flight.iter().copied().fold(0.0, f64::max);
        Self { length_s: length_ns as f64 / 1e9, responses, in_flight, most }
    }

    /// The ticks of a range with such a number in flight; `None`: too few. What was in flight before, or is being
    /// connected, has passed.
    fn part(&self, range: Range<usize>, is_one: impl Fn(f64) -> bool) -> Option<Part> {
        let ticks: Vec<usize> = range.filter(|&tick| is_one(self.in_flight[tick])).collect();
        let mean = |ticks: &[usize], of: &[f64]| ticks.iter().map(|&tick| of[tick]).sum::<f64>() / ticks.len() as f64;
        let cycle =
            |in_flight: f64| (in_flight / mean(&ticks, &self.responses)).min(self.responses.len() as f64).ceil();
        let opening = cycle(self.most) as usize + 1;
        let stages: Vec<&[usize]> =
            ticks.chunk_by(|one, next| one + 1 == *next).filter_map(|it| it.get(opening..)).collect();
        // All of a cycle may come at once.
        let least = stages.iter().map(|ticks| ticks.len()).sum::<usize>().div_ceil(BATCHES_MAX);
        let size = least.max(cycle(mean(&ticks, &self.in_flight)) as usize).max(1);
        let batches: Vec<&[usize]> = stages.iter().flat_map(|ticks| ticks.chunks_exact(size)).collect();
        if batches.len() < BATCHES_MIN {
            return None;
        }
        let count = batches.len() as f64;
        let rates: Vec<f64> = batches.iter().map(|batch| mean(batch, &self.responses)).collect();
        let per_tick = rates.iter().sum::<f64>() / count;
        let deviations: Vec<f64> = rates.iter().map(|rate| rate / per_tick - 1.0).collect();
        // A response more or less is always chance.
        let one = 1.0 / (per_tick * size as f64 * count);
        let variance = batch_variance(&deviations);
        let errors = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(1.0 - TAIL);
        let middle = |batch: &[usize]| batch[0] as f64 + batch.len() as f64 / 2.0;
        let points: Vec<(f64, f64)> = batches.iter().map(|batch| middle(batch)).zip(deviations).collect();
        let (slope, slope_error) = linear_slope(&points)?;
        let in_flight = batches.iter().map(|batch| mean(batch, &self.in_flight)).sum::<f64>() / count;
        Some(Part {
            ticks: *ticks.first()?..ticks.last()? + 1,
            in_flight,
            per_tick,
            error: errors * (variance / count).sqrt().hypot(one),
            middle: points.iter().map(|(at, _)| at).sum::<f64>() / count,
            slope,
            slope_error: errors * slope_error,
            slot: Slot {
                in_flight: in_flight.round() as u32,
                tick_s: self.length_s * size as f64,
                completed: rates.iter().map(|rate| (rate * size as f64).round() as u64).collect(),
            },
        })
    }
}

/// The parts of a run with about one number of requests in flight.
struct Part {
    /// From the first of its ticks to the last.
    ticks: Range<usize>,
    in_flight: f64,
    /// Responses in a tick.
    per_tick: f64,
    /// Half of the interval of its logarithm.
    error: f64,
    /// The tick in the middle.
    middle: f64,
    /// How much faster it became with each tick, as a share, and half of the interval of that.
    slope: f64,
    slope_error: f64,
    slot: Slot,
}

#[cfg(test)]
mod tests;
