//! The evidence of sums of hand-made runs, and the verdicts on it.

use std::time::Duration;

use onrush_plan::condition::{ComparisonOperator, Condition, Term, Threshold};
use onrush_plan::{Dialect, LimitedBy, Metric, Random};
use onrush_proto::Error;
use onrush_stats::{Activity, Cause, ConnectionSpread, OpenLoopStats, Phase, SocketStats, Totals};

use super::*;
use crate::fixtures::{fill_from_latencies, flawless, plan, record_failures, schedule};
use crate::judge;
use crate::record::evidence::{Elasticity, Slot, Unreadable};
use crate::record::gate::{Gate, Judged};
use crate::record::{RunResult, Verdict};
use crate::run::{MonitorReport, Outcome, WorkerShare};

const MS: u64 = 1_000_000;

/// A run of so many seconds on two threads and ten connections.
fn outcome(began_ms: u64, seconds: u64) -> Outcome {
    let mut outcome = flawless(seconds * 1_000, 1);
    outcome.started_at += Duration::from_millis(began_ms);
    let activity = Activity { wall_ns: seconds * 1_000 * MS, user_ns: seconds * 500 * MS, ..Activity::default() };
    let share = WorkerShare { connections: 5, counters: outcome.totals.counters, activity: Some(activity) };
    outcome.workers = vec![share; 2];
    outcome.host.boot_id = Some("one".to_owned());
    outcome.host.cpus = 4;
    outcome.seen = Some(MonitorReport::default());
    outcome
}

/// The document of the run after a change.
fn after(mut outcome: Outcome, change: impl FnOnce(&mut Outcome)) -> Document {
    change(&mut outcome);
    let mut plan = plan(Dialect::Native, "http://127.0.0.1/", 10, 2, 10);
    plan.schedule = outcome.totals.open_loop.as_ref().map(|_| schedule(1_000));
    Document::judged(&plan, &fill_from_latencies(outcome))
}

fn run(began_ms: u64, seconds: u64) -> Document {
    after(outcome(began_ms, seconds), |_| ())
}

/// A condition on the number of requests, which has this text.
fn read(text: &str) -> Option<Condition> {
    let value = Threshold::Number(text.strip_prefix("requests<")?.parse().ok()?);
    let term = Term {
        text: text.to_owned(),
        metric: Metric::Requests,
        name: None,
        comparison: ComparisonOperator::Less,
        value,
    };
    Some(Condition { terms: vec![term] })
}

/// The sum of documents, named by their places.
fn sum(documents: &[Document]) -> Document {
    added(documents.iter().enumerate().map(|(index, document)| (format!("{index}.json"), document.clone())))
}

fn evidence(document: &Document) -> &Evidence {
    document.evidence.as_ref().unwrap()
}

/// What is seen of a run and decided by it.
fn judged(document: &Document) -> (&Option<Evidence>, &[String], &Option<Verdict>) {
    (&document.evidence, &document.unseen, &document.verdict)
}

/// A run with figures of every kind.
fn random_run(random: &mut Random) -> Document {
    let mut upto = |most: u64| random.below(most);
    let seconds = 10 + upto(10);
    let mut outcome = outcome(upto(30_000), seconds);
    let machine = upto(8);
    let gap = |from_ms: u64, length_ms: u64| Gap { from_ns: from_ms * MS, until_ns: (from_ms + length_ms) * MS };
    outcome.silences = (0..upto(3)).map(|at| gap(at * 3_000 + upto(500), 200 + upto(2_000))).collect();
    outcome.silences.extend((upto(2) == 0).then(|| gap(seconds * 1_000 - 700, 700)));
    outcome.stalls = vec![gap(upto(1_000), upto(300))];
    (0..upto(50)).for_each(|_| outcome.totals.latency.record(upto(60 * MS)));
    outcome.totals.sockets = SocketStats {
        readings: upto(20),
        in_flight: 10,
        half_answered: upto(10),
        rtt_sum_us: upto(10_000),
        rtt_min_us: Some(100),
        segments_sent: 1_000,
        segments_received: 1_000,
        retransmits: upto(20),
        needless: (upto(2) == 0).then_some(2),
        out_of_order: (upto(2) == 0).then_some(3),
        between_readings_us: 1_000,
        busy_us: [upto(1_000), 7, 3],
    };
    let counters = &mut outcome.totals.counters;
    (counters.occupancy.open_ns, counters.occupancy.absent_ns) = (20_000 * MS, upto(5_000) * MS);
    outcome.spread = ConnectionSpread { connections: 10, requests: 1_000, most: 100 + upto(400) };
    if machine == 0 {
        outcome.host.boot_id = Some("another".to_owned());
    }
    let listening = Listening { waiting_max: upto(20) as u32, limit: 16, overflows: Some(upto(5)) };
    let target = Target {
        name: "nginx".to_owned(),
        processes: 1 + upto(4) as usize,
        ended: upto(2) == 0,
        cpus_used: upto(100) as f64 / 37.0,
        cpus_allowed: 4.0,
        busiest_thread: upto(100) as f64 / 101.0,
        queued: Some(upto(100) as f64 / 103.0),
        throttled_s: Some(upto(100) as f64 / 107.0),
        listening: Some(listening),
        network: None,
    };
    let machine = Machine { stolen: Some(upto(10) as f64 / 13.0), clock_step_s: None, suspended_s: 0.0 };
    let unseen = if upto(2) == 0 { vec![crate::run::Unobserved::OwnGroup] } else { Vec::new() };
    outcome.seen =
        Some(MonitorReport { target: Some(target), machine, throttled_s: Some(upto(9) as f64 / 7.0), unseen });
    after(outcome, |_| ())
}

