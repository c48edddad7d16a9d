//! The lines that an experiment prints: its plan, its runs, and summaries of socket samples.

use std::time::Duration;

use onrush_load::record::{Buffer, Document, Extent, SocketSamples, Sockets};
use onrush_plan::experiment::{Experiment, Point};
use onrush_plan::{Order, Percent, Stop};
use onrush_stats::Errors;
use onrush_text::units;

use super::PlannedTurn;

/// The text that `--plan` prints: points, order and time.
pub fn plan_text(experiment: &Experiment, turns: &[PlannedTurn]) -> String {
    let Experiment { name, rounds, order, points, .. } = experiment;
    let order = match order {
        Order::Interleaved => "interleaved",
        Order::Random => "random",
        Order::Sequential => "sequential",
    };
    let mut text = format!(
        "{name}: {} × {} = {}, {order}{}\n",
        units::format_count(points.len() as u64, "point"),
        units::format_count(u64::from(*rounds), "round"),
        units::format_count(experiment.planned_runs(), "run"),
        total_duration_text(experiment),
    );
    for (number, point) in points.iter().enumerate() {
        let words = experiment.levels_in_words(point);
        text.push_str(&format!("{:>5}  {words}\n       {}\n", number + 1, point.plan.output.command));
        let settings = point.settings.iter().map(|(name, value)| format!("       {name} = {value}\n"));
        text.extend(settings);
    }
    if points.iter().any(|point| !point.settings.is_empty()) && !experiment.may_change_host {
        text.push_str("this changes settings of this host, which needs --allow-host-changes\n");
    }
    let numbers: Vec<String> = turns.iter().map(|turn| (turn.point + 1).to_string()).collect();
    text.push_str("Order of the points:\n");
    // Each interleaved round has its own line.
    let per_line = if experiment.order == Order::Interleaved { points.len() } else { 20 };
    numbers.chunks(per_line.clamp(1, 40)).for_each(|line| text.push_str(&format!("  {}\n", line.join(" "))));
    text
}

/// The line before the first run, without the folder: number of runs and total duration.
pub fn summary(experiment: &Experiment) -> String {
    format!(
        "{}: {}{}",
        experiment.name,
        units::format_count(experiment.planned_runs(), "run"),
        total_duration_text(experiment)
    )
}

/// The total duration of the runs with their warm-ups, as the end of a line; empty if unknown.
fn total_duration_text(experiment: &Experiment) -> String {
    let of = |point: &Point| {
        let Stop { duration, .. } = point.plan.stop;
        Some(duration? + point.plan.warmup)
    };
    let round = experiment.points.iter().map(of).sum::<Option<Duration>>();
    round.map_or_else(String::new, |round| {
        format!(", at least {}", units::format_duration_exact(round * experiment.rounds))
    })
}

/// The start of the line about a run: its number, its point and its round.
pub fn run_line_start(experiment: &Experiment, point: &Point, turn: PlannedTurn, number: u64) -> String {
    let runs = experiment.planned_runs();
    let words = experiment.levels_in_words(point);
    let blank = if words.is_empty() { "" } else { " " };
    format!("[{number:>width$}/{runs}] {words}{blank}round {}", turn.round + 1, width = runs.to_string().len())
}

