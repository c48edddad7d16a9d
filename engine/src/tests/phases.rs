//! Measurements other than the latency, and the start of measuring.

use super::*;

/// Responses come after 1 ms, in six pieces a microsecond apart, on connections that take 300 µs.
const PIECES: &str = "connect_us = 300.0\nlatency_us = 1000.0\nsplit = 10";

fn with_phases() -> Config {
    Config { rules: Rules { phases: true, ..config().rules }, ..config() }
}

#[test]
fn phase_durations_match_the_server() {
    let ran = run_http(Config { max_inflight: 3, ..with_phases() }, PIECES);
    let phases = ran.totals.phases.expect("they were wanted");
    let range = |phase: &onrush_stats::Distribution<u64>| (phase.count(), phase.min(), phase.max());
    let completed = ran.totals.counters.completed;
    assert_eq!(range(&phases.connect), (3, Some(300_000), Some(300_000)));
    assert_eq!(range(&phases.ttfb), (completed, Some(MS), Some(MS)));
    assert_eq!(range(&phases.ttlb), (completed, Some(5_000), Some(5_000)));
    assert_eq!(range(&ran.totals.latency), (completed, Some(MS + 5_000), Some(MS + 5_000)));
    assert!(phases.tls.is_none());
}

#[test]
fn pipelined_requests_have_separate_first_bytes() {
    let scenario: Scenario = toml::from_str(PIECES).unwrap();
    let pipelined = Config { depth: 3, requests: Some(3), duration_ns: None, ..with_phases() };
    let ran = run_on(pipelined, scenario.network(1), get(), http1(3));
    let phases = ran.totals.phases.expect("they were wanted");
    // The second response begins where the first ends.
    assert_eq!((phases.ttfb.min(), phases.ttfb.max()), (Some(MS), Some(MS + 10_000)));
    assert_eq!((phases.ttlb.count(), phases.ttlb.mean()), (3, Some(5_000.0)));
}

#[test]
fn responses_in_one_read_share_first_bytes() {
    let whole: Scenario = toml::from_str("latency_us = 1000.0").unwrap();
    let pipelined = Config { depth: 3, requests: Some(3), duration_ns: None, ..with_phases() };
    let ran = run_on(pipelined, whole.network(1), get(), http1(3));
    let phases = ran.totals.phases.expect("they were wanted");
    assert_eq!((phases.ttfb.count(), phases.ttfb.mean()), (3, Some(MS as f64)));
    assert_eq!(phases.ttlb.max(), Some(0));
}

#[test]
fn compat_scales_round_and_omit_late_latencies() {
    let rules = Rules { scale: Scale::WRK, timeout_ns: Some(500 * MS), ..with_phases().rules };
    let ran = run_http(Config { rules, ..config() }, "latency_us = 999.7\n[[stall]]\nfrom_s = 0.1\nfor_s = 0.8");
    let phases = ran.totals.phases.expect("they were wanted");
    assert_eq!((phases.ttfb.min(), phases.ttfb.max()), (Some(999_000), Some(999_000)));
    assert_eq!(phases.ttfb.count(), ran.totals.counters.completed - 1, "one response was late");
}

#[test]
fn unwanted_phases_use_no_memory() {
    assert!(run_http(config(), PIECES).totals.phases.is_none());
}

#[test]
fn measuring_starts_from_zero_after_warm_up() {
    let warm = Config { max_inflight: 4, warmup_ns: SECOND, ..with_phases() };
    let ran = run_http(warm, "connect_us = 100.0\nlatency_us = 10000.0\n[[refuse]]\nfrom_s = 0.0\nfor_s = 0.2");
    let counters = &ran.totals.counters;
    // Of 100 responses in a second, the first on each connection belongs to an earlier request.
    assert_eq!((counters.carried, counters.completed, counters.open_at_end), (4, 4 * 100, 4));
    assert_eq!((counters.bytes_received, counters.started), (4 * 100 * 52, 4 * 100));
    assert_eq!((ran.totals.latency.count(), ran.totals.latency.min()), (4 * 100, Some(10 * MS)));
    assert_eq!((ran.totals.rates.count(), ran.end.elapsed_ns), (10, SECOND));
    assert!(ran.totals.ledger.rows().is_empty(), "the refusals were before");
    assert_eq!((counters.connects, counters.slots_opened), (0, 4), "connections are kept");
    let phases = ran.totals.phases.as_ref().expect("they were wanted");
    assert_eq!((phases.connect.count(), phases.ttfb.count()), (0, 4 * 100));
    assert_conserved(&ran.totals);
}

#[test]
fn request_limits_are_exact_after_warm_up() {
    let limited = Config { max_inflight: 7, warmup_ns: SECOND, requests: Some(1_000), duration_ns: None, ..config() };
    let ran = run_http(limited, "connect_us = 0.0");
    // Requests in flight at the start of measuring are additional.
    assert_eq!((ran.totals.counters.started, ran.totals.counters.completed), (1_000, 1_007));
    // A millisecond longer than without a warm-up: requests in flight are awaited first.
    assert_eq!(ran.end.elapsed_ns, 144 * MS);
}

#[test]
fn errors_of_carried_requests_count() {
    for scenario in [
        "[[stall]]\nfrom_s = 0.5\nfor_s = 9.0",
        "latency_us = 1500000.0\n[[fault]]\nevery = 1\nwhat = 'reset'\nafter_bytes = 20",
        "latency_us = 1500000.0\n[[fault]]\nevery = 1\nwhat = 'close'\nafter_bytes = 20",
    ] {
        let warm = Config { warmup_ns: SECOND, duration_ns: Some(700 * MS), give_up_ns: Some(SECOND), ..config() };
        let ran = run_http(warm, scenario);
        let counters = &ran.totals.counters;
        assert_eq!((counters.carried, counters.failed + counters.abandoned), (1, 1), "{scenario}");
        assert!(counters.started > 0, "{scenario}: the slot continues after it");
        assert_conserved(&ran.totals);
    }
}
