//! The origin of a worker's requests.

use onrush_proto::Request;

use super::script_failure::ScriptFailure;

/// Yields a worker's requests, batch by batch; called only in the worker's thread.
pub trait Source {
    /// Adds the requests of the next batch, at least one, to an empty `batch`. They leave together on one connection as
    /// far as it has room, the rest on the next connection with room. Returns false if there will never be another
    /// batch: the worker ends when its requests have ended.
    ///
    /// # Errors
    ///
    /// If the run cannot continue. It ends and keeps the measurements so far.
    fn next_batch(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure>;

    /// The number of the name of the requests added last; zero: unnamed.
    fn batch_name(&self) -> u16 {
        0
    }

    /// True if all batches are equal: [`Self::next_batch`] is then called only once.
    fn repeats_one_batch(&self) -> bool {
        false
    }
}

/// One batch, repeated forever. It must not be empty.
#[derive(Clone, Debug)]
pub struct Repeated(pub Vec<Request>);

impl Source for Repeated {
    fn next_batch(&mut self, batch: &mut Vec<Request>) -> Result<bool, ScriptFailure> {
        batch.extend_from_slice(&self.0);
        Ok(true)
    }

    fn repeats_one_batch(&self) -> bool {
        true
    }
}
