//! Conditions that every result must meet when it is read.
//!
//! Figures follow from the result, so they cannot contradict it. Its own parts can contradict each other if the file was
//! damaged or edited.

use std::collections::HashSet;

use onrush_stats::latencies::bin_of;
use onrush_stats::timeline::RowFigures;
use onrush_stats::{ByClass, Corrupt, Distribution, HIGHEST, Latencies, OpenLoopStats};
use thiserror::Error;

use super::result::{RunFacts, RunResult};
use crate::run::machines::figures::Bound;

/// Largest count.
const MOST: u64 = 1 << 53;
/// Longest plausible run, in nanoseconds: a century.
const ELAPSED_MAX_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// Why this cannot be the result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Contradiction {
    /// A fact is impossible.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// Two sums cannot both be true.
    #[error("its figures contradict each other: {one} is {is} and {other} is {was}")]
    Sums {
        /// Name of a sum.
        one: &'static str,
        /// Its value.
        is: u128,
        /// Name of the other sum.
        other: &'static str,
        /// Its value.
        was: u128,
    },
}

impl RunResult {
    /// Checks that this can be the result of a run, or of several added up.
    ///
    /// # Errors
    ///
    /// If a fact is impossible or two parts contradict each other.
    pub fn check(&self) -> Result<(), Contradiction> {
        let are_in_order = self.runs.windows(2).all(|pair| pair[0].order() <= pair[1].order());
        let stages = self.runs.iter().map(|run| run.stages.len()).max().unwrap_or(0);
        let has_stages = self.sums.stages.as_ref().is_none_or(|sums| sums.len() <= stages);
        let (mut names, mut failures) = (HashSet::new(), HashSet::new());
        let are_distinct = self.sums.names.iter().all(|sum| names.insert(&sum.name))
            && self.sums.ledger.iter().all(|sum| failures.insert((&sum.phase, &sum.cause)));
        let are_possible = are_in_order && has_stages && are_distinct && self.runs.iter().all(RunFacts::is_possible);
        if self.runs.is_empty() || !are_possible {
            return Err(Corrupt::Figures.into());
        }
        // Only possible sums can be added up below.
        if !Bound::default().admit_figures(&self.sums, 1) {
            return Err(Corrupt::Figures.into());
        }
        let totals = &self.sums.totals;
        let counters = &totals.counters;
        let completed = counters.completed;
        let rows = |of: fn(&RowFigures) -> u64| total(self.runs.iter().flat_map(|run| &run.rows).map(of));
        equal(
            ("the sum of the statuses", total(totals.statuses.iter().map(|(_, count)| count))),
            ("completed", completed),
        )?;
        let open_loop = totals.open_loop.as_deref();
        let of_schedule = |of: fn(&OpenLoopStats<u64>) -> u64| open_loop.map_or(0, of);
        for (name, sum, whole) in [
            ("started in rows", rows(|row| row.started), ("started", counters.started)),
            ("completed in rows", rows(|row| row.completed), ("completed", completed)),
            ("failed in rows", rows(|row| row.failed), ("failed", counters.failed)),
            ("bytes sent in rows", rows(|row| row.bytes_sent), ("bytes sent", counters.bytes_sent)),
            ("bytes received in rows", rows(|row| row.bytes_received), ("bytes received", counters.bytes_received)),
            ("latencies in rows", rows(|row| row.latency.count()), ("latencies", totals.latency.count())),
            (
                "scheduled latencies in rows",
                rows(|row| row.scheduled.count()),
                ("scheduled latencies", of_schedule(|it| it.scheduled.count())),
            ),
            ("late in rows", rows(|row| row.late), ("late", of_schedule(|it| it.late))),
            ("dropped in rows", rows(|row| row.dropped), ("dropped", of_schedule(|it| it.dropped))),
            ("errors in rows", rows(|row| row.errors.total()), ("errors", self.sums.errors.total())),
        ] {
            equal((name, sum), whole)?;
        }
        at_most(("erroneous in rows", rows(|row| row.erroneous)), ("possible requests", MOST.into()))?;
        equal(
            ("failures", total(self.sums.ledger.iter().map(|failures| failures.count))),
            ("errors", self.sums.errors.total()),
        )?;
        for (name, part) in [("counted", self.sums.counted), ("unsuccessful", counters.unsuccessful)] {
            at_most((name, part.into()), ("completed", completed.into()))?;
        }
        let of_names = total(self.sums.names.iter().map(|sum| sum.outcomes.latency.count()));
        at_most(("the sum of the names", of_names), ("completed", completed.into()))?;
        for class in ByClass::<u64>::CLASSES {
            let latencies = totals.by_class.as_deref().and_then(|by_class| by_class.latencies_of_class(class));
            let of_class = latencies.map_or(0, Distribution::count).into();
            at_most(("latencies of a class", of_class), ("its statuses", totals.statuses.class_total(class).into()))?;
        }
        let begun = total([counters.started, counters.carried]);
        let ended = total([completed, counters.failed, counters.abandoned, counters.open_at_end]);
        at_most(("completed + failed + abandoned + open", ended), ("started + carried", begun))
    }
}

impl RunFacts {
    fn is_possible(&self) -> bool {
        let is_row = |row: &RowFigures| [&row.latency, &row.scheduled].into_iter().all(are_possible);
        self.elapsed_ns <= ELAPSED_MAX_NS && self.has_possible_rows() && self.rows.iter().all(is_row)
    }
}

/// True if latencies can have these bins, this sum and this maximum.
fn are_possible(Latencies { bins, sum_ns, max_ns }: &Latencies) -> bool {
    let are_bins =
        bins.is_sorted_by(|one, next| one.0 < next.0) && bins.last().is_none_or(|(bin, _)| *bin <= bin_of(HIGHEST));
    let count = total(bins.iter().map(|(_, count)| *count));
    are_bins && count <= MOST.into() && *max_ns <= HIGHEST && *sum_ns <= count * u128::from(*max_ns)
}

/// A sum that cannot overflow.
fn total(counts: impl IntoIterator<Item = u64>) -> u128 {
    counts.into_iter().map(u128::from).sum()
}

fn equal((one, is): (&'static str, u128), (other, was): (&'static str, u64)) -> Result<(), Contradiction> {
    let was = was.into();
    if is == was { Ok(()) } else { Err(Contradiction::Sums { one, is, other, was }) }
}

fn at_most((one, is): (&'static str, u128), (other, was): (&'static str, u128)) -> Result<(), Contradiction> {
    if is <= was { Ok(()) } else { Err(Contradiction::Sums { one, is, other, was }) }
}
