//! The variance of figures of batches, such as the responses in equal parts of a run.

/// Largest correlation of neighbouring batches that is taken into account; larger ones are reduced to it.
const CORRELATION_MAX: f64 = 0.6;

/// The variance of the figures of consecutive batches, at least two. Neighbours that are correlated carry less
/// information, and therefore increase the variance.
pub fn batch_variance(figures: &[f64]) -> f64 {
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let deviations: Vec<f64> = figures.iter().map(|figure| figure - mean).collect();
    let squares: f64 = deviations.iter().map(|it| it * it).sum();
    let products: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = if squares > 0.0 { (products / squares).clamp(0.0, CORRELATION_MAX) } else { 0.0 };
    squares / (figures.len() as f64 - 1.0) * (1.0 + correlation) / (1.0 - correlation)
}
