//! Every row of both grammars, and texts that match neither.

use super::*;

const WRK: Dialect = Dialect::Wrk;
const NATIVE: Dialect = Dialect::Native;

fn seconds(text: &str, dialect: Dialect) -> Result<f64, UnreadableNumber> {
    parse_time(text, dialect).map(|time| time.as_secs_f64())
}

#[test]
fn wrks_counts_are_accepted_in_compat() {
    let table: &[(&str, u64)] = &[
        ("10", 10),
        ("1k", 1_000),
        ("1K", 1_000),
        ("2 k", 2_000),
        ("010", 10),
        ("+5", 5),
        ("1p", 1_000_000_000_000_000),
        ("1M", 1_000_000),
        ("1G", 1_000_000_000),
        ("1T", 1_000_000_000_000),
        (" \t7", 7),
        ("0", 0),
        ("3 k tail", 3_000),
        ("18446744073709551615", u64::MAX),
    ];
    for (text, expected) in table {
        assert_eq!(parse_count(text, WRK), Ok(*expected), "{text}");
    }
}

#[test]
fn compat_refuses_counts_like_wrk() {
    for text in ["0.5k", "1.", "1kb", "1ki", "1e3", "0x10", "k", "10s", "", "kk", "+", "+ 5", "5 x", "1é", "٣"] {
        assert_eq!(parse_count(text, WRK), Err(UnreadableNumber::NotNumber), "{text}");
    }
}

#[test]
fn compat_refuses_values_wrapping_in_wrk() {
    assert_eq!(parse_count("-1", WRK), Err(UnreadableNumber::Negative));
    assert_eq!(parse_count("-0", WRK), Err(UnreadableNumber::Negative));
    assert_eq!(parse_count("18446744073709551616", WRK), Err(UnreadableNumber::TooLarge));
    assert_eq!(parse_count("18447P", WRK), Err(UnreadableNumber::TooLarge));
    assert_eq!(parse_time("-5", WRK), Err(UnreadableNumber::Negative));
    assert_eq!(parse_time("18446744074", WRK), Err(UnreadableNumber::TooLarge));
}

#[test]
fn wrks_times_are_accepted_in_compat() {
    let table = [
        ("10", 10.0),
        ("10s", 10.0),
        ("10S", 10.0),
        ("2m", 120.0),
        ("2M", 120.0),
        ("1h", 3600.0),
        ("1H", 3600.0),
        ("10 s", 10.0),
        ("10m 5s", 600.0),
        ("0", 0.0),
        ("+1", 1.0),
    ];
    for (text, expected) in table {
        assert_eq!(seconds(text, WRK), Ok(expected), "{text}");
    }
}

#[test]
fn compat_refuses_times_like_wrk() {
    for text in ["1.5s", "1ms", "10sec", "10ss", "1d", "1h30m", "1k", "5 x", "", "s", "1us", "1x"] {
        assert_eq!(parse_time(text, WRK), Err(UnreadableNumber::NotTime), "{text}");
    }
}

#[test]
fn native_counts_may_have_whole_fractions() {
    let table: &[(&str, u64)] = &[
        ("10", 10),
        ("010", 10),
        ("1k", 1_000),
        ("1K", 1_000),
        ("2 k", 2_000),
        ("0.5k", 500),
        ("1.0", 1),
        ("1.50M", 1_500_000),
        ("0.000000000000001P", 1),
        ("1p", 1_000_000_000_000_000),
    ];
    for (text, expected) in table {
        assert_eq!(parse_count(text, NATIVE), Ok(*expected), "{text}");
    }
    for text in ["0.5", "1.2345k", "0.0000000000000001P", "18.446744073709551615P", "1.0000000000000000000001k"] {
        assert_eq!(parse_count(text, NATIVE), Err(UnreadableNumber::NotWhole), "{text}");
    }
    assert_eq!(parse_count("18447P", NATIVE), Err(UnreadableNumber::TooLarge));
    assert_eq!(parse_count("99999999999999999999", NATIVE), Err(UnreadableNumber::TooLarge));
}

#[test]
fn native_values_must_be_plain_numbers() {
    for text in
        ["", "1.", ".5", "1.k", "1kb", "1ki", "1e3", "0x10", "k", "10s", "+5", " 5", "5 ", "3 k tail", "1..2", "1,5"]
    {
        assert_eq!(parse_count(text, NATIVE), Err(UnreadableNumber::NotNumber), "{text}");
    }
    assert_eq!(parse_count("-1", NATIVE), Err(UnreadableNumber::Negative));
    assert_eq!(parse_count("-x", NATIVE), Err(UnreadableNumber::NotNumber));
}

#[test]
fn natively_times_have_small_units_and_fractions() {
    let table = [
        ("10", 10.0),
        ("10S", 10.0),
        ("2m", 120.0),
        ("2M", 120.0),
        ("1h", 3600.0),
        ("10 s", 10.0),
        ("1.5s", 1.5),
        ("1ms", 0.001),
        ("1.5 MS", 0.0015),
        ("250us", 0.000_25),
        ("0.5", 0.5),
        ("0.25h", 900.0),
        ("0", 0.0),
        ("0.0s", 0.0),
        ("0.0000000019", 0.000_000_001),
    ];
    for (text, expected) in table {
        assert_eq!(seconds(text, NATIVE), Ok(expected), "{text}");
    }
    for text in ["10sec", "10ss", "1d", "1h30m", "1k", "5 x", "", "s", "+1", ".5s", "1.s", "10m 5s"] {
        assert_eq!(parse_time(text, NATIVE), Err(UnreadableNumber::NotTime), "{text}");
    }
    assert_eq!(parse_time("0.0000000001", NATIVE), Err(UnreadableNumber::TooShort));
    assert_eq!(parse_time("-1s", NATIVE), Err(UnreadableNumber::Negative));
    assert_eq!(parse_time("5124096h", NATIVE), Err(UnreadableNumber::TooLarge));
}

#[test]
fn random_numbers_never_panic() {
    let alphabet: Vec<char> = "0019.+- \tkmspKMuhgé\u{b}".chars().collect();
    let mut state = 7u64;
    for _ in 0..50_000 {
        let mut text = String::new();
        for _ in 0..(state >> 60) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(alphabet[(state >> 33) as usize % alphabet.len()]);
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for dialect in [NATIVE, WRK, Dialect::Wrk2, Dialect::WrkCmm] {
            let accepted = (parse_count(&text, dialect).is_ok(), parse_time(&text, dialect).is_ok());
            assert!(
                accepted == (false, false) || text.contains(|character: char| character.is_ascii_digit()),
                "{text}"
            );
        }
    }
}
