//! Workers in virtual time. They take turns, so that a run is deterministic whatever the machine does.
//!
//! Each worker has its own thread: a script that never returns blocks one worker but not the supervisor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use onrush_engine::backend::Sim;
use onrush_engine::backend::sim::Scenario;
use onrush_engine::{Advanced, Stayed, WorkerEnd, WorkerLink};
use onrush_proto::Nanos;

use super::threads::{self, NotStarted};
use super::worker::Worker;

/// A worker is given up if its script has not returned after this long on the machine's clock. No ordinary callback
/// takes nearly as long, so the outcome does not depend on how busy the machine is.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Simulated {
    scenario: Box<Scenario>,
    workers: Vec<WorkerHandle>,
}

/// The supervisor's handle to a worker.
struct WorkerHandle {
    link: Arc<WorkerLink>,
    /// Sends the time up to which the worker should run.
    orders: Sender<Nanos>,
    /// Outcomes of the orders.
    turns: Receiver<TurnOutcome>,
    /// Measurements of the worker, from the end of the run until taken.
    end: Option<Box<WorkerEnd>>,
    /// Final results of a worker that stayed, until taken.
    stayed: Option<Box<Stayed>>,
    state: WorkerState,
}

/// Outcome of an order.
enum TurnOutcome {
    /// The run continues.
    Running,
    /// The run of this worker has ended, with these results; true if the worker stays.
    Ended(Box<WorkerEnd>, bool),
    /// A worker that stayed was stopped.
    Left(Box<Stayed>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    /// Waits for an order.
    Waiting,
    /// The script did not return from the previous order.
    Lost,
    /// Has ended, and waits for an order.
    Staying,
    /// Has ended and left; a panicked worker leaves nothing.
    Gone,
}

impl Simulated {
    /// Workers that wait to be released, each with its part of the simulated server.
    ///
    /// # Errors
    ///
    /// Fails if a thread could not be created.
    pub fn spawn(workers: Vec<Worker>, scenario: Scenario) -> Result<Self, NotStarted> {
        let spawn = |(index, worker): (usize, Worker)| {
            let (orders, ordered) = mpsc::channel();
            let (turned, turns) = mpsc::channel();
            let (link, thread, scenario) =
                (Arc::clone(&worker.link), threads::thread_builder(index, &worker), scenario.clone());
            let thread = thread.spawn(move || run_worker(worker, scenario, ordered, &turned));
            thread.map_err(|reason| NotStarted::Thread { number: index + 1, reason })?;
            Ok(WorkerHandle { link, orders, turns, end: None, stayed: None, state: WorkerState::Waiting })
        };
        let workers = workers.into_iter().enumerate().map(spawn).collect::<Result<_, _>>()?;
        Ok(Self { scenario: Box::new(scenario), workers })
    }

    /// Runs each worker in turn up to this time, or on to the next event after it. The first call starts the workers at
    /// that time.
    pub fn advance(&mut self, until: Nanos) {
        self.workers.iter_mut().for_each(|worker| worker.advance(until));
    }

    /// True if the scenario has interrupted the run by `now`.
    pub fn is_signalled(&self, now: Nanos) -> bool {
        self.scenario.is_signalled(now)
    }

    /// True if worker `index` has not ended.
    pub fn is_at_work(&self, index: usize) -> bool {
        matches!(self.workers[index].state, WorkerState::Waiting | WorkerState::Lost)
    }

    /// Takes the results of worker `index`; `None` before its end, and the second time.
    pub fn take_end(&mut self, index: usize) -> Option<WorkerEnd> {
        self.workers[index].end.take().map(|end| *end)
    }

    /// Takes the final results of worker `index`, if it stayed and was stopped.
    pub fn take_stayed(&mut self, index: usize) -> Option<Stayed> {
        self.workers[index].stayed.take().map(|stayed| *stayed)
    }

    /// True if the thread of worker `index` has left.
    pub fn has_returned(&self, index: usize) -> bool {
        self.workers[index].state == WorkerState::Gone
    }
}

impl WorkerHandle {
    fn advance(&mut self, until: Nanos) {
        if !matches!(self.state, WorkerState::Waiting | WorkerState::Staying) {
            return;
        }
        // If the worker has gone, that is detected below.
        let _ = self.orders.send(until);
        self.state = loop {
            match self.turns.recv_timeout(PATIENCE) {
                Ok(TurnOutcome::Running) => break self.state,
                Ok(TurnOutcome::Ended(end, stays)) => {
                    self.end = Some(end);
                    break if stays { WorkerState::Staying } else { WorkerState::Gone };
                }
                Ok(TurnOutcome::Left(stayed)) => {
                    self.stayed = Some(stayed);
                    break WorkerState::Gone;
                }
                Err(RecvTimeoutError::Disconnected) => break WorkerState::Gone,
                Err(RecvTimeoutError::Timeout) if self.link.callback().name().is_some() => break WorkerState::Lost,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
    }
}

/// Runs a worker's share, one order at a time.
fn run_worker(worker: Worker, scenario: Scenario, ordered: Receiver<Nanos>, turned: &Sender<TurnOutcome>) {
    let control = Arc::clone(&worker.control);
    if catch_unwind(AssertUnwindSafe(|| run_turns(worker, scenario, ordered, turned))).is_err() {
        // End the other workers too.
        control.stop();
    }
}

fn run_turns(worker: Worker, scenario: Scenario, ordered: Receiver<Nanos>, turned: &Sender<TurnOutcome>) {
    // Nobody needs further turns of a run that could not start, or that ended without this worker.
    let hand_back = |turn| drop(turned.send(turn));
    let Ok(begin) = ordered.recv() else { return };
    // The runs of a search must not all draw the same network.
    let network = scenario.network(worker.config.seed.wrapping_add(begin.0));
    let backend = Sim::new(worker.config.slots(), network).starting_at(begin);
    let mut engine = Box::new(worker.into_engine(backend).without_account());
    engine.begin_run(Instant::now());
    hand_back(TurnOutcome::Running);
    for until in ordered {
        engine = match engine.run_past(until) {
            Advanced::Running(engine) => {
                hand_back(TurnOutcome::Running);
                engine
            }
            Advanced::Ended(end, Some(engine)) => {
                hand_back(TurnOutcome::Ended(end, true));
                engine
            }
            Advanced::Ended(end, None) => return hand_back(TurnOutcome::Ended(end, false)),
            Advanced::Left(stayed) => return hand_back(TurnOutcome::Left(stayed)),
        };
    }
}
