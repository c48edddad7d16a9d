//! Notes that do not cast doubt on the result.

use onrush_text::units::{format_count, format_thousands};

use super::facts::NoteFacts;
use super::was_or_were;
use crate::record::{Addresses, Document, LeftOut, Note, NoteId, RequestLog};

/// Resumed TLS handshakes are noted above this percentage of the responses.
const RESUMED_PERCENT: u64 = 1;
/// Requests left over from the warm-up are noted above this percentage of the responses.
const CARRIED_PERCENT: u64 = 1;
/// Leftover requests are also noted if the latencies add up to at least this multiple of the time
/// in flight.
const CARRIED_WEIGHT: f64 = 1.1;
/// Idle connections closed by the server are noted above this percentage of the responses.
const IDLE_CLOSED_PERCENT: u64 = 1;
/// The note on a script whose `delay` returned something other than a pause.
const PAUSES_UNREAD: &str =
    "the script's delay() did not always return a number of milliseconds: any other result counts as 0 (no pause)";

/// Hints: notes that cast no doubt.
pub fn hint_notes(facts: &NoteFacts<'_>) -> Vec<Note> {
    let Document { requests, connections, latency, in_flight, plan, .. } = facts.document;
    let (carried, interim, completed, cut) =
        (requests.carried, requests.interim, requests.completed, requests.cut_responses);
    // Latencies can exceed the time in flight only if they started before measuring.
    let in_flight_ns = in_flight.map_or(f64::INFINITY, |in_flight| in_flight.mean * facts.elapsed_ns as f64);
    let weighs = facts.latency.sum() as f64 > CARRIED_WEIGHT * in_flight_ns;
    let matters = completed > 0 && carried > 0 && (carried * 100 > completed * CARRIED_PERCENT || weighs);
    let idle_closed = connections.idle_closed.unwrap_or_default();
    let is_closed = idle_closed * 100 > completed * IDLE_CLOSED_PERCENT && !facts.is_compat();
    let batch = facts.document.batch.filter(|_| plan.once);
    let (resumed, handshakes) = facts.document.tls.as_ref().map_or((0, 0), |tls| (tls.resumed, tls.handshakes));
    let hint = |applies: bool, id: NoteId, line: &dyn Fn() -> String| applies.then(|| Note::hint(id, line()));
    let mut notes = facts.document.addresses.as_ref().map_or_else(Vec::new, left_out_addresses);
    let others = [
        batch.map(|batch| Note::hint(NoteId::FirstOfBatch, first_of_batch_line(batch))),
        hint(matters, NoteId::Carried, &|| carried_line(carried, completed)),
        hint(interim > 0 && !plan.once, NoteId::Interim, &|| interim_line(interim)),
        hint(latency.clamped > 0, NoteId::Clamped, &|| {
            format!("{} took over an hour and count as one hour", format_count(latency.clamped, "response"))
        }),
        hint(facts.document.pauses_unread, NoteId::PausesUnread, &|| PAUSES_UNREAD.to_owned()),
        hint(is_closed, NoteId::IdleClosed, &|| idle_closed_line(idle_closed, requests.returned)),
        hint(cut > 0, NoteId::CutResponses, &|| cut_responses_line(cut, facts.in_flight_cap().is_some())),
        facts.document.request_log.and_then(lost_log_lines),
        // Noted only if handshakes are part of the load.
        hint(resumed * 100 > completed * RESUMED_PERCENT, NoteId::Resumed, &|| resumed_line(resumed, handshakes)),
    ];
    notes.extend(others.into_iter().flatten());
    notes
}

fn idle_closed_line(times: u64, returned: u64) -> String {
    // A 408 means that the server had waited for a request, which may have been on its way.
    let (or, again) = match returned {
        0 => ("", String::new()),
        _ => (
            ", or answered a request with 408 and closed,",
            format!(" and sent {} again", format_count(returned, "request")),
        ),
    };
    format!(
        "the server closed connections between requests{or} {}; onrush reconnected{again}",
        format_count(times, "time")
    )
}

/// The notes on addresses left out.
fn left_out_addresses(Addresses { used, left_out }: &Addresses) -> Vec<Note> {
    let used = used.join(", ");
    let text = |LeftOut { address, cause }: &LeftOut| {
        format!("{address} was left out: {cause} at the start; the load went to {used}")
    };
    left_out.iter().map(|address| Note::hint(NoteId::AddressLeftOut, text(address))).collect()
}

fn first_of_batch_line(count: usize) -> String {
    let requests = format_count(count as u64, "request");
    format!("this is the first of {requests} that the script sends at once; the others were not sent")
}

fn carried_line(carried: u64, answers: u64) -> String {
    let (theirs, them) =
        if carried == 1 { ("its full latency is", "it") } else { ("their full latencies are", "them") };
    let (were, carried, answers) = (was_or_were(carried), format_count(carried, "request"), format_thousands(answers));
    format!(
        "{carried} sent during the warm-up {were} still in flight when measuring began; {theirs} among the {answers} \
         measured; run longer to dilute {them}"
    )
}

fn interim_line(count: u64) -> String {
    let answers = format_count(count, "interim response");
    format!("{answers} (1xx) came before the final ones: the time to first byte is that of the final response")
}

fn cut_responses_line(count: u64, has_streams: bool) -> String {
    let responses = format_count(count, "response");
    let streams = if has_streams { " or --streams" } else { "" };
    format!(
        "the script saw only the beginning of {responses}: responses in progress share 256 MiB; use fewer connections \
         (-c){streams}, or a response() with fewer parameters"
    )
}

/// The note on a request log that was not written fast enough.
fn lost_log_lines(RequestLog { one_of, lines, lost }: RequestLog) -> Option<Note> {
    let all = lines + lost;
    // Logging one request in this many would have left room for every line.
    let enough = one_of.unwrap_or(1).saturating_mul(all).div_ceil(lines.max(1)).checked_next_power_of_two();
    let line = |enough: u64| {
        format!(
            "the log of requests lacks {} of {}: its file was not written fast enough; use --log-sample 1/{enough}, or a \
             faster disk or reader",
            format_thousands(lost),
            format_count(all, "line")
        )
    };
    (lost > 0).then(|| Note::failure(NoteId::LostLines, line(enough.unwrap_or(all))))
}

fn resumed_line(resumed: u64, handshakes: u64) -> String {
    let (resumed, handshakes) = (format_thousands(resumed), format_count(handshakes, "TLS handshake"));
    format!(
        "{resumed} of {handshakes} resumed an earlier session, which costs less than a new client's full handshake; \
         --tls-resume off makes all of them full"
    )
}
