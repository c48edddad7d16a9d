//! An HTTP/2 server that sends frames chosen by a test, and a reader of results.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Map, Value};

use crate::harness::{Onrush, ProgramOutput, Scratch};

// Frame types.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

/// Flags: acknowledgement of SETTINGS or PING, end of stream, and end of a header block.
pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// SETTINGS: number of allowed streams, and initial window of each.
pub const STREAMS: u16 = 3;
pub const WINDOW: u16 = 4;

/// `:status: 200`, in the static table.
pub const OK: &[u8] = &[0x88];

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame with this payload, as bytes.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A response with only the status 200, as bytes.
pub fn response(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, OK)
}

/// GOAWAY as bytes: streams above `last` will not be processed.
pub fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// SETTINGS as bytes.
pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// A field that is added to the table, as bytes. Neither name nor value is compressed.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    [&[0x40][..], &string(name), &string(value)].concat()
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match text.len() {
        length @ ..127 => bytes.push(length as u8),
        length => {
            bytes.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                bytes.push(rest as u8 | 128);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// A connection of a client, after its preface.
pub struct Http2Peer {
    pub stream: TcpStream,
}

impl Http2Peer {
    /// Accepts a connection, and sends nothing.
    pub fn silent(mut stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let mut preface = [0; PREFACE.len()];
        stream.read_exact(&mut preface)?;
        assert_eq!(preface, PREFACE, "the client's preface");
        Ok(Self { stream })
    }

    /// Accepts a connection, and sends these settings.
    pub fn new(stream: TcpStream, with: &[(u16, u32)]) -> io::Result<Self> {
        let mut peer = Self::silent(stream)?;
        peer.stream.write_all(&settings(with))?;
        Ok(peer)
    }

    /// Reads frames until a request starts, and returns its stream. Acknowledges SETTINGS, and ignores all other
    /// frames.
    pub fn request(&mut self) -> io::Result<u32> {
        loop {
            match self.read()? {
                (HEADERS, _, stream) => return Ok(stream),
                (SETTINGS, flags, _) if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[])?,
                _ => {}
            }
        }
    }

    /// Reads a frame: kind, flags and stream.
    fn read(&mut self) -> io::Result<(u8, u8, u32)> {
        let mut header = [0; 9];
        self.stream.read_exact(&mut header)?;
        let [a, b, c, kind, flags, stream @ ..] = header;
        let length = u32::from_be_bytes([0, a, b, c]);
        io::copy(&mut (&mut self.stream).take(length.into()), &mut io::sink())?;
        Ok((kind, flags, u32::from_be_bytes(stream)))
    }

    /// Sends a frame.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&frame(kind, flags, stream, payload))
    }

    /// Responds with only the status 200.
    pub fn respond(&mut self, stream: u32) -> io::Result<()> {
        self.stream.write_all(&response(stream))
    }

    /// Reads until the client leaves.
    pub fn drain(mut self) -> io::Result<()> {
        io::copy(&mut self.stream, &mut io::sink()).map(drop)
    }
}

/// Runs the program with a result file, and returns its output and the result.
pub fn run(onrush: Onrush) -> (ProgramOutput, Value) {
    let scratch = Scratch::new("http2-result");
    let path = scratch.path().join("result.json");
    let output = onrush.word("-o").word(&path).run();
    assert!(path.exists(), "there is no result: {output:?}");
    (output, read(&path))
}

/// Reads the requests, connections and failures from a result file, and checks that all requests are accounted for.
pub fn read(path: &Path) -> Value {
    let result: Map<String, Value> = serde_json::from_slice(&fs::read(path).expect("a result")).expect("JSON");
    let result = result.into_iter().filter(|(key, _)| SHOWN.contains(&key.as_str())).collect();
    assert_accounted_for(&result);
    result
}

/// Keys of a result that HTTP/2 tests examine, and show on failure.
const SHOWN: [&str; 9] =
    ["bytes_received", "bytes_sent", "connections", "errors", "http2", "ledger", "requests", "status", "tls"];

/// Checks that every started request ended in one way.
fn assert_accounted_for(result: &Value) {
    let (requests, errors) = (&result["requests"], &result["errors"]);
    let begun = number(&requests["started"]) + number(&requests["carried"]);
    let ended = number(&requests["completed"]) + number(&requests["abandoned"]) + number(&requests["open"]);
    let failed: u64 = rows(result).filter(|row| row["phase"] != "timeout" && row["phase"] != "status").map(count).sum();
    assert!(ended <= begun && begun <= ended + failed, "{requests} {errors}");
}

/// A number in a result.
#[track_caller]
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The failures in a result.
pub fn rows(result: &Value) -> impl Iterator<Item = &Value> {
    result["ledger"].as_array().into_iter().flatten()
}

fn count(row: &Value) -> u64 {
    number(&row["count"])
}

/// Number of failures with this cause.
pub fn failures(result: &Value, cause: &str) -> u64 {
    rows(result).filter(|row| row["cause"] == cause).map(count).sum()
}
