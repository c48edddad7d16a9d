//! Why a request cannot be taken.

/// A request that is not answered as its path asks; the connection ends with the answer it gets instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    /// The status of the answer.
    pub status: u16,
    /// The reason, for the answer's body.
    pub why: &'static str,
}
