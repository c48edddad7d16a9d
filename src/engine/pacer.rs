//! When requests are due.

use onrush_proto::Nanos;

/// Says when the next requests are due.
pub trait Pace {
    /// When the next request is due; [`Nanos::MAX`]: never. It may be long past.
    fn next_at(&self) -> Nanos;

    /// A batch of so many requests, the first of which is due, starts now.
    fn take(&mut self, requests: u64);
}

/// When the requests of a worker are due: a value, and known without a virtual call where it is the closed loop.
#[derive(Default)]
pub enum Pacer {
    /// Always: a request starts as soon as there is room for it.
    #[default]
    Closed,
    /// At the moments that somebody else names.
    Other(Box<dyn Pace>),
}

impl Pacer {
    /// When the next request is due.
    pub fn next_at(&self) -> Nanos {
        match self {
            Self::Closed => Nanos::default(),
            Self::Other(pace) => pace.next_at(),
        }
    }

    /// Starts a batch of so many requests, the first of which is due; returns when that was, at `now` or before.
    pub fn take(&mut self, requests: u64, now: Nanos) -> Nanos {
        match self {
            Self::Closed => now,
            Self::Other(pace) => {
                let due = pace.next_at();
                pace.take(requests);
                due
            }
        }
    }
}
