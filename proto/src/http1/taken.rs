//! The result of reading some bytes of a body, with any framing.

use std::ops::Range;

/// The part of the passed bytes that a body took.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Consumed {
    /// How many bytes, including framing.
    pub(super) used: usize,
    /// The range of the data in them, or of the trailer fields.
    pub(super) piece: Range<usize>,
    /// True if the range is trailer fields.
    pub(super) is_trailer: bool,
    /// True if the body ends with it.
    pub(super) is_last: bool,
}
