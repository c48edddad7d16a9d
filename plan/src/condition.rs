//! Conditions on the metrics of a run, such as `p99<50ms,errors<0.1%`, at which a gate fails; and stop terms, such as
//! `p99+-2%`, which set the precision a metric needs before the run ends.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::LimitedBy;
use crate::metric::{LatencyView, Metric, Statistic};

/// A condition on a run, which holds if all of its terms do.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The terms, at least one, in the order typed.
    pub terms: Vec<Term>,
}

impl Condition {
    /// True if the condition depends on the verdict, the limit of the run.
    pub fn asks_for_verdict(&self) -> bool {
        self.terms.iter().any(|term| term.metric == Metric::Verdict)
    }
}

/// A comparison of a metric with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The term as typed.
    pub text: String,
    /// The metric on the left side.
    pub metric: Metric,
    /// The request name that the metric is restricted to; `None`: all requests.
    pub name: Option<String>,
    /// The comparison operator.
    pub comparison: ComparisonOperator,
    /// The right side of the comparison.
    pub value: Threshold,
}

/// The precision of a metric at which the run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopTerm {
    /// The term as typed.
    pub text: String,
    /// The metric: a percentile between the minimum and the maximum, the mean, or the rate.
    pub metric: Metric,
    /// Largest half-width of the metric's 95 % confidence interval, as a share of its value.
    pub half_width: f64,
}

/// Smallest number of responses that a batch needs beyond a percentile; for other metrics, in total.
const BEYOND_MIN: f64 = 10.0;

/// Operators that compare a metric with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
    /// `!=`
    Unequal,
}

/// The right side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A latency or another duration.
    Time(Duration),
    /// A count, rate or ratio, in the unit of the metric.
    Number(f64),
    /// A share (0 to 1) of the due requests or, without a rate, of the requests sent; if the metric is a share of time,
    /// a share of the measured time.
    Share(f64),
    /// A multiple of the requested rate.
    OfAsked(f64),
    /// A limit of the run.
    LimitedBy(LimitedBy),
}

impl Term {
    /// The latency limit of a term on a percentile over all due requests; `None` for any other term.
    pub fn limit_of_due(&self) -> Option<Duration> {
        match (self.metric, self.value) {
            (
                Metric::Latency(LatencyView::Shown | LatencyView::Scheduled, Statistic::Percentile(_)),
                Threshold::Time(limit),
            ) => Some(limit).filter(|_| self.name.is_none()),
            _ => None,
        }
    }
}

/// The condition as typed, without blanks around its terms.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<&str> = self.terms.iter().map(|term| term.text.as_str()).collect();
        f.write_str(&terms.join(","))
    }
}

impl ComparisonOperator {
    /// All operators with their signs; `<=` precedes `<`, its prefix, so that a parser can try them in order.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::AtMost, "<="),
        (Self::Less, "<"),
        (Self::AtLeast, ">="),
        (Self::More, ">"),
        (Self::Unequal, "!="),
        (Self::Equal, "="),
    ];

    /// The operator as typed: `<`, `>=`.
    pub fn sign(self) -> &'static str {
        Self::ALL.into_iter().find(|(comparison, _)| *comparison == self).map_or("", |(_, sign)| sign)
    }

    /// The operator that holds exactly where this one does not.
    pub fn opposite(self) -> Self {
        match self {
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::More,
            Self::More => Self::AtMost,
            Self::AtLeast => Self::Less,
            Self::Equal => Self::Unequal,
            Self::Unequal => Self::Equal,
        }
    }

    /// True if the comparison holds between a metric and a value.
    pub fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Self::Less => figure < value,
            Self::AtMost => figure <= value,
            Self::More => figure > value,
            Self::AtLeast => figure >= value,
            Self::Equal => figure == value,
            Self::Unequal => figure != value,
        }
    }
}

impl Condition {
    /// The first term that requires a run with a rate.
    pub fn needs_rate(&self) -> Option<&Term> {
        self.terms.iter().find(|term| term.metric.needs_rate() || matches!(term.value, Threshold::OfAsked(_)))
    }
}

impl StopTerm {
    /// Smallest number of responses per batch for which the metric is meaningful.
    pub fn completed_min(&self) -> u64 {
        let beyond = match self.metric {
            Metric::Latency(_, Statistic::Percentile(percent)) => percent.value().min(100.0 - percent.value()) / 100.0,
            _ => 1.0,
        };
        // A rounding error must not add one.
        (BEYOND_MIN / beyond - 1e-6).ceil() as u64
    }

    /// The metric as typed, without the precision.
    pub fn name(&self) -> &str {
        self.text.split(['+', '±']).next().unwrap_or_default().trim_end()
    }
}
