//! Percentiles of the latency since the due time, over all due requests. A request without a response has only an age,
//! which is a censored time.
//!
//! The estimator is Kaplan and Meier's ("Nonparametric Estimation from Incomplete Observations", Journal of the
//! American Statistical Association 53, 1958). Requests left over from a warm-up enter the risk set at their age when
//! it ended (Tsai, Jewell and Wang, "A note on the product-limit estimator under right censoring and left truncation",
//! Biometrika 74, 1987). The estimator assumes that an open request takes as long as others that have reached its age.
//! Under a growing backlog or in an outage, it takes longer.

use std::fmt;

use onrush_stats::{Distribution, OpenLoopStats, rank};
use onrush_text::units;

use super::NS_PER_US;
use super::bounds::PercentileBounds;

/// All due requests, by what is known of their latency.
#[derive(Clone, Debug, Default)]
pub struct DueRequests {
    /// Latencies of complete responses, in nanoseconds, including those after the end of the run.
    pub completed: Distribution<u64>,
    /// Ages of requests without a complete response, except failed ones. Their latency is at least their age.
    pub censored: Distribution<u64>,
    /// The part of `censored` that was still open when the run stopped.
    pub open: Distribution<u64>,
    /// Ages of the requests left over from a warm-up at its end, from which they are taken into account.
    pub entered: Distribution<u64>,
    /// Number of failed requests.
    pub failed: u64,
    /// True if the load on the target was steady up to the end, no request was waiting to be sent, and the target was
    /// responding. Open requests are then assumed to be like others.
    pub is_steady: bool,
}

/// A percentile, as far as it is known, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownPercentile {
    /// An estimate.
    About(u64),
    /// A bound: the percentile is above the age and latency of every request.
    Above(u64),
    /// A bound: the percentile is at least this large.
    AtLeast(u64),
}

/// The number of requests that had ended after each latency.
#[derive(Clone, Debug)]
struct LatencyCurve {
    /// Latencies in ascending order, each with the number of requests, possibly fractional, that took no longer.
    steps: Vec<(u64, f64)>,
    /// The exact maximum latency.
    max_ns: u64,
    /// Number of all requests, including those that never end.
    all: u64,
}

/// Estimates of percentiles over all due requests.
#[derive(Clone, Debug)]
pub struct PercentileEstimates {
    due: DueRequests,
    /// The most likely curve: open, abandoned and dropped requests behave like others of their age, and failed ones are
    /// left out.
    likely: LatencyCurve,
    /// The curve of the lower bound: requests took no longer than their age, and failed ones are left out.
    least: LatencyCurve,
    /// The largest age or latency of any request.
    largest_ns: u64,
}

