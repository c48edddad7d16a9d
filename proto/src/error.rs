//! Reasons why a response is missing or incomplete.

use serde::{Deserialize, Serialize};

use crate::{Breach, Code};

/// The reason why a response is missing or incomplete. Lower case, no full stop: it follows "read: 28 × ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// The stream ended before any byte of the response; interim responses do not count.
    #[error("closed by the server before a response began")]
    ClosedBeforeResponse,
    /// The stream ended within the head.
    #[error("closed by the server inside a response head")]
    ClosedInHead,
    /// The stream ended within a body of known length.
    #[error("closed by the server inside a response body")]
    ClosedInBody,
    /// The first bytes are not `HTTP/`, nor, over HTTP/2, a frame.
    #[error("not an HTTP response")]
    NotHttp,
    /// The first bytes are a TLS record.
    #[error("the server speaks TLS")]
    SpeaksTls,
    /// The head begins with `HTTP/`, but the rest of the status line is malformed.
    #[error("malformed status line")]
    StatusLine,
    /// The head is longer than [`crate::http1::HEAD_MAX`].
    #[error("response head longer than 80 KiB")]
    HeadTooLong,
    /// The incomplete heads that a thread's connections keep exceed their common limit.
    #[error("too many unfinished response heads")]
    HeadMemory,
    /// A field is not `name: value`.
    #[error("malformed header field")]
    HeaderField,
    /// `Content-Length` is not a plain decimal number of at most 64 bits.
    #[error("bad Content-Length")]
    Length,
    /// There is more than one `Content-Length`, in one field or several.
    #[error("two Content-Length fields")]
    LengthTwice,
    /// There are both `Content-Length` and `Transfer-Encoding`.
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndEncoding,
    /// A chunk's size is not a hexadecimal number of at most 64 bits.
    #[error("bad chunk size")]
    ChunkSize,
    /// A chunk's data is not followed by a line ending.
    #[error("chunk longer than its size")]
    ChunkEnd,
    /// Chunk extensions or trailers exceed [`crate::http1::HEAD_MAX`].
    #[error("chunk extensions or trailers longer than 80 KiB")]
    TrailerTooLong,
    /// A trailer is not `name: value`.
    #[error("malformed trailer field")]
    Trailer,
    /// Bytes arrived after the last response, with no request in flight.
    #[error("bytes after a complete response")]
    ExtraBytes,
    /// Bytes arrived on a connection before any request had left.
    #[error("bytes before any request")]
    EarlyBytes,
    /// The server switched to a protocol that was not requested (101).
    #[error("the server switched to another protocol")]
    Switched,
    /// The connection ended before this request was answered, for a reason unrelated to this request.
    #[error("the connection was closed before the request was answered")]
    ConnectionEnded,
    /// The server reset the request's stream.
    #[error("reset by the server ({0})")]
    Reset(Code),
    /// The server ended the connection with GOAWAY.
    #[error("ended by the server ({0})")]
    GoAway(Code),
    /// The server broke the rules of HTTP/2.
    #[error("{0} ({code})", code = .0.code())]
    Breach(Breach),
    /// The server answered in HTTP/1 although the client used HTTP/2.
    #[error("answered in HTTP/1.1")]
    AnsweredInHttp1,
    /// The server's HTTP/2 SETTINGS have not arrived; returned only by [`crate::Http2::overdue_server_event`].
    #[error("no SETTINGS from the server")]
    NoSettings,
    /// The server allows no streams; returned only by [`crate::Http2::overdue_server_event`].
    #[error("the server allows no streams")]
    NoStreams,
    /// The server opens no window for a request's body; returned only by [`crate::Http2::overdue_server_event`].
    #[error("the server opens no window for the request's body")]
    NoWindow,
}

/// The part of a response in which an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResponsePart {
    /// Before or inside the head.
    Head,
    /// Inside the body, or after it.
    Body,
}

impl From<Breach> for Error {
    fn from(breach: Breach) -> Self {
        Self::Breach(breach)
    }
}

impl Error {
    /// True if the error shows that the server speaks a protocol other than the client's.
    pub fn is_other_protocol(self) -> bool {
        matches!(self, Self::NotHttp | Self::SpeaksTls | Self::AnsweredInHttp1)
    }

    /// True if the server's bytes cannot be read as a response.
    pub fn is_unreadable(self) -> bool {
        match self {
            Self::NotHttp
            | Self::SpeaksTls
            | Self::AnsweredInHttp1
            | Self::StatusLine
            | Self::HeadTooLong
            | Self::HeadMemory
            | Self::HeaderField
            | Self::Length
            | Self::LengthTwice
            | Self::LengthAndEncoding
            | Self::ChunkSize
            | Self::ChunkEnd
            | Self::TrailerTooLong
            | Self::Trailer
            | Self::Switched
            | Self::Breach(_) => true,
            Self::ClosedBeforeResponse
            | Self::ClosedInHead
            | Self::ClosedInBody
            | Self::ExtraBytes
            | Self::EarlyBytes
            | Self::ConnectionEnded
            | Self::Reset(_)
            | Self::GoAway(_)
            | Self::NoSettings
            | Self::NoStreams
            | Self::NoWindow => false,
        }
    }

    /// The part of the response in which the error occurred, judged by the error alone, for use before
    /// [`crate::Event::Head`]. After that event, every error is in the body: some, such as a reset, can occur in either
    /// part.
    pub fn failed_part(self) -> ResponsePart {
        match self {
            Self::ClosedInBody
            | Self::ChunkSize
            | Self::ChunkEnd
            | Self::TrailerTooLong
            | Self::Trailer
            | Self::ExtraBytes
            | Self::Breach(Breach::BodyLength | Breach::NoBody | Breach::TrailersDoNotEnd) => ResponsePart::Body,
            _ => ResponsePart::Head,
        }
    }
}
