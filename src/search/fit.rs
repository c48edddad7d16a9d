//! Computes the 95 % interval of the limit: a logistic curve for the probability that a run holds, over the logarithm
//! of the load, and a bootstrap of it.

use super::bracket::doubted;
use super::{Bracket, Ended, Point};
use crate::random::Random;

/// Points further from the limit than this factor say nothing about where it is.
const NEAR: f64 = 1.25;

/// The fewest points near the limit, and the fewest of either kind, that allow an interval.
const POINTS_MIN: usize = 8;
const OF_EACH_MIN: usize = 3;

/// Loads are far from the limit beyond this factor, and this many steps of a whole number.
const FAR: f64 = 1.02;
const STEPS_MIN: f64 = 3.0;

/// One run may have been disturbed; with more that contradict the limit, there is no interval.
pub const AGAINST_MAX: usize = 2;

/// The number of bootstrap samples.
const DRAWS: usize = 200;

/// The widths of the curve that are tried, in logarithms: from a quarter of a per cent to eight per cent of the load.
const WIDTHS: [f64; 6] = [0.0025, 0.005, 0.01, 0.02, 0.04, 0.08];

/// The number of steps between the lowest and the highest load at which the middle of the curve is tried.
const STEPS: u32 = 60;

/// Likelihoods whose logarithms differ by less count as equal.
const AS_GOOD: f64 = 1e-3;

/// The 95 % interval of the limit, in the unit of the points. `None`: there are too few points, or several contradict it,
/// so that random variation alone does not explain them.
pub fn interval(points: &[Point], bracket: Bracket) -> Option<(f64, f64)> {
    let ends = fitted(points, bracket)?;
    (against(points, Some(ends.0), Some(ends.1)).len() < AGAINST_MAX).then_some(ends)
}

fn fitted(points: &[Point], bracket: Bracket) -> Option<(f64, f64)> {
    let (highest, lowest) = (bracket.holds? as f64, bracket.fails? as f64);
    let near = |load: f64| load >= highest / NEAR && load <= lowest * NEAR;
    let runs = points.iter().filter(|point| near(point.load as f64) && point.is_clean());
    let (held, failed): (Vec<&Point>, Vec<&Point>) = runs.partition(|point| point.holds());
    if held.len() < OF_EACH_MIN || failed.len() < OF_EACH_MIN || held.len() + failed.len() < POINTS_MIN {
        return None;
    }
    let logarithms =
        |points: Vec<&Point>| -> Vec<f64> { points.iter().map(|point| (point.load as f64).ln()).collect() };
    let (held, failed) = (logarithms(held), logarithms(failed));
    let mut random = Random::new(1);
    let mut again =
        |from: &[f64]| -> Vec<f64> { from.iter().map(|_| from[random.below(from.len() as u64) as usize]).collect() };
    // Each kind is drawn by itself: without one of them there is no limit.
    let mut limits: Vec<f64> = (0..DRAWS).map(|_| limit(&again(&held), &again(&failed))).collect();
    limits.sort_by(f64::total_cmp);
    let at = |share: f64| limits[(share * (DRAWS - 1) as f64).round() as usize].exp();
    // The interval includes the highest load that held.
    Some((at(0.025).min(highest), at(0.975).max(highest)))
}

/// The runs that contradict the limit: they failed well below it, or held well above it. Near it, a run may do either.
pub fn contradicting(points: &[Point], bracket: Bracket) -> Vec<&Point> {
    match fitted(points, bracket) {
        Some((low, high)) => against(points, Some(low), Some(high)),
        None => against(points, bracket.holds.map(|load| load as f64), bracket.fails.map(|load| load as f64)),
    }
}

fn against(points: &[Point], low: Option<f64>, high: Option<f64>) -> Vec<&Point> {
    let is_far = |less: f64, more: f64| less * FAR < more && less + STEPS_MIN <= more;
    let contradicts = |point: &&Point| {
        let load = point.load as f64;
        if point.holds() {
            high.is_some_and(|high| is_far(high, load))
        } else {
            low.is_some_and(|low| is_far(load, low))
        }
    };
    points.iter().filter(|point| point.is_clean()).filter(contradicts).collect()
}

/// Whether the limit is still unknown, although no signal cut the search short.
pub fn is_inconclusive(points: &[Point], ended: Ended) -> bool {
    let bracket = Bracket::of(points);
    let is_contradicted = interval(points, bracket).is_none() && contradicting(points, bracket).len() >= AGAINST_MAX;
    let is_open = bracket.fails.is_none() && doubted(points, bracket.holds.unwrap_or(0)).is_some();
    match ended {
        Ended::Died => false,
        Ended::Limited(_) => true,
        Ended::Signal => is_contradicted,
        Ended::Time => is_contradicted || bracket.fails.is_none(),
        Ended::Done => is_contradicted || is_open || bracket == Bracket::default(),
    }
}

