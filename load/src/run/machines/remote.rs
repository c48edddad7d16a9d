//! The supervisor's view of the workers on other machines.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onrush_engine::{Callback, Control, WorkerEnd};
use onrush_plan::Plan;
use onrush_plan::load::Load;
use onrush_plan::machines::OnLoss;
use onrush_stats::{Counters, Totals};
use onrush_text::escape;

use super::coordinator::{CoordinatorEvent, CoordinatorRequest};
use super::coordinator_server::CoordinatorServer;
use super::message::{Done, WorkerSetup as Facts};
use crate::run::dues::worker_due_times;
use crate::run::machine::MachineShare;
use crate::run::nanos;
use crate::run::outcome::{Breakdown, Outcome, RunEnd, WorkerShare};
use crate::run::snapshot::{Collector, WorkerProgress};

/// Time allowed for machines to end after they were ordered to, and time that they may run past their planned end
/// before they are.
const PATIENCE: Duration = Duration::from_secs(5);
const OVERDUE: Duration = Duration::from_secs(10);
/// Maximum number of a lost machine's unsent requests whose ages are computed one by one.
const AGES: u64 = 1_000_000;
/// Maximum time from the moment at which a signal ends a machine until the same signal arrives here.
const SIGNAL: Duration = Duration::from_millis(300);

/// The workers of a run on other machines.
pub struct Remote {
    server: Rc<CoordinatorServer>,
    machines: Vec<RemoteMachine>,
    rows: VecDeque<(Range<usize>, Box<Totals>)>,
    /// Messages about machines for the user.
    said: Vec<String>,
    control: Arc<Control>,
    on_loss: OnLoss,
    started: Option<Instant>,
    /// Time of the order to end.
    stopped: Option<Instant>,
    /// Time since the start by which all machines should have finished.
    due: Option<Duration>,
    /// Machines that a signal ended, with the reason and the time. The signal may also arrive here, which ends the run
    /// everywhere.
    signalled: Vec<(usize, String, Instant)>,
}

/// A machine and its threads.
pub struct RemoteMachine {
    /// Indices of the machine's threads among those of all machines.
    threads: Range<usize>,
    share: MachineShare,
    ends: Vec<Option<WorkerEnd>>,
    done: Option<Box<Done>>,
    /// The machine's part of the plan, and the number of requests due in its rows.
    part: Plan,
    due: u64,
}

impl RemoteMachine {
    /// A machine with these threads, numbered over all machines.
    pub fn new(facts: &Facts, trip: Duration, threads: Range<usize>, part: Plan) -> Self {
        let escaped = |text: &str| escape(text.as_bytes());
        let share = MachineShare {
            name: escaped(&facts.name),
            kernel: escaped(&facts.kernel),
            backend: escaped(&facts.backend.0),
            threads: facts.threads,
            processors: facts.processors,
            connections: part.load.max_inflight.into(),
            round_trip: trip,
            ..MachineShare::default()
        };
        Self { threads, share, ends: Vec::new(), done: None, part, due: 0 }
    }

    fn has_ended(&self) -> bool {
        self.done.is_some() || self.share.lost.is_some()
    }
}

impl Remote {
    /// The machines of a run, waiting for the start. `control` ends the run everywhere.
    pub fn new(
        server: Rc<CoordinatorServer>,
        machines: Vec<RemoteMachine>,
        control: Arc<Control>,
        on_loss: OnLoss,
        (warm_up, duration): (Duration, Option<Duration>),
    ) -> Self {
        let (rows, said) = (VecDeque::new(), Vec::new());
        Self {
            server,
            machines,
            rows,
            said,
            control,
            on_loss,
            started: None,
            stopped: None,
            due: duration.map(|duration| warm_up + duration + OVERDUE),
            signalled: Vec::new(),
        }
    }

    /// Starts all machines at this moment.
    pub fn release(&mut self, start: Instant) {
        self.started = Some(start);
        self.server.send_request(CoordinatorRequest::Start(self.server.to_coordinator_time(start)));
    }

