//! The columns that tables can have: fields, which distinguish runs, and figures, which were measured.

use onrush_plan::Percent;
use onrush_stats::Errors;

use super::measured::Measured;
use super::number::Number;
use crate::report::result::Document;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// What distinguishes runs: a name from [`FIELDS`], or of a factor.
    Field(String),
    /// A measured figure.
    Figure(Figure),
}

/// A measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Complete responses.
    Requests,
    /// How long the run measured.
    Duration,
    /// Bytes received.
    Bytes,
    /// Responses per second.
    Rate,
    /// Bytes received per second.
    Transfer,
    /// The mean latency.
    Mean,
    /// The standard deviation of the latency.
    Stdev,
    /// The smallest latency.
    Min,
    /// The largest latency.
    Max,
    /// A percentile of the latency.
    Percentile(Percent),
    /// Failed connects.
    ConnectErrors,
    /// Failures while a response was read.
    ReadErrors,
    /// Failures while a request was sent.
    WriteErrors,
    /// Requests that exceeded `--timeout`.
    Timeouts,
    /// These four together.
    Errors,
    /// Responses with a status of 400 or more.
    StatusErrors,
    /// How much of the time the target was unavailable, in per cent; only with a rate.
    Unavailable,
}

/// The fields that distinguish runs, beside the factors of an experiment.
pub const FIELDS: [&str; 12] =
    ["folder", "file", "line", "name", "tool", "section", "label", "url", "host", "threads", "connections", "rate"];

/// The column with the number of a run.
pub const RUN: &str = "run";

/// The columns of the second table that are computed from several runs.
pub const COMPUTED: [&str; 5] =
    ["runs", "median_requests_per_sec", "min_requests_per_sec", "max_requests_per_sec", "spread_percent"];

/// The rate's heading in the short table.
pub const PER_SECOND: &str = "requests/s";

/// The figures of centminmod's table, before its percentiles.
pub const USUAL: [Figure; 5] = [Figure::Requests, Figure::Duration, Figure::Bytes, Figure::Rate, Figure::Transfer];

/// The percentiles in that table.
pub fn usual_percentiles() -> impl Iterator<Item = Figure> {
    ["50", "75", "90", "99", "99.999"].iter().filter_map(|text| text.parse().ok()).map(Figure::Percentile)
}

impl Column {
    /// The column of this name; a name that is no figure's may be a factor's.
    pub fn named(name: &str) -> Self {
        Figure::named(name).map_or_else(|| Self::Field(name.to_owned()), Self::Figure)
    }
}

/// Whether tables have a column of this name for runs with any labels.
pub fn is_column(name: &str) -> bool {
    let is_figure = || matches!(Column::named(name), Column::Figure(_));
    name == RUN || FIELDS.contains(&name) || COMPUTED.contains(&name) || is_figure()
}

/// The factor whose level a label gives. `--label` refuses the names of columns, but documents may have other sources.
pub fn factor_of_label(key: &str) -> String {
    if is_column(key) { format!("label.{key}") } else { key.to_owned() }
}

/// The factor of this name in an experiment, or in the name of a file. A factor with a field's name replaces the field;
/// one with a figure's name is renamed.
pub fn factor_of_experiment(name: &str) -> String {
    if FIELDS.contains(&name) { name.to_owned() } else { factor_of_label(name) }
}

/// The value of a field in a run. A factor takes precedence over the field of the same name.
pub fn field(run: &Measured, name: &str) -> Option<String> {
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
        "rate" => run.rate.clone(),
        _ => None,
    }
}

impl Figure {
    /// The figures before the percentiles in a wide table.
    pub const BEFORE_PERCENTILES: [Self; 9] = [
        Self::Requests,
        Self::Duration,
        Self::Bytes,
        Self::Rate,
        Self::Transfer,
        Self::Mean,
        Self::Stdev,
        Self::Min,
        Self::Max,
    ];

    /// The figures after them.
    pub const AFTER_PERCENTILES: [Self; 6] =
        [Self::ConnectErrors, Self::ReadErrors, Self::WriteErrors, Self::Timeouts, Self::Errors, Self::StatusErrors];

    /// All figures but the percentiles.
    fn fixed() -> impl Iterator<Item = Self> {
        Self::BEFORE_PERCENTILES.into_iter().chain(Self::AFTER_PERCENTILES).chain([Self::Unavailable])
    }

    fn named(name: &str) -> Option<Self> {
        let percent = name.strip_suffix("% latency").or_else(|| name.strip_suffix('%'));
        let percent = percent.or_else(|| name.strip_prefix('p')?.strip_suffix("_us").or(name.strip_prefix('p')));
        let percentile = percent.and_then(|percent| percent.parse().ok()).map(Self::Percentile);
        let is_rate = || (name == PER_SECOND).then_some(Self::Rate);
        let is_fixed = || Self::fixed().find(|figure| figure.name() == name || figure.heading() == name);
        percentile.or_else(is_rate).or_else(is_fixed)
    }

