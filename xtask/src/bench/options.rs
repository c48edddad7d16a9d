//! Options of `make bench`: `ROWS`, `PEERS`, `AGAINST`, `ROUNDS`, `DIST` and `SAVE`, as arguments `NAME=VALUE`.

use std::path::PathBuf;

use super::contender::{Contender, GeneratorProgram, PEERS};
use super::measure::{MeasureComparison, ValueSource};
use super::nginx;
use super::rows::{BenchRow, ROWS};

/// Default number of paired rounds.
const ROUNDS: usize = 21;

/// Options of `make bench`.
#[derive(Debug)]
pub struct BenchOptions {
    /// Rows to measure, in the order of the table.
    pub rows: Vec<&'static BenchRow>,
    peers: Vec<GeneratorProgram>,
    /// Path of another build of onrush, which is then the only peer.
    pub against: Option<PathBuf>,
    /// Number of paired rounds.
    pub rounds: usize,
    /// True to measure the packaged onrush, not one built by cargo for this machine.
    pub is_packaged: bool,
    /// True to rewrite the document.
    pub save: bool,
}

impl BenchOptions {
    /// Parses the options; an empty value is ignored.
    ///
    /// # Errors
    ///
    /// A sentence that names the fault and the allowed values.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let (rows, peers) = (ROWS.iter().collect(), PEERS.to_vec());
        let mut options = Self { rows, peers, against: None, rounds: ROUNDS, is_packaged: false, save: false };
        for word in words {
            match word.split_once('=') {
                Some((_, "")) => {}
                Some(("ROWS", names)) => {
                    let chosen = select_named("ROWS", names, ROWS, |row| row.name)?;
                    options.rows = ROWS.iter().filter(|row| chosen.iter().any(|one| one.name == row.name)).collect();
                }
                Some(("PEERS", names)) => {
                    options.peers =
                        select_named("PEERS", names, PEERS, |peer| peer.name())?.into_iter().copied().collect();
                }
                Some(("AGAINST", path)) => options.against = Some(build(path)?),
                Some(("ROUNDS", number)) => options.rounds = rounds(number)?,
                Some(("DIST", value)) => options.is_packaged = value != "0",
                Some(("SAVE", value)) => options.save = value != "0",
                _ => return Err(format!("{word}: known are ROWS=, PEERS=, AGAINST=, ROUNDS=, DIST=1 and SAVE=1")),
            }
        }
        let is_whole = options.rows.len() == ROWS.len() && options.peers.len() == PEERS.len();
        if options.save && !(is_whole && options.against.is_none()) {
            return Err("SAVE=1 writes the whole document: leave ROWS, PEERS and AGAINST out".to_owned());
        }
        Ok(options)
    }

    /// The comparisons to make for a row, with the selected peers or with the other build.
    pub fn comparisons(&self, row: &BenchRow) -> Vec<MeasureComparison> {
        if self.against.is_some() {
            return row.between_builds();
        }
        let is_wanted = |other: Contender| !PEERS.contains(&other.program) || self.peers.contains(&other.program);
        row.comparisons.iter().filter(|comparison| comparison.other.is_none_or(is_wanted)).copied().collect()
    }

    /// The peers that take part.
    pub fn peers(&self) -> Vec<GeneratorProgram> {
        let compared: Vec<GeneratorProgram> =
            self.all().filter_map(|(_, comparison)| comparison.other).map(|other| other.program).collect();
        PEERS.iter().filter(|peer| compared.contains(peer)).copied().collect()
    }

    /// All required programs except our own: peers, targets and counters.
    pub fn needed(&self) -> Vec<&'static str> {
        let mut needed: Vec<&str> = self.peers().into_iter().map(GeneratorProgram::name).collect();
        for (row, comparison) in self.all() {
            if row.work.target.is_nginx() {
                needed.extend(nginx::PROGRAMS);
            }
            if let ValueSource::Counted(counter) = comparison.measure.how {
                needed.push(counter.program());
            }
        }
        needed
    }

    /// All comparisons of all selected rows, each with its row.
    fn all(&self) -> impl Iterator<Item = (&BenchRow, MeasureComparison)> {
        self.rows.iter().flat_map(|row| self.comparisons(row).into_iter().map(|comparison| (*row, comparison)))
    }
}

