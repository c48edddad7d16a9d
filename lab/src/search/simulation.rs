//! Whole searches in virtual time, against targets with one queue and a known limit: the highest rate at which the
//! percentile holds in the long run. The limit comes from a formula where one exists, otherwise from a run of hours.

use std::collections::VecDeque;
use std::time::Duration;

use onrush_load::fixtures;
use onrush_load::record::gate::Judged;
use onrush_plan::Dialect;
use onrush_plan::Random;
use onrush_plan::condition::{ComparisonOperator, Condition, Term, Threshold};
use onrush_plan::search::{Search, SearchVariable};
use onrush_stats::latencies::bin_of;
use onrush_stats::{Latencies, RowFigures};

use super::point::usual_in_flight;
use super::strategy::SearchProgress;
use super::{
    Hopeless, LoadFailure, MeasuredRun, Next, PartCounts, PlannedRun, Point, ResultKind, SearchEnd, SearchResult,
    SlowExcess, Starvation, WINDOWS, Window, mark_cold_failures,
};

/// Points of runs with these results, without any measurements.
pub fn points(runs: &[(u64, bool)]) -> Vec<Point> {
    let point = |&(load, holds): &(u64, bool)| Point {
        load,
        length: Duration::from_secs(2),
        per_s: 0.0,
        completed: 2_000,
        terms: Vec::new(),
        slope_ns_per_s: None,
        stalled: Duration::ZERO,
        excess: None,
        starved: Starvation::default(),
        silent: Duration::ZERO,
        unconnected: 0,
        confirms: false,
        is_early: false,
        is_broken_by_errors: false,
        fault: (!holds).then_some(LoadFailure::Objective),
    };
    runs.iter().map(point).collect()
}

/// Latency that a search allows.
const LIMIT_S: f64 = 0.05;

/// A search over this variable for the highest load with a p99 below 50 ms.
pub fn search(over: SearchVariable) -> Search {
    let p99 = "p99".parse().unwrap();
    let value = Threshold::Time(Duration::from_secs_f64(LIMIT_S));
    let term =
        Term { text: "p99<50ms".to_owned(), metric: p99, name: None, comparison: ComparisonOperator::Less, value };
    Search {
        plan: fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1),
        objective: Condition { terms: vec![term] },
        over,
        budget: Duration::from_secs(60),
        first: None,
        most: over.load_from_number(1e6),
    }
}

/// A target with one queue.
#[derive(Clone, Debug)]
struct SimulatedTarget {
    /// Mean service rate, per second.
    per_s: f64,
    spread: ServiceSpread,
    /// True for random arrivals.
    is_poisson: bool,
    /// In each second, service times differ by a random share of up to this.
    noise: f64,
    /// With more waiting requests than the first number, services are slower by the factor.
    cliff: Option<(usize, f64)>,
    /// The target starts at half its speed, and approaches full speed with this time constant.
    cold_s: Option<f64>,
    /// Until this time, the target responds ten times a second, at any load.
    slow_s: f64,
    /// One run in this many starts with a queue caused by something else on the machine.
    bad_every: Option<u64>,
    seed: u64,
    random: Random,
    now_s: f64,
    free_s: f64,
}

/// Variation of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ServiceSpread {
    Constant,
    Exponential,
    LogNormal(f64),
}

/// A target that serves 500 requests per second, in constant time.
fn uniform_target() -> SimulatedTarget {
    SimulatedTarget {
        per_s: 500.0,
        spread: ServiceSpread::Constant,
        is_poisson: false,
        noise: 0.0,
        cliff: None,
        cold_s: None,
        slow_s: 0.0,
        bad_every: None,
        seed: 0,
        random: Random::new(0),
        now_s: 0.0,
        free_s: 0.0,
    }
}

