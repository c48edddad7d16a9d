//! Sentences of the verdict beyond those of the situations, each once.

use super::*;

#[test]
fn verdicts_name_cause_figures_and_remedy() {
    let table: [EvidenceChange; 22] = [
        |it| (it.generator.threads, it.generator.cpus) = (vec![thread(0.99, 0.0)], Some(1)),
        |it| {
            it.generator.threads = vec![thread(0.99, 0.0), thread(0.5, 0.0), thread(0.99, 0.0)];
            it.generator.cpus = None;
        },
        |it| {
            it.generator.threads.fill(thread(0.69, 0.21));
            it.target = Some(Target { cpus_used: 0.5, ..visible_target() });
        },
        |it| it.generator.threads = vec![thread(0.95, 0.94); 250],
        // Throttled threads need no processor.
        |it| (it.generator.threads[1], it.generator.throttled_s) = (thread(0.95, 0.6), Some(12.0)),
        |it| it.generator.threads[0] = thread(0.8, 0.04),
        |it| it.generator.threads[0] = thread(0.8, 0.05),
        |it| {
            (it.load.silent_at_end_s, it.target) = (2.0, Some(Target { ended: true, ..visible_target() }));
        },
        |it| (it.load.idle, it.load.places.leaving) = (Some(0.5), 5.0),
        |it| {
            (it.load.failed, it.load.failed_connections, it.load.unreadable) = (Some(0), Some(59), unreadable(57));
        },
        |it| (it.load.failed, it.load.unreadable) = (Some(30), unreadable(57)),
        |it| (it.load.completed, it.load.failed, it.load.quiet_s) = (0, Some(700), 10.0),
        |it| (it.load.is_mute, it.load.completed, it.load.failed, it.load.quiet_s) = (true, 0, Some(700), 10.0),
        |it| {
            let network = lost_segments(0.042_4, 40, 0.0).map(|it| Network { needless: Some(0.012_4), ..it });
            it.target = Some(Target { network, ..visible_target() });
        },
        |it| it.network = disordered_segments(10),
        |it| it.load.completed = 0,
        |it| it.load.completed = 19,
        |it| (it.load.completed, it.load.read_errors) = (1, 2),
        |it| {
            let load = &mut it.load;
            (load.connect_errors, load.failed, load.failed_connections) = (3, Some(10_000), Some(1));
            load.timeouts = 1;
        },
        |it| it.load.abandoned = 70,
        |it| it.load.failed_checks = 500,
        |it| it.target = Some(blocked_target()),
    ];
    let sentences = "\
onrush itself is the limit: its only thread was 99 % busy; use more machines: all processors of this one are in use
onrush itself is the limit: 2 of 3 threads were 99 % busy; use more machines, or more threads (-t) on machines with idle processors
onrush itself is the limit (it lacked processors): both threads were waiting for a processor for 21 % of the time and working for 48 %: the target on this machine (nginx) used 0.5 of 2 processors; give onrush its own processors (taskset), or use another machine
onrush itself is the limit (it lacked processors): all 250 threads were waiting for a processor for 94 % of the time and working for 1.0 %: 250 threads share 4 processors; use fewer threads (-t 4)
onrush itself is the limit: its control group's limit took 60 % of its processor time; raise cpu.max
the limit is unclear (requests may have queued in onrush): its busiest thread was 76 % busy; use more threads (-t), or another machine
the limit is unclear (requests may have queued in onrush): its busiest thread was 75 % busy, 5.0 % waiting for a processor; other programs used it; stop them, or give onrush its own processors (taskset)
the target stopped responding: no response in the last 2.0 s; its processes ended; check the target's log
idle connections are the limit: for 50 % of the time they waited for the server to close them; use more connections (-c)
none of the target's responses could be read: 57 connections failed (not an HTTP response)
none of the target's responses could be read: 57 requests and connections failed (not an HTTP response)
the target fell silent: no response for 10.0 s of 10.0 s in total; 700 requests failed; find out what stops it
the target sent nothing at all: 700 requests failed; check the port, the version of HTTP, and http:// or https://
the network is the limit: 3.0 % of the segments were lost; find out what drops them on this machine (tc -s qdisc, nstat)
the network is the limit: 1.0 % of the segments arrived out of order: some were lost, or delayed on the way; check the links between the two machines (ip -s link, tc -s qdisc)
the limit is unclear: there were no responses
the limit is unclear: there were only 19 responses; run longer (-d)
the limit is unclear: there was only 1 response: 2 requests failed; find out why first
the limit is unclear: 3 connection attempts, 10,000 requests and 1 connection failed, 1 request took longer than --timeout; find out why first
the limit is unclear: 70 requests were abandoned (--give-up); find out why first
the limit is unclear: 10 % of the responses failed a check; find out why first
the limit is unclear (the target, or the number in flight): nothing observed tells which; onrush's busiest thread was 29 % busy; the target (nginx) waited, but not for a processor (perhaps for a lock, disk, timer or other service): its busiest thread was 1.2 % busy with 10 requests in flight
";
    assert_eq!(sentences.lines().count(), table.len());
    for (change, expected) in table.into_iter().zip(sentences.lines()) {
        assert_eq!(verdict_after(change).to_string(), expected);
    }
    let is_blamed = |cpus_used| {
        let verdict = verdict_after(|evidence| {
            evidence.generator.threads.fill(thread(0.69, 0.21));
            evidence.target = Some(Target { cpus_used, ..visible_target() });
        });
        verdict.reason.contains("nginx")
    };
    assert_eq!([0.5, 0.49].map(is_blamed), [true, false], "half a processor is worth mentioning");
    for (expected, refusal, words) in [
        (None, Refusal { status: 429, is_only: true }, "429"),
        (Some("200"), Refusal { status: 503, is_only: false }, "other than 200, most of them 503"),
    ] {
        let verdict = verdict_after(|evidence| {
            evidence.load.expected = expected.map(|list| list.parse().expect("a list"));
            (evidence.load.refused, evidence.load.refusal) = (4_150, Some(refusal));
        });
        assert_eq!(verdict.reason, format!("83 % of the responses were {words}"));
    }
}

#[test]
fn main_failures_have_share_and_remedy() {
    let said = |count, change: EvidenceChange| {
        let verdict = verdict_after(|evidence| {
            let why = "reset by the server (REFUSED_STREAM)".to_owned();
            let main = MainFailure { count, why, advice: Some("fewer --streams may do".to_owned()) };
            (evidence.load.failed, evidence.load.main_failure) = (Some(2_000), Some(main));
            change(evidence);
        });
        verdict.to_string()
    };
    let all = "2,000 requests failed (reset by the server (REFUSED_STREAM)); fewer --streams may do";
    assert_eq!(said(1_990, |_| ()), format!("the limit is unclear: {all}"), "nearly all");
    let most = "2,000 requests failed (99 % of them: reset by the server (REFUSED_STREAM)); fewer --streams may do";
    assert_eq!(said(1_989, |_| ()), format!("the limit is unclear: {most}"));
    assert_eq!(said(999, |_| ()), "the limit is unclear: 2,000 requests failed; find out why first");
    // Other rules on failures repeat cause and remedy.
    let others: [EvidenceChange; 3] = [|it| it.load.quiet_s = 5.0, keep_rate, |it| it.load.completed = 1];
    for change in others {
        assert!(said(2_000, change).ends_with(all), "{}", said(2_000, change));
    }
}
