//! Rank tests: the probability that a difference at least as consistent arises by chance. Valid for any distribution.

use super::student::LEVEL;

/// Maximum number of figures. With more, the test is no better than Student's and takes long.
const FIGURES_MAX: usize = 50;

/// The exact p of Wilcoxon's signed-rank test on these differences, times the number of comparisons. `None` if there
/// are too few differences to be significant, or too many for the test.
pub fn signed_rank_p(differences: &[f64], comparisons: usize) -> Option<f64> {
    let differences: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let count = differences.len();
    let comparisons = comparisons as f64;
    let all = 2.0_f64.powi(count as i32);
    if count > FIGURES_MAX || 2.0 / all * comparisons > LEVEL {
        return None;
    }
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let ranks = twice_ranks(&sizes);
    let total: usize = ranks.iter().sum();
    // For each sum of ranks, the number of combinations of signs with that sum.
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for &rank in &ranks {
        (rank..=total).rev().for_each(|sum| ways[sum] += ways[sum - rank]);
    }
    let positive: usize = differences.iter().zip(&ranks).filter(|(it, _)| **it > 0.0).map(|(_, rank)| rank).sum();
    let least = positive.min(total - positive);
    let as_far: f64 = ways[..=least].iter().sum();
    Some((2.0 * as_far / all * comparisons).min(1.0))
}

/// The exact p of Mann and Whitney's test on two groups, times the number of comparisons. `None` if there are too few
/// figures for a significant result, or too many for the test.
pub fn rank_sum_p(a: &[f64], b: &[f64], comparisons: usize) -> Option<f64> {
    let comparisons = comparisons as f64;
    // The number of ways in which the figures can be dealt out.
    let all: f64 = (1..=a.len()).map(|drawn| (b.len() + drawn) as f64 / drawn as f64).product();
    if a.len().max(b.len()) > FIGURES_MAX || 2.0 / all * comparisons > LEVEL {
        return None;
    }
    let ranks = twice_ranks(&[a, b].concat());
    let total: usize = ranks.iter().sum();
    // For each number of figures dealt to `a` and each sum of their ranks, the number of ways.
    let mut ways = vec![vec![0.0; total + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for &rank in &ranks {
        for drawn in (1..=a.len()).rev() {
            (rank..=total).for_each(|sum| ways[drawn][sum] += ways[drawn - 1][sum - rank]);
        }
    }
    let expected = total as f64 * a.len() as f64 / ranks.len() as f64;
    let found: usize = ranks[..a.len()].iter().sum();
    let distance = |sum: usize| (sum as f64 - expected).abs();
    let is_as_far = |sum: &usize| distance(*sum) >= distance(found) - 1e-9;
    let as_far: f64 = (0..=total).filter(is_as_far).map(|sum| ways[a.len()][sum]).sum();
    Some((as_far / all * comparisons).min(1.0))
}

/// Ranks of the figures, times two, so that equal figures can share their ranks.
fn twice_ranks(figures: &[f64]) -> Vec<usize> {
    let rank = |figure: &f64| {
        let smaller = figures.iter().filter(|other| *other < figure).count();
        let equal = figures.iter().filter(|other| *other == figure).count();
        2 * smaller + equal + 1
    };
    figures.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_ranks_are_counted_exactly() {
        // All six on one side: one of 64 ways, and its mirror image.
        assert_eq!(signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1), Some(2.0 / 64.0));
        assert_eq!(signed_rank_p(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], 1), Some(2.0 / 64.0));
        // The smallest on the other side: the sums 0 and 1.
        assert_eq!(signed_rank_p(&[-1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1), Some(4.0 / 64.0));
        // Two figures share a rank.
        assert_eq!(signed_rank_p(&[-1.0, 1.0, 3.0, 4.0, 5.0, 6.0], 1), Some(6.0 / 64.0));
        assert_eq!(signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0], 1), None, "it cannot be below 0.05");
        assert_eq!(signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2), None, "nor here, corrected");
        assert_eq!(signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 3), Some(6.0 / 128.0));
    }

    #[test]
    fn rank_test_needs_large_enough_groups() {
        assert_eq!(rank_sum_p(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 1), None);
        let p = rank_sum_p(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 1).unwrap();
        assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
        assert_eq!(rank_sum_p(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2), None);
        // Of 70 ways, four have a rank sum of at most 12, and four of at least 24.
        let p = rank_sum_p(&[5.0, 6.0, 8.0, 9.0], &[1.0, 2.0, 3.0, 7.0], 1).unwrap();
        assert!((p - 8.0 / 70.0).abs() < 1e-12, "{p}");
        // Two figures share a rank. Equally far from the middle are 1 + 2 + 3 + 4.5, with either of the two, and the
        // mirror image.
        let p = rank_sum_p(&[1.0, 2.0, 3.0, 4.0], &[4.0, 6.0, 7.0, 8.0], 1).unwrap();
        assert!((p - 4.0 / 70.0).abs() < 1e-12, "{p}");
    }
}
