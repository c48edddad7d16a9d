//! The due times of one part of a schedule, in order.

use std::time::Duration;

use super::arrivals::Arrivals;
use super::stage::Stage;
use crate::Random;
use crate::part::Partition;

/// Largest number of unsent requests whose due times are drawn only to be counted.
const DRAWN_MAX: u64 = 1_000_000;

/// The stretch of time in which a schedule is executed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScheduleSpan {
    /// Length of the preceding warm-up, in nanoseconds. Its requests do not count.
    pub warmup_ns: u64,
    /// Length after the warm-up, in nanoseconds; `None`: the length of the schedule.
    pub duration_ns: Option<u64>,
    /// Length of the run-on at the last rate, in nanoseconds. Its requests do not count.
    pub run_on_ns: u64,
}

/// The due times of one part of a schedule, in nanoseconds since the start of the run, in ascending order. All are
/// before the end, or before the end of the run-on.
#[derive(Clone, Debug)]
pub struct Dues {
    /// The warm-up, if any, the stages, and the run-on, if any.
    stages: Vec<Stage>,
    /// True during the warm-up, if that is the first stage.
    is_warm_up: bool,
    /// Index of the next request's stage.
    stage: usize,
    /// Start of that stage, in nanoseconds since the start of the run.
    stage_ns: u64,
    /// Number of grains that pass before that stage.
    stage_grains: u128,
    part: Partition,
    stream: DueStream,
    /// End of the run, in nanoseconds since its start; later due times belong to the run-on.
    end_ns: u64,
    /// End of the due times, run-on included, in nanoseconds since the start of the run.
    run_on_until_ns: u64,
    next_ns: u64,
}

/// The position of the next request in the schedule.
#[derive(Clone, Debug)]
enum DueStream {
    /// The request's number, or that of the first request in its burst.
    Counted { number: u64, burst: u64 },
    /// The sum of random distances, in grains of the whole schedule.
    Drawn { grains: u128, random: Random },
}

impl Dues {
    pub(super) fn new(arrivals: Arrivals, stages: &[Stage], part: Partition, span: ScheduleSpan, seed: u64) -> Self {
        let warm_up = stages.first().filter(|_| span.warmup_ns > 0).map(|first| Stage {
            length: Some(Duration::from_nanos(span.warmup_ns)),
            from: first.from,
            to: first.from,
        });
        let stream = match arrivals {
            Arrivals::Uniform => DueStream::Counted { number: part.index, burst: 1 },
            Arrivals::Burst(burst) => DueStream::Counted { number: part.index, burst: burst.get() },
            Arrivals::Poisson => DueStream::Drawn { grains: 0, random: Random::new(seed) },
        };
        let run_on = stages.last().filter(|last| span.run_on_ns > 0 && last.length.is_some()).map(|last| Stage {
            length: None,
            from: last.to,
            to: last.to,
        });
        let end_ns = span.duration_ns.map_or(u64::MAX, |duration_ns| span.warmup_ns.saturating_add(duration_ns));
        let mut dues = Self {
            is_warm_up: warm_up.is_some(),
            stages: warm_up.iter().chain(stages).chain(&run_on).copied().collect(),
            stage: 0,
            stage_ns: 0,
            stage_grains: 0,
            part,
            stream,
            end_ns,
            run_on_until_ns: end_ns.saturating_add(span.run_on_ns),
            next_ns: u64::MAX,
        };
        dues.stream.begin(part);
        dues.find_next_due();
        dues
    }

    /// Due time of the next request, in nanoseconds since the start of the run; [`u64::MAX`]: none is due any more.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// End of the run, in nanoseconds since its start; [`u64::MAX`]: not known yet.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// True if skipping many requests up to this moment at once has the same effect as skipping them one by one. False
    /// if due times are drawn one by one, or if the end of a warm-up, where numbering restarts, lies in between.
    pub fn can_leap(&self, until_ns: u64) -> bool {
        let is_within = || self.stages.first().is_some_and(|warm_up| until_ns <= warm_up.length_ns());
        !matches!(self.stream, DueStream::Drawn { .. }) && (!self.is_warm_up || is_within())
    }

    /// Skips this many requests. Those of a batch are skipped together, because a batch has the due time of its first
    /// request. A batch that extends beyond the end of the warm-up skips nothing after it.
    pub fn skip_batch(&mut self, requests: u64) {
        if self.is_warm_up && matches!(self.stream, DueStream::Drawn { .. }) {
            // Random numbers drawn beyond the end of the warm-up would be missing after it.
            for _ in 0..requests {
                self.stream.skip_requests(1, self.part);
                self.find_next_due();
                if !self.is_warm_up {
                    break;
                }
            }
            return;
        }
        self.stream.skip_requests(requests, self.part);
        self.find_next_due();
    }

