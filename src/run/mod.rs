//! Carries a plan out: starts the workers, watches them, stops them and adds up what they measured.
//!
//! Only here (and in the embedded target) threads are spawned. It prints nothing: what is to be shown while the run
//! lasts goes to an observer.

pub mod choice;
pub mod host;
pub mod probe;
pub mod signal;
pub mod snapshot;
pub mod spin;
mod waiting;

pub use choice::{Choice, Unavailable};
pub use host::{Ports, Shortage};
pub use signal::Interrupt;
pub use snapshot::{Progress, Second};
pub use waiting::Waiting;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use onrush_proto::http1::outline;
use onrush_proto::{Http1, Parts, Request};
use rustix::io::Errno;
use thiserror::Error;

use crate::backend::ports::Chooser;
use crate::backend::sim::Scenario;
use crate::backend::{Backend, Clock, Dialer, Epoll, PortRing, Sim, Uring, socket};
use crate::engine::{self, Control, Desk, Engine, Hooks, Protocol, Rules, Settings, WorkerEnd, tls};
use crate::plan::secrets::{self, Known};
use crate::plan::way::Sources;
use crate::plan::{Addresses, Dialect, Io, Plan, load};
use crate::reason::reason;
use crate::script::{self, Script};
use crate::stats::{Cause, Counters, Gap, Timeline, Totals, Transcript, silences};
use snapshot::Collector;

/// How often the watcher looks at signals and hand-overs.
const WATCH: Duration = Duration::from_millis(20);
/// How often the observer is told how the run stands.
const SHOW: Duration = Duration::from_millis(200);
/// How long a callback may last at the end of a run.
const PATIENCE_WITH_SCRIPTS: Duration = Duration::from_secs(1);
/// How long a target may stay away where the plan sets no limit.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a run measured, and how it went.
pub struct Outcome {
    /// The sum of all workers.
    pub totals: Totals,
    /// From the common start to the end of the last worker.
    pub elapsed: Duration,
    /// Why the run ended.
    pub ended: Ended,
    /// The backend that ran.
    pub backend: &'static str,
    /// Addresses that refused at the start while another worked, with the error number.
    pub dropped: Vec<(SocketAddr, i32)>,
    /// The addresses that worked.
    pub addresses: Vec<SocketAddr>,
    /// Set if the hard limit of open files was too low.
    pub descriptors: Option<Shortage>,
    /// When measuring began, since the beginning of 1970.
    pub started_at: Duration,
    /// The run second by second.
    pub timeline: Timeline,
    /// What each worker did, in their order.
    pub workers: Vec<WorkerShare>,
    /// The machine.
    pub host: host::Facts,
    /// The local ports at the end, if there was one too few.
    pub ports: Option<Ports>,
    /// Stretches in which nothing was answered, in order.
    pub silences: Vec<Gap>,
    /// What went over the wire, where the plan wanted that.
    pub transcript: Option<Box<Transcript>>,
    /// The script's file as it was read, if there is one.
    pub script: Option<Vec<u8>>,
    /// Whether a script had a say in when requests were sent.
    pub pauses: bool,
    /// Why it broke off before its end, if it did.
    pub breakdown: Option<Breakdown>,
    /// Threads that never came back from their script, from 1, and the callback they are in. What they measured since
    /// their last hand-over is missing.
    pub stuck: Vec<(usize, &'static str)>,
}

/// One worker's part in a run.
#[derive(Clone, Copy, Debug)]
pub struct WorkerShare {
    /// Its connections.
    pub connections: u32,
    /// What it counted.
    pub counters: Counters,
    /// The processor time it took, in nanoseconds.
    pub cpu_ns: u64,
}

/// Why a run broke off. What was measured until then is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breakdown {
    /// Something went wrong in the script: what and where, in the words for the user.
    Script(String),
    /// The script wants the program to end, with this code.
    Exit(i32),
    /// A thread, numbered from 1, fell over a mistake of ours. What it measured since its last hand-over is missing.
    Bug(usize),
}

