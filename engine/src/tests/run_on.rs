//! Runs that continue after their end, until the outcome of all due requests is known.

use std::cell::RefCell;
use std::rc::Rc;

use onrush_stats::Distribution;

use super::pacing::{Noting, every, open_loop};
use super::*;

/// Twenty requests, one every 50 ms, answered after `latency_ns`. Returns the measurements and the arrivals of the
/// requests.
fn run(config: Config, latency_ns: u64) -> (Ran, Vec<u64>) {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let network = Noting { latency_ns, not_before: Nanos::default(), asked: Rc::clone(&asked) };
    let ran = run_job(config, Box::new(network), Job { pacer: every(50 * MS, None), ..job(get(), http1(1)) });
    assert_conserved(&ran.totals);
    (ran, asked.take())
}

/// End of the runs: just before a request is due.
const END: u64 = 995 * MS;

fn many(run_on_ns: u64) -> Config {
    Config { max_inflight: 100, duration_ns: Some(END), run_on_ns, ..open_loop(OpenLoop::default()) }
}

/// Number of requests that ended after the end of the run, number of those still open at last, and number of known
/// ages.
fn found(ran: &Ran) -> (u64, u64, u64) {
    let open_loop = ran.totals.open_loop.as_deref().unwrap();
    let some = |times: &Option<Box<Distribution<u64>>>| times.as_deref().map_or(0, Distribution::count);
    (some(&open_loop.later), some(&open_loop.open), open_loop.censored.count())
}

#[test]
fn late_outcomes_are_kept_separate_from_results() {
    let (plain, _) = run(many(0), 300 * MS);
    let (ran, asked) = run(many(SECOND), 300 * MS);
    // Requests due from 0.7 s on have no response by the end.
    assert_eq!((found(&plain), found(&ran)), ((0, 6, 6), (6, 0, 0)));
    assert_eq!((ran.end.elapsed_ns, plain.end.elapsed_ns), (END, END));
    assert_eq!(ran.totals.counters, plain.totals.counters);
    let scheduled = |ran: &Ran| ran.totals.open_loop.as_ref().unwrap().scheduled.count();
    assert_eq!((scheduled(&ran), ran.totals.counters.open_at_end), (scheduled(&plain), 6));
    let later = ran.totals.open_loop.as_ref().unwrap().later.as_ref().unwrap();
    assert_eq!((later.min(), later.max()), (Some(300 * MS), Some(300 * MS)));
    // The load stays on until the last request has its response.
    assert_eq!(asked.iter().filter(|at| **at >= END).count(), 6, "{asked:?}");
    assert_eq!(ran.end.ran_on_ns, 950 * MS + 300 * MS - END);
}

#[test]
fn open_requests_have_ages_of_the_run_on() {
    let (ran, _) = run(many(500 * MS), 10 * SECOND);
    assert_eq!(found(&ran), (0, 20, 20));
    let open = ran.totals.open_loop.as_ref().unwrap().open.as_ref().unwrap();
    assert_eq!((open.min(), open.max()), (Some(545 * MS), Some(1_495 * MS)));
    assert_eq!(ran.end.ran_on_ns, 500 * MS);
}

#[test]
fn abandoned_requests_have_their_final_age() {
    let config = Config { give_up_ns: Some(200 * MS), ..many(SECOND) };
    let (ran, _) = run(config, 10 * SECOND);
    assert_eq!(found(&ran), (0, 0, 20));
    let censored = &ran.totals.open_loop.as_ref().unwrap().censored;
    let (least, most) = (censored.min().unwrap(), censored.max().unwrap());
    assert!(least >= 200 * MS && most < 220 * MS, "{least} {most}");
}

#[test]
fn unsent_requests_are_sent_after_the_end() {
    // One connection answers ten of the twenty requests of a second.
    let config = Config { max_inflight: 1, ..many(5 * SECOND) };
    let (ran, _) = run(config, 100 * MS);
    let open_loop = ran.totals.open_loop.as_deref().unwrap();
    assert_eq!((open_loop.due, open_loop.unsent, ran.totals.counters.completed), (20, 10, 9));
    assert_eq!(found(&ran), (11, 0, 0));
    // The twentieth was due at 0.95 s and began at 1.9 s.
    assert_eq!(open_loop.later.as_ref().unwrap().max(), Some(1_050 * MS));
}

#[test]
fn stopped_runs_learn_no_further_outcomes() {
    let control = Control::default();
    control.stop();
    let network = Noting { latency_ns: MS, not_before: Nanos::default(), asked: Rc::default() };
    let backend = Sim::new(100, Box::new(network));
    let job = Job { pacer: every(50 * MS, None), ..job(get(), http1(1)) };
    assert_eq!(run_backend(control, many(SECOND), backend, job).end.ran_on_ns, 0);
}

#[test]
fn warm_up_requests_are_aged_from_its_end() {
    let config = Config { warmup_ns: SECOND, ..many(SECOND) };
    let (ran, _) = run(config, 300 * MS);
    let open_loop = ran.totals.open_loop.as_deref().unwrap();
    let entered = open_loop.entered.as_deref().unwrap();
    assert_eq!((entered.count(), entered.max()), (ran.totals.counters.carried, Some(250 * MS)));
    assert_eq!((open_loop.scheduled.count(), found(&ran)), (19, (6, 0, 0)));
}

#[test]
fn dropped_requests_have_the_maximum_age() {
    let rules = OpenLoop { max_late_ns: Some(100 * MS), ..OpenLoop::default() };
    let config = Config { max_inflight: 1, rules: open_loop(rules).rules, ..many(SECOND) };
    let (ran, _) = run(config, 400 * MS);
    let open_loop = ran.totals.open_loop.as_deref().unwrap();
    let (_, open, ages) = found(&ran);
    assert_eq!((open_loop.censored.min(), open_loop.censored.max(), open), (Some(100 * MS), Some(100 * MS), 0));
    assert!(ages >= open_loop.dropped, "{ages} {}", open_loop.dropped);
}
