//! The notes on missed schedules and on uncertain percentiles.

use std::num::NonZeroU64;

use onrush_plan::levels::{self, ConnectionLevels};
use onrush_plan::schedule::{Arrivals, CatchUp};
use onrush_plan::{Partition, Schedule};
use onrush_stats::latencies::bin_of;
use onrush_stats::{Activity, Latencies, OpenLoopStats, RowFigures};

use super::*;
use crate::judge::notes::open_loop::ConnectionsAdvice;
use crate::run::WorkerShare;

const MS: u64 = 1_000_000;

/// 10 seconds with 10,000 due requests, all sent at once and completed after a millisecond.
fn kept() -> Outcome {
    let mut outcome = flawless(10_000, 1);
    outcome.totals.counters.slots_opened = 10;
    let open_loop = outcome.totals.open_loop.get_or_insert_default();
    open_loop.scheduled.record_many(MS, 10_000);
    open_loop.lateness.record_many(20_000, 10_000);
    open_loop.due = 10_000;
    outcome
}

fn changed(change: impl FnOnce(&mut OpenLoopStats<u64>)) -> Outcome {
    let mut outcome = kept();
    change(outcome.totals.open_loop.as_mut().unwrap());
    outcome
}

#[test]
fn kept_schedules_get_no_note() {
    assert_eq!(said(&kept()), Vec::<String>::new());
    // 1 % is not above the threshold of 1 %.
    assert_eq!(said(&changed(|open_loop| open_loop.late = 100)), Vec::<String>::new());
    assert_eq!(said(&changed(|open_loop| (open_loop.due, open_loop.unsent) = (10_100, 100))), Vec::<String>::new());
}

#[test]
fn closing_idle_connections_raises_no_doubt() {
    let mut outcome = kept();
    let counters = &mut outcome.totals.counters;
    counters.idle_closed = 100;
    let occupancy = &mut counters.occupancy;
    // Four of ten connections are waiting to reconnect.
    (occupancy.busy_ns, occupancy.open_ns, occupancy.waiting_ns) = (1_000 * MS, 60_000 * MS, 40_000 * MS);
    assert_eq!(said(&outcome), Vec::<String>::new(), "1 % is not more than that");
    outcome.totals.counters.idle_closed = 117;
    let words = "the server closed connections between requests 117 times; onrush reconnected";
    assert_eq!(said(&outcome), [words]);
    outcome.totals.counters.returned = 3;
    let words = "the server closed connections between requests, or answered a request with 408 and closed, 117 times; \
                 onrush reconnected and sent 3 requests again";
    assert_eq!(said(&outcome), [words]);
    let wrk2 = plan(Dialect::Wrk2, "http://h/", 10, 2, 10);
    assert_eq!(said_of(&wrk2, &outcome), Vec::<String>::new(), "where those are errors");
    outcome.totals.open_loop.as_mut().unwrap().late = 101;
    assert!(said(&outcome)[0].contains("4.0 were waiting to reconnect"), "{:?}", said(&outcome));
}

#[test]
fn stalls_are_gaps_even_with_slow_responses() {
    let mut outcome = changed(|_| ());
    outcome.silences = vec![Gap { from_ns: 2_000 * MS, until_ns: 4_000 * MS }];
    outcome.totals.latency.record_many(1_000 * MS, 3_000);
    assert_eq!(said(&outcome)[0], "no response from 2.0 s to 4.0 s");
    outcome.totals.latency.record_many(1_000 * MS, 9_000);
    assert!(!said(&outcome).concat().contains("no response"), "{:?}", said(&outcome));
}

/// Two threads that were always busy, `spun_ms` milliseconds of it busy-polling.
fn working_for(spun_ms: u64) -> Vec<WorkerShare> {
    let activity = Activity { wall_ns: 10_000 * MS, user_ns: 9_750 * MS, spun_ns: spun_ms * MS, ..Activity::default() };
    vec![WorkerShare { connections: 5, counters: Counters::default(), activity: Some(activity) }; 2]
}