/// The items named in a comma-separated list.
fn select_named<'a, T>(
    option: &str,
    names: &str,
    all: &'a [T],
    name: impl Fn(&T) -> &'static str,
) -> Result<Vec<&'a T>, String> {
    let find = |wanted| {
        all.iter().find(|one| name(one) == wanted).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(&name).collect();
            format!("{option}={wanted}: known are {}", known.join(","))
        })
    };
    names.split(',').map(find).collect()
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
    use super::*;

    fn names(options: &BenchOptions) -> Vec<&str> {
        options.rows.iter().map(|row| row.name).collect()
    }

    #[test]
    fn default_options_measure_all_and_save_nothing() {
        let options = BenchOptions::parse(&["ROWS=", "PEERS=", "ROUNDS=", "SAVE="]).unwrap();
        assert_eq!(options.rows.len(), ROWS.len());
        assert_eq!(options.peers(), PEERS);
        assert_eq!((options.rounds, options.save), (21, false));
    }

    #[test]
    fn chosen_rows_keep_the_tables_order() {
        let options = BenchOptions::parse(&["ROWS=big,small", "PEERS=wrk", "ROUNDS=5"]).unwrap();
        assert_eq!(names(&options), ["small", "big"]);
        assert_eq!(options.peers(), [GeneratorProgram::Wrk]);
        assert_eq!(options.rounds, 5);
    }

    #[test]
    fn only_participants_are_needed() {
        const PROGRAMS: [&str; 6] = ["wrk", "h2load", "nginx", "openssl", "valgrind", "strace"];
        for (words, expected) in [
            (&[][..], &PROGRAMS[..]),
            (&["ROWS=small,big", "PEERS=wrk"], &["wrk"]),
            (&["ROWS=pipelined"], &["wrk"]),
            (&["ROWS=tls", "PEERS=wrk"], &["wrk", "nginx", "openssl"]),
            (&["ROWS=script-static"], &["valgrind", "strace"]),
            (&["ROWS=instructions"], &["valgrind"]),
            (&["ROWS=tls", "AGAINST=Cargo.toml"], &["nginx", "openssl", "valgrind", "strace"]),
        ] {
            let needed = BenchOptions::parse(words).unwrap().needed();
            let needed = PROGRAMS.into_iter().filter(|program| needed.contains(program));
            assert_eq!(needed.collect::<Vec<_>>(), expected, "{words:?}");
        }
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        for (word, expected) in [
            ("ROWS=tiny", "ROWS=tiny: known are small,thousand,"),
            ("PEERS=ab", "PEERS=ab: known are wrk,wrk2,h2load,shb,oha"),
            ("AGAINST=/nowhere/onrush", "AGAINST=/nowhere/onrush: there is no such file"),
            ("ROUNDS=0", "ROUNDS=0: not a whole number from 1 to 1000"),
            ("ROUND=3", "ROUND=3: known are ROWS=, PEERS=, AGAINST=, ROUNDS=, DIST=1 and SAVE=1"),
            ("small", "small: known are ROWS="),
        ] {
            let error = BenchOptions::parse(&[word]).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn partial_documents_are_never_saved() {
        assert!(BenchOptions::parse(&["SAVE=1"]).unwrap().save);
        for part in ["ROWS=small", "PEERS=wrk", "AGAINST=Cargo.toml"] {
            assert!(
                BenchOptions::parse(&[part, "SAVE=1"]).unwrap_err().starts_with("SAVE=1 writes the whole document")
            );
        }
    }
}
