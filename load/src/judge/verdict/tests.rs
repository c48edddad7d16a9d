//! The rules on a table of evidence, their order, and the findings.

mod generator;
mod network;
mod probe;
mod rate;

use onrush_plan::LimitedBy;

use super::*;
use crate::record::Finding;
use crate::record::evidence::{
    Backlog, Elasticity, Generator, Latency, Listening, Load, MainFailure, Network, Places, Probe, Room, Slot, Target,
    Thirds, Thread, Unreadable,
};

const MS: f64 = 1e3;

/// A change to the evidence.
type EvidenceChange = fn(&mut Evidence);

/// Ten connections for ten seconds against an invisible target; nothing is the limit yet.
fn idle_evidence() -> Evidence {
    let thread = Thread { busy: 0.3, queued: Some(0.01), ..Thread::default() };
    Evidence {
        generator: Generator { threads: vec![thread; 2], cpus: Some(4), thread_s: 20.0, ..Generator::default() },
        load: Load {
            elapsed_s: 10.0,
            connections: 10,
            in_flight: 9.9,
            completed: 5_000,
            rate_per_s: 500.0,
            ..Load::default()
        },
        latency: Some(Latency { mean_us: 18.0 * MS, p50_us: 18.0 * MS, p99_us: 30.0 * MS, ..Latency::default() }),
        ..Evidence::default()
    }
}

