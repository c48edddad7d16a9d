//! Verdicts on onrush itself.

use super::*;

#[test]
fn target_failures_come_before_own_stalls() {
    let waits: [EvidenceChange; 3] = [
        |evidence| evidence.generator.stalled_s = 1.3,
        |evidence| evidence.generator.threads[1] = Thread { busy: 0.6, queued: Some(0.3), ..Thread::default() },
        |evidence| evidence.generator.threads[1].held_up = 0.2,
    ];
    let failures: [(LimitedBy, &str, EvidenceChange); 5] = [
        (LimitedBy::Target, "for 6.0 s of 10.0 s", |evidence| evidence.load.quiet_s = 6.0),
        (LimitedBy::Target, "for 9.0 s of 10.0 s", |evidence| {
            (evidence.load.quiet_s, evidence.load.completed) = (9.0, 0);
        }),
        (LimitedBy::Target, "4.0 s before the end: its processes ended", |evidence| {
            evidence.load.silent_at_end_s = 4.0;
            evidence.target = Some(Target { ended: true, ..visible_target() });
        }),
        (LimitedBy::Unclear, "5,000 requests failed", |evidence| evidence.load.failed = Some(5_000)),
        (LimitedBy::Unclear, "3,000 requests failed, 2,500 requests were abandoned (--give-up)", |evidence| {
            (evidence.load.failed, evidence.load.abandoned) = (Some(3_000), 2_500);
        }),
    ];
    for wait in waits {
        for (limited_by, reason, failure) in failures {
            let verdict = verdict_after(|evidence| {
                wait(evidence);
                failure(evidence);
            });
            assert_eq!(verdict.limited_by, limited_by, "{verdict}");
            assert!(verdict.reason.starts_with(reason), "{verdict}");
        }
        let few = verdict_after(|evidence| {
            wait(evidence);
            (evidence.load.quiet_s, evidence.load.failed) = (1.2, Some(2_400));
        });
        assert!([LimitedBy::GeneratorCpu, LimitedBy::GeneratorScript].contains(&few.limited_by), "{few}");
    }
    let abandoned = verdict_after(|evidence| (evidence.load.completed, evidence.load.abandoned) = (0, 70));
    assert_eq!(
        abandoned.to_string(),
        "the limit is unclear: 70 requests were abandoned (--give-up); find out why first"
    );
}

#[test]
fn script_ended_threads_are_the_scripts_limit() {
    let changes: [EvidenceChange; 4] = [
        |_| (),
        |evidence| (evidence.load.asked_per_s, evidence.load.left) = (Some(500.0), Some(0)),
        |evidence| (evidence.load.asked_per_s, evidence.load.left) = (Some(1_000.0), Some(5_000)),
        |evidence| evidence.load.quiet_s = 6.0,
    ];
    for change in changes {
        let verdict = verdict_after(|evidence| {
            evidence.generator.stopped = 1;
            change(evidence);
        });
        assert_eq!(verdict.limited_by, LimitedBy::GeneratorScript, "{verdict}");
        assert!(verdict.reason.ends_with("it ended 1 of 2 threads while the run went on"), "{verdict}");
    }
}

#[test]
fn throttling_is_a_share_of_usable_processors() {
    let found = |threads: usize, cpus_allowed, throttled_s| {
        let verdict = verdict_after(|evidence| {
            evidence.generator.threads.truncate(threads);
            evidence.generator.thread_s = 10.0 * threads as f64;
            evidence.generator.throttled_s = Some(throttled_s);
            evidence.target = Some(Target { cpus_allowed, throttled_s: Some(throttled_s), ..visible_target() });
        });
        [Finding::Throttled, Finding::TargetThrottled].map(|finding| verdict.findings.contains(&finding))
    };
    assert_eq!(found(2, 1.0, 0.3), [false, true]);
    assert_eq!(found(1, 2.0, 0.3), [true, false]);
    assert_eq!(found(1, 0.5, 0.15), [false, false], "a part of a processor is throttled as one");
    let note =
        finding_note(Finding::Throttled, &changed_evidence(|evidence| evidence.generator.throttled_s = Some(40.0)));
    let expected =
        "the control group of onrush was throttled: its threads waited 40.0 s for a processor in total; raise cpu.max";
    assert_eq!(note.map(|note| note.text).as_deref(), Some(expected), "longer than the run: two threads waited");
}

#[test]
fn throttled_threads_need_no_processor() {
    let verdict = verdict_after(|evidence| {
        evidence.generator.threads[1] = Thread { busy: 0.95, queued: Some(0.6), ..Thread::default() };
        evidence.generator.throttled_s = Some(12.0);
    });
    assert!(verdict.to_string().contains("the limit of its control group took"), "{verdict}");
    assert!(verdict.to_string().ends_with("raise cpu.max"), "{verdict}");
}
