//! Runs a whole case in virtual time with the real plan, script, engines and collector. Each turn goes to the engine
//! with the earliest time; afterwards the engine is inspected.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use onrush_engine::backend::Backend;
use onrush_engine::{Config, Control, Engine, WorkerEnd, WorkerLink};
use onrush_plan::Plan;
use onrush_plan::schedule::{Dues, ScheduleSpan};
use onrush_proto::Nanos;
use onrush_stats::{Interval, Timeline, Totals};

use super::case::Case;
use super::watched::{CheckedBackend, Journal};
use crate::resolve::Addresses;
use crate::run::TimelineRow;
use crate::run::prepare::{create_pacer, list_requests, worker_config};
use crate::run::snapshot::Collector;
use crate::run::worker::Worker;
use crate::script::LoadedScript;
use crate::session;

/// Time between two collections by the supervisor, in nanoseconds.
const COLLECT_NS: u64 = 20_000_000;
/// Maximum number of turns at one moment, in addition to one for each connection.
const TURNS_AT_ONCE: u64 = 2_000;
/// A run that has not ended after this many turns and completions never ends.
const STEPS_MAX: u64 = 1_000_000;
/// Maximum number of backend calls per completion, and additional calls for each request of a batch.
const CALLS: usize = 8;
const CALLS_PER_REQUEST: usize = 2;

pub struct RunResult {
    pub plan: Box<Plan>,
    pub parts: Vec<ThreadOutcome>,
    pub totals: Totals,
    pub timeline: Timeline,
    pub seconds: Vec<TimelineRow>,
    pub elapsed_ns: u64,
    /// True if the run has a script that sees responses or writes requests.
    pub has_script: bool,
    /// Maximum number of requests sent together.
    pub batch: u64,
}

/// The result of one thread.
pub struct ThreadOutcome {
    pub end: WorkerEnd,
    /// Sum of the thread's intervals.
    pub totals: Totals,
    /// Number of responses, including the warm-up.
    pub completed: u64,
    pub journal: Rc<Journal>,
    /// Start of measuring, in nanoseconds.
    pub start_ns: u64,
    /// Due times of the thread's requests under the plan.
    pub dues: Option<Dues>,
    /// Number of requests that the thread should start.
    pub requests: Option<u64>,
    /// Number of bytes reported by the backend, and how many of them were reported last.
    pub received: u64,
    pub received_last: u64,
}

/// Runs a case. An error names the first flaw found during the run.
pub fn run_case(case: &Case) -> Result<RunResult, String> {
    let plan = case.parse_plan();
    let addresses = case.addresses();
    let script = session::load(&plan, &addresses, Arc::new(|_| ())).map_err(|error| format!("{error:#}"))?;
    let links: Vec<Arc<WorkerLink>> = (0..plan.load.threads).map(|_| Arc::default()).collect();
    let batch = case.script.as_ref().and_then(|script| script.batches.iter().max()).copied().unwrap_or(1);
    let mut run = DrivenRun {
        control: Arc::default(),
        collector: Collector::new(links.clone()),
        handed_over: vec![Totals::default(); links.len()],
        seconds: Vec::new(),
        collected_at: Nanos::default(),
        has_script: script.is_some(),
        limits: case.options.limits.clone(),
        links,
        plan,
    };
    let running = run.set_up_threads(case, script, &addresses, batch as usize);
    let mut parts = run.run_turns(running)?;
    parts.sort_by_key(|(index, _)| *index);
    let parts: Vec<ThreadOutcome> = parts.into_iter().map(|(_, part)| part).collect();
    let elapsed_ns = parts.iter().map(|part| part.end.elapsed_ns).max().unwrap_or(0);
    while let Some(second) = run.collector.next_remaining_row(elapsed_ns) {
        run.seconds.push(second);
    }
    let DrivenRun { mut collector, seconds, plan, has_script, .. } = run;
    collector.timeline.end_run(elapsed_ns);
    collector.totals().settle_phases();
    let (totals, timeline) = (std::mem::take(collector.totals()), collector.timeline);
    Ok(RunResult { plan, parts, totals, timeline, seconds, elapsed_ns, has_script, batch: u64::from(batch) })
}

/// A running thread.
struct Running {
    index: usize,
    engine: Engine<CheckedBackend>,
    journal: Rc<Journal>,
    dues: Option<Dues>,
    requests: Option<u64>,
    connections: u64,
    /// True if the thread can be stalled, and late because of that.
    is_stalled: bool,
    /// Maximum number of requests in flight on one connection.
    depth: usize,
    turns: u64,
    /// The current time, and the number of turns taken at it.
    moment: (Nanos, u64),
    /// A request that waited for another connection after the last turn, see [`Engine::connection_demand`].
    waits: Option<(u32, Nanos)>,
}

