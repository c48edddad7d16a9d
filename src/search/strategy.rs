//! Which load is tried next: steps that grow until the limit lies between two loads, then halves of what is between them,
//! then the neighbourhood again and again.

use std::collections::BTreeMap;

use super::Point;
use super::bracket::{Bracket, Votes};
use crate::plan::search::{Over, Search};

/// By which factor the load grows, or shrinks, as long as all runs end alike: slowly at first, for the first load is close
/// to the limit if the target is limited by its processor.
const STEPS: [f64; 3] = [1.25, 1.5, 2.0];

/// Two loads with at most this factor between them are close enough.
const CLOSE: f64 = 1.01;

/// How far from the limit runs say something about how sure it is.
const NEXT: f64 = 1.02;

/// Where the limit may be anywhere within this factor, what an overloaded target still did is the best guess ...
const WIDE: f64 = 1.1;
/// ... but for a little, since it is to hold.
const GUESS: f64 = 0.985;

/// As many points are enough.
const POINTS_MAX: usize = 40;

/// The load to be tried after these points; `None`: there is nothing left to find out. `first`: the one to begin with.
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

/// What the target did per second under a load, the last time.
fn reached(points: &[Point], load: u64) -> Option<f64> {
    points.iter().rev().find(|point| point.load == load).map(|point| point.per_s)
}

/// The loads there are.
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

    /// The load near the limit of which the fewest runs are known.
    fn least_known(&self, holds: u64, fails: u64, votes: &BTreeMap<u64, Votes>) -> u64 {
        let factor = (fails as f64 / holds as f64).max(NEXT);
        let near = [fails, self.above(fails, factor), holds, self.below(holds.max(2), factor)];
        let count = |load: &u64| votes.get(load).map_or(0, |votes| votes.count());
        near.into_iter().min_by_key(count).unwrap_or(holds)
    }
}
