//! Random situations with a known bottleneck, on sockets: the verdict, and the correctness of numeric advice.
//!
//! A closed loop with n requests in flight has min(n, workers) ÷ service time responses per second, whatever the
//! distribution of the times. Where the machine is slower, the true value is measured. Half of the situations run while
//! a busy loop takes processor time. `SITUATIONS` in the environment is their number, `SITUATIONS_SEED` the first seed.
//! Situations in virtual time are in `load/src/single/situations.rs`.

use std::collections::BTreeMap;
use std::env;
use std::ops::{AddAssign, RangeInclusive};
use std::process::{Child, Command, Stdio};

use onrush_plan::Random;
use serde_json::Value;

use crate::harness::{Context, Onrush, Scratch, Served, cases, target, url};
use crate::results::{document, number};

cases! {
    target_rates_match_computation (Once);
    random_verdicts_are_never_confidently_wrong (Once);
    advice_reaches_predicted_rates (Once);
}

/// Number of situations: enough for meaningful shares.
const SITUATIONS: u64 = 72;
const ADVISED: u64 = 32;
/// The elasticity from which on more requests in flight count as increasing the rate.
const FOLLOWS: f64 = 0.7;
const STAYS: f64 = 0.3;
/// An elasticity within this distance of a limit between two verdicts counts as near it.
const NEAR: f64 = 0.1;
/// A machine that reaches this share of a known rate is not the limit.
const REACHED: f64 = 0.95;
/// Error of a computed elasticity, due to times that the target adds to its workers' times.
const COMPUTED: f64 = 0.03;
/// A rate within this distance of a capacity counts as equal to it.
const AT_CAPACITY: f64 = 0.02;

/// A process that occupies a processor until this is dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Self(command.spawn().expect("the shell starts"))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn first_seed() -> u64 {
    from_environment("SITUATIONS_SEED", 1)
}

fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

/// A log-uniform number in this range.
fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.uniform())
}

#[derive(Clone, Copy)]
pub enum ServiceKind {
    Constant,
    Exponential,
    /// Holds the standard deviation as a multiple of the mean.
    LogNormal(f64),
    /// Half of the requests take five times as long as the others.
    Bimodal,
}

impl ServiceKind {
    fn drawn(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Constant,
            1 => Self::Exponential,
            2 => Self::LogNormal(0.2 + random.uniform()),
            _ => Self::Bimodal,
        }
    }

    /// Standard deviation as a multiple of the mean.
    fn variation(self) -> f64 {
        match self {
            Self::Constant => 0.0,
            Self::Exponential => 1.0,
            Self::LogNormal(deviation) => deviation,
            Self::Bimodal => 2.0 / 3.0,
        }
    }
}

/// Workers that each serve one request at a time; 0: all requests are served at once.
#[derive(Clone, Copy)]
pub struct ServerWorkers {
    pub workers: u32,
    pub ms: f64,
    pub service: ServiceKind,
}

impl ServerWorkers {
    pub fn path(self) -> String {
        let Self { workers, ms, service } = self;
        let (ms, others) = match service {
            ServiceKind::Constant => (ms, String::new()),
            ServiceKind::Exponential => (ms, "dist=exp".to_owned()),
            ServiceKind::LogNormal(deviation) => (ms, format!("sd={:.3}", deviation * ms)),
            ServiceKind::Bimodal => (ms / 3.0, format!("dist=two&slow={:.3}", ms / 3.0 * 5.0)),
        };
        let path =
            if workers == 0 { format!("/delay/{ms:.3}?") } else { format!("/pool?workers={workers}&ms={ms:.3}&") };
        (path + &others).trim_end_matches(['?', '&']).to_owned()
    }

    /// Responses per second with this many requests in flight.
    pub fn per_s(self, in_flight: u32) -> f64 {
        let served = if self.workers == 0 { in_flight } else { in_flight.min(self.workers) };
        f64::from(served) / self.ms * 1e3
    }

