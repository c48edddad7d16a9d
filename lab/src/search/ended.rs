//! The reasons why a search ends.

use super::{Alone, ClientLimit};

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// The result is complete.
    Done,
    /// The time limit was reached.
    Time,
    /// Every long run that was to confirm a load failed.
    Unconfirmed,
    /// A signal ended the search.
    Signal,
    /// One of several machines was lost, without which runs would not be comparable.
    Lost,
    /// The target stopped responding.
    Died,
    /// Even single requests took longer than the objective allows: no load can hold.
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
