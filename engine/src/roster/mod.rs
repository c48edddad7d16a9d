//! The connections of one worker: its slots, the backend that they use, and the state of opening more.
//!
//! The roster starts no request. Every event on a connection ends in a [`Step`], which the loop takes. Its methods,
//! from the ground up: `occupancy` changes a slot's state, `handing_over` replaces a connection by another, `ending`
//! ends connections, `transport` sends, `setup` precedes the first request, `opening` opens, and `handling` takes the
//! events.

mod connecting;
mod ending;
mod handing_over;
mod handling;
mod occupancy;
mod opening;
mod setup;
mod socket_reader;
mod spare;
mod transport;

pub(super) use opening::{OPENED_MAX, opened_per_turn};
pub use spare::Spare;

use std::rc::Rc;
use std::sync::Arc;

use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::callbacks::Caller;
use crate::config::Config;
use crate::control::WorkerLink;
use crate::demand::Demand;
use crate::protocol::MakeProtocol;
use crate::routes::Routes;
use crate::slot::Slot;
use crate::timers::Timers;
use connecting::Connecting;
use socket_reader::SocketReader;

/// The connections of one worker.
pub(super) struct Roster<B: Backend> {
    pub config: Rc<Config>,
    pub backend: B,
    /// Slots ever needed, with room for all.
    pub slots: Vec<Slot>,
    /// All slots, by rank.
    pub order: Vec<ConnId>,
    /// Connections that may have more requests in flight because their predecessors have fewer.
    pub relieved: Vec<ConnId>,
    pub connecting: Connecting,
    /// Number of request places in back-off, because a request was turned away there.
    pub resting: u32,
    /// Connections whose connect or requests leave with the next wait.
    pub gathered: Vec<ConnId>,
    pub socket_reader: SocketReader,
    pub worker_link: Arc<WorkerLink>,
}

/// The parts of the engine that the roster uses to record results, set timers and pass responses to the script.
pub(super) struct Context<'a> {
    pub books: &'a mut Books,
    pub timers: &'a mut Timers,
    pub script: &'a mut Caller,
}

/// The loop's next step after an event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Step {
    /// No step.
    None,
    /// A connect has started.
    Connecting,
    /// Start due requests on the connection and send its output.
    Pump(ConnId),
    /// [`Self::Pump`] for the first time.
    Begin(ConnId),
}

impl<B: Backend> Roster<B> {
    /// A roster without connections.
    pub fn new(config: Rc<Config>, backend: B, make_protocol: MakeProtocol, worker_link: Arc<WorkerLink>) -> Self {
        let routes = Routes::new(&config.addresses, config.first_connection);
        // Stand-ins come after the initial connections and before later ones.
        let (first, most) = (config.demand.initial_connections(config.max_inflight), config.max_inflight);
        let ranks = (0..first).chain(most..config.slots());
        let mut slots = Vec::with_capacity(config.slots() as usize);
        slots.extend(ranks.map(|rank| Slot::new(rank, config.tls.as_ref())));
        let later = slots.len() as u32..config.slots();
        Self {
            slots,
            order: (0..first).chain(later).chain(first..first + config.stand_ins).map(ConnId).collect(),
            relieved: Vec::new(),
            connecting: Connecting::new(routes, config.tunnel.as_ref(), make_protocol, config.seed),
            resting: 0,
            gathered: Vec::new(),
            socket_reader: SocketReader::default(),
            config,
            backend,
            worker_link,
        }
    }

    /// True if a slot should have a connection.
    pub fn wants_connection(&self, conn: ConnId) -> bool {
        self.slots[conn.index()].rank < self.connecting.wanted
    }

    /// True if another connection may be opened when a due request waits for one.
    pub fn may_open_more(&self, books: &Books) -> bool {
        self.connecting.wanted < self.config.max_inflight
            // Requests that a server turns away are not tried on more connections.
            && self.resting == 0
            && matches!(self.config.demand, Demand::Growing(_))
            && self.connecting.routes.has_working_address()
            && books.tally.may_start()
    }
}
