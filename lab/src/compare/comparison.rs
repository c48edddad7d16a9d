//! Compares the runs of two sides: how they are paired, estimates, and reasons for doubt. All figures in `words` and
//! `json` are computed in this file.

use std::collections::{BTreeMap, BTreeSet};

use onrush_plan::{Metric, Order};
use onrush_text::escape_controls;
use onrush_text::units::format_per_second;

use super::checks::{FairnessChecks, REACHED_MIN};
use super::contest::Contest;
use super::metric::{self, DECISIVE};
use super::outlier::outlier_indices;
use super::rank;
use super::student::{self, ConfidenceInterval};
use crate::saved::SavedRun;

/// The reason why a percentile is not compared.
const TOO_FEW: &str = "in some run it has fewer than 20 values above it, or was not recorded";
/// The reason why no percentile is compared.
const MIXED: &str =
    "latencies count from when requests were due in runs with a rate (-R), else from when they were sent";

/// The result of comparing two sides.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Names of the sides, the baseline first.
    pub names: [String; 2],
    /// The levels of all other varied factors, which both sides have in common.
    pub at: Vec<(String, String)>,
    /// How the runs are paired.
    pub pairing: Pairing,
    /// The number of complete runs on each side.
    pub runs: [usize; 2],
    /// Number of rounds left out because a run failed; if runs are not paired, number of failed runs.
    pub dropped: usize,
    /// The failed runs, each with its reason.
    pub failures: Vec<String>,
    /// The checks of fairness for each side.
    pub checks: [FairnessChecks; 2],
    /// The deciding metric; `None` if a run lacks it, or if too few values exceed it in some run.
    pub headline: Option<Metric>,
    /// The difference in each metric, in the order of the metrics.
    pub estimates: Vec<RatioEstimate>,
    /// Percentiles that a run lacks, or that too few values exceed in some run.
    pub omitted: Vec<Metric>,
    /// True if some runs have a rate and others do not. Their latencies cannot be compared.
    pub is_mixed: bool,
    /// The p of the rank test on the deciding metric; `None` if the test cannot become significant.
    pub rank_p: Option<f64>,
    /// The reason why there is no verdict, whatever the figures are; `None` if there may be one.
    pub doubt: Option<String>,
    /// Remarks on single runs, such as outliers.
    pub notes: Vec<String>,
    /// Number of comparisons made together, for which intervals and p are corrected.
    pub together: usize,
}

/// How the runs of two sides are paired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each run is paired with the other side's run in the same round of the experiment with this name.
    Rounds(String),
    /// Runs are not paired.
    Apart,
}

/// The difference between two sides in one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// The metric in which the sides are compared.
    pub metric: Metric,
    /// The geometric mean over the runs of each side.
    pub means: [f64; 2],
    /// The geometric mean of the ratios of paired runs; without pairs, the ratio of the means.
    pub ratio: f64,
    /// The interval of the ratio's logarithm; `None` if there are too few runs.
    pub interval: Option<ConfidenceInterval>,
}

impl RatioEstimate {
    /// The bounds of the interval as ratios; `None` without an interval.
    pub fn ratio_range(&self) -> Option<(f64, f64)> {
        self.interval.map(|interval| (interval.low.exp(), interval.high.exp()))
    }
}

/// The runs that are compared. If they are paired, the nth run of one side belongs to the nth of the other.
struct ComparedRuns<'a> {
    pairing: Pairing,
    sides: [Vec<&'a SavedRun>; 2],
    dropped: usize,
    failures: Vec<String>,
}

impl Comparison {
    /// Compares two sides, as one of `together` comparisons, for which its intervals are corrected. `asked`: metrics to
    /// include in any case. `None` if a side has no complete run.
    pub fn new(contest: &Contest<'_>, together: usize, asked: &[Metric]) -> Option<Self> {
        let runs = ComparedRuns::from_contest(contest);
        if runs.is_one_sided() {
            return None;
        }
        let [a, b] = &runs.sides;
        let (metrics, omitted) = common_and_omitted_metrics(&runs, asked);
        let is_mixed = runs.is_mixed();
        let estimates: Vec<RatioEstimate> =
            metrics.iter().map(|metric| estimate_ratio(*metric, &runs, together)).collect();
        let headline = runs.deciding_metric().filter(|wanted| metrics.contains(wanted));
        let checks = [a, b].map(|side| FairnessChecks::from_runs(side));
        let doubt = runs.verdict_obstacle(headline, &checks);
        let logs = headline.map(|headline| runs.log_values(headline));
        Some(Self {
            names: contest.names.clone(),
            at: contest.at.clone(),
            rank_p: logs.as_ref().and_then(|logs| runs.rank_test_p(logs, together)),
            notes: logs.map_or_else(Vec::new, |logs| runs.outlier_remarks(&contest.names, &logs)),
            runs: [a.len(), b.len()],
            pairing: runs.pairing,
            dropped: runs.dropped,
            failures: runs.failures,
            checks,
            headline,
            estimates,
            omitted,
            is_mixed,
            doubt,
            together,
        })
    }

