//! Levels typed as one word: `1,8,64`, `"1 8 64"`, or `1..64`, which doubles from the first to the
//! last.

use onrush_plan::Dialect;

use super::units;

/// Splits the levels of the option `key` without parsing them; `None` for a single value.
///
/// # Errors
///
/// Returns one line with what is wrong with the list, and the right form.
pub fn parse_levels(key: &str, word: &str) -> Result<Option<Vec<String>>, String> {
    let refused = |why: &str| format!("--{key} {word:?}: {why}");
    let parts: Vec<&str> = match word.contains(',') {
        true => word.split(',').map(str::trim).collect(),
        false => word.split_whitespace().collect(),
    };
    if parts.len() < 2 && !word.contains("..") {
        return match suggest_range(word) {
            Some(range) => Err(refused(&format!(
                "write {range}, which doubles from the first to the last, or a list such as 1,8,64"
            ))),
            None => Ok(None),
        };
    }
    let mut levels = Vec::new();
    for part in parts {
        match part.split_once("..") {
            None if part.is_empty() => return Err(refused("its list has an empty entry")),
            None => levels.push(part.to_owned()),
            Some((first, last)) => levels.extend(doubling_levels(first, last).ok_or_else(|| {
                refused("not a range; write for instance 1..64, which doubles from the first number to the last")
            })?),
        }
    }
    Ok(Some(levels))
}

/// The range that `1-256` probably means; `None` for any other word.
pub fn suggest_range(word: &str) -> Option<String> {
    let (first, last) = word.split_once('-')?;
    doubling_levels(first, last).map(|_| format!("{first}..{last}"))
}

/// The numbers from the first to the last, doubling each time. The last is always included. `None`
/// if this is not a range.
fn doubling_levels(first: &str, last: &str) -> Option<Vec<String>> {
    let (first, last) = (parse_number(first)?, parse_number(last)?);
    let numbers =
        std::iter::successors(Some(first), |number| number.checked_mul(2)).take_while(|number| *number < last);
    (0 < first && first < last).then(|| numbers.chain([last]).map(|number| number.to_string()).collect())
}

fn parse_number(text: &str) -> Option<u64> {
    units::parse_count(text, Dialect::Native).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_lists_split_and_ranges_double() {
        for (word, expected) in [
            ("1,8,64", "1 8 64"),
            ("1, 8", "1 8"),
            ("1 2 4", "1 2 4"),
            ("1..256", "1 2 4 8 16 32 64 128 256"),
            ("1..100", "1 2 4 8 16 32 64 100"),
            ("3..4", "3 4"),
            ("1k..4k", "1000 2000 4000"),
            ("1..4,100", "1 2 4 100"),
            ("90/m,100/s", "90/m 100/s"),
        ] {
            assert_eq!(parse_levels("connections", word).unwrap().unwrap().join(" "), expected, "{word}");
        }
        for word in ["8", "10k", "90/m", "x", "-1", "", "64-1", "8-8", "0-8", "1--8"] {
            assert_eq!(parse_levels("connections", word), Ok(None), "{word}");
        }
    }

    #[test]
    fn bad_level_lists_say_what_to_write() {
        for (word, why) in [
            ("1-256", "write 1..256, which doubles from the first to the last, or a list such as 1,8,64"),
            ("1,,8", "its list has an empty entry"),
            ("1..", "not a range; write for instance 1..64"),
            ("..8", "not a range"),
            ("8..1", "not a range"),
            ("0..8", "not a range"),
            ("1...8", "not a range"),
            ("a..b", "not a range"),
        ] {
            let said = parse_levels("connections", word).unwrap_err();
            assert!(said.starts_with(&format!("--connections {word:?}: {why}")), "{said}");
        }
    }
}
