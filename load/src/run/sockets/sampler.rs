//! The thread that takes a sample every second.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onrush_engine::backend::thread_cpu_ns;
use onrush_plan::SocketFilter;
use rustix::io::Errno;

use super::SocketSample;
use super::own::OwnConnections;
use super::reading::{EXTENSIONS, filter_subject};
use super::reservoir::Reservoir;
use crate::resolve::Addresses;
use crate::run::diag;

/// The time between two samples.
const PERIOD: Duration = Duration::from_secs(1);
/// The first sample is taken this long after measuring starts, so that each row of the timeline has a sample in its
/// middle.
const PHASE: Duration = Duration::from_millis(500);
/// Maximum number of sockets per sample.
const SOCKETS_MAX: usize = 1_000;
/// Minimum time between two samples, as a multiple of the time that taking one needs. Sampling, including the writing
/// of the samples, thus takes less than 1 % of a processor.
const REST: u32 = 150;

/// Takes the samples of a run.
#[derive(Debug)]
pub struct Sampler {
    which: SampledSockets,
    seed: u64,
}

#[derive(Debug)]
enum SampledSockets {
    Own(OwnConnections),
    Filtered(SocketFilter),
}

impl Sampler {
    /// A sampler of the sockets matched by a filter, or without one, of the connections to these addresses.
    pub fn new(filter: Option<SocketFilter>, addresses: &Addresses, seed: u64) -> Self {
        Self {
            which: filter
                .map_or_else(|| SampledSockets::Own(OwnConnections::new(&addresses.0)), SampledSockets::Filtered),
            seed,
        }
    }

    /// Takes a sample every second from `start` until `is_over` is set; measuring starts at `begins`. Skips samples if
    /// taking them needs too much processor time.
    pub fn run_sampler(
        mut self,
        start: Instant,
        begins: Instant,
        is_over: &AtomicBool,
        samples: &Sender<SocketSample>,
    ) {
        let mut due = first_due(start, begins);
        loop {
            while !is_over.load(Ordering::Acquire) {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left);
            }
            if is_over.load(Ordering::Acquire) {
                return;
            }
            let cpu_ns = thread_cpu_ns();
            if samples.send(self.take_sample()).is_err() {
                return;
            }
            let rest = Duration::from_nanos(thread_cpu_ns() - cpu_ns) * REST;
            due = next_due(due, Instant::now().max(due + rest));
        }
    }

    fn take_sample(&mut self) -> SocketSample {
        let (at, time) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let mut reservoir = Reservoir::new(self.seed, SOCKETS_MAX);
        let failure = self.offer_sockets(&mut reservoir).err();
        let (readings, left_out) = reservoir.into_readings();
        SocketSample { at, at_s: 0.0, time, readings, left_out, failure }
    }

    /// Offers all candidate sockets to the reservoir.
    fn offer_sockets(&mut self, reservoir: &mut Reservoir) -> Result<(), Errno> {
        let filter = match &mut self.which {
            SampledSockets::Own(own) => return own.offer_connections(reservoir),
            SampledSockets::Filtered(filter) => filter,
        };
        for v6 in [false, true] {
            diag::dump_socket_messages(EXTENSIONS, v6, filter.states().0, filter.ports(), |body| {
                if filter_subject(body).is_some_and(|socket| filter.holds(&socket)) {
                    reservoir.offer_socket(body);
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    }
}

/// Due time of the first sample, so that later ones fall into the middle of every second from `begins` on.
fn first_due(start: Instant, begins: Instant) -> Instant {
    let warmup = begins.saturating_duration_since(start) + PHASE;
    start + Duration::from_nanos((warmup.as_nanos() % PERIOD.as_nanos()) as u64)
}

/// Due time of the next sample: after `due`, and not before `earliest`.
fn next_due(due: Instant, earliest: Instant) -> Instant {
    let periods = earliest.saturating_duration_since(due).as_nanos().div_ceil(PERIOD.as_nanos()).max(1);
    due + PERIOD * u32::try_from(periods).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_socket_samples_are_skipped() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        for (warmup, expected) in [(0, 500), (400, 900), (500, 0), (2_300, 800)] {
            assert_eq!(first_due(start, at(warmup)), at(expected), "{warmup}");
        }
        for (earliest, expected) in [(500, 1_500), (1_400, 1_500), (1_500, 1_500), (1_501, 2_500), (3_600, 4_500)] {
            assert_eq!(next_due(at(500), at(earliest)), at(expected), "{earliest}");
        }
    }
}
