//! The unavailability of the target in a scheduled run: requests were due, and no response arrived for far longer than
//! usual.

use std::time::Duration;

use onrush_plan::Plan;
use onrush_stats::Gap;
use onrush_stats::silences::{GAP_MIN_NS, uncovered_parts, union_of_gaps};

use super::silences::notable_silences;
use crate::run::{DueGap, Outcome, nanos};

/// A target is unavailable if it sends no response for more than this many times the usual latency.
const USUAL_FACTOR: u64 = 10;

/// The times in which a run's target was unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// Unavailable times in order, each from the first due request to the next response.
    pub times: Vec<DueGap>,
    /// The parts of `times` that count: onrush was neither stalled nor held up by its script, and requests could be due
    /// and sent.
    pub spans: Vec<Gap>,
    /// Only longer times are recorded. In nanoseconds.
    pub longer_than_ns: u64,
    /// Length of the measured part of the run, in nanoseconds.
    pub elapsed_ns: u64,
    /// Number of due requests in the whole run, which is lower if threads ended early.
    pub due_in_all: u64,
}

impl Unavailability {
    /// The unavailability of a run's target; `None` without a schedule, or if the gaps between responses are unknown.
    pub fn from_outcome(plan: &Plan, outcome: &Outcome) -> Option<Self> {
        let due_gaps = outcome.due_gaps.as_deref()?;
        let longer_than_ns = usual_latency_ns(outcome).saturating_mul(USUAL_FACTOR).max(GAP_MIN_NS);
        let elapsed_ns = nanos(outcome.elapsed);
        let excused = excused_gaps(plan, outcome, elapsed_ns);
        let parts = due_gaps.iter().map(|it| (*it, uncovered_parts(it.gap, &excused)));
        let is_long = |(_, parts): &(DueGap, Vec<Gap>)| total_ns(parts) > longer_than_ns;
        let (times, spans): (Vec<DueGap>, Vec<Vec<Gap>>) = parts.filter(is_long).unzip();
        let due_in_all = outcome.totals.open_loop.as_deref().map_or(u64::MAX, |open_loop| open_loop.due);
        Some(Self { times, spans: spans.concat(), longer_than_ns, elapsed_ns, due_in_all })
    }

    /// Share (0 to 1) of the measured time for which the target was unavailable.
    pub fn share(&self) -> f64 {
        (total_ns(&self.spans) as f64 / self.elapsed_ns as f64).min(1.0)
    }

    /// Number of requests that were due while the target was unavailable.
    pub fn due(&self) -> u64 {
        self.times.iter().map(|time| time.due).sum::<u64>().min(self.due_in_all)
    }
}

/// Total time without a response, counting only stretches far longer than usual in which requests were due or, without
/// a schedule, in flight.
pub fn unanswered_time(plan: &Plan, outcome: &Outcome) -> Duration {
    let ns = match Unavailability::from_outcome(plan, outcome) {
        Some(unavailable) => total_ns(&unavailable.spans),
        None => notable_silences(plan, outcome).into_iter().map(|(_, heard_ns)| heard_ns).sum(),
    };
    Duration::from_nanos(ns)
}

/// The median latency in nanoseconds: of all responses, or of those unaffected by a time without responses and its
/// backlog, whichever is lower.
fn usual_latency_ns(outcome: &Outcome) -> u64 {
    let held = outcome.totals.open_loop.as_deref().and_then(|open_loop| open_loop.held.as_deref());
    let latency = &outcome.totals.latency;
    let free = held.map(|held| latency.without_part(held)).filter(|free| free.count() > 0);
    let all_ns = latency.percentile(50.0);
    free.map_or(all_ns, |free| free.percentile(50.0).min(all_ns))
}

/// The times in which missing responses do not count against the target: onrush was stalled or held up by its script,
/// or the stages had no due requests or no connections.
fn excused_gaps(plan: &Plan, outcome: &Outcome, elapsed_ns: u64) -> Vec<Gap> {
    let idle = plan.schedule.as_ref().map_or_else(Vec::new, |schedule| schedule.idle_times());
    let empty = plan.levels.as_ref().map_or_else(Vec::new, |levels| levels.times_without_connections(0, elapsed_ns));
    let of_plan = idle.into_iter().chain(empty).map(|(from_ns, until_ns)| Gap { from_ns, until_ns });
    union_of_gaps(&union_of_gaps(&outcome.stalls, &outcome.in_script), &of_plan.collect::<Vec<_>>())
}

fn total_ns(gaps: &[Gap]) -> u64 {
    gaps.iter().map(|gap| gap.length_ns()).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::Dialect;

    use super::*;
    use crate::fixtures::{flawless, plan, schedule};

    const MS: u64 = 1_000_000;

    fn gap(from_ms: u64, until_ms: u64) -> Gap {
        Gap { from_ns: from_ms * MS, until_ns: until_ms * MS }
    }

    /// A run of ten seconds at a rate, with due requests and no responses at these times, in milliseconds.
    fn run(times_ms: &[(u64, u64)]) -> (Plan, Outcome) {
        let mut outcome = flawless(1_000, 1);
        outcome.elapsed = Duration::from_secs(10);
        let due_gaps = times_ms.iter().map(|(from_ms, until_ms)| DueGap { gap: gap(*from_ms, *until_ms), due: 7 });
        outcome.due_gaps = Some(due_gaps.collect());
        let plan = Plan { schedule: Some(schedule(100)), ..plan(Dialect::Native, "http://127.0.0.1/", 10, 1, 1) };
        (plan, outcome)
    }

    #[test]
    fn only_unusually_long_silences_count() {
        let (plan, mut outcome) = run(&[(0, 200), (1_000, 1_201), (3_000, 4_000), (9_000, 10_000)]);
        (outcome.stalls, outcome.in_script) = (vec![gap(3_100, 3_950)], vec![gap(9_500, 9_900)]);
        let found = Unavailability::from_outcome(&plan, &outcome).unwrap();
        assert_eq!(found.spans, [gap(1_000, 1_201), gap(9_000, 9_500), gap(9_900, 10_000)]);
        assert_eq!((found.times.len(), found.due(), found.longer_than_ns), (2, 14, 200 * MS));
        assert!((found.share() - 0.0801).abs() < 1e-9, "{}", found.share());
    }

    #[test]
    fn usual_latency_excludes_held_up_responses() {
        let limit_ms = |slow: u64, held: u64| {
            let (plan, mut outcome) = run(&[]);
            outcome.totals.latency.record_many(2_000 * MS, slow);
            let open_loop = outcome.totals.open_loop.get_or_insert_default();
            open_loop.held.get_or_insert_default().record_many(2_000 * MS, held);
            // Bins are 0.1 % wide.
            (Unavailability::from_outcome(&plan, &outcome).unwrap().longer_than_ns + 20 * MS) / (100 * MS) * 100
        };
        assert_eq!([(999, 0), (3_000, 0), (3_000, 2_990)].map(|(slow, held)| limit_ms(slow, held)), [200, 20_000, 200]);
    }

    #[test]
    fn unknown_unavailability_is_no_share() {
        let (plan, mut outcome) = run(&[(0, 10_000)]);
        assert_eq!(Unavailability::from_outcome(&plan, &outcome).map(|found| found.share()), Some(1.0));
        outcome.due_gaps = None;
        assert_eq!(Unavailability::from_outcome(&plan, &outcome), None);
    }
}
