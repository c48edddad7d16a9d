//! The metrics: every named result of a run, for conditions and stop terms, comparisons, and columns of tables and
//! timelines. [`METRICS`] lists each of them once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Percent;

/// A metric of a run: a named result, with all that identifies it, such as its percentage or status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Metric {
    /// Complete responses per second.
    Rate,
    /// A statistic of the latencies, in one view.
    Latency(LatencyView, Statistic),
    /// Requests without a good response in time, as a share of due ones.
    Errors,
    /// Share of time in which the target was unavailable.
    Unavailable,
    /// Responses with one status.
    Status(u16),
    /// Responses with statuses of one class: 5 means 500 to 599.
    StatusClass(u16),
    /// Requests that left late.
    Late,
    /// Requests never sent because it was too late.
    Dropped,
    /// Complete responses.
    Requests,
    /// Requests sent.
    Started,
    /// Measured length of the run.
    Duration,
    /// Bytes received.
    Received,
    /// Bytes sent.
    Sent,
    /// Bytes received per second.
    Transfer,
    /// Errors of one of wrk's kinds.
    ErrorsOf(ErrorKind),
    /// The limit of the run: why it did not reach more requests per second.
    Verdict,
}

/// The starting point of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LatencyView {
    /// The starting point used in the text report.
    Shown,
    /// The due time.
    Scheduled,
    /// The time of sending.
    Service,
    /// [`LatencyView::Shown`] for responses with statuses of one class: 2 means 200 to 299.
    Class(u16),
}

/// A statistic computed from latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// A percentile.
    Percentile(Percent),
    /// The minimum.
    Least,
    /// The maximum.
    Max,
    /// The standard deviation.
    Stdev,
}

/// The kinds of errors that are counted: wrk's, failed checks and abandoned requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ErrorKind {
    /// A connection could not be opened.
    Connect,
    /// A response could not be read.
    Read,
    /// A request could not be written.
    Write,
    /// A request exceeded the timeout.
    Timeout,
    /// All of these, wrk's `Socket errors`.
    Socket,
    /// An unsuccessful status: 400 or higher, or an unexpected one.
    Status,
    /// A response that failed a check or a gRPC call.
    Check,
    /// A request was abandoned after `--give-up`.
    Abandoned,
}

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// A time, in microseconds.
    Time,
    /// A number per second.
    PerSecond,
    /// A number of requests, responses or errors.
    Count,
    /// A share, 0 to 1.
    Share,
    /// A number of bytes.
    Bytes,
    /// A number of bytes per second.
    BytesPerSecond,
    /// A name instead of a number.
    Name,
}

/// The direction in which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower is better.
    Lower,
    /// Higher is better.
    Higher,
    /// Neither direction is better.
    Neither,
}

/// The description of a metric. For a family of metrics, such as percentiles, it describes one example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDescription {
    /// The metric; for a family, the example.
    pub metric: Metric,
    /// The name of the metric, as in conditions.
    pub id: &'static str,
    /// Column names: for programs, for people if different, and further accepted names. Empty: the metric is in no
    /// table.
    pub columns: &'static [&'static str],
    /// Unit of the values.
    pub unit: MetricUnit,
    /// Direction of better values: lower or higher.
    pub better: Better,
    /// The meaning of the metric in one sentence, for users.
    pub words: &'static str,
}

