//! Requests written by the script, one batch at a time, on demand.

use std::rc::Rc;

use onrush_engine::{ScriptFailure, Source};
use onrush_proto::Request;
use onrush_proto::http1::{Outline, Wire};

use super::call::WrittenBatch;
use super::refused;
use super::returned::{FreedKeys, KeptValue};
use super::thread::ScriptThread;

/// Source of the requests from `request`.
pub struct WrittenRequests {
    thread: Rc<ScriptThread>,
    /// Address and copy of the text parsed into `requests`.
    last: *const u8,
    bytes: Rc<[u8]>,
    requests: Vec<Request>,
    freed: FreedKeys,
}

impl WrittenRequests {
    /// The source of the requests that this thread's script writes.
    pub fn new(thread: Rc<ScriptThread>) -> Self {
        Self { thread, last: std::ptr::null(), bytes: Rc::default(), requests: Vec::new(), freed: FreedKeys::default() }
    }
}

impl Source for WrittenRequests {
    fn next_batch(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        while let Some(key) = self.freed.take_key() {
            // SAFETY: the last request with this value was dropped.
            unsafe { self.thread.release_value(key) };
        }
        // SAFETY: no other method of the thread is called before the text has been used.
        let Some(WrittenBatch { text, value }) = (unsafe { self.thread.request_batch()? }) else { return Ok(false) };
        // Lua may have collected an equal text in between and created this one anew.
        if text.as_ptr() != self.last && !self.requests.is_empty() && text == &*self.bytes {
            self.last = text.as_ptr();
        }
        if text.as_ptr() != self.last {
            self.last = std::ptr::null();
            let outlines = refused::find_later_requests(text, self.thread.is_compat, self.thread.lua());
            let outlines = outlines.map_err(ScriptFailure::Raised)?;
            self.bytes = text.into();
            self.requests = merge_requests(&self.bytes, outlines);
            self.last = text.as_ptr();
        }
        match value {
            None => batch.extend_from_slice(&self.requests),
            Some(key) => {
                let remark = KeptValue::remark_with_value(key, &self.freed);
                for equal in self.requests.chunk_by(Request::is_same) {
                    let request = equal[0].with_remark(remark.clone());
                    batch.extend(std::iter::repeat_n(request, equal.len()));
                }
            }
        }
        Ok(true)
    }
}

/// The requests in `bytes`; consecutive equal requests are merged.
fn merge_requests(bytes: &Rc<[u8]>, outlines: Vec<Outline>) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::with_capacity(outlines.len());
    let mut before = 0..0;
    for outline in outlines {
        let range = outline.range.clone();
        let request = match requests.last() {
            Some(last) if bytes[before.clone()] == bytes[range.clone()] => last.clone(),
            _ => Request::from(Wire::from_outline(bytes, outline)),
        };
        requests.push(request);
        before = range;
    }
    requests
}
