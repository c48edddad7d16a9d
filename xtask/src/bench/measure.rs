//! Measures of some work: figures from timed rounds, and counts, which need no rounds.

use serde_json::Value;

use super::contender::Contender;
use super::median::MedianEstimate;
use super::work::BenchWork;

/// Measure of a row, and its unit.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Unit of the values, unique to this measure.
    pub unit: &'static str,
    /// Source of the values.
    pub how: ValueSource,
    /// Limit on the ratio of two builds of onrush. `None` if that ratio is meaningless.
    pub between_builds: Option<MeasureLimit>,
}

/// Source of the values.
#[derive(Clone, Copy, Debug)]
pub enum ValueSource {
    /// A value per round, of which the median is used; `None` if the round has no such value.
    Median(fn(&RoundSample, &BenchWork) -> Option<f64>),
    /// A value per round. Without a comparison, the lowest is used, because other load on the machine can only add to
    /// it.
    Lowest(fn(&RoundSample, &BenchWork) -> Option<f64>),
    /// A count, nearly constant between runs.
    Counted(Counter),
}

/// Events to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Instructions of the workers in user space.
    Instructions,
    /// System calls of the workers.
    SystemCalls,
    /// System calls in which a worker reads its account and the state of its connections. Requests do not need these
    /// calls.
    Evidence,
}

/// Result of one contender in one round.
#[derive(Clone, Debug, Default)]
pub struct RoundSample {
    /// Requests with a response, as reported by the generator.
    pub requests: f64,
    /// Requests per second, as reported by the generator.
    pub per_second: f64,
    /// Running time of the generator, in seconds.
    pub elapsed_s: f64,
    /// Processor time of the generator, user and system, in microseconds.
    pub cpu_us: f64,
    /// The generator's peak memory.
    pub memory_bytes: f64,
    /// Processor time of the target during the round, in microseconds.
    pub target_cpu_us: f64,
    /// onrush's result file, if requested.
    pub result: Value,
}

/// A measure that is better if lower.
const fn lower_is_better(unit: &'static str, figure: fn(&RoundSample, &BenchWork) -> Option<f64>) -> Measure {
    Measure { unit, how: ValueSource::Median(figure), between_builds: Some(MeasureLimit::AtMost(1.0)) }
}

/// A measure that is better if higher.
const fn higher_is_better(unit: &'static str, figure: fn(&RoundSample, &BenchWork) -> Option<f64>) -> Measure {
    Measure { unit, how: ValueSource::Median(figure), between_builds: Some(MeasureLimit::AtLeast(1.0)) }
}

/// A count, which must not grow. Two counts of one program differ by less than the limit.
const fn count_measure(unit: &'static str, counter: Counter) -> Measure {
    Measure { unit, how: ValueSource::Counted(counter), between_builds: Some(MeasureLimit::AtMost(1.005)) }
}

/// Lowest acceptable share of the other side's rate for a limit on processor time to count as reached: saving processor
/// time by sending fewer requests is no gain.
pub const RATE_MIN: MeasureLimit = MeasureLimit::AtLeast(0.98);

/// Processor time of the generator, user and system.
pub const CPU: Measure = lower_is_better("µs CPU/request", |sample, _| Some(sample.cpu_us / sample.requests));
/// Body bytes per processor time of the generator.
pub const BYTES: Measure = higher_is_better("GB/CPU-second", |sample, work| {
    Some(sample.requests * work.body_bytes as f64 / sample.cpu_us / 1e3)
});
/// The generator's peak memory.
pub const MEMORY: Measure = lower_is_better("MB peak memory", |sample, _| Some(sample.memory_bytes / 1e6));
/// Requests per second, by the clock.
pub const RATE: Measure = higher_is_better("requests/s", |sample, _| Some(sample.per_second));
/// Running time of the generator, where each connection sends one request and all are answered at the end.
pub const ELAPSED: Measure = lower_is_better("s until all are open", |sample, _| Some(sample.elapsed_s));
/// Processor time of the target.
pub const TARGET_CPU: Measure =
    lower_is_better("µs CPU/request of the target", |sample, _| Some(sample.target_cpu_us / sample.requests));
