//! The limit of a generator on epoll: one registration per connection, one receive per wake-up, followed directly by
//! the next request.

use std::io;
use std::os::fd::OwnedFd;

use onrush_benches::{Arguments, Tally, ends_a_head};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let request = arguments.request("/");
    let connections = arguments.open()?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, connection) in connections.iter().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&poll, connection, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        ask(connection, &request)?;
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut events = Vec::with_capacity(512);
    let mut tally = Tally::start(arguments.duration);
    while tally.is_running() {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), Some(&TICK))?;
        for event in &events {
            let connection = &connections[event.data.u64() as usize];
            let (received, _) = recv(connection, &mut buffer[..], RecvFlags::DONTWAIT)?;
            if ends_a_head(&buffer[..received]) {
                tally.completed += 1;
                ask(connection, &request)?;
            }
        }
    }
    tally.report();
    Ok(())
}

fn ask(connection: &OwnedFd, request: &[u8]) -> io::Result<()> {
    send(connection, request, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Longest wait between clock reads.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
