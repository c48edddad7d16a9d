//! A worker before it runs: its part of the plan, and the engine that carries it out.

use std::rc::Rc;
use std::sync::Arc;

use onrush_proto::http1::{Wire, outline};
use onrush_proto::{Parts, Request};

use onrush_engine::backend::Backend;
use onrush_engine::{Callbacks, Config, Control, Engine, Job, MakeCallbacks, Pacer, Repeated, Spare, WorkerLink};

/// What a script brings to a run.
pub struct Scripted {
    /// The number of requests in its first batch.
    pub depth: usize,
    /// Whether it writes every batch anew.
    pub writes_batches: bool,
    /// What each worker gets of it.
    pub workers: Vec<OfScript>,
}

/// What a worker gets of a script.
pub struct OfScript {
    /// The requests, if they are always the same.
    pub prebuilt: Option<Vec<u8>>,
    /// The callbacks into it.
    pub callbacks: MakeCallbacks,
}

/// What a worker is given.
pub(super) struct Worker {
    pub config: Config,
    /// When its requests are due.
    pub pacer: Pacer,
    pub parts: Parts,
    pub script: Option<OfScript>,
    /// The connections of an earlier session that it may use; `None`: it leaves none to a later one either.
    pub spares: Option<Vec<Spare>>,
    pub control: Arc<Control>,
    pub link: Arc<WorkerLink>,
}

impl Worker {
    /// The engine that does the worker's part on this backend.
    pub fn engine<B: Backend>(self, backend: B) -> Engine<B> {
        // A script may pipeline any number of requests.
        let depth = if self.script.is_some() { usize::MAX } else { 1 };
        let (prebuilt, make) = self.script.map_or((None, None), |script| (script.prebuilt, Some(script.callbacks)));
        let (source, callbacks) = make.map_or_else(|| (None, Callbacks::default()), |make| make());
        let repeated = || match &prebuilt {
            Some(bytes) => requests(bytes),
            None => vec![Request::new(self.parts.clone())],
        };
        let source = source.unwrap_or_else(|| Box::new(Repeated(repeated())));
        let job = Job { source, pacer: self.pacer, make_protocol: onrush_engine::http1(depth), callbacks };
        Engine::new(self.config, backend, job, self.control, self.link).with_spares(self.spares)
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
