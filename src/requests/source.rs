//! Requests that differ, as a worker sends them.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{ScriptFailure, Source};
use onrush_proto::http1::Wire;
use onrush_proto::{Request, RequestParts};

use super::entries::Entries;
use super::order::{Picker, RequestNumbering};
use super::template::{Template, TemplateBuffers, Values};

/// Of lists up to this length, requests are encoded once a thread; of longer ones, each time they are sent ...
const KEPT_MAX: usize = 1 << 14;
/// ... and also if the encoded ones have this many bytes together. A sent request holds its own bytes, so that large
/// bodies would need much more memory for each request in flight.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// How many bytes come near together.
const CACHE_LINE: usize = 64;

/// A worker's share of requests that differ.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The list; `None`: there is one request, which differs by the values of its placeholders.
    pub entries: Option<Arc<Entries>>,
    /// Values of placeholders; `None`: they are sent as they are.
    pub values: Option<Values>,
    /// The seed of random values.
    pub seed: u64,
    /// In which order they are sent.
    pub picker: Picker,
    /// Parts of all requests, unless they say otherwise.
    pub parts: RequestParts,
    /// Which of the run's requests the worker sends.
    pub numbers: RequestNumbering,
}

impl Listed {
    /// Prepares all values that placeholders need, so that clones share them.
    ///
    /// # Errors
    ///
    /// The fault in a placeholder, or in the values for it.
    pub fn prepared(mut self) -> Result<Self, String> {
        let Self { entries, values: Some(values), parts, seed, .. } = &mut self else { return Ok(self) };
        let others = entries.iter().flat_map(|entries| {
            let parts = &*parts;
            entries.with_braces().map(move |index| entries.request(index, parts))
        });
        for parts in [parts.clone()].into_iter().chain(others) {
            Template::from_parts(&parts, values, *seed)?;
        }
        let lengths: Vec<u64> = values.lengths().collect();
        self.numbers = self.numbers.with_values(lengths);
        Ok(self)
    }

    /// The share of one of several workers.
    #[must_use]
    pub fn of_worker(&self, worker: u64, workers: u64) -> Self {
        Self { numbers: self.numbers.of_worker(worker, workers), ..self.clone() }
    }

    /// Its requests, in its thread.
    pub fn into_source(self) -> Box<dyn Source> {
        let length = self.entries.as_ref().map_or(1, |entries| entries.len());
        let kept = if length <= KEPT_MAX { vec![None; length] } else { Vec::new() };
        let mut sending = ListSource {
            listed: self,
            kept,
            left: KEPT_BYTES_MAX,
            upcoming: [(0, 0); 2],
            name: 0,
            buffers: TemplateBuffers::default(),
        };
        sending.upcoming = [sending.pick(), sending.pick()];
        Box::new(sending)
    }
}

/// The source of a worker's requests.
struct ListSource {
    listed: Listed,
    /// The requests that were encoded before.
    kept: Vec<Option<KeptRequest>>,
    /// How many more bytes may be kept.
    left: usize,
    /// The numbers of the next requests, in the run and in the list. They are known early because a long list is not in
    /// the processor's cache: the text is prefetched while others are being sent.
    upcoming: [(u64, usize); 2],
    /// The number of the name of the last request.
    name: u16,
    buffers: TemplateBuffers,
}

/// A request that was encoded.
#[derive(Clone)]
enum KeptRequest {
    /// It never changes.
    Same(Request),
    /// It has placeholders.
    Template(Rc<Template>),
}

impl Source for ListSource {
    fn next(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        let (k, index) = self.upcoming[0];
        self.upcoming = [self.upcoming[1], self.pick()];
        self.approach();
        self.name = self.listed.entries.as_ref().map_or(0, |entries| entries.name(index));
        batch.push(match self.kept.get(index) {
            Some(Some(KeptRequest::Same(request))) => request.clone(),
            Some(Some(KeptRequest::Template(template))) => template.fill(k, &mut self.buffers).into(),
            Some(None) | None => match self.encoded(index)? {
                KeptRequest::Same(request) => request,
                KeptRequest::Template(template) => template.fill(k, &mut self.buffers).into(),
            },
        });
        Ok(true)
    }

    fn name(&self) -> u16 {
        self.name
    }
}

impl ListSource {
    fn pick(&mut self) -> (u64, usize) {
        let k = self.listed.numbers.number();
        (k, self.listed.picker.pick(k))
    }

    /// Looks at the next requests, so that they are near when they are sent: at the last one's place, and at the bytes
    /// of the one before it, whose place has come near meanwhile.
    fn approach(&self) {
        let [next, last] = self.upcoming.map(|(_, index)| self.kept.get(index));
        if let Some(Some(KeptRequest::Same(Request::Http1(encoded)))) = last {
            black_box(Rc::strong_count(encoded));
        }
        if let Some(Some(KeptRequest::Same(Request::Http1(encoded)))) = next {
            encoded.bytes().iter().step_by(CACHE_LINE).take(4).for_each(|byte| {
                black_box(*byte);
            });
        }
    }

    /// Encodes a request, and keeps it if there is room.
    #[cold]
    fn encoded(&mut self, index: usize) -> Result<KeptRequest, ScriptFailure> {
        let Listed { entries, values, parts, seed, .. } = &mut self.listed;
        let parts = entries.as_ref().map_or_else(|| parts.clone(), |entries| entries.request(index, parts));
        let template = values.as_mut().map(|values| Template::from_parts(&parts, values, *seed)).transpose();
        // They were checked before the run.
        let wire = match template.map_err(ScriptFailure::Raised)? {
            Some(template) if !template.is_constant() => {
                let length = template.text_bytes();
                return Ok(self.keep(index, KeptRequest::Template(Rc::new(template)), length));
            }
            Some(template) => template.fill(0, &mut self.buffers),
            None => Wire::from_parts(&parts),
        };
        let length = wire.bytes().len();
        Ok(self.keep(index, KeptRequest::Same(wire.into()), length))
    }

    /// Keeps a request of this length.
    fn keep(&mut self, index: usize, encoded: KeptRequest, length: usize) -> KeptRequest {
        if let (Some(kept), Some(left)) = (self.kept.get_mut(index), self.left.checked_sub(length)) {
            (*kept, self.left) = (Some(encoded.clone()), left);
        }
        encoded
    }
}