/// Who is told how a run goes while it lasts.
pub trait Observer {
    /// Which backend it runs on.
    fn chosen(&mut self, _: &Choice) {}
    /// Where the load goes.
    fn resolved(&mut self, _: &Choice, _: &Addresses) {}
    /// Everything is set up, and it begins.
    fn ready(&mut self) {}
    /// How it stands; about five times a second.
    fn progress(&mut self, _: &Progress) {}
    /// What was done in another second of it, or in what was left at its end.
    fn second(&mut self, _: &Second) {}
    /// Nobody accepts a first connection, and the run waits; at most once.
    fn waiting(&mut self, _: &Waiting) {}
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was up.
    Duration,
    /// All its requests had ended.
    Requests,
    /// Somebody sent a signal.
    Signal,
    /// Somebody sent a signal before anything was sent to the target.
    NeverBegun,
    /// Every first connection was refused.
    Refused {
        /// The address that was tried last.
        address: SocketAddr,
        /// Why.
        cause: Cause,
    },
    /// Nobody could be connected to any more.
    StayedAway,
}

/// The workers could not be set up; nothing was sent.
#[derive(Debug, Error)]
pub enum NotStarted {
    /// A thread could not be made.
    #[error("unable to create thread {number}: {reason}; fewer threads (-t) need less memory and processes")]
    Thread {
        /// Which thread, from 1.
        number: u32,
        /// Why.
        reason: io::Error,
    },
    /// A thread's way to the kernel could not be made.
    #[error("unable to set up a thread: {reason}{way_out}")]
    Backend {
        /// Why.
        reason: io::Error,
        /// What to do about it, where that is known.
        way_out: String,
    },
}

/// This machine does not have an address that connections are to come from. In wrk-cmm's words.
#[derive(Debug, Error)]
#[error("{program}bind({address}): {reason}{way_out}")]
pub struct BadSource {
    program: String,
    address: IpAddr,
    reason: String,
    way_out: &'static str,
}

/// Workers that are set up and wait to be released together. Dropped instead, they end without having sent anything.
pub struct Prepared {
    backend: &'static str,
    descriptors: Option<Shortage>,
    gate: Arc<Gate>,
    control: Arc<Control>,
    desks: Vec<Arc<Desk>>,
    /// Those that have not been joined.
    workers: Vec<Option<JoinHandle<Option<Worked>>>>,
    script: Option<Vec<u8>>,
}

/// Sets up all workers of a plan on the backend that [`choice::choose`] chose.
///
/// # Errors
///
/// [`NotStarted`], or what is wrong with a file that the plan names: a scenario, certificates, keys.
pub fn prepare(
    plan: &Plan,
    addresses: &Addresses,
    backend: &'static str,
    script: Option<&mut Script>,
) -> anyhow::Result<Prepared> {
    let descriptors = host::raise_descriptor_limit(plan.load.connections, plan.load.threads);
    if let Some(sources) = plan.way.sources {
        try_sources(sources, plan.dialect)?;
    }
    let tls = plan.tls.as_ref().map(tls::Config::new).transpose()?;
    if let (Some(script), Some(limit)) = (&script, plan.requests_per_connection) {
        let (function, length) =
            (if script.wants().request { "request()" } else { "wrk.request()" }, script.depth() as u64);
        ensure!(length <= limit.most, engine::too_long(function, length, limit));
    }
    let pipelines = script.as_ref().is_some_and(|script| script.depth() > 1);
    let (script, hooks) = script.map_or((None, Vec::new()), |script| {
        let hooks = script.hooks();
        (Some(&*script), hooks)
    });
    let settings = |index| settings(plan, addresses, tls.clone(), pipelines, index);
    let clock = Clock::start();
    let dialer = dialers(plan);
    let mut prepared = match &plan.io {
        Io::Sim(path) => {
            let scenario = Scenario::read(path)?;
            spawn_all(plan, settings, script, hooks, move |settings| {
                Ok(Sim::new(settings.connections, scenario.clone().network(settings.seed)))
            })
        }
        _ if backend == Uring::NAME => spawn_all(plan, settings, script, hooks, move |settings| {
            Uring::new(settings.connections, clock, dialer(settings)?)
        }),
        _ => spawn_all(plan, settings, script, hooks, move |settings| {
            Epoll::new(settings.connections, clock, dialer(settings)?)
        }),
    }?;
    prepared.descriptors = descriptors;
    Ok(prepared)
}

