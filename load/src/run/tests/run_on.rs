//! Percentiles of all due requests, and gates on them: the result at the end of a run is compared with that of the same
//! run continued until every request has ended.

use std::fmt::Write;

use onrush_plan::Random;

use super::simulated::{simulate_plan, virtual_clock};
use super::*;
use crate::figures::estimate::{KnownPercentile, PercentileEstimates};
use crate::record::Document;
use crate::record::gate::Gate;

/// Runs a command line in a scenario.
fn run_document(words: &str, scenario: &str) -> Document {
    let (plan, outcome, _) = simulate_plan(words, scenario, &mut virtual_clock(), &Interrupt::default());
    let document = Document::judged(&plan, &outcome);
    document.result.check().unwrap_or_else(|flaw| panic!("{words}: {flaw}"));
    document
}

/// Percentiles of the run of a command line, continued until every request has ended.
fn continued_percentiles(words: &str, scenario: &str) -> PercentileEstimates {
    let document = run_document(&format!("{words} --fail-if p50>100s --timeout 100s --give-up 200s"), scenario);
    let estimate = document.estimate().unwrap();
    assert_eq!(estimate.requests().open.count(), 0, "{words}");
    estimate
}

fn judge_gate(words: &str, scenario: &str) -> Gate {
    run_document(words, scenario).gates.remove(0)
}

/// A percentile as printed.
fn percentile_text(document: &Document, percent: f64) -> String {
    document.estimate().unwrap().percentile(percent).unwrap().to_string()
}

#[test]
fn percentiles_are_never_below_the_fastest_response() {
    let slow = run_document("-d4s -R 20 -c 100 --timeout 9s", "latency_us = 3000000.0");
    assert_eq!([0.0, 50.0, 99.0].map(|percent| percentile_text(&slow, percent)), ["3.00s", "3.00s", "3.00s"]);
    assert_eq!(slow.value("p50".parse().unwrap()), Some(3e6));
    let gate = judge_gate("-d4s -R 20 -c 100 --timeout 9s --fail-if p50>2.5s", "latency_us = 3000000.0");
    assert!(gate.broken && !gate.undecided, "{gate:?}");
    let half = run_document("-R 50 -d 2s", "latency_us = 500000.0");
    assert_eq!([0.0, 1.0, 50.0].map(|percent| percentile_text(&half, percent)), ["500.04ms", "500.04ms", "≥799.80ms"]);
    let enough = run_document("-R 50 -d 2s -c 50", "latency_us = 500000.0");
    assert_eq!([0.0, 1.0, 99.0].map(|percent| percentile_text(&enough, percent)), ["500.04ms", "500.04ms", "500.10ms"]);
}

#[test]
fn percentiles_above_all_ages_are_bounds() {
    // Every tenth request hangs.
    let hangs = "latency_us = 1000.0\n[[fault]]\nevery = 10\nwhat = \"hang\"";
    let hung = run_document("-t1 -R 100 -d 2s -c 100", hangs);
    assert_eq!([50.0, 80.0].map(|percent| percentile_text(&hung, percent)), ["1.00ms", "1.00ms"]);
    let (known, largest) = (percentile_text(&hung, 99.0), hung.open_loop.as_ref().unwrap().open.as_ref().unwrap());
    assert_eq!(known, format!(">{}", onrush_text::units::format_us(largest.max_us.unwrap())));
}

#[test]
fn growing_backlogs_give_only_lower_bounds() {
    // A hundred responses a second, but a hundred and fifty requests due.
    let slow = "[capacity]\nworkers = 1\nservice_us = 10000.0";
    let behind = run_document("-t1 -R 150 -d 3s -c 4", slow);
    let known = behind.estimate().unwrap().percentile(90.0).unwrap();
    assert!(matches!(known, KnownPercentile::AtLeast(_)), "{known:?}");
    let whole = continued_percentiles("-t1 -R 150 -d 3s -c 4", slow);
    assert!(whole.percentile(90.0).unwrap().ns() > known.ns());
    let gate = judge_gate("-t1 -R 150 -d 3s -c 4 --fail-if p50>1s", slow);
    assert!(!gate.undecided, "{gate:?}");
    assert_eq!(gate.broken, whole.percentile(50.0).unwrap().ns() > 1_000_000_000, "{gate:?}");
}

#[test]
fn late_signals_leave_gates_undecided() {
    let scenario = "latency_us = 1500000.0\nsignal_s = 2.2";
    let document = run_document("-t1 -R 20 -d 2s -c 100 --fail-if p99>3s", scenario);
    assert!(document.gates[0].undecided && !document.interrupted, "{:?}", document.gates);
    assert_eq!(document.duration_s, 2.0);
    assert!(document.gates[0].sentence().contains("undecided: it was at least"), "{}", document.gates[0].sentence());
}

#[test]
fn only_due_percentile_gates_prolong_runs() {
    let run_on_s = |gate: &str| {
        let words = format!("-t1 -R 100 -d 1s -c 100 {gate}");
        run_document(words.trim(), "latency_us = 200000.0").open_loop.unwrap().run_on_s
    };
    let going_on = run_on_s("--fail-if p99>300ms");
    assert!((0.19..0.21).contains(&going_on), "{going_on}");
    assert_eq!(["", "--fail-if errors>1%", "--fail-if service.p99>1s", "--fail-if max>1s"].map(run_on_s), [0.0; 4]);
    // The run continues no longer than the limit.
    let limited = run_on_s("--fail-if p99>100ms");
    assert!((0.1..0.102).contains(&limited), "{limited}");
}

