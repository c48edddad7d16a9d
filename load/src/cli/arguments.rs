//! The arguments of subcommands. Each subcommand describes its options in a table, and one loop reads the options of
//! all. Options and words may come in any order, and `--` ends the options.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use lexopt::Arg;

use super::described::{Described, format_options};
use super::hints;
use super::spelling::Spelling;

/// A subcommand, whose arguments are collected in a `T`.
pub struct Subcommand<T: 'static> {
    /// Name of the subcommand, as it is typed.
    pub name: &'static str,
    /// Help text above the options, which ends with the usage, and help text below them.
    pub help: (&'static str, &'static str),
    /// Options of the subcommand, except `--help`, which every subcommand has.
    pub options: &'static [Setter<T>],
    /// Handles a word that is not an option, or returns why none is allowed.
    pub word: fn(&mut T, OsString) -> Result<(), String>,
}

/// An option, and its effect on a `T`.
pub struct Setter<T> {
    /// Spelling, purpose and choices.
    pub described: Described,
    set: OptionAction<T>,
}

/// The help option of every subcommand.
pub const HELP: Described =
    Described { spelling: Spelling::parse("-h, --help"), help: "print this text", choices: &[] };

/// Effect of an option. The error says what is wrong with the value, and is printed after the value.
enum OptionAction<T> {
    Switch(fn(&mut T)),
    Text(fn(&mut T, &str) -> Result<(), String>),
    Path(fn(&mut T, PathBuf) -> Result<(), String>),
}

/// Describes an option without a value, and what it sets.
pub const fn switch<T>(spelling: &'static str, set: fn(&mut T)) -> Setter<T> {
    Setter::new(spelling, OptionAction::Switch(set))
}

/// Describes an option whose value is a text, and what it sets.
pub const fn text<T>(spelling: &'static str, set: fn(&mut T, &str) -> Result<(), String>) -> Setter<T> {
    Setter::new(spelling, OptionAction::Text(set))
}

/// Describes an option whose value is a path, and what it sets.
pub const fn path<T>(spelling: &'static str, set: fn(&mut T, PathBuf) -> Result<(), String>) -> Setter<T> {
    Setter::new(spelling, OptionAction::Path(set))
}

impl<T> Setter<T> {
    const fn new(spelling: &'static str, set: OptionAction<T>) -> Self {
        Self { described: Described { spelling: Spelling::parse(spelling), help: "", choices: &[] }, set }
    }

    /// Sets the text that describes the option in the help.
    pub const fn help(self, help: &'static str) -> Self {
        Self { described: Described { help, ..self.described }, ..self }
    }

    /// Suggests these values, in the help and in completions. They are not enforced.
    pub const fn one_of(self, choices: &'static [&'static str]) -> Self {
        Self { described: Described { choices, ..self.described }, ..self }
    }

    /// Applies the option with its value, which a switch ignores.
    ///
    /// # Errors
    ///
    /// Returns one line with the option, the value, and what is wrong with it.
    pub fn set(&self, asked: &mut T, value: &OsStr) -> Result<(), String> {
        let set = match self.set {
            OptionAction::Switch(set) => {
                set(asked);
                Ok(())
            }
            OptionAction::Text(set) => {
                value.to_str().ok_or_else(|| "not UTF-8".to_owned()).and_then(|text| set(asked, text))
            }
            OptionAction::Path(set) => set(asked, PathBuf::from(value)),
        };
        set.map_err(|reason| format!("--{} {value:?}: {reason}", self.described.spelling.long))
    }
}

impl<T> Subcommand<T> {
    /// All options, including the help.
    pub fn described_options(&self) -> Vec<Described> {
        self.options.iter().map(|option| option.described).chain([HELP]).collect()
    }

    /// The text of `--help`.
    pub fn help(&self) -> String {
        help(self.help, self.described_options())
    }

