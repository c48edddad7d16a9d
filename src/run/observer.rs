//! What watches a run.

use std::time::{Duration, Instant};

use onrush_engine::WorkerEnd;
use onrush_plan::{Addresses, Plan};
use onrush_stats::Totals;

use super::gathering::Gathering;
use super::{Choice, KeepSample, Listener, PassOn, Progress, Sample, TimelineRow, Waiting};

/// Watches a run. A run has any number of observers, each with one job, and tells them everything in their order. What
/// it asks them has one answer, by the rule that is given with each question.
pub trait Observer {
    /// Which backend was picked, and the addresses of the target.
    fn resolved(&mut self, _: &Choice, _: &Addresses) {}
    /// Everything is set up. Returns when the run may begin: now, or at a moment that was agreed with other machines. It
    /// begins at the latest of these moments. `None`: it does not begin at all.
    fn ready(&mut self) -> Option<Instant> {
        Some(Instant::now())
    }
    /// Its progress; about five times a second.
    fn progress(&mut self, _: &Progress<'_>) {}
    /// Another row of the timeline is complete.
    fn second(&mut self, _: &TimelineRow) {}
    /// How long the rows are that it is told the whole of, if it wants that; a multiple of 100 ms. The first one decides.
    fn whole_row(&self) -> Option<Duration> {
        None
    }
    /// Everything that was measured in another row: all of them add up to what the run measured.
    fn whole(&mut self, _: &Totals) {}
    /// A worker has ended.
    fn ended(&mut self, _: usize, _: &WorkerEnd) {}
    /// More machines are there, of those that are to take part; first that they are waited for.
    fn gathering(&mut self, _: &Gathering) {}
    /// A machine was lost, or was refused: a sentence on it for people.
    fn machine(&mut self, _: &str) {}
    /// A sample of sockets, if the plan asks for them; those taken during the warm-up included.
    fn sampled(&mut self, _: &Sample) {}
    /// No first connection was accepted, and the run waits for the target; called at most once.
    fn waiting(&mut self, _: &Waiting) {}
    /// The initial length of a row of the timeline, a multiple of 100 ms, if it must not be longer. The shortest counts;
    /// it is a second if nobody has one.
    fn row(&self) -> Option<Duration> {
        None
    }
    /// Whether the run may end now, because more of it would change nothing. It ends when anybody says so.
    fn is_enough(&self) -> bool {
        false
    }
    /// What receives the messages of a script, from any thread, during the session and after it. The first one receives
    /// them all; without one they are lost. Output that the script writes itself, with `print` for instance, does not
    /// pass through it.
    fn listener(&mut self) -> Option<Listener> {
        None
    }
    /// What takes the entries of the log of requests, from any thread, if the plan asks for one. The first one takes them
    /// all; without one there is no log.
    fn request_log(&mut self) -> Option<PassOn> {
        None
    }
    /// What takes samples of the responses of this plan, likewise.
    fn samples(&mut self, _: &Plan) -> Option<KeepSample> {
        None
    }
}
