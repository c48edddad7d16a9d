//! Sums of hand-made results, above all of runs that overlap in every way.

mod grouping;

use std::time::Duration;

use onrush_plan::{Dialect, Random};
use onrush_stats::{Activity, Interval, Phase};

use super::super::sources::nanos;
use super::super::tests::{document, plan, scheduled};
use super::super::{
    Buffer, Document, Extent, Latency, Moment, NoteId, Row, Schedule, SocketSamples, Sockets, Span, Stage, StageRow,
};
use super::*;
use crate::report::form::{self, ReportForm};
use crate::run::WorkerShare;
use crate::{fixtures, judge};

/// A run of ten connections, with its start and its length in milliseconds, that completed `per_ms` requests in each.
fn run(began_ms: u64, lasted_ms: u64, per_ms: u64) -> Document {
    let mut outcome = fixtures::flawless(0, 1);
    outcome.totals.clear();
    outcome.started_at += Duration::from_millis(began_ms);
    outcome.elapsed = Duration::from_millis(lasted_ms);
    for second in 0..lasted_ms.div_ceil(1_000) {
        let (from_ms, until_ms) = (second * 1_000, lasted_ms.min((second + 1) * 1_000));
        let mut interval =
            Interval { from_ns: from_ms * 1_000_000, until_ns: until_ms * 1_000_000, ..Interval::default() };
        let completed = (until_ms - from_ms) * per_ms;
        interval.latency.record_many(1_500, completed);
        (interval.counters.completed, interval.counters.started) = (completed, completed);
        (0..completed).for_each(|_| interval.statuses.record(200));
        interval.counters.slots_opened = if second == 0 { 10 } else { 0 };
        if second == 0 {
            interval.ledger.record(Phase::Head, onrush_stats::Cause::Late, 3, Vec::new);
        }
        outcome.totals += &interval;
        outcome.timeline.record(&interval);
    }
    outcome.timeline.end_run(lasted_ms * 1_000_000);
    let activity = Activity { wall_ns: lasted_ms * 1_000_000, ..Activity::default() };
    outcome.workers =
        vec![WorkerShare { connections: 10, counters: outcome.totals.counters, activity: Some(activity) }];
    Document::judged(&plan(Dialect::Native), &outcome)
}

/// The judged sum of these documents, with numbers as the names of their files.
fn sum(documents: &[Document]) -> Document {
    judged(&documents.iter().enumerate().map(|(index, it)| (format!("{index}.json"), it.clone())).collect::<Vec<_>>())
}

/// The judged sum of documents with the names of their files.
fn judged(parts: &[(String, Document)]) -> Document {
    let results = parts.iter().map(|(name, document)| (name.clone(), *document.result.clone()));
    judge::judge_result(RunResult::sum(results).unwrap(), |_| None)
}

/// The facts about a document's only run.
fn facts(document: &mut Document) -> &mut RunFacts {
    &mut document.result.runs[0]
}

/// Start, length, number of runs and completed requests of each row; times in milliseconds.
fn rows(document: &Document) -> Vec<(u64, u64, u64, u64)> {
    let ms = |seconds: f64| nanos(seconds) / 1_000_000;
    let row = |row: &Row| (ms(row.start_s), ms(row.length_s), row.runs.unwrap_or(1), row.completed);
    document.timeline.iter().map(row).collect()
}

#[test]
fn sums_of_parts_equal_the_whole_run() {
    let (sum, whole) = (sum(&[document(1..=600), document(601..=1_000)]), document(1..=1_000));
    assert_eq!(sum.latency, Latency { wrk_mean_us: None, ..whole.latency });
    let (phases, all) = (sum.phases.unwrap(), whole.phases.unwrap());
    assert_eq!((phases.ttfb, phases.ttlb), (all.ttfb, all.ttlb));
    assert_eq!((phases.connect.count, phases.connect.mean_us), (2, all.connect.mean_us));
    assert_eq!(sum.requests, whole.requests);
    assert_eq!(sum.status, whole.status);
    assert_eq!(sum.timeline[0].measured.latency, whole.timeline[0].measured.latency);
    assert_eq!(sum.timeline[0].mean_us, whole.timeline[0].mean_us);
    assert_eq!((sum.ledger.len(), sum.ledger[0].count, sum.errors.timeout + sum.errors.read), (1, 2, 2));
    assert_eq!((sum.threads.len(), sum.connections.asked), (2, 20));
    assert_eq!((sum.duration_s, sum.rate_per_s), (1.0, 1_000.0), "both ran at the same time");
}

