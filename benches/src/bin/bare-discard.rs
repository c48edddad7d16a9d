//! The limit for bodies of 1 MiB on epoll: the kernel discards the bytes, and only their number is read.
//!
//! The length of the head is learned from the first response, before the clock starts.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use onrush_benches::{Arguments, Tally};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

const BODY_BYTES: usize = 1 << 20;

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let request = arguments.request(&format!("/bytes/{BODY_BYTES}"));
    let connections = arguments.open()?;
    let answer_bytes = measure_response(&connections[0], &request)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, connection) in connections.iter().enumerate() {
        epoll::add(&poll, connection, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        send(connection, &request, SendFlags::NOSIGNAL)?;
    }
    let mut left = vec![answer_bytes; connections.len()];
    let mut events = Vec::with_capacity(512);
    let mut tally = Tally::start(arguments.duration);
    while tally.is_running() {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), Some(&TICK))?;
        for event in &events {
            let number = event.data.u64() as usize;
            left[number] -= discard(&connections[number], left[number])?;
            if left[number] == 0 {
                tally.completed += 1;
                left[number] = answer_bytes;
                send(&connections[number], &request, SendFlags::NOSIGNAL)?;
            }
        }
    }
    tally.report();
    Ok(())
}

/// Sends the request, receives one complete response, and returns the total length of its head and body.
fn measure_response(connection: &OwnedFd, request: &[u8]) -> io::Result<usize> {
    send(connection, request, SendFlags::NOSIGNAL)?;
    let mut answer = Vec::with_capacity(2 * BODY_BYTES);
    loop {
        recv(connection, spare_capacity(&mut answer), RecvFlags::empty())?;
        let head = memchr::memmem::find(&answer, b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head.filter(|head| answer.len() == head + BODY_BYTES) {
            return Ok(head + BODY_BYTES);
        }
    }
}

/// Discards up to `most` bytes, and returns their number.
fn discard(connection: &OwnedFd, most: usize) -> io::Result<usize> {
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with `MSG_TRUNC`, a TCP socket writes nothing, so no memory is needed (tcp(7)).
    let result = unsafe { libc::recv(connection.as_raw_fd(), std::ptr::null_mut(), most, flags) };
    match usize::try_from(result) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(discarded) => Ok(discarded),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Longest wait between clock reads.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
