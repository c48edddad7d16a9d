//! How many connections a worker keeps open.

use onrush_plan::ConnectionLevels;

/// Number of connections that a worker keeps open, in its first slots.
#[derive(Clone, Debug)]
pub enum Demand {
    /// As many as it may have.
    All,
    /// This many at first, and more while due requests wait for a connection.
    Growing(u32),
    /// As many as the stages say.
    Staged(ConnectionLevels),
}

impl Demand {
    /// How many there are at first, if there may be `most`.
    pub fn first(&self, most: u32) -> u32 {
        match self {
            Self::All => most,
            Self::Growing(first) => *first,
            Self::Staged(levels) => levels.at(0).0.min(most),
        }
    }
}
