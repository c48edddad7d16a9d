//! Checks of responses, whatever pieces they arrive in.

use onrush_plan::checks::ExpectedHeader;
use onrush_stats::{Cause, Phase};

use super::*;

const CHUNKED: &str = "HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\nX-Kind: test\\r\\nX-Kind: other\\r\\n\\r\\n\
                       6\\r\\naababa\\r\\n5\\r\\nbcaba\\r\\n0\\r\\n\\r\\n";

fn header(name: &str, value: Option<&str>) -> ExpectedHeader {
    ExpectedHeader { name: name.to_owned(), value: value.map(str::to_owned) }
}

fn texts(texts: &[&str]) -> Checks {
    Checks { body: texts.iter().map(|text| (*text).to_owned()).collect(), ..Checks::default() }
}

/// Ten requests, each answered in pieces of `split` bytes.
fn checked(checks: &Checks, answer: &str, split: usize) -> Totals {
    let config = Config { checks: checks.clone(), requests: Some(10), duration_ns: None, ..config() };
    run_http(config, &format!("split = {split}\nanswer = \"{answer}\"")).totals
}

/// The rows of the ledger, with their examples.
fn rows(totals: &Totals) -> Vec<(Phase, Cause, u64, &str)> {
    let example = |example| std::str::from_utf8(example).expect("text");
    totals.ledger.rows().iter().map(|row| (row.phase, row.cause, row.count, example(&row.example))).collect()
}

#[test]
fn body_checks_find_texts_across_splits() {
    for split in 1..=CHUNKED.len() {
        let whole = texts(&["aababa", "babc", "bababc", "aba", "c"]);
        let totals = checked(&whole, CHUNKED, split);
        assert_eq!((rows(&totals), totals.counters.unsuccessful), (Vec::new(), 0), "split {split}");
        let totals = checked(&texts(&["aababa", "abab\r", "xyz"]), CHUNKED, split);
        let missing = (Phase::Check, Cause::Check(1), 10, "aabababcaba");
        assert_eq!((rows(&totals), totals.counters.unsuccessful), (vec![missing], 10), "split {split}");
    }
}

#[test]
fn header_checks_ignore_case_of_names() {
    for (headers, expected) in [
        (vec![header("x-kind", None), header("X-KIND", Some("other"))], None),
        (vec![header("X-Kind", Some("Test"))], Some((0, "test"))),
        (vec![header("X-Kind", Some("test")), header("X-Kin", None)], Some((1, ""))),
        (vec![header("X-Kind", Some("")), header("X-Kin", None)], Some((0, "test"))),
    ] {
        for split in [1, 7, CHUNKED.len()] {
            let totals = checked(&Checks { headers: headers.clone(), ..Checks::default() }, CHUNKED, split);
            let expected = expected.map(|(number, example)| (Phase::Check, Cause::Check(number), 10, example));
            assert_eq!(rows(&totals), Vec::from_iter(expected), "{headers:?}");
        }
    }
}

#[test]
fn empty_bodies_fail_text_checks() {
    for answer in ["HTTP/1.1 204 No Content\\r\\n\\r\\n", "HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n"] {
        let totals = checked(&texts(&["a"]), answer, 1_000);
        assert_eq!(rows(&totals), [(Phase::Check, Cause::Check(0), 10, "")], "{answer}");
    }
}

#[test]
fn responses_with_several_faults_count_once() {
    let answer = "HTTP/1.1 503 Busy\\r\\nContent-Length: 4\\r\\n\\r\\nbusy";
    let rules = Rules { timeout_ns: Some(0), ..config().rules };
    let checks = Checks { headers: vec![header("ETag", None)], ..texts(&["ok", "busy"]) };
    let config = Config { checks, rules, requests: Some(10), duration_ns: None, ..config() };
    let totals = run_http(config, &format!("answer = \"{answer}\"")).totals;
    let errors = totals.ledger.totals();
    assert_eq!((errors.status, errors.check, errors.timeout), (10, 10, 10), "one check of three");
    assert_eq!((totals.counters.completed, totals.counters.unsuccessful, totals.latency.count()), (10, 10, 10));
}

#[test]
fn expected_statuses_define_success() {
    let not_found = "HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\n\\r\\n";
    let found = "HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n";
    for (list, answer, failure) in
        [(None, not_found, Some(404)), (Some("404"), not_found, None), (Some("404"), found, Some(200))]
    {
        let checks = Checks { status: list.map(|list: &str| list.parse().unwrap()), ..Checks::default() };
        let totals = checked(&checks, answer, 1_000);
        let row = failure.map(|status| (Phase::Status, Cause::Status(status), 10, ""));
        assert_eq!(rows(&totals), Vec::from_iter(row), "{list:?} {answer}");
        assert_eq!(totals.counters.unsuccessful, row.map_or(0, |(_, _, count, _)| count));
    }
}