#[test]
fn missed_rates_name_the_shortage() {
    let behind = || changed(|open_loop| (open_loop.due, open_loop.unsent) = (16_000, 6_000));
    let words = "only 10,000 of 16,000 due requests were sent (1,000/s), and 6,000 were still unsent at the end";
    assert_eq!(said_of(&with_rate(1_600), &behind()), [words]);
    let mut working = behind();
    working.workers = working_for(0);
    let why = "the 2 threads were always busy; add threads (-t) or machines";
    assert_eq!(said_of(&with_rate(1_600), &working), [format!("{words}: {why}")]);
    working.workers = working_for(5_000);
    assert!(!said_of(&with_rate(1_600), &working)[0].contains("threads"), "time spent busy-polling is not work");
    working.workers = working_for(0);
    working.elapsed = Duration::from_millis(100);
    assert!(
        !said_of(&with_rate(1_600), &working)[0].contains("threads"),
        "a run that is over before it has connections says nothing of threads"
    );
    // With `-n` all requests are due long before such a run ends.
    let mut few = changed(|open_loop| (open_loop.due, open_loop.dropped) = (10_200, 200));
    few.elapsed = Duration::from_secs(40);
    assert_eq!(said_of(&with_rate(1_600), &few)[0], "only 10,000 of 10,200 due requests were sent (250/s)");
}

#[test]
fn rising_latencies_depend_on_run_length() {
    let of = |seconds: [u64; 6]| {
        let mut outcome = changed(|open_loop| (open_loop.due, open_loop.unsent) = (16_000, 6_000));
        outcome.workers = working_for(0);
        let row = |seconds: u64| {
            let ns = seconds * 1_000 * MS;
            let scheduled = Latencies { sum_ns: u128::from(ns), max_ns: ns, bins: vec![(bin_of(ns), 1)] };
            RowFigures { scheduled, ..RowFigures::default() }
        };
        outcome.timeline.rows = seconds.into_iter().map(row).collect();
        said_of(&with_rate(1_600), &outcome).remove(0)
    };
    let grows = "6,000 were still unsent at the end, so latencies grow with the length of the run: the 2 threads";
    assert!(of([1, 2, 3, 4, 5, 6]).contains(grows), "{}", of([1, 2, 3, 4, 5, 6]));
    assert!(!of([1, 9, 1, 9, 1, 9]).contains(grows), "it is slow at times");
    assert!(!of([1, 2, 3, 3, 3, 3]).contains(grows), "the backlog stays as it is");
}

#[test]
fn warm_up_leftovers_count_as_asked() {
    let outcome = changed(|open_loop| (open_loop.due, open_loop.carried, open_loop.unsent) = (8_000, 6_000, 4_000));
    let words = "only 10,000 of 14,000 due requests (6,000 left over from the warm-up) were sent (1,000/s), and 4,000 \
                 were still unsent at the end";
    assert_eq!(said_of(&with_rate(800), &outcome)[0], words);
    // One request in a hundred seconds does not show in the rate.
    let mut long = changed(|open_loop| (open_loop.due, open_loop.carried, open_loop.unsent) = (13_999, 1, 4_000));
    long.elapsed = Duration::from_secs(101);
    assert!(!said_of(&with_rate(140), &long)[0].contains("warm-up"));
}

#[test]
fn connections_without_due_requests_do_not_pause() {
    let mut outcome = changed(|_| ());
    outcome.pauses = true;
    // Ten connections, nine of which have nothing to send.
    outcome.totals.counters.occupancy.open_ns *= 10;
    assert_eq!(said_of(&with_rate(1_000), &outcome), Vec::<String>::new());
    // In a closed loop, the nine connections pause.
    outcome.totals.open_loop = None;
    assert!(said(&outcome)[0].contains("9.0 were pausing for the script"), "{:?}", said(&outcome));
}

#[test]
fn runs_without_due_requests_blame_nobody() {
    let mut outcome = changed(|open_loop| *open_loop = OpenLoopStats::default());
    outcome.totals.counters = Counters { slots_opened: 10, ..Counters::default() };
    let words = "no request was due while the run was measured; use a longer run or a higher rate";
    assert_eq!(said(&outcome), [words]);
}

