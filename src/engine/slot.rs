//! One connection slot, which outlives its connections: when one ends, the slot opens the next.

use onrush_proto::Nanos;

use super::connection::Live;
use super::retry::Failures;
use super::routes::RouteId;
use super::tls::{Config, Link};
use super::tunnel::Tunnel;

/// One connection slot.
#[derive(Default)]
pub struct Slot {
    /// What it is doing.
    pub state: State,
    /// Where its present or last connection goes.
    pub route: RouteId,
    /// Its failures since the last complete response.
    pub failures: Failures,
    /// Whether it ever had a connection.
    pub lived: bool,
    /// Whether it had one since measuring began.
    pub is_counted: bool,
    /// When its last TLS handshake began.
    pub handshake_at: Nanos,
    /// Up to when its time has been counted.
    pub counted_until: Nanos,
    /// Its time within the window without ever having had a connection, in nanoseconds.
    pub absent_ns: u64,
    /// Whether it is in the list of those that are ready for a request.
    pub is_queued: bool,
    /// Whether it may begin a batch, where a script wants pauses. One goes on where the server ends the connection meanwhile:
    /// beginning anew, it might never be over.
    pub pause: Pause,
    /// Its way to speak TLS, if it does.
    pub link: Option<Box<Link>>,
}

/// What a slot is doing.
#[derive(Default)]
pub enum State {
    /// Nothing: not needed yet, or not any more.
    #[default]
    Parked,
    /// It is in the queue of those that are to be opened.
    Queued,
    /// Its connection is being made, since then.
    Connecting(Nanos),
    /// Its connection leads to a proxy, which has been asked for a tunnel.
    Tunnelling(Box<Tunnel>),
    /// Its connection is there.
    Open(Box<Live>),
    /// Its connection failed; the next one is made later.
    Waiting,
}

/// Whether a slot has to ask before it begins a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pause {
    /// It has not asked yet.
    #[default]
    Unasked,
    /// It pauses until then.
    Until(Nanos),
    /// It has paused, or need not.
    Over,
}

impl Slot {
    /// A slot without a connection.
    pub fn new(tls: Option<&Config>) -> Self {
        Self { link: tls.map(|tls| Box::new(tls.link())), ..Self::default() }
    }

    /// Its connection, if it is there.
    pub fn live(&mut self) -> Option<&mut Live> {
        match &mut self.state {
            State::Open(live) => Some(live),
            State::Parked | State::Queued | State::Connecting(_) | State::Tunnelling(_) | State::Waiting => None,
        }
    }

    /// The pause is over at this moment, unless that was an earlier one.
    pub fn end_pause(&mut self, due: Nanos) {
        if self.pause == Pause::Until(due) {
            self.pause = Pause::Over;
        }
    }

    /// Whether the handshake of its connection has begun and is not complete.
    pub fn is_shaking_hands(&self) -> bool {
        matches!(self.state, State::Connecting(_)) && self.link.as_ref().is_some_and(|link| link.has_begun())
    }

    /// The transport accepted `n` more bytes, before the first request.
    #[cold]
    pub fn accepted_before(&mut self, n: usize) {
        if let State::Tunnelling(tunnel) = &mut self.state {
            tunnel.handle_sent(n);
        }
    }
}
