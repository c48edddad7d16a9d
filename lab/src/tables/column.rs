//! Table columns: fields, which distinguish runs, and measured figures.

use onrush_plan::Metric;
use onrush_plan::column::FIELDS;
use onrush_plan::metric::{ErrorKind, MetricUnit, Statistic};

use super::number::Number;
use crate::saved::SavedRun;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableColumn {
    /// A dimension that distinguishes runs: a name in [`FIELDS`], or a factor.
    Field(String),
    /// A measured figure.
    Figure(Metric),
}

/// Heading of the rate in the short table.
pub const PER_SECOND: &str = "requests/s";

/// Figures that precede the percentiles in a wide table. The first five are those of centminmod's table.
pub const BEFORE_PERCENTILES: [&str; 9] =
    ["requests", "duration", "bytes", "rate", "transfer", "mean", "stdev", "min", "max"];

/// Percentiles that centminmod's table has.
pub const USUAL_PERCENTILES: [&str; 5] = ["p50", "p75", "p90", "p99", "p99.999"];

impl TableColumn {
    /// The column with this name: a figure, or otherwise a field, even one that no run has. A factor takes precedence
    /// over a metric's identifier, but not over its column name.
    pub fn from_name(name: &str, factors: &[String]) -> Self {
        let is_field = FIELDS.contains(&name) || factors.iter().any(|factor| factor == name);
        let metric =
            || name.parse().ok().filter(|metric: &Metric| !is_field && !metric.description().columns.is_empty());
        Metric::of_column(name).or_else(metric).map_or_else(|| Self::Field(name.to_owned()), Self::Figure)
    }
}

/// Value of a field in a run; `None` if the run lacks it. A factor takes precedence over a field with the same name.
pub fn field(run: &SavedRun, name: &str) -> Option<String> {
    if let Some((_, level)) = run.factors.iter().find(|(factor, _)| name == factor) {
        return Some(level.clone());
    }
    let origin = &run.origin;
    match name {
        "folder" => Some(origin.folder.clone()),
        "file" => Some(origin.file.clone()),
        "line" => origin.line.map(|line| line.to_string()),
        "name" => Some(origin.name.clone()),
        "tool" => Some(origin.tool.to_owned()),
        "section" => run.section.clone(),
        "label" => run.label.clone(),
        "url" => run.url.clone(),
        "host" => run.host().map(str::to_owned),
        "threads" => run.threads.map(|threads| threads.to_string()),
        "connections" => run.connections.map(|connections| connections.to_string()),
        "protocol" => Some(protocol(run).to_owned()),
        "streams" => {
            let document = run.document.as_ref()?;
            let usual = document.batch.unwrap_or(1);
            Some(document.plan.http2?.streams.map_or(usual, |streams| streams as usize).to_string())
        }
        "rate" => run.rate.clone(),
        "verdict" => run.document.as_ref()?.verdict.as_ref().map(|verdict| verdict.limited_by.name().to_owned()),
        _ => None,
    }
}

/// The version of HTTP that was requested; `either` if TLS was to negotiate it. All programs except onrush have only
/// HTTP/1.1.
fn protocol(run: &SavedRun) -> &'static str {
    let plan = run.document.as_ref().map(|document| &document.plan);
    match plan.filter(|plan| plan.http2.is_some()) {
        None => "HTTP/1.1",
        Some(plan) if plan.tls.as_ref().is_some_and(|tls| tls.alpn.len() > 1) => "either",
        Some(_) => "HTTP/2",
    }
}

/// Figures that follow the percentiles in a wide table.
pub const AFTER_PERCENTILES: [&str; 8] = [
    "errors.connect",
    "errors.read",
    "errors.write",
    "errors.timeout",
    "errors.socket",
    "errors.status",
    "errors.abandoned",
    "errors",
];

/// The metrics with these names; unknown names are skipped.
pub fn metrics_named(names: &[&str]) -> impl Iterator<Item = Metric> {
    names.iter().filter_map(|name| name.parse().ok())
}

/// The sum of wrk's socket errors.
pub const FAILED: Metric = Metric::ErrorsOf(ErrorKind::Socket);

/// The number of responses with an unsuccessful status.
pub const BAD: Metric = Metric::ErrorsOf(ErrorKind::Status);

/// The number of responses that failed a check.
pub const UNFIT: Metric = Metric::ErrorsOf(ErrorKind::Check);

/// True if tables for people show the figure as a whole number.
pub fn is_whole(metric: Metric) -> bool {
    match metric {
        Metric::Latency(_, statistic) => !matches!(statistic, Statistic::Mean | Statistic::Stdev),
        metric => metric.description().unit.adds_up(),
    }
}

/// Length of the rule below the heading of a figure in Markdown. For three figures it is too short, as in centminmod's
/// script.
pub fn rule_length(metric: Metric) -> usize {
    let is_short = matches!(metric, Metric::Duration | Metric::Rate | Metric::Transfer);
    metric.heading().len() + if is_short { 1 } else { 2 }
}

/// A run's figure, with shares in per cent; `None` if the run lacks it.
pub fn figure(run: &SavedRun, metric: Metric) -> Option<Number> {
    let value = run.value(metric)?;
    Number::from_value(if metric.description().unit == MetricUnit::Share { value * 100.0 } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_win_over_metric_names() {
        let named = |name: &str| TableColumn::from_name(name, &["max".to_owned(), "rmem_max".to_owned()]);
        let figure = |id: &str| TableColumn::Figure(id.parse().unwrap());
        for (name, id) in [
            ("p99.9", "p99.9"),
            ("99.9% latency", "p99.9"),
            (PER_SECOND, "rate"),
            ("requests_per_sec", "rate"),
            ("mean", "mean"),
            ("max_us", "max"),
            ("errors", "errors"),
            ("socket_errors", "errors.socket"),
            ("errors_percent", "errors"),
            ("errors.timeout", "errors.timeout"),
            ("service.p50", "service.p50"),
            ("late", "late"),
            ("status.404", "status.404"),
        ] {
            assert_eq!(named(name), figure(id), "{name}");
        }
        // A verdict is not a number.
        for name in ["rmem_max", "max", "host", "rate", "p", "path", "0%", "verdict"] {
            assert_eq!(named(name), TableColumn::Field(name.to_owned()));
        }
    }
}