    /// Applies the arguments to `asked` and returns it; `None` if help was requested.
    ///
    /// # Errors
    ///
    /// Returns one line with the wrong argument and the right form.
    pub fn read(&self, args: &[OsString], mut asked: T) -> Result<Option<T>, String> {
        let mut parser = lexopt::Parser::from_args(args);
        while let Some(argument) = parser.next().map_err(describe_lexer_error)? {
            let option = match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long(name) => self.find_by_name(name)?,
                Arg::Short(letter) => self.find_by_letter(letter)?,
                Arg::Value(word) => {
                    (self.word)(&mut asked, word)?;
                    continue;
                }
            };
            let spelling = &option.described.spelling;
            let value = match spelling.takes_value() {
                true => parser.value().map_err(|_| hints::missing_value_hint(spelling))?,
                false => OsString::new(),
            };
            option.set(&mut asked, &value)?;
        }
        Ok(Some(asked))
    }

    fn find_by_name(&self, name: &str) -> Result<&'static Setter<T>, String> {
        self.options.iter().find(|option| option.described.spelling.long == name).ok_or_else(|| {
            let names = self.options.iter().map(|option| option.described.spelling.long).chain(["help"]);
            hints::unknown_option_hint(&format!("--{name}"), hints::nearest_name(name, names), &self.help_command())
        })
    }

    fn find_by_letter(&self, letter: char) -> Result<&'static Setter<T>, String> {
        let option = self.options.iter().find(|option| option.described.spelling.short == Some(letter));
        option.ok_or_else(|| hints::unknown_option_hint(&format!("-{letter}"), None, &self.help_command()))
    }

    /// The command line that prints this subcommand's help.
    fn help_command(&self) -> String {
        format!("onrush {} --help", self.name)
    }
}

/// A help text with these options between its two parts. Descriptions start to the right of the longest spelling that
/// leaves room for them.
pub fn help((above, below): (&str, &str), options: Vec<Described>) -> String {
    const SPELLING_MAX: usize = 24;
    let end = |option: &Described| option.spelling.whole.len() + if option.spelling.short.is_some() { 2 } else { 6 };
    let column = 2 + options.iter().map(end).filter(|end| *end <= SPELLING_MAX).max().unwrap_or(SPELLING_MAX);
    format!("{above}\n\n{}\n{below}\n", format_options(options, column))
}

/// One line about a switch that has a value, which the parser notices only at the next argument.
fn describe_lexer_error(error: lexopt::Error) -> String {
    match error {
        lexopt::Error::UnexpectedValue { option, .. } => hints::unexpected_value_hint(&option),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct TestOptions {
        is_loud: bool,
        count: usize,
        files: Vec<OsString>,
        folder: PathBuf,
    }

    const COMMAND: Subcommand<TestOptions> = Subcommand {
        name: "ask",
        help: ("Usage: onrush ask", "No more."),
        options: &[
            switch("-l, --loud", |asked| asked.is_loud = true),
            text("-n, --count N", |asked, text| {
                asked.count = text.parse().map_err(|_| "write a number")?;
                Ok(())
            }),
            path("--folder DIR", |asked, path| {
                asked.folder = path;
                Ok(())
            }),
        ],
        word: |asked, word| {
            asked.files.push(word);
            Ok(())
        },
    };

    fn parse_line(line: &str) -> Result<Option<TestOptions>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        COMMAND.read(&args, TestOptions::default())
    }

    #[test]
    fn options_and_words_mix_until_two_dashes() {
        let files = |names: &[&str]| names.iter().map(OsString::from).collect::<Vec<_>>();
        let expected = TestOptions { is_loud: true, count: 3, files: files(&["a", "b"]), folder: "d".into() };
        for line in ["a -ln3 --folder d b", "--folder=d --count 3 a --loud b", "-l -n=3 a --folder d -- b"] {
            assert_eq!(parse_line(line).unwrap().unwrap(), expected, "{line}");
        }
        assert_eq!(parse_line("-- --loud -h").unwrap().unwrap().files, files(&["--loud", "-h"]));
        assert_eq!(parse_line("--folder --loud").unwrap().unwrap().folder, PathBuf::from("--loud"));
        assert_eq!(parse_line("").unwrap().unwrap(), TestOptions::default());
    }

    #[test]
    fn help_ends_the_arguments() {
        for line in ["-h --bogus", "a --help --count x", "-lh"] {
            assert_eq!(parse_line(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn bad_options_suggest_corrections() {
        for (line, said) in [
            ("--bogus", "unknown option --bogus; all options: onrush ask --help"),
            ("-x", "unknown option -x; all options: onrush ask --help"),
            ("--folde=x", "unknown option --folde; did you mean --folder?"),
            ("--hepl", "unknown option --hepl; did you mean --help?"),
            ("--loud=3", "--loud takes no value; leave out the = and what follows it"),
            ("-l=3", "-l takes no value; leave out the = and what follows it"),
            ("-n", "--count needs a value: --count N"),
            ("--folder", "--folder needs a value: --folder DIR"),
            ("-n many", "--count \"many\": write a number"),
        ] {
            assert_eq!(parse_line(line), Err(said.to_owned()));
        }
        let args = ["--count".into(), std::os::unix::ffi::OsStringExt::from_vec(b"\xff".to_vec())];
        assert_eq!(COMMAND.read(&args, TestOptions::default()), Err("--count \"\\xFF\": not UTF-8".to_owned()));
    }
}
