//! Samples sockets during a run, as `ss` shows them: a separate thread asks the kernel once a second.
//!
//! The thread sends nothing to the target, touches no connection, and takes less than 1 % of a processor. It samples
//! the connections of the run, or the sockets matched by the plan's filter.

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
use onrush_plan::{Io, Plan};
use onrush_stats::SocketSamples;
use onrush_text::error_reason;
use rustix::io::Errno;
use thiserror::Error;

use super::diag;
use crate::resolve::Addresses;
pub use reading::SocketReading;
use sampler::Sampler;
use summary::SampleSums;
pub use value::SocketValue;

/// The kernel does not report sockets.
#[derive(Debug, Error)]
#[error("--sockets: the kernel does not report sockets: {}; leave the option out", error_reason(&(*.0).into()))]
pub struct SocketsUnavailable(Errno);

/// One sample: the readings of the selected sockets at one moment.
#[derive(Clone, Debug)]
pub struct SocketSample {
    /// Time of the sample.
    pub at: Instant,
    /// Seconds since measuring began; negative during the warm-up.
    pub at_s: f64,
    /// `at` as time since the Unix epoch.
    pub time: Duration,
    /// The reading of each socket.
    pub readings: Vec<SocketReading>,
    /// Number of matching sockets beyond the maximum, which the sample leaves out.
    pub left_out: u64,
    /// The kernel's error, if it refused the request: the sample is then empty or incomplete.
    pub failure: Option<Errno>,
}

/// Samples sockets until the end of the run, or until dropped.
pub struct SocketSampler {
    /// Sends the start to the waiting thread.
    start: Option<Sender<Instant>>,
    samples: Receiver<SocketSample>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    summary: SampleSums,
}

impl SocketSampler {
    /// Prepares sampling. `Ok(None)` if the plan does not ask for it, for `--once`, in simulations, and for a run over
    /// a Unix socket without a filter, which has no TCP connections.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not report sockets, or the thread cannot be created.
    pub fn prepare(plan: &Plan, addresses: &Addresses) -> anyhow::Result<Option<Self>> {
        let Some(sampling) = &plan.output.sockets else { return Ok(None) };
        let is_without_tcp = plan.connect.unix.is_some() && sampling.filter.is_none();
        if plan.once || is_without_tcp || matches!(plan.io, Io::Sim(_)) {
            return Ok(None);
        }
        // No socket has these ports: the request only checks that the kernel replies.
        diag::dump_sockets(false, diag::ESTABLISHED, [1, 1], |_| ControlFlow::Continue(()))
            .map_err(SocketsUnavailable)?;
        let sampler = Sampler::new(sampling.filter.clone(), addresses, plan.seed);
        let (start, started) = mpsc::channel::<Instant>();
        let (sender, samples) = mpsc::channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let (is_over, warmup) = (Arc::clone(&has_ended), plan.warmup);
        let work = move || {
            // The sender is dropped if the run never starts.
            let Ok(start) = started.recv() else { return };
            sampler.run_sampler(start, start + warmup, &is_over, &sender);
        };
        let spawned = thread::Builder::new().name("sockets".to_owned()).spawn(work);
        let thread = spawned
            .map_err(|error| anyhow!("--sockets: cannot create the sampling thread: {}", error_reason(&error)))?;
        let (start, thread) = (Some(start), Some(thread));
        Ok(Some(Self { start, samples, has_ended, thread, summary: SampleSums::default() }))
    }

    /// Starts sampling, together with the run. Further calls do nothing.
    pub fn start_sampling(&mut self, start: Instant) {
        // A panicked thread samples nothing.
        self.start.take().map(|waiting| waiting.send(start));
    }

    /// Passes on the samples taken since the last call. `begins`: start of measuring, from which [`SocketSample::at_s`]
    /// counts.
    pub fn pass_on_samples(&mut self, begins: Instant, mut pass: impl FnMut(&SocketSample)) {
        for mut sample in self.samples.try_iter() {
            let since = sample.at.saturating_duration_since(begins).as_secs_f64();
            sample.at_s = since - begins.saturating_duration_since(sample.at).as_secs_f64();
            self.summary.add_sample(&sample);
            pass(&sample);
        }
    }

    /// Ends sampling, passes on the last samples, and returns the sums of all samples.
    pub fn stop_sampling(mut self, begins: Instant, pass: impl FnMut(&SocketSample)) -> SocketSamples {
        self.order_end();
        // Samples sent before a panic are kept.
        self.thread.take().map(JoinHandle::join);
        self.pass_on_samples(begins, pass);
        std::mem::take(&mut self.summary).into_sums()
    }

    fn order_end(&self) {
        self.has_ended.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for SocketSampler {
    fn drop(&mut self) {
        self.order_end();
    }
}
