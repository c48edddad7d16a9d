//! The limit of a generator on io_uring: multishot receives into buffers of the thread, registered files, sends without
//! completions, and one system call for everything that a round of responses causes. `spin` busy-polls, like onrush
//! with few connections, and makes a second call to fetch completions.

use std::io;

use onrush_benches::{Arguments, Ring, Tally, ends_a_head};

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let request = arguments.request("/");
    let connections = arguments.open()?;
    let mut ring = Ring::new(&connections)?;
    // SAFETY: the request lives unchanged until the process ends.
    let ask = |ring: &mut Ring, number| unsafe { ring.send(number, &request) };
    (0..connections.len() as u32).try_for_each(|number| ask(&mut ring, number))?;
    let mut tally = Tally::start(arguments.duration);
    let mut completions = Vec::with_capacity(512);
    while tally.is_running() {
        if arguments.spins {
            ring.spin()?
        } else {
            ring.wait(1, 0)?
        }
        ring.take_completions(&mut completions);
        for completion in completions.drain(..) {
            let (number, is_answer) = ring.handle_receive(&completion, |number, bytes| (number, ends_a_head(bytes)))?;
            if is_answer {
                ask(&mut ring, number)?;
            }
            tally.completed += u64::from(is_answer);
        }
        ring.publish();
    }
    tally.report();
    Ok(())
}
