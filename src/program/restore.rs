//! `onrush restore`: restores the settings that a killed experiment has left changed.

use std::path::Path;

use super::{EXIT_WRONG, Screen, say};
use crate::sysctl::{self, DIRECTORY, Leftover, Restoration};

/// Restores settings and prints a line for each; returns the exit code.
pub fn restore() -> u8 {
    match sysctl::restore(Path::new(DIRECTORY)) {
        Ok(left) => show(&left),
        Err(refusal) => {
            say(&format!("onrush restore: {refusal}"));
            EXIT_WRONG
        }
    }
}

fn show(left: &Leftover) -> u8 {
    let mut screen = Screen::open(false);
    let mut print = |line: &str| screen.print(&format!("{line}\n"));
    let mut are_restored = true;
    match left {
        Leftover::Nothing => print("nothing to restore in this network namespace"),
        Leftover::Restarted => print("nothing to restore: a restart of the machine has restored everything"),
        Leftover::Changes(restorations) => {
            for restoration in restorations {
                match restoration {
                    Restoration::Done(line) => print(line),
                    Restoration::Left(line) | Restoration::Failed(line) => {
                        are_restored = false;
                        say(&format!("onrush restore: {line}"));
                    }
                }
            }
        }
    }
    if are_restored { 0 } else { EXIT_WRONG }
}