    /// Estimates only the ratio of rates, which takes little time. The runs must have no schedule.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no verdict, whatever the figures are.
    pub fn estimate_rate_ratio(contest: &Contest<'_>) -> Result<RatioEstimate, String> {
        let runs = ComparedRuns::from_contest(contest);
        if runs.is_one_sided() {
            return Err("no round has complete runs of both".to_owned());
        }
        let rate =
            Some(Metric::Rate).filter(|rate| runs.all_runs().all(|run| metric::metric_value(*rate, run).is_some()));
        let checks = runs.sides.each_ref().map(|side| FairnessChecks::from_runs(side));
        runs.verdict_obstacle(rate, &checks).map_or_else(|| Ok(estimate_ratio(Metric::Rate, &runs, 1)), Err)
    }

    /// True if both sides have complete runs, which must be paired in the case of rounds.
    pub fn is_possible(contest: &Contest<'_>) -> bool {
        !ComparedRuns::from_contest(contest).is_one_sided()
    }

    /// The reason why [`Comparison::omitted`] percentiles are not compared.
    pub fn omission_reason(&self) -> &'static str {
        if self.is_mixed { MIXED } else { TOO_FEW }
    }

    /// The difference in a metric; `None` if the metric was not compared.
    pub fn estimate(&self, metric: Metric) -> Option<&RatioEstimate> {
        self.estimates.iter().find(|estimate| estimate.metric == metric)
    }
}

impl<'a> ComparedRuns<'a> {
    /// True if some runs have a rate and others do not.
    fn is_mixed(&self) -> bool {
        let mut all = self.all_runs().map(|run| run.is_scheduled());
        let first = all.next();
        all.any(|is_scheduled| Some(is_scheduled) != first)
    }