/// Scheduled requests with all ten connections busy for `busy_s` of ten seconds; responses took 10 ms.
fn crowded(per_s: u64, busy_s: u64, unsent: u64, calm_ms: &[u64]) -> Vec<String> {
    crowded_of(&with_rate(per_s), busy_s, unsent, calm_ms)
}

fn with_rate(per_s: u64) -> Plan {
    Plan { schedule: Some(schedule(per_s)), ..plan(Dialect::Native, "http://h/", 10, 2, 10) }
}

fn crowded_of(plan: &Plan, busy_s: u64, unsent: u64, calm_ms: &[u64]) -> Vec<String> {
    let mut outcome = changed(|open_loop| {
        (open_loop.due, open_loop.unsent) = (10_000 + unsent, unsent);
        // The total of two threads.
        open_loop.all_busy_ns = 2 * busy_s * 1_000 * MS;
        // The connections were busy for long, but no request waited longer than 20 ms.
        open_loop.all_busy_max_ns = 700 * MS;
        open_loop.lateness.clear();
        open_loop.lateness.record_many(0, 9_999);
        open_loop.lateness.record(20 * MS);
        (open_loop.calm, open_loop.calm_ns) = (calm_ms.len() as u64, calm_ms.iter().sum::<u64>() * MS);
    });
    outcome.totals.latency.clear();
    outcome.totals.latency.record_many(10 * MS, 10_000);
    speak(&mut outcome, plan);
    let said = said_of(plan, &outcome);
    let words = ["busy", "were sent", "as allowed"];
    said.into_iter().filter(|said| words.iter().any(|words| said.contains(words))).collect()
}

/// Makes the connections speak HTTP/2 if the plan has streams.
fn speak(outcome: &mut Outcome, plan: &Plan) {
    if plan.http.streams.is_some() {
        outcome.http2.get_or_insert_default().connections = 10;
    }
}

fn with_streams(mut plan: Plan) -> Plan {
    plan.http = Http { versions: vec![HttpVersion::Http2], streams: Some(2), ..plan.http };
    plan
}

#[test]
fn http2_needs_are_requests_in_flight() {
    let plan = with_streams(with_rate(1_600));
    let words = ": all connections had as many requests in flight as allowed (20 in total); about 24 requests in flight would \
                 be needed; use --streams 3";
    assert!(crowded_of(&plan, 9, 6_000, &[10, 9])[0].ends_with(words));
    let words = "responses took 4.00ms while fewer than half as many were in flight, and 10.00ms on average";
    assert!(crowded_of(&plan, 9, 6_000, &[3, 5])[0].contains(words));
    // Each of 20 requests in flight, and of the requests that waited at the same time.
    assert!(crowded_of(&with_streams(with_rate(1_000)), 2, 0, &[10])[0].ends_with("; use --streams 4"));
}

#[test]
fn busy_connections_name_the_number_needed() {
    // 16 are in flight, plus a margin of twice the square root of 16.
    let words = ": all 10 connections were busy; about 24 connections would be needed; use -c 24";
    assert!(crowded(1_600, 9, 6_000, &[10, 9])[0].ends_with(words));
    let words = "; responses took 4.00ms while fewer than half of the connections were busy, and 10.00ms on average: the target \
                 may be the limit";
    assert!(crowded(1_600, 9, 6_000, &[3, 5])[0].ends_with(words));
    assert!(crowded(1_600, 9, 6_000, &[])[0].ends_with("; more connections may help (-c)"));
    // All were sent, but some late: 20 waited at one time, or 2 where ten would suffice on average.
    let words = "for 20 % of the run, all 10 connections were busy while requests were due; about 30 connections would be needed; use -c 30";
    assert_eq!(crowded(1_000, 2, 0, &[10]), [words]);
    assert!(crowded(100, 2, 0, &[10])[0].ends_with("; use -c 12"));
    assert_eq!(crowded(1_000, 0, 0, &[10]), Vec::<String>::new());
}

