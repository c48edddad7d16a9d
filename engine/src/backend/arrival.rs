//! Kernel receive timestamps: arrival times of bytes, however late they are read.
//!
//! The kernel timestamps with the wall clock, which may be set at any time. After each wait, [`Arrivals`] measures the
//! wall clock's offset from the run's clock. It rejects the timestamps of a wait during which the wall clock was set. A
//! timestamp lies between the last moment at which everything had been reported and the moment the bytes were noticed:
//! bytes that the network reordered arrived before they could be read.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, OwnedFd};

use onrush_proto::Nanos;
use rustix::io::Errno;

use super::Clock;
use super::alarm::Alarm;
use super::clock::wall_ns;
use super::socket::set_socket_option;

/// Bytes that the kernel writes before those of an armed receive: a header and the control message.
pub const PREFACE_BYTES: usize = HEADER_BYTES + CONTROL_BYTES;
/// The header: the four numbers of `struct io_uring_recvmsg_out`.
const HEADER_BYTES: usize = 16;
/// The control message with the timestamp: its own header and a `timespec`.
const CONTROL_BYTES: usize = size_of::<libc::cmsghdr>() + size_of::<libc::timespec>();
/// From this size on, the bytes of a receive have piled up: a peer that sends several such amounts must wait until they
/// are read.
const PILE_BYTES: usize = 8_000;
/// Reciprocal of the largest relative change in speed while the wall clock is being adjusted.
const SLEWED: u64 = 500;
/// Largest difference between two clock comparisons, in nanoseconds, if neither clock was set.
const NOISE_NS: u64 = 2_000;

/// Converts kernel receive timestamps to the run's clock.
pub struct Arrivals {
    clock: Clock,
    /// Ends the gathering sleeps; `None`: no gathering.
    alarm: Option<Alarm>,
    /// The message header of armed receives, for the kernel.
    form: Box<libc::msghdr>,
    /// Lead of the wall clock over the run's clock.
    ahead_ns: i64,
    /// False if the wall clock was set since the previous wait.
    is_steady: bool,
    /// Time at which the current completions were noticed.
    reaped_at: Nanos,
    /// True if nothing else had arrived by `reaped_at`.
    has_all: bool,
    /// Everything that arrived before this time has been reported.
    reported_until: Nanos,
    /// The timestamp of the last receive, in nanoseconds of the wall clock; `None`: it had none.
    timestamp_ns: Option<u64>,
    /// True if the last bytes had a trustworthy timestamp.
    are_known: bool,
    /// True if the current completions were gathered.
    has_gathered: bool,
    /// True if the completions of the next wait will be gathered.
    gathers: bool,
    /// Receives gathered without a trustworthy timestamp, since the last [`Self::take_untimestamped`].
    untimestamped: u64,
    /// True if so many bytes arrived at once that a peer may have to wait until they are read.
    piles_up: bool,
}

impl Arrivals {
    /// The state before anything has arrived.
    pub fn new(clock: Clock) -> Self {
        // SAFETY: zeros are a message header without name, bytes and control messages.
        let mut form = Box::new(unsafe { MaybeUninit::<libc::msghdr>::zeroed().assume_init() });
        form.msg_controllen = CONTROL_BYTES as _;
        let now = clock.now();
        Self {
            clock,
            alarm: Alarm::new(clock).ok(),
            form,
            ahead_ns: wall_ns().wrapping_sub(now.0) as i64,
            is_steady: true,
            reaped_at: now,
            has_all: false,
            reported_until: now,
            timestamp_ns: None,
            are_known: false,
            has_gathered: false,
            gathers: false,
            untimestamped: 0,
            piles_up: false,
        }
    }

    /// The message header of armed receives, for the kernel.
    pub fn message_header(&self) -> *const libc::msghdr {
        &raw const *self.form
    }

    /// Sleeps until a moment and gathers arrivals. Does nothing unless the last receive was timestamped, nothing else
    /// has arrived, and no peer waits for its data to be read. Returns true if it slept.
    pub fn sleep_and_gather(&mut self, until: Nanos, next: Nanos) -> bool {
        if !self.has_all || !self.are_known || self.piles_up {
            return false;
        }
        let Some(alarm) = &mut self.alarm else { return false };
        self.gathers = alarm.sleep_until(until, next).is_ok();
        self.gathers
    }

