//! Violations of HTTP/2 by a server.

use serde::{Deserialize, Serialize};

use crate::Code;

/// Violations of RFC 9113 or RFC 7541 by a server, and demands that cost more than a client can afford. Texts are in
/// lower case without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Breach {
    /// The server's part of the preface is missing.
    #[error("the first frame is not SETTINGS")]
    FirstFrame,
    /// DATA, HEADERS, PRIORITY, RST_STREAM or CONTINUATION on stream 0.
    #[error("a stream's frame on stream 0")]
    StreamZero,
    /// SETTINGS, PING or GOAWAY on another stream.
    #[error("a connection's frame on a request's stream")]
    NotStreamZero,
    /// A frame on a stream that the client has never opened.
    #[error("a frame on a stream that was not opened")]
    IdleStream,
    /// PUSH_PROMISE, or ENABLE_PUSH from a server.
    #[error("server push, which was switched off")]
    Push,
    /// Another frame between HEADERS and its last CONTINUATION.
    #[error("another frame inside a header block")]
    Interrupted,
    /// CONTINUATION without HEADERS.
    #[error("CONTINUATION without HEADERS")]
    Stray,
    /// Padding that does not fit into its frame.
    #[error("padding longer than its frame")]
    Padding,
    /// SETTINGS_MAX_FRAME_SIZE below 16 KiB or above 16 MiB.
    #[error("SETTINGS_MAX_FRAME_SIZE out of range")]
    MaxFrameSize,
    /// WINDOW_UPDATE with an increment of zero.
    #[error("WINDOW_UPDATE by zero")]
    ZeroIncrement,
    /// A GOAWAY with a higher last stream than an earlier one.
    #[error("GOAWAY with a higher last stream than before")]
    GoAwayRises,
    /// A response without `:status`, with two, or with one that is not three digits.
    #[error("no valid :status")]
    Status,
    /// Status 101, which HTTP/2 does not have.
    #[error("101 Switching Protocols")]
    Switching,
    /// A pseudo-header field that is not `:status`, follows a regular field, or appears in trailers.
    #[error("misplaced pseudo-header field")]
    PseudoField,
    /// A name that is empty, or has upper-case letters or invalid bytes.
    #[error("malformed header field name")]
    FieldName,
    /// A value with a line break, NUL, or a leading or trailing blank.
    #[error("malformed header field value")]
    FieldValue,
    /// A field about the connection, such as `connection` or `transfer-encoding`, which only HTTP/1 has.
    #[error("connection-specific header field")]
    ConnectionField,
    /// `content-length` is not a number, or two lengths differ.
    #[error("bad content-length")]
    ContentLength,
    /// A body longer or shorter than announced.
    #[error("body not as long as content-length")]
    BodyLength,
    /// A body in a response that must not have one.
    #[error("body in a response that has none (status 204 or 304, or to HEAD)")]
    NoBody,
    /// An interim response that ends its stream.
    #[error("1xx response that ends the stream")]
    InterimEnds,
    /// Trailers that do not end their stream.
    #[error("trailers that do not end the stream")]
    TrailersDoNotEnd,
    /// DATA without a head before it.
    #[error("DATA before HEADERS")]
    DataFirst,
    /// A frame longer than the client's SETTINGS_MAX_FRAME_SIZE.
    #[error("frame longer than allowed")]
    FrameTooLong,
    /// A frame with the wrong length for its kind.
    #[error("frame of the wrong length")]
    FrameLength,
    /// An index that is 0 or not in the table.
    #[error("HPACK index out of range")]
    Index,
    /// An integer above 2^31, or encoded in more bytes than necessary.
    #[error("HPACK integer too large")]
    Integer,
    /// The header block ends inside a field.
    #[error("truncated header block")]
    Truncated,
    /// EOS inside a string, or padding that is too long or not all ones.
    #[error("malformed Huffman code")]
    Huffman,
    /// A table size update that is too late, too large, or missing.
    #[error("bad HPACK table size update")]
    TableSize,
    /// SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1.
    #[error("SETTINGS_INITIAL_WINDOW_SIZE out of range")]
    InitialWindow,
    /// A window above 2^31-1.
    #[error("flow-control window overflow")]
    WindowOverflow,
    /// More DATA than the client's windows allowed.
    #[error("DATA beyond the flow-control window")]
    WindowExceeded,
    /// HEADERS or DATA after the end of the stream.
    #[error("a frame on a closed stream")]
    ClosedStream,
    /// A header block longer than [`crate::http1::HEAD_MAX`], encoded or decoded.
    #[error("header block longer than 80 KiB")]
    BlockTooLong,
    /// A header block in more than 128 frames.
    #[error("header block in too many frames")]
    BlockFrames,
    /// Unfinished header blocks of all connections together need too much memory, and this block is large.
    #[error("too many unfinished header blocks")]
    BlockMemory,
    /// The server asks for replies and does not read them.
    #[error("replies requested but not read")]
    ControlFlood,
    /// 10,000 frames in a row that advanced no response.
    #[error("10,000 frames without progress")]
    NoProgress,
}

impl Breach {
    /// The error code sent to the server.
    pub fn code(self) -> Code {
        match self {
            Self::FirstFrame
            | Self::StreamZero
            | Self::NotStreamZero
            | Self::IdleStream
            | Self::Push
            | Self::Interrupted
            | Self::Stray
            | Self::Padding
            | Self::MaxFrameSize
            | Self::ZeroIncrement
            | Self::GoAwayRises
            | Self::Status
            | Self::Switching
            | Self::PseudoField
            | Self::FieldName
            | Self::FieldValue
            | Self::ConnectionField
            | Self::ContentLength
            | Self::BodyLength
            | Self::NoBody
            | Self::InterimEnds
            | Self::TrailersDoNotEnd
            | Self::DataFirst => Code::PROTOCOL_ERROR,
            Self::FrameTooLong | Self::FrameLength => Code::FRAME_SIZE_ERROR,
            Self::Index | Self::Integer | Self::Truncated | Self::Huffman | Self::TableSize => Code::COMPRESSION_ERROR,
            Self::InitialWindow | Self::WindowOverflow | Self::WindowExceeded => Code::FLOW_CONTROL_ERROR,
            Self::ClosedStream => Code::STREAM_CLOSED,
            Self::BlockTooLong | Self::BlockFrames | Self::BlockMemory | Self::ControlFlood | Self::NoProgress => {
                Code::ENHANCE_YOUR_CALM
            }
        }
    }
}