    /// Responses per second with this many requests in flight on this machine, which adds to the times; `None` if it is
    /// too slow. Computed for workers that are never idle, otherwise measured with constant times.
    fn per_s_here(self, context: &Context, server: &Served, in_flight: u32) -> Option<f64> {
        let known = self.per_s(in_flight);
        if (1..=in_flight).contains(&self.workers) {
            return Some(known);
        }
        let path = Self { service: ServiceKind::Constant, ..self }.path();
        let program = context.onrush().words(&format!("-t1 -c{in_flight} --probe off --warmup 200ms -d700ms"));
        let document = document(program.word(served_url(server, &path)), &Scratch::new("situation")).1;
        // Requests in flight, by their latency: a partial burst at the end does not matter.
        let per_s =
            number(&document, "/evidence/load/in_flight") / number(&document, "/evidence/latency/mean_us") * 1e6;
        (per_s > 0.5 * known).then_some(per_s)
    }
}

pub fn served_url(server: &Served, path: &str) -> String {
    format!("http://{}{path}", server.address)
}

/// Responses per second of runs without a probe.
fn reached(context: &Context, url: &str, words: &str) -> f64 {
    let program = context.onrush().words("--probe off").words(words).word(url);
    number(&document(program, &Scratch::new("situation")).1, "/evidence/load/rate_per_s")
}

/// The range of a known elasticity.
#[derive(Clone, Copy)]
pub struct Truth {
    low: f64,
    high: f64,
}

impl Truth {
    /// From pairs of rates at two numbers of requests in flight: two standard errors, plus `more`.
    fn new([c, other]: [u32; 2], pairs: [[f64; 2]; 3], more: f64) -> Self {
        let each =
            pairs.map(|[c_per_s, other_per_s]| (c_per_s / other_per_s).ln() / (f64::from(c) / f64::from(other)).ln());
        let mean = each.iter().sum::<f64>() / 3.0;
        let squares = each.iter().map(|it| (it - mean).powi(2)).sum::<f64>();
        let error = 2.0 * (squares / 6.0).sqrt() + more;
        Self { low: mean - error, high: mean + error }
    }

    /// From known rates at two numbers of requests in flight, from three looks at the machine.
    pub fn computed(numbers: [u32; 2], pairs: [[f64; 2]; 3]) -> Self {
        Self::new(numbers, pairs, COMPUTED)
    }

    /// From runs with these numbers of requests in flight, three times each in turn.
    pub fn measured(context: &Context, url: &str, threads: u32, numbers: [u32; 2]) -> Self {
        let rate = |c: u32| reached(context, url, &format!("-t{} -c{c} --warmup 200ms -d1500ms", threads.min(c)));
        Self::new(numbers, [(); 3].map(|()| numbers.map(rate)), 0.0)
    }

    /// Judges a verdict on a closed loop.
    pub fn judge(self, limited_by: &str) -> Class {
        let Self { low, high } = self;
        let middle = f64::midpoint(low, high);
        let is_near = |limit: f64| (middle - limit).abs() < NEAR + (high - low) / 2.0;
        match limited_by {
            "unclear" if is_near(STAYS) || is_near(FOLLOWS) => Class::Between,
            "unclear" => Class::Unclear,
            "connections" => Class::from(high > FOLLOWS),
            "target" => Class::from(low < STAYS),
            "knee" => Class::from(high > STAYS && low < FOLLOWS),
            _ => Class::Wrong,
        }
    }
}

impl std::fmt::Display for Truth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "elasticity {:.2} to {:.2}", self.low, self.high)
    }
}

/// How correct a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Right,
    Unclear,
    /// Unclear, and too close to the limit between two verdicts for a probe of this length.
    Between,
    /// The machine itself was the limit: other processes used its processors, and the verdict says so.
    Machine,
    Wrong,
}

impl From<bool> for Class {
    fn from(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Wrong }
    }
}

/// Verdicts by correctness.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerdictCounts {
    pub right: u32,
    pub machine: u32,
    pub unclear: u32,
    pub between: u32,
    pub wrong: u32,
}

impl VerdictCounts {
    pub fn all(self) -> u32 {
        self.decided() + self.unclear + self.between
    }

    pub fn decided(self) -> u32 {
        self.right + self.machine + self.wrong
    }
}

impl AddAssign<Class> for VerdictCounts {
    fn add_assign(&mut self, class: Class) {
        *match class {
            Class::Right => &mut self.right,
            Class::Unclear => &mut self.unclear,
            Class::Between => &mut self.between,
            Class::Machine => &mut self.machine,
            Class::Wrong => &mut self.wrong,
        } += 1;
    }
}

