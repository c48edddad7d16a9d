//! Simulates closed loops with a known elasticity, and checks the results of probes.
//!
//! Requests go to workers that serve one at a time, in the order of arrival. Without workers, all are served at once.
//! The rate with n in flight is min(n, workers) ÷ the mean service time, whatever its distribution.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use onrush_plan::Random;

use super::course::{BaselineRun, ProbeCourse, ProbeStep, TickCounts};
use super::rate::MeasuredRate;
use crate::run::Elasticity;

const TICK_S: f64 = 0.01;
const FOLLOWS: f64 = Elasticity::FOLLOWS;
const STAYS: f64 = Elasticity::STAYS;

#[derive(Clone, Copy, Debug, PartialEq)]
enum ServiceModel {
    Constant,
    Exponential,
    /// Holds the standard deviation as a multiple of the mean.
    LogNormal(f64),
    /// Half of the requests take five times as long as the others.
    Bimodal,
}

impl ServiceModel {
    /// Draws a service time with mean 1.
    fn draw_service_time(self, random: &mut Random) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Exponential => -(1.0 - random.uniform()).ln(),
            Self::LogNormal(deviation) => {
                let sigma = deviation.mul_add(deviation, 1.0).ln().sqrt();
                let normal =
                    (-2.0 * (1.0 - random.uniform()).ln()).sqrt() * (std::f64::consts::TAU * random.uniform()).cos();
                (sigma * normal - sigma * sigma / 2.0).exp()
            }
            Self::Bimodal => [1.0 / 3.0, 5.0 / 3.0][random.below(2) as usize],
        }
    }
}

/// A target and its requests in flight.
struct SimulatedTarget {
    workers: u32,
    service: ServiceModel,
    mean_s: f64,
    random: Random,
    /// Requests in service: end in nanoseconds, and whether the connection then sends again.
    served: BinaryHeap<Reverse<(u64, bool)>>,
    /// Requests in the queue: whether the connection sends again after the response.
    waiting: VecDeque<bool>,
}

impl SimulatedTarget {
    fn new(workers: u32, service: ServiceModel, mean_s: f64, seed: u64) -> Self {
        let random = Random::new(Random::new(seed).next());
        Self { workers, service, mean_s, random, served: BinaryHeap::new(), waiting: VecDeque::new() }
    }

    fn in_flight(&self) -> u32 {
        (self.served.len() + self.waiting.len()) as u32
    }

    /// Limits the requests in flight, spread evenly over the connections.
    fn limit_in_flight(&mut self, limit: u32, now_ns: u64) {
        let (all, mut place) = (self.in_flight(), 0);
        let mut is_kept = || {
            place += 1;
            place * limit / all > (place - 1) * limit / all
        };
        if limit < all {
            let served = std::mem::take(&mut self.served).into_sorted_vec();
            self.served = served.into_iter().map(|Reverse((at_ns, _))| Reverse((at_ns, is_kept()))).collect();
            self.waiting.iter_mut().for_each(|kept| *kept = is_kept());
        }
        self.waiting.extend((all..limit).map(|_| true));
        self.start_services(now_ns);
    }

    fn start_services(&mut self, now_ns: u64) {
        while self.workers == 0 || self.served.len() < self.workers as usize {
            let Some(kept) = self.waiting.pop_front() else { break };
            let takes_ns = self.service.draw_service_time(&mut self.random) * self.mean_s * 1e9;
            self.served.push(Reverse((now_ns + takes_ns as u64, kept)));
        }
    }

    /// Number of responses up to this moment.
    fn run_until(&mut self, until_ns: u64) -> f64 {
        let mut responses = 0.0;
        while let Some(&Reverse((at_ns, kept))) = self.served.peek().filter(|it| it.0.0 <= until_ns) {
            self.served.pop();
            responses += 1.0;
            self.waiting.extend(kept.then_some(true));
            self.start_services(at_ns);
        }
        responses
    }

    fn expected_rate(&self, in_flight: u32) -> f64 {
        let served = if self.workers == 0 { in_flight } else { in_flight.min(self.workers) };
        f64::from(served) / self.mean_s
    }

    fn elasticity(&self, one: u32, other: u32) -> f64 {
        (self.expected_rate(one) / self.expected_rate(other)).ln() / (f64::from(one) / f64::from(other)).ln()
    }
}

