//! `make test`: all checks, one step after the other, and one line at the end that counts the tests.
//!
//! Later steps run even if one fails, so that one run shows everything that needs fixing.

use std::io::{self, BufRead, BufReader, Write};
use std::ops::AddAssign;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::{path, python, tools};

/// One call of cargo.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    /// The toolchain component it needs, which a minimal toolchain lacks.
    component: Option<&'static str>,
    /// The other target it compiles for, which few toolchains have.
    target: Option<&'static str>,
}

/// Another C library: code that compiles for both makes fewer assumptions.
const MUSL: &str = "x86_64-unknown-linux-musl";

const STEPS: &[Step] = &[
    Step { name: "format", arguments: &["fmt", "--all", "--check"], component: Some("rustfmt"), target: None },
    Step {
        name: "lint",
        arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        component: Some("clippy"),
        target: None,
    },
    Step { name: "documentation", arguments: &["doc", "--workspace", "--no-deps"], component: None, target: None },
    Step { name: "musl", arguments: &["check", "--target", MUSL], component: None, target: Some(MUSL) },
    // Unit, integration and documentation tests, the fuzz corpora, and tidy, which is a test of this crate.
    Step { name: "tests", arguments: &["test", "--workspace", "--no-fail-fast"], component: None, target: None },
];

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    /// It could not run here, which is not a failure on a developer's machine.
    Skipped,
}

/// Runs all steps; fails if one of them did.
///
/// # Errors
/// A process that cannot be started.
pub fn run() -> io::Result<ExitCode> {
    tools::provide(&tools::TESTS, |_| true)?;
    python::provide()?;
    let mut tally = Tally::default();
    let mut ended = Vec::new();
    for step in STEPS {
        println!("== {}: cargo {}", step.name, step.arguments.join(" "));
        ended.push(step.run(&mut tally)?);
    }
    println!("== summary");
    for (step, ended) in STEPS.iter().zip(&ended) {
        println!("{}: {}", step.name, format!("{ended:?}").to_lowercase());
    }
    let Tally { passed, failed, skipped } = tally;
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(if ended.contains(&Ended::Failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Step {
    /// Runs the step, and adds its tests to `tally`.
    fn run(&self, tally: &mut Tally) -> io::Result<Ended> {
        if let Some(component) = self.component
            && !self.has_component()
            && !self.add(component)
        {
            println!("{component} is missing; to add it: rustup component add {component}");
            return Ok(if tools::is_ci() { Ended::Failed } else { Ended::Skipped });
        }
        if let Some(target) = self.target.filter(|target| !is_installed(target)) {
            println!("{target} is not installed; to add it: rustup target add {target}");
            return Ok(Ended::Skipped);
        }
        let mut command = crate::cargo();
        command.args(self.arguments).env("RUSTDOCFLAGS", "-D warnings").env("PATH", path::search());
        // Nothing is linked, so this system's compiler is good enough for the parts in C.
        command.envs([("CC_x86_64_unknown_linux_musl", "cc"), ("AR_x86_64_unknown_linux_musl", "ar")]);
        Ok(if run_counting(&mut command, &mut io::stdout(), tally)? { Ended::Passed } else { Ended::Failed })
    }

    /// Whether cargo has the subcommand.
    fn has_component(&self) -> bool {
        let output = crate::cargo().args(&self.arguments[..1]).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    }

    /// Tries to add a component to the toolchain.
    fn add(&self, component: &str) -> bool {
        println!("{component} is missing; asking rustup for it");
        let status = Command::new("rustup").args(["component", "add", component]).current_dir(crate::root()).status();
        status.is_ok_and(|status| status.success()) && self.has_component()
    }
}

/// Whether the toolchain has the standard library of another system.
fn is_installed(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// How many tests ran, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    /// Reads a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`, with or without colours.
    fn parse(line: &str) -> Option<Self> {
        let (_, counts) = line.split_once("test result: ")?;
        let words: Vec<&str> = counts.split([' ', ';']).collect();
        let count = |what: &str| {
            let at = words.iter().position(|word| *word == what)?;
            words.get(at.checked_sub(1)?)?.parse().ok()
        };
        Some(Self { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Runs `command`, passes its output on line by line, and adds every result line to `tally`; returns whether it
/// succeeded.
fn run_counting(command: &mut Command, shown: &mut impl Write, tally: &mut Tally) -> io::Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line)? > 0 {
            shown.write_all(&line)?;
            if let Some(tests) = Tally::parse(&String::from_utf8_lossy(&line)) {
                *tally += tests;
            }
            line.clear();
        }
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_line_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(Tally::parse(line), Some(Tally { passed: 12, failed: 3, skipped: 4 }));
        let coloured = "test result: \x1b[32mok\x1b[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(Tally::parse(coloured), Some(Tally { passed: 1, failed: 0, skipped: 0 }));
    }

    #[test]
    fn other_lines_are_not_counted() {
        for line in ["test a ... ok", "running 3 tests", "test result: unknown", "3 passed; 0 failed; 0 ignored", ""] {
            assert_eq!(Tally::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_results_of_several_programs_add_up_and_their_verdict_is_the_commands() {
        let output = "running 3 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n\n".repeat(2);
        let (mut shown, mut tally) = (Vec::new(), Tally::default());
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf %s \"$1\"; exit 3", "sh", &output]);
        assert!(!run_counting(&mut shell, &mut shown, &mut tally).unwrap());
        assert_eq!(tally, Tally { passed: 4, failed: 0, skipped: 2 });
        assert_eq!(String::from_utf8(shown).unwrap(), output);
    }
}
