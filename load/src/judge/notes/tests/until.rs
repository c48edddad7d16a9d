//! The notes on `--until`.

use std::time::Duration;

use onrush_plan::Metric;
use onrush_plan::StopTerm;
use onrush_stats::{PrecisionEstimate, Unknown};

use super::*;
use crate::run::{MetricPrecision, StopRuleResult};

fn known(text: &str, estimate: Result<(f64, usize), Unknown>) -> MetricPrecision {
    let metric = Metric::percentile("99".parse().unwrap());
    let term = StopTerm { text: text.to_owned(), metric, half_width: 0.02 };
    MetricPrecision { term, estimate: estimate.map(|(half_width, batches)| PrecisionEstimate { half_width, batches }) }
}

fn until(reached: bool, seconds: u64, terms: Vec<MetricPrecision>) -> Outcome {
    Outcome { until: Some(StopRuleResult { reached, at: Duration::from_secs(seconds), terms }), ..good() }
}

#[test]
fn precision_is_noted_with_what_is_missing() {
    let (p99, rate) = (known("p99 ± 2%", Ok((0.018_7, 24))), known("rate+-2%", Ok((0.004, 24))));
    let line = "the run ended after 24.00s because its figures were precise enough (95 % confidence): p99 to ±1.87 % and rate to \
         ±0.40 %";
    assert_eq!(said(&until(true, 24, vec![p99.clone(), rate])), [line]);
    let unsure = known("p50+-2%", Ok((0.034_1, 20)));
    let line = "--until was not reached in 10.00s: p50 is known to ±3.41 % instead of ±2 % (95 % confidence); measure longer (-d)";
    assert_eq!(said(&until(false, 10, vec![p99, unsure])), [line]);
    let missing = |outcome: &Outcome| {
        let notes = said(outcome).into_iter();
        notes
            .filter_map(|note| Some(note.split_once(": the precision of p99 is unknown")?.1.to_owned()))
            .next()
            .unwrap()
    };
    let mut outcome = until(false, 10, vec![known("p99+-2%", Err(Unknown::Short))]);
    assert_eq!(missing(&outcome), ", because the run was shorter than 20 s; measure longer (-d)");
    outcome.elapsed = Duration::from_secs(20);
    let few = ", because the run has fewer than 20 sections of 1,000 responses; measure longer (-d)";
    assert_eq!(missing(&outcome), few);
    let mut outcome = until(false, 10, vec![known("p99+-2%", Err(Unknown::Dependent))]);
    outcome.ended = RunEnd::Requests;
    let slow = ": it changes so slowly that the run has fewer than 20 independent sections; send more requests (-n)";
    assert_eq!(missing(&outcome), slow);
    outcome.ended = RunEnd::Signal;
    assert!(!missing(&outcome).is_empty());
}
