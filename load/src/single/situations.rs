//! Random situations with a known bottleneck, in virtual time: is the verdict right?
//!
//! Let e be the elasticity between the two numbers of requests in flight that the verdict compares. A closed loop is
//! limited by its connections if e > 0.7, and by its target if e < 0.3. The true value comes from long runs without a
//! probe. A schedule is sustainable if its rate is below that of a long closed loop with as many connections.
//! Situations on sockets are in `tests/it/situations.rs`.

use std::fmt::Write as _;
use std::{env, fs, process};

use onrush_engine::backend::sim::Scenario;
use onrush_engine::backend::sim::scenario::{Dist, Fault, Mischief, Pool, Service, Span};
use onrush_plan::{LimitedBy, Plan, Random};

use super::needs_probe;
use crate::cli::{self, Commands, Invocation};
use crate::input::InputFiles;
use crate::judge::JudgedRun;
use crate::probe;
use crate::record::{Document, NoteId, Weight};
use crate::run::Interrupt;
use crate::session::{self, SessionResult};

/// Seeds of every test run. `SITUATIONS_SEED` and `SITUATIONS` override them.
const FIRST: u64 = 1;
const SEEDS: u64 = 24;
/// Number of responses of a long run, which yields the true value.
const LONG: f64 = 20_000.0;

/// An overload from this factor on must be detected, apart from chance in random arrivals.
const OVERLOAD: f64 = 1.01;

/// A target and a load.
struct Situation {
    scenario: Scenario,
    connections: u32,
    duration_s: u64,
    /// Time budget of the probe; `None`: the default.
    probe_s: Option<u64>,
    /// Rate as a share of the target's capacity.
    load: Option<f64>,
    seed: u64,
    name: String,
}

/// The right verdict.
#[derive(Debug)]
enum KnownAnswer {
    /// A closed loop: elasticity and its standard error.
    Loop { elasticity: f64, error: f64 },
    /// A rate as a share of the rate that is possible with these connections, and the standard error of that share.
    /// Infinite if responses are wrong.
    Rate { load: f64, error: f64 },
    /// The target pauses for a large part of the run.
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerClass {
    Right,
    Unclear,
    /// Too little time for a probe.
    Unaffordable,
    Wrong,
}

/// Draws from a list of choices, or from a range.
struct ChoiceDraw(Random);

impl ChoiceDraw {
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize]
    }

    /// Draws a number from `low` to `high` with a uniformly distributed logarithm.
    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.uniform())
    }

    /// Draws a service with this mean, in milliseconds.
    fn draw_service(&mut self, mean_ms: f64) -> (Service, &'static str) {
        let service = Service { ms: mean_ms, sd: 0.0, dist: None, slow: None };
        match self.0.below(5) {
            0 => (service, "constant"),
            1 => (Service { sd: 0.4 * mean_ms, ..service }, "log-normal 0.4"),
            2 => (Service { sd: 1.5 * mean_ms, ..service }, "log-normal 1.5"),
            3 => (Service { dist: Some(Dist::Exp), ..service }, "exponential"),
            _ => {
                let (ms, slow) = (mean_ms / 3.0, Some(mean_ms / 3.0 * 5.0));
                (Service { ms, dist: Some(Dist::Two), slow, ..service }, "two-point")
            }
        }
    }
}

