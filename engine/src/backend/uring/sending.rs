//! Sending.
//!
//! A small send that fits the socket buffer finishes during submission and posts no completion (`MSG_DONTWAIT`,
//! silent): nothing wakes up for it, and its bytes are free after the next wait. Large sends, and the refused part of a
//! small one, are sent the usual way: the kernel waits for room and reports the end.

use io_uring::{cqueue, opcode, squeue};
use onrush_proto::Transmit;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::Uring;
use super::message::Message;
use super::names::{Operation, decode_operation_name, encode_operation_name};
use crate::backend::socket::send_some;
use crate::backend::{ConnId, What};

/// Larger sends wait for room from the start.
const SILENT_MAX: usize = 16 * 1024;

/// A send that the kernel may still read or refuse.
pub struct Sending {
    bytes: Transmit,
    /// Number of bytes accepted so far.
    start: usize,
    /// True if all bytes were reported to the engine as accepted.
    is_told: bool,
    /// The turn in which the silent send was queued; `None`: the send is not silent.
    silent_in: Option<u32>,
    /// Length of the preceding silent send, whose refusal may be reported after this one was queued.
    before: usize,
}

impl Sending {
    fn new(bytes: Transmit) -> Self {
        Self { bytes, start: 0, is_told: false, silent_in: None, before: 0 }
    }

    /// True if the send may take long.
    pub(super) fn may_take_long(&self) -> bool {
        self.silent_in.is_none()
    }

    /// True if the send is silent and was submitted in an earlier turn: it was accepted, or refused with a completion
    /// that has been seen or is about to be.
    pub(super) fn has_ended(&self, turn: u32) -> bool {
        self.silent_in.is_some_and(|silent_in| silent_in != turn)
    }
}

impl Uring {
    /// Sends bytes. Returns the number that the engine may count as accepted.
    pub(super) fn start_send(&mut self, conn: ConnId, bytes: Transmit) -> usize {
        let (turn, length) = (self.turn, bytes.len());
        let socket = &mut self.sockets[conn.index()];
        let Some(fd) = &socket.fd else { return 0 };
        socket.delay.before_send(fd, length);
        if socket.sending.as_ref().is_some_and(|sending| !sending.has_ended(turn)) {
            // Nothing may overtake bytes that the kernel could not take yet.
            socket.behind = Some(Box::new(bytes));
            self.behind.push(conn);
            return 0;
        }
        let before = socket.sending.as_ref().map_or(0, |sending| sending.bytes.len());
        let Some(in_one) = bytes.contiguous_bytes().filter(|_| length <= SILENT_MAX) else {
            self.send_rest(conn, Sending { before, ..Sending::new(bytes) });
            return 0;
        };
        let entry = self.send_operation(conn, in_one, libc::MSG_DONTWAIT);
        self.push_operation(entry.flags(squeue::Flags::SKIP_SUCCESS), conn, Operation::SendSilently);
        self.taken.add_silent_send(length);
        let sending = Sending { is_told: true, silent_in: Some(turn), before, ..Sending::new(bytes) };
        self.sockets[conn.index()].sending = Some(sending);
        length
    }

    fn send_rest(&mut self, conn: ConnId, sending: Sending) {
        let entry = match sending.bytes.contiguous_bytes() {
            Some(bytes) => self.send_operation(conn, &bytes[sending.start..], 0),
            None => self.send_slices(conn, sending.bytes.slices_from(sending.start)),
        };
        self.sockets[conn.index()].sending = Some(Sending { silent_in: None, ..sending });
        self.push_operation(entry, conn, Operation::Send);
        self.taken.add_reporting_send();
    }

    fn send_operation(&self, conn: ConnId, bytes: &[u8], flags: libc::c_int) -> squeue::Entry {
        let most = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let flags = flags | libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        opcode::Send::new(self.file(conn), bytes.as_ptr(), most).flags(flags).build()
    }

    fn send_slices(&mut self, conn: ConnId, slices: Vec<&[u8]>) -> squeue::Entry {
        let file = self.file(conn);
        let message = Message::of(slices);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let entry = opcode::SendMsg::new(file, message.header()).flags(flags as u32).build();
        self.messages.push(message);
        entry
    }

