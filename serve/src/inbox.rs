//! Wakeups for the connections of a thread: sent by any thread, handled by this one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::token::PollToken;

/// The connections of a thread that other connections' events have woken.
#[derive(Debug)]
pub(super) struct Inbox {
    called: Mutex<Vec<WakeCall>>,
    /// Readable when the inbox is not empty.
    bell: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WakeCall {
    /// Token of the connection to wake.
    pub token: PollToken,
    /// The exchange to wake, if the connection has several; `None` wakes all.
    pub exchange: Option<usize>,
}

/// Wakes a connection, from any thread.
#[derive(Clone, Debug)]
pub(super) struct ConnectionWaker {
    /// Inbox of the thread that serves the connection.
    pub inbox: Arc<Inbox>,
    /// The wakeup to send.
    pub call: WakeCall,
}

impl Inbox {
    /// An empty inbox.
    ///
    /// # Errors
    /// Fails if no descriptor is available.
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { called: Mutex::default(), bell })
    }

    /// A descriptor to poll, which becomes readable when a wakeup arrives.
    pub(super) fn bell_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub(super) fn take_calls(&self) -> Vec<WakeCall> {
        // Clear the bell first: a wakeup that arrives in between rings it again. If the bell is silent, the read fails
        // and nothing is lost.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WakeCall>> {
        // A list is always consistent, even if another thread panicked.
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionWaker {
    /// Wakes the connection: its thread will give it a turn.
    pub(super) fn send_wakeup(&self) {
        let mut called = self.inbox.lock();
        called.push(self.call);
        if called.len() == 1 {
            // The counter is read before it could overflow, so the write cannot fail.
            let _ = rustix::io::write(&self.inbox.bell, &1u64.to_ne_bytes());
        }
    }
}
