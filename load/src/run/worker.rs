//! A worker before the run: its share of the plan, and the engine to run it.

use std::rc::Rc;
use std::sync::Arc;

use onrush_plan::Http;
use onrush_proto::http1::{Wire, outline_any};
use onrush_proto::http2::{Http2Options, SharedContext};
use onrush_proto::{Request, RequestParts};

use crate::requests::Listed;
use onrush_engine::backend::Backend;
use onrush_engine::{
    Callbacks, Config, Control, Engine, Job, MakeCallbacks, Pacer, Repeated, RequestLog, Samples, Spare, WorkerLink,
};

/// A script's part in a run: what every worker must know about it.
pub struct RunScript {
    /// Number of requests in the script's first batch.
    pub depth: usize,
    /// True if the script writes every batch anew.
    pub writes_batches: bool,
    /// One element per worker.
    pub workers: Vec<WorkerScript>,
}

/// Parts of the script for one worker.
pub struct WorkerScript {
    /// The bytes of the requests, if the script wrote them before the run and they never change.
    pub prebuilt: Option<Vec<u8>>,
    /// Creates the callbacks into the script, in the worker's thread.
    pub callbacks: MakeCallbacks,
}

/// Parts that a worker gets before the run.
pub(super) struct Worker {
    pub config: Config,
    /// When the worker sends its requests.
    pub pacer: Pacer,
    pub parts: RequestParts,
    /// HTTP versions that the worker's connections may use, and their options.
    pub http: Http,
    /// The worker's share of the memory for unfinished header blocks, in bytes.
    pub blocks_max: usize,
    pub script: Option<WorkerScript>,
    /// The worker's share of the list of requests, if there is one.
    pub list: Option<Listed>,
    /// The worker's request log, if there is one.
    pub log: Option<RequestLog>,
    /// Sampler of the worker's responses, if requested.
    pub samples: Option<Samples>,
    /// Idle connections of an earlier session for reuse; `None` if the worker leaves none to a later session either.
    pub spares: Option<Vec<Spare>>,
    pub control: Arc<Control>,
    pub link: Arc<WorkerLink>,
}

impl Worker {
    /// The engine that runs the worker's share on this backend.
    pub fn into_engine<B: Backend>(self, backend: B) -> Engine<B> {
        // A script may pipeline any number of requests.
        let depth = if self.script.is_some() { usize::MAX } else { 1 };
        let (prebuilt, make) = self.script.map_or((None, None), |script| (script.prebuilt, Some(script.callbacks)));
        let (source, callbacks) = make.map_or_else(|| (None, Callbacks::default()), |make| make());
        let repeated = || match &prebuilt {
            Some(bytes) => parse_requests(bytes),
            None => vec![Request::new(self.parts.clone())],
        };
        let listed = self.list.map(Listed::into_source);
        let source = source.or(listed).unwrap_or_else(|| Box::new(Repeated(repeated())));
        let is_tls = self.config.tls.is_some();
        let http2 = SharedContext::new(Http2Options {
            is_https: is_tls,
            wants_body: self.config.transcribe
                || self.log.is_some()
                || self.samples.is_some()
                || !self.config.checks.body.is_empty()
                || callbacks.response.as_ref().is_some_and(|wanted| wanted.body),
            wants_fields: self.config.transcribe
                || self.samples.is_some()
                || !self.config.checks.headers.is_empty()
                || callbacks.response.as_ref().is_some_and(|wanted| wanted.headers),
            is_told_at_once: !B::GATHERS && !is_tls,
            blocks_max: self.blocks_max,
            ..http2_options(&self.http, depth)
        });
        let make_protocol = onrush_engine::http_by_alpn(&self.http.versions, is_tls, depth, &http2);
        let http2 = self.http.may_be_http2().then_some(http2);
        let job = Job { source, pacer: self.pacer, make_protocol, http2, callbacks };
        Engine::new(self.config, backend, job, self.control, self.link)
            .with_spares(self.spares)
            .with_log(self.log)
            .with_samples(self.samples)
    }
}

/// HTTP/2 options. `batch`: maximum number of requests that a script may send at once.
pub(super) fn http2_options(Http { streams, settings, .. }: &Http, batch: usize) -> Http2Options {
    let usual = Http2Options::default();
    Http2Options {
        streams: streams.unwrap_or(u32::try_from(batch).unwrap_or(u32::MAX)),
        window: settings.window.unwrap_or(usual.window),
        connection_window: settings.connection_window.unwrap_or(usual.connection_window),
        frame_max: settings.frame_max.unwrap_or(usual.frame_max),
        table: settings.table.unwrap_or(usual.table),
        ..usual
    }
}

/// Parses the requests that a script wrote before the run. They have been checked to be complete.
fn parse_requests(bytes: &[u8]) -> Vec<Request> {
    let mut outlines = Vec::new();
    let complete = outline_any(bytes, &mut outlines);
    debug_assert!(complete.is_ok(), "checked when the script was loaded");
    let bytes = Rc::from(bytes);
    outlines.into_iter().map(|outline| Request::from(Wire::from_outline(&bytes, outline))).collect()
}
