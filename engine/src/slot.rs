//! One connection slot, which outlives its connections: when one ends, the slot opens the next.

use onrush_proto::Nanos;

use super::connection::Live;
use super::retry::Failures;
use super::routes::RouteId;
use super::tally::Tally;
use super::tls::{Config, Link};
use super::tunnel::Tunnel;
use crate::backend::ConnId;

/// One connection slot.
#[derive(Default)]
pub struct Slot {
    /// Its state.
    pub state: State,
    /// The address of its current or last connection.
    pub route: RouteId,
    /// Its failures since the last complete response.
    pub failures: Failures,
    /// Its place among all slots: the first ones should have a connection.
    pub rank: u32,
    /// The slot of the connection that takes the place of its own, which only finishes its requests.
    pub successor: Option<ConnId>,
    /// Successive connections of this slot that were sent away before they had a response.
    pub sent_away: u32,
    /// How many requests are in flight on the connections whose place its own takes.
    pub inherited: u32,
    /// In how many places for requests none may start yet, because one was turned away there: there is a timer for
    /// each. They outlast the connection.
    pub resting: u32,
    /// True if it ever had a connection.
    pub lived: bool,
    /// True if a connection of it that could have requests has ended.
    pub has_ended: bool,
    /// True if it had a connection since measuring began.
    pub is_counted: bool,
    /// When its last TLS handshake began.
    pub handshake_at: Nanos,
    /// Until when its time has been counted.
    pub counted_until: Nanos,
    /// Its time in the window without ever having had a connection, in nanoseconds.
    pub absent_ns: u64,
    /// True if in the list of ready connections.
    pub is_queued: bool,
    /// True if in the list of connections that send with the next wait.
    pub is_gathered: bool,
    /// Its pauses, if a script wants any. They outlast the connection: if one began again with the next, it might never
    /// end.
    pub pauses: Pauses,
    /// Its TLS link, if TLS is used.
    pub link: Option<Box<Link>>,
}

/// The state of a slot.
#[derive(Default)]
pub enum State {
    /// Idle: not needed yet, or not any more.
    #[default]
    Parked,
    /// In the queue of slots to be opened.
    Queued,
    /// Its connection is being established, since this moment.
    Connecting(Nanos),
    /// Connected to a proxy that was asked for a tunnel.
    Tunnelling(Box<Tunnel>),
    /// Its connection is established.
    Open(Box<Live>),
    /// Its connection failed, and it backs off before the next one.
    Waiting,
}

/// The pauses of a slot, which has one before each batch, for as many batches as may be in flight on its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// How many last: there is a timer for the end of each.
    pub lasting: u32,
    /// How many are over, or were none: as many batches may begin.
    pub over: u32,
}

impl Slot {
    /// A slot without a connection.
    pub fn new(rank: u32, tls: Option<&Config>) -> Self {
        Self { rank, link: tls.map(|tls| Box::new(tls.link())), ..Self::default() }
    }

    /// Its connection, if it is established.
    pub fn live(&mut self) -> Option<&mut Live> {
        match &mut self.state {
            State::Open(live) => Some(live),
            State::Parked | State::Queued | State::Connecting(_) | State::Tunnelling(_) | State::Waiting => None,
        }
    }

    /// The connection, the streams still open on its predecessors, and the streams in back-off.
    pub fn live_and_taken(&mut self) -> Option<(&mut Live, usize, usize)> {
        let (inherited, resting) = (self.inherited as usize, self.resting as usize);
        self.live().map(|live| (live, inherited, resting))
    }

    /// True if a request on it has ended, in whatever way.
    pub fn is_answered(&mut self) -> bool {
        self.has_ended || self.live().is_some_and(|live| live.answered)
    }

    /// True if its requests still wait for the first byte from the server.
    pub fn is_unanswered(&mut self) -> bool {
        !self.is_answered() && self.live().is_some_and(|live| !live.open.is_empty())
    }

    /// Resets its back-off if there has been a complete response since there were `completed`.
    pub fn forget_failures(&mut self, completed: u64, tally: &Tally) {
        if tally.completed > completed {
            self.failures.forget();
            self.sent_away = 0;
        }
    }

    /// Ends a pause.
    pub fn end_pause(&mut self) {
        self.pauses.lasting -= 1;
        self.pauses.over += 1;
    }

    /// True if its connection's TLS handshake has begun and is not complete.
    pub fn is_shaking_hands(&self) -> bool {
        matches!(self.state, State::Connecting(_)) && self.link.as_ref().is_some_and(|link| link.has_begun())
    }

    /// The transport accepted `n` more bytes. Returns how many bytes of the protocol they are.
    pub fn accepted(&mut self, n: usize) -> usize {
        let plain = self.link.as_mut().map_or(n, |link| link.accepted(n));
        match &mut self.state {
            State::Open(live) => {
                live.accepted(plain);
                plain
            }
            _ => {
                self.accepted_before(n);
                0
            }
        }
    }

    /// [`Self::accepted`] before the first request.
    #[cold]
    fn accepted_before(&mut self, n: usize) {
        if let State::Tunnelling(tunnel) = &mut self.state {
            tunnel.handle_sent(n);
        }
    }
}