/// A steady target: its scenario, and its approximate latency in milliseconds.
fn draw_steady_target(random: &mut Random) -> (String, f64) {
    let ms = [2.0, 5.0, 20.0, 80.0][random.below(4) as usize];
    let delay = match random.below(4) {
        0 => format!("ms = {ms:.1}"),
        1 => format!("ms = {ms:.1}\nsd = {:.1}", ms / 2.0),
        2 => format!("ms = {ms:.1}\ndist = \"exp\""),
        _ => format!("ms = {ms:.1}\ndist = \"two\"\nslow = {:.1}", ms * 4.0),
    };
    (format!("latency_us = 500.0\n[delay]\n{delay}\n"), ms)
}

/// A load that the target can handle.
fn draw_load(random: &mut Random, seed: u64) -> String {
    let (per_s, seconds) = ([100, 300][random.below(2) as usize], 1 + random.below(2));
    let warm_up = ["", " --warmup 300ms"][random.below(2) as usize];
    let arrivals = ["", " --arrivals poisson"][random.below(2) as usize];
    format!("-t{} -c 200 -R {per_s} -d {seconds}s --seed {seed}{warm_up}{arrivals}", 1 + random.below(2))
}

#[test]
fn healthy_runs_decide_all_gates() {
    let runs = if std::env::var_os("CHECK_MACHINE").is_some() { 1_000 } else { 60 };
    let (mut random, mut off, mut compared) = (Random::new(1), String::new(), 0);
    for seed in 0..runs {
        let ((scenario, ms), words) = (draw_steady_target(&mut random), draw_load(&mut random, seed));
        let whole = continued_percentiles(&words, &scenario);
        let limit_ms = ms * [0.5, 1.0, 2.0, 8.0][random.below(4) as usize];
        let percent = ["p50", "p99", "p99.9"][random.below(3) as usize];
        let gated = judge_gate(&format!("{words} --fail-if {percent}>{limit_ms:.3}ms"), &scenario);
        assert!(!gated.undecided, "{words} {scenario} {gated:?}");
        let exact = whole.percentile(percent[1..].parse().unwrap()).unwrap().ns() as f64;
        let is_clear = (exact / (limit_ms * 1e6) - 1.0).abs() > 0.01;
        assert!(!is_clear || gated.broken == (exact > limit_ms * 1e6), "{words} {scenario} {gated:?} {exact}");
        let cut = run_document(&words, &scenario).estimate().unwrap();
        // At the end, a rank may be off by one request.
        for percent in [10.0, 50.0, 90.0, 99.0] {
            let Some(KnownPercentile::About(ns)) = cut.percentile(percent) else { continue };
            let near = |ranks: f64| {
                let share = ranks * 100.0 / whole.due() as f64;
                whole.percentile((percent + share).clamp(0.0, 100.0)).unwrap().ns() as f64
            };
            compared += 1;
            if (ns as f64) < near(-2.0) / 1.09 || ns as f64 > near(2.0) * 1.09 {
                let _ = writeln!(off, "{words} {scenario} p{percent}: {ns} of {}..{}", near(-2.0), near(2.0));
            }
        }
    }
    assert!(off.lines().count() * 100 <= compared, "{compared}\n{off}");
}

#[test]
fn gates_broken_by_whole_runs_never_pass() {
    let runs = if std::env::var_os("CHECK_MACHINE").is_some() { 1_000 } else { 60 };
    let (mut random, mut passed) = (Random::new(2), 0);
    for seed in 0..runs {
        let ((mut scenario, ms), words) = (draw_steady_target(&mut random), draw_load(&mut random, seed));
        for _ in 0..=random.below(2) {
            let (from_ms, for_ms) = (random.below(2_400), 20 + random.below(1_500));
            let kind = ["stall", "stall", "outage"][random.below(3) as usize];
            let _ = writeln!(
                scenario,
                "[[{kind}]]\nfrom_s = {:.3}\nfor_s = {:.3}",
                from_ms as f64 / 1e3,
                for_ms as f64 / 1e3
            );
        }
        let words = format!("{words} -c {}", [3, 50, 200][random.below(3) as usize]).replacen(" -c 200", "", 1);
        let percent = ["p50", "p90", "p99"][random.below(3) as usize];
        let limit_ms = ms * [1.0, 4.0, 16.0, 64.0][random.below(4) as usize];
        let gated = judge_gate(&format!("{words} --fail-if {percent}>{limit_ms:.3}ms"), &scenario);
        assert!(!gated.undecided, "{words} {scenario} {gated:?}");
        let whole = continued_percentiles(&words, &scenario).extremes(percent[1..].parse().unwrap());
        if !gated.broken {
            passed += 1;
            let is_less = whole[1].is_some_and(|ns| ns as f64 <= limit_ms * 1e6 * 1.001);
            assert!(is_less, "{words}\n{scenario}\n{gated:?} {whole:?}");
        }
    }
    assert!(passed > runs / 10, "{passed}");
}
