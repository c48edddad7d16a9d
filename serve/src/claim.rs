//! A request's claim to a place: a worker, or with `/prefork` a served connection.

use std::time::Instant;

use super::inbox::WakeCall;
use super::places::{Admission, AdmissionLimit};
use super::resources::Resources;

/// The place that a request needs before its service can begin.
#[derive(Debug)]
pub(super) struct Claim {
    /// The limit, until a place is requested.
    limit: Option<AdmissionLimit>,
    /// The worker's place, once requested.
    worker: Option<Admission>,
}

impl Claim {
    /// The claim of a request that has not asked for a place yet.
    pub(super) fn new(limit: AdmissionLimit) -> Self {
        Self { limit: Some(limit), worker: None }
    }

    /// Start of the service; `None` until the place has been given. The first call asks for the place. `process`: the
    /// place that the connection has already. `call`: what to wake when the place is given, the exchange or the
    /// connection.
    pub(super) fn service_start(
        &mut self,
        process: &mut Option<Admission>,
        resources: &Resources,
        call: impl FnOnce(AdmissionLimit) -> WakeCall,
    ) -> Option<Instant> {
        match self.limit.take() {
            Some(limit @ AdmissionLimit::Pool { .. }) => self.worker = Some(resources.claim_place(limit, call(limit))),
            Some(limit) if process.as_ref().is_none_or(|place| place.limit() != limit) => {
                *process = Some(resources.claim_place(limit, call(limit)));
            }
            _ => {}
        }
        match &self.worker {
            Some(worker) => worker.given_at(),
            // A connection may have been given its place long before this request.
            None => process.as_ref().is_none_or(|place| place.given_at().is_some()).then(Instant::now),
        }
    }

    /// Gives up the claim and returns the worker's place, if there is one. Dropping that lets the next request begin at
    /// `until`, or now if that is earlier.
    pub(super) fn worker_until(self, until: Instant) -> Option<Admission> {
        let mut worker = self.worker;
        if let Some(worker) = &mut worker {
            worker.free_place_at(until);
        }
        worker
    }
}