struct DrivenRun {
    plan: Box<Plan>,
    control: Arc<Control>,
    links: Vec<Arc<WorkerLink>>,
    collector: Collector,
    /// Sum of each thread's intervals.
    handed_over: Vec<Totals>,
    seconds: Vec<TimelineRow>,
    collected_at: Nanos,
    has_script: bool,
    /// Duration in milliseconds of each limit on the requests in flight.
    limits: Vec<(u64, u32)>,
}

impl DrivenRun {
    fn set_up_threads(
        &self,
        case: &Case,
        mut script: Option<LoadedScript>,
        addresses: &Addresses,
        batch: usize,
    ) -> Vec<Running> {
        let script = script.as_mut().map(session::scripted);
        let pipelines = script.as_ref().is_some_and(|script| script.depth > 1);
        let mut scripts = script.map_or_else(Vec::new, |script| script.workers).into_iter();
        let parts = self.plan.request.with_body(self.plan.body().expect("it has been read").into());
        let listed = list_requests(&self.plan, &parts).expect("it can be sent");
        let set_up = |index: u32| {
            let config = worker_config(&self.plan, addresses, None, pipelines, index);
            let (journal, connections, seed) = (Rc::<Journal>::default(), config.slots(), config.seed);
            let (dues, requests) = (self.thread_due_times(&config, index), config.requests);
            // The requests of a batch are sent before they are due.
            *journal.dues.borrow_mut() = dues.clone().filter(|_| batch == 1);
            journal.slice_ns.set(config.rules.open_loop.map_or(0, |rules| rules.slice_ns));
            let network = case.scenario.clone().network(seed);
            // After a stall, the first completion may start a request on every ready connection.
            let is_stalled = !case.scenario.generator_stall.is_empty() && dues.is_some();
            let starting = if is_stalled { connections as usize } else { 1 };
            let calls = CALLS + CALLS_PER_REQUEST * batch * starting;
            let backend = CheckedBackend::new(connections, network, &case.scenario.answer, Rc::clone(&journal), calls);
            let worker = Worker {
                pacer: create_pacer(&self.plan, &config, index),
                config,
                parts: parts.clone(),
                http: self.plan.http.clone(),
                blocks_max: 1 << 20,
                script: scripts.next(),
                list: listed.as_ref().map(|listed| listed.of_worker(index.into(), self.plan.load.threads.into())),
                log: None,
                samples: None,
                spares: None,
                control: Arc::clone(&self.control),
                link: Arc::clone(&self.links[index as usize]),
            };
            let mut engine = worker.into_engine(backend).without_account();
            engine.begin_run(Instant::now());
            let moment = (Nanos::default(), 0);
            Running {
                index: index as usize,
                engine,
                journal,
                dues,
                requests,
                connections: connections.into(),
                is_stalled: !case.scenario.generator_stall.is_empty(),
                depth: batch,
                turns: 0,
                moment,
                waits: None,
            }
        };
        (0..self.plan.load.threads).map(set_up).collect()
    }

    /// Due times of a thread's requests.
    fn thread_due_times(&self, config: &Config, index: u32) -> Option<Dues> {
        let Config { warmup_ns, duration_ns, run_on_ns, seed, .. } = *config;
        let worker = onrush_plan::Partition::new(index, self.plan.load.threads);
        Some(self.plan.schedule.as_ref()?.dues(worker, ScheduleSpan { warmup_ns, duration_ns, run_on_ns }, seed))
    }

    /// Takes turns until all threads have ended.
    fn run_turns(&mut self, mut running: Vec<Running>) -> Result<Vec<(usize, ThreadOutcome)>, String> {
        let mut parts = Vec::new();
        while let Some(place) = (0..running.len()).min_by_key(|&place| running[place].engine.backend().now()) {
            let thread = &mut running[place];
            thread.engine.backend().begin_turn();
            let over = thread.engine.step();
            thread.check_engine(over.is_some()).map_err(|flaw| format!("thread {}: {flaw}", thread.index + 1))?;
            if let Some(over) = over {
                let thread = running.swap_remove(place);
                parts.push((thread.index, self.end_thread(thread, over)));
            } else if let now = thread.moment.0
                && now >= self.collected_at + COLLECT_NS
            {
                self.collected_at = now;
                self.supervise();
            }
        }
        Ok(parts)
    }

    /// Does the supervisor's work.
    fn supervise(&mut self) {
        (0..self.links.len()).for_each(|index| self.collect_from(index));
        while let Some(second) = self.collector.next_finished_row() {
            self.seconds.push(second);
        }
        self.apply_limit();
        let is_patient = self.plan.dialect.is_compat() || self.plan.stop.requests.is_some();
        if self.collector.all_refused() && !is_patient {
            self.control.stop();
        }
    }

