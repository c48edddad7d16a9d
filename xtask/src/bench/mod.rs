//! `make bench`: compares load generators on this machine, and builds of onrush with each other.
//!
//! [`rows`] is the table as data. A row is some [`work`] and its measures, from [`mod@measure`]. [`contender`] lists
//! the programs. [`rounds`] measures time, [`count`] counts. [`process`] starts the programs, and [`outputs`] reads
//! their reports. [`median`] and [`table`] are arithmetic and text. The project's own auxiliary programs are in
//! `benches/`.

mod contender;
mod count;
mod machine;
mod measure;
mod median;
mod nginx;
mod options;
mod outputs;
mod process;
mod programs;
mod rounds;
mod rows;
mod table;
mod work;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use machine::BenchMachine;
use measure::ValueSource;
use options::BenchOptions;
use process::BenchSetup;
use programs::Programs;
use rounds::Rounds;
use rows::BenchRow;
use table::{Table, TableLine};

use crate::tools;

/// The document written by `SAVE=1`, its CSV, and its template.
const DOCUMENT: &str = "docs/benchmarks.md";
const CSV: &str = "docs/benchmarks.csv";
const TEMPLATE: &str = include_str!("benchmarks.md");

/// Measures the rows in `words`. Fails if a count exceeds its limit, but not if a time does.
///
/// # Errors
///
/// If an option is wrong, the machine is unsuitable, a build fails, or a file cannot be written.
pub fn run(words: &[&str]) -> io::Result<ExitCode> {
    let options = BenchOptions::parse(words).map_err(io::Error::other)?;
    let directory = crate::target()?.join("bench");
    fs::create_dir_all(&directory)?;
    // onrush writes to this directory, even if cargo builds in another one.
    if let Some(results) = crate::root().join(work::RESULT).parent() {
        fs::create_dir_all(results)?;
        work::write_files(&crate::root())?;
    }
    let machine = BenchMachine::inspect()?;
    tools::provide(options.needed())?;
    let peers = options.peers();
    let programs = Programs::provide(&options, &directory)?;
    let about = [
        format!("Machine: {}.", machine.about),
        format!("Programs: {}.", programs.versions(&peers)?),
        format!("Method: {} paired rounds, in turns; the median of their ratios.", options.rounds),
    ];
    println!("{}", about.join("\n"));
    let stage = BenchSetup { machine: &machine, programs: &programs, directory: &directory };
    let mut lines = Vec::new();
    for row in &options.rows {
        lines.extend(measure(&stage, row, &options)?);
        write(&directory, &about, &lines)?;
    }
    println!("\nResults are in {0}/results.txt and {0}/results.json.", directory.display());
    if options.save {
        fs::write(crate::root().join(DOCUMENT), document(&about, &lines))?;
        fs::write(crate::root().join(CSV), Table::from_lines(&lines).csv())?;
    }
    Ok(if lines.iter().any(TableLine::is_broken) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Measures one row and prints the result.
fn measure(stage: &BenchSetup<'_>, row: &'static BenchRow, options: &BenchOptions) -> io::Result<Vec<TableLine>> {
    println!("\n{}: {}", row.name, row.sentence);
    let comparisons = options.comparisons(row);
    let rounds = Rounds::run(stage, row, &comparisons, options.rounds)?;
    let lines = comparisons.into_iter().map(|comparison| {
        let outcome = match comparison.measure.how {
            ValueSource::Counted(counter) => count::compare(stage, &row.work, &comparison, counter),
            ValueSource::Median(_) | ValueSource::Lowest(_) => rounds.figures(&comparison),
        };
        TableLine { row, comparison, outcome }
    });
    let lines: Vec<TableLine> = lines.collect();
    print!("{}", Table::from_lines(&lines).text());
    Ok(lines)
}

/// Writes the results so far in both formats.
fn write(directory: &Path, about: &[String], lines: &[TableLine]) -> io::Result<()> {
    let text = format!("{}\n\n{}", about.join("\n"), Table::from_lines(lines).text());
    fs::write(directory.join("results.txt"), text)?;
    fs::write(directory.join("results.json"), format!("{:#}\n", table::json(about, lines)))
}

fn document(about: &[String], lines: &[TableLine]) -> String {
    let about: String = about.iter().map(|line| format!("* {line}\n")).collect();
    TEMPLATE.replace("{about}\n", &about).replace("{table}", &Table::shown(lines).markdown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_no_gap() {
        let document = document(&["Machine: fast.".to_owned()], &[]);
        assert!(document.contains("\n* Machine: fast.\n"), "{document}");
        assert!(!document.contains('{'), "{document}");
    }
}
