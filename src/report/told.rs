//! What the `done` of a script is told.

use super::failure::{class, why};
use super::{NS_PER_US, rewritten};
use crate::plan::Plan;
use crate::run::Outcome;
use crate::script::{LedgerRow, Summary, View};
use crate::stats::Row;

/// The results as a script sees them: where wrk is imitated with the latencies that it would have.
pub fn told(plan: &Plan, outcome: &Outcome) -> Summary {
    let totals = &outcome.totals;
    let measured = View::measured(&totals.latency, NS_PER_US);
    let mut latency = if plan.dialect.is_compat() {
        let rewritten = rewritten(plan, outcome);
        let figures = rewritten.figures();
        let values = rewritten.values().into_iter().map(|(value, count)| (value as f64, count));
        View::new(figures.mean, figures.stdev, values)
    } else {
        measured.clone()
    };
    latency.raw = Some(Box::new(measured));
    let row = |row: &Row| LedgerRow {
        phase: class(row.phase).to_owned(),
        cause: why(row.cause, plan.timeout),
        count: row.count,
    };
    Summary {
        duration_us: u64::try_from(outcome.elapsed.as_micros()).unwrap_or(u64::MAX),
        requests: totals.counters.completed,
        bytes: totals.counters.bytes_received,
        errors: totals.ledger.totals(),
        ledger: totals.ledger.rows().iter().map(row).collect(),
        latency,
        rates: View::measured(&totals.rates, 1.0),
    }
}
