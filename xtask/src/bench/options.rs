//! The options of `make bench`: `ROWS`, `PEERS`, `AGAINST`, `ROUNDS` and `SAVE`, as arguments of the form `NAME=VALUE`.

use std::path::PathBuf;

use super::contender::Contender;
use super::counter::Counter;
use super::experiment::{Comparison, Experiment, Kind};
use super::load::Target;
use super::nginx;
use super::rows::{ROWS, Row};

/// How many paired rounds a figure needs.
pub const ROUNDS: usize = 21;

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    /// The rows to measure, in the order of the table.
    pub rows: Vec<&'static Row>,
    /// The peers to compare with.
    pub peers: Vec<Contender>,
    /// Another build of onrush; this one is then compared only with it.
    pub against: Option<PathBuf>,
    /// How many paired rounds.
    pub rounds: usize,
    /// Whether the document is rewritten.
    pub save: bool,
}

impl Options {
    /// Reads them; an empty value is none.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let all = || ROWS.iter().collect();
        let peers = Contender::PEERS.to_vec();
        let mut options = Self { rows: all(), peers, against: None, rounds: ROUNDS, save: false };
        for word in words {
            match word.split_once('=') {
                Some((_, "")) => {}
                Some(("ROWS", names)) => options.rows = rows(names)?,
                Some(("PEERS", names)) => options.peers = names.split(',').map(peer).collect::<Result<_, _>>()?,
                Some(("AGAINST", path)) => options.against = Some(build(path)?),
                Some(("ROUNDS", number)) => options.rounds = rounds(number)?,
                Some(("SAVE", value)) => options.save = value != "0",
                _ => return Err(format!("{word}: known are ROWS=, PEERS=, AGAINST=, ROUNDS= and SAVE=1")),
            }
        }
        let is_whole = options.rows.len() == ROWS.len() && options.peers.len() == Contender::PEERS.len();
        let is_whole = is_whole && options.against.is_none();
        if options.save && !is_whole && !options.is_only_instructions() {
            let why = "SAVE=1 writes the whole document: leave ROWS, PEERS and AGAINST out, or ROWS=instructions";
            return Err(why.to_owned());
        }
        if options.against.is_some() {
            let has_before =
                |row: &&Row| matches!(&row.kind, Kind::Rounds(experiment) if !experiment.before().is_empty());
            options.rows.retain(has_before);
            options.peers.clear();
        }
        let is_compared = |peer: &Contender| options.rows.iter().any(|row| row.compares_with(*peer));
        options.peers.retain(is_compared);
        Ok(options)
    }

    /// What is compared in an experiment.
    pub fn comparisons(&self, experiment: &Experiment) -> Vec<Comparison> {
        if self.against.is_some() {
            return experiment.before();
        }
        let is_wanted = |peer: Contender| !Contender::PEERS.contains(&peer) || self.peers.contains(&peer);
        experiment.comparisons.iter().filter(|comparison| comparison.other.is_none_or(is_wanted)).copied().collect()
    }

    /// Whether another program is needed: a peer, a target, or a counter.
    pub fn needs(&self, program: &str) -> bool {
        let takes_part = |row: &Row| match &row.kind {
            Kind::Rounds(experiment) => experiment.load.target == Target::Tls && nginx::PROGRAMS.contains(&program),
            Kind::Counted(_) => [Counter::Instructions, Counter::SystemCalls].map(Counter::program).contains(&program),
            Kind::Evidence(_) => Counter::SystemCalls.program() == program,
            Kind::Storm | Kind::Steady => false,
            Kind::Instructions => Counter::Instructions.program() == program,
        };
        self.peers.iter().any(|peer| peer.name() == program) || self.rows.iter().any(|row| takes_part(row))
    }

    /// Whether only instructions are counted, without any load.
    pub fn is_only_instructions(&self) -> bool {
        self.rows.iter().all(|row| matches!(row.kind, Kind::Instructions))
    }
}

/// The named rows.
fn rows(names: &str) -> Result<Vec<&'static Row>, String> {
    let names: Vec<&str> = names.split(',').collect();
    let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("ROWS={unknown}: known are {}", known.join(",")));
    }
    Ok(ROWS.iter().filter(|row| names.contains(&row.name)).collect())
}

fn peer(name: &str) -> Result<Contender, String> {
    let known: Vec<&str> = Contender::PEERS.iter().map(|peer| peer.name()).collect();
    let found = Contender::PEERS.iter().find(|peer| peer.name() == name);
    found.copied().ok_or_else(|| format!("PEERS={name}: known are {}", known.join(",")))
}

