//! Service times of a simulated server.

use anyhow::ensure;
use onrush_plan::Random;
use serde::{Deserialize, Serialize};

use super::nanos;

/// Service times, under the names of the embedded target (`onrush serve --help`).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Average service time in milliseconds; the shorter of the two if `slow` is set.
    pub ms: f64,
    /// Standard deviation in milliseconds. If it is not zero, the times are log-normal.
    #[serde(default)]
    pub sd: f64,
    /// A distribution other than constant or log-normal.
    pub dist: Option<Dist>,
    /// The slower of two service times, in milliseconds; required with [`Dist::Two`], forbidden otherwise.
    pub slow: Option<f64>,
}

/// A distribution that needs no standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dist {
    /// Exponential.
    Exp,
    /// Each request takes `ms` or `slow`, at random with equal probability.
    Two,
}

/// Distribution of service times around their mean.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// No variation.
    #[default]
    Constant,
    /// Exponential.
    Exponential,
    /// Log-normal, with this standard deviation as a share of the mean.
    LogNormal(f64),
    /// Half of the requests take the shorter time, the other half this many times as long.
    Two(f64),
}

impl Service {
    /// Checks that the service time is positive, and that its distribution has exactly its parameters.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Self { ms, sd, dist, slow } = *self;
        ensure!(ms.is_finite() && ms > 0.0, "ms = {ms}: must be a time above zero");
        ensure!(sd == 0.0 || dist.is_none(), "sd is for log-normal times; leave out dist");
        ensure!(
            slow.is_some() == (dist == Some(Dist::Two)),
            "slow and dist = \"two\" need each other: slow is the time of the slow half"
        );
        let slow = slow.unwrap_or_default();
        ensure!(sd.is_finite() && sd >= 0.0, "sd = {sd}: must be a standard deviation of zero or more");
        ensure!(slow.is_finite() && slow >= 0.0, "slow = {slow}: must be a time of zero or more");
        Ok(())
    }

    /// Distribution of the service times, as factors of `ms`.
    pub(super) fn spread(&self) -> Spread {
        match self.dist {
            Some(Dist::Exp) => Spread::Exponential,
            Some(Dist::Two) => Spread::Two(self.slow.unwrap_or_default() / self.ms),
            None if self.sd > 0.0 => Spread::LogNormal(self.sd / self.ms),
            None => Spread::Constant,
        }
    }

    /// The service time of one request in nanoseconds.
    pub(super) fn draw_ns(&self, random: &mut Random) -> u64 {
        nanos(self.ms * 1e3 * self.spread().draw(random))
    }
}

impl Spread {
    /// Draws the factor of one request.
    pub(super) fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Exponential => random.exponential(),
            Self::LogNormal(deviation) => random.log_normal(deviation),
            Self::Two(slower) => [1.0, slower][random.below(2) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_times_have_the_requested_moments() {
        for (text, mean, deviation) in [
            ("ms = 5", 5.0, 0.0),
            ("ms = 5\nsd = 1.5", 5.0, 1.5),
            ("ms = 5\ndist = 'exp'", 5.0, 5.0),
            ("ms = 2\ndist = 'two'\nslow = 8", 5.0, 3.0),
        ] {
            let service: Service = toml::from_str(text).unwrap();
            service.check().unwrap();
            let mut random = Random::new(7);
            let times: Vec<f64> = (0..100_000).map(|_| service.draw_ns(&mut random) as f64 / 1e6).collect();
            let mean_ms = times.iter().sum::<f64>() / times.len() as f64;
            let variance = times.iter().map(|time| (time - mean_ms).powi(2)).sum::<f64>() / times.len() as f64;
            assert!((mean_ms - mean).abs() < 0.05, "{text}: a mean of {mean_ms} ms");
            assert!((variance.sqrt() - deviation).abs() < 0.1, "{text}: a deviation of {} ms", variance.sqrt());
        }
    }
}