fn simulated_targets() -> [(&'static str, SimulatedTarget); 5] {
    [
        ("deterministic", uniform_target()),
        ("exponential", SimulatedTarget { spread: ServiceSpread::Exponential, ..uniform_target() }),
        ("cliff", SimulatedTarget { cliff: Some((20, 3.0)), ..uniform_target() }),
        ("cold", SimulatedTarget { cold_s: Some(4.0), ..uniform_target() }),
        ("noisy", SimulatedTarget { spread: ServiceSpread::LogNormal(0.3), noise: 0.1, ..uniform_target() }),
    ]
}

impl SimulatedTarget {
    fn service_s(&mut self, at_s: f64, waiting: usize) -> f64 {
        let drawn = match self.spread {
            ServiceSpread::Constant => 1.0,
            ServiceSpread::Exponential => self.random.exponential(),
            ServiceSpread::LogNormal(spread) => self.random.log_normal(spread),
        };
        let mut factor = 1.0;
        if self.noise > 0.0 {
            let mut second = Random::new(Random::new(self.seed).next().wrapping_add(at_s as u64));
            factor += self.noise * (2.0 * second.uniform() - 1.0);
        }
        if let Some((_, slower)) = self.cliff.filter(|(most, _)| waiting > *most) {
            factor *= slower;
        }
        if let Some(cold_s) = self.cold_s {
            factor *= 1.0 + (-at_s / cold_s).exp();
        }
        drawn * factor / self.per_s
    }

    /// Sends for `length_s` after a settling time. Passes each request's due and done times, relative to the settled
    /// start, to `each`, until `each` returns true. Returns the sending time.
    fn send_requests(
        &mut self,
        per_s: f64,
        settle_s: f64,
        length_s: f64,
        mut each: impl FnMut(f64, f64) -> bool,
    ) -> f64 {
        let begin_s = self.now_s;
        if let Some(every) = self.bad_every
            && self.random.below(every) == 0
        {
            self.free_s = begin_s + 0.9;
        }
        let mut begun = VecDeque::new();
        let mut due_s = begin_s;
        for number in 0..((settle_s + length_s) * per_s) as u64 {
            due_s = if self.is_poisson {
                due_s + self.random.exponential() / per_s
            } else {
                begin_s + number as f64 / per_s
            };
            let start_s = self.free_s.max(due_s);
            if self.cliff.is_some() {
                while begun.front().is_some_and(|at_s| *at_s <= due_s) {
                    begun.pop_front();
                }
                if start_s > due_s {
                    begun.push_back(start_s);
                }
            }
            self.free_s = start_s + self.service_s(start_s, begun.len());
            let done_s = if self.free_s < self.slow_s { (self.free_s * 10.0).ceil() / 10.0 } else { self.free_s };
            if each(due_s - begin_s - settle_s, done_s - begin_s - settle_s) {
                self.now_s = due_s;
                return due_s - begin_s - settle_s;
            }
        }
        self.now_s = begin_s + settle_s + length_s;
        length_s
    }

    /// Makes a run, then waits until the queue is empty.
    fn run(&mut self, search: &Search, step: PlannedRun) -> Point {
        let PlannedRun { load, settle, length, confirms } = step;
        let (per_s, length_s) = (search.over.load_for_users(load), length.as_secs_f64());
        let mut rows = vec![RowFigures::default(); WINDOWS as usize];
        let mut shares = vec![PartCounts::default(); WINDOWS as usize];
        let (mut hopeless, mut over) = (Hopeless::new(&search.objective, per_s * length_s), 0);
        let sent_s = self.send_requests(per_s, settle.as_secs_f64(), length_s, |due_s, done_s| {
            let latency_s = done_s - due_s;
            let place = |at_s: f64| (at_s / length_s * f64::from(WINDOWS)).floor();
            if (0.0..f64::from(WINDOWS)).contains(&place(done_s)) {
                let ns = (latency_s * 1e9) as u64;
                let one = Latencies { sum_ns: ns.into(), max_ns: ns, bins: vec![(bin_of(ns), 1)] };
                rows[place(done_s) as usize].scheduled += &one;
            }
            if due_s >= 0.0 {
                let share = &mut shares[(place(due_s) as usize).min(WINDOWS as usize - 1)];
                share.requests += 1.0;
                share.slow += if latency_s >= LIMIT_S { 1.0 } else { 0.0 };
            }
            // A row becomes known only at its end.
            while f64::from(over) < place(due_s) {
                hopeless.record(&rows[over as usize]);
                over += 1;
            }
            hopeless.is_certain()
        });
        let parts = ((sent_s / length_s * f64::from(WINDOWS)).round() as u32).clamp(1, WINDOWS);
        let (length, length_s) = (length * parts / WINDOWS, length_s * f64::from(parts) / f64::from(WINDOWS));
        let window =
            |row: &RowFigures| Window { completed: row.scheduled.count(), sum_ns: row.scheduled.sum_ns as f64 };
        let windows: Vec<Window> = rows.iter().take(parts as usize).map(window).collect();
        self.now_s = self.now_s.max(self.free_s) + 0.02;
        let excess = SlowExcess { allowed: 0.01, windows: shares };
        let term = Judged { term: "p99<50ms".to_owned(), was: None, holds: excess.ratio() <= 1.0, undecided: false };
        let in_time: u64 = windows.iter().map(|window| window.completed).sum();
        let due = length_s * per_s;
        let chance = if self.is_poisson { 3.0 * due.sqrt() } else { 0.0 };
        let in_flight = usual_in_flight(&windows, length, 1);
        let measured = MeasuredRun {
            reached: Some((due, in_time as f64, chance + in_flight)),
            windows,
            completed: due as u64,
            stalled: Duration::ZERO,
            excess: Some(excess),
            terms: vec![term],
        };
        Point { confirms, ..Point::judge(load, length, measured, Some(LIMIT_S * 1e9)) }
    }

    /// A search that starts at this rate.
    fn search(&mut self, search: &Search, first_per_s: f64) -> (Vec<Point>, SearchEnd) {
        let mut points = Vec::new();
        // The closed loop comes before the first run.
        self.now_s = 1.6;
        loop {
            let course = SearchProgress {
                search,
                first: SearchVariable::Rate.load_from_number(first_per_s),
                points: &points,
                elapsed: Duration::from_secs_f64(self.now_s),
                per_s: &|load| SearchVariable::Rate.load_for_users(load),
            };
            match course.next() {
                Next::Run(step) => {
                    points.push(self.run(search, step));
                    mark_cold_failures(&mut points);
                }
                Next::End(ended) => return (points, ended),
            }
        }
    }

    /// The highest rate at which the percentile holds in the long run.
    fn true_limit(&self) -> f64 {
        match (self.spread, self.noise > 0.0, self.is_poisson) {
            // With uniform arrivals and constant service, nothing waits.
            (ServiceSpread::Constant, false, false) => self.per_s,
            // M/M/1: a response takes longer than t with probability e^-((μ - λ) t).
            (ServiceSpread::Exponential, false, true) => self.per_s - 100f64.ln() / LIMIT_S,
            // D/M/1: the same with probability e^-((1 - σ) μ t), where σ = e^-((1 - σ) ÷ ρ).
            (ServiceSpread::Exponential, false, false) => {
                let rest = 100f64.ln() / (LIMIT_S * self.per_s);
                -rest / (1.0 - rest).ln() * self.per_s
            }
            _ if seed_count() == SEEDS_MIN => LONG_RUN_SHARE * self.per_s,
            _ => self.long_run_limit(),
        }
    }

    /// The limit from runs of hours with other random numbers.
    fn long_run_limit(&self) -> f64 {
        let (mut holds, mut fails) = (0.7 * self.per_s, 1.1 * self.per_s);
        for _ in 0..HALVES {
            let middle = (holds + fails) / 2.0;
            let mut target = Self { seed: 1 << 40, random: Random::new(1 << 41), ..self.clone() };
            let (mut slow, mut all) = (0u64, 0u64);
            target.send_requests(middle, 100.0, LONG_S, |due_s, done_s| {
                all += u64::from(due_s >= 0.0);
                slow += u64::from(due_s >= 0.0 && done_s - due_s >= LIMIT_S);
                false
            });
            *(if slow * 100 <= all { &mut holds } else { &mut fails }) = middle;
        }
        holds
    }
}

/// Bisections for a precision of a tenth of a per cent.
const HALVES: u32 = 9;
const LONG_S: f64 = 10_000.0;

/// Results of many searches against one target.
#[derive(Debug)]
struct Accuracy {
    /// Relative errors of the rates found, ascending; infinite for a search that found none.
    errors: Vec<f64>,
    /// Share of searches whose interval contains the true limit.
    covered: f64,
    /// Share of searches that found a rate.
    confirmed: f64,
    widths: Vec<f64>,
}

impl Accuracy {
    /// Measures one search per seed. Speed and first rate are random: otherwise, many seeds would be one.
    fn measure(target: &SimulatedTarget, budget: Duration, seeds: u64) -> Self {
        let (mut errors, mut widths, mut covered, mut confirmed) = (Vec::new(), Vec::new(), 0u32, 0u32);
        let truth = target.true_limit() / target.per_s;
        // For a target whose time is spent waiting, the true limit depends on the speed.
        let varies = target.spread == ServiceSpread::Constant;
        for seed in 0..seeds {
            let mut random = Random::new(seed ^ 0x5eed_0000);
            let per_s = target.per_s * if varies { 0.8 + 0.4 * random.uniform() } else { 1.0 };
            // A cold target is slow in the closed loop as well.
            let cold = if target.cold_s.is_some() { 0.6 } else { 1.0 };
            let first_per_s = per_s * cold * (0.75 + 0.2 * random.uniform());
            let mut one = SimulatedTarget { per_s, seed, random, ..target.clone() };
            let search = Search { budget, ..search(SearchVariable::Rate) };
            let (points, ended) = one.search(&search, first_per_s);
            let found = SearchResult::new(SearchVariable::Rate, &points, None, ended);
            let share = |load: f64| load / 60.0 / per_s / truth;
            errors.push(match found.kind {
                ResultKind::Highest(load) => (share(load as f64) - 1.0).abs(),
                _ => f64::INFINITY,
            });
            confirmed += u32::from(matches!(found.kind, ResultKind::Highest(_)));
            if let Some((low, high)) = found.interval {
                covered += u32::from(share(low) <= 1.0 && share(high) >= 1.0);
                widths.push(high / low - 1.0);
            }
        }
        errors.sort_by(f64::total_cmp);
        widths.sort_by(f64::total_cmp);
        let share = |number: u32| f64::from(number) / seeds as f64;
        Self { errors, covered: share(covered), confirmed: share(confirmed), widths }
    }

    /// A row of the table in docs/search.md.
    fn table_row(&self, name: &str) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let Self { covered, confirmed, widths, .. } = self;
        let cells = [self.error_quantile(0.5), self.error_quantile(0.95), *covered, quantile(widths, 0.5), *confirmed]
            .map(percent);
        format!("| {name} | {} |", cells.join(" | "))
    }

    fn error_quantile(&self, share: f64) -> f64 {
        quantile(&self.errors, share)
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::INFINITY)
}

