//! The result of reading some bytes of a body, with any framing.

use std::ops::Range;

/// What a body took out of the bytes it was given.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// How many bytes, framing included.
    pub(super) used: usize,
    /// Where the data lies among them, or the trailer fields.
    pub(super) piece: Range<usize>,
    /// Whether it is the trailer fields.
    pub(super) is_trailer: bool,
    /// Whether the body ends with them.
    pub(super) is_last: bool,
}
