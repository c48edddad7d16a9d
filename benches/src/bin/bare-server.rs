//! The minimal server: one thread, edge-triggered epoll, one fixed response per empty line, or per HEADERS with HTTP/2.
//! With both versions, a response is sent in one piece.
//!
//! Prints its URL, serves until killed, and never reads the content of requests.

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
/// Maximum number of responses per read. Further requests in the same read get no response.
const ANSWERS_MAX: usize = 512;

/// Start of an HTTP/2 connection, and the first frames sent by the server: empty SETTINGS, and an acknowledgement.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const GREETING: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";
/// The HTTP/2 response: HEADERS with `:status: 200`, `content-type` and `content-length` as literals without indexing
/// (RFC 7541, 6.2.2), and DATA that ends the stream.
const HEADERS: &[u8] = b"\0\0\x13\x01\x04\0\0\0\0\x88\x0f\x10\x0atext/plain\x0f\x0d\x0213";
const DATA: &[u8] = b"\0\0\x0d\0\x01\0\0\0\0Hello, World!";
/// Length of a frame header, and positions of its type and stream.
const FRAME: usize = 9;
const KIND: usize = 3;
const STREAM: std::ops::Range<usize> = 5..9;

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

/// A connection, and the last bytes received: an empty line may arrive in two pieces.
struct Connection {
    fd: OwnedFd,
    last: [u8; 3],
    /// Bytes after the last complete frame, with HTTP/2.
    frames: Option<Vec<u8>>,
}

impl Connection {
    fn new(fd: OwnedFd) -> Self {
        Self { fd, last: [0; 3], frames: None }
    }

    /// Responds to every request that ends in one read. Returns true if the connection stays open.
    fn answer(&mut self, buffer: &mut [u8], answers: &[u8]) -> bool {
        let before = self.last.len();
        buffer[..before].copy_from_slice(&self.last);
        let received = match recv(&self.fd, &mut buffer[before..], RecvFlags::empty()) {
            Err(Errno::AGAIN) => return true,
            Ok((0, _)) | Err(_) => return false,
            Ok((received, _)) => received,
        };
        let arrived = &buffer[before..][..received];
        if let Some(frames) = &mut self.frames {
            frames.extend_from_slice(arrived);
            return self.answer_frames();
        }
        if self.last == [0; 3] && arrived.starts_with(PREFACE) {
            self.frames = Some(arrived[PREFACE.len()..].to_vec());
            return send(&self.fd, GREETING, SendFlags::NOSIGNAL).is_ok() && self.answer_frames();
        }
        self.last.copy_from_slice(&buffer[received..received + before]);
        let asked = memmem::find_iter(&buffer[..received + before], b"\r\n\r\n").count().min(ANSWERS_MAX);
        send(&self.fd, &answers[..asked * ANSWER.len()], SendFlags::NOSIGNAL).is_ok()
    }

    /// Does the same as [`Self::answer`] for HTTP/2: responds to every complete HEADERS frame.
    fn answer_frames(&mut self) -> bool {
        let Some(frames) = &mut self.frames else { return true };
        let (mut taken, mut answers) = (0, Vec::new());
        while let Some(header) = frames[taken..].first_chunk::<FRAME>() {
            let length = FRAME + u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            if frames.len() - taken < length {
                break;
            }
            if header[KIND] == HEADERS[KIND] {
                for frame in [HEADERS, DATA] {
                    answers.extend_from_slice(&frame[..STREAM.start]);
                    answers.extend_from_slice(&header[STREAM]);
                    answers.extend_from_slice(&frame[FRAME..]);
                }
            }
            taken += length;
        }
        frames.drain(..taken);
        answers.is_empty() || send(&self.fd, &answers, SendFlags::NOSIGNAL).is_ok()
    }
}

/// Identifies a descriptor in events by its own number.
fn data(fd: &OwnedFd) -> epoll::EventData {
    epoll::EventData::new_u64(fd.as_raw_fd() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_requests_are_answered_once() {
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

    #[test]
    fn http2_requests_are_answered_in_one_piece() {
        let (client, server) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        let mut server = Connection::new(server);
        let mut buffer = vec![0; 4096];
        let request = |stream: u8| [b"\0\0\x01\x01\x05\0\0\0", &[stream][..], b"\x82"].concat();
        let mut said = Vec::new();
        for piece in
            [[PREFACE, &request(1)].concat(), request(3)[..5].to_vec(), [&request(3)[5..], &request(5)].concat()]
        {
            send(&client, &piece, SendFlags::empty()).unwrap();
            assert!(server.answer(&mut buffer, &[]));
            let mut answered = vec![0; 4096];
            let length = recv(&client, &mut answered, RecvFlags::empty()).map_or(0, |(length, _)| length);
            said.push(answered[..length].to_vec());
        }
        let answer =
            |stream: u8| [&HEADERS[..8], &[stream], &HEADERS[FRAME..], &DATA[..8], &[stream], &DATA[FRAME..]].concat();
        assert_eq!(said, [[GREETING, &answer(1)].concat(), Vec::new(), [answer(3), answer(5)].concat()]);
    }
}