#[test]
fn sums_with_schedules_contain_all_due_requests() {
    let (parts, whole) = (sum(&[scheduled(1..=600), scheduled(601..=1_000)]), scheduled(1..=1_000));
    assert_eq!(parts.latency.scheduled, whole.latency.scheduled);
    assert_eq!(parts.timeline[0].scheduled, whole.timeline[0].scheduled);
    let requests = parts.requests;
    assert_eq!((requests.due, requests.due_before, requests.late), (Some(1_002), Some(2), Some(6)));
    assert_eq!((requests.dropped, requests.unsent, parts.connections.idle_closed), (Some(0), Some(2), Some(4)));
    let open_loop = parts.open_loop.as_ref().unwrap();
    assert_eq!((open_loop.due_per_s, open_loop.sent_per_s, open_loop.lateness.count), (1_002.0, 1_002.0, 1_002));
    assert_eq!(open_loop.censored.as_ref().unwrap().count, 4);
    let last = open_loop.percentiles_us.values().next_back().unwrap();
    assert_eq!((last.lower, last.upper), (30_000.0, None));
    assert_eq!(parts.result.check(), Ok(()));
    assert_eq!(sum(&[scheduled([5])]).open_loop, scheduled([5]).open_loop);
    // A twentieth of all that was due failed: the 99th percentile of the sum has no upper bound.
    let mut failing = scheduled(1..=1_000);
    failing.result.sums.totals.counters.failed += 100;
    let both = sum(&[scheduled(1_001..=2_000), failing]);
    let upper = |percent: &str| both.open_loop.as_ref().unwrap().percentiles_us[&percent.parse().unwrap()].upper;
    assert!(upper("90").is_some() && upper("99").is_none(), "{:?}", both.open_loop);
    let mixed = sum(&[scheduled([5]), document([5])]);
    assert!(mixed.open_loop.is_none() && mixed.latency.scheduled.is_none(), "some would be left out");
    assert_eq!(mixed.requests.due, Some(2));
}

#[test]
fn simultaneous_runs_add_rates_others_add_times() {
    let table = [
        (0, 1_000, 20.0, 20, "2 runs at the same time: their rates are added"),
        (400, 1_400, 10.0 / 0.7, 20, "2 runs at the same time: their rates are added"),
        (500, 1_500, 20.0 / 1.5, 20, "2 runs at the same time: their rates are added"),
        (
            900,
            1_900,
            20.0 / 1.9,
            20,
            "2 runs, up to 2 of them at the same time, together for 100.00ms of 1.90s: the duration is the time in which \
             any of them ran",
        ),
        (1_000, 2_000, 10.0, 10, "2 runs, one after another: their times are added"),
        (9_000, 2_000, 10.0, 10, "2 runs, one after another: their times are added"),
    ];
    for (later_ms, duration_ms, per_ms, asked, words) in table {
        let sum = sum(&[run(0, 1_000, 10), run(later_ms, 1_000, 10)]);
        assert_eq!(nanos(sum.duration_s), duration_ms * 1_000_000, "{later_ms} ms apart");
        assert!((sum.rate_per_s / (per_ms * 1e3) - 1.0).abs() < 1e-9, "{later_ms} ms apart: {}", sum.rate_per_s);
        assert_eq!(sum.connections.asked, asked);
        assert_eq!((sum.notes[0].id, &sum.notes[0].text), (NoteId::Sum, &format!("the sum of {words}")));
    }
}

