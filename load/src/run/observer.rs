//! Observers of a run.

use std::time::{Duration, Instant};

use onrush_engine::WorkerEnd;
use onrush_plan::Plan;
use onrush_stats::Totals;

use super::gathering::Gathering;
use super::{Choice, KeepSample, Listener, PassOn, RunProgress, SocketSample, TimelineRow, Waiting};
use crate::resolve::Addresses;

/// Watches a run. A run has any number of observers, each with one job, and calls them in order. A method that returns
/// an answer documents how the answers of several observers are combined.
pub trait Observer {
    /// Called before the start of the run, with the chosen backend and the addresses of the target.
    fn on_resolved(&mut self, _: &Choice, _: &Addresses) {}
    /// Called when everything is set up. Returns when the run may start: now, or at a moment agreed with other
    /// machines. The run starts at the latest of these moments. `None` cancels the run.
    fn on_ready(&mut self) -> Option<Instant> {
        Some(Instant::now())
    }
    /// Called with the progress, about five times a second.
    fn on_progress(&mut self, _: &RunProgress<'_>) {}
    /// Called when a row of the timeline is complete; rows arrive in order.
    fn on_row(&mut self, _: &TimelineRow) {}
    /// Length of the full rows this observer wants, if any; a multiple of 100 ms. The first observer that wants any
    /// decides.
    fn full_row_length(&self) -> Option<Duration> {
        None
    }
    /// Called with all measurements of a full row, if any observer asked for
    /// [`full_row_length`](Self::full_row_length). The rows add up to the run's total.
    fn on_full_row(&mut self, _: &Totals) {}
    /// Called when a worker has ended, with its index and its results; not called for a worker that returned none.
    fn on_worker_ended(&mut self, _: usize, _: &WorkerEnd) {}
    /// Called when the wait for machines starts, and whenever more have joined.
    fn on_gathering(&mut self, _: &Gathering) {}
    /// Called when a machine was lost or refused, with a sentence for the user.
    fn on_machine_message(&mut self, _: &str) {}
    /// Called with a sample of sockets if the plan asks for samples, including during the warm-up.
    fn on_sample(&mut self, _: &SocketSample) {}
    /// Called at most once, when no first connection was accepted and the run waits for the target.
    fn on_waiting(&mut self, _: &Waiting) {}
    /// Maximum length of the first row of the timeline, a multiple of 100 ms. The shortest answer wins; the default is
    /// a second.
    fn first_row_max(&self) -> Option<Duration> {
        None
    }
    /// True if the run may end now because continuing would change nothing. One observer is enough.
    fn is_enough(&self) -> bool {
        false
    }
    /// Receives the messages of a script, from any thread, during the session and after it. The first listener gets all
    /// messages; without a listener they are lost. Output that the script writes itself, for instance with `print`,
    /// bypasses the listener.
    fn script_listener(&mut self) -> Option<Listener> {
        None
    }
    /// Receives the entries of the request log, from any thread, if the plan asks for one. The first taker gets all
    /// entries; without a taker there is no log.
    fn request_log_taker(&mut self) -> Option<PassOn> {
        None
    }
    /// Receives samples of this plan's responses, from any thread. The first taker gets all samples.
    fn sample_taker(&mut self, _: &Plan) -> Option<KeepSample> {
        None
    }
}