    fn all_runs(&self) -> impl Iterator<Item = &'a SavedRun> {
        self.sides.iter().flatten().copied()
    }

    fn is_one_sided(&self) -> bool {
        self.sides.iter().any(Vec::is_empty)
    }

    /// For each side, true if all its runs have a rate.
    fn are_scheduled(&self) -> [bool; 2] {
        self.sides.each_ref().map(|side| side.iter().all(|run| run.is_scheduled()))
    }

    /// The metric that decides the comparison; `None` if a run lacks it.
    fn deciding_metric(&self) -> Option<Metric> {
        if self.are_scheduled() == [true, true] { DECISIVE.parse().ok() } else { Some(Metric::Rate) }
    }

    /// The reason why there can be no verdict, whatever the figures are; `None` if there may be one.
    fn verdict_obstacle(&self, headline: Option<Metric>, checks: &[FairnessChecks; 2]) -> Option<String> {
        let [a, b] = self.are_scheduled();
        match (headline, self.deciding_metric()) {
            // Failures do not affect the rate.
            (None, Some(wanted)) => {
                Some(FairnessChecks::fairness_doubt(checks).or_else(|| self.behind_schedule_remark()).unwrap_or_else(
                    || {
                        // A longer run may have enough responses.
                        format!("{wanted} cannot be compared: {TOO_FEW}; measure longer")
                    },
                ))
            }
            _ if a != b => Some("the sides are not comparable: one has a rate (-R), the other has none".to_owned()),
            _ => FairnessChecks::fairness_doubt(checks),
        }
    }

    /// A sentence if a side had fewer responses than due requests, so that its latency depends on the length of its
    /// runs. Failed requests do not count as missing, nor do requests that are in flight at the end with a target that
    /// keeps up.
    fn behind_schedule_remark(&self) -> Option<String> {
        let side = |(name, runs): (&str, &Vec<&SavedRun>)| {
            let open_loop = |run: &&SavedRun| {
                let open_loop = run.document.as_deref()?.open_loop.as_ref()?;
                let in_flight_per_s = open_loop.asked_per_s - open_loop.asked_by_end_per_s;
                Some(open_loop.due_per_s - in_flight_per_s)
            };
            let due: Vec<f64> = runs.iter().filter_map(open_loop).collect();
            let had: Vec<f64> = runs.iter().filter_map(|run| run.value(Metric::Rate)).collect();
            let other = |run: &&SavedRun| {
                let document = run.document.as_deref()?;
                Some((document.errors.read + document.errors.write) as f64 / document.duration_s)
            };
            let other: Vec<f64> = runs.iter().filter_map(other).collect();
            // The mean of no runs is NaN, and every comparison with NaN is false.
            let (due_per_s, per_s) = (student::mean(&due), student::mean(&had));
            let [had, due] = [per_s, due_per_s].map(format_per_second);
            (per_s + student::mean(&other) < REACHED_MIN * due_per_s)
                .then(|| format!("{name} got {had} responses/s, but {due} requests/s were due"))
        };
        let behind: Vec<String> = ["A", "B"].into_iter().zip(&self.sides).filter_map(side).collect();
        let remedy =
            "latencies that grow with the length of a run cannot be compared; choose a rate (-R) that both sustain";
        (!behind.is_empty()).then(|| format!("{}: {remedy}", behind.join(" and ")))
    }

    fn from_contest(contest: &Contest<'a>) -> Self {
        let [a, b] = &contest.sides;
        let failed = |run: &&&SavedRun| run.failure().is_some();
        let failures = failed_run_lines(contest);
        let Some((name, rounds)) = interleaved_rounds(a, b) else {
            let dropped = a.iter().chain(b).filter(failed).count();
            let sides = [a, b].map(|side| side.iter().copied().filter(|run| run.failure().is_none()).collect());
            return Self { pairing: Pairing::Apart, sides, dropped, failures };
        };
        let mut sides = [Vec::new(), Vec::new()];
        let mut dropped = 0;
        for pair in rounds {
            match pair {
                [Some(one), Some(other)] if one.failure().is_none() && other.failure().is_none() => {
                    sides[0].push(one);
                    sides[1].push(other);
                }
                _ => dropped += 1,
            }
        }
        Self { pairing: Pairing::Rounds(name), sides, dropped, failures }
    }

    /// The logarithms of a metric that all runs have, for each side.
    fn log_values(&self, metric: Metric) -> [Vec<f64>; 2] {
        self.sides
            .each_ref()
            .map(|side| side.iter().filter_map(|run| metric::metric_value(metric, run)).map(f64::ln).collect())
    }

    /// The error that both rates may have in common, as a share. The connections of a closed loop may run in step: then
    /// one response per connection arrives just before, or just after, the end of every run.
    fn resolution(&self) -> f64 {
        let of =
            |run: &&SavedRun| Some(run.connections? as f64 / run.value(Metric::Requests).filter(|count| *count > 0.0)?);
        let side = |side: &Vec<&SavedRun>| side.iter().filter_map(of).sum::<f64>() / side.len() as f64;
        self.sides.iter().map(side).fold(0.0, f64::max)
    }

    fn rank_test_p(&self, [a, b]: &[Vec<f64>; 2], together: usize) -> Option<f64> {
        match self.pairing {
            Pairing::Rounds(_) => rank::signed_rank_p(&pairwise_differences(a, b), together),
            Pairing::Apart => rank::rank_sum_p(a, b, together),
        }
    }

    /// Remarks on outliers in the deciding metric.
    fn outlier_remarks(&self, names: &[String; 2], [a, b]: &[Vec<f64>; 2]) -> Vec<String> {
        let called = |side: usize, index: usize| match &self.sides[side][index].position {
            Some(position) if self.pairing != Pairing::Apart => format!("round {}", position.round),
            _ => escape_controls(&self.sides[side][index].called()),
        };
        let far: Vec<String> = match self.pairing {
            Pairing::Rounds(_) => {
                outlier_indices(&pairwise_differences(a, b)).into_iter().map(|index| called(0, index)).collect()
            }
            Pairing::Apart => {
                let of = |side: usize, logs: &[f64]| {
                    outlier_indices(logs).into_iter().map(move |index| (side, index)).collect()
                };
                let both: [Vec<(usize, usize)>; 2] = [of(0, a), of(1, b)];
                both.concat().into_iter().map(|(side, index)| called(side, index)).collect()
            }
        };
        let mut notes = Vec::new();
        if !far.is_empty() {
            let is_one = far.len() == 1;
            let far = far.join(", ");
            let (what, median) = match self.pairing {
                Pairing::Rounds(_) => ("a difference", "the median difference of all rounds"),
                Pairing::Apart => ("a value", "the median of its side"),
            };
            let is = if is_one { "is an outlier" } else { "are outliers" };
            notes.push(format!(
                "{far} {is} but counted: {what} over 3.5 scaled MAD (about 3.5 standard deviations) from {median}"
            ));
        }
        let first: Vec<&str> = [(a, &names[0]), (b, &names[1])]
            .into_iter()
            .filter(|(logs, _)| student::first_differs(logs))
            .map(|it| it.1.as_str())
            .collect();
        if !first.is_empty() && self.pairing != Pairing::Apart {
            let who = first.join(" and ");
            notes.push(format!(
                "the first round of {who} differs from the others, but is counted; a longer --warmup excludes a cold \
                 start"
            ));
        }
        notes
    }
}

