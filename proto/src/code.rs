//! HTTP/2's error codes (RFC 9113, 7).

use std::fmt;

use serde::{Deserialize, Serialize};

/// An HTTP/2 error code: why a stream was reset or a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "u32")]
pub struct Code(pub(crate) u32);

impl Code {
    /// No error.
    pub const NO_ERROR: Self = Self(0x0);
    /// The receiver of the code broke the protocol in a way that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// The sender of the code made a mistake.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// The receiver of the code broke flow control: it sent more data than was allowed, or made a window larger than
    /// 2^31-1.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// The receiver of the code did not acknowledge SETTINGS in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame arrived on a stream that its sender had already ended.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame had a forbidden size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The request was not processed at all.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is no longer wanted.
    pub const CANCEL: Self = Self(0x8);
    /// A header block could not be decoded.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection that a CONNECT request asked for failed.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The receiver of the code causes more work than is reasonable.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The connection's TLS does not meet the security requirements.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// The server handles the request only over HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// Number of codes that the RFC names, which are those below this number.
    pub const NAMED: usize = NAMES.len();

    /// The code with this number. All codes not named by the RFC are equal: a server can choose any number, and
    /// counting each separately would take billions of counters.
    pub fn new(number: u32) -> Self {
        Self(number.min(Self::NAMED as u32))
    }

    /// The code's name in the RFC; `None` for all other codes.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(self.0 as usize).copied()
    }
}

impl From<u32> for Code {
    fn from(number: u32) -> Self {
        Self::new(number)
    }
}

const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name().unwrap_or("unknown code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_shown_by_name() {
        assert_eq!(Code::NO_ERROR.to_string(), "NO_ERROR");
        assert_eq!(Code::ENHANCE_YOUR_CALM.to_string(), "ENHANCE_YOUR_CALM");
        assert_eq!(Code::HTTP_1_1_REQUIRED.to_string(), "HTTP_1_1_REQUIRED");
        assert_eq!(Code::new(0xd), Code::HTTP_1_1_REQUIRED);
        for number in [0xe, 0xf, u32::MAX] {
            assert_eq!((Code::new(number), Code::new(number).to_string()), (Code(0xe), "unknown code".to_owned()));
        }
    }
}
