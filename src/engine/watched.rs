//! A look at the sockets of a few connections, ten times a second: what the network does to them.

use onrush_proto::Nanos;

use super::Engine;
use super::slot::State;
use crate::backend::{Backend, ConnId};
use crate::stats::{Sockets, TcpInfo};

/// How many connections of a worker are looked at, one at a time.
const WATCHED: u32 = 4;

/// The connections that are looked at, and what they said last.
#[derive(Debug, Default)]
pub(super) struct Watched {
    next: u32,
    last: [Option<Reading>; WATCHED as usize],
}

/// What a connection said.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Nanos,
    info: TcpInfo,
}

impl<B: Backend> Engine<B> {
    /// Looks at the next one of the watched connections, if it is there.
    pub(super) fn look_at_a_socket(&mut self, now: Nanos) {
        let connections = self.settings.max_inflight;
        let watched = WATCHED.min(connections).max(1);
        let turn = self.watched.next % watched;
        self.watched.next = turn + 1;
        // They are as far apart as they can be.
        let number = (u64::from(turn) * u64::from(connections) / u64::from(watched)) as u32;
        let Some(State::Open(live)) = self.slots.get(number as usize).map(|slot| &slot.state) else { return };
        let Some(info) = self.backend.tcp_info(ConnId(number)) else { return };
        let before = self.watched.last[turn as usize].replace(Reading { at: now, info });
        // One that has sent less than before is another connection in the same slot.
        let before = before.filter(|before| before.info.segments_sent <= info.segments_sent);
        let before = before.map(|before| (before.info, now.since(before.at) / 1_000));
        let sockets = &mut self.books.tally.interval.sockets;
        sockets.read(before, &info);
        if let Some(request) = live.open.front() {
            sockets.in_flight += 1;
            sockets.half_answered += u64::from(request.status.is_some());
        }
    }

    /// Takes note of what the watched connections have done, which does not count.
    pub(super) fn forget_sockets(&mut self, now: Nanos) {
        (0..WATCHED).for_each(|_| self.look_at_a_socket(now));
        self.books.tally.interval.sockets = Sockets::default();
    }
}
