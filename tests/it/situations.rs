//! Situations with a known bottleneck, drawn at random, on sockets: the verdict, and whether advice with a number holds.
//!
//! The truth comes from runs with as many requests in flight, and with those of the probe. Those in virtual time
//! are in `src/single/situations.rs`. Beside a busy loop the machine itself may be the limit, and a verdict may say so.

use std::env;
use std::process::{Child, Command, Stdio};

use onrush::serve::Server;
use onrush_plan::Random;
use serde_json::Value;

use crate::harness::{Context, Scratch, cases, target, url};
use crate::results::{document, number};

cases! {
    verdicts_of_random_situations_are_not_confidently_wrong (Once);
    what_is_advised_reaches_what_was_said (Once);
}

const SITUATIONS: u64 = 24;
const ADVISED: u64 = 32;

/// A process that takes all the time of a processor until this is dropped.
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

/// With `SITUATIONS_SEED` in the environment, from this seed on.
fn first_seed() -> u64 {
    env::var("SITUATIONS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

/// The parameters of a service that takes so many milliseconds on average.
fn service(random: &mut Random, ms: f64) -> String {
    match random.below(5) {
        0 => format!("ms={ms:.3}"),
        1 => format!("ms={ms:.3}&sd={:.3}", 0.4 * ms),
        2 => format!("ms={ms:.3}&sd={ms:.3}"),
        3 => format!("ms={ms:.3}&dist=exp"),
        _ => format!("ms={:.3}&dist=two&slow={:.3}", ms / 3.0, ms / 3.0 * 5.0),
    }
}

/// What runs without a probe reach: responses per second.
fn reached(context: &Context, server: &Server, path: &str, words: &str) -> f64 {
    let program = context.onrush().words("-t1 --probe off").words(words).word(url(server, path));
    number(&document(program, &Scratch::new("situation")).1, "/evidence/load/rate_per_s")
}

/// Responses per second with as many requests in flight as in the probe, three times each in turn, as the truth
/// and its error: the elasticity.
fn elasticity(context: &Context, server: &Server, path: &str, [c, other]: [u32; 2]) -> (f64, f64) {
    let unit = (f64::from(c) / f64::from(other)).ln();
    let each = [(); 3].map(|()| {
        let [x, y] = [c, other].map(|c| reached(context, server, path, &format!("-c{c} --warmup 200ms -d1500ms")));
        (x / y).ln() / unit
    });
    let mean = each.iter().sum::<f64>() / 3.0;
    let squares = each.iter().map(|it| (it - mean).powi(2)).sum::<f64>();
    (mean, (squares / 6.0).sqrt())
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

/// How right a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Right,
    Unclear,
    /// Unclear, and the truth is so near to the limit between two verdicts that no probe of this length can tell.
    Between,
    /// There was too little time for a probe.
    Unaffordable,
    /// The machine itself was the limit: others took its processors, which is what the verdict says.
    Machine,
    Wrong,
}

/// An elasticity that is no further than this from a limit between two verdicts is near it.
const NEAR: f64 = 0.1;

impl From<bool> for Class {
    fn from(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Wrong }
    }
}

/// A closed loop at a random target: how right its verdict is, and a row to print.
fn closed_loop(context: &Context, random: &mut Random) -> (Class, String) {
    let server = target();
    let (workers, per_s) = (one_of(random, &[1_u32, 2, 4, 8, 16]), 2_500.0 * 2.0_f64.powf(random.uniform()));
    let service = service(random, f64::from(workers) / per_s * 1e3);
    let share = one_of(random, &[0.4, 0.8, 1.15, 2.0, 4.0]);
    let c = ((f64::from(workers) * share).round() as u32).max(2);
    let path = match random.below(4) {
        0 => format!("/delay/{}", service.trim_start_matches("ms=").replacen('&', "?", 1)),
        1 => format!("/prefork?serves={workers}&{service}"),
        _ => format!("/pool?workers={workers}&{service}"),
    };
    let program = context.onrush().words(&format!("-t1 -c{c} -d4s --probe 4s")).word(url(&server, &path));
    let mut document = document(program, &Scratch::new("situation")).1;
    let verdict = document["verdict"].take();
    if document.pointer("/evidence/probe/needed_s").is_some() {
        return (Class::Unaffordable, format!("{path} -c{c}: {}", sentence(&verdict)));
    }
    // The two numbers that the sentence names.
    let other = document.pointer("/evidence/probe/slots/1/in_flight").and_then(Value::as_u64);
    let other = other.map_or(c / 2, |other| other as u32);
    let (e, error) = elasticity(context, &server, &path, [c, other]);
    // Those that are not served hang, which is seen.
    let hang = path.starts_with("/prefork") && c > workers;
    let class = match verdict["limited_by"].as_str().expect("a limit") {
        "unclear" if [0.3, 0.7].iter().any(|limit| (e - limit).abs() < NEAR + 2.0 * error) => Class::Between,
        "unclear" => Class::Unclear,
        "connections" => Class::from(e + 2.0 * error > 0.7),
        "target" => Class::from(e - 2.0 * error < 0.3 || (hang && sentence(&verdict).contains("had no response"))),
        "knee" => Class::from(e + 2.0 * error > 0.3 && e - 2.0 * error < 0.7),
        _ => Class::Wrong,
    };
    (class, format!("{path} -c{c}: elasticity {e:.2} ± {error:.2}: {}", sentence(&verdict)))
}

fn rate(context: &Context, random: &mut Random) -> (Class, String) {
    let server = target();
    let workers = one_of(random, &[1_u32, 4, 16]);
    let service = service(random, f64::from(workers) / 800.0 * 1e3);
    let path = format!("/pool?workers={workers}&{service}");
    let c = 16 * workers + 64;
    let most = reached(context, &server, &path, &format!("-c{c} --warmup 500ms -d4s"));
    let load = one_of(random, &[0.7, 0.85, 1.15, 1.4]);
    let words = format!("-t1 -c{c} -R{:.0} --arrivals poisson --max-inflight 8192 -d6s", load * most);
    let program = context.onrush().words(&words).word(url(&server, &path));
    let verdict = document(program, &Scratch::new("situation")).1["verdict"].take();
    let class = match verdict["limited_by"].as_str().expect("a limit") {
        "unclear" => Class::Unclear,
        "schedule" => Class::from(load < 1.0),
        "target" => Class::from(load > 1.0),
        _ => Class::Wrong,
    };
    (class, format!("{path} {words}, {:.0} %: {}", load * 100.0, sentence(&verdict)))
}

/// A target that stops or refuses, and a generator that has to share its processor with three others.
fn observed(context: &Context, random: &mut Random) -> (Class, String) {
    let server = target();
    let (path, words, wanted) = one_of(
        random,
        &[
            ("/freeze?every=600ms&ms=400", "-c8 -d3s", "target"),
            ("/status/503", "-c8 -R500 -d3s", "target"),
            ("/freeze?every=1s&ms=500", "-c8 -R500 -d3s", "target"),
            ("/", "-c64 -d3s --spin off", "generator_cpu"),
        ],
    );
    let hog = "taskset -p -c 0 $$ >/dev/null; hog() { while :; do :; done; }; hog & a=$!; hog & b=$!; hog & c=$!
               nice -n 19 \"$0\" \"$@\"; code=$?; kill $a $b $c; exit $code";
    let program = if wanted == "target" { context.onrush() } else { context.after(hog) };
    let program = program.words("-t1").words(words).word(url(&server, path));
    let verdict = document(program, &Scratch::new("situation")).1["verdict"].take();
    (Class::from(verdict["limited_by"] == wanted), format!("{path} {words}: {}", sentence(&verdict)))
}

fn sentence(verdict: &Value) -> String {
    let text = |key: &str| verdict[key].as_str().unwrap_or("-").to_owned();
    format!("{}: {}: {}; {}", text("limited_by"), text("summary"), text("reason"), text("advice"))
}

fn verdicts_of_random_situations_are_not_confidently_wrong(context: &Context) {
    let mut all = Vec::new();
    for index in 0..SITUATIONS {
        let mut random = Random::new(Random::new(first_seed() + index).next());
        let beside = (index % 2 == 1).then(BusyLoop::start);
        let (class, row) = match index % 8 {
            4 | 5 => rate(context, &mut random),
            6 | 7 if index < 16 => observed(context, &mut random),
            _ => closed_loop(context, &mut random),
        };
        // What onrush saw of its own threads is true on a machine that is busy.
        let is_taken = beside.is_some() || row.contains("the hypervisor took");
        let class = if row.contains(" generator_cpu: ") && is_taken { Class::Machine } else { class };
        println!("{index} {class:?} {}{row}", if beside.is_some() { "beside a busy loop: " } else { "" });
        all.push(class);
    }
    let count = |class: Class| all.iter().filter(|&&it| it == class).count();
    let (right, unclear, wrong) = (count(Class::Right), count(Class::Unclear), count(Class::Wrong));
    let [between, unaffordable, machine] = [Class::Between, Class::Unaffordable, Class::Machine].map(count);
    let counts = format!(
        "{right} right, {unclear} unclear, {between} between two verdicts, {unaffordable} not affordable, {machine} on a \
         machine that was the limit, {wrong} wrong"
    );
    println!("{counts}");
    assert_eq!(wrong, 0, "{counts}");
    assert!(right * 10 >= (right + unclear) * 9, "{counts}");
    assert!(right * 2 >= between + machine, "the machine was too busy to tell: {counts}");
}

fn what_is_advised_reaches_what_was_said(context: &Context) {
    let (mut errors, mut silent) = (Vec::new(), 0);
    for index in 0..ADVISED {
        let mut random = Random::new(Random::new(first_seed() + 1_000 + index).next());
        let beside = (index % 2 == 1).then(BusyLoop::start);
        let server = target();
        let (c, per_s) = (one_of(&mut random, &[2_u32, 4, 8, 16]), 2_200.0 * 1.5_f64.powf(random.uniform()));
        let service = service(&mut random, f64::from(c) / per_s * 1e3);
        // Some have too few workers for half as many more connections.
        let workers = c + one_of(&mut random, &[c, c, c / 4]);
        let path = match random.below(3) {
            0 => format!("/delay/{}", service.trim_start_matches("ms=").replacen('&', "?", 1)),
            _ => format!("/pool?workers={workers}&{service}"),
        };
        let program = context.onrush().words(&format!("-t1 -c{c} -d1500ms --probe up:8s")).word(url(&server, &path));
        let document = document(program, &Scratch::new("advice")).1;
        let verdict = &document["verdict"];
        let advice =
            verdict["advice"].as_str().filter(|advice| advice.starts_with("-c ") && advice.contains(": about "));
        let busy = if beside.is_some() { "beside a busy loop: " } else { "" };
        let Some(advice) = advice else {
            println!("{index} no number: {busy}{path} -c{c}: {}", sentence(verdict));
            silent += 1;
            continue;
        };
        let (more, expected) = advice.trim_start_matches("-c ").split_once(": about ").expect("both");
        let expected: f64 = expected.trim_end_matches("/s").replace(',', "").parse().expect("a number");
        // The machine may be slower by now, for any number of connections.
        let at_c = rate_in_probe(&document, u64::from(c));
        let per_s = |c: &str| reached(context, &server, &path, &format!("-c{c} --warmup 200ms -d2s"));
        let mut each = [(); 3].map(|()| at_c * per_s(more) / per_s(&c.to_string()));
        each.sort_by(f64::total_cmp);
        let is = each[1];
        println!("{index} {:+.1} %: {busy}{path} -c{c}: {advice}, reached {is:.0}", (is / expected - 1.0) * 100.0);
        errors.push((is / expected - 1.0).abs());
    }
    println!("{} with a number, {silent} without", errors.len());
    assert!(errors.len() >= 15, "{silent} have no number");
    assert!(errors.iter().all(|&error| error <= 0.1), "{errors:?}");
}