#[test]
fn a_sum_of_one_run_has_its_verdict() {
    let mut random = Random::new(5);
    for _ in 0..30 {
        let mut run = random_run(&mut random);
        assert_eq!(judged(&sum(std::slice::from_ref(&run))), judged(&run));
        // With a rate, too.
        let mut due = OpenLoopStats::default();
        (due.due, due.carried, due.dropped, due.unsent, due.calm, due.calm_ns) = (1_000, 5, 3, 7, 9, 700_001);
        due.lateness.record(random.below(MS));
        run = after(outcome(0, 10), |outcome| outcome.totals.open_loop = Some(Box::new(due)));
        assert!(evidence(&run).load.asked_per_s.is_some());
        assert_eq!(judged(&sum(std::slice::from_ref(&run))), judged(&run));
    }
}

#[test]
fn a_sum_of_sums_has_the_verdict_of_all_its_runs() {
    let mut random = Random::new(6);
    for _ in 0..12 {
        let runs: Vec<Document> = (0..6).map(|_| random_run(&mut random)).collect();
        let names: Vec<String> = (0..6).map(|index| format!("{index}.json")).collect();
        let leaves: Vec<(String, Document)> = names.into_iter().zip(runs).collect();
        let all = added(leaves.clone());
        assert_eq!(all.sources.as_ref().unwrap().count, 6);
        for _ in 0..4 {
            // Two at random become one, until one is left.
            let mut left: Vec<(String, Document)> = leaves.clone();
            while left.len() > 1 {
                let [one, other] = [(); 2].map(|()| left.swap_remove(random.below(left.len() as u64) as usize));
                let both = if random.below(2) == 0 { [one, other] } else { [other, one] };
                left.push(("sum.json".to_owned(), added(both)));
            }
            assert_eq!(judged(&left[0].1), judged(&all));
            assert_eq!(left[0].1.sources, all.sources);
        }
    }
}

/// The sum of documents with the names of their files.
fn added(parts: impl IntoIterator<Item = (String, Document)>) -> Document {
    let results = parts.into_iter().map(|(name, document)| (name, *document.result));
    judge::judge_result(RunResult::sum(results).unwrap(), read)
}

#[test]
fn a_part_without_a_verdict_leaves_the_sum_without_one() {
    let mut unjudged = run(30_000, 10);
    unjudged.result.runs[0].evidence = None;
    assert!(sum(&[run(0, 10), run(15_000, 10)]).verdict.is_some());
    assert_eq!(sum(&[run(0, 10), run(15_000, 10), unjudged]).verdict, None);
}

#[test]
fn the_load_of_runs_at_the_same_time_is_added_and_of_others_averaged() {
    let load = |runs: &[Document]| {
        let Load { elapsed_s, connections, in_flight, rate_per_s, .. } = evidence(&sum(runs)).load;
        (elapsed_s, connections, in_flight, rate_per_s)
    };
    assert_eq!(load(&[run(0, 10)]), (10.0, 10, 1.0, 1_000.0));
    assert_eq!(load(&[run(0, 10), run(0, 10)]), (10.0, 20, 2.0, 2_000.0));
    assert_eq!(load(&[run(0, 10), run(90_000, 10)]), (20.0, 10, 1.0, 1_000.0));
    assert_eq!(load(&[run(0, 10), run(5_000, 10)]), (15.0, 20, 1.3333, 1_333.333_3));
}