/// 400 searches with `CHECK_MACHINE`, as in `make check-machine`.
fn seed_count() -> u64 {
    if std::env::var_os("CHECK_MACHINE").is_some() { 400 } else { SEEDS_MIN }
}

const SEEDS_MIN: u64 = 40;

/// Limit of the noisy target in a run of hours, as a share of its speed. `make check-machine` makes that run.
const LONG_RUN_SHARE: f64 = 0.9367;

#[test]
fn one_minute_searches_find_every_limit() {
    for (name, target) in simulated_targets() {
        let all = Accuracy::measure(&target, Duration::from_secs(60), seed_count());
        let row = all.table_row(name);
        println!("{row}");
        assert!(all.error_quantile(0.5) <= 0.03 && all.error_quantile(0.95) <= 0.1, "{row}");
        assert!(all.covered >= 0.95 && all.confirmed >= 0.95, "{row}");
    }
}

/// The higher the rate, the longer a queue takes to come and go: a twentieth of a second at 200/s, some seconds at
/// 5,000/s.
#[test]
fn intervals_cover_the_limit_at_other_rates() {
    for per_s in [200.0, 1_500.0, 5_000.0] {
        let target = SimulatedTarget { per_s, spread: ServiceSpread::Exponential, ..uniform_target() };
        let all = Accuracy::measure(&target, Duration::from_secs(60), seed_count() / 2);
        let row = all.table_row(&format!("exponential, {per_s}/s"));
        println!("{row}");
        assert!(all.covered >= 0.9 && all.confirmed >= 0.85, "{row}");
    }
}

