//! The command `onrush restore`: restores kernel settings that a killed experiment left changed.

use std::ffi::OsString;
use std::path::Path;

use onrush_load::cli::arguments::Subcommand;
use onrush_load::cli::{Command, CommandWork, CompletionWord};
use onrush_load::program::{EXIT_WRONG, Screen, say};

use crate::sysctl::{self, DIRECTORY, Leftover, Restoration};

/// The command `onrush restore`.
pub const COMMAND: Command = Command {
    name: RESTORE.name,
    about: "reset kernel settings that a killed lab left",
    help: || RESTORE.help(),
    options: || RESTORE.described_options(),
    word: CompletionWord::Text,
    parse: |args| Ok(parse(args)?.map(|()| CommandWork::new(run))),
};

const RESTORE: Subcommand<()> = Subcommand {
    name: "restore",
    help: (
        "\
onrush restore resets the kernel settings (sysctls) that an experiment of onrush
changed and could not restore, because it was killed.

Usage: onrush restore",
        "\
It reads the journal of this network namespace in /run/onrush. A setting that
another process has changed since is reported and left alone. While the
experiment is running, restore refuses, because the experiment restores its
settings itself. Exit codes: 0 all settings have their old values, 1 some could
not be restored.",
    ),
    options: &[],
    word: |(), word| Err(format!("unexpected argument {word:?}; onrush restore takes none")),
};

/// Parses the arguments of `restore`; `None` if help was requested. The error says what is wrong.
fn parse(args: &[OsString]) -> Result<Option<()>, String> {
    RESTORE.read(args, ())
}

/// Restores the settings and prints a line about each; returns the exit code.
fn run() -> u8 {
    match sysctl::restore(Path::new(DIRECTORY)) {
        Ok(left) => print_outcome(&left),
        Err(refusal) => {
            say(&format!("onrush restore: {refusal}"));
            EXIT_WRONG
        }
    }
}

/// Prints what became of each setting; returns the exit code, which is zero only if all are
/// restored.
fn print_outcome(left: &Leftover) -> u8 {
    let mut screen = Screen::open(false);
    let mut line = |line: &str| screen.print(&format!("{line}\n"));
    let mut are_restored = true;
    match left {
        Leftover::Nothing => line("nothing to restore in this network namespace"),
        Leftover::Restarted => line("nothing to restore: a reboot has restored everything"),
        Leftover::Changes(restorations) => {
            for restoration in restorations {
                match restoration {
                    Restoration::Done(done) => line(done),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restore_accepts_only_help() {
        let parsed = |line: &str| {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            parse(&args)
        };
        assert_eq!(parsed(""), Ok(Some(())));
        assert_eq!(parsed("-h"), Ok(None));
        for (line, said) in [
            ("net.core.somaxconn", "unexpected argument \"net.core.somaxconn\"; onrush restore takes none"),
            ("--force", "unknown option --force; all options: onrush restore --help"),
        ] {
            assert_eq!(parsed(line), Err(said.to_owned()));
        }
    }
}