/// Counts of several kinds of situations, as a table.
#[derive(Default)]
pub struct VerdictTable(BTreeMap<String, VerdictCounts>);

impl VerdictTable {
    pub fn add(&mut self, kind: &str, class: Class) {
        *self.0.entry(kind.to_owned()).or_default() += class;
    }

    pub fn counts_of(&self, kind: &str) -> VerdictCounts {
        self.0.get(kind).copied().unwrap_or_default()
    }

    pub fn wrong(&self) -> u32 {
        self.0.values().map(|counts| counts.wrong).sum()
    }

    pub fn undecided(&self) -> u32 {
        self.0.values().map(|counts| counts.unclear + counts.between).sum()
    }

    pub fn print(&self) {
        println!(
            "| | all | decided | of these the machine | unclear | of these near a limit | wrong |\n|---|---|---|---|---|---|---|"
        );
        for (kind, counts) in &self.0 {
            let VerdictCounts { machine, unclear, between, wrong, .. } = *counts;
            let (all, decided) = (counts.all(), counts.decided());
            println!("| {kind} | {all} | {decided} | {machine} | {} | {between} | {wrong} |", unclear + between);
        }
    }
}

/// The verdict of a run, with other facts.
pub struct RunVerdict {
    pub document: Value,
    pub limited_by: String,
    pub sentence: String,
    /// The numbers of requests in flight that the verdict compares.
    pub compared: Option<[u32; 2]>,
    pub per_s: f64,
}

impl RunVerdict {
    pub fn from_program(program: Onrush) -> Self {
        let document = document(program, &Scratch::new("situation")).1;
        let verdict = &document["verdict"];
        let limited_by = verdict["limited_by"].as_str().expect("a limit").to_owned();
        let (sentence, per_s) = (sentence(verdict), number(&document, "/evidence/load/rate_per_s"));
        let compared = compared(verdict["reason"].as_str().expect("a reason"));
        Self { limited_by, sentence, compared, per_s, document }
    }

    /// Duration of the probe, in seconds.
    fn probe_s(&self) -> Option<f64> {
        self.document.pointer("/evidence/probe/duration_s").and_then(Value::as_f64).filter(|&seconds| seconds > 0.0)
    }

    /// Judges a verdict that the generator is the limit: true of a machine that kept a target below its known rate.
    pub fn is_machine(&self, known_per_s: f64) -> Option<Class> {
        (self.limited_by == "generator_cpu").then_some(if self.per_s < REACHED * known_per_s {
            Class::Machine
        } else {
            Class::Wrong
        })
    }
}

/// The two numbers in `667/s with 8 in flight, 666/s with 4 in flight`.
fn compared(reason: &str) -> Option<[u32; 2]> {
    let mut numbers = reason.match_indices(" in flight").filter_map(|(at, _)| {
        let (before, number) = reason[..at].rsplit_once(' ')?;
        before.ends_with("/s with").then(|| number.replace(',', "").parse().ok())?
    });
    Some([numbers.next()?, numbers.next()?])
}

fn sentence(verdict: &Value) -> String {
    let text = |key: &str| verdict[key].as_str().unwrap_or("-").to_owned();
    format!("{}: {}: {}; {}", text("limited_by"), text("summary"), text("reason"), text("advice"))
}

struct TriedSituation {
    class: Class,
    kind: String,
    probe_s: Option<f64>,
    row: String,
}

