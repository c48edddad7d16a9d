//! Notes on times without a response, on stalls of onrush, and on a suspended machine.

use std::cmp::Reverse;
use std::time::Duration;

use onrush_stats::Gap;
use onrush_text::units::{PERCENT_MIN, format_count, format_us, join_list};

use super::facts::{NoteFacts, duration, seconds_ns};
use super::format_seconds;
use crate::figures::NS_PER_US;
use crate::record::{Document, Note, NoteId};

/// Short stalls are noted if they add up to more than this share of the run.
const STALLED_SHARE: f64 = 0.2;
/// Maximum number of silences or stalls that a note names.
const TIMES_NAMED: usize = 3;

/// The note on notable times without a response; `None` if there were none. With a schedule, it also reports for what
/// share of the time the target was unavailable.
pub fn response_gaps(facts: &NoteFacts<'_>) -> Option<Note> {
    let unavailable = facts.document.open_loop.as_ref().and_then(|open_loop| open_loop.unavailable.as_ref());
    if let Some(unavailable) = unavailable {
        let gaps = unavailable.gaps();
        let is_said = !gaps.is_empty() && facts.completed > 0;
        let times = NamedTimes::from_gaps(gaps, facts.elapsed_ns);
        let text = || unavailable_line(&times, unavailable.share, unavailable.due.unwrap_or_default());
        return is_said.then(|| Note::failure(NoteId::Unavailable, text()));
    }
    let gaps: Vec<Gap> =
        facts.silences().iter().map(|silence| gap_from_seconds(silence.start_s, silence.length_s)).collect();
    let text = |gaps| format!("no response {}", NamedTimes::from_gaps(gaps, facts.elapsed_ns).describe_times());
    (!gaps.is_empty()).then(|| Note::failure(NoteId::Silences, text(gaps)))
}

/// The note on stalls of onrush; `None` unless some were long, or they took much of the run together.
pub fn generator_stalls(facts: &NoteFacts<'_>) -> Option<Note> {
    let Document { requests, in_flight, evidence, duration_s, .. } = facts.document;
    let generator = &evidence.as_ref()?.generator;
    let gaps: Vec<Gap> = generator.long_stalls.iter().map(|it| gap_from_seconds(it.start_s, it.length_s)).collect();
    let share = generator.stalled_s / duration_s;
    let matters = !gaps.is_empty() || share > STALLED_SHARE;
    // Requests in flight waited through the stall. With a schedule, requests that became due waited as well.
    let in_flight = in_flight.map_or(0.0, |in_flight| in_flight.mean);
    let due = requests.due.unwrap_or_default() as f64 * share;
    let waited = in_flight * generator.stalls as f64 + due;
    let touched = (waited / facts.completed.max(1) as f64).min(1.0);
    let text = |gaps| {
        stalled_line(
            &NamedTimes::from_gaps(gaps, facts.elapsed_ns),
            share,
            &inflated_latencies(touched, facts.completed),
        )
    };
    matters.then(|| Note::doubt(NoteId::Stalled, text(gaps)))
}

/// The note on a machine that was suspended during the run; `None` if it was not.
pub fn machine_suspension(document: &Document) -> Option<Note> {
    let lasted = duration(document.suspended_s);
    (!lasted.is_zero()).then(|| Note::doubt(NoteId::Suspended, suspended_line(lasted)))
}

/// Converts seconds since measuring began to a gap in nanoseconds.
fn gap_from_seconds(start_s: f64, length_s: f64) -> Gap {
    let from_ns = seconds_ns(start_s);
    Gap { from_ns, until_ns: from_ns + seconds_ns(length_s) }
}

/// The longest gaps, and the number of others.
struct NamedTimes {
    /// The longest gaps, in chronological order.
    longest: Vec<Gap>,
    count: usize,
    /// Measured time in nanoseconds.
    elapsed_ns: u64,
}

impl NamedTimes {
    fn from_gaps(mut gaps: Vec<Gap>, elapsed_ns: u64) -> Self {
        let count = gaps.len();
        gaps.sort_by_key(|gap| Reverse(gap.length_ns()));
        gaps.truncate(TIMES_NAMED);
        gaps.sort_by_key(|gap| gap.from_ns);
        Self { longest: gaps, count, elapsed_ns }
    }

    fn unnamed_count(&self) -> usize {
        self.count - self.longest.len()
    }

    /// The times of the gaps.
    fn describe_times(&self) -> String {
        let text = |gap: &Gap| match gap.until_ns {
            until_ns if until_ns >= self.elapsed_ns => format!("from {} to the end", format_seconds(gap.from_ns)),
            until_ns => format!("from {} to {}", format_seconds(gap.from_ns), format_seconds(until_ns)),
        };
        let times: Vec<String> = self.longest.iter().map(text).collect();
        let others = match self.unnamed_count() {
            0 => String::new(),
            others => format!(" (and in {})", format_count(others as u64, "shorter gap")),
        };
        format!("{}{others}", join_list(&times))
    }
}

fn unavailable_line(times: &NamedTimes, share: f64, due: u64) -> String {
    let (percent, were) = (100.0 * share, if due == 1 { "was" } else { "were" });
    let percent = if percent < 0.05 { "less than 0.1 %".to_owned() } else { format!("{percent:.1} %") };
    let due = format_count(due, "request");
    let due = match times.unnamed_count() {
        0 => format!(", while {due} {were} due"),
        _ => format!("; {due} {were} due in these gaps"),
    };
    format!("the target was unavailable for {percent} of the time: no response {}{due}", times.describe_times())
}

/// The number or share of latencies that a stall inflated.
fn inflated_latencies(touched: f64, latencies: u64) -> String {
    let percent = 100.0 * touched;
    match percent {
        _ if latencies < PERCENT_MIN => {
            let inflated = ((touched * latencies as f64).round() as u64).clamp(1, latencies.max(1));
            format!("the latencies of about {inflated} of {}", format_count(latencies, "response"))
        }
        0.95.. => format!("about {percent:.0} % of the latencies"),
        0.05.. => format!("about {percent:.1} % of the latencies"),
        _ => "less than 0.1 % of the latencies".to_owned(),
    }
}

fn stalled_line(times: &NamedTimes, share: f64, inflated: &str) -> String {
    let times = if times.count == 0 {
        format!("for {:.0} % of the time, in short stalls", 100.0 * share)
    } else {
        times.describe_times()
    };
    format!(
        "onrush itself was stalled {times}: it was suspended or got no processor; this, not the server, inflated \
         {inflated}"
    )
}

fn suspended_line(lasted: Duration) -> String {
    let lasted = format_us(lasted.as_nanos() as f64 / NS_PER_US);
    format!(
        "the machine was suspended for {lasted}: no figure includes that time, but responses may have been lost; keep it \
         awake and measure again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_inflated_latencies_are_counted_when_few() {
        assert_eq!(inflated_latencies(0.35, 14), "the latencies of about 5 of 14 responses");
    }
}
