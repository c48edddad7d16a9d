//! Compares names and numbers in natural order.

use std::cmp::Ordering;

/// Compares levels of a factor: numbers first, by value, with their unit taken into account; then strings in natural
/// order.
pub fn compare_levels(one: &str, other: &str) -> Ordering {
    match (numeric_value(one), numeric_value(other)) {
        (Some(left), Some(right)) => left.total_cmp(&right),
        (left, right) => right.is_some().cmp(&left.is_some()).then_with(|| compare_natural(one, other)),
    }
}

/// The value of a numeric string: `1.5`, `10k`, `2M`; `None` for any other string.
fn numeric_value(text: &str) -> Option<f64> {
    let end = text.len() - text.chars().next_back().filter(char::is_ascii_alphabetic).map_or(0, char::len_utf8);
    let scale = match &text[end..] {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    let number = text[..end].parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some(number * scale)
}

/// Compares strings, with numbers in them compared by value: `a9` is before `a10`.
pub fn compare_natural(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    while !one.is_empty() && !other.is_empty() {
        let (left, right) = (take_piece(&mut one), take_piece(&mut other));
        let by_value = match (left.parse::<u128>(), right.parse::<u128>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => left.cmp(right),
        };
        // Several spellings may have the same value.
        let order = by_value.then_with(|| left.cmp(right));
        if order.is_ne() {
            return order;
        }
    }
    one.len().cmp(&other.len())
}

/// Removes the leading digits, or the leading non-digits, and returns them.
fn take_piece<'a>(text: &mut &'a str) -> &'a str {
    let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(text.len());
    let (piece, rest) = text.split_at(end);
    *text = rest;
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        let mut names = ["b", "a-10-1", "a-9-2", "a-9-10", "a", "a-09-2", "2M"];
        names.sort_by(|one, other| compare_natural(one, other));
        assert_eq!(names, ["2M", "a", "a-09-2", "a-9-2", "a-9-10", "a-10-1", "b"]);
        let mut levels = ["nginx", "2M", "10k", "9", "1.5k", "on", "-1"];
        levels.sort_by(|one, other| compare_levels(one, other));
        assert_eq!(levels, ["-1", "9", "1.5k", "10k", "2M", "nginx", "on"]);
    }
}
