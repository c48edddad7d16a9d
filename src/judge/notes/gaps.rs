//! Notes on times without a response, and on times in which onrush or the machine stood still.

use std::cmp::Reverse;
use std::time::Duration;

use onrush_plan::Plan;
use onrush_stats::silences::GAP_MIN_NS;
use onrush_stats::{Gap, Totals};
use onrush_text::units::{PERCENT_MIN, counted, listed, time_us};

use super::seconds;
use crate::figures::NS_PER_US;
use crate::figures::unavailable::Unavailable;
use crate::record::{Note, NoteId};
use crate::run::{Outcome, nanos};

/// Short stalls are worth a note above this share of the run.
const STALLED_SHARE: f64 = 0.2;
/// Maximum number of silences or stalls that are named.
const TIMES_NAMED: usize = 3;

/// The note on the times without a response: whether the target was unavailable, or without a schedule only when they
/// were.
pub fn without_response(plan: &Plan, outcome: &Outcome, silences: &[(Gap, u64)]) -> Option<Note> {
    let elapsed_ns = nanos(outcome.elapsed);
    if let Some(unavailable) = Unavailable::of(plan, outcome) {
        let (share, due) = (unavailable.share(), unavailable.due());
        let gaps: Vec<Gap> = unavailable.times.iter().map(|time| time.gap).collect();
        let is_said = !gaps.is_empty() && outcome.totals.counters.completed > 0;
        return is_said
            .then(|| Note::failure(NoteId::Unavailable, unavailable_line(&Times::of(gaps, elapsed_ns), share, due)));
    }
    let gaps: Vec<Gap> = silences.iter().map(|(gap, _)| *gap).collect();
    let text = |gaps| format!("no response {}", Times::of(gaps, elapsed_ns).words());
    (!gaps.is_empty()).then(|| Note::failure(NoteId::Silences, text(gaps)))
}

/// The note on the times in which onrush was stalled.
pub fn stalled(outcome: &Outcome) -> Option<Note> {
    let elapsed_ns = nanos(outcome.elapsed);
    let sum_ns: u64 = outcome.stalls.iter().map(|gap| gap.length_ns()).sum();
    let gaps: Vec<Gap> = outcome.stalls.iter().copied().filter(|gap| gap.length_ns() >= GAP_MIN_NS).collect();
    let share = (sum_ns as f64 / elapsed_ns.max(1) as f64).min(1.0);
    let matters = !gaps.is_empty() || share > STALLED_SHARE;
    // Requests in flight waited through it, and with a schedule also those that became due.
    let Totals { counters, open_loop, .. } = &outcome.totals;
    let in_flight = counters.occupancy.in_flight_ns as f64 / elapsed_ns.max(1) as f64;
    let due = open_loop.as_deref().map_or(0.0, |open_loop| open_loop.due as f64 * share);
    let waited = in_flight * outcome.stalls.len() as f64 + due;
    let touched = (waited / counters.completed.max(1) as f64).min(1.0);
    let text = |gaps| stalled_line(&Times::of(gaps, elapsed_ns), share, &inflated(touched, counters.completed));
    matters.then(|| Note::doubt(NoteId::Stalled, text(gaps)))
}

/// The note on a machine that was suspended.
pub fn suspended(outcome: &Outcome) -> Option<Note> {
    (!outcome.suspended.is_zero()).then(|| Note::doubt(NoteId::Suspended, suspended_line(outcome.suspended)))
}

/// Some times, of which the longest few are named.
struct Times {
    /// The longest of them, in chronological order.
    longest: Vec<Gap>,
    /// How many there are.
    count: usize,
    /// How long was measured, in nanoseconds.
    elapsed_ns: u64,
}

impl Times {
    fn of(mut gaps: Vec<Gap>, elapsed_ns: u64) -> Self {
        let count = gaps.len();
        gaps.sort_by_key(|gap| Reverse(gap.length_ns()));
        gaps.truncate(TIMES_NAMED);
        gaps.sort_by_key(|gap| gap.from_ns);
        Self { longest: gaps, count, elapsed_ns }
    }

    fn others(&self) -> usize {
        self.count - self.longest.len()
    }

    /// When they were.
    fn words(&self) -> String {
        let text = |gap: &Gap| match gap.until_ns {
            until_ns if until_ns >= self.elapsed_ns => format!("from {} to the end", seconds(gap.from_ns)),
            until_ns => format!("from {} to {}", seconds(gap.from_ns), seconds(until_ns)),
        };
        let times: Vec<String> = self.longest.iter().map(text).collect();
        let others = match self.others() {
            0 => String::new(),
            others => format!(" (and in {})", counted(others as u64, "shorter gap")),
        };
        format!("{}{others}", listed(&times))
    }
}

fn unavailable_line(times: &Times, share: f64, due: u64) -> String {
    let (percent, were) = (100.0 * share, if due == 1 { "was" } else { "were" });
    let percent = if percent < 0.05 { "less than 0.1 %".to_owned() } else { format!("{percent:.1} %") };
    let due = counted(due, "request");
    let due = match times.others() {
        0 => format!(", while {due} {were} due"),
        _ => format!("; {due} {were} due in these gaps"),
    };
    format!("the target was unavailable for {percent} of the time: no response {}{due}", times.words())
}

/// How many latencies a stall inflated.
fn inflated(touched: f64, latencies: u64) -> String {
    let percent = 100.0 * touched;
    match percent {
        _ if latencies < PERCENT_MIN => {
            let inflated = (touched * latencies as f64).round().max(1.0) as u64;
            format!("the latencies of about {inflated} of {}", counted(latencies, "response"))
        }
        0.95.. => format!("about {percent:.0} % of the latencies"),
        0.05.. => format!("about {percent:.1} % of the latencies"),
        _ => "less than 0.1 % of the latencies".to_owned(),
    }
}

fn stalled_line(times: &Times, share: f64, inflated: &str) -> String {
    let times = if times.count == 0 {
        format!("for {:.0} % of the time, in short stalls", 100.0 * share)
    } else {
        times.words()
    };
    format!(
        "onrush itself was stalled {times}: the process was suspended or got no processor; {inflated} are inflated by it, \
         which is not the server's fault"
    )
}

fn suspended_line(lasted: Duration) -> String {
    let lasted = time_us(lasted.as_nanos() as f64 / NS_PER_US);
    format!(
        "the machine was suspended for {lasted} during the run: no figure includes that time, but connections and \
         responses may have been lost; keep the machine awake and measure again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_latencies_those_that_a_stall_inflated_are_counted() {
        assert_eq!(inflated(0.35, 14), "the latencies of about 5 of 14 responses");
    }
}
