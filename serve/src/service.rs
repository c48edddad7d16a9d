//! Service times of requests, drawn from one of a few distributions.

use std::time::Duration;

use onrush_plan::Random;

/// A distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ServiceDistribution {
    /// Always this time.
    Constant(Duration),
    /// Log-normal.
    LogNormal {
        /// Mean, not zero.
        mean: Duration,
        /// Standard deviation.
        sd: Duration,
    },
    /// Exponential with this mean.
    Exponential(Duration),
    /// Half of the requests are quick, half are slow.
    Two {
        /// Time of the quick half.
        quick: Duration,
        /// Time of the slow half.
        slow: Duration,
    },
}

/// Maximum delay, one hour; longer times are cut to it when drawn.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(3600);

impl ServiceDistribution {
    /// Draws the service time of one request, independently of all others.
    pub(super) fn draw_service_time(self, random: &mut Random) -> Duration {
        let times = |mean: Duration, factor: f64| mean.mul_f64(factor).min(WAIT_MAX);
        match self {
            Self::Constant(time) => time,
            Self::LogNormal { mean, sd } => times(mean, random.log_normal(sd.as_secs_f64() / mean.as_secs_f64())),
            Self::Exponential(mean) => times(mean, random.exponential()),
            Self::Two { quick, slow } => [quick, slow][random.below(2) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_times_have_the_requested_moments() {
        let (ms, us) = (Duration::from_millis, Duration::from_micros);
        let table = [
            (ServiceDistribution::Constant(ms(5)), 5.0, 0.0),
            (ServiceDistribution::LogNormal { mean: ms(5), sd: us(1_500) }, 5.0, 1.5),
            (ServiceDistribution::LogNormal { mean: ms(5), sd: ms(5) }, 5.0, 5.0),
            (ServiceDistribution::Exponential(ms(5)), 5.0, 5.0),
            (ServiceDistribution::Two { quick: ms(2), slow: ms(8) }, 5.0, 3.0),
        ];
        for (service, mean, deviation) in table {
            let mut random = Random::new(7);
            let times: Vec<f64> =
                (0..100_000).map(|_| service.draw_service_time(&mut random).as_secs_f64() * 1e3).collect();
            let mean_ms = times.iter().sum::<f64>() / times.len() as f64;
            let variance = times.iter().map(|time| (time - mean_ms).powi(2)).sum::<f64>() / times.len() as f64;
            assert!((mean_ms - mean).abs() < 0.05, "{service:?}: a mean of {mean_ms} ms");
            assert!((variance.sqrt() - deviation).abs() < 0.1, "{service:?}: a deviation of {} ms", variance.sqrt());
        }
    }

    #[test]
    fn service_times_are_independent() {
        let (mut random, service) = (Random::new(3), ServiceDistribution::Exponential(Duration::from_secs(1)));
        let times: Vec<f64> =
            (0..100_000).map(|_| service.draw_service_time(&mut random).as_secs_f64() - 1.0).collect();
        let together = times.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / times.len() as f64;
        // The standard deviation of an autocorrelation is 1/√100,000 or 0.003.
        assert!(together.abs() < 0.015, "an autocorrelation of {together}");
    }

    #[test]
    fn drawn_service_times_are_capped() {
        let service = ServiceDistribution::LogNormal { mean: WAIT_MAX, sd: 10 * WAIT_MAX };
        let mut random = Random::new(1);
        let times: Vec<Duration> = (0..1_000).map(|_| service.draw_service_time(&mut random)).collect();
        assert!(times.iter().max() == Some(&WAIT_MAX) && times.iter().any(|time| *time < WAIT_MAX));
    }
}
