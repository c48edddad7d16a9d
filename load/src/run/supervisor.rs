//! Watches workers during the run, stops them, and collects their measurements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_engine::backend::process_cpu_ns;
use onrush_engine::{Control, SAMPLE_NS, Spare, WorkerEnd, WorkerLink};
use onrush_plan::{Plan, Probing};
use onrush_stats::{SocketSamples, Timeline};

use super::clock::Clock;
use super::machine::MachineShare;
use super::monitor::Monitor;
use super::outcome::StuckThread;
use super::snapshot::{Collector, RecentCounts, WholeRows};
use super::sockets::SocketSampler;
use super::stages::Stages;
use super::tail::Tail;
use super::until::StopRule;
use super::workers::Workers;
use super::{Interrupt, MonitorReport, Observer, Outcome, RunEnd, RunProgress, Shortage, SocketSample, Waiting, nanos};

/// Interval of checks for signals and hand-overs at first, when the target may not listen yet, and in runs that need
/// close watching (finer hand-overs, `--until`, virtual time) ...
const WATCH: Duration = Duration::from_millis(20);
/// ... and later: once between two hand-overs, because each check may take the processor from a worker.
const WATCH_LATER: Duration = Duration::from_nanos(SAMPLE_NS);
/// Time after the start of measuring up to which [`WATCH`] applies.
const AT_FIRST: Duration = Duration::from_millis(50);
/// Time between two progress reports.
const SHOW: Duration = Duration::from_millis(200);
/// Minimum length of a suspension, because suspending and resuming a machine takes longer than this.
const SUSPENDED_MIN: Duration = Duration::from_millis(10);
/// Time allowed for a callback that is still running at the end of a run.
const PATIENCE_WITH_SCRIPTS: Duration = Duration::from_secs(1);
/// Steps of a single request, each with its own timeout: connecting and the response.
const ONCE_WAITS: u32 = 2;

/// Workers that are set up and wait to be released together. Dropping this ends them without sending anything.
pub struct Prepared {
    pub(super) backend: &'static str,
    pub(super) descriptors: Option<Shortage>,
    pub(super) control: Arc<Control>,
    pub(super) links: Vec<Arc<WorkerLink>>,
    pub(super) workers: Workers,
    /// Watches the target and the machine during the run.
    pub(super) monitor: Option<Monitor>,
    /// Samples sockets during the run.
    pub(super) sockets: Option<SocketSampler>,
}

impl Prepared {
    /// Releases the workers at `start`, watches them until the last has ended, and sums the results. `clock` must be
    /// the clock of their backend. Also returns the connections that are left idle, if the workers were given any, and
    /// the workers, if they stay on.
    pub fn run(
        self,
        plan: &Plan,
        start: Instant,
        clock: &mut Clock,
        interrupt: &Interrupt,
        observers: &mut [&mut dyn Observer],
    ) -> (Outcome, Vec<Spare>, Option<Tail>) {
        let row = observers.iter().filter_map(|observer| observer.first_row_max()).min();
        // In virtual time, checking often costs nothing.
        let is_close = row.is_some() || !plan.until.is_empty() || matches!(self.workers, Workers::Simulated(_));
        let mut supervisor = Supervisor::new(self, plan, start, clock, row);
        let whole_row = observers.iter().find_map(|observer| observer.full_row_length());
        supervisor.collector.wholes = whole_row.map(|row| WholeRows::new(nanos(row)));
        supervisor.release_workers();
        let stuck = loop {
            if let Some(stuck) = supervisor.stuck_at_end() {
                break stuck;
            }
            supervisor.finish_facts_if_over(observers);
            supervisor.take_measurements(observers);
            supervisor.stop_if_due(interrupt, observers);
            supervisor.show_progress_if_due(observers);
            let watch = match supervisor.elapsed().checked_sub(supervisor.measuring_start()) {
                Some(passed) if passed >= AT_FIRST && !is_close => time_until_midpoint(passed),
                _ => WATCH,
            };
            let watch = watch.min(supervisor.remaining_time());
            supervisor.prepared.workers.wait(watch, supervisor.clock);
        };
        supervisor.finish_run(&stuck, observers)
    }
}

