//! A worker's thread: it sets itself up, waits to be released with the others, and runs the engine.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use onrush_proto::http1::{Wire, outline};
use onrush_proto::{Parts, Request};

use super::host;
use crate::backend::{self, Backend};
use crate::engine::{
    self, Callbacks, Control, Engine, Job, MakeCallbacks, Pacer, Repeated, Settings, Spare, WorkerEnd, WorkerLink,
};

/// How often a worker that waits for its start checks whether the run was stopped.
const LOOK: Duration = Duration::from_millis(20);

/// The end of a worker: what it measured, or the panic that ended it.
pub(super) type Worked = thread::Result<WorkerEnd>;

/// What a worker's thread is given.
pub(super) struct Worker {
    pub settings: Settings,
    /// When its requests are due.
    pub pacer: Pacer,
    pub parts: Parts,
    /// The requests of a script that always sends the same ones.
    pub prebuilt: Option<Vec<u8>>,
    pub callbacks: Option<MakeCallbacks>,
    /// The connections of an earlier session that it may use; `None`: it leaves none to a later one either.
    pub spares: Option<Vec<Spare>>,
    pub gate: Arc<Gate>,
    pub control: Arc<Control>,
    pub link: Arc<WorkerLink>,
    pub watcher: Thread,
}

impl Worker {
    /// Sets the worker up, reports that, waits to be released and runs. `None`: it was never released.
    pub fn work<B: Backend>(
        self,
        make: impl Fn(&Settings) -> io::Result<B>,
        ready: Sender<io::Result<()>>,
    ) -> Option<Worked> {
        let backend = match make(&self.settings) {
            Ok(backend) => backend,
            Err(error) => {
                // `spawn_all` waits for this.
                let _ = ready.send(Err(error));
                return None;
            }
        };
        if let Pacer::Scheduled(_) = self.pacer {
            backend::precise_timers();
        }
        let (gate, control, watcher) = (Arc::clone(&self.gate), Arc::clone(&self.control), self.watcher.clone());
        let engine = self.engine(backend).with_schedstat(host::schedstat(host::SCHEDSTAT));
        drop(ready);
        let worked = gate.wait(&control).map(|begin| catch_unwind(AssertUnwindSafe(|| engine.run(begin))));
        if worked.as_ref().is_some_and(Result::is_err) {
            control.stop();
        }
        watcher.unpark();
        worked
    }

    /// The engine that does the worker's part on this backend.
    pub fn engine<B: Backend>(self, backend: B) -> Engine<B> {
        // A script may pipeline any number of requests.
        let depth = if self.callbacks.is_some() { usize::MAX } else { 1 };
        let (source, callbacks) = self.callbacks.map_or_else(|| (None, Callbacks::default()), |make| make());
        let repeated = || match &self.prebuilt {
            Some(bytes) => requests(bytes),
            None => vec![Request::new(self.parts.clone())],
        };
        let source = source.unwrap_or_else(|| Box::new(Repeated(repeated())));
        let job = Job { source, pacer: self.pacer, make_protocol: engine::http1(depth), callbacks };
        Engine::new(self.settings, backend, job, self.control, self.link).with_spares(self.spares)
    }
}

/// The requests that a script wrote before the run, which were checked to be complete then.
fn requests(bytes: &[u8]) -> Vec<Request> {
    let mut outlines = Vec::new();
    let complete = outline(bytes, &mut outlines);
    debug_assert!(complete.is_ok(), "checked when the script was loaded");
    let bytes = Rc::from(bytes);
    outlines.into_iter().map(|outline| Request::Http1(Wire::among(&bytes, outline))).collect()
}

/// Holds workers back until all are set up and the moment has come.
#[derive(Default)]
pub(super) struct Gate(OnceLock<Option<Instant>>);

impl Gate {
    /// Lets the workers run from that moment on, or end; only the first call counts.
    pub fn open(&self, begin: Option<Instant>) {
        let _ = self.0.set(begin);
    }

    /// Waits for that, or until the run is stopped; returns when the run begins, if it does.
    pub fn wait(&self, control: &Control) -> Option<Instant> {
        let begin = (*self.0.wait())?;
        loop {
            let left = begin.saturating_duration_since(Instant::now());
            if left.is_zero() || control.is_stopped() {
                return Some(begin);
            }
            thread::sleep(left.min(LOOK));
        }
    }
}