/// Median time between the due time and the sending of a request, in microseconds.
pub const LATENESS_50: Measure = Measure {
    how: ValueSource::Lowest(|sample, _| sample.lateness("50")),
    ..lower_is_better("µs late at the median", |_, _| None)
};
/// 99th percentile of the same time.
pub const LATENESS_99: Measure = Measure {
    how: ValueSource::Lowest(|sample, _| sample.lateness("99")),
    ..lower_is_better("µs late at the 99th percentile", |_, _| None)
};
/// Deviation of the rate from the requested one.
pub const RATE_ERROR: Measure = Measure {
    between_builds: None,
    ..lower_is_better("% off the requested rate", |sample, work| {
        Some((sample.per_second / f64::from(work.rate) - 1.0).abs() * 100.0)
    })
};
/// Share of the rate that remains after fifteen seconds.
pub const KEPT: Measure =
    higher_is_better("of the first 5 s' rate in the last 5 s", |sample, _| sample.kept_rate_share());
/// Processor time that onrush uses for other things while requests are sent: watching the target and the machine, and
/// adding up results.
pub const BESIDE: Measure = Measure {
    between_builds: None,
    ..lower_is_better("% of the CPU time outside the workers", |sample, _| {
        let workers = sample.result.get("threads")?.as_array()?.iter().map(|thread| thread.get("cpu_s")?.as_f64());
        let beside_s = sample.result["evidence"]["generator"]["beside_s"].as_f64()?;
        Some(beside_s / (beside_s + workers.sum::<Option<f64>>()?) * 100.0)
    })
};
/// Instructions per request to a simulated server, including the server's.
pub const INSTRUCTIONS: Measure = count_measure("instructions/request, simulated", Counter::Instructions);
/// Instructions per request where the target cannot be simulated. One connection, because with several the number
/// depends on how many responses the kernel delivers at once.
pub const INSTRUCTIONS_ALONE: Measure = count_measure("instructions/request, one connection", Counter::Instructions);
/// System calls per request on epoll, where each request needs separate calls. With io_uring, one call serves as many
/// requests as are ready.
pub const SYSTEM_CALLS: Measure = count_measure("system calls/request, epoll", Counter::SystemCalls);
/// System calls that read accounts and `TCP_INFO`. Their number depends on time, not on requests.
pub const EVIDENCE: Measure =
    Measure { between_builds: None, ..count_measure("calls/request for evidence, epoll", Counter::Evidence) };

impl Measure {
    /// True if the measure is about the generator's processor time.
    pub fn is_cpu(&self) -> bool {
        *self == CPU || *self == BYTES
    }
}

impl PartialEq for Measure {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit
    }
}

impl Counter {
    /// Name of the program that counts these events.
    pub fn program(self) -> &'static str {
        match self {
            Self::Instructions => "valgrind",
            Self::SystemCalls | Self::Evidence => "strace",
        }
    }
}

impl RoundSample {
    /// A percentile of the lateness, in microseconds; `None` if the result has none.
    fn lateness(&self, percentile: &str) -> Option<f64> {
        self.result["open_loop"]["lateness"]["percentiles_us"][percentile].as_f64()
    }

    /// Rate of the seconds 15 to 20, divided by the rate of the first five seconds.
    fn kept_rate_share(&self) -> Option<f64> {
        let rows = self.result.get("timeline")?.as_array()?;
        let completed = |from: f64| -> Option<f64> {
            let start = |row: &Value| row.get("start_s").and_then(Value::as_f64);
            let rows = rows.iter().filter(|row| start(row).is_some_and(|start| (from..from + 4.9).contains(&start)));
            rows.map(|row| row.get("completed")?.as_f64()).sum()
        };
        Some(completed(15.0)? / completed(0.0)?)
    }
}

/// A measure of a contender, alone or compared with another contender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasureComparison {
    pub measure: Measure,
    /// The numerator.
    pub ours: Contender,
    /// The denominator; `None` if the value itself is judged.
    pub other: Option<Contender>,
    /// The limit on the ratio or value; `None`: it is only shown.
    pub limit: Option<MeasureLimit>,
}

