//! Conditions on the figures of a run, such as `p99<50ms,errors<0.1%`: what a gate breaks at. Stop terms, such as `p99+-2%`:
//! how precise a figure has to be.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Percent;
use crate::verdict::LimitedBy;

/// Terms that have to hold together.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The terms, at least one.
    pub terms: Vec<Term>,
}

/// A figure, and what it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// As it was typed.
    pub text: String,
    /// The figure.
    pub metric: Metric,
    /// How the two have to compare.
    pub comparison: Comparison,
    /// What the figure is compared with.
    pub value: Value,
}

/// How well a figure has to be known for the run to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopTerm {
    /// As it was typed.
    pub text: String,
    /// The figure: a percentile between the least and the largest, the mean, or the rate.
    pub metric: Metric,
    /// Half the width of its 95 % confidence interval at most, as a share of the figure.
    pub half_width: f64,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Metric {
    /// A latency.
    Latency(View, Statistic),
    /// Complete responses per second.
    Rate,
    /// Requests that failed, were given up, late, dropped or unsent, or were answered with a status from 400 on, each once,
    /// as a share of those that were due.
    Errors,
    /// Errors of one of wrk's kinds.
    ErrorsOf(ErrorKind),
    /// Responses with one status.
    Status(u16),
    /// Responses with a status of one class: 5 are those from 500 to 599.
    StatusClass(u16),
    /// Requests that left more than a millisecond after they were due.
    Late,
    /// Requests that were never sent because it was too late.
    Dropped,
    /// Who limited the run.
    Verdict,
}

/// From when on a latency counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum View {
    /// As in the text.
    Shown,
    /// From when the request was due.
    Scheduled,
    /// From when the request was sent.
    Service,
}

/// What is taken of the latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    /// The least of them.
    Least,
    /// A percentile.
    Percentile(Percent),
    /// The mean.
    Mean,
    /// The largest.
    Max,
}

/// wrk's kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// A connection could not be opened.
    Connect,
    /// A response could not be read.
    Read,
    /// A request could not be written.
    Write,
    /// A request lasted longer than the timeout.
    Timeout,
}

/// The number of responses that a percentile needs beyond it in each batch, and that any figure needs at all.
const BEYOND_MIN: f64 = 10.0;

/// How a figure has to compare with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
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

/// What a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A time.
    Time(Duration),
    /// A number.
    Number(f64),
    /// A share (0 to 1) of the requests that were due, or of those that were sent where there is no rate.
    Share(f64),
    /// A multiple of the rate that was asked for.
    OfAsked(f64),
    /// Anything that may limit a run.
    LimitedBy(LimitedBy),
}

/// As it was typed, without blanks around its terms.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<&str> = self.terms.iter().map(|term| term.text.as_str()).collect();
        f.write_str(&terms.join(","))
    }
}

impl Comparison {
    /// All of them with their signs, each in front of those that it begins with.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::AtMost, "<="),
        (Self::Less, "<"),
        (Self::AtLeast, ">="),
        (Self::More, ">"),
        (Self::Unequal, "!="),
        (Self::Equal, "="),
    ];

    /// Whether a figure compares with a value as it has to.
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
    /// Whether a term needs the rate that was asked for, or what only a rate has.
    pub fn needs_rate(&self) -> Option<&Term> {
        self.terms.iter().find(|term| term.metric.needs_rate() || matches!(term.value, Value::OfAsked(_)))
    }
}

impl StopTerm {
    /// How many responses each batch of a run needs to say something about the figure.
    pub fn completed_min(&self) -> u64 {
        let beyond = match self.metric {
            Metric::Latency(_, Statistic::Percentile(percent)) => percent.value().min(100.0 - percent.value()) / 100.0,
            _ => 1.0,
        };
        // Rounding is not to ask for one more.
        (BEYOND_MIN / beyond - 1e-6).ceil() as u64
    }

    /// The figure as it was typed.
    pub fn name(&self) -> &str {
        self.text.split(['+', '±']).next().unwrap_or_default().trim_end()
    }
}

impl Metric {
    /// Whether only a run with a rate has it.
    pub fn needs_rate(self) -> bool {
        matches!(self, Self::Late | Self::Dropped | Self::Latency(View::Scheduled, _))
    }
}