/// Lines about the failed runs, each with its reason.
pub fn failed_run_lines(contest: &Contest<'_>) -> Vec<String> {
    let reason = |run: &&SavedRun| Some(escape_controls(&format!("{}: {}", run.called(), run.failure()?)));
    contest.sides.iter().flatten().filter_map(reason).collect()
}

/// The name of the experiment with interleaved rounds, and the runs of each round; `None` if the runs are not from such
/// an experiment.
fn interleaved_rounds<'a>(a: &[&'a SavedRun], b: &[&'a SavedRun]) -> Option<(String, Vec<[Option<&'a SavedRun>; 2]>)> {
    let first = a.first()?.position.as_ref()?;
    let mut rounds: BTreeMap<u32, [Option<&'a SavedRun>; 2]> = BTreeMap::new();
    for (side, runs) in [a, b].into_iter().enumerate() {
        for run in runs {
            let position = run.position.as_ref().filter(|it| it.id == first.id && it.order == Order::Interleaved)?;
            let known = &mut rounds.entry(position.round).or_default()[side];
            match known.filter(|known| known.failure().is_none()) {
                // The run was repeated after it had failed.
                None => *known = Some(run),
                Some(_) if run.failure().is_some() => {}
                // If one side has two runs in a round, they cannot be paired.
                Some(_) => return None,
            }
        }
    }
    Some((first.name.clone(), rounds.into_values().collect()))
}

/// The metrics that all runs have, and the percentiles that a run lacks or that too few values exceed.
fn common_and_omitted_metrics(runs: &ComparedRuns<'_>, asked: &[Metric]) -> (Vec<Metric>, Vec<Metric>) {
    let percentiles: BTreeSet<Metric> = runs.all_runs().flat_map(SavedRun::percents).map(Metric::percentile).collect();
    let all = [Metric::Rate, Metric::MEAN].into_iter().chain(percentiles.iter().copied());
    let all: BTreeSet<Metric> = all.chain(status_class_percentiles(runs)).chain(asked.iter().copied()).collect();
    // Latencies of runs with and without a rate are not compared.
    let is_mixed = runs.is_mixed();
    let is_known = |metric: &Metric| {
        !(is_mixed && metric.is_latency()) && runs.all_runs().all(|run| metric::metric_value(*metric, run).is_some())
    };
    let known: Vec<Metric> = all.into_iter().filter(is_known).collect();
    let omitted = percentiles.into_iter().filter(|metric| !known.contains(metric)).collect();
    (known, omitted)
}

/// The percentiles that reports show for each status class, if a run has responses of several classes.
fn status_class_percentiles(runs: &ComparedRuns<'_>) -> impl Iterator<Item = Metric> {
    let has_several = |run: &SavedRun| run.document.as_deref().is_some_and(|it| !it.latency.by_class.is_empty());
    let are_several = runs.all_runs().any(has_several);
    let classes = (2..=5).filter(move |_| are_several);
    classes.flat_map(|class| ["p50", "p99"].map(|name| format!("{name}.{class}xx").parse().expect("it is a metric")))
}

fn estimate_ratio(metric: Metric, runs: &ComparedRuns<'_>, together: usize) -> RatioEstimate {
    let logs = runs.log_values(metric);
    let [a, b] = &logs;
    let resolution = if metric == Metric::Rate { runs.resolution() } else { 0.0 };
    let interval = match runs.pairing {
        Pairing::Rounds(_) => student::paired_interval(&pairwise_differences(a, b), together, resolution),
        Pairing::Apart => student::welch_interval(a, b, together, resolution),
    };
    let means = logs.each_ref().map(|logs| student::mean(logs));
    RatioEstimate { metric, means: means.map(f64::exp), ratio: (means[1] - means[0]).exp(), interval }
}

/// The differences `b` − `a`, pair by pair.
fn pairwise_differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(one, other)| other - one).collect()
}
