//! Finds figures far from the others, by their median and the median of the distances from it.

/// How many scaled distances away a figure is an outlier.
const FAR: f64 = 3.5;

/// The factor from the median distance of normally distributed figures to their standard deviation.
const SCALE: f64 = 1.4826;

/// A figure this close to the middle is no outlier, however close the others are: one per cent, of logarithms.
const NEAR: f64 = 0.01;

/// With fewer figures, any figure may seem far away.
const FIGURES_MIN: usize = 5;

/// The indices of the figures, logarithms, that are far from the others.
pub fn outliers(figures: &[f64]) -> Vec<usize> {
    let is_far = |index: &usize| figures.len() >= FIGURES_MIN && is_far(figures[*index], figures);
    (0..figures.len()).filter(is_far).collect()
}

fn is_far(figure: f64, figures: &[f64]) -> bool {
    let middle = median(figures);
    let distances: Vec<f64> = figures.iter().map(|other| (other - middle).abs()).collect();
    let scaled = SCALE * median(&distances);
    scaled > 0.0 && (figure - middle).abs() > (FAR * scaled).max(NEAR)
}

/// The figure in the middle, or the mean of the two in the middle.
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
    fn what_is_far_from_the_others_is_found() {
        assert_eq!(outliers(&[1.0, 1.1, 0.9, 1.05, 3.0]), [4]);
        assert_eq!(outliers(&[1.0, 1.1, 0.9, 1.05, 1.2]), [0; 0]);
        assert_eq!(outliers(&[1.0, 1.1, 0.9, 3.0]), [0; 0], "too few");
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 3.0]), [0; 0], "there is no measure of the distance");
    }
}
