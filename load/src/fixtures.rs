//! Plans and outcomes made by hand, distributions with given figures, and the words of command lines, for tests.

#![cfg(any(test, feature = "testing"))]

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use onrush_plan::Plan;
use onrush_stats::{Cause, Counters, Distribution, Occupancy, Phase, RowFigures, Statuses, Timeline, Totals};

use crate::judge::JudgedRun;
use crate::record::{Document, RunFacts, RunResult};
use crate::run::Outcome;

pub use onrush_plan::fixtures::{plan, schedule};

impl Document {
    /// The judged document of a run.
    pub fn judged(plan: &Plan, outcome: &Outcome) -> Self {
        JudgedRun::from_outcome(plan, outcome).document
    }
}

/// A list of requests with these names.
pub fn list<const N: usize>(names: [&str; N]) -> onrush_plan::RequestList {
    onrush_plan::RequestList {
        file: onrush_plan::FileContents::from_bytes("urls.txt", b"/".to_vec()),
        bodies: Vec::new(),
        order: onrush_plan::list::ListOrder::Seq,
        seed: 1,
        part: (0, 1),
        length: N as u64,
        is_safe: true,
        names: names.map(str::to_owned).to_vec(),
        firsts: Vec::new(),
    }
}

/// The report of a run without its opening lines.
pub fn report_closing(plan: &Plan, outcome: &Outcome) -> String {
    crate::report::closing(&Document::judged(plan, outcome)).unwrap()
}

/// The outcome of a run of full length to one address, with only these counters.
pub fn outcome_with(elapsed_us: u64, counters: Counters) -> Outcome {
    Outcome {
        totals: Totals { counters, ..Totals::default() },
        elapsed: Duration::from_micros(elapsed_us),
        addresses: vec![address("127.0.0.1:8080")],
        silences: Vec::new(),
        // 2026-01-31T12:00:00Z
        ..Outcome::new("epoll", None, Duration::from_secs(1_769_860_800))
    }
}

/// An outcome without a flaw: `completed` responses with status 200 on `connections`, each after 1 ms.
pub fn flawless(completed: u64, connections: u64) -> Outcome {
    let counters = Counters {
        started: completed,
        completed,
        batches: completed,
        slots_opened: connections,
        // Each request takes a millisecond, and the next one follows at once.
        occupancy: Occupancy {
            in_flight_ns: completed * 1_000_000,
            busy_ns: completed * 1_000_000,
            open_ns: completed * 1_000_000,
            ..Occupancy::default()
        },
        ..Counters::default()
    };
    let mut outcome = outcome_with(completed * 1000 / connections, counters);
    outcome.totals.latency.record_many(1_000_000, completed);
    (0..completed).for_each(|_| outcome.totals.statuses.record(200));
    outcome
}

/// Adds to an outcome everything derived from its latencies, so that its document is valid: requests, statuses, and a
/// timeline.
pub fn fill_from_latencies(mut outcome: Outcome) -> Outcome {
    let completed = outcome.totals.latency.count();
    let counters = &mut outcome.totals.counters;
    (counters.started, counters.completed) = (completed + counters.failed, completed);
    outcome.totals.statuses = Statuses::default();
    (0..completed).for_each(|_| outcome.totals.statuses.record(200));
    let mut row = RowFigures::default();
    row.record(&outcome.totals);
    outcome.timeline = Timeline { rows: vec![row], ..Timeline::default() };
    outcome.timeline.end_run(crate::run::nanos(outcome.elapsed));
    outcome
}

/// The document of a changed result.
pub fn rebuilt(mut document: Document, change: impl FnOnce(&mut RunResult)) -> Document {
    change(&mut document.result);
    Document::from_result(*document.result)
}

/// The document of a run of which facts changed.
pub fn with_facts(document: Document, change: impl FnOnce(&mut RunFacts)) -> Document {
    rebuilt(document, |result| change(&mut result.runs[0]))
}

/// The document of a document's result after that was written and read, unchecked.
pub fn read_back(document: &Document) -> Document {
    let written = serde_json::to_string(&document.result).unwrap();
    Document::from_result(serde_json::from_str(&written).unwrap())
}

/// Changes the bytes received in a document with a single row, because identical runs would count as copies.
pub fn with_received_bytes(document: Document, bytes: u64) -> Document {
    rebuilt(document, |result| {
        result.sums.totals.counters.bytes_received = bytes;
        result.runs[0].rows[0].bytes_received = bytes;
    })
}

/// Parses an address.
pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Records a failure this many times.
pub fn record_failures(outcome: &mut Outcome, times: u64, phase: Phase, cause: Cause) {
    (0..times).for_each(|_| outcome.totals.ledger.record(phase, cause, 0, Vec::new));
}

/// `count` values with this mean, standard deviation and maximum, `inside` of them within one deviation. One value is
/// the maximum; the others inside are equal, as are those outside.
pub fn shaped_distribution(count: u64, inside: u64, mean: f64, stdev: f64, max: f64) -> Distribution<u64> {
    let (inner, outer) = (inside as f64, (count - inside - 1) as f64);
    let top = max - mean;
    let squares = stdev * stdev * (count - 1) as f64 - top * top;
    // outer·x² + inner·y² = squares, with y = −(top + outer·x) / inner.
    let (a, b, c) = (outer + outer * outer / inner, outer * top / inner, top * top / inner - squares);
    let root = (b * b - a * c).sqrt();
    let x = if (root - b) / a <= top { (root - b) / a } else { (-root - b) / a };
    let y = -(top + outer * x) / inner;
    let mut distribution = Distribution::new();
    distribution.record(max as u64);
    spread(&mut distribution, mean + x, count - inside - 1);
    spread(&mut distribution, mean + y, inside);
    distribution
}

/// Records the two whole numbers around `value` in proportions that give it as the mean.
fn spread(distribution: &mut Distribution<u64>, value: f64, times: u64) {
    let above = (value.fract() * times as f64).round() as u64;
    distribution.record_many(value as u64, times - above);
    distribution.record_many(value as u64 + 1, above);
}

/// Splits a line like a shell that knows only quotes.
pub fn words(line: &str) -> Vec<OsString> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for character in line.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if "'\"".contains(character) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            None if character == ' ' => words.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word.map(OsString::from));
    words
}