#[test]
fn target_limits_advise_no_connections() {
    let outcome = changed(|open_loop| {
        (open_loop.due, open_loop.unsent) = (16_000, 6_000);
        open_loop.all_busy_ns = 18_000 * MS;
        (open_loop.calm, open_loop.calm_ns) = (2, 2 * MS);
    });
    let advised = |more| {
        let document = Document::of(&with_rate(1_600), &outcome);
        let notes = super::super::open_loop::open_loop_notes(&NoteFacts::from_document(&document), more, false);
        notes.into_iter().map(|note| note.text).find(|words| words.contains("busy")).unwrap()
    };
    let unknown = advised(ConnectionsAdvice::Unknown);
    assert!(unknown.contains("would be needed"), "{unknown}");
    let useless = advised(ConnectionsAdvice::Useless);
    assert!(useless.contains("more connections may not help: they were probably not the limit"), "{useless}");
}

#[test]
fn dominant_catch_up_limits_are_blamed() {
    let mut plan = with_rate(1_600);
    plan.schedule.as_mut().unwrap().catch_up = CatchUp::from_thousandths(1_250);
    let of = |held_back| {
        let mut outcome = changed(|open_loop| (open_loop.due, open_loop.unsent) = (16_000, 6_000));
        let open_loop = outcome.totals.open_loop.as_mut().unwrap();
        (open_loop.held_back, open_loop.all_busy_ns) = (held_back, 10_000 * MS);
        said_of(&plan, &outcome)
    };
    let words =
        ": --catch-up 1.25 held the others back; without it, late requests are sent as soon as a connection is free";
    assert!(of(3_001)[0].ends_with(words), "{:?}", of(3_001));
    assert!(of(3_000)[0].contains("busy"), "{:?}", of(3_000));
}

#[test]
fn connections_are_not_advised_for_an_unresponsive_target() {
    let of = |unsent: u64, busy_ms: u64, silent_ms: u64| {
        let mut outcome = changed(|open_loop| {
            (open_loop.due, open_loop.unsent) = (10_000 + unsent, unsent);
            (open_loop.all_busy_ns, open_loop.all_busy_max_ns) = (2 * busy_ms * MS, 1_500 * MS);
            (open_loop.calm, open_loop.calm_ns) = (5_000, 5_000 * MS);
        });
        // One request on each connection completed after the silence.
        outcome.totals.latency.record_many(silent_ms * MS, 10);
        outcome.silences = vec![Gap { from_ns: 4_000 * MS, until_ns: (4_000 + silent_ms) * MS }];
        let said = said_of(&with_rate(1_150), &outcome);
        said.into_iter().filter(|words| words.contains("busy")).collect::<Vec<_>>()
    };
    assert!(of(0, 1_500, 1_500)[0].ends_with("; the target sent no response during that time"));
    assert!(of(1_500, 1_500, 1_500)[0].ends_with(": all 10 connections were busy while the target sent no response"));
    // No number of connections is enough for a silent target.
    let advice = "; more connections may not help: they were probably not the limit";
    assert!(of(0, 6_000, 1_500)[0].ends_with(advice));
}

#[test]
fn script_pauses_need_connections() {
    let mut outcome = changed(|open_loop| {
        (open_loop.due, open_loop.unsent) = (100_000, 90_000);
        (open_loop.all_busy_ns, open_loop.paused_ns) = (20_000 * MS, 10_000 * 100 * MS);
        (open_loop.calm, open_loop.calm_ns) = (10_000, 10_000 * MS);
    });
    outcome.pauses = true;
    let said = said_of(&with_rate(1_000), &outcome);
    let words =
        "all 10 connections were busy or pausing for the script; about 122 connections would be needed; use -c 122";
    assert!(said.iter().any(|line| line.contains(words)), "{said:?}");
}

