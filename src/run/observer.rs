//! Observers of a run.

use std::time::{Duration, Instant};

use onrush_engine::WorkerEnd;
use onrush_plan::{Addresses, Plan};
use onrush_stats::Totals;

use super::gathering::Gathering;
use super::{Choice, KeepSample, Listener, PassOn, RunProgress, SocketSample, TimelineRow, Waiting};

/// Watches a run. A run has any number of observers, each with one job, and tells them everything in their order. Each
/// question to them has one answer, by the rule given with it.
pub trait Observer {
    /// Which backend was picked, and the addresses of the target.
    fn resolved(&mut self, _: &Choice, _: &Addresses) {}
    /// Everything is set up. Returns when the run may begin: now, or at a moment that was agreed with other machines.
    /// It begins at the latest of these moments. `None`: it does not begin at all.
    fn ready(&mut self) -> Option<Instant> {
        Some(Instant::now())
    }
    /// Its progress; about five times a second.
    fn progress(&mut self, _: &RunProgress<'_>) {}
    /// Another row of the timeline is complete.
    fn second(&mut self, _: &TimelineRow) {}
    /// Length of the rows whose whole it wants, if any; a multiple of 100 ms. The first observer decides.
    fn whole_row(&self) -> Option<Duration> {
        None
    }
    /// Measurements of another row: the sum of all rows is the run's total.
    fn whole(&mut self, _: &Totals) {}
    /// Called when a worker has ended.
    fn ended(&mut self, _: usize, _: &WorkerEnd) {}
    /// Called when waiting for machines begins, and whenever more have come.
    fn gathering(&mut self, _: &Gathering) {}
    /// Called when a machine was lost, or was refused, with a sentence on it for people.
    fn machine(&mut self, _: &str) {}
    /// A sample of sockets, if the plan asks for them; also during the warm-up.
    fn sampled(&mut self, _: &SocketSample) {}
    /// Called at most once, when no first connection was accepted and the run waits for the target.
    fn waiting(&mut self, _: &Waiting) {}
    /// The longest initial row of the timeline that it accepts, a multiple of 100 ms. The shortest counts; without one,
    /// a second.
    fn row(&self) -> Option<Duration> {
        None
    }
    /// True if the run may end now, because more of it would change nothing. One observer's word is enough.
    fn is_enough(&self) -> bool {
        false
    }
    /// Takes the messages of a script, from any thread, during the session and after it. The first listener gets them
    /// all; without one they are lost. Output that the script writes itself, with `print` for instance, does not pass
    /// through it.
    fn listener(&mut self) -> Option<Listener> {
        None
    }
    /// Takes the entries of the request log, from any thread, if the plan asks for one. The first taker gets them all;
    /// without one there is no log.
    fn request_log(&mut self) -> Option<PassOn> {
        None
    }
    /// Takes samples of the responses of this plan, from any thread. The first taker gets them all.
    fn samples(&mut self, _: &Plan) -> Option<KeepSample> {
        None
    }
}
