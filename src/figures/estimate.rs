//! Percentiles of the latency since requests were due, over all due requests; a request without a response has only an
//! age, which is a censored time.
//!
//! The estimator is Kaplan and Meier's ("Nonparametric Estimation from Incomplete Observations", Journal of the
//! American Statistical Association 53, 1958). Requests left over from a warm-up are at risk only from their age at its
//! end on (Tsai, Jewell and Wang, "A note on the product-limit estimator under right censoring and left truncation",
//! Biometrika 74, 1987). It assumes that an open request takes as long as others that have reached its age; under a
//! growing backlog, or in an outage, it takes longer.

use std::fmt;

use onrush_stats::{Distribution, OpenLoopStats, rank};
use onrush_text::units;

use super::NS_PER_US;
use super::bounds::PercentileBounds;

/// All due requests, by the knowledge about their latency.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// The latencies of complete responses, in nanoseconds, including those after the end of the run.
    pub completed: Distribution<u64>,
    /// The ages of requests without a complete response, except failed ones: they lasted at least that long.
    pub censored: Distribution<u64>,
    /// Of these, the ages of requests that were still open when the run stopped.
    pub open: Distribution<u64>,
    /// The ages from which requests of a warm-up count.
    pub entered: Distribution<u64>,
    /// Requests that failed.
    pub failed: u64,
    /// True if the load on the target was steady up to the end, so that requests which were open then are like others:
    /// none waited unsent, and the target was not silent.
    pub is_steady: bool,
}

/// A percentile as far as it is known, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownPercentile {
    /// An estimate.
    About(u64),
    /// It is larger than the age of every request.
    Above(u64),
    /// It is at least as large.
    AtLeast(u64),
}

/// How many of the requests had ended after each latency.
#[derive(Clone, Debug)]
struct LatencyCurve {
    /// Latencies, ascending, and the number of requests that took no longer; not always a whole one.
    steps: Vec<(u64, f64)>,
    /// The largest of them, exactly.
    max_ns: u64,
    /// The number of all requests.
    all: u64,
}

/// Percentiles over all requests that were due.
#[derive(Clone, Debug)]
pub struct PercentileEstimates {
    due: Due,
    /// The most likely one: open, abandoned and dropped requests are like others of their age, and failed ones are left
    /// out.
    likely: LatencyCurve,
    /// The least: requests lasted no longer than their age, and failed ones are left out.
    least: LatencyCurve,
    /// The largest age or latency.
    largest_ns: u64,
}

impl LatencyCurve {
    /// The curve of requests that took `ended`; `entered`: the ages from which some were observed; `censored`: the ages
    /// up to which others were; `endless`: how many took longer than any latency.
    fn new(
        ended: &[&Distribution<u64>],
        censored: Option<&Distribution<u64>>,
        entered: &Distribution<u64>,
        endless: u64,
    ) -> Self {
        let mut all_ended = Distribution::<u64>::new();
        ended.iter().for_each(|latencies| all_ended += latencies);
        // The values of a bin cannot be told apart: whoever is observed in a part of it is at risk in it.
        let bins = |ages: Option<&Distribution<u64>>| -> Vec<(u64, u64)> {
            let ages = ages.into_iter().flat_map(|ages| ages.values().map(|(age, count)| (ages.bin_start(age), count)));
            ages.collect()
        };
        let (left, joined) = (bins(censored), bins(Some(entered)));
        let total = |ages: &[(u64, u64)]| ages.iter().map(|(_, count)| count).sum::<u64>();
        let all = all_ended.count() + total(&left) + endless;
        let (mut left, mut joined) = (left.into_iter().peekable(), joined.into_iter().peekable());
        let mut at_risk = all - total(&bins(Some(entered))).min(all);
        let (mut lasting, mut steps) = (1.0, Vec::new());
        for (latency, count) in all_ended.values() {
            let bin = all_ended.bin_start(latency);
            while let Some((_, count)) = left.next_if(|(age, _)| *age < bin) {
                at_risk = at_risk.saturating_sub(count);
            }
            while let Some((_, count)) = joined.next_if(|(age, _)| *age <= bin) {
                at_risk += count;
            }
            lasting *= 1.0 - count as f64 / at_risk.max(count) as f64;
            steps.push((latency, (1.0 - lasting) * all as f64));
            at_risk = at_risk.saturating_sub(count);
        }
        Self { steps, max_ns: all_ended.max().unwrap_or(0), all }
    }

    /// The latency of the request with this rank; `None`: it took longer than any.
    fn at_rank(&self, rank: u64) -> Option<u64> {
        let reached = self.steps.partition_point(|(_, ended)| *ended < rank as f64 - 0.5);
        let (latency, _) = self.steps.get(reached)?;
        Some(if rank >= self.all { self.max_ns } else { *latency })
    }

    fn percentile(&self, percent: f64) -> Option<u64> {
        self.at_rank(rank(percent, self.all).min(self.all))
    }
}

