//! The limit of a storm of connections: sequential connects, each from a chosen local port, one request on each, then
//! all responses.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use onrush_benches::{Arguments, Tally, ends_a_head};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, connect, ipproto, recv, send, socket};

/// `IP_LOCAL_PORT_RANGE` of `linux/in.h`.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let request = arguments.request("/");
    let mut tally = Tally::start(arguments.duration);
    let ports = ports().ok_or_else(|| io::Error::other("the range of local ports cannot be read"))?;
    let mut next = RandomState::new().hash_one(()) as usize % ports.len();
    let mut connections = Vec::with_capacity(arguments.connections);
    for _ in 0..arguments.connections {
        let connection = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))?;
        loop {
            next = (next + 1) % ports.len();
            choose(&connection, ports[next])?;
            match connect(&connection, &arguments.address) {
                Err(Errno::ADDRNOTAVAIL) if tally.is_running() => {}
                outcome => break outcome?,
            }
        }
        send(&connection, &request, SendFlags::NOSIGNAL)?;
        connections.push(connection);
    }
    let mut buffer = [0; 4096];
    for connection in &connections {
        let (received, _) = recv(connection, &mut buffer, RecvFlags::empty())?;
        tally.completed += u64::from(ends_a_head(&buffer[..received]));
    }
    tally.report();
    Ok(())
}

/// The local ports from which the kernel would choose; `None` if their range cannot be read.
fn ports() -> Option<Vec<u16>> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    Some((first.parse().ok()?..=last.trim().parse().ok()?).collect())
}

/// Binds a socket to this port only.
fn choose(fd: &OwnedFd, port: u16) -> io::Result<()> {
    let range = u32::from(port) << 16 | u32::from(port);
    let (place, size) = ((&raw const range).cast(), size_of::<u32>() as libc::socklen_t);
    // SAFETY: the value outlives the call, and its size is passed along.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_IP, IP_LOCAL_PORT_RANGE, place, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
