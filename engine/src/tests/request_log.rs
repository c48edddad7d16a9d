//! The request log: its entries, and their contents.

use std::sync::Mutex;

use onrush_stats::{Fate, LogEntry};

use super::*;

/// Runs a closed loop with a log of one in `one_of` requests.
fn logged(config: Config, scenario: &str, one_of: u64) -> (Ran, Vec<LogEntry>) {
    let scenario: Scenario = toml::from_str(scenario).expect("the scenario is valid");
    let pages = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&pages);
    let pass_on: PassOn = Arc::new(move |page| {
        taken.lock().unwrap().extend(page);
        Passed::On
    });
    let backend = Sim::new(config.slots(), scenario.network(1));
    let link = Arc::new(WorkerLink::default());
    let log = RequestLog::new(one_of, config.seed, pass_on);
    let engine = Engine::new(config, backend, job(get(), http1(1)), Arc::default(), Arc::clone(&link));
    let end = engine.with_log(Some(log)).run(Instant::now()).0;
    let mut totals = Totals::default();
    link.mailbox.collect(|interval| totals += interval);
    totals += &*end.interval;
    totals.settle_phases();
    let entries = std::mem::take(&mut *pages.lock().unwrap());
    assert_eq!((totals.counters.logged, totals.counters.unlogged), (entries.len() as u64, 0));
    (Ran { totals, end }, entries)
}

fn count(entries: &[LogEntry], is_meant: impl Fn(Fate) -> bool) -> u64 {
    entries.iter().filter(|entry| is_meant(entry.fate)).count() as u64
}

#[test]
fn every_counted_request_is_logged() {
    let config = Config { max_inflight: 4, warmup_ns: 200 * MS, ..config() };
    let scenario = "
        latency_us = 500
        fault = [{ every = 50, what = 'reset', after_bytes = 20 }, { every = 70, what = 'hang' }]
    ";
    let (ran, entries) = logged(Config { give_up_ns: Some(100 * MS), ..config }, scenario, 1);
    assert_conserved(&ran.totals);
    let counters = &ran.totals.counters;
    assert!(counters.failed > 0 && counters.abandoned > 0 && counters.open_at_end > 0, "{counters:?}");
    assert_eq!(count(&entries, |fate| fate == Fate::Completed), counters.completed);
    assert_eq!(count(&entries, |fate| matches!(fate, Fate::Failed(..))), counters.failed);
    assert_eq!(count(&entries, |fate| fate == Fate::Abandoned), counters.abandoned);
    assert_eq!(count(&entries, |fate| fate == Fate::Open), counters.open_at_end);
    // Requests in flight when measuring began were sent before it. Nothing else of the warm-up is logged.
    assert_eq!(entries.iter().filter(|entry| entry.sent_ns < 0).count() as u64, counters.carried);
    assert!(entries.iter().all(|entry| entry.end_ns.is_none_or(|end_ns| end_ns >= 0)));
    let latency_ns = |entry: &LogEntry| (entry.end_ns.unwrap_or(entry.sent_ns) - entry.sent_ns).cast_unsigned();
    let completed = entries.iter().filter(|entry| entry.fate == Fate::Completed);
    assert_eq!(completed.map(latency_ns).sum::<u64>(), ran.totals.latency.sum() as u64);
}

#[test]
fn sampled_logs_have_their_share() {
    let config = Config { requests: Some(1000), duration_ns: None, max_inflight: 7, ..config() };
    let (ran, entries) = logged(config, "latency_us = 500", 10);
    assert_eq!((ran.totals.counters.completed, entries.len()), (1000, 100));
}

#[test]
fn lost_log_pages_are_counted() {
    let mut log = RequestLog::new(1, 1, Arc::new(|_| Passed::NoRoom));
    let mut counters = onrush_stats::Counters::default();
    let entry = LogEntry {
        due_ns: 0,
        sent_ns: 0,
        first_ns: None,
        end_ns: None,
        body_bytes: 0,
        status: None,
        name: 0,
        fate: Fate::Open,
    };
    (0..5).for_each(|_| log.add(entry, &mut counters));
    log.hand_over(&mut counters);
    assert_eq!((counters.logged, counters.unlogged), (0, 5));
}
