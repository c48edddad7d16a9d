//! The rules on a table of evidence: their thresholds, their order, and the findings.

mod probe;
mod rate;
mod sentences;

use onrush_plan::LimitedBy;

use super::*;
use crate::record::Finding;
use crate::record::evidence::{
    Backlog, Elasticity, Generator, Latency, Listening, Load, MainFailure, Network, Places, Probe, Refusal, Room, Slot,
    Target, Thirds, Thread, Unreadable,
};

const MS: f64 = 1e3;

type EvidenceChange = fn(&mut Evidence);

/// A change to the evidence by a value.
type ValueChange = fn(&mut Evidence, f64);

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

/// A rate of 500/s that the target kept up with.
fn keep_rate(evidence: &mut Evidence) {
    let load = &mut evidence.load;
    (load.asked_per_s, load.sent, load.left, load.usually_left) = (Some(500.0), Some(1.0), Some(9), Some(9));
}

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

fn thread(busy: f64, queued: f64) -> Thread {
    Thread { busy, queued: Some(queued), ..Thread::default() }
}

fn unreadable(requests: u64) -> Option<Unreadable> {
    Some(Unreadable { requests, why: "not an HTTP response".to_owned() })
}

/// A target whose accept queue has room for two connections.
fn listening_target(waiting_max: u32) -> Option<Target> {
    let listening = Some(Listening { waiting_max, limit: 2, overflows: Some(40) });
    Some(Target { listening, ..visible_target() })
}

fn lost_segments(retransmitted: f64, lost: u64, lost_per_request: f64) -> Option<Network> {
    Some(Network { readings: 9, retransmitted, lost: Some(lost), lost_per_request, ..Network::default() })
}

/// One in a hundred segments out of order.
fn disordered_segments(number: u64) -> Option<Network> {
    Some(Network { out_of_order: Some(0.01), out_of_order_segments: Some(number), ..Network::default() })
}

/// A target that hardly uses a processor.
fn blocked_target() -> Target {
    Target { busiest_thread: 0.012, cpus_used: 0.04, queued: Some(0.002), ..visible_target() }
}

/// The kind of a situation.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// onrush waited. Failures of the target come first.
    Wait,
    /// The target failed.
    Failure,
    Other,
}
use Kind::{Failure, Other, Wait};

/// A rule: its verdict, and a change for which it applies with the first value but not with the second.
type Situation = (Kind, LimitedBy, ValueChange, [f64; 2]);

/// Number of situations at the end of the list that leave room for a probe.
const PROBED: usize = 5;

