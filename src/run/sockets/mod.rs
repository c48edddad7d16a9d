//! Samples sockets during a run, as `ss` shows them: a separate thread asks the kernel once a second.
//!
//! It sends nothing to the target, touches no connection, and takes less than 1 % of a processor. It samples the
//! connections of the run, or the sockets that a filter of the plan selects.

mod keys;
mod own;
mod reading;
mod reservoir;
mod sampler;
mod summary;
#[cfg(test)]
mod tests;
mod value;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use onrush_plan::{Addresses, Io, Plan};
use onrush_stats::SocketSamples;
use onrush_text::reason;
use rustix::io::Errno;
use thiserror::Error;

use super::diag;
pub use reading::SocketReading;
use sampler::Sampler;
use summary::SampleSums;
pub use value::SocketValue;

/// The kernel does not report sockets.
#[derive(Debug, Error)]
#[error("--sockets: the kernel does not report sockets: {}; leave the option out", reason(&(*.0).into()))]
pub struct SocketsUnavailable(Errno);

/// One sample: the readings of the chosen sockets at one moment.
#[derive(Clone, Debug)]
pub struct SocketSample {
    /// When it was taken.
    pub at: Instant,
    /// The seconds since measuring began; negative during the warm-up.
    pub at_s: f64,
    /// `at` on the wall clock, since the beginning of 1970.
    pub time: Duration,
    /// The reading of each socket.
    pub readings: Vec<SocketReading>,
    /// How many sockets were left out.
    pub left_out: u64,
    /// Why there are no readings, if the kernel refused.
    pub failure: Option<Errno>,
}

/// Samples sockets until the run has ended, or until this is dropped.
pub struct SocketSampler {
    /// Where the thread waits for the start.
    start: Option<Sender<Instant>>,
    samples: Receiver<SocketSample>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    summary: SampleSums,
}

impl SocketSampler {
    /// Prepares sampling, if the plan asks for it. `None` also for a run over a Unix socket without a filter: it has no
    /// TCP connections to sample.
    ///
    /// # Errors
    ///
    /// When the kernel does not report sockets, or the thread cannot be created.
    pub fn prepare(plan: &Plan, addresses: &Addresses) -> anyhow::Result<Option<Self>> {
        let Some(sampling) = &plan.output.sockets else { return Ok(None) };
        let is_without_tcp = plan.connect.unix.is_some() && sampling.filter.is_none();
        if plan.once || is_without_tcp || matches!(plan.io, Io::Sim(_)) {
            return Ok(None);
        }
        // No socket has these ports: the request only checks that the kernel replies.
        diag::dump(false, diag::ESTABLISHED, [1, 1], |_| ControlFlow::Continue(())).map_err(SocketsUnavailable)?;
        let sampler = Sampler::new(sampling.filter.clone(), addresses, plan.seed);
        let (start, started) = mpsc::channel::<Instant>();
        let (sender, samples) = mpsc::channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let (is_over, warmup) = (Arc::clone(&has_ended), plan.warmup);
        let work = move || {
            // The sender is dropped if the run never begins.
            let Ok(start) = started.recv() else { return };
            sampler.run(start, start + warmup, &is_over, &sender);
        };
        let spawned = thread::Builder::new().name("sockets".to_owned()).spawn(work);
        let thread =
            spawned.map_err(|error| anyhow!("--sockets: cannot create a thread for it: {}", reason(&error)))?;
        let (start, thread) = (Some(start), Some(thread));
        Ok(Some(Self { start, samples, has_ended, thread, summary: SampleSums::default() }))
    }

    /// Begins the run.
    pub fn start(&mut self, start: Instant) {
        // A thread that panicked samples nothing.
        self.start.take().map(|waiting| waiting.send(start));
    }

    /// Passes the samples since the last call on; measuring begins at `begins`.
    pub fn pass_on(&mut self, begins: Instant, mut pass: impl FnMut(&SocketSample)) {
        for mut sample in self.samples.try_iter() {
            let since = sample.at.saturating_duration_since(begins).as_secs_f64();
            sample.at_s = since - begins.saturating_duration_since(sample.at).as_secs_f64();
            self.summary.add(&sample);
            pass(&sample);
        }
    }

    /// Ends sampling with the run: passes the last samples on, and returns the sums of all.
    pub fn end(mut self, begins: Instant, pass: impl FnMut(&SocketSample)) -> SocketSamples {
        self.dismiss();
        // Samples that a thread sent before it panicked are kept.
        self.thread.take().map(JoinHandle::join);
        self.pass_on(begins, pass);
        std::mem::take(&mut self.summary).end()
    }

    fn dismiss(&self) {
        self.has_ended.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for SocketSampler {
    fn drop(&mut self) {
        self.dismiss();
    }
}
