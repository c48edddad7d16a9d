//! The queues shared with the kernel, and a backlog for operations beyond them.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, squeue};

/// Number of operations submitted by one call.
const ENTRIES: u32 = 4096;
/// Number of completions that the kernel can keep ready.
const COMPLETIONS: u32 = 16384;
/// `IORING_ENTER_GETEVENTS`: completions are wanted.
const ENTER_GETEVENTS: u32 = 1;

/// Operations on their way to the kernel, and completions on their way back.
pub struct Ring {
    uring: IoUring,
    /// Operations beyond [`ENTRIES`]: they follow within the same wait.
    backlog: VecDeque<squeue::Entry>,
    /// True if a wait can linger: wait for several completions in its first moments only.
    can_linger: bool,
}

impl Ring {
    /// Empty queues, usable only by the thread that made them.
    ///
    /// # Errors
    ///
    /// If the kernel has no io_uring, forbids it, or lacks a required feature.
    pub fn new() -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_cqsize(COMPLETIONS);
        let uring = builder.build(ENTRIES)?;
        Ok(Self { can_linger: uring.params().is_feature_min_timeout(), uring, backlog: VecDeque::new() })
    }

    /// Access to the kernel for registering resources.
    pub fn submitter(&self) -> Submitter<'_> {
        self.uring.submitter()
    }

    /// Queues an operation for the next wait.
    ///
    /// # Safety
    ///
    /// Everything the entry points to must outlive the operation.
    pub unsafe fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: guaranteed by the caller.
        if !self.backlog.is_empty() || !unsafe { self.queue(&entry) } {
            self.backlog.push_back(entry);
        }
    }

    /// Puts an operation into the queue. Returns false if the queue is full.
    ///
    /// # Safety
    ///
    /// As for [`Self::push`].
    unsafe fn queue(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { self.uring.submission().push(entry) }.is_ok()
    }

    /// Submits queue after queue until the backlog fits into one.
    pub fn submit_backlog(&mut self) {
        // If the kernel lacks memory or room for completions, it takes the rest once the engine has taken some
        // completions.
        while !self.backlog.is_empty() && self.uring.submit().is_ok() {
            while let Some(entry) = self.backlog.pop_front() {
                // SAFETY: guaranteed by the callers of `push`.
                if !unsafe { self.queue(&entry) } {
                    self.backlog.push_front(entry);
                    break;
                }
            }
        }
    }

    /// Number of operations in the queue.
    pub fn queued_count(&mut self) -> usize {
        self.uring.submission().len()
    }

    /// True if operations wait for room in the queue.
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Submits the queue without waiting. Returns the number of operations taken.
    pub fn submit(&self) -> io::Result<usize> {
        self.uring.submit()
    }

    /// Submits this many queued operations and lets the kernel do its work, without the timer that a wait would cost.
    pub fn enter_kernel(&mut self, queued: u32) -> io::Result<usize> {
        // SAFETY: no argument is passed, and all targets of operations outlive them, as the callers of `push`
        // guarantee.
        unsafe { self.uring.submitter().enter::<libc::sigset_t>(queued, 0, ENTER_GETEVENTS, None) }
    }

    /// Submits the queue and blocks for up to `ns` until there is a completion. From Linux 6.12 on, waits for `several`
    /// completions during the first `linger_ns`. Returns the part of `linger_ns` in which it could wait for several.
    pub fn submit_and_wait(&mut self, ns: u64, several: u32, linger_ns: u64) -> u64 {
        let timeout = Timespec::from(Duration::from_nanos(ns));
        let arguments = SubmitArgs::new().timespec(&timeout);
        // The kernel would linger past the end of the wait.
        let linger_us = (linger_ns.min(ns) / 1000) as u32;
        if linger_us > 0 && self.can_linger {
            let _ = self.uring.submitter().submit_with_args(several as usize, &arguments.min_wait_usec(linger_us));
            return u64::from(linger_us) * 1000;
        }
        let _ = self.uring.submitter().submit_with_args(1, &arguments);
        0
    }

    #[cfg(test)]
    pub fn can_linger(&self) -> bool {
        self.can_linger
    }

    pub fn has_completion(&mut self) -> bool {
        !self.uring.completion().is_empty()
    }

    /// True if entering the kernel again will bring more completions.
    pub fn has_more(&mut self) -> bool {
        let submission = self.uring.submission();
        submission.taskrun() || submission.cq_overflow()
    }

    /// Takes the next ready completion.
    pub fn next_completion(&mut self) -> Option<cqueue::Entry> {
        self.uring.completion().next()
    }

    /// True if the kernel has work or completions. Reads only shared memory, without a system call.
    pub fn has_work(&mut self) -> bool {
        self.queued_count() > 0 || self.has_more() || self.has_completion()
    }
}
