//! Notes on requests without a response.

use onrush_text::units::{format_count, format_share_of, format_thousands, format_us, join_list};

use super::facts::{NoteFacts, seconds_ns};
use super::was_or_were;
use crate::figures::NS_PER_US;
use crate::record::{Document, Note, NoteId};

/// An open request younger than this, in nanoseconds, is usual even if responses are fast.
const USUAL_NS: u64 = 500_000_000;

/// Outcomes of the requests without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LostRequests {
    /// All requests started.
    started: u64,
    /// Failed requests. The ledger names the failures.
    failed: u64,
    abandoned: u64,
    /// The option that set the limit for abandoning requests.
    limit: &'static str,
    /// Requests in flight at the end of the run. If others completed, only those older than the slowest response.
    open: u64,
    /// Requests in flight on lost machines; zero if other requests completed.
    unknown: u64,
    /// Age of the youngest abandoned or open request, in nanoseconds, if known.
    youngest_ns: Option<u64>,
    /// Age of the oldest abandoned or open request, in nanoseconds.
    oldest_ns: Option<u64>,
}

/// The note on requests without a response, or on a run that sent none; `None` if another note says why. `has_hanging`:
/// another note covers hanging requests.
pub fn unanswered_note(facts: &NoteFacts<'_>, has_hanging: bool) -> Option<Note> {
    if facts.elapsed_ns == 0 {
        // A run that never began has no requests to account for.
        return None;
    }
    let Document { requests, plan, .. } = facts.document;
    let nothing_answered = facts.completed == 0;
    let censored = facts.censored.as_ref();
    let open = match nothing_answered {
        true => requests.open,
        // If the script blocks a thread, responses wait to be read.
        false if has_hanging || facts.is_held_up() => 0,
        false => count_unusually_old(facts),
    };
    let lost = LostRequests {
        started: requests.started + requests.carried,
        failed: requests.failed(),
        abandoned: requests.abandoned,
        // A single request is abandoned after its timeout, unless there is another limit.
        limit: if plan.once && plan.give_up_s == plan.timeout_s { "--timeout" } else { "--give-up" },
        open,
        unknown: if nothing_answered { requests.unknown } else { 0 },
        // The distribution also contains ordinary open requests.
        youngest_ns: censored.filter(|_| open == requests.open).and_then(|censored| censored.min()),
        oldest_ns: censored.and_then(|censored| censored.max()),
    };
    match nothing_answered {
        // The failure has its own note.
        true if plan.once && lost.started > 0 && lost.failed > 0 => None,
        // The loss has its own note.
        true if lost.started == 0 && facts.document.machines.iter().any(|machine| machine.lost.is_some()) => None,
        // Threads ended by the script have their own note.
        true if lost.started == 0 && !facts.document.stopped_threads.is_empty() => None,
        true if lost.started == 0 => Some(Note::doubt(NoteId::NothingSent, nothing_sent(facts.document))),
        true => Some(Note::doubt(NoteId::NoResponse, no_response_line(&lost, plan.once))),
        false => (lost.total() > 0).then(|| Note::failure(NoteId::Lost, lost_line(&lost))),
    }
}

/// The reason why a run sent no request.
fn nothing_sent(document: &Document) -> &'static str {
    let requests = &document.requests;
    if requests.due.is_some_and(|due| due + requests.due_before.unwrap_or_default() == 0) {
        "no request was due while the run was measured; use a longer run or a higher rate"
    } else if document.pauses && document.connections.established > 0 {
        "no request was sent: the script's delay() asked for pauses longer than the run, or than connections stay open"
    } else {
        "no request could be sent"
    }
}

/// The number of unusually old requests in flight at the end: older than the slowest response if they are late,
/// otherwise older than twice that and older than half a second.
fn count_unusually_old(facts: &NoteFacts<'_>) -> u64 {
    let Document { requests, plan, .. } = facts.document;
    let slowest_ns = facts.latency.max().unwrap_or(0);
    let timeout_ns = plan.timeout_s.map_or(u64::MAX, seconds_ns);
    let usual_ns = (slowest_ns * 2).max(USUAL_NS).min(slowest_ns.max(timeout_ns));
    let ages = facts.censored.iter().flat_map(|censored| censored.values());
    let older: u64 = ages.filter(|&(age_ns, _)| age_ns > usual_ns).map(|(_, count)| count).sum();
    older.saturating_sub(requests.abandoned).min(requests.open)
}

impl LostRequests {
    fn total(&self) -> u64 {
        self.failed + self.abandoned + self.open
    }

    /// The outcomes, each with its number unless all requests (named by `who`) ended alike, and the ages of those that
    /// did not fail, if known.
    fn describe_endings(&self, who: Option<&str>) -> String {
        let who = |count: u64| who.map_or_else(|| format_thousands(count), str::to_owned);
        let failed = (self.failed > 0).then(|| format!("{} failed", who(self.failed)));
        let words = |(count, ending): (u64, &str)| {
            (count > 0).then(|| format!("{} {} {ending}", who(count), was_or_were(count)))
        };
        let abandoned = format!("abandoned ({})", self.limit);
        let others = [(self.abandoned, &*abandoned), (self.open, "still in flight at the end")];
        let others: Vec<String> = others.into_iter().filter_map(words).collect();
        let others = (!others.is_empty()).then(|| join_list(&others) + &self.describe_ages());
        let unknown = words((self.unknown, "in flight on a machine that was lost"));
        failed.into_iter().chain(others).chain(unknown).collect::<Vec<_>>().join("; ")
    }

    /// The ages of the abandoned and open requests, if known.
    fn describe_ages(&self) -> String {
        let text = |ns: u64| format_us(ns as f64 / NS_PER_US);
        let comma = if self.open > 0 { "," } else { "" };
        match (self.youngest_ns.map(text), self.oldest_ns.map(text)) {
            (Some(youngest), Some(oldest)) if youngest != oldest => format!("{comma} after {youngest} to {oldest}"),
            (Some(_), Some(oldest)) => format!("{comma} after {oldest}"),
            (None, Some(oldest)) => format!("; the longest of these lasted {oldest}"),
            (_, None) => String::new(),
        }
    }
}

fn lost_line(lost: &LostRequests) -> String {
    let share = format_share_of(lost.total(), lost.started, "request");
    format!("{share} got no complete response: {}", lost.describe_endings(None))
}

fn no_response_line(lost: &LostRequests, is_once: bool) -> String {
    if is_once || lost.started <= 1 {
        return format!("the request got no complete response: {}", lost.describe_endings(Some("it")));
    }
    let is_alike = [lost.failed, lost.abandoned, lost.open, lost.unknown].contains(&lost.started);
    let endings = lost.describe_endings(is_alike.then_some("all"));
    format!("none of the {} got a complete response: {endings}", format_count(lost.started, "request"))
}