#[test]
fn connection_advice_names_the_applicable_limit() {
    let mut plan = with_rate(1_600);
    plan.load.max_inflight = 15;
    let words = "for 20 % of the run, all connections of a thread were busy (15 connections are divided unevenly among 2 threads) while requests were due; about 47 connections would be needed; use --max-inflight 47";
    assert_eq!(crowded_of(&plan, 2, 0, &[10]), [words]);
    let mut plan = with_rate(1_600);
    let stage = levels::ConnectionLevel { length: Duration::from_secs(10), from: 1, to: 10 };
    plan.levels = Some(ConnectionLevels { stages: vec![stage], part: Partition::WHOLE });
    let advice = "; about 24 connections would be needed; raise --stages c=";
    assert!(crowded_of(&plan, 2, 0, &[10])[0].ends_with(advice));
    // The number of connections of another stage is not useful advice.
    plan.schedule = Some(schedule(100));
    assert!(crowded_of(&plan, 2, 0, &[10])[0].ends_with("; more connections may help (--stages c=)"));
}

#[test]
fn in_flight_advice_names_the_option() {
    let mut plan = with_streams(with_rate(1_600));
    let advised = |plan: &Plan| {
        let said = crowded_of(plan, 9, 6_000, &[10, 9]);
        said[0].split_once("needed; ").map(|(_, advice)| advice.split(';').next().unwrap().to_owned())
    };
    assert_eq!(advised(&plan).as_deref(), Some("use --streams 3"), "24 on ten connections");
    plan.schedule = Some(schedule(200_000));
    assert_eq!(advised(&plan).as_deref(), Some("use -c 1045"), "servers may allow only 100 streams: 2,090 on two each");
    plan.load.max_inflight = 20;
    assert_eq!(advised(&plan).as_deref(), Some("use --max-inflight 2090"));
    let plan = |per_s| with_rate(per_s);
    assert_eq!(advised(&plan(900_000)).as_deref(), Some("use -c 9190"));
    let said = crowded(6_000_000, 9, 6_000, &[10, 9]);
    assert!(said[0].contains("more connections may help (-c)") && !said[0].contains("60,"), "{said:?}");
}

#[test]
fn unreached_stages_miss_no_connections() {
    let of = |opened: u64, elapsed_s: u64| {
        let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        let stage = |from, to| levels::ConnectionLevel { length: Duration::from_secs(5), from, to };
        plan.levels = Some(ConnectionLevels { stages: vec![stage(2, 2), stage(2, 10)], part: Partition::WHOLE });
        let mut outcome = flawless(1_000 * elapsed_s, 1);
        outcome.totals.counters.slots_opened = opened;
        outcome.elapsed = Duration::from_secs(elapsed_s);
        said_of(&plan, &outcome)
    };
    let missed = |opened: u64, asked: u64| {
        vec![format!("only {opened} of the {asked} connections that the stages had asked for so far were established")]
    };
    assert_eq!(of(2, 5), Vec::<String>::new());
    assert_eq!(of(1, 5), missed(1, 2));
    assert_eq!(of(8, 10), Vec::<String>::new());
    assert_eq!(of(7, 10), missed(7, 8));
    // 2,000 connections needed for only 5 ms are not missed.
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    let stages = [(1_000, 3), (5, 2_000), (9_000, 1)];
    let stages = stages.map(|(ms, to)| levels::ConnectionLevel { length: Duration::from_millis(ms), from: to, to });
    plan.levels = Some(ConnectionLevels { stages: stages.into(), part: Partition::WHOLE });
    let mut outcome = flawless(10_000, 1);
    outcome.totals.counters.slots_opened = 3;
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
    outcome.totals.counters.slots_opened = 2;
    assert_eq!(said_of(&plan, &outcome), missed(2, 3));
}

#[test]
fn staged_runs_advise_no_longer_duration() {
    let mut plan = with_rate(1_000);
    plan.stop.requests = Some(20_000);
    let advised = |plan: &Plan| {
        said_of(plan, &kept()).into_iter().find_map(|line| Some(line.split_once("completed; ")?.1.to_owned()))
    };
    assert_eq!(advised(&plan).as_deref(), Some("use a longer -d"));
    plan.schedule.as_mut().unwrap().stages[0].length = Some(Duration::from_secs(10));
    assert_eq!(advised(&plan).as_deref(), Some("use longer stages"));
    plan.schedule = None;
    plan.levels = Some(ConnectionLevels { stages: Vec::new(), part: Partition::WHOLE });
    assert_eq!(advised(&plan).as_deref(), Some("use longer stages"));
}

