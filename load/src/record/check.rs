//! What must be true of every result that is read.
//!
//! Figures follow from the result, so they cannot contradict it. Its own parts can contradict each other if the file was
//! damaged or edited.

use onrush_stats::latencies::bin_of;
use onrush_stats::timeline::RowFigures;
use onrush_stats::{Corrupt, HIGHEST, Latencies};
use thiserror::Error;

use super::result::{RunFacts, RunResult};

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
        if self.runs.is_empty() || !are_in_order || !self.runs.iter().all(RunFacts::is_possible) {
            return Err(Corrupt::Figures.into());
        }
        let totals = &self.sums.totals;
        let counters = &totals.counters;
        let completed = counters.completed;
        let mut rows = RowFigures::default();
        self.runs.iter().flat_map(|run| &run.rows).for_each(|row| rows += row);
        equal(
            ("the sum of the statuses", total(totals.statuses.iter().map(|(_, count)| count))),
            ("completed", completed),
        )?;
        for (name, sum, whole) in [
            ("started in rows", rows.started, ("started", counters.started)),
            ("completed in rows", rows.completed, ("completed", completed)),
            ("bytes sent in rows", rows.bytes_sent, ("bytes sent", counters.bytes_sent)),
            ("bytes received in rows", rows.bytes_received, ("bytes received", counters.bytes_received)),
            ("latencies in rows", rows.latency.count(), ("latencies", totals.latency.count())),
            ("errors in rows", rows.errors.total(), ("errors", self.sums.errors.total())),
        ] {
            equal((name, sum.into()), whole)?;
        }
        equal(
            ("failures", total(self.sums.ledger.iter().map(|failures| failures.count))),
            ("errors", self.sums.errors.total()),
        )?;
        for (name, part) in [
            ("counted", self.sums.counted),
            ("unsuccessful", counters.unsuccessful),
            ("the sum of the names", self.sums.names.iter().map(|sum| sum.outcomes.latency.count()).sum()),
        ] {
            at_most((name, part.into()), ("completed", completed.into()))?;
        }
        let begun = total([counters.started, counters.carried]);
        let ended = total([completed, counters.failed, counters.abandoned, counters.open_at_end]);
        at_most(("completed + failed + abandoned + open", ended), ("started + carried", begun))
    }
}

impl RunFacts {
    fn is_possible(&self) -> bool {
        let is_long = |row: &RowFigures| [&row.latency, &row.scheduled].into_iter().all(are_bins);
        self.elapsed_ns <= ELAPSED_MAX_NS && self.has_possible_rows() && self.rows.iter().all(is_long)
    }
}

fn are_bins(Latencies { bins, .. }: &Latencies) -> bool {
    bins.is_sorted_by(|one, next| one.0 < next.0) && bins.last().is_none_or(|(bin, _)| *bin <= bin_of(HIGHEST))
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
