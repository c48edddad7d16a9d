//! The order of notes and the number printed.

use super::*;

#[test]
fn invalidating_notes_come_first() {
    let mut outcome = silent(&[(1_312, 2_489)]);
    outcome.dropped = vec![(address("[::1]:8080"), 111)];
    outcome.totals.counters.failed = 6;
    outcome.totals.counters.started += 6;
    record_failures(&mut outcome, 6, Phase::Head, Cause::Errno(104));
    record_failures(&mut outcome, 2, Phase::Connect, Cause::Errno(24));
    let beginnings = ["connect: 2 × too many", "0.01 % of", "no response from", "read: 6", "[::1]"];
    let said = said(&outcome);
    assert_eq!(said.len(), beginnings.len(), "{said:?}");
    assert!(said.iter().zip(beginnings).all(|(note, beginning)| note.starts_with(beginning)), "{said:?}");
}

/// The report on `count` failures, each with an example if `has_examples`.
fn printed(count: u16, has_examples: bool, all: bool, colour: bool) -> String {
    let mut outcome = good();
    for status in 0..count {
        let example = if has_examples { status.to_string().into_bytes() } else { Vec::new() };
        let cause = Cause::Proxy(ProxyFailure::Status(600 + status));
        outcome.totals.ledger.record(Phase::Connect, cause, 0, || example);
    }
    let notes = notes_of(&plan(Dialect::Native, "http://h/", 10, 2, 10), &outcome);
    format_notes(&notes, None, if all { NoteRoom::All } else { NoteRoom::Few }, colour)
}

#[test]
fn examples_follow_their_note() {
    let text = "note: connect: 1 × the proxy responded to CONNECT with status 600 (0.0 s into the run); the proxy's log may say why\n      \
                received: \"0\"\n";
    assert_eq!(printed(1, true, false, false), text);
    assert_eq!(printed(1, true, false, true), text.replace("note:", "\x1b[1;33mnote:\x1b[0m"));
}

#[test]
fn notes_beyond_eight_are_counted() {
    for (count, has_examples, lines, last) in [
        (8, false, 8, "note: connect: "),
        (9, false, 9, "note: 1 more note; -v prints it"),
        (12, false, 9, "note: 4 more notes; -v prints them"),
        (4, true, 8, "      received: "),
        (6, true, 9, "note: 2 more notes; -v prints them"),
    ] {
        let text = printed(count, has_examples, false, false);
        assert_eq!(text.lines().count(), lines, "{text}");
        assert!(text.lines().last().unwrap().starts_with(last), "{text}");
    }
    assert_eq!(printed(12, true, true, false).lines().count(), 24);
}
