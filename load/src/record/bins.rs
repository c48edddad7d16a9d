//! Bins of a distribution in little memory. Figures keep them, but do not write them: they follow from the result.

use onrush_stats::{Corrupt, Distribution};

/// The smallest value of each bin that is used, ascending, and the number of values in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bins(Box<[(u64, u64)]>);

impl Bins {
    /// The bins of this distribution.
    pub fn of(measured: &Distribution<u64>) -> Self {
        Self(measured.binned().bins().map(|(values, count)| (*values.start(), count)).collect())
    }

    /// The distribution with these bins, whose other statistics follow from them.
    ///
    /// # Errors
    ///
    /// If the counts overflow.
    pub fn values(&self) -> Result<Distribution<u64>, Corrupt> {
        Distribution::from_bins(self.0.iter().copied())
    }
}
