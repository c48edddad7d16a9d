//! Estimates how long a measurement takes, for the documents and for the first line of `make bench`.

use super::connecting;
use super::evidence;
use super::experiment::{Experiment, Kind};
use super::measure::contenders;
use super::options::Options;
use super::overhead;
use super::rows::Row;

/// What a run takes in addition to its duration: starting and ending the generator, the meter, and reading the target's
/// processor time.
const RUN_S: f64 = 0.1;
/// What counting takes for both of a pair; mostly instructions under valgrind.
const COUNTED_S: f64 = 8.0;
/// What counting the instructions of all operations takes.
const INSTRUCTIONS_S: f64 = 12.0;

/// How long the chosen rows take once everything is built and installed, such as `35 minutes`.
pub fn duration(options: &Options) -> String {
    let seconds: f64 = options.rows.iter().map(|row| seconds(row, options)).sum();
    match (seconds / 60.0).ceil() as u64 {
        ..=1 => "a minute".to_owned(),
        minutes @ 2..=10 => format!("{minutes} minutes"),
        // Above an hour, minutes do not matter.
        minutes => format!("{} minutes", minutes.next_multiple_of(5)),
    }
}

fn seconds(row: &Row, options: &Options) -> f64 {
    match &row.kind {
        Kind::Rounds(experiment) => rounds(experiment, options),
        Kind::Counted(overhead) => COUNTED_S + rounds(&overhead::experiment(overhead), options),
        Kind::Evidence(load) => evidence::seconds(load, options.rounds),
        Kind::Storm => connecting::storm_s(&options.peers, options.rounds),
        Kind::Steady => connecting::steady_s(options.rounds),
        Kind::Instructions => INSTRUCTIONS_S,
    }
}

/// Every contender once in every round.
fn rounds(experiment: &Experiment, options: &Options) -> f64 {
    let contenders = contenders(&options.comparisons(experiment)).len();
    let rounds = options.rounds.min(experiment.rounds_max);
    (rounds * contenders) as f64 * (f64::from(experiment.load.seconds) + RUN_S)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn documents_say_how_long_it_takes() {
        let contributing = fs::read_to_string(crate::root().join("CONTRIBUTING.md")).unwrap();
        let template = include_str!("benchmarks.md");
        for (words, command) in [
            ("", "make bench"),
            ("ROWS=small,big AGAINST=Cargo.toml", "make bench ROWS=small,big AGAINST=FILE"),
            ("ROWS=small,big PEERS=wrk", "make bench ROWS=small,big PEERS=wrk"),
            ("ROWS=script-static", "make bench ROWS=script-static"),
        ] {
            let words: Vec<&str> = words.split_whitespace().collect();
            let duration = duration(&Options::parse(&words).unwrap());
            let row = format!("| `{command}` | {duration} |");
            assert!(contributing.contains(&row), "CONTRIBUTING.md lacks {row}");
            let lines = template.lines().filter_map(|line| line.split_once('#'));
            let comment = lines.filter(|(before, _)| before.trim() == command).map(|(_, comment)| comment).next();
            let says_so = comment.is_some_and(|comment| comment.ends_with(&format!(" {duration}")));
            assert!(says_so, "the template says of {command}: {comment:?}, not {duration}");
        }
    }
}
