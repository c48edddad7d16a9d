//! onrush: an HTTP load generator for Linux. The program knows all commands, parses the command line, executes it, and
//! returns the exit code.
//!
//! A single run is in [`onrush_load`], the commands that make or evaluate many runs are in [`onrush_lab`], and the
//! embedded target is [`onrush_serve`]. The commands here need several of them: [`show`] and [`merge`] print and add up
//! saved results, [`kubernetes`] carries a run out in a cluster, and [`serve`] starts the target.

#![forbid(unsafe_code)]

mod kubernetes;
mod merge;
mod serve;
mod show;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use onrush_lab::{compare, experiment, restore, search, tables};
use onrush_load::cli::{self, Commands, Invocation};
use onrush_load::program::{self, print, say};
use onrush_load::{single, worker};

/// All commands other than a single run.
const COMMANDS: Commands = Commands {
    named: &[
        serve::COMMAND,
        merge::COMMAND,
        show::COMMAND,
        compare::COMMAND,
        tables::COMMAND,
        experiment::LAB,
        experiment::SWEEP,
        experiment::VERSUS,
        worker::COMMAND,
        kubernetes::COMMAND,
        restore::COMMAND,
    ],
    instead: search::SEARCH,
};

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
