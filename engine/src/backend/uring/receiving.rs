//! Receiving, in one of two modes.
//!
//! * *Small*: one receive stays armed and completes for whatever arrives.
//! * *Large*: one receive takes the head of a response; the next discards the rest inside the kernel, or receives it in
//!   large pieces.
//!
//! A large body turns small into large: the armed receive is cancelled, and after its last completion nothing else
//! reads the socket. A response that is not large leads back to small.
//!
//! Where other frames come between large bodies, as over HTTP/2, small is also *wide*: the armed receive takes large
//! buffers. Large buffers are few: a wide connection that finds none left, and did not need one last time, stops being
//! wide.
//!
//! A new connection starts large. The armed receive and the entry in the kernel's socket table only pay if the
//! connection outlasts one response.

use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::Uring;
use super::buffers::{self, Buffers};
use super::names::{Operation, encode_operation_name};
use super::socket::{Ended, Large, Mode};
use crate::backend::socket::DISCARDED_AT_ONCE;
use crate::backend::{ConnId, What};

/// Largest number of bytes discarded by one operation.
const DISCARD_MAX: u64 = 1 << 30;
/// `IORING_RECVSEND_POLL_FIRST`: nothing can have arrived yet, so the kernel need not check before it waits.
const POLL_FIRST: u16 = 1;

impl Uring {
    /// Starts receiving on a new connection.
    pub(super) fn receive_first(&mut self, conn: ConnId) {
        if self.arrivals.is_some() {
            // The first response needs a timestamp, like all others.
            self.prepare_for_reuse(conn);
        }
        self.receive(conn);
    }

    /// Starts the receive according to the connection's mode.
    pub(super) fn receive(&mut self, conn: ConnId) {
        let socket = &mut self.sockets[conn.index()];
        socket.is_busy = true;
        let (mode, large, what) = (socket.mode, socket.large, socket.what);
        let most = if what == Large::Unwanted { DISCARDED_AT_ONCE } else { buffers::LARGE_BYTES as u32 };
        let waits = socket.fd.as_ref().is_some_and(|fd| socket.threshold.before_receive(fd, large, most));
        let armed_group = if socket.is_wide { buffers::LARGE } else { buffers::SMALL };
        let (fd, nowhere) = (self.file(conn), std::ptr::null_mut());
        match mode {
            Mode::Large if large > 0 && what == Large::Unwanted => {
                let (most, waits) = (large.min(DISCARD_MAX) as u32, if waits { POLL_FIRST } else { 0 });
                let entry = opcode::Recv::new(fd, nowhere, most).flags(libc::MSG_TRUNC).ioprio(waits).build();
                self.push_operation(entry, conn, Operation::Discard);
            }
            Mode::Large => {
                let group = if large > 0 { buffers::LARGE } else { buffers::SMALL };
                let entry = opcode::Recv::new(fd, nowhere, 0).buf_group(group).ioprio(POLL_FIRST).build();
                self.push_operation(entry.flags(squeue::Flags::BUFFER_SELECT), conn, Operation::Receive);
            }
            Mode::Small | Mode::Leaving => {
                let entry = match &self.arrivals {
                    Some(arrivals) => opcode::RecvMsgMulti::new(fd, arrivals.message_header(), armed_group).build(),
                    None => opcode::RecvMulti::new(fd, armed_group).build(),
                };
                self.push_operation(entry, conn, self.armed_operation());
            }
        }
    }

    /// The operation used for an armed receive.
    pub(super) fn armed_operation(&self) -> Operation {
        if self.arrivals.is_some() { Operation::Timestamped } else { Operation::Armed }
    }

    /// Prepares a connection for more than one response.
    pub(super) fn prepare_for_reuse(&mut self, conn: ConnId) {
        self.sockets[conn.index()].mode = Mode::Small;
        self.enter_table(conn);
    }

    /// Handles the end of a receive, or bytes of an armed one.
    pub(super) fn on_received(
        &mut self,
        conn: ConnId,
        outcome: Result<usize, Errno>,
        place: Option<(u16, usize)>,
        is_armed: bool,
    ) -> Option<What> {
        let socket = &mut self.sockets[conn.index()];
        let mode = socket.mode;
        socket.is_busy = is_armed;
        if mode == Mode::Leaving && !is_armed {
            socket.mode = Mode::Large;
        }
        if let Ok(n @ 1..) = outcome {
            // Bytes that arrived before the cancellation are part of the body.
            socket.large = socket.large.saturating_sub(n as u64);
            socket.needs_large = place.map_or(0, |(_, start)| start) + n >= buffers::SMALL_BYTES;
        }
        if !is_armed {
            let ended = if place.is_some_and(|(id, _)| Buffers::is_large(id)) { Ended::Body } else { Ended::Head };
            self.resume = Some((conn, ended));
        }
        // The armed receive ended because it was cancelled or because all buffers were full. Another one follows.
        let is_pause = outcome == Err(Errno::NOBUFS) || (outcome == Err(Errno::CANCELED) && mode == Mode::Leaving);
        if is_pause {
            if outcome == Err(Errno::NOBUFS) {
                socket.is_wide &= socket.needs_large;
                if let Some(arrivals) = &mut self.arrivals {
                    arrivals.record_missing_buffer();
                }
            }
            self.resume_receive();
            return None;
        }
        if !matches!(outcome, Ok(1..)) {
            self.resume = None;
        }
        self.received = place.map(|(id, start)| (id, start..start + outcome.unwrap_or(0)));
        Some(What::Received(outcome))
    }

    /// Handles the end of a discard, which may have discarded nothing.
    pub(super) fn on_discarded(&mut self, conn: ConnId, outcome: Result<usize, Errno>) -> What {
        let socket = &mut self.sockets[conn.index()];
        socket.is_busy = false;
        match outcome {
            Ok(n @ 1..) => {
                socket.large -= n as u64;
                self.resume = Some((conn, Ended::Body));
                What::Discarded(n)
            }
            end => What::Received(end),
        }
    }

    /// Receives or discards the next `n` bytes in large pieces, from when small receives have ended.
    pub(super) fn prepare_large_body(&mut self, conn: ConnId, n: u64, what: Large) {
        let socket = &mut self.sockets[conn.index()];
        (socket.large, socket.what) = (n, what);
        if socket.mode != Mode::Small {
            return;
        }
        if self.resume.is_some_and(|(resumed, _)| resumed == conn) {
            socket.mode = Mode::Large;
            return;
        }
        socket.mode = Mode::Leaving;
        let armed = encode_operation_name(conn, self.sockets[conn.index()].generation, self.armed_operation());
        self.push_operation(opcode::AsyncCancel::new(armed).build(), conn, Operation::Cancel);
    }

    /// Returns the buffer of the last received bytes to the kernel.
    pub(super) fn give_back(&mut self) {
        if let Some((id, _)) = self.received.take() {
            self.buffers.give_back(id);
        }
        self.resume_receive();
    }

    /// Continues after a receive or discard, now that the engine has handled its end.
    fn resume_receive(&mut self) {
        let Some((conn, ended)) = self.resume.take() else { return };
        let socket = &mut self.sockets[conn.index()];
        if ended == Ended::Head && socket.mode == Mode::Large && socket.large == 0 {
            // The response was not large.
            self.prepare_for_reuse(conn);
        }
        if self.sockets[conn.index()].fd.is_some() {
            self.receive(conn);
        }
    }
}
