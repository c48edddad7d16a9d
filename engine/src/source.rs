//! Where a worker's requests come from.

use onrush_proto::Request;

use super::script_failure::ScriptFailure;

/// Yields a worker's requests, batch by batch.
pub trait Source {
    /// Adds the requests of the next batch, at least one, to an empty `batch`. They leave together on one connection as
    /// far as it has room, the rest on the next one that has. False if there will never be another batch: the worker
    /// ends when its requests have.
    ///
    /// # Errors
    ///
    /// If the run cannot go on; it ends with what was measured until then.
    fn next(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure>;

    /// The number of the name of the requests that it added last; zero: they have none.
    fn name(&self) -> u16 {
        0
    }

    /// True if all batches are equal, so that one call is enough.
    fn repeats(&self) -> bool {
        false
    }
}

/// One batch, repeated.
#[derive(Clone, Debug)]
pub struct Repeated(pub Vec<Request>);

impl Source for Repeated {
    fn next(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        batch.extend_from_slice(&self.0);
        Ok(true)
    }

    fn repeats(&self) -> bool {
        true
    }
}
