//! The errors when a distribution is read.

use thiserror::Error;

/// Why bytes or figures do not make a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Corrupt {
    /// The bytes are no histogram.
    #[error("its histogram cannot be read")]
    Bytes,
    /// The histogram has another number of values than its figures.
    #[error("its histogram contradicts the count given beside it")]
    Count,
    /// No values can have these figures.
    #[error("its figures contradict each other")]
    Figures,
}
