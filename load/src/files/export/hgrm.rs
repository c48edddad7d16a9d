//! The latency as a table of percentiles for HdrHistogram's plotter, in milliseconds.

use std::fmt::Write;

use onrush_stats::{Corrupt, SpectrumRow};

use crate::record::Document;

/// Number of rows for each halving of the distance to 100 %.
const TICKS: u32 = 5;

/// Nanoseconds in a millisecond.
const NS_PER_MS: f64 = 1e6;

/// The table for the latency that the text report shows. Percentiles are estimated over all due requests; the other
/// figures cover complete responses only.
pub fn render_histogram(document: &Document) -> Result<String, Corrupt> {
    let latency = document.shown_latency().values()?;
    let estimate = document.estimate()?;
    let all = estimate.distribution();
    let mut text = String::new();
    let [value, share, count, inverse] = ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"];
    let _ = writeln!(text, "{value:>12} {share:>14} {count:>10} {inverse:>14}\n");
    let greatest = all.max().unwrap_or(0);
    for SpectrumRow { value, share, count } in all.binned().spectrum(TICKS) {
        let value_ms = value.min(greatest) as f64 / NS_PER_MS;
        let _ = write!(text, "{value_ms:12.3} {share:14.12} {count:10}");
        // The last row is at 100 %, with an infinite inverse.
        let _ = if share < 1.0 { writeln!(text, " {:14.2}", 1.0 / (1.0 - share)) } else { writeln!(text) };
    }
    let ms = |ns: f64| ns / NS_PER_MS;
    let mean = ms(latency.mean().unwrap_or(0.0));
    let stdev = ms(latency.stdev());
    let max = ms(estimate.requests().completed.max().unwrap_or(0) as f64);
    let count = latency.count();
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {stdev:12.3}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]");
    text += &document.incomplete().histogram_comments();
    // The shape that a histogram of HdrHistogram would have: a resolution of one part in a thousand, up to an hour in
    // nanoseconds.
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {:12}]", 32, 2048);
    Ok(text)
}