#[test]
fn threads_are_listed_and_what_is_about_a_machine_is_left_out_of_several() {
    let at = |began_ms, boot_id: Option<&str>| {
        after(outcome(began_ms, 10), |outcome| {
            outcome.host.boot_id = boot_id.map(str::to_owned);
            let seen = outcome.seen.as_mut().unwrap();
            seen.machine.stolen = Some(0.5);
            seen.target = Some(Target { name: "nginx".to_owned(), cpus_used: 0.5, ..Target::default() });
        })
    };
    let of = |runs: &[Document]| {
        let Document { evidence, unseen, .. } = sum(runs);
        let evidence = evidence.unwrap();
        let generator = evidence.generator;
        (
            generator.threads.len(),
            generator.cpus,
            evidence.machine.stolen,
            evidence.target.is_some(),
            unseen.last().cloned(),
        )
    };
    let queued = "how long each thread waited for a processor: the kernel does not say".to_owned();
    assert_eq!(of(&[at(0, Some("a"))]), (2, Some(4), Some(0.5), true, Some(queued.clone())));
    let (one_by_one, at_once) = ([at(0, Some("a")), at(10_000, Some("a"))], [at(0, Some("a")), at(0, Some("a"))]);
    // As many as there are for each thread.
    assert_eq!(of(&one_by_one), (4, Some(8), Some(0.5), true, Some(queued.clone())));
    assert_eq!(of(&at_once), (4, Some(4), Some(0.5), true, Some(queued)));
    let several = "the machine, its processors and a target on it: the runs were on several machines".to_owned();
    assert_eq!(of(&[at(0, Some("a")), at(0, Some("b"))]), (4, None, None, false, Some(several)));
    let unknown = "the machine, its processors and a target on it: the runs may have been on several machines";
    assert_eq!(of(&[at(0, None), at(0, None)]), (4, None, None, false, Some(unknown.to_owned())));
    let read = after(outcome(0, 10), |outcome| {
        outcome.totals.sockets = SocketStats { readings: 1, rtt_sum_us: 9, ..SocketStats::default() };
    });
    let some = sum(&[run(0, 10), read, run(0, 10)]).unseen;
    assert_eq!(some[..1], ["in 2 of 3 runs: the network: no TCP_INFO could be read"], "{some:?}");
}

#[test]
fn only_what_no_run_heard_is_a_silence_of_a_sum() {
    let with = |began_ms: u64, silences: &[(u64, u64)]| {
        after(outcome(began_ms, 10), |outcome| {
            let gap = |(from_ms, until_ms): &(u64, u64)| Gap { from_ns: from_ms * MS, until_ns: until_ms * MS };
            outcome.silences = silences.iter().map(gap).collect();
            outcome.stalls = vec![Gap { from_ns: 1_000 * MS, until_ns: 1_300 * MS }];
        })
    };
    let of = |runs: &[Document]| {
        let Load { quiet_s, silent_s, silent_at_end_s, silences, .. } = evidence(&sum(runs)).load.clone();
        let ms = |seconds: f64| (seconds * 1e3).round() as u64;
        let silences: Vec<_> = silences.iter().map(|it| (ms(it.start_s), ms(it.length_s), ms(it.heard_s))).collect();
        (quiet_s, silent_s, silent_at_end_s, silences)
    };
    let one = with(0, &[(1_000, 3_000), (3_000, 3_500), (9_000, 10_000)]);
    let alone = (3.2, 3.2, 1.0, vec![(1_000, 2_000, 1_700), (3_000, 500, 500), (9_000, 1_000, 1_000)]);
    assert_eq!(of(std::slice::from_ref(&one)), alone);
    // The other one hears something in some of them, and goes on for longer.
    let other = with(2_000, &[(0, 500), (8_000, 10_000)]);
    let common = vec![(1_000, 1_500, 1_200), (10_000, 2_000, 2_000)];
    assert_eq!(of(&[one.clone(), other]), (3.2, 3.2, 2.0, common));
    let next = with(12_000, &[(0, 400)]);
    let both = vec![(1_000, 2_000, 1_700), (3_000, 500, 500), (9_000, 1_000, 1_000), (12_000, 400, 400)];
    assert_eq!(of(&[one, next]), (3.6, 3.6, 0.0, both));
}

