//! The experiments: kinds of work, the figure that counts in each, and its limit.

use super::contender::Contender::{self, BareServer, Serve};
use super::load::{Load, Target};

/// How a row is measured.
#[derive(Debug)]
pub enum Kind {
    /// Contenders do the same work in turns.
    Rounds(Experiment),
    /// onrush does the same work with something and without it: too small a difference for processor time to show.
    Counted(Overhead),
    /// What onrush does to know who was the limit, as a share of all that it does.
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
    /// What counts, unless a comparison says otherwise.
    pub measure: Measure,
    /// More rounds than this tell nothing more.
    pub rounds_max: usize,
    /// Which of the rounds counts.
    pub summary: Summary,
    /// Who is compared with whom.
    pub comparisons: &'static [Comparison],
}

/// Which of the rounds counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// The one in the middle.
    Median,
    /// The one with the lowest value: what a neighbour on the machine does to it can only add.
    Lowest,
}

/// Work that onrush does with `load.options` and, in another run, with `load.without` in their place.
#[derive(Debug)]
pub struct Overhead {
    /// The work.
    pub load: Load,
    /// What the one may cost, as a multiple of the other.
    pub limit: f64,
}

/// What counts in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Processor time of the generator, user and system, for one request.
    CpuPerRequest,
    /// Bytes of bodies for a second of the generator's processor time.
    BytesPerCpu,
    /// The most memory the generator ever had.
    Memory,
    /// Requests per second, by the clock.
    Rate,
    /// Processor time of the target for one request.
    TargetCpuPerRequest,
    /// How late half of the requests left, at most.
    Lateness50,
    /// How late 99 % of the requests left, at most.
    Lateness99,
    /// By how much the rate differs from the one that was asked for.
    RateError,
}

impl Experiment {
    /// What a contender puts its load on: the work's target, except for those who are targets themselves.
    pub fn target(&self, contender: Contender) -> Target {
        match contender {
            Serve => Target::Serve,
            BareServer => Target::Bare,
            _ => self.load.target,
        }
    }

    /// Everything of onrush that is measured here, once, beside another build of it: no worse than that.
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

    /// What counts in a comparison.
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
            Self::RateError => "% beside the rate asked for",
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

/// What one round of one contender gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Requests that were answered, as the generator reports.
    pub requests: u64,
    /// Requests per second, as the generator reports.
    pub per_second: f64,
    /// Processor time of the generator.
    pub cpu_us: f64,
    /// The most memory the generator had.
    pub memory_bytes: f64,
    /// Processor time of the target during the round.
    pub target_cpu_us: f64,
    /// How late half and 99 % of the requests left at most; zeros of a contender that does not hold a rate.
    pub lateness_us: [f64; 2],
}

/// Two contenders, and what their ratio has to be.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Whose value is above the line.
    pub ours: Contender,
    /// Whose value is below it; none where the value itself counts.
    pub other: Option<Contender>,
    /// What has to be reached, if anything.
    pub limit: Option<Limit>,
    /// What counts here, if not what counts in the row.
    pub measure: Option<Measure>,
}

impl Comparison {
    /// The same, of something else than counts in the row.
    pub const fn of(self, measure: Measure) -> Self {
        Self { measure: Some(measure), ..self }
    }
}

/// What has to be reached.
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