/// Rules in their order.
const SITUATIONS: [Situation; 26] = [
    (Other, LimitedBy::Ports, |it, missing| (it.load.without_port, it.load.missing) = (36, missing), [0.5, 0.4]),
    (Wait, LimitedBy::GeneratorCpu, |it, stalled_s| it.generator.stalled_s = stalled_s, [0.5, 0.49]),
    (
        Other,
        LimitedBy::GeneratorScript,
        |it, busy| it.generator.threads[0] = Thread { script: 0.45, ..thread(busy, 0.0) },
        [0.9, 0.89],
    ),
    (Wait, LimitedBy::GeneratorScript, |it, held_up| it.generator.threads[0].held_up = held_up, [0.05, 0.049]),
    (
        Other,
        LimitedBy::GeneratorCpu,
        |it, busy| it.generator.threads[1] = Thread { script: 0.44, ..thread(busy, 0.0) },
        [0.9, 0.89],
    ),
    (Wait, LimitedBy::GeneratorCpu, |it, queued| it.generator.threads[1] = thread(0.4, queued), [0.2, 0.19]),
    (Wait, LimitedBy::GeneratorCpu, |it, throttled_s| it.generator.throttled_s = Some(throttled_s), [4.0, 3.9]),
    (Wait, LimitedBy::GeneratorCpu, |it, stolen| it.machine.stolen = Some(stolen), [0.2, 0.19]),
    (Other, LimitedBy::GeneratorScript, |it, stopped| it.generator.stopped = stopped as u64, [1.0, 0.0]),
    (
        Failure,
        LimitedBy::Target,
        |it, silent_s| (it.load.silent_at_end_s, it.load.failed_at_end, it.load.failed) = (silent_s, true, Some(3)),
        [1.0, 0.99],
    ),
    (Other, LimitedBy::Connections, |it, idle| (it.load.idle, it.load.places.pausing) = (Some(idle), 5.0), [0.5, 0.49]),
    (
        Failure,
        LimitedBy::Target,
        |it, requests| {
            it.load.unreadable = unreadable(requests as u64).filter(|it| it.requests > 0);
            it.load.failed = Some(1);
        },
        [1.0, 0.0],
    ),
    (Failure, LimitedBy::Target, |it, quiet_s| it.load.quiet_s = quiet_s, [2.5, 2.49]),
    (Other, LimitedBy::Target, |it, in_flight| (it.load.hanging, it.load.in_flight) = (1, in_flight), [20.0, 21.0]),
    (Other, LimitedBy::Target, |it, missing| (it.target, it.load.missing) = (listening_target(2), missing), [0.5, 0.4]),
    (
        Other,
        LimitedBy::Target,
        |it, waiting| (it.target, it.load.missing) = (listening_target(waiting as u32), 5.0),
        [2.0, 1.0],
    ),
    (Other, LimitedBy::Network, |it, lost| it.network = lost_segments(0.03, lost as u64, 0.0), [10.0, 9.0]),
    (Other, LimitedBy::Network, |it, lost| it.network = lost_segments(lost, 10, 0.1), [0.001, 0.000_9]),
    // Retransmissions after 200 ms account for a quarter of 18 ms.
    (Other, LimitedBy::Network, |it, lost| it.network = lost_segments(lost, 10, 0.0), [0.023, 0.022]),
    (Other, LimitedBy::Network, |it, each| it.network = lost_segments(0.001, 10, each), [0.023, 0.022]),
    (
        Other,
        LimitedBy::Target,
        |it, delayed| {
            it.latency.as_mut().unwrap().delayed = delayed;
            it.network = Some(Network { half_answered: Some(0.3), ..Network::default() });
        },
        [0.25, 0.24],
    ),
    (Other, LimitedBy::Connections, |it, low| it.probe = Some(build_probe(10, 5, [500, 250], [low, 1.2])), [0.71, 0.7]),
    (Other, LimitedBy::Target, |it, high| it.probe = Some(build_probe(10, 5, [500, 499], [-0.1, high])), [0.29, 0.3]),
    (Other, LimitedBy::Knee, |it, low| it.probe = Some(build_probe(10, 5, [500, 350], [low, 0.69])), [0.31, 0.3]),
    (
        Other,
        LimitedBy::Target,
        |it, busiest_thread| it.target = Some(Target { busiest_thread, ..visible_target() }),
        [0.9, 0.89],
    ),
    (Other, LimitedBy::Target, |it, cpus_used| it.target = Some(Target { cpus_used, ..visible_target() }), [1.8, 1.79]),
];

/// The sentences of the situations, a line each; empty where another situation has it.
const SENTENCES: &str = "\
onrush ran out of local ports: 36 connection attempts failed, and 0.5 of 10 connections were missing on average; use more source addresses (-b), or widen net.ipv4.ip_local_port_range
onrush itself was stalled: it was suspended or got no processor for 0.5 s of 10.0 s, which the latencies include; keep other programs off its processors
the script is the limit (it takes too long): 1 of 2 threads was 90 % busy, and in the script for 45 % of the run; do less per request in the script, or use more threads (-t)
the script's callbacks held up onrush: 1 of 2 threads was blocked for 5.0 % of the run, which the latencies include; do not wait or compute for long in callbacks: pause with delay(), prepare in init()
onrush itself is the limit: 1 of 2 threads was 90 % busy; use more threads (-t), or another machine
onrush itself is the limit (it lacked processors): 1 of 2 threads was waiting for a processor for 20 % of the time and working for 20 %: other programs used it; stop them, or give onrush its own processors (taskset)
onrush itself is the limit: its control group's limit took 20 % of its processor time; raise cpu.max
onrush itself is the limit: the hypervisor took 20 % of its processor time; use a machine with dedicated processors
the script is the limit: it ended 1 of 2 threads while the run went on; call thread:stop() in all threads at the end, or in none
the target stopped responding: no response in the last 1.0 s; 3 requests failed; check the target's log
idle connections are the limit: for 50 % of the time they paused for the script; use more connections (-c) or shorter pauses
none of the target's responses could be read: 1 request failed (not an HTTP response)
the target fell silent: no response for 2.5 s of 10.0 s in total; onrush's busiest thread was 29 % busy; find out what stops it
the target left requests unanswered: 1 at the end, after at least a second and three times the slowest response; the latencies leave them out; find out why
the target accepts connections too slowly: its accept queue of 2 was full and overflowed 40 times, and 0.5 of 10 connections were missing on average; raise its backlog and net.core.somaxconn, or have it accept faster

