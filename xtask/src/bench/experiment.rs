//! The kinds of measurement, with the figure that counts in each and its limit.

use super::contender::Contender::{self, BareServer, Serve};
use super::load::{Load, Target};

/// How a row is measured.
#[derive(Debug)]
pub enum Kind {
    /// Contenders do the same work in turns, round by round.
    Rounds(Experiment),
    /// onrush does the same work with a feature and without it: the difference is too small to show in processor time.
    Counted(Overhead),
    /// What onrush does to find the limit of a run, as a share of everything it does.
    Evidence(Load),
    /// Thousands of connections at once.
    Storm,
    /// A new connection per request for a long time.
    Steady,
    /// Instructions are counted.
    Instructions,
}

/// Work that contenders do in turns.
#[derive(Debug)]
pub struct Experiment {
    /// The work.
    pub load: Load,
    /// The measure, unless a comparison has its own.
    pub measure: Measure,
    /// More rounds than this tell nothing more.
    pub rounds_max: usize,
    /// Which round counts.
    pub summary: Summary,
    /// The comparisons.
    pub comparisons: &'static [Comparison],
}

/// Which round counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// The median.
    Median,
    /// The round with the lowest value: other load on the machine can only add to it.
    Lowest,
}

/// Work that onrush does with `load.options` and, in another run, with `load.without` instead.
#[derive(Debug)]
pub struct Overhead {
    /// The work.
    pub load: Load,
    /// How much the first may cost, as a multiple of the second.
    pub limit: f64,
}

/// The measure of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Processor time of the generator, user and system, for one request.
    CpuPerRequest,
    /// Bytes of bodies per second of the generator's processor time.
    BytesPerCpu,
    /// The generator's peak memory.
    Memory,
    /// Requests per second, by the clock.
    Rate,
    /// Processor time of the target for one request.
    TargetCpuPerRequest,
    /// The median lateness of requests.
    Lateness50,
    /// The 99th percentile of lateness.
    Lateness99,
    /// How much the rate differs from the requested one.
    RateError,
}

impl Experiment {
    /// The target of a contender: that of the work, unless the contender is itself a target.
    pub fn target(&self, contender: Contender) -> Target {
        match contender {
            Serve => Target::Serve,
            BareServer => Target::Bare,
            _ => self.load.target,
        }
    }

    /// Every contender of onrush here, once, compared with another build of it: it must be no worse.
    pub fn before(&self) -> Vec<Comparison> {
        let mut comparisons: Vec<Comparison> = Vec::new();
        for comparison in self.comparisons {
            let (ours, measure) = (comparison.ours, self.measure(comparison));
            let is_new = |known: &Comparison| known.ours != ours || known.measure != Some(measure);
            if let Some(other) = ours.before()
                && comparisons.iter().all(is_new)
            {
                let limit = if measure.is_better_high() { Limit::AtLeast(1.0) } else { Limit::AtMost(1.0) };
                comparisons.push(Comparison { ours, other: Some(other), limit: Some(limit), measure: Some(measure) });
            }
        }
        comparisons
    }

    /// The measure of a comparison.
    pub fn measure(&self, comparison: &Comparison) -> Measure {
        comparison.measure.unwrap_or(self.measure)
    }
}

impl Measure {
    /// The unit of a value.
    pub fn unit(self) -> &'static str {
        match self {
            Self::CpuPerRequest => "µs CPU/request",
            Self::BytesPerCpu => "GB/CPU-second",
            Self::Memory => "MB peak memory",
            Self::Rate => "requests/s",
            Self::TargetCpuPerRequest => "µs CPU/request of the target",
            Self::Lateness50 => "µs late at the median",
            Self::Lateness99 => "µs late at the 99th percentile",
            Self::RateError => "% off the requested rate",
        }
    }

    /// Whether more of it is better.
    fn is_better_high(self) -> bool {
        matches!(self, Self::Rate | Self::BytesPerCpu)
    }

    /// The value of one round.
    pub fn value(self, sample: &Sample, load: &Load) -> f64 {
        let requests = sample.requests as f64;
        match self {
            Self::CpuPerRequest => sample.cpu_us / requests,
            Self::BytesPerCpu => requests * load.body_bytes as f64 / sample.cpu_us / 1e3,
            Self::Memory => sample.memory_bytes / 1e6,
            Self::Rate => sample.per_second,
            Self::TargetCpuPerRequest => sample.target_cpu_us / requests,
            Self::Lateness50 => sample.lateness_us[0],
            Self::Lateness99 => sample.lateness_us[1],
            Self::RateError => (sample.per_second / f64::from(load.rate) - 1.0).abs() * 100.0,
        }
    }
}

/// The result of one round of one contender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Requests that got a response, as the generator reports.
    pub requests: u64,
    /// Requests per second, as the generator reports.
    pub per_second: f64,
    /// Processor time of the generator.
    pub cpu_us: f64,
    /// The generator's peak memory.
    pub memory_bytes: f64,
    /// Processor time of the target during the round.
    pub target_cpu_us: f64,
    /// The median and the 99th percentile of lateness; zeros for a contender that does not hold a rate.
    pub lateness_us: [f64; 2],
}

/// Two contenders, and the limit of their ratio.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// The numerator.
    pub ours: Contender,
    /// The denominator; none if the value itself counts.
    pub other: Option<Contender>,
    /// The limit, if there is one.
    pub limit: Option<Limit>,
    /// The measure, if it is not that of the row.
    pub measure: Option<Measure>,
}

impl Comparison {
    /// The same, with another measure than the row's.
    pub const fn of(self, measure: Measure) -> Self {
        Self { measure: Some(measure), ..self }
    }
}

/// A limit of the ratio or value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn values_follow_from_what_a_round_gave() {
        let sample = Sample {
            requests: 1_000,
            per_second: 990.0,
            cpu_us: 4_000.0,
            memory_bytes: 2e7,
            target_cpu_us: 3_000.0,
            lateness_us: [2.0, 50.0],
        };
        let Kind::Rounds(Experiment { load, .. }) = ROWS[0].kind else { panic!("the first row is measured in rounds") };
        let load = Load { body_bytes: 1 << 20, rate: 1_000, ..load };
        for (measure, expected) in [
            (Measure::CpuPerRequest, 4.0),
            (Measure::BytesPerCpu, 262.144),
            (Measure::Memory, 20.0),
            (Measure::Rate, 990.0),
            (Measure::TargetCpuPerRequest, 3.0),
            (Measure::Lateness50, 2.0),
            (Measure::Lateness99, 50.0),
            (Measure::RateError, 1.0),
        ] {
            assert!((measure.value(&sample, &load) - expected).abs() < 1e-9, "{measure:?}");
        }
    }
}
