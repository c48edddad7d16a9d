//! Finds the requests in bytes from another source.
//!
//! Accepts and refuses the same bytes as wrk's parser, in its words, so that a script gets the same message for the
//! same place. Refused in addition:
//!
//! - requests whose response could not be read (no version)
//! - heads that no server would understand (folded fields, blanks in a length)
//!
//! As in wrk, only `Transfer-Encoding: chunked` changes the end of a body. A batch is read in one pass; nothing is
//! copied.

use std::ops::Range;

use super::ResponseKind;
use super::chunked::Chunked;
use super::head::{Framing, HeadFacts, is_text, is_token};
use crate::Error;

/// One complete request within given bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The range of the request's bytes.
    pub range: Range<usize>,
    /// Number of body bytes at the end of the range.
    pub body_length: usize,
    /// Effect of the method on the response's body.
    pub response: ResponseKind,
}

/// The first fault in bytes that should be requests, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at {line}:{column}")]
pub struct Malformed {
    /// The fault, in wrk's words.
    pub reason: &'static str,
    /// The line of the fault, from 1.
    pub line: usize,
    /// The position of the faulty byte in that line, from 1.
    pub column: usize,
    /// The index of the faulty byte in all bytes.
    pub at: usize,
}

impl Malformed {
    /// True if the only fault is that the bytes end within a request.
    pub fn is_incomplete(&self) -> bool {
        self.reason == INCOMPLETE
    }
}

/// Finds the requests in `bytes`, which must be complete requests, at least one, and nothing else; appends them to
/// `found`.
///
/// The requests are consecutive from the first byte on. Line endings before a request belong to it; line endings after
/// the last one belong to none.
///
/// # Errors
///
/// The first fault; the requests before it are in `found`.
pub fn outline(bytes: &[u8], found: &mut Vec<Outline>) -> Result<(), Malformed> {
    OutlineReader { bytes, at: 0, allows: Allows::Wrk }.read(found)
}

/// [`outline`] that also accepts methods unknown to wrk, except known ones in lower or mixed case.
///
/// # Errors
///
/// As [`outline`].
pub fn outline_any(bytes: &[u8], found: &mut Vec<Outline>) -> Result<(), Malformed> {
    OutlineReader { bytes, at: 0, allows: Allows::Methods }.read(found)
}

/// [`outline`] for bytes that wrk sends unread, such as all of a script except the first: method and target may be
/// anything between blanks, even with blanks or bytes beyond ASCII inside.
///
/// # Errors
///
/// As [`outline`].
pub fn outline_unread(bytes: &[u8], found: &mut Vec<Outline>) -> Result<(), Malformed> {
    OutlineReader { bytes, at: 0, allows: Allows::Anything }.read(found)
}

/// The reason why bytes are not requests. The place is where the reader stopped.
type Reason = &'static str;

const INCOMPLETE: Reason = "incomplete request";
const CLOSED: Reason = "data received after completed connection: close message";
const METHOD: Reason = "invalid HTTP method";
const TARGET: Reason = "invalid URL";
const CONSTANT: Reason = "invalid constant string";
const VERSION: Reason = "invalid HTTP version";
const LINE_FEED: Reason = "LF character expected";
const FIELD: Reason = "invalid character in header";
const LENGTH: Reason = "invalid character in content-length header";
const LENGTH_AGAIN: Reason = "unexpected content-length header";
const CHUNK_SIZE: Reason = "invalid character in chunk size header";
const CHUNK_END: Reason = "line ending expected after chunk";
const CHUNKS_TOO_LONG: Reason = "too many header bytes seen; overflow detected";

/// The methods, each with the blank after it, the most common first.
const METHODS: [&str; 33] = [
    "GET ",
    "POST ",
    "PUT ",
    "DELETE ",
    "HEAD ",
    "PATCH ",
    "OPTIONS ",
    "CONNECT ",
    "TRACE ",
    "COPY ",
    "LOCK ",
    "MKCOL ",
    "MOVE ",
    "PROPFIND ",
    "PROPPATCH ",
    "SEARCH ",
    "UNLOCK ",
    "BIND ",
    "REBIND ",
    "UNBIND ",
    "ACL ",
    "REPORT ",
    "MKACTIVITY ",
    "CHECKOUT ",
    "MERGE ",
    "M-SEARCH ",
    "NOTIFY ",
    "SUBSCRIBE ",
    "UNSUBSCRIBE ",
    "PURGE ",
    "MKCALENDAR ",
    "LINK ",
    "UNLINK ",
];

/// Reads requests from the first byte to the last.
struct OutlineReader<'a> {
    bytes: &'a [u8],
    /// Number of bytes read.
    at: usize,
    allows: Allows,
}

/// Accepted methods and targets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allows {
    /// Everything that wrk's parser accepts.
    Wrk,
    /// Additionally methods unknown to wrk.
    Methods,
    /// Any text as method and target.
    Anything,
}

