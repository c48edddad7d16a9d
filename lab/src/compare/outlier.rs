//! Finds outliers by the median and the median absolute deviation.

/// Distance from the median at which a figure is an outlier, in scaled deviations.
const FAR: f64 = 3.5;

/// Factor that converts the median absolute deviation of a normal distribution to its standard deviation.
const SCALE: f64 = 1.4826;

/// A figure that differs from the median by less than this is never an outlier, however close together the others are:
/// one per cent, as a logarithm.
const NEAR: f64 = 0.01;

/// Minimum number of figures. Among fewer, any figure may look like an outlier.
const FIGURES_MIN: usize = 5;

/// Indices of the outliers among figures, which must be logarithms.
pub fn outlier_indices(figures: &[f64]) -> Vec<usize> {
    let is_far = |index: &usize| figures.len() >= FIGURES_MIN && is_outlier(figures[*index], figures);
    (0..figures.len()).filter(is_far).collect()
}

fn is_outlier(figure: f64, figures: &[f64]) -> bool {
    let middle = median(figures);
    let distances: Vec<f64> = figures.iter().map(|other| (other - middle).abs()).collect();
    let scaled = SCALE * median(&distances);
    scaled > 0.0 && (figure - middle).abs() > (FAR * scaled).max(NEAR)
}

/// The median; for an even number of figures, the mean of the middle two.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_figures_are_outliers() {
        assert_eq!(outlier_indices(&[1.0, 1.1, 0.9, 1.05, 3.0]), [4]);
        assert_eq!(outlier_indices(&[1.0, 1.1, 0.9, 1.05, 1.2]), [0; 0]);
        assert_eq!(outlier_indices(&[1.0, 1.1, 0.9, 3.0]), [0; 0], "too few");
        assert_eq!(outlier_indices(&[1.0, 1.0, 1.0, 1.0, 3.0]), [0; 0], "there is no measure of the distance");
    }
}