fn build(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path)
        .ok()
        .filter(|path| path.is_file())
        .ok_or_else(|| format!("AGAINST={path}: there is no such file; it is the onrush of another build"))
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1000) => Ok(number),
        _ => Err(format!("ROUNDS={text}: not a whole number from 1 to 1000")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiment::{Limit, Measure};
    use super::*;

    fn names(options: &Options) -> Vec<&str> {
        options.rows.iter().map(|row| row.name).collect()
    }

    #[test]
    fn without_values_everything_is_measured_and_nothing_saved() {
        let options = Options::parse(&["ROWS=", "PEERS=", "ROUNDS=", "SAVE="]).unwrap();
        assert_eq!(options.rows.len(), ROWS.len());
        assert_eq!(options.peers, Contender::PEERS);
        assert_eq!((options.rounds, options.save), (21, false));
    }

    #[test]
    fn a_part_is_measured_in_the_order_of_the_table() {
        let options = Options::parse(&["ROWS=big,small", "PEERS=wrk", "ROUNDS=5"]).unwrap();
        assert_eq!(names(&options), ["small", "big"]);
        assert_eq!(options.peers, [Contender::Wrk]);
        assert_eq!(options.rounds, 5);
    }

    #[test]
    fn only_what_takes_part_is_needed() {
        const PROGRAMS: [&str; 6] = ["wrk", "h2load", "nginx", "openssl", "valgrind", "strace"];
        for (words, expected) in [
            (&[][..], &PROGRAMS[..]),
            (&["ROWS=small,big", "PEERS=wrk"], &["wrk"]),
            (&["ROWS=pipelined"], &["wrk"]),
            (&["ROWS=tls", "PEERS=wrk"], &["wrk", "nginx", "openssl"]),
            (&["ROWS=script-static"], &["valgrind", "strace"]),
            (&["ROWS=instructions"], &["valgrind"]),
        ] {
            let options = Options::parse(words).unwrap();
            let needed = PROGRAMS.into_iter().filter(|program| options.needs(program));
            assert_eq!(needed.collect::<Vec<_>>(), expected, "{words:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_named_with_what_is() {
        for (word, expected) in [
            ("ROWS=tiny", "ROWS=tiny: known are small,thousand,"),
            ("PEERS=ab", "PEERS=ab: known are wrk,wrk2,h2load,shb,oha"),
            ("AGAINST=/nowhere/onrush", "AGAINST=/nowhere/onrush: there is no such file"),
            ("ROUNDS=0", "ROUNDS=0: not a whole number from 1 to 1000"),
            ("ROUND=3", "ROUND=3: known are ROWS=, PEERS=, AGAINST=, ROUNDS= and SAVE=1"),
            ("small", "small: known are ROWS="),
        ] {
            let error = Options::parse(&[word]).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn against_another_build_only_onrush_is_measured() {
        let options = Options::parse(&["AGAINST=Cargo.toml", "ROWS=small,mixed,storm,limit,instructions"]).unwrap();
        assert_eq!(names(&options), ["small", "mixed", "limit"]);
        assert!(options.peers.is_empty() && !options.needs("wrk"));
        let Kind::Rounds(mixed) = &options.rows[1].kind else { panic!("mixed is measured in rounds") };
        let shown = |comparison: Comparison| (comparison.ours, comparison.other, comparison.limit, comparison.measure);
        let (uring, epoll) = ((Contender::Uring, Contender::Before), (Contender::Epoll, Contender::EpollBefore));
        let (no_less, no_more) = (Some(Limit::AtLeast(1.0)), Some(Limit::AtMost(1.0)));
        let expected = [(uring, Measure::Rate, no_less), (epoll, Measure::Rate, no_less)]
            .into_iter()
            .chain([(uring, Measure::CpuPerRequest, no_more), (epoll, Measure::CpuPerRequest, no_more)])
            .map(|((ours, other), measure, limit)| (ours, Some(other), limit, Some(measure)));
        assert!(options.comparisons(mixed).into_iter().map(shown).eq(expected));
    }

    #[test]
    fn a_part_of_the_document_is_never_saved() {
        assert!(Options::parse(&["SAVE=1"]).unwrap().save);
        assert!(Options::parse(&["ROWS=instructions", "SAVE=1"]).unwrap().save);
        for part in ["ROWS=small", "PEERS=wrk", "AGAINST=Cargo.toml"] {
            assert!(Options::parse(&[part, "SAVE=1"]).unwrap_err().starts_with("SAVE=1 writes the whole document"));
        }
    }
}
