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
    /// The peer broke the protocol in a way without a specific code.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// The sender of the code made a mistake.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// The peer sent more data than was allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame on a stream whose sender had ended it.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame of a forbidden size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The request was not processed at all.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is no longer wanted.
    pub const CANCEL: Self = Self(0x8);
    /// A header block cannot be decoded.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection for a CONNECT request failed.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer causes more work than is reasonable.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The connection is not as secure as it must be.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// The request needs HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// Number of named codes; they are the first ones.
    pub const NAMED: usize = NAMES.len();

    /// The code with this number. All codes not named by the RFC are equal: a server can choose any number, and
    /// counting each separately would take billions of counters.
    pub fn new(number: u32) -> Self {
        Self(number.min(Self::NAMED as u32))
    }

    /// The name in the RFC, if any.
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
