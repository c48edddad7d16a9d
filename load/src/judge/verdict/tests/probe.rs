//! Verdicts by the probe.

use super::*;

/// The verdict after a probe, with as many connections as there were requests in flight.
fn verdict_by_probe(first: u32, other: u32, per_s: [u64; 2], interval: [f64; 2]) -> Verdict {
    verdict_after(|evidence| {
        evidence.load.connections = u64::from(first);
        evidence.probe = Some(build_probe(first, other, per_s, interval));
    })
}

#[test]
fn probes_decide_by_their_interval() {
    for (interval, limited_by) in [
        ([0.71, 1.31], LimitedBy::Connections),
        ([1.3, 1.6], LimitedBy::Connections),
        ([1.31, 1.6], LimitedBy::Unclear),
        ([0.31, 0.7], LimitedBy::Unclear),
        ([-0.2, 0.29], LimitedBy::Target),
    ] {
        assert_eq!(verdict_by_probe(16, 12, [500, 400], interval).limited_by, limited_by, "{interval:?}");
    }
    let with = |interval, change: EvidenceChange| {
        let verdict = verdict_after(|evidence| {
            evidence.probe = Some(build_probe(16, 12, [500, 499], interval));
            change(evidence);
        });
        verdict.limited_by
    };
    let busy_target: EvidenceChange = |it| it.target = Some(Target { busiest_thread: 0.99, ..visible_target() });
    assert_eq!(with([0.31, 0.9], busy_target), LimitedBy::Unclear, "it may busy-poll");
    assert_eq!(with([0.3, 0.9], busy_target), LimitedBy::Target);
    assert_eq!(with([-0.1, 0.1], |it| it.generator.threads[0].busy = 0.75), LimitedBy::Unclear, "onrush was busy");
    // Segments queued on the way for half of the median latency, and three times as long as the shortest round trip.
    for (rtt_us, rtt_min_us, limited_by) in
        [(9.0, 3.0, LimitedBy::Network), (8.9, 0.05, LimitedBy::Target), (9.0, 3.1, LimitedBy::Target)]
    {
        let verdict = verdict_after(|evidence| {
            let (rtt_us, rtt_min_us) = (rtt_us * MS, Some(rtt_min_us * MS));
            let network = Some(Network { readings: 9, rtt_us, rtt_min_us, ..Network::default() });
            evidence.target = Some(Target { network, ..visible_target() });
            evidence.probe = Some(build_probe(16, 12, [500, 499], [-0.1, 0.1]));
        });
        assert_eq!(verdict.limited_by, limited_by, "{verdict}");
    }
}

#[test]
fn probe_sentences_begin_with_the_finding() {
    let follows = "the number of requests in flight is the limit";
    for (in_flight, per_s, interval, summary, advice) in [
        (
            [8, 4],
            [500, 480],
            [-0.1, 0.1],
            "the target is at its limit (half as many in flight gave the same 500/s)",
            "",
        ),
        ([8, 4], [500, 474], [-0.1, 0.1], "the target is at its limit (half as many in flight gave 5.2 % less)", ""),
        (
            [32, 16],
            [126, 200],
            [-0.8, -0.29],
            "the target is at its limit (half as many in flight gave 59 % more)",
            "use -c 16 for about 200/s",
        ),
        (
            [64, 48],
            [1_332, 3_996],
            [-4.0, -0.31],
            "the target is beyond its limit (three quarters in flight gave 200 % more)",
            "use -c 48 for about 3,996/s",
        ),
        ([16, 8], [1_000, 700], [0.4, 0.6], "the target is near its limit (half as many in flight gave 30 % less)", ""),
        (
            [16, 8],
            [6_697, 3_340],
            [0.9, 1.1],
            &format!("{follows} (half as many in flight gave half)"),
            "--probe up tells whether more would raise the rate",
        ),
        (
            [24, 12],
            [2_003, 1_000],
            [0.71, 0.8],
            &format!("{follows} (half as many in flight gave half)"),
            "--probe up tells whether more would raise the rate",
        ),
        (
            [3, 1],
            [600, 205],
            [0.9, 1.1],
            &format!("{follows} (1 in flight instead of 3 gave 66 % less)"),
            "--probe up tells whether more would raise the rate",
        ),
        // About three quarters.
        (
            [27, 21],
            [1_000, 755],
            [0.8, 1.1],
            &format!("{follows} (three quarters in flight gave 24 % less)"),
            "--probe up tells whether more would raise the rate",
        ),
        (
            [1, 2],
            [500, 990],
            [0.9, 1.1],
            &format!("{follows} (twice as many in flight gave 98 % more)"),
            "use -c 2 for about 990/s",
        ),
        (
            [16, 24],
            [2_000, 2_990],
            [0.9, 1.1],
            &format!("{follows} (half as many more in flight gave 50 % more)"),
            "use -c 24 for about 2,990/s",
        ),
    ] {
        let [first, other] = in_flight;
        let verdict = verdict_by_probe(first, other, per_s, interval);
        assert_eq!((verdict.summary.as_str(), verdict.advice.as_deref().unwrap_or_default()), (summary, advice));
    }
    let rates = verdict_by_probe(16, 8, [6_697, 3_340], [0.9, 1.1]).reason;
    assert_eq!(rates, "6,697/s with 16 in flight, 3,340/s with 8 in flight");
}

