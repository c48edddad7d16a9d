//! The values of metrics in a document and in a row of its timeline. `None`: it has none.

use onrush_plan::Dialect;
use onrush_plan::metric::{ErrorKind, LatencyView, Metric, Statistic};
use onrush_stats::{Corrupt, Distribution, Errors};

use super::distribution::statistic_us;
use super::{Document, Row};
use crate::figures::NS_PER_US;
use crate::figures::rate::count_per_second;

/// The number of errors of a kind.
pub fn errors(kind: ErrorKind, errors: &Errors) -> u64 {
    match kind {
        ErrorKind::Connect => errors.connect,
        ErrorKind::Read => errors.read,
        ErrorKind::Write => errors.write,
        ErrorKind::Timeout => errors.timeout,
        ErrorKind::Socket => errors.socket(),
        ErrorKind::Status => errors.status,
        ErrorKind::Check => errors.check,
        ErrorKind::Abandoned => errors.abandoned,
    }
}

impl Document {
    /// The value of a metric, in its unit.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let count = match metric {
            Metric::Latency(view, statistic) => return self.latency(view, statistic),
            Metric::Rate => return Some(self.rate_per_s),
            Metric::Transfer => return Some(count_per_second(self.bytes_received, self.duration_s)),
            Metric::Duration => return Some(self.duration_s * 1e6),
            Metric::Errors => {
                let all = self.requests.all();
                return (all > 0).then(|| self.requests.errors() as f64 / all as f64);
            }
            Metric::Unavailable => return Some(self.open_loop.as_ref()?.unavailable.as_ref()?.share),
            Metric::Requests => self.requests.completed,
            Metric::Started => self.requests.started,
            Metric::Received => self.bytes_received,
            Metric::Sent => self.bytes_sent,
            Metric::ErrorsOf(kind) => errors(kind, &self.errors),
            Metric::Status(status) => self.status.get(&status).copied().unwrap_or(0),
            Metric::StatusClass(class) => {
                self.status.range(class * 100..class * 100 + 100).map(|(_, count)| count).sum()
            }
            Metric::Late => self.requests.late?,
            Metric::Dropped => self.requests.dropped?,
            Metric::Verdict => return None,
        };
        Some(count as f64)
    }

    fn latency(&self, view: LatencyView, statistic: Statistic) -> Option<f64> {
        if view == LatencyView::Shown && !self.imitates(Dialect::Native) {
            return self.imitated_latency(statistic);
        }
        let latency = match view {
            LatencyView::Class(class) => {
                let values = self.of_class(class).ok()??;
                return statistic_us(&values, statistic);
            }
            LatencyView::Shown => self.shown_latency(),
            LatencyView::Scheduled => self.latency.scheduled.as_ref()?,
            LatencyView::Service => &self.latency.service,
        };
        let percent = match statistic {
            Statistic::Mean => return latency.mean_us,
            Statistic::Least => return latency.min_us,
            Statistic::Max if view != LatencyView::Service => return self.max_us(),
            Statistic::Max => return latency.max_us,
            Statistic::Stdev => return latency.stdev_us,
            Statistic::Percentile(percent) => percent,
        };
        // A percentile that was not recorded is in the histograms.
        let computed = |values: &Distribution<u64>| (values.count() > 0).then(|| values.percentile(percent.value()));
        let ns = match view {
            LatencyView::Service => match latency.percentiles_us.get(&percent) {
                Some(written) => return Some(*written),
                None => computed(&latency.values().ok()?)?,
            },
            _ => match self.shown_percentile_us(percent) {
                Some(written) => return Some(written),
                None => self.estimate().ok()?.percentile(percent.value())?.ns(),
            },
        };
        Some(ns as f64 / NS_PER_US)
    }
}

impl Document {
    /// The latencies of the responses with a status of this class, 2 to 5: with a schedule since requests were due. `None`:
    /// there are none, or a tool is imitated.
    ///
    /// # Errors
    ///
    /// When a histogram cannot be read.
    pub fn of_class(&self, class: u16) -> Result<Option<Distribution<u64>>, Corrupt> {
        let by_class = &self.latency.by_class;
        if class != 2 {
            return by_class.get(&format!("{class}xx")).map(|latency| latency.values()).transpose();
        }
        let others = self.status.iter().filter(|(status, count)| **status / 100 != 2 && **count > 0);
        let are_known = others.clone().all(|(status, _)| by_class.contains_key(&format!("{}xx", status / 100)));
        if !self.imitates(Dialect::Native) || !are_known || self.value(Metric::StatusClass(2)) == Some(0.0) {
            return Ok(None);
        }
        let all = self.shown_latency().values()?;
        let mut parts = Distribution::new();
        for part in by_class.values() {
            parts += &part.values()?;
        }
        // What the bins have of the rest is less exact than what was measured.
        Ok(Some(if parts.count() == 0 { all } else { all.without_part(&parts) }))
    }

