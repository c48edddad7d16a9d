//! A client's socket: what has arrived on it, and what the kernel did not take yet. It never waits.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg, shutdown, sockopt};

use super::stream::BLOCK;

/// A client's socket.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    /// The end of what was to be sent, which the kernel did not take yet.
    rest: Vec<u8>,
    /// Whether there may be something to receive.
    pub readable: bool,
    /// Whether the client said that it will send no more; it may still be receiving.
    half_closed: bool,
    /// Whether everything the client sent was received.
    pub ended: bool,
}

/// What became of bytes that were handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It took them.
    All,
    /// It has no room for the rest; an event tells when it has.
    Full,
    /// The other side has gone.
    Gone,
}

/// How many blocks one call hands to the kernel: 1 MiB.
const BLOCKS_PER_CALL: usize = 16;

impl Socket {
    /// A socket that was accepted.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, rest: Vec::new(), readable: false, half_closed: false, ended: false }
    }

    /// The socket, to watch it.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes note of an event.
    pub(super) fn note(&mut self, flags: EventFlags) {
        self.readable |= flags.contains(EventFlags::IN);
        self.half_closed |= flags.contains(EventFlags::RDHUP);
    }

    /// Appends what has arrived, as far as there is room. Returns whether the connection is still good.
    pub(super) fn receive(&mut self, input: &mut Vec<u8>) -> bool {
        let room = input.capacity() - input.len();
        if room == 0 {
            return true;
        }
        match recv(&self.fd, spare_capacity(input), RecvFlags::empty()) {
            Ok((_, 0)) => {
                self.ended = true;
                self.readable = false;
            }
            // Less than there was room for: that was all, and more makes a new event. The end of the stream makes none
            // if it was there already.
            Ok((_, bytes)) => self.readable = bytes == room || self.half_closed,
            Err(Errno::AGAIN) => self.readable = false,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
        true
    }

    /// Hands bytes to the kernel and keeps what it does not take.
    pub(super) fn send(&mut self, bytes: &[u8], flags: SendFlags) -> Sent {
        let sent = match send(&self.fd, bytes, flags | SendFlags::NOSIGNAL) {
            Ok(sent) if sent == bytes.len() => return Sent::All,
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return Sent::Gone,
        };
        self.rest = bytes[sent..].to_vec();
        Sent::Full
    }

    /// Hands over what the kernel did not take before, if there is any.
    pub(super) fn send_rest(&mut self) -> Sent {
        if self.rest.is_empty() {
            return Sent::All;
        }
        let rest = std::mem::take(&mut self.rest);
        self.send(&rest, SendFlags::empty())
    }

    /// Hands up to a megabyte of [`BLOCK`]s to the kernel, which are then no longer `left`.
    pub(super) fn send_blocks(&self, left: &mut u64) -> Sent {
        let mut blocks = [IoSlice::new(&BLOCK); BLOCKS_PER_CALL];
        let mut bytes = (BLOCKS_PER_CALL * BLOCK.len()) as u64;
        let mut count = BLOCKS_PER_CALL;
        if *left < bytes {
            count = left.div_ceil(BLOCK.len() as u64) as usize;
            let last = *left as usize - (count - 1) * BLOCK.len();
            blocks[count - 1] = IoSlice::new(&BLOCK[..last]);
            bytes = *left;
        }
        match sendmsg(&self.fd, &blocks[..count], &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(sent) => {
                *left -= sent as u64;
                if (sent as u64) < bytes { Sent::Full } else { Sent::All }
            }
            Err(Errno::AGAIN) => Sent::Full,
            // Nothing was sent: the next step tries again.
            Err(Errno::INTR) => Sent::All,
            Err(_) => Sent::Gone,
        }
    }

    /// Says that nothing more will be sent.
    pub(super) fn end(&self) {
        // It fails when the client is gone, which the next receive notices.
        let _ = shutdown(&self.fd, Shutdown::Write);
    }

    /// Has a RST be sent when it is closed.
    pub(super) fn reset(&self) {
        // Should it fail, the client gets a FIN instead, which is no answer either.
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }
}
