//! Sums of hand-made documents, above all of runs that overlap in every way.

mod grouping;

use std::time::Duration;

use onrush_plan::{Dialect, Random};
use onrush_stats::Errors;

use super::super::named::in_order;
use super::super::sources::nanos;
use super::super::tests::{document, scheduled};
use super::super::{Buffer, Extent, Moment, NoteId, Row, Schedule, SocketSamples, Span, Stage};
use super::*;
use crate::fixtures;
use crate::report::form::{self, ReportForm};

/// A run of ten connections, with its beginning and its length in milliseconds, that completed `per_ms` requests in each.
fn run(began_ms: u64, lasted_ms: u64, per_ms: u64) -> Document {
    let mut run = document([5]);
    run.started_at = Moment(run.started_at.0 + began_ms * 1_000);
    run.duration_s = lasted_ms as f64 / 1e3;
    run.requests.completed = lasted_ms * per_ms;
    run.rate_per_s = count_per_second(run.requests.completed, run.duration_s);
    (run.connections.asked, run.connections.established) = (10, 10);
    let row = |second: u64| {
        let (start_ms, end_ms) = (second * 1_000, lasted_ms.min((second + 1) * 1_000));
        let completed = (end_ms - start_ms) * per_ms;
        Row {
            start_s: start_ms as f64 / 1e3,
            length_s: (end_ms - start_ms) as f64 / 1e3,
            completed,
            latency_bins: vec![(80, completed / 3), (90, completed - completed / 3)],
            mean_us: Some(1.5),
            max_us: Some(2.5),
            ..run.timeline[0].clone()
        }
    };
    run.timeline = (0..lasted_ms.div_ceil(1_000)).map(row).collect();
    run
}

fn sum(documents: &[Document]) -> Document {
    let names: Vec<String> = (0..documents.len()).map(|index| format!("{index}.json")).collect();
    let named = names.iter().zip(documents).map(|(name, document)| Named { name, document });
    Document::sum(&in_order(named.collect())).unwrap()
}

/// The sum of documents with the names of their files, judged.
fn judged(parts: &[(String, Document)]) -> Document {
    let named = parts.iter().map(|(name, document)| Named { name, document });
    crate::judge::judge_sum(&in_order(named.collect()), |_| None).unwrap()
}

/// Start, length, number of runs and completed requests of each row; times in milliseconds.
fn rows(document: &Document) -> Vec<(u64, u64, u64, u64)> {
    let ms = |seconds: f64| nanos(seconds) / 1_000_000;
    let row = |row: &Row| (ms(row.start_s), ms(row.length_s), row.runs.unwrap(), row.completed);
    document.timeline.iter().map(row).collect()
}

#[test]
fn the_times_in_which_machines_were_suspended_add_up() {
    let suspended = |seconds: f64| Document { suspended_s: seconds, ..run(0, 1_000, 1) };
    assert_eq!(sum(&[suspended(0.0), suspended(1.5), suspended(60.0)]).suspended_s, 61.5);
}

#[test]
fn a_sum_of_parts_is_one_run_of_everything() {
    let (sum, whole) = (sum(&[document(1..=600), document(601..=1_000)]), document(1..=1_000));
    assert_eq!(sum.latency, Latency { wrk_mean_us: None, ..whole.latency });
    let (phases, all) = (sum.phases.unwrap(), whole.phases.unwrap());
    assert_eq!((phases.ttfb, phases.ttlb), (all.ttfb, all.ttlb));
    assert_eq!((phases.connect.count, phases.connect.mean_us), (2, all.connect.mean_us));
    assert_eq!(sum.requests, whole.requests);
    assert_eq!(sum.status, whole.status);
    assert_eq!(sum.timeline[0].latency_bins, whole.timeline[0].latency_bins);
    assert_eq!(sum.timeline[0].mean_us, whole.timeline[0].mean_us);
    assert_eq!((sum.ledger.len(), sum.ledger[0].count, sum.errors.timeout + sum.errors.read), (1, 2, 2));
    assert_eq!((sum.threads.len(), sum.connections.asked), (2, 20));
    assert_eq!((sum.duration_s, sum.rate_per_s), (1.0, 1_000.0), "both ran at the same time");
}

