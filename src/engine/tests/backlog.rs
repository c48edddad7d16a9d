//! How much a wait finds: the backlog of a worker, as the evidence has it.

use super::*;

/// Runs so many connections that are open at once and get every answer 10 ms after its request.
fn run_together(connections: u32, more: &str) -> Ran {
    let settings = Settings { connections, ..settings() };
    run_http(settings, &format!("connect_us = 0.0\nlatency_us = 10000.0\n{more}"))
}

#[test]
fn every_completion_is_found_by_a_wait() {
    for connections in [1, 10, 3 * HANDLED_PER_TURN as u32] {
        let Ran { totals, .. } = run_together(connections, "");
        let (evidence, counters) = (totals.evidence, totals.counters);
        assert_eq!(evidence.completions, counters.connects + counters.completed, "{connections}");
        let at_most = HANDLED_PER_TURN as u64;
        assert_eq!(evidence.completions_max, u64::from(connections).min(at_most), "{connections}");
        // One for each round of answers, and those that end with a timer or with connections left to open.
        let rounds = 100 * u64::from(connections).div_ceil(at_most);
        assert!((rounds..rounds + 400).contains(&evidence.waits), "{connections}: {evidence:?}");
    }
}

#[test]
fn what_arrived_while_the_worker_stood_still_is_one_backlog() {
    let connections = 3 * HANDLED_PER_TURN as u32;
    let Ran { totals, .. } = run_together(connections, "[[standstill]]\nfrom_s = 0.505\nfor_s = 0.2");
    let (evidence, counters) = (totals.evidence, totals.counters);
    assert_eq!(evidence.completions, counters.connects + counters.completed);
    assert!(evidence.completions_max > HANDLED_PER_TURN as u64, "{evidence:?}");
}

#[test]
fn nothing_of_a_warm_up_is_evidence() {
    let warm = Settings { connections: 1, warmup_ns: SECOND, duration_ns: Some(100 * MS), ..settings() };
    let Ran { totals, .. } = run_http(warm, "connect_us = 0.0\nlatency_us = 10000.0");
    assert_eq!(totals.evidence.completions, totals.counters.completed);
    assert!(totals.evidence.waits < 50, "{:?}", totals.evidence);
}
