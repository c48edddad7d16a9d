//! Gathers the machines that run a plan together, and gives each its part.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::token::Token;
use anyhow::anyhow;
use onrush_engine::backend::{Backend, Epoll, Uring};
use onrush_engine::{Control, WorkerLink};
use onrush_plan::Plan;
use onrush_plan::machines::{Machines, OnLoss};
use onrush_text::error_reason;

use super::gathering::Gathering;
use super::machines::message::{CoordinatorMessage, PIECE, WorkerSetup as Facts};
use super::machines::{
    CoordinatorEvent, CoordinatorRequest, CoordinatorRules, CoordinatorServer, OwnWorker, Remote, RemoteMachine,
    WorkerJobs, encode_frame,
};
use super::threads::NotStarted;
use super::workers::Workers;
use super::{Choice, Interrupt, Observer, Prepared, nanos};
use crate::resolve::Addresses;

/// Time between two checks for a signal while waiting.
const WATCH: Duration = Duration::from_millis(20);
/// Up to this many machines, each machine sends ten rows a second and is announced when it joins; above, each sends one
/// row a second.
const FEW: u32 = 20;

/// The machines of one run or of several consecutive runs.
pub struct Gathered {
    server: Rc<CoordinatorServer>,
    count: u32,
    on_loss: OnLoss,
    /// True after the first wait for the machines.
    has_gathered: bool,
    /// Dropped after the server, which dismisses this worker.
    _own: Option<OwnWorker>,
}

impl Gathered {
    /// Starts to listen for the machines.
    ///
    /// # Errors
    ///
    /// Fails if the secret cannot be read or created, or the address cannot be listened on.
    pub fn start_listening(machines: &Machines) -> anyhow::Result<Self> {
        let token = Token::read_or_make(&machines.token_file)?;
        let rules = CoordinatorRules { machines: machines.count, join: machines.join, loss: machines.loss };
        let server = Rc::new(CoordinatorServer::open(machines.address, token, rules)?);
        let own = OwnWorker::start(machines)
            .map_err(|error| anyhow!("cannot start this machine's own worker: {}", error_reason(&error)))?;
        Ok(Self { server, count: machines.count, on_loss: machines.on_loss, has_gathered: false, _own: own })
    }

    /// Waits until each machine has set up its part of a plan. Returns the prepared run and its start; `None` if a
    /// signal came first or an observer cancelled the run.
    ///
    /// # Errors
    ///
    /// Fails if a machine cannot set up its part, or too few machines joined.
    pub fn prepare_run(
        &mut self,
        plan: &Plan,
        interrupt: &Interrupt,
        observers: &mut [&mut dyn Observer],
    ) -> anyhow::Result<Option<(Prepared, Instant)>> {
        let row = row_length(plan, self.count, observers);
        // A run of a search may have fewer connections or requests than machines.
        let parts: Vec<Plan> = (0..self.count).map_while(|index| plan.share(index, self.count)).collect();
        let mut frames = encode_jobs(plan, &parts, row)?;
        frames.resize(self.count as usize, Vec::new());
        self.server.send_request(CoordinatorRequest::Prepare(WorkerJobs { frames, row }));
        // With many machines, report the progress at each tenth of them.
        let step = |count: u32| if self.count <= FEW { count } else { count * 10 / self.count };
        let mut told = None;
        let mut tell = |observers: &mut [&mut dyn Observer], there, prepared| {
            let now = Some((step(there), step(prepared)));
            if std::mem::replace(&mut told, now) == now {
                return;
            }
            let gathering = Gathering { address: self.server.address, machines: self.count, there, prepared };
            observers.iter_mut().for_each(|observer| observer.on_gathering(&gathering));
        };
        // Only the first run of a search waits for machines.
        let is_first = !std::mem::replace(&mut self.has_gathered, true);
        if is_first {
            tell(observers, 0, 0);
        }
        let (facts, ahead) = loop {
            if interrupt.is_requested() {
                return Ok(None);
            }
            match self.server.next_event(WATCH) {
                None | Some(CoordinatorEvent::Row(..) | CoordinatorEvent::Done(..)) => {}
                Some(CoordinatorEvent::Ready(facts, ahead)) => break (facts, ahead),
                Some(CoordinatorEvent::Refused(why)) => {
                    observers.iter_mut().for_each(|observer| observer.on_machine_message(&why))
                }
                Some(CoordinatorEvent::Hopeless(why, true)) => return Err(anyhow!(why)),
                Some(CoordinatorEvent::Hopeless(why, false) | CoordinatorEvent::Lost(_, why)) => {
                    return Err(NotStarted::Machines(why).into());
                }
                Some(CoordinatorEvent::Waiting { there, prepared }) if is_first => tell(observers, there, prepared),
                Some(CoordinatorEvent::Waiting { .. }) => {}
            }
        };
        let (facts, trips): (Vec<Facts>, Vec<Duration>) = facts.into_iter().unzip();
        let (choice, addresses) = merge_setups(&facts);
        observers.iter_mut().for_each(|observer| observer.on_resolved(&choice, &addresses));
        let ready = observers.iter_mut().map(|observer| observer.on_ready()).collect::<Option<Vec<_>>>();
        if ready.is_none() {
            return Ok(None);
        }
        let control: Arc<Control> = Arc::default();
        let mut threads = 0;
        let machines: Vec<RemoteMachine> = facts
            .iter()
            .zip(trips)
            .zip(parts)
            .map(|((facts, trip), part)| {
                let of_machine = threads..threads + part.load.threads as usize;
                threads = of_machine.end;
                RemoteMachine::new(facts, trip, of_machine, part)
            })
            .collect();
        let server = Rc::clone(&self.server);
        let workers = Workers::Remote(Remote::new(
            server,
            machines,
            Arc::clone(&control),
            self.on_loss,
            (plan.warmup, plan.stop.duration.map(|duration| duration + plan.run_on)),
        ));
        let links = (0..threads).map(|_| Arc::<WorkerLink>::default()).collect();
        let start = Instant::now() + ahead;
        let prepared =
            Prepared { backend: choice.name, descriptors: None, control, links, workers, monitor: None, sockets: None };
        Ok(Some((prepared, start)))
    }
}

