//! Finds the end of a request's body and counts its bytes, without keeping them.

use super::rejection::Rejection;

/// A request body being received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestBody {
    framing: BodyFraming,
    /// Number of content bytes so far, without chunk framing.
    received: u64,
}

/// How much of the input belongs to the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BodyInput {
    /// Number of input bytes in the body, including framing.
    pub used: usize,
    /// True if the body is complete.
    pub finished: bool,
}

impl RequestBody {
    pub(super) fn of_length(bytes: u64) -> Self {
        Self { framing: BodyFraming::Length { left: bytes }, received: 0 }
    }

    pub(super) fn chunked() -> Self {
        Self { framing: BodyFraming::Size { value: 0, digits: 0 }, received: 0 }
    }

    /// Number of content bytes received so far, without chunk framing.
    pub(super) fn received_bytes(&self) -> u64 {
        self.received
    }

    /// Consumes the part of `input` that belongs to the body. `input` must continue where the last call stopped.
    ///
    /// # Errors
    /// Fails if the chunks are malformed.
    pub(super) fn consume_input(&mut self, input: &[u8]) -> Result<BodyInput, Rejection> {
        let mut used = 0;
        while used < input.len() {
            match &mut self.framing {
                BodyFraming::Length { left } | BodyFraming::Data { left } => {
                    let here = (*left).min((input.len() - used) as u64);
                    *left -= here;
                    self.received += here;
                    used += here as usize;
                    if *left == 0 {
                        self.framing = match self.framing {
                            BodyFraming::Length { .. } => return Ok(BodyInput { used, finished: true }),
                            _ => BodyFraming::DataEnd,
                        };
                    }
                }
                _ => {
                    let byte = input[used];
                    used += 1;
                    match self.framing.next_framing(byte)? {
                        Some(next) => self.framing = next,
                        None => return Ok(BodyInput { used, finished: true }),
                    }
                }
            }
        }
        Ok(BodyInput { used, finished: false })
    }
}

/// Position of the next byte in the framing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BodyFraming {
    /// In a body of known length.
    Length { left: u64 },
    /// In the size of a chunk.
    Size { value: u64, digits: u32 },
    /// Between a chunk's size and the end of the line.
    Extension { size: u64 },
    /// In the content of a chunk.
    Data { left: u64 },
    /// In the line ending after a chunk's content.
    DataEnd,
    /// In the trailer after the last chunk; an empty line ends the trailer.
    Trailer { line_is_empty: bool },
}

const BAD_CHUNK: Rejection = Rejection { status: 400, why: "the chunks of the body are malformed" };

impl BodyFraming {
    /// The position after this byte; `None` at the end of the body. Content bytes are not counted here.
    fn next_framing(&self, byte: u8) -> Result<Option<Self>, Rejection> {
        let next = match (self, byte) {
            (Self::Size { digits: 0, .. }, b';' | b' ' | b'\t' | b'\r' | b'\n') => return Err(BAD_CHUNK),
            (Self::Size { value: size, .. } | Self::Extension { size }, b'\n') => match *size {
                0 => Self::Trailer { line_is_empty: true },
                left => Self::Data { left },
            },
            (Self::Size { value, .. }, b';' | b' ' | b'\t' | b'\r') => Self::Extension { size: *value },
            (Self::Size { digits: 16, .. }, _) => return Err(BAD_CHUNK),
            (Self::Size { value, digits }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(BAD_CHUNK)?;
                Self::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::DataEnd, b'\r') | (Self::Extension { .. }, _) => self.clone(),
            (Self::DataEnd, b'\n') => Self::Size { value: 0, digits: 0 },
            (Self::Trailer { line_is_empty: true }, b'\n') => return Ok(None),
            (Self::Trailer { line_is_empty }, b'\r') => Self::Trailer { line_is_empty: *line_is_empty },
            (Self::Trailer { .. }, _) => Self::Trailer { line_is_empty: byte == b'\n' },
            (Self::DataEnd | Self::Length { .. } | Self::Data { .. }, _) => return Err(BAD_CHUNK),
        };
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_length_bodies_end_at_their_length() {
        let mut body = RequestBody::of_length(5);
        assert_eq!(body.consume_input(b"abc"), Ok(BodyInput { used: 3, finished: false }));
        assert_eq!(body.consume_input(b"deGET"), Ok(BodyInput { used: 2, finished: true }));
        assert_eq!(body.received_bytes(), 5);
    }

    #[test]
    fn chunked_bodies_end_alike_however_split() {
        let text = b"5;a=\"b\"\r\nhello\r\n00A \r\n0123456789\r\n0;last\r\nX-T: t\r\nX-U: u\r\n\r\nGET / HTTP/1.1";
        let end = text.len() - b"GET / HTTP/1.1".len();
        for cut in 0..=end {
            let mut body = RequestBody::chunked();
            let first = body.consume_input(&text[..cut]).unwrap();
            assert_eq!(first, BodyInput { used: cut, finished: cut == end }, "cut at {cut}");
            if cut < end {
                assert_eq!(
                    body.consume_input(&text[cut..]),
                    Ok(BodyInput { used: end - cut, finished: true }),
                    "cut at {cut}"
                );
            }
            assert_eq!(body.received_bytes(), 15, "cut at {cut}");
        }
    }

    #[test]
    fn malformed_chunks_are_refused() {
        for text in ["\r\n", ";x\r\n", "g\r\n", "-1\r\n", "5\r\nhelloX", "11111111111111111\r\n"] {
            assert_eq!(RequestBody::chunked().consume_input(text.as_bytes()), Err(BAD_CHUNK), "{text:?}");
        }
    }
}
