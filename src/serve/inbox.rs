//! The calls for the connections of a thread, which any thread makes and this one answers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::token::PollToken;

/// The connections of a thread that are to get a turn because of events on others.
#[derive(Debug)]
pub(super) struct Inbox {
    called: Mutex<Vec<WakeCall>>,
    /// Readable when there are any.
    bell: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WakeCall {
    /// The connection.
    pub token: PollToken,
    /// Which of its exchanges is concerned, if it has several at a time; `None`: all.
    pub exchange: Option<usize>,
}

/// How to call a connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionWaker {
    /// The inbox of its thread.
    pub inbox: Arc<Inbox>,
    /// The message.
    pub call: WakeCall,
}

impl Inbox {
    /// An empty inbox.
    ///
    /// # Errors
    /// Descriptors ran out.
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { called: Mutex::default(), bell })
    }

    /// Becomes readable with a call; to be polled.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub(super) fn take(&self) -> Vec<WakeCall> {
        // The bell first: it rings again for a call that comes in between. If it is silent, this fails, and nothing is
        // lost.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<WakeCall>> {
        // A list is always consistent, even if another thread panicked.
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionWaker {
    /// Makes the thread of the connection give it a turn.
    pub(super) fn call(&self) {
        let mut called = self.inbox.lock();
        called.push(self.call);
        if called.len() == 1 {
            // A counter that is read before it is written again cannot overflow, so this cannot fail.
            let _ = rustix::io::write(&self.inbox.bell, &1u64.to_ne_bytes());
        }
    }
}
