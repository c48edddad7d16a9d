//! Sums of sums: whatever is added to what first, the same bytes are written.

use std::path::Path;
use std::time::Duration;

use onrush_plan::{Dialect, FileContents, LuaScript, Random};
use onrush_stats::{Activity, Cause, Distribution, Interval, Negotiated, Phase, SocketSamples};

use super::super::super::tests::plan;
use super::super::super::{Document, Http2, RunResult};
use super::judged;
use crate::run::{Breakdown, WorkerShare};
use crate::{fixtures, judge};

/// When a run began, in microseconds after the earliest of all, and how long it lasted, in milliseconds.
type Time = (u64, u64);

/// Adds the parts in some groupings, each sum written and read again before it is added to others.
pub(super) fn assert_any_grouping_is(all: &Document, parts: &[(String, Document)], random: &mut Random) {
    for _ in 0..4 {
        let mut left = parts.to_vec();
        while left.len() > 1 {
            let count = 2 + random.below(left.len() as u64 - 1) as usize;
            let mut group = Vec::new();
            (0..count).for_each(|_| group.push(left.swap_remove(random.below(left.len() as u64) as usize)));
            let text = judged(&group).to_json();
            let read = RunResult::parse(Path::new("sum.json"), text.as_bytes()).unwrap();
            left.push(("sum.json".to_owned(), judge::judge_result(read, |_| None)));
        }
        assert_same(&left[0].1.to_json(), &all.to_json());
    }
}

/// Fails with the first line that differs.
fn assert_same(one: &str, other: &str) {
    let lines = || one.lines().zip(other.lines());
    let Some(at) = lines().position(|(mine, theirs)| mine != theirs) else { return assert_eq!(one, other) };
    let some = |text: &str| text.lines().skip(at.saturating_sub(20)).take(25).collect::<Vec<_>>().join("\n");
    panic!("line {at}:\n{}\n\ninstead of\n\n{}", some(one), some(other));
}

/// A run with some of everything, in rows of a second.
fn drawn(random: &mut Random, has_rate: bool, (began_us, lasted_ms): Time) -> Document {
    let second = |second: u64| {
        let (from_ms, until_ms) = (second * 1_000, lasted_ms.min((second + 1) * 1_000));
        interval(random, has_rate, from_ms, until_ms)
    };
    let intervals: Vec<Interval> = (0..lasted_ms.div_ceil(1_000)).map(second).collect();
    let mut document = recorded(random, has_rate, (began_us, lasted_ms), &intervals.iter().collect::<Vec<_>>());
    document.result.sums.http2 = (random.below(3) > 0).then(|| Http2 {
        connections: random.below(9),
        connections_ended: (0..random.below(3)).map(|code| (code.to_string(), 1 + random.below(9))).collect(),
        streams_allowed: (random.below(2) > 0).then(|| random.below(200) as u32),
        streams_peak: random.below(100) as u32,
        goaway_received: (0..random.below(3)).map(|code| (code.to_string(), 1 + random.below(9))).collect(),
        returned: random.below(1 << 40),
        streams_blocked_us: random.below(1 << 40),
        data_bytes_received: random.below(1 << 40),
        lingers: random.below(1 << 40),
        linger_max_us: random.below(100),
        ..Http2::default()
    });
    document
}

