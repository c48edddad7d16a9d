//! The conclusion from all points: the highest load that holds, and the lowest load above it that does not.
//!
//! A machine has bad moments, so one point may contradict the others. The limit is where the fewest points contradict
//! it.

use std::collections::BTreeMap;

use super::Point;

/// The two loads that enclose the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bracket {
    /// The highest load that holds; `None`: none does.
    pub holds: Option<u64>,
    /// The lowest load above it that does not; `None`: all hold.
    pub fails: Option<u64>,
}

/// How the runs at one load ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// Runs in which it held.
    pub holds: u32,
    /// Runs in which it did not.
    pub fails: u32,
}

/// The number of runs from which the majority decides.
const ENOUGH: u32 = 3;

impl Votes {
    /// Counts the runs at each load, in ascending order.
    pub fn of(points: &[Point]) -> BTreeMap<u64, Self> {
        let mut all = BTreeMap::<u64, Self>::new();
        for point in points.iter().filter(|point| point.is_clean()) {
            let votes = all.entry(point.load).or_default();
            *(if point.holds() { &mut votes.holds } else { &mut votes.fails }) += 1;
        }
        all
    }

    /// How many runs there were.
    pub fn count(self) -> u32 {
        self.holds + self.fails
    }

    /// Whether the load holds; `None`: not known yet. A failure is believed once it was repeated.
    pub fn decision(self) -> Option<bool> {
        match self {
            Self { fails: 0, .. } => Some(true),
            Self { holds: 0, fails: 2.. } => Some(false),
            votes if votes.count() >= ENOUGH => Some(votes.holds > votes.fails),
            _ => None,
        }
    }
}

impl Bracket {
    /// The bracket that these points give.
    pub fn of(points: &[Point]) -> Self {
        let decided: Vec<(u64, Votes)> =
            Votes::of(points).into_iter().filter(|(_, votes)| votes.decision().is_some()).collect();
        // How many runs contradict a limit below the load with this index.
        let against = |cut: usize| {
            let (below, above) = decided.split_at(cut);
            below.iter().map(|(_, votes)| votes.fails).chain(above.iter().map(|(_, votes)| votes.holds)).sum::<u32>()
        };
        // Of several, the lowest: a load that is reported to hold should hold.
        let cut = (0..=decided.len()).min_by_key(|cut| against(*cut)).unwrap_or(0);
        let load = |(load, votes): &(u64, Votes), holds| (votes.decision() == Some(holds)).then_some(*load);
        Self {
            holds: decided[..cut].iter().rev().find_map(|votes| load(votes, true)),
            fails: decided[cut..].iter().find_map(|votes| load(votes, false)),
        }
    }
}

/// The lowest load above this one that failed, though not often enough to be believed.
pub fn doubted(points: &[Point], holds: u64) -> Option<u64> {
    points.iter().filter(|point| point.is_clean() && !point.holds() && point.load > holds).map(|point| point.load).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::simulation::points;

    fn bracket(runs: &[(u64, bool)]) -> (Option<u64>, Option<u64>) {
        let Bracket { holds, fails } = Bracket::of(&points(runs));
        (holds, fails)
    }

    #[test]
    fn a_failure_is_believed_when_it_was_repeated() {
        let decision = |holds, fails| Votes { holds, fails }.decision();
        assert_eq!([decision(1, 0), decision(0, 1), decision(0, 2)], [Some(true), None, Some(false)]);
        assert_eq!([decision(1, 1), decision(2, 1), decision(1, 2)], [None, Some(true), Some(false)]);
        assert_eq!(decision(2, 2), Some(false), "in doubt it does not hold");
    }

    #[test]
    fn the_limit_is_where_the_fewest_runs_contradict_it() {
        assert_eq!(bracket(&[]), (None, None));
        assert_eq!(bracket(&[(10, true)]), (Some(10), None));
        assert_eq!(bracket(&[(10, false)]), (None, None));
        assert_eq!(bracket(&[(10, false), (10, false)]), (None, Some(10)));
        assert_eq!(bracket(&[(10, true), (20, false), (20, false)]), (Some(10), Some(20)));
        // A bad moment at 10 is outvoted by what held above it.
        let bad_moment = [(10, false), (10, false), (12, true), (12, true), (14, true), (16, false), (16, false)];
        assert_eq!(bracket(&bad_moment), (Some(14), Some(16)));
        // A single good moment above two failures is not believed.
        assert_eq!(bracket(&[(8, true), (10, false), (10, false), (12, true)]), (Some(8), Some(10)));
        // A load that has failed once is unknown.
        assert_eq!(bracket(&[(8, true), (10, false)]), (Some(8), None));
    }
}
