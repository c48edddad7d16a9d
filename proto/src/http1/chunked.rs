//! The chunked transfer coding (RFC 9112, 7.1), decoded in place.
//!
//! Reads sizes, extensions and trailers byte by byte and keeps none of them, so that any split of the bytes gives the
//! same result, and no peer can make the state grow. Trailers are reported as they pass.

use super::HEAD_MAX;
use super::head::{is_text, is_token};
use super::taken::Consumed;
use crate::Error;

/// The state of a chunked body being read.
#[derive(Debug)]
pub(super) struct Chunked {
    state: ChunkState,
    /// The part of the chunk size read so far, then the number of its bytes still to come.
    size: u64,
    /// Number of bytes read of the current chunk's first line, or of the trailers.
    framing: usize,
}

/// The place of the next byte: the framing of a chunk, its data, or the end after the last chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChunkState {
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
    /// The line ending after a chunk's data.
    DataEnd,
    /// The LF after the CR after a chunk's data.
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
    /// A body before its first byte.
    pub(super) fn new() -> Self {
        Self { state: ChunkState::Size, size: 0, framing: 0 }
    }

    /// Takes bytes up to the end of the first piece of data, of the first trailer fields, or of the body.
    pub(super) fn take_piece(&mut self, bytes: &[u8]) -> Result<Consumed, Error> {
        let mut used = 0;
        while self.state < ChunkState::Data {
            let Some(&byte) = bytes.get(used) else { break };
            self.step_framing(byte)?;
            used += 1;
        }
        if self.state > ChunkState::Data {
            return self.take_trailers_or_end(bytes, used);
        }
        let data = self.data_left().min((bytes.len() - used) as u64);
        self.skip_data(data);
        let end = used + data as usize;
        Ok(Consumed { used: end, piece: used..end, is_trailer: false, is_last: false })
    }

    /// Takes the next bytes of trailer fields, from `start` on, or the empty line after them.
    fn take_trailers_or_end(&mut self, bytes: &[u8], start: usize) -> Result<Consumed, Error> {
        let mut used = start;
        while let Some(&byte) = bytes.get(used).filter(|byte| self.is_field(**byte)) {
            match self.step_framing(byte) {
                Ok(()) => used += 1,
                Err(error) if used == start => return Err(error),
                Err(_) => {
                    // The preceding bytes are reported first. Then this byte is read again, and counted.
                    self.framing -= 1;
                    break;
                }
            }
        }
        let piece = start..used;
        while piece.is_empty()
            && self.state != ChunkState::Done
            && let Some(&byte) = bytes.get(used)
        {
            self.step_framing(byte)?;
            used += 1;
        }
        Ok(Consumed { used, piece, is_trailer: true, is_last: self.state == ChunkState::Done })
    }

    /// True if the next byte belongs to a trailer field.
    fn is_field(&self, byte: u8) -> bool {
        match self.state {
            ChunkState::Name | ChunkState::Value | ChunkState::ValueLf => true,
            ChunkState::Trailer => byte != b'\r' && byte != b'\n',
            _ => false,
        }
    }

    /// Number of following data bytes.
    pub(super) fn data_left(&self) -> u64 {
        if self.state == ChunkState::Data { self.size } else { 0 }
    }

    /// Skips `n` bytes of data, at most [`Self::data_left`].
    pub(super) fn skip_data(&mut self, n: u64) {
        if self.state == ChunkState::Data {
            self.size -= n;
            if self.size == 0 {
                self.state = ChunkState::DataEnd;
            }
        }
    }

    /// Takes one byte that is not data.
    #[inline(always)]
    fn step_framing(&mut self, byte: u8) -> Result<(), Error> {
        self.framing += 1;
        if self.framing > HEAD_MAX {
            return Err(Error::TrailerTooLong);
        }
        self.state = match (self.state, byte) {
            (ChunkState::Size | ChunkState::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.add_size_digit(byte)?
            }
            (ChunkState::Digits | ChunkState::Padding, b' ' | b'\t') => ChunkState::Padding,
            (ChunkState::Digits | ChunkState::Padding, b';') => ChunkState::Extension,
            (ChunkState::Digits | ChunkState::Padding | ChunkState::Extension, b'\r') => ChunkState::SizeLf,
            (ChunkState::Digits | ChunkState::Padding | ChunkState::Extension | ChunkState::SizeLf, b'\n') => {
                self.after_size_line()
            }
            (ChunkState::Extension, _) => ChunkState::Extension,
            (ChunkState::Size | ChunkState::Digits | ChunkState::Padding | ChunkState::SizeLf, _) => {
                return Err(Error::ChunkSize);
            }

            (ChunkState::DataEnd, b'\r') => ChunkState::DataLf,
            (ChunkState::DataEnd | ChunkState::DataLf, b'\n') => self.start_chunk(),
            (ChunkState::DataEnd | ChunkState::DataLf, _) => return Err(Error::ChunkEnd),

            (ChunkState::Trailer, b'\r') => ChunkState::LastLf,
            (ChunkState::Trailer | ChunkState::LastLf, b'\n') => ChunkState::Done,
            (ChunkState::Name, b':') => ChunkState::Value,
            (ChunkState::Trailer | ChunkState::Name, byte) if is_token(byte) => ChunkState::Name,
            // A folded line continues the field before it, if there is one.
            (ChunkState::Trailer, b' ' | b'\t') if self.framing > 1 => ChunkState::Value,
            (ChunkState::Value, b'\r') => ChunkState::ValueLf,
            (ChunkState::Value | ChunkState::ValueLf, b'\n') => ChunkState::Trailer,
            (ChunkState::Value, byte) if is_text(byte) => ChunkState::Value,
            (
                ChunkState::Trailer | ChunkState::Name | ChunkState::Value | ChunkState::ValueLf | ChunkState::LastLf,
                _,
            ) => {
                return Err(Error::Trailer);
            }

            (ChunkState::Data | ChunkState::Done, _) => {
                unreachable!("data is not read here, and nothing follows the end")
            }
        };
        Ok(())
    }

    /// Takes a digit of the size.
    fn add_size_digit(&mut self, byte: u8) -> Result<ChunkState, Error> {
        let digit = char::from(byte).to_digit(16).ok_or(Error::ChunkSize)?;
        self.size = self.size.checked_mul(16).ok_or(Error::ChunkSize)? + u64::from(digit);
        Ok(ChunkState::Digits)
    }

    /// Handles the end of the line with the size.
    fn after_size_line(&mut self) -> ChunkState {
        self.framing = 0;
        if self.size == 0 { ChunkState::Trailer } else { ChunkState::Data }
    }

    /// Starts the next chunk.
    fn start_chunk(&mut self) -> ChunkState {
        self.framing = 0;
        ChunkState::Size
    }
}

/// The data of a complete chunked body; `None` if it is not one.
pub(crate) fn decode_chunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut chunked = Chunked::new();
    let mut data = Vec::new();
    while !bytes.is_empty() {
        let Consumed { used, piece, is_trailer, is_last } = chunked.take_piece(bytes).ok()?;
        data.extend_from_slice(if is_trailer { &[] } else { &bytes[piece] });
        if is_last {
            return Some(data);
        }
        bytes = &bytes[used..];
    }
    None
}