#[test]
fn late_and_dropped_requests_are_noted() {
    let late_too = |change: fn(&mut OpenLoopStats<u64>)| {
        changed(|open_loop| {
            open_loop.late = 200;
            open_loop.lateness.clear();
            open_loop.lateness.record_many(20_000, 9_800);
            open_loop.lateness.record_many(5 * MS, 199);
            open_loop.lateness.record(40 * MS);
            change(open_loop);
        })
    };
    let late = late_too(|_| ());
    let words = "200 of 10,000 requests (2.00 %) were sent more than 1 ms late, which latencies include (delay of all \
                 requests: p99 5.00ms, max 40.00ms)";
    assert_eq!(said_of(&with_rate(1_000), &late), [words]);
    let mut stalled = late_too(|_| ());
    stalled.stalls = vec![Gap { from_ns: 1_000 * MS, until_ns: 1_150 * MS }];
    let reason = format!("{words}: onrush itself was stalled for 150.00ms in total");
    assert_eq!(said_of(&with_rate(1_000), &stalled), [reason]);
    let mut blocked = stalled.clone();
    let activity = Activity { wall_ns: 10_000 * MS, held_up_ns: 300 * MS, ..Activity::default() };
    let counters = blocked.totals.counters;
    blocked.workers = vec![WorkerShare { connections: 10, counters, activity: Some(activity) }];
    let reason = format!("{words}: the script's callbacks held up a thread of onrush for 3 % of the time");
    assert_eq!(said_of(&with_rate(1_000), &blocked), [reason]);
    let mut waited = late_too(|_| ());
    let activity = Activity { wall_ns: 10_000 * MS, user_ns: MS, queued_ns: Some(1_200 * MS), ..Activity::default() };
    let counters = waited.totals.counters;
    waited.workers = vec![WorkerShare { connections: 10, counters, activity: Some(activity) }];
    let reason = format!("{words}: a thread of onrush waited for a processor for 12 % of the time");
    assert_eq!(said_of(&with_rate(1_000), &waited), [reason]);
    // All connections were busy long enough to make as many requests late.
    let crowded = said_of(&with_rate(1_000), &late_too(|open_loop| open_loop.all_busy_ns = 300 * 2 * MS));
    assert!(
        crowded[0].starts_with("for 3 % of the run, all 10 connections were busy while requests were due"),
        "{crowded:?}"
    );
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    plan.schedule = Some(Schedule { send_slice: Some(Duration::from_micros(500)), ..schedule(1_000) });
    assert!(said_of(&plan, &late)[0].contains(" were sent more than 1.5 ms late, "));
    let dropped = changed(|open_loop| (open_loop.due, open_loop.dropped) = (10_037, 37));
    let words = "37 of 10,037 requests were dropped because they would have been sent too late (--max-late); mean and \
                 maximum leave them out, percentiles estimate them";
    assert_eq!(said(&dropped), [words]);
    let carried = changed(|open_loop| (open_loop.due, open_loop.carried, open_loop.dropped) = (1, 36, 37));
    assert!(said(&carried).iter().any(|words| words.starts_with("37 of 37 requests were dropped")), "of a warm-up too");
    let as_wrk2 = Plan { schedule: Some(schedule(1_000)), ..super::plan(Dialect::Wrk2, "http://h/", 10, 2, 10) };
    assert!(said_of(&as_wrk2, &dropped)[0].ends_with("; no latency includes them"));
}

