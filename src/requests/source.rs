//! The requests of a list as a worker sends them.

use std::sync::Arc;

use onrush_engine::{ScriptFailure, Source};
use onrush_proto::http1::Wire;
use onrush_proto::{Parts, Request};

use super::entries::Entries;
use super::order::{Numbers, Picker};

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
    /// Which of the run's requests the worker sends.
    pub numbers: Numbers,
}

impl Listed {
    /// Its requests, in its thread.
    pub fn into_source(self) -> Box<dyn Source> {
        let kept = if self.entries.len() <= KEPT_MAX { vec![None; self.entries.len()] } else { Vec::new() };
        Box::new(Sending { listed: self, kept, left: KEPT_BYTES_MAX, name: 0 })
    }
}

/// The source of a worker's requests.
struct Sending {
    listed: Listed,
    /// The requests that were encoded before.
    kept: Vec<Option<Request>>,
    /// How many more bytes may be kept.
    left: usize,
    /// The number of the name of the last request.
    name: u16,
}

impl Source for Sending {
    fn next(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        let Some(k) = self.listed.numbers.next() else { return Ok(false) };
        let index = self.listed.picker.pick(k);
        let kept = self.kept.get(index).and_then(Option::as_ref).cloned();
        self.name = self.listed.entries.name(index);
        batch.push(kept.unwrap_or_else(|| self.encoded(index)));
        Ok(true)
    }

    fn name(&self) -> u16 {
        self.name
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
