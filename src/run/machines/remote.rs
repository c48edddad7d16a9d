//! The workers of a run on other machines, as their supervisor sees them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use onrush_engine::{Control, WorkerEnd, WorkerLink};
use onrush_plan::machines::{Machines, OnLoss};
use onrush_plan::{Addresses, Plan};
use onrush_stats::Totals;

use super::channel::frame;
use super::coordinator::{Ask, Job, Rules, Told};
use super::hub::Hub;
use super::message::{Done, Order, PIECE, Prepared as Facts};
use super::token::Token;
use crate::run::crew::Crew;
use crate::run::snapshot::{Collector, Share};
use crate::run::{Choice, Ended, Interrupt, Observer, Outcome, Prepared, WorkerShare, nanos};

/// How often a wait looks whether a signal has come.
const WATCH: Duration = Duration::from_millis(20);
/// Up to so many machines, each sends ten rows a second; more send one.
const FEW: u32 = 20;
/// How long machines may take to end when they were told to.
const PATIENCE: Duration = Duration::from_secs(5);

/// The machines that carry out one run, or several one after the other.
pub struct Gathered {
    hub: Rc<Hub>,
    count: u32,
    on_loss: OnLoss,
}

/// One machine's part in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineShare {
    /// The name of the machine.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The backend that it used.
    pub backend: String,
    /// How many threads it had.
    pub threads: u32,
    /// How many processors it could use.
    pub processors: u32,
    /// The most connections that it could have.
    pub connections: u64,
    /// Requests it sent.
    pub started: u64,
    /// Complete responses it received.
    pub completed: u64,
    /// Failures of all kinds.
    pub failures: u64,
    /// How long its part took.
    pub elapsed: Duration,
    /// The share of a processor that its busiest thread took; `None`: unknown.
    pub busiest: Option<f64>,
    /// The shortest round trip to it.
    pub round_trip: Duration,
    /// How far its clock moved away from the coordinator's, in nanoseconds; `None`: unknown.
    pub drift_ns: Option<i64>,
    /// What limited its part, if that was the machine itself: the name of the verdict and the sentence.
    pub limit: Option<(String, String)>,
    /// Why it was lost, and when that was noticed, since measuring began; what it measured after its last row is missing.
    pub lost: Option<(String, Duration)>,
}

impl Gathered {
    /// Begins to listen for them.
    ///
    /// # Errors
    ///
    /// If the secret cannot be read or made, or nobody can listen at the address.
    pub fn listen(machines: &Machines) -> anyhow::Result<Self> {
        let token = Token::read_or_make(&machines.token_file)?;
        let rules = Rules { machines: machines.count, join: machines.join, loss: machines.loss };
        let hub = Rc::new(Hub::open(machines.address, token, rules)?);
        Ok(Self { hub, count: machines.count, on_loss: machines.on_loss })
    }

    /// Where they come to.
    pub fn address(&self) -> SocketAddr {
        self.hub.address
    }

    /// Waits until each machine has set its part of a plan up, and returns what a supervisor needs to carry it out, with when
    /// it begins. `None`: a signal came first.
    ///
    /// # Errors
    ///
    /// If a machine cannot set its part up, or too few have come.
    pub fn prepare(
        &mut self,
        plan: &Plan,
        interrupt: &Interrupt,
        observers: &mut [&mut dyn Observer],
    ) -> anyhow::Result<Option<(Prepared, Instant)>> {
        let row = row_length(plan, self.count, observers);
        let parts: Option<Vec<Plan>> = (0..self.count).map(|index| plan.share(index, self.count)).collect();
        let Some(parts) = parts else {
            bail!("-c {} is less than one connection for each of {} machines", plan.load.connections, self.count);
        };
        self.hub.ask(Ask::Prepare(Job { frames: frames(plan, &parts, row)?, row }));
        let (facts, ahead) = loop {
            if interrupt.is_asked() {
                return Ok(None);
            }
            match self.hub.hear(WATCH) {
                None | Some(Told::Row(..) | Told::Done(..)) => {}
                Some(Told::Ready(facts, ahead)) => break (facts, ahead),
                Some(Told::Hopeless(why) | Told::Lost(_, why)) => return Err(anyhow!(why)),
                Some(Told::Waiting { there, prepared }) => {
                    observers.iter_mut().for_each(|observer| observer.gathering(self.count, there, prepared));
                }
            }
        };
        let (choice, addresses) = common(&facts);
        observers.iter_mut().for_each(|observer| observer.resolved(&choice, &addresses));
        let ready = observers.iter_mut().map(|observer| observer.ready()).collect::<Option<Vec<_>>>();
        if ready.is_none() {
            return Ok(None);
        }
        let control: Arc<Control> = Arc::default();
        let mut threads = 0;
        let machines: Vec<Machine> = facts
            .iter()
            .zip(&parts)
            .map(|(facts, part)| {
                let of_machine = threads..threads + part.load.threads as usize;
                threads = of_machine.end;
                Machine::new(facts, of_machine, part)
            })
            .collect();
        let crew = Crew::Remote(Remote {
            hub: Rc::clone(&self.hub),
            machines,
            rows: VecDeque::new(),
            control: Arc::clone(&control),
            on_loss: self.on_loss,
            started: None,
            stopped: None,
            warm_up: plan.warmup,
        });
        let links = (0..threads).map(|_| Arc::<WorkerLink>::default()).collect();
        let start = Instant::now() + ahead;
        let prepared =
            Prepared { backend: choice.name, descriptors: None, control, links, crew, monitor: None, sockets: None };
        Ok(Some((prepared, start)))
    }
}