#[test]
fn the_rates_of_thirds_are_those_of_runs_at_the_same_time() {
    let third = Thirds { first_per_s: 100.0, last_per_s: 50.0, error_per_s: 3.0 };
    let with = |began_ms| {
        let mut run = run(began_ms, 10);
        run.result.runs[0].evidence.as_mut().unwrap().load.thirds = Some(third);
        run
    };
    let thirds = |runs: &[Document]| evidence(&sum(runs)).load.thirds;
    let together = Thirds { first_per_s: 200.0, last_per_s: 100.0, error_per_s: 4.2426 };
    assert_eq!(thirds(&[with(0), with(100)]), Some(together));
    assert_eq!(thirds(&[with(0), with(10_000)]), None);
}

#[test]
fn a_sum_is_judged_by_its_own_latencies() {
    // Each run alone is even; together they are not.
    let of_us = |us: u64| {
        after(outcome(0, 10), |outcome| {
            outcome.totals.latency.clear();
            outcome.totals.latency.record_many(us * 1_000, 10_000);
        })
    };
    let both = sum(&[of_us(1_000), of_us(9_000)]);
    let latency = evidence(&both).latency.unwrap();
    assert_eq!((latency.mean_us, latency.slow), (5_000.0, 0));
    assert!(latency.p99_us > 8_990.0, "{latency:?}");
    assert_eq!(evidence(&both).load.completed, 20_000);
    let busy = after(outcome(0, 10), |outcome| {
        outcome.workers[1].activity.as_mut().unwrap().user_ns = 9_500 * MS;
    });
    let verdict = sum(&[run(0, 10), busy]).verdict.unwrap();
    assert_eq!(verdict.limited_by, LimitedBy::GeneratorCpu);
    assert!(verdict.reason.starts_with("1 of 4 threads was 95 % busy"), "{}", verdict.reason);
}

#[test]
fn probes_after_runs_one_after_another_tell_what_each_of_them_tells() {
    let probe = |other_per_s: u64, [low, high]: [f64; 2]| {
        let slot = |in_flight, per_s| Slot { in_flight, tick_s: 0.5, completed: vec![per_s / 2; 4] };
        let elasticity = Some(Elasticity { value: low.midpoint(high), low, high });
        let slots = vec![slot(16, 1_000), slot(12, other_per_s)];
        Probe { duration_s: 2.0, requests: 4_000, slots, elasticity, ..Probe::default() }
    };
    let with = |began_ms, probe: Option<Probe>| {
        let mut run = run(began_ms, 10);
        run.result.runs[0].evidence.as_mut().unwrap().probe = probe;
        run
    };
    let said = |runs: &[Document]| sum(runs).verdict.unwrap().to_string();
    let (even, steady) = (Some(probe(1_000, [-0.1, 0.1])), Some(probe(980, [-0.1, 0.2])));
    let both = [with(0, even.clone()), with(12_000, steady.clone())];
    let expected = "the target is at its limit (three quarters in flight gave the same 1,000/s): 1,000/s with 16 in flight, \
                    990/s with 12 in flight";
    assert_eq!(said(&both), expected);
    let found = evidence(&sum(&both)).probe.clone().unwrap();
    assert_eq!((found.duration_s, found.requests, found.slots.len()), (4.0, 8_000, 4));
    let third = with(24_000, Some(probe(760, [0.9, 1.1])));
    let unlike = [both[0].clone(), both[1].clone(), third];
    assert!(said(&unlike).starts_with("the limit is unclear (the target, or the number in flight): with 12 in flight instead of 16, the target answered 0 % to 25 % fewer"));
    let mut more = probe(1_000, [-0.1, 0.1]);
    more.slots[1].in_flight = 24;
    let short = Probe { needed_s: Some(7.0), ..Probe::default() };
    let interrupted = Probe { failed: Some(Probe::SIGNAL.to_owned()), ..Probe::default() };
    for (began_ms, other, why) in [
        (
            5_000,
            steady.clone(),
            "the probe after the run was inconclusive: probes after runs at the same time disturb each other",
        ),
        (12_000, None, "the probe after the run was inconclusive: only some of the runs had one"),
        (
            12_000,
            Some(more),
            "the probe after the run was inconclusive: the runs had probes with different numbers in flight",
        ),
        (12_000, Some(interrupted), "the probe after the run was inconclusive: a signal ended it"),
        (12_000, Some(short.clone()), "--probe 7s may tell"),
    ] {
        let said = said(&[with(0, even.clone()), with(began_ms, other)]);
        assert!(said.starts_with("the limit is unclear") && said.contains(why), "{why}: {said}");
    }
    // Stages are no probes that disturb each other, and no probe can follow them.
    let stages = |per_s, interval| Some(Probe { duration_s: 0.0, requests: 0, ..probe(per_s, interval) });
    let (even, half) = (stages(1_000, [-0.1, 0.1]), stages(760, [0.9, 1.1]));
    for (began_ms, other) in [(12_000, half), (5_000, even.clone()), (12_000, None)] {
        let said = said(&[with(0, even.clone()), with(began_ms, other)]);
        assert!(said.starts_with("the limit is unclear") && !said.contains("probe"), "{said}");
    }
    // Where none took place, none was disturbed.
    let both = [with(0, Some(short.clone())), with(5_000, Some(short))];
    assert!(said(&both).ends_with("; --probe 7s may tell"), "{}", said(&both));
}

