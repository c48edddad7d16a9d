//! The lines of an experiment: what is planned, each run, and the end.

use std::time::Duration;

use super::Turn;
use crate::plan::experiment::{Experiment, Point};
use crate::plan::{Order, Percent, Stop};
use crate::report::result::{Buffer, Document, Sockets};
use crate::report::units;

/// What an experiment is, for `--plan`: points, order and time.
pub fn plan(experiment: &Experiment, turns: &[Turn]) -> String {
    let Experiment { name, rounds, order, points, .. } = experiment;
    let order = match order {
        Order::Interleaved => "interleaved",
        Order::Random => "random",
        Order::Sequential => "sequential",
    };
    let mut text = format!(
        "{name}: {} × {} = {}, {order}{}\n",
        units::counted(points.len() as u64, "point"),
        units::counted(u64::from(*rounds), "round"),
        units::counted(experiment.runs(), "run"),
        length(experiment).map_or_else(String::new, |length| format!(", at least {}", units::exact(length))),
    );
    for (number, point) in points.iter().enumerate() {
        let words = experiment.words(point);
        text.push_str(&format!("{:>5}  {words}\n       {}\n", number + 1, point.plan.show.command));
    }
    let numbers: Vec<String> = turns.iter().map(|turn| (turn.point + 1).to_string()).collect();
    text.push_str("Order of the points:\n");
    // Interleaved rounds have a line each.
    let per_line = if experiment.order == Order::Interleaved { points.len() } else { 20 };
    numbers.chunks(per_line.clamp(1, 40)).for_each(|line| text.push_str(&format!("  {}\n", line.join(" "))));
    text
}

/// How long the runs take, warm-ups included; `None`: that is not known beforehand.
pub fn length(experiment: &Experiment) -> Option<Duration> {
    let of = |point: &Point| {
        let Stop { duration, .. } = point.plan.stop;
        Some(duration? + point.plan.warmup)
    };
    let round: Duration = experiment.points.iter().map(of).sum::<Option<_>>()?;
    Some(round * experiment.rounds)
}

/// The line before a run, and the beginning of the one about it.
pub fn run(experiment: &Experiment, point: &Point, turn: Turn, number: u64) -> String {
    let (runs, words) = (experiment.runs(), experiment.words(point));
    let blank = if words.is_empty() { "" } else { " " };
    format!("[{number:>width$}/{runs}] {words}{blank}round {}", turn.round + 1, width = runs.to_string().len())
}

/// What a run measured, in a line's space.
pub fn measured(document: &Document) -> String {
    let per_s = document.rate_per_s;
    let figure = |percent: &str| {
        let percent: Percent = percent.parse().ok()?;
        document.shown_percentile_us(percent)
    };
    let mut words = format!("{per_s:.2}/s");
    for name in ["50", "99"] {
        if let Some(us) = figure(name) {
            words.push_str(&format!(", p{name} {}", units::time_us(us)));
        }
    }
    let refused = document.errors.status;
    let failed = document.errors.total() - refused;
    if failed > 0 {
        words.push_str(&format!(", {}", units::counted(failed, "error")));
    }
    if refused > 0 {
        words.push_str(&format!(", {} with a status of 400 or above", units::counted(refused, "response")));
    }
    if let Some(Sockets { rcvbuf: Some(received), sndbuf: Some(sent), .. }) = document.sockets {
        let of = |buffer: Buffer| units::thousands(buffer.effective_min.into());
        words.push_str(&format!(", buffers of {} and {} bytes (receive, send)", of(received), of(sent)));
    }
    let broken = document.gates.iter().filter(|gate| gate.broken);
    broken.for_each(|gate| words.push_str(&format!(", gate broken: {}", gate.condition())));
    words
}