#[test]
fn a_sum_of_parts_with_a_schedule_has_all_that_was_due() {
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
    assert_eq!(parts.check(), Ok(()));
    assert_eq!(sum(&[scheduled([5])]).open_loop, scheduled([5]).open_loop);
    // A twentieth of all that was due failed: the 99th percentile of the sum has no upper bound.
    let mut failing = scheduled(1..=1_000);
    failing.requests.started += 100;
    let both = sum(&[scheduled(1_001..=2_000), failing]);
    let upper = |percent: &str| both.open_loop.as_ref().unwrap().percentiles_us[&percent.parse().unwrap()].upper;
    assert!(upper("90").is_some() && upper("99").is_none(), "{:?}", both.open_loop);
    let mixed = sum(&[scheduled([5]), document([5])]);
    assert!(mixed.open_loop.is_none() && mixed.latency.scheduled.is_none(), "some would be left out");
    assert_eq!(mixed.requests.due, Some(2));
}

#[test]
fn ten_results_of_one_connection_are_added_every_time() {
    let mut random = Random::new(1);
    for _ in 0..8 {
        let runs: Vec<Document> = (0..10).map(|_| document([1 + random.below(5_000)])).collect();
        let text = sum(&runs).to_json();
        let read: Document = serde_json::from_str(&text).unwrap();
        assert_eq!(read.check(), Ok(()), "{text}");
        assert_eq!(read.latency.service.count, 10);
    }
}

