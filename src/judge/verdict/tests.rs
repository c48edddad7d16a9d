//! The rules on a table of evidence, the order among them, and the findings.

use onrush_plan::LimitedBy;

use super::*;
use crate::record::Finding;
use crate::record::evidence::{Generator, Latency, Listening, Load, Network, Target, Thirds, Thread};

const MS: f64 = 1e3;

/// A change to the evidence.
type Change = fn(&mut Evidence);

/// Ten connections for ten seconds against a target that cannot be observed; nothing is the limit yet.
fn idle() -> Evidence {
    let thread = Thread { busy: 0.3, queued: Some(0.01), script: 0.0 };
    Evidence {
        generator: Generator { threads: vec![thread; 2], cpus: Some(4), ..Generator::default() },
        load: Load {
            elapsed_s: 10.0,
            connections: 10,
            in_flight: 9.9,
            completed: 5_000,
            rate_per_s: 500.0,
            ..Load::default()
        },
        latency: Some(Latency {
            mean_us: 18.0 * MS,
            min_us: 9.5 * MS,
            p1_us: 10.0 * MS,
            p50_us: 18.0 * MS,
            p99_us: 30.0 * MS,
            ..Latency::default()
        }),
        ..Evidence::default()
    }
}

fn target() -> Target {
    Target {
        name: "nginx".to_owned(),
        processes: 3,
        cpus_used: 0.5,
        cpus_allowed: 2.0,
        busiest_thread: 0.4,
        ..Target::default()
    }
}

/// The evidence after a change.
fn changed(change: impl FnOnce(&mut Evidence)) -> Evidence {
    let mut evidence = idle();
    change(&mut evidence);
    evidence
}

/// The verdict on it.
fn after(change: impl FnOnce(&mut Evidence)) -> Verdict {
    on(&changed(change))
}

/// Situations of the network that a later one explains: segments dropped by a full accept queue (10), and
/// acknowledgements that were delayed (9) or late because of it. And slow responses of a target that falls silent
/// (14) or slows down (16).
const EXPLAINED: [(usize, usize); 6] = [(5, 10), (6, 10), (8, 9), (8, 10), (13, 14), (13, 16)];

/// Changes for the rules, in their order: each alone leads to its verdict.
const SITUATIONS: [(LimitedBy, Change); 19] = [
    (LimitedBy::Ports, |evidence| (evidence.load.without_port, evidence.load.missing) = (36, 3.6)),
    (LimitedBy::GeneratorCpu, |evidence| evidence.generator.stalled_s = 0.5),
    (LimitedBy::GeneratorScript, |evidence| {
        evidence.generator.threads[0] = Thread { busy: 0.95, queued: None, script: 0.5 };
    }),
    (LimitedBy::GeneratorCpu, |evidence| evidence.generator.threads[1].busy = 0.9),
    (LimitedBy::Schedule, |evidence| (evidence.load.asked_per_s, evidence.load.sent) = (Some(505.0), Some(0.99))),
    (LimitedBy::Network, |evidence| {
        evidence.network = Some(Network { readings: 9, out_of_order: Some(0.02), ..Network::default() });
    }),
    (LimitedBy::Network, |evidence| {
        evidence.network =
            Some(Network { readings: 9, retransmitted: 0.002, lost_per_request: 0.05, ..Network::default() });
    }),
    (LimitedBy::Network, |evidence| {
        evidence.network = Some(Network { readings: 9, rtt_min_us: Some(10.0 * MS), ..Network::default() });
    }),
    (LimitedBy::Network, |evidence| {
        let theirs = Network { readings: 9, rtt_us: 9.0 * MS, rtt_min_us: Some(50.0), ..Network::default() };
        evidence.target = Some(Target { network: Some(theirs), ..target() });
    }),
    (LimitedBy::Target, |evidence| {
        evidence.latency = Some(Latency { delayed: 0.9, ..evidence.latency.unwrap() });
        evidence.network = Some(Network { readings: 9, half_answered: Some(0.9), ..Network::default() });
    }),
    (LimitedBy::Target, |evidence| {
        let listening = Listening { waiting_max: 2, limit: 1, overflows: Some(40) };
        evidence.target = Some(Target { listening: Some(listening), ..target() });
        evidence.load.missing = 5.0;
    }),
    (LimitedBy::Target, |evidence| (evidence.load.silent_at_end_s, evidence.load.connect_errors) = (2.0, 7)),
    (LimitedBy::Target, |evidence| evidence.target = Some(Target { busiest_thread: 0.93, ..target() })),
    // One of a hundred takes sixty times as long as the median.
    (LimitedBy::Connections, |evidence| {
        let latency = evidence.latency.as_mut().unwrap();
        (latency.slow, latency.slow_mean_us, latency.slow_time) = (50, 1_000.0 * MS, 0.6);
    }),
    (LimitedBy::Target, |evidence| evidence.load.quiet_s = 2.5),
    (LimitedBy::Target, |evidence| evidence.latency.as_mut().unwrap().p1_us = 9.0 * MS),
    (LimitedBy::Target, |evidence| evidence.latency.as_mut().unwrap().calm_us = Some(8.0 * MS)),
    // All are alike, but the shortest took a tenth: the others all queued.
    (LimitedBy::Target, |evidence| {
        let latency = evidence.latency.as_mut().unwrap();
        (latency.p1_us, latency.min_us) = (17.0 * MS, 1.8 * MS);
    }),
    (LimitedBy::Connections, |evidence| evidence.latency.as_mut().unwrap().p1_us = 15.0 * MS),
];

