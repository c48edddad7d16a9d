//! A request's claim to a place: a worker, or with `/prefork` a served connection.

use std::time::Instant;

use super::inbox::WakeCall;
use super::places::{Admission, AdmissionLimit};
use super::resources::Resources;

/// Places that a request needs before its service.
#[derive(Debug)]
pub(super) struct Claim {
    /// The limit, until a place is requested.
    limit: Option<AdmissionLimit>,
    /// The worker's place, once requested.
    worker: Option<Admission>,
}

impl Claim {
    /// A claim without a request for a place yet.
    pub(super) fn new(limit: AdmissionLimit) -> Self {
        Self { limit: Some(limit), worker: None }
    }

    /// Start of the service; `None` if the place has not been given yet. `process`: the place of the connection.
    /// `call`: the wakeup for when a place is given, either for the exchange or for the connection.
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

    /// The worker's place, kept busy until this time.
    pub(super) fn worker_until(self, until: Instant) -> Option<Admission> {
        let mut worker = self.worker;
        if let Some(worker) = &mut worker {
            worker.free_place_at(until);
        }
        worker
    }
}
