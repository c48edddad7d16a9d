//! Limits of the measured window: earlier requests, and the time in which requests were in flight.

use super::*;

/// A warm-up, then a measured window.
fn window(warmup_ms: u64, duration_ms: u64) -> Config {
    Config { warmup_ns: warmup_ms * MS, duration_ns: Some(duration_ms * MS), ..config() }
}

#[test]
fn carried_requests_count_with_whole_latency() {
    // Sent at 0, 500 and 1,000 ms; the window goes from 250 to 1,250 ms.
    let ran = run_http(window(250, 1000), "connect_us = 0.0\nlatency_us = 500000.0");
    let counters = &ran.totals.counters;
    assert_eq!((counters.carried, counters.started, counters.completed, counters.open_at_end), (1, 2, 2, 1));
    assert_eq!((ran.totals.latency.min(), ran.totals.latency.max()), (Some(500 * MS), Some(500 * MS)));
    assert_eq!(ran.totals.censored.unwrap().max(), Some(250 * MS));
    assert_eq!(
        (counters.occupancy.in_flight_ns, counters.occupancy.busy_ns),
        (1000 * MS, 1000 * MS),
        "there was always one"
    );
}

#[test]
fn stalls_before_the_window_count_in_latencies() {
    let stall = "connect_us = 0.0\nlatency_us = 1000.0\n[[stall]]\nfrom_s = 0.9\nfor_s = 1.0";
    let ran = run_http(Config { max_inflight: 4, ..window(1000, 2000) }, stall);
    assert_eq!(ran.totals.latency.max(), Some(1001 * MS), "sent at 899 ms, answered at 1,900 ms");
    assert_eq!(ran.totals.counters.carried, 4);
    assert_conserved(&ran.totals);
}

#[test]
fn carried_requests_end_like_others() {
    for (what, give_up_ns) in [("'hang'", Some(700 * MS)), ("'hang'", None), ("'reset'", None)] {
        let fault = format!("connect_us = 0.0\nlatency_us = 600000.0\n[[fault]]\nevery = 1\nwhat = {what}");
        let ran = run_http(Config { max_inflight: 3, give_up_ns, ..window(500, 300) }, &fault);
        let counters = &ran.totals.counters;
        assert_eq!(counters.carried, 3, "{what}");
        assert_conserved(&ran.totals);
        assert_eq!(counters.failed + counters.abandoned + counters.open_at_end, 3 + counters.started);
    }
}

#[test]
fn carried_requests_do_not_use_the_limit() {
    let limited = Config { max_inflight: 5, requests: Some(20), warmup_ns: 100 * MS, duration_ns: None, ..config() };
    let ran = run_http(limited, "connect_us = 0.0\nlatency_us = 30000.0");
    let counters = &ran.totals.counters;
    assert_eq!((counters.carried, counters.started, counters.completed), (5, 20, 25));
    assert_conserved(&ran.totals);
}

#[test]
fn time_in_flight_counts_for_every_outcome() {
    let faults = "
        connect_us = 0.0
        [[fault]]\nevery = 7\nwhat = 'hang'
        [[fault]]\nevery = 11\nwhat = { answer = 'nonsense' }";
    let ran = run_http(Config { max_inflight: 10, give_up_ns: Some(200 * MS), ..window(0, 3000) }, faults);
    let counters = &ran.totals.counters;
    assert_conserved(&ran.totals);
    // Between two requests there is nothing except the back-off after nonsense.
    assert_eq!(counters.occupancy.in_flight_ns, counters.occupancy.busy_ns);
    assert_eq!(
        counters.occupancy.busy_ns + counters.occupancy.waiting_ns + counters.occupancy.connecting_ns,
        10 * 3000 * MS
    );
    assert!(counters.occupancy.waiting_ns > 0 && counters.occupancy.waiting_ns < 3000 * MS, "{counters:?}");
}

#[test]
fn pipelined_requests_share_one_busy_time() {
    let scenario: Scenario = toml::from_str("connect_us = 0.0\nlatency_us = 1000.0").unwrap();
    let pipelined = Config { depth: 4, ..window(0, 1000) };
    let ran = run_on(pipelined, scenario.network(1), get(), http1(4));
    let counters = &ran.totals.counters;
    assert_eq!((counters.occupancy.in_flight_ns, counters.occupancy.busy_ns), (4 * 1000 * MS, 1000 * MS));
}

#[test]
fn closed_connections_are_not_busy() {
    let outage = "connect_us = 1000.0\nlatency_us = 1000.0\nclose = true\n[[refuse]]\nfrom_s = 0.5\nfor_s = 1.0";
    let ran = run_http(Config { max_inflight: 2, ..window(0, 2000) }, outage);
    let counters = &ran.totals.counters;
    let accounted_ns = counters.occupancy.busy_ns + counters.occupancy.connecting_ns + counters.occupancy.waiting_ns;
    assert_eq!(accounted_ns, 2 * 2000 * MS, "{counters:?}");
    assert!(counters.occupancy.waiting_ns > 1000 * MS, "{counters:?}");
}

#[test]
fn connections_lost_in_warm_up_are_not_absent() {
    let outage = "connect_us = 0.0\nlatency_us = 1000.0\nclose = true\n[[refuse]]\nfrom_s = 0.5\nfor_s = 1.0";
    let ran = run_http(Config { max_inflight: 4, ..window(1000, 3000) }, outage);
    let occupancy = &ran.totals.counters.occupancy;
    assert_eq!(occupancy.absent_ns, 0);
    assert!(occupancy.waiting_ns > 4 * 300 * MS && occupancy.connecting_ns < 10 * MS, "{occupancy:?}");
    assert_eq!(ran.totals.counters.slots_opened, 4);
}