#[test]
fn advised_options_keep_what_they_can() {
    let advised = |connections: u64, first: u32, other: u32| {
        let per_s = if other > first { [2_000, 2_990] } else { [2_990, 2_000] };
        let interval = if other > first { [0.9, 1.1] } else { [-4.0, -3.6] };
        let verdict = verdict_after(|evidence| {
            (evidence.load.connections, evidence.load.in_flight_max) = (connections, Some(first.into()));
            evidence.probe = Some(build_probe(first, other, per_s, interval));
        });
        verdict.advice.unwrap_or_default()
    };
    assert_eq!(advised(4, 32, 48), "use -c 6 for about 2,990/s", "with eight streams on each");
    assert_eq!(advised(1, 16, 24), "use -c 2 --streams 12 for about 2,990/s", "as in the probe");
    assert_eq!(advised(4, 32, 24), "use -c 3 for about 2,000/s");
    assert_eq!(advised(1, 16, 12), "use --streams 12 for about 2,000/s", "on the only connection");
    assert_eq!(advised(2, 4, 3), "use --streams 1", "not what there was, and fewer than in the probe");
}

#[test]
fn undecided_probes_say_why_and_what_may_tell() {
    let advised = |probe: Probe| verdict_after(|evidence| evidence.probe = Some(probe)).advice;
    let short = |needed_s: f64| Probe { was_planned: true, needed_s: Some(needed_s), ..Probe::default() };
    assert_eq!(advised(short(120.0)).as_deref(), Some("--probe 120s may tell"));
    assert_eq!(advised(short(121.0)), None, "too long");
    assert_eq!(advised(Probe { up: true, ..short(2.2) }).as_deref(), Some("--probe up:3s may tell"));
    assert_eq!(advised(Probe { needed_s: None, ..short(0.0) }).as_deref(), Some("run longer (-d)"));
    let wide = build_probe(16, 12, [500, 400], [0.29, 0.6]);
    assert_eq!(advised(wide.clone()).as_deref(), Some("--probe 8s may tell"), "four times as long");
    let failed = |needed_s| Probe { failed: Some("it took too long".to_owned()), needed_s, ..Probe::default() };
    assert_eq!(advised(failed(Some(3.9))).as_deref(), Some("--probe 4s may tell"));
    let warming = verdict_after(|evidence| {
        evidence.load.thirds = Some(Thirds { first_per_s: 400.0, last_per_s: 900.0, error_per_s: 20.0 });
        evidence.probe = Some(short(2.2));
    });
    assert_eq!(warming.advice.as_deref(), Some("add --warmup: the rate rose during the run"));
    let nothing = "nothing observed tells which";
    let precise = "which is not precise enough: 25 % would mean the number in flight, and 0 % the target";
    for (probe, reason) in [
        (Probe { was_planned: false, ..short(2.2) }, nothing.to_owned()),
        (short(2.2), format!("{nothing}, and there was too little time for a probe")),
        (failed(None), "the probe after the run was inconclusive: it took too long".to_owned()),
        (wide, format!("with 12 in flight instead of 16, the target answered 8.0 % to 16 % fewer requests, {precise}")),
    ] {
        let verdict = verdict_after(|evidence| evidence.probe = Some(probe));
        assert_eq!(verdict.summary, "the limit is unclear (the target, or the number in flight)");
        assert_eq!(verdict.reason, format!("{reason}; onrush's busiest thread was 29 % busy"));
    }
    let steep = verdict_by_probe(16, 12, [5_831, 2_796], [2.1, 3.1]);
    assert_eq!(
        steep.to_string(),
        "the limit is unclear (the connections differ): the probe was inconclusive: 5,831/s with 16 in flight, 2,796/s with 12 in flight"
    );
}

#[test]
fn staged_runs_advise_no_probe() {
    let with = |interval| {
        let stages = Probe { requests: 0, duration_s: 0.0, ..build_probe(16, 8, [1_000, 500], interval) };
        let verdict = verdict_after(|evidence| evidence.probe = Some(stages));
        (verdict.limited_by, verdict.advice)
    };
    assert_eq!(with([0.9, 1.1]), (LimitedBy::Connections, None));
    assert_eq!(with([0.2, 1.1]), (LimitedBy::Unclear, None));
}
