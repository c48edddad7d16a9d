//! A straight line through points, by least squares.

/// The slope of the line and its standard error; `None` for fewer than three points.
pub fn linear_slope(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < 3 {
        return None;
    }
    let number = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / number, y + point.1 / number));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
    let spread = sum(&|x, _| x * x);
    let slope = sum(&|x, y| x * y) / spread;
    let residual = sum(&|x, y| (y - slope * x).powi(2));
    Some((slope, (residual / (number - 2.0) / spread).sqrt()))
}
