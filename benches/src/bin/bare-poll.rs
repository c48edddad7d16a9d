//! The limit of one connection with a core to itself: a non-blocking receive in a busy loop.

use std::hint;
use std::io;

use onrush_benches::{Arguments, Tally, ends_a_head};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let request = arguments.request("/");
    let connections = arguments.open()?;
    let [connection] = &connections[..] else { return Err(io::Error::other("this loop is for one connection")) };
    let mut buffer = vec![0; 64 * 1024];
    let mut tally = Tally::start(arguments.duration);
    while tally.is_running() {
        send(connection, &request, SendFlags::NOSIGNAL)?;
        loop {
            match recv(connection, &mut buffer[..], RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => hint::spin_loop(),
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((received, _)) if ends_a_head(&buffer[..received]) => break,
                outcome => drop(outcome?),
            }
        }
        tally.completed += 1;
    }
    tally.report();
    Ok(())
}
