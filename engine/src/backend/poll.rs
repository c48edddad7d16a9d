//! An epoll instance that waits as precisely as a timer.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// An epoll instance. Events of all descriptors added to it must have data other than `u64::MAX`.
#[derive(Debug)]
pub struct Poll {
    fd: OwnedFd,
    /// Replaces nanosecond timeouts where the kernel has none: before Linux 5.11, or where a filter forbids them.
    timer: Option<OwnedFd>,
}

const OF_TIMER: u64 = u64::MAX;

impl Poll {
    /// An instance without descriptors.
    ///
    /// # Errors
    ///
    /// If the kernel provides no instance, for instance because descriptors have run out.
    pub fn new() -> Result<Self, Errno> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let shortest = Timespec { tv_sec: 0, tv_nsec: 1 };
        match epoll::wait(&fd, spare_capacity(&mut Vec::with_capacity(1)), Some(&shortest)) {
            Err(Errno::NOSYS | Errno::PERM) => Self::with_timer(fd),
            _ => Ok(Self { fd, timer: None }),
        }
    }

    fn with_timer(fd: OwnedFd) -> Result<Self, Errno> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        epoll::add(&fd, &timer, EventData::new_u64(OF_TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { fd, timer: Some(timer) })
    }

    /// Waits until there are events, up to the capacity of `events`, or the timeout expires; `None`: no timeout.
    ///
    /// # Errors
    ///
    /// [`Errno::INTR`] if a signal came.
    pub fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> Result<(), Errno> {
        events.clear();
        // A timeout too long for the kernel is the same as none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let Some(timer) = &self.timer else {
            return epoll::wait(&self.fd, spare_capacity(events), timeout.as_ref()).map(drop);
        };
        let Some(left) = timeout else { return self.wait_in_ms(events, -1) };
        let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
        if left != nothing {
            let setting = Itimerspec { it_interval: nothing, it_value: left };
            timerfd_settime(timer, TimerfdTimerFlags::empty(), &setting)?;
        }
        self.wait_in_ms(events, if left == nothing { 0 } else { -1 })?;
        events.retain(|event| event.data.u64() != OF_TIMER);
        Ok(())
    }

    /// [`Self::wait`] for every kernel, with a timeout in milliseconds; -1: no limit.
    fn wait_in_ms(&self, events: &mut Vec<Event>, timeout_ms: i32) -> Result<(), Errno> {
        let room = i32::try_from(events.capacity()).unwrap_or(i32::MAX);
        // SAFETY: rustix's events have the layout of the kernel's. The kernel writes no more events than there is room
        // for.
        let count = unsafe { libc::epoll_wait(self.fd.as_raw_fd(), events.as_mut_ptr().cast(), room, timeout_ms) };
        let Ok(count) = usize::try_from(count) else {
            return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
        };
        // SAFETY: the kernel has written this many events.
        unsafe { events.set_len(count) };
        Ok(())
    }
}

impl AsFd for Poll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn waits_end_on_time_with_either_timeout() {
        let with_timer = Poll::with_timer(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap()).unwrap();
        for poll in [Poll::new().unwrap(), with_timer] {
            let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            epoll::add(&poll, &bell, EventData::new_u64(7), EventFlags::IN | EventFlags::ET).unwrap();
            let mut events = Vec::with_capacity(4);
            for us in [0, 300, 2_500, 300] {
                let (timeout, began) = (Duration::from_micros(us), Instant::now());
                poll.wait(&mut events, Some(timeout)).unwrap();
                assert!(events.is_empty() && began.elapsed() >= timeout, "{us} {:?}", began.elapsed());
            }
            // Other processes may occupy the processor, but not every time.
            let wait = || {
                let began = Instant::now();
                poll.wait(&mut Vec::with_capacity(4), Some(Duration::from_micros(100))).unwrap();
                began.elapsed()
            };
            let shortest = (0..1_000).map(|_| wait()).find(|took| *took < Duration::from_micros(900));
            assert!(shortest.is_some(), "it is not rounded up to whole milliseconds");
            rustix::io::write(&bell, &1_u64.to_ne_bytes()).unwrap();
            for timeout in [Some(Duration::from_secs(100)), Some(Duration::ZERO)] {
                poll.wait(&mut events, timeout).unwrap();
                let seen: Vec<u64> = events.iter().map(|event| event.data.u64()).collect();
                assert_eq!(seen, if timeout == Some(Duration::ZERO) { vec![] } else { vec![7] });
            }
            rustix::io::write(&bell, &1_u64.to_ne_bytes()).unwrap();
            poll.wait(&mut events, Some(Duration::MAX)).unwrap();
            assert_eq!(events.len(), 1);
        }
    }
}
