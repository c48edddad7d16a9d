//! A generator that stalls, and a server that does not.

use std::cell::Cell;
use std::rc::Rc;

use onrush_stats::Gap;
use onrush_stats::silences::GAP_MIN_NS;
use rustix::io::Errno;

use super::pacing::{every, open_loop};
use super::*;
use crate::backend::sim::Peer;
use crate::backend::thread_cpu_ns;

/// Responds after 10 ms, even while the generator is stalled.
const QUICK: &str = "connect_us = 0.0\nlatency_us = 10000.0\n";

fn standing(connections: u32, duration_ms: u64, span: &str) -> Ran {
    let rules = Rules { timeout_ns: Some(300 * MS), ..config().rules };
    let limits = Config { give_up_ns: Some(500 * MS), duration_ns: Some(duration_ms * MS), rules, ..config() };
    run_http(Config { max_inflight: connections, ..limits }, &format!("{QUICK}[[generator_stall]]\n{span}"))
}

#[test]
fn responses_arriving_during_stalls_count() {
    // More connections than one turn of the loop handles completions.
    for connections in [3 * HANDLED_PER_TURN as u32, 3, 1] {
        let Ran { totals, end } = standing(connections, 3_000, "from_s = 1.005\nfor_s = 1.0");
        let counters = &totals.counters;
        assert_eq!((counters.abandoned, counters.failed, counters.open_late_at_end), (0, 0, 0), "{connections}");
        // The requests took that long nevertheless.
        assert_eq!(counters.late, u64::from(connections));
        assert!(totals.latency.max().unwrap() > 1_000 * MS);
        let [gap] = end.stalls[..] else { panic!("{:?}", end.stalls) };
        assert!((1_000 * MS..1_020 * MS).contains(&gap.from_ns) && gap.until_ns == 2_005 * MS, "{gap:?}");
        assert_conserved(&totals);
    }
}

#[test]
fn stalls_over_the_end_end_the_run() {
    // The responses come long after the end in one case and before it in the other: the worker cannot tell.
    for latency_us in [10_000, 900_000] {
        let stalled =
            format!("connect_us = 0.0\nlatency_us = {latency_us}.0\n[[generator_stall]]\nfrom_s = 1.005\nfor_s = 2.0");
        let config = Config { duration_ns: Some(1_500 * MS), max_inflight: 3, ..config() };
        let Ran { totals, end } = run_http(config, &stalled);
        let counters = &totals.counters;
        assert!((1_000 * MS..=1_100 * MS).contains(&end.elapsed_ns), "{}", end.elapsed_ns);
        assert_eq!((counters.abandoned, counters.failed, counters.open_at_end), (0, 0, 3));
        let latency_ns = latency_us * 1_000;
        assert!(
            (latency_ns..latency_ns + MS).contains(&totals.latency.max().unwrap()),
            "none was cut, none was longer"
        );
        assert_eq!(end.stalls.len(), 1);
        assert_conserved(&totals);
    }
}

#[test]
fn second_stalls_add_nothing_after_the_end() {
    // Stalled from 0.2 s to 0.5 s, and again immediately until 2 s; a response that arrives then took longer than the
    // run.
    let twice = "connect_us = 0.0\nlatency_us = 900000.0\n[[generator_stall]]\nfrom_s = 0.2\nfor_s = 0.3\n\
                 [[generator_stall]]\nfrom_s = 0.4\nfor_s = 1.6";
    let Ran { totals, end } = run_http(Config { max_inflight: 3, ..config() }, twice);
    let counters = &totals.counters;
    assert_eq!((end.elapsed_ns, counters.completed, counters.open_at_end), (SECOND, 0, 3));
    assert_eq!(counters.occupancy.in_flight_ns, 3 * SECOND);
    assert_conserved(&totals);
}

#[test]
fn late_windows_keep_their_length() {
    // Past the end of the warm-up, also if that is the first missed timer, and past the planned end of the run.
    for (from_s, for_s) in [("0.9", "0.5"), ("0.9995", "0.4005"), ("0.9", "3.0")] {
        let stalled = format!("{QUICK}[[generator_stall]]\nfrom_s = {from_s}\nfor_s = {for_s}");
        let config = Config { warmup_ns: SECOND, duration_ns: Some(SECOND), ..config() };
        let Ran { totals, end } = run_http(config, &stalled);
        assert_eq!(end.elapsed_ns, SECOND);
        assert!((90..=110).contains(&totals.counters.completed), "{}", totals.counters.completed);
        assert_eq!(end.stalls, [], "it was before");
    }
}

#[test]
fn late_schedules_do_not_prolong_short_windows() {
    let scenario: Scenario =
        toml::from_str(&format!("{QUICK}[[generator_stall]]\nfrom_s = 0.9\nfor_s = 3.0")).expect("it is valid");
    let job = Job { pacer: every(MS, None), ..job(get(), http1(1)) };
    let config = Config { warmup_ns: SECOND, duration_ns: Some(MS), ..open_loop(OpenLoop::default()) };
    let Ran { totals, end } = run_job(config, scenario.network(1), job);
    assert_eq!(end.elapsed_ns, MS);
    assert_conserved(&totals);
}

