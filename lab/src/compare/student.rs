//! Student's intervals for a difference of means: paired, or between two groups (Welch).
//!
//! The figures are logarithms, so that a difference is a ratio.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Maximum share of intervals that may miss the true value; equally, the p below which a difference is significant.
pub const LEVEL: f64 = 0.05;

/// The interval of a difference that is correct in 95 % of the cases for all comparisons together, and the probability
/// that an equally large difference arises by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower bound of the difference.
    pub low: f64,
    /// Upper bound of the difference.
    pub high: f64,
    /// Probability that an equally large difference arises by chance, times the number of comparisons (Bonferroni).
    pub p: f64,
    /// The part of each half of the interval that more figures would not reduce.
    pub resolution: f64,
}

impl ConfidenceInterval {
    /// The interval around a mean with this standard error and `freedom` degrees of freedom.
    fn around_mean(mean: f64, error: f64, freedom: f64, comparisons: usize, resolution: f64) -> Option<Self> {
        let beyond = (mean.abs() - resolution).max(0.0);
        if error == 0.0 {
            let p = if beyond == 0.0 { 1.0 } else { 0.0 };
            return Some(Self { low: mean - resolution, high: mean + resolution, p, resolution });
        }
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let comparisons = comparisons as f64;
        let half = error * student.inverse_cdf(1.0 - LEVEL / 2.0 / comparisons) + resolution;
        let p = 2.0 * comparisons * student.sf(beyond / error);
        Some(Self { low: mean - half, high: mean + half, p: p.min(1.0), resolution })
    }

    /// True if the interval excludes zero, so that there is a difference.
    pub fn is_significant(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// The interval of the mean of these differences, as one of several comparisons; `None` for fewer than two differences.
pub fn paired_interval(differences: &[f64], comparisons: usize, resolution: f64) -> Option<ConfidenceInterval> {
    let count = differences.len() as f64;
    let error = (variance(differences)? / count).sqrt();
    ConfidenceInterval::around_mean(mean(differences), error, count - 1.0, comparisons, resolution)
}

/// The interval of the difference between the means of two groups, `b` − `a`, whose variances may differ; `None` if a
/// group has fewer than two figures.
pub fn welch_interval(a: &[f64], b: &[f64], comparisons: usize, resolution: f64) -> Option<ConfidenceInterval> {
    let of = |group: &[f64]| Some((variance(group)? / group.len() as f64, group.len() as f64 - 1.0));
    let ((part_a, freedom_a), (part_b, freedom_b)) = (of(a)?, of(b)?);
    let square = part_a + part_b;
    // Welch and Satterthwaite.
    let freedom = square.powi(2) / (part_a.powi(2) / freedom_a + part_b.powi(2) / freedom_b);
    ConfidenceInterval::around_mean(mean(b) - mean(a), square.sqrt(), freedom, comparisons, resolution)
}

/// True if the first figure, a logarithm, is outside the 99 % prediction interval of the others and at least one per
/// cent away from their mean.
pub fn first_differs(figures: &[f64]) -> bool {
    let Some((first, rest)) = figures.split_first() else { return false };
    let (Some(variance), count) = (variance(rest), rest.len() as f64) else { return false };
    let Ok(student) = StudentsT::new(0.0, 1.0, count - 1.0) else { return false };
    (first - mean(rest)).abs() > (student.inverse_cdf(0.995) * (variance * (1.0 + 1.0 / count)).sqrt()).max(NEAR)
}

/// Smaller differences than this are not worth a remark.
const NEAR: f64 = 0.01;

/// The arithmetic mean; NaN without figures.
pub fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// The sample variance; `None` for fewer than two figures.
fn variance(figures: &[f64]) -> Option<f64> {
    let mean = mean(figures);
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    // The variance of equal figures is a rounding error.
    let squares = if squares <= (mean * f64::EPSILON * 4.0).powi(2) * figures.len() as f64 { 0.0 } else { squares };
    (figures.len() > 1).then(|| squares / (figures.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-6
    }

    #[test]
    fn pairs_have_students_interval() {
        // R: t.test(c(0.1, 0.3, 0.2, 0.4, 0.25)): 95 % 0.1111777 … 0.3888223, p = 0.007490.
        let interval = paired_interval(&[0.1, 0.3, 0.2, 0.4, 0.25], 1, 0.0).unwrap();
        assert!(close(interval.low, 0.111_177_7) && close(interval.high, 0.388_822_3), "{interval:?}");
        assert!((interval.p - 0.007_490).abs() < 1e-5 && interval.is_significant(), "{interval:?}");
        let corrected = paired_interval(&[0.1, 0.3, 0.2, 0.4, 0.25], 10, 0.0).unwrap();
        assert!(close(corrected.p, 10.0 * interval.p) && corrected.low < 0.0 && !corrected.is_significant());
        assert_eq!(paired_interval(&[0.1], 1, 0.0), None);
        assert_eq!(paired_interval(&[0.1; 7], 1, 0.0).map(|it| (it.low == it.high, it.p)), Some((true, 0.0)));
        assert_eq!(paired_interval(&[0.0; 3], 1, 0.0).map(|it| (it.low, it.p)), Some((0.0, 1.0)));
    }

    #[test]
    fn intervals_include_the_resolution() {
        let figures = [0.1, 0.3, 0.2, 0.4, 0.25];
        let (sharp, blunt) = (paired_interval(&figures, 1, 0.0).unwrap(), paired_interval(&figures, 1, 0.2).unwrap());
        assert!(close(blunt.low, sharp.low - 0.2) && close(blunt.high, sharp.high + 0.2) && blunt.p > 0.2, "{blunt:?}");
        let equal = paired_interval(&[0.02; 7], 1, 0.05).unwrap();
        assert!(close(equal.low, -0.03) && close(equal.high, 0.07) && equal.p == 1.0, "{equal:?}");
        assert_eq!(paired_interval(&[0.06; 7], 1, 0.05).unwrap().p, 0.0);
    }

    #[test]
    fn first_figures_are_compared_with_the_others() {
        // Mean 1, deviation 0.1, t 4.6041 with four degrees of freedom: 0.5043 on either side.
        let rest = [0.9, 0.9, 1.1, 1.1, 1.0];
        let with = |first: f64| first_differs(&[&[first], &rest[..]].concat());
        assert!(with(0.49) && !with(0.51) && with(1.51) && !with(1.49));
        assert!(!first_differs(&[9.0, 1.0]) && !first_differs(&[]), "one figure allows no interval");
    }

    #[test]
    fn groups_have_welchs_interval() {
        let (a, b) = ([27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5]);
        let interval = welch_interval(&a, &b, 1, 0.0).unwrap();
        // By hand: means 21.0 and 23.3667, variances 15.724 and 4.48267, 7.6366 degrees of freedom.
        assert!((interval.high + interval.low - 2.0 * 2.366_667).abs() < 1e-5, "{interval:?}");
        assert!((interval.high - interval.low - 2.0 * 4.267).abs() < 0.02, "{interval:?}");
        assert!((0.2..0.25).contains(&interval.p), "{interval:?}");
        assert_eq!((welch_interval(&a, &b[..1], 1, 0.0), welch_interval(&[], &b, 1, 0.0)), (None, None));
    }
}
