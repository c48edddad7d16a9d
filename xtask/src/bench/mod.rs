//! `make bench`: compares load generators on this machine, and checks the limits.
//!
//! [`rows`] is the table as data, [`experiment`] the kinds of measurement, [`contender`] the programs, [`mod@measure`]
//! the rounds, [`overhead`] what is counted instead of timed, [`evidence`] the cost of the evidence, [`connecting`]
//! that of connections, [`estimate`] the time it takes; [`outputs`], [`median`] and [`table`] are arithmetic and text.
//! Our own programs that it starts are in `benches/`.

mod connecting;
mod contender;
mod counter;
mod estimate;
mod evidence;
mod experiment;
mod instructions;
mod load;
mod machine;
mod measure;
mod median;
mod nginx;
mod options;
mod outputs;
mod overhead;
mod process;
mod programs;
mod rows;
mod table;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use experiment::Kind;
use instructions::Count;
use machine::Machine;
use measure::Line;
use options::Options;
use process::Stage;
use programs::Programs;
use rows::Row;
use table::Table;

/// The document that `SAVE=1` writes, and its template.
const DOCUMENT: &str = "docs/benchmarks.md";
const TEMPLATE: &str = include_str!("benchmarks.md");

/// Measures what `words` ask for. It fails if instruction counts have grown (unless they are saved as the new
/// reference), but not for a missed limit.
///
/// # Errors
/// A machine that cannot measure, a build that fails, a file that cannot be written.
pub fn run(words: &[&str]) -> io::Result<ExitCode> {
    let options = Options::parse(words).map_err(io::Error::other)?;
    let directory = crate::target()?.join("bench");
    fs::create_dir_all(&directory)?;
    // onrush writes there, even if cargo builds in another directory.
    if let Some(results) = crate::root().join(load::RESULT).parent() {
        fs::create_dir_all(results)?;
    }
    let machine = Machine::look()?;
    let programs = Programs::provide(&options, &directory)?;
    let about = [
        format!("Machine: {}.", machine.about),
        format!("Programs: {}.", programs.versions(&options.peers)?),
        format!("Method: {} paired rounds of a second each, in turns; the median of their ratios.", options.rounds),
    ];
    println!("{}", about.join("\n"));
    println!("It takes {}.", estimate::duration(&options));
    let stage = Stage { machine: &machine, programs: &programs, directory: &directory };
    let (mut lines, mut counts) = (Vec::new(), Err("not requested".to_owned()));
    for row in &options.rows {
        match &row.kind {
            Kind::Instructions => counts = count(&stage)?,
            _ => lines.extend(measure(&stage, row, &options)?),
        }
    }
    let is_worse = counts.iter().flatten().any(Count::is_regression);
    if options.save
        && let Ok(counts) = &mut counts
    {
        instructions::save(counts, &machine.compiler)?;
    }
    let results = Results { about: &about, lines: &lines, counts: &counts };
    results.write(&directory)?;
    if options.save && !options.is_only_instructions() {
        fs::write(crate::root().join(DOCUMENT), results.document())?;
    }
    Ok(if is_worse && !options.save { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Measures one row and prints the outcome.
fn measure(stage: &Stage<'_>, row: &Row, options: &Options) -> io::Result<Vec<Line>> {
    println!("\n{}: {}", row.name, row.work);
    let outcomes = match &row.kind {
        Kind::Rounds(experiment) => measure::run(stage, experiment, options)?,
        Kind::Counted(overhead) => overhead::run(stage, overhead, options)?,
        Kind::Evidence(load) => evidence::run(stage, load, options.rounds)?,
        Kind::Storm => connecting::storm(stage, &options.peers, options.rounds)?,
        Kind::Steady => connecting::steady(stage, options.rounds)?,
        Kind::Instructions => Vec::new(),
    };
    let line = |(unit, comparison, outcome)| Line { row: row.name, work: row.work, unit, comparison, outcome };
    let lines: Vec<Line> = outcomes.into_iter().map(line).collect();
    print!("{}", Table::of_lines(&lines).text());
    Ok(lines)
}

/// Counts instructions and prints them, or why they cannot be counted.
fn count(stage: &Stage<'_>) -> io::Result<Result<Vec<Count>, String>> {
    println!("\ninstructions");
    let counts = instructions::count(stage.programs, stage.directory)?;
    print!("{}", shown(&counts, Table::text));
    Ok(counts)
}

/// The counts as a table in some form, or why there are none.
fn shown(counts: &Result<Vec<Count>, String>, form: impl Fn(&Table) -> String) -> String {
    match counts {
        Ok(counts) => form(&Table::of_counts(counts)),
        Err(why) => format!("{why}\n"),
    }
}

/// Everything that was measured.
struct Results<'a> {
    about: &'a [String],
    lines: &'a [Line],
    counts: &'a Result<Vec<Count>, String>,
}

impl Results<'_> {
    /// Writes both forms of the results.
    fn write(&self, directory: &Path) -> io::Result<()> {
        let tables =
            format!("{}\ninstructions\n{}", Table::of_lines(self.lines).text(), shown(self.counts, Table::text));
        fs::write(directory.join("results.txt"), format!("{}\n\n{tables}", self.about.join("\n")))?;
        let json = table::json(self.about, self.lines, self.counts.as_deref().unwrap_or_default());
        fs::write(directory.join("results.json"), format!("{json:#}\n"))?;
        println!("\nResults are in {0}/results.txt and {0}/results.json.", directory.display());
        Ok(())
    }

    /// The document.
    fn document(&self) -> String {
        let about: String = self.about.iter().map(|line| format!("* {line}\n")).collect();
        TEMPLATE
            .replace("{about}\n", &about)
            .replace("{table}\n", &format!("{}\n", Table::of_lines(self.lines).markdown()))
            .replace("{instructions}\n", &format!("{}\n", shown(self.counts, Table::markdown)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_no_gap_left() {
        let about = ["Machine: fast.".to_owned()];
        let counts = Ok(vec![Count { operation: "parse".to_owned(), instructions: 1.0, reference: None }]);
        let document = Results { about: &about, lines: &[], counts: &counts }.document();
        assert!(document.contains("\n* Machine: fast.\n"), "{document}");
        assert!(document.contains("\n| parse | 1.0 | – | no reference |\n"), "{document}");
        assert!(!document.contains('{'), "{document}");
    }
}