/// What makes the sockets of each worker.
fn dialers(plan: &Plan) -> impl Fn(&Settings) -> Result<Dialer, Errno> + Clone + Send + use<> {
    let (way, connections, ring) = (plan.way.clone(), plan.load.connections, PortRing::of_this_machine().ok());
    move |settings| {
        let share_before = settings.first_connection as f64 / f64::from(connections);
        let ports = ring.as_ref().map(|ring| Chooser::new(ring, share_before));
        Ok(Dialer::new(&way, settings.first_connection)?.with_ports(ports))
    }
}

/// Looks whether this machine has all the addresses that connections are to come from.
fn try_sources(sources: Sources, dialect: Dialect) -> Result<(), BadSource> {
    for address in (0..sources.count() as usize).map(|place| sources.of_connection(place)) {
        socket::try_source(address).map_err(|errno| {
            let reason = reason(&errno.into());
            let program = if dialect.is_compat() { format!("{}: ", dialect.name()) } else { String::new() };
            let way_out = if dialect.is_compat() { "" } else { ": 'ip address' lists the addresses of this machine" };
            BadSource { program, address, reason, way_out }
        })?;
    }
    Ok(())
}

/// Makes every worker in a thread of its own; each makes its backend itself, because only it can use it.
fn spawn_all<B: Backend>(
    plan: &Plan,
    settings: impl Fn(u32) -> Settings,
    script: Option<&Script>,
    hooks: Vec<Box<dyn Hooks>>,
    make: impl Fn(&Settings) -> io::Result<B> + Clone + Send + 'static,
) -> Result<Prepared, NotStarted> {
    let mut prepared = Prepared {
        backend: B::NAME,
        descriptors: None,
        gate: Arc::default(),
        control: Arc::default(),
        desks: (0..plan.load.threads).map(|_| Arc::default()).collect(),
        workers: Vec::with_capacity(plan.load.threads as usize),
        script: script.map(|script| script.file().to_vec()),
    };
    let (ready, set_up) = mpsc::channel();
    let mut hooks = hooks.into_iter();
    for index in 0..plan.load.threads {
        let worker = Worker {
            settings: settings(index),
            parts: plan.request.clone(),
            prebuilt: script.and_then(|script| script.prebuilt(index as usize)).map(<[u8]>::to_vec),
            hooks: hooks.next(),
            gate: Arc::clone(&prepared.gate),
            control: Arc::clone(&prepared.control),
            desk: Arc::clone(&prepared.desks[index as usize]),
            watcher: thread::current(),
        };
        let (make, ready) = (make.clone(), ready.clone());
        let thread = thread::Builder::new().name(format!("worker-{index}"));
        let thread = if worker.hooks.is_some() { thread.stack_size(script::STACK_BYTES) } else { thread };
        let thread = thread.spawn(move || worker.work(make, ready));
        prepared.workers.push(Some(thread.map_err(|reason| NotStarted::Thread { number: index + 1, reason })?));
    }
    drop(ready);
    let failed = set_up.iter().find_map(Result::err);
    failed.map_or(Ok(prepared), |reason| {
        let too_many_files = Errno::from_io_error(&reason) == Some(Errno::MFILE);
        let way_out =
            if too_many_files { host::way_out(plan.load.connections, plan.load.threads) } else { String::new() };
        Err(NotStarted::Backend { reason, way_out })
    })
}