/// Result of a simulated probe.
struct SimulatedProbe {
    /// Elasticity between the run and this rate. `None` if no probe ran.
    result: Option<(MeasuredRate, Elasticity)>,
    took_s: f64,
    has_drifted: bool,
    is_affordable: bool,
}

impl SimulatedProbe {
    /// Range of elasticities that the probe decided for.
    fn decided_range(&self) -> Option<[f64; 2]> {
        let (_, Elasticity { low, high, .. }) = self.result.filter(|_| !self.has_drifted)?;
        let sides = [[FOLLOWS, f64::INFINITY], [f64::NEG_INFINITY, STAYS], [STAYS, FOLLOWS]];
        sides.into_iter().find(|side| low > side[0] && high < side[1])
    }

    /// True if the true elasticity is outside the decided range.
    fn is_wrong(&self, target: &SimulatedTarget, in_flight: u32) -> bool {
        let (Some(side), Some((rate, _))) = (self.decided_range(), self.result) else { return false };
        let truth = target.elasticity(in_flight, rate.in_flight);
        truth < side[0] - 1e-9 || truth > side[1] + 1e-9
    }
}

/// Simulates a run of this many seconds and the probe after it.
fn simulate_probe(target: &mut SimulatedTarget, in_flight: u32, run_s: u64, probe_s: f64) -> SimulatedProbe {
    simulate_probe_after_ticks(target, in_flight, run_s * 10, probe_s)
}

/// Simulates a run of this many tenths of a second and the probe after it.
fn simulate_probe_after_ticks(
    target: &mut SimulatedTarget,
    in_flight: u32,
    run_ticks: u64,
    probe_s: f64,
) -> SimulatedProbe {
    const RUN_TICK_NS: u64 = 100_000_000;
    let tick_ns = (TICK_S * 1e9) as u64;
    target.limit_in_flight(in_flight, 0);
    let counts: Vec<f64> = (1..=run_ticks).map(|tick| target.run_until(tick * RUN_TICK_NS)).collect();
    let last = &counts[super::start_of_last_part(counts.len())..];
    let nothing = SimulatedProbe { result: None, took_s: 0.0, has_drifted: false, is_affordable: false };
    let Some(run) = MeasuredRate::from_end_of_run(last, in_flight) else { return nothing };
    let begin = run_ticks * 10;
    let base = BaselineRun { run: run.in_shorter_ticks(10), other: in_flight / 2, ticks: (probe_s / TICK_S) as u64 };
    let Ok(mut course) = ProbeCourse::start(base, begin, in_flight.into()) else { return nothing };
    target.limit_in_flight(course.initial_in_flight(), begin * tick_ns);
    let (mut tick, mut ticks) = (begin, Vec::new());
    loop {
        ticks.push(target.run_until((tick + 1) * tick_ns));
        tick += 1;
        let of = |from: u64| &ticks[((from - begin) as usize).min(ticks.len())..];
        let order = course.next_step(&TickCounts { tick, in_flight: target.in_flight().into(), ticks: &of });
        match order {
            ProbeStep::Wait => {}
            ProbeStep::Limit(limit) => target.limit_in_flight(limit, tick * tick_ns),
            ProbeStep::End => break,
        }
        assert!(tick <= begin + base.ticks + 1, "the probe exceeds its time");
    }
    let took_s = (tick - begin) as f64 * TICK_S;
    SimulatedProbe { result: course.result(), took_s, has_drifted: course.has_drifted(), is_affordable: true }
}

/// Draws a closed loop at random.
fn draw_closed_loop(seed: u64) -> (SimulatedTarget, u32, String) {
    let mut random = Random::new(Random::new(seed).next());
    let order = |random: &mut Random, low: f64, high: f64| low * (high / low).powf(random.uniform());
    let workers = random.below(25) as u32;
    let service = match random.below(4) {
        0 => ServiceModel::Constant,
        1 => ServiceModel::Exponential,
        2 => ServiceModel::LogNormal(0.2 + random.uniform()),
        _ => ServiceModel::Bimodal,
    };
    let mean_s = order(&mut random, 0.8e-3, 27e-3);
    let in_flight = order(&mut random, 4.0, 1_000.0).round() as u32;
    let target = SimulatedTarget::new(workers, service, mean_s, seed);
    let name = format!(
        "{seed}: {workers} workers, {service:?} {:.1} ms, c = {in_flight}, {:.0}/s",
        mean_s * 1e3,
        target.expected_rate(in_flight)
    );
    (target, in_flight, name)
}