/// How long the rows are in which machines send what they measured.
fn row_length(plan: &Plan, machines: u32, observers: &[&mut dyn Observer]) -> Duration {
    let (second, tenth) = (Duration::from_secs(1), Duration::from_millis(100));
    let is_whole = |time: Duration| time.subsec_nanos() == 0;
    let ends = plan.stages().iter().all(|stage| is_whole(stage.until));
    let is_finer = observers.iter().filter_map(|observer| observer.row()).any(|row| !is_whole(row));
    if machines <= FEW || !ends || is_finer { tenth } else { second }
}

/// What each machine is sent: its part of the plan, and the files.
fn frames(plan: &Plan, parts: &[Plan], row: Duration) -> anyhow::Result<Vec<Vec<Arc<[u8]>>>> {
    let mut files: Vec<(String, u64)> = Vec::new();
    let mut pieces = Vec::new();
    for material in plan.materials() {
        let digest = material.sha256();
        if files.iter().all(|(known, _)| *known != digest) {
            let contents = material.contents()?;
            files.push((digest, contents.len() as u64));
            pieces.extend(contents.chunks(PIECE).map(|piece| frame(&Order::Piece(piece.to_vec()))));
        }
    }
    let row_ns = nanos(row);
    let of_part = |part: &Plan| {
        let order = Order::Prepare { plan: part.to_json()?, files: files.clone(), row_ns };
        Ok([frame(&order)].into_iter().chain(pieces.iter().cloned()).collect())
    };
    parts.iter().map(of_part).collect()
}

/// The backend of all machines, if it is the same, and the addresses that any of them uses.
fn common(facts: &[Facts]) -> (Choice, Addresses) {
    use onrush_engine::backend::{Backend, Epoll, Uring};
    let is_uring = facts.iter().all(|facts| facts.backend.0 == Uring::NAME);
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in facts.iter().flat_map(|facts| &facts.addresses) {
        if !addresses.contains(address) {
            addresses.push(*address);
        }
    }
    let name = if is_uring { Uring::NAME } else { Epoll::NAME };
    let reason = facts.first().map(|facts| facts.backend.1.clone()).unwrap_or_default();
    (Choice { name, reason: onrush_text::escape(reason.as_bytes()).to_string() }, Addresses(addresses))
}

/// The workers of a run on other machines.
pub struct Remote {
    hub: Rc<Hub>,
    machines: Vec<Machine>,
    rows: VecDeque<(Range<usize>, Box<Totals>)>,
    control: Arc<Control>,
    on_loss: OnLoss,
    started: Option<Instant>,
    /// When they were told to end.
    stopped: Option<Instant>,
    warm_up: Duration,
}

struct Machine {
    /// Its threads, among those of all machines.
    threads: Range<usize>,
    share: MachineShare,
    ends: Vec<Option<WorkerEnd>>,
    done: Option<Box<Done>>,
}

impl Machine {
    fn new(facts: &Facts, threads: Range<usize>, part: &Plan) -> Self {
        let escaped = |text: &str| onrush_text::escape(text.as_bytes()).to_string();
        let share = MachineShare {
            name: escaped(&facts.name),
            kernel: escaped(&facts.kernel),
            backend: escaped(&facts.backend.0),
            threads: facts.threads,
            processors: facts.processors,
            connections: part.load.max_inflight.into(),
            ..MachineShare::default()
        };
        Self { threads, share, ends: Vec::new(), done: None }
    }

    fn has_ended(&self) -> bool {
        self.done.is_some() || self.share.lost.is_some()
    }
}

impl Remote {
    /// Lets them begin at this moment.
    pub fn release(&mut self, start: Instant) {
        self.started = Some(start);
        self.hub.ask(Ask::Start(self.hub.at(start)));
    }

    /// Waits for this long, or until something is told.
    pub fn wait(&mut self, length: Duration) {
        if self.control.is_stopped() && self.stopped.is_none() {
            self.stopped = Some(Instant::now());
            self.hub.ask(Ask::Stop);
        }
        // Machines that do not end have nothing to add.
        if self.stopped.is_some_and(|stopped| stopped.elapsed() > PATIENCE) {
            for index in 0..self.machines.len() {
                if !self.machines[index].has_ended() {
                    self.lose(index, "it did not end when it was told to".to_owned());
                }
            }
        }
        let mut patience = length;
        while let Some(told) = self.hub.hear(patience) {
            patience = Duration::ZERO;
            match told {
                Told::Row(index, row) => self.take(index as usize, row),
                Told::Done(index, done, clocks) => {
                    let machine = &mut self.machines[index as usize];
                    machine.share.round_trip = Duration::from_nanos(clocks.trip_ns);
                    machine.share.drift_ns = clocks.drift_ns;
                    let is_early = matches!(done.ended, Ended::Signal | Ended::NeverBegun) && self.stopped.is_none();
                    machine.end(done);
                    // A script that fails on one of them would have ended the run on a single one, too.
                    if machine.is_broken() {
                        self.control.stop();
                    } else if is_early {
                        let why =
                            format!("machine {} ({}): it was told to end by a signal", index + 1, machine.share.name);
                        self.miss(index as usize, why);
                    }
                }
                Told::Lost(index, why) => self.lose(index as usize, why),
                Told::Hopeless(_) | Told::Ready(..) | Told::Waiting { .. } => {}
            }
        }
    }

