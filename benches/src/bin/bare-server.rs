//! The least a server can do: one thread, edge-triggered epoll, one fixed response for every empty line that arrives.
//!
//! It prints its URL, serves until it is killed, and never reads the content of requests.

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

/// The response of `onrush serve` to `/`.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
/// The most responses to one read; more are not sent.
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
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Vec::with_capacity(512);
    loop {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let number = event.data.u64() as usize;
            if number == listener.as_raw_fd() as usize {
                accept_all(&listener, &poll, &mut connections)?;
            } else if let Some(connection) = &mut connections[number]
                && !connection.answer(&mut buffer, &answers)
            {
                connections[number] = None;
            }
        }
    }
}

fn accept_all(listener: &OwnedFd, poll: &OwnedFd, connections: &mut Vec<Option<Connection>>) -> io::Result<()> {
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
        connections[number] = Some(Connection::new(connection));
    }
}

/// A connection, and the last bytes that arrived: an empty line may arrive in two pieces.
struct Connection {
    fd: OwnedFd,
    last: [u8; 3],
}

impl Connection {
    fn new(fd: OwnedFd) -> Self {
        Self { fd, last: [0; 3] }
    }

    /// Responds to every request that ends in what one read returns; returns whether the connection stays open.
    fn answer(&mut self, buffer: &mut [u8], answers: &[u8]) -> bool {
        let before = self.last.len();
        buffer[..before].copy_from_slice(&self.last);
        let received = match recv(&self.fd, &mut buffer[before..], RecvFlags::empty()) {
            Err(Errno::AGAIN) => return true,
            Ok((0, _)) | Err(_) => return false,
            Ok((received, _)) => received,
        };
        self.last.copy_from_slice(&buffer[received..received + before]);
        let asked = memmem::find_iter(&buffer[..received + before], b"\r\n\r\n").count().min(ANSWERS_MAX);
        send(&self.fd, &answers[..asked * ANSWER.len()], SendFlags::NOSIGNAL).is_ok()
    }
}

/// A descriptor serves as its own identifier.
fn data(fd: &OwnedFd) -> epoll::EventData {
    epoll::EventData::new_u64(fd.as_raw_fd() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_answered_once_however_many_come_at_once_and_wherever_they_are_cut() {
        let (client, server) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        let mut server = Connection::new(server);
        let (mut buffer, answers) = (vec![0; 4096], ANSWER.repeat(ANSWERS_MAX));
        let batch = b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n".repeat(16);
        for cut in 0..batch.len() {
            for piece in [&batch[..cut], &batch[cut..]] {
                send(&client, piece, SendFlags::empty()).unwrap();
                assert!(server.answer(&mut buffer, &answers));
            }
            let mut answered = vec![0; 4096];
            let (length, _) = recv(&client, &mut answered, RecvFlags::empty()).unwrap();
            assert_eq!(&answered[..length], ANSWER.repeat(16), "cut at {cut}");
        }
        drop(client);
        assert!(!server.answer(&mut buffer, &answers));
    }
}
