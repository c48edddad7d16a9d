//! Verdicts by the probe.

use super::*;

#[test]
fn probes_need_precision_and_idle_generators() {
    let with = |[low, high]: [f64; 2]| {
        verdict_after(|evidence| evidence.probe = Some(build_probe(16, 12, [500, 400], [low, high])))
    };
    for (interval, limited_by) in [
        ([0.71, 1.2], LimitedBy::Connections),
        ([0.69, 1.2], LimitedBy::Unclear),
        ([0.31, 0.69], LimitedBy::Knee),
        ([0.29, 0.6], LimitedBy::Unclear),
        ([-0.2, 0.29], LimitedBy::Target),
        ([-0.2, 0.31], LimitedBy::Unclear),
    ] {
        assert_eq!(with(interval).limited_by, limited_by, "{interval:?}");
    }
    let beside_a_busy_target = |[low, high]: [f64; 2]| {
        verdict_after(|evidence| {
            evidence.probe = Some(build_probe(16, 12, [500, 400], [low, high]));
            evidence.target = Some(Target { busiest_thread: 0.99, ..visible_target() });
        })
    };
    assert_eq!(beside_a_busy_target([0.5, 0.9]).limited_by, LimitedBy::Unclear, "it may busy-poll");
    assert_eq!(beside_a_busy_target([-0.2, 0.4]).limited_by, LimitedBy::Target);
    assert_eq!(
        with([0.29, 0.6]).to_string(),
        "the limit is unclear (the target, or the number in flight): with 12 in flight instead of 16, it answered 8.0 % to 16 % fewer requests, which is not \
         precise enough: 25 % would mean the number in flight, and 0 % the target; onrush's busiest thread was 29 % busy; --probe 8s may tell"
    );
    let busy = verdict_after(|evidence| {
        evidence.generator.threads[0].busy = 0.75;
        evidence.probe = Some(build_probe(16, 12, [500, 499], [-0.1, 0.1]));
    });
    assert_eq!(busy.limited_by, LimitedBy::Unclear, "requests may have queued in onrush");
    let up = verdict_after(|evidence| evidence.probe = Some(build_probe(16, 24, [2_000, 2_990], [0.9, 1.1])));
    assert_eq!(up.advice.as_deref(), Some("-c 24: about 2,990/s"));
    let down = verdict_after(|evidence| evidence.probe = Some(build_probe(16, 12, [2_000, 1_500], [0.9, 1.1])));
    assert_eq!(down.advice.as_deref(), Some("--probe up tells whether more would bring more"));
    let few = verdict_after(|evidence| {
        evidence.load.streams_allowed = Some(4);
        evidence.probe = Some(build_probe(16, 12, [2_000, 1_500], [0.9, 1.1]));
    });
    assert!(!few.reason.contains("allows"), "a note says how many streams are allowed: {few:?}");
    let fuller = verdict_after(|evidence| evidence.probe = Some(build_probe(24, 12, [2_003, 1_196], [0.71, 0.8])));
    assert!(fuller.summary.ends_with("(half as many in flight brought 40 % less)"), "it is no half: {fuller:?}");
    let thrashes = verdict_after(|evidence| {
        evidence.load.connections = 32;
        evidence.probe = Some(build_probe(32, 16, [126, 200], [-0.8, -0.2]));
    });
    assert_eq!(
        (thrashes.summary.as_str(), thrashes.advice.as_deref()),
        ("the target is at its limit (half as many in flight brought 59 % more)", Some("-c 16: about 200/s"))
    );
    let warming = verdict_after(|evidence| {
        evidence.load.thirds = Some(Thirds { first_per_s: 400.0, last_per_s: 900.0, error_per_s: 20.0 });
        evidence.probe = Some(Probe { needed_s: Some(169.0), was_planned: true, ..Probe::default() });
    });
    assert_eq!(warming.advice.as_deref(), Some("add --warmup: the rate rose during the run"));
    let steep = verdict_after(|evidence| evidence.probe = Some(build_probe(16, 12, [5_831, 2_796], [2.1, 3.1])));
    assert_eq!(steep.limited_by, LimitedBy::Unclear, "connections are not alike");
    let cliff = verdict_after(|evidence| {
        evidence.load.connections = 64;
        evidence.probe = Some(build_probe(64, 48, [1_332, 3_996], [-4.0, -3.6]));
    });
    let streams = verdict_after(|evidence| {
        (evidence.load.connections, evidence.load.in_flight_max) = (4, Some(32));
        evidence.probe = Some(build_probe(32, 48, [2_000, 2_990], [0.9, 1.1]));
    });
    assert_eq!(streams.advice.as_deref(), Some("-c 6: about 2,990/s"), "with eight streams on each");
    assert_eq!(
        streams.summary,
        "the number of requests in flight is the limit (half as many more in flight brought 50 % more)"
    );
    let less = |connections: u64, first: u32, other: u32| {
        let cliff = verdict_after(|evidence| {
            (evidence.load.connections, evidence.load.in_flight_max) = (connections, Some(first.into()));
            evidence.probe = Some(build_probe(first, other, [1_332, 3_996], [-4.0, -3.6]));
        });
        cliff.advice.unwrap()
    };
    assert_eq!(less(1, 16, 12), "--streams 12: about 3,996/s", "on the only connection");
    assert_eq!(less(4, 32, 24), "-c 3: about 3,996/s");
    assert_eq!(less(2, 4, 3), "--streams 1", "not what there was, and fewer than in the probe");
    let one = verdict_after(|evidence| {
        (evidence.load.connections, evidence.load.in_flight_max) = (1, Some(16));
        evidence.probe = Some(build_probe(16, 24, [2_000, 2_990], [0.9, 1.1]));
    });
    assert_eq!(one.advice.as_deref(), Some("-c 2 --streams 12: about 2,990/s"), "as in the probe");
    assert_eq!(
        cliff.to_string(),
        "the target is beyond its limit (three quarters in flight brought 200 % more): 1,332/s with 64 in flight, 3,996/s \
         with 48 in flight; -c 48: about 3,996/s"
    );
    let queued = verdict_after(|evidence| {
        let theirs = Network { readings: 9, rtt_us: 12.0 * MS, rtt_min_us: Some(50.0), ..Network::default() };
        evidence.target = Some(Target { network: Some(theirs), ..visible_target() });
        evidence.probe = Some(build_probe(16, 12, [500, 499], [-0.1, 0.1]));
    });
    assert_eq!(queued.limited_by, LimitedBy::Network, "segments queue on the way");
}

