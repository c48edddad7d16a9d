//! The silences of a run: times without any response.

use onrush_plan::Plan;
use onrush_stats::silences::{GAP_MIN_NS, uncovered_parts};
use onrush_stats::{Distribution, Gap};

use crate::run::Outcome;

/// A silence is notable if it takes at least this multiple of the usual latency.
const SILENCE_FACTOR: u64 = 10;

/// The notable silences of a run, each with the nanoseconds during which onrush could have noticed a response.
pub fn notable_silences(plan: &Plan, outcome: &Outcome) -> Vec<(Gap, u64)> {
    let totals = &outcome.totals;
    if plan.once || totals.counters.completed == 0 {
        return Vec::new();
    }
    let least_ns = min_silence_ns(&totals.latency, totals.open_loop.is_some());
    let with_length = outcome.silences.iter().map(|gap| (*gap, observable_gap_ns(plan, outcome, *gap)));
    with_length.filter(|(_, heard_ns)| *heard_ns >= least_ns).collect()
}

/// Length in nanoseconds from which a silence is notable in a run with this latency. With a schedule, the usual latency
/// is the median, otherwise the 99th percentile.
pub fn min_silence_ns(latency: &Distribution<u64>, has_schedule: bool) -> u64 {
    // In a closed loop, one silence means one slow response per connection. With a schedule, it may mean many.
    let ordinary_percent = if has_schedule { 50.0 } else { 99.0 };
    latency.percentile(ordinary_percent).saturating_mul(SILENCE_FACTOR).max(GAP_MIN_NS)
}

/// Nanoseconds of a gap during which onrush could have noticed a response: it was neither stalled nor held up by its
/// script, and the current stage had connections.
pub fn observable_gap_ns(plan: &Plan, outcome: &Outcome, gap: Gap) -> u64 {
    let not_stalled = uncovered_parts(gap, &outcome.stalls).into_iter();
    let free_ns: u64 = not_stalled.flat_map(|part| uncovered_parts(part, &outcome.in_script)).map(Gap::length_ns).sum();
    let empty_ns =
        plan.levels.as_ref().map_or(0, |levels| levels.time_without_connections_ns(gap.from_ns, gap.until_ns));
    free_ns.saturating_sub(empty_ns)
}
