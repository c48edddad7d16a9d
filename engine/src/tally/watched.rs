//! Notes on requests for checks, samples and the log: the part of the tally that is off in most runs.

use super::{OpenRequest, Tally, Watched};

impl Tally {
    pub fn watches(&self) -> bool {
        self.watches
    }

    /// Determines from the options whether anything is noted.
    pub(super) fn decide_to_watch(&mut self) {
        self.watches = self.checks.is_some() || self.samples.is_some() || self.log.is_some();
        self.notes_each = self.watches || self.rules.by_name;
        self.notes_first_bytes = self.rules.phases || self.log.is_some();
    }

    /// Notes for the next request started for the first time, if needed.
    pub fn watch_next_request(&mut self) -> Option<Box<Watched>> {
        if self.watches { Some(self.watched()) } else { None }
    }

    #[inline(never)]
    fn watched(&mut self) -> Box<Watched> {
        let mut watched = self.unwatched.pop().unwrap_or_default();
        watched.is_logged = self.log.as_mut().is_some_and(|log| log.picks_next_request());
        watched
    }

    /// Keeps the response to a request as a sample, if there are not enough yet, and its memory for others.
    pub(super) fn unwatch(&mut self, request: &mut OpenRequest) {
        let counts = !self.warms_up && !self.runs_on();
        let failed = request.failed_check();
        let Some(mut watched) = request.watched.take() else { return };
        if let Some(samples) = &mut self.samples
            && let Some(response) = watched.sample.take()
        {
            if counts {
                samples.keep_if_wanted(request.status, failed, &response);
            }
            samples.recycle_memory(response);
        }
        if let Some(checks) = &mut self.checks {
            checks.recycle_memory(&mut watched.checked);
        }
        if self.watches {
            *watched = Watched::default();
            self.unwatched.push(watched);
        }
    }
}
