//! The requests of a list as a worker sends them: every thread sends those whose numbers in the run leave its own number
//! when divided by that of all threads.

use std::sync::Arc;

use onrush_engine::{ScriptFailure, Source};
use onrush_proto::http1::Wire;
use onrush_proto::{Parts, Request};

use super::entries::Entries;
use super::order::Picker;

/// Of lists up to this length, requests are encoded once a thread; of longer ones, each time they are sent ...
const KEPT_MAX: usize = 1 << 14;
/// ... and also if those that were encoded have this many bytes together. One that is sent holds its own bytes, so that with
/// large bodies much more memory would be needed for a request in flight each.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// A worker's share of a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The requests.
    pub entries: Arc<Entries>,
    /// In which order they are sent.
    pub picker: Picker,
    /// What all of them have, unless they say otherwise.
    pub parts: Parts,
    /// The number of the worker.
    pub first: u64,
    /// The number of all workers.
    pub step: u64,
}

impl Listed {
    /// Its requests, in its thread.
    pub fn into_source(self) -> Box<dyn Source> {
        let kept = if self.entries.len() <= KEPT_MAX { vec![None; self.entries.len()] } else { Vec::new() };
        Box::new(Sending { next: self.first, listed: self, kept, left: KEPT_BYTES_MAX })
    }
}

/// The source of a worker's requests.
struct Sending {
    listed: Listed,
    /// The number of the next request.
    next: u64,
    /// The requests that were encoded before.
    kept: Vec<Option<Request>>,
    /// How many more bytes may be kept.
    left: usize,
}

impl Source for Sending {
    fn next(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        let index = self.listed.picker.pick(self.next);
        self.next += self.listed.step;
        let kept = self.kept.get(index).and_then(Option::as_ref).cloned();
        batch.push(kept.unwrap_or_else(|| self.encoded(index)));
        Ok(true)
    }
}

impl Sending {
    /// Encodes a request, and keeps it if there is room.
    #[cold]
    fn encoded(&mut self, index: usize) -> Request {
        let wire = Wire::of(&self.listed.entries.request(index, &self.listed.parts));
        let length = wire.bytes().len();
        let request = Request::from(wire);
        if let (Some(kept), Some(left)) = (self.kept.get_mut(index), self.left.checked_sub(length)) {
            (*kept, self.left) = (Some(request.clone()), left);
        }
        request
    }
}
