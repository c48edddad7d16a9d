//! Removes the framing of a response's body in place.
//!
//! It neither copies nor keeps any byte of the body.

use super::chunked::Chunked;
use super::taken::Consumed;
use crate::Error;

/// The body being read, by its kind of end.
#[derive(Debug)]
pub(super) enum BodyReader {
    /// This many bytes are still to come.
    Length(u64),
    /// A chunked body.
    Chunked(Chunked),
    /// Everything until the end of the stream.
    UntilEof,
}

impl BodyReader {
    /// Takes bytes up to the end of the first piece of data, of the first trailer fields, or of the body.
    pub(super) fn take_piece(&mut self, bytes: &[u8]) -> Result<Consumed, Error> {
        if let Self::Chunked(chunked) = self {
            return chunked.take_piece(bytes);
        }
        let data = self.data_left().min(bytes.len() as u64);
        let is_last = self.skip_data(data);
        let used = data as usize;
        Ok(Consumed { used, piece: 0..used, is_trailer: false, is_last })
    }

    /// Number of following data bytes; [`u64::MAX`]: all until the end of the stream.
    pub(super) fn data_left(&self) -> u64 {
        match self {
            Self::Length(left) => *left,
            Self::Chunked(chunked) => chunked.data_left(),
            Self::UntilEof => u64::MAX,
        }
    }

    /// Skips `n` bytes of data, at most [`Self::data_left`]. Returns true if the body ends with them.
    pub(super) fn skip_data(&mut self, n: u64) -> bool {
        match self {
            Self::Length(left) => {
                *left -= n;
                *left == 0
            }
            Self::Chunked(chunked) => {
                chunked.skip_data(n);
                false
            }
            Self::UntilEof => false,
        }
    }
}
