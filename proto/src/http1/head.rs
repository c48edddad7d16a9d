//! Framing of a response, from its head (RFC 9112).
//!
//! Reads complete lines and heads only, and keeps nothing; [`super::collect`] collects them.

use httparse::{EMPTY_HEADER, Header, Status};

use crate::Error;

/// Number of fields that a head may have without an allocation. Clearing the array costs every response some time: 30
/// ns for 64 fields, less than 10 for 32.
const FIELDS_USUAL: usize = 32;

/// The status of a server that has waited long enough for a request.
const REQUEST_TIMEOUT: u16 = 408;

/// The relevant parts of a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The status, 100 to 999.
    pub(super) status: u16,
    /// The framing of the body by the fields, or the error in them. Ignored if the status or the request's method rules
    /// a body out.
    pub(super) framing: Result<Framing, Error>,
    /// True if version and fields allow the connection to stay open.
    pub(super) keep_alive: bool,
}

/// The end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// With a chunk that marks the end.
    Chunked,
    /// With the stream.
    UntilEof,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusLine {
    status: u16,
    /// True if the version keeps connections alive by default: HTTP/1.1 and higher, but not 2.0, which has another
    /// syntax.
    is_persistent: bool,
}

impl StatusLine {
    /// Reads a status line, including its line ending.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Error> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b' ', a @ b'1'..=b'9', b, c, rest @ ..] = line else {
            return Err(Error::StatusLine);
        };
        let reason_is_fine = match rest {
            [] => true,
            [b' ', reason @ ..] => reason.iter().copied().all(is_text),
            _ => false,
        };
        if !reason_is_fine || [major, minor, b, c].iter().any(|digit| !digit.is_ascii_digit()) {
            return Err(Error::StatusLine);
        }
        let status = [a, b, c].iter().fold(0, |status, &&digit| status * 10 + u16::from(digit - b'0'));
        Ok(Self { status, is_persistent: *major == b'1' && *minor >= b'1' })
    }
}

impl Head {
    /// Reads the fields after a status line, up to and including the empty line.
    pub(super) fn parse(line: StatusLine, fields: &[u8]) -> Result<Self, Error> {
        let mut usual = [EMPTY_HEADER; FIELDS_USUAL];
        let mut many;
        let parsed = match httparse::parse_headers(fields, &mut usual) {
            Err(httparse::Error::TooManyHeaders) => {
                many = vec![EMPTY_HEADER; memchr::memchr_iter(b'\n', fields).count()];
                httparse::parse_headers(fields, &mut many)
            }
            parsed => parsed,
        };
        let Ok(Status::Complete((_, fields))) = parsed else { return Err(Error::HeaderField) };
        let mut facts = HeadFacts::default();
        let mut noted = Ok(());
        for Header { name, value } in fields {
            noted = noted.and(facts.note(name.as_bytes(), value));
        }
        let keep_alive = facts.keep_alive(line.is_persistent);
        Ok(Self { status: line.status, framing: noted.and_then(|()| facts.framing()), keep_alive })
    }
}

impl Head {
    /// True if a response that answers no request announces that the server ends the connection.
    pub(super) fn is_last_word(&self) -> bool {
        let ends = !self.keep_alive || self.status == REQUEST_TIMEOUT;
        ends && self.status >= 200 && self.framing.is_ok()
    }
}

/// Framing facts from the fields read so far, of a response or a request.
#[derive(Default)]
pub(super) struct HeadFacts {
    length: Option<u64>,
    /// True if the last transfer coding is `chunked`; `None`: there is no coding.
    chunked: Option<bool>,
    /// True if a `Connection` field has the option `close`.
    close: bool,
    /// True if a `Connection` field has the option `keep-alive`.
    keep: bool,
}

impl HeadFacts {
    pub(super) fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
        // The length alone rules out most fields.
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => self.note_connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.note_length(value)?,
            16 if name.eq_ignore_ascii_case(b"proxy-connection") => self.note_connection(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.note_encoding(value),
            _ => {}
        }
        Ok(())
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), Error> {
        if self.length.is_some() || value.contains(&b',') {
            return Err(Error::LengthTwice);
        }
        self.length = Some(plain_number(value).ok_or(Error::Length)?);
        Ok(())
    }

    /// Records the transfer codings. Until RFC 7230, `identity` was the name for none.
    fn note_encoding(&mut self, value: &[u8]) {
        let codings = elements(value).filter(|coding| !coding.eq_ignore_ascii_case(b"identity"));
        self.chunked = codings.last().map(|coding| coding.eq_ignore_ascii_case(b"chunked")).or(self.chunked);
    }

    fn note_connection(&mut self, value: &[u8]) {
        for option in elements(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// True if the connection stays open. `is_persistent`: the default of the version.
    pub(super) fn keep_alive(&self, is_persistent: bool) -> bool {
        !self.close && (is_persistent || self.keep)
    }

    pub(super) fn framing(&self) -> Result<Framing, Error> {
        match (self.chunked, self.length) {
            (Some(_), Some(_)) => Err(Error::LengthAndEncoding),
            (Some(true), None) => Ok(Framing::Chunked),
            (None, Some(length)) => Ok(Framing::Length(length)),
            (Some(false) | None, None) => Ok(Framing::UntilEof),
        }
    }
}

/// The beginning of the first line that makes a head unreadable, and the position of the wrong byte in the head; for
/// people.
pub(super) fn flaw(head: &[u8]) -> Option<(usize, usize)> {
    let mut facts = HeadFacts::default();
    let mut start = memchr::memchr(b'\n', head)? + 1;
    while let Some(length) = memchr::memchr(b'\n', &head[start..]) {
        let line = &head[start..start + length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let name = line.iter().take_while(|byte| is_token(**byte)).count();
        let value = line[name..].strip_prefix(b":").filter(|_| name > 0);
        let Some(value) = value.or(line.is_empty().then_some(b"")) else { return Some((start, start + name)) };
        if let Some(at) = value.iter().position(|byte| !is_text(*byte)) {
            return Some((start, start + name + 1 + at));
        }
        if facts.note(&line[..name], value.trim_ascii()).is_err() || facts.framing().is_err() {
            return Some((start, start));
        }
        start += length + 1;
    }
    None
}

/// Joins folded lines in place: from byte `start` of `text` on, the line ending before each continuation line becomes
/// blanks (RFC 9112, 5.2), so that the length stays the same. Returns true if there were any.
pub fn unfold(text: &mut [u8], start: usize) -> bool {
    let mut any = false;
    for at in start.max(1)..text.len() {
        if matches!(text[at], b' ' | b'\t') && text[at - 1] == b'\n' {
            text[at - 1] = b' ';
            if at > 1 && text[at - 2] == b'\r' {
                text[at - 2] = b' ';
            }
            any = true;
        }
    }
    any
}

/// The non-empty elements of a comma-separated list.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|element| !element.is_empty())
}

/// Parses a number of at most 64 bits, digits only.
fn plain_number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// True if a byte may be part of a field name.
pub(crate) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

/// True if a byte may be part of a field value or a reason phrase.
pub(super) const fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
