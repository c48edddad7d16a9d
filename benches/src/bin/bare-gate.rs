//! A target for a storm of connections. Once CONNECTIONS of them have sent a request, it responds to all at once and
//! closes them: each connection sends once, and all are open at the same time.
//!
//! ```text
//! bare-gate CONNECTIONS
//! ```
//!
//! Prints its URL, serves until killed, and never reads the content of requests.

use std::collections::HashMap;
use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, getsockname, ipproto, listen,
    recv, send, socket_with,
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: CONNECTIONS");
    let expected: usize = env::args().nth(1).and_then(|word| word.parse().ok()).ok_or_else(usage)?;
    let listener = socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().map_err(io::Error::other)?)?;
    listen(&listener, 4096)?;
    println!("listening on http://{}/", SocketAddr::try_from(getsockname(&listener)?)?);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, data(&listener), epoll::EventFlags::IN)?;
    // The connections; each with true once it has sent a request.
    let mut connections: HashMap<u64, (OwnedFd, bool)> = HashMap::new();
    let mut events = Vec::with_capacity(512);
    let mut buffer = [0; 4096];
    loop {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let name = event.data.u64();
            if name == data(&listener).u64() {
                accept_all(&listener, &poll, &mut connections)?;
            } else if let Some((fd, has_asked)) = connections.get_mut(&name) {
                match recv(&*fd, &mut buffer, RecvFlags::empty()) {
                    Ok((0, _)) => drop(connections.remove(&name)),
                    Ok(_) => *has_asked = true,
                    Err(Errno::AGAIN) => {}
                    Err(_) => drop(connections.remove(&name)),
                }
            }
        }
        if connections.len() >= expected && connections.values().all(|(_, has_asked)| *has_asked) {
            for (_, (fd, _)) in connections.drain() {
                // A client that has closed its connection needs no response.
                let _ = send(&fd, ANSWER, SendFlags::NOSIGNAL);
            }
        }
    }
}

fn accept_all(listener: &OwnedFd, poll: &OwnedFd, connections: &mut HashMap<u64, (OwnedFd, bool)>) -> io::Result<()> {
    loop {
        match accept_with(listener, FLAGS) {
            Err(Errno::AGAIN) => return Ok(()),
            Err(errno) => return Err(errno.into()),
            Ok(connection) => {
                epoll::add(poll, &connection, data(&connection), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
                connections.insert(data(&connection).u64(), (connection, false));
            }
        }
    }
}

/// Identifies a descriptor in events by its own number.
fn data(fd: &OwnedFd) -> epoll::EventData {
    epoll::EventData::new_u64(fd.as_raw_fd() as u64)
}
