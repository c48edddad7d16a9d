//! The reason a request is rejected.

/// A rejection: replaces the response of the path and ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    /// Status of the response.
    pub status: u16,
    /// The reason, sent as the body.
    pub why: &'static str,
}
