//! State shared by the connections of a thread: options, buffers, remembered blocks and counts.

use std::cell::RefCell;
use std::rc::Rc;

use super::buffers::BufferPool;
use super::memo::Memos;
use super::message::Http2Request;
use super::options::Http2Options;
use super::seen::Http2Counts;
use super::written::FieldCache;
use crate::Request;

/// State shared by the HTTP/2 connections of one thread. A clone shares the same state.
#[derive(Clone, Debug)]
pub struct SharedContext {
    pub(super) options: Rc<Http2Options>,
    /// First bytes of every connection.
    pub(super) greeting: Rc<[u8]>,
    pub(super) pool: Rc<RefCell<Pool>>,
}

/// The mutable part.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) buffers: BufferPool,
    pub(super) memos: Memos,
    pub(super) seen: Http2Counts,
    /// Smallest stream limit to expect on the next connection, as in [`Http2Counts::streams_allowed_min`].
    pub(super) streams_known: Option<u32>,
    /// Number of kept bytes of unfinished header blocks.
    pub(super) blocks: usize,
    written: FieldCache,
    /// Buffer for the header block of a request.
    block: Vec<u8>,
}

impl SharedContext {
    /// State for connections with these options. Values out of range are clamped.
    pub fn new(options: Http2Options) -> Self {
        let options = options.clamp_values();
        Self { greeting: options.greeting().into(), options: Rc::new(options), pool: Rc::default() }
    }

    /// A copy of the counts of all connections so far. Call [`Http2::count_so_far`](crate::Http2::count_so_far) on open
    /// connections first.
    pub fn observations(&self) -> Http2Counts {
        self.pool.borrow().seen.clone()
    }

    /// Smallest stream limit that a server has named, as an expectation for the next connection: [`u32::MAX`] if all
    /// servers were unlimited, `None` if no limit is known.
    pub fn streams_known(&self) -> Option<u32> {
        self.pool.borrow().streams_known
    }

    /// Resets the counts, except connections and the peak of streams, but not the knowledge about servers. `allowed`:
    /// current stream limit of each open connection.
    pub fn reset_counts(&self, allowed: &[u32]) {
        let Pool { seen, streams_known, .. } = &mut *self.pool.borrow_mut();
        let Http2Counts { connections, streams_peak, .. } = *seen;
        *seen = Http2Counts { connections, streams_peak, ..Http2Counts::default() };
        allowed.iter().for_each(|streams| seen.note_allowed(*streams));
        *streams_known = seen.streams_allowed_min.filter(|streams| *streams > 0).or(*streams_known);
    }

    /// A request in HTTP/2 form.
    pub(super) fn http2_request(&self, request: &Request) -> Rc<Http2Request> {
        let is_https = self.options.is_https;
        match request {
            Request::Parts(said) => {
                Rc::clone(said.http2.get_or_init(|| Rc::new(Http2Request::from_parts(&said.parts, is_https))))
            }
            Request::Http1(encoded) => {
                let Pool { written, block, .. } = &mut *self.pool.borrow_mut();
                Rc::clone(
                    encoded
                        .http2
                        .get_or_init(|| Rc::new(Http2Request::from_wire(&encoded.wire, is_https, written, block))),
                )
            }
        }
    }
}