/// A closed loop at a random target whose computed rate is in this range, in responses per second.
fn closed_loop(context: &Context, random: &mut Random, length: &str, per_s: RangeInclusive<f64>) -> TriedSituation {
    let server = Served::start();
    let (target, c) = loop {
        let workers = random.below(25) as u32;
        let target = ServerWorkers { workers, service: ServiceKind::drawn(random), ms: between(random, 0.8, 27.0) };
        let c = between(random, 4.0, 1_000.0).round() as u32;
        if per_s.contains(&target.per_s(c)) {
            break (target, c);
        }
    };
    let url = served_url(&server, &target.path());
    let judged = RunVerdict::from_program(context.onrush().words(&format!("-t1 -c{c} {length}")).word(&url));
    let other = judged.compared.map_or(c / 2, |[_, other]| other);
    let at_c = target.per_s_here(context, &server, c);
    let error = 3.0 * target.service.variation() / number(&judged.document, "/evidence/load/completed").sqrt();
    let is_known = at_c.is_some_and(|known| (judged.per_s / known - 1.0).abs() <= 1.0 - REACHED + error);
    let numbers = [c, other];
    let known = is_known.then(|| [(); 3].map(|()| numbers.map(|n| target.per_s_here(context, &server, n))));
    let (truth, by) = match known {
        Some([[Some(a), Some(b)], [Some(c), Some(d)], [Some(e), Some(f)]]) => {
            (Truth::computed(numbers, [[a, b], [c, d], [e, f]]), "computed")
        }
        _ => (Truth::measured(context, &url, 1, numbers), "measured"),
    };
    let class = judged.is_machine(at_c.unwrap_or(f64::INFINITY)).unwrap_or_else(|| truth.judge(&judged.limited_by));
    let kind = match judged.per_s {
        per_s if f64::from(c) / 2.0 / per_s > 1.0 => "closed loop, c/2 ÷ rate > 1 s",
        per_s if per_s > ABOVE => "closed loop, above 250/s",
        50.0.. => "closed loop, 50 to 250/s",
        _ => "closed loop, below 50/s",
    };
    let row = format!("{} -c{c}, {:.0}/s, {by} {truth}: {}", target.path(), judged.per_s, judged.sentence);
    TriedSituation { class, kind: kind.to_owned(), probe_s: judged.probe_s(), row }
}

/// Minimum number of situations of a kind for a meaningful share.
const KIND_MIN: u32 = 8;
/// From this many responses per second on, nearly all closed loops are decided.
const ABOVE: f64 = 250.0;

/// A rate from 0.4 to 1.4 of a known capacity.
fn rate(context: &Context, random: &mut Random, length: &str) -> TriedSituation {
    const CAPACITY_MAX: f64 = 3_000.0;
    let server = Served::start();
    let (workers, service) = (1 + random.below(24) as u32, ServiceKind::drawn(random));
    // With more, the machine may be the limit.
    let least_ms = (f64::from(workers) / CAPACITY_MAX * 1e3).max(0.8);
    let target = ServerWorkers { workers, service, ms: between(random, least_ms, 27.0) };
    let c = between(random, f64::from(2 * workers).max(4.0), 1_000.0).round() as u32;
    let capacity = target.per_s(c);
    let asked = ((0.4 + random.uniform()) * capacity).round().max(1.0);
    let load = asked / capacity;
    let (arrivals, spread) = one_of(random, &[("", 0.0), ("--arrivals poisson ", 1.0)]);
    let words = format!("-t1 -c{c} -R{asked:.0} {arrivals}{length}");
    let judged = RunVerdict::from_program(context.onrush().words(&words).word(served_url(&server, &target.path())));
    let completed = number(&judged.document, "/evidence/load/completed").max(1.0);
    let error = 3.0 * (f64::hypot(service.variation(), spread) / completed.sqrt());
    let is_at = (load - 1.0).abs() <= AT_CAPACITY.max(error);
    let class = match judged.limited_by.as_str() {
        "unclear" if is_at => Class::Right,
        "unclear" => Class::Unclear,
        "schedule" if load < 1.0 => Class::Right,
        "target" if load > 1.0 => Class::Right,
        "schedule" | "target" if is_at => Class::Between,
        _ => judged.is_machine(asked.min(capacity)).unwrap_or(Class::Wrong),
    };
    let row = format!(
        "{} {words}, {:.1} % of its capacity, reached {:.0}/s: {}",
        target.path(),
        load * 100.0,
        judged.per_s,
        judged.sentence
    );
    TriedSituation { class, kind: "rate".to_owned(), probe_s: None, row }
}