/// A run as this tool, with a latency and a sample of a thread's rate for each of these numbers.
fn imitating(dialect: Dialect, began_ms: u64, numbers: &[u64]) -> Document {
    let mut plan = fixtures::plan(dialect, "http://127.0.0.1:8080/", 1, 2, 10);
    plan.schedule = (dialect == Dialect::Wrk2).then(|| fixtures::schedule(100));
    plan.output.percentiles = true;
    let mut outcome = fixtures::flawless(0, 1);
    for number in numbers {
        outcome.totals.latency.record(number * 1_000);
        outcome.totals.rates.record(*number);
        if plan.schedule.is_some() {
            let open_loop = outcome.totals.open_loop.get_or_insert_default();
            open_loop.record_response(number * 2_000, number * 1_000, true);
            (open_loop.due, _) = (open_loop.due + 1, open_loop.lateness.record(1_000));
        }
    }
    outcome.totals.counters.batches = 20;
    outcome.totals.counters.occupancy.in_flight_ns = numbers.iter().sum::<u64>() * 1_000;
    outcome.totals.counters.occupancy.busy_ns = 7_000;
    outcome.elapsed = Duration::from_millis(500);
    outcome.started_at += Duration::from_millis(began_ms);
    Document::judged(&plan, &fixtures::fill_from_latencies(outcome))
}

