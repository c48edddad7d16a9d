//! Chooses the next load: growing steps until two loads enclose the limit, then halves of the distance between them,
//! then loads near the limit again and again.

use std::collections::BTreeMap;

use super::bracket::{Bracket, Votes};
use super::{Fault, Limit, Point};
use crate::plan::search::{Over, Search};

/// The factors by which the load grows, or shrinks, as long as all runs end alike: slowly at first, because the first
/// load is close to the limit if the target is limited by its processor.
const STEPS: [f64; 3] = [1.25, 1.5, 2.0];

/// Two loads with at most this factor between them are close enough.
const CLOSE: f64 = 1.01;

/// Runs at the limit times and divided by this factor narrow its interval.
const NEXT: f64 = 1.02;

/// If the limit may be anywhere within this factor, the rate that the overloaded target still reached is the best
/// guess ...
const WIDE: f64 = 1.1;
/// ... reduced by a little, because it should hold.
const GUESS: f64 = 0.985;

/// A search ends after this many runs at one load in which something other than the target was the limit.
const LIMITED_MAX: usize = 3;

/// The number of points that is enough.
const POINTS_MAX: usize = 40;

/// The load to try after these points; `None`: there is nothing left to find out. `first`: the load to begin with.
pub fn next(search: &Search, first: u64, points: &[Point]) -> Option<u64> {
    let range = Range { over: search.over, least: search.over.least(), most: search.most };
    let Some(last) = points.last() else { return Some(first.clamp(range.least, range.most)) };
    let votes = Votes::of(points);
    if votes.get(&last.load).is_none_or(|votes| votes.decision().is_none()) {
        return Some(last.load);
    }
    let steps = STEPS[(votes.len() - 1).min(STEPS.len() - 1)];
    let Bracket { holds, fails } = Bracket::of(points);
    match (holds, fails) {
        (Some(holds), None) => (holds < range.most).then(|| range.above(holds, steps)),
        (None, Some(fails)) => (fails > range.least).then(|| {
            let guess = reached(points, fails).filter(|_| range.over == Over::Rate).unwrap_or(f64::MAX);
            range.load(guess * GUESS).min(range.below(fails, steps))
        }),
        (Some(holds), Some(fails)) => range
            .between(holds, fails, reached(points, fails))
            .or_else(|| (points.len() < POINTS_MAX).then(|| range.least_known(holds, fails, &votes))),
        (None, None) => Some(last.load),
    }
}

/// The limit that ends a search: because of it, run after run left the last load undecided.
pub fn limited(points: &[Point]) -> Option<Limit> {
    let last = points.last()?;
    let Some(Fault::Limited(limit)) = last.fault else { return None };
    let is_undecided = Votes::of(points).get(&last.load).is_none_or(|votes| votes.decision().is_none());
    let runs = points.iter().filter(|point| point.load == last.load && !point.is_clean()).count();
    (is_undecided && runs >= LIMITED_MAX).then_some(limit)
}

/// The responses per second of the last run at a load.
fn reached(points: &[Point], load: u64) -> Option<f64> {
    points.iter().rev().find(|point| point.load == load).map(|point| point.per_s)
}

/// The range of possible loads.
struct Range {
    over: Over,
    least: u64,
    most: u64,
}

impl Range {
    /// The load nearest to a number of its kind.
    fn load(&self, number: f64) -> u64 {
        self.over.load(number).clamp(self.least, self.most)
    }

    fn times(&self, load: u64, factor: f64) -> u64 {
        self.load(self.over.number(load) * factor)
    }

    /// A higher load.
    fn above(&self, load: u64, factor: f64) -> u64 {
        self.times(load, factor).max(load + 1).min(self.most)
    }

    /// A lower load.
    fn below(&self, load: u64, factor: f64) -> u64 {
        self.times(load, 1.0 / factor).min(load - 1).max(self.least)
    }

