//! Events as text, for tests of protocols.

use crate::Event;

/// The text of an event that refers to no part of the input, for instance `0 complete`. Panics for
/// any other event.
pub fn event_text(event: &Event) -> String {
    match event {
        Event::Complete { stream, grpc_status, is_early } => {
            let grpc_status = if *grpc_status == 0 { String::new() } else { format!(", grpc-status {grpc_status}") };
            format!("{} complete{grpc_status}{}", stream.0, if *is_early { ", early" } else { "" })
        }
        Event::Failed { stream, error, retryable: true } => format!("{} failed, retryable: {error}", stream.0),
        Event::Failed { stream, error, retryable: false } => format!("{} failed: {error}", stream.0),
        Event::Draining { error: None } => "draining".to_owned(),
        Event::Draining { error: Some(error) } => format!("draining: {error}"),
        event => unreachable!("{event:?} has a part of the input"),
    }
}

/// Appends bytes to the last event if it has this prefix; otherwise adds an event, so that pieces
/// of any size give the same text.
pub fn join_event_bytes(events: &mut Vec<String>, prefix: String, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match events.last_mut().filter(|last| last.starts_with(&prefix)) {
        Some(last) => last.push_str(&text),
        None => events.push(prefix + &text),
    }
}