#[test]
fn each_situation_has_its_verdict() {
    for (number, (limited_by, change)) in SITUATIONS.into_iter().enumerate() {
        let verdict = after(change);
        assert_eq!(verdict.limited_by, limited_by, "situation {number}: {}", verdict.reason);
    }
    let unclear = after(|_| ());
    assert_eq!(unclear.limited_by, LimitedBy::Unclear);
    assert_eq!(
        unclear.advice.as_deref(),
        Some(
            "run it again on 20 connections (-c): if it gets no more than about 500 responses/s, and onrush's threads still \
             have time to spare, the target is the limit"
        )
    );
}

#[test]
fn of_two_situations_the_one_that_is_tried_first_decides() {
    for (number, (limited_by, first)) in SITUATIONS.into_iter().enumerate() {
        // A rate that was not reached decides nothing, and its latencies are the same.
        for (at, (_, second)) in SITUATIONS.into_iter().enumerate().skip(number + 1) {
            if EXPLAINED.contains(&(number, at)) {
                continue;
            }
            let verdict = after(|evidence| {
                second(evidence);
                first(evidence);
            });
            assert_eq!(verdict.limited_by, limited_by, "situation {number}: {}", verdict.reason);
        }
    }
}

#[test]
fn verdicts_name_figures_and_what_to_change() {
    let said = |change: Change| after(change).to_string();
    assert_eq!(
        said(|evidence| evidence.generator.threads.iter_mut().for_each(|thread| thread.busy = 0.99)),
        "limited by onrush itself: both threads were 99 % busy; use more threads (-t), or another machine"
    );
    assert_eq!(
        said(|evidence| evidence.generator.threads[0] = Thread { busy: 1.0, queued: Some(0.5), script: 0.0 }),
        "limited by onrush itself: 1 of 2 threads was 100 % busy, 50 % waiting for a processor; give it a processor of its \
         own, or use another machine"
    );
    assert_eq!(
        said(|evidence| evidence.target = Some(Target { cpus_used: 1.9, ..target() })),
        "limited by the target: nginx used 1.9 of its 2 processors; onrush's busiest thread was 30 % busy"
    );
    assert_eq!(
        said(|evidence| evidence.latency.as_mut().unwrap().p1_us = 6.0 * MS),
        "limited by the target: requests queued at the target, or in the network (not visible from here): with 9.9 in \
         flight, the median of 18.0 ms was 3 times the 1st percentile; onrush's busiest thread was 30 % busy"
    );
    assert_eq!(
        said(|evidence| {
            let latency = evidence.latency.as_mut().unwrap();
            (latency.slow, latency.slow_mean_us, latency.slow_time) = (50, 1_000.0 * MS, 0.6);
        }),
        "limited by the number of connections: 1.0 % of the responses took ten times the median of 18.0 ms or longer; \
         they account for 60 % of all response times; onrush's busiest thread was 30 % busy; find out why these are slow, \
         or use more connections (-c)"
    );
    assert_eq!(
        said(|evidence| evidence.latency.as_mut().unwrap().calm_us = Some(8.0 * MS)),
        "limited by the target: requests queued at the target, or in the network (not visible from here): responses took \
         18.0 ms on average with 9.9 in flight, against 8.00 ms with few; onrush's busiest thread was 30 % busy"
    );
    assert_eq!(
        said(|evidence| {
            (evidence.load.silent_at_end_s, evidence.load.read_errors) = (2.0, 3);
            evidence.target = Some(Target { ended: true, ..target() });
        }),
        "limited by the target: no responses in the last 2.0 s: its processes ended; 3 requests failed; check the \
         target's log"
    );
    assert_eq!(
        said(|evidence| (evidence.load.connect_errors, evidence.load.timeouts) = (70, 1)),
        "unclear: 70 connects failed, 1 request took longer than --timeout; find out why first"
    );
    assert_eq!(
        said(|evidence| (evidence.load.asked_per_s, evidence.load.sent) = (Some(540.0), Some(1.0))),
        "unclear: the whole rate was sent, but 400 responses had not arrived at the end; onrush's busiest thread was 30 % \
         busy",
        "more connections would not help"
    );
    assert_eq!(
        said(|evidence| (evidence.load.asked_per_s, evidence.load.sent) = (Some(500.0), Some(1.0))),
        "limited by the rate asked for: the target kept up with 500 requests/s"
    );
}

