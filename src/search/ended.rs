//! How a search ended.

use super::{Alone, ClientLimit};

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// There was nothing left to find out.
    Done,
    /// Its time was over.
    Time,
    /// Every load that was to be confirmed failed in the long run.
    Unconfirmed,
    /// A signal ended it.
    Signal,
    /// A machine of several was lost: without it, runs would not have been alike.
    Lost,
    /// The target stopped responding.
    Died,
    /// Even one request at a time took longer than the objective allows: no load can hold.
    Hopeless(Alone),
    /// Something other than the target was the limit.
    Limited(ClientLimit),
}

impl SearchEnd {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Time => "time",
            Self::Unconfirmed => "unconfirmed",
            Self::Signal => "signal",
            Self::Lost => "machine_lost",
            Self::Died => "died",
            Self::Hopeless(_) => "hopeless",
            Self::Limited(_) => "limited",
        }
    }
}
