//! What `make bench` was asked for: `ROWS`, `PEERS`, `ROUNDS` and `SAVE`, as words of the form `NAME=VALUE`.

use super::contender::Contender;
use super::counter::Counter;
use super::load::Target;
use super::nginx;
use super::rows::{Kind, ROWS, Row};

/// As many paired rounds as a figure has to rest on.
pub const ROUNDS: usize = 21;

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    /// The rows to measure, in the order of the table.
    pub rows: Vec<&'static Row>,
    /// Whom to measure against.
    pub peers: Vec<Contender>,
    /// How many paired rounds.
    pub rounds: usize,
    /// Whether the document is written anew.
    pub save: bool,
}

impl Options {
    /// Reads them; an empty value is none.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let all = || ROWS.iter().collect();
        let mut options = Self { rows: all(), peers: Contender::PEERS.to_vec(), rounds: ROUNDS, save: false };
        for word in words {
            match word.split_once('=') {
                Some((_, "")) => {}
                Some(("ROWS", names)) => options.rows = rows(names)?,
                Some(("PEERS", names)) => options.peers = names.split(',').map(peer).collect::<Result<_, _>>()?,
                Some(("ROUNDS", number)) => options.rounds = rounds(number)?,
                Some(("SAVE", value)) => options.save = value != "0",
                _ => return Err(format!("{word}: known are ROWS=, PEERS=, ROUNDS= and SAVE=1")),
            }
        }
        let is_whole = options.rows.len() == ROWS.len() && options.peers.len() == Contender::PEERS.len();
        if options.save && !is_whole && !options.is_only_instructions() {
            return Err("SAVE=1 writes the whole document: leave ROWS and PEERS out, or ROWS=instructions".to_owned());
        }
        let is_compared = |peer: &Contender| options.rows.iter().any(|row| row.compares_with(*peer));
        options.peers.retain(is_compared);
        Ok(options)
    }

    /// Whether a program of others takes part: a peer, a target, or one that counts.
    pub fn needs(&self, program: &str) -> bool {
        let takes_part = |row: &Row| match &row.kind {
            Kind::Rounds(experiment) => experiment.load.target == Target::Tls && nginx::PROGRAMS.contains(&program),
            Kind::Counted(_) => [Counter::Instructions, Counter::SystemCalls].map(Counter::program).contains(&program),
            Kind::Storm | Kind::Steady => false,
            Kind::Instructions => Counter::Instructions.program() == program,
        };
        self.peers.iter().any(|peer| peer.name() == program) || self.rows.iter().any(|row| takes_part(row))
    }

    /// Whether nothing but instructions is counted: no load is made then.
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

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1000) => Ok(number),
        _ => Err(format!("ROUNDS={text}: not a whole number from 1 to 1000")),
    }
}

#[cfg(test)]
mod tests {
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
            ("PEERS=ab", "PEERS=ab: known are wrk,h2load,shb,oha"),
            ("ROUNDS=0", "ROUNDS=0: not a whole number from 1 to 1000"),
            ("ROUND=3", "ROUND=3: known are ROWS=, PEERS=, ROUNDS= and SAVE=1"),
            ("small", "small: known are ROWS="),
        ] {
            let error = Options::parse(&[word]).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_part_of_the_document_is_never_saved() {
        assert!(Options::parse(&["SAVE=1"]).unwrap().save);
        assert!(Options::parse(&["ROWS=instructions", "SAVE=1"]).unwrap().save);
        for part in ["ROWS=small", "PEERS=wrk"] {
            assert!(Options::parse(&[part, "SAVE=1"]).unwrap_err().starts_with("SAVE=1 writes the whole document"));
        }
    }
}
