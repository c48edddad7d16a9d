//! Sockets for a load generator: non-blocking, close-on-exec, and without Nagle's delay once that matters.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType, bind, ipproto, recv,
    send, sendmsg, shutdown, socket_with, sockopt,
};

use onrush_plan::SocketOptions;
use onrush_proto::Transmit;
use onrush_stats::TcpInfo;
use onrush_stats::buffers::{BufferSizes, Sizes};

/// Checks that connections can use an address of this machine as their source, by binding a socket to it.
pub fn try_source(address: IpAddr) -> Result<(), Errno> {
    bind_to_source(&open(family(address))?, address)
}

/// Checks that connections to `address` can use the congestion control `name`: the kernel supports it and permits its
/// use. Connects to nothing.
pub fn try_congestion(address: IpAddr, name: &str) -> Result<(), Errno> {
    sockopt::set_tcp_congestion(open(family(address))?, name)
}

/// The socket family for an address.
pub fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// An unconnected stream socket of this family, non-blocking and close-on-exec.
pub fn open(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let protocol = if family == AddressFamily::UNIX { None } else { Some(ipproto::TCP) };
    socket_with(family, SocketType::STREAM, flags, protocol)
}

/// Binds a socket to a source address. The kernel chooses the port once it knows the destination, so that one port can
/// be used for several targets.
pub fn bind_to_source(fd: &OwnedFd, address: IpAddr) -> Result<(), Errno> {
    // A kernel without the option chooses the port now.
    set_socket_option(fd, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1);
    bind(fd, &SocketAddr::new(address, 0))
}

/// Applies the plan's options to an unconnected socket and adds its buffer sizes to `buffers`. The receive buffer
/// limits the connection's window and must be sized before the connect.
pub fn apply_options(fd: &OwnedFd, options: &SocketOptions, buffers: &mut BufferSizes) -> Result<(), Errno> {
    if let Some(bytes) = options.rcvbuf {
        sockopt::set_socket_recv_buffer_size(fd, bytes as usize)?;
    }
    if let Some(bytes) = options.sndbuf {
        sockopt::set_socket_send_buffer_size(fd, bytes as usize)?;
    }
    if let Some(name) = &options.congestion {
        sockopt::set_tcp_congestion(fd, name)?;
    }
    read_sizes(fd, options, buffers)
}

/// Widens the ranges in `buffers` to include a socket's buffer sizes, each only if the plan sets it or reads both.
pub fn read_sizes(fd: &OwnedFd, options: &SocketOptions, buffers: &mut BufferSizes) -> Result<(), Errno> {
    if options.rcvbuf.is_some() || options.reads_sizes {
        *buffers += BufferSizes { rcvbuf: Some(Sizes::new(sockopt::socket_recv_buffer_size(fd)?)), sndbuf: None };
    }
    if options.sndbuf.is_some() || options.reads_sizes {
        *buffers += BufferSizes { sndbuf: Some(Sizes::new(sockopt::socket_send_buffer_size(fd)?)), rcvbuf: None };
    }
    Ok(())
}

/// True if nothing unread has arrived on a connection, not even its end or an error.
pub fn is_quiet(fd: &OwnedFd) -> bool {
    recv(fd, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) == Err(Errno::AGAIN)
}

/// State of Nagle's algorithm on a connection: may a send wait for acknowledgements of earlier sends? The first send
/// can only wait if it is longer than a segment, so a connection with one short request needs no system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delay {
    /// Nothing has been sent.
    #[default]
    Unknown,
    /// One short send was made.
    SentOnce,
    /// The delay is off.
    Off,
}

impl Delay {
    /// Call before each send, of `length` bytes: switches Nagle's algorithm off once it could delay a send.
    pub fn before_send(&mut self, fd: &OwnedFd, length: usize) {
        match self {
            Self::Off => {}
            Self::Unknown if length <= SEGMENT_MIN => *self = Self::SentOnce,
            Self::Unknown | Self::SentOnce => {
                // If this fails, the connection is gone, and the send will report that.
                let _ = sockopt::set_tcp_nodelay(fd, true);
                *self = Self::Off;
            }
        }
    }
}

/// Discards wait for up to this many bytes. More would save little and stall a server that blocks in a write.
pub const DISCARDED_AT_ONCE: u32 = 128 * 1024;

/// Number of bytes that make a connection readable; `None`: the first byte does. In the middle of a large body no
/// single piece matters. Taking each piece as it arrives costs both sides: we wake up for each, and the server finds
/// little room at a time and sends smaller pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold(Option<NonZeroU32>);

impl Threshold {
    /// Sets the threshold, if need be, before a receive of at most `most` bytes, with `rest` bytes of a body still to
    /// come. Returns true if it is worth waiting for that many bytes.
    pub fn before_receive(&mut self, fd: &OwnedFd, rest: u64, most: u32) -> bool {
        match self.0 {
            None if rest < THRESHOLD_REST => {}
            None => {
                // A small part of the kernel's buffer, so that the server can always send more.
                let room = sockopt::socket_recv_buffer_size(fd).unwrap_or(0) / 8;
                self.set(fd, NonZeroU32::new(most.min(u32::try_from(room).unwrap_or(u32::MAX))));
            }
            Some(bytes) if rest < u64::from(bytes.get()) => self.set(fd, None),
            Some(_) => {}
        }
        self.0.is_some()
    }

    fn set(&mut self, fd: &OwnedFd, bytes: Option<NonZeroU32>) {
        // If this fails, every piece is reported, as before.
        set_socket_option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes.map_or(1, NonZeroU32::get) as libc::c_int);
        self.0 = bytes;
    }
}