the network is the limit: 3.0 % of the segments were lost; check the links between the two machines (ip -s link, tc -s qdisc)



the target waits for delayed acknowledgements: 25 % of the latencies are about 40 ms, and in 30 % of the samples only part of the response had arrived, so the target probably sends responses in pieces; have the target send each response in one piece, or set TCP_NODELAY



the target is at its limit: the busiest thread of nginx was 90 % busy; onrush's busiest thread was 29 % busy
the target is at its limit: nginx used 1.8 of its 2 processors; onrush's busiest thread was 29 % busy
";

#[test]
fn rules_apply_from_their_threshold() {
    assert_eq!(SENTENCES.lines().count(), SITUATIONS.len());
    for ((_, limited_by, change, [applies, does_not]), sentence) in SITUATIONS.into_iter().zip(SENTENCES.lines()) {
        let verdict = verdict_after(|evidence| change(evidence, applies));
        assert_eq!(verdict.limited_by, limited_by, "{verdict}");
        if !sentence.is_empty() {
            assert_eq!(verdict.to_string(), sentence);
        }
        let verdict = verdict_after(|evidence| change(evidence, does_not));
        assert_eq!(verdict.limited_by, LimitedBy::Unclear, "{sentence}: {verdict}");
    }
}

#[test]
fn earlier_rules_win() {
    for (number, (kind, limited_by, first, [value, _])) in SITUATIONS.into_iter().enumerate() {
        for (other_kind, _, second, [other_value, _]) in SITUATIONS.into_iter().skip(number + 1) {
            let limited_by = if (kind, other_kind) == (Wait, Failure) { LimitedBy::Target } else { limited_by };
            let verdict = verdict_after(|evidence| {
                second(evidence, other_value);
                first(evidence, value);
            });
            assert_eq!(verdict.limited_by, limited_by, "situation {number}: {verdict}");
        }
    }
}