fn visible_target() -> Target {
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
fn changed_evidence(change: impl FnOnce(&mut Evidence)) -> Evidence {
    let mut evidence = idle_evidence();
    change(&mut evidence);
    evidence
}

/// The verdict after a change to the idle evidence.
fn verdict_after(change: impl FnOnce(&mut Evidence)) -> Verdict {
    judge_evidence(&changed_evidence(change))
}

/// Situations in the order of the rules. A stall of the whole target makes no rate, and a rate that the target kept up
/// with overrides everything else.
const SITUATIONS: [(LimitedBy, EvidenceChange); 19] = [
    (LimitedBy::Ports, |evidence| (evidence.load.without_port, evidence.load.missing) = (36, 3.6)),
    (LimitedBy::GeneratorCpu, |evidence| evidence.generator.stalled_s = 0.5),
    (LimitedBy::GeneratorScript, |evidence| {
        evidence.generator.threads[0] = Thread { busy: 0.95, script: 0.5, ..Thread::default() };
    }),
    (LimitedBy::GeneratorScript, |evidence| evidence.generator.threads[0].held_up = 0.05),
    (LimitedBy::GeneratorCpu, |evidence| evidence.generator.threads[1].busy = 0.95),
    (LimitedBy::GeneratorCpu, |evidence| {
        evidence.generator.threads[1] = Thread { busy: 0.4, queued: Some(0.2), ..Thread::default() };
    }),
    (LimitedBy::GeneratorCpu, |evidence| evidence.generator.throttled_s = Some(4.0)),
    (LimitedBy::GeneratorCpu, |evidence| evidence.machine.stolen = Some(0.2)),
    (LimitedBy::Target, |evidence| {
        (evidence.load.silent_at_end_s, evidence.load.failed_at_end) = (2.0, true);
    }),
    (LimitedBy::Connections, |evidence| (evidence.load.idle, evidence.load.places.pausing) = (Some(0.5), 5.0)),
    (LimitedBy::Target, |evidence| evidence.load.quiet_s = 2.5),
    (LimitedBy::Target, |evidence| evidence.load.hanging = 1),
    (LimitedBy::Target, |evidence| {
        let listening = Listening { waiting_max: 2, limit: 1, overflows: Some(40) };
        evidence.target = Some(Target { listening: Some(listening), ..visible_target() });
        evidence.load.missing = 5.0;
    }),
    (LimitedBy::Network, |evidence| {
        evidence.network = Some(Network { readings: 9, retransmitted: 0.02, lost: Some(10), ..Network::default() });
    }),
    (LimitedBy::Target, |evidence| {
        evidence.latency = Some(Latency { delayed: 0.9, ..evidence.latency.unwrap() });
        evidence.network = Some(Network { readings: 9, half_answered: Some(0.9), ..Network::default() });
    }),
    (LimitedBy::Connections, |evidence| evidence.probe = Some(build_probe(10, 5, [500, 250], [0.8, 1.2]))),
    (LimitedBy::Target, |evidence| evidence.probe = Some(build_probe(10, 5, [500, 499], [-0.1, 0.2]))),
    (LimitedBy::Knee, |evidence| evidence.probe = Some(build_probe(10, 5, [500, 350], [0.4, 0.6]))),
    (LimitedBy::Target, |evidence| evidence.target = Some(Target { busiest_thread: 0.93, ..visible_target() })),
];

/// A probe with these requests in flight and responses per second, and the bounds of its elasticity.
fn build_probe(first: u32, other: u32, per_s: [u64; 2], [low, high]: [f64; 2]) -> Probe {
    let slot = |(in_flight, per_s)| Slot { in_flight, tick_s: 1.0, completed: vec![per_s, per_s] };
    Probe {
        duration_s: 2.0,
        requests: 1_000,
        slots: [(first, per_s[0]), (other, per_s[1])].map(slot).into(),
        elasticity: Some(Elasticity { value: low.midpoint(high), low, high }),
        ..Probe::default()
    }
}

#[test]
fn each_situation_has_its_verdict() {
    for (number, (limited_by, change)) in SITUATIONS.into_iter().enumerate() {
        let verdict = verdict_after(change);
        assert_eq!(verdict.limited_by, limited_by, "situation {number}: {}", verdict.reason);
    }
    let short = |was_planned| Some(Probe { needed_s: Some(2.2), was_planned, ..Probe::default() });
    assert!(
        !verdict_after(|evidence| evidence.probe = short(false)).reason.contains("too little time"),
        "there was to be none"
    );
    let unclear = verdict_after(|evidence| evidence.probe = short(true));
    assert_eq!(
        unclear.to_string(),
        "the limit is unclear (the target, or the number in flight): nothing that was observed tells which, and there was too \
         little time for a probe; onrush's busiest thread was 29 % busy; --probe 3s may tell"
    );
}

#[test]
fn earlier_rules_win() {
    for (number, (limited_by, first)) in SITUATIONS.into_iter().enumerate() {
        for (other, (_, second)) in SITUATIONS.into_iter().enumerate().skip(number + 1) {
            // A dying or silent target comes before a stall or a wait for a processor.
            let limited_by = if [1, 3, 5, 6, 7].contains(&number) && [8, 10].contains(&other) {
                LimitedBy::Target
            } else {
                limited_by
            };
            let verdict = verdict_after(|evidence| {
                second(evidence);
                first(evidence);
            });
            // A full accept queue makes the kernel drop segments.
            assert_eq!(verdict.limited_by, limited_by, "situation {number}: {}", verdict.reason);
        }
    }
}

#[test]
fn main_failures_have_share_and_remedy() {
    let refused = |count| {
        let (why, advice) =
            ("reset by the server (REFUSED_STREAM)".to_owned(), Some("fewer --streams may do".to_owned()));
        Some(MainFailure { count, why, advice })
    };
    let said = |count, change: EvidenceChange| {
        let verdict = verdict_after(|evidence| {
            (evidence.load.failed, evidence.load.main_failure) = (Some(2_000), refused(count));
            change(evidence);
        });
        verdict.to_string()
    };
    let all = "2,000 requests failed (reset by the server (REFUSED_STREAM)); fewer --streams may do";
    assert_eq!(said(2_000, |_| ()), format!("the limit is unclear: {all}"));
    assert_eq!(
        said(1_700, |_| ()),
        "the limit is unclear: 2,000 requests failed (85 % of them: reset by the server (REFUSED_STREAM)); fewer --streams may do"
    );
    assert_eq!(said(900, |_| ()), "the limit is unclear: 2,000 requests failed; find out why first");
    assert_eq!(
        said(2_000, |evidence| evidence.load.quiet_s = 5.0),
        format!("the target fell silent: for 5.0 s of 10.0 s in all: {all}")
    );
    let at_a_rate = said(2_000, keep_rate);
    assert_eq!(at_a_rate, format!("the target did not cope with the rate: asked 500 requests/s, reached 500: {all}"));
    assert_eq!(said(2_000, |evidence| evidence.load.completed = 1), format!("the limit is unclear: {all}"));
}

#[test]
fn verdicts_name_figures_and_what_to_change() {
    let said = |change: EvidenceChange| verdict_after(change).to_string();
    for (change, expected) in [
        (
            (|evidence| evidence.generator.threads.iter_mut().for_each(|thread| thread.busy = 0.99)) as EvidenceChange,
            "onrush itself is the limit: both threads were 98 % busy; use more threads (-t), or another machine",
        ),
        (
            |evidence| evidence.generator.threads[0] = Thread { busy: 1.0, queued: Some(0.5), ..Thread::default() },
            "onrush itself is the limit (it lacked processors): 1 of 2 threads was waiting for a processor for 50 % of the time, and working for 50 %: other \
             programs had it; stop them, or give onrush processors of its own (taskset)",
        ),
        (
            |evidence| {
                evidence.generator.threads.fill(Thread { busy: 0.69, queued: Some(0.21), ..Thread::default() });
                evidence.target = Some(Target { cpus_used: 1.13, ..visible_target() });
            },
            "onrush itself is the limit (it lacked processors): both threads were waiting for a processor for 21 % of the time, and working for 48 %: the \
             target on this machine (nginx) used 1.1 of 2 processors; give onrush processors of its own (taskset), or use \
             another machine",
        ),
        (
            |evidence| {
                evidence.generator.threads = vec![Thread { busy: 0.95, queued: Some(0.94), ..Thread::default() }; 250];
            },
            "onrush itself is the limit (it lacked processors): all 250 threads were waiting for a processor for 94 % of the time, and working for 1.0 %: 250 \
             threads share 4 processors; use fewer threads (-t 4)",
        ),
        (
            |evidence| {
                evidence.generator.threads[0] = Thread { busy: 0.8, queued: Some(0.1), ..Thread::default() };
            },
            "the limit is unclear (requests may have queued in onrush): its busiest thread was 70 % busy, 10 % waiting for a processor; \
             other programs had it; stop them, or give onrush processors of its own (taskset)",
        ),
        (
            |evidence| evidence.machine.stolen = Some(0.3),
            "onrush itself is the limit: the hypervisor took 30 % of its processors' time; use a machine with processors of \
             its own",
        ),
        (
            |evidence| evidence.target = Some(Target { cpus_used: 1.9, ..visible_target() }),
            "the target is at its limit: nginx used 1.9 of its 2 processors; onrush's busiest thread was 29 % busy",
        ),
        (
            |evidence| {
                (evidence.load.silent_at_end_s, evidence.load.read_errors) = (2.0, 3);
                evidence.target = Some(Target { ended: true, ..visible_target() });
            },
            "the target stopped responding: 2.0 s before the end: its processes ended; 3 requests failed; check the \
             target's log",
        ),
        (
            |evidence| {
                (evidence.load.quiet_s, evidence.load.read_errors) = (10.0, 59);
                evidence.load.unreadable = Some(Unreadable { requests: 57, why: "answered in HTTP/1.1".to_owned() });
            },
            "none of the target's responses could be read: 57 requests failed (answered in HTTP/1.1)",
        ),
        (
            |evidence| {
                (evidence.load.quiet_s, evidence.load.read_errors, evidence.load.failed) = (10.0, 59, Some(0));
                evidence.load.failed_connections = Some(59);
                evidence.load.unreadable = Some(Unreadable { requests: 57, why: "not an HTTP response".to_owned() });
            },
            "none of the target's responses could be read: 57 connections failed (not an HTTP response)",
        ),
        (
            |evidence| {
                (evidence.load.completed, evidence.load.failed, evidence.load.quiet_s) = (0, Some(700), 10.0);
                evidence.generator.threads[1] = Thread { busy: 0.4, queued: Some(0.3), ..Thread::default() };
            },
            "the target fell silent: for 10.0 s of 10.0 s in all: 700 requests failed; find out what \
             stops it",
        ),
        (
            |evidence| {
                (evidence.load.completed, evidence.load.failed, evidence.load.quiet_s) = (0, Some(700), 10.0);
                evidence.load.is_mute = true;
            },
            "the target sent nothing at all: 700 requests failed; does it speak this version of HTTP at that \
             port, with or without TLS?",
        ),
        (
            |evidence| {
                (evidence.load.completed, evidence.load.failed) = (151, Some(426));
                evidence.generator.threads[1] = Thread { busy: 0.95, queued: Some(0.85), ..Thread::default() };
            },
            "the limit is unclear: 426 requests failed; find out why first",
        ),
        (
            |evidence| {
                (evidence.load.completed, evidence.load.failed) = (151, Some(426));
                evidence.generator.threads[1] = Thread { busy: 0.95, queued: Some(0.04), ..Thread::default() };
            },
            "onrush itself is the limit: 1 of 2 threads was 91 % busy; use more threads (-t), or another machine",
        ),
        (
            |evidence| {
                (evidence.load.quiet_s, evidence.load.read_errors, evidence.load.failed) = (10.0, 57, Some(30));
                evidence.load.unreadable = Some(Unreadable { requests: 57, why: "not an HTTP response".to_owned() });
            },
            "none of the target's responses could be read: 57 requests and connections failed (not an HTTP \
             response)",
        ),
        (
            |evidence| {
                (evidence.load.failed, evidence.load.failed_connections) = (Some(1_000), Some(3_900));
                evidence.load.read_errors = 3_900;
            },
            "the limit is unclear: 1,000 requests and 3,900 connections failed; find out why first",
        ),
        (
            |evidence| {
                (evidence.load.completed, evidence.load.failed, evidence.load.quiet_s) = (0, Some(700), 10.0);
                evidence.machine.stolen = Some(0.3);
            },
            "the target fell silent: for 10.0 s of 10.0 s in all: 700 requests failed; find out what \
             stops it",
        ),
        (
            |evidence| (evidence.load.failed, evidence.load.failed_connections) = (Some(0), Some(4_900)),
            "the limit is unclear: 4,900 connections failed; find out why first",
        ),
        (
            |evidence| {
                (evidence.load.silent_at_end_s, evidence.load.failed_at_end) = (3.0, true);
                (evidence.load.failed_connections, evidence.load.failed) = (Some(2), Some(0));
            },
            "the target stopped responding: 3.0 s before the end: 2 connections failed; check the target's log",
        ),
        (
            |evidence| {
                (evidence.load.completed, evidence.load.failed, evidence.load.connect_errors) = (5, Some(10_000), 3);
                (evidence.load.failed_connections, evidence.load.quiet_s) = (Some(1), 1.0);
            },
            "the limit is unclear: 3 connects, 10,000 requests and 1 connection failed; find out why first",
        ),
        (
            |evidence| (evidence.load.completed, evidence.load.failed, evidence.load.read_errors) = (1, Some(2), 2),
            "the limit is unclear: there was only 1 response: 2 requests failed; find out why first",
        ),
        (
            |evidence| (evidence.load.connect_errors, evidence.load.timeouts) = (70, 1),
            "the limit is unclear: 70 connects failed, 1 request took longer than --timeout; find out why first",
        ),
        (
            |evidence| (evidence.load.abandoned, evidence.load.timeouts) = (70, 0),
            "the limit is unclear: 70 requests were abandoned (--give-up); find out why first",
        ),
        (
            |evidence| evidence.load.hanging = 2,
            "the target left requests unanswered: 2 at the end, after at least a second and three times the \
             slowest response; the latencies leave them out; find out why it does not respond to them",
        ),
    ] {
        assert_eq!(said(change), expected);
    }
}

/// A rate of 500/s that the target kept up with.
fn keep_rate(evidence: &mut Evidence) {
    let load = &mut evidence.load;
    (load.asked_per_s, load.sent, load.left, load.usually_left) = (Some(500.0), Some(1.0), Some(9), Some(9));
}

#[test]
fn idle_targets_wait_for_something_else() {
    let blocked = Target { busiest_thread: 0.012, cpus_used: 0.04, queued: Some(0.002), ..visible_target() };
    let says = |change: EvidenceChange| {
        let verdict = verdict_after(|evidence| {
            evidence.target = Some(blocked.clone());
            change(evidence);
        });
        verdict
            .reason
            .contains("(nginx) waited for something else than a processor (a lock, a disk, a timer, another service)")
    };
    let unclear = verdict_after(|evidence| evidence.target = Some(blocked.clone()));
    let ending = "its busiest thread was 1.2 % busy while 10 were in flight";
    assert!(unclear.limited_by == LimitedBy::Unclear && unclear.reason.ends_with(ending), "{unclear}");
    assert!(says(|_| ()));
    assert!(
        says(|evidence| evidence.probe = Some(build_probe(16, 12, [500, 499], [-0.1, 0.1]))),
        "the number makes no difference"
    );
    let others: [EvidenceChange; 7] = [
        |evidence| evidence.probe = Some(build_probe(16, 12, [500, 380], [0.8, 1.2])),
        |evidence| keep_rate(evidence),
        |evidence| evidence.load.in_flight = 0.3,
        |evidence| evidence.target.as_mut().unwrap().queued = Some(0.4),
        |evidence| evidence.target.as_mut().unwrap().queued = None,
        |evidence| evidence.target.as_mut().unwrap().cpus_used = 1.4,
        |evidence| evidence.target.as_mut().unwrap().throttled_s = Some(0.2),
    ];
    for (number, other) in others.into_iter().enumerate() {
        assert!(!says(other), "{number}");
    }
}

#[test]
fn unknown_facts_decide_nothing() {
    for change in [
        // Latencies of 40 ms without a partially received response: a target that takes 40 ms.
        (|evidence: &mut Evidence| evidence.latency.as_mut().unwrap().delayed = 1.0) as EvidenceChange,
        // Overflows of another server's queue: no connection is missing.
        |evidence| {
            let listening = Listening { waiting_max: 0, limit: 511, overflows: Some(40) };
            evidence.target = Some(Target { listening: Some(listening), ..visible_target() });
        },
        // A run ending without responses because no request was sent: nothing failed.
        |evidence| evidence.load.silent_at_end_s = 5.0,
        // A long network path with room for more connections.
        |evidence| {
            evidence.network = Some(Network { readings: 9, rtt_min_us: Some(10.0 * MS), ..Network::default() });
        },
        // Ports missing for a moment.
        |evidence| evidence.load.without_port = 3,
        // Any shape of latencies: a varying service time looks like a queue.
        |evidence| evidence.latency.as_mut().unwrap().p50_us = 0.18 * MS,
        |evidence| evidence.latency.as_mut().unwrap().p50_us = 17.0 * MS,
        |evidence| evidence.load.read_errors = 50,
    ] {
        let verdict = verdict_after(change);
        assert_eq!(verdict.limited_by, LimitedBy::Unclear, "{}", verdict.reason);
    }
}

#[test]
fn too_few_responses_decide_nothing() {
    let few = verdict_after(|evidence| evidence.load.completed = 19);
    assert_eq!((few.limited_by, few.reason.as_str()), (LimitedBy::Unclear, "there were only 19 responses"));
    let refused = verdict_after(|evidence| {
        (evidence.generator.stalled_s, evidence.load.completed, evidence.load.read_errors) = (0.5, 0, 10);
    });
    assert_eq!(refused.to_string(), "the limit is unclear: there were no responses", "a stall is no reason for resets");
}

#[test]
fn further_findings_have_their_sentences() {
    let found = |change: EvidenceChange| verdict_after(change).findings;
    assert_eq!(found(|_| ()), []);
    let thirds = |first_per_s, last_per_s, error_per_s| Some(Thirds { first_per_s, last_per_s, error_per_s });
    let table: [(Finding, EvidenceChange); 11] = [
        (Finding::Stalled, |evidence| evidence.generator.stalled_s = 0.3),
        (Finding::Throttled, |evidence| evidence.generator.throttled_s = Some(0.5)),
        (Finding::TargetThrottled, |evidence| {
            evidence.target = Some(Target { throttled_s: Some(0.5), ..visible_target() })
        }),
        (Finding::TargetDied, |evidence| (evidence.load.silent_at_end_s, evidence.load.failed_at_end) = (1.0, true)),
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
        let evidence = changed_evidence(change);
        assert_eq!(judge_evidence(&evidence).findings, [finding]);
        let is_said_elsewhere = matches!(finding, Finding::Stalled | Finding::StallHidden | Finding::TargetDied);
        assert_eq!(finding_note(finding, &evidence).is_none(), is_said_elsewhere, "{finding:?}");
    }
    let late = verdict_after(|evidence| {
        evidence.latency.as_mut().unwrap().p99_us = 180.0 * MS;
        (evidence.load.asked_per_s, evidence.load.lateness_p99_us) = (Some(505.0), Some(90.0 * MS));
    });
    assert_eq!(late.findings, [], "requests were sent late");
    let slow = finding_note(
        Finding::SlowResponses,
        &changed_evidence(|evidence| evidence.latency.as_mut().unwrap().slow = 100),
    );
    let expected = "2.0 % of the responses took ten times the median of 18.0 ms or longer after they were sent: that time \
                    passed at the target or on the way, not in waiting for a connection";
    assert_eq!(slow.map(|note| note.text).as_deref(), Some(expected));
    for (change, expected) in [
        (thirds(500.0, 400.0, 20.0), vec![Finding::Unsteady]),
        (thirds(400.0, 500.0, 20.0), vec![Finding::WarmingUp]),
        (thirds(500.0, 400.0, 30.0), vec![]),
        (thirds(500.0, 480.0, 1.0), vec![]),
    ] {
        assert_eq!(verdict_after(|evidence| evidence.load.thirds = change).findings, expected, "{change:?}");
    }
}

#[test]
fn known_utilizations_are_reported() {
    let mut evidence = changed_evidence(|evidence| {
        evidence.generator.threads = vec![Thread { busy: 0.3, queued: Some(0.1), script: 0.15, ..Thread::default() }];
        evidence.load.places.pausing = 2.0;
        evidence.target = Some(visible_target());
    });
    assert_eq!(
        usage_line(&evidence),
        "onrush's thread worked 20 % of the time (15 % in the script) and waited for a processor 10 %; on 10 connections, \
         9.9 requests were in flight, 2 paused; nginx used 0.5 of 2 processors, its busiest thread worked 40 % of the time"
    );
    evidence.generator.threads = vec![Thread { busy: 0.3, ..Thread::default() }; 5];
    (evidence.target, evidence.load.places) = (None, Places::default());
    let line =
        "of 5 threads of onrush the busiest worked 30 % of the time; on 10 connections, 9.9 requests were in flight";
    assert_eq!(usage_line(&evidence), line);
}