/// All metrics, each family represented by one example.
pub static METRICS: [MetricDescription; 28] = {
    use Better::{Higher, Lower, Neither};
    use ErrorKind::{Connect, Read, Socket, Timeout, Write};
    use Metric::*;
    use MetricUnit::{Bytes, BytesPerSecond, Count, Name, PerSecond, Share, Time};
    use Statistic::{Least, Max, Mean, Percentile, Stdev};
    const RATE: &[&str] = &["requests_per_sec", "", "requests/s", "rate_per_s"];
    [
        latency(
            Percentile(Percent::EXAMPLE),
            "p99",
            &["p99_us", "99% latency"],
            "the latency that 99 % of the responses do not exceed; there are p0 to p100",
        ),
        latency(Mean, "mean", &["mean_us", "mean latency"], "the mean latency"),
        latency(Max, "max", &["max_us", "max latency"], "the largest latency"),
        about(
            Latency(LatencyView::Class(2), Percentile(Percent::EXAMPLE)),
            "p99.2xx",
            &["p99_2xx_us"],
            Time,
            Lower,
            "the same of responses with a status of one class; so for .2xx to .5xx behind p0 to p100, mean, max, min, stdev",
        ),
        about(Rate, "rate", RATE, PerSecond, Higher, "complete responses per second"),
        about(
            Errors,
            "errors",
            &["errors_percent", "", "errors"],
            Share,
            Lower,
            "requests that failed, were abandoned, late, dropped or unsent, or got an unsuccessful response, each once",
        ),
        about(
            Unavailable,
            "unavailable",
            &["unavailable_percent", "unavailable"],
            Share,
            Lower,
            "time in which requests were due and no response came for far longer than usual; needs a rate",
        ),
        about(Status(503), "status.503", &["status.503"], Count, Neither, "responses with this status, or any other"),
        about(StatusClass(5), "status.5xx", &["status.5xx"], Count, Neither, "responses with a status from 500 to 599"),
        about(Late, "late", &["late_requests"], Count, Lower, "requests sent over 1 ms late; needs a rate"),
        about(Dropped, "dropped", &["dropped_requests"], Count, Lower, "requests not sent (--max-late); needs a rate"),
        latency(Least, "min", &["min_us", "min latency"], "the smallest latency"),
        latency(Stdev, "stdev", &["stdev_us", "latency stdev"], "the standard deviation of the latency"),
        about(Requests, "requests", &["requests", "", "completed"], Count, Higher, "complete responses, of any status"),
        about(Started, "started", &["started_requests"], Count, Neither, "requests sent"),
        about(Duration, "duration", &["duration_in_microseconds"], Time, Neither, "how long the run measured"),
        about(Received, "bytes", &["bytes", "", "bytes_received"], Bytes, Neither, "bytes received, heads included"),
        about(Sent, "bytes_sent", &["bytes_sent"], Bytes, Neither, "bytes sent"),
        about(Transfer, "transfer", &["bytes_transfer_per_sec"], BytesPerSecond, Higher, "bytes received per second"),
        errors(Connect, "errors.connect", &["connect_errors"], "connections that could not be opened"),
        errors(Read, "errors.read", &["read_errors"], "responses that could not be read"),
        errors(Write, "errors.write", &["write_errors"], "requests that could not be sent"),
        errors(Timeout, "errors.timeout", &["timeouts"], "requests that took longer than --timeout"),
        errors(Socket, "errors.socket", &["socket_errors"], "these four together, wrk's Socket errors"),
        errors(
            ErrorKind::Status,
            "errors.status",
            &["status_errors"],
            "responses with a status of 400 or more, or one that was not expected",
        ),
        errors(ErrorKind::Check, "errors.check", &["check_errors"], "responses that failed a check or a gRPC call"),
        errors(ErrorKind::Abandoned, "errors.abandoned", &["abandoned_requests"], "requests abandoned after --give-up"),
        about(Verdict, "verdict", &[], Name, Neither, "what limited the run"),
    ]
};

type Names = &'static [&'static str];

const fn about(
    metric: Metric,
    id: &'static str,
    columns: Names,
    unit: MetricUnit,
    better: Better,
    words: &'static str,
) -> MetricDescription {
    MetricDescription { metric, id, columns, unit, better, words }
}

const fn latency(statistic: Statistic, id: &'static str, columns: Names, words: &'static str) -> MetricDescription {
    about(Metric::Latency(LatencyView::Shown, statistic), id, columns, MetricUnit::Time, Better::Lower, words)
}

const fn errors(kind: ErrorKind, id: &'static str, columns: Names, words: &'static str) -> MetricDescription {
    about(Metric::ErrorsOf(kind), id, columns, MetricUnit::Count, Better::Lower, words)
}

impl MetricUnit {
    /// True if the value of several runs together is the sum of their values.
    pub fn adds_up(self) -> bool {
        matches!(self, Self::Count | Self::Bytes)
    }

    /// Symbol of the unit: `us`, `1/s`, `count`; `%` for shares, although their values are 0 to 1.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Time => "us",
            Self::PerSecond => "1/s",
            Self::Count => "count",
            Self::Share => "%",
            Self::Bytes => "B",
            Self::BytesPerSecond => "B/s",
            Self::Name => "name",
        }
    }
}

impl LatencyView {
    /// Splits a name into the view named at its beginning, or the one shown, and the rest.
    fn split_view(name: &str, separator: char) -> (Self, &str) {
        match name.split_once(separator) {
            Some(("scheduled", rest)) => (Self::Scheduled, rest),
            Some(("service", rest)) => (Self::Service, rest),
            _ => (Self::Shown, name),
        }
    }

    /// The part of a metric's name before the statistic.
    fn name_prefix(self, separator: char) -> String {
        match self {
            Self::Shown => String::new(),
            Self::Scheduled => format!("scheduled{separator}"),
            Self::Service => format!("service{separator}"),
            Self::Class(_) => String::new(),
        }
    }

