//! The reason a request is rejected.

/// Why a request is rejected. Sent instead of the path's response; the connection then ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    /// Status of the response.
    pub status: u16,
    /// The reason, which is sent as the body.
    pub why: &'static str,
}