#[test]
fn a_rate_with_a_backlog_was_not_kept() {
    let verdict = |lateness_p99_us| {
        after(|evidence| {
            (evidence.load.asked_per_s, evidence.load.sent) = (Some(500.0), Some(1.0));
            evidence.load.lateness_p99_us = Some(lateness_p99_us);
            evidence.latency.as_mut().unwrap().p1_us = 15.0 * MS;
        })
    };
    assert_eq!(verdict(900.0 * MS).limited_by, LimitedBy::Schedule);
    assert_eq!(verdict(1_000.0 * MS).limited_by, LimitedBy::Connections, "all were sent, but late");
    assert_eq!(after(|evidence| evidence.load.thirds = Some(Thirds::default())).findings, [], "there was no rate");
}

#[test]
fn what_is_not_known_decides_nothing() {
    for change in [
        // Latencies of 40 ms without a response seen in part: a target that takes 40 ms.
        (|evidence: &mut Evidence| evidence.latency.as_mut().unwrap().delayed = 1.0) as Change,
        // Overflows of another server's queue: no connection is missing.
        |evidence| {
            let listening = Listening { waiting_max: 0, limit: 511, overflows: Some(40) };
            evidence.target = Some(Target { listening: Some(listening), ..target() });
        },
        // No responses at the end of a run because no request was sent: nothing failed.
        |evidence| evidence.load.silent_at_end_s = 5.0,
        // A round trip that contains the target's own time.
        |evidence| {
            evidence.network =
                Some(Network { readings: 9, rtt_us: 18.0 * MS, rtt_min_us: Some(30.0), ..Network::default() });
        },
        // Acknowledgements delayed because the next request, which would carry them, was not due yet.
        |evidence| {
            let theirs = Network { readings: 9, rtt_us: 9.0 * MS, rtt_min_us: Some(50.0), ..Network::default() };
            evidence.target = Some(Target { network: Some(theirs), ..target() });
            evidence.load.idle = Some(0.5);
        },
        // Ports that were missing for a moment.
        |evidence| evidence.load.without_port = 3,
        // Responses of two kinds: no queue of ten makes one take a hundred times as long.
        |evidence| evidence.latency.as_mut().unwrap().p1_us = 0.18 * MS,
        // All are alike, and one was far faster than a queue of ten explains.
        |evidence| {
            let latency = evidence.latency.as_mut().unwrap();
            (latency.p1_us, latency.min_us) = (17.0 * MS, 0.06 * MS);
        },
        // Requests may have queued in a generator that is this busy.
        |evidence| {
            evidence.generator.threads[0].busy = 0.8;
            evidence.latency.as_mut().unwrap().p1_us = 9.0 * MS;
        },
        // Failures are no lack of connections.
        |evidence| {
            evidence.load.read_errors = 50;
            evidence.latency.as_mut().unwrap().p1_us = 15.0 * MS;
        },
        // The queue still grows when the run ends.
        |evidence| (evidence.load.asked_per_s, evidence.load.sent) = (Some(540.0), Some(1.0)),
        // A whole rate whose last responses are missing: more connections would not have sent more.
        |evidence| {
            (evidence.load.asked_per_s, evidence.load.sent) = (Some(540.0), Some(1.0));
            evidence.latency.as_mut().unwrap().p1_us = 17.0 * MS;
        },
        // One or two requests waited: the mean is longer.
        |evidence| {
            let latency = evidence.latency.as_mut().unwrap();
            (latency.p1_us, latency.p50_us) = (13.0 * MS, 15.0 * MS);
        },
        // A rate that was not reached.
        |evidence| (evidence.load.asked_per_s, evidence.load.sent) = (Some(900.0), Some(0.6)),
    ] {
        let verdict = after(change);
        assert_eq!(verdict.limited_by, LimitedBy::Unclear, "{}", verdict.reason);
    }
}

