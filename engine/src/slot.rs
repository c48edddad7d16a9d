//! A connection slot, which outlives its connections: when one ends, the slot opens the next.

use onrush_proto::Nanos;

use super::connection::Live;
use super::retry::Failures;
use super::routes::RouteId;
use super::tally::Tally;
use super::tls::{Config, Link};
use super::tunnel::Tunnel;
use crate::backend::ConnId;

/// One connection slot: its state, and what outlives its connections.
#[derive(Default)]
pub struct Slot {
    /// The state.
    pub state: State,
    /// The address of the current or last connection.
    pub route: RouteId,
    /// Failures since the last complete response.
    pub failures: Failures,
    /// Position among all slots: the first ones should have a connection.
    pub rank: u32,
    /// The slot of the connection that replaces this slot's, which only finishes its requests.
    pub successor: Option<ConnId>,
    /// Number of consecutive predecessors of this slot's connection that the server ended (GOAWAY) before any response.
    /// Passed on to the successor's slot.
    pub sent_away: u32,
    /// Number of requests in flight on the predecessors of this slot's connection.
    pub inherited: u32,
    /// Number of request places in back-off, because a request was turned away there; each has a timer. They outlast
    /// the connection.
    pub resting: u32,
    /// True if the slot has ever had a connection.
    pub lived: bool,
    /// True if a connection of this slot that could have had requests has ended.
    pub has_ended: bool,
    /// True if the slot had a connection since measuring began.
    pub is_counted: bool,
    /// Start of the last TLS handshake.
    pub handshake_at: Nanos,
    /// Time up to which the slot's states have been counted.
    pub counted_until: Nanos,
    /// Time in the measured window before the slot's first connection, in nanoseconds.
    pub absent_ns: u64,
    /// True if the slot is in the ready list.
    pub is_queued: bool,
    /// True if the slot is in the list of connections that send with the next wait.
    pub is_gathered: bool,
    /// The slot's pauses, if a script wants any. They outlast the connection: a pause that restarted with each
    /// connection might never end.
    pub pauses: Pauses,
    /// The TLS link, if TLS is used.
    pub link: Option<Box<Link>>,
}

/// The state of a slot.
#[derive(Default)]
pub enum State {
    /// Idle: not needed yet, or no longer.
    #[default]
    Parked,
    /// In the queue of slots to be opened.
    Queued,
    /// The connection is being established, since this moment.
    Connecting(Nanos),
    /// Connected to a proxy, with the tunnel requested.
    Tunnelling(Box<Tunnel>),
    /// The connection is established.
    Open(Box<Live>),
    /// The connection failed; the slot backs off before the next one.
    Waiting,
}

/// The pauses of a slot: one before each batch, for as many batches as may be in flight on its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Number of pauses in progress; each has a timer for its end.
    pub lasting: u32,
    /// Number of ended or empty pauses: as many batches may begin.
    pub over: u32,
}

impl Slot {
    /// A slot that has never had a connection. `tls`: makes the slot's link, if TLS is used.
    pub fn new(rank: u32, tls: Option<&Config>) -> Self {
        Self { rank, link: tls.map(|tls| Box::new(tls.link())), ..Self::default() }
    }

    /// The established connection; `None` while it is being set up, or if there is none.
    pub fn open_connection(&mut self) -> Option<&mut Live> {
        match &mut self.state {
            State::Open(live) => Some(live),
            State::Parked | State::Queued | State::Connecting(_) | State::Tunnelling(_) | State::Waiting => None,
        }
    }

    /// The connection, the streams still open on its predecessors, and the streams in back-off.
    pub fn connection_inherited_and_resting(&mut self) -> Option<(&mut Live, usize, usize)> {
        let (inherited, resting) = (self.inherited as usize, self.resting as usize);
        self.open_connection().map(|live| (live, inherited, resting))
    }

    /// True if the connection has had a response or has waited long enough for one, or if an earlier connection of the
    /// slot has ended.
    pub fn is_answered(&mut self) -> bool {
        self.has_ended || self.open_connection().is_some_and(|live| live.answered)
    }

    /// True if requests of the connection still wait for the first byte from the server.
    pub fn is_unanswered(&mut self) -> bool {
        !self.is_answered() && self.open_connection().is_some_and(|live| !live.open.is_empty())
    }

    /// Resets the slot's back-off if there have been complete responses beyond `completed`.
    pub fn forget_failures(&mut self, completed: u64, tally: &Tally) {
        if tally.completed > completed {
            self.failures.reset();
            self.sent_away = 0;
        }
    }

    /// Ends one of the pauses in progress, so that one more batch may begin.
    pub fn end_pause(&mut self) {
        self.pauses.lasting -= 1;
        self.pauses.over += 1;
    }

    /// True if a TLS handshake has begun and is not complete.
    pub fn is_shaking_hands(&self) -> bool {
        matches!(self.state, State::Connecting(_)) && self.link.as_ref().is_some_and(|link| link.has_begun())
    }

    /// Records that the transport accepted `n` more bytes. Returns the corresponding number of protocol bytes.
    pub fn on_accepted(&mut self, n: usize) -> usize {
        let plain = self.link.as_mut().map_or(n, |link| link.accepted(n));
        match &mut self.state {
            State::Open(live) => {
                live.on_accepted(plain);
                plain
            }
            _ => {
                self.on_accepted_in_setup(n);
                0
            }
        }
    }

    /// [`Self::on_accepted`] before the first request.
    #[cold]
    fn on_accepted_in_setup(&mut self, n: usize) {
        if let State::Tunnelling(tunnel) = &mut self.state {
            tunnel.handle_sent(n);
        }
    }
}