/// A target that stops, refuses or hangs, and a generator that shares its processor with three others.
fn observed(context: &Context, random: &mut Random) -> TriedSituation {
    let server = target();
    let (path, words, wanted) = one_of(
        random,
        &[
            ("/freeze?every=600ms&ms=400", "-c8 -d3s", "target"),
            ("/status/503", "-c8 -R500 -d3s", "target"),
            ("/freeze?every=1s&ms=500", "-c8 -R500 -d3s", "target"),
            ("/prefork?serves=4&ms=5", "-c16 -d3s", "target"),
            ("/", "-c64 -d3s --spin off", "generator_cpu"),
        ],
    );
    let hog = "taskset -p -c 0 $$ >/dev/null; hog() { while :; do :; done; }; hog & a=$!; hog & b=$!; hog & c=$!
               nice -n 19 \"$0\" \"$@\"; code=$?; kill $a $b $c; exit $code";
    let program = if wanted == "target" { context.onrush() } else { context.after(hog) };
    let judged = RunVerdict::from_program(program.words("-t1").words(words).word(url(&server, path)));
    let row = format!("{path} {words}: {}", judged.sentence);
    let class = Class::from(judged.limited_by == wanted);
    TriedSituation { class, kind: "observed".to_owned(), probe_s: judged.probe_s(), row }
}

/// For any distribution of service times. Where workers are idle, the machine adds to the times, and the computed rate
/// is an upper bound.
fn target_rates_match_computation(context: &Context) {
    let server = Served::start();
    for service in [ServiceKind::Constant, ServiceKind::Exponential, ServiceKind::LogNormal(0.8), ServiceKind::Bimodal]
    {
        for (workers, ms, c) in [(0, 9.0, 12), (8, 9.0, 5), (8, 9.0, 12), (1, 2.0, 40)] {
            let target = ServerWorkers { workers, ms, service };
            let url = served_url(&server, &target.path());
            let judged =
                RunVerdict::from_program(context.onrush().words(&format!("-t1 -c{c} -d4s --probe off")).word(url));
            let (known, completed) = (target.per_s(c), number(&judged.document, "/evidence/load/completed"));
            let error = 1.0 - REACHED + 3.0 * service.variation() / completed.sqrt();
            let row = format!("{} -c{c}: {:.1}/s, computed {known:.1}/s", target.path(), judged.per_s);
            println!("{row}");
            let least = if (1..=c).contains(&workers) { 1.0 - error } else { 0.5 };
            assert!((least..=1.0 + error).contains(&(judged.per_s / known)), "{row}");
        }
    }
}

fn random_verdicts_are_never_confidently_wrong(context: &Context) {
    let situations = from_environment("SITUATIONS", SITUATIONS);
    let (mut table, mut probes_s) = (VerdictTable::default(), Vec::new());
    for index in 0..situations {
        let seed = first_seed() + index;
        let mut random = Random::new(Random::new(seed).next());
        let beside = (index % 2 == 1).then(BusyLoop::start);
        let TriedSituation { class, kind, probe_s, row } = match index % 9 {
            2 | 6 => rate(context, &mut random, "-d10s"),
            7 => closed_loop(context, &mut random, "-d10s", 50.0..=ABOVE),
            8 => observed(context, &mut random),
            _ => closed_loop(context, &mut random, "-d10s", 0.0..=f64::INFINITY),
        };
        // onrush's view of its own threads is correct on a busy machine.
        let is_taken = beside.is_some() || row.contains("the hypervisor took");
        let class = if row.contains(": generator_cpu: ") && is_taken { Class::Machine } else { class };
        let probe = probe_s.map(|probe_s| format!(" (probe {probe_s:.2} s)")).unwrap_or_default();
        println!("{index} {class:?} {}{row}{probe}", if beside.is_some() { "beside a busy loop: " } else { "" });
        table.add(&kind, class);
        probes_s.extend(probe_s);
    }
    table.print();
    probes_s.sort_by(f64::total_cmp);
    if let (Some(middle), Some(most)) = (probes_s.get(probes_s.len() / 2), probes_s.last()) {
        println!("{} probes took {middle:.2} s, at most {most:.2} s", probes_s.len());
    }
    assert_eq!(table.wrong(), 0, "a verdict is confidently wrong");
    if situations >= SITUATIONS {
        for (kind, least) in
            [("closed loop, above 250/s", 0.9), ("closed loop, 50 to 250/s", 0.55), ("rate", 0.9), ("observed", 1.0)]
        {
            // With only a few situations of a kind, one more or less is chance.
            let Some(counts) = Some(table.counts_of(kind)).filter(|counts| counts.all() >= KIND_MIN) else { continue };
            assert!(f64::from(counts.decided()) >= least * f64::from(counts.all()), "{kind}: {counts:?}");
        }
    }
}

