//! Reads the JSON of wrk-cmm's script, in which errors and load are missing.

use onrush_plan::Metric;
use serde::Deserialize;
use serde_json::Value;

use super::measured::MetricValues;

/// Output of the script, in which the percentiles are plain numbers.
#[derive(Deserialize)]
struct CmmOutput {
    requests: u64,
    duration_in_microseconds: f64,
    bytes: u64,
    requests_per_sec: f64,
    bytes_transfer_per_sec: f64,
    latency_distribution: Vec<Percentile>,
}

#[derive(Deserialize)]
struct Percentile {
    percentile: f64,
    latency_in_microseconds: f64,
}

/// A key that occurs only in this format.
pub const OWN_KEY: &str = "duration_in_microseconds";

/// True if the value has `requests` and [`OWN_KEY`]. Other keys may still be missing.
pub fn claims_format(value: &Value) -> bool {
    value.get("requests").is_some() && value.get(OWN_KEY).is_some()
}

/// Reads the figures. The error names the key that is missing or has a wrong value.
pub fn read(value: &Value) -> Result<MetricValues, serde_json::Error> {
    let written = CmmOutput::deserialize(value)?;
    let percentile = |one: &Percentile| {
        Some((Metric::percentile(one.percentile.to_string().parse().ok()?), one.latency_in_microseconds))
    };
    let mut figures: MetricValues = written.latency_distribution.iter().filter_map(percentile).collect();
    figures.extend([
        (Metric::Requests, written.requests as f64),
        (Metric::Duration, written.duration_in_microseconds),
        (Metric::Received, written.bytes as f64),
        (Metric::Rate, written.requests_per_sec),
        (Metric::Transfer, written.bytes_transfer_per_sec),
    ]);
    Ok(figures)
}