/// Sets a socket option that rustix does not have. Returns true if the kernel supports it; otherwise the socket does
/// without.
pub fn set_socket_option(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> bool {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is an integer that outlives the call.
    unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), size) == 0 }
}

/// The kernel's statistics of a connection. `None`: the socket is not TCP, or the kernel's answer is too short.
pub fn tcp_info(fd: &OwnedFd) -> Option<TcpInfo> {
    let mut bytes = [0_u8; TCP_INFO_MAX];
    let mut size = bytes.len() as libc::socklen_t;
    let (level, place) = (libc::IPPROTO_TCP, bytes.as_mut_ptr().cast());
    // SAFETY: the buffer is as large as `size` says, and both outlive the call.
    let result = unsafe { libc::getsockopt(fd.as_raw_fd(), level, libc::TCP_INFO, place, &raw mut size) };
    let filled = bytes.get(..size as usize).filter(|_| result == 0)?;
    TcpInfo::decode(filled)
}

/// The cookie of this process's network namespace, unique until the next boot.
///
/// # Errors
///
/// [`Errno::NOPROTOOPT`] before Linux 5.14; otherwise the system's if no socket can be opened.
pub fn network_namespace_cookie() -> Result<u64, Errno> {
    let fd = open(AddressFamily::UNIX)?;
    let (mut cookie, mut size) = (0_u64, size_of::<u64>() as libc::socklen_t);
    let place = (&raw mut cookie).cast();
    // SAFETY: the buffer is as large as `size` says, and both outlive the call.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, place, &raw mut size) };
    if result == 0 { Ok(cookie) } else { Err(Errno::NOPROTOOPT) }
}

/// Room for the fields that newer kernels add.
const TCP_INFO_MAX: usize = 512;

/// If less of a body is left, the extra system calls cost more than they save.
const THRESHOLD_REST: u64 = 256 * 1024;

/// Number of bytes that fit into one segment on every path (RFC 9293, 3.7.1).
const SEGMENT_MIN: usize = 536;

/// Sends as many bytes as the kernel takes now, and returns their number; zero if it takes none. Never blocks and never
/// raises SIGPIPE.
pub fn send_some(fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    loop {
        match send(fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            outcome => return outcome,
        }
    }
}

/// Sends a transmit from byte `from` on, like [`send_some`]. Returns the number of bytes sent now, not the new
/// position.
pub fn send_rest(fd: &OwnedFd, transmit: &Transmit, from: usize) -> Result<usize, Errno> {
    match transmit.contiguous_bytes() {
        Some(bytes) => send_some(fd, &bytes[from..]),
        None => send_slices(fd, transmit, from),
    }
}

#[inline(never)]
fn send_slices(fd: &OwnedFd, transmit: &Transmit, from: usize) -> Result<usize, Errno> {
    let slices: Vec<IoSlice<'_>> = transmit.slices_from(from).into_iter().map(IoSlice::new).collect();
    loop {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(fd, &slices, &mut SendAncillaryBuffer::default(), flags) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            outcome => return outcome,
        }
    }
}

/// Largest number of pieces discarded before a connection is closed: the contents of a usual receive buffer.
const DRAINED_MAX: usize = 64;

/// Ends our side of a connection, and discards bytes that have arrived unread, up to 256 KiB.
pub fn drain(fd: &OwnedFd) {
    let _ = shutdown(fd, Shutdown::Write);
    let mut buffer = [0; 4096];
    for _ in 0..DRAINED_MAX {
        match recv(fd, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((_, 1..)) => {}
            _ => break,
        }
    }
}

/// Discards up to `n` received bytes inside the kernel without copying them. Returns the number discarded. TCP only.
pub fn discard(fd: &OwnedFd, n: u64) -> Result<usize, Errno> {
    let most = usize::try_from(n).unwrap_or(usize::MAX).min(DISCARD_MAX);
    loop {
        // SAFETY: with `MSG_TRUNC` a TCP socket writes nothing, so no memory is needed (tcp(7)).
        let result = unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC) };
        match usize::try_from(result) {
            Ok(n) => return Ok(n),
            Err(_) => match std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::INTR) => {}
                errno => return Err(errno.unwrap_or(Errno::IO)),
            },
        }
    }
}

/// Largest number of bytes discarded at once: a gigabyte, far more than a socket holds.
const DISCARD_MAX: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn thresholds_are_limited_by_rest_and_buffer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fd = OwnedFd::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let room = sockopt::socket_recv_buffer_size(&fd).unwrap() as u32;
        let bytes = || {
            let (mut value, mut size) = (0u32, size_of::<u32>() as libc::socklen_t);
            let place = (&raw mut value).cast();
            // SAFETY: both places outlive the call and have the size that is passed.
            let result =
                unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, place, &mut size) };
            assert_eq!(result, 0);
            value
        };
        let mut threshold = Threshold::default();
        assert!(!threshold.before_receive(&fd, THRESHOLD_REST - 1, 65_536));
        assert_eq!(bytes(), 1);
        assert!(threshold.before_receive(&fd, THRESHOLD_REST, 65_536));
        let high = bytes();
        assert!(high > 1 && high <= 65_536.min(room / 8), "{high} of {room}");
        assert!(threshold.before_receive(&fd, u64::from(high), 65_536));
        assert!(!threshold.before_receive(&fd, u64::from(high) - 1, 65_536));
        assert_eq!(bytes(), 1);
    }
}
