//! Numbers and times on the command line: any string, both grammars.

use std::time::Duration;

use onrush_load::cli::units::{parse_count, parse_time};
use onrush_plan::Dialect;

use crate::COMPAT;

/// Parses any string as a value. An accepted value contains a digit, keeps its meaning when written out, and has the
/// same meaning in both grammars if both accept it.
pub fn units(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let (native_count, native_time) = (parse_count(text, Dialect::Native), parse_time(text, Dialect::Native));
    let (wrk_count, wrk_time) = (parse_count(text, Dialect::Wrk), parse_time(text, Dialect::Wrk));
    for dialect in COMPAT {
        assert_eq!((parse_count(text, dialect), parse_time(text, dialect)), (wrk_count, wrk_time), "{dialect:?}");
    }
    let has_digit = text.contains(|character: char| character.is_ascii_digit());
    let accepted = [native_count.is_ok(), wrk_count.is_ok(), native_time.is_ok(), wrk_time.is_ok()];
    assert!(has_digit || accepted == [false; 4], "{text:?}");

    for count in [native_count, wrk_count].into_iter().flatten() {
        check_count(count);
    }
    for time in [native_time, wrk_time].into_iter().flatten() {
        check_time(time);
    }
    // Only our grammar accepts fractions and the small units of time. wrk's grammar accepts everything else.
    let is_ours =
        text.contains('.') || text.to_ascii_lowercase().ends_with("ms") || text.to_ascii_lowercase().ends_with("us");
    if !is_ours {
        assert!(native_count.is_err() || native_count == wrk_count, "{text:?}: {native_count:?}, {wrk_count:?}");
        assert!(native_time.is_err() || native_time == wrk_time, "{text:?}: {native_time:?}, {wrk_time:?}");
    }
}

/// Checks that a count is parsed back from its digits, and from thousands with a fraction.
fn check_count(count: u64) {
    let digits = count.to_string();
    assert_eq!((parse_count(&digits, Dialect::Native), parse_count(&digits, Dialect::Wrk)), (Ok(count), Ok(count)));
    let thousands = format!("{}.{:03}k", count / 1_000, count % 1_000);
    assert_eq!(parse_count(&thousands, Dialect::Native), Ok(count), "{thousands}");
}

/// Checks that a time is parsed back from seconds with a fraction, and whole seconds in both grammars.
fn check_time(duration: Duration) {
    let seconds = format!("{}.{:09}s", duration.as_secs(), duration.subsec_nanos());
    assert_eq!(parse_time(&seconds, Dialect::Native), Ok(duration), "{seconds}");
    if duration.subsec_nanos() == 0 {
        let whole = duration.as_secs().to_string();
        assert_eq!(
            (parse_time(&whole, Dialect::Native), parse_time(&whole, Dialect::Wrk)),
            (Ok(duration), Ok(duration))
        );
    }
}
