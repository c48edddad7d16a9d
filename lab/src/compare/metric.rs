//! The metrics that are compared: the rate, the mean latency, and percentiles of the latency, over all responses or
//! those of one status class.

use onrush_plan::metric::{LatencyView, Statistic};
use onrush_plan::{Metric, Percent};

use crate::saved::SavedRun;

/// Minimum number of values above a percentile. With fewer, the percentile of a single run is mostly chance.
const BEYOND_MIN: f64 = 20.0;

/// The percentile that decides a comparison of runs with a rate.
pub const DECISIVE: &str = "p99";

/// Number of responses that each run needs for the deciding percentile.
pub const RESPONSES_NEEDED: u64 = (BEYOND_MIN * 100.0) as u64;

/// True if comparisons support the metric.
pub fn is_compared(metric: Metric) -> bool {
    use Statistic::{Mean, Percentile};
    matches!(metric, Metric::Rate | Metric::Latency(LatencyView::Shown | LatencyView::Class(_), Mean | Percentile(_)))
}

/// The value of a metric in a run. `None` if it is unknown or zero, if too few values exceed it, or if too many due
/// requests have no response.
pub fn metric_value(metric: Metric, run: &SavedRun) -> Option<f64> {
    let is_sure = match metric {
        Metric::Latency(view, Statistic::Percentile(percent)) => {
            let beyond = latency_count(run, view).map(|values| values as f64 * (100.0 - percent.value()) / 100.0);
            // The status class of a request without a response is unknown.
            beyond.is_some_and(|beyond| beyond >= BEYOND_MIN)
                && !(view == LatencyView::Shown && has_no_bound(run, percent))
        }
        _ => true,
    };
    run.value(metric).filter(|value| is_sure && *value > 0.0)
}

/// True if a percentile over all due requests has no upper bound in this run.
fn has_no_bound(run: &SavedRun, percent: Percent) -> bool {
    let open_loop = run.document.as_deref().and_then(|document| document.bounded());
    let between = open_loop.and_then(|open_loop| open_loop.percentiles_us.get(&percent));
    between.is_some_and(|between| between.upper.is_none())
}

/// Number of latencies on which the percentiles of a run are based; `None` if unknown.
fn latency_count(run: &SavedRun, view: LatencyView) -> Option<u64> {
    let Some(document) = run.document.as_deref() else { return run.value(Metric::Requests).map(|count| count as u64) };
    if let LatencyView::Class(class) = view {
        return Some(document.of_class(class).ok()??.count());
    }
    let censored = document.bounded().and_then(|open_loop| open_loop.censored.as_ref());
    Some(document.shown_latency().count + censored.map_or(0, |censored| censored.count))
}
