//! The metrics that are compared: the rate, the mean latency and percentiles of the latency, of all responses or of one
//! status class.

use onrush_plan::metric::{LatencyView, Statistic};
use onrush_plan::{Metric, Percent};

use crate::saved::SavedRun;

/// With fewer values in the share above it, a percentile of one run is left to chance.
const BEYOND_MIN: f64 = 20.0;

/// The percentile that decides between runs with a rate.
pub const DECISIVE: &str = "p99";

/// How many responses each of them needs for that.
pub const RESPONSES_NEEDED: u64 = (BEYOND_MIN * 100.0) as u64;

/// True if runs are compared by a metric.
pub fn is_compared(metric: Metric) -> bool {
    use Statistic::{Mean, Percentile};
    matches!(metric, Metric::Rate | Metric::Latency(LatencyView::Shown | LatencyView::Class(_), Mean | Percentile(_)))
}

/// The value of a metric in a run. `None`: it is unknown, too few values are beyond it, or too many requests that were
/// due have no response.
pub fn value(metric: Metric, run: &SavedRun) -> Option<f64> {
    let is_sure = match metric {
        Metric::Latency(view, Statistic::Percentile(percent)) => {
            let beyond = values(run, view).map(|values| values as f64 * (100.0 - percent.value()) / 100.0);
            // No class is known of a request without a response.
            beyond.is_some_and(|beyond| beyond >= BEYOND_MIN)
                && !(view == LatencyView::Shown && has_no_bound(run, percent))
        }
        _ => true,
    };
    run.value(metric).filter(|value| is_sure && *value > 0.0)
}

/// True if a percentile over all requests that were due may be of any size.
fn has_no_bound(run: &SavedRun, percent: Percent) -> bool {
    let open_loop = run.document.as_deref().and_then(|document| document.bounded());
    let between = open_loop.and_then(|open_loop| open_loop.percentiles_us.get(&percent));
    between.is_some_and(|between| between.upper.is_none())
}

/// The number of latencies that the percentiles of a run are computed from.
fn values(run: &SavedRun, view: LatencyView) -> Option<u64> {
    let Some(document) = run.document.as_deref() else { return run.value(Metric::Requests).map(|count| count as u64) };
    if let LatencyView::Class(class) = view {
        return Some(document.of_class(class).ok()??.count());
    }
    let censored = document.bounded().and_then(|open_loop| open_loop.censored.as_ref());
    Some(document.shown_latency().count + censored.map_or(0, |censored| censored.count))
}
