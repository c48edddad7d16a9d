//! `make demo`: the embedded target on a free port of the loopback, and five seconds of load on it.
//!
//! The server ends with us on every path, an interrupt too; only a `kill -9` of this process would leave it running.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The program as people install it, for cargo.
const PROGRAM: [&str; 5] = ["--release", "--package", "onrush", "--bin", "onrush"];

/// Runs the demo; the exit code is the load generator's.
///
/// # Errors
/// A process that cannot be started, or a server that does not say where it listens.
pub fn run() -> io::Result<ExitCode> {
    if !crate::cargo().arg("build").args(PROGRAM).status()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    // From here on a signal does not end us before the server has ended. At a terminal the load generator gets the
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

/// The program, ready to be started. `cargo run` turns itself into it, so the process is the program's.
fn onrush() -> Command {
    let mut command = crate::cargo();
    command.args(["run", "--quiet"]).args(PROGRAM).arg("--");
    command
}

/// The embedded target as a process of its own, ended when this is dropped.
struct Server(Child);

impl Server {
    /// Starts it and waits until it says where it listens; gives that URL too.
    fn start() -> io::Result<(Self, String)> {
        println!("$ onrush serve --addr 127.0.0.1:0");
        let mut command = onrush();
        // A group of its own: an interrupt at the terminal is not for the server, it ends when the load has.
        command.args(["serve", "--addr", "127.0.0.1:0"]).process_group(0).stdout(Stdio::piped());
        let mut server = Self(command.spawn()?);
        let mut line = String::new();
        // The pipe stays open after this line, lest the server writes into a closed one.
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
        // Neither can fail but for a server that has ended already, which is what they are for.
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
