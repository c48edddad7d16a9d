//! How much of a run the target was unavailable, as a document has it.

use std::time::Duration;

use onrush_stats::Gap;
use onrush_stats::silences::{uncovered_parts, union_of_gaps};
use serde::{Deserialize, Serialize};

use super::RunFacts;
use super::sources::nanos;
use crate::figures::unavailable;

/// How much of a run with a schedule the target was unavailable: requests were due, and far longer than usual no response
/// came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Unavailable {
    /// The share (0 to 1) of the measured time.
    pub share: f64,
    /// Shorter times without a response do not count: 0.2 seconds, or ten times the usual latency if that is more. In a
    /// sum: the largest of its runs.
    pub longer_than_s: f64,
    /// How many requests were due meanwhile; left out of sums, in which it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// When it was unavailable, in order. In a sum: to all runs that took place.
    pub spans: Vec<Span>,
    /// The whole times without a response of which these are the parts that count, where they are longer: onrush was stalled,
    /// or no request could be due. Left out of sums.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Span>,
}

/// A time in which the target was unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Span {
    /// When it began, in seconds since measuring began: when the first request was due.
    pub start_s: f64,
    /// How long it lasted, in seconds.
    pub length_s: f64,
}

impl Unavailable {
    pub(super) fn of(measured: &unavailable::Unavailability) -> Self {
        let times: Vec<Gap> = measured.times.iter().map(|time| time.gap).collect();
        Self {
            share: measured.share(),
            longer_than_s: measured.longer_than_ns as f64 / 1e9,
            due: Some(measured.due()),
            times: if times == measured.spans { Vec::new() } else { times.iter().map(Span::of).collect() },
            spans: measured.spans.iter().map(Span::of).collect(),
        }
    }

    /// For how many seconds of a part of the run it was unavailable.
    pub fn within_s(&self, start_s: f64, length_s: f64) -> f64 {
        let part = Span { start_s, length_s }.gap(0);
        let within_ns = |span: &Span| {
            let Gap { from_ns, until_ns } = span.gap(0);
            until_ns.min(part.until_ns).saturating_sub(from_ns.max(part.from_ns))
        };
        self.spans.iter().map(within_ns).sum::<u64>() as f64 / 1e9
    }

    /// The unavailability during several runs, which took place in `elapsed`; `None` if that of one is unknown.
    pub(super) fn of_runs(runs: &[RunFacts], elapsed: Duration) -> Option<Self> {
        let parts: Vec<&Self> =
            runs.iter().map(|run| run.open_loop.as_ref()?.unavailable.as_ref()).collect::<Option<_>>()?;
        if let [only] = parts[..] {
            return Some(only.clone());
        }
        let first_ns = runs.first().map_or(0, RunFacts::start_ns);
        // As soon as one run gets responses, the target is available.
        let (mut measured, mut available) = (Vec::new(), Vec::new());
        for (run, part) in runs.iter().zip(&parts) {
            let from_ns = u64::try_from(run.start_ns() - first_ns).unwrap_or(u64::MAX);
            let gap = Gap { from_ns, until_ns: from_ns.saturating_add(run.elapsed_ns) };
            let spans: Vec<Gap> = part.spans.iter().map(|span| span.gap(from_ns)).collect();
            available.extend(uncovered_parts(gap, &spans));
            measured.push(gap);
        }
        measured.sort_by_key(|gap| gap.from_ns);
        available.sort_by_key(|gap| gap.from_ns);
        let (measured, available) = (union_of_gaps(&measured, &[]), union_of_gaps(&available, &[]));
        let spans: Vec<Gap> = measured.iter().flat_map(|gap| uncovered_parts(*gap, &available)).collect();
        let total_s = spans.iter().map(|span| span.length_ns()).sum::<u64>() as f64 / 1e9;
        Some(Self {
            share: if elapsed.is_zero() { 0.0 } else { (total_s / elapsed.as_secs_f64()).min(1.0) },
            longer_than_s: parts.iter().map(|part| part.longer_than_s).fold(0.0, f64::max),
            due: None,
            times: Vec::new(),
            spans: spans.iter().map(Span::of).collect(),
        })
    }

    /// The times without a response of which the spans are parts.
    pub fn gaps(&self) -> Vec<Gap> {
        let times = if self.times.is_empty() { &self.spans } else { &self.times };
        times.iter().map(|span| span.gap(0)).collect()
    }
}

impl Span {
    fn of(gap: &Gap) -> Self {
        Self { start_s: gap.from_ns as f64 / 1e9, length_s: gap.length_ns() as f64 / 1e9 }
    }

    /// It, in nanoseconds since `later_ns` before its run began.
    fn gap(self, later_ns: u64) -> Gap {
        let from_ns = nanos(self.start_s).saturating_add(later_ns);
        Gap { from_ns, until_ns: from_ns.saturating_add(nanos(self.length_s)) }
    }
}