    /// Number of receives gathered without a trustworthy timestamp since the last call.
    pub fn take_untimestamped(&mut self) -> u64 {
        mem::take(&mut self.untimestamped)
    }

    /// Compares the clocks after a wait. `had_all`: everything noticed by the previous wait has been reported;
    /// `has_all`: nothing else has arrived. Returns the time.
    pub fn compare_clocks(&mut self, had_all: bool, has_all: bool) -> Nanos {
        if had_all && self.has_all {
            self.reported_until = self.reaped_at;
        }
        self.has_all = has_all;
        self.has_gathered = mem::take(&mut self.gathers);
        // In this order, a delay between the two readings makes a latency longer, never shorter.
        let look = || (wall_ns(), self.clock.now());
        let ahead_ns = |(wall_ns, now): (u64, Nanos)| wall_ns.wrapping_sub(now.0) as i64;
        let limit_ns = NOISE_NS + self.clock.now().since(self.reaped_at) / SLEWED;
        let is_steady = |look| self.ahead_ns.abs_diff(ahead_ns(look)) <= limit_ns;
        let mut last = look();
        if !is_steady(last) {
            // The thread may have been preempted between the two clocks.
            last = look();
        }
        self.is_steady = is_steady(last);
        self.ahead_ns = ahead_ns(last);
        self.reaped_at = last.1;
        last.1
    }

    /// Records an arrival without a free buffer. The next wait, which must not gather, is followed by its report.
    pub fn record_missing_buffer(&mut self) {
        (self.has_all, self.are_known) = (false, false);
    }

    /// Receives bytes and the timestamp of the last byte.
    pub fn receive_timestamped(&mut self, fd: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut control = Control([0; CONTROL_BYTES]);
        let mut bytes = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let (msg_iov, msg_control) = (&raw mut bytes, control.0.as_mut_ptr().cast());
        // Some C libraries have additional fields in the header.
        let mut message = *self.form;
        (message.msg_iov, message.msg_iovlen, message.msg_control) = (msg_iov, 1, msg_control);
        // SAFETY: everything the message points to outlives the call and has the stated length.
        let result = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0) };
        let n = usize::try_from(result).map_err(|_| last_error())?;
        self.timestamp_ns = timestamp_ns(&control.0);
        Ok(n)
    }

    /// Takes the preface written by an armed receive.
    pub fn take_preface(&mut self, preface: &[u8]) {
        self.timestamp_ns = timestamp_in_preface_ns(preface);
    }

    /// Arrival time of the last `n` received bytes, which were noticed at `noticed`.
    pub fn arrival_time(&mut self, noticed: Nanos, n: usize) -> Nanos {
        self.piles_up |= n >= PILE_BYTES;
        let timestamp_ns = self.timestamp_ns.take().filter(|_| self.is_steady);
        self.are_known = timestamp_ns.is_some();
        let Some(timestamp_ns) = timestamp_ns else {
            self.untimestamped += u64::from(self.has_gathered);
            return noticed;
        };
        let at = Nanos((timestamp_ns as i64).wrapping_sub(self.ahead_ns).max(0) as u64);
        at.max(self.reported_until).min(noticed)
    }
}

/// Switches kernel receive timestamps on for a socket.
pub fn enable_timestamps(fd: &OwnedFd) {
    // If this fails, nothing gets a timestamp.
    set_socket_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
}

/// The timestamp in a preface, in nanoseconds of the wall clock; `None`: there is none.
fn timestamp_in_preface_ns(preface: &[u8]) -> Option<u64> {
    let (header, control) = preface.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_ne_bytes(*header.get(4..)?.first_chunk()?) as usize;
    timestamp_ns(control.get(..length)?)
}

