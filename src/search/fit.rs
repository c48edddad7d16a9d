//! The limit from all runs together: a probability for every load that it is the highest at which the objective holds
//! in the long run.
//!
//! A percentile holds as long as few enough requests are slower than it allows. The share of slow requests, unlike the
//! percentile of a short run, is right on average however short the runs are, so runs are pooled by it. It is assumed
//! to grow as a power of the load: allowed × (load ÷ limit)^steepness. Slow requests come in clusters, since one waits
//! behind the other; clusters are as good as independent, so that a likelihood counts once a cluster and not once a
//! request. Limit, steepness and size of the clusters are unknown: all combinations of a grid are weighed by how well
//! they explain the runs, and the weights of those with the same limit are added up. A run without such a share held or
//! failed with the probability that follows from the same curve.

use super::excess::SlowExcess;
use super::{ClientLimit, Point, at_first};

/// The probability that the limit is within its interval.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The steepness of the curve, from a server with a long tail to one that fails all at once.
const STEEPNESSES: [f64; 7] = [3.0, 8.0, 20.0, 50.0, 125.0, 320.0, 800.0];

/// Slow requests in a cluster on average, as a multiple of the number that follows from the steepness: the steeper the
/// curve, the longer a queue takes to come and go. Near the limit of a queue, the share of slow requests is e to the
/// power of -steepness × spare capacity, and it takes about (1 ÷ spare capacity)² requests to come and go (heavy
/// traffic).
const CLUSTERS: [f64; 4] = [1.0 / 18.0, 1.0 / 3.0, 2.0, 12.0];

/// The largest clusters are as long as this many of the longest run: larger ones would explain anything.
const RUNS_PER_CLUSTER: f64 = 4.0;

/// The probability that a run was disturbed and has no meaning: no single run may shift the limit by more.
const DISTURBED: f64 = 0.04;

/// The number of limits that are tried, first in all of the range and then where they are likely ...
const STEPS: usize = 60;
/// ... which leaves out this much at either end.
const UNLIKELY: f64 = 1e-3;

/// The limit may be beyond the loads that were tried by this much, as a logarithm.
const BEYOND: f64 = 0.1;

/// From this many times the slow requests that are allowed, a target is overloaded.
const OVERLOADED: f64 = 4.0;

/// Windows with at least this share of slow requests say nothing about the size of clusters: they are full.
const FULL: f64 = 0.5;

/// The limit, by the runs.
#[derive(Clone, Debug)]
pub struct LimitFit {
    /// The lower end of the range, and the length of a step, as logarithms of the load.
    from: f64,
    step: f64,
    /// The probability that the limit is no higher than the end of each step.
    until: Vec<f64>,
    /// The most likely steepness and size of clusters.
    curve: (f64, f64),
}

/// A run, reduced to the data of its likelihood.
struct FitRun {
    load: f64,
    outcome: FitOutcome,
}

/// A run's evidence about the limit.
enum FitOutcome {
    /// How many requests there were and how many of them were slow.
    Share {
        allowed: f64,
        requests: f64,
        slow: f64,
        /// The logarithm of the likelihood of the shares that the windows have, negated.
        own: f64,
        /// The likelihood at the one share that the run has.
        best: f64,
        /// The number of windows that show the size of clusters.
        mixed: f64,
        /// True if the target was overloaded: the run was too short for all the slow requests that there would be.
        is_overloaded: bool,
    },
    /// True if it held.
    Held(bool),
}

impl LimitFit {
    /// The fit of these runs; `None` unless at least one held and one failed.
    pub fn from_points(points: &[Point]) -> Option<Self> {
        let clean = || points.iter().filter(|point| point.is_clean());
        let is_bracketed = clean().any(Point::holds) && clean().any(|point| !point.holds());
        is_bracketed.then_some(())?;
        let runs: Vec<FitRun> = clean().map(FitRun::from_point).collect();
        let (least, most) =
            runs.iter().fold((f64::MAX, f64::MIN), |(least, most), run| (least.min(run.load), most.max(run.load)));
        let coarse = Self::within(&runs, least - BEYOND, most + BEYOND);
        let (low, high) = (coarse.logarithm(UNLIKELY) - coarse.step, coarse.logarithm(1.0 - UNLIKELY) + coarse.step);
        Some(Self::within(&runs, low, high))
    }

