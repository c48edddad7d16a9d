//! The least a server can do: one thread, edge-triggered epoll, one fixed answer for every empty line that arrives.
//!
//! It prints its URL, serves until it is killed, and never looks at what was asked.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use memchr::memmem;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, getsockname, ipproto, listen,
    recv, send, socket_with, sockopt,
};

/// What `onrush serve` answers to `/`.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
/// The most answers that one read can ask for; more are not sent.
const ANSWERS_MAX: usize = 512;

fn main() -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let listener = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().map_err(io::Error::other)?)?;
    listen(&listener, 4096)?;
    let address = SocketAddr::try_from(getsockname(&listener)?)?;
    println!("listening on http://{address}/");
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, data(&listener), epoll::EventFlags::IN)?;
    let answers = ANSWER.repeat(ANSWERS_MAX);
    let mut buffer = vec![0; 64 * 1024];
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut events = Vec::with_capacity(512);
    loop {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let number = event.data.u64() as usize;
            if number == listener.as_raw_fd() as usize {
                accept_all(&listener, &poll, &mut connections)?;
            } else if let Some(connection) = &connections[number]
                && !answer(connection, &mut buffer, &answers)
            {
                connections[number] = None;
            }
        }
    }
}

fn accept_all(listener: &OwnedFd, poll: &OwnedFd, connections: &mut Vec<Option<OwnedFd>>) -> io::Result<()> {
    loop {
        let connection = match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Err(Errno::AGAIN) => return Ok(()),
            outcome => outcome?,
        };
        sockopt::set_tcp_nodelay(&connection, true)?;
        epoll::add(poll, &connection, data(&connection), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let number = connection.as_raw_fd() as usize;
        if connections.len() <= number {
            connections.resize_with(number + 1, || None);
        }
        connections[number] = Some(connection);
    }
}

/// Answers what one read brings; says whether the connection lives on.
fn answer(connection: &OwnedFd, buffer: &mut [u8], answers: &[u8]) -> bool {
    let received = match recv(connection, &mut *buffer, RecvFlags::empty()) {
        Err(Errno::AGAIN) => return true,
        Ok((0, _)) | Err(_) => return false,
        Ok((received, _)) => received,
    };
    let asked = memmem::find_iter(&buffer[..received], b"\r\n\r\n").count().min(ANSWERS_MAX);
    send(connection, &answers[..asked * ANSWER.len()], SendFlags::NOSIGNAL).is_ok()
}

/// A descriptor is its own name.
fn data(fd: &OwnedFd) -> epoll::EventData {
    epoll::EventData::new_u64(fd.as_raw_fd() as u64)
}