impl PercentileEstimates {
    /// The estimate for a run with a schedule, in which so many requests failed by its end.
    pub fn from_open_loop(open_loop: &OpenLoopStats<u64>, failed: u64, is_steady: bool) -> Self {
        let OpenLoopStats { scheduled, later, censored, open, entered, later_failed, .. } = open_loop;
        let some = |ages: &Option<Box<Distribution<u64>>>| ages.as_deref().cloned().unwrap_or_default();
        let mut completed = scheduled.clone();
        completed += &some(later);
        let (censored, failed) = (censored.clone(), failed + later_failed);
        Self::new(Due { completed, censored, open: some(open), entered: some(entered), failed, is_steady })
    }

    /// The percentiles over these requests.
    pub fn new(due: Due) -> Self {
        let none = Distribution::new();
        let likely = LatencyCurve::new(&[&due.completed], Some(&due.censored), &due.entered, 0);
        let least = LatencyCurve::new(&[&due.completed, &due.censored], None, &none, 0);
        let largest_ns = due.completed.max().max(due.censored.max()).unwrap_or(0);
        Self { due, likely, least, largest_ns }
    }

    /// The number of requests that were due.
    pub fn due(&self) -> u64 {
        self.least.all + self.due.failed
    }

    /// How many of them have no complete response.
    pub fn incomplete(&self) -> u64 {
        self.due.censored.count() + self.due.failed
    }

    /// The due requests, by the knowledge about their latency.
    pub fn requests(&self) -> &Due {
        &self.due
    }

    /// A percentile as it is printed; `None`: there is no response.
    pub fn percentile(&self, percent: f64) -> Option<KnownPercentile> {
        if self.due.completed.count() == 0 {
            return None;
        }
        let likely = self.likely.percentile(percent);
        if self.due.is_steady {
            return Some(likely.map_or(KnownPercentile::Above(self.largest_ns), KnownPercentile::About));
        }
        let Due { completed, censored, open, entered, .. } = &self.due;
        let others = censored.without(open);
        let most = LatencyCurve::new(&[completed], Some(&others), entered, open.count()).percentile(percent);
        // Nothing says that a request which is open would have been faster than any other.
        let fastest = completed.min().unwrap_or(0);
        let least = self.least.percentile(percent).unwrap_or(self.largest_ns).max(fastest);
        let is_known = PercentileBounds { lower_ns: least, upper_ns: most }.is_known();
        Some(likely.filter(|_| is_known).map_or(KnownPercentile::AtLeast(least), KnownPercentile::About))
    }

    /// The bounds of a percentile: as it is printed, and with requests that never end; `None`: no request was due.
    pub fn bounds(&self, percent: f64) -> Option<PercentileBounds> {
        let lower_ns = self.percentile(percent).map(KnownPercentile::ns).or_else(|| self.least.percentile(percent))?;
        let Due { completed, censored, open, entered, failed, is_steady } = &self.due;
        let gone = censored.count().saturating_sub(open.count()) + failed;
        let most = match is_steady {
            true => LatencyCurve::new(&[completed], Some(open), entered, gone),
            false => LatencyCurve::new(&[completed], None, entered, gone + open.count()),
        };
        Some(PercentileBounds { lower_ns, upper_ns: most.percentile(percent).map(|ns| ns.max(lower_ns)) })
    }

    /// The percentile that a gate compares, if requests that were open when the run stopped end at once and if they
    /// never end; `None`: it is infinite. Failed, abandoned and dropped requests never end.
    pub fn extremes(&self, percent: f64) -> [Option<u64>; 2] {
        let Due { completed, censored, open, entered, failed, .. } = &self.due;
        let gone = censored.count().saturating_sub(open.count()) + failed;
        let at_once = LatencyCurve::new(&[completed, open], None, entered, gone);
        let never = LatencyCurve::new(&[completed], None, entered, gone + open.count());
        [at_once.percentile(percent), never.percentile(percent)]
    }

    /// The estimate as a distribution of whole requests. Requests above the largest latency count with the largest age.
    pub fn distribution(&self) -> Distribution<u64> {
        let curve = if self.due.is_steady { &self.likely } else { &self.least };
        if self.due.censored.count() == 0 && self.due.entered.count() == 0 {
            return self.due.completed.clone();
        }
        let (mut whole, mut before) = (Distribution::new(), 0);
        for (latency, ended) in &curve.steps {
            let ended = ended.round() as u64;
            whole.record_many(*latency, ended.saturating_sub(before));
            before = before.max(ended);
        }
        whole.record_many(self.largest_ns, curve.all.saturating_sub(before));
        whole
    }
}

impl KnownPercentile {
    /// The estimate, or the bound.
    pub fn ns(self) -> u64 {
        match self {
            Self::About(ns) | Self::Above(ns) | Self::AtLeast(ns) => ns,
        }
    }

    /// The sign before the time where it is a bound.
    pub fn sign(self) -> &'static str {
        match self {
            Self::About(_) => "",
            Self::Above(_) => ">",
            Self::AtLeast(_) => "≥",
        }
    }
}

impl fmt::Display for KnownPercentile {
    /// `1.20ms`, `>2.05s`, `≥1.20ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.sign(), units::time_us(self.ns() as f64 / NS_PER_US))
    }
}
