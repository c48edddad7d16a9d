//! `make demo`: starts the embedded target on a free port of the loopback, and puts five seconds of load on it.
//!
//! The server ends with this process, even on an interrupt; only `kill -9` of this process leaves it running.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Cargo's arguments for the program as users install it.
const PROGRAM: [&str; 5] = ["--release", "--package", "onrush", "--bin", "onrush"];

/// Runs the demo; the exit code is the load generator's.
///
/// # Errors
/// A process that cannot be started, or a server that does not say where it listens.
pub fn run() -> io::Result<ExitCode> {
    if !build()? {
        return Ok(ExitCode::FAILURE);
    }
    // From here on a signal does not end this process before the server. At a terminal the load generator gets the
    // interrupt too, and prints what it has measured so far.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    let (server, url) = Server::start()?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(ExitCode::FAILURE);
    }
    println!("$ onrush -d5 --latency {url}");
    let status = onrush().args(["-d5", "--latency", &url]).status()?;
    drop(server);
    let is_good = status.success() && !interrupted.load(Ordering::Relaxed);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the program; returns whether that succeeded.
///
/// # Errors
/// A cargo that cannot be started.
pub fn build() -> io::Result<bool> {
    Ok(crate::cargo().arg("build").args(PROGRAM).status()?.success())
}

/// The command that starts the program. `cargo run` replaces itself by it, so the process is the program's.
fn onrush() -> Command {
    let mut command = crate::cargo();
    command.args(["run", "--quiet"]).args(PROGRAM).arg("--");
    command
}

/// The embedded target in its own process, which is ended when this is dropped.
pub struct Server(Child);

impl Server {
    /// Starts it and waits until it prints its URL; returns that too.
    ///
    /// # Errors
    /// A process that cannot be started, or that prints no URL.
    pub fn start() -> io::Result<(Self, String)> {
        println!("$ onrush serve --addr 127.0.0.1:0");
        let mut command = onrush();
        // In its own process group, so that an interrupt at the terminal does not reach the server: it ends after the
        // load.
        command.args(["serve", "--addr", "127.0.0.1:0"]).process_group(0).stdout(Stdio::piped());
        let mut server = Self(command.spawn()?);
        let mut line = String::new();
        // The pipe stays open after this line, so that the server never writes into a closed one.
        if let Some(stdout) = &mut server.0.stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        print!("{line}");
        match url(&line) {
            Some(url) => Ok((server, url.to_string())),
            None => Err(io::Error::other("the server did not say where it listens")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the server has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The URL in what the server prints when it is ready.
fn url(line: &str) -> Option<&str> {
    line.split_whitespace().find(|word| word.starts_with("http://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_read_from_the_servers_first_line() {
        let line = "onrush serve: listening on http://127.0.0.1:40123/ (1 thread)\n";
        assert_eq!(url(line), Some("http://127.0.0.1:40123/"));
        assert_eq!(url("error: address in use\n"), None);
        assert_eq!(url(""), None);
    }
}
