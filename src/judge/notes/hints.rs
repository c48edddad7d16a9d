//! Notes that do not cast doubt on the result.

use std::net::SocketAddr;

use onrush_plan::Plan;
use onrush_stats::{Counters, Handshakes};
use onrush_text::units::{counted, thousands, time_us};

use super::were;
use crate::failure;
use crate::figures::correct::rewritten;
use crate::record::{Note, NoteId};
use crate::run::Outcome;

/// Resumed TLS handshakes are worth a note above this percentage of the responses.
const RESUMED_PERCENT: u64 = 1;
/// Requests from the warm-up are worth a note above this percentage of the responses.
const CARRIED_PERCENT: u64 = 1;
/// They are also worth a note where the latencies add up to at least this multiple of the time in flight.
const CARRIED_WEIGHT: f64 = 1.1;
/// Idle connections that the server closed are worth a note above this percentage of the responses.
const IDLE_CLOSED_PERCENT: u64 = 1;
/// The note on a script whose `delay` returned something other than a pause.
const PAUSES_UNREAD: &str =
    "the script's delay() did not always return a number of milliseconds: any other result counts as 0 (no pause)";

/// All of them.
pub fn notes(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let clamped = outcome.totals.latency.clamped;
    let Counters { carried, interim, completed, occupancy, idle_closed, cut_bodies: cut, .. } = outcome.totals.counters;
    // Latencies can exceed the time in flight only if they began before measuring.
    let weighs = outcome.totals.latency.sum() as f64 > CARRIED_WEIGHT * occupancy.in_flight_ns as f64;
    let matters = completed > 0 && carried > 0 && (carried * 100 > completed * CARRIED_PERCENT || weighs);
    let is_closed = idle_closed * 100 > completed * IDLE_CLOSED_PERCENT && !plan.dialect.is_compat();
    let left_out = |&(address, errno): &(SocketAddr, i32)| {
        Note::hint(NoteId::AddressLeftOut, left_out_line(address, errno, &outcome.addresses))
    };
    let hint = |applies: bool, id: NoteId, line: &dyn Fn() -> String| applies.then(|| Note::hint(id, line()));
    let mut notes: Vec<Note> = outcome.dropped.iter().map(left_out).collect();
    let others = [
        hint(plan.once && outcome.batch > 1, NoteId::FirstOfBatch, &|| first_of_batch_line(outcome.batch)),
        hint(matters, NoteId::Carried, &|| carried_line(carried, completed)),
        hint(interim > 0 && !plan.once, NoteId::Interim, &|| interim_line(interim)),
        hint(clamped > 0, NoteId::Clamped, &|| {
            format!("{} took longer than an hour: recorded as one hour", counted(clamped, "response"))
        }),
        hint(outcome.pauses_unread, NoteId::PausesUnread, &|| PAUSES_UNREAD.to_owned()),
        hint(is_closed, NoteId::IdleClosed, &|| {
            format!("the server closed idle connections {}; onrush reconnected", counted(idle_closed, "time"))
        }),
        hint(cut > 0, NoteId::CutBodies, &|| cut_bodies_line(cut)),
        resumed(outcome),
        rewriting(plan, outcome),
    ];
    notes.extend(others.into_iter().flatten());
    notes
}

/// The note on resumed sessions, where handshakes are part of the load.
fn resumed(outcome: &Outcome) -> Option<Note> {
    let Handshakes { total: handshakes, resumed, .. } = outcome.totals.handshakes;
    let matters = resumed * 100 > outcome.totals.counters.completed * RESUMED_PERCENT;
    matters.then(|| Note::hint(NoteId::Resumed, resumed_line(resumed, handshakes)))
}

/// What wrk would have printed, if `-v` asks for it.
fn rewriting(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let is_asked_for = plan.show.verbose && !plan.dialect.is_compat() && !plan.once;
    if !is_asked_for || outcome.totals.open_loop.is_some() {
        return None;
    }
    Some(Note::hint(NoteId::WrkMean, rewritten_line(rewritten(plan, outcome).mean_us()?)))
}

fn left_out_line(address: SocketAddr, errno: i32, used: &[SocketAddr]) -> String {
    let used: Vec<String> = used.iter().map(SocketAddr::to_string).collect();
    let (why, used) = (failure::errno_words(errno), used.join(", "));
    format!("{address} was left out: {why} at the start; the load went to {used}")
}

fn first_of_batch_line(count: usize) -> String {
    let requests = counted(count as u64, "request");
    format!("this is the first of {requests} that the script sends at once; the others were not sent")
}

fn carried_line(carried: u64, answers: u64) -> String {
    let (theirs, with) = if carried == 1 {
        ("its response is", "its full latency; use a longer run to make it matter less")
    } else {
        ("their responses are", "their full latency; use a longer run to make them matter less")
    };
    let (were, carried, answers) = (were(carried), counted(carried, "request"), thousands(answers));
    format!(
        "{carried} sent during the warm-up {were} still in flight when measuring began; {theirs} among the {answers} \
         measured, with {with}"
    )
}

fn interim_line(count: u64) -> String {
    let answers = counted(count, "interim response");
    format!("{answers} (1xx) came before the final ones: the time to first byte is that of the final response")
}

fn cut_bodies_line(count: u64) -> String {
    let bodies = if count == 1 { "body" } else { "bodies" };
    let count = thousands(count);
    format!(
        "the script saw only the beginning of {count} {bodies}: all bodies being received share 256 MiB; use fewer \
         connections (-c), or drop the third parameter of response()"
    )
}

fn resumed_line(resumed: u64, handshakes: u64) -> String {
    let (resumed, handshakes) = (thousands(resumed), counted(handshakes, "TLS handshake"));
    format!(
        "{resumed} of {handshakes} resumed an earlier session, which costs less than the full handshake of a new client: \
         --tls-resume off makes all of them full"
    )
}

fn rewritten_line(mean_us: f64) -> String {
    format!("latency as measured; wrk would print Avg {}: see docs/measuring.md", time_us(mean_us))
}
