//! A percentage, kept exactly as typed: it is a key of result files.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Millionths of a per cent in one per cent.
const SCALE: u64 = 1_000_000;

const DECIMALS: usize = 6;

/// More than 0 and at most 100 per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Percent(u64);

/// The percentiles of a result, unless others are requested.
const USUAL: [&str; 8] = ["50", "75", "90", "95", "99", "99.9", "99.99", "99.999"];

impl Percent {
    /// The percentage that stands for any percentile in descriptions: 99 %.
    pub(crate) const EXAMPLE: Self = Self(99 * SCALE);

    /// The requested percentiles, or the usual ones.
    pub fn asked_or_usual(asked: Option<&[Self]>) -> Vec<Self> {
        let usual = || USUAL.iter().filter_map(|text| text.parse().ok()).collect();
        asked.map_or_else(usual, <[Self]>::to_vec)
    }

    /// The value in per cent, above 0 and up to 100.
    pub fn value(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }
}

impl FromStr for Percent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "not a percentage; try 50,90,99.9";
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 3 || !digits(whole) || !digits(decimals) {
            return Err(WRONG);
        }
        if decimals.len() > DECIMALS {
            return Err("at most six decimals");
        }
        let millionths = format!("{whole}{decimals:0<DECIMALS$}").parse().map_err(|_| WRONG)?;
        if (1..=100 * SCALE).contains(&millionths) { Ok(Self(millionths)) } else { Err("more than 0 and at most 100") }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:0DECIMALS$}", self.0 % SCALE);
        let decimals = decimals.trim_end_matches('0');
        let dot = if decimals.is_empty() { "" } else { "." };
        f.pad(&format!("{}{dot}{decimals}", self.0 / SCALE))
    }
}

impl TryFrom<String> for Percent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Percent> for String {
    fn from(percent: Percent) -> Self {
        percent.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_shown_without_trailing_zeros() {
        for (typed, shown) in
            [("50", "50"), ("99.9", "99.9"), ("99.990", "99.99"), ("0.000001", "0.000001"), ("100", "100")]
        {
            assert_eq!(typed.parse::<Percent>().unwrap().to_string(), shown);
        }
        assert_eq!(format!("{:>7}", "99.9".parse::<Percent>().unwrap()), "   99.9");
    }

    #[test]
    fn invalid_percentages_are_refused() {
        for typed in ["", "0", "0.0", "100.1", "101", "-1", "1e1", "9 9", "99.9999999", "x", "1.-1"] {
            assert!(typed.parse::<Percent>().is_err(), "{typed}");
        }
    }
}