/// The supervisor's state of a run.
struct Supervisor<'a> {
    prepared: Prepared,
    plan: &'a Plan,
    start: Instant,
    /// Processor time of the process at the start, in nanoseconds.
    cpu_before_ns: u64,
    /// The start since the Unix epoch.
    started_at: Duration,
    clock: &'a mut Clock,
    /// Reading of [`Clock::suspended_ns`] at the start.
    suspended_ns: i64,
    collector: Collector,
    ends: Vec<Option<WorkerEnd>>,
    is_interrupted: bool,
    /// Facts that are final once the counted run ends and an uncounted rest follows.
    over: Option<FinalFacts>,
    /// True if the run ends because no address accepts a connection.
    found_no_address: bool,
    has_told_waiting: bool,
    /// Time of the last progress report, since the start.
    shown_at: Duration,
    /// Time of the order to end, since the start.
    stopped_at: Option<Duration>,
    overdue: Overdue,
}

/// Facts that are final at the end of a run, even if an uncounted rest follows.
struct FinalFacts {
    /// Processor time of the process since the start, in nanoseconds.
    cpu_ns: u64,
    /// Observations of the target and the machine.
    seen: Option<MonitorReport>,
    /// The sums of the socket samples.
    sampled: Option<SocketSamples>,
    /// True if a signal ended the run.
    is_interrupted: bool,
}

impl<'a> Supervisor<'a> {
    fn new(prepared: Prepared, plan: &'a Plan, start: Instant, clock: &'a mut Clock, row: Option<Duration>) -> Self {
        let mut collector = Collector::new(prepared.links.clone());
        collector.stop_rule = StopRule::from_plan(plan);
        let tells = Probing::reason_against(plan).is_none() || plan.levels.is_some() && plan.schedule.is_none();
        collector.recent_counts = tells.then(RecentCounts::default);
        collector.stages = Stages::for_plan(plan);
        collector.timeline = row.map_or_else(Timeline::default, |row| Timeline::new(nanos(row)));
        Self {
            ends: prepared.links.iter().map(|_| None).collect(),
            prepared,
            plan,
            start,
            cpu_before_ns: process_cpu_ns(),
            started_at: clock.unix_time(start),
            suspended_ns: clock.suspended_ns(),
            clock,
            collector,
            is_interrupted: false,
            over: None,
            found_no_address: false,
            has_told_waiting: false,
            shown_at: Duration::ZERO,
            stopped_at: None,
            overdue: Overdue::default(),
        }
    }

    /// Releases the workers and the socket sampler.
    fn release_workers(&mut self) {
        let Prepared { workers, sockets, .. } = &mut self.prepared;
        workers.release(self.start, self.clock);
        sockets.iter_mut().for_each(|sockets| sockets.start_sampling(self.start));
    }

