//! Due requests that wait because all connections are busy, or for other reasons.

use std::time::Duration;

use onrush_plan::ConnectionLevels;
use onrush_plan::Partition;
use onrush_plan::levels::ConnectionLevel;

use super::pacing::{every, open_loop};
use super::stall::blocking;
use super::*;

/// Runs a second with a request due every `step_ms` milliseconds.
fn run(config: Config, step_ms: u64, scenario: &str) -> Totals {
    let scenario: Scenario = toml::from_str(scenario).expect("the scenario is valid");
    let pacer = every(step_ms * MS, None);
    let ran = run_job(config, scenario.network(1), Job { pacer, ..job(get(), http1(1)) });
    assert_conserved(&ran.totals);
    ran.totals
}

fn connections(connections: u32) -> Config {
    Config { max_inflight: connections, ..open_loop(OpenLoop::default()) }
}

/// Time for which all connections were busy, and the longest wait of a request during it, in milliseconds.
fn all_busy_ms(totals: &Totals) -> (u64, u64) {
    let open_loop = totals.open_loop.as_deref().expect("there is a schedule");
    (open_loop.all_busy_ns / MS, open_loop.all_busy_max_ns / MS)
}

#[test]
fn time_counts_while_all_connections_are_busy() {
    let totals = run(connections(1), 5, "connect_us = 0.0\nlatency_us = 10000.0");
    let (busy_ms, longest_ms) = all_busy_ms(&totals);
    assert!(busy_ms >= 980 && longest_ms >= 480, "{busy_ms} {longest_ms}");
}

#[test]
fn missing_connections_are_not_busy() {
    // The request due at 0.2 s breaks the connection. There is no other until 0.4 s.
    let scenario = "connect_us = 0.0\nlatency_us = 100.0\nrefuse = [{ from_s = 0.15, for_s = 0.25 }]\n\
                    [[fault]]\nevery = 100\nwhat = 'reset'";
    let totals = run(connections(1), 2, scenario);
    let late_ns = totals.open_loop.as_deref().unwrap().lateness.max().unwrap();
    assert!(late_ns > 150 * MS, "{late_ns}");
    let (busy_ms, longest_ms) = all_busy_ms(&totals);
    assert!(busy_ms < 50 && longest_ms < 50, "{busy_ms} {longest_ms}");
}

#[test]
fn leaving_connections_are_not_busy() {
    // The server does not close after the third request: for a second no request can be sent.
    let config = Config { requests_per_connection: Some(per_connection(3)), ..connections(1) };
    let totals = run(config, 100, "connect_us = 0.0\nlatency_us = 1000.0");
    let open_loop = totals.open_loop.as_deref().unwrap();
    assert_eq!((totals.counters.started, open_loop.unsent), (3, 7));
    assert_eq!(all_busy_ms(&totals), (0, 0));
}

#[test]
fn stages_without_connections_are_not_busy() {
    let level = |length_ms, count| ConnectionLevel { length: Duration::from_millis(length_ms), from: count, to: count };
    let stages = vec![level(300, 0), level(300, 2), level(400, 0)];
    let staged = Demand::Staged(ConnectionLevels { stages, part: Partition::WHOLE });
    let config = Config { demand: staged, ..connections(2) };
    let totals = run(config, 10, "connect_us = 0.0\nlatency_us = 1000.0");
    assert!(totals.open_loop.as_deref().unwrap().unsent >= 39);
    let (busy_ms, longest_ms) = all_busy_ms(&totals);
    assert!(busy_ms < 20 && longest_ms < 20, "{busy_ms} {longest_ms}");
}

#[test]
fn stalls_are_no_lack_of_connections() {
    let scenario = "connect_us = 0.0\nlatency_us = 10000.0\n[[generator_stall]]\nfrom_s = 0.305\nfor_s = 0.3";
    let totals = run(connections(40), 1, scenario);
    assert!(totals.open_loop.as_deref().unwrap().late > 300);
    assert_eq!(all_busy_ms(&totals), (0, 0));
    // A stall does not open more connections either.
    let growing = Config { demand: Demand::Growing(40), ..connections(500) };
    assert_eq!(run(growing, 1, scenario).counters.slots_opened, 40);
}

#[test]
fn lack_of_connections_persists_over_stalls() {
    let scenario = "connect_us = 0.0\nlatency_us = 10000.0\n[[generator_stall]]\nfrom_s = 0.505\nfor_s = 0.2";
    let totals = run(connections(1), 2, scenario);
    let (busy_ms, longest_ms) = all_busy_ms(&totals);
    assert!((790..900).contains(&busy_ms) && longest_ms < 410, "{busy_ms} {longest_ms}");
    // Missing connections are opened at once.
    let growing = Config { demand: Demand::Growing(1), ..connections(500) };
    let standing = "connect_us = 0.0\nlatency_us = 300000.0\n[[generator_stall]]\nfrom_s = 0.305\nfor_s = 0.1";
    assert!(run(growing, 1, standing).counters.slots_opened > 250);
}

#[test]
fn pausing_connections_are_busy_and_timed() {
    let callbacks = Callbacks { think_ns: Some(Box::new(|| Ok(Some(100 * MS)))), ..Callbacks::default() };
    let scenario: Scenario = toml::from_str("connect_us = 0.0\nlatency_us = 1000.0").unwrap();
    let job = Job { pacer: every(MS, None), callbacks, ..job(get(), http1(1)) };
    let totals = run_job(connections(10), scenario.network(1), job).totals;
    // Nine times a second each.
    let open_loop = totals.open_loop.as_deref().unwrap();
    assert_eq!((totals.counters.started, open_loop.paused_ns), (90, 10 * 10 * 100 * MS));
    // More connections would not have sent anything before the first pause was over.
    let (busy_ms, _) = all_busy_ms(&totals);
    assert!((890..=900).contains(&busy_ms), "{busy_ms}");
}

#[test]
fn blocking_scripts_are_no_lack_of_connections() {
    let (callbacks, scenario) = blocking(1_003);
    let job = Job { pacer: every(MS, None), callbacks, ..job(get(), http1(1)) };
    let config = Config { duration_ns: Some(3 * SECOND), ..connections(40) };
    let totals = run_job(config, scenario.network(1), job).totals;
    assert!(totals.open_loop.as_deref().unwrap().late > 900);
    assert_eq!(all_busy_ms(&totals), (0, 0));
}
