//! Decimal numbers in hundredths, so that averages round like manual calculations.

use std::fmt;
use std::iter::Sum;

/// A number in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(i128);

impl Number {
    /// The nearest number, with halves rounded away from zero; `None` for NaN or infinity.
    pub fn from_value(value: f64) -> Option<Self> {
        value.is_finite().then(|| Self((value * 100.0).round() as i128))
    }

    /// Converts a whole number to hundredths.
    pub fn from_whole(value: u64) -> Self {
        Self(i128::from(value) * 100)
    }

    /// The average, with halves rounded away from zero; `None` without numbers.
    pub fn average(numbers: &[Self]) -> Option<Self> {
        let count = numbers.len() as i128;
        let sum: i128 = numbers.iter().map(|number| number.0).sum();
        (count > 0).then(|| Self(divide_rounding(sum, count)))
    }

    /// The median: the middle number, or the average of the two middle ones; `None` without numbers.
    pub fn median(numbers: &[Self]) -> Option<Self> {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted.get(middle).copied()
        } else {
            Self::average(sorted.get(middle.checked_sub(1)?..=middle)?)
        }
    }

    /// The number as text: with two decimals, or rounded to a whole number if `is_whole`.
    pub fn text(self, is_whole: bool) -> String {
        if is_whole { divide_rounding(self.0, 100).to_string() } else { self.to_string() }
    }

    /// The number as text, with both decimals unless they are zero.
    pub fn exact(self) -> String {
        self.text(self.0 % 100 == 0)
    }

    /// The number as a floating-point value.
    pub fn value(self) -> f64 {
        self.0 as f64 / 100.0
    }
}

impl Sum for Number {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        Self(numbers.map(|number| number.0).sum())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:02}", self.0.unsigned_abs() / 100, self.0.unsigned_abs() % 100)
    }
}

/// Divides, with halves rounded away from zero.
fn divide_rounding(sum: i128, count: i128) -> i128 {
    let half = if sum < 0 { -count } else { count };
    (2 * sum + half) / (2 * count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        let numbers =
            |values: &[f64]| values.iter().map(|&value| Number::from_value(value).unwrap()).collect::<Vec<_>>();
        let average = |values: &[f64]| Number::average(&numbers(values)).unwrap().to_string();
        assert_eq!(average(&[6393.0, 3595.0, 3553.0]), "4513.67");
        assert_eq!([average(&[0.01, 0.02]), average(&[-0.01, -0.02]), average(&[0.0])], ["0.02", "-0.02", "0.00"]);
        assert_eq!(Number::from_value(2.5).unwrap().text(true), "3");
        assert_eq!([2.5, 2.0].map(|value| Number::from_value(value).unwrap().exact()), ["2.50", "2"]);
        assert_eq!(Number::from_whole(u64::MAX).text(true), u64::MAX.to_string());
        assert_eq!(Number::from_value(f64::NAN), None);
        let median = |values: &[f64]| Number::median(&numbers(values)).map(|number| number.to_string());
        assert_eq!(median(&[3.0, 1.0, 2.0]).as_deref(), Some("2.00"));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]).as_deref(), Some("2.50"));
        assert_eq!((median(&[]), Number::average(&[])), (None, None));
    }
}
