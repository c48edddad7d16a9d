//! Errors in reading a distribution.

use thiserror::Error;

/// Reasons why bytes or statistics do not describe a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Corrupt {
    /// The bytes are not a histogram.
    #[error("its histogram cannot be read")]
    Bytes,
    /// The histogram's number of values differs from the stated count.
    #[error("its histogram contradicts the count given beside it")]
    Count,
    /// No values can have these statistics.
    #[error("its figures contradict each other")]
    Figures,
}
