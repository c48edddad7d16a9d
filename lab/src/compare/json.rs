//! Comparisons as JSON with all figures: one object with a list of comparisons.
//!
//! These structs define the format; `docs/comparison.schema.json` is generated from them. Keys that do not apply are
//! left out. Shares are between 0 and 1.

use onrush_load::record::json;
use onrush_plan::Metric;
use serde::Serialize;

use super::checks::FairnessChecks;
use super::comparison::{Comparison, Pairing};
use super::words;

/// The version of the format.
const SCHEMA: u32 = 1;

/// All comparisons.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ComparisonsJson<'a> {
    /// The version of the format; additions do not raise it.
    schema: u32,
    /// Always `comparison`: the document of a run has no kind.
    kind: &'static str,
    /// One comparison per pair of sides.
    comparisons: Vec<ComparisonJson<'a>>,
    /// The notes printed after the text.
    notes: &'a [String],
}

/// One comparison: B against A.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ComparisonJson<'a> {
    /// The baseline.
    a: SideJson<'a>,
    /// The side compared with it.
    b: SideJson<'a>,
    /// The levels of the factors that both sides have in common.
    at: Vec<LevelJson<'a>>,
    /// The experiment whose rounds pair the runs; left out if the runs are from several experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<&'a str>,
    /// True if runs of the same round are compared with each other.
    paired: bool,
    /// Number of rounds left out because of a failed run; without rounds, number of failed runs.
    dropped: usize,
    /// Reasons for the failures.
    failures: &'a [String],
    /// Number of comparisons made together, which widens each interval.
    comparisons_together: usize,
    /// The conclusion as text.
    verdict: String,
    /// Reason why the conclusion may be wrong, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'a str>,
    /// The deciding metric; the others are exploratory. Left out if a run lacks the metric, or has fewer than 20 values
    /// above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    headline: Option<String>,
    /// The probability of ranks at least this different if A and B are equal, for the headline metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_p: Option<f64>,
    /// The difference in each metric.
    metrics: Vec<EstimateJson>,
    /// Percentiles that a run lacks, or with too few values above them.
    omitted: Vec<String>,
}

/// A factor of the experiment with its level.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LevelJson<'a> {
    /// The factor, such as `connections`.
    factor: &'a str,
    /// The level of the factor.
    level: &'a str,
}

/// One side of a comparison. Facts that its runs did not record are left out.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SideJson<'a> {
    /// Name of the side.
    name: &'a str,
    /// Number of runs.
    runs: usize,
    /// Complete responses in all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<u64>,
    /// The share of the requests that failed without a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_share: Option<f64>,
    /// The share of the responses with an unsuccessful status.
    #[serde(skip_serializing_if = "Option::is_none")]
    status_share: Option<f64>,
    /// Mean share of the time for which the target was unavailable; only with a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable_share: Option<f64>,
    /// Received bytes per response, including heads.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_response: Option<f64>,
    /// Limits according to the verdicts of the runs.
    limited_by: Vec<LimitedRunsJson>,
}

/// A limit with its number of runs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LimitedRunsJson {
    /// The limit, named as in the results of runs.
    by: &'static str,
    /// Number of runs with this limit.
    runs: usize,
}

/// The difference in one metric. Rates are responses per second, latencies microseconds.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EstimateJson {
    /// The metric: `rate`, `mean`, `p50` and so on.
    metric: String,
    /// True unless the metric decides.
    exploratory: bool,
    /// The geometric mean over the runs of A.
    a: f64,
    /// The geometric mean over the runs of B.
    b: f64,
    /// B divided by A: the geometric mean over the rounds; without rounds, the ratio of the means.
    ratio: f64,
    /// The 95 % interval of the ratio; left out with too few runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_95: Option<IntervalJson>,
    /// The probability of a difference at least this large if A and B are equal; left out with too few runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
}

/// An interval.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IntervalJson {
    /// The lower bound.
    low: f64,
    /// The upper bound.
    high: f64,
}

/// All comparisons as text with a final newline.
pub fn comparisons_to_json(comparisons: &[Comparison], notes: &[String]) -> String {
    let written = ComparisonsJson {
        schema: SCHEMA,
        kind: "comparison",
        comparisons: comparisons.iter().map(comparison_to_json).collect(),
        notes,
    };
    json::pretty(&written) + "\n"
}

fn comparison_to_json(comparison: &Comparison) -> ComparisonJson<'_> {
    let [a, b] = [0, 1].map(|index: usize| side_to_json(comparison, index));
    ComparisonJson {
        a,
        b,
        at: comparison.at.iter().map(|(factor, level)| LevelJson { factor, level }).collect(),
        experiment: match &comparison.pairing {
            Pairing::Rounds(name) => Some(name),
            Pairing::Apart => None,
        },
        paired: comparison.pairing != Pairing::Apart,
        dropped: comparison.dropped,
        failures: &comparison.failures,
        comparisons_together: comparison.together,
        verdict: words::verdict_sentence(comparison),
        doubt: comparison.doubt.as_deref(),
        headline: comparison.headline.as_ref().map(Metric::to_string),
        rank_p: comparison.rank_p,
        metrics: comparison
            .estimates
            .iter()
            .map(|estimate| EstimateJson {
                metric: estimate.metric.to_string(),
                exploratory: Some(estimate.metric) != comparison.headline,
                a: estimate.means[0],
                b: estimate.means[1],
                ratio: estimate.ratio,
                interval_95: estimate.ratio_range().map(|(low, high)| IntervalJson { low, high }),
                p: estimate.interval.map(|interval| interval.p),
            })
            .collect(),
        omitted: comparison.omitted.iter().map(Metric::to_string).collect(),
    }
}

fn side_to_json(comparison: &Comparison, index: usize) -> SideJson<'_> {
    let checks: &FairnessChecks = &comparison.checks[index];
    SideJson {
        name: &comparison.names[index],
        runs: comparison.runs[index],
        completed: checks.completed.map(|count| count as u64),
        error_share: checks.error_share(),
        status_share: checks.status_share(),
        unavailable_share: checks.unavailable,
        bytes_per_response: checks.bytes_per_response,
        limited_by: checks.limited_by.iter().map(|&(by, runs)| LimitedRunsJson { by: by.name(), runs }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use onrush_load::record::schema;
    use serde_json::Value;

    use super::super::fixtures::compare_two_targets;
    use super::*;

    #[test]
    fn the_schema_of_comparisons_matches_its_structs() {
        schema::check::<ComparisonsJson>("docs/comparison.schema.json", "Comparisons of onrush");
    }

    #[test]
    fn comparison_json_has_every_figure() {
        let comparison = compare_two_targets(&[100.0, 101.0, 99.0], &[110.0, 110.0, 110.0]);
        let value: Value = serde_json::from_str(&comparisons_to_json(&[comparison], &["x".to_owned()])).unwrap();
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
