//! The notes on silences and stalls.

use onrush_plan::Partition;
use onrush_plan::levels::{ConnectionLevel, ConnectionLevels};

use super::*;
use crate::fixtures::schedule;
use crate::run::DueGap;

#[test]
fn gaps_are_noted_with_the_longest() {
    let many = [(100, 400), (1_312, 2_489), (3_000, 3_300), (4_000, 4_600), (9_500, 10_000)];
    let sentence = "no response from 1.3 s to 2.5 s, from 4.0 s to 4.6 s and from 9.5 s to the end (and in 2 shorter \
                    gaps)";
    assert_eq!(said(&silent(&many)), [sentence]);
}

#[test]
fn own_stalls_are_not_the_targets() {
    let mut outcome = silent(&[(1_000, 2_600), (4_000, 4_900)]);
    let still = |from_ms: u64, until_ms: u64| Gap { from_ns: from_ms * 1_000_000, until_ns: until_ms * 1_000_000 };
    outcome.stalls = onrush_stats::silences::union_of_gaps(&[still(1_010, 1_500)], &[still(1_400, 2_590)]);
    let expected = [
        "onrush itself was stalled from 1.0 s to 2.6 s: it was suspended or got no processor; this, not the server, \
         inflated less than 0.1 % of the latencies",
        "no response from 4.0 s to 4.9 s",
    ];
    assert_eq!(said(&outcome), expected);
}

#[test]
fn targets_without_connections_are_not_silent() {
    let stage = |ms, count| ConnectionLevel { length: Duration::from_millis(ms), from: count, to: count };
    let stages = vec![stage(1_000, 0), stage(3_000, 5), stage(2_000, 0), stage(4_000, 5)];
    let levels = Some(ConnectionLevels { stages, part: Partition::WHOLE });
    let plan = Plan { levels, ..plan(Dialect::Native, "http://h/", 10, 2, 5) };
    let said = |gaps: &[(u64, u64)]| {
        let said = said_of(&plan, &silent(gaps));
        said.into_iter().filter(|words| words.starts_with("no response from")).collect::<Vec<_>>()
    };
    assert_eq!(said(&[(0, 1_010), (3_995, 6_010)]), Vec::<String>::new());
    assert_eq!(said(&[(0, 2_000)]), ["no response from 0.0 s to 2.0 s"]);
}

#[test]
fn suspensions_are_noted_first() {
    let mut outcome = silent(&[(1_000, 2_600)]);
    outcome.suspended = Duration::from_millis(12_300);
    let expected = [
        "the machine was suspended for 12.30s: no figure includes that time, but responses may have been lost; keep it \
         awake and measure again",
        "no response from 1.0 s to 2.6 s",
    ];
    assert_eq!(said(&outcome), expected);
}

#[test]
fn gaps_within_usual_latency_get_no_note() {
    let mut slow = silent(&[(1_000, 1_500), (5_000, 5_999)]);
    slow.totals.latency = Distribution::new();
    slow.totals.latency.record_many(100_000_000, 2_000);
    assert_eq!(said(&slow), Vec::<String>::new());
    slow.silences = vec![Gap { from_ns: 0, until_ns: 1_100_000_000 }];
    assert_eq!(said(&slow), ["no response from 0.0 s to 1.1 s"]);
    slow.totals.counters.completed = 0;
    assert!(!said(&slow).concat().contains("from 0.0 s"), "{:?}", said(&slow));
}

#[test]
fn blocking_scripts_make_no_target_silent() {
    let mut outcome = silent(&[(1_000, 2_000), (5_000, 6_500)]);
    let blocked = |from_ms: u64, until_ms: u64| Gap { from_ns: from_ms * 1_000_000, until_ns: until_ms * 1_000_000 };
    // Several blocked callbacks in a row, and once the target itself.
    outcome.in_script =
        vec![blocked(1_000, 1_300), blocked(1_310, 1_640), blocked(1_650, 1_990), blocked(5_000, 5_100)];
    assert_eq!(said(&outcome), ["no response from 5.0 s to 6.5 s"]);
}

#[test]
fn frequent_short_stalls_are_noted() {
    let mut outcome = good();
    let gap = |at: u64| Gap { from_ns: at * 500_000_000, until_ns: at * 500_000_000 + 150_000_000 };
    outcome.elapsed = Duration::from_secs(1);
    outcome.stalls = vec![gap(0)];
    assert_eq!(said(&outcome).iter().filter(|line| line.contains("itself was stalled")).count(), 0);
    outcome.stalls = vec![gap(0), gap(1)];
    let words = "onrush itself was stalled for 30 % of the time, in short stalls: ";
    assert_eq!(said(&outcome).iter().filter(|line| line.starts_with(words)).count(), 1);
}

#[test]
fn rate_runs_note_unavailability() {
    let plan = Plan { schedule: Some(schedule(1_000)), ..plan(Dialect::Native, "http://h/", 10, 2, 5) };
    let said = |gaps_ms: &[(u64, u64)], due: u64| {
        let mut outcome = silent(gaps_ms);
        outcome.totals.open_loop.get_or_insert_default().due = 10_000;
        let due_gaps = outcome.silences.iter().map(|gap| DueGap { gap: *gap, due });
        outcome.due_gaps = Some(due_gaps.collect());
        let said = said_of(&plan, &outcome);
        said.into_iter().filter(|words| words.contains("no response from")).collect::<Vec<_>>()
    };
    assert!(said(&[(1_312, 2_489)], 1_177)[0].ends_with(", while 1,177 requests were due"));
    let sentence = "the target was unavailable for 30.0 % of the time: no response from 4.0 s to 5.0 s, from 6.0 s to 6.6 s \
                    and from 9.0 s to the end (and in 1 shorter gap); 4 requests were due in these gaps";
    assert_eq!(said(&[(1_000, 1_400), (4_000, 5_000), (6_000, 6_600), (9_000, 10_000)], 1), [sentence]);
    assert_eq!(said(&[(1_000, 1_200)], 1), Vec::<String>::new());
}
