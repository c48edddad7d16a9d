//! Random runs: a seed draws a command line, a script and a hostile network, and the real engine runs them in virtual
//! time. All invariants of a run are checked, during the run and at the end.
//!
//! `make simulate` runs without limit. A failing case is reduced and written to `target/simulate`, as files for `--io
//! sim:FILE` and `-s`, and the command line for them is printed.

mod case;
mod check;
mod draw;
mod drive;
mod due;
mod pace;
mod shrink;
mod watched;

use std::any::Any;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use case::{Case, CaseOptions, Lua};
use pace::Pace;

use onrush_engine::backend::sim::Scenario;
use onrush_plan::schedule::Arrivals;

/// Number of seeds in every test run, starting from 1; `make simulate` is unlimited.
const SEEDS: u64 = 120;

/// Runs a case twice. Returns the virtual time taken, in nanoseconds.
fn run_twice(case: &Case) -> Result<u64, String> {
    let run = || -> Result<(u64, String), String> {
        let ran = drive::run_case(case)?;
        check::check_run(case, &ran)?;
        Ok((ran.elapsed_ns, drive::digest(&ran)))
    };
    let twice = || -> Result<u64, String> {
        let ((first_ns, first), (second_ns, second)) = (run()?, run()?);
        let other = || first.lines().zip(second.lines()).find(|(first, second)| first != second);
        if first == second { Ok(first_ns + second_ns) } else { Err(format!("the second run differs: {:?}", other())) }
    };
    catch_unwind(AssertUnwindSafe(twice)).unwrap_or_else(|panic| Err(format!("a panic: {}", panic_message(&*panic))))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}

/// Describes the flaw found with a seed, and how to reproduce it.
fn report_flaw(seed: u64, flaw: &str) -> String {
    // Two failures are the same if they differ only in numbers, up to the first value shown.
    let kind = |flaw: &str| flaw.split(';').next().map(|words| words.replace(|c: char| c.is_ascii_digit(), ""));
    let case =
        shrink::shrink(draw::draw_case(seed), |case| run_twice(case).is_err_and(|other| kind(&other) == kind(flaw)));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/simulate").join(seed.to_string());
    case.write_files(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let smaller =
        run_twice(&case).err().unwrap_or_else(|| "not every time, so the seed is not the only cause".to_owned());
    let words = case.arguments(&folder).join(" ");
    let scenario = fs::read_to_string(folder.join("scenario.toml")).unwrap_or_default();
    format!(
        "seed {seed}: {flaw}\nmade smaller: {smaller}\n{scenario}\nto see it: {words}\nagain: make simulate SEED={seed}"
    )
}

/// With `SIMULATE_SECONDS` in the environment, the test runs that long, starting from `SIMULATE_SEED`.
#[test]
fn random_runs_keep_all_invariants() {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let limit = number("SIMULATE_SECONDS").map(Duration::from_secs);
    let (began, first) = (Instant::now(), number("SIMULATE_SEED").unwrap_or(1));
    let is_over = |seed: u64| limit.map_or(seed - first >= SEEDS, |limit| began.elapsed() >= limit && seed > first);
    let run = || {
        let (mut seed, mut virtual_ns) = (first, 0_u128);
        while !is_over(seed) {
            match run_twice(&draw::draw_case(seed)) {
                Ok(ns) => virtual_ns += u128::from(ns),
                Err(flaw) => panic!("{}", report_flaw(seed, &flaw)),
            }
            seed += 1;
        }
        (seed - first, virtual_ns)
    };
    let (runs, virtual_ns) = crate::run::run_on_large_stack(run).expect("there is memory for a thread");
    let hours = virtual_ns as f64 / 3.6e12;
    println!("{runs} runs, each done twice, seeds {first} to {}; {hours:.1} hours of virtual time", first + runs - 1);
}

#[test]
fn requests_sent_ahead_are_not_due_again() {
    let pace = Pace {
        per_minute: 6_000,
        stages: Vec::new(),
        arrivals: Arrivals::Uniform,
        catch_up_tenths: None,
        max_late_ms: None,
        send_slice_us: None,
    };
    for (threads, batches) in [(1, vec![30]), (3, vec![30]), (1, vec![1, 90])] {
        let case = Case {
            options: CaseOptions {
                threads,
                connections: 8,
                pace: Some(pace.clone()),
                duration_ms: Some(3_000),
                ..CaseOptions::default()
            },
            scenario: Scenario { latency_us: 1_000.0, ..Scenario::default() },
            script: Some(Lua { batches, ..Lua::default() }),
        };
        assert_eq!(run_twice(&case).err(), None);
    }
}

#[test]
fn returned_requests_release_nothing_early() {
    let pace = Pace {
        per_minute: 259_534,
        stages: Vec::new(),
        arrivals: Arrivals::Burst(NonZeroU64::new(55).expect("it is not zero")),
        catch_up_tenths: None,
        max_late_ms: None,
        send_slice_us: None,
    };
    // The servers close after one request of a batch, and the other requests are returned.
    let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbye!".to_owned();
    let case = Case {
        options: CaseOptions {
            threads: 1,
            connections: 8,
            pace: Some(pace),
            duration_ms: Some(43),
            ..CaseOptions::default()
        },
        scenario: Scenario { answer, latency_us: 687.0, ..Scenario::default() },
        script: Some(Lua { batches: vec![14], ..Lua::default() }),
    };
    assert_eq!(run_twice(&case).err(), None);
}