#[test]
fn slow_responses_decide_only_if_nothing_else_explains_them() {
    let changed = |change: Change| {
        after(|evidence| {
            let latency = evidence.latency.as_mut().unwrap();
            (latency.slow, latency.slow_mean_us, latency.slow_time) = (50, 1_000.0 * MS, 0.6);
            change(evidence);
        })
    };
    assert_eq!(changed(|_| ()).limited_by, LimitedBy::Connections);
    for (why, change) in [
        (
            "a queue of as many requests as there are connections does",
            (|evidence| evidence.load.connections = 50) as Change,
        ),
        ("the others make up half of the time", |evidence| evidence.latency.as_mut().unwrap().slow_time = 0.49),
        ("the whole rate was sent", |evidence| {
            (evidence.load.asked_per_s, evidence.load.sent) = (Some(540.0), Some(1.0));
        }),
    ] {
        let verdict = changed(change);
        assert_eq!(verdict.limited_by, LimitedBy::Unclear, "{why}: {}", verdict.reason);
    }
    let silent = changed(|evidence| evidence.load.quiet_s = 3.0).to_string();
    let words = "limited by the target: it sent no response for 3.0 s of 10.0 s in all, with requests in flight; onrush's \
                 busiest thread was 30 % busy; find out what stops it";
    assert_eq!(silent, words);
    let slows_down = changed(|evidence| evidence.latency.as_mut().unwrap().calm_us = Some(8.0 * MS));
    assert_eq!(slows_down.limited_by, LimitedBy::Target, "responses took longer while more were in flight");
}

#[test]
fn too_few_responses_decide_nothing() {
    let few = after(|evidence| evidence.load.completed = 19);
    assert_eq!((few.limited_by, few.reason.as_str()), (LimitedBy::Unclear, "there were only 19 responses"));
    let refused = after(|evidence| {
        (evidence.generator.stalled_s, evidence.load.completed, evidence.load.read_errors) = (0.5, 0, 10);
    });
    assert_eq!(refused.to_string(), "unclear: there were no responses", "a stall is no reason for resets");
}

