//! The closed loop before the first run of a search.

/// The closed loop before the first run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoop {
    /// Its connections.
    pub connections: u32,
    /// Its responses per second.
    pub per_s: f64,
    /// True if the objective held in it.
    pub holds: bool,
}