/// Outcomes of situations in one range of rates.
#[derive(Debug, Default)]
struct RangeCounts {
    all: u32,
    decided: u32,
    /// Probes that reported a drift. The targets never change.
    drifted: u32,
    wrong: Vec<String>,
    undecided: Vec<String>,
    took_s: Vec<f64>,
}

impl RangeCounts {
    fn decided_share(&self) -> f64 {
        f64::from(self.decided) / f64::from(self.all.max(1))
    }
}

/// Counts the outcomes of one probe per seed: above 250 responses/s, from 50 to 250, and with a queue that takes longer
/// than a second to halve.
fn count_outcomes(seeds: std::ops::Range<u64>, run_s: u64) -> [RangeCounts; 3] {
    let mut counts = [RangeCounts::default(), RangeCounts::default(), RangeCounts::default()];
    for seed in seeds {
        let (mut target, in_flight, name) = draw_closed_loop(seed);
        let per_s = target.expected_rate(in_flight);
        let told = simulate_probe(&mut target, in_flight, run_s, (run_s as f64 / 5.0).min(6.0));
        let place = match per_s {
            _ if f64::from(in_flight) / 2.0 / per_s > 1.0 => 2,
            per_s if per_s > 250.0 => 0,
            _ => 1,
        };
        let counts = &mut counts[place];
        counts.all += 1;
        counts.decided += u32::from(told.decided_range().is_some());
        if told.is_affordable {
            counts.took_s.push(told.took_s);
        }
        counts.drifted += u32::from(told.has_drifted);
        if told.is_wrong(&target, in_flight) {
            counts.wrong.push(format!("{name}: {:?}", told.result));
        } else if told.decided_range().is_none() {
            counts.undecided.push(format!("{name} ({}): {:?}", told.is_affordable, told.result));
        }
    }
    counts
}

/// A few situations in every test run; 600 per run length with `CHECK_MACHINE`, as in `make check-machine`.
#[test]
fn random_closed_loops_are_never_judged_wrongly() {
    let is_whole = std::env::var_os("CHECK_MACHINE").is_some();
    for (run_s, least, seeds) in [(10, [0.9, 0.55], 600), (30, [0.97, 0.85], 600)] {
        let counts = count_outcomes(0..if is_whole { seeds } else { 40 }, run_s);
        let mut took_s: Vec<f64> = counts.iter().flat_map(|counts| counts.took_s.clone()).collect();
        took_s.sort_by(f64::total_cmp);
        let [median_s, most_s] = [took_s[took_s.len() / 2], took_s[took_s.len() - 1]];
        for (counts, name) in counts.iter().zip(["above 250/s", "from 50/s", "long queues"]) {
            println!("{run_s} s, {name}: {} of {} decided, {:#?}", counts.decided, counts.all, counts.undecided);
            assert!(counts.wrong.is_empty(), "{:#?}", counts.wrong);
            assert!(counts.drifted <= counts.all / 100, "{} of {}", counts.drifted, counts.all);
        }
        println!("{run_s} s: probes took {median_s:.2} s, at most {most_s:.2} s");
        assert!(median_s <= 1.0 && most_s <= run_s as f64 / 5.0 + 0.02, "{median_s} {most_s}");
        if is_whole {
            for (counts, least) in counts.iter().zip(least) {
                assert!(counts.decided_share() >= least, "{run_s} s: {:.3} decided", counts.decided_share());
            }
        } else {
            assert!(counts[0].decided_share() >= 0.8, "{:#?}", counts[0]);
        }
    }
}

/// Numbers of wrong and of decided probes for a target with this many workers, between `in_flight` and half of it.
fn count_wrong_and_decided(workers: u32, in_flight: u32, service: ServiceModel, per_s: f64, count: u64) -> [u64; 2] {
    let mut told = [0, 0];
    for seed in 0..count {
        let served = if workers == 0 { in_flight } else { in_flight.min(workers) };
        let mut target = SimulatedTarget::new(workers, service, f64::from(served) / per_s, seed);
        let result = simulate_probe(&mut target, in_flight, 10, 2.0);
        told[0] += u64::from(result.is_wrong(&target, in_flight));
        told[1] += u64::from(result.decided_range().is_some());
    }
    told
}

