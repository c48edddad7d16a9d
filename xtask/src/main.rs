//! Development tasks, run by targets of the `Makefile`: `cargo xtask tidy`, `licences`, `sbom`, `pictures` and `bench`.
//!
//! Not part of the program, and not needed to build it.

#![forbid(unsafe_code)]

mod bench;
mod crates;
mod licences;
mod pictures;
mod sbom;
mod tidy;
mod tools;

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask TASK
  tidy  name every place that breaks a house rule
  licences
        print the licences of everything that is in the program, and their texts
  sbom TIME
        print what is in the program, for programs to read: CycloneDX with that time, such as 2026-01-31T12:00:00Z
  pictures
        run what the pictures in docs/pictures show, and redraw them
  bench [ROWS=small,big] [PEERS=wrk] [AGAINST=FILE] [ROUNDS=21] [SAVE=1]
        compare load generators, or two builds of onrush
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        ["licences"] => licences::run(),
        ["sbom", time] => sbom::run(time),
        ["pictures"] => pictures::run(),
        ["bench", ref words @ ..] => bench::run(words),
        _ => {
            eprint!("{USAGE}");
            Ok(ExitCode::FAILURE)
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::FAILURE
    })
}

/// Prints the findings and their number.
fn tidy() -> io::Result<ExitCode> {
    let findings = tidy::tree(&root())?;
    let lines: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    // A reader that closes the pipe, such as `head`, is no error.
    let _ = writeln!(io::stdout(), "{lines}tidy: {} findings", findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// cargo's target directory.
fn target() -> io::Result<PathBuf> {
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(named.unwrap_or(root().canonicalize()?.join("target")))
}

/// The cargo that runs this program, in the root of the repository.
fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