/// Limit on a ratio or value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeasureLimit {
    /// Upper limit.
    AtMost(f64),
    /// Lower limit.
    AtLeast(f64),
}

/// Result of comparing an estimate with a limit. If there are two, the greater one applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The median is within the limit.
    Reached,
    /// The median exceeds the limit, but the interval includes it: these rounds are inconclusive.
    WithinNoise,
    /// The whole interval exceeds the limit.
    Missed,
}

impl MeasureLimit {
    /// Compares an estimate with the limit.
    pub fn judge(self, estimate: &MedianEstimate) -> Verdict {
        let &MedianEstimate { median, low, high, .. } = estimate;
        let (is_median_within, is_touched) = match self {
            Self::AtMost(limit) => (median <= limit, low <= limit),
            Self::AtLeast(limit) => (median >= limit, high >= limit),
        };
        match (is_median_within, is_touched) {
            (true, _) => Verdict::Reached,
            (false, true) => Verdict::WithinNoise,
            (false, false) => Verdict::Missed,
        }
    }
}

impl Verdict {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::WithinNoise => "within noise",
            Self::Missed => "missed",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn values_follow_from_round_samples() {
        let row = |second: u32| json!({"start_s": f64::from(second), "completed": if second < 15 { 10 } else { 9 }});
        let sample = RoundSample {
            requests: 1_000.0,
            per_second: 990.0,
            elapsed_s: 1.5,
            cpu_us: 4_000.0,
            memory_bytes: 2e7,
            target_cpu_us: 3_000.0,
            result: json!({
                "threads": [{"cpu_s": 0.003}, {"cpu_s": 0.0009}],
                "evidence": {"generator": {"beside_s": 0.0001}},
                "open_loop": {"lateness": {"percentiles_us": {"50": 2.5, "75": 3, "99": 48}}},
                "timeline": (0..20).map(row).collect::<Vec<_>>(),
            }),
        };
        let work = BenchWork { body_bytes: 1 << 20, rate: 1_000, ..ROWS[0].work };
        let value = |measure: Measure, sample: &RoundSample| match measure.how {
            ValueSource::Median(figure) | ValueSource::Lowest(figure) => figure(sample, &work),
            ValueSource::Counted(_) => None,
        };
        for (measure, expected) in [
            (CPU, 4.0),
            (BYTES, 262.144),
            (MEMORY, 20.0),
            (RATE, 990.0),
            (ELAPSED, 1.5),
            (TARGET_CPU, 3.0),
            (LATENESS_50, 2.5),
            (LATENESS_99, 48.0),
            (RATE_ERROR, 1.0),
            (KEPT, 0.9),
            (BESIDE, 2.5),
        ] {
            let value = value(measure, &sample).unwrap();
            assert!((value - expected).abs() < 1e-9, "{}: {value}", measure.unit);
        }
        for measure in [LATENESS_50, KEPT, BESIDE] {
            assert_eq!(value(measure, &RoundSample::default()), None, "{}", measure.unit);
        }
    }

    #[test]
    fn limits_are_judged_by_the_median() {
        use Verdict::{Missed, Reached, WithinNoise};
        let (at_most, at_least) = (MeasureLimit::AtMost(0.76), MeasureLimit::AtLeast(3.3));
        for (limit, low, median, high, expected) in [
            (at_most, 0.70, 0.76, 0.80, Reached),
            (at_most, 0.76, 0.77, 0.80, WithinNoise),
            (at_most, 0.77, 0.78, 0.80, Missed),
            (at_least, 3.1, 3.3, 3.5, Reached),
            (at_least, 3.1, 3.2, 3.3, WithinNoise),
            (at_least, 3.0, 3.1, 3.2, Missed),
        ] {
            let estimate = MedianEstimate { median, low, high, confidence: 0.97 };
            assert_eq!(limit.judge(&estimate), expected, "{limit:?} {low} {median} {high}");
        }
    }
}
