//! Comparisons as text for people.

use onrush_plan::Metric;
use onrush_plan::metric::Better;
use onrush_text::escape_controls;
use onrush_text::units::{format_count, format_per_second, format_percentage, format_us, percent_decimals};

use super::checks::{self, FairnessChecks};
use super::comparison::{Comparison, Pairing, RatioEstimate};
use super::contest::format_levels;

/// The reason why a comparison of two single runs has no verdict.
pub const SINGLE_RUNS: &str = "one run per side gives no measure of noise";

/// Formats a comparison with all its figures, or a summary of several.
pub fn format_comparisons(comparisons: &[Comparison]) -> String {
    match comparisons {
        [only] => format_in_full(only),
        several => {
            let blocks: Vec<String> = several.iter().map(format_briefly).collect();
            format!(
                "{}\n{} with a baseline; ratios are B/A; intervals and p hold for all of them together (Bonferroni)\n",
                blocks.join("\n"),
                format_count(several.len() as u64, "comparison")
            )
        }
    }
}

/// Formats one comparison with all its figures and the verdict in the middle.
fn format_in_full(comparison: &Comparison) -> String {
    let mut text = format!("{}\n\n", sides_heading(comparison));
    let mut rows = vec![["", "A", "B", "B/A", "95 %", "p"].map(str::to_owned)];
    rows.extend(check_rows(&comparison.checks));
    let checks = rows.len();
    let headline = comparison.estimates.iter().find(|it| Some(it.metric) == comparison.headline);
    rows.extend(headline.map(estimate_row));
    let decisive = rows.len();
    let others = comparison.estimates.iter().filter(|it| Some(it.metric) != comparison.headline);
    rows.extend(others.map(estimate_row));
    let lines = align_columns(&rows);
    text += &lines[..checks].concat();
    text.extend(limit_counts(&comparison.checks).map(|line| line + "\n"));
    text += &format!("\n{}\n\n{}", verdict_sentence(comparison), lines[checks..decisive].concat());
    if let Some(p) = comparison.rank_p {
        text += &format!("rank test: p {}\n", format_p(p));
    }
    if decisive < lines.len() {
        text += &format!("exploratory (not part of the verdict):\n{}", lines[decisive..].concat());
    }
    if !comparison.omitted.is_empty() {
        let omitted: Vec<String> = comparison.omitted.iter().map(Metric::to_string).collect();
        let omitted = omitted.join(", ");
        text += &format!("not compared: {omitted} ({})\n", comparison.omission_reason());
    }
    text
}

/// Formats the essentials of one comparison among several.
fn format_briefly(comparison: &Comparison) -> String {
    let mut text = format!("{}\n  {}\n", sides_heading(comparison), verdict_sentence(comparison));
    for [name, a, b, ..] in check_rows(&comparison.checks) {
        if a != b || !a.starts_with("0 ") && !name.starts_with("bytes") {
            text += &format!("  {name}: A {a}, B {b}\n");
        }
    }
    text.extend(limit_counts(&comparison.checks).map(|line| format!("  {line}\n")));
    let ratios: Vec<String> = comparison
        .estimates
        .iter()
        .map(|it| {
            let range = it.ratio_range().map_or(String::new(), |range| format!(" ({})", format_interval(range)));
            format!("{} {}{range}", metric_name(it.metric), format_ratio(it.ratio))
        })
        .collect();
    text + &format!("  {}\n", ratios.join(" · "))
}

/// The line that names A and B.
pub fn sides_heading(comparison: &Comparison) -> String {
    let [a, b] = &comparison.names;
    let at = other_levels_suffix(&comparison.at);
    let dropped = |noun: &str| match comparison.dropped {
        0 => String::new(),
        count => format!(", {} left out", format_count(count as u64, noun)),
    };
    let runs = |side: usize| format_count(comparison.runs[side] as u64, "run");
    match &comparison.pairing {
        Pairing::Rounds(name) => format!(
            "A = {a}, B = {b}{at}: {} of {:?}, interleaved{}",
            format_count(comparison.runs[0] as u64, "round"),
            escape_controls(name),
            dropped("round")
        ),
        Pairing::Apart => {
            format!("A = {a} ({}), B = {b} ({}){at}, not in rounds{}", runs(0), runs(1), dropped("run"))
        }
    }
}