impl<'a> OutlineReader<'a> {
    fn read(mut self, found: &mut Vec<Outline>) -> Result<(), Malformed> {
        self.read_requests(found).map_err(|reason| {
            let before = &self.bytes[..self.at];
            let line_start = memchr::memrchr(b'\n', before).map_or(0, |lf| lf + 1);
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            Malformed { reason, line, column: self.at - line_start + 1, at: self.at }
        })
    }

    fn read_requests(&mut self, found: &mut Vec<Outline>) -> Result<(), Reason> {
        let mut keep_alive = true;
        let mut start = 0;
        loop {
            self.take_class(LINE_ENDING);
            match self.peek() {
                Err(_) if start > 0 => return Ok(()),
                Ok(_) if !keep_alive => return Err(CLOSED),
                _ => {}
            }
            let response = match self.allows {
                Allows::Anything => self.read_method_and_target()?,
                _ => self.read_checked_method_and_target()?,
            };
            let is_persistent = self.read_version()?;
            let (facts, is_chunked) = self.read_fields()?;
            let head_end = self.at;
            self.read_body(&facts, is_chunked)?;
            keep_alive = facts.keep_alive(is_persistent);
            found.push(Outline { range: start..self.at, body_length: self.at - head_end, response });
            start = self.at;
        }
    }

    fn read_checked_method_and_target(&mut self) -> Result<ResponseKind, Reason> {
        let response = self.read_method()?;
        self.read_target(response)?;
        Ok(response)
    }

    /// Reads any method and target: the version after them marks their end.
    fn read_method_and_target(&mut self) -> Result<ResponseKind, Reason> {
        let rest = &self.bytes[self.at..];
        let Some(lf) = memchr::memchr(b'\n', rest) else {
            self.at = self.bytes.len();
            return Err(INCOMPLETE);
        };
        let line = &rest[..lf];
        let method = line.iter().position(|&byte| byte == b' ').ok_or(METHOD)?;
        self.at +=
            line.windows(6).rposition(|window| window == b" HTTP/").filter(|&end| end > method).ok_or(CONSTANT)?;
        Ok(str::from_utf8(&line[..method]).map_or(ResponseKind::Usual, ResponseKind::of_method))
    }

    fn read_method(&mut self) -> Result<ResponseKind, Reason> {
        let rest = &self.bytes[self.at..];
        if let Some(method) = METHODS.iter().find(|method| rest.starts_with(method.as_bytes())) {
            self.at += method.len();
            return Ok(ResponseKind::of_method(method.trim_ascii_end()));
        }
        if self.allows == Allows::Methods
            && let Some(blank) =
                rest.iter().position(|&byte| !is_token(byte)).filter(|&end| end > 0 && rest[end] == b' ')
            && !METHODS.iter().any(|method| rest[..=blank].eq_ignore_ascii_case(method.as_bytes()))
        {
            self.at += blank + 1;
            return Ok(ResponseKind::Usual);
        }
        // The first byte from which on no method matches.
        let agreement =
            |method: &&str| rest.iter().zip(method.bytes()).take_while(|(is, should)| **is == *should).count();
        self.at += METHODS.iter().map(agreement).max().unwrap_or_default();
        self.peek().and(Err(METHOD))
    }

    /// Reads a target: a path, `*`, a URL or, for a tunnel, host and port.
    fn read_target(&mut self, response: ResponseKind) -> Result<(), Reason> {
        self.take_class(BLANK);
        let first = self.peek()?;
        if response == ResponseKind::Tunnel {
            self.read_authority()?;
        } else if first.is_ascii_alphabetic() {
            self.take_class(LETTER);
            self.take_literal(b"://", TARGET)?;
            self.read_authority()?;
        } else if first != b'/' && first != b'*' {
            return Err(TARGET);
        }
        self.take_class(VISIBLE);
        match self.peek()? {
            b' ' => Ok(()),
            b'\r' | b'\n' => Err(VERSION),
            _ => Err(TARGET),
        }
    }

    fn read_authority(&mut self) -> Result<(), Reason> {
        let authority = self.take_class(AUTHORITY);
        match self.peek()? {
            b'/' | b'?' => Ok(()),
            b' ' if !authority.is_empty() => Ok(()),
            _ => Err(TARGET),
        }
    }

    /// Reads the version. Returns true if it keeps connections alive by default.
    fn read_version(&mut self) -> Result<bool, Reason> {
        self.take_class(BLANK);
        self.take_literal(b"HTTP/", CONSTANT)?;
        self.digit(b'1')?;
        self.take_literal(b".", VERSION)?;
        let minor = self.digit(b'0')?;
        self.take_line_end(VERSION)?;
        Ok(minor > b'0')
    }

    fn digit(&mut self, least: u8) -> Result<u8, Reason> {
        let byte = self.peek()?;
        if !(least..=b'9').contains(&byte) {
            return Err(VERSION);
        }
        self.at += 1;
        Ok(byte)
    }