#[test]
fn target_failures_outweigh_waits() {
    for (_, limited_by, wait, [value, _]) in SITUATIONS.into_iter().filter(|(kind, ..)| *kind == Wait) {
        for (change, expected) in [
            // As many requests failed as were answered.
            ((|it| it.load.failed = Some(5_000)) as EvidenceChange, LimitedBy::Unclear),
            (|it| it.load.failed = Some(4_999), limited_by),
            (|it| (it.load.failed, it.load.abandoned) = (Some(2_500), 2_500), LimitedBy::Unclear),
            (|it| it.load.refused = 5_000, LimitedBy::Unclear),
            // Nothing was answered, and something failed on each connection.
            (|it| (it.load.completed, it.load.failed) = (0, Some(10)), LimitedBy::Unclear),
            (|it| (it.load.completed, it.load.failed) = (0, Some(9)), limited_by),
        ] {
            let verdict = verdict_after(|evidence| {
                wait(evidence, value);
                change(evidence);
            });
            assert_eq!(verdict.limited_by, expected, "{verdict}");
        }
    }
    let stalled = |change: EvidenceChange| {
        let verdict = verdict_after(|evidence| {
            evidence.generator.stalled_s = 3.0;
            change(evidence);
        });
        verdict.limited_by
    };
    assert_eq!(stalled(|it| it.load.quiet_s = 3.1), LimitedBy::Target);
    assert_eq!(stalled(|it| it.load.quiet_s = 3.0), LimitedBy::GeneratorCpu, "the stall may be the reason");
    let ended = |it: &mut Evidence, silent_s| {
        (it.load.silent_at_end_s, it.target) = (silent_s, Some(Target { ended: true, ..visible_target() }));
    };
    assert_eq!(verdict_after(|it| ended(it, 1.0)).limited_by, LimitedBy::Target);
    assert_eq!(stalled(|it| (it.load.silent_at_end_s, it.load.failed_at_end) = (3.0, true)), LimitedBy::GeneratorCpu);
    // A wait for a processor is no work.
    let failing = |queued| {
        let verdict = verdict_after(|evidence| {
            (evidence.load.completed, evidence.load.failed) = (151, Some(426));
            evidence.generator.threads[1] = thread(0.95, queued);
        });
        verdict.limited_by
    };
    assert_eq!([0.06, 0.04].map(failing), [LimitedBy::Unclear, LimitedBy::GeneratorCpu]);
}

#[test]
fn only_undecided_closed_loops_need_a_probe() {
    assert!(needs_probe(&idle_evidence()));
    assert!(!needs_probe(&changed_evidence(keep_rate)), "a rate is judged by counts");
    assert!(needs_probe(&changed_evidence(|it| it.load.timeouts = 4_900)), "all that was late was answered");
    for (number, (_, _, change, [value, _])) in SITUATIONS.into_iter().enumerate() {
        let evidence = changed_evidence(|evidence| change(evidence, value));
        assert_eq!(needs_probe(&evidence), number >= SITUATIONS.len() - PROBED, "situation {number}");
    }
    let doubtful: [(ValueChange, [f64; 2]); 8] = [
        (|it, failed| it.load.failed = Some(failed as u64), [50.0, 49.0]),
        (|it, failed| it.load.read_errors = failed as u64, [50.0, 49.0]),
        (|it, failed| it.load.failed_connections = Some(failed as u64), [50.0, 49.0]),
        (|it, failed| it.load.connect_errors = failed as u64, [50.0, 49.0]),
        (|it, abandoned| it.load.abandoned = abandoned as u64, [50.0, 49.0]),
        (|it, refused| it.load.refused = refused as u64, [500.0, 499.0]),
        (|it, completed| it.load.completed = completed as u64, [19.0, 20.0]),
        (|it, busy| it.generator.threads[0].busy = busy, [0.75, 0.74]),
    ];
    for (number, (change, [decides, does_not])) in doubtful.into_iter().enumerate() {
        for (value, expected) in [(decides, false), (does_not, true)] {
            let evidence = changed_evidence(|evidence| change(evidence, value));
            assert_eq!(needs_probe(&evidence), expected, "{number}: {value}");
            assert_eq!(judge_evidence(&evidence).limited_by, LimitedBy::Unclear, "{number}: {value}");
        }
    }
}

#[test]
fn unknown_facts_decide_nothing() {
    for change in [
        // Latencies of 40 ms without a partially received response: a target that takes 40 ms.
        (|it| it.latency.as_mut().unwrap().delayed = 1.0) as EvidenceChange,
        |it| {
            it.latency.as_mut().unwrap().delayed = 1.0;
            it.network = Some(Network { readings: 9, half_answered: Some(0.29), ..Network::default() });
        },
        // A run ending without responses because no request was sent: nothing failed.
        |it| it.load.silent_at_end_s = 5.0,
        // A long network path with room for more connections.
        |it| it.network = Some(Network { readings: 9, rtt_min_us: Some(10.0 * MS), ..Network::default() }),
        // Segments sent again that the peer had received.
        |it| it.network = lost_segments(0.042_4, 40, 0.0).map(|it| Network { needless: Some(0.042_1), ..it }),
        // Reordering on this machine. Processors that handle both ends of a connection reorder large responses.
        |it| (it.network, it.target) = (disordered_segments(60), Some(visible_target())),
        |it| it.network = disordered_segments(9),
    ] {
        let verdict = verdict_after(change);
        assert_eq!(verdict.limited_by, LimitedBy::Unclear, "{verdict}");
    }
}

