//! What became of requests by name: the part of the tally that only a list with names needs.

use std::mem;

use onrush_stats::{ByName, Interval, OfName};

use super::{OpenRequest, Tally};

/// How many responses are recorded by name together. What is known of hundreds of names has left the processor's cache by
/// the time it is needed again; so many at a time wait for it a tenth as often.
const TOGETHER: usize = 2_048;

/// What became of requests by name, since it was last handed over: adding up hundreds of names takes time.
#[derive(Default)]
pub(super) struct Names {
    /// Without the responses below.
    recorded: Option<Box<ByName<u32>>>,
    /// Responses that are not recorded yet.
    responses: Vec<Response>,
    /// The second in which that was.
    handed_in: u64,
    /// Whether the interval has some that have not been handed over.
    has_left: bool,
}

/// A response, as it is recorded by name.
struct Response {
    latency_ns: u64,
    name: u16,
    status: Option<u16>,
    is_unsuccessful: bool,
}

impl Names {
    /// A response has come.
    #[inline]
    fn responded(&mut self, response: Response) {
        if self.responses.len() == self.responses.capacity() {
            self.record();
        }
        self.responses.push(response);
    }

    #[inline(never)]
    fn record(&mut self) {
        let recorded = self.recorded.get_or_insert_default();
        for Response { latency_ns, name, status, is_unsuccessful } in self.responses.drain(..) {
            recorded.of(name).record(status, latency_ns, is_unsuccessful);
        }
        self.responses.reserve_exact(TOGETHER);
    }

    fn hand_over(&mut self, interval: &mut Interval, until_ns: u64, is_over: bool) {
        let second = until_ns / 1_000_000_000;
        if second <= self.handed_in && !is_over {
            return;
        }
        self.handed_in = second;
        self.record();
        if !mem::replace(&mut self.has_left, true) {
            // What the interval has is empty.
            mem::swap(&mut interval.by_name, &mut self.recorded);
        } else if let Some(recorded) = &mut self.recorded {
            **interval.by_name.get_or_insert_default() += &**recorded;
            recorded.clear();
        }
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.handed_in, self.has_left) = (0, false);
        self.responses.clear();
        if let Some(recorded) = &mut self.recorded {
            recorded.clear();
        }
    }
}

impl Tally {
    /// Puts what is known by name into the interval, which is about to be handed over: once a second, or because the run
    /// `is_over`.
    pub fn hand_over_names(&mut self, until_ns: u64, is_over: bool) {
        if let Some(names) = &mut self.names {
            names.hand_over(&mut self.interval, until_ns, is_over);
        }
    }

    /// The interval is an empty one.
    pub fn has_handed_over(&mut self) {
        if let Some(names) = &mut self.names {
            names.has_left = false;
        }
    }

    /// The response to a request was complete, after the latency that the report shows.
    #[inline]
    pub(super) fn responded_by_name(&mut self, request: &OpenRequest, latency_ns: u64, is_unsuccessful: bool) {
        if let Some(names) = &mut self.names {
            let (name, status) = (request.name, request.status);
            names.responded(Response { latency_ns, name, status, is_unsuccessful });
        }
    }

    /// A request got no complete response.
    pub(super) fn failed_by_name(&mut self, request: &OpenRequest) {
        if let Some(names) = &mut self.names {
            let of_name: &mut OfName<u32> = names.recorded.get_or_insert_default().of(request.name);
            of_name.failed += 1;
        }
    }
}
