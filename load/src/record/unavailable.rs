//! How much of a run the target was unavailable, as a document has it.

use onrush_stats::silences::{uncovered_parts, union_of_gaps};
use onrush_stats::{Corrupt, Gap};
use serde::{Deserialize, Serialize};

use super::Document;
use super::sources::{Segment, Sources, nanos};
use crate::figures::unavailable;

/// Rounding errors of seconds as floating-point numbers, in nanoseconds.
const ROUNDING_NS: u64 = 1_000;

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

    /// That of several runs, which lasted `lasted_s` seconds in all; `None` if that of one of them is unknown.
    ///
    /// # Errors
    ///
    /// When the runs of one, or its spans, are impossible.
    pub(super) fn sum(documents: &[&Document], lasted_s: f64) -> Result<Option<Self>, Corrupt> {
        let of = |document: &&Document| document.open_loop.as_ref()?.unavailable.clone();
        let Some(parts) = documents.iter().map(of).collect::<Option<Vec<Self>>>() else { return Ok(None) };
        if let [only] = &parts[..] {
            return Ok(Some(only.clone()));
        }
        let mut runs = Vec::new();
        for document in documents {
            runs.push(Sources::of("", document)?.segments());
        }
        let first_ns = runs.iter().flatten().map(|segment| segment.from_ns).min().unwrap_or(0);
        // As soon as one run gets responses, the target is available.
        let (mut measured, mut available) = (Vec::new(), Vec::new());
        for (segments, part) in runs.iter().zip(&parts) {
            let began_ns = segments.first().map_or(0, |segment| since(first_ns, segment.from_ns));
            let spans: Vec<Gap> = part.spans.iter().map(|span| span.gap(began_ns)).collect();
            let gaps = segments.iter().map(|segment| segment.gap(first_ns));
            available.extend(gaps.clone().flat_map(|gap| uncovered_parts(gap, &spans)));
            measured.extend(gaps);
        }
        let (measured, available) = (union_of_gaps(&measured, &[]), union_of_gaps(&available, &[]));
        let spans: Vec<Gap> = measured.iter().flat_map(|gap| uncovered_parts(*gap, &available)).collect();
        let total_s = spans.iter().map(|span| span.length_ns()).sum::<u64>() as f64 / 1e9;
        Ok(Some(Self {
            share: if lasted_s > 0.0 { (total_s / lasted_s).min(1.0) } else { 0.0 },
            longer_than_s: parts.iter().map(|part| part.longer_than_s).fold(0.0, f64::max),
            due: None,
            times: Vec::new(),
            spans: spans.iter().map(Span::of).collect(),
        }))
    }

    /// The times without a response of which the spans are parts.
    pub fn gaps(&self) -> Vec<Gap> {
        let times = if self.times.is_empty() { &self.spans } else { &self.times };
        times.iter().map(|span| span.gap(0)).collect()
    }

    /// Checks that the spans are in order and within a run that lasted so many seconds from its beginning to its end, and
    /// that the share is theirs of the time that was measured, in seconds.
    ///
    /// # Errors
    ///
    /// When they are not, or a figure is negative, zero included.
    pub(super) fn check(&self, lasted_s: f64, measured_s: f64) -> Result<(), Corrupt> {
        let mut reached_ns = 0;
        let are_in_order = self.spans.iter().all(|span| {
            let Gap { from_ns, until_ns } = span.gap(0);
            from_ns + ROUNDING_NS >= std::mem::replace(&mut reached_ns, until_ns)
        });
        let fit = are_in_order && reached_ns <= nanos(lasted_s).saturating_add(ROUNDING_NS);
        let figures = self.spans.iter().flat_map(|span| [span.start_s, span.length_s]);
        let are_positive = figures.chain([self.share, self.longer_than_s]).all(f64::is_sign_positive);
        let total_s = self.spans.iter().map(|span| span.length_s).sum::<f64>().min(measured_s);
        let slack_s = ROUNDING_NS as f64 / 1e9 * (self.spans.len() + 1) as f64;
        let is_theirs = (self.share * measured_s - total_s).abs() <= slack_s;
        if fit && are_positive && self.share <= 1.0 && is_theirs { Ok(()) } else { Err(Corrupt::Figures) }
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

impl Segment {
    /// It, in nanoseconds since `first_ns`.
    fn gap(&self, first_ns: u128) -> Gap {
        Gap { from_ns: since(first_ns, self.from_ns), until_ns: since(first_ns, self.until_ns) }
    }
}

fn since(first_ns: u128, at_ns: u128) -> u64 {
    u64::try_from(at_ns.saturating_sub(first_ns)).unwrap_or(u64::MAX)
}
