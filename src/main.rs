//! The program: parses the command line, carries out what it asks for, and returns the exit code.

use std::process::ExitCode;

use anyhow::anyhow;
use onrush::cli::{self, Invocation};
use onrush::program::{self, EXIT_WRONG, Screen, memory, say};
use onrush::report::form::Printed;
use onrush::{compare, merge, serve, show as shown, tables};
use onrush_engine::backend::memory::Memory;

/// Memory that is refused ends a run, or the program with a sentence.
#[global_allocator]
static MEMORY: Memory = Memory::new(memory::give_up);

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(memory::panicked));
    program::prepare();
    ExitCode::from(match cli::parse(std::env::args_os()) {
        Invocation::Print { stdout, stderr, exit } => {
            if !stderr.is_empty() {
                say(stderr.trim_end_matches('\n'));
            }
            print("onrush", Ok(stdout), exit)
        }
        Invocation::Merge(merge) => program::until_signal(|signals| {
            show("onrush merge", merge::run(&merge, |states| signals.give_up_before_quitting(states)))
        }),
        Invocation::Show(wanted) => {
            let codes: Vec<u8> = shown::run(&wanted).map(|printed| show("onrush show", printed)).collect();
            // One result that could be shown is enough.
            codes.into_iter().min().unwrap_or(EXIT_WRONG)
        }
        Invocation::Table(table) => {
            let tables = tables::run(&table);
            tables.said.iter().for_each(|line| say(&format!("onrush table: {line}")));
            let exit = if tables.text.is_empty() { EXIT_WRONG } else { 0 };
            print("onrush table", Ok(tables.text), exit)
        }
        Invocation::Compare(wanted) => {
            let compared = compare::run(&wanted);
            let exit = print("onrush compare", Ok(compared.text), compared.exit);
            compared.said.iter().for_each(|line| say(&format!("onrush compare: {line}")));
            exit
        }
        Invocation::Lab(lab) => program::lab(lab),
        Invocation::Restore => program::restore(),
        Invocation::Serve(asked) => print("onrush serve", serve::run(&asked).map(|()| String::new()), 0),
        Invocation::Search { mut search, warnings } => {
            warnings.iter().for_each(|line| say(line));
            program::search(&mut search)
        }
        Invocation::Run { mut plan, warnings } => {
            warnings.iter().for_each(|line| say(line));
            program::test(&mut plan)
        }
    })
}

/// Prints a report with its notes, or why there is none; returns the exit code.
fn show(speaker: &str, printed: anyhow::Result<Printed>) -> u8 {
    let (text, notes) = match printed {
        Ok(Printed { text, notes }) => (Ok(text), notes),
        Err(error) => (Err(error), Vec::new()),
    };
    let exit = print(speaker, text, 0);
    notes.iter().for_each(|line| say(line));
    exit
}

/// Prints a text, or why there is none; returns the exit code.
fn print(speaker: &str, text: anyhow::Result<String>, exit: u8) -> u8 {
    let mut screen = Screen::open(false);
    let printed = text.and_then(|text| {
        screen.print(&text);
        screen.failure("the result").map_or(Ok(()), |failure| Err(anyhow!(failure)))
    });
    printed.map_or_else(
        |error| {
            say(&format!("{speaker}: {error:#}"));
            EXIT_WRONG
        },
        |()| exit,
    )
}