/// The logarithm of the load at which a run holds as often as not, by the curve that makes these runs most likely. A
/// range of equally likely loads is represented by its middle.
fn limit(held: &[f64], failed: &[f64]) -> f64 {
    let all = || held.iter().chain(failed).copied();
    let (from, to) = (all().fold(f64::MAX, f64::min), all().fold(f64::MIN, f64::max));
    let middle = |step: u32| from + (to - from) * f64::from(step) / f64::from(STEPS);
    let curves = WIDTHS.iter().flat_map(|width| (0..=STEPS).map(move |step| (middle(step), width)));
    let likelihoods: Vec<(f64, f64)> = curves
        .map(|(middle, width)| {
            let unlikely = |signed: f64| (signed / width).exp().ln_1p();
            let held: f64 = held.iter().map(|load| unlikely(load - middle)).sum();
            let failed: f64 = failed.iter().map(|load| unlikely(middle - load)).sum();
            (-(held + failed), middle)
        })
        .collect();
    let best = likelihoods.iter().map(|(likelihood, _)| *likelihood).fold(f64::MIN, f64::max);
    let good = || likelihoods.iter().filter(|(likelihood, _)| *likelihood >= best - AS_GOOD).map(|(_, middle)| middle);
    good().sum::<f64>() / good().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::simulation::points;

    fn interval_of(runs: &[(u64, bool)]) -> Option<(f64, f64)> {
        let points = points(runs);
        interval(&points, Bracket::of(&points))
    }

    #[test]
    fn with_too_few_points_nothing_is_said() {
        let runs = [(95, true), (96, true), (97, true), (99, false), (99, false), (98, true), (98, true)];
        assert_eq!(interval_of(&runs), None);
        let runs = [runs.as_slice(), &[(98, true)]].concat();
        assert_eq!(interval_of(&runs), None, "two that failed");
        let far = [runs.as_slice(), &[(200, false)]].concat();
        assert_eq!(interval_of(&far), None, "one of them far away");
        assert!(interval_of(&[runs.as_slice(), &[(100, false)]].concat()).is_some());
    }

    #[test]
    fn where_several_runs_contradict_the_limit_there_is_no_interval() {
        let agree: Vec<(u64, bool)> = (990..1_010).map(|load| (load, load < 1_000)).chain([(1_000, false)]).collect();
        let one = [agree.as_slice(), &[(700, false)]].concat();
        assert!(interval_of(&one).is_some(), "one run may have been disturbed");
        assert_eq!(interval_of(&[one.as_slice(), &[(710, false)]].concat()), None);
    }

    #[test]
    fn runs_that_agree_leave_a_narrow_interval_around_the_limit() {
        let runs: Vec<(u64, bool)> = (990..1_010).map(|load| (load, load < 1_000)).chain([(1_000, false)]).collect();
        let (low, high) = interval_of(&runs).unwrap();
        assert!(low > 995.0 && low <= 999.0 && (999.0..1_005.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn runs_that_contradict_one_another_leave_a_wide_one() {
        let runs = [
            (920, true),
            (940, true),
            (960, false),
            (960, true),
            (960, true),
            (980, true),
            (980, false),
            (980, false),
            (1_000, true),
            (1_000, false),
            (1_000, false),
            (1_020, false),
            (1_020, false),
            (1_040, false),
        ];
        let (low, high) = interval_of(&runs).unwrap();
        assert!(low < 965.0 && high > 985.0, "{low} {high}");
        assert!(low > 900.0 && high < 1_040.0, "{low} {high}");
    }

    #[test]
    fn runs_far_from_the_limit_contradict_it() {
        let contradicted = |runs: &[(u64, bool)]| -> Vec<u64> {
            let points = points(runs);
            contradicting(&points, Bracket::of(&points)).iter().map(|point| point.load).collect()
        };
        let agree = [(900, true), (1_000, true), (1_010, false), (1_010, false), (1_100, false)];
        assert!(contradicted(&agree).is_empty());
        let near = [agree.as_slice(), &[(990, false), (1_020, true)]].concat();
        assert!(contradicted(&near).is_empty(), "within 2 %");
        let far = [agree.as_slice(), &[(900, false), (1_100, true)]].concat();
        assert_eq!(contradicted(&far), [900, 1_100]);
        assert!(contradicted(&[(1_000, false)]).is_empty(), "nothing is known yet");
    }
}
