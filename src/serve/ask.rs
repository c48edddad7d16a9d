//! What an answer can depend on, and what is read from the query.

use std::num::NonZeroU64;

use super::answer::Manner;
use super::capacity::Capacity;
use super::freeze::Freeze;

/// What an answer can depend on.
pub(super) struct Ask<'a> {
    /// What follows the route's path.
    pub argument: &'a str,
    /// What follows the `?`.
    pub query: &'a str,
    /// The form of the answer.
    pub manner: Manner,
    /// Which request it is.
    pub numbers: Numbers,
    /// What a request for a freeze is told to.
    pub freeze: &'a Freeze,
    /// Where a request waits for its turn.
    pub capacity: &'a Capacity,
}

/// Which request on which connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The number of the connection on its thread, from 1.
    pub connection: u64,
    /// The number of the request on its connection, from 1.
    pub request: u64,
}

impl Ask<'_> {
    /// The value of the first of these names that is in the query.
    pub(super) fn value(&self, names: &[&str]) -> Option<&str> {
        let pair = |name| self.query.split('&').find_map(move |pair| pair.strip_prefix(name)?.strip_prefix('='));
        names.iter().find_map(|name| pair(*name))
    }

    /// Whether `number` is one of those that `every` in the query picks out: every tenth unless it says otherwise.
    pub(super) fn is_chosen(&self, number: u64) -> Result<bool, String> {
        let every = self.value(&["every"]).unwrap_or("10");
        let every: NonZeroU64 = every.parse().map_err(|_| format!("'{every}' is not a whole number from 1"))?;
        Ok(number.is_multiple_of(every.get()))
    }
}
