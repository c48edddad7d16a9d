//! Notes on requests without a response.

use onrush_plan::Plan;
use onrush_stats::Totals;
use onrush_text::units::{counted, listed, share_of, thousands, time_us};

use super::were;
use crate::figures::NS_PER_US;
use crate::record::{Note, NoteId};
use crate::run::{Outcome, nanos};

/// An open request younger than this, in nanoseconds, is not unusual, no matter how fast the responses were.
const USUAL_NS: u64 = 500_000_000;

/// What became of the requests without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lost {
    /// All requests started.
    started: u64,
    /// Requests that failed; the ledger says how.
    failed: u64,
    /// Requests abandoned.
    abandoned: u64,
    /// Requests in flight at the end of the run; if others completed, only those older than responses took.
    open: u64,
    /// The age of the youngest of the abandoned and open requests, in nanoseconds, where known.
    youngest_ns: Option<u64>,
    /// The age of the oldest of the abandoned and open requests, in nanoseconds.
    oldest_ns: Option<u64>,
}

/// The note on them. `has_hanging`: those that hang have their own.
pub fn note(plan: &Plan, outcome: &Outcome, has_hanging: bool) -> Option<Note> {
    if outcome.elapsed.is_zero() {
        // A run that never began has no requests to account for.
        return None;
    }
    let counters = &outcome.totals.counters;
    let nothing_answered = counters.completed == 0;
    let censored = outcome.totals.censored.as_deref();
    let open = match nothing_answered {
        true => counters.open_at_end,
        false if has_hanging => 0,
        false => unusual(plan, outcome),
    };
    let lost = Lost {
        started: counters.started + counters.carried,
        failed: counters.failed,
        abandoned: counters.abandoned,
        open,
        // The distribution also has ordinary open requests.
        youngest_ns: censored.filter(|_| open == counters.open_at_end).and_then(|censored| censored.min()),
        oldest_ns: censored.and_then(|censored| censored.max()),
    };
    match nothing_answered {
        // The failure has its own note.
        true if plan.once && lost.started > 0 && lost.failed > 0 => None,
        true if lost.started == 0 => Some(Note::doubt(NoteId::NothingSent, nothing_sent(outcome))),
        true => Some(Note::doubt(NoteId::NoResponse, no_response_line(&lost, plan.once))),
        false => (lost.total() > 0).then(|| Note::failure(NoteId::Lost, lost_line(&lost))),
    }
}

/// Why a run sent nothing.
fn nothing_sent(outcome: &Outcome) -> &'static str {
    let Totals { counters, open_loop, .. } = &outcome.totals;
    if open_loop.as_deref().is_some_and(|open_loop| open_loop.due + open_loop.carried == 0) {
        "no request was due while the run was measured: use a longer run or a higher rate"
    } else if outcome.pauses && counters.slots_opened > 0 {
        "no request was sent: the script's delay() asked for pauses longer than the run, or longer than the connections \
         stayed open"
    } else {
        "no request could be sent"
    }
}

/// The number of requests in flight at the end that are unusually old: older than the slowest response if they are
/// late, otherwise older than twice that and than half a second.
fn unusual(plan: &Plan, outcome: &Outcome) -> u64 {
    let Totals { latency, censored, counters, .. } = &outcome.totals;
    let slowest_ns = latency.max().unwrap_or(0);
    let timeout_ns = plan.timeout.map_or(u64::MAX, nanos);
    let usual_ns = (slowest_ns * 2).max(USUAL_NS).min(slowest_ns.max(timeout_ns));
    let ages = censored.iter().flat_map(|censored| censored.values());
    let older: u64 = ages.filter(|&(age_ns, _)| age_ns > usual_ns).map(|(_, count)| count).sum();
    older.saturating_sub(counters.abandoned).min(counters.open_at_end)
}

impl Lost {
    /// How many there are.
    fn total(&self) -> u64 {
        self.failed + self.abandoned + self.open
    }

    /// What became of them, each with its number unless `who` they all are; and where it is known, after how long those
    /// ended that did not fail.
    fn endings(&self, who: Option<&str>) -> String {
        let who = |count: u64| who.map_or_else(|| thousands(count), str::to_owned);
        let failed = (self.failed > 0).then(|| format!("{} failed", who(self.failed)));
        let others = [(self.abandoned, "abandoned"), (self.open, "still in flight at the end")];
        let others = others.into_iter().filter(|&(count, _)| count > 0);
        let others: Vec<String> =
            others.map(|(count, ending)| format!("{} {} {ending}", who(count), were(count))).collect();
        let others = (!others.is_empty()).then(|| listed(&others) + &self.ages());
        failed.into_iter().chain(others).collect::<Vec<_>>().join("; ")
    }

    /// How long the abandoned and open ones lasted, where that is known.
    fn ages(&self) -> String {
        let text = |ns: u64| time_us(ns as f64 / NS_PER_US);
        let comma = if self.open > 0 { "," } else { "" };
        match (self.youngest_ns.map(text), self.oldest_ns.map(text)) {
            (Some(youngest), Some(oldest)) if youngest != oldest => format!("{comma} after {youngest} to {oldest}"),
            (Some(_), Some(oldest)) => format!("{comma} after {oldest}"),
            (None, Some(oldest)) => format!("; the longest of these lasted {oldest}"),
            (_, None) => String::new(),
        }
    }
}

fn lost_line(lost: &Lost) -> String {
    let share = share_of(lost.total(), lost.started, "request");
    format!("{share} got no complete response: {}", lost.endings(None))
}

fn no_response_line(lost: &Lost, is_once: bool) -> String {
    if is_once || lost.started <= 1 {
        return format!("the request got no complete response: {}", lost.endings(Some("it")));
    }
    let is_alike = [lost.failed, lost.abandoned, lost.open].contains(&lost.started);
    let endings = lost.endings(is_alike.then_some("all"));
    format!("none of the {} got a complete response: {endings}", counted(lost.started, "request"))
}