#[test]
fn at_most_one_percent_is_misjudged() {
    let is_whole = std::env::var_os("CHECK_MACHINE").is_some();
    let (count, mut all_decided) = (if is_whole { 1_000 } else { 40 }, 0);
    for service in
        [ServiceModel::Constant, ServiceModel::Exponential, ServiceModel::LogNormal(0.4), ServiceModel::Bimodal]
    {
        // ln(16 ÷ 13) ÷ ln(26 ÷ 13) = 0.2996, and ln(13 ÷ 8) ÷ ln(16 ÷ 8) = 0.7004.
        for (workers, in_flight) in [(16, 26), (13, 16)] {
            let [wrong, decided] = count_wrong_and_decided(workers, in_flight, service, 1_000.0, count);
            println!("{service:?}, {workers} workers, c = {in_flight}: {wrong} wrong, {decided} decided of {count}");
            assert!(wrong <= count.div_ceil(100), "{service:?} {workers}: {wrong} of {count}");
            all_decided += decided;
        }
    }
    // Three quarters of 26 keep all 16 workers busy.
    assert!(all_decided >= count / 2, "{all_decided} of {count}");
}

#[test]
fn too_short_runs_are_repeated_first() {
    let mut decided = 0;
    for (seed, workers) in (0..40).zip([0, 2].into_iter().cycle()) {
        let mean_s = f64::from(if workers == 0 { 8 } else { workers }) / 1_000.0;
        let mut target = SimulatedTarget::new(workers, ServiceModel::Exponential, mean_s, seed);
        let told = simulate_probe_after_ticks(&mut target, 8, 10, 4.0);
        assert!(!told.is_wrong(&target, 8), "{seed}: {:?}", told.result);
        decided += u64::from(told.decided_range().is_some());
    }
    assert!(decided >= 38, "{decided} of 40");
}

#[test]
fn random_service_needs_more_responses_than_constant() {
    for (service, most) in [(ServiceModel::Constant, 120.0), (ServiceModel::Exponential, 900.0)] {
        let mut target = SimulatedTarget::new(1, service, 1.5e-3, 1);
        let told = simulate_probe(&mut target, 8, 10, 2.0);
        let (rate, _) = told.result.expect("the probe ran");
        assert!(
            told.decided_range() == Some([f64::NEG_INFINITY, STAYS]) && rate.responses < most,
            "{service:?} {rate:?}"
        );
    }
}

/// The table in docs/measuring.md: share of decided probes after runs of 10 and 30 seconds. 200 probes with
/// `CHECK_MACHINE`.
#[test]
fn probes_decide_at_high_rates() {
    let probes: u64 = if std::env::var_os("CHECK_MACHINE").is_some() { 200 } else { 2 };
    for service in [ServiceModel::Constant, ServiceModel::LogNormal(0.4), ServiceModel::Exponential] {
        for in_flight in [4, 16, 256] {
            let mut row = format!("| {service:?}, c = {in_flight} |");
            for per_s in [50.0, 250.0, 1_000.0, 5_000.0] {
                let share = |run_s: u64| {
                    let mut decided = 0_u64;
                    for seed in 0..probes {
                        let workers = if seed % 2 == 0 { 0 } else { 2 };
                        let mean_s = f64::from(if workers == 0 { in_flight } else { workers }) / per_s;
                        let mut target = SimulatedTarget::new(workers, service, mean_s, seed);
                        let told = simulate_probe(&mut target, in_flight, run_s, run_s as f64 / 5.0);
                        assert!(!told.is_wrong(&target, in_flight), "{service:?} {in_flight} {per_s}");
                        decided += u64::from(told.decided_range().is_some());
                    }
                    100 * decided / probes
                };
                assert!(per_s < 5_000.0 || share(30) >= 95, "{service:?} {in_flight}");
                row += &format!(" {} %, {} % |", share(10), share(30));
            }
            println!("{row}");
        }
    }
}
