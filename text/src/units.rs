//! Numbers as text: wrk's units, and plain formats for the notes.
//!
//! wrk's rules are copied to the byte: a value is given in the next unit from 0.85 of that unit on, up to the last but
//! one of wrk's units.

use std::time::Duration;

/// The fraction of the next unit from which that unit is used.
const THRESHOLD: f64 = 0.85;
/// Number of values below which a part of them is shown as a count, because a percentage would suggest too much
/// precision.
pub const PERCENT_MIN: u64 = 100;

/// A time in microseconds: `23.54us`, `1.30ms`, `10.00s`, `1.00m`.
pub fn format_us(us: f64) -> String {
    if us >= 1e6 { scale_to_unit(us / 1e6, 60.0, &["s", "m"], 2) } else { scale_to_unit(us, 1000.0, &["us", "ms"], 2) }
}

/// A plain number: `753.86`, `16.30k`.
pub fn format_metric(number: f64) -> String {
    scale_to_unit(number, 1000.0, &["", "k", "M", "G", "T"], 2)
}

/// A number of bytes without the closing `B`: `870.39`, `21.74M`.
pub fn format_bytes(bytes: f64) -> String {
    scale_to_unit(bytes, 1024.0, &["", "K", "M", "G", "T"], 2)
}

/// A duration as in the report's first line: whole seconds by wrk's rule (90 s is `2m`), anything finer exactly.
pub fn format_duration(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        scale_to_unit(duration.as_secs_f64(), 60.0, &["s", "m"], 0)
    } else {
        format_duration_exact(duration)
    }
}

/// A duration as typed, without loss: `2s`, `1.5s`, `500ms`, `90s`.
pub fn format_duration_exact(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    match duration {
        _ if ns >= 1e9 || ns == 0.0 => format!("{}s", ns / 1e9),
        _ if ns >= 1e6 => format!("{}ms", ns / 1e6),
        _ => format!("{}us", ns / 1e3),
    }
}

/// A duration in running text, without loss: `30 s`, `1.5 s`, `500 ms`.
pub fn format_duration_spaced(duration: Duration) -> String {
    let text = format_duration_exact(duration);
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    format!("{number} {unit}")
}

/// A share in per cent, with two digits or more: `0.31 %`, `3.1 %`, `31 %`.
pub fn format_percentage(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = percent_decimals(percent);
    format!("{percent:.decimals$} %")
}

/// The number of decimals with which a percentage is shown: the smaller it is, the more, up to two.
pub fn percent_decimals(percent: f64) -> usize {
    match percent.abs() {
        size if size >= 9.95 => 0,
        size if size >= 0.995 => 1,
        _ => 2,
    }
}

/// A number per second: `84,341`, `12.50`.
pub fn format_per_second(rate: f64) -> String {
    if rate >= 1_000.0 { format_thousands(rate.round() as u64) } else { format!("{rate:.2}") }
}

/// A count with thousands separators: `1,029`, `120,000`.
pub fn format_thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 request`, `1,029 requests`.
pub fn format_count(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", format_thousands(count), if count == 1 { "" } else { "s" })
}

/// A part of a whole: `10 %`, `0.25 %`; if there are few values, or very few of many, as counts: `5 of 14`, `3 of
/// 1,000,000`.
pub fn format_share(part: u64, whole: u64) -> String {
    format_percent(part, whole).unwrap_or_else(|| format!("{} of {}", format_thousands(part), format_thousands(whole)))
}

/// Like [`format_share`], with the noun, given in the singular: `10 % of 1,000 requests`, `5 of 14 requests`.
pub fn format_share_of(part: u64, whole: u64, noun: &str) -> String {
    format!(
        "{} of {}",
        format_percent(part, whole).unwrap_or_else(|| format_thousands(part)),
        format_count(whole, noun)
    )
}

/// A part in per cent, with at most two decimals; `None`: counts are clearer.
fn format_percent(part: u64, whole: u64) -> Option<String> {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    let text = format!("{percent:.2}");
    let is_percentage = whole >= PERCENT_MIN && (part == 0 || percent >= 0.005);
    is_percentage.then(|| format!("{} %", text.trim_end_matches('0').trim_end_matches('.')))
}

/// A list for the middle of a sentence: `a, b and c`.
pub fn join_list(parts: &[String]) -> String {
    match parts {
        [several @ .., last] if !several.is_empty() => format!("{} and {last}", several.join(", ")),
        _ => parts.concat(),
    }
}

