//! The result of reading some bytes of a body, with any framing.

use std::ops::Range;

/// What a body took of the bytes it was passed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// How many bytes, including framing.
    pub(super) used: usize,
    /// The range of the data in them, or of the trailer fields.
    pub(super) piece: Range<usize>,
    /// Whether the range is trailer fields.
    pub(super) is_trailer: bool,
    /// Whether the body ends with them.
    pub(super) is_last: bool,
}