    /// Handles events for up to this long, at least until the first. Orders the end if the run is stopped or overdue,
    /// and gives up machines that do not end.
    pub fn handle_events_for(&mut self, length: Duration) {
        let is_overdue = self.started.zip(self.due).is_some_and(|(started, due)| started.elapsed() > due);
        if (self.control.is_stopped() || is_overdue) && self.stopped.is_none() {
            self.stopped = Some(Instant::now());
            self.server.send_request(CoordinatorRequest::Stop);
        }
        // Give up machines that do not end: they would add nothing.
        if self.stopped.is_some_and(|stopped| stopped.elapsed() > PATIENCE) {
            for index in 0..self.machines.len() {
                if !self.machines[index].has_ended() {
                    let name = &self.machines[index].share.name;
                    let why = format!("machine {} ({name}): did not stop when told to", index + 1);
                    self.lose_machine(index, why);
                }
            }
        }
        self.lose_signalled_machines(SIGNAL);
        let mut patience = length;
        while let Some(told) = self.server.next_event(patience) {
            patience = Duration::ZERO;
            match told {
                CoordinatorEvent::Row(index, row) => self.record_row(index as usize, row),
                CoordinatorEvent::Done(index, done, drift_ns) => {
                    let machine = &mut self.machines[index as usize];
                    machine.share.drift_ns = drift_ns;
                    let is_early = matches!(done.ended, RunEnd::Signal | RunEnd::NeverBegun) && self.stopped.is_none();
                    machine.record_final_report(done);
                    // A script that fails on one machine would have ended a run on a single machine.
                    if machine.is_broken() {
                        self.control.stop();
                    } else if is_early {
                        let why = format!("machine {} ({}): stopped by a signal", index + 1, machine.share.name);
                        self.signalled.push((index as usize, why, Instant::now()));
                    }
                }
                CoordinatorEvent::Lost(index, why) => self.lose_machine(index as usize, why),
                CoordinatorEvent::Refused(why) => self.said.push(why),
                CoordinatorEvent::Hopeless(..) | CoordinatorEvent::Ready(..) | CoordinatorEvent::Waiting { .. } => {}
            }
        }
    }

    /// Counts a machine as lost if a signal ended it more than `patience` ago and nothing has ended the run.
    fn lose_signalled_machines(&mut self, patience: Duration) {
        if self.stopped.is_none() {
            let all = std::mem::take(&mut self.signalled);
            let (over, waiting) = all.into_iter().partition(|(.., when)| when.elapsed() >= patience);
            self.signalled = waiting;
            for (index, why, _) in over as Vec<(usize, String, Instant)> {
                self.record_loss(index, why);
            }
        }
    }

    fn record_row(&mut self, index: usize, row: Box<Totals>) {
        let machine = &mut self.machines[index];
        machine.share.started += row.counters.started;
        machine.share.completed += row.counters.completed;
        machine.share.failures += row.errors();
        machine.due += row.open_loop.as_deref().map_or(0, |open_loop| open_loop.due);
        machine.share.elapsed = machine.share.elapsed.max(Duration::from_nanos(row.until_ns));
        self.rows.push_back((machine.threads.clone(), row));
    }

    fn lose_machine(&mut self, index: usize, why: String) {
        let machine = &mut self.machines[index];
        machine.ends = machine.threads.clone().map(|_| None).collect();
        self.record_loss(index, why);
    }

    /// Records that a machine delivers no more measurements.
    fn record_loss(&mut self, index: usize, why: String) {
        self.machines[index].share.lost = Some(why.clone());
        let (ends, goes_on) = match self.on_loss {
            _ if self.machines.iter().all(RemoteMachine::has_ended) => ("the run ends", false),
            OnLoss::Stop => ("the run ends (--on-loss)", false),
            OnLoss::Continue => ("the others continue", true),
        };
        self.said.push(format!("{why}; {ends}"));
        if !goes_on {
            self.control.stop();
        }
    }

    fn machine_of_thread(&self, index: usize) -> &RemoteMachine {
        &self.machines[self.machines.partition_point(|machine| machine.threads.end <= index)]
    }

    /// True if the machine on which this thread ran was lost.
    pub fn is_lost(&self, index: usize) -> bool {
        self.machine_of_thread(index).share.lost.is_some()
    }

    /// Number of machines lost before this time (since measuring began).
    pub fn count_lost(&self, until_ns: u64) -> u64 {
        MachineShare::count_missing(self.machines.iter().map(|machine| &machine.share), until_ns)
    }

    /// True if this thread's machine has neither ended nor been lost.
    pub fn is_at_work(&self, index: usize) -> bool {
        !self.machine_of_thread(index).has_ended()
    }

