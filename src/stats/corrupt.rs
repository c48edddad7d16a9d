//! The errors of reading a distribution.

use thiserror::Error;

/// Bytes and figures that are not those of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Corrupt {
    /// The bytes are no histogram.
    #[error("its histogram cannot be read")]
    Bytes,
    /// The histogram holds another number of values.
    #[error("its histogram has another count than the one given beside it")]
    Count,
    /// The figures cannot be those of any values.
    #[error("its figures contradict each other")]
    Figures,
}
