//! Estimates the limit from all runs together: the probability distribution of the highest load at which the objective
//! holds in the long run.
//!
//! A percentile holds as long as the share of slower requests stays below the allowed share. Unlike the percentile of a
//! short run, the share of slow requests is unbiased for runs of any length, so runs are pooled by this share. The
//! model is a power of the load: allowed × (load ÷ limit)^steepness. Slow requests come in clusters, because one delays
//! the next. Clusters are nearly independent, so the likelihood counts once per cluster, not once per request. Limit,
//! steepness and cluster size are unknown: every combination of a grid is weighted by its likelihood, and the weights
//! for one limit are added. A run without such a share held or failed with the probability that follows from the same
//! curve.

use super::excess::SlowExcess;
use super::{ClientLimit, Point, runs_before_first_success};

/// Probability that the limit is in its interval.
pub(super) const CONFIDENCE: f64 = 0.95;

/// Steepness of the curve, from a server with a long tail to one that fails abruptly.
const STEEPNESSES: [f64; 7] = [3.0, 8.0, 20.0, 50.0, 125.0, 320.0, 800.0];

/// Mean number of slow requests per cluster, as a multiple of the number that follows from the steepness. Steep curves
/// have long queues. Near the limit of a queue, the share of slow requests is e to the power of -steepness × spare
/// capacity, and a queue lasts for about (1 ÷ spare capacity)² requests (heavy traffic).
const CLUSTERS: [f64; 4] = [1.0 / 18.0, 1.0 / 3.0, 2.0, 12.0];

/// Upper bound on the size of a cluster, as a multiple of the longest run. Larger clusters would explain anything.
const RUNS_PER_CLUSTER: f64 = 4.0;

/// Probability that a run was disturbed and is meaningless: bounds the influence of a single run.
const DISTURBED: f64 = 0.04;

/// Number of limits tried, first in the whole range, then in the likely part ...
const STEPS: usize = 60;
/// ... which excludes this probability at either end.
const UNLIKELY: f64 = 1e-3;

/// The limit may exceed the range of the tried loads by this much, as a logarithm.
const BEYOND: f64 = 0.1;

/// A target with this multiple of the allowed slow requests is overloaded.
const OVERLOADED: f64 = 4.0;

/// Windows with at least this share of slow requests do not reveal the cluster size, because one cluster fills them.
const FULL: f64 = 0.5;

/// The probability distribution of the limit.
#[derive(Clone, Debug)]
pub struct LimitFit {
    /// Lower end of the range and length of a step, as logarithms of the load.
    from: f64,
    step: f64,
    /// Probability that the limit does not exceed the end of each step.
    until: Vec<f64>,
    /// Most likely steepness and cluster size.
    curve: (f64, f64),
}

/// Data of a run that its likelihood depends on.
struct FitRun {
    load: f64,
    outcome: FitOutcome,
}

/// A run's evidence about the limit.
enum FitOutcome {
    /// Numbers of requests and of slow requests.
    Share {
        allowed: f64,
        requests: f64,
        slow: f64,
        /// Negated log-likelihood of the windows at their own shares.
        own: f64,
        /// Log-likelihood at the share of the whole run.
        best: f64,
        /// Number of windows that reveal the cluster size.
        mixed: f64,
        /// True if the target was overloaded: the run was too short to show all slow requests of its load.
        is_overloaded: bool,
    },
    /// True if the load held.
    Held(bool),
}

impl LimitFit {
    /// Fits the runs. `None` unless at least one held and one failed.
    pub fn from_points(points: &[Point]) -> Option<Self> {
        let clean = || points.iter().filter(|point| point.is_clean());
        let is_bracketed = clean().any(Point::holds) && clean().any(|point| !point.holds());
        is_bracketed.then_some(())?;
        let runs: Vec<FitRun> = clean().map(FitRun::from_point).collect();
        let (least, most) =
            runs.iter().fold((f64::MAX, f64::MIN), |(least, most), run| (least.min(run.load), most.max(run.load)));
        let coarse = Self::fit_range(&runs, least - BEYOND, most + BEYOND);
        let (low, high) =
            (coarse.log_load_at(UNLIKELY) - coarse.step, coarse.log_load_at(1.0 - UNLIKELY) + coarse.step);
        Some(Self::fit_range(&runs, low, high))
    }

