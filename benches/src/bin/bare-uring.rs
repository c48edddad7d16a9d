//! The limit of a generator on io_uring: multishot receives into buffers of the thread, registered files, sends without
//! completions, one system call for everything that a round of responses has caused. With `spin` it busy-polls, as
//! onrush does with few connections, and makes a second call to fetch what has arrived.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use onrush_benches::{Arguments, Buffers, Tally, ends_a_head};

/// Marks the completion of a receive; a send completes only when it fails.
const RECEIVE: u64 = 1 << 32;
/// The longest wait before it reads the clock.
const TICK: Timespec = Timespec::new().nsec(100_000_000);
/// `IORING_ENTER_GETEVENTS`: completions are wanted.
const ENTER_GETEVENTS: u32 = 1;

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let request = arguments.request("/");
    let connections = arguments.open()?;
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_cqsize(16384);
    let ring = builder.build(4096)?;
    let files: Vec<i32> = connections.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&files)?;
    let buffers = Buffers::register(&ring)?;
    let mut client = Client { ring, buffers, request };
    for number in 0..files.len() as u32 {
        client.receive(number)?;
        client.ask(number)?;
    }
    let mut tally = Tally::start(arguments.duration);
    let mut completions: Vec<cqueue::Entry> = Vec::with_capacity(512);
    while tally.is_running() {
        if arguments.spins {
            client.spin()?
        } else {
            client.wait()?
        }
        completions.extend(client.ring.completion());
        for completion in completions.drain(..) {
            tally.completed += u64::from(client.handle(&completion)?);
        }
        client.buffers.publish();
    }
    tally.report();
    Ok(())
}

struct Client {
    /// Declared first, so that it is dropped before the memory that the kernel reads and writes.
    ring: IoUring,
    buffers: Buffers,
    request: Vec<u8>,
}

impl Client {
    /// Submits what was gathered, and blocks until a completion is there.
    fn wait(&mut self) -> io::Result<()> {
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&TICK)) {
            Err(error) if error.raw_os_error() != Some(libc::ETIME) => Err(error),
            _ => Ok(()),
        }
    }

    /// Submits what was gathered, and polls the completion queue until something is there.
    fn spin(&mut self) -> io::Result<()> {
        let mut queued = self.ring.submission().len() as u32;
        while queued > 0 || self.ring.completion().is_empty() {
            if queued > 0 || self.ring.submission().taskrun() {
                // SAFETY: no argument is passed, and what operations point to outlives them, as in `push`.
                unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, ENTER_GETEVENTS, None)? };
                queued = 0;
            }
        }
        Ok(())
    }

    /// Checks what was received, and sends the next request; returns whether it was a response.
    fn handle(&mut self, completion: &cqueue::Entry) -> io::Result<bool> {
        let number = completion.user_data() as u32;
        if completion.user_data() & RECEIVE == 0 || completion.result() <= 0 {
            return Err(io::Error::from_raw_os_error(-completion.result()));
        }
        let Some(buffer) = cqueue::buffer_select(completion.flags()) else { return Err(io::ErrorKind::Other.into()) };
        let is_answer = ends_a_head(self.buffers.bytes(buffer, completion.result() as usize));
        self.buffers.give_back(buffer);
        if is_answer {
            self.ask(number)?;
        }
        if !cqueue::more(completion.flags()) {
            self.receive(number)?;
        }
        Ok(is_answer)
    }

    fn receive(&mut self, number: u32) -> io::Result<()> {
        let receive = opcode::RecvMulti::new(Fixed(number), 0).build();
        self.push(&receive.user_data(RECEIVE | u64::from(number)))
    }

    fn ask(&mut self, number: u32) -> io::Result<()> {
        let send = opcode::Send::new(Fixed(number), self.request.as_ptr(), self.request.len() as u32)
            .flags(libc::MSG_NOSIGNAL)
            .build();
        self.push(&send.flags(squeue::Flags::SKIP_SUCCESS).user_data(u64::from(number)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: a send's bytes and the buffers live as long as the ring.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}