    fn within(runs: &[FitRun], from: f64, to: f64) -> Self {
        let step = (to - from) / STEPS as f64;
        let largest = runs.iter().map(FitRun::requests).fold(1.0, f64::max) * RUNS_PER_CLUSTER;
        let mut cells = Vec::with_capacity(STEPS * STEEPNESSES.len());
        for steepness in STEEPNESSES {
            for index in 0..STEPS {
                let limit = from + (index as f64 + 0.5) * step;
                let mut cell = [0.0; CLUSTERS.len()];
                let clusters = clusters(steepness, largest);
                runs.iter().for_each(|run| run.add(limit, steepness, clusters, &mut cell));
                cells.push(cell);
            }
        }
        let (mut best, mut curve) = (f64::MIN, (0.0, 0.0));
        for (index, cell) in cells.iter().enumerate() {
            let steepness = STEEPNESSES[index / STEPS];
            for (cluster, likelihood) in clusters(steepness, largest).into_iter().zip(cell) {
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

    /// The load, in the unit of the points, that the limit exceeds with the probability 1 - `share`.
    pub fn at(&self, share: f64) -> f64 {
        self.logarithm(share).exp()
    }

    /// The interval that has the limit in it with a probability of `CONFIDENCE`.
    pub fn interval(&self) -> (f64, f64) {
        let beyond = (1.0 - CONFIDENCE) / 2.0;
        (self.at(beyond), self.at(1.0 - beyond))
    }

    fn logarithm(&self, share: f64) -> f64 {
        let index = self.until.iter().position(|until| *until >= share).unwrap_or(STEPS - 1);
        let before = if index > 0 { self.until[index - 1] } else { 0.0 };
        let inside = (share - before) / (self.until[index] - before).max(f64::MIN_POSITIVE);
        self.from + (index as f64 + inside.clamp(0.0, 1.0)) * self.step
    }

    /// True if the most likely curve does not explain a run beyond the interval: something disturbed it. Within the
    /// interval, a run may hold or fail.
    pub fn contradicts(&self, point: &Point) -> bool {
        let (limit, (steepness, cluster)) = (self.logarithm(0.5), self.curve);
        let (low, high) = self.interval();
        let is_beyond = if point.holds() { point.load as f64 > high } else { (point.load as f64) < low };
        point.is_clean() && is_beyond && FitRun::from_point(point).is_disturbed(limit, steepness, cluster)
    }
}

/// The target was slower at first if the runs since the first that held contradict one before it, or if all runs do
/// because nothing has failed since. Earlier failures at a load that has held since tell nothing then.
pub fn excuse_cold(points: &mut [Point]) {
    let (first, since) = points.split_at_mut(at_first(points).len());
    let held = since.iter().filter(|point| point.holds()).map(|point| point.load).max();
    let all = || LimitFit::from_points(&[&*first, &*since].concat());
    let fit = LimitFit::from_points(since).or_else(all);
    if let (Some(fit), Some(held)) = (fit, held)
        && first.iter().any(|point| fit.contradicts(point))
    {
        let cold = first.iter_mut().filter(|point| point.is_clean() && point.load <= held);
        cold.for_each(|point| point.blame(Some(ClientLimit::Cold)));
    }
}

impl FitRun {
    fn from_point(point: &Point) -> Self {
        let load = (point.load as f64).ln();
        let Some(SlowExcess { allowed, windows }) = point.share() else {
            return Self { load, outcome: FitOutcome::Held(point.holds()) };
        };
        let (mut requests, mut slow, mut own, mut mixed) = (0.0, 0.0, 0.0, 0.0);
        for window in windows {
            requests += window.requests;
            slow += window.slow;
            if window.slow > 0.0 {
                own -= likelihood(window.slow, window.requests, window.slow / window.requests);
                mixed += if window.slow < FULL * window.requests { 1.0 } else { 0.0 };
            }
        }
        let (allowed, own_share) = (*allowed, slow / requests);
        let mut best = likelihood(slow, requests, own_share) + own;
        let is_overloaded = own_share > OVERLOADED * allowed;
        if is_overloaded {
            // Its queue grows from window to window, which tells nothing about clusters.
            (own, best, mixed) = (own - best, 0.0, 0.0);
        }
        Self { load, outcome: FitOutcome::Share { allowed, requests, slow, own, best, mixed, is_overloaded } }
    }

    /// The logarithms of the likelihood of this run and of one that was disturbed, for a size of clusters.
    fn likelihoods(&self, limit: f64, steepness: f64) -> impl Fn(f64) -> (f64, f64) {
        let power = steepness * (self.load - limit);
        // Neither depends on the size of clusters but by a factor.
        let (this, disturbed, most) = match self.outcome {
            FitOutcome::Share { allowed, requests, slow, own, best, is_overloaded, .. } => {
                let share = (allowed.ln() + power).min(0.0).exp();
                // Runs begin without a queue. No queue says little about a target whose queues take long to form; a
                // queue says at least as much as one request would.
                let most = if slow > share * requests { requests } else { f64::INFINITY };
                let is_enough = is_overloaded && share * requests > slow;
                (if is_enough { best } else { likelihood(slow, requests, share) + own }, best, most)
            }
            FitOutcome::Held(held) => {
                // Half of the runs hold at the limit.
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

    fn add(&self, limit: f64, steepness: f64, clusters: [f64; CLUSTERS.len()], cell: &mut [f64; CLUSTERS.len()]) {
        let mixed = if let FitOutcome::Share { mixed, .. } = self.outcome { mixed } else { 0.0 };
        let likelihoods = self.likelihoods(limit, steepness);
        for (sum, cluster) in cell.iter_mut().zip(clusters) {
            let (this, disturbed) = likelihoods(cluster);
            // The density of a number of slow requests is the lower the larger clusters are.
            *sum += this.max(disturbed) - mixed / 2.0 * cluster.ln();
        }
    }

    fn is_disturbed(&self, limit: f64, steepness: f64, cluster: f64) -> bool {
        let (this, disturbed) = self.likelihoods(limit, steepness)(cluster);
        this < disturbed
    }
}

/// The sizes of clusters that are tried with a steepness, and no larger ones than `most`.
fn clusters(steepness: f64, most: f64) -> [f64; CLUSTERS.len()] {
    let usual = (steepness / STEEP).powi(2);
    CLUSTERS.map(|multiple| (multiple * usual).min(most).max(1.0))
}

/// The log-likelihood of so many slow requests, if each is slow with this probability.
fn likelihood(slow: f64, requests: f64, share: f64) -> f64 {
    let share = share.clamp(CERTAIN, 1.0 - CERTAIN);
    slow * share.ln() + (requests - slow) * (1.0 - share).ln()
}

/// Spare capacity × steepness: the logarithm of 100, for a p99. The multiples include other percentiles.
const STEEP: f64 = 4.6;

/// No request is slow, or fast, more certainly than up to this probability.
const CERTAIN: f64 = 1e-12;

/// A power from which on every run fails.
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
            excuse_cold(&mut points);
            points.iter().filter(|point| point.fault == Some(LoadFailure::Limited(ClientLimit::Cold))).count()
        };
        let first = [(90, false), (90, false), (65, false), (65, true)];
        assert_eq!(cold(&first[..3]), 0);
        assert_eq!(cold(&first), 0, "it may have been chance");
        let held = [(90, true), (112, true), (140, true), (210, true), (421, true)];
        assert_eq!(cold(&[&first[..], &held].concat()), 3);
        // A failure that comes later is no sign of a cold target, nor is one at a load that fails later.
        assert_eq!(cold(&[&first[3..], &first[..3], &held].concat()), 0);
        assert_eq!(cold(&[(600, false), (600, false), (480, true), (600, false), (500, true), (520, true)]), 0);
    }
}
