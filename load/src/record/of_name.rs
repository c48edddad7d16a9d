//! What became of the requests of one name, which the list gave them.

use std::collections::BTreeMap;

use onrush_plan::Percent;
use onrush_plan::metric::{LatencyView, Metric};
use serde::Serialize;

use super::distribution::statistic_us;
use super::result::NameSum;
use super::{Distribution, distribution};
use crate::figures::rate::count_per_second;

/// What became of the requests of one name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct OfName {
    /// The name; left out for all requests that have none of those named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Responses complete.
    pub completed: u64,
    /// Requests that got no complete response because something failed, or were abandoned, or late at the end.
    pub failed: u64,
    /// Complete responses that were late or have a status that failed, each once.
    pub unsuccessful: u64,
    /// How often each status was received.
    pub status: BTreeMap<u16, u64>,
    /// The latencies that the text shows, of complete responses: with a schedule, since requests were due. In the histogram,
    /// bins are up to a hundredth wide.
    pub latency: Distribution,
}

impl OfName {
    /// The figures of the requests with one name.
    pub(super) fn from_sum(NameSum { name, outcomes, .. }: &NameSum, percents: Option<&[Percent]>) -> Self {
        let mut fine = onrush_stats::Distribution::new();
        outcomes.latency.copy_to_fine_bins(&mut fine);
        Self {
            name: name.clone(),
            completed: outcomes.latency.count(),
            failed: outcomes.failed,
            unsuccessful: outcomes.unsuccessful,
            status: outcomes.statuses().collect(),
            latency: distribution(&fine, percents),
        }
    }

    /// The requests that have ended.
    pub fn all(&self) -> u64 {
        self.completed + self.failed
    }

    /// Those without a good response in time.
    pub fn errors(&self) -> u64 {
        self.failed + self.unsuccessful
    }

    /// The value of a metric, in its unit, where the run lasted `duration_s`; `None`: there is none by name.
    pub fn value(&self, metric: Metric, duration_s: f64) -> Option<f64> {
        let of_class = |class: u16| self.status.range(class * 100..class * 100 + 100).map(|(_, count)| count).sum();
        let count: u64 = match metric {
            Metric::Latency(LatencyView::Shown, statistic) => {
                return statistic_us(&self.latency.values().ok()?, statistic);
            }
            Metric::Rate => return Some(count_per_second(self.completed, duration_s)),
            Metric::Errors => return (self.all() > 0).then(|| self.errors() as f64 / self.all() as f64),
            Metric::Requests => self.completed,
            Metric::Status(status) => self.status.get(&status).copied().unwrap_or(0),
            Metric::StatusClass(class) => of_class(class),
            _ => return None,
        };
        Some(count as f64)
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Dialect;
    use onrush_stats::ByName;

    use super::*;
    use crate::fixtures::{fill_from_latencies, flawless, plan};
    use crate::record::{Document, RunResult};

    /// A run of a list with two names, of which each had so many requests after so many milliseconds, and two without one.
    fn run(names: [(&str, u64, u64); 2]) -> Document {
        let mut plan = plan(Dialect::Native, "http://h/", 1, 1, 1);
        plan.list = Some(crate::fixtures::list(names.map(|(name, ..)| name)));
        let mut outcome = flawless(2 + names.iter().map(|(_, count, _)| count).sum::<u64>(), 1);
        let mut by_name = ByName::<u32>::default();
        for ((_, count, ms), number) in names.into_iter().zip(1..) {
            (0..count).for_each(|_| by_name.record_response(number, Some(200), ms * 1_000_000, false));
        }
        (0..2).for_each(|_| by_name.record_response(0, Some(503), 1_000_000, true));
        **outcome.totals.by_name.get_or_insert_default() += &by_name;
        Document::judged(&plan, &fill_from_latencies(outcome))
    }

    #[test]
    fn the_figures_of_a_name_are_those_of_its_requests() {
        let document = run([("a", 100, 3), ("b", 0, 1)]);
        let names: Vec<_> = document.names.iter().map(|it| (it.name.as_deref(), it.completed, it.errors())).collect();
        assert_eq!(names, [(Some("a"), 100, 0), (Some("b"), 0, 0), (None, 2, 2)]);
        let value = |index: usize, metric: &str| document.names[index].value(metric.parse().unwrap(), 2.0);
        assert_eq!([value(0, "p99"), value(0, "mean"), value(0, "rate")], [Some(3_000.0), Some(3_000.0), Some(50.0)]);
        assert_eq!([value(1, "p99"), value(1, "requests"), value(1, "errors")], [None, Some(0.0), None]);
        assert_eq!(
            [value(2, "status.503"), value(2, "status.5xx"), value(2, "errors")],
            [Some(2.0), Some(2.0), Some(1.0)]
        );
        assert_eq!(value(0, "service.p99"), None);
        document.result.check().unwrap();
    }

    #[test]
    fn sums_have_the_names_of_all_runs() {
        let (one, other) = (run([("a", 100, 3), ("b", 0, 1)]), run([("b", 5, 3), ("c", 1, 1)]));
        let results = [one, other].map(|document| ("x".to_owned(), *document.result));
        let sum = Document::from_result(RunResult::sum(results).unwrap()).names;
        let names: Vec<_> = sum.iter().map(|it| (it.name.as_deref(), it.completed, it.status.clone())).collect();
        let status = |code, count| BTreeMap::from([(code, count)]);
        assert_eq!(
            names,
            [
                (Some("a"), 100, status(200, 100)),
                (Some("b"), 5, status(200, 5)),
                (Some("c"), 1, status(200, 1)),
                (None, 4, status(503, 4))
            ]
        );
        assert_eq!(sum[1].value("p50".parse().unwrap(), 1.0), Some(3_000.0));
    }
}
