//! Limits on how much worse than the baseline a metric may be (`--fail-if-worse`).

use onrush_plan::Metric;
use onrush_plan::metric::LatencyView;
use onrush_text::units::format_percentage;

use super::comparison::Comparison;
use super::words::{SINGLE_RUNS, metric_name, relative_loss};

/// How much worse than the baseline a metric may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionLimit {
    /// The limited metric; `None` for the metric that decides the comparison.
    pub metric: Option<Metric>,
    /// The maximum loss, as a share of the baseline.
    pub share: f64,
}

/// The verdict of a limit on a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitVerdict {
    /// Worse than allowed: the whole interval is beyond the limit. With a sentence for the user.
    Worse(String),
    /// Not worse than allowed: the whole interval is within the limit.
    Kept,
    /// Undecided. With a sentence for the user that gives the reason.
    Open(String),
}

impl RegressionLimit {
    /// Judges whether a comparison keeps to the limit.
    pub fn judge(self, comparison: &Comparison) -> LimitVerdict {
        let open = |why: &str| {
            let metric = self.metric.map_or("the metric that decides".to_owned(), metric_name);
            LimitVerdict::Open(format!(
                "cannot tell whether {metric} is worse by more than {}: {why}",
                format_percentage(self.share)
            ))
        };
        let unknown = "it is unknown for at least one run";
        let Some(metric) = self.metric.or(comparison.headline) else {
            return open(comparison.doubt.as_deref().unwrap_or(unknown));
        };
        let Some(estimate) = comparison.estimate(metric) else {
            return open(&missing_estimate_reason(metric, comparison).unwrap_or_else(|| unknown.to_owned()));
        };
        let Some((low, high)) = estimate.ratio_range() else { return open(SINGLE_RUNS) };
        let losses = [low, high].map(|ratio| relative_loss(metric, ratio));
        let (least, most) = (losses[0].min(losses[1]), losses[0].max(losses[1]));
        if let Some(doubt) = &comparison.doubt {
            return open(doubt);
        }
        // Because of rounding, a figure may be just beyond a round limit.
        if least > self.share + 1e-9 {
            return LimitVerdict::Worse(format!(
                "{} of B is worse by more than {}: by {} to {}",
                metric_name(metric),
                format_percentage(self.share),
                format_percentage(least),
                format_percentage(most)
            ));
        }
        if most > self.share + 1e-9 {
            open("the interval extends past this limit; run more rounds")
        } else {
            LimitVerdict::Kept
        }
    }
}

/// The reason why a percentile or a figure of a status class has no estimate; `None` for other
/// metrics.
fn missing_estimate_reason(metric: Metric, comparison: &Comparison) -> Option<String> {
    let is_percentile = |metric: &Metric| metric.percentile_percent().is_some();
    let is_of_class = matches!(metric, Metric::Latency(LatencyView::Class(_), _));
    (is_of_class || is_percentile(&metric)).then_some(())?;
    if is_of_class || comparison.omitted.contains(&metric) {
        return Some(comparison.doubt.clone().unwrap_or_else(|| comparison.omission_reason().to_owned()));
    }
    let all = comparison.estimates.iter().map(|it| it.metric).chain(comparison.omitted.iter().copied());
    let mut recorded: Vec<Metric> = all.filter(is_percentile).collect();
    recorded.sort_unstable();
    let names: Vec<String> = recorded.iter().map(Metric::to_string).collect();
    Some(if names.is_empty() {
        "the files have no percentiles".to_owned()
    } else {
        format!("the files have only {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::contest::contests_of_experiment;
    use super::super::fixtures::{compare_two_targets, runs_of_two_targets};
    use super::*;

    #[test]
    fn limits_fail_when_the_whole_interval_is_worse() {
        let comparison = compare_two_targets(&[100.0, 101.0, 99.0, 100.0], &[90.0, 91.0, 89.0, 91.0]);
        let judged = |metric, share| RegressionLimit { metric, share }.judge(&comparison);
        assert!(
            matches!(judged(None, 0.05), LimitVerdict::Worse(words) if words.starts_with("requests/s of B is worse by"))
        );
        assert!(
            matches!(judged(None, 0.1), LimitVerdict::Open(words) if words.contains("the interval extends past this limit"))
        );
        assert_eq!(judged(None, 0.2), LimitVerdict::Kept);
        assert!(matches!(judged(Some(Metric::MEAN), 0.1), LimitVerdict::Open(words) if words.contains("unknown")));
        let better = compare_two_targets(&[90.0, 91.0, 89.0], &[100.0, 101.0, 99.0]);
        assert_eq!(RegressionLimit { metric: None, share: 0.0 }.judge(&better), LimitVerdict::Kept);
        let single = compare_two_targets(&[100.0], &[10.0]);
        assert!(matches!(RegressionLimit { metric: None, share: 0.0 }.judge(&single), LimitVerdict::Open(_)));
    }

    #[test]
    fn unrecorded_percentiles_differ_from_unknown_ones() {
        let why = |comparison: &Comparison, name: &str| {
            let LimitVerdict::Open(words) =
                (RegressionLimit { metric: name.parse().ok(), share: 0.05 }).judge(comparison)
            else {
                panic!("{name} is decided")
            };
            words.split_once(" %: ").unwrap().1.to_owned()
        };
        let mut some = runs_of_two_targets(&[100.0, 101.0, 99.0], &[100.0, 101.0, 99.0]);
        for run in &mut some {
            run.figures.extend([("p50".parse().unwrap(), 100.0), ("p99".parse().unwrap(), 200.0)]);
        }
        let with_percentiles = Comparison::new(&contests_of_experiment(&some).unwrap()[0], 1, &[]).unwrap();
        assert_eq!(why(&with_percentiles, "p42"), "the files have only p50, p99");
        let too_few = "in some run it has fewer than 20 values above it, or was not recorded";
        assert_eq!(why(&with_percentiles, "p99"), too_few);
        some[0].origin.tool = "wrk2";
        let of_two_kinds = Comparison::new(&contests_of_experiment(&some).unwrap()[0], 1, &[]).unwrap();
        assert!(
            why(&of_two_kinds, "p50").starts_with("latencies count from when requests were due in runs with a rate")
        );
        let without = compare_two_targets(&[100.0, 101.0], &[100.0, 101.0]);
        assert_eq!(why(&without, "p42"), "the files have no percentiles");
    }
}