#[test]
fn generator_stalls_do_not_hide_silences() {
    let fault = "from_s = 1.005\nfor_s = 1.0\n[[fault]]\nevery = 1\nwhat = 'hang'";
    let Ran { totals, .. } = standing(2, 3_000, fault);
    assert!(totals.counters.abandoned > 0 && totals.counters.completed == 0);
}

#[test]
fn short_delays_are_not_stalls() {
    let Ran { totals, end } = standing(2, 1_000, "from_s = 0.505\nfor_s = 0.1");
    let lengths: Vec<u64> = end.stalls.iter().map(|gap| gap.length_ns()).collect();
    assert!(matches!(lengths[..], [length] if length < GAP_MIN_NS) && totals.counters.late == 0, "{lengths:?}");
}

/// Callbacks of a script that blocks for a second from 1.015 s on, shortly after the `first` response, and a server
/// that continues in the meantime.
pub fn blocking(first: u64) -> (Callbacks, Scenario) {
    let scenario = format!("{QUICK}[[generator_stall]]\nfrom_s = 1.015\nfor_s = 1.0");
    let (told, spent_ns) = (Rc::new(Cell::new(0)), SECOND);
    let [of_response, of_spent, of_long] = [0; 3].map(|_| Rc::clone(&told));
    let call = move |_: &Response<'_>| {
        of_response.set(of_response.get() + 1);
        Ok(())
    };
    let long = Cell::new(vec![(1_015 * MS, 2_015 * MS)]);
    let callbacks = Callbacks {
        response: Some(OnResponse { headers: false, body: false, call: Box::new(call) }),
        spent_ns: Some(Box::new(move || if of_spent.get() >= first { spent_ns } else { 0 })),
        take_long: Some(Box::new(move || if of_long.get() >= first { long.take() } else { Vec::new() })),
        ..Callbacks::default()
    };
    (callbacks, toml::from_str(&scenario).expect("it is valid"))
}

#[test]
fn blocking_scripts_are_no_stalls() {
    for duration_ms in [3_000, 1_500] {
        let (callbacks, scenario) = blocking(101);
        let config = Config { give_up_ns: Some(500 * MS), duration_ns: Some(duration_ms * MS), ..config() };
        let ran = run_job(config, scenario.network(1), Job { callbacks, ..job(get(), http1(1)) });
        let Ran { totals, end } = ran;
        // The blocking may extend past the end of the run, which ends as planned.
        assert_eq!((end.elapsed_ns, end.stalls), (duration_ms * MS, Vec::new()));
        let until_ns = 2_015.min(duration_ms) * MS;
        assert_eq!(end.in_script, [Gap { from_ns: 1_015 * MS, until_ns }]);
        assert_eq!(totals.activity.held_up_ns, until_ns - 1_015 * MS);
        assert_eq!(totals.counters.abandoned, 0, "the responses were there");
        assert_conserved(&totals);
    }
}

/// A network on which a late worker has been working.
struct Working(Box<dyn Network>);

impl Network for Working {
    fn connect(&mut self, now: Nanos, address: SocketAddr) -> (Nanos, Result<Box<dyn Peer>, Errno>) {
        self.0.connect(now, address)
    }

    fn awakes(&self, at: Nanos) -> Nanos {
        let awakes = self.0.awakes(at);
        let begin_ns = thread_cpu_ns();
        while thread_cpu_ns() - begin_ns < awakes.since(at) {}
        awakes
    }
}

#[test]
fn busy_workers_are_not_stalled() {
    let scenario = format!("{QUICK}[[generator_stall]]\nfrom_s = 0.505\nfor_s = 0.2");
    let scenario: Scenario = toml::from_str(&scenario).unwrap();
    let network = Box::new(Working(scenario.network(1)));
    let Ran { end, .. } = run_on(config(), network, get(), http1(1));
    assert_eq!(end.stalls, []);
}

#[test]
fn due_requests_reveal_stalls_between_timers() {
    let stalls = |pacer: Pacer| {
        let scenario: Scenario =
            toml::from_str("connect_us = 0.0\nlatency_us = 1000.0\n[[generator_stall]]\nfrom_s = 0.325\nfor_s = 0.06")
                .unwrap();
        run_job(config(), scenario.network(1), Job { pacer, ..job(get(), http1(1)) }).end.stalls
    };
    assert_eq!(stalls(every(10 * MS, None)), [Gap { from_ns: 330 * MS, until_ns: 385 * MS }]);
    // In a closed loop the worker only had responses to wait for.
    assert_eq!(stalls(Pacer::Closed), []);
}
