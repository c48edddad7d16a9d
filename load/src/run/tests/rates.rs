//! Verdicts on rates drawn at random around a known capacity.

use onrush_plan::{LimitedBy, Random};

use super::simulated::{simulate_plan, virtual_clock};
use super::*;
use crate::record::Document;

/// A rate drawn for a server of known capacity.
struct Drawn {
    words: String,
    scenario: String,
    workers: u32,
    /// Responses per second with all workers busy.
    capacity_per_s: f64,
    asked_per_s: f64,
}

impl Drawn {
    fn draw_rate(random: &mut Random, seed: u64) -> Self {
        let mut among = |all: &[f64]| all[random.below(all.len() as u64) as usize];
        let (workers, service_ms) = (among(&[1.0, 2.0, 3.0, 8.0, 24.0]), among(&[0.8, 1.5, 5.0, 12.0, 27.0]));
        let spread = ["\"constant\"", "\"exponential\"", "{ log-normal = 0.8 }"][among(&[0.0, 1.0, 2.0]) as usize];
        let factor = 0.4 + random.uniform();
        let connections = [32, 64, 200, 1_000][random.below(4) as usize];
        let capacity_per_s = workers / service_ms * 1e3;
        // Whole requests per second.
        let asked_per_s = (capacity_per_s * factor).round().max(1.0);
        let arrivals = ["", " --arrivals poisson"][random.below(2) as usize];
        Self {
            words: format!("-t1 -c{connections} -R{asked_per_s} -d10s --seed {seed}{arrivals}"),
            scenario: format!(
                "connect_us = 50.0\nlatency_us = 100.0\n[capacity]\nworkers = {workers}\nservice_us = {:.1}\nspread = {spread}\n",
                service_ms * 1e3
            ),
            workers: workers as u32,
            capacity_per_s,
            asked_per_s,
        }
    }

    /// Relative difference between rate and capacity.
    fn relative_excess(&self) -> f64 {
        self.asked_per_s / self.capacity_per_s - 1.0
    }

    /// True if the counts of the run cannot show on which side of the capacity the rate is.
    fn is_close(&self) -> bool {
        let counts = self.asked_per_s.min(self.capacity_per_s) * 10.0;
        self.relative_excess().abs() <= f64::max(0.02, 3.0 / counts.sqrt())
    }
}

/// A worker with a capacity of 37/s is asked for 45/s, but by chance fewer requests arrive and more are served.
#[test]
fn arrival_lulls_prove_no_rate() {
    let scenario = "connect_us = 50.0\nlatency_us = 100.0\n[capacity]\nworkers = 1\nservice_us = 27000.0\nspread = \"exponential\"\n";
    let words = "-t1 -c200 -R45 -d10s --seed 10214 --arrivals poisson";
    let (plan, outcome, _) = simulate_plan(words, scenario, &mut virtual_clock(), &Interrupt::default());
    let verdict = Document::judged(&plan, &outcome).verdict.expect("there is evidence");
    let why = "on average and 19 at the quietest time, like the queue of a target at its limit";
    assert!(verdict.limited_by == LimitedBy::Unclear && verdict.reason.ends_with(why), "{verdict}");
}

/// Far from the capacity, at most one verdict in ten may be missing and none may be wrong, which takes many draws to
/// show. With `CHECK_MACHINE`, the test draws 600 instead of 40; `RATES_SEED` sets the seed.
#[test]
fn verdicts_around_known_capacities_are_right() {
    // With few draws, one more or less is chance.
    let (draws, least) = if std::env::var_os("CHECK_MACHINE").is_some() { (600, 90) } else { (40, 80) };
    let seed = std::env::var("RATES_SEED").map_or(7_000, |seed| seed.parse().expect("a seed is a number"));
    let mut random = Random::new(seed);
    let (mut told, mut far, mut unclear, mut wrong) = (0, 0, String::new(), String::new());
    for seed in seed..seed + draws {
        let drawn = Drawn::draw_rate(&mut random, seed);
        let (plan, outcome, _) =
            simulate_plan(&drawn.words, &drawn.scenario, &mut virtual_clock(), &Interrupt::default());
        let document = Document::judged(&plan, &outcome);
        let verdict = document.verdict.as_ref().expect("there is evidence");
        let said = format!(
            "{} {} workers, {:.3} of its capacity: {verdict}\n",
            drawn.words,
            drawn.workers,
            drawn.relative_excess() + 1.0
        );
        let is_right = match verdict.limited_by {
            LimitedBy::Schedule => drawn.relative_excess() <= 0.0 || drawn.is_close(),
            LimitedBy::Target => drawn.relative_excess() > 0.0 || drawn.is_close(),
            _ => false,
        };
        let is_unclear = verdict.limited_by == LimitedBy::Unclear;
        if !is_right && !is_unclear {
            wrong += &said;
        }
        if !drawn.is_close() {
            far += 1;
            told += u32::from(is_right);
            if is_unclear {
                unclear += &said;
            }
        }
    }
    assert!(wrong.is_empty(), "wrong:\n{wrong}");
    assert!(100 * told >= least * far, "{told} of {far} told; unclear:\n{unclear}");
    println!("{told} of {far} told; unclear:\n{unclear}");
}