    fn take(&mut self, index: usize, row: Box<Totals>) {
        let machine = &mut self.machines[index];
        machine.share.started += row.counters.started;
        machine.share.completed += row.counters.completed;
        machine.share.failures += row.ledger.totals().total();
        self.rows.push_back((machine.threads.clone(), row));
    }

    fn lose(&mut self, index: usize, why: String) {
        let machine = &mut self.machines[index];
        machine.ends = machine.threads.clone().map(|_| None).collect();
        self.miss(index, why);
        let share = &mut self.machines[index].share;
        share.elapsed = share.lost.as_ref().map_or(Duration::ZERO, |(_, at)| *at);
    }

    /// From now on a machine measures nothing.
    fn miss(&mut self, index: usize, why: String) {
        let passed = self.started.map(|started| started.elapsed().saturating_sub(self.warm_up));
        let machine = &mut self.machines[index];
        machine.share.lost = Some((why, passed.unwrap_or_default()));
        if self.on_loss == OnLoss::Stop {
            self.control.stop();
        }
    }

    fn of_thread(&self, index: usize) -> (&Machine, usize) {
        let at = self.machines.partition_point(|machine| machine.threads.end <= index);
        let machine = &self.machines[at];
        (machine, index - machine.threads.start)
    }

    /// Whether a thread has not ended.
    pub fn is_at_work(&self, index: usize) -> bool {
        !self.of_thread(index).0.has_ended()
    }

    /// The results of a thread, once, if its machine has ended; one that was lost leaves nothing.
    pub fn take_end(&mut self, index: usize) -> Option<WorkerEnd> {
        let at = self.machines.partition_point(|machine| machine.threads.end <= index);
        let machine = &mut self.machines[at];
        let place = index - machine.threads.start;
        machine.ends.get_mut(place)?.take()
    }

    /// The next row of what was measured, and the threads of the machine.
    pub fn take_row(&mut self) -> Option<(Range<usize>, Box<Totals>)> {
        self.rows.pop_front()
    }

    /// Whether every machine says that no first connection was accepted.
    pub fn was_refused(&self) -> bool {
        let is_refused =
            |machine: &Machine| machine.done.as_ref().is_some_and(|done| matches!(done.ended, Ended::Refused { .. }));
        self.machines.iter().all(is_refused)
    }

    /// Adds what is known of machines and not of their threads.
    pub(in crate::run) fn settle(self, outcome: &mut Outcome, collector: &mut Collector) {
        let mut beside = Some(Duration::ZERO);
        for machine in self.machines {
            let Machine { threads, share, done, .. } = machine;
            if let Some(done) = done {
                let first = threads.start;
                for (index, of_thread) in threads.zip(&done.shares) {
                    let WorkerShare { counters, activity, .. } = *of_thread;
                    collector.shares[index] = Share { counters, activity: activity.unwrap_or_default() };
                    outcome.workers[index] = *of_thread;
                }
                let stuck = done.stuck.iter().filter_map(|(thread, callback)| {
                    let known = onrush_engine::Callback::named(callback)?;
                    Some((first + *thread as usize + 1, known))
                });
                outcome.stuck.extend(stuck);
                outcome.breakdown = outcome.breakdown.take().or(done.breakdown);
                outcome.descriptors = outcome.descriptors.or(done.descriptors);
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

impl Machine {
    /// Whether its part broke off.
    fn is_broken(&self) -> bool {
        self.done.as_ref().is_some_and(|done| done.breakdown.is_some())
    }

    /// Takes what it says at its end.
    fn end(&mut self, mut done: Box<Done>) {
        let mut ends = std::mem::take(&mut done.ends);
        ends.resize_with(self.threads.len(), || None);
        self.ends = ends;
        let blank = WorkerShare { connections: 0, counters: onrush_stats::Counters::default(), activity: None };
        done.shares.resize(self.threads.len(), blank);
        self.share.elapsed = Duration::from_nanos(done.elapsed_ns);
        let load = |share: &WorkerShare| {
            share.activity.map(|activity| activity.cpu_ns() as f64 / activity.wall_ns.max(1) as f64)
        };
        self.share.busiest = done.shares.iter().filter_map(load).reduce(f64::max);
        let escaped = |text: String| onrush_text::escape(text.as_bytes());
        self.share.limit = done.limit.take().map(|(name, words)| (escaped(name), escaped(words)));
        self.done = Some(done);
    }
}