fn draw_situation(seed: u64) -> Situation {
    let mut draw = ChoiceDraw(Random::new(Random::new(seed).next()));
    let per_s = draw.log_uniform(800.0, 6_000.0);
    let workers = draw.one_of(&[1, 2, 4, 8, 16, 64]);
    let (service, dist) = draw.draw_service(f64::from(workers) / per_s * 1e3);
    let pool = Some(Pool { workers, service });
    let mut scenario = Scenario { latency_us: draw.log_uniform(20.0, 500.0), pool, ..Scenario::default() };
    let duration_s = draw.one_of(&[10, 10, 15, 20]);
    let probe_s = draw.one_of(&[None, None, None, Some(6)]);
    let mut name = format!("{workers} workers, {dist}, {per_s:.0}/s");
    if draw.0.below(3) == 0 {
        // One per cent of overload must be distinguishable from one per cent of spare capacity.
        let load = draw.one_of(&[0.8, 0.9, 0.95, 0.98, 1.01, 1.02, 1.05, 1.2]);
        match draw.0.below(8) {
            0 => {
                let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_owned();
                scenario.fault = vec![Fault { every: 50, what: Mischief::Answer(answer), after_bytes: 0 }];
                name += ", 2 % 503";
            }
            1 => {
                scenario.stall = vec![Span { from_s: 4.0, for_s: 0.05 * duration_s as f64 }];
                name += ", silent for 5 %";
            }
            _ => {}
        }
        let connections = draw.one_of(&[2, 8]) * workers + 62;
        let _ = write!(name, ", at {:.0} %", load * 100.0);
        return Situation { scenario, connections, duration_s, probe_s, load: Some(load), seed, name };
    }
    // Around the number that keeps the workers busy all the time, and elsewhere.
    let connections = (f64::from(workers) * draw.log_uniform(0.2, 8.0)).round().clamp(2.0, 256.0) as u32;
    match draw.0.below(6) {
        0 => {
            // Time spent before the pool, without a queue.
            let delay_ms = draw.0.uniform() * 3e3 * f64::from(workers) / per_s;
            let (delay, dist) = draw.draw_service(delay_ms);
            scenario.delay = Some(delay);
            let _ = write!(name, ", delay of {:.1} ms, {dist}", delay.ms);
        }
        1 => {
            scenario.delay = scenario.pool.take().map(|pool| pool.service);
            name = format!("delay of {:.1} ms, {dist}", f64::from(workers) / per_s * 1e3);
        }
        2 => {
            scenario.delay = scenario.pool.take().map(|pool| pool.service);
            scenario.serves = workers;
            name = format!("serves {workers} connections, {:.1} ms, {dist}", f64::from(workers) / per_s * 1e3);
        }
        3 if draw.0.below(2) == 0 => {
            let for_s = 0.4 * duration_s as f64;
            scenario.stall = vec![Span { from_s: 4.0, for_s }];
            name += ", silent for 40 %";
        }
        _ => {}
    }
    let _ = write!(name, ", c = {connections}");
    Situation { scenario, connections, duration_s, probe_s, load: None, seed, name }
}

impl Situation {
    /// Plan of a command line with these arguments.
    fn parse_plan(&self, words: &str) -> Box<Plan> {
        let file = env::temp_dir().join(format!("onrush-situations-{}-{}.toml", process::id(), self.seed));
        fs::write(&file, toml::to_string(&self.scenario).expect("a scenario is a table"))
            .expect("the scenario can be written");
        let words =
            format!("onrush -t1 --seed {} {words} --io sim:{} http://127.0.0.1:8080/", self.seed, file.display());
        match cli::parse(words.split(' ').map(Into::into), &Commands::NONE) {
            Invocation::Run { mut plan, .. } => {
                InputFiles::default().read_files(&mut plan).expect("the plan names no files");
                plan
            }
            other => panic!("{words}: {other:?}"),
        }
    }

    fn run(&self, plan: &Plan) -> SessionResult {
        session::run(plan, &Interrupt::default(), &mut []).expect("the plan can run")
    }

    /// Rate of a long closed loop, in responses per second, and its relative standard error.
    fn long_run_rate(&self, connections: u32, about_per_s: f64) -> (f64, f64) {
        let length_s = (LONG / about_per_s).clamp(15.0, 600.0).ceil();
        let long = Self {
            scenario: Scenario { stall: Vec::new(), fault: Vec::new(), ..self.scenario.clone() },
            seed: self.seed + (1 << 32),
            name: String::new(),
            ..*self
        };
        let plan = long.parse_plan(&format!("-c{connections} --warmup 2s -d{length_s}s --probe off"));
        let outcome = long.run(&plan).outcome;
        let rows: Vec<f64> = outcome.timeline.rows.iter().map(|row| row.completed as f64).collect();
        let groups: Vec<f64> = rows.chunks_exact(rows.len() / 15).map(|rows| rows.iter().sum()).collect();
        let mean = groups.iter().sum::<f64>() / groups.len() as f64;
        let squares = groups.iter().map(|it| (it - mean).powi(2)).sum::<f64>();
        let error = (squares / (groups.len() - 1) as f64 / groups.len() as f64).sqrt() / mean;
        (outcome.totals.counters.completed as f64 / outcome.elapsed.as_secs_f64(), error)
    }

