//! Runs in which a thread panics or never returns from its script. The threads are real, the network is not.

mod random;
mod rates;
mod run_on;
mod simulated;

use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

use onrush_engine::backend::sim::Scenario;
use onrush_engine::backend::{Backend, Sim};
use onrush_engine::{Callback, Callbacks, Config, MakeCallbacks, OnResponse, Response, WorkerLink};
use onrush_plan::{Io, Plan, Random};

use super::prepare::{create_workers, worker_config};
use super::threads::Threads;
use super::worker::Worker;
use super::workers::Workers;
use super::*;
use crate::cli::{self, Commands, Invocation};
use crate::resolve::Addresses;

/// A script that calls `act` for every response.
fn script_calling(act: fn()) -> MakeCallbacks {
    Box::new(move || {
        let call = move |_: &Response<'_>| {
            act();
            Ok(())
        };
        let response = OnResponse { headers: false, body: false, call: Box::new(call) };
        (None, Callbacks { response: Some(response), ..Callbacks::default() })
    })
}

/// Sets up a run whose first workers have these scripts. `start` creates the workers.
fn set_up_run(
    words: &str,
    scripts: Vec<MakeCallbacks>,
    start: impl FnOnce(&Plan, Vec<Worker>) -> Workers,
) -> (Box<Plan>, Prepared) {
    let Invocation::Run { plan, .. } = cli::parse(words.split(' ').map(Into::into), &Commands::NONE) else {
        panic!("{words}")
    };
    let addresses = Addresses(vec!["127.0.0.1:80".parse().unwrap()]);
    let config = |index| worker_config(&plan, &addresses, None, false, index);
    let (parts, control) = (plan.request.with_body(Arc::default()), Arc::default());
    let of_script = |callbacks| WorkerScript { prebuilt: None, callbacks };
    let scripts = scripts.into_iter().map(of_script).collect();
    let workers = create_workers(&plan, &parts, config, scripts, None, None, &control);
    let links = workers.iter().map(|worker| Arc::clone(&worker.link)).collect();
    let workers = start(&plan, workers);
    let prepared =
        Prepared { backend: Sim::NAME, descriptors: None, control, links, workers, monitor: None, sockets: None };
    (plan, prepared)
}

/// Real threads with a simulated network.
fn spawn_threads(_: &Plan, workers: Vec<Worker>) -> Workers {
    let make = |config: &Config| {
        let scenario: Scenario = toml::from_str("").unwrap();
        Ok(Sim::new(config.max_inflight, scenario.network(config.seed)))
    };
    Workers::Threads(Threads::spawn(workers, 0, make).unwrap())
}

/// Runs prepared workers from this moment of the machine's clock on; each thread has its own virtual time.
fn run_prepared(plan: &Plan, prepared: Prepared, start: Instant) -> Outcome {
    prepared.run(plan, start, &mut Clock::for_io(&Io::Epoll), &Interrupt::default(), &mut []).0
}

#[test]
fn panicked_threads_end_the_run() {
    let falls = || {
        // The other thread should have measured something by now.
        thread::sleep(Duration::from_millis(300));
        panic!("on purpose")
    };
    let began = Instant::now();
    let words = "onrush -t2 -c2 -d 1000000s --io sim:unused http://127.0.0.1/";
    let (plan, prepared) = set_up_run(words, vec![script_calling(falls)], spawn_threads);
    let outcome = run_prepared(&plan, prepared, Instant::now());
    assert_eq!(outcome.breakdown, Some(Breakdown::Bug(1)));
    assert!(began.elapsed() < Duration::from_secs(20), "the other one does not run to the end");
    assert!(outcome.totals.counters.completed > 0, "what the other one measured is kept");
    assert_eq!(outcome.workers.len(), 2);
}

#[test]
fn late_threads_count_as_stuck() {
    let stays: fn() = || thread::sleep(Duration::from_secs(30));
    let (give, links) = mpsc::channel();
    let stuck = |give: Sender<Vec<Arc<WorkerLink>>>| {
        let scripts = (0..4).map(|_| script_calling(stays)).collect();
        let (plan, prepared) =
            set_up_run("onrush -t4 -c4 -d1s --io sim:unused http://127.0.0.1/", scripts, spawn_threads);
        give.send(prepared.links.clone()).unwrap();
        drop(give);
        run_prepared(&plan, prepared, Instant::now()).stuck
    };
    let are_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let runs: Vec<_> = iter::repeat_n(give, 8).map(|give| scope.spawn(move || stuck(give))).collect();
        let links: Vec<_> = links.iter().flatten().collect();
        // Makes the callback appear to start and end all the time, so that two readings in a row differ.
        scope.spawn(move || {
            let (mut random, places) = (Random::new(1), [Callback::None, Callback::Response]);
            while !are_over.load(Ordering::Relaxed) {
                links.iter().for_each(|link| link.show_callback(places[random.below(2) as usize]));
            }
        });
        let stuck: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        are_over.store(true, Ordering::Relaxed);
        assert_eq!(stuck, vec![[1, 2, 3, 4].map(|thread| (thread, "response")); 8]);
    });
}

#[test]
fn runs_begin_at_the_agreed_moment() {
    let (plan, prepared) =
        set_up_run("onrush -t2 -c2 -n4 --io sim:unused http://127.0.0.1/", Vec::new(), spawn_threads);
    let start = Instant::now() + Duration::from_millis(100);
    let outcome = run_prepared(&plan, prepared, start);
    assert!(Instant::now() >= start && outcome.totals.counters.completed == 4);
    let (plan, prepared) =
        set_up_run("onrush -t2 -c2 -n4 --io sim:unused http://127.0.0.1/", Vec::new(), spawn_threads);
    prepared.control.stop();
    let began = Instant::now();
    let outcome = run_prepared(&plan, prepared, began + Duration::from_secs(3600));
    assert!(began.elapsed() < Duration::from_secs(60) && outcome.totals.counters.started == 0);
}