fn last_error() -> Errno {
    io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// A control message for the kernel to write.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// The timestamp in a control message of 64-bit systems, in nanoseconds of the wall clock; `None`: there is none.
fn timestamp_ns(control: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u32::from_ne_bytes(*control.get(at..)?.first_chunk()?));
    let number = |at: usize| Some(u64::from_ne_bytes(*control.get(at..)?.first_chunk()?));
    let is_timestamp = (word(8)?, word(12)?) == (libc::SOL_SOCKET as u32, libc::SCM_TIMESTAMPNS as u32);
    let (seconds, ns) = (number(16)?, number(24)?);
    is_timestamp.then(|| seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    const KIND: u32 = libc::SCM_TIMESTAMPNS as u32;

    /// Header and control message of bytes received at 7.000000005 s.
    fn preface(length: u32, kind: u32) -> Vec<u8> {
        let words = [0, length, 13, 0, CONTROL_BYTES as u32, 0, libc::SOL_SOCKET as u32, kind, 7, 0, 5, 0];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn timestamps_are_read_from_control_messages() {
        let whole = preface(CONTROL_BYTES as u32, KIND);
        assert_eq!(whole.len(), PREFACE_BYTES);
        assert_eq!(timestamp_in_preface_ns(&whole), Some(7_000_000_005));
        assert_eq!(timestamp_in_preface_ns(&whole[..PREFACE_BYTES - 1]), None);
        assert_eq!(timestamp_in_preface_ns(&preface(0, KIND)), None, "the kernel wrote none");
        assert_eq!(timestamp_in_preface_ns(&preface(CONTROL_BYTES as u32, KIND + 1)), None, "it wrote something else");
    }

    /// Two waits after which everything had been reported.
    fn waited() -> (Arrivals, Nanos, Nanos) {
        let mut arrivals = Arrivals::new(Clock::start());
        let first = arrivals.compare_clocks(true, true);
        thread::sleep(Duration::from_millis(2));
        let second = arrivals.compare_clocks(true, true);
        (arrivals, first, second)
    }

    /// Reaps the next arrivals; true if they are gathered.
    fn gathers(arrivals: &mut Arrivals) -> bool {
        let now = arrivals.clock.now();
        let gathers = arrivals.sleep_and_gather(now, now + 1);
        arrivals.compare_clocks(true, true);
        gathers
    }

    /// Arrival time of bytes timestamped this long before the end of the last wait.
    fn at(arrivals: &mut Arrivals, before_ns: i64, n: usize) -> Nanos {
        let reaped_at = arrivals.reaped_at;
        arrivals.timestamp_ns = Some((reaped_at.0 as i64 + arrivals.ahead_ns - before_ns) as u64);
        arrivals.arrival_time(reaped_at, n)
    }

    #[test]
    fn arrival_times_are_clamped_to_the_last_report() {
        let (mut arrivals, first, second) = waited();
        assert_eq!(at(&mut arrivals, 1_000_000, 100), Nanos(second.0 - 1_000_000));
        assert_eq!(at(&mut arrivals, -1, 100), second, "they are noticed by then");
        assert_eq!(at(&mut arrivals, 1_000_000_000, 100), first, "they could not be read before");
        assert!(gathers(&mut arrivals));
        assert_eq!(arrivals.arrival_time(Nanos::MAX, 100), Nanos::MAX, "it has no timestamp");
        assert_eq!(arrivals.take_untimestamped(), 1);
        assert!(!gathers(&mut arrivals));
    }

    #[test]
    fn timestamps_are_rejected_after_wall_clock_changes() {
        for step_ns in [-1_000_000, 1_000_000] {
            let (mut arrivals, _, _) = waited();
            arrivals.ahead_ns += step_ns;
            arrivals.compare_clocks(true, true);
            assert_eq!(at(&mut arrivals, 100, 100), arrivals.reaped_at);
            assert_eq!(arrivals.take_untimestamped(), 0, "nothing was gathered");
            assert!(!gathers(&mut arrivals));
            arrivals.compare_clocks(true, true);
            assert_eq!(at(&mut arrivals, 0, 100), arrivals.reaped_at);
            assert!(gathers(&mut arrivals), "after that they are gathered again");
        }
    }

    #[test]
    fn bytes_without_buffers_keep_their_arrival_time() {
        let (mut arrivals, first, second) = waited();
        at(&mut arrivals, 0, 100);
        arrivals.record_missing_buffer();
        assert!(!arrivals.sleep_and_gather(second, second + 1), "it must not wait for the end of another slice");
        arrivals.compare_clocks(true, true);
        assert_eq!(at(&mut arrivals, 1_000_000_000, 100), first);
    }

    #[test]
    fn piled_up_bytes_end_gathering() {
        let (mut arrivals, _, _) = waited();
        at(&mut arrivals, 0, PILE_BYTES);
        at(&mut arrivals, 0, 100);
        assert!(!gathers(&mut arrivals));
    }
}
