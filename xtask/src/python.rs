//! A Python of the tests' own, in `target/python`: with a library that reads our histograms and is not ours.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::tools;

/// What is installed into it, from PyPI.
const LIBRARY: &str = "hdrhistogram==0.10.8";

/// The module of it that the tests ask for.
const MODULE: &str = "hdrh.histogram";

/// Makes it, unless the library is there; a machine on which that does not go skips a test, by name.
///
/// # Errors
/// A process that cannot be started.
pub fn provide() -> io::Result<()> {
    if !tools::is_there("python3") || has_library()? {
        return Ok(());
    }
    println!("The tests need {LIBRARY} for Python: it must decode the histograms of result files to the same counts.");
    println!("Installing it into target/python.");
    let made = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(directory()))?
        && run(Command::new(programs().join("pip")).args(["install", "--quiet", LIBRARY]))?;
    if !made || !has_library()? {
        println!("Without it its test is skipped. It takes python3-venv and a way to pypi.org.");
    }
    Ok(())
}

/// Where its programs are.
pub fn programs() -> PathBuf {
    directory().join("bin")
}

fn directory() -> PathBuf {
    crate::root().join("target/python")
}

/// Whether the Python that the tests find has the library.
fn has_library() -> io::Result<bool> {
    run(Command::new("python3").args(["-c", &format!("import {MODULE}")]).stderr(Stdio::null()))
}

fn run(command: &mut Command) -> io::Result<bool> {
    match command.env("PATH", tools::path()).status() {
        Ok(status) => Ok(status.success()),
        // It was not made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
