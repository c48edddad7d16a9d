//! The limit of an HTTP/2 generator on io_uring: frames are encoded once and differ only in the stream ID, and only the
//! frame headers of received bytes are read.

use std::io;
use std::time::{Duration, Instant};

use onrush_benches::{Arguments, Ring, Tally};

/// Length of a frame header.
const HEADER: usize = 9;
/// Frame types.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// How many completions to wait for, as a fraction of the requests in flight, and time limits of a wait, as a fraction
/// of a round and in absolute terms: about as in onrush.
const SEVERAL_PART: usize = 8;
const LINGER_PART: u32 = 40;
const LINGER_MAX: Duration = Duration::from_micros(100);

fn main() -> io::Result<()> {
    let arguments = Arguments::read()?;
    let sockets = arguments.open()?;
    let mut ring = Ring::new(&sockets)?;
    let request = request(&arguments.address.to_string());
    let mut connections: Vec<Connection> =
        sockets.iter().map(|_| Connection::new(&request, arguments.streams)).collect();
    let open = arguments.connections * arguments.streams as usize;
    // Connections with something to send.
    let mut asked: Vec<u32> = (0..sockets.len() as u32).collect();
    let mut tally = Tally::start(arguments.duration);
    let mut completions = Vec::with_capacity(512);
    // A round lasts until as many responses have arrived as requests are in flight.
    let (mut round, mut began, mut linger) = (0, Instant::now(), Duration::ZERO);
    while tally.is_running() {
        for number in asked.drain(..) {
            let bytes = connections[number as usize].give();
            // SAFETY: a connection gives output once before each wait, and this output changes only with the next.
            unsafe { ring.send(number, bytes)? };
        }
        if tally.completed - round >= open as u64 {
            linger = (began.elapsed() / LINGER_PART).min(LINGER_MAX);
            (round, began) = (tally.completed, Instant::now());
        }
        ring.wait((open / SEVERAL_PART).max(1), linger.as_micros() as u32)?;
        ring.take_completions(&mut completions);
        for completion in completions.drain(..) {
            tally.completed += ring.handle_receive(&completion, |number, bytes| {
                let connection = &mut connections[number as usize];
                let was_asked = !connection.output.is_empty();
                let ended = connection.read(bytes)?;
                (0..ended).for_each(|_| connection.ask(&request));
                if !was_asked && !connection.output.is_empty() {
                    asked.push(number);
                }
                io::Result::Ok(u64::from(ended))
            })??;
        }
        ring.publish();
    }
    tally.report();
    Ok(())
}

/// HEADERS with END_STREAM and END_HEADERS for GET /, without a stream ID.
fn request(authority: &str) -> Vec<u8> {
    // Static indices, and the authority as a literal without indexing (RFC 7541, 6).
    let block = [&[0x82, 0x86, 0x84, 0x01, authority.len() as u8], authority.as_bytes()].concat();
    [&[0, 0, block.len() as u8, 1, 5, 0, 0, 0, 0], &block[..]].concat()
}

struct Connection {
    next: u32,
    /// Output to send, and the output given to the kernel last.
    output: Vec<u8>,
    given: Vec<u8>,
    /// Remaining length of the current frame.
    left: usize,
    /// Received part of a frame header.
    part: Vec<u8>,
}

impl Connection {
    fn new(request: &[u8], streams: u32) -> Self {
        let mut connection = Self { next: 1, output: Vec::new(), given: Vec::new(), left: 0, part: Vec::new() };
        // The preface, SETTINGS that forbid push and open large windows, and a WINDOW_UPDATE for the connection.
        connection.output.extend(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        connection
            .output
            .extend([0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0x3f, 0xff, 0xff, 0xff]);
        connection.output.extend([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x3f, 0xff, 0, 0]);
        (0..streams).for_each(|_| connection.ask(request));
        connection
    }

    fn ask(&mut self, request: &[u8]) {
        let at = self.output.len();
        self.output.extend_from_slice(request);
        self.output[at + 5..at + HEADER].copy_from_slice(&self.next.to_be_bytes());
        self.next += 2;
    }

    /// Returns the output to send. Earlier output has been sent by now.
    fn give(&mut self) -> &[u8] {
        std::mem::swap(&mut self.output, &mut self.given);
        self.output.clear();
        &self.given
    }

    /// Reads frame headers, acknowledges SETTINGS, and returns the number of finished responses.
    fn read(&mut self, mut bytes: &[u8]) -> io::Result<u32> {
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
            let [.., kind, flags, _, _, _, _] = header;
            match (kind, flags & 1 != 0) {
                (DATA | HEADERS, true) => ended += 1,
                (SETTINGS, false) => self.output.extend([0, 0, 0, SETTINGS, 1, 0, 0, 0, 0]),
                (RST_STREAM, _) => return Err(io::Error::other("the server reset a stream (RST_STREAM)")),
                (GOAWAY, _) => return Err(io::Error::other("the server ended the connection (GOAWAY)")),
                _ => {}
            }
        }
        Ok(ended)
    }
}