    /// The true answer, for a closed loop between its requests in flight and `other`, and the possible rate.
    fn true_answer(&self, other: u32) -> (KnownAnswer, f64) {
        let about_per_s = self.estimated_rate();
        let (x, error) = self.long_run_rate(self.connections, about_per_s);
        if let Some(load) = self.load {
            let is_disturbed = !self.scenario.fault.is_empty() || !self.scenario.stall.is_empty();
            let asked_per_s = (load * about_per_s).round();
            let load = if is_disturbed { f64::INFINITY } else { asked_per_s / x };
            // The number of requests that become due and their service times are both random.
            let error = 1.0 / (asked_per_s * self.duration_s as f64).sqrt();
            return (KnownAnswer::Rate { load, error }, x);
        }
        if !self.scenario.stall.is_empty() {
            return (KnownAnswer::Silent, x);
        }
        let unit = (f64::from(self.connections) / f64::from(other)).ln();
        let (y, other_error) = self.long_run_rate(other, about_per_s);
        (KnownAnswer::Loop { elasticity: (x / y).ln() / unit, error: error.hypot(other_error) / unit }, x)
    }

    fn estimated_rate(&self) -> f64 {
        match (&self.scenario.pool, &self.scenario.delay) {
            (Some(pool), _) => f64::from(pool.workers) * 1e3 / mean_ms(&pool.service),
            (None, Some(delay)) => {
                let most = if self.scenario.serves > 0 { self.scenario.serves } else { u32::MAX };
                f64::from(self.connections.min(most)) * 1e3 / mean_ms(delay)
            }
            (None, None) => 1e3,
        }
    }

    /// Returns the limit, the verdict, true if the run was too short, and the other number of requests in flight.
    fn verdict(&self) -> (LimitedBy, String, bool, u32) {
        let most = self.connections.max(8_192);
        let load = self.load.map_or(String::new(), |load| {
            format!(" -R{:.0} --arrivals poisson --max-inflight {most}", load * self.estimated_rate())
        });
        let probe = self.probe_s.filter(|_| self.load.is_none()).map_or(String::new(), |s| format!(" --probe {s}s"));
        let plan = self.parse_plan(&format!("-c{} -d{}s{load}{probe}", self.connections, self.duration_s));
        let SessionResult { mut outcome, tail, .. } = self.run(&plan);
        if needs_probe(&plan, &outcome) {
            outcome.probe = probe::run_after(&plan, &mut outcome, tail, &Interrupt::default());
        }
        let is_short = outcome.probe.as_ref().is_some_and(|probe| probe.needed_s.is_some());
        let other = outcome.probe.as_ref().and_then(|probe| probe.in_flight()).map(|(_, other)| other);
        let other = other.unwrap_or((self.connections / 2).max(1));
        let judged = JudgedRun::from_outcome(&plan, &outcome);
        check_notes(&plan, &judged);
        let verdict = judged.document.verdict.expect("something was measured");
        let _ = fs::remove_file(match &plan.io {
            onrush_plan::Io::Sim(file) => file,
            _ => unreachable!(),
        });
        (verdict.limited_by, verdict.to_string(), is_short, other)
    }
}