/// Does what calls a script, in a thread whose stack is large enough for that.
///
/// # Errors
///
/// When there can be no such thread.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(script::STACK_BYTES);
        let outcome = thread.spawn_scoped(scope, work)?.join();
        Ok(outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// What may take for ever, in a thread that nobody waits for.
///
/// # Errors
///
/// When there can be no such thread.
pub fn beside(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// What became of a worker: what it measured, or that it fell over a mistake of ours.
type Worked = thread::Result<WorkerEnd>;

/// What a worker's thread is given.
struct Worker {
    settings: Settings,
    parts: Parts,
    /// The requests of a script that always sends the same.
    prebuilt: Option<Vec<u8>>,
    hooks: Option<Box<dyn Hooks>>,
    gate: Arc<Gate>,
    control: Arc<Control>,
    desk: Arc<Desk>,
    watcher: Thread,
}

impl Worker {
    /// Sets the worker up, says so, waits to be released and runs. `None`: it was not to run.
    fn work<B: Backend>(
        self,
        make: impl Fn(&Settings) -> io::Result<B>,
        ready: Sender<io::Result<()>>,
    ) -> Option<Worked> {
        let backend = match make(&self.settings) {
            Ok(backend) => backend,
            Err(error) => {
                // Whoever set the workers up waits for this.
                let _ = ready.send(Err(error));
                return None;
            }
        };
        let batch = self.prebuilt.as_deref().map_or_else(|| vec![Request::new(self.parts.clone())], requests);
        // A script may pipeline as many as it likes.
        let depth = if self.hooks.is_some() { usize::MAX } else { 1 };
        let protocols = Box::new(move || Protocol::Http1(Http1::new(depth)));
        let control = Arc::clone(&self.control);
        let engine = Engine::new(self.settings, backend, batch, protocols, self.hooks, self.control, self.desk);
        drop(ready);
        let worked = self.gate.wait().then(|| catch_unwind(AssertUnwindSafe(|| engine.run())));
        if worked.as_ref().is_some_and(Result::is_err) {
            control.stop();
        }
        self.watcher.unpark();
        worked
    }
}

/// The requests that a script wrote before the run, and that were found to be complete then.
fn requests(wire: &[u8]) -> Vec<Request> {
    let mut outlines = Vec::new();
    let complete = outline(wire, &mut outlines);
    debug_assert!(complete.is_ok(), "whoever loaded the script has looked");
    let wire = Rc::from(wire);
    outlines.into_iter().map(|outline| Request::from_wire(&wire, outline)).collect()
}

/// Holds workers back until all are set up.
#[derive(Default)]
struct Gate(OnceLock<bool>);

impl Gate {
    /// Lets the workers run, or go home; only the first call counts.
    fn open(&self, run: bool) {
        let _ = self.0.set(run);
    }

    /// Waits for that; returns whether to run.
    fn wait(&self) -> bool {
        *self.0.wait()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.gate.open(false);
    }
}

impl Prepared {
    /// Releases the workers, watches them until the last has ended, and adds up.
    pub fn run(mut self, plan: &Plan, interrupt: &Interrupt, observer: &mut dyn Observer) -> Outcome {
        // A run of a number of requests waits for its target; `--once` is a question, and wants the answer now. A
        // certificate does not get better by waiting, nor does a password.
        let is_compat = plan.dialect.is_compat();
        let waits = plan.stop.requests.is_some() && !plan.once;
        let is_patient = |collector: &Collector| is_compat || (waits && !collector.is_hopeless());
        let mut collector = Collector::new(self.desks.clone());
        let mut ends: Vec<Option<WorkerEnd>> = self.workers.iter().map(|_| None).collect();
        let (mut interrupted, mut refused, mut has_told, mut shown_at) = (false, false, false, Duration::ZERO);
        let mut due = plan.stop.duration.map(|duration| duration + plan.warmup);
        let start = Instant::now();
        // A clock before 1970 is no reason not to measure.
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + plan.warmup;
        self.gate.open(true);
        let stuck = loop {
            if let Some(stuck) = self.ended(start, due) {
                break stuck;
            }
            collector.collect();
            self.join_ended(&mut ends, &mut collector);
            std::iter::from_fn(|| collector.finished()).for_each(|second| observer.second(&second));
            interrupted |= interrupt.is_asked();
            refused |= collector.all_refused() && !is_patient(&collector);
            if interrupted || refused {
                self.control.stop();
            } else if let Some(waiting) = Waiting::of(plan, &collector).filter(|_| !has_told) {
                has_told = true;
                observer.waiting(&waiting);
            }
            if self.control.is_stopped() {
                due = due.min(Some(start.elapsed())).or(Some(start.elapsed()));
            }
            if start.elapsed() >= shown_at + SHOW {
                shown_at = start.elapsed();
                observer.progress(&collector.progress(shown_at, plan.warmup));
            }
            thread::park_timeout(WATCH);
        };
        collector.collect();
        self.join_ended(&mut ends, &mut collector);
        refused |= collector.all_refused() && !is_patient(&collector);
        let mut outcome = Outcome::new(self.backend, self.descriptors, started_at);
        outcome.script = self.script.take();
        outcome.stuck = stuck;
        // Those that have returned meanwhile have given all they measured.
        outcome.stuck.retain(|&(thread, _)| self.workers[thread - 1].is_some());
        for (index, end) in ends.into_iter().enumerate() {
            match end {
                Some(end) => outcome.add(end, refused),
                None => self.lose(&mut outcome, index, plan, due.unwrap_or_default(), start.elapsed()),
            }
        }
        // A thread that never came back may have handed over later than it was to end.
        outcome.elapsed = outcome.elapsed.max(Duration::from_nanos(collector.totals.until_ns));
        let elapsed_ns = nanos(outcome.elapsed);
        if !matches!(outcome.ended, Ended::Refused { .. }) {
            std::iter::from_fn(|| collector.rest(elapsed_ns)).for_each(|second| observer.second(&second));
        }
        outcome.take_over(collector, plan);
        if interrupted {
            outcome.ended = Ended::Signal;
        } else if outcome.ended == Ended::Duration && outcome.all_requests_ended(plan) {
            outcome.ended = Ended::Requests;
        }
        outcome
    }

    /// Takes note of a worker that gave nothing back: it has been stuck since the end was `due`, or fell until now.
    fn lose(&self, outcome: &mut Outcome, index: usize, plan: &Plan, due: Duration, now: Duration) {
        let until = if self.workers[index].is_some() {
            due
        } else {
            outcome.breakdown.get_or_insert(Breakdown::Bug(index + 1));
            now
        };
        outcome.elapsed = outcome.elapsed.max(until.saturating_sub(plan.warmup));
        let connections = plan.load.connections_of(index as u32);
        outcome.workers.push(WorkerShare { connections, counters: Counters::default(), cpu_ns: 0 });
        // What it has completed since its last hand-over is not known.
        outcome.silences.clear();
    }

    /// Takes over from the workers that have ended since the last look; one that fell leaves nothing.
    fn join_ended(&mut self, ends: &mut [Option<WorkerEnd>], collector: &mut Collector) {
        for (index, worker) in self.workers.iter_mut().enumerate() {
            let Some(worker) = worker.take_if(|worker| worker.is_finished()) else { continue };
            let Ok(Some(Ok(end))) = worker.join() else { continue };
            collector.end(index, &end.interval);
            ends[index] = Some(end);
        }
    }

    /// The threads that are stuck, once every other worker has ended: those in their script for longer than
    /// [`PATIENCE_WITH_SCRIPTS`] after the end was due. Asked only once, because a thread may return at any moment.
    fn ended(&self, start: Instant, due: Option<Duration>) -> Option<Vec<(usize, &'static str)>> {
        let is_overdue = due.is_some_and(|due| start.elapsed() >= due + PATIENCE_WITH_SCRIPTS);
        let mut stuck = Vec::new();
        for (index, desk) in self.desks.iter().enumerate() {
            if self.workers[index].as_ref().is_some_and(|worker| !worker.is_finished()) {
                stuck.push((index + 1, desk.callback().name().filter(|_| is_overdue)?));
            }
        }
        Some(stuck)
    }
}

impl Outcome {
    fn new(backend: &'static str, descriptors: Option<Shortage>, started_at: Duration) -> Self {
        Self {
            totals: Totals::default(),
            elapsed: Duration::ZERO,
            ended: Ended::Duration,
            backend,
            dropped: Vec::new(),
            addresses: Vec::new(),
            descriptors,
            started_at,
            timeline: Timeline::default(),
            workers: Vec::new(),
            host: host::Facts::default(),
            ports: None,
            silences: vec![Gap::ALL],
            transcript: None,
            script: None,
            pauses: false,
            breakdown: None,
            stuck: Vec::new(),
        }
    }

    /// A run that a signal ended before it began.
    pub fn interrupted(choice: &Choice) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { ended: Ended::NeverBegun, host: host::facts(), ..Self::new(choice.name, None, now) }
    }

    /// Takes the sums over.
    fn take_over(&mut self, collector: Collector, plan: &Plan) {
        self.totals = collector.totals;
        if !plan.keeps_secrets {
            self.hide_secrets(plan);
        }
        if plan.wants_phases() {
            self.totals.phases.get_or_insert_default();
        }
        self.totals.settle();
        let no_port = Cause::Errno(Errno::ADDRNOTAVAIL.raw_os_error());
        if self.totals.ledger.rows().iter().any(|row| row.cause == no_port) {
            self.ports = Ports::read();
        }
        self.timeline = collector.timeline;
        self.timeline.end(nanos(self.elapsed));
        debug_assert!(self.timeline.is_all_of(&self.totals), "the rows are the run");
        let run = Gap { until_ns: nanos(self.elapsed), ..Gap::ALL };
        self.silences = silences::common(&self.silences, &[run]);
        self.host = host::facts();
        for (worker, counters) in self.workers.iter_mut().zip(collector.shares) {
            worker.counters = counters;
        }
    }

    /// Takes the secrets out of what servers sent, before anybody can show it.
    fn hide_secrets(&mut self, plan: &Plan) {
        let known = Known::of(plan, self.script.as_deref());
        self.totals.ledger.rewrite_examples(|example| known.hide(&secrets::bytes(example)));
        self.totals.location = self.totals.location.take().map(|location| known.hide_in(&secrets::url(&location)));
    }

    /// Adds what a worker gave back.
    fn add(&mut self, end: WorkerEnd, refused: bool) {
        self.elapsed = self.elapsed.max(Duration::from_nanos(end.elapsed_ns));
        let (connections, cpu_ns) = (end.connections, end.cpu_ns);
        self.workers.push(WorkerShare { connections, counters: Counters::default(), cpu_ns });
        if let Some((address, cause)) = end.refusal.filter(|_| refused) {
            self.ended = Ended::Refused { address, cause };
        } else if end.stayed_away {
            self.ended = Ended::StayedAway;
        }
        for dropped in end.dropped {
            if !self.dropped.contains(&dropped) {
                self.dropped.push(dropped);
            }
        }
        for address in end.working {
            if !self.addresses.contains(&address) {
                self.addresses.push(address);
            }
        }
        self.silences = silences::common(&self.silences, &end.silences);
        self.transcript = self.transcript.take().or(end.transcript);
        self.pauses |= end.pauses;
        let breakdown = end.failure.map(|failure| match failure {
            engine::Failure::Raised(words) => Breakdown::Script(words),
            engine::Failure::Exit(code) => Breakdown::Exit(code),
        });
        self.breakdown = self.breakdown.take().or(breakdown);
    }

    /// The share (0 to 1) of their time that the threads spent inside the script, estimated.
    pub fn script_share(&self, plan: &Plan) -> f64 {
        let time_ns = self.elapsed.as_nanos() as f64 * f64::from(plan.load.threads);
        if time_ns > 0.0 { (self.totals.counters.script_ns as f64 / time_ns).min(1.0) } else { 0.0 }
    }

    fn all_requests_ended(&self, plan: &Plan) -> bool {
        let counters = &self.totals.counters;
        let ended = counters.completed + counters.failed + counters.abandoned;
        plan.stop.requests.is_some_and(|requests| ended >= requests + counters.carried)
    }
}

/// The part of the plan that falls to worker `index`.
fn settings(plan: &Plan, addresses: &Addresses, tls: Option<tls::Config>, pipelines: bool, index: u32) -> Settings {
    let requests = plan.stop.requests.map(|requests| load::share(requests, plan.load.threads, index));
    let connections = plan.load.connections_of(index);
    Settings {
        // A connection more than there are requests would only be looked at.
        connections: u64::from(connections).min(requests.unwrap_or(u64::MAX).max(1)) as u32,
        first_connection: (0..index).map(|before| plan.load.connections_of(before)).sum::<u32>() as usize,
        slots: 1,
        requests_per_connection: plan.requests_per_connection,
        tunnel: plan.way.proxy.as_ref().and_then(|proxy| proxy.tunnel(&plan.target)),
        addresses: addresses.0.clone(),
        tls,
        rules: Rules {
            compat: plan.dialect.is_compat(),
            timeout_ns: plan.timeout.map(nanos),
            phases: plan.wants_phases(),
            pipelines,
        },
        warmup_ns: nanos(plan.warmup),
        duration_ns: plan.stop.duration.map(nanos),
        requests,
        give_up_ns: plan.give_up.map(nanos),
        patience_ns: nanos(plan.give_up.unwrap_or(PATIENCE)),
        spins: !matches!(plan.io, Io::Sim(_)) && spin::decide(plan, &addresses.0).spins,
        seed: plan.seed.wrapping_add(u64::from(index)),
        transcribe: plan.once,
    }
}

/// A duration in nanoseconds.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
