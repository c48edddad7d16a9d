//! Number of connections that a worker keeps open.

use onrush_plan::ConnectionLevels;

/// Number of connections that a worker keeps open, in its first slots.
#[derive(Clone, Debug)]
pub enum Demand {
    /// As many as allowed, from the start.
    All,
    /// This many at first, and more whenever due requests wait for a connection.
    Growing(u32),
    /// The number changes over time as the plan's stages say.
    Staged(ConnectionLevels),
}

impl Demand {
    /// The number to open at the start, if `most` are allowed.
    pub fn initial_connections(&self, most: u32) -> u32 {
        match self {
            Self::All => most,
            Self::Growing(first) => *first,
            Self::Staged(levels) => levels.connections_at(0).0.min(most),
        }
    }
}
