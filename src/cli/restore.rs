//! The command line of `onrush restore`.

use std::ffi::OsString;

use super::arguments::Subcommand;
/// What `onrush restore --help` prints.
pub(super) const HELP: &str = "\
onrush restore resets the kernel settings (sysctls) that an experiment of onrush
changed and could not restore, because it was killed.

Usage: onrush restore

  -h, --help         print this text

It reads the journal of this network namespace in /run/onrush. A setting that
another process has changed since is reported and left alone. While the
experiment is running, restore refuses, because the experiment restores its
settings itself. Exit codes: 0 all settings have their old values, 1 some could
not be restored.
";

pub(super) const RESTORE: Subcommand<()> = Subcommand {
    name: "restore",
    options: &[],
    word: |(), word| Err(format!("unexpected argument {word:?}; onrush restore takes none")),
};

/// Parses the arguments of `restore`; `None` if the help was asked for. The error says what is wrong.
pub(super) fn parse(args: &[OsString]) -> Result<Option<()>, String> {
    RESTORE.read(args, ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_help_can_be_asked_for() {
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