    /// Takes the results of a thread once its machine has ended; `None` the second time, and from a lost machine.
    pub fn take_end(&mut self, index: usize) -> Option<WorkerEnd> {
        let at = self.machines.partition_point(|machine| machine.threads.end <= index);
        let machine = &mut self.machines[at];
        let place = index - machine.threads.start;
        machine.ends.get_mut(place)?.take()
    }

    /// Takes the messages about machines, for the user, that were added since the last call.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// Takes the next row of measurements, with the range of threads of the machine that sent it.
    pub fn take_row(&mut self) -> Option<(Range<usize>, Box<Totals>)> {
        self.rows.pop_front()
    }

    /// True if every machine reports that no first connection was accepted.
    pub fn was_refused(&self) -> bool {
        let is_refused = |machine: &RemoteMachine| {
            machine.done.as_ref().is_some_and(|done| matches!(done.ended, RunEnd::Refused { .. }))
        };
        self.machines.iter().all(is_refused)
    }

    /// Adds facts about machines that their threads lack.
    pub(in crate::run) fn complete_outcome(mut self, outcome: &mut Outcome, collector: &mut Collector) {
        if !self.control.is_stopped() {
            self.lose_signalled_machines(Duration::ZERO);
        }
        let mut beside = Some(Duration::ZERO);
        for machine in self.machines {
            if machine.done.is_none() {
                let at_ns = nanos(machine.share.elapsed);
                let mut unsent = Totals { from_ns: at_ns, until_ns: at_ns, ..Totals::default() };
                machine.count_unsent(&mut unsent);
                *collector.totals() += &unsent;
                // Unsent requests older than the timeout count as errors of a row.
                collector.timeline.record(&unsent);
            }
            let RemoteMachine { threads, share, done, .. } = machine;
            if let Some(done) = done {
                let first = threads.start;
                for (index, of_thread) in threads.zip(&done.shares) {
                    let WorkerShare { counters, activity, .. } = *of_thread;
                    collector.shares[index] = WorkerProgress { counters, activity: activity.unwrap_or_default() };
                    outcome.workers[index] = *of_thread;
                }
                // Ignore thread numbers that the machine does not have.
                let stuck = done.stuck.iter().take(done.shares.len()).filter_map(|(thread, callback)| {
                    let known = Callback::static_name(callback).filter(|_| (*thread as usize) < done.shares.len())?;
                    Some((first + *thread as usize + 1, known))
                });
                outcome.stuck.extend(stuck);
                let breakdown = match done.breakdown {
                    Some(Breakdown::Bug(thread)) => Some(Breakdown::Bug(first + thread.min(done.shares.len()))),
                    // All machines have the same script, so the machine may be the reason.
                    Some(Breakdown::Script(words)) => Some(Breakdown::Script(format!(
                        "machine {} ({}): {words}",
                        outcome.machines.len() + 1,
                        share.name
                    ))),
                    breakdown => breakdown,
                };
                outcome.breakdown = outcome.breakdown.take().or(breakdown);
                outcome.suspended = outcome.suspended.max(Duration::from_nanos(done.suspended_ns));
                beside = beside.zip(done.beside_ns).map(|(sum, more)| sum + Duration::from_nanos(more));
            } else {
                beside = None;
            }
            outcome.machines.push(share);
        }
        outcome.beside = beside;
    }
}

impl RemoteMachine {
    /// Counts the requests that were due on a lost machine up to its last row but had not been sent.
    fn count_unsent(&self, totals: &mut Totals) {
        let Self { part, share, .. } = self;
        let (Some(schedule), false) = (&part.schedule, share.elapsed.is_zero()) else { return };
        let (from_ns, until_ns) = (nanos(part.warmup), nanos(part.warmup + share.elapsed));
        let due_on = |thread: u32| {
            let mut dues = worker_due_times(part, schedule, thread);
            dues.pass_before(from_ns, u64::MAX);
            dues.count_about_before(until_ns)
        };
        let due: u64 = (0..part.load.threads).map(due_on).sum();
        let due = due.min(part.stop.requests.unwrap_or(u64::MAX));
        let unsent = due.saturating_sub(self.due);
        let open_loop = totals.open_loop.get_or_insert_default();
        (open_loop.due, open_loop.unsent) = (open_loop.due + unsent, open_loop.unsent + unsent);
        // The thread of the unsent requests is unknown: take the last ones of all threads together, which is only
        // approximate for random times.
        let mut last =
            worker_due_times(&Plan { load: Load::new(1, part.load.connections), ..part.clone() }, schedule, 0);
        last.pass_before(from_ns, u64::MAX);
        last.skip_batch(due - unsent);
        let mut leave = |age_ns: u64, requests: u64| {
            open_loop.censored.record_many(age_ns, requests);
            open_loop.open.get_or_insert_default().record_many(age_ns, requests);
        };
        for _ in 0..unsent.min(AGES) {
            leave(until_ns.saturating_sub(last.next_ns()), 1);
            last.skip_batch(1);
        }
        leave(until_ns.saturating_sub(last.next_ns()), unsent.saturating_sub(AGES));
    }

