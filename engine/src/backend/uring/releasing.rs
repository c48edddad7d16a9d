//! Takes connections out of the ring without closing them.
//!
//! Each connection has a receive in flight, which must end first. Otherwise it would take bytes meant for the next
//! backend.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::Duration;
use std::{io, thread};

use io_uring::types::{CancelBuilder, Timespec};
use rustix::io::Errno;

use super::names::{Operation, decode_operation_name, encode_operation_name};
use super::socket::{Mode, Socket};
use super::{END_NS, Uring};
use crate::backend::ConnId;

impl Uring {
    /// Cancels the pending receives of these connections and returns their sockets. Connections with other operations
    /// in flight or with new bytes stay. Queued operations are not submitted.
    pub(super) fn release_idle(&mut self, conns: &[ConnId]) -> Vec<(ConnId, OwnedFd)> {
        let turn = self.turn;
        let is_idle = |socket: &Socket| {
            let is_sent = socket.sending.as_ref().is_none_or(|sending| sending.has_ended(turn));
            is_sent && socket.behind.is_none() && socket.large == 0 && socket.mode != Mode::Leaving
        };
        let idle = conns.iter().copied().filter(|conn| is_idle(&self.sockets[conn.index()]));
        let mut released: HashSet<u32> = HashSet::new();
        let mut ending: HashSet<u32> = HashSet::new();
        for conn in idle.collect::<Vec<_>>() {
            match self.end_receive(conn) {
                Ok(true) => drop(ending.insert(conn.0)),
                Ok(false) => {}
                Err(_) => continue,
            }
            released.insert(conn.0);
        }
        let end_at = self.clock.now() + END_NS;
        loop {
            // The kernel reports ended receives.
            let _ = self.ring.enter_kernel(0);
            while let Some(entry) = self.ring.next_completion() {
                self.count_sent_bytes(&entry);
                let (conn, operation) = decode_operation_name(entry.user_data());
                let is_receive = [Operation::Receive, self.armed_operation()].contains(&operation);
                let is_present =
                    encode_operation_name(conn, self.sockets[conn.index()].generation, operation) == entry.user_data();
                if is_receive && is_present {
                    ending.remove(&conn.0);
                    if entry.result() != -Errno::CANCELED.raw_os_error() {
                        released.remove(&conn.0);
                    }
                }
            }
            if ending.is_empty() || self.clock.now() >= end_at {
                break;
            }
            thread::sleep(Duration::from_micros(100));
        }
        let released = conns.iter().filter(|conn| released.contains(&conn.0) && !ending.contains(&conn.0));
        released.filter_map(|&conn| Some((conn, self.sockets[conn.index()].fd.take()?))).collect()
    }

    /// Cancels a connection's receive. Returns false if the receive was not submitted yet or has already ended.
    fn end_receive(&self, conn: ConnId) -> io::Result<bool> {
        let Socket { generation, mode, .. } = self.sockets[conn.index()];
        let operation = if mode == Mode::Small { self.armed_operation() } else { Operation::Receive };
        let patience = Timespec::from(Duration::from_nanos(END_NS));
        let request = CancelBuilder::user_data(encode_operation_name(conn, generation, operation));
        match self.ring.submitter().register_sync_cancel(Some(patience), request) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
