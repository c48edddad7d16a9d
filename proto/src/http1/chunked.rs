//! The chunked transfer coding (RFC 9112, 7.1), decoded in place.
//!
//! Reads sizes, extensions and trailers byte by byte and keeps none of them, so that any split of the bytes gives one
//! result, and no peer can make it grow. Trailers are reported as they pass.

use super::HEAD_MAX;
use super::head::{is_text, is_token};
use super::taken::Taken;
use crate::Error;

/// A chunked body that is being read.
#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// The size of the chunk as far as it has been read, then how many of its bytes are still to come.
    size: u64,
    /// How many bytes of the current chunk's first line, or of the trailers, have been read.
    framing: usize,
}

/// The place of the next byte: the framing of a chunk, its data, or the end after the last chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// The first digit of a chunk's size.
    Size,
    /// Another digit, or the end of the size.
    Digits,
    /// White space after the size.
    Padding,
    /// A chunk extension, to the end of its line.
    Extension,
    /// The LF after the CR of a chunk's first line.
    SizeLf,
    /// The line end after a chunk's data.
    DataEnd,
    /// The LF after the CR of that line end.
    DataLf,
    /// A chunk's data.
    Data,
    /// The first byte of a trailer field, or the empty line that ends the body.
    Trailer,
    /// A trailer field's name.
    Name,
    /// A trailer field's value.
    Value,
    /// The LF after the CR of a trailer field.
    ValueLf,
    /// The LF after the CR of the last line.
    LastLf,
    /// Nothing: the body is complete.
    Done,
}

impl Chunked {
    /// A body of which nothing has arrived.
    pub(super) fn new() -> Self {
        Self { state: State::Size, size: 0, framing: 0 }
    }

    /// Takes bytes up to the end of the first piece of data or of trailer fields in them, or of the body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Taken, Error> {
        let mut used = 0;
        while self.state < State::Data {
            let Some(&byte) = bytes.get(used) else { break };
            self.step(byte)?;
            used += 1;
        }
        if self.state > State::Data {
            return self.take_end(bytes, used);
        }
        let data = self.data_left().min((bytes.len() - used) as u64);
        self.skip(data);
        let end = used + data as usize;
        Ok(Taken { used: end, piece: used..end, is_trailer: false, is_last: false })
    }

    /// Takes the next bytes of trailer fields, from `start` on, or the empty line after them.
    fn take_end(&mut self, bytes: &[u8], start: usize) -> Result<Taken, Error> {
        let mut used = start;
        while let Some(&byte) = bytes.get(used).filter(|byte| self.is_field(**byte)) {
            match self.step(byte) {
                Ok(()) => used += 1,
                Err(error) if used == start => return Err(error),
                Err(_) => {
                    // The bytes before it are reported first. It is read again then, and counted.
                    self.framing -= 1;
                    break;
                }
            }
        }
        let piece = start..used;
        while piece.is_empty()
            && self.state != State::Done
            && let Some(&byte) = bytes.get(used)
        {
            self.step(byte)?;
            used += 1;
        }
        Ok(Taken { used, piece, is_trailer: true, is_last: self.state == State::Done })
    }

    /// True if the next byte belongs to a trailer field.
    fn is_field(&self, byte: u8) -> bool {
        match self.state {
            State::Name | State::Value | State::ValueLf => true,
            State::Trailer => byte != b'\r' && byte != b'\n',
            _ => false,
        }
    }

    /// How many of the next bytes are data.
    pub(super) fn data_left(&self) -> u64 {
        if self.state == State::Data { self.size } else { 0 }
    }

    /// Skips `n` bytes of data, at most [`Self::data_left`].
    pub(super) fn skip(&mut self, n: u64) {
        if self.state == State::Data {
            self.size -= n;
            if self.size == 0 {
                self.state = State::DataEnd;
            }
        }
    }

    /// Takes one byte that is not data.
    #[inline(always)]
    fn step(&mut self, byte: u8) -> Result<(), Error> {
        self.framing += 1;
        if self.framing > HEAD_MAX {
            return Err(Error::TrailerTooLong);
        }
        self.state = match (self.state, byte) {
            (State::Size | State::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (State::Digits | State::Padding, b' ' | b'\t') => State::Padding,
            (State::Digits | State::Padding, b';') => State::Extension,
            (State::Digits | State::Padding | State::Extension, b'\r') => State::SizeLf,
            (State::Digits | State::Padding | State::Extension | State::SizeLf, b'\n') => self.sized(),
            (State::Extension, _) => State::Extension,
            (State::Size | State::Digits | State::Padding | State::SizeLf, _) => return Err(Error::ChunkSize),

            (State::DataEnd, b'\r') => State::DataLf,
            (State::DataEnd | State::DataLf, b'\n') => self.chunk(),
            (State::DataEnd | State::DataLf, _) => return Err(Error::ChunkEnd),

            (State::Trailer, b'\r') => State::LastLf,
            (State::Trailer | State::LastLf, b'\n') => State::Done,
            (State::Name, b':') => State::Value,
            (State::Trailer | State::Name, byte) if is_token(byte) => State::Name,
            // A folded line continues the field before it, if there is one.
            (State::Trailer, b' ' | b'\t') if self.framing > 1 => State::Value,
            (State::Value, b'\r') => State::ValueLf,
            (State::Value | State::ValueLf, b'\n') => State::Trailer,
            (State::Value, byte) if is_text(byte) => State::Value,
            (State::Trailer | State::Name | State::Value | State::ValueLf | State::LastLf, _) => {
                return Err(Error::Trailer);
            }

            (State::Data | State::Done, _) => unreachable!("data is not read here, and nothing follows the end"),
        };
        Ok(())
    }

    /// Takes a digit of the size.
    fn digit(&mut self, byte: u8) -> Result<State, Error> {
        let digit = char::from(byte).to_digit(16).ok_or(Error::ChunkSize)?;
        self.size = self.size.checked_mul(16).ok_or(Error::ChunkSize)? + u64::from(digit);
        Ok(State::Digits)
    }

    /// Handles the end of the line with the size.
    fn sized(&mut self) -> State {
        self.framing = 0;
        if self.size == 0 { State::Trailer } else { State::Data }
    }

    /// Starts the next chunk.
    fn chunk(&mut self) -> State {
        self.framing = 0;
        State::Size
    }
}

/// The data of a complete chunked body; `None` if it is not one.
pub(crate) fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut chunked = Chunked::new();
    let mut data = Vec::new();
    while !bytes.is_empty() {
        let Taken { used, piece, is_trailer, is_last } = chunked.take(bytes).ok()?;
        data.extend_from_slice(if is_trailer { &[] } else { &bytes[piece] });
        if is_last {
            return Some(data);
        }
        bytes = &bytes[used..];
    }
    None
}
