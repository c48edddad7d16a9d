//! The program: parses the command line, executes it, and returns the exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use onrush::cli::{self, Invocation};
use onrush::program::{self, print, say};
use onrush::{COMMANDS, single};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| say(&format!("onrush: a bug in onrush, please report it: {panic}"))));
    program::prepare();
    program::leave(match cli::parse(std::env::args_os(), &COMMANDS) {
        Invocation::Print { stdout, stderr, exit } => {
            if !stderr.is_empty() {
                say(stderr.trim_end_matches('\n'));
            }
            print("onrush", Ok(stdout), exit)
        }
        Invocation::Command { work, warnings } => {
            warnings.iter().for_each(|line| say(line));
            work.carry_out()
        }
        Invocation::Run { mut plan, warnings } => {
            warnings.iter().for_each(|line| say(line));
            single::run_and_report(&mut plan)
        }
    })
}