/// At 74/s, a run has only a few hundred requests, and its queue varies by more than one per cent of them.
#[test]
fn requests_in_flight_do_not_shorten_slow_runs() {
    let step = PlannedRun {
        load: SearchVariable::Rate.load_from_number(70.0),
        settle: Duration::from_secs(1),
        length: Duration::from_secs(2),
        confirms: false,
    };
    for seed in 0..200 {
        let mut target = SimulatedTarget {
            per_s: 129.0,
            spread: ServiceSpread::Exponential,
            seed,
            random: Random::new(seed),
            ..uniform_target()
        };
        assert!(target.true_limit() > 73.0);
        let point = target.run(&search(SearchVariable::Rate), step);
        assert_ne!(point.fault, Some(LoadFailure::Unreached), "{point:?}");
    }
}

#[test]
fn failures_during_slowness_are_no_limit() {
    for (slow_s, first_per_s) in
        [(3.0, 430.0), (5.0, 430.0), (10.0, 430.0), (12.0, 300.0), (15.0, 430.0), (20.0, 430.0)]
    {
        let mut target = SimulatedTarget { slow_s, ..uniform_target() };
        let (points, ended) = target.search(&search(SearchVariable::Rate), first_per_s);
        let found = SearchResult::new(SearchVariable::Rate, &points, None, ended);
        let is_right = |load| (430.0..=505.0).contains(&SearchVariable::Rate.load_for_users(load));
        let is_known = matches!(found.kind, ResultKind::Highest(load) if is_right(load));
        assert!(is_known || found.is_inconclusive(&points), "{slow_s} s, from {first_per_s}/s: {:?}", found.kind);
    }
}

