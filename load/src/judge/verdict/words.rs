//! Formats figures for the sentences of the verdict.

use onrush_text::units::format_thousands;

/// Formats a duration given in microseconds: `23 µs`, `1.30 ms`, `2.0 s`.
pub fn format_time(us: f64) -> String {
    match us {
        _ if us >= 1e6 => format_seconds(us / 1e6),
        _ if us >= 100_000.0 => format!("{:.0} ms", us / 1e3),
        _ if us >= 10_000.0 => format!("{:.1} ms", us / 1e3),
        _ if us >= 1_000.0 => format!("{:.2} ms", us / 1e3),
        _ => format!("{us:.0} µs"),
    }
}

/// Formats a duration given in seconds: `2.0 s`, or `40 ms` if short.
pub fn format_seconds(seconds: f64) -> String {
    if seconds >= 0.095 { format!("{seconds:.1} s") } else { format!("{:.0} ms", seconds * 1e3) }
}

/// Formats a share (0 to 1) in percent, with at least two significant digits: `98 %`, `0.13 %`; zero is `0 %`.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent >= 9.95 || percent == 0.0 {
        0
    } else if percent >= 0.995 {
        1
    } else {
        2
    };
    format!("{percent:.decimals$} %")
}

/// Formats a number, with decimals only if it is below a hundred: `2,950`, `9.5`.
pub fn format_number(number: f64) -> String {
    if number < 99.95 {
        return format!("{number:.1}").trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format_thousands(number.round() as u64)
}

/// A count with its noun, which takes an `s` in the plural: `1 thread`, `12 threads`.
pub fn format_count(many: u64, noun: &str) -> String {
    format!("{} {noun}{}", format_number(many as f64), if many == 1 { "" } else { "s" })
}

/// A number of processors: `1 processor`, `2.5 processors`.
pub fn format_processors(allowed: f64) -> String {
    format!("{} processor{}", format_number(allowed), if allowed == 1.0 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_significant_digits() {
        assert_eq!(
            [23.4, 1_304.0, 20_345.0, 250_000.0, 2e6].map(format_time),
            ["23 µs", "1.30 ms", "20.3 ms", "250 ms", "2.0 s"]
        );
        assert_eq!([1.0, 0.9949, 0.05, 0.0013, 0.0].map(format_percent), ["100 %", "99 %", "5.0 %", "0.13 %", "0 %"]);
        assert_eq!([9.5, 10.0, 2_950.4, 1_234_567.0].map(format_number), ["9.5", "10", "2,950", "1,234,567"]);
        assert_eq!([format_seconds(0.04), format_seconds(1.04)], ["40 ms", "1.0 s"]);
        assert_eq!([format_count(1, "thread"), format_count(1_019, "connection")], ["1 thread", "1,019 connections"]);
    }
}