#[test]
fn simultaneous_runs_add_rates_and_successive_ones_add_times() {
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
fn what_the_text_of_a_sum_shows_is_that_of_all_its_runs() {
    let (one, other): (Vec<u64>, Vec<u64>) = ((1..=300).collect(), (301..=1_000).map(|it| it * 7).collect());
    let all = [&one[..], &other].concat();
    for dialect in [Dialect::Native, Dialect::Wrk2] {
        let (one, other, whole) =
            (&imitating(dialect, 0, &one), &imitating(dialect, 0, &other), imitating(dialect, 0, &all));
        let both = sum(&[one.clone(), other.clone()]);
        assert_eq!(both.check(), Ok(()));
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
    let named = [Named { name: "0.json", document: &three[0] }, Named { name: "sum.json", document: &part }];
    let grouped = Document::sum(&in_order(named.to_vec())).unwrap();
    assert_eq!((&grouped.in_flight, &grouped.thread_rates), (&whole.in_flight, &whole.thread_rates));
    assert_eq!(whole.in_flight.unwrap().mean, all.iter().sum::<u64>().saturating_add(5) as f64 * 1e3 / 1.5e9);
    let unknown = Document { in_flight: None, ..three[0].clone() };
    let mixed = sum(&[unknown, three[1].clone()]);
    assert_eq!(mixed.in_flight, None, "a part would be missing");
}

#[test]
fn wrk2s_service_latency_is_kept_where_all_show_it() {
    let without = imitating(Dialect::Wrk2, 0, &[10, 20]);
    let mut with = without.clone();
    let wrk2 = with.latency.wrk2.as_mut().unwrap();
    assert_eq!(wrk2.service_us_hdr, None, "nothing shows it");
    wrk2.service_us_hdr = Some(wrk2.scheduled_us_hdr.clone());
    let service = |runs: &[Document]| sum(runs).latency.wrk2.unwrap().service_us_hdr;
    assert_eq!(service(&[with.clone(), with.clone()]).unwrap().values().unwrap().count(), 4);
    assert_eq!(service(&[with.clone(), without.clone()]), None);
    assert_eq!(service(&[without, with]), None, "a part would be missing");
}

#[test]
fn a_sum_of_what_was_rewritten_adds_what_was_rewritten() {
    let runs = [imitating(Dialect::Wrk, 0, &[50; 20]), imitating(Dialect::Wrk, 0, &[5_000, 60])];
    let (both, counts) = (sum(&runs), runs.each_ref().map(|run| run.latency.wrk.as_ref().unwrap().count));
    assert_eq!((both.latency.wrk_spacing_us, both.check()), (None, Ok(())));
    assert_eq!(both.latency.wrk.as_ref().unwrap().count, counts[0] + counts[1]);
    assert!(figures(&both).contains("\n     99%    "), "{}", figures(&both));
}

#[test]
fn the_first_lines_of_a_sum_are_true_of_it() {
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
fn what_is_in_no_rate_of_a_run_is_in_none_of_a_sum() {
    let mut carrying = run(0, 1_000, 10);
    carrying.requests.carried = 2_500;
    carrying.rate_per_s = 7_500.0;
    let runs = [carrying, run(2_000, 2_000, 10), run(6_000, 1_000, 1)];
    let part = sum(&runs[..2]);
    let part = Named { name: "sum.json", document: &part };
    let last = Named { name: "2.json", document: &runs[2] };
    for sum in [sum(&runs), Document::sum(&[part, last]).unwrap()] {
        assert_eq!((sum.requests.completed, sum.rate_per_s), (31_000, 28_500.0 / 4.0));
    }
}

#[test]
fn rows_of_runs_one_after_another_stay_as_they_are() {
    let sum = sum(&[run(5_300, 1_250, 7), run(0, 1_500, 10)]);
    let expected = [(0, 1_000, 1, 10_000), (1_000, 500, 1, 5_000), (5_300, 1_000, 1, 7_000), (6_300, 250, 1, 1_750)];
    assert_eq!(rows(&sum), expected);
}

#[test]
fn rows_of_runs_that_overlap_end_where_a_run_does_and_keep_its_rate() {
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
fn rows_that_are_far_too_short_join_their_neighbours() {
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
        // Merging a sum with joined rows again gives the same rows.
        for sum in [sum(std::slice::from_ref(&once)), once] {
            let seen: Vec<_> = rows(&sum).into_iter().map(|(from, length, runs, _)| (from, length, runs)).collect();
            assert_eq!(seen, expected);
            assert_eq!(sum.timeline.iter().map(|row| row.completed).sum::<u64>(), completed);
        }
    }
    // Hundreds that begin one after another do not make one long row.
    let many: Vec<Document> = (0..200).map(|index| run(index * 20, 20_000, 1)).collect();
    assert!(sum(&many).timeline.iter().all(|row| (0.1..=1.5).contains(&row.length_s)));
}

#[test]
fn what_went_wrong_is_on_the_common_axis() {
    let sum = sum(&[run(0, 1_000, 1), run(2_650, 1_000, 1)]);
    assert_eq!((sum.ledger[0].first_s, sum.ledger[0].last_s), (0.3, 2.95));
}

#[test]
fn any_order_of_files_gives_the_same_sum_whose_rows_are_all_of_it() {
    let mut random = Random::new(31);
    for _ in 0..40 {
        let count = 1 + random.below(6);
        let runs: Vec<(String, Document)> = (0..count)
            .map(|index| {
                let (began_ms, lasted_ms) = (random.below(4_000), random.below(3_000));
                (format!("{index}.json"), run(began_ms, lasted_ms, 1 + random.below(20)))
            })
            .collect();
        let mut named: Vec<Named<'_>> = runs.iter().map(|(name, document)| Named { name, document }).collect();
        let expected = named.iter().map(|named| named.document.requests.completed).sum::<u64>();
        let mut texts = Vec::new();
        for _ in 0..3 {
            let step = random.below(count) as usize;
            named.rotate_left(step);
            named.reverse();
            named = in_order(named);
            let sum = Document::sum(&named).unwrap();
            let lengths: u64 = sum.timeline.iter().map(|row| nanos(row.length_s)).sum();
            assert_eq!(lengths, nanos(sum.duration_s));
            assert_eq!(sum.timeline.iter().map(|row| row.completed).sum::<u64>(), expected);
            let latencies = sum.timeline.iter().flat_map(|row| &row.latency_bins).map(|(_, count)| count).sum::<u64>();
            assert_eq!(latencies, expected);
            let ends = |row: &Row| nanos(row.start_s) + nanos(row.length_s);
            assert!(sum.timeline.is_sorted_by(|one, next| ends(one) <= nanos(next.start_s)), "{:?}", rows(&sum));
            texts.push(sum.to_json());
        }
        assert!(texts.iter().all(|text| *text == texts[0]));
    }
}

#[test]
fn parts_of_one_run_give_the_same_bytes_in_any_order_and_grouping() {
    let mut random = Random::new(8);
    for has_rate in [false, true] {
        let part = |from: u64, until: u64| if has_rate { scheduled(from..=until) } else { document(from..=until) };
        let parts = [(1, 100), (101, 350), (351, 360), (361, 900), (901, 1_000)].map(|(from, until)| part(from, until));
        let mut parts: Vec<(String, Document)> =
            parts.into_iter().enumerate().map(|(index, part)| (format!("{index}.json"), part)).collect();
        parts[1].1.notes = ["something", "and more"].map(|text| Note::hint(NoteId::Late, text)).into();
        parts[3].1.notes = vec![Note::doubt(NoteId::Idle, "something else")];
        parts[2].1.threads[0].waits.as_mut().unwrap().count = 7;
        parts[4].1.suspended_s = 0.1;
        parts[0].1.suspended_s = 0.2;
        let all = judged(&parts);
        assert!(all.verdict.is_some());
        grouping::assert_any_grouping_is(&all, &parts, &mut random, true);
        // What is known of all together is that of the whole.
        let whole = part(1, 1_000);
        assert_eq!(all.latency.service, whole.latency.service);
        assert_eq!(all.latency.scheduled, whole.latency.scheduled);
    }
}

#[test]
fn a_sum_can_be_added_to() {
    let mut runs = [run(0, 1_000, 3), run(500, 1_700, 5), run(4_000, 1_000, 7)];
    runs.iter_mut()
        .for_each(|run| run.notes = vec![Note::failure(NoteId::Silences, "no response from 0.1 s to 0.9 s")]);
    (runs[0].incomplete, runs[2].incomplete) = (Some("it fell".to_owned()), Some("it fell, too".to_owned()));
    let whole = sum(&runs);
    let part = sum(&runs[..2]);
    let part = Named { name: "sum.json", document: &part };
    let last = Named { name: "2.json", document: &runs[2] };
    let steps = Document::sum(&in_order(vec![last, part])).unwrap();
    assert_eq!(steps, whole);
    assert_eq!(whole.incomplete.as_deref(), Some("0.json: it fell; 2.json: it fell, too"));
    let notes = ["0.json", "1.json", "2.json"]
        .map(|name| Note::failure(NoteId::Silences, format!("{name}: no response from 0.1 s to 0.9 s")));
    assert_eq!(whole.notes[1..], notes);
    assert_eq!(sum(&runs[..1]).notes, runs[0].notes);
    let mut wrong = whole.clone();
    wrong.sources.as_mut().unwrap().files[0].threads += 1;
    assert!(wrong.check().is_err(), "whose thread would that be?");
    let sources = whole.sources.unwrap();
    assert_eq!((sources.count, sources.files[1].name.as_str(), sources.files[1].duration_s), (3, "1.json", 1.7));
}

#[test]
fn many_runs_have_few_rows() {
    let runs: Vec<Document> = (0..7).map(|index| run(index * 400_000, 300_000, 1)).collect();
    let sum = sum(&runs);
    assert_eq!((sum.timeline.len(), sum.timeline[0].length_s), (1_050, 2.0));
}

#[test]
fn damaged_histograms_and_time_lines_are_refused() {
    let good = document([5, 6]);
    assert_eq!(good.check(), Ok(()));
    let mut bad = good.clone();
    bad.latency.service.hdr = "AAAA".to_owned().into();
    assert!(bad.check().is_err());
    bad = good.clone();
    bad.latency.service.hdr = String::from(good.latency.service.hdr.clone())[..7].to_owned().into();
    assert!(bad.check().is_err());
    for start_s in [0.0, 0.5, 1.5, 1e300, f64::NAN] {
        bad = good.clone();
        bad.timeline.push(Row { start_s, ..bad.timeline[0].clone() });
        assert!(bad.check().is_err(), "{start_s}");
    }
    for duration_s in [-1.0, 1e12, f64::NAN] {
        assert!(Document { duration_s, ..good.clone() }.check().is_err(), "{duration_s}");
    }
}

/// A run of a second in which the target was unavailable at these times, in milliseconds.
fn with_outages(began_ms: u64, times_ms: &[(u64, u64)]) -> Document {
    let mut run = Document { duration_s: 1.0, ..scheduled([5, began_ms + 1]) };
    run.timeline[0].length_s = 1.0;
    run.started_at = Moment(run.started_at.0 + began_ms * 1_000);
    let span = |(from_ms, until_ms): &(u64, u64)| Span {
        start_s: *from_ms as f64 / 1e3,
        length_s: (until_ms - from_ms) as f64 / 1e3,
    };
    let spans: Vec<Span> = times_ms.iter().map(span).collect();
    let share = spans.iter().map(|span| span.length_s).sum();
    let unavailable =
        Unavailable { share, longer_than_s: 0.2 + began_ms as f64, due: Some(9), spans, times: Vec::new() };
    run.open_loop.as_mut().unwrap().unavailable = Some(unavailable);
    run
}

#[test]
fn a_target_is_unavailable_while_it_is_to_all_runs_that_take_place() {
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
    unknown.open_loop.as_mut().unwrap().unavailable = None;
    assert_eq!(found(&sum(&[a.clone(), unknown])), None);
    for spans in [[(0, 500), (400, 600)], [(0, 100), (900, 1_001)]] {
        assert_eq!(found(&with_outages(0, &spans)).unwrap().check(1.0, 1.0), Err(Corrupt::Figures), "{spans:?}");
    }
    for document in [&a, &all] {
        assert_eq!(found(document).unwrap().check(1.5, document.duration_s), Ok(()));
    }
}

/// A run with two stages, the second of which began so late.
fn staged(began_ms: u64, second_at_s: f64) -> Document {
    let mut run = run(began_ms, 2_000, 10);
    let latency = run.latency.service.clone();
    let row = |start_s: f64, length_s: f64, asked_per_s, completed| StageRow {
        start_s,
        length_s,
        asked_per_s: Some(asked_per_s),
        connections: Some((5, 10)),
        started: completed,
        completed,
        rate_per_s: completed as f64 / length_s,
        late: Some(1),
        dropped: Some(2),
        errors: Errors { read: 3, ..Errors::default() },
        erroneous: 3,
        latency: latency.clone(),
    };
    run.stages = vec![row(0.0, second_at_s, 100.0, 5_000), row(second_at_s, 2.0 - second_at_s, 300.0, 15_000)];
    let stage = |length_s| Stage { from_per_s: 100.0, to_per_s: 100.0, length_s };
    run.plan.schedule =
        Some(Schedule { stages: vec![stage(Some(second_at_s)), stage(None)], ..scheduled([5]).plan.schedule.unwrap() });
    run
}

#[test]
fn stages_are_added_where_all_runs_have_the_same_at_the_same_time() {
    let both = sum(&[staged(0, 1.0), staged(100, 1.0)]);
    let row = |row: &StageRow| (row.start_s, row.length_s, row.asked_per_s, row.rate_per_s, row.completed);
    assert_eq!(row(&both.stages[0]), (0.0, 1.1, Some(200.0 / 1.1), 10_000.0 / 1.1, 10_000));
    assert_eq!(row(&both.stages[1]), (1.0, 1.1, Some(600.0 / 1.1), 30_000.0 / 1.1, 30_000));
    let StageRow { connections, late, dropped, errors, ref latency, .. } = both.stages[1];
    assert_eq!((connections, late, dropped, errors.read, latency.count), (Some((10, 20)), Some(2), Some(4), 6, 2));
    let three = [staged(0, 1.0), staged(100, 1.0), staged(30, 1.0)];
    let named = |name, document| Named { name, document };
    let (part, last) = (sum(&[three[2].clone(), three[1].clone()]), &three[0]);
    let grouped = Document::sum(&in_order(vec![named("a.json", &part), named("b.json", last)])).unwrap();
    assert_eq!(grouped.stages, sum(&three).stages);
    assert_eq!(sum(&[staged(0, 1.0), staged(2_000, 1.0)]).stages, [], "one after another");
    assert_eq!(sum(&[staged(0, 1.0), staged(0, 0.5)]).stages, [], "others");
    assert_eq!(sum(&[staged(0, 1.0), run(0, 2_000, 10)]).stages, [], "none");
}

#[test]
fn what_is_known_of_the_sockets_of_all_runs_is_added() {
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
        Document { sockets: Some(sockets), ..run(0, 1_000, 1) }
    };
    let one = with(buffer(100, 200), Some(samples(0.5, 3.0)));
    let both = sum(&[one.clone(), with(buffer(50, 150), Some(samples(1.0, 7.0)))]).sockets.unwrap();
    assert_eq!(both.rcvbuf, buffer(50, 200));
    let sampled = both.sampled.unwrap();
    assert_eq!((sampled.samples, sampled.failed, sampled.sockets, sampled.readings), (6, 2, 20, 60));
    assert_eq!((sampled.left_out, sampled.retransmits, sampled.cwnd), (4, 8, None));
    assert_eq!(sampled.rtt, Some(Extent { min: 0.5, median: None, max: 7.0 }));
    assert_eq!(sum(std::slice::from_ref(&one)).sockets, one.sockets);
    let some = sum(&[one.clone(), with(buffer(50, 150), None)]).sockets.unwrap();
    assert_eq!((some.rcvbuf, some.sampled), (buffer(50, 200), None));
    assert_eq!(sum(&[one, run(0, 1_000, 1)]).sockets, None);
}