/// Length of the rows that machines send: a tenth of a second, or a whole one if there are many machines.
fn row_length(plan: &Plan, machines: u32, observers: &[&mut dyn Observer]) -> Duration {
    let (second, tenth) = (Duration::from_secs(1), Duration::from_millis(100));
    let is_whole = |time: Duration| time.subsec_nanos() == 0;
    let ends = plan.stages().iter().all(|stage| is_whole(stage.until));
    let is_finer = observers.iter().filter_map(|observer| observer.first_row_max()).any(|row| !is_whole(row));
    if machines <= FEW || !ends || is_finer { tenth } else { second }
}

/// The frames to send to each machine: its part of the plan, then all files of the plan, each of them once.
fn encode_jobs(plan: &Plan, parts: &[Plan], row: Duration) -> anyhow::Result<Vec<Vec<Arc<[u8]>>>> {
    let mut files: Vec<(String, u64)> = Vec::new();
    let mut pieces = Vec::new();
    for file in plan.files() {
        let digest = file.sha256();
        if files.iter().all(|(known, _)| *known != digest) {
            let contents = file.contents()?;
            files.push((digest, contents.len() as u64));
            pieces.extend(contents.chunks(PIECE).map(|piece| encode_frame(&CoordinatorMessage::Piece(piece.to_vec()))));
        }
    }
    let row_ns = nanos(row);
    let of_part = |part: &Plan| {
        let order = CoordinatorMessage::Prepare { plan: part.to_json()?, files: files.clone(), row_ns };
        Ok([encode_frame(&order)].into_iter().chain(pieces.iter().cloned()).collect())
    };
    parts.iter().map(of_part).collect()
}

/// Backend to report, io_uring only if all machines use it, and the addresses that any machine uses.
fn merge_setups(facts: &[Facts]) -> (Choice, Addresses) {
    let is_uring = facts.iter().all(|facts| facts.backend.0 == Uring::NAME);
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in facts.iter().flat_map(|facts| &facts.addresses) {
        if !addresses.contains(address) {
            addresses.push(*address);
        }
    }
    let name = if is_uring { Uring::NAME } else { Epoll::NAME };
    let reason = facts.first().map(|facts| facts.backend.1.clone()).unwrap_or_default();
    (Choice { name, reason: onrush_text::escape(reason.as_bytes()) }, Addresses(addresses))
}