    /// Reads the fields and the empty line after them. The bool is true if the body is chunked.
    fn read_fields(&mut self) -> Result<(HeadFacts, bool), Reason> {
        let mut facts = HeadFacts::default();
        let mut is_chunked = false;
        while !matches!(self.peek()?, b'\r' | b'\n') {
            let name = self.take_class(TOKEN);
            if self.peek()? != b':' || name.is_empty() {
                return Err(FIELD);
            }
            self.at += 1;
            self.take_class(BLANK);
            let value_at = self.at;
            let value = self.take_class(TEXT).trim_ascii_end();
            self.take_line_end(FIELD)?;
            if name.eq_ignore_ascii_case(b"transfer-encoding") {
                is_chunked |= value.eq_ignore_ascii_case(b"chunked");
            } else if let Err(error) = facts.note(name, value) {
                let is_number = error == Error::LengthTwice;
                let good = value.iter().position(|byte| !byte.is_ascii_digit()).filter(|_| !is_number);
                self.at = value_at + good.unwrap_or_default();
                return Err(if is_number { LENGTH_AGAIN } else { LENGTH });
            }
        }
        self.take_line_end(LINE_FEED)?;
        Ok((facts, is_chunked))
    }

    fn read_body(&mut self, facts: &HeadFacts, is_chunked: bool) -> Result<(), Reason> {
        match facts.framing() {
            Ok(Framing::Length(_)) if is_chunked => {
                self.at -= 1;
                Err(LENGTH_AGAIN)
            }
            Ok(Framing::Length(length)) => {
                let left = self.bytes.len() - self.at;
                self.at += usize::try_from(length).unwrap_or(usize::MAX).min(left);
                if length > left as u64 { Err(INCOMPLETE) } else { Ok(()) }
            }
            _ if is_chunked => self.read_chunks(),
            // Unlike a response, a request does not extend to the end of the stream.
            _ => Ok(()),
        }
    }

    fn read_chunks(&mut self) -> Result<(), Reason> {
        let mut chunked = Chunked::new();
        loop {
            // Framing is passed byte by byte, to find the position of a fault.
            let left = (self.bytes.len() - self.at) as u64;
            let next = chunked.data_left().clamp(1, left.max(1)) as usize;
            let piece = self.bytes.get(self.at..self.at + next).ok_or(INCOMPLETE)?;
            let taken = chunked.take_piece(piece).map_err(|error| match error {
                Error::ChunkSize => CHUNK_SIZE,
                Error::ChunkEnd => CHUNK_END,
                Error::TrailerTooLong => CHUNKS_TOO_LONG,
                _ => FIELD,
            })?;
            self.at += taken.used;
            if taken.is_last {
                return Ok(());
            }
        }
    }

    /// Takes CR and LF, or LF alone; `reason` if neither follows.
    fn take_line_end(&mut self, reason: Reason) -> Result<(), Reason> {
        match self.peek()? {
            b'\r' => {
                self.at += 1;
                self.take_literal(b"\n", LINE_FEED)
            }
            _ => self.take_literal(b"\n", reason),
        }
    }

    /// Takes exactly these bytes.
    fn take_literal(&mut self, literal: &[u8], reason: Reason) -> Result<(), Reason> {
        for &byte in literal {
            if self.peek()? != byte {
                return Err(reason);
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Takes all following bytes of a class.
    fn take_class(&mut self, class: u8) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| CLASSES[usize::from(byte)] & class == 0).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// The next byte, or an error at the end.
    fn peek(&self) -> Result<u8, Reason> {
        self.bytes.get(self.at).copied().ok_or(INCOMPLETE)
    }
}

/// Part of a field name.
const TOKEN: u8 = 1;
/// Part of a field value.
const TEXT: u8 = 1 << 1;
/// Part of a path or a query.
const VISIBLE: u8 = 1 << 2;
/// Part of a user name, a host or a port.
const AUTHORITY: u8 = 1 << 3;
/// Part of a scheme.
const LETTER: u8 = 1 << 4;
/// Allowed between words.
const BLANK: u8 = 1 << 5;
/// Part of an empty line.
const LINE_ENDING: u8 = 1 << 6;

/// The classes of every byte.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        let is_in = [
            (TOKEN, is_token(byte)),
            (TEXT, is_text(byte)),
            (VISIBLE, byte.is_ascii_graphic()),
            (AUTHORITY, is_authority(byte)),
            (LETTER, byte.is_ascii_alphabetic()),
            (BLANK, matches!(byte, b' ' | b'\t')),
            (LINE_ENDING, matches!(byte, b'\r' | b'\n')),
        ];
        let mut index = 0;
        while index < is_in.len() {
            if is_in[index].1 {
                classes[byte as usize] |= is_in[index].0;
            }
            index += 1;
        }
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

const fn is_authority(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' | b'%' | b';' | b':')
        || matches!(byte, b'&' | b'=' | b'+' | b'$' | b',' | b'@' | b'[' | b']')
}
