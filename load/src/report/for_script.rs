//! Arguments of a script's `done`.

use onrush_plan::{Dialect, Plan};
use onrush_stats::{FailureRow, OpenLoopStats};

use crate::failure::{describe_cause, wrk_error_class};
use crate::figures::NS_PER_US;
use crate::figures::correct::rewrite_as_wrk;
use crate::figures::rate::counted_requests;
use crate::run::Outcome;
use crate::script::{LedgerRow, ScriptSummary, StatisticsView};

/// The results of a run, as passed to a script. With a schedule, latencies start when requests were due. Without one,
/// in wrk mode, they are corrected as wrk corrects them.
pub fn summary_for_script(plan: &Plan, outcome: &Outcome) -> ScriptSummary {
    let totals = &outcome.totals;
    let measured = StatisticsView::measured(&totals.latency, NS_PER_US);
    let scheduled = totals.open_loop.as_deref().map(scheduled_statistics);
    let mut latency = if let Some(scheduled) = &scheduled {
        scheduled.clone()
    } else if plan.dialect.is_compat() {
        let rewritten = rewrite_as_wrk(plan, outcome);
        let figures = rewritten.summary_us();
        let values = rewritten.value_counts().into_iter().map(|(value, count)| (value as f64, count));
        StatisticsView::new(figures.mean, figures.stdev, values)
    } else {
        measured.clone()
    };
    latency.raw = Some(Box::new(measured));
    latency.scheduled = scheduled.map(Box::new);
    let row = |row: &FailureRow| LedgerRow {
        phase: wrk_error_class(row.phase).to_owned(),
        cause: describe_cause(row.cause, plan),
        count: row.count,
    };
    ScriptSummary {
        duration_us: u64::try_from(outcome.elapsed.as_micros()).unwrap_or(u64::MAX),
        requests: counted_requests(outcome),
        bytes: totals.counters.bytes_received,
        errors: totals.ledger.totals(),
        ledger: totals.ledger.rows().iter().map(row).collect(),
        latency,
        rates: match plan.dialect {
            Dialect::Wrk2 => StatisticsView::binned(&totals.rates),
            Dialect::Native | Dialect::Wrk | Dialect::WrkCmm => StatisticsView::measured(&totals.rates, 1.0),
        },
        is_native: !plan.dialect.is_compat(),
    }
}

/// Latencies of complete responses since requests were due; in wrk2 mode, in wrk2's microseconds.
fn scheduled_statistics(open_loop: &OpenLoopStats<u64>) -> StatisticsView {
    match &open_loop.wrk2 {
        Some(wrk2) => StatisticsView::binned(&wrk2.recorded),
        None => StatisticsView::measured(&open_loop.scheduled, NS_PER_US),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{flawless, plan};

    #[test]
    fn wrk2_script_figures_follow_from_bins() {
        let mut outcome = flawless(1, 1);
        outcome.totals.open_loop.get_or_insert_default().record_response(100_001_000, 1_000_000, true);
        outcome.totals.rates.record(100_001);
        let summary = summary_for_script(&plan(Dialect::Wrk2, "http://h/", 1, 1, 1), &outcome);
        assert_eq!((summary.latency.min, summary.latency.mean, summary.latency.max), (99_968.0, 100_000.0, 99_968.0));
        assert_eq!((summary.rates.min, summary.rates.mean, summary.rates.max), (99_968.0, 100_000.0, 99_968.0));
    }

    #[test]
    fn done_gets_scheduled_and_measured_latencies() {
        for (dialect, mean_us) in [(Dialect::Native, 5_000.4), (Dialect::Wrk, 5_000.4), (Dialect::Wrk2, 5_002.0)] {
            let mut outcome = flawless(1, 1);
            outcome.totals.open_loop.get_or_insert_default().record_response(
                5_000_400,
                1_000_000,
                dialect == Dialect::Wrk2,
            );
            let summary = summary_for_script(&plan(dialect, "http://h/", 1, 1, 1), &outcome);
            assert_eq!(summary.latency.mean, mean_us, "{dialect:?}");
            assert_eq!(summary.latency.raw.map(|raw| raw.mean), Some(1_000.0));
            assert_eq!(summary.latency.scheduled.map(|scheduled| scheduled.mean), Some(mean_us));
        }
    }
}