    /// A latency as the imitated tool shows it.
    fn imitated_latency(&self, statistic: Statistic) -> Option<f64> {
        let shown = self.text_latency().ok().filter(|_| self.requests.completed > 0)?;
        let figures = shown.summary_us();
        figures.within?;
        Some(match statistic {
            Statistic::Least => figures.min,
            Statistic::Percentile(percent) => shown.percentile_us(percent.value()),
            Statistic::Mean => figures.mean,
            Statistic::Max => figures.max,
            Statistic::Stdev => figures.stdev,
        })
    }
}

impl Row {
    /// The value of a metric, in its unit; percentiles come from the bins.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let count = match metric {
            Metric::Latency(LatencyView::Class(_), _) => return None,
            Metric::Latency(view, statistic) => {
                let figures = self.figures();
                let latencies = if view == LatencyView::Scheduled { &figures.scheduled } else { &figures.latency };
                let ns = match statistic {
                    Statistic::Mean => latencies.mean_ns()?,
                    Statistic::Percentile(percent) => latencies.percentile_ns(percent.value())?,
                    Statistic::Max => latencies.mean_ns().map(|_| latencies.max_ns as f64)?,
                    Statistic::Least | Statistic::Stdev => return None,
                };
                return Some(ns / NS_PER_US);
            }
            Metric::Rate => return Some(count_per_second(self.completed, self.length_s)),
            Metric::Transfer => return Some(count_per_second(self.bytes_received, self.length_s)),
            Metric::Duration => return Some(self.length_s * 1e6),
            Metric::Requests => self.completed,
            Metric::Started => self.started,
            Metric::Received => self.bytes_received,
            Metric::Sent => self.bytes_sent,
            Metric::ErrorsOf(kind) => errors(kind, &self.errors.unwrap_or_default()),
            Metric::Late => self.late.unwrap_or(0),
            Metric::Dropped => self.dropped.unwrap_or(0),
            Metric::Errors | Metric::Unavailable | Metric::Status(_) | Metric::StatusClass(_) | Metric::Verdict => {
                return None;
            }
        };
        Some(count as f64)
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Plan;
    use onrush_plan::metric::METRICS;
    use onrush_stats::{Cause, Phase};

    use super::super::Requests;
    use super::*;
    use crate::fixtures;
    use crate::fixtures::{fill_from_latencies, flawless, plan, record_failures, schedule};
    use crate::run::Outcome;

    /// A second with 1,000 responses after a millisecond each, a few errors, and perhaps a schedule.
    fn run(has_rate: bool) -> (Plan, Outcome) {
        let mut plan = plan(Dialect::Native, "http://127.0.0.1/", 1, 1, 1);
        let mut outcome = flawless(1_000, 1);
        plan.schedule = has_rate.then(|| schedule(1_000));
        if has_rate {
            let open_loop = outcome.totals.open_loop.get_or_insert_default();
            open_loop.scheduled.record_many(2_000_000, 1_000);
            (open_loop.due, open_loop.late, open_loop.dropped) = (1_010, 7, 8);
        }
        record_failures(&mut outcome, 1, Phase::Connect, Cause::Errno(111));
        record_failures(&mut outcome, 2, Phase::Head, Cause::Errno(104));
        record_failures(&mut outcome, 3, Phase::Send, Cause::Errno(32));
        record_failures(&mut outcome, 4, Phase::Timeout, Cause::Late);
        record_failures(&mut outcome, 5, Phase::Status, Cause::Status(503));
        let counters = &mut outcome.totals.counters;
        (counters.failed, counters.bytes_received, counters.bytes_sent) = (5, 2_000, 3_000);
        let mut outcome = fill_from_latencies(outcome);
        (0..6).for_each(|_| outcome.totals.statuses.record(503));
        (plan, outcome)
    }

    #[test]
    fn a_run_and_its_only_row_have_the_same_values() {
        for has_rate in [false, true] {
            let (plan, outcome) = run(has_rate);
            let document = Document::judged(&plan, &outcome);
            for about in &METRICS {
                let name = about.id;
                let whole = document.value(about.metric);
                let row = document.timeline[0].value(about.metric);
                // Of a row, more or less is known: the bins of the service latency, and no statuses.
                let expected = match name {
                    "errors" | "p99.2xx" | "min" | "stdev" | "status.503" | "status.5xx" => None,
                    "p99" | "mean" | "max" => row,
                    "late" | "dropped" if !has_rate => Some(0.0),
                    _ => whole,
                };
                assert_eq!(row, expected, "{name} {has_rate}");
                let never = matches!(name, "late" | "dropped") && !has_rate
                    || matches!(name, "verdict" | "unavailable" | "p99.2xx");
                assert_eq!(whole.is_some(), !never, "{name} {has_rate}");
            }
        }
    }

    #[test]
    fn latencies_of_a_class_are_those_of_its_statuses() {
        let mut plan = plan(Dialect::Native, "http://127.0.0.1/", 1, 1, 1);
        let mut outcome = flawless(900, 1);
        // A hundred error pages that take 50 ms.
        outcome.totals.latency.record_many(50_000_000, 100);
        let by_class = outcome.totals.by_class.get_or_insert_default();
        (0..100).for_each(|_| {
            by_class.record(503, 50_000_000);
            outcome.totals.statuses.record(503);
        });
        outcome.totals.counters.completed = 1_000;
        let document = Document::judged(&plan, &outcome);
        let ms = |document: &Document, name: &str| {
            let us: f64 = document.value(name.parse().unwrap())?;
            Some((us / 100.0).round() / 10.0)
        };
        for (name, expected) in [
            ("p99", Some(50.0)),
            ("p99.2xx", Some(1.0)),
            ("max.2xx", Some(1.0)),
            ("mean.2xx", Some(1.0)),
            ("p50.5xx", Some(50.0)),
            ("min.5xx", Some(50.0)),
            ("stdev.5xx", Some(0.0)),
            ("p99.3xx", None),
            ("mean.4xx", None),
        ] {
            assert_eq!(ms(&document, name), expected, "{name}");
        }
        plan.dialect = Dialect::Wrk;
        let imitated = Document::judged(&plan, &flawless(900, 1));
        assert_eq!(ms(&imitated, "p99.2xx"), None);
        let good = Document::judged(&fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1), &flawless(900, 1));
        assert_eq!(good.value("mean.2xx".parse().unwrap()), good.value(Metric::MEAN), "as it was measured");
        let none = super::super::tests::document([]);
        assert_eq!(ms(&none, "p99.2xx"), None);
    }

    #[test]
    fn unsuccessful_responses_are_errors() {
        let errors = |change: fn(&mut Requests)| {
            let (plan, outcome) = run(true);
            let mut document = Document::judged(&plan, &outcome);
            change(&mut document.requests);
            document.value(Metric::Errors)
        };
        assert_eq!(errors(|_| ()), Some(13.0 / 1_013.0));
        assert_eq!(errors(|it| it.unsuccessful = 6), Some(19.0 / 1_013.0));
    }

    #[test]
    fn every_metric_has_the_value_that_was_measured() {
        let (plan, outcome) = run(true);
        let document = Document::judged(&plan, &outcome);
        for (name, expected) in [
            ("rate", 1_000.0),
            ("p50", 2_000.0),
            ("max", 2_000.0),
            ("scheduled.mean", 2_000.0),
            ("service.min", 1_000.0),
            ("service.p99.9", 1_000.0),
            ("stdev", 0.0),
            ("errors", 13.0 / 1_013.0),
            ("status.200", 1_000.0),
            ("status.503", 6.0),
            ("status.5xx", 6.0),
            ("late", 7.0),
            ("dropped", 8.0),
            ("requests", 1_000.0),
            ("started", 1_005.0),
            ("duration", 1e6),
            ("bytes", 2_000.0),
            ("bytes_sent", 3_000.0),
            ("transfer", 2_000.0),
            ("errors.connect", 1.0),
            ("errors.read", 2.0),
            ("errors.write", 3.0),
            ("errors.timeout", 4.0),
            ("errors.socket", 10.0),
            ("errors.status", 5.0),
        ] {
            let value = document.value(name.parse().unwrap()).unwrap();
            assert!((value - expected).abs() <= expected * 1e-3, "{name}: {value}");
        }
    }
}
