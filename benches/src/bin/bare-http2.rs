//! The limit of a generator of HTTP/2 on io_uring, with 32 streams on each connection: frames are written once, only the
//! number of the stream differs, and of what arrives only the headers of frames are read.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use onrush_benches::{Arguments, Buffers, Tally};

/// The requests in flight on a connection.
const STREAMS: u32 = 32;
/// The length of a frame's header.
const HEADER: usize = 9;
/// Marks the completion of a receive; a send completes only when it fails.
const RECEIVE: u64 = 1 << 32;
/// The longest wait before it reads the clock.
const TICK: Timespec = Timespec::new().nsec(100_000_000);
/// How long a wait is for several completions, in microseconds, and how many those are: as in onrush.
const LINGER_US: u32 = 10;
const SEVERAL: usize = 16;

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let sockets = arguments.open()?;
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_cqsize(16384);
    let ring = builder.build(4096)?;
    let files: Vec<i32> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&files)?;
    let buffers = Buffers::register(&ring)?;
    let request = request(&arguments.address.to_string());
    let connections = files.iter().map(|_| Connection::new(&request)).collect();
    let mut client = Client { ring, buffers, connections, request, asked: Vec::new() };
    for number in 0..files.len() as u32 {
        client.receive(number)?;
        client.asked.push(number);
    }
    let mut tally = Tally::start(arguments.duration);
    let mut completions: Vec<cqueue::Entry> = Vec::with_capacity(512);
    while tally.is_running() {
        client.send()?;
        let wait = SubmitArgs::new().timespec(&TICK).min_wait_usec(LINGER_US);
        match client.ring.submitter().submit_with_args(SEVERAL, &wait) {
            Err(error) if error.raw_os_error() != Some(libc::ETIME) => return Err(error),
            _ => {}
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

/// HEADERS with END_STREAM and END_HEADERS for GET /, without a stream.
fn request(authority: &str) -> Vec<u8> {
    // Static indices, and the authority as a literal without indexing (RFC 7541, 6).
    let block = [&[0x82, 0x86, 0x84, 0x01, authority.len() as u8], authority.as_bytes()].concat();
    [&[0, 0, block.len() as u8, 1, 5, 0, 0, 0, 0], &block[..]].concat()
}

struct Client {
    /// Declared first, so that it is dropped before the memory that the kernel reads and writes.
    ring: IoUring,
    buffers: Buffers,
    connections: Vec<Connection>,
    request: Vec<u8>,
    /// The connections that have something to send.
    asked: Vec<u32>,
}

/// One connection.
struct Connection {
    next: u32,
    /// What is to be sent, and what the kernel has been given last.
    output: Vec<u8>,
    given: Vec<u8>,
    /// How much of the current frame is still to come.
    left: usize,
    /// The beginning of a frame's header.
    part: Vec<u8>,
}

impl Connection {
    fn new(request: &[u8]) -> Self {
        let mut connection = Self { next: 1, output: Vec::new(), given: Vec::new(), left: 0, part: Vec::new() };
        // The preface, SETTINGS without push and with a large window, their acknowledgement, a window of the connection.
        connection.output.extend(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        connection
            .output
            .extend([0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0x3f, 0xff, 0xff, 0xff]);
        connection.output.extend([0, 0, 0, 4, 1, 0, 0, 0, 0]);
        connection.output.extend([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x3f, 0xff, 0, 0]);
        (0..STREAMS).for_each(|_| connection.ask(request));
        connection
    }

    fn ask(&mut self, request: &[u8]) {
        let at = self.output.len();
        self.output.extend_from_slice(request);
        self.output[at + 5..at + HEADER].copy_from_slice(&self.next.to_be_bytes());
        self.next += 2;
    }

    /// Reads the headers of frames; returns how many responses have ended.
    fn read(&mut self, mut bytes: &[u8]) -> u32 {
        let mut ended = 0;
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = bytes.len().min(self.left);
                self.left -= taken;
                bytes = &bytes[taken..];
                continue;
            }
            let header: [u8; HEADER] = match bytes.split_first_chunk() {
                Some((header, rest)) if self.part.is_empty() => {
                    bytes = rest;
                    *header
                }
                _ => {
                    let taken = bytes.len().min(HEADER - self.part.len());
                    self.part.extend_from_slice(&bytes[..taken]);
                    bytes = &bytes[taken..];
                    let Ok(header) = self.part[..].try_into() else { break };
                    self.part.clear();
                    header
                }
            };
            self.left = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            ended += u32::from(header[3] <= 1 && header[4] & 1 != 0);
        }
        ended
    }
}

impl Client {
    /// Queues what connections have to send. What the kernel was given before has been sent by now.
    fn send(&mut self) -> io::Result<()> {
        while let Some(number) = self.asked.pop() {
            let Connection { output, given, .. } = &mut self.connections[number as usize];
            std::mem::swap(output, given);
            output.clear();
            let send = opcode::Send::new(Fixed(number), given.as_ptr(), given.len() as u32).flags(libc::MSG_NOSIGNAL);
            self.push(&send.build().flags(squeue::Flags::SKIP_SUCCESS).user_data(u64::from(number)))?;
        }
        Ok(())
    }

    /// Reads what was received, and prepares as many requests as responses have ended; returns how many those are.
    fn handle(&mut self, completion: &cqueue::Entry) -> io::Result<u32> {
        let number = completion.user_data() as u32;
        if completion.user_data() & RECEIVE == 0 || completion.result() <= 0 {
            return Err(io::Error::from_raw_os_error(-completion.result()));
        }
        let Some(buffer) = cqueue::buffer_select(completion.flags()) else { return Err(io::ErrorKind::Other.into()) };
        let connection = &mut self.connections[number as usize];
        let ended = connection.read(self.buffers.bytes(buffer, completion.result() as usize));
        self.buffers.give_back(buffer);
        if ended > 0 && connection.output.is_empty() {
            self.asked.push(number);
        }
        (0..ended).for_each(|_| connection.ask(&self.request));
        if !cqueue::more(completion.flags()) {
            self.receive(number)?;
        }
        Ok(ended)
    }

    fn receive(&mut self, number: u32) -> io::Result<()> {
        let receive = opcode::RecvMulti::new(Fixed(number), 0).build();
        self.push(&receive.user_data(RECEIVE | u64::from(number)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: a send's bytes and the buffers live until the kernel has read them.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}
