//! Meaning of the fields of a response's head or trailers, and their validity (RFC 9113, 8).

use crate::Breach;
use crate::http1::is_token;

/// The meaning of one header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// The status; 0: none, as in trailers.
    pub(super) status: u16,
    /// The `content-length`.
    pub(super) length: Option<u64>,
    /// The `grpc-status`, as in [`crate::Event::Complete`].
    pub(super) grpc_status: u8,
    /// The first fault in the fields.
    pub(super) breach: Option<Breach>,
    /// True if a regular field has been seen.
    has_fields: bool,
}

/// The highest defined `grpc-status`.
pub const GRPC_STATUS_MAX: u8 = 16;

/// UNKNOWN, for a status that gRPC does not define.
const GRPC_UNKNOWN: u8 = 2;

/// Represents all numbers undefined in gRPC: each would be a separate cause, and a server can choose any.
const GRPC_ABOVE: u8 = GRPC_STATUS_MAX + 1;

impl Meaning {
    /// A meaning before any fields.
    pub(super) fn new() -> Self {
        Self { status: 0, length: None, grpc_status: 0, breach: None, has_fields: false }
    }

    pub(super) fn note_field(&mut self, name: &[u8], value: &[u8]) {
        if let Err(breach) = self.check_complete(name, value) {
            self.breach.get_or_insert(breach);
        }
    }

    fn check_complete(&mut self, name: &[u8], value: &[u8]) -> Result<(), Breach> {
        if let [b':', ..] = name {
            if name != b":status" || self.has_fields {
                return Err(Breach::PseudoField);
            }
            let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else { return Err(Breach::Status) };
            if self.status != 0 {
                return Err(Breach::Status);
            }
            self.status = [a, b, c].iter().fold(0, |status, &&digit| status * 10 + u16::from(digit - b'0'));
            return if self.status == 101 { Err(Breach::Switching) } else { Ok(()) };
        }
        self.has_fields = true;
        if name.is_empty() || !name.iter().all(|&byte| IN_NAME[usize::from(byte)]) {
            return Err(Breach::FieldName);
        }
        let blank_end = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
            || blank_end(value.first())
            || blank_end(value.last())
        {
            return Err(Breach::FieldValue);
        }
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                Err(Breach::ConnectionField)
            }
            b"te" if value != b"trailers" => Err(Breach::ConnectionField),
            b"content-length" => {
                let length = number(value).ok_or(Breach::ContentLength)?;
                match self.length.replace(length) {
                    Some(other) if other != length => Err(Breach::ContentLength),
                    _ => Ok(()),
                }
            }
            b"grpc-status" => {
                self.grpc_status = number(value).map_or(GRPC_UNKNOWN, |status| status.min(GRPC_ABOVE.into()) as u8);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Parses a number of at most 64 bits, digits only.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Bytes allowed in names: tokens, without upper-case letters.
static IN_NAME: [bool; 256] = {
    let mut is_in = [false; 256];
    let mut byte = 0_u8;
    loop {
        is_in[byte as usize] = is_token(byte) && !byte.is_ascii_uppercase();
        if byte == u8::MAX {
            break is_in;
        }
        byte += 1;
    }
};
