//! Closed loop before the first run of a search.

/// Closed loop before the first run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoop {
    /// Number of connections of the closed loop.
    pub connections: u32,
    /// Responses per second that the closed loop reached.
    pub per_s: f64,
    /// True if the objective held in the closed loop.
    pub holds: bool,
}