    /// If the completion is that of a send, counts the bytes that the kernel took or, after a silent send, refused.
    pub(super) fn count_sent_bytes(&mut self, entry: &cqueue::Entry) {
        let (conn, operation) = decode_operation_name(entry.user_data());
        let (n, socket) = (usize::try_from(entry.result()).unwrap_or(0), &self.sockets[conn.index()]);
        match (operation, &socket.sending) {
            (Operation::Send, _) => self.taken.on_send_reported(n),
            (Operation::SendSilently, Some(sending))
                if encode_operation_name(conn, socket.generation, operation) == entry.user_data() =>
            {
                let is_it = sending.has_ended(self.turn);
                self.taken.on_send_refused(if is_it { sending.bytes.len() } else { sending.before }, n);
            }
            (Operation::SendSilently, _) => self.taken.on_send_refused_after_close(entry.user_data(), n),
            _ => {}
        }
    }

    /// Handles a silent send that was refused in whole or in part: the rest is sent next. Another send may already be
    /// on its way, because bytes were received before the refusal was seen. Then the order is lost, and the connection
    /// fails.
    pub(super) fn on_silent_send_refused(&mut self, conn: ConnId, outcome: Result<usize, Errno>) -> Option<What> {
        let socket = &self.sockets[conn.index()];
        if socket.sending.as_ref().is_some_and(|sending| sending.has_ended(self.turn)) {
            return self.on_sent(conn, outcome);
        }
        if let Some(fd) = &socket.fd {
            let _ = shutdown(fd, Shutdown::Both);
        }
        Some(What::Sent(Err(outcome.err().filter(|errno| *errno != Errno::AGAIN).unwrap_or(Errno::CONNABORTED))))
    }

    /// Handles the completion of a send. The rest of an incomplete send is sent next. If the engine already counts the
    /// send as accepted, only a failure is reported.
    pub(super) fn on_sent(&mut self, conn: ConnId, outcome: Result<usize, Errno>) -> Option<What> {
        let mut sending = self.sockets[conn.index()].sending.take()?;
        let is_told = sending.is_told;
        let taken = if outcome == Err(Errno::AGAIN) { Ok(0) } else { outcome };
        if let Ok(n) = taken {
            sending.start += n;
            if sending.start < sending.bytes.len() {
                self.send_rest(conn, sending);
            } else {
                self.send_behind(conn);
            }
        }
        if is_told { taken.err().map(|errno| What::Sent(Err(errno))) } else { Some(What::Sent(taken)) }
    }

    /// Sends the bytes that were queued behind an earlier send.
    fn send_behind(&mut self, conn: ConnId) {
        if let Some(bytes) = self.sockets[conn.index()].behind.take() {
            self.send_rest(conn, Sending::new(*bytes));
        }
    }

    /// Sends the bytes that were queued behind silent sends, once those have ended.
    pub(super) fn send_after_silent(&mut self) {
        for conn in std::mem::take(&mut self.behind) {
            let socket = &self.sockets[conn.index()];
            match &socket.sending {
                Some(sending) if sending.has_ended(self.turn) => self.send_behind(conn),
                // The bytes behind cannot be submitted yet.
                Some(sending) if sending.silent_in.is_some() => self.behind.push(conn),
                // The end of the send will be reported; only then do the bytes behind it follow.
                Some(_) | None => {}
            }
        }
    }

    /// Sends bytes without waiting, unless other bytes are on their way to the kernel.
    pub(super) fn send_now(&mut self, conn: ConnId, bytes: &[u8]) {
        let socket = &self.sockets[conn.index()];
        let is_free = socket.sending.as_ref().is_none_or(|sending| sending.has_ended(self.turn));
        if let Some(fd) = socket.fd.as_ref().filter(|_| is_free) {
            // No completion is needed for these.
            self.taken.add_accepted_bytes(send_some(fd, bytes).unwrap_or(0));
        }
    }

    /// Keeps a connection's unfinished send as long as the kernel may read it. Returns the send if it is still queued.
    pub(super) fn abandon_send(&mut self, conn: ConnId) -> Option<Transmit> {
        let socket = &mut self.sockets[conn.index()];
        socket.behind = None;
        let sending = socket.sending.take()?;
        let (silently, length) =
            (encode_operation_name(conn, socket.generation, Operation::SendSilently), sending.bytes.len());
        if sending.before > 0 && !sending.has_ended(self.turn) {
            self.taken.on_connection_closed(silently, sending.before, self.turn.wrapping_sub(1));
        }
        if let Some(turn) = sending.silent_in {
            self.taken.on_connection_closed(silently, length, turn);
            return (turn == self.turn).then_some(sending.bytes);
        }
        self.orphans.insert(encode_operation_name(conn, socket.generation, Operation::Send), sending.bytes);
        None
    }
}
