//! Student's interval: how far a mean may be from the true value, and a check that the values are independent enough
//! for it.

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Half the width of the 95 % confidence interval around `centre`, as a share of `centre`. It is computed from
/// independent values whose mean is approximately `centre`, at least two. Zero if all values equal it.
///
/// Deviations are taken from the centre, not from the mean: the percentile of a whole is not the mean of its parts'
/// percentiles, and the interval must be wide enough to include that difference.
pub fn relative_half_width(figures: &[f64], centre: f64) -> f64 {
    let count = figures.len() as f64;
    let squares: f64 = figures.iter().map(|figure| (figure - centre).powi(2)).sum();
    if squares == 0.0 {
        return 0.0;
    }
    student_quantile(count - 1.0) * (squares / (count - 1.0) / count).sqrt() / centre.abs()
}

/// The autocorrelation of values with their neighbours, -1 to 1; zero if all are equal.
pub fn lag_one_autocorrelation(figures: &[f64]) -> f64 {
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    let products: f64 = figures.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares == 0.0 { 0.0 } else { products / squares }
}

/// The 97.5 % quantile of Student's distribution, by the expansion for many degrees of freedom (Abramowitz and Stegun,
/// 26.7.5): accurate to 0.0001 from nine degrees.
fn student_quantile(freedom: f64) -> f64 {
    let terms = [
        (Z.powi(3) + Z) / 4.0,
        (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0,
        (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0,
        (79.0 * Z.powi(9) + 776.0 * Z.powi(7) + 1482.0 * Z.powi(5) - 1920.0 * Z.powi(3) - 945.0 * Z) / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + Z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_tables() {
        for (freedom, quantile) in
            [(9.0, 2.262_157), (19.0, 2.093_024), (29.0, 2.045_230), (60.0, 2.000_298), (159.0, 1.974_996)]
        {
            assert!((student_quantile(freedom) - quantile).abs() < 1e-4, "{freedom}: {}", student_quantile(freedom));
        }
    }

    #[test]
    fn interval_widths_match_student() {
        // Mean 10, deviation 2.
        let figures: Vec<f64> = (0..20).map(|index| if index % 2 == 0 { 8.0 } else { 12.0 }).collect();
        let deviation = (20.0 * 4.0 / 19.0_f64).sqrt();
        let expected = 2.093_024 * deviation / 20.0_f64.sqrt() / 10.0;
        assert!(
            (relative_half_width(&figures, 10.0) - expected).abs() < 1e-5,
            "{}",
            relative_half_width(&figures, 10.0)
        );
        assert!(relative_half_width(&figures, 11.0) * 11.0 > 1.1 * expected * 10.0, "the mean is off");
        assert_eq!((relative_half_width(&[5.0; 20], 5.0), relative_half_width(&[0.0; 20], 0.0)), (0.0, 0.0));
    }

    #[test]
    fn correlated_neighbours_are_detected() {
        let alternating: Vec<f64> = (0..40).map(|index| f64::from(index % 2)).collect();
        let rising: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(lag_one_autocorrelation(&alternating) < -0.9 && lag_one_autocorrelation(&rising) > 0.9);
        assert_eq!(lag_one_autocorrelation(&[3.0; 20]), 0.0);
    }
}
