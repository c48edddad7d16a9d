//! The silences of a run: times without any response.

use onrush_plan::Plan;
use onrush_stats::silences::{GAP_MIN_NS, common};
use onrush_stats::{Gap, Totals};

use crate::run::Outcome;

/// A silence is worth a note when it is at least this many times as long as responses usually took.
const SILENCE_FACTOR: u64 = 10;

/// The silences that stand out, each with how long, in nanoseconds, onrush could have noticed a response during it.
pub fn silences(plan: &Plan, outcome: &Outcome) -> Vec<(Gap, u64)> {
    let Totals { latency, counters, .. } = &outcome.totals;
    if plan.once || counters.completed == 0 {
        return Vec::new();
    }
    // In a closed loop a silence means one slow response per connection; with a schedule there may be many.
    let ordinary_percent = if outcome.totals.open_loop.is_some() { 50.0 } else { 99.0 };
    let ordinary_ns = latency.percentile(ordinary_percent).saturating_mul(SILENCE_FACTOR);
    // While onrush was stalled, or stages had no connections, it could notice no response.
    let heard = |gap: &Gap| {
        let stalled_ns: u64 = common(&outcome.stalls, &[*gap]).into_iter().map(Gap::length_ns).sum();
        let empty_ns = plan.levels.as_ref().map_or(0, |levels| levels.empty_ns(gap.from_ns, gap.until_ns));
        gap.length_ns().saturating_sub(stalled_ns + empty_ns)
    };
    let with_length = outcome.silences.iter().map(|gap| (*gap, heard(gap)));
    with_length.filter(|(_, heard_ns)| *heard_ns >= ordinary_ns.max(GAP_MIN_NS)).collect()
}