/// Parameters of a service with this mean in milliseconds.
fn service(random: &mut Random, ms: f64) -> String {
    match random.below(5) {
        0 => format!("ms={ms:.3}"),
        1 => format!("ms={ms:.3}&sd={:.3}", 0.4 * ms),
        2 => format!("ms={ms:.3}&sd={ms:.3}"),
        3 => format!("ms={ms:.3}&dist=exp"),
        _ => format!("ms={:.3}&dist=two&slow={:.3}", ms / 3.0, ms / 3.0 * 5.0),
    }
}

/// Responses per second in the slots of a probe with this many requests in flight.
fn rate_in_probe(document: &Value, in_flight: u64) -> f64 {
    let slots = document.pointer("/evidence/probe/slots").and_then(Value::as_array).expect("there was a probe");
    let of_count = slots.iter().filter(|slot| slot["in_flight"] == in_flight);
    let (responses, seconds) = of_count.fold((0.0, 0.0), |(responses, seconds), slot| {
        let batches: Vec<f64> =
            slot["completed"].as_array().expect("batches").iter().filter_map(Value::as_f64).collect();
        let tick_s = slot["tick_s"].as_f64().expect("a time");
        (responses + batches.iter().sum::<f64>(), seconds + batches.len() as f64 * tick_s)
    });
    responses / seconds
}

fn advice_reaches_predicted_rates(context: &Context) {
    let (mut errors, mut silent) = (Vec::new(), 0);
    for index in 0..ADVISED {
        let mut random = Random::new(Random::new(first_seed() + 1_000 + index).next());
        let beside = (index % 2 == 1).then(BusyLoop::start);
        let server = target();
        let (c, per_s) = (one_of(&mut random, &[2_u32, 4, 8, 16]), 2_200.0 * 1.5_f64.powf(random.uniform()));
        let service = service(&mut random, f64::from(c) / per_s * 1e3);
        // Some targets have too few workers for half as many additional connections.
        let workers = c + one_of(&mut random, &[c, c, (c / 4).max(1)]);
        let path = match random.below(3) {
            0 => format!("/delay/{}", service.trim_start_matches("ms=").replacen('&', "?", 1)),
            _ => format!("/pool?workers={workers}&{service}"),
        };
        let program = context.onrush().words(&format!("-t1 -c{c} -d1500ms --probe up:8s")).word(url(&server, &path));
        let document = document(program, &Scratch::new("advice")).1;
        let verdict = &document["verdict"];
        let advice = verdict["advice"].as_str().and_then(|advice| advice.strip_prefix("use -c "));
        let advice = advice.and_then(|advice| advice.split_once(" for about "));
        let busy = if beside.is_some() { "beside a busy loop: " } else { "" };
        let Some((more, expected)) = advice else {
            println!("{index} no number: {busy}{path} -c{c}: {}", sentence(verdict));
            silent += 1;
            continue;
        };
        let expected: f64 = expected.trim_end_matches("/s").replace(',', "").parse().expect("a number");
        // The machine may be slower by now, for any number of connections.
        let at_c = rate_in_probe(&document, u64::from(c));
        let per_s = |c: &str| reached(context, &url(&server, &path), &format!("-t1 -c{c} --warmup 200ms -d2s"));
        let mut each = [(); 3].map(|()| at_c * per_s(more) / per_s(&c.to_string()));
        each.sort_by(f64::total_cmp);
        let is = each[1];
        println!(
            "{index} {:+.1} %: {busy}{path} -c{c}: {expected} with -c {more}, reached {is:.0}",
            (is / expected - 1.0) * 100.0
        );
        errors.push((is / expected - 1.0).abs());
    }
    println!("{} with a number, {silent} without", errors.len());
    assert!(errors.len() >= 15, "{silent} have no number");
    assert!(errors.iter().all(|&error| error <= 0.1), "{errors:?}");
}