    /// Number of the next requests, at most `most`, due before this time, in nanoseconds.
    pub fn count_before(&self, until_ns: u64, most: u64) -> u64 {
        let is_before = |requests: u64| {
            let mut probe = self.clone();
            probe.skip_batch(requests);
            probe.next_ns < until_ns
        };
        if most == 0 || !is_before(0) {
            return 0;
        }
        if !self.can_leap(until_ns) {
            let mut probe = self.clone();
            let is_next_before = |_: &u64| {
                probe.skip_batch(1);
                probe.next_ns < until_ns
            };
            return (1..most).take_while(is_next_before).count() as u64 + 1;
        }
        // Finds the last request before that time: doubling steps, then bisection.
        let (mut before, mut step) = (0, 1);
        while step < most - before && is_before(before + step) {
            before += step;
            step *= 2;
        }
        let mut beyond = (before + step).min(most);
        while beyond - before > 1 {
            let middle = before + (beyond - before) / 2;
            *(if is_before(middle) { &mut before } else { &mut beyond }) = middle;
        }
        before + 1
    }

    /// Number of the next requests due before this time, in nanoseconds. If due times are drawn, requests beyond the
    /// first million are not counted but estimated by their mean number: off by at most a thousandth, and computed at
    /// once.
    pub fn count_about_before(&self, until_ns: u64) -> u64 {
        let most = if matches!(self.stream, DueStream::Drawn { .. }) { DRAWN_MAX } else { u64::MAX };
        let drawn = self.count_before(until_ns, most);
        if drawn < most {
            return drawn;
        }
        let mut rest = self.clone();
        rest.skip_batch(drawn);
        let number = u64::try_from(rest.stream.grains_before_next() / u128::from(Stage::GRAINS)).unwrap_or(u64::MAX);
        rest.stream = DueStream::Counted { number, burst: 1 };
        rest.find_next_due();
        drawn + rest.count_before(until_ns, u64::MAX)
    }

    /// Skips the next requests, at most `most`, due before this time, in nanoseconds. Returns their number.
    pub fn pass_before(&mut self, until_ns: u64, most: u64) -> u64 {
        let mut passed = 0;
        while passed < most && !self.can_leap(until_ns) && self.next_ns < until_ns {
            self.skip_batch(1);
            passed += 1;
        }
        // Many can now be skipped at once, or there are no more.
        let rest = self.count_before(until_ns, most - passed);
        self.skip_batch(rest);
        passed + rest
    }

    /// Finds the due time of the next request, in this stage or a later one.
    fn find_next_due(&mut self) {
        self.next_ns = u64::MAX;
        while let Some(stage) = self.stages.get(self.stage) {
            let (rest, all) = (self.stream.grains_before_next() - self.stage_grains, stage.grains());
            if rest < all {
                let due_ns = self.stage_ns.saturating_add(stage.time_of_grain_ns(rest));
                self.next_ns = if due_ns < self.run_on_until_ns { due_ns } else { u64::MAX };
                return;
            }
            self.stage_ns = self.stage_ns.saturating_add(stage.length_ns());
            self.stage_grains += all;
            self.stage += 1;
            if std::mem::take(&mut self.is_warm_up) {
                self.stage_grains = 0;
                self.stream.begin(self.part);
            }
        }
    }
}

impl DueStream {
    /// Goes to the first request of this part.
    fn begin(&mut self, part: Partition) {
        match self {
            Self::Counted { number, .. } => *number = part.index,
            Self::Drawn { grains, .. } => {
                *grains = 0;
                self.skip_requests(1, part);
            }
        }
    }

    /// Skips this many requests of this part.
    fn skip_requests(&mut self, requests: u64, part: Partition) {
        match self {
            Self::Counted { number, .. } => *number = number.saturating_add(requests.saturating_mul(part.of)),
            Self::Drawn { grains, random } => {
                // The grains of one request of this part, whose rate is the whole rate divided by the number of parts.
                let scale = part.of as f64 * Stage::GRAINS as f64;
                *grains += (0..requests).map(|_| (random.exponential() * scale) as u128).sum::<u128>();
            }
        }
    }

    /// Number of grains of the schedule before the next request.
    fn grains_before_next(&self) -> u128 {
        match self {
            Self::Counted { number, burst } => u128::from(number - number % burst) * u128::from(Stage::GRAINS),
            Self::Drawn { grains, .. } => *grains,
        }
    }
}
