//! Reads the sockets of a few connections ten times a second, for their network state.

use onrush_proto::Nanos;
use onrush_stats::{SocketStats, TcpInfo};

use super::Roster;
use crate::backend::{Backend, ConnId};
use crate::books::Books;
use crate::connection::Live;
use crate::slot::State;

/// Number of a worker's connections that are read, one at a time.
const CONNECTIONS: u32 = 4;

/// The connection whose turn it is, and the last readings of each.
#[derive(Debug, Default)]
pub struct SocketReader {
    next: u32,
    last: [Option<Reading>; CONNECTIONS as usize],
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    conn: ConnId,
    generation: u32,
    at: Nanos,
    info: TcpInfo,
}

impl<B: Backend> Roster<B> {
    /// Reads the next of the chosen connections, if it is open.
    pub fn read_next_socket(&mut self, books: &mut Books, now: Nanos) {
        let turn = self.socket_reader.next % CONNECTIONS;
        self.socket_reader.next = turn + 1;
        let Some((conn, live)) = self.nth_open(turn) else { return };
        let is_in_flight = !live.open.is_empty();
        let is_half_answered = live.open.iter().any(|request| request.status.is_some());
        let Some((generation, info)) = self.backend.tcp_info(conn) else { return };
        let reading = Reading { conn, generation, at: now, info };
        let before = self.socket_reader.last[turn as usize].replace(reading);
        let before = before.filter(|before| (before.conn, before.generation) == (conn, generation));
        let before = before.map(|before| (before.info, now.since(before.at) / 1_000));
        let sockets = &mut books.tally.interval.sockets;
        sockets.record_reading(before, &info);
        sockets.in_flight += u64::from(is_in_flight);
        sockets.half_answered += u64::from(is_half_answered);
    }

    /// The first open connection in part `part` of the slots. If more connections may be opened later, the last slots
    /// are empty, so the parts divide the slots used first.
    fn nth_open(&self, part: u32) -> Option<(ConnId, &Live)> {
        let first = u64::from(self.config.demand.initial_connections(self.config.max_inflight));
        let from = (u64::from(part) * first / u64::from(CONNECTIONS)) as usize;
        let until = (u64::from(part + 1) * first / u64::from(CONNECTIONS)) as usize;
        self.slots.get(from..until)?.iter().zip(from..).find_map(|(slot, number)| match &slot.state {
            State::Open(live) => Some((ConnId(number as u32), &**live)),
            _ => None,
        })
    }

    /// Reads the chosen connections without counting the readings.
    pub fn forget_sockets(&mut self, books: &mut Books, now: Nanos) {
        (0..CONNECTIONS).for_each(|_| self.read_next_socket(books, now));
        books.tally.interval.sockets = SocketStats::default();
    }
}
