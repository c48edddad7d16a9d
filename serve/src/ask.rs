//! The input of a response: everything it can depend on, including the query.

use std::num::NonZeroU64;

use super::resources::Resources;
use super::response::ResponseForm;

/// Everything that a response can depend on.
pub(super) struct RequestContext<'a> {
    /// The text after the route's path.
    pub argument: &'a str,
    /// The query, without the `?`.
    pub query: &'a str,
    /// The form of the response that the request demands.
    pub manner: ResponseForm,
    /// The numbers of the request and its connection.
    pub numbers: RequestNumbers,
    /// Resources of the thread, and those that all threads share.
    pub resources: &'a Resources,
}

/// The numbers of a request and its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestNumbers {
    /// Number of the connection on its thread, from 1.
    pub connection: u64,
    /// Number of the request on its connection, from 1.
    pub request: u64,
}

impl RequestContext<'_> {
    /// The undecoded value of the first of these keys that the query contains.
    pub(super) fn query_value(&self, names: &[&str]) -> Option<&str> {
        let pair = |name| self.query.split('&').find_map(move |pair| pair.strip_prefix(name)?.strip_prefix('='));
        names.iter().find_map(|name| pair(*name))
    }

    /// True if `number` is a multiple of the query's `every`, 10 by default. Fails if `every` is not a positive whole
    /// number.
    pub(super) fn is_chosen(&self, number: u64) -> Result<bool, String> {
        let every = self.query_value(&["every"]).unwrap_or("10");
        let every: NonZeroU64 = every.parse().map_err(|_| format!("{every:?} is not a whole number from 1"))?;
        Ok(number.is_multiple_of(every.get()))
    }
}