    /// The class in a name such as `5xx`.
    fn class(name: &str) -> Option<Self> {
        let class = name.strip_suffix("xx")?.parse().ok()?;
        (name.len() == 3 && (2..=5).contains(&class)).then_some(Self::Class(class))
    }
}

impl Metric {
    /// The mean of the latency shown in the text report.
    pub const MEAN: Self = Self::Latency(LatencyView::Shown, Statistic::Mean);

    /// A percentile of the latency shown in the text report.
    pub fn percentile(percent: Percent) -> Self {
        Self::Latency(LatencyView::Shown, Statistic::Percentile(percent))
    }

    /// The percentage, if the metric is a percentile of the latency shown in the text report.
    pub fn percentile_percent(self) -> Option<Percent> {
        if let Self::Latency(LatencyView::Shown, Statistic::Percentile(percent)) = self { Some(percent) } else { None }
    }

    /// The description of the metric, or of its family.
    pub fn description(self) -> &'static MetricDescription {
        let example = match self {
            Self::Latency(LatencyView::Class(_), _) => {
                Self::Latency(LatencyView::Class(2), Statistic::Percentile(Percent::EXAMPLE))
            }
            Self::Latency(_, Statistic::Percentile(_)) => Self::percentile(Percent::EXAMPLE),
            Self::Latency(_, statistic) => Self::Latency(LatencyView::Shown, statistic),
            Self::Status(_) => Self::Status(503),
            Self::StatusClass(_) => Self::StatusClass(5),
            other => other,
        };
        METRICS.iter().find(|about| about.metric == example).expect("every metric is described")
    }

    /// The metric with this column name; `None`: there is no such column.
    pub fn of_column(name: &str) -> Option<Self> {
        let of_class = name.strip_suffix("_us").and_then(|name| name.rsplit_once('_'));
        if let Some((name, class)) = of_class.and_then(|(name, class)| Some((name, LatencyView::class(class)?))) {
            return Self::of_column(&format!("{name}_us"))?.in_view(class);
        }
        let (view, name) = LatencyView::split_view(name, '_');
        let percent = name.strip_suffix("% latency").or_else(|| name.strip_suffix('%'));
        let percent = percent.or_else(|| name.strip_prefix('p').map(|rest| rest.strip_suffix("_us").unwrap_or(rest)));
        let known =
            METRICS.iter().find(|about| !name.is_empty() && about.columns.contains(&name)).map(|about| about.metric);
        known.or_else(|| percent?.parse().ok().map(Self::percentile))?.in_view(view)
    }

    /// The name of the metric's column in formats for programs, such as CSV.
    pub fn column(self) -> String {
        let name = self.description().columns.first().map_or(self.description().id, |name| name);
        self.view().name_prefix('_') + &self.member_name(name)
    }

    /// The heading of the metric's column for people; the name for programs if it has no other.
    pub fn heading(self) -> String {
        match self.description().columns.get(1).filter(|name| !name.is_empty() && self.view() == LatencyView::Shown) {
            Some(name) => self.member_name(name),
            None => self.column(),
        }
    }

    /// True for latencies of any kind.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Latency(..))
    }

    /// True if only runs with a rate have this metric.
    pub fn needs_rate(self) -> bool {
        matches!(self, Self::Late | Self::Dropped | Self::Unavailable | Self::Latency(LatencyView::Scheduled, _))
    }

    /// True if the metric also exists per request name.
    pub fn is_by_name(self) -> bool {
        use Metric::{Errors, Latency, Rate, Requests, Status, StatusClass};
        matches!(self, Latency(LatencyView::Shown, _) | Rate | Errors | Requests | Status(_) | StatusClass(_))
    }

    fn view(self) -> LatencyView {
        if let Self::Latency(view, _) = self { view } else { LatencyView::Shown }
    }

    /// The metric in this view; [`LatencyView::Shown`] changes nothing. `None`: the metric is no latency, or already
    /// has a view of its own.
    fn in_view(self, view: LatencyView) -> Option<Self> {
        match self {
            Self::Latency(LatencyView::Shown, statistic) => Some(Self::Latency(view, statistic)),
            other => (view == LatencyView::Shown).then_some(other),
        }
    }

    /// The member's name, from the name of its family's example.
    fn member_name(self, name: &str) -> String {
        match self {
            Self::Latency(LatencyView::Class(class), statistic) => {
                let all = Self::Latency(LatencyView::Shown, statistic);
                match name.strip_suffix("_us") {
                    Some(_) => format!("{}_{class}xx_us", all.column().trim_end_matches("_us")),
                    None => format!("{all}.{class}xx"),
                }
            }
            Self::Latency(_, Statistic::Percentile(percent)) => name.replacen("99", &percent.to_string(), 1),
            Self::Status(status) => name.replacen("503", &status.to_string(), 1),
            Self::StatusClass(class) => name.replacen('5', &class.to_string(), 1),
            _ => name.to_owned(),
        }
    }

    fn member(name: &str) -> Option<Self> {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        if let Some(codes) = name.strip_prefix("status.") {
            return match codes.strip_suffix("xx") {
                Some(class) => digits(class).filter(|class| (1..=9).contains(class)).map(Self::StatusClass),
                None => digits(codes).filter(|code| (100..=999).contains(code)).map(Self::Status),
            };
        }
        if let Some((name, class)) =
            name.rsplit_once('.').and_then(|(name, class)| Some((name, LatencyView::class(class)?)))
        {
            return name.parse::<Self>().ok().filter(|metric| metric.is_latency())?.in_view(class);
        }
        match name.strip_prefix('p')? {
            "0" => Some(Self::Latency(LatencyView::Shown, Statistic::Least)),
            // A mistyped status would be taken for a percentile, and a gate on the wrong metric passes.
            percent if looks_like_status(percent) => None,
            percent => percent.parse().ok().map(Self::percentile),
        }
    }
}