/// The levels of the other factors, as a suffix; empty if there are none.
pub fn other_levels_suffix(levels: &[(String, String)]) -> String {
    if levels.is_empty() { String::new() } else { format!(", at {}", format_levels(levels)) }
}

/// An interval whose bounds are further from equality than this is too wide for a statement.
const WIDE: f64 = 0.5;

/// True if an interval of ratios allows no conclusion: it includes equality, and is too wide on either side.
pub fn is_inconclusive((low, high): (f64, f64)) -> bool {
    low <= 1.0 && high >= 1.0 && (1.0 - low).max(high - 1.0) > WIDE
}

/// An interval of ratios as printed.
fn format_interval((low, high): (f64, f64)) -> String {
    if is_inconclusive((low, high)) {
        "too wide".to_owned()
    } else {
        format!("{} … {}", format_ratio(low), format_ratio(high))
    }
}

/// The verdict on a comparison, as one sentence.
pub fn verdict_sentence(comparison: &Comparison) -> String {
    if let Some(doubt) = &comparison.doubt {
        return format!("no verdict: {doubt}");
    }
    let Some(estimate) = comparison.headline.and_then(|headline| comparison.estimate(headline)) else {
        return "no verdict".to_owned();
    };
    let difference = difference_clause(estimate);
    let (Some(interval), Some((low, high))) = (estimate.interval, estimate.ratio_range()) else {
        return format!("no verdict: {difference}, but {SINGLE_RUNS}");
    };
    let (low, high) = (low - 1.0, high - 1.0);
    if is_inconclusive((low + 1.0, high + 1.0)) {
        return format!("too few or too noisy rounds to tell: {difference} as measured");
    }
    if !interval.is_significant() {
        let bound = format_bound(low.abs().max(high.abs()));
        // Half of the width is the resolution of the rate, which more rounds do not improve.
        let remedy = if 4.0 * interval.resolution > high - low { "longer runs (-d)" } else { "more rounds" };
        return format!("no difference larger than {bound} was found; a smaller one would need {remedy}");
    }
    let (least, most) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    format!("{difference} (95 %: {} … {})", format_percentage(least).trim_end_matches(" %"), format_percentage(most))
}

/// `B is 3.1 % faster`, `p99 of B is 12 % lower`.
fn difference_clause(estimate: &RatioEstimate) -> String {
    let by = format_percentage((estimate.ratio - 1.0).abs());
    match (estimate.metric, estimate.ratio >= 1.0) {
        (Metric::Rate, true) => format!("B is {by} faster"),
        (Metric::Rate, false) => format!("B is {by} slower"),
        (metric, true) => format!("{metric} of B is {by} higher"),
        (metric, false) => format!("{metric} of B is {by} lower"),
    }
}

/// The loss in a metric at this ratio, as a share of the baseline; negative for a gain.
pub fn relative_loss(metric: Metric, ratio: f64) -> f64 {
    if metric.description().better == Better::Lower { ratio - 1.0 } else { 1.0 - ratio }
}

/// Formats a bound in per cent, rounded up, with at least as many digits as the interval in the table: `12.1 %`, `0.71
/// %`.
fn format_bound(share: f64) -> String {
    let percent = share * 100.0;
    let scale = 10.0_f64.powi(percent_decimals(percent).max(1) as i32);
    // Because of rounding, a figure may be just above a round one.
    format!("{} %", (percent * scale - 1e-9).max(0.0).ceil() / scale)
}

/// The name of a metric as used in sentences.
pub fn metric_name(metric: Metric) -> String {
    if metric == Metric::Rate { "requests/s".to_owned() } else { metric.to_string() }
}

/// Formats a ratio; if it would need more than three digits, only a bound.
fn format_ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.001 => "<0.001".to_owned(),
        ratio if ratio >= 1_000.0 => ">1000".to_owned(),
        ratio => format!("{ratio:.3}"),
    }
}

fn estimate_row(estimate: &RatioEstimate) -> [String; 6] {
    let value = |value: f64| match estimate.metric {
        Metric::Rate => format_per_second(value),
        _ => format_us(value),
    };
    let [a, b] = estimate.means.map(value);
    let range = estimate.ratio_range().map_or(String::new(), format_interval);
    let p = estimate.interval.map_or(String::new(), |interval| format_p(interval.p));
    [metric_name(estimate.metric), a, b, format_ratio(estimate.ratio), range, p]
}

