//! What becomes of a run in which a thread falls over a mistake of ours.

use std::time::Instant;

use super::*;
use crate::cli::{self, Invocation};
use crate::engine::{Answer, Failure, Wants};

/// A script that is a mistake of ours.
struct Falls;

impl Hooks for Falls {
    fn wants(&self) -> Wants {
        Wants { response: true, ..Wants::default() }
    }

    fn delay_ns(&mut self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn write(&mut self, _: &mut Vec<Request>) -> Result<(), Failure> {
        Ok(())
    }

    fn answered(&mut self, _: &Answer<'_>) -> Result<(), Failure> {
        // The other thread is to have measured something by then.
        thread::sleep(Duration::from_millis(300));
        panic!("on purpose")
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn address(&self) -> Option<SocketAddr> {
        None
    }

    fn spent_ns(&self) -> u64 {
        0
    }
}

/// Counts nothing.
struct Nobody;

impl Observer for Nobody {}

#[test]
fn a_thread_that_falls_ends_the_run_and_the_others_are_reported() {
    let words = "onrush -t2 -c2 -d 1000000s --io sim:unused http://127.0.0.1/";
    let Invocation::Run { plan, .. } = cli::parse(words.split(' ').map(Into::into)) else { panic!("{words}") };
    let addresses = Addresses(vec!["127.0.0.1:80".parse().unwrap()]);
    let settings = |index| settings(&plan, &addresses, None, false, index);
    let make = |settings: &Settings| {
        let scenario: Scenario = toml::from_str("").unwrap();
        Ok(Sim::new(settings.connections, scenario.network(settings.seed)))
    };
    let began = Instant::now();
    // The hooks go to the first thread.
    let prepared = spawn_all(&plan, settings, None, vec![Box::new(Falls)], make).unwrap();
    let outcome = prepared.run(&plan, &Interrupt::default(), &mut Nobody);
    assert_eq!(outcome.breakdown, Some(Breakdown::Bug(1)));
    assert!(began.elapsed() < Duration::from_secs(20), "the other one does not go on to the end");
    assert!(outcome.totals.counters.completed > 0, "what the other one measured is there");
    assert_eq!(outcome.workers.len(), 2);
}