/// A run by a script and over TLS in which this happened.
fn recorded(random: &mut Random, has_rate: bool, (began_us, lasted_ms): Time, intervals: &[&Interval]) -> Document {
    let mut plan = plan(Dialect::Native);
    plan.schedule = has_rate.then(|| fixtures::schedule(1_000));
    plan.script = Some(LuaScript { file: FileContents::from_bytes("a.lua", Vec::new()), args: Vec::new() });
    plan.output.labels = [("kind".to_owned(), format!("{}", random.below(2)))].into();
    let mut outcome = fixtures::flawless(0, 1);
    outcome.totals.clear();
    outcome.started_at += Duration::from_micros(began_us);
    outcome.elapsed = Duration::from_millis(lasted_ms);
    outcome.suspended = Duration::from_nanos(random.below(1_000_000_007));
    if has_rate {
        outcome.totals.open_loop.get_or_insert_default();
    }
    outcome.totals.phases.get_or_insert_default();
    for interval in intervals {
        outcome.totals += *interval;
        outcome.timeline.record(interval);
    }
    outcome.timeline.end_run(lasted_ms * 1_000_000);
    if random.below(4) > 0 {
        outcome.breakdown = Some(Breakdown::Script(format!("it failed after {began_us} us")));
    }
    let mut sampled = SocketSamples { samples: 1 + random.below(9), readings: 7, ..SocketSamples::default() };
    (0..7).for_each(|_| sampled.rtt_us.record(random.below(100_000)));
    (0..random.below(2)).for_each(|_| sampled.cwnd.record(10));
    outcome.sampled = Some(sampled);
    let activity = Activity {
        wall_ns: lasted_ms * 1_000_000,
        user_ns: random.below(lasted_ms * 500_000),
        system_ns: random.below(lasted_ms * 500_000),
        queued_ns: Some(0),
        script_ns: random.below(lasted_ms * 300_000),
        waits: 9,
        ..Activity::default()
    };
    outcome.totals.activity = activity;
    outcome.workers =
        vec![WorkerShare { connections: 10, counters: outcome.totals.counters, activity: Some(activity) }];
    Document::judged(&plan, &outcome)
}

/// What happened between these times.
fn interval(random: &mut Random, has_rate: bool, from_ms: u64, until_ms: u64) -> Interval {
    let tenth = (from_ms / 100) as u32;
    let mut interval = Interval { from_ns: from_ms * 1_000_000, until_ns: until_ms * 1_000_000, ..Interval::default() };
    for number in 0..random.below(200) {
        // Up to seconds, so that neither sums nor squares follow from rounded figures.
        let bits = 10 + random.below(22);
        let ns = random.below(1 << bits);
        interval.latency.record(ns);
        let status = if random.below(9) == 0 { [302, 404, 503][number as usize % 3] } else { 200 };
        interval.statuses.record(status);
        interval.counters.completed += 1;
        let phases = interval.phases.get_or_insert_default();
        phases.ttfb.record(ns / 3);
        phases.ttlb.record(ns - ns / 3);
        let scheduled_ns = ns + random.below(1 << 25);
        if has_rate {
            let open_loop = interval.open_loop.get_or_insert_default();
            open_loop.record_response(scheduled_ns, ns, false);
            open_loop.lateness.record(scheduled_ns - ns);
            open_loop.due += 1;
            open_loop.late += u64::from(scheduled_ns > ns + 1_000_000);
        }
        interval.by_class.get_or_insert_default().record(status, if has_rate { scheduled_ns } else { ns });
        if status >= 400 {
            interval.counters.unsuccessful += 1;
            interval.ledger.record(Phase::Status, Cause::Status(status), tenth + random.below(10) as u32, Vec::new);
        }
    }
    let phases = interval.phases.get_or_insert_default();
    phases.connect.record(random.below(1 << 30));
    phases.tls.get_or_insert_default().record(random.below(1 << 29));
    for _ in 0..random.below(4) {
        let example = format!("example {}", random.below(50)).into_bytes();
        let example = if random.below(2) == 0 { Vec::new() } else { example };
        let cause = Cause::Errno(100 + random.below(4) as i32);
        interval.ledger.record(Phase::Head, cause, tenth + random.below(10) as u32, || example);
        interval.counters.failed += 1;
    }
    interval.counters.started = interval.counters.completed + interval.counters.failed;
    interval.counters.batches = interval.counters.completed;
    interval.counters.interim = random.below(5);
    interval.counters.slots_opened = u64::from(tenth == 0) * 10;
    interval.counters.bytes_received = random.below(1 << 40);
    interval.counters.occupancy.in_flight_ns = random.below(10_000_000_000);
    interval.counters.occupancy.busy_ns = random.below(1_000_000_000);
    let negotiated =
        Negotiated { version: 0x304, suite: 0x1301 + random.below(2) as u16, group: 0x1d, is_http2: false };
    interval.handshakes.record(negotiated, random.below(2) == 0);
    interval.rates = Distribution::default();
    (0..9).for_each(|_| interval.rates.record(random.below(1 << 40)));
    if has_rate {
        let open_loop = interval.open_loop.get_or_insert_default();
        (0..interval.counters.failed).for_each(|_| open_loop.lateness.record(5));
        open_loop.due += interval.counters.failed + 2;
        (open_loop.dropped, open_loop.untimestamped) = (2, random.below(3));
        (0..2).for_each(|_| open_loop.censored.record(random.below(1 << 31)));
    }
    interval
}

