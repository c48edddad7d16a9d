//! The program: parses the command line, carries out what it asks for, and returns the exit code.

use std::process::ExitCode;

use onrush::cli::{self, Invocation};
use onrush::program::{self, memory, print, say};
use onrush::{COMMANDS, single};
use onrush_engine::backend::memory::Memory;

/// Memory that is refused ends a run, or the program with a sentence.
#[global_allocator]
static MEMORY: Memory = Memory::new(memory::give_up);

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(memory::panicked));
    program::prepare();
    ExitCode::from(match cli::parse(std::env::args_os(), &COMMANDS) {
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
            single::carry_out(&mut plan)
        }
    })
}