#[test]
fn bursts_on_few_connections_explain_lateness() {
    let with_burst = |size| {
        let mut plan = with_rate(1_000);
        plan.schedule.as_mut().unwrap().arrivals = Arrivals::Burst(NonZeroU64::new(size).unwrap());
        plan
    };
    let of = |plan: &Plan, batch: usize| {
        let mut outcome = changed(|open_loop| open_loop.late = 200);
        outcome.batch = batch;
        speak(&mut outcome, plan);
        let words = said_of(plan, &outcome)[0].clone();
        words.split_once("max 20.00us)").unwrap().1.to_owned()
    };
    assert_eq!(of(&with_burst(10), 1), "");
    let mut plan = with_burst(50);
    assert_eq!(of(&plan, 1), ": bursts of 50 requests met only 10 connections; use -c 50 or --max-inflight 50");
    let crowded = crowded_of(&plan, 2, 0, &[10]);
    assert_eq!(crowded, Vec::<String>::new(), "with another number");
    assert_eq!(of(&plan, 4), ": bursts of 50 requests met only 10 connections; use -c 13 or --max-inflight 52");
    let streams = with_streams(plan.clone());
    assert_eq!(of(&streams, 1), ": bursts of 50 requests met room for only 20; use --max-inflight 50");
    assert_eq!(of(&with_streams(with_burst(20)), 1), "");
    assert_eq!(of(&plan, 5), "", "each connection takes a batch");
    plan.levels = Some(ConnectionLevels { stages: Vec::new(), part: Partition::WHOLE });
    assert_eq!(of(&plan, 1), ": bursts of 50 requests met only 10 connections; raise --stages c= to 50");
}

#[test]
fn slice_waits_are_noted() {
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    plan.schedule = Some(Schedule { send_slice: Some(Duration::from_micros(200)), ..schedule(1_000) });
    let sliced = |mean: &str| {
        format!(
            "sends were grouped into slices of 200us (--send-slice), which delays each by up to as much; requests \
             were {mean} late on average, for any reason"
        )
    };
    assert_eq!(said_of(&plan, &kept()), [sliced("20.00us")]);
    // Lateness caused by a stalled target is not due to slices.
    let stalled = changed(|open_loop| open_loop.lateness.record_many(90_000_000, 10_000));
    assert_eq!(said_of(&plan, &stalled), [sliced("45.01ms")]);
    // If no slice ends during the run, all requests are sent when they are due.
    for (slice_ms, warmup_ms, duration_ms, is_said) in [
        (1_000, 0, 1_000, false),
        (999, 0, 1_000, true),
        (1_000, 300, 800, true),
        (1_000, 300, 700, false),
        (900, 900, 900, false),
    ] {
        (plan.warmup, plan.stop.duration) =
            (Duration::from_millis(warmup_ms), Some(Duration::from_millis(duration_ms)));
        plan.schedule.as_mut().unwrap().send_slice = Some(Duration::from_millis(slice_ms));
        assert_eq!(said_of(&plan, &kept()).concat().contains("--send-slice"), is_said, "{slice_ms} {warmup_ms}");
    }
}

#[test]
fn small_runs_have_no_percentages() {
    let late = |late: u64, others: u64| {
        let outcome = changed(|open_loop| {
            open_loop.lateness.clear();
            open_loop.lateness.record_many(20_000, others);
            open_loop.lateness.record_many(5 * MS, late);
            (open_loop.due, open_loop.late) = (late + others, late);
        });
        let said = said(&outcome).into_iter().find_map(|words| Some(words.split_once(" were sent more")?.0.to_owned()));
        (said.unwrap_or_default(), said_of(&with_rate(1_000), &outcome).concat().contains(": p99 "))
    };
    assert_eq!(late(5, 9), ("5 of 14 requests".to_owned(), false));
    assert_eq!(late(20, 979), ("20 of 999 requests (2.00 %)".to_owned(), false));
    assert_eq!(late(20, 980), ("20 of 1,000 requests (2.00 %)".to_owned(), true));
}