#[test]
fn throttling_counts_as_a_share_of_the_processors_that_could_be_used() {
    let found = |threads: usize, cpus_allowed, throttled_s| {
        let verdict = after(|evidence| {
            evidence.generator.threads.truncate(threads);
            evidence.generator.throttled_s = Some(throttled_s);
            evidence.target = Some(Target { cpus_allowed, throttled_s: Some(throttled_s), ..target() });
        });
        [Finding::Throttled, Finding::TargetThrottled].map(|finding| verdict.findings.contains(&finding))
    };
    assert_eq!(found(2, 1.0, 0.3), [false, true]);
    assert_eq!(found(1, 2.0, 0.3), [true, false]);
    assert_eq!(found(1, 0.5, 0.15), [false, false], "a part of a processor is throttled as one");
    let note = note_on(Finding::Throttled, &changed(|evidence| evidence.generator.throttled_s = Some(40.0)));
    let expected =
        "the control group of onrush was throttled: its threads waited 40.0 s for a processor in total; raise cpu.max";
    assert_eq!(note.map(|note| note.text).as_deref(), Some(expected), "longer than the run: two threads waited");
}

#[test]
fn what_else_is_worth_knowing_is_found_with_its_sentence() {
    let found = |change: Change| after(change).findings;
    assert_eq!(found(|_| ()), []);
    let thirds = |first_per_s, last_per_s, error_per_s| Some(Thirds { first_per_s, last_per_s, error_per_s });
    let table: [(Finding, Change); 11] = [
        (Finding::Stalled, |evidence| evidence.generator.stalled_s = 0.3),
        (Finding::Throttled, |evidence| evidence.generator.throttled_s = Some(0.5)),
        (Finding::TargetThrottled, |evidence| evidence.target = Some(Target { throttled_s: Some(0.5), ..target() })),
        (Finding::TargetDied, |evidence| (evidence.load.silent_at_end_s, evidence.load.read_errors) = (1.0, 1)),
        (Finding::ClockStep, |evidence| evidence.machine.clock_step_s = Some(-1.5)),
        (Finding::HotConnection, |evidence| evidence.load.hottest = Some(4.0)),
        (Finding::StallHidden, |evidence| evidence.load.silent_s = 1.0),
        (Finding::Stolen, |evidence| evidence.machine.stolen = Some(0.1)),
        (Finding::SlowResponses, |evidence| {
            let latency = evidence.latency.as_mut().unwrap();
            (latency.p99_us, latency.slow) = (180.0 * MS, 100);
            evidence.load.asked_per_s = Some(505.0);
        }),
        (Finding::PeerWindow, |evidence| {
            evidence.network = Some(Network { window_limited: Some(0.9), ..Network::default() })
        }),
        (Finding::SendBuffer, |evidence| {
            evidence.network = Some(Network { buffer_limited: Some(0.9), ..Network::default() })
        }),
    ];
    for (finding, change) in table {
        let evidence = changed(change);
        assert_eq!(on(&evidence).findings, [finding]);
        let is_said_elsewhere = matches!(finding, Finding::Stalled | Finding::StallHidden | Finding::TargetDied);
        assert_eq!(note_on(finding, &evidence).is_none(), is_said_elsewhere, "{finding:?}");
    }
    let late = after(|evidence| {
        evidence.latency.as_mut().unwrap().p99_us = 180.0 * MS;
        (evidence.load.asked_per_s, evidence.load.lateness_p99_us) = (Some(505.0), Some(90.0 * MS));
    });
    assert_eq!(late.findings, [], "requests were sent late");
    let slow = note_on(Finding::SlowResponses, &changed(|evidence| evidence.latency.as_mut().unwrap().slow = 100));
    let expected = "2.0 % of the responses took ten times the median of 18.0 ms or longer after they were sent: that time \
                    passed at the target or on the way, not in waiting for a connection";
    assert_eq!(slow.map(|note| note.text).as_deref(), Some(expected));
    for (change, expected) in [
        (thirds(500.0, 400.0, 20.0), vec![Finding::Unsteady]),
        (thirds(400.0, 500.0, 20.0), vec![Finding::WarmingUp]),
        (thirds(500.0, 400.0, 30.0), vec![]),
        (thirds(500.0, 480.0, 1.0), vec![]),
    ] {
        assert_eq!(after(|evidence| evidence.load.thirds = change).findings, expected, "{change:?}");
    }
}