#[test]
fn only_targets_without_work_are_called_waiting() {
    let says = |change: EvidenceChange| {
        let verdict = verdict_after(|evidence| {
            evidence.target = Some(blocked_target());
            change(evidence);
        });
        verdict.reason.contains("(nginx) waited, but not for a processor")
    };
    assert!(
        says(|it| it.target.as_mut().unwrap().queued = Some(0.087)),
        "less than 10 % of the time with the thread's work"
    );
    assert!(says(|it| it.target.as_mut().unwrap().cpus_used = 0.19), "less than 10 % of two processors");
    assert!(says(|it| it.probe = Some(build_probe(16, 12, [500, 499], [-0.1, 0.1]))), "the number makes no difference");
    let others: [EvidenceChange; 7] = [
        |it| it.probe = Some(build_probe(16, 12, [500, 380], [0.8, 1.2])),
        keep_rate,
        |it| it.load.in_flight = 0.3,
        |it| it.target.as_mut().unwrap().queued = Some(0.09),
        |it| it.target.as_mut().unwrap().queued = None,
        |it| it.target.as_mut().unwrap().cpus_used = 0.21,
        |it| it.target.as_mut().unwrap().throttled_s = Some(0.2),
    ];
    for (number, other) in others.into_iter().enumerate() {
        assert!(!says(other), "{number}");
    }
}

/// A finding, and a change for which it holds with the first value but not with the second.
type FindingCase<'a> = (Finding, &'a dyn Fn(&mut Evidence, f64), [f64; 2]);

