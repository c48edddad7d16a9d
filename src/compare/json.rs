//! Comparisons as JSON, with every figure: a list of comparisons in one object.

use serde::Serialize;

use super::checks::Checks;
use super::comparison::{Comparison, Pairing};
use super::metric::Metric;
use super::words;
use crate::report::result::SCHEMA;

/// All comparisons.
#[derive(Serialize)]
struct Written<'a> {
    /// The version of the format; additions do not raise it.
    schema: u32,
    /// Always `comparison`: the document of a run has no kind.
    kind: &'static str,
    comparisons: Vec<One<'a>>,
    notes: &'a [String],
}

/// One comparison.
#[derive(Serialize)]
struct One<'a> {
    a: Side<'a>,
    b: Side<'a>,
    at: Vec<At<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<&'a str>,
    paired: bool,
    dropped: usize,
    failures: &'a [String],
    comparisons_together: usize,
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_p: Option<f64>,
    metrics: Vec<Figures>,
    omitted: Vec<String>,
}

#[derive(Serialize)]
struct At<'a> {
    factor: &'a str,
    level: &'a str,
}

#[derive(Serialize)]
struct Side<'a> {
    name: &'a str,
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_response: Option<f64>,
    limited_by: Vec<Limited>,
}

#[derive(Serialize)]
struct Limited {
    by: &'static str,
    runs: usize,
}

/// How far a metric differs. Rates are responses per second, latencies microseconds.
#[derive(Serialize)]
struct Figures {
    metric: String,
    exploratory: bool,
    a: f64,
    b: f64,
    ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_95: Option<Range>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
}

#[derive(Serialize)]
struct Range {
    low: f64,
    high: f64,
}

/// All comparisons as text, with a line end.
pub fn json(comparisons: &[Comparison], notes: &[String]) -> String {
    let written =
        Written { schema: SCHEMA, kind: "comparison", comparisons: comparisons.iter().map(one).collect(), notes };
    serde_json::to_string_pretty(&written).expect("numbers, texts and lists can always be written") + "\n"
}

fn one(comparison: &Comparison) -> One<'_> {
    let [a, b] = [0, 1].map(|index: usize| side(comparison, index));
    One {
        a,
        b,
        at: comparison.at.iter().map(|(factor, level)| At { factor, level }).collect(),
        experiment: match &comparison.pairing {
            Pairing::Rounds(name) => Some(name),
            Pairing::Apart => None,
        },
        paired: comparison.pairing != Pairing::Apart,
        dropped: comparison.dropped,
        failures: &comparison.failures,
        comparisons_together: comparison.together,
        verdict: words::verdict(comparison),
        doubt: comparison.doubt.as_deref(),
        headline: comparison.headline.as_ref().map(Metric::to_string),
        rank_p: comparison.rank_p,
        metrics: comparison
            .estimates
            .iter()
            .map(|estimate| Figures {
                metric: estimate.metric.to_string(),
                exploratory: Some(estimate.metric) != comparison.headline,
                a: estimate.means[0],
                b: estimate.means[1],
                ratio: estimate.ratio,
                interval_95: estimate.range().map(|(low, high)| Range { low, high }),
                p: estimate.interval.map(|interval| interval.p),
            })
            .collect(),
        omitted: comparison.omitted.iter().map(Metric::to_string).collect(),
    }
}

fn side(comparison: &Comparison, index: usize) -> Side<'_> {
    let checks: &Checks = &comparison.checks[index];
    Side {
        name: &comparison.names[index],
        runs: comparison.runs[index],
        completed: checks.completed,
        error_share: checks.error_share(),
        status_share: checks.status_share(),
        bytes_per_response: checks.bytes_per_response,
        limited_by: checks.limited_by.iter().map(|&(by, runs)| Limited { by: by.name(), runs }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::fixtures::compared;
    use super::*;

    #[test]
    fn every_figure_is_there() {
        let comparison = compared(&[100.0, 101.0, 99.0], &[110.0, 110.0, 110.0]);
        let value: Value = serde_json::from_str(&json(&[comparison], &["x".to_owned()])).unwrap();
        let at = |pointer: &str| value.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {value:#}"));
        assert_eq!((at("/kind"), at("/notes/0")), (&Value::from("comparison"), &Value::from("x")));
        let one = "/comparisons/0";
        assert_eq!(at(&format!("{one}/paired")), &Value::from(true));
        assert_eq!(at(&format!("{one}/a/runs")), &Value::from(3));
        assert_eq!(at(&format!("{one}/headline")), &Value::from("rate"));
        let [ratio, low, high] = ["ratio", "interval_95/low", "interval_95/high"]
            .map(|key| at(&format!("{one}/metrics/0/{key}")).as_f64().unwrap());
        assert!(low < ratio && ratio < high && low > 1.0, "{value:#}");
        assert!(at(&format!("{one}/metrics/0/p")).as_f64().unwrap() < 0.05);
    }
}