/// The figures of a run, for the middle of a line.
pub fn format_run_figures(document: &Document) -> String {
    let per_s = document.rate_per_s;
    let figure = |percent: &str| {
        let percent: Percent = percent.parse().ok().filter(|&percent| document.is_sure_of(percent))?;
        document.shown_percentile_us(percent)
    };
    let mut words = format!("{per_s:.2}/s");
    for name in ["50", "99"] {
        if let Some(us) = figure(name) {
            words.push_str(&format!(", p{name} {}", units::format_us(us)));
        }
    }
    let Errors { status: refused, check: unfit, .. } = document.errors;
    let errors = document.requests.errors();
    if errors > 0 {
        words.push_str(&format!(", {}", units::format_count(errors, "error")));
    }
    if refused > 0 {
        let status = document
            .plan
            .expected_status()
            .map_or("a status of 400 or more".to_owned(), |expected| format!("a status other than {expected}"));
        words.push_str(&format!(", {} with {status}", units::format_count(refused, "response")));
    }
    if unfit > 0 {
        words.push_str(&format!(", {}", units::format_count(unfit, "failed check")));
    }
    let limit = document.verdict.as_ref().map(|verdict| verdict.limited_by).filter(|limit| limit.is_generator());
    limit.iter().for_each(|limit| words.push_str(&format!(", limited by onrush itself ({})", limit.name())));
    if let Some(Sockets { rcvbuf: Some(received), sndbuf: Some(sent), .. }) = document.sockets {
        let of = |Buffer { effective_min: least, effective_max: most, .. }| {
            let [least, most] = [least, most].map(|bytes| units::format_thousands(bytes.into()));
            if least == most { least } else { format!("{least} to {most}") }
        };
        words.push_str(&format!(", buffers of {} and {} bytes (receive, send)", of(received), of(sent)));
    }
    let broken = document.gates.iter().filter(|gate| gate.broken && !gate.is_strict());
    broken.for_each(|gate| words.push_str(&format!(", gate broken: {}", gate.condition())));
    let undecided = document.gates.iter().filter(|gate| gate.undecided);
    undecided.for_each(|gate| words.push_str(&format!(", gate undecided: {}", gate.condition())));
    words
}

/// Summary of the socket samples of a point's runs. For each figure: the median of the runs' medians, the minimum, and
/// the maximum. `None` without samples.
pub fn format_socket_summary(sampled: &[SocketSamples]) -> Option<String> {
    let figure = |of: fn(&SocketSamples) -> Option<Extent>, scale: f64, name: &str, unit: &str| {
        let extents: Vec<Extent> = sampled.iter().filter_map(of).collect();
        let mut medians: Vec<f64> = extents.iter().filter_map(|extent| extent.median).collect();
        medians.sort_by(f64::total_cmp);
        let middle = medians.get(medians.len() / 2)?;
        let median = (middle + medians.get((medians.len() - 1) / 2)?) / 2.0;
        let least = extents.iter().map(|extent| extent.min).fold(f64::INFINITY, f64::min);
        let most = extents.iter().map(|extent| extent.max).fold(0.0, f64::max);
        let [least, median, most] = [least, median, most].map(|value| format_significant(value * scale));
        Some(format!("{name} {median}{unit} ({least} … {most})"))
    };
    let figures = [
        figure(|sampled| sampled.rtt, 1.0, "rtt", " ms"),
        figure(|sampled| sampled.cwnd, 1.0, "cwnd", ""),
        figure(|sampled| sampled.delivery_rate, 1e-6, "delivered", " Mbit/s"),
        figure(|sampled| sampled.rcvbuf_use, 100.0, "receive buffer", " % used"),
        figure(|sampled| sampled.sndbuf_use, 100.0, "send buffer", " % used"),
    ];
    let retransmits: u64 = sampled.iter().map(|sampled| sampled.retransmits).sum();
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    let has_samples = sampled.iter().any(|sampled| sampled.samples > 0);
    has_samples.then(|| format!("{}, {}", units::format_count(retransmits, "retransmit"), figures.join(", ")))
}

/// A number with three significant digits.
fn format_significant(value: f64) -> String {
    let decimals = if value == 0.0 { 0 } else { (2 - value.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{value:.*}", decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_samples_show_extremes_and_medians() {
        let extent = |min, median, max| Some(Extent { min, median: Some(median), max });
        let run = |rtt, retransmits| SocketSamples {
            samples: 1,
            failed: 0,
            sockets: 1,
            readings: 1,
            left_out: 0,
            retransmits,
            rtt,
            cwnd: extent(10.0, 10.0, 10.0),
            delivery_rate: None,
            rcvbuf_use: extent(0.0, 0.0123, 0.5),
            sndbuf_use: None,
        };
        let runs = [run(extent(0.02, 0.05, 1.0), 1), run(extent(0.03, 0.06, 2.5), 0), run(extent(0.01, 0.01, 0.02), 2)];
        assert_eq!(
            format_socket_summary(&runs).unwrap(),
            "3 retransmits, rtt 0.0500 ms (0.0100 … 2.50), cwnd 10.0 (10.0 … 10.0), receive buffer 1.23 % used (0 … 50.0)"
        );
        assert_eq!(format_socket_summary(&[]), None);
    }
}