    fn fit_range(runs: &[FitRun], from: f64, to: f64) -> Self {
        let step = (to - from) / STEPS as f64;
        let largest = runs.iter().map(FitRun::requests).fold(1.0, f64::max) * RUNS_PER_CLUSTER;
        let mut cells = Vec::with_capacity(STEPS * STEEPNESSES.len());
        for steepness in STEEPNESSES {
            for index in 0..STEPS {
                let limit = from + (index as f64 + 0.5) * step;
                let mut cell = [0.0; CLUSTERS.len()];
                let clusters = cluster_sizes(steepness, largest);
                runs.iter().for_each(|run| run.add_log_likelihoods(limit, steepness, clusters, &mut cell));
                cells.push(cell);
            }
        }
        let (mut best, mut curve) = (f64::MIN, (0.0, 0.0));
        for (index, cell) in cells.iter().enumerate() {
            let steepness = STEEPNESSES[index / STEPS];
            for (cluster, likelihood) in cluster_sizes(steepness, largest).into_iter().zip(cell) {
                if *likelihood > best {
                    (best, curve) = (*likelihood, (steepness, cluster));
                }
            }
        }
        let mut weights = vec![0.0; STEPS];
        for (index, cell) in cells.iter().enumerate() {
            weights[index % STEPS] += cell.iter().map(|likelihood| (likelihood - best).exp()).sum::<f64>();
        }
        let (total, mut sum) = (weights.iter().sum::<f64>(), 0.0);
        for weight in &mut weights {
            sum += *weight / total;
            *weight = sum;
        }
        Self { from, step, until: weights, curve }
    }

    /// The load, in the unit of the points, that the limit exceeds with probability 1 - `share`.
    pub fn load_at(&self, share: f64) -> f64 {
        self.log_load_at(share).exp()
    }

    /// The interval that contains the limit with probability `CONFIDENCE`.
    pub fn interval(&self) -> (f64, f64) {
        let beyond = (1.0 - CONFIDENCE) / 2.0;
        (self.load_at(beyond), self.load_at(1.0 - beyond))
    }

    fn log_load_at(&self, share: f64) -> f64 {
        let index = self.until.iter().position(|until| *until >= share).unwrap_or(STEPS - 1);
        let before = if index > 0 { self.until[index - 1] } else { 0.0 };
        let inside = (share - before) / (self.until[index] - before).max(f64::MIN_POSITIVE);
        self.from + (index as f64 + inside.clamp(0.0, 1.0)) * self.step
    }

    /// True if the most likely curve does not explain a run outside the interval: the run was disturbed. Within the
    /// interval, a run may hold or fail.
    pub fn contradicts(&self, point: &Point) -> bool {
        let (limit, (steepness, cluster)) = (self.log_load_at(0.5), self.curve);
        let (low, high) = self.interval();
        let is_beyond = if point.holds() { point.load as f64 > high } else { (point.load as f64) < low };
        point.is_clean() && is_beyond && FitRun::from_point(point).is_disturbed(limit, steepness, cluster)
    }
}

/// Marks early failures as cold. The target was slower at first if the runs since the first success contradict an
/// earlier one, or if all runs do because nothing has failed since. Early failures at loads that have held since are
/// then meaningless.
pub fn mark_cold_failures(points: &mut [Point]) {
    let (first, since) = points.split_at_mut(runs_before_first_success(points).len());
    let held = since.iter().filter(|point| point.holds()).map(|point| point.load).max();
    let all = || LimitFit::from_points(&[&*first, &*since].concat());
    let fit = LimitFit::from_points(since).or_else(all);
    if let (Some(fit), Some(held)) = (fit, held)
        && first.iter().any(|point| fit.contradicts(point))
    {
        let cold = first.iter_mut().filter(|point| point.is_clean() && point.load <= held);
        cold.for_each(|point| point.set_client_limit(Some(ClientLimit::Cold)));
    }
}

impl FitRun {
    fn from_point(point: &Point) -> Self {
        let load = (point.load as f64).ln();
        let Some(SlowExcess { allowed, windows }) = point.deciding_excess() else {
            return Self { load, outcome: FitOutcome::Held(point.holds()) };
        };
        let (mut requests, mut slow, mut own, mut mixed) = (0.0, 0.0, 0.0, 0.0);
        for window in windows {
            requests += window.requests;
            slow += window.slow;
            if window.slow > 0.0 {
                own -= log_likelihood(window.slow, window.requests, window.slow / window.requests);
                mixed += if window.slow < FULL * window.requests { 1.0 } else { 0.0 };
            }
        }
        let (allowed, own_share) = (*allowed, slow / requests);
        let mut best = log_likelihood(slow, requests, own_share) + own;
        let is_overloaded = own_share > OVERLOADED * allowed;
        if is_overloaded {
            // The queue of the run grows from window to window, which says nothing about clusters.
            (own, best, mixed) = (own - best, 0.0, 0.0);
        }
        Self { load, outcome: FitOutcome::Share { allowed, requests, slow, own, best, mixed, is_overloaded } }
    }

