//! The exact statistics of a distribution, computed from sums, and the sums computed from them.

use super::bins::HIGHEST;
use super::corrupt::Corrupt;

/// Relative difference allowed between a mean or deviation and the one computed from exact sums: larger than the
/// rounding errors of both.
const SLACK: f64 = 1e-9;

/// The exact statistics of a distribution, which its bins only approximate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation.
    pub stdev: f64,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// Sum of all values; `None`: the whole number closest to the one that follows from the mean.
    pub sum: Option<u128>,
    /// Sum of the squares of all values; `None`: the whole number closest to the one that follows from the standard
    /// deviation.
    pub squares: Option<u128>,
}

impl Moments {
    /// The sum and the sum of squares of one or more values with these statistics.
    ///
    /// # Errors
    ///
    /// If no values can have these statistics.
    pub fn to_sums(self) -> Result<(u128, u128), Corrupt> {
        let Self { count, mean, stdev, min, max, .. } = self;
        // A change of units may move the mean of equal values past them, in its last bits.
        let is_at_most = |one: f64, other: f64| one <= other * (1.0 + 1e-12);
        let is_between = is_at_most(min as f64, mean) && is_at_most(mean, max as f64);
        let plausible = count > 0 && min <= max && is_between && max <= HIGHEST && stdev >= 0.0;
        // The sum of squares must fit into 128 bits.
        let most = count as f64 * max as f64 * max as f64;
        if !plausible || stdev > max as f64 || most >= u128::MAX as f64 / 4.0 {
            return Err(Corrupt::Figures);
        }
        let number = u128::from(count);
        let (least, most) = (number * u128::from(min), number * u128::from(max));
        let sum = self.sum.unwrap_or_else(|| ((mean * count as f64).round() as u128).clamp(least, most));
        if !(least..=most).contains(&sum) || (sum as f64 / count as f64 - mean).abs() > mean * SLACK {
            return Err(Corrupt::Figures);
        }
        // Computed around the whole part of the mean, as in `sample_stdev`, so that nothing large is subtracted.
        let (whole, rest) = (sum / number, sum % number);
        let (least, most) = (number * whole * whole + 2 * whole * rest, most * u128::from(max));
        let Some(squares) = self.squares else {
            let spread = stdev * stdev * (count - 1) as f64 + rest as f64 * (rest as f64 / count as f64);
            return Ok((sum, least + spread.round() as u128));
        };
        let fits = (least..=most).contains(&squares);
        let is_theirs = |known: f64| (known - stdev).abs() <= stdev * SLACK;
        if fits && is_theirs(sample_stdev(count, sum, squares)) { Ok((sum, squares)) } else { Err(Corrupt::Figures) }
    }
}

/// The sample standard deviation of `count` whole numbers with this sum and sum of squares; zero below two numbers.
pub fn sample_stdev(count: u64, sum: u128, sum_of_squares: u128) -> f64 {
    if count < 2 {
        return 0.0;
    }
    // Computed around the whole part of the mean, where every number is an exact integer that fits, and nothing cancels
    // later.
    let number = u128::from(count);
    let (whole, rest) = (sum / number, sum % number);
    let squares = sum_of_squares - number * whole * whole - 2 * whole * rest;
    let squares = squares as f64 - rest as f64 * (rest as f64 / count as f64);
    (squares.max(0.0) / (count - 1) as f64).sqrt()
}
