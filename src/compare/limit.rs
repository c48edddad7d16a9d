//! Limits how much worse than the baseline a metric may be (`--fail-if-worse`).

use super::comparison::Comparison;
use super::metric::Metric;
use super::words::{loss, name, percent};

/// A limit on how much worse a metric may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The metric; `None`: the one that decides.
    pub metric: Option<Metric>,
    /// The part of the baseline by which it may be worse.
    pub share: f64,
}

/// A comparison, judged by a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// All of the interval is beyond the limit: what happened.
    Worse(String),
    /// None of the interval is beyond the limit.
    Kept,
    /// It cannot be decided: why.
    Open(String),
}

impl Limit {
    /// Judges a comparison.
    pub fn judge(self, comparison: &Comparison) -> Judged {
        let open = |why: &str| {
            let metric = self.metric.map_or("the metric that decides".to_owned(), name);
            Judged::Open(format!("whether {metric} is worse by more than {} is open: {why}", percent(self.share)))
        };
        let Some(metric) = self.metric.or(comparison.headline) else { return open("it is unknown for a run") };
        let Some(estimate) = comparison.estimate(metric) else { return open("it is unknown for a run") };
        let Some((low, high)) = estimate.range() else { return open("one run per side gives no measure of noise") };
        let losses = [low, high].map(|ratio| loss(metric, ratio));
        let (least, most) = (losses[0].min(losses[1]), losses[0].max(losses[1]));
        if let Some(doubt) = &comparison.doubt {
            return open(doubt);
        }
        // Rounding errors may carry a figure just beyond a round limit.
        if least > self.share + 1e-9 {
            return Judged::Worse(format!(
                "{} of B is worse by more than {}: by {} to {}",
                name(metric),
                percent(self.share),
                percent(least),
                percent(most)
            ));
        }
        if most > self.share + 1e-9 { open("the interval extends past it: run more rounds") } else { Judged::Kept }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::compared;
    use super::*;

    #[test]
    fn a_limit_is_passed_where_all_of_the_interval_is_worse() {
        let comparison = compared(&[100.0, 101.0, 99.0, 100.0], &[90.0, 91.0, 89.0, 91.0]);
        let judged = |metric, share| Limit { metric, share }.judge(&comparison);
        assert!(matches!(judged(None, 0.05), Judged::Worse(words) if words.starts_with("requests/s of B is worse by")));
        assert!(matches!(judged(None, 0.1), Judged::Open(words) if words.contains("the interval extends past it")));
        assert_eq!(judged(None, 0.2), Judged::Kept);
        assert!(matches!(judged(Some(Metric::Mean), 0.1), Judged::Open(words) if words.contains("unknown")));
        let better = compared(&[90.0, 91.0, 89.0], &[100.0, 101.0, 99.0]);
        assert_eq!(Limit { metric: None, share: 0.0 }.judge(&better), Judged::Kept);
        let single = compared(&[100.0], &[10.0]);
        assert!(matches!(Limit { metric: None, share: 0.0 }.judge(&single), Judged::Open(_)));
    }
}