#[test]
fn findings_have_thresholds_and_sentences() {
    let thirds = |it: &mut Evidence, last_per_s, error_per_s| {
        it.load.thirds = Some(Thirds { first_per_s: 500.0, last_per_s, error_per_s });
    };
    let throttled_target =
        |cpus_allowed, throttled_s| Some(Target { cpus_allowed, throttled_s: Some(throttled_s), ..visible_target() });
    let die = |it: &mut Evidence, silent_s, elapsed_s| {
        (it.load.silent_at_end_s, it.load.failed_at_end, it.load.elapsed_s) = (silent_s, true, elapsed_s);
    };
    let delayed = |it: &mut Evidence, delayed, half_answered| {
        it.latency.as_mut().unwrap().delayed = delayed;
        it.network = Some(Network { half_answered: Some(half_answered), ..Network::default() });
    };
    let slow = |it: &mut Evidence, p50_us, p99_us, late_us| {
        it.latency = Some(Latency { p50_us, p99_us, slow: 100, ..Latency::default() });
        (it.load.asked_per_s, it.load.lateness_p99_us) = (Some(505.0), Some(late_us));
    };
    let table: [FindingCase<'_>; 21] = [
        (Finding::Throttled, &|it, throttled_s| it.generator.throttled_s = Some(throttled_s), [0.4, 0.39]),
        // Two processors for ten seconds. A part of a processor counts as one.
        (Finding::TargetThrottled, &|it, throttled_s| it.target = throttled_target(2.0, throttled_s), [0.4, 0.39]),
        (Finding::TargetThrottled, &|it, throttled_s| it.target = throttled_target(0.5, throttled_s), [0.2, 0.19]),
        (Finding::TargetDied, &|it, silent_s| die(it, silent_s, 10.0), [1.0, 0.99]),
        (Finding::TargetDied, &|it, silent_s| die(it, silent_s, 1.0), [0.2, 0.19]),
        (Finding::HotConnection, &|it, times| it.load.hottest = Some(times), [3.0, 2.9]),
        (Finding::StallHidden, &|it, silent_s| it.load.silent_s = silent_s, [0.1, 0.0]),
        (Finding::Stolen, &|it, stolen| it.machine.stolen = Some(stolen), [0.02, 0.019]),
        (Finding::SlowResponses, &|it, p99_us| slow(it, 18.0 * MS, p99_us, 0.0), [180.0 * MS, 179.0 * MS]),
        (Finding::SlowResponses, &|it, p99_us| slow(it, 50.0, p99_us, 0.0), [1.0 * MS, 0.99 * MS]),
        // Requests were sent late.
        (Finding::SlowResponses, &|it, late_us| slow(it, 18.0 * MS, 180.0 * MS, late_us), [89.0 * MS, 90.0 * MS]),
        (
            Finding::PeerWindow,
            &|it, share| it.network = Some(Network { window_limited: Some(share), ..Network::default() }),
            [0.5, 0.49],
        ),
        (
            Finding::SendBuffer,
            &|it, share| it.network = Some(Network { buffer_limited: Some(share), ..Network::default() }),
            [0.5, 0.49],
        ),
        (Finding::DelayedAck, &|it, share| delayed(it, share, 0.05), [0.05, 0.049]),
        (Finding::DelayedAck, &|it, share| delayed(it, 0.05, share), [0.05, 0.049]),
        (Finding::ListenQueue, &|it, waiting| it.target = listening_target(waiting as u32), [2.0, 1.0]),
        // Four standard errors, and 5 %.
        (Finding::Unsteady, &|it, last_per_s| thirds(it, last_per_s, 20.0), [420.0, 421.0]),
        (Finding::Unsteady, &|it, last_per_s| thirds(it, last_per_s, 1.0), [475.0, 476.0]),
        (Finding::WarmingUp, &|it, last_per_s| thirds(it, last_per_s, 20.0), [580.0, 579.0]),
        (
            Finding::ClockStep,
            &|it, step_s| it.machine.clock_step_s = Some(step_s).filter(|step_s| *step_s != 0.0),
            [-1.5, 0.0],
        ),
        (Finding::Stalled, &|it, stalled_s| it.generator.stalled_s = stalled_s, [0.2, 0.19]),
    ];
    // A finding without a line of its own has that of another row, or another note covers it.
    let sentences = "\
the control group of onrush was throttled: its threads waited 0.4 s for a processor in total; raise cpu.max
the control group of the target was throttled: its threads waited 0.4 s for a processor in total; raise cpu.max



one connection carried 3 times the mean number of requests: the load is unevenly distributed

the hypervisor took 2.0 % of this machine's processor time; use a machine with dedicated processors
2.0 % of the responses took at least ten times the median of 18.0 ms: the time passed at the target or on the network, not waiting for a connection


the target's receive window limited sending for 50 % of the time: the target reads too slowly
the send buffer limited sending for 50 % of the time; raise net.ipv4.tcp_wmem



the rate fell from 500 to 420 requests/s between the first and last third of the run: the figures average both

the rate rose from 500 to 580 requests/s between the first and last third of the run; add --warmup
the wall clock was stepped by -1.500 s during the run; latencies are unaffected

";
    assert_eq!(sentences.lines().count(), table.len());
    for ((finding, change, [holds, does_not]), sentence) in table.into_iter().zip(sentences.lines()) {
        let evidence = changed_evidence(|evidence| change(evidence, holds));
        assert_eq!(judge_evidence(&evidence).findings, [finding]);
        let note = finding_note(finding, &evidence).map(|note| note.text);
        if !sentence.is_empty() {
            assert_eq!(note.as_deref(), Some(sentence));
        }
        assert_eq!(verdict_after(|evidence| change(evidence, does_not)).findings, [], "{finding:?}");
    }
    for covered in [Finding::Stalled, Finding::StallHidden, Finding::TargetDied, Finding::DelayedAck] {
        assert_eq!(finding_note(covered, &idle_evidence()), None, "another note covers {covered:?}");
    }
}

#[test]
fn utilization_has_its_line() {
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
        "the busiest of onrush's 5 threads worked 30 % of the time; on 10 connections, 9.9 requests were in flight";
    assert_eq!(usage_line(&evidence), line);
}
