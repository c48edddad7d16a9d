//! Notes on HTTP/2: server limits, and the negotiated protocol.

use onrush_plan::limits;
use onrush_proto::Code;
use onrush_proto::http2::STREAMS_ASSUMED;
use onrush_text::units::{format_count, format_thousands, join_list};

use super::open_loop::ConnectionsAdvice;
use super::was_or_were;
use crate::record::evidence::were_often_in_use;
use crate::record::{Document, Http2, Note, NoteId, OTHER};

/// Closed windows are noted if they held up request bodies for this share of the connections' total time.
const WINDOW: f64 = 0.01;

/// Resent requests are noted if they exceed this share of the responses.
const RETURNED: f64 = 0.01;

/// All notes about HTTP/2. `more` is the verdict's advice on more connections.
pub fn http2_notes(document: &Document, more: ConnectionsAdvice) -> Vec<Note> {
    let Some(http2) = &document.http2 else { return Vec::new() };
    let notes = [
        no_streams(document, http2),
        exhausted_streams(document, http2, more),
        ended_connections(document, http2),
        closed_windows(document, http2),
        small_window(document, http2),
        returned_requests(document, http2),
        one_connection(document, http2),
        negotiated_protocols(document),
    ];
    notes.into_iter().flatten().collect()
}

/// The note on servers whose SETTINGS allow no streams.
fn no_streams(document: &Document, http2: &Http2) -> Option<Note> {
    let before = u64::from(STREAMS_ASSUMED) * document.connections.established;
    // Every request that was to be sent has been answered.
    let is_over = document
        .plan
        .requests
        .is_some_and(|asked| document.requests.completed >= asked.saturating_add(document.requests.carried));
    let is_none = http2.streams_allowed == Some(0) && document.requests.completed <= before && !is_over;
    let more = if document.requests.completed == 0 { "request" } else { "more requests" };
    let text = format!("the server allows no streams (SETTINGS_MAX_CONCURRENT_STREAMS is 0): no {more} can be sent");
    is_none.then(|| Note::failure(NoteId::NoStreams, text))
}

/// The note on a server's stream limit: lower than requested, and exhausted for at least a hundredth of the time
/// according to the evidence. With `--max-inflight`, more connections make up for the limit.
fn exhausted_streams(document: &Document, http2: &Http2, more: ConnectionsAdvice) -> Option<Note> {
    if document.plan.max_inflight.is_some() {
        return None;
    }
    let asked = document.plan.http2?.streams?;
    let load = &document.evidence.as_ref()?.load;
    let blocked_s = http2.streams_blocked_us as f64 / 1e6;
    let is_noticed = |open: f64| were_often_in_use(blocked_s, open * document.duration_s);
    if http2.streams_allowed_varied && is_noticed(load.open) {
        let least = http2.streams_allowed.filter(|least| *least < asked)?;
        let text = format!(
            "--streams {asked}: the server's limit on a connection varied, down to {least}; at times all allowed streams \
             were in use"
        );
        return Some(Note::doubt(NoteId::FewStreams, text));
    }
    let allowed = load.streams_allowed?;
    let connections = u64::from(document.plan.connections);
    let in_flight = (connections * u64::from(asked)).min(document.plan.requests.unwrap_or(u64::MAX));
    let enough = in_flight.div_ceil(u64::from(allowed));
    let allows = format!("--streams {asked}: the server allows only {allowed} on a connection");
    // With a rate, the note on waiting requests advises more requests in flight; stages set their own connections.
    let is_advised =
        document.open_loop.is_none() && document.plan.connection_stages.is_none() && more != ConnectionsAdvice::Useless;
    let text = if !is_advised || !(connections + 1..=limits::CONNECTIONS_MAX).contains(&enough) {
        allows
    } else {
        format!("{allows}; for {} in flight, use -c {enough} --streams {allowed}", format_count(in_flight, "request"),)
    };
    Some(Note::doubt(NoteId::FewStreams, text))
}

/// The note on connection errors missing from the ledger because no request failed.
fn ended_connections(document: &Document, http2: &Http2) -> Option<Note> {
    let named = |code: &str| if code == OTHER { Code::new(u32::MAX).to_string() } else { code.to_owned() };
    let is_in_ledger = |code: &str| {
        let cause = format!("ended by the server ({code})");
        document.ledger.iter().any(|row| row.cause == cause)
    };
    let no_error = Code::NO_ERROR.to_string();
    let ended = http2.connections_ended.iter().map(|(code, count)| (named(code), *count));
    let errors: Vec<(String, u64)> = ended.filter(|(code, _)| *code != no_error && !is_in_ledger(code)).collect();
    let all: u64 = errors.iter().map(|(_, count)| count).sum();
    let said = |code: &str| {
        let reasons = http2.goaway_reasons.get(code)?;
        let (reason, _) = reasons.iter().max_by_key(|(_, count)| **count)?;
        let more = if reasons.len() > 1 { ", for instance" } else { "" };
        Some(format!(" (\"{reason}\"{more})"))
    };
    let codes: Vec<String> = errors
        .iter()
        .map(|(code, count)| format!("{code} {}{}", format_thousands(*count), said(code).unwrap_or_default()))
        .collect();
    let text = format!(
        "the server ended {} with an error (GOAWAY): {}; its log may say why",
        format_count(all, "connection"),
        codes.join(", ")
    );
    (all > 0).then(|| Note::failure(NoteId::ConnectionsEnded, text))
}

