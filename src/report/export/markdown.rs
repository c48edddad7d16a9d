//! A result as a row of a Markdown table, in the columns in which wrk's results are usually collected.

use super::super::result::Document;
use crate::plan::Percent;

/// The percentiles in the table by default.
const USUAL: [&str; 5] = ["50", "75", "90", "99", "99.999"];

/// The heading and the row. Latencies are whole microseconds. If the percentiles include requests without a complete
/// response, a further column has their number.
pub fn render(document: &Document) -> String {
    let usual = || USUAL.iter().filter_map(|text| text.parse().ok()).collect();
    let percents: Vec<Percent> = document.plan.percentiles.clone().unwrap_or_else(usual);
    let names = ["requests", "duration_in_microseconds", "bytes", "requests_per_sec", "bytes_transfer_per_sec"];
    let mut heads: Vec<String> = names.map(str::to_owned).to_vec();
    heads.extend(percents.iter().map(|percent| format!("{percent}% latency")));
    let bytes_per_s = super::super::result::rate(document.bytes_received, document.duration_s);
    let mut cells = vec![
        document.requests.completed.to_string(),
        format!("{:.2}", document.duration_s * 1e6),
        document.bytes_received.to_string(),
        format!("{:.2}", document.rate_per_s),
        format!("{bytes_per_s:.2}"),
    ];
    // Without responses there is no latency.
    let whole = |&percent| document.shown_percentile_us(percent).map_or(String::new(), |us| format!("{us:.0}"));
    cells.extend(percents.iter().map(whole));
    if let Some(open_loop) = document.bounded() {
        heads.push("censored".to_owned());
        cells.push(open_loop.censored.as_ref().map_or(0, |censored| censored.count).to_string());
    }
    let rule: Vec<String> = heads.iter().map(|head| "-".repeat(head.len() + 2)).collect();
    format!("| {} |\n|{}|\n| {} |\n", heads.join(" | "), rule.join("|"), cells.join(" | "))
}