    /// Applies the current limit on the requests in flight, if there is one.
    fn apply_limit(&self) {
        let mut until_ms = 0;
        let limit = self.limits.iter().find(|(length_ms, _)| {
            until_ms += length_ms;
            self.collected_at.0 < until_ms * 1_000_000
        });
        let Some((_, in_flight)) = limit.or(self.limits.last()) else { return };
        let of = u64::from(self.plan.load.max_inflight);
        for (index, link) in (0..).zip(&self.links) {
            let (before, own) = (
                self.plan.load.most_connections_before(index).into(),
                u64::from(self.plan.load.most_connections_of(index)),
            );
            let share = |connections: u64| connections * u64::from(*in_flight) / of;
            link.set_in_flight_limit((share(before + own) - share(before)) as u32, 1);
        }
    }

    /// Collects a thread's interval.
    fn collect_from(&mut self, index: usize) {
        let Self { links, collector, handed_over, .. } = self;
        links[index].mailbox.collect(|interval| {
            handed_over[index] += interval;
            collector.add_interval(index, interval);
        });
    }

    fn end_thread(&mut self, mut thread: Running, over: onrush_engine::Over) -> ThreadOutcome {
        let completed = thread.engine.completed_in_all();
        let watched = thread.engine.backend();
        let (received, (last_at, last)) = (watched.received, watched.received_last);
        // Bytes of the last moment may be too late.
        let received_last = if last_at > over.at() { last } else { 0 };
        let at_ns = over.at().0;
        let end = thread.engine.step_out(over);
        self.collect_from(thread.index);
        self.collector.end_worker(thread.index, &end.interval);
        let mut totals = std::mem::take(&mut self.handed_over[thread.index]);
        totals += &*end.interval;
        let Running { journal, dues, requests, .. } = thread;
        let start_ns = at_ns - end.elapsed_ns;
        ThreadOutcome { end, totals, completed, journal, start_ns, dues, requests, received, received_last }
    }
}

impl Running {
    /// Checks the engine between two turns, or after the last one.
    fn check_engine(&mut self, is_over: bool) -> Result<(), String> {
        let now = self.engine.backend().now();
        let (moment, turns) = self.moment;
        self.moment = if now == moment { (moment, turns + 1) } else { (now, 0) };
        self.turns += 1;
        if now < moment {
            return Err(format!("time goes back from {} to {} ns", moment.0, now.0));
        }
        let completions = self.engine.backend().completions;
        if self.moment.1 > TURNS_AT_ONCE + self.connections || self.turns + completions > STEPS_MAX {
            let (all, now_and_here) = (self.turns, self.moment.1);
            return Err(format!("{all} turns, {now_and_here} of them at {} ns, and {completions} completions", now.0));
        }
        let waits = self.engine.connection_demand(now);
        let before = std::mem::replace(&mut self.waits, waits);
        if !is_over && waits.is_some() && waits == before {
            return Err(format!("at {} ns: no connection is opened for a request that waits: {waits:?}", now.0));
        }
        // With many connections, check less often: an endless loop is still found soon.
        if !self.turns.is_multiple_of(1 + self.connections / 16) {
            return Ok(());
        }
        let seen = std::mem::take(&mut self.engine.backend().seen);
        let held_up = self.engine.held_up(now).filter(|_| !self.is_stalled);
        let flaw = self.engine.broken_invariant(now, &seen, self.depth).or(held_up);
        let watched = self.engine.backend();
        watched.seen = seen;
        let flaw = watched.flaw.take().or(flaw);
        flaw.map_or(Ok(()), |flaw| Err(format!("at {} ns: {flaw}", now.0)))
    }
}

/// Everything that two runs of the same case must agree on.
pub fn digest(ran: &RunResult) -> String {
    let end = |part: &ThreadOutcome| {
        let Interval { from_ns, until_ns, .. } = *part.end.interval;
        let WorkerEnd {
            elapsed_ns, stayed_away, refusal, dropped, working, silences, awaited, stalls, failure, ..
        } = &part.end;
        format!(
            "{from_ns} {until_ns} {elapsed_ns} {stayed_away} {refusal:?} {dropped:?} {working:?} {silences:?} \
             {awaited:?} {stalls:?} {failure:?} {:?}\n",
            part.journal
        )
    };
    let ends: String = ran.parts.iter().map(end).collect();
    format!("{ends}{:?}\n{:?}\n{:?}", ran.totals, ran.timeline, ran.seconds)
}