    /// Its name for programs.
    pub fn name(self) -> String {
        match self {
            Self::Requests => "requests",
            Self::Duration => "duration_in_microseconds",
            Self::Bytes => "bytes",
            Self::Rate => "requests_per_sec",
            Self::Transfer => "bytes_transfer_per_sec",
            Self::Mean => "mean_us",
            Self::Stdev => "stdev_us",
            Self::Min => "min_us",
            Self::Max => "max_us",
            Self::Percentile(percent) => return format!("p{percent}_us"),
            Self::ConnectErrors => "connect_errors",
            Self::ReadErrors => "read_errors",
            Self::WriteErrors => "write_errors",
            Self::Timeouts => "timeouts",
            Self::Errors => "errors",
            Self::StatusErrors => "status_errors",
            Self::Unavailable => "unavailable_percent",
        }
        .to_owned()
    }

    /// Its name for people: that of centminmod's table.
    pub fn heading(self) -> String {
        match self {
            Self::Mean => "mean latency".to_owned(),
            Self::Stdev => "latency stdev".to_owned(),
            Self::Min => "min latency".to_owned(),
            Self::Max => "max latency".to_owned(),
            Self::Percentile(percent) => format!("{percent}% latency"),
            Self::Unavailable => "unavailable".to_owned(),
            other => other.name(),
        }
    }

    /// Whether it is a latency.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Mean | Self::Stdev | Self::Min | Self::Max | Self::Percentile(_))
    }

    /// Whether tables for people show it as a whole number.
    pub fn is_whole(self) -> bool {
        !matches!(self, Self::Duration | Self::Rate | Self::Transfer | Self::Mean | Self::Stdev | Self::Unavailable)
    }

    /// The length of the rule below its heading. centminmod's script makes three of them too short.
    pub fn rule(self) -> usize {
        let is_short = matches!(self, Self::Duration | Self::Rate | Self::Transfer);
        self.heading().len() + if is_short { 1 } else { 2 }
    }

    /// Its value in a run.
    pub fn of(self, run: &Measured) -> Option<Number> {
        let figures = &run.figures;
        let errors = |count: fn(&Errors) -> u64| figures.errors.as_ref().map(count).map(Number::whole);
        match self {
            Self::Requests => figures.requests.map(Number::whole),
            Self::Bytes => figures.bytes.map(Number::whole),
            Self::Duration => figures.duration_us.and_then(Number::of),
            Self::Rate => figures.rate_per_s.and_then(Number::of),
            Self::Transfer => figures.bytes_per_s.and_then(Number::of),
            Self::Mean => figures.mean_us.and_then(Number::of),
            Self::Stdev => figures.stdev_us.and_then(Number::of),
            Self::Min => figures.min_us.and_then(Number::of),
            Self::Max => figures.max_us.and_then(Number::of),
            Self::Percentile(percent) => percentile_us(run, percent).and_then(Number::of),
            Self::ConnectErrors => errors(|errors| errors.connect),
            Self::ReadErrors => errors(|errors| errors.read),
            Self::WriteErrors => errors(|errors| errors.write),
            Self::Timeouts => errors(|errors| errors.timeout),
            Self::Errors => errors(|errors| errors.total() - errors.status),
            Self::StatusErrors => errors(|errors| errors.status),
            Self::Unavailable => {
                let open_loop = run.document.as_deref()?.open_loop.as_ref()?;
                Number::of(open_loop.unavailable.as_ref()?.share * 100.0)
            }
        }
    }

    /// Its value in the sum of several runs; only percentiles have one.
    pub fn merged(self, sum: &Document) -> Option<Number> {
        let Self::Percentile(percent) = self else { return None };
        sum.shown_percentile_us(percent).and_then(Number::of)
    }
}

/// A percentile of a run: as it was written, or from the histogram if that has all requests.
fn percentile_us(run: &Measured, percent: Percent) -> Option<f64> {
    let written = run.figures.percentiles_us.get(&percent).copied();
    let document = run.document.as_deref().filter(|document| written.is_none() && document.bounded().is_none());
    written.or_else(|| {
        let values = document?.shown_latency().values().ok()?;
        (values.count() > 0).then(|| values.percentile(percent.value()) as f64 / 1e3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_found_by_either_name() {
        let percentile = Figure::Percentile("99.9".parse().unwrap());
        for figure in Figure::fixed().chain([percentile]) {
            assert_eq!(Column::named(&figure.name()), Column::Figure(figure));
            assert_eq!(Column::named(&figure.heading()), Column::Figure(figure));
        }
        for name in ["p99.9", "99.9%"] {
            assert_eq!(Column::named(name), Column::Figure(percentile));
        }
        assert_eq!(Column::named(PER_SECOND), Column::Figure(Figure::Rate));
        for name in ["rmem_max", "host", "p", "path", "0%"] {
            assert_eq!(Column::named(name), Column::Field(name.to_owned()));
        }
    }
}