    /// The time since the start.
    fn elapsed(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.start)
    }

    /// Returns `Some` once every worker has ended, or is overdue and stuck in its script. For each worker: the callback
    /// that blocks it, if any.
    fn stuck_at_end(&mut self) -> Option<Vec<Option<StuckThread>>> {
        let look = |(index, link): (usize, &Arc<WorkerLink>)| match self.prepared.workers.is_at_work(index) {
            true => link.callback().name().map(Some),
            false => Some(None),
        };
        let callbacks: Option<Vec<_>> = self.prepared.links.iter().enumerate().map(look).collect();
        // A single request may be late for other reasons, such as a pause: here only time spent in callbacks matters.
        let due = self.due_end().filter(|_| !self.plan.once || callbacks.is_some());
        let since = self.overdue.check_overdue(due, self.elapsed());
        let stuck = |callback: Option<_>| match callback {
            Some(callback) => Some(Some(StuckThread { callback, since: since? })),
            None => Some(None),
        };
        callbacks?.into_iter().map(stuck).collect()
    }

    /// Due time of the workers' end, since the start; `None`: when all requests have ended.
    fn due_end(&self) -> Option<Duration> {
        let planned = if self.plan.once {
            self.plan.give_up.map(|give_up| give_up.saturating_mul(ONCE_WAITS))
        } else {
            self.planned_end().map(|end| end + self.plan.run_on)
        };
        planned.into_iter().chain(self.stopped_at).min()
    }

    /// Planned end of the run, since the start; `None` without a duration.
    fn planned_end(&self) -> Option<Duration> {
        self.plan.stop.duration.map(|duration| self.measuring_start() + duration)
    }

    /// Remaining time of the counted run, if an uncounted rest follows; otherwise unlimited.
    fn remaining_time(&self) -> Duration {
        let end = self.planned_end().filter(|_| !self.plan.run_on.is_zero() && self.over.is_none());
        end.map_or(Duration::MAX, |end| end.saturating_sub(self.elapsed()).max(Duration::from_millis(1)))
    }

    /// Ends the additional measurements when the counted run is over and an uncounted rest follows.
    fn finish_facts_if_over(&mut self, observers: &mut [&mut dyn Observer]) {
        let is_over = self.planned_end().is_some_and(|end| self.elapsed() >= end) || self.prepared.control.has_enough();
        if is_over && !self.plan.run_on.is_zero() && self.over.is_none() {
            self.over = Some(self.finish_facts(observers));
        }
    }

    /// Ends the additional measurements: processor time, monitor, socket samples.
    fn finish_facts(&mut self, observers: &mut [&mut dyn Observer]) -> FinalFacts {
        let begins = self.start + self.measuring_start();
        FinalFacts {
            cpu_ns: process_cpu_ns() - self.cpu_before_ns,
            seen: self.prepared.monitor.take().map(Monitor::stop_watching),
            sampled: self
                .prepared
                .sockets
                .take()
                .map(|it| it.stop_sampling(begins, |sample| report_sample(observers, sample))),
            is_interrupted: self.is_interrupted,
        }
    }

    /// Actual or expected start of measuring, since the start of the run: later than planned if a worker was busy.
    fn measuring_start(&self) -> Duration {
        let delay = self.prepared.links.iter().map(|link| link.warm_up_delay()).max();
        self.plan.warmup + delay.unwrap_or_default()
    }

    /// Takes over measurements and informs the observers.
    fn take_measurements(&mut self, observers: &mut [&mut dyn Observer]) {
        let (begins, elapsed) = (self.measuring_start(), self.elapsed());
        if let Some(monitor) = &mut self.prepared.monitor {
            monitor.start_counting(begins, elapsed);
        }
        if let Some(sockets) = &mut self.prepared.sockets {
            sockets.pass_on_samples(self.start + begins, |sample| report_sample(observers, sample));
        }
        self.collect_measurements(observers);
        while let Some(mut second) = self.collector.next_finished_row() {
            second.machines_lost = self.prepared.workers.count_lost(second.until_ns);
            observers.iter_mut().for_each(|observer| observer.on_row(&second));
        }
        self.report_full_rows(observers);
    }

    /// Collects handed-over intervals and the results of finished workers (none from a panicked one). Reports machine
    /// events.
    fn collect_measurements(&mut self, observers: &mut [&mut dyn Observer]) {
        self.collector.collect();
        while let Some((count, row)) = self.prepared.workers.take_row() {
            self.collector.add_remote_row(count, &row);
        }
        for (index, ended) in self.ends.iter_mut().enumerate() {
            if let Some(end) = self.prepared.workers.take_end(index) {
                match self.prepared.workers {
                    // The worker's last row has arrived already.
                    Workers::Remote(_) => self.collector.leave_worker(index),
                    Workers::Threads(_) | Workers::Simulated(_) => self.collector.end_worker(index, &end.interval),
                }
                observers.iter_mut().for_each(|observer| observer.on_worker_ended(index, &end));
                *ended = Some(end);
            } else if self.prepared.workers.is_lost(index) {
                // Rows must not wait for a lost worker.
                self.collector.leave_worker(index);
            }
        }
        self.found_no_address |= self.collector.all_refused() && !self.waits_for_target();
        for words in self.prepared.workers.take_messages() {
            observers.iter_mut().for_each(|observer| observer.on_machine_message(&words));
        }
    }

    /// Passes full rows to the observers.
    fn report_full_rows(&mut self, observers: &mut [&mut dyn Observer]) {
        while let Some(row) = self.collector.next_full_row() {
            observers.iter_mut().for_each(|observer| observer.on_full_row(&row));
        }
    }

    /// True if a run keeps trying although no connection is accepted. A run with `-n` waits for its target, `--once`
    /// does not. Waiting cannot fix a bad certificate, another version of HTTP or a wrong password.
    fn waits_for_target(&self) -> bool {
        let waits = self.plan.stop.requests.is_some() && !self.plan.once;
        self.plan.dialect.is_compat() || (waits && !self.collector.is_hopeless())
    }

    /// Stops the workers if there is a reason to. Announces once that the run waits for its target.
    fn stop_if_due(&mut self, interrupt: &Interrupt, observers: &mut [&mut dyn Observer]) {
        if self.prepared.workers.is_signalled(self.clock) {
            interrupt.request_end();
        }
        self.is_interrupted |= interrupt.is_requested();
        let is_known = self.collector.stop_rule.as_ref().is_some_and(StopRule::is_reached);
        let is_enough = || observers.iter().any(|observer| observer.is_enough());
        let control = &self.prepared.control;
        if self.is_interrupted || self.found_no_address || is_enough() {
            control.stop();
        } else if is_known && (!self.plan.run_on.is_zero() || Probing::keeps_workers(self.plan)) {
            control.end_run();
            self.stopped_at.get_or_insert(self.elapsed() + self.plan.run_on);
        } else if is_known {
            control.stop();
        } else if !self.has_told_waiting
            && let Some(waiting) = Waiting::for_plan(self.plan, &self.collector)
        {
            self.has_told_waiting = true;
            observers.iter_mut().for_each(|observer| observer.on_waiting(&waiting));
        }
        if control.is_stopped() && self.stopped_at.is_none() {
            self.stopped_at = Some(self.elapsed());
        }
    }

    /// Reports the progress if it is due.
    fn show_progress_if_due(&mut self, observers: &mut [&mut dyn Observer]) {
        let elapsed = self.elapsed();
        // A check made slightly early must not put the report off until the next one.
        if elapsed + WATCH > self.shown_at + SHOW && self.over.is_none() {
            self.shown_at = elapsed;
            let notify =
                |progress: &RunProgress<'_>| observers.iter_mut().for_each(|observer| observer.on_progress(progress));
            self.collector.report_progress(elapsed, self.plan.warmup, notify);
        }
    }

    /// Sums the finished run; `stuck`: for each worker, the callback that blocks it.
    fn finish_run(
        mut self,
        stuck: &[Option<StuckThread>],
        observers: &mut [&mut dyn Observer],
    ) -> (Outcome, Vec<Spare>, Option<Tail>) {
        self.collect_measurements(observers);
        self.collector.end_all_workers();
        self.report_full_rows(observers);
        let over = self.over.take();
        let FinalFacts { cpu_ns, seen, sampled, is_interrupted } = over.unwrap_or_else(|| self.finish_facts(observers));
        let (plan, elapsed, begins) = (self.plan, self.elapsed(), self.measuring_start());
        let is_timed = plan.warmup.is_zero() && matches!(self.prepared.workers, Workers::Threads(_));
        let Self { prepared: Prepared { backend, descriptors, workers, control, links, .. }, mut collector, .. } = self;
        let mut outcome = Outcome::new(backend, descriptors, self.started_at + begins);
        outcome.seen = seen;
        outcome.sampled = sampled;
        outcome.delayed = begins.saturating_sub(plan.warmup);
        outcome.suspended = suspended_between(self.suspended_ns, self.clock.suspended_ns());
        let mut spares = Vec::new();
        for (index, end) in self.ends.into_iter().enumerate() {
            match end {
                Some(mut end) => {
                    spares.append(&mut end.spares);
                    outcome.add_worker_end(end, self.found_no_address || workers.was_refused());
                }
                None if matches!(workers, Workers::Remote(_)) => outcome.record_lost_remote_thread(),
                None => outcome.record_lost_worker(plan, index, stuck[index], elapsed),
            }
        }
        let tail = match workers {
            Workers::Remote(remote) => {
                remote.complete_outcome(&mut outcome, &mut collector);
                None
            }
            workers if Probing::keeps_workers(plan) && !outcome.has_lost_threads() => {
                let connections = outcome.workers.iter().map(|worker| worker.connections);
                let parts = links.into_iter().zip(connections).collect();
                let begun = self.start + begins;
                Some(Tail::new(workers, control, parts, self.clock.clone(), begun, outcome.elapsed))
            }
            _ => {
                // If a thread was lost, the other workers must not stay.
                control.stop();
                None
            }
        };
        // A thread that never returned may have handed over after it was due to end.
        outcome.elapsed = outcome.elapsed.max(Duration::from_nanos(collector.totals().until_ns));
        let elapsed_ns = nanos(outcome.elapsed);
        if !matches!(outcome.ended, RunEnd::Refused { .. }) {
            while let Some(mut second) = collector.next_remaining_row(elapsed_ns) {
                second.machines_lost = MachineShare::count_missing(&outcome.machines, second.until_ns);
                observers.iter_mut().for_each(|observer| observer.on_row(&second));
            }
        }
        outcome.take_collected(collector, plan);
        let of_workers = outcome.workers.iter().filter_map(|worker| worker.activity);
        let of_workers_ns: u64 = of_workers.map(|activity| activity.cpu_ns()).sum();
        if is_timed {
            outcome.beside = Some(Duration::from_nanos(cpu_ns.saturating_sub(of_workers_ns)));
        }
        if is_interrupted {
            outcome.ended = RunEnd::Signal;
        } else if outcome.ended == RunEnd::Duration && outcome.all_requests_ended(plan) {
            outcome.ended = RunEnd::Requests;
        }
        let is_whole = matches!(outcome.ended, RunEnd::Duration | RunEnd::Requests) && outcome.breakdown.is_none();
        (outcome, spares, tail.filter(|_| is_whole))
    }
}