    /// A load between two; `None`: they are close enough.
    fn between(&self, holds: u64, fails: u64, reached: Option<f64>) -> Option<u64> {
        let factor = fails as f64 / holds as f64;
        if factor <= CLOSE || fails - holds <= 1 {
            return None;
        }
        let is_between = |load: &u64| *load > holds && *load < fails;
        let guess = reached.filter(|_| self.over == Over::Rate && factor > WIDE).map(|per_s| self.load(per_s * GUESS));
        let halves = || Some(self.times(holds, factor.sqrt())).filter(is_between);
        guess.filter(is_between).or_else(halves)
    }

    /// The load near the limit that has the fewest runs.
    fn least_known(&self, holds: u64, fails: u64, votes: &BTreeMap<u64, Votes>) -> u64 {
        let factor = (fails as f64 / holds as f64).max(NEXT);
        let near = [fails, self.above(fails, factor), holds, self.below(holds.max(2), factor)];
        let count = |load: &u64| votes.get(load).map_or(0, |votes| votes.count());
        near.into_iter().min_by_key(count).unwrap_or(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::simulation::{points, search};
    use crate::verdict::LimitedBy;

    /// Runs that failed at these loads; `true`: because of something other than the target.
    fn failed(runs: &[(u64, bool)]) -> Vec<Point> {
        let mut points = points(&runs.iter().map(|(load, _)| (*load, false)).collect::<Vec<_>>());
        for (point, (_, is_limited)) in points.iter_mut().zip(runs) {
            point.blame(is_limited.then_some(Limit::Verdict(LimitedBy::Ports)));
        }
        points
    }

    #[test]
    fn what_was_not_the_targets_fault_is_repeated_and_ends_the_search_the_third_time() {
        let search = search(Over::Connections);
        for (runs, next_load, is_over) in [
            (&[(8, true)][..], 8, false),
            (&[(8, true), (8, false), (8, true)], 8, false),
            (&[(8, true), (8, false), (8, true), (8, false)], 6, false),
            (&[(8, true), (8, false), (8, true), (8, true)], 8, true),
        ] {
            let points = failed(runs);
            let limit = is_over.then_some(Limit::Verdict(LimitedBy::Ports));
            assert_eq!((next(&search, 8, &points), limited(&points)), (Some(next_load), limit), "{runs:?}");
        }
    }

    #[test]
    fn steps_grow_and_an_overloaded_target_says_where_the_limit_is() {
        let rate = search(Over::Rate);
        let load = |per_s: f64| Over::Rate.load(per_s);
        let runs = |runs: &[(f64, bool, f64)]| {
            let mut points = points(&runs.iter().map(|(per_s, holds, _)| (load(*per_s), *holds)).collect::<Vec<_>>());
            points.iter_mut().zip(runs).for_each(|(point, (_, _, reached))| point.per_s = *reached);
            points
        };
        for (points, per_s) in [
            (runs(&[]), 100.0),
            (runs(&[(100.0, true, 100.0)]), 125.0),
            (runs(&[(100.0, true, 100.0), (125.0, true, 125.0)]), 187.5),
            (runs(&[(100.0, true, 100.0), (400.0, false, 200.0)]), 400.0),
            (runs(&[(100.0, true, 100.0), (400.0, false, 200.0), (400.0, false, 200.0)]), 197.0),
            (runs(&[(100.0, true, 100.0), (400.0, false, 90.0), (400.0, false, 90.0)]), 200.0),
            (runs(&[(400.0, false, 200.0), (400.0, false, 200.0)]), 197.0),
            (runs(&[(400.0, false, 0.0), (400.0, false, 390.0)]), 320.0),
            (runs(&[(100.0, true, 100.0), (101.0, false, 100.0), (101.0, false, 100.0)]), 103.0),
        ] {
            assert_eq!(
                next(&rate, load(100.0), &points).map(|load| Over::Rate.number(load)),
                Some(per_s),
                "{points:?}"
            );
        }
    }
}