/// True if the part after the point is a status rather than decimals: `99.200`.
fn looks_like_status(percent: &str) -> bool {
    let decimals = percent.split_once('.').map_or("", |(_, decimals)| decimals);
    decimals.len() == 3 && decimals.parse().is_ok_and(|status: u16| (200..600).contains(&status))
}

/// The metric's name, in the form that is parsed.
impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&(self.view().name_prefix('.') + &self.member_name(self.description().id)))
    }
}

impl FromStr for Metric {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (view, name) = LatencyView::split_view(text, '.');
        let fixed = METRICS.iter().find(|about| about.id == name).map(|about| about.metric);
        fixed.or_else(|| Self::member(name)).and_then(|metric| metric.in_view(view)).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn metric_names_are_unique_and_parse_back() {
        let mut names = BTreeSet::new();
        for about in &METRICS {
            assert!(names.insert(about.id) && about.metric.description() == about, "{}", about.id);
            assert_eq!((about.metric.to_string().as_str(), about.id.parse()), (about.id, Ok(about.metric)));
            for name in about.columns.iter().filter(|name| !name.is_empty()) {
                assert_eq!(Metric::of_column(name), Some(about.metric), "{name}");
            }
        }
        for (id, column, heading) in [
            ("p99.9", "p99.9_us", "99.9% latency"),
            ("p100", "p100_us", "100% latency"),
            ("scheduled.p50", "scheduled_p50_us", "scheduled_p50_us"),
            ("service.max", "service_max_us", "service_max_us"),
            ("p99.9.5xx", "p99.9_5xx_us", "p99.9_5xx_us"),
            ("mean.3xx", "mean_3xx_us", "mean_3xx_us"),
            ("status.404", "status.404", "status.404"),
            ("status.2xx", "status.2xx", "status.2xx"),
            ("errors.socket", "socket_errors", "socket_errors"),
            ("mean", "mean_us", "mean latency"),
        ] {
            let metric: Metric = id.parse().unwrap();
            assert_eq!(
                (metric.to_string(), metric.column(), metric.heading()),
                (id.into(), column.into(), heading.into())
            );
            assert!(!metric.is_latency() || Metric::of_column(column) == Some(metric), "{column}");
        }
        assert_eq!("p0".parse(), "min".parse::<Metric>());
        for name in [
            "",
            "p",
            "p101",
            "status.99",
            "status.0xx",
            "status.x",
            "scheduled.rate",
            "service.",
            "mean_us",
            "p99.1xx",
            "p99.6xx",
            "p99.2x",
            "p99.200",
            "scheduled.p99.2xx",
            "rate.2xx",
            "p99.2xx.2xx",
        ] {
            assert_eq!(name.parse::<Metric>(), Err(()), "{name}");
        }
        for name in ["p99.9", "99.9%", "p99.9_us", "99.9% latency"] {
            assert_eq!(Metric::of_column(name), "p99.9".parse().ok());
        }
        for name in ["rmem_max", "host", "p", "path", "0%", "rate", "mean", "scheduled_bytes"] {
            assert_eq!(Metric::of_column(name), None, "{name}");
        }
    }
}