fn report_sample(observers: &mut [&mut dyn Observer], sample: &SocketSample) {
    observers.iter_mut().for_each(|observer| observer.on_sample(sample));
}

/// Time to the midpoint between two hand-overs, given the time since measuring began. A slightly late worker has then
/// handed over, and has an empty interval ready for the next time.
fn time_until_midpoint(passed: Duration) -> Duration {
    let middle = nanos(WATCH_LATER) / 2;
    Duration::from_nanos(SAMPLE_NS - (nanos(passed) + middle) % SAMPLE_NS)
}

/// Time for which the machine was suspended between two readings of [`Clock::suspended_ns`].
fn suspended_between(before_ns: i64, after_ns: i64) -> Duration {
    let passed = Duration::from_nanos(u64::try_from(after_ns - before_ns).unwrap_or_default());
    // A thread that loses the processor during a reading slightly overestimates the time.
    if passed >= SUSPENDED_MIN { passed } else { Duration::ZERO }
}

/// Time the supervisor has waited for overdue workers.
#[derive(Debug, Default)]
struct Overdue {
    looked_at: Duration,
    waited: Duration,
}

impl Overdue {
    /// Adds the time since the last call. Returns the due time if the workers are overdue for too long. Restarts when
    /// they are not due. A long time between two calls means that the process was stopped, and is not counted.
    fn check_overdue(&mut self, due: Option<Duration>, now: Duration) -> Option<Duration> {
        let passed = now.saturating_sub(self.looked_at).min(2 * WATCH_LATER);
        self.looked_at = now;
        let Some(due) = due.filter(|&due| now >= due) else {
            self.waited = Duration::ZERO;
            return None;
        };
        self.waited += passed;
        (self.waited >= PATIENCE_WITH_SCRIPTS).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use onrush_engine::backend::suspended_ns;

    use super::*;

    #[test]
    fn suspension_is_a_clock_difference() {
        // The machine may have been suspended before the run, and a time namespace may set either clock back.
        for before_ns in [0, 86_400_000_000_000, -100_000_000_000] {
            assert_eq!(suspended_between(before_ns, before_ns), Duration::ZERO);
            assert_eq!(
                suspended_between(before_ns, before_ns + 40_000),
                Duration::ZERO,
                "a little time between two clocks"
            );
            assert_eq!(suspended_between(before_ns + 40_000, before_ns), Duration::ZERO);
            assert_eq!(suspended_between(before_ns, before_ns + 12_300_000_000), Duration::from_millis(12_300));
        }
        let awake = suspended_ns();
        assert_eq!(suspended_between(awake, suspended_ns()), Duration::ZERO);
    }

    #[test]
    fn supervisor_checks_between_hand_overs() {
        for (passed_ms, wait_ms) in [(250, 100), (251, 99), (349, 1), (350, 100), (300, 50), (999, 51)] {
            let wait = time_until_midpoint(Duration::from_millis(passed_ms));
            assert_eq!(wait, Duration::from_millis(wait_ms), "{passed_ms}");
        }
    }

    #[test]
    fn stopped_processes_make_no_worker_overdue() {
        let ms = Duration::from_millis;
        let mut overdue = Overdue::default();
        let looks = |overdue: &mut Overdue, from: u64, until: u64| {
            (from..until).step_by(20).find_map(|now| overdue.check_overdue(Some(ms(1_000)), ms(now)))
        };
        assert_eq!(looks(&mut overdue, 0, 1_700), None);
        assert_eq!(looks(&mut overdue, 60_000, 60_040), None, "stopped for a minute");
        assert_eq!(looks(&mut overdue, 60_040, 62_000), Some(ms(1_000)));
        assert_eq!(overdue.check_overdue(None, ms(62_000)), None, "it has returned");
        assert_eq!(looks(&mut overdue, 62_000, 62_900), None, "and is in the next callback");
        assert_eq!(Overdue::default().check_overdue(None, ms(90_000)), None);
    }
}