#[test]
fn the_gates_that_all_runs_have_are_judged_anew() {
    let gate = |term: &str| {
        let term = Judged { term: term.to_owned(), was: Some("10,000".to_owned()), holds: true, undecided: false };
        Gate::of(vec![term])
    };
    let with = |gates: &[&str]| {
        let mut run = run(0, 10);
        run.result.runs[0].gates = gates.iter().map(|term| gate(term)).collect();
        run
    };
    let all = ["requests<15000", "requests<30000", "p99>1s", "--strict"];
    let judged: Vec<(String, bool, String)> = sum(&[with(&all), with(&[all[3], all[0], all[1], all[2]])])
        .gates
        .iter()
        .map(|gate| (gate.condition(), gate.broken, gate.was()))
        .collect();
    let limited_by = sum(&[with(&[])]).verdict.unwrap().limited_by;
    assert_eq!(judged[0], (all[0].to_owned(), false, "it was 20,000".to_owned()));
    assert_eq!(judged[1], (all[1].to_owned(), true, "it was 20,000".to_owned()));
    // What cannot be read is left out.
    assert_eq!(judged[2], (all[3].to_owned(), false, format!("it was {}", limited_by.name())));
    assert_eq!(judged.len(), 3);
    assert_eq!(sum(&[with(&all), with(&[])]).gates, []);
}

#[test]
fn responses_of_runs_together_are_unreadable_if_most_are_for_one_reason() {
    let of = |counts: &[(u64, &str)], (ended, hanging), completed| {
        let all = counts.iter().map(|(requests, why)| Unreadable { requests: *requests, why: (*why).to_owned() });
        Unreadable::of(all, ended, hanging, completed).map(|it| (it.requests, it.why))
    };
    let counts = [(59, "answered in HTTP/1.1"), (61, "not an HTTP response")];
    assert_eq!(of(&counts, (121, 0), 0), Some((61, "not an HTTP response".to_owned())));
    assert_eq!((of(&counts, (122, 0), 0), of(&counts, (121, 0), 1), of(&[], (0, 0), 0)), (None, None, None));
    assert_eq!((of(&counts, (120, 121), 0).is_some(), of(&counts, (120, 122), 0)), (true, None), "more hang");
    let counts = [(22, "not an HTTP response"), (59, "answered in HTTP/1.1"), (40, "not an HTTP response")];
    assert_eq!(of(&counts, (121, 0), 0), Some((62, "not an HTTP response".to_owned())), "runs of one reason add up");
}

#[test]
fn connections_that_a_server_greeted_do_not_hide_what_cannot_be_read_in_a_sum() {
    let greeted = |began_ms| {
        after(outcome(began_ms, 10), |outcome| {
            outcome.totals = Totals::default();
            outcome.totals.counters.failed = 51;
            record_failures(outcome, 51, Phase::Head, Cause::Protocol(Error::NotHttp));
            record_failures(outcome, 73, Phase::Head, Cause::Protocol(Error::EarlyBytes));
        })
    };
    let why = "not an HTTP response".to_owned();
    let each = [greeted(0), greeted(20_000)];
    assert_eq!(evidence(&each[0]).load.unreadable, Some(Unreadable { requests: 51, why: why.clone() }));
    assert_eq!(evidence(&sum(&each)).load.unreadable, Some(Unreadable { requests: 102, why }));
}
