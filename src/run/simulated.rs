//! Workers in virtual time, which take turns in one thread: whatever the machine does meanwhile, a run goes the same
//! way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use onrush_proto::Nanos;

use super::worker::Worker;
use crate::backend::Sim;
use crate::backend::sim::Scenario;
use crate::engine::{Control, Engine, WorkerEnd};

/// The workers of a simulated run.
pub(super) struct Simulated {
    scenario: Scenario,
    control: Arc<Control>,
    /// The workers until the run begins.
    waiting: Vec<Worker>,
    at_work: Vec<Option<Box<Engine<Sim>>>>,
    ended: Vec<Option<WorkerEnd>>,
}

impl Simulated {
    /// Workers that wait to be released, each with its part of the server.
    pub fn new(workers: Vec<Worker>, scenario: Scenario, control: Arc<Control>) -> Self {
        let ended = workers.iter().map(|_| None).collect();
        Self { scenario, control, waiting: workers, at_work: Vec::new(), ended }
    }

    /// Releases the workers at this time of the scenario.
    pub fn release(&mut self, now: Nanos) {
        let begin = |worker: Worker| {
            let settings = &worker.settings;
            // The runs of a search are not all alike.
            let network = self.scenario.clone().network(settings.seed.wrapping_add(now.0));
            let backend = Sim::new(settings.max_inflight, network).starting_at(now);
            let mut engine = Box::new(worker.engine(backend).without_account());
            engine.begin(Instant::now());
            Some(engine)
        };
        self.at_work = self.waiting.drain(..).map(begin).collect();
    }

    /// Lets each worker run up to this moment, or a little further, to the next event after it.
    pub fn advance(&mut self, until: Nanos) {
        for (place, ended) in self.at_work.iter_mut().zip(&mut self.ended) {
            let Some(engine) = place.take() else { continue };
            match catch_unwind(AssertUnwindSafe(|| engine.run_past(until))) {
                Ok(Ok(end)) => *ended = Some(end),
                Ok(Err(engine)) => *place = Some(engine),
                // It panicked: the others end, too.
                Err(_) => self.control.stop(),
            }
        }
    }

    /// Whether the scenario has interrupted the run by then.
    pub fn is_signalled(&self, now: Nanos) -> bool {
        self.scenario.is_signalled(now)
    }

    /// Whether worker `index` has not ended.
    pub fn is_at_work(&self, index: usize) -> bool {
        self.at_work[index].is_some()
    }

    /// The results of worker `index`, once, if it has ended.
    pub fn take_end(&mut self, index: usize) -> Option<WorkerEnd> {
        self.ended[index].take()
    }
}
