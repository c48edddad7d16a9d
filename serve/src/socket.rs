//! A client's socket, with or without TLS: receives without blocking, and keeps output that the kernel has not taken.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg, shutdown, sockopt};

use super::sent::SendResult;
use super::stream::BLOCK;
use super::tls::{ReceiveResult, TlsSession};

/// A client's socket.
#[derive(Debug)]
pub(super) struct ClientSocket {
    fd: OwnedFd,
    tls: Option<TlsSession>,
    /// Output that the kernel has not taken.
    rest: Vec<u8>,
    /// True if there may be input to receive.
    pub readable: bool,
    /// True if the client has shut down its sending side; it may still receive.
    pub half_closed: bool,
    /// True if the end of the client's input was received.
    pub ended: bool,
}

/// Number of blocks per call to the kernel: 1 MiB in total.
const BLOCKS_PER_CALL: usize = 16;

impl ClientSocket {
    pub(super) fn new(fd: OwnedFd, tls: Option<TlsSession>) -> Self {
        Self { fd, tls, rest: Vec::new(), readable: false, half_closed: false, ended: false }
    }

    /// The socket, for polling.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Records what an event says about the socket.
    pub(super) fn record_event(&mut self, flags: EventFlags) {
        self.readable |= flags.contains(EventFlags::IN);
        self.half_closed |= flags.contains(EventFlags::RDHUP);
    }

    /// Appends received bytes to `input`, as far as its capacity allows. Returns false if the connection is broken.
    pub(super) fn receive_input(&mut self, input: &mut Vec<u8>) -> bool {
        let room = input.capacity() - input.len();
        if room == 0 {
            return true;
        }
        if let Some(tls) = &mut self.tls {
            return match tls.receive_decrypted(&self.fd, input, room) {
                ReceiveResult::Full => true,
                ReceiveResult::All => {
                    self.readable = false;
                    true
                }
                ReceiveResult::End => {
                    self.ended = true;
                    self.readable = false;
                    true
                }
                ReceiveResult::Broken => false,
            };
        }
        match recv(&self.fd, spare_capacity(input), RecvFlags::empty()) {
            Ok((_, 0)) => {
                self.ended = true;
                self.readable = false;
            }
            // Less than the available room: no more input has arrived, and new input causes a new event. An end of
            // stream that was already there causes no event.
            Ok((_, bytes)) => self.readable = bytes == room || self.half_closed,
            Err(Errno::AGAIN) => self.readable = false,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
        true
    }

    /// Hands bytes to the kernel, and keeps those that it does not take for [`Self::send_rest`]. Must not be called
    /// while bytes are kept.
    pub(super) fn send_bytes(&mut self, bytes: &[u8], flags: SendFlags) -> SendResult {
        if let Some(tls) = &mut self.tls {
            tls.encrypt_bytes(bytes);
            return tls.flush_encrypted(&self.fd);
        }
        let sent = match send(&self.fd, bytes, flags | SendFlags::NOSIGNAL) {
            Ok(sent) if sent == bytes.len() => return SendResult::All,
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return SendResult::Gone,
        };
        self.rest = bytes[sent..].to_vec();
        SendResult::Full
    }

    /// Hands over the kept bytes, if any.
    pub(super) fn send_rest(&mut self) -> SendResult {
        if let Some(tls) = &mut self.tls {
            return tls.flush_encrypted(&self.fd);
        }
        if self.rest.is_empty() {
            return SendResult::All;
        }
        let rest = std::mem::take(&mut self.rest);
        self.send_bytes(&rest, SendFlags::empty())
    }

    /// Hands up to 1 MiB of [`BLOCK`]s to the kernel, or one block with TLS, and subtracts the bytes taken from `left`.
    pub(super) fn send_blocks(&mut self, left: &mut u64) -> SendResult {
        if let Some(tls) = &mut self.tls {
            let here = (*left).min(BLOCK.len() as u64);
            tls.encrypt_bytes(&BLOCK[..here as usize]);
            *left -= here;
            return tls.flush_encrypted(&self.fd);
        }
        let mut blocks = [IoSlice::new(&BLOCK[..]); BLOCKS_PER_CALL];
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
                if (sent as u64) < bytes { SendResult::Full } else { SendResult::All }
            }
            Err(Errno::AGAIN) => SendResult::Full,
            // Nothing was sent; the next step tries again.
            Err(Errno::INTR) => SendResult::All,
            Err(_) => SendResult::Gone,
        }
    }

    /// Announces that nothing more will be sent, if the protocol can: TLS.
    pub(super) fn announce_end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.announce_end(&self.fd);
        }
    }

    /// Shuts down the sending side, after announcing it; input can still be received.
    pub(super) fn shut_down_sending(&mut self) {
        self.announce_end();
        // This fails if the client has gone, which the next receive detects.
        let _ = shutdown(&self.fd, Shutdown::Write);
    }

    /// Makes the kernel send an RST when the socket is closed.
    pub(super) fn reset_on_close(&self) {
        // If this fails, the client gets a FIN, which is not a response either.
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }
}
