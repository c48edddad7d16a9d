//! The bounds on a percentile of the latency since the due time, and the reasons for them.

use std::fmt;
use std::time::Duration;

use onrush_plan::schedule::Arrivals;
use onrush_plan::{Plan, Schedule};
use onrush_text::units;

use super::NS_PER_US;
use crate::run::Outcome;

/// The number of requests in flight at the end is ordinary up to this multiple of the expected number. If a target
/// cannot keep up, it reaches twice the number implied by the mean latency.
const ORDINARY: f64 = 1.5;
/// Random variation adds at most this many requests.
const ORDINARY_FEW: u64 = 10;
/// A percentile counts as known if its bounds differ by at most this share.
const KNOWN: f64 = 0.01;

/// The bounds of a percentile, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentileBounds {
    /// The lower bound, which is also what reports print.
    pub lower_ns: u64,
    /// The percentile if failed, abandoned and dropped requests had taken forever. Unless the load was steady, this
    /// also applies to requests still open when the run stopped. `None` if the percentile would be infinite.
    pub upper_ns: Option<u64>,
}

impl PercentileBounds {
    /// True if the bounds are so close that a single figure is enough.
    pub fn is_known(&self) -> bool {
        self.upper_ns.is_some_and(|upper_ns| upper_ns as f64 <= self.lower_ns as f64 * (1.0 + KNOWN))
    }

    /// The bounds and the reason why they differ: `at least 1.20ms, with no upper bound, because 10 % of the requests
    /// due failed`.
    pub fn with_reason(&self, missing: UnboundedRequests) -> String {
        let (bounds, why) = (self.to_string(), missing.to_string());
        let bounds = if self.upper_ns.is_none() { bounds + ", with no upper bound" } else { bounds };
        let is_one = bounds == Self { upper_ns: Some(self.lower_ns), ..*self }.to_string();
        if is_one || why.is_empty() { bounds } else { format!("{bounds}, because {why}") }
    }
}

impl fmt::Display for PercentileBounds {
    /// Formats as `1.20ms`, `between 1.20ms and 3.00ms`, or `at least 1.20ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ns: u64| units::format_us(ns as f64 / NS_PER_US);
        let lower = text(self.lower_ns);
        match self.upper_ns.map(text) {
            Some(upper) if upper == lower => f.write_str(&lower),
            Some(upper) => write!(f, "between {lower} and {upper}"),
            None => write!(f, "at least {lower}"),
        }
    }
}

/// Due requests whose latency has no upper bound, counted by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnboundedRequests {
    /// All due requests, including those with a known latency.
    pub due: u64,
    /// Requests that failed, and therefore have no latency.
    pub failed: u64,
    /// Requests abandoned after a time limit.
    pub abandoned: u64,
    /// Requests that were dropped because they would have been sent too late (`--max-late`).
    pub dropped: u64,
    /// Requests that were still unsent at the end.
    pub unsent: u64,
    /// Requests in flight at the end that are more, or older, than the responses explain.
    pub hanging: u64,
}

impl fmt::Display for UnboundedRequests {
    /// Formats as `10 % of the requests due failed and 2.5 % were not sent by the end`, or `5 of 14 requests due were
    /// dropped`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = [
            (self.failed, "failed"),
            (self.abandoned, "were abandoned"),
            (self.dropped, "were dropped"),
            (self.unsent, "were not sent by the end"),
            (self.hanging, "had no response by the end"),
        ];
        let ends = ends.into_iter().filter(|(count, _)| *count > 0).enumerate();
        let words = ends.map(|(index, (count, end))| {
            let share = units::format_share(count, self.due);
            match index {
                0 if share.ends_with('%') => format!("{share} of the requests due {end}"),
                0 => format!("{share} requests due {end}"),
                _ => format!("{share} {end}"),
            }
        });
        f.write_str(&units::join_list(&words.collect::<Vec<_>>()))
    }
}

/// True if a scheduled run ended with more requests in flight than its latencies explain, which happens if the target
/// cannot keep up.
pub fn is_backlog(plan: &Plan, outcome: &Outcome) -> bool {
    let (Some(schedule), Some(open_loop)) = (&plan.schedule, outcome.totals.open_loop.as_deref()) else { return false };
    let scheduled = &open_loop.scheduled;
    let (Some(mean_ns), Some(max_ns)) = (scheduled.mean(), scheduled.max()) else { return false };
    // Requests that are older count as hanging.
    let slowest_ns = (max_ns as f64 * ORDINARY) as u64;
    let young = open_loop.open.iter().flat_map(|ages| ages.values()).filter(|(age_ns, _)| *age_ns <= slowest_ns);
    let young: u64 = young.map(|(_, count)| count).sum();
    let per_s = recent_due_rate(schedule, outcome.elapsed, Duration::from_nanos(slowest_ns));
    young as f64 > usual_peak_in_flight(per_s, mean_ns, send_group_size(plan, outcome))
}

/// The mean rate of due requests in the last `moments` of a run, per second; zero if `moments` or the run has no
/// length.
pub(super) fn recent_due_rate(schedule: &Schedule, elapsed: Duration, moments: Duration) -> f64 {
    let from = elapsed.saturating_sub(moments);
    if from < elapsed { schedule.per_second_between(from, elapsed) } else { 0.0 }
}

/// The largest usual number of requests in flight at this rate and mean latency, if `together` requests are sent at a
/// time.
pub fn usual_peak_in_flight(per_s: f64, mean_ns: f64, together: u64) -> f64 {
    per_s * mean_ns / 1e9 * ORDINARY + (ORDINARY_FEW + together) as f64
}

/// Number of requests that each thread sends at a time: its part of a burst, or a batch of the script.
pub fn send_group_size(plan: &Plan, outcome: &Outcome) -> u64 {
    match plan.schedule.as_ref().map(|schedule| (schedule.arrivals, schedule.part.of)) {
        Some((Arrivals::Burst(burst), parts)) => burst.get().div_ceil(parts),
        _ => outcome.batch as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn percentile_bounds_name_their_cause() {
        let words = |lower_ns, upper_ns| PercentileBounds { lower_ns, upper_ns }.to_string();
        assert_eq!(words(514_000, None), "at least 514.00us");
        assert_eq!(words(2 * MS, Some(3 * MS)), "between 2.00ms and 3.00ms");
        assert_eq!(words(2 * MS, Some(2 * MS + 1)), "2.00ms");
        let missing = UnboundedRequests { due: 1_000, failed: 100, ..UnboundedRequests::default() };
        assert_eq!(missing.to_string(), "10 % of the requests due failed");
        let between = |upper_ns| PercentileBounds { lower_ns: MS, upper_ns }.with_reason(missing);
        assert_eq!(between(None), "at least 1.00ms, with no upper bound, because 10 % of the requests due failed");
        assert_eq!(between(Some(2 * MS)), "between 1.00ms and 2.00ms, because 10 % of the requests due failed");
        assert_eq!(between(Some(MS)), "1.00ms");
        let missing = UnboundedRequests { due: 400, failed: 1, unsent: 10, hanging: 3, ..UnboundedRequests::default() };
        assert_eq!(
            missing.to_string(),
            "0.25 % of the requests due failed, 2.5 % were not sent by the end and 0.75 % had no response by the end"
        );
        assert_eq!(
            UnboundedRequests { due: 14, dropped: 5, ..UnboundedRequests::default() }.to_string(),
            "5 of 14 requests due were dropped"
        );
    }
}
