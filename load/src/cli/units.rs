//! Parses numbers and times: `10k`, `2m`, `1.5s`. Pure functions, independent of options and limits.
//!
//! The compat dialects follow wrk's grammar exactly, with whole numbers only, but reject numbers that wrap around in
//! wrk. The native dialect accepts `ms`, `us` and fractions, and rejects everything that wrk ignores: a sign, leading
//! blanks, trailing text.

use std::time::Duration;

use onrush_plan::Dialect;

/// The reason why a text is not a number or a time. Its message does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableNumber {
    /// Not a count: wrong grammar or an unknown unit.
    #[error("not a number")]
    NotNumber,
    /// Not a time: wrong grammar or an unknown unit.
    #[error("not a time")]
    NotTime,
    /// A number with a leading minus sign.
    #[error("negative")]
    Negative,
    /// A count that is not whole after conversion from its unit.
    #[error("not a whole number")]
    NotWhole,
    /// A time that is not zero but shorter than a nanosecond.
    #[error("less than a nanosecond")]
    TooShort,
    /// A number that does not fit in 64 bits.
    #[error("too large")]
    TooLarge,
}

/// Parses a count with a case-insensitive decimal unit: `k`, `M`, `G`, `T`, `P`.
pub fn parse_count(text: &str, dialect: Dialect) -> Result<u64, UnreadableNumber> {
    let (digits, multiplier) = split_number_and_unit(text, dialect, &METRIC).ok_or(UnreadableNumber::NotNumber)?;
    match scale_digits(digits, multiplier)? {
        (_, true) => Err(UnreadableNumber::NotWhole),
        (count, false) => u64::try_from(count).map_err(|_| UnreadableNumber::TooLarge),
    }
}

/// Parses a size in bytes with a case-insensitive unit: decimal (`k`, `M`, `G`) or binary (`KiB`, `MiB`, `GiB`).
pub fn parse_size(text: &str) -> Result<u64, UnreadableNumber> {
    let (digits, multiplier) =
        split_number_and_unit(text, Dialect::Native, &SIZE).ok_or(UnreadableNumber::NotNumber)?;
    match scale_digits(digits, multiplier)? {
        (_, true) => Err(UnreadableNumber::NotWhole),
        (size, false) => u64::try_from(size).map_err(|_| UnreadableNumber::TooLarge),
    }
}

/// Parses a time, which is in seconds if it has no unit. Units are case-insensitive: `s`, `m` (minutes) and `h`,
/// natively also `ms` and `us`. Rounds down to nanoseconds.
pub fn parse_time(text: &str, dialect: Dialect) -> Result<Duration, UnreadableNumber> {
    let units: &[_] = if dialect.is_compat() { &TIME_COMPAT } else { &TIME_NATIVE };
    let (digits, multiplier) = split_number_and_unit(text, dialect, units).ok_or(UnreadableNumber::NotTime)?;
    match scale_digits(digits, multiplier)? {
        (0, true) => Err(UnreadableNumber::TooShort),
        (nanoseconds, _) => {
            u64::try_from(nanoseconds).map(Duration::from_nanos).map_err(|_| UnreadableNumber::TooLarge)
        }
    }
}

/// The time in seconds that a text means in a notation that onrush does not accept, such as `1m30s` or `1min`; `None`
/// if it is not such a notation either.
pub fn seconds_meant(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut seconds = 0_u64;
    while !rest.is_empty() {
        let (digits, tail) = split_digits(rest)?;
        let (unit, tail) = tail.split_at(tail.find(|character: char| character.is_ascii_digit()).unwrap_or(tail.len()));
        let each = match unit.trim().to_ascii_lowercase().as_str() {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            _ => return None,
        };
        seconds = seconds.checked_add(digits.parse::<u64>().ok()?.checked_mul(each)?)?;
        rest = tail;
    }
    (seconds > 0).then_some(seconds)
}

/// Units in lower case, and their multipliers. The empty unit is that of a plain number.
type Units = [(&'static str, u64)];

const METRIC: [(&str, u64); 6] = [
    ("", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("p", 1_000_000_000_000_000),
];

/// Units of sizes; multipliers in bytes.
const SIZE: [(&str, u64); 7] = [
    ("", 1),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// Units of times in the compat dialects; multipliers in nanoseconds.
const TIME_COMPAT: [(&str, u64); 4] =
    [("", 1_000_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];

/// Units of times natively; multipliers in nanoseconds.
const TIME_NATIVE: [(&str, u64); 6] = [
    ("", 1_000_000_000),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Splits a number into its digits and the multiplier of its unit.
fn split_number_and_unit<'a>(text: &'a str, dialect: Dialect, units: &Units) -> Option<(Digits<'a>, u64)> {
    let (digits, unit) = if dialect.is_compat() { split_compat_number(text)? } else { split_native_number(text)? };
    let (_, multiplier) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some((digits, *multiplier))
}

/// The digits of a number before conversion.
struct Digits<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

/// Parses by wrk's grammar: blanks, a sign, digits, blanks, and one word as the unit. Anything after a further blank is
/// ignored.
fn split_compat_number(text: &str) -> Option<(Digits<'_>, &str)> {
    let blank = |character: char| character.is_ascii_whitespace() || character == '\u{b}';
    let text = text.trim_start_matches(blank);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned)?;
    let unit = rest.trim_start_matches(blank).split(blank).next().unwrap_or_default();
    Some((Digits { negative: text.starts_with('-'), whole, fraction: "" }, unit))
}

/// Parses by onrush's grammar: digits, a point with more digits, blanks and the unit, and nothing else. A minus sign is
/// recognised only for its error.
fn split_native_number(text: &str) -> Option<(Digits<'_>, &str)> {
    let (whole, rest) = split_digits(text.strip_prefix('-').unwrap_or(text))?;
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest)?,
        None => ("", rest),
    };
    let unit = rest.trim_start_matches(' ');
    let dangling = unit.is_empty() && !rest.is_empty();
    (!dangling).then_some((Digits { negative: text.starts_with('-'), whole, fraction }, unit))
}

/// Splits off the leading digits; `None` if there are none.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Multiplies the number and rounds down. True if rounding changed the value.
fn scale_digits(digits: Digits, multiplier: u64) -> Result<(u128, bool), UnreadableNumber> {
    if digits.negative {
        return Err(UnreadableNumber::Negative);
    }
    let fraction = digits.fraction.trim_end_matches('0');
    // No multiplier has more than 18 factors of ten, so that further digits would be rounded off anyway.
    let kept = &fraction[..fraction.len().min(18)];
    let whole: u64 = digits.whole.parse().map_err(|_| UnreadableNumber::TooLarge)?;
    let parts: u128 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| UnreadableNumber::TooLarge)? };
    let scale = 10u128.pow(kept.len() as u32);
    let scaled_parts = parts * u128::from(multiplier);
    let lost = !scaled_parts.is_multiple_of(scale) || kept.len() < fraction.len();
    Ok((u128::from(whole) * u128::from(multiplier) + scaled_parts / scale, lost))
}

#[cfg(test)]
mod tests;