/// The note on request bodies that were held up by closed windows.
fn closed_windows(document: &Document, http2: &Http2) -> Option<Note> {
    let blocked_s = http2.window_blocked_us as f64 / 1e6;
    let share = blocked_s / (document.duration_s * document.connections.established as f64);
    (share >= WINDOW).then(|| {
        let percent = (100.0 * share).min(100.0);
        let text = format!(
            "the server's flow-control windows held back request bodies for {percent:.0} % of the connections' time, which \
             latencies include"
        );
        Note::hint(NoteId::UploadWindow, text)
    })
}

/// The note on windows so small that servers may have waited for updates.
fn small_window(document: &Document, http2: &Http2) -> Option<Note> {
    let asked = document.plan.http2?;
    let in_flight = document.in_flight?;
    // A lower bound per response, because some bodies have not arrived completely.
    let responses = document.requests.started + document.requests.carried;
    let each = http2.data_bytes_received as f64 / responses.max(1) as f64;
    let on_each = (in_flight.mean / in_flight.busy_connections.max(1.0)).max(1.0);
    let on_stream = ("--h2-window", asked.window, each, "");
    let on_connection = ("--h2-connection-window", asked.connection_window, each * on_each, " on a connection");
    let is_small = |(_, window, bytes, _): &(_, Option<u32>, f64, _)| {
        http2.connections > 0 && window.is_some_and(|window| *bytes > f64::from(window))
    };
    let (flag, window, _, whose) = [on_stream, on_connection].into_iter().find(is_small)?;
    let text = format!(
        "{flag} {}: the responses{whose} are larger, so the server may wait for window updates, which latencies include",
        window?
    );
    Some(Note::doubt(NoteId::SmallWindow, text))
}

/// The note on many requests that had to be sent again.
fn returned_requests(document: &Document, http2: &Http2) -> Option<Note> {
    let is_notable = http2.returned as f64 > RETURNED * document.requests.completed as f64;
    // Without streams, nothing was sent again.
    let is_notable = is_notable && no_streams(document, http2).is_none();
    let ended: u64 = http2.connections_ended.values().sum();
    let refused = http2.reset_received.get(&Code::REFUSED_STREAM.to_string()).copied().unwrap_or_default();
    let no_error = Code::NO_ERROR.to_string();
    let broken: u64 = http2.goaway_sent.iter().filter(|(code, _)| **code != no_error).map(|(_, count)| count).sum();
    is_notable.then(|| {
        let did = [
            (ended, format!("ended {} (GOAWAY)", format_count(ended, "connection"))),
            (refused, format!("refused {}", format_count(refused, "request"))),
            (broken, format!("made onrush end {} (GOAWAY)", format_count(broken, "connection"))),
        ];
        let did: Vec<String> = did.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
        let did = if did.is_empty() { "closed connections".to_owned() } else { join_list(&did) };
        let text = format!(
            "the server {did}: {} {} sent again; latency counts from the first time",
            format_count(http2.returned, "request"),
            was_or_were(http2.returned)
        );
        Note::hint(NoteId::Returned, text)
    })
}

/// The note on a run whose requests all used one connection, or its replacements.
fn one_connection(document: &Document, http2: &Http2) -> Option<Note> {
    let is_shared = document.connections.established == 1 && http2.streams_peak > 1;
    is_shared.then(|| {
        let at_a_time = if http2.connections > 1 { " at a time" } else { "" };
        let more = match document.plan.connections {
            1 => "; -c opens more",
            _ if document.errors.connect == 0 => "; fewer --streams spread them",
            _ => "",
        };
        let text =
            format!("all requests shared one connection{at_a_time}, which most servers handle in one thread{more}");
        Note::hint(NoteId::OneConnection, text)
    })
}

/// The note on negotiated protocols, with the number of connections for each.
fn negotiated_protocols(document: &Document) -> Option<Note> {
    let tls = document.plan.tls.as_ref().filter(|tls| tls.alpn.len() > 1)?;
    let agreed = &document.tls.as_ref()?.negotiated;
    let of = |is_http2: bool| -> u64 {
        agreed.iter().filter(|agreed| agreed.protocol.is_some() == is_http2).map(|agreed| agreed.connections).sum()
    };
    let words = [("HTTP/2", of(true)), ("HTTP/1.1", of(false))].into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> =
        words.map(|(name, count)| format!("{name} was used on {}", format_count(count, "connection"))).collect();
    let has_no_streams = of(false) > 0 && document.plan.http2.and_then(|http2| http2.streams).is_some();
    let rest = if has_no_streams { "; HTTP/1.1 has no streams, so --streams does not apply there" } else { "" };
    let text = format!("of {}, {}{rest}", tls.alpn.join(" and "), words.join(", "));
    (!words.is_empty()).then(|| Note::hint(NoteId::Spoken, text))
}
