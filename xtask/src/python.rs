//! Provides a Python for the tests in `target/python`, with an independent library that reads our histograms.

use std::io;
use std::process::{Command, Stdio};

use crate::path;

/// What is installed into it, from PyPI.
const LIBRARY: &str = "hdrhistogram==0.10.8";

/// Its module that the tests import.
const MODULE: &str = "hdrh.histogram";

/// Creates it, unless the library is installed; if that fails, a test is skipped by name.
///
/// # Errors
/// A process that cannot be started.
pub fn provide() -> io::Result<()> {
    if !path::has("python3") || has_library()? {
        return Ok(());
    }
    println!("The tests need {LIBRARY} for Python: it must decode the histograms of result files to the same counts.");
    println!("Installing it into target/python.");
    let made = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(path::python()))?
        && run(Command::new(path::python().join("bin/pip")).args(["install", "--quiet", LIBRARY]))?;
    if !made || !has_library()? {
        println!("Without it, its test is skipped. It needs python3-venv and access to pypi.org.");
    }
    Ok(())
}

/// Whether the Python that the tests find has the library.
fn has_library() -> io::Result<bool> {
    run(Command::new("python3").args(["-c", &format!("import {MODULE}")]).stderr(Stdio::null()))
}

fn run(command: &mut Command) -> io::Result<bool> {
    match command.env("PATH", path::search()).status() {
        Ok(status) => Ok(status.success()),
        // It does not exist.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
