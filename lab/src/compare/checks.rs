//! Checks the fairness of a comparison: failures, response sizes, and limits.

use onrush_plan::metric::ErrorKind;
use onrush_plan::{LimitedBy, Metric};
use onrush_text::units::{self, PERCENT_MIN};

use crate::saved::SavedRun;

/// A rate counts as reached if it is at least this share of the requested one. The rest may still have been in flight.
pub const REACHED_MIN: f64 = 0.98;

/// Shares that differ by less than this count as equal, however significant the difference is.
const SHARE_MIN: f64 = 0.001;

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Figures of a side that should be like those of the other side for a fair comparison. `None` if a run lacks the
/// figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FairnessChecks {
    /// Number of requests with a complete response.
    pub completed: Option<f64>,
    /// Number of connections and requests that failed without a status, plus requests that took too long.
    failed: Option<f64>,
    /// The count of the metric `errors`, and the number of requests.
    errors: Option<(f64, f64)>,
    /// Number of responses with an unsuccessful status.
    bad: Option<f64>,
    /// Number of responses that failed a check.
    unfit: Option<f64>,
    /// Bytes received per complete response, including its head.
    pub bytes_per_response: Option<f64>,
    /// Mean share (0 to 1) of the time for which the target was unavailable; `None` for runs without a rate.
    pub unavailable: Option<f64>,
    /// Limits named by the verdicts, each with its number of runs.
    pub limited_by: Vec<(LimitedBy, usize)>,
    runs: usize,
}

impl FairnessChecks {
    /// Combines the figures of several runs.
    pub fn from_runs(runs: &[&SavedRun]) -> Self {
        let sum = |metric: Metric| runs.iter().map(|run| run.value(metric)).sum::<Option<f64>>();
        let completed = sum(Metric::Requests);
        let mut limited_by: Vec<(LimitedBy, usize)> = Vec::new();
        for by in runs.iter().filter_map(|run| Some(run.document.as_ref()?.verdict.as_ref()?.limited_by)) {
            match limited_by.iter_mut().find(|(known, _)| *known == by) {
                Some((_, count)) => *count += 1,
                None => limited_by.push((by, 1)),
            }
        }
        let bytes = sum(Metric::Received).zip(completed).filter(|(_, completed)| *completed > 0.0);
        Self {
            completed,
            failed: runs.iter().map(|run| failed_request_count(run)).sum(),
            errors: sum_errors(runs),
            bad: sum(Metric::ErrorsOf(ErrorKind::Status)),
            unfit: sum(Metric::ErrorsOf(ErrorKind::Check)).filter(|count| *count > 0.0),
            bytes_per_response: bytes.map(|(bytes, completed)| bytes / completed),
            unavailable: sum(Metric::Unavailable).map(|sum| sum / runs.len() as f64),
            limited_by,
            runs: runs.len(),
        }
    }

    /// The count of the metric `errors`, and the number of requests; `None` if a run lacks them.
    pub fn counted_errors(&self) -> Option<(f64, f64)> {
        self.errors
    }

    /// Share (0 to 1) of requests that failed without a status; `None` if unknown, or if there were no requests.
    pub fn error_share(&self) -> Option<f64> {
        let (failed, all) = self.failed_requests()?;
        (all > 0.0).then(|| failed / all)
    }

    /// Share (0 to 1) of responses with an unsuccessful status; `None` if unknown, or if there were no responses.
    pub fn status_share(&self) -> Option<f64> {
        let (bad, all) = self.unsuccessful_responses()?;
        (all > 0.0).then(|| bad / all)
    }

    /// Number of requests that failed without a status, and number of all requests; `None` if unknown.
    pub fn failed_requests(&self) -> Option<(f64, f64)> {
        let failed = self.failed?;
        Some((failed, failed + self.completed?))
    }

    /// Number of responses with an unsuccessful status, and number of all responses; `None` if unknown.
    pub fn unsuccessful_responses(&self) -> Option<(f64, f64)> {
        Some((self.bad?, self.completed?))
    }

    /// Number of responses that failed a check, and number of all responses; `None` if unknown.
    pub fn responses_failing_checks(&self) -> Option<(f64, f64)> {
        Some((self.unfit?, self.completed?))
    }

    /// The reason why a comparison is not fair: shares of failures differ, or the generator was at its limit. `None` if
    /// it is fair.
    pub fn fairness_doubt(both: &[Self; 2]) -> Option<String> {
        let [a, b] = both;
        let bad = "responses with an unsuccessful status";
        let unfit = |side: &Self| side.responses_failing_checks().or(Some((0.0, side.completed?)));
        for (name, one, other) in [
            ("failed connects and requests", a.failed_requests(), b.failed_requests()),
            (bad, a.unsuccessful_responses(), b.unsuccessful_responses()),
            ("responses that failed a check", unfit(a), unfit(b)),
        ] {
            let (Some(one), Some(other)) = (one, other) else { continue };
            if shares_differ(one, other) {
                return Some(format!(
                    "the shares of {name} differ (A {}, B {})",
                    format_share(one),
                    format_share(other)
                ));
            }
        }
        let mut limits: Vec<(&str, String)> = Vec::new();
        for (name, side) in [("A", a), ("B", b)] {
            for (by, count) in side.limited_by.iter().filter(|(by, _)| by.is_generator()) {
                let runs = format!("{count} of {} runs of {name}", side.runs);
                match limits.iter_mut().find(|(words, _)| *words == by.phrase()) {
                    Some((_, of)) => *of += &format!(" and in {runs}"),
                    None => limits.push((by.phrase(), runs)),
                }
            }
        }
        let limits: Vec<String> = limits.iter().map(|(by, runs)| format!("{by} was the limit in {runs}")).collect();
        let remedy = "give onrush more threads (-t) or processors, or measure at a rate (-R) that it can send";
        (!limits.is_empty()).then(|| format!("{}; {remedy}", limits.join(", ")))
    }
}