#[test]
fn searches_end_at_the_range_limits() {
    for (holds, end) in [(true, 9), (false, 1)] {
        let runs = run_counted_search(&Search { most: 9, ..search(SearchVariable::Connections) }, 4, |_| holds);
        assert_eq!(runs.last().unwrap().load, end, "{runs:?}");
    }
}

#[test]
fn small_numbers_are_found_exactly() {
    for limit in 1..40 {
        let runs = run_counted_search(&search(SearchVariable::Threads), 10, |load| load <= limit);
        let found = SearchResult::new(SearchVariable::Threads, &runs, None, SearchEnd::Done);
        assert_eq!(found.kind, ResultKind::Highest(limit), "{runs:?}");
        assert_eq!(found.beyond.map(|point| point.load), Some(limit + 1), "{runs:?}");
    }
}

/// The runs of a search over a counted load, with `holds` as the result of each.
fn run_counted_search(search: &Search, first: u64, holds: impl Fn(u64) -> bool) -> Vec<Point> {
    let (mut runs, mut elapsed): (Vec<Point>, _) = (Vec::new(), Duration::ZERO);
    while let Next::Run(step) = (SearchProgress { search, first, points: &runs, elapsed, per_s: &|_| 1_000.0 }).next() {
        elapsed += step.last_due_after();
        let [point] = points(&[(step.load, holds(step.load))]).try_into().unwrap();
        runs.push(Point { confirms: step.confirms, ..point });
        assert!(runs.len() < 60, "{runs:?}");
    }
    runs
}