/// The sum of five drawn runs is the same in any grouping.
fn check(seed: u64, time: impl Fn(&mut Random, u64) -> Time) {
    for has_rate in [false, true] {
        let random = &mut Random::new(seed);
        let part = |index| {
            let time = time(random, index);
            (format!("{index}.json"), drawn(random, has_rate, time))
        };
        let parts: Vec<(String, Document)> = (0..5).map(part).collect();
        let all = judged(&parts);
        assert!(all.verdict.is_some() && all.latency.by_class.len() == 3 && all.incomplete.is_some());
        assert_any_grouping_is(&all, &parts, random);
    }
}

#[test]
fn parts_of_runs_give_the_same_sum_in_any_grouping() {
    check(1, |_, _| (0, 2_500));
}

#[test]
fn simultaneous_runs_give_the_same_sum_in_any_grouping() {
    check(2, |random, _| (0, 1_000 * (1 + random.below(4))));
}

#[test]
fn successive_runs_give_the_same_sum_in_any_grouping() {
    check(3, |random, index| (index * 5_000_000 + random.below(900_000), 1 + random.below(4_000)));
}

#[test]
fn overlapping_runs_give_the_same_sum_in_any_grouping() {
    check(4, |random, _| (random.below(5_000_000), 1 + random.below(4_000)));
}

#[test]
fn any_split_of_a_run_has_the_same_sum() {
    for has_rate in [false, true] {
        let random = &mut Random::new(5);
        let intervals: Vec<Interval> =
            (0..25).map(|tenth| interval(random, has_rate, tenth * 100, (tenth + 1) * 100)).collect();
        let mut sums: Vec<Document> = Vec::new();
        for _ in 0..2 {
            let mut parts: Vec<Vec<&Interval>> = vec![Vec::new(); 5];
            let mut left: Vec<&Interval> = intervals.iter().collect();
            while !left.is_empty() {
                let interval = left.swap_remove(random.below(left.len() as u64) as usize);
                parts[random.below(5) as usize].push(interval);
            }
            let part = |(index, part): (usize, &Vec<&Interval>)| {
                (format!("{index}.json"), recorded(random, has_rate, (0, 2_500), part))
            };
            let parts: Vec<(String, Document)> = parts.iter().enumerate().map(part).collect();
            let sum = judged(&parts);
            assert_any_grouping_is(&sum, &parts, random);
            sums.push(sum);
        }
        for sum in &sums {
            // What the parts have of their own: threads, how each ended, evidence, and times rounded to microseconds.
            let Document { labels, suspended_s, incomplete, in_flight, sockets, threads, script, .. } = sums[0].clone();
            let Document { sources, evidence, unseen, verdict, notes, .. } = sums[0].clone();
            let same = Document {
                labels,
                suspended_s,
                incomplete,
                in_flight,
                sockets,
                threads,
                script,
                sources,
                evidence,
                unseen,
                verdict,
                notes,
                ..sum.clone()
            };
            let figures = |document: &Document| serde_json::to_string_pretty(document).unwrap();
            assert_same(&figures(&same), &figures(&sums[0]));
        }
    }
}