/// True if two shares, each given as a part and its whole, differ significantly (two-proportion test). Because failures
/// come in bursts, the test finds too many differences rather than too few.
fn shares_differ((part_a, all_a): (f64, f64), (part_b, all_b): (f64, f64)) -> bool {
    let (share_a, share_b) = (part_a / all_a, part_b / all_b);
    let both = (part_a + part_b) / (all_a + all_b);
    let error = (both * (1.0 - both) * (1.0 / all_a + 1.0 / all_b)).sqrt();
    (share_a - share_b).abs() >= SHARE_MIN && (share_a - share_b).abs() > Z * error
}

/// A part of a whole as text: a share, or a count if the whole is small.
pub fn format_share((part, all): (f64, f64)) -> String {
    if all < PERCENT_MIN as f64 { units::format_share(part as u64, all as u64) } else { format_percent(part / all) }
}

/// A share (0 to 1) in per cent: `0 %`, `0.05 %`, `3.2 %`, `100 %`.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent == 0.0 || percent >= 9.95 {
        0
    } else if percent >= 0.995 {
        1
    } else {
        2
    };
    if percent > 0.0 && percent < 0.005 { "< 0.01 %".to_owned() } else { format!("{percent:.decimals$} %") }
}

/// Number of wrk's socket errors, or more if more requests were abandoned than timed out. Requests abandoned after
/// `--timeout` are among the timeouts. If `--give-up` is shorter, nothing times out.
fn failed_request_count(run: &SavedRun) -> Option<f64> {
    let of = |kind| run.value(Metric::ErrorsOf(kind));
    let beyond = of(ErrorKind::Abandoned).zip(of(ErrorKind::Timeout)).map_or(0.0, |(abandoned, late)| abandoned - late);
    Some(of(ErrorKind::Socket)? + beyond.max(0.0))
}

/// The metric `errors` added up over these runs, and the number of requests; `None` if a run lacks them.
fn sum_errors(runs: &[&SavedRun]) -> Option<(f64, f64)> {
    runs.iter().try_fold((0.0, 0.0), |(errors, all), run| {
        let requests = &run.document.as_ref()?.requests;
        Some((errors + requests.errors() as f64, all + requests.all() as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::run_at_rate;
    use super::*;

    fn checks(metric: Metric, count: f64) -> FairnessChecks {
        let mut run = run_at_rate(1_000.0);
        run.figures.insert(metric, count);
        FairnessChecks::from_runs(&[&run])
    }

    #[test]
    fn of_few_values_a_share_is_a_count() {
        assert_eq!([(5.0, 14.0), (0.0, 99.0), (5.0, 100.0)].map(format_share), ["5 of 14", "0 of 99", "5.0 %"]);
    }

    #[test]
    fn differing_shares_raise_doubt() {
        let failed = |count| checks(Metric::ErrorsOf(ErrorKind::Socket), count);
        let status = |count| checks(Metric::ErrorsOf(ErrorKind::Status), count);
        assert_eq!(FairnessChecks::fairness_doubt(&[failed(0.0), failed(0.0)]), None);
        assert_eq!(FairnessChecks::fairness_doubt(&[failed(0.0), failed(5.0)]), None, "too few to matter");
        assert_eq!(FairnessChecks::fairness_doubt(&[failed(50.0), failed(55.0)]), None, "may be chance");
        assert_eq!(
            FairnessChecks::fairness_doubt(&[failed(0.0), failed(50.0)]).unwrap(),
            "the shares of failed connects and requests differ (A 0 %, B 0.50 %)"
        );
        let words = FairnessChecks::fairness_doubt(&[failed(0.0), status(10_000.0)]).unwrap();
        assert_eq!(words, "the shares of responses with an unsuccessful status differ (A 0 %, B 100 %)");
    }

    #[test]
    fn generator_limits_raise_doubt() {
        let limited = |by| FairnessChecks {
            limited_by: vec![(LimitedBy::Target, 2), (by, 3)],
            runs: 5,
            ..FairnessChecks::default()
        };
        let words = |by| FairnessChecks::fairness_doubt(&[limited(LimitedBy::Unclear), limited(by)]);
        assert_eq!(words(LimitedBy::Connections), None);
        let both =
            FairnessChecks::fairness_doubt(&[limited(LimitedBy::GeneratorCpu), limited(LimitedBy::GeneratorCpu)])
                .unwrap();
        assert!(
            both.starts_with("onrush itself was the limit in 3 of 5 runs of A and in 3 of 5 runs of B; "),
            "{both}"
        );
        assert_eq!(
            words(LimitedBy::GeneratorCpu).unwrap(),
            "onrush itself was the limit in 3 of 5 runs of B; give onrush more threads (-t) or processors, or measure at a \
             rate (-R) that it can send"
        );
        assert!(words(LimitedBy::Ports).is_some() && words(LimitedBy::GeneratorScript).is_some());
    }

    #[test]
    fn shares_are_shown_with_two_digits() {
        let shown = [0.0, 0.000_01, 0.000_5, 0.032, 0.0996, 1.0].map(format_percent);
        assert_eq!(shown, ["0 %", "< 0.01 %", "0.05 %", "3.2 %", "10 %", "100 %"]);
    }
}