    /// True if the machine's part broke off.
    fn is_broken(&self) -> bool {
        self.done.as_ref().is_some_and(|done| done.breakdown.is_some())
    }

    /// Records the machine's final report.
    fn record_final_report(&mut self, mut done: Box<Done>) {
        let mut ends = std::mem::take(&mut done.ends);
        ends.resize_with(self.threads.len(), || None);
        self.ends = ends;
        let blank = WorkerShare { connections: 0, counters: Counters::default(), activity: None };
        done.shares.resize(self.threads.len(), blank);
        self.share.connections = self.share.connections.min(done.connections);
        self.share.shortage = done.shortage;
        self.share.late = Duration::from_nanos(done.late_ns);
        self.share.elapsed = Duration::from_nanos(done.elapsed_ns);
        // A machine that never measured had no load.
        let load = |share: &WorkerShare| {
            let activity = share.activity.filter(|_| done.elapsed_ns > 0)?;
            Some(activity.worked_ns() as f64 / activity.wall_ns.max(done.elapsed_ns) as f64)
        };
        self.share.busiest = done.shares.iter().filter_map(load).reduce(f64::max);
        let escaped = |text: String| escape(text.as_bytes());
        self.share.limit = done.limit.take().map(|(name, words)| (escaped(name), escaped(words)));
        self.done = Some(done);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use onrush_plan::Dialect;
    use onrush_plan::schedule::Arrivals;

    use super::*;
    use crate::fixtures::{plan, schedule};

    /// Number of requests counted as unsent for a machine with 400 requests a second whose last row ended after 1.1 s,
    /// if it sent `sent`.
    fn count_unsent_after(sent: u64, change: impl FnOnce(&mut Plan)) -> (u64, Totals) {
        let mut part = plan(Dialect::Native, "http://h/", 3, 2, 4);
        part.schedule = Some(schedule(400));
        change(&mut part);
        let mut machine = RemoteMachine::new(&Facts::default(), Duration::ZERO, 0..2, part);
        (machine.share.elapsed, machine.due) = (Duration::from_millis(1_100), sent);
        let mut totals = Totals::default();
        machine.count_unsent(&mut totals);
        let open_loop = totals.open_loop.as_deref().map_or(0, |open_loop| open_loop.unsent);
        (open_loop, totals)
    }

    #[test]
    fn unsent_requests_of_lost_machines_are_counted() {
        let (count, totals) = count_unsent_after(50, |_| ());
        let open_loop = totals.open_loop.unwrap();
        assert_eq!((count, open_loop.due, open_loop.censored.count()), (390, 390, 390));
        let [oldest, youngest] = [open_loop.censored.max(), open_loop.censored.min()].map(Option::unwrap_or_default);
        assert!((970_000_000..=980_000_000).contains(&oldest) && youngest <= 2_500_000, "{oldest} {youngest}");
        // All due requests were sent, or more than were due by that time.
        assert_eq!((count_unsent_after(440, |_| ()).0, count_unsent_after(441, |_| ()).0), (0, 0));
        // Counts no more requests than the plan has, and none from the warm-up.
        assert_eq!(count_unsent_after(50, |part| part.stop.requests = Some(60)).0, 10);
        assert_eq!(count_unsent_after(50, |part| part.warmup = Duration::from_secs(5)).0, 390);
        let bursts = |part: &mut Plan| {
            let burst = Arrivals::Burst(NonZero::new(100).unwrap());
            part.schedule.as_mut().unwrap().arrivals = burst;
        };
        assert_eq!(count_unsent_after(200, bursts).0, 300);
        let drawn = |part: &mut Plan| part.schedule.as_mut().unwrap().arrivals = Arrivals::Poisson;
        assert!((330..=450).contains(&count_unsent_after(50, drawn).0));
        // In a closed loop nothing is due.
        assert!(count_unsent_after(50, |part| part.schedule = None).1.open_loop.is_none());
    }
}
