//! Workers that stay on their connections after the end of the run. Their requests are not counted. They keep as many
//! requests in flight as ordered, and none before the first order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_engine::{Control, LOOK_NS, SAMPLE_NS, Stayed, WorkerLink};
use onrush_stats::Totals;

use super::clock::Clock;
use super::workers::Workers;
use super::{Interrupt, nanos};

/// Time between two collections of what workers handed over.
const LOOK: Duration = Duration::from_millis(5);
/// Time allowed for workers to end after the stop: a script may be in a callback.
const PATIENCE: Duration = Duration::from_secs(1);
/// Length of a tick, the period over which a tail counts responses.
pub const TICK: Duration = Duration::from_nanos(LOOK_NS);
/// Length of the ticks in which the run itself counted responses, see [`Outcome::recent`](super::Outcome::recent).
pub const RUN_TICK: Duration = Duration::from_nanos(SAMPLE_NS);

/// The workers of a finished run. Dropping this ends them.
pub struct Tail {
    workers: Workers,
    control: Arc<Control>,
    parts: Vec<TailWorker>,
    clock: Clock,
    /// Start of measuring, which is the origin of ticks.
    begun: Instant,
    /// Responses of all workers in each tick.
    ticks: Vec<f64>,
    /// Number of the first tick.
    first: u64,
    totals: Totals,
}

struct TailWorker {
    link: Arc<WorkerLink>,
    connections: u32,
    /// Number of the tick up to which the worker has handed over.
    until: u64,
}

/// Measurements of the staying workers from the end of the run until they ended.
pub struct TailEnd {
    /// Sums of all workers since the end of the run.
    pub totals: Totals,
    /// Stall time of the worker that was stalled longest, in nanoseconds.
    pub stalled_ns: u64,
    /// Threads (numbered from 1) that never returned from their script, with the blocking callback.
    pub stuck: Vec<(usize, &'static str)>,
}

impl Tail {
    /// Workers of a finished run that stay, with the number of their connections. Measuring began at `begun` and ended
    /// at a time `ended` later.
    pub(super) fn new(
        workers: Workers,
        control: Arc<Control>,
        parts: Vec<(Arc<WorkerLink>, u32)>,
        clock: Clock,
        begun: Instant,
        ended: Duration,
    ) -> Self {
        let first = nanos(ended) / LOOK_NS;
        let parts =
            parts.into_iter().map(|(link, connections)| TailWorker { link, connections, until: first }).collect();
        Self { workers, control, parts, clock, begun, ticks: Vec::new(), first, totals: Totals::default() }
    }

    /// Limits the requests in flight over all connections. `lanes`: number of requests that one connection can have in
    /// flight.
    pub fn limit_in_flight(&self, in_flight: u32, lanes: u32) {
        let of: u64 = self.parts.iter().map(|worker| u64::from(worker.connections)).sum();
        let mut before = 0;
        for TailWorker { link, connections, .. } in &self.parts {
            let share = |connections: u64| connections * u64::from(in_flight) / of.max(1);
            let own = share(before + u64::from(*connections)) - share(before);
            before += u64::from(*connections);
            link.set_in_flight_limit(own as u32, lanes);
        }
    }

    /// The current time on the clock of the run.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Waits briefly and takes the intervals handed over meanwhile. Returns false once a worker has returned or all
    /// were told to stop.
    pub fn wait_and_collect(&mut self, interrupt: &Interrupt) -> bool {
        self.workers.wait(LOOK, &mut self.clock);
        self.collect_intervals();
        if self.workers.is_signalled(&self.clock) {
            interrupt.request_end();
        }
        !self.control.is_stopped() && !(0..self.parts.len()).any(|index| self.workers.has_returned(index))
    }

    /// Number of requests in flight at the last hand-over.
    pub fn in_flight(&self) -> u64 {
        self.parts.iter().map(|worker| worker.link.in_flight()).sum()
    }

    /// Number of the current tick, counted from the start of measuring.
    pub fn current_tick(&self) -> u64 {
        nanos(self.now().saturating_duration_since(self.begun)) / LOOK_NS
    }

    /// Responses in each tick from tick `from` on, up to the last tick for which every worker has handed over.
    pub fn complete_ticks(&self, from: u64) -> &[f64] {
        let place = |tick: u64| (tick.saturating_sub(self.first) as usize).min(self.ticks.len());
        let until = self.parts.iter().map(|worker| worker.until).min().unwrap_or(0);
        &self.ticks[place(from).min(place(until))..place(until)]
    }

    fn collect_intervals(&mut self) {
        let Self { parts, ticks, first, totals, .. } = self;
        for TailWorker { link, until, .. } in parts {
            link.mailbox.collect(|interval| {
                *totals += interval;
                let through = interval.until_ns / LOOK_NS;
                if through <= *until {
                    // Less than a tick has passed since the end of the run.
                    return;
                }
                let (from, to) = ((*until - *first) as usize, (through - *first) as usize);
                if ticks.len() < to {
                    ticks.resize(to, 0.0);
                }
                // A late hand-over does not reveal when its responses arrived: spread them evenly.
                let each = interval.counters.completed as f64 / (to - from) as f64;
                ticks[from..to].iter_mut().for_each(|tick| *tick += each);
                *until = through;
            });
        }
    }

    /// Ends the workers and sums their measurements. Waits up to a second for a worker in a callback.
    pub fn end_workers(mut self) -> TailEnd {
        self.control.stop();
        let mut stayed: Vec<Option<Stayed>> = self.parts.iter().map(|_| None).collect();
        let mut has_returned = vec![false; stayed.len()];
        let until = self.clock.now() + PATIENCE;
        while has_returned.contains(&false) && self.clock.now() < until {
            self.workers.wait(LOOK, &mut self.clock);
            for (index, (returned, stayed)) in has_returned.iter_mut().zip(&mut stayed).enumerate() {
                if !*returned && self.workers.has_returned(index) {
                    (*returned, *stayed) = (true, self.workers.take_stayed(index));
                }
            }
        }
        self.collect_intervals();
        let stuck = self.parts.iter().zip(&has_returned).enumerate().filter(|(_, (_, returned))| !**returned);
        let stuck =
            stuck.map(|(index, (worker, _))| (index + 1, worker.link.callback().name().unwrap_or("a callback")));
        let stuck = stuck.collect();
        let mut totals = std::mem::take(&mut self.totals);
        stayed.iter().flatten().for_each(|stayed| totals += &*stayed.interval);
        let stalled_ns = stayed.iter().flatten().map(|stayed| stayed.stalled_ns).max().unwrap_or(0);
        TailEnd { totals, stalled_ns, stuck }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.control.stop();
    }
}
