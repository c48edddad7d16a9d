//! The reason a request is rejected.

/// A rejection: the response that a request gets instead of the one of its path. The connection ends after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    /// The status of the response.
    pub status: u16,
    /// The reason, which becomes the body.
    pub why: &'static str,
}