/// Divides by `scale` while there is a next unit and the value is large enough for it.
fn scale_to_unit(mut value: f64, scale: f64, units: &[&str], decimals: usize) -> String {
    let mut unit = 0;
    while value >= THRESHOLD * scale && unit + 1 < units.len() {
        value /= scale;
        unit += 1;
    }
    format!("{value:.decimals$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_microseconds_change_units_where_wrk_does() {
        let table = [
            (0.0, "0.00us"),
            (23.54, "23.54us"),
            (849.99, "849.99us"),
            (849.996, "850.00us"),
            (850.0, "0.85ms"),
            (1_000.0, "1.00ms"),
            (123_456.0, "123.46ms"),
            (849_999.0, "850.00ms"),
            (850_000.0, "850.00ms"),
            (999_990.0, "999.99ms"),
            (999_999.0, "1000.00ms"),
            (1_000_000.0, "1.00s"),
            (50_990_000.0, "50.99s"),
            (51_000_000.0, "0.85m"),
            (60_000_000.0, "1.00m"),
            (3_600_000_000.0, "60.00m"),
            (86_400_000_000.0, "1440.00m"),
        ];
        for (us, text) in table {
            assert_eq!(format_us(us), text, "{us}");
        }
    }

    #[test]
    fn plain_numbers_change_units_where_wrk_does() {
        let table = [
            (849.99, "849.99"),
            (850.0, "0.85k"),
            (1_000.0, "1.00k"),
            (49_940.0, "49.94k"),
            (850_000.0, "0.85M"),
            (1e6, "1.00M"),
            (1e15, "1000.00T"),
        ];
        for (number, text) in table {
            assert_eq!(format_metric(number), text, "{number}");
        }
    }

    #[test]
    fn bytes_change_units_where_wrk_does() {
        let table = [
            (0.0, "0.00"),
            (870.39, "870.39"),
            (870.4, "0.85K"),
            (1_024.0, "1.00K"),
            (1_048_576.0, "1.00M"),
            (1_073_741_824.0, "1.00G"),
            (1_125_899_906_842_624.0, "1024.00T"),
        ];
        for (bytes, text) in table {
            assert_eq!(format_bytes(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn whole_seconds_are_rounded_as_wrk_rounds_them() {
        let table = [
            (10, "10s"),
            (50, "50s"),
            (51, "1m"),
            (60, "1m"),
            (90, "2m"),
            (100, "2m"),
            (150, "2m"),
            (151, "3m"),
            (210, "4m"),
            (3600, "60m"),
            (7200, "120m"),
        ];
        for (seconds, text) in table {
            assert_eq!(format_duration(Duration::from_secs(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn durations_unknown_to_wrk_are_exact() {
        let table = [(500_000_000, "500ms"), (1_500_000_000, "1.5s"), (90_500_000_000, "90.5s"), (1_100_000, "1.1ms")];
        for (ns, text) in table {
            assert_eq!(format_duration(Duration::from_nanos(ns)), text, "{ns}");
        }
        let typed = [(90_000_000_000, "90s"), (250_000, "250us"), (0, "0s")];
        for (ns, text) in typed {
            assert_eq!(format_duration_exact(Duration::from_nanos(ns)), text, "{ns}");
        }
        assert_eq!(
            [30_000, 1_500, 500].map(|ms| format_duration_spaced(Duration::from_millis(ms))),
            ["30 s", "1.5 s", "500 ms"]
        );
    }

    #[test]
    fn small_shares_are_counts_large_ones_percentages() {
        let table = [
            (5, 14, "5 of 14"),
            (0, 99, "0 of 99"),
            (5, 100, "5 %"),
            (0, 100, "0 %"),
            (100, 1_000, "10 %"),
            (978, 101_000, "0.97 %"),
            (1, 400, "0.25 %"),
            (1, 20_000, "0.01 %"),
            (4, 100_000, "4 of 100,000"),
            (0, 0, "0 of 0"),
        ];
        for (part, whole, text) in table {
            assert_eq!(format_share(part, whole), text, "{part} of {whole}");
        }
        assert_eq!(format_share_of(978, 101_000, "request"), "0.97 % of 101,000 requests");
        assert_eq!(
            (format_share_of(1, 1, "request"), format_share_of(5, 14, "request")),
            ("1 of 1 request".into(), "5 of 14 requests".into())
        );
    }

    #[test]
    fn shares_and_rates_have_significant_digits() {
        assert_eq!([0.003_1, 0.031, 0.31, -0.031].map(format_percentage), ["0.31 %", "3.1 %", "31 %", "-3.1 %"]);
        assert_eq!([12.5, 999.99, 84_341.4].map(format_per_second), ["12.50", "999.99", "84,341"]);
    }

    #[test]
    fn thousands_are_separated() {
        let table =
            [(0, "0"), (999, "999"), (1_000, "1,000"), (120_000, "120,000"), (u64::MAX, "18,446,744,073,709,551,615")];
        for (count, text) in table {
            assert_eq!(format_thousands(count), text);
        }
        assert_eq!(
            [0, 1, 1_029].map(|count| format_count(count, "request")),
            ["0 requests", "1 request", "1,029 requests"]
        );
    }
}