    /// Log-likelihoods of this run and of a disturbed run, as functions of the cluster size.
    fn log_likelihoods(&self, limit: f64, steepness: f64) -> impl Fn(f64) -> (f64, f64) {
        let power = steepness * (self.load - limit);
        // The cluster size only scales both.
        let (this, disturbed, most) = match self.outcome {
            FitOutcome::Share { allowed, requests, slow, own, best, is_overloaded, .. } => {
                let share = (allowed.ln() + power).min(0.0).exp();
                // Runs start without a queue. The absence of a queue says little about a target whose queues form
                // slowly; a queue counts at least as much as one request.
                let most = if slow > share * requests { requests } else { f64::INFINITY };
                let is_enough = is_overloaded && share * requests > slow;
                (if is_enough { best } else { log_likelihood(slow, requests, share) + own }, best, most)
            }
            FitOutcome::Held(held) => {
                // At the limit, half of the runs hold.
                let expected = std::f64::consts::LN_2 * power.min(HUGE).exp();
                (if held { -expected } else { (-(-expected).exp()).ln_1p() }, 0.0, 1.0)
            }
        };
        move |cluster| {
            let divisor = cluster.min(most);
            (this / divisor, disturbed / divisor + DISTURBED.ln())
        }
    }

    fn requests(&self) -> f64 {
        if let FitOutcome::Share { requests, .. } = self.outcome { requests } else { 1.0 }
    }

    fn add_log_likelihoods(
        &self,
        limit: f64,
        steepness: f64,
        clusters: [f64; CLUSTERS.len()],
        cell: &mut [f64; CLUSTERS.len()],
    ) {
        let mixed = if let FitOutcome::Share { mixed, .. } = self.outcome { mixed } else { 0.0 };
        let likelihoods = self.log_likelihoods(limit, steepness);
        for (sum, cluster) in cell.iter_mut().zip(clusters) {
            let (this, disturbed) = likelihoods(cluster);
            // The density of a number of slow requests decreases with the cluster size.
            *sum += this.max(disturbed) - mixed / 2.0 * cluster.ln();
        }
    }

    fn is_disturbed(&self, limit: f64, steepness: f64, cluster: f64) -> bool {
        let (this, disturbed) = self.log_likelihoods(limit, steepness)(cluster);
        this < disturbed
    }
}

/// Cluster sizes tried with a steepness, limited to `most`.
fn cluster_sizes(steepness: f64, most: f64) -> [f64; CLUSTERS.len()] {
    let usual = (steepness / STEEP).powi(2);
    CLUSTERS.map(|multiple| (multiple * usual).min(most).max(1.0))
}

/// Log-likelihood of the number of slow requests if each is slow with probability `share`.
fn log_likelihood(slow: f64, requests: f64, share: f64) -> f64 {
    let share = share.clamp(CERTAIN, 1.0 - CERTAIN);
    slow * share.ln() + (requests - slow) * (1.0 - share).ln()
}

/// Spare capacity × steepness: ln(100), for a p99. The multiples cover other percentiles.
const STEEP: f64 = 4.6;

/// Bound on the certainty that a request is slow, or fast.
const CERTAIN: f64 = 1e-12;

/// Exponent above which every run fails.
const HUGE: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::LoadFailure;
    use crate::search::simulation::points;

    #[test]
    fn contradicted_early_failures_are_ignored() {
        let cold = |runs: &[(u64, bool)]| {
            let mut points = points(runs);
            mark_cold_failures(&mut points);
            points.iter().filter(|point| point.fault == Some(LoadFailure::Limited(ClientLimit::Cold))).count()
        };
        let first = [(90, false), (90, false), (65, false), (65, true)];
        assert_eq!(cold(&first[..3]), 0);
        assert_eq!(cold(&first), 0, "the failure may be chance");
        let held = [(90, true), (112, true), (140, true), (210, true), (421, true)];
        assert_eq!(cold(&[&first[..], &held].concat()), 3);
        // Neither a later failure nor one at a load that fails again indicates a cold target.
        assert_eq!(cold(&[&first[3..], &first[..3], &held].concat()), 0);
        assert_eq!(cold(&[(600, false), (600, false), (480, true), (600, false), (500, true), (520, true)]), 0);
    }
}