#[test]
fn probe_sentences_begin_with_the_finding() {
    for (first, other, per_s, interval, expected) in [
        (
            8,
            4,
            [667, 664],
            [-0.1, 0.1],
            "the target is at its limit (half as many in flight brought the same 667/s): 667/s with 8 in flight, 664/s with 4 \
             in flight",
        ),
        (
            27,
            21,
            [2_400, 2_380],
            [-0.1, 0.2],
            "the target is at its limit (three quarters in flight brought the same 2,400/s): 2,400/s with 27 in flight, \
             2,380/s with 21 in flight",
        ),
        (
            16,
            8,
            [6_697, 3_340],
            [0.9, 1.1],
            "the number of requests in flight is the limit (half as many in flight brought half): 6,697/s with 16 in flight, \
             3,340/s with 8 in flight; --probe up tells whether more would bring more",
        ),
        (
            16,
            12,
            [1_000, 755],
            [0.8, 1.1],
            "the number of requests in flight is the limit (three quarters in flight brought 24 % less): 1,000/s with 16 in \
             flight, 755/s with 12 in flight; --probe up tells whether more would bring more",
        ),
        (
            1,
            2,
            [500, 990],
            [0.9, 1.1],
            "the number of requests in flight is the limit (twice as many in flight brought 98 % more): 500/s with 1 in flight, \
             990/s with 2 in flight; -c 2: about 990/s",
        ),
        (
            3,
            1,
            [600, 205],
            [0.9, 1.1],
            "the number of requests in flight is the limit (1 in flight instead of 3 brought 66 % less): 600/s with 3 in flight, \
             205/s with 1 in flight; --probe up tells whether more would bring more",
        ),
        (
            16,
            8,
            [1_000, 700],
            [0.4, 0.6],
            "the target is near its limit (half as many in flight brought 30 % less): 1,000/s with 16 in flight, 700/s with 8 \
             in flight",
        ),
    ] {
        let verdict = verdict_after(|evidence| {
            evidence.load.connections = u64::from(first);
            evidence.probe = Some(build_probe(first, other, per_s, interval));
        });
        assert_eq!(verdict.to_string(), expected);
    }
}

#[test]
fn staged_runs_advise_no_probe() {
    let stages = Probe { requests: 0, duration_s: 0.0, ..build_probe(16, 8, [1_000, 500], [0.9, 1.1]) };
    let verdict = verdict_after(|evidence| evidence.probe = Some(stages.clone()));
    assert_eq!((verdict.limited_by, verdict.advice), (LimitedBy::Connections, None));
    let wide = Elasticity { low: 0.2, ..stages.elasticity.unwrap() };
    let verdict = verdict_after(|evidence| evidence.probe = Some(Probe { elasticity: Some(wide), ..stages.clone() }));
    assert_eq!((verdict.limited_by, verdict.advice), (LimitedBy::Unclear, None));
}

#[test]
fn runs_too_short_to_probe_say_so() {
    let short = verdict_after(|evidence| evidence.probe = Some(Probe { was_planned: true, ..Probe::default() }));
    assert_eq!(short.advice.as_deref(), Some("run longer (-d)"));
    let failed = Some("it took too long".to_owned());
    let drained =
        verdict_after(|evidence| evidence.probe = Some(Probe { failed, needed_s: Some(3.9), ..Probe::default() }));
    assert!(drained.to_string().ends_with("; --probe 4s may tell"), "{drained}");
}

#[test]
fn undecided_closed_loops_need_a_probe() {
    assert!(needs_probe(&idle_evidence()));
    assert!(needs_probe(&changed_evidence(
        |evidence| evidence.target = Some(Target { busiest_thread: 0.93, ..visible_target() })
    )));
    assert!(
        needs_probe(&changed_evidence(|evidence| evidence.load.timeouts = 4_900)),
        "all that was late was answered"
    );
    assert!(!needs_probe(&changed_evidence(|evidence| evidence.load.abandoned = 70)));
    assert!(!needs_probe(&changed_evidence(keep_rate)), "a rate is judged by counts");
    for (_, change) in &SITUATIONS[..14] {
        assert!(!needs_probe(&changed_evidence(change)));
    }
}
