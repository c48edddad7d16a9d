//! Measures what connecting costs: thousands of connections at once, and for a long time a new one for every request.

use std::fs;
use std::io::{self, Write};
use std::time::Instant;

use serde_json::Value;

use super::contender::Contender::{self, BareStorm, Thousand, Uring, Wrk};
use super::experiment::{Comparison, Limit, Summary};
use super::load::{Load, RESULT, Target};
use super::measure::{Figures, Outcome, Series};
use super::median::{Estimate, ratios};
use super::process::{Server, Stage};

/// The connections of a storm.
const MANY: u32 = 19_000;
/// With this many connections there is no storm: the cost of each is the reference.
const FEW: u32 = 1_000;
/// More rounds than this add nothing: each has thousands of connections.
const ROUNDS_MAX: usize = 11;
/// About how long a round of a storm takes, in seconds, and how long wrk takes for one storm.
const STORM_S: f64 = 4.0;
const WRK_S: f64 = 15.0;
/// How long `steady` opens a connection for every request, and the most rounds.
const STEADY_S: u32 = 20;
const STEADY_ROUNDS_MAX: usize = 3;

/// One line of a row: the unit, the contenders, and the outcome.
pub type Entry = (&'static str, Comparison, Outcome);

/// How long [`storm`] takes, in seconds.
pub fn storm_s(peers: &[Contender], rounds: usize) -> f64 {
    rounds.min(ROUNDS_MAX) as f64 * STORM_S + if peers.contains(&Wrk) { WRK_S } else { 0.0 }
}

/// How long [`steady`] takes, in seconds.
pub fn steady_s(rounds: usize) -> f64 {
    rounds.min(STEADY_ROUNDS_MAX) as f64 * f64::from(STEADY_S)
}

/// Measures connections that are all open at once and send one request each.
///
/// # Errors
/// A target or a meter that cannot be started.
pub fn storm(stage: &Stage<'_>, peers: &[Contender], rounds: usize) -> io::Result<Vec<Entry>> {
    let gate = |connections| stage.target(Target::Gate(connections), true);
    let (many, few, one) = (gate(MANY)?, gate(FEW)?, gate(1)?);
    let (mut ours, mut bare, mut failure) = (Vec::new(), Vec::new(), None);
    for round in 0..rounds.min(ROUNDS_MAX) {
        print!(".");
        io::stdout().flush()?;
        let all = [(Uring, MANY, &many), (BareStorm, MANY, &many), (Uring, FEW, &few), (Uring, 1, &one)];
        let mut order = [0, 1, 2, 3];
        order.rotate_left(round % all.len());
        let mut spent = [Spent::default(); 4];
        for place in order {
            let (contender, connections, server) = all[place];
            match Spent::measure(stage, contender, connections, server)? {
                Ok(value) => spent[place] = value,
                Err(why) => failure = Some(format!("{}: {why}", contender.name())),
            }
        }
        ours.push((spent[0].seconds, spent[0].cpu_beyond(&spent[3]), spent[2].cpu_beyond(&spent[3])));
        bare.push(spent[1].seconds);
    }
    println!();
    let figures = |ours: Vec<f64>, others: Vec<f64>| {
        let estimate = Estimate::of(&ratios(&ours, &others)).ok_or("no round was measured")?;
        let (ours, others) = (untimed(ours), untimed(others));
        failure.clone().map_or(Ok(Figures { ours, others, estimate, repeated: 0, summary: Summary::Median }), Err)
    };
    let seconds: Vec<f64> = ours.iter().map(|value| value.0).collect();
    let limited =
        |other, limit| Comparison { ours: Uring, other: Some(other), limit: Some(Limit::AtMost(limit)), measure: None };
    let mut entries = vec![
        ("s until all are open", limited(BareStorm, 2.0), figures(seconds.clone(), bare)),
        (
            "µs CPU/connection",
            limited(Thousand, 1.3),
            figures(ours.iter().map(|value| value.1).collect(), ours.iter().map(|value| value.2).collect()),
        ),
    ];
    if peers.contains(&Wrk) {
        let pair = Comparison { ours: Uring, other: Some(Wrk), limit: None, measure: None };
        entries.push(("s until all are open", pair, wrk(stage, &seconds)?));
    }
    Ok(entries)
}

/// wrk opens all connections before it checks the time, so that a run of a second lasts as long as that takes. One run
/// is enough.
fn wrk(stage: &Stage<'_>, ours: &[f64]) -> io::Result<Outcome> {
    if let Some(why) = stage.programs.missing(Wrk) {
        return Ok(Err(why.to_owned()));
    }
    let server = stage.target(Target::Bare, true)?;
    let began = Instant::now();
    // Its report does not matter here.
    let _ = stage.round(Wrk, &Load { seconds: 1, options: &[], ..load(MANY) }, &server)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(Estimate::of(ours).map_or_else(
        || Err("no round was measured".to_owned()),
        |ours_s| {
            let estimate = Estimate::exact(ours_s.median / seconds);
            Ok(Figures {
                ours: untimed(ours.to_vec()),
                others: untimed(vec![seconds]),
                estimate,
                repeated: 0,
                summary: Summary::Median,
            })
        },
    ))
}

/// Values for which requests per second have no meaning.
fn untimed(values: Vec<f64>) -> Series {
    Series { values, rates: Vec::new() }
}

fn load(connections: u32) -> Load {
    Load {
        target: Target::Gate(connections),
        path: "/",
        options: match connections {
            MANY => &["-n19000"],
            FEW => &["-n1000"],
            _ => &["-n1"],
        },
        without: &[],
        body_bytes: 0,
        threads: 1,
        connections,
        rate: 0,
        seconds: 30,
        pinned: true,
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    connections: u32,
    seconds: f64,
    cpu_us: f64,
}

impl Spent {
    fn measure(
        stage: &Stage<'_>,
        contender: Contender,
        connections: u32,
        server: &Server,
    ) -> io::Result<Result<Self, String>> {
        let sample = stage.round(contender, &load(connections), server)?;
        Ok(sample.map(|sample| {
            let seconds = sample.requests as f64 / sample.per_second;
            Self { connections, seconds, cpu_us: sample.cpu_us }
        }))
    }

    /// Processor time in microseconds for each connection that a run with fewer did not have.
    fn cpu_beyond(&self, fewer: &Self) -> f64 {
        (self.cpu_us - fewer.cpu_us) / f64::from(self.connections.saturating_sub(fewer.connections).max(1))
    }
}

/// Measures a new connection for every request, for 20 seconds: the rate of the last five seconds compared with the
/// first five.
///
/// # Errors
/// A target or a meter that cannot be started.
pub fn steady(stage: &Stage<'_>, rounds: usize) -> io::Result<Vec<Entry>> {
    let server = stage.target(Target::Serve, true)?;
    let load = Load { path: "/close", options: &["-o", RESULT], connections: 100, seconds: STEADY_S, ..load(1) };
    let mut values = Vec::new();
    let mut failure = None;
    for _ in 0..rounds.min(STEADY_ROUNDS_MAX) {
        print!(".");
        io::stdout().flush()?;
        let result = crate::root().join(RESULT);
        result.parent().map_or(Ok(()), fs::create_dir_all)?;
        match stage.round(Uring, &load, &server)? {
            Ok(_) => values.extend(kept(&serde_json::from_slice(&fs::read(result)?)?)),
            Err(why) => failure = Some(why),
        }
    }
    println!();
    let comparison = Comparison { ours: Uring, other: None, limit: Some(Limit::AtLeast(0.9)), measure: None };
    let outcome = match (failure, Estimate::of(&values)) {
        (None, Some(estimate)) => Ok(Figures {
            ours: untimed(values),
            others: Series::default(),
            estimate,
            repeated: 0,
            summary: Summary::Median,
        }),
        (failure, _) => Err(failure.unwrap_or_else(|| "no round was measured".to_owned())),
    };
    Ok(vec![("of the first 5 s' rate in the last 5 s", comparison, outcome)])
}

/// The rate of the seconds 15 to 20 divided by that of the first five, from a result.
fn kept(result: &Value) -> Option<f64> {
    let rows = result.get("timeline")?.as_array()?;
    let completed = |from: f64| -> Option<f64> {
        let start = |row: &Value| row.get("start_s").and_then(Value::as_f64);
        let rows = rows.iter().filter(|row| start(row).is_some_and(|start| (from..from + 4.9).contains(&start)));
        rows.map(|row| row.get("completed")?.as_f64()).sum()
    };
    Some(completed(15.0)? / completed(0.0)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_five_seconds_are_compared_with_the_first() {
        let row = |second: u32| json!({"start_s": f64::from(second), "completed": if second < 15 { 10 } else { 9 }});
        let rows: Vec<Value> = (0..20).map(row).collect();
        assert_eq!(kept(&json!({"timeline": rows})), Some(0.9));
        assert_eq!(kept(&json!({})), None);
    }

    #[test]
    fn starting_the_program_is_not_counted() {
        let spent = |connections, cpu_us| Spent { connections, seconds: 1.0, cpu_us };
        assert_eq!(spent(1_000, 34_970.0).cpu_beyond(&spent(1, 5_000.0)), 30.0);
    }
}