/// No note repeats the verdict, contradicts it, or gives useless advice.
fn check_notes(plan: &Plan, judged: &JudgedRun) {
    let Document { notes, verdict: Some(verdict), evidence: Some(evidence), ledger, .. } = &judged.document else {
        unreachable!("something was measured")
    };
    let has = |id: NoteId| notes.iter().any(|note| note.id == id);
    let load = &evidence.load;
    let partly = [NoteId::Behind, NoteId::Crowded];
    assert!(verdict.says.iter().all(|id| !has(*id) || partly.contains(id)), "{verdict}: {notes:?}");
    assert!(verdict.limited_by != LimitedBy::Schedule || !has(NoteId::Behind), "{verdict}: {notes:?}");
    let is_held = load.hanging > 0 || load.quiet_s > 0.0 || verdict.limited_by == LimitedBy::Target;
    let is_counted = notes.iter().any(|note| note.text.contains("would be needed"));
    assert!(!is_held || !is_counted, "{verdict}: {notes:?}");
    let printed = judged.lines(&plan.output, false);
    let is_plain = verdict.limited_by != LimitedBy::Unclear
        && ledger.is_empty()
        && notes.iter().all(|note| note.weight != Weight::Doubt);
    assert!(!is_plain || printed.lines().count() <= 3, "{printed}");
}

fn mean_ms(service: &Service) -> f64 {
    service.slow.map_or(service.ms, |slow| f64::midpoint(service.ms, slow))
}

/// Classifies a verdict. A true value within three standard errors of a limit may be on either side.
fn classify(truth: &KnownAnswer, limited_by: LimitedBy, is_short: bool) -> AnswerClass {
    use LimitedBy::{Connections, Knee, Schedule, Target, Unclear};
    let is_right = match (truth, limited_by) {
        (_, Unclear) => return if is_short { AnswerClass::Unaffordable } else { AnswerClass::Unclear },
        (&KnownAnswer::Loop { elasticity, error }, Connections) => elasticity > 0.7 - 3.0 * error,
        (&KnownAnswer::Loop { elasticity, error }, Target) => elasticity < 0.3 + 3.0 * error,
        (&KnownAnswer::Loop { elasticity, error }, Knee) => {
            elasticity > 0.3 - 3.0 * error && elasticity < 0.7 + 3.0 * error
        }
        (&KnownAnswer::Rate { load, error }, Schedule) => load < OVERLOAD + 3.0 * error,
        (&KnownAnswer::Rate { load, error }, Target) => load > 1.0 - 3.0 * error,
        (KnownAnswer::Silent, limited_by) => limited_by == Target,
        _ => false,
    };
    if is_right { AnswerClass::Right } else { AnswerClass::Wrong }
}

/// Runs `SITUATIONS` situations, from `SITUATIONS_SEED` on, where the environment sets them.
#[test]
fn limits_are_never_confidently_wrong() {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let first = number("SITUATIONS_SEED").unwrap_or(FIRST);
    let mut all = Vec::new();
    for seed in first..first + number("SITUATIONS").unwrap_or(SEEDS) {
        let situation = draw_situation(seed);
        let (limited_by, sentence, is_short, other) = situation.verdict();
        let (truth, per_s) = situation.true_answer(other);
        let class = classify(&truth, limited_by, is_short);
        println!(
            "{seed} {class:?} {} [{:?} {} s]: {truth:.3?}, {per_s:.0}/s: {sentence}",
            situation.name, situation.probe_s, situation.duration_s
        );
        all.push((class, situation.load.is_some()));
    }
    let count = |class: AnswerClass, of_rates: bool| all.iter().filter(|&&it| it == (class, of_rates)).count();
    let [right, wrong] = [AnswerClass::Right, AnswerClass::Wrong].map(|class| count(class, false) + count(class, true));
    let [decided, unclear, unaffordable] =
        [AnswerClass::Right, AnswerClass::Unclear, AnswerClass::Unaffordable].map(|class| count(class, false));
    let undecided = count(AnswerClass::Unclear, true);
    // A run at a rate has no probe.
    let counts = format!(
        "{right} right, {unclear} unclear, {unaffordable} not affordable, {wrong} wrong; {undecided} rates unclear"
    );
    println!("{counts}");
    assert_eq!(wrong, 0, "{counts}");
    // A few borderline verdicts weigh much in a small sample.
    let least = if all.len() >= 100 { 0.9 } else { 0.75 };
    assert!(decided as f64 >= least * (decided + unclear) as f64, "{counts}");
}
