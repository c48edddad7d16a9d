//! The request log: the part of the tally with individual requests.

use onrush_proto::Nanos;
use onrush_stats::{Fate, LogEntry, Phase};

use super::{OpenRequest, Tally, Watched};

impl Tally {
    pub fn wants_first_bytes(&self) -> bool {
        self.notes_first_bytes
    }

    /// Logs a request that has ended, or is in flight at the end of the run.
    pub(super) fn log_request(&mut self, request: &OpenRequest, at: Nanos, fate: Fate) {
        if let Some(watched) = request.watched.as_deref().filter(|watched| watched.is_logged) {
            self.write_down(request, watched, at, fate);
        }
    }

    #[inline(never)]
    fn write_down(&mut self, request: &OpenRequest, watched: &Watched, at: Nanos, fate: Fate) {
        if self.warms_up || self.runs_on() {
            return;
        }
        let Some(log) = self.log.as_mut() else { return };
        let since = |at: Nanos| at.0.cast_signed() - self.start.0.cast_signed();
        // A response in one piece has no separate time for its first byte.
        let first_at = request.first_at.or((fate == Fate::Completed).then_some(at));
        let failed = request.failed_check().filter(|_| fate == Fate::Completed);
        let entry = LogEntry {
            due_ns: since(request.due),
            sent_ns: since(request.sent_at),
            first_ns: first_at.map(since),
            // A request that failed before its bytes could leave ends at the time at which they were to leave.
            end_ns: (fate != Fate::Open).then(|| since(at.max(request.sent_at))),
            body_bytes: watched.body_bytes,
            status: request.status,
            name: request.name,
            fate: failed.map_or(fate, |cause| Fate::Failed(Phase::Check, cause)),
        };
        log.add(entry, &mut self.interval.counters);
    }

    /// Passes on the log so far.
    pub fn hand_over_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.hand_over(&mut self.interval.counters);
        }
    }
}
