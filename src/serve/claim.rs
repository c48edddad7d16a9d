//! The claim of a request to a place: a worker's, or, for `/prefork`, its connection's.

use std::time::Instant;

use super::inbox::WakeCall;
use super::places::{Admission, AdmissionLimit};
use super::resources::Resources;

/// Resources that a request needs before it is served.
#[derive(Debug)]
pub(super) struct Claim {
    /// The limit that has not been asked for yet.
    limit: Option<AdmissionLimit>,
    /// The worker's place, once it was claimed.
    worker: Option<Admission>,
}

impl Claim {
    /// A claim that nothing was done about yet.
    pub(super) fn new(limit: AdmissionLimit) -> Self {
        Self { limit: Some(limit), worker: None }
    }

    /// When the service begins; `None` if the place has not been given yet. `process`: the place of the connection;
    /// `call`: the call when a place is given, depending on whose it is.
    pub(super) fn begins_at(
        &mut self,
        process: &mut Option<Admission>,
        resources: &Resources,
        call: impl FnOnce(AdmissionLimit) -> WakeCall,
    ) -> Option<Instant> {
        match self.limit.take() {
            Some(limit @ AdmissionLimit::Pool { .. }) => self.worker = Some(resources.ask(limit, call(limit))),
            Some(limit) if process.as_ref().is_none_or(|place| place.limit() != limit) => {
                *process = Some(resources.ask(limit, call(limit)));
            }
            _ => {}
        }
        match &self.worker {
            Some(worker) => worker.given_at(),
            // A connection may have had its place long before this request.
            None => process.as_ref().is_none_or(|place| place.given_at().is_some()).then(Instant::now),
        }
    }

    /// The worker, which is busy until this time.
    pub(super) fn worker_until(self, until: Instant) -> Option<Admission> {
        let mut worker = self.worker;
        if let Some(worker) = &mut worker {
            worker.free_at(until);
        }
        worker
    }
}
