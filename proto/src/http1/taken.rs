//! The result of reading bytes of a body, with any framing.

use std::ops::Range;

/// The part of the input that a body took.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Consumed {
    /// Number of bytes taken, including framing.
    pub(super) used: usize,
    /// The range of the data, or of the trailer fields, among these bytes.
    pub(super) piece: Range<usize>,
    /// True if the range contains trailer fields.
    pub(super) is_trailer: bool,
    /// True if the body ends with these bytes.
    pub(super) is_last: bool,
}
