//! Runs in which a thread panics, or does not return from its script.

mod random;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::prepare::{settings, spawn_all};
use super::*;
use crate::backend::Sim;
use crate::backend::sim::Scenario;
use crate::cli::{self, Invocation};
use crate::engine::{Callback, Callbacks, MakeCallbacks, OnResponse, Response, Settings, WorkerLink};
use crate::plan::Plan;
use crate::random::Random;

/// A script that does this with every response.
fn does(act: fn()) -> MakeCallbacks {
    Box::new(move || {
        let call = move |_: &Response<'_>| {
            act();
            Ok(())
        };
        let response = OnResponse { headers: false, body: false, call: Box::new(call) };
        (None, Callbacks { response: Some(response), ..Callbacks::default() })
    })
}

/// Counts nothing.
struct Silent;

impl Observer for Silent {}

/// Sets up a run whose first threads have these scripts.
fn set_up(words: &str, scripts: Vec<MakeCallbacks>) -> (Box<Plan>, Prepared) {
    let Invocation::Run { plan, .. } = cli::parse(words.split(' ').map(Into::into)) else { panic!("{words}") };
    let addresses = Addresses(vec!["127.0.0.1:80".parse().unwrap()]);
    let settings = |index| settings(&plan, &addresses, None, false, index);
    let make = |settings: &Settings| {
        let scenario: Scenario = toml::from_str("").unwrap();
        Ok(Sim::new(settings.max_inflight, scenario.network(settings.seed)))
    };
    let prepared =
        spawn_all(&plan, &plan.request.with_body(Arc::default()), settings, None, scripts, None, make).unwrap();
    (plan, prepared)
}

#[test]
fn a_thread_that_falls_ends_the_run_and_the_others_are_reported() {
    let falls = || {
        // The other thread should have measured something by then.
        thread::sleep(Duration::from_millis(300));
        panic!("on purpose")
    };
    let began = Instant::now();
    let words = "onrush -t2 -c2 -d 1000000s --io sim:unused http://127.0.0.1/";
    let (plan, prepared) = set_up(words, vec![does(falls)]);
    let outcome = prepared.run(&plan, Instant::now(), &Interrupt::default(), &mut Silent);
    assert_eq!(outcome.breakdown, Some(Breakdown::Bug(1)));
    assert!(began.elapsed() < Duration::from_secs(20), "the other one does not run to the end");
    assert!(outcome.totals.counters.completed > 0, "what the other one measured is kept");
    assert_eq!(outcome.workers.len(), 2);
}

#[test]
fn a_thread_that_the_run_does_not_wait_for_is_stuck_though_it_returns_meanwhile() {
    let stays: fn() = || thread::sleep(Duration::from_secs(30));
    let set_up = |_| {
        let scripts = (0..4).map(|_| does(stays)).collect();
        set_up("onrush -t4 -c4 -d1s --io sim:unused http://127.0.0.1/", scripts)
    };
    let runs: Vec<_> = (0..8).map(set_up).collect();
    let links: Vec<Arc<WorkerLink>> = runs.iter().flat_map(|(_, prepared)| prepared.links.clone()).collect();
    let are_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // The callback seems to begin and end all the time, so that two calls return different things.
        scope.spawn(|| {
            let (mut random, places) = (Random::new(1), [Callback::None, Callback::Response]);
            while !are_over.load(Ordering::Relaxed) {
                links.iter().for_each(|link| link.enter(places[random.below(2) as usize]));
            }
        });
        let run = |(plan, prepared): (Box<Plan>, Prepared)| {
            scope.spawn(move || prepared.run(&plan, Instant::now(), &Interrupt::default(), &mut Silent).stuck)
        };
        let stuck: Vec<_> = runs.into_iter().map(run).collect();
        let stuck: Vec<_> = stuck.into_iter().map(|run| run.join().unwrap()).collect();
        are_over.store(true, Ordering::Relaxed);
        assert_eq!(stuck, vec![[1, 2, 3, 4].map(|thread| (thread, "response")); 8]);
    });
}

#[test]
fn a_run_begins_at_the_moment_that_was_agreed_upon_and_not_if_it_was_stopped_before() {
    let (plan, prepared) = set_up("onrush -t2 -c2 -n4 --io sim:unused http://127.0.0.1/", Vec::new());
    let start = Instant::now() + Duration::from_millis(100);
    let outcome = prepared.run(&plan, start, &Interrupt::default(), &mut Silent);
    assert!(Instant::now() >= start && outcome.totals.counters.completed == 4);
    let (plan, prepared) = set_up("onrush -t2 -c2 -n4 --io sim:unused http://127.0.0.1/", Vec::new());
    prepared.control.stop();
    let began = Instant::now();
    let outcome = prepared.run(&plan, began + Duration::from_secs(3600), &Interrupt::default(), &mut Silent);
    assert!(began.elapsed() < Duration::from_secs(60) && outcome.totals.counters.started == 0);
}