#[test]
fn first_uncertain_percentile_is_named() {
    let dropped = |ages: &[(u64, u64)]| {
        changed(|open_loop| {
            ages.iter().for_each(|&(ns, count)| open_loop.censored.record_many(ns, count));
            open_loop.dropped = open_loop.censored.count();
        })
    };
    let note = |outcome: &Outcome| {
        let said = said(outcome);
        said.into_iter().find_map(|words| Some(words.split_once("percentiles from ")?.1.to_owned()))
    };
    let first = |outcome: &Outcome| Some(note(outcome)?.split_once("; ")?.1.split(',').next()?.to_owned());
    // All other percentiles are known: the 99.999th of so few values is the largest one.
    assert_eq!(note(&dropped(&[(MS, 1)])), None);
    assert_eq!(
        note(&dropped(&[(MS, 11)])).as_deref(),
        Some(
            "the 99.9th up are uncertain; the 99.9th is at least 1.00ms, with no upper bound, because 0.11 % of the requests due were dropped"
        )
    );
    assert_eq!(first(&dropped(&[(5 * MS, 20_000)])).as_deref(), Some("the 50th is at least 5.00ms"));
    let mut between = dropped(&[(2 * MS, 60)]);
    between.totals.open_loop.as_mut().unwrap().scheduled.record_many(3 * MS, 100);
    assert_eq!(first(&between).as_deref(), Some("the 99.9th is at least 3.00ms"));
    let wrk2 = plan(Dialect::Wrk2, "http://h/", 10, 2, 10);
    let all = said_of(&wrk2, &dropped(&[(5 * MS, 20_000)])).concat();
    assert!(!all.contains("percentiles from"), "wrk2 does not know of them: {all}");
    // Failed requests have no age.
    let mut failed = changed(|_| ());
    failed.totals.counters.failed = 1_000;
    failed.totals.counters.started += 1_000;
    assert!(note(&failed).is_some_and(|note| note.ends_with(" because 9.09 % of the requests due failed")));
}

#[test]
fn ordinary_open_requests_keep_percentiles_certain() {
    let said = |ages: &[(u64, u64)], change: &dyn Fn(&mut OpenLoopStats<u64>)| {
        let mut outcome = changed(|open_loop| {
            open_loop.scheduled.clear();
            open_loop.scheduled.record_many(100 * MS, 9_900);
            for &(ns, count) in ages {
                open_loop.censored.record_many(ns, count);
                open_loop.open.get_or_insert_default().record_many(ns, count);
            }
            change(open_loop);
        });
        outcome.totals.counters.open_at_end =
            outcome.totals.open_loop.as_deref().and_then(|it| it.open.as_deref()).map_or(0, |ages| ages.count());
        let said = said_of(&with_rate(1_000), &outcome);
        said.into_iter().find_map(|words| Some(words.split_once("with no upper bound, because ")?.1.to_owned()))
    };
    let words = |words: &str| Some(words.to_owned());
    let ordinary = [(20 * MS, 50), (100 * MS, 50)];
    let dropped = |open_loop: &mut OpenLoopStats<u64>| {
        open_loop.dropped = 200;
        open_loop.censored.record_many(MS, 200);
    };
    let unsent = |open_loop: &mut OpenLoopStats<u64>| {
        open_loop.unsent = 200;
        open_loop.censored.record_many(MS, 200);
        open_loop.open.get_or_insert_default().record_many(MS, 200);
    };
    assert_eq!(said(&ordinary, &|_| ()), None);
    // Too old, too many, or never sent.
    assert_eq!(
        said(&[(20 * MS, 90), (200 * MS, 10)], &|_| ()),
        words("0.1 % of the requests due had no response by the end")
    );
    assert_eq!(said(&[(20 * MS, 200)], &|_| ()), words("1.98 % of the requests due had no response by the end"));
    assert_eq!(said(&ordinary, &dropped), words("1.96 % of the requests due were dropped"));
    assert_eq!(
        said(&ordinary, &unsent),
        words("1.96 % of the requests due were not sent by the end and 0.98 % had no response by the end")
    );
    // The backlog of an overloaded target grows until the end.
    let behind = |open_loop: &mut OpenLoopStats<u64>| {
        open_loop.scheduled.clear();
        (0..5_000).for_each(|ms| open_loop.scheduled.record(ms * MS));
        (0..5_000).for_each(|ms| open_loop.censored.record(ms * MS));
        (0..5_000).for_each(|ms| open_loop.open.get_or_insert_default().record(ms * MS));
    };
    assert_eq!(said(&[], &behind), words("49.99 % of the requests due had no response by the end"));
}
