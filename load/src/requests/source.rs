//! Source of a worker's requests that differ.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{ScriptFailure, Source};
use onrush_proto::http1::Wire;
use onrush_proto::{Request, RequestParts};

use super::entries::Entries;
use super::order::{Picker, RequestNumbering};
use super::template::{Template, TemplateBuffers, Values};

/// Longest list whose requests are encoded once per thread. Longer lists are encoded each time ...
const KEPT_MAX: usize = 1 << 14;
/// ... and so are lists with more encoded bytes than this. A sent request holds its own bytes, so large bodies would
/// need much more memory for each request in flight.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Bytes that a prefetch loads together.
const CACHE_LINE: usize = 64;

/// The requests of a worker, if they differ: where they come from and which are its own.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The list; `None` for one request with placeholders.
    pub entries: Option<Arc<Entries>>,
    /// Values of placeholders; `None` to send placeholders verbatim.
    pub values: Option<Values>,
    /// The seed of random values.
    pub seed: u64,
    /// Which entry each request of the run sends.
    pub picker: Picker,
    /// The parts of the request on the command line, which entries of the list may replace.
    pub parts: RequestParts,
    /// Numbers of the requests that this worker sends.
    pub numbers: RequestNumbering,
}

impl Listed {
    /// Prepares all values that placeholders need, so that clones made afterwards share them.
    ///
    /// # Errors
    ///
    /// Names the fault in a placeholder, or in its values.
    pub fn prepare_values(mut self) -> Result<Self, String> {
        let Self { entries, values: Some(values), parts, seed, .. } = &mut self else { return Ok(self) };
        let others = entries.iter().flat_map(|entries| {
            let parts = &*parts;
            entries.possibly_templated().map(move |index| entries.request(index, parts))
        });
        for parts in [parts.clone()].into_iter().chain(others) {
            Template::from_parts(&parts, values, *seed)?;
        }
        let lengths: Vec<u64> = values.lengths().collect();
        self.numbers = self.numbers.with_values(lengths);
        Ok(self)
    }

    /// These requests, reduced to those that one of several workers sends.
    #[must_use]
    pub fn of_worker(&self, worker: u64, workers: u64) -> Self {
        Self { numbers: self.numbers.of_worker(worker, workers), ..self.clone() }
    }

    /// Creates the source, which must stay in the thread that creates it.
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

/// Source of a worker's requests.
struct ListSource {
    listed: Listed,
    /// Encoded requests.
    kept: Vec<Option<KeptRequest>>,
    /// Bytes that may still be kept.
    left: usize,
    /// Numbers of the next requests, in the run and in the list. They are known early so that the text can be
    /// prefetched: a long list is not in the processor's cache.
    upcoming: [(u64, usize); 2],
    /// Name number of the last request.
    name: u16,
    buffers: TemplateBuffers,
}

/// An encoded request.
#[derive(Clone)]
enum KeptRequest {
    /// Never changes.
    Same(Request),
    /// Contains placeholders.
    Template(Rc<Template>),
}

impl Source for ListSource {
    fn next_batch(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        let (k, index) = self.upcoming[0];
        self.upcoming = [self.upcoming[1], self.pick()];
        self.prefetch_upcoming();
        self.name = self.listed.entries.as_ref().map_or(0, |entries| entries.name(index));
        batch.push(match self.kept.get(index) {
            Some(Some(KeptRequest::Same(request))) => request.clone(),
            Some(Some(KeptRequest::Template(template))) => template.fill(k, &mut self.buffers).into(),
            Some(None) | None => match self.encode_request(index)? {
                KeptRequest::Same(request) => request,
                KeptRequest::Template(template) => template.fill(k, &mut self.buffers).into(),
            },
        });
        Ok(true)
    }

    fn batch_name(&self) -> u16 {
        self.name
    }
}

impl ListSource {
    fn pick(&mut self) -> (u64, usize) {
        let k = self.listed.numbers.next_number();
        (k, self.listed.picker.pick(k))
    }

    /// Prefetches the next requests: the offset of the last one, and the text of the one before, whose offset has been
    /// loaded meanwhile.
    fn prefetch_upcoming(&self) {
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
    fn encode_request(&mut self, index: usize) -> Result<KeptRequest, ScriptFailure> {
        let Listed { entries, values, parts, seed, .. } = &mut self.listed;
        let parts = entries.as_ref().map_or_else(|| parts.clone(), |entries| entries.request(index, parts));
        let template = values.as_mut().map(|values| Template::from_parts(&parts, values, *seed)).transpose();
        // Checked before the run.
        let wire = match template.map_err(ScriptFailure::Raised)? {
            Some(template) if !template.is_constant() => {
                let length = template.text_bytes();
                return Ok(self.keep_if_room(index, KeptRequest::Template(Rc::new(template)), length));
            }
            Some(template) => template.fill(0, &mut self.buffers),
            None => Wire::from_parts(&parts),
        };
        let length = wire.bytes().len();
        Ok(self.keep_if_room(index, KeptRequest::Same(wire.into()), length))
    }

    /// Keeps a request of this length.
    fn keep_if_room(&mut self, index: usize, encoded: KeptRequest, length: usize) -> KeptRequest {
        if let (Some(kept), Some(left)) = (self.kept.get_mut(index), self.left.checked_sub(length)) {
            (*kept, self.left) = (Some(encoded.clone()), left);
        }
        encoded
    }
}