impl LatencyCurve {
    /// The curve of requests that took the times in `ended`. Some were observed only from the ages in `entered`, and
    /// others only up to the ages in `censored`. `endless` requests took longer than any latency.
    fn new(
        ended: &[&Distribution<u64>],
        censored: Option<&Distribution<u64>>,
        entered: &Distribution<u64>,
        endless: u64,
    ) -> Self {
        let mut all_ended = Distribution::<u64>::new();
        ended.iter().for_each(|latencies| all_ended += latencies);
        // Values within a bin are indistinguishable: a request observed in a part of it is at risk in all of it.
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

    /// The latency of the request with this rank; `None` if it exceeds all latencies.
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
    /// The estimates for a scheduled run with this many failed requests; see [`DueRequests::is_steady`].
    pub fn from_open_loop(open_loop: &OpenLoopStats<u64>, failed: u64, is_steady: bool) -> Self {
        let OpenLoopStats { scheduled, later, censored, open, entered, later_failed, .. } = open_loop;
        let some = |ages: &Option<Box<Distribution<u64>>>| ages.as_deref().cloned().unwrap_or_default();
        let mut completed = scheduled.clone();
        completed += &some(later);
        let (censored, failed) = (censored.clone(), failed + later_failed);
        Self::new(DueRequests { completed, censored, open: some(open), entered: some(entered), failed, is_steady })
    }

    /// Computes the estimates for these requests.
    pub fn new(due: DueRequests) -> Self {
        let none = Distribution::new();
        let likely = LatencyCurve::new(&[&due.completed], Some(&due.censored), &due.entered, 0);
        let least = LatencyCurve::new(&[&due.completed, &due.censored], None, &none, 0);
        let largest_ns = due.completed.max().max(due.censored.max()).unwrap_or(0);
        Self { due, likely, least, largest_ns }
    }

    /// Number of due requests, including those without a response.
    pub fn due(&self) -> u64 {
        self.least.all + self.due.failed
    }

    /// Number of due requests without a complete response.
    pub fn incomplete(&self) -> u64 {
        self.due.censored.count() + self.due.failed
    }

    /// The due requests, by what is known of their latency.
    pub fn requests(&self) -> &DueRequests {
        &self.due
    }

    /// The percentile as reports print it: an estimate, or a bound if the outcome of open requests matters. `None`
    /// without responses.
    pub fn percentile(&self, percent: f64) -> Option<KnownPercentile> {
        if self.due.completed.count() == 0 {
            return None;
        }
        let likely = self.likely.percentile(percent);
        if self.due.is_steady {
            return Some(likely.map_or(KnownPercentile::Above(self.largest_ns), KnownPercentile::About));
        }
        let DueRequests { completed, censored, open, entered, .. } = &self.due;
        let others = censored.without_part(open);
        let most = LatencyCurve::new(&[completed], Some(&others), entered, open.count()).percentile(percent);
        // An open request would not have been faster than every other one.
        let fastest = completed.min().unwrap_or(0);
        let least = self.least.percentile(percent).unwrap_or(self.largest_ns).max(fastest);
        let is_known = PercentileBounds { lower_ns: least, upper_ns: most }.is_known();
        Some(likely.filter(|_| is_known).map_or(KnownPercentile::AtLeast(least), KnownPercentile::About))
    }

    /// The bounds of a percentile: the lower one as printed, the upper one with requests that never end. `None` if no
    /// request was due.
    pub fn bounds(&self, percent: f64) -> Option<PercentileBounds> {
        let lower_ns = self.percentile(percent).map(KnownPercentile::ns).or_else(|| self.least.percentile(percent))?;
        let DueRequests { completed, censored, open, entered, failed, is_steady } = &self.due;
        let gone = censored.count().saturating_sub(open.count()) + failed;
        let most = match is_steady {
            true => LatencyCurve::new(&[completed], Some(open), entered, gone),
            false => LatencyCurve::new(&[completed], None, entered, gone + open.count()),
        };
        Some(PercentileBounds { lower_ns, upper_ns: most.percentile(percent).map(|ns| ns.max(lower_ns)) })
    }

    /// The percentile for a gate in two cases: requests that were open when the run stopped end at once, or never.
    /// Failed, abandoned and dropped requests never end. `None` stands for infinity.
    pub fn extremes(&self, percent: f64) -> [Option<u64>; 2] {
        let DueRequests { completed, censored, open, entered, failed, .. } = &self.due;
        let gone = censored.count().saturating_sub(open.count()) + failed;
        let at_once = LatencyCurve::new(&[completed, open], None, entered, gone);
        let never = LatencyCurve::new(&[completed], None, entered, gone + open.count());
        [at_once.percentile(percent), never.percentile(percent)]
    }

    /// The estimate as a distribution of whole requests. Requests beyond the last known latency are recorded at the
    /// largest age or latency.
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
    /// The estimate or bound in nanoseconds, without its sign.
    pub fn ns(self) -> u64 {
        match self {
            Self::About(ns) | Self::Above(ns) | Self::AtLeast(ns) => ns,
        }
    }

    /// The sign printed before a bound; empty for an estimate.
    pub fn bound_sign(self) -> &'static str {
        match self {
            Self::About(_) => "",
            Self::Above(_) => ">",
            Self::AtLeast(_) => "≥",
        }
    }
}

impl fmt::Display for KnownPercentile {
    /// Formats as `1.20ms`, `>2.05s`, or `≥1.20ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.bound_sign(), units::format_us(self.ns() as f64 / NS_PER_US))
    }
}