fn format_p(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// The rows of those checks whose figures are known.
fn check_rows([a, b]: &[FairnessChecks; 2]) -> Vec<[String; 6]> {
    let share =
        |parts: Option<(f64, f64)>| parts.filter(|(_, all)| *all > 0.0).map_or(String::new(), checks::format_share);
    let unavailable = |side: &FairnessChecks| side.unavailable.map_or(String::new(), checks::format_percent);
    let bytes = |side: &FairnessChecks| side.bytes_per_response.map_or(String::new(), |bytes| format!("{bytes:.0}"));
    let rows = [
        ("errors", share(a.counted_errors()), share(b.counted_errors())),
        ("failed or timed out", share(a.failed_requests()), share(b.failed_requests())),
        ("unsuccessful status", share(a.unsuccessful_responses()), share(b.unsuccessful_responses())),
        ("failed check", share(a.responses_failing_checks()), share(b.responses_failing_checks())),
        ("target unavailable", unavailable(a), unavailable(b)),
        ("bytes per response", bytes(a), bytes(b)),
    ];
    let known = rows.into_iter().filter(|(_, a, b)| !a.is_empty() || !b.is_empty());
    known.map(|(name, a, b)| [name.to_owned(), a, b, String::new(), String::new(), String::new()]).collect()
}

/// The limits of the runs on each side, with the number of runs; `None` if both sides' are unknown.
fn limit_counts([a, b]: &[FairnessChecks; 2]) -> Option<String> {
    let of = |side: &FairnessChecks| -> String {
        let who: Vec<String> = match &side.limited_by[..] {
            [] => vec!["unknown".to_owned()],
            [(by, _)] => vec![by.name().to_owned()],
            several => several.iter().map(|(by, count)| format!("{} {count}", by.name())).collect(),
        };
        who.join(", ")
    };
    let is_known = !(a.limited_by.is_empty() && b.limited_by.is_empty());
    is_known.then(|| format!("limited by: A {}; B {}", of(a), of(b)))
}

/// Aligns rows in columns: the first column to the left, the others to the right.
fn align_columns(rows: &[[String; 6]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(1_000);
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::compare_two_targets;
    use super::*;

    fn said(a: &[f64], b: &[f64]) -> String {
        verdict_sentence(&compare_two_targets(a, b))
    }

    #[test]
    fn verdicts_are_one_sentence() {
        let a = [100.0, 101.0, 99.0, 100.5, 99.5];
        let times = |factor: f64, noise: [f64; 5]| -> Vec<f64> {
            a.iter().zip(noise).map(|(rate, noise)| rate * factor * noise).collect()
        };
        let noise = [1.01, 0.99, 1.0, 1.02, 0.98];
        assert_eq!(said(&a, &times(1.031, noise)), "B is 3.1 % faster (95 %: 1.1 … 5.1 %)");
        assert_eq!(said(&a, &times(0.95, noise)), "B is 5.0 % slower (95 %: 3.1 … 6.9 %)");
        assert_eq!(
            said(&a, &times(1.005, noise)),
            "no difference larger than 2.5 % was found; a smaller one would need more rounds"
        );
        assert_eq!(said(&a, &times(2.5, noise)), "B is 150 % faster (95 %: 145 … 155 %)");
        assert_eq!(
            said(&a[..1], &[97.0]),
            "no verdict: B is 3.0 % slower, but one run per side gives no measure of noise"
        );
    }

    #[test]
    fn bounds_are_rounded_up() {
        assert_eq!([0.04, 0.0401, 0.0071, 0.234, 0.0].map(format_bound), ["4 %", "4.1 %", "0.71 %", "23.4 %", "0 %"]);
    }

    #[test]
    fn deciding_lines_come_between_checks_and_others() {
        let a = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];
        let text = format_comparisons(&[compare_two_targets(&a, &a.map(|rate| rate * 1.1))]);
        assert_eq!(
            text,
            "A = A, B = B: 6 rounds of \"test\", interleaved\n\n\
             \x20                         A       B    B/A           95 %        p\n\
             failed or timed out     0 %     0 %\n\
             unsuccessful status     0 %     0 %\n\n\
             B is 10 % faster (95 %: 10 … 10 %)\n\n\
             requests/s           100.00  110.00  1.100  1.100 … 1.100  < 0.001\n\
             rank test: p 0.031\n"
        );
    }
}