/// The rows and percentiles of a report.
fn figures(document: &Document) -> String {
    let text = form::closing(document).unwrap();
    text.lines().take_while(|line| !line.contains(" requests in ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn report_of_a_sum_covers_all_runs() {
    let (one, other): (Vec<u64>, Vec<u64>) = ((1..=300).collect(), (301..=1_000).map(|it| it * 7).collect());
    let all = [&one[..], &other].concat();
    for dialect in [Dialect::Native, Dialect::Wrk2] {
        let (one, other, whole) =
            (&imitating(dialect, 0, &one), &imitating(dialect, 0, &other), imitating(dialect, 0, &all));
        let both = sum(&[one.clone(), other.clone()]);
        assert_eq!(both.result.check(), Ok(()));
        assert_eq!(both.thread_rates, whole.thread_rates, "{dialect:?}");
        assert_eq!(both.latency.wrk2, whole.latency.wrk2);
        assert_eq!(figures(&both), figures(&whole));
        assert!(figures(&both).contains("\n    Req/Sec "));
        let (mine, sum_of_all) = (both.in_flight.unwrap(), whole.in_flight.unwrap());
        assert_eq!((mine.mean, mine.requests_us), (sum_of_all.mean, sum_of_all.requests_us), "{dialect:?}");
        assert_eq!((mine.busy_connections, mine.connections_us), (2.0 * 7_000.0 / 5e8, Some(14)));
    }
    // In any grouping, and one after another.
    let three = [
        imitating(Dialect::Native, 0, &one),
        imitating(Dialect::Native, 500, &other),
        imitating(Dialect::Native, 1_000, &[5]),
    ];
    let whole = sum(&three);
    let part = sum(&three[1..]);
    let grouped = judged(&[("0.json".to_owned(), three[0].clone()), ("sum.json".to_owned(), part)]);
    assert_eq!((&grouped.in_flight, &grouped.thread_rates), (&whole.in_flight, &whole.thread_rates));
    assert_eq!(whole.in_flight.unwrap().mean, all.iter().sum::<u64>().saturating_add(5) as f64 * 1e3 / 1.5e9);
    let unknown = fixtures::with_facts(three[0].clone(), |facts| facts.lost_threads = 1);
    let mixed = sum(&[unknown, three[1].clone()]);
    assert_eq!(mixed.in_flight, None, "a part would be missing");
}

#[test]
fn service_latency_of_wrk2_needs_all_runs() {
    let without = imitating(Dialect::Wrk2, 0, &[10, 20]);
    let with = fixtures::with_facts(without.clone(), |facts| facts.shown.service_latency = true);
    assert_eq!(without.latency.wrk2.as_ref().unwrap().service_us, None, "nothing shows it");
    let service = |runs: &[Document]| sum(runs).latency.wrk2.unwrap().service_us;
    assert_eq!(service(&[with.clone(), with.clone()]).unwrap().values().unwrap().count(), 4);
    assert_eq!(service(&[with.clone(), without.clone()]), None);
    assert_eq!(service(&[without, with]), None, "a part would be missing");
}

#[test]
fn rewritten_latencies_add_up() {
    let runs = [imitating(Dialect::Wrk, 0, &[50; 20]), imitating(Dialect::Wrk, 0, &[5_000, 60])];
    let (both, counts) = (sum(&runs), runs.each_ref().map(|run| run.latency.wrk.as_ref().unwrap().count));
    assert_eq!((both.latency.wrk_spacing_us, both.result.check()), (None, Ok(())));
    assert_eq!(both.latency.wrk.as_ref().unwrap().count, counts[0] + counts[1]);
    assert!(figures(&both).contains("\n     99%    "), "{}", figures(&both));
}

#[test]
fn opening_lines_fit_sums() {
    let first = |document: &Document, form| {
        let text = form::print(document, form, false).unwrap().text;
        text.lines().take_while(|line| !line.starts_with("  Thread Stats")).collect::<Vec<_>>().join("\n")
    };
    let at_once = sum(&[run(0, 10_000, 1), run(20, 10_000, 1)]);
    let text = "Sum of 2 runs over 10.02s @ http://127.0.0.1:8080/\n  2 threads and 20 connections";
    assert_eq!(first(&at_once, ReportForm::Report), text);
    // wrk has no words for it.
    let text = "Running 10s test @ http://127.0.0.1:8080/\n  2 threads and 20 connections";
    assert_eq!(first(&at_once, ReportForm::Wrk), text);
    let in_turn = sum(&[run(0, 250, 1), run(5_000, 250, 1), run(9_000, 300, 1)]);
    let text = "Sum of 3 runs over 800.00ms @ http://127.0.0.1:8080/\n  1 threads and 10 connections";
    assert_eq!(first(&in_turn, ReportForm::Report), text);
    assert!(first(&in_turn, ReportForm::WrkCmm).starts_with("Running 800ms test @ "));
    assert!(first(&sum(&[run(0, 1_000, 1)]), ReportForm::Report).starts_with("Running 10s test @ "), "one is itself");
    let with_a_rate = first(&sum(&[scheduled([5]), scheduled([6, 7])]), ReportForm::Report);
    let line = "\n  1000 requests/s each, latency counted from when each request was due";
    assert!(with_a_rate.ends_with(line), "{with_a_rate}");
}

#[test]
fn uncounted_requests_stay_uncounted() {
    let carrying = fixtures::rebuilt(run(0, 1_000, 10), |result| result.sums.counted = 7_500);
    let runs = [carrying, run(2_000, 2_000, 10), run(6_000, 1_000, 1)];
    let part = sum(&runs[..2]);
    let grouped = judged(&[("sum.json".to_owned(), part), ("2.json".to_owned(), runs[2].clone())]);
    for sum in [sum(&runs), grouped] {
        assert_eq!((sum.requests.completed, sum.rate_per_s), (31_000, 28_500.0 / 4.0));
    }
}

#[test]
fn rows_of_successive_runs_stay() {
    let sum = sum(&[run(5_300, 1_250, 7), run(0, 1_500, 10)]);
    let expected = [(0, 1_000, 1, 10_000), (1_000, 500, 1, 5_000), (5_300, 1_000, 1, 7_000), (6_300, 250, 1, 1_750)];
    assert_eq!(rows(&sum), expected);
}

#[test]
fn rows_of_overlapping_runs_end_with_runs() {
    let two = sum(&[run(0, 2_000, 10), run(500, 2_000, 1)]);
    let expected = [(0, 500, 1, 5_000), (500, 500, 2, 5_500), (1_000, 1_000, 2, 11_000), (2_000, 500, 1, 500)];
    assert_eq!(rows(&two), expected);
    // Two runs one after another, and two that overlap the second.
    let four = sum(&[run(0, 1_000, 4), run(2_000, 2_000, 4), run(3_000, 2_000, 4), run(3_500, 1_000, 4)]);
    assert_eq!((nanos(four.duration_s) / 1_000_000, four.connections.asked, four.rate_per_s), (4_000, 30, 6_000.0));
    let seen: Vec<_> = rows(&four).into_iter().map(|(from, length, runs, _)| (from, length, runs)).collect();
    let expected =
        [(0, 1_000, 1), (2_000, 1_000, 1), (3_000, 500, 2), (3_500, 500, 3), (4_000, 500, 2), (4_500, 500, 1)];
    assert_eq!(seen, expected);
    let words = "the sum of 4 runs, up to 3 of them at the same time, together for 1.50s of 4.00s: the duration is the time in \
         which any of them ran";
    assert_eq!(four.notes[0].text, words);
}

#[test]
fn slivers_join_their_neighbours() {
    let table = [
        (vec![run(0, 2_000, 10), run(2, 2_000, 1)], vec![(0, 1_000, 2), (1_000, 1_002, 2)]),
        (vec![run(0, 2_003, 10), run(1, 2_000, 1)], vec![(0, 1_000, 2), (1_000, 1_003, 2)]),
        (vec![run(0, 3_000, 10), run(1_020, 1_000, 1)], vec![(0, 1_020, 1), (1_020, 1_000, 2), (2_020, 980, 1)]),
        (
            vec![run(0, 3_000, 10), run(980, 1_500, 1)],
            vec![(0, 1_000, 1), (1_000, 1_000, 2), (2_000, 480, 2), (2_480, 520, 1)],
        ),
        // There is no neighbour to join.
        (vec![run(0, 1_000, 10), run(5_000, 5, 1)], vec![(0, 1_000, 1), (5_000, 5, 1)]),
        (vec![run(0, 1_000, 10), run(5_000, 1_020, 1)], vec![(0, 1_000, 1), (5_000, 1_020, 1)]),
    ];
    for (runs, expected) in table {
        let (once, completed) = (sum(&runs), runs.iter().map(|run| run.requests.completed).sum::<u64>());
        let seen: Vec<_> = rows(&once).into_iter().map(|(from, length, runs, _)| (from, length, runs)).collect();
        assert_eq!(seen, expected);
        assert_eq!(once.timeline.iter().map(|row| row.completed).sum::<u64>(), completed);
    }
    // Hundreds that begin one after another do not make one long row.
    let many: Vec<Document> = (0..200).map(|index| run(index * 20, 20_000, 1)).collect();
    assert!(sum(&many).timeline.iter().all(|row| (0.1..=1.5).contains(&row.length_s)));
}

#[test]
fn failure_times_count_from_the_first_run() {
    let sum = sum(&[run(0, 1_000, 1), run(2_650, 1_000, 1)]);
    assert_eq!((sum.ledger[0].first_s, sum.ledger[0].last_s), (0.3, 2.95));
}

#[test]
fn parts_give_the_same_bytes_in_any_grouping() {
    let mut random = Random::new(8);
    for has_rate in [false, true] {
        let part = |from: u64, until: u64| if has_rate { scheduled(from..=until) } else { document(from..=until) };
        let parts = [(1, 100), (101, 350), (351, 360), (361, 900), (901, 1_000)].map(|(from, until)| part(from, until));
        let mut parts: Vec<(String, Document)> =
            parts.into_iter().enumerate().map(|(index, part)| (format!("{index}.json"), part)).collect();
        facts(&mut parts[1].1).notes = ["something", "and more"].map(|text| Note::hint(NoteId::Late, text)).into();
        facts(&mut parts[3].1).notes = vec![Note::doubt(NoteId::Idle, "something else")];
        facts(&mut parts[2].1).threads[0].waits.as_mut().unwrap().count = 7;
        facts(&mut parts[4].1).suspended_ns = 100_000_000;
        facts(&mut parts[0].1).suspended_ns = 200_000_000;
        let all = judged(&parts);
        assert!(all.verdict.is_some());
        assert_eq!(all.suspended_s, 0.3);
        grouping::assert_any_grouping_is(&all, &parts, &mut random);
        // What is known of all together is that of the whole.
        let whole = part(1, 1_000);
        assert_eq!(all.latency.service, whole.latency.service);
        assert_eq!(all.latency.scheduled, whole.latency.scheduled);
    }
}

#[test]
fn sums_can_be_added_to() {
    let mut runs = [run(0, 1_000, 3), run(500, 1_700, 5), run(4_000, 1_000, 7)];
    for run in &mut runs {
        facts(run).notes = vec![Note::failure(NoteId::Silences, "no response from 0.1 s to 0.9 s")];
    }
    facts(&mut runs[0]).incomplete = Some("it fell".to_owned());
    facts(&mut runs[2]).incomplete = Some("it fell, too".to_owned());
    let whole = sum(&runs);
    let steps = judged(&[("2.json".to_owned(), runs[2].clone()), ("sum.json".to_owned(), sum(&runs[..2]))]);
    assert_eq!(steps, whole);
    assert_eq!(whole.incomplete.as_deref(), Some("0.json: it fell; 2.json: it fell, too"));
    let notes = ["0.json", "1.json", "2.json"]
        .map(|name| Note::failure(NoteId::Silences, format!("{name}: no response from 0.1 s to 0.9 s")));
    assert_eq!(whole.notes[1..], notes);
    assert_eq!(sum(&runs[..1]).notes, facts(&mut runs[0]).notes);
    let sources = whole.sources.unwrap();
    assert_eq!((sources.count, sources.files[1].name.as_str(), sources.files[1].duration_s), (3, "1.json", 1.7));
}

#[test]
fn long_sums_have_few_rows() {
    let runs: Vec<Document> = (0..7).map(|index| run(index * 400_000, 300_000, 1)).collect();
    let sum = sum(&runs);
    assert_eq!((sum.timeline.len(), sum.timeline[0].length_s), (1_050, 2.0));
}

/// A run of a second in which the target was unavailable at these times, in milliseconds.
fn with_outages(began_ms: u64, times_ms: &[(u64, u64)]) -> Document {
    let mut run = scheduled([5, began_ms + 1]);
    let span = |(from_ms, until_ms): &(u64, u64)| Span {
        start_s: *from_ms as f64 / 1e3,
        length_s: (until_ms - from_ms) as f64 / 1e3,
    };
    let spans: Vec<Span> = times_ms.iter().map(span).collect();
    let share = spans.iter().map(|span| span.length_s).sum();
    let unavailable =
        Unavailable { share, longer_than_s: 0.2 + began_ms as f64, due: Some(9), spans, times: Vec::new() };
    let facts = facts(&mut run);
    facts.started_at = Moment(facts.started_at.0 + began_ms * 1_000);
    facts.open_loop.as_mut().unwrap().unavailable = Some(unavailable);
    Document::from_result(*run.result)
}

#[test]
fn unavailability_is_common_to_simultaneous_runs() {
    let found = |document: &Document| document.open_loop.as_ref().unwrap().unavailable.clone();
    let in_ms = |document: &Document| {
        let ms = |seconds: f64| nanos(seconds) / 1_000_000;
        let spans = found(document).unwrap().spans;
        spans.iter().map(|span| (ms(span.start_s), ms(span.start_s + span.length_s))).collect::<Vec<_>>()
    };
    let a = with_outages(0, &[(100, 400), (500, 1_000)]);
    let b = with_outages(0, &[(200, 700)]);
    // It begins when half of the others is over, and goes on alone after them.
    let c = with_outages(500, &[(0, 100), (300, 800)]);
    assert_eq!(found(&sum(std::slice::from_ref(&a))), found(&a));
    assert_eq!(in_ms(&sum(&[a.clone(), b.clone()])), [(200, 400), (500, 700)]);
    assert_eq!(in_ms(&sum(&[a.clone(), c.clone()])), [(100, 400), (500, 600), (800, 1_300)]);
    let all = sum(&[a.clone(), b.clone(), c.clone()]);
    assert_eq!(in_ms(&all), [(200, 400), (500, 600), (1_000, 1_300)]);
    let figures = found(&all).unwrap();
    assert_eq!((figures.longer_than_s, figures.due), (500.2, None));
    assert!((figures.share - 0.4).abs() < 1e-9, "{figures:?}");
    for (one, others) in [(&a, [&b, &c]), (&b, [&c, &a]), (&c, [&a, &b])] {
        let grouped = sum(&[sum(&others.map(Document::clone)), one.clone()]);
        assert_eq!(found(&grouped), found(&all));
    }
    let mut unknown = b;
    facts(&mut unknown).open_loop.as_mut().unwrap().unavailable = None;
    assert_eq!(found(&sum(&[a.clone(), unknown])), None);
}

/// A run with two stages, the second of which began so late.
fn staged(began_ms: u64, second_at_ms: u64) -> Document {
    let mut run = run(began_ms, 2_000, 10);
    let latency = run.result.sums.totals.latency.clone();
    let stage = |completed| StageSum {
        started: completed,
        completed,
        late: Some(1),
        dropped: Some(2),
        errors: Errors { read: 3, ..Errors::default() },
        erroneous: 3,
        latency: latency.clone(),
    };
    run.result.sums.stages = Some(vec![stage(5_000), stage(15_000)]);
    let fact = |from_ms: u64, until_ms: u64, asked_per_s| StageFacts {
        from_ns: from_ms * 1_000_000,
        until_ns: until_ms * 1_000_000,
        asked_per_s: Some(asked_per_s),
        connections: Some((5, 10)),
    };
    facts(&mut run).stages = vec![fact(0, second_at_ms, 100.0), fact(second_at_ms, 2_000, 300.0)];
    let stage = |length_s| Stage { from_per_s: 100.0, to_per_s: 100.0, length_s };
    let stages = vec![stage(Some(second_at_ms as f64 / 1e3)), stage(None)];
    run.result.plan.schedule = Some(Schedule { stages, ..scheduled([5]).plan.schedule.unwrap() });
    Document::from_result(*run.result)
}

#[test]
fn stages_add_up_if_equal_and_simultaneous() {
    let both = sum(&[staged(0, 1_000), staged(100, 1_000)]);
    let row = |row: &StageRow| (row.start_s, row.length_s, row.asked_per_s, row.rate_per_s, row.completed);
    assert_eq!(row(&both.stages[0]), (0.0, 1.1, Some(200.0 / 1.1), 10_000.0 / 1.1, 10_000));
    assert_eq!(row(&both.stages[1]), (1.0, 1.1, Some(600.0 / 1.1), 30_000.0 / 1.1, 30_000));
    let StageRow { connections, late, dropped, errors, ref latency, .. } = both.stages[1];
    assert_eq!((connections, late, dropped, errors.read, latency.count), (Some((10, 20)), Some(2), Some(4), 6, 40_000));
    let three = [staged(0, 1_000), staged(100, 1_000), staged(30, 1_000)];
    let part = sum(&[three[2].clone(), three[1].clone()]);
    let grouped = judged(&[("a.json".to_owned(), part), ("b.json".to_owned(), three[0].clone())]);
    assert_eq!(grouped.stages, sum(&three).stages);
    assert_eq!(sum(&[staged(0, 1_000), staged(2_000, 1_000)]).stages, [], "one after another");
    assert_eq!(sum(&[staged(0, 1_000), staged(0, 500)]).stages, [], "others");
    assert_eq!(sum(&[staged(0, 1_000), run(0, 2_000, 10)]).stages, [], "none");
}

#[test]
fn socket_figures_known_of_all_runs_add_up() {
    let extent = |min, max| Some(Extent { min, median: Some(2.0), max });
    let samples = |min, max| SocketSamples {
        samples: 3,
        failed: 1,
        sockets: 10,
        readings: 30,
        left_out: 2,
        retransmits: 4,
        rtt: extent(min, max),
        cwnd: None,
        delivery_rate: extent(1.0, 1.0),
        rcvbuf_use: None,
        sndbuf_use: None,
    };
    let buffer = |effective_min, effective_max| Some(Buffer { requested: Some(4096), effective_min, effective_max });
    let with = |rcvbuf, sampled| {
        let sockets = Sockets { rcvbuf, sndbuf: None, sampled };
        let mut run = run(0, 1_000, 1);
        facts(&mut run).sockets = Some(sockets);
        run
    };
    let one = with(buffer(100, 200), Some(samples(0.5, 3.0)));
    let both = sum(&[one.clone(), with(buffer(50, 150), Some(samples(1.0, 7.0)))]).sockets.unwrap();
    assert_eq!(both.rcvbuf, buffer(50, 200));
    let sampled = both.sampled.unwrap();
    assert_eq!((sampled.samples, sampled.failed, sampled.sockets, sampled.readings), (6, 2, 20, 60));
    assert_eq!((sampled.left_out, sampled.retransmits, sampled.cwnd), (4, 8, None));
    assert_eq!(sampled.rtt, Some(Extent { min: 0.5, median: None, max: 7.0 }));
    assert_eq!(sum(std::slice::from_ref(&one)).sockets, one.result.runs[0].sockets);
    let some = sum(&[one.clone(), with(buffer(50, 150), None)]).sockets.unwrap();
    assert_eq!((some.rcvbuf, some.sampled), (buffer(50, 200), None));
    assert_eq!(sum(&[one, run(0, 1_000, 1)]).sockets, None);
}

/// Files damaged in one place: each is read or refused, and what is read can be added, shown and judged.
#[test]
fn damaged_files_are_read_or_refused() {
    let mut random = Random::new(17);
    let whole =
        [document(1..=50), scheduled(1..=50), sum(&[run(0, 2_000, 3), run(500, 1_000, 2)])].map(|it| it.to_json());
    let mut refused = 0;
    for _ in 0..1_000 {
        let mut bytes = whole[random.below(3) as usize].clone().into_bytes();
        let start = bytes.windows(8).position(|it| it == b"\"result\"").unwrap();
        let at = start + random.below((bytes.len() - start) as u64) as usize;
        match random.below(4) {
            0 => bytes[at] ^= 1 << random.below(7),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, b'9'),
            // A digit becomes many.
            _ => {
                let digit = bytes[at..].iter().position(u8::is_ascii_digit).map_or(at, |digit| at + digit);
                let digits = "9".repeat(1 + random.below(20) as usize);
                bytes.splice(digit..=digit, digits.into_bytes());
            }
        }
        match RunResult::parse("damaged.json".as_ref(), &bytes) {
            Ok(result) => {
                let mut twice = result.clone();
                twice += result;
                let shown = form::print(&judge::judge_result(twice, |_| None), ReportForm::Report, true);
                assert!(shown.is_ok(), "{}", String::from_utf8_lossy(&bytes));
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 500, "{refused}");
}

/// The result read from a file after a change, or the refusal.
fn changed(change: impl FnOnce(&mut serde_json::Value)) -> anyhow::Result<RunResult> {
    let mut file = serde_json::from_str::<serde_json::Value>(&document(1..=50).to_json()).unwrap();
    change(&mut file["result"]);
    RunResult::parse("x.json".as_ref(), file.to_string().as_bytes())
}

#[test]
fn sums_that_would_overflow_are_refused() {
    const MANY: u64 = 1 << 53;
    let row = |row: serde_json::Value| {
        changed(|result| result["runs"][0]["rows"] = std::iter::repeat_n(row, 1_100).collect::<Vec<_>>().into())
    };
    for bad in [
        serde_json::json!({ "started": MANY }),
        serde_json::json!({ "erroneous": MANY }),
        serde_json::json!({ "errors": { "connect": MANY, "read": MANY, "write": 0, "timeout": 0, "status": 0 } }),
        serde_json::json!({ "latency": { "sum_ns": 1, "max_ns": 1, "bins": [[1, MANY], [2, MANY], [3, MANY]] } }),
        serde_json::json!({ "latency": { "sum_ns": 1_u64 << 60, "max_ns": 5, "bins": [[1, 1]] } }),
    ] {
        assert!(row(bad.clone()).is_err(), "{bad}");
    }
    let stage = serde_json::to_value(StageSum {
        started: 1,
        completed: 1,
        late: None,
        dropped: None,
        errors: Errors::default(),
        erroneous: 0,
        latency: Distribution::new(),
    })
    .unwrap();
    assert!(changed(|result| result["sums"]["stages"] = vec![stage].into()).is_err(), "the run has no stages");
    // Two weeks of 20,000 connections can be read, and added up as long as the sums fit.
    let busy = |ns: u64| changed(|result| result["sums"]["totals"]["counters"]["occupancy"]["open_ns"] = ns.into());
    let long = busy(1 << 62).unwrap();
    let twice = [long.clone(), long.clone()].map(|result| ("x".to_owned(), result));
    assert!(RunResult::sum(twice.clone()).is_ok());
    assert!(RunResult::sum(twice.into_iter().chain([("x".to_owned(), long)])).is_err());
    assert!(busy(u64::MAX).is_err());
}

#[test]
fn labels_may_have_the_names_of_figures() {
    let labelled = fixtures::with_facts(document(1..=50), |facts| {
        facts.labels = [("sum".to_owned(), "5".to_owned()), ("sum_of_squares".to_owned(), "-x".to_owned())].into();
    });
    assert!(RunResult::parse("x.json".as_ref(), labelled.to_json().as_bytes()).is_ok());
}

#[test]
fn classes_with_missing_responses_are_left_out() {
    let mut result = *document(1..=50).result;
    (0..3).for_each(|_| result.sums.totals.statuses.record(503));
    result.sums.totals.by_class.get_or_insert_default().record(503, 1_000);
    assert!(Document::from_result(result.clone()).latency.by_class.is_empty());
    (0..2).for_each(|_| result.sums.totals.by_class.get_or_insert_default().record(503, 1_000));
    assert_eq!(Document::from_result(result).latency.by_class["5xx"].count, 3);
}
