//! The command line as a sequence of options and words, by the rules of GNU getopt: they may come in any order, `--`
//! ends the options, letters can be bundled, and long names can be abbreviated. This module knows the table of options,
//! but not their meaning.

use std::ffi::OsString;

use lexopt::Arg;
use onrush_plan::Dialect;

use super::flag::Flag;
use super::flags;
use super::foreign;
use super::spelling::Spelling;

/// Reads a command line from left to right.
pub struct ArgLexer {
    parser: lexopt::Parser,
    dialect: Dialect,
    /// Options of the subcommand, in addition to those of a run. They have no letters and cannot be abbreviated.
    own: Vec<&'static Spelling>,
    /// True if the first word ends the options, as `POSIXLY_CORRECT` requires.
    words_end_options: bool,
    /// True if all arguments that remain are words.
    only_words: bool,
    /// True if `--` has been read.
    are_words: bool,
}

/// The next element of a command line.
#[derive(Debug)]
pub enum Item {
    /// An option with its value, which is empty if the option takes none.
    Flag(&'static Flag, OsString),
    /// An option of the subcommand with its value.
    Own(&'static Spelling, OsString),
    /// `-h`, which natively requests the short help.
    ShortHelp,
    /// Anything else: the URL or an argument for a script.
    Word(OsString),
}

/// An option that is unknown, or used in a wrong way.
#[derive(Debug)]
pub enum Misuse {
    /// An unknown letter of an option.
    Letter(char),
    /// An unknown name as typed, without its dashes but with an attached value.
    Name(String),
    /// A name typed after a single dash, without the dash but with an attached value.
    OneDash(String),
    /// A letter that wrk declares, but always rejects without a message.
    Refused,
    /// An abbreviation as typed, and all options that it matches.
    Ambiguous(String, Vec<&'static Flag>),
    /// The command line ends before the option's value. The flag is true if the option was typed as a letter.
    NoValue(&'static Spelling, bool),
    /// A value is attached to an option that takes none.
    Value(&'static Spelling),
}

impl ArgLexer {
    /// Reads `args`, which must not include the program's name.
    pub fn new(args: &[OsString], dialect: Dialect, words_end_options: bool) -> Self {
        let mut parser = lexopt::Parser::from_args(args);
        // In getopt, the equals sign of `-c=10` is part of the value.
        parser.set_short_equals(!dialect.is_compat());
        Self { parser, dialect, own: Vec::new(), words_end_options, only_words: false, are_words: false }
    }

    /// Adds the options of a subcommand, which are read as [`Item::Own`].
    pub fn with_own_options(mut self, own: impl Iterator<Item = &'static Spelling>) -> Self {
        self.own.extend(own);
        self
    }

    /// The next option or word; `None` at the end. After an error, the rest can still be read.
    pub fn next_item(&mut self) -> Result<Option<Item>, Misuse> {
        if self.only_words {
            let mut rest = self.parser.raw_args().into_iter().flatten();
            return Ok(rest.next().map(Item::Word));
        }
        if let Some(name) = self.take_single_dash_name() {
            return Err(Misuse::OneDash(name));
        }
        // Its only possible error, a value attached to an option that takes none, is always handled below.
        let Ok(Some(argument)) = self.parser.next() else { return Ok(None) };
        match argument {
            Arg::Value(word) => {
                self.only_words = self.words_end_options;
                Ok(Some(Item::Word(word)))
            }
            Arg::Short(letter) => self.parse_letter(letter).map(Some),
            Arg::Long(name) => {
                let name = name.to_owned();
                self.parse_name(name).map(Some)
            }
        }
    }

    /// Reads items up to and including the first word. True if there was a word; errors are skipped.
    pub fn has_words(&mut self) -> bool {
        loop {
            match self.next_item() {
                Ok(Some(Item::Word(_))) => return true,
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => {}
            }
        }
    }

    /// Takes a name after a single dash, as in ab and in Go programs (`-rate=5`). In wrk, such a word is a bundle of
    /// letters.
    fn take_single_dash_name(&mut self) -> Option<String> {
        if self.dialect.is_compat() || self.are_words {
            return None;
        }
        let mut rest = self.parser.try_raw_args()?;
        let word = rest.peek()?.to_string_lossy().into_owned();
        self.are_words = word == "--";
        let typed = word.strip_prefix('-').filter(|name| !name.starts_with('-'))?;
        let name = typed.split('=').next().filter(|name| name.chars().count() > 1)?;
        let is_known = flags::by_name(name).is_some()
            || foreign::is_foreign(&format!("-{name}"))
            || foreign::is_foreign(&format!("--{name}"));
        if !is_known {
            return None;
        }
        rest.next();
        Some(typed.to_owned())
    }

    fn parse_letter(&mut self, letter: char) -> Result<Item, Misuse> {
        match flags::by_letter(letter) {
            // More letters after `-h` form a name; they do not request the help.
            Some(flag) if flag.name() == "help" && !self.dialect.is_compat() => match self.parser.optional_value() {
                Some(rest) => Err(Misuse::OneDash(format!("{letter}{}", rest.to_string_lossy()))),
                None => Ok(Item::ShortHelp),
            },
            Some(flag) => Ok(Item::Flag(flag, self.take_value(&flag.described.spelling, true)?)),
            None if self.dialect.is_compat() && "r?".contains(letter) => Err(Misuse::Refused),
            None => Err(Misuse::Letter(letter)),
        }
    }

    fn parse_name(&mut self, name: String) -> Result<Item, Misuse> {
        if let Some(own) = self.own.iter().copied().find(|own| own.long == name) {
            return Ok(Item::Own(own, self.take_value(own, false)?));
        }
        let found = match flags::by_name(&name) {
            Some(flag) => vec![flag],
            // The name of another tool's option is not taken for an abbreviation: `--head` would take the URL for a
            // header.
            None if !self.dialect.is_compat() && foreign::is_foreign(&format!("--{name}")) => Vec::new(),
            None => flags::by_prefix(&name, self.dialect),
        };
        match *found {
            [flag] => Ok(Item::Flag(flag, self.take_value(&flag.described.spelling, false)?)),
            [] => Err(Misuse::Name(self.name_as_typed(name))),
            _ => Err(Misuse::Ambiguous(self.name_as_typed(name), found)),
        }
    }

    /// Takes the value of an option, its words joined by blanks; empty if it is absent and not required. `by_letter`:
    /// the option was typed as a letter.
    fn take_value(&mut self, spelling: &'static Spelling, by_letter: bool) -> Result<OsString, Misuse> {
        if spelling.takes_value() {
            let mut word = || self.parser.value().map_err(|_| Misuse::NoValue(spelling, by_letter));
            let mut value = word()?;
            for _ in 1..spelling.value_words() {
                value.push(" ");
                value.push(word()?);
            }
            return Ok(value);
        }
        // After a letter without a value, further letters of the bundle follow.
        let value = if by_letter { None } else { self.parser.optional_value() };
        match value {
            Some(_) if !spelling.may_take_value() => Err(Misuse::Value(spelling)),
            value => Ok(value.unwrap_or_default()),
        }
    }

    /// A name as typed, including an attached value.
    fn name_as_typed(&mut self, name: String) -> String {
        match self.parser.optional_value() {
            Some(value) => format!("{name}={}", value.to_string_lossy()),
            None => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All items in a short notation: `c:10` for an option, the word itself, `!` and the misuse for an error.
    fn read_items(line: &str, dialect: Dialect, words_end_options: bool) -> Vec<String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        describe_items(ArgLexer::new(&args, dialect, words_end_options))
    }

    fn describe_items(mut lexer: ArgLexer) -> Vec<String> {
        let mut items = Vec::new();
        loop {
            items.push(match lexer.next_item() {
                Ok(Some(Item::Flag(flag, value))) => format!("{}:{}", flag.name(), value.to_string_lossy()),
                Ok(Some(Item::Own(spelling, value))) => format!("own {}:{}", spelling.long, value.to_string_lossy()),
                Ok(Some(Item::ShortHelp)) => "-h".to_owned(),
                Ok(Some(Item::Word(word))) => word.to_string_lossy().into_owned(),
                Ok(None) => return items,
                Err(misuse) => match misuse {
                    Misuse::Letter(letter) => format!("!letter {letter}"),
                    Misuse::Name(name) => format!("!name {name}"),
                    Misuse::OneDash(name) => format!("!one dash {name}"),
                    Misuse::Refused => "!refused".to_owned(),
                    Misuse::Ambiguous(name, flags) => format!("!ambiguous {name} {}", flags.len()),
                    Misuse::NoValue(spelling, by_letter) => format!("!no value {} {by_letter}", spelling.long),
                    Misuse::Value(spelling) => format!("!value {}", spelling.long),
                },
            });
        }
    }

    fn read_native_items(line: &str) -> Vec<String> {
        read_items(line, Dialect::Native, false)
    }

    #[test]
    fn values_may_be_separate_attached_or_after_equals() {
        for line in ["-c10", "-c 10", "--connections=10", "--connections 10", "--con 10", "--con=10", "--c 10"] {
            assert_eq!(read_native_items(line), ["connections:10"], "{line}");
        }
        assert_eq!(read_native_items("-c=10 -Lo=r.json"), ["connections:10", "latency:", "output:r.json"]);
        assert_eq!(read_items("-c=10", Dialect::Wrk, false), ["connections:=10"]);
        assert_eq!(read_native_items("--connections="), ["connections:"]);
        assert_eq!(read_native_items("-d --"), ["duration:--"]);
    }

    #[test]
    fn subcommand_options_mix_with_run_options() {
        const OWN: [Spelling; 2] = [Spelling::parse("--out DIR"), Spelling::parse("--plan")];
        let args = "-c 1 --out a U --out=b --plan -H --plan --plan=1 --pla --out".split(' ').map(OsString::from);
        let front = ArgLexer::new(&args.collect::<Vec<_>>(), Dialect::Native, false);
        assert_eq!(
            describe_items(front.with_own_options(OWN.iter())),
            [
                "connections:1",
                "own out:a",
                "U",
                "own out:b",
                "own plan:",
                "header:--plan",
                "!value plan",
                "!name pla",
                "!no value out false"
            ]
        );
    }

    #[test]
    fn names_behind_one_dash_are_no_bundles() {
        assert_eq!(
            read_native_items("-host x -h2 -hx -h"),
            ["!one dash host", "x", "!one dash h2", "!one dash hx", "-h"]
        );
        assert_eq!(read_native_items("-rate=5 -duration 5s"), ["!one dash rate=5", "!one dash duration", "5s"]);
        assert_eq!(read_native_items("U -- -rate=5 -h2"), ["U", "-rate=5", "-h2"]);
        assert_eq!(read_native_items("-d -- -H -rate"), ["duration:--", "header:-rate"]);
        assert_eq!(read_items("-h2", Dialect::Wrk, false), ["help:", "!letter 2"]);
    }

    #[test]
    fn letters_bundle_until_one_takes_a_value() {
        assert_eq!(read_native_items("-Lvc10"), ["latency:", "version:", "connections:10"]);
        assert_eq!(read_native_items("-t1c1d1"), ["threads:1c1d1"]);
        assert_eq!(read_native_items("-Lzv"), ["latency:", "!letter z", "version:"]);
    }

    #[test]
    fn options_and_words_mix_until_two_dashes() {
        assert_eq!(read_native_items("U x -t1 y"), ["U", "x", "threads:1", "y"]);
        assert_eq!(read_native_items("-t1 U -- -x --foo=1 --"), ["threads:1", "U", "-x", "--foo=1", "--"]);
        assert_eq!(read_native_items("- -L"), ["-", "latency:"]);
    }

    #[test]
    fn posix_order_stops_at_the_first_word() {
        assert_eq!(read_items("-t1 U -c1 -- x", Dialect::Wrk, true), ["threads:1", "U", "-c1", "--", "x"]);
        assert_eq!(read_items("-- -t1 U -- -L", Dialect::Wrk, true), ["-t1", "U", "--", "-L"]);
    }

    #[test]
    fn option_misuses_are_distinguished() {
        assert_eq!(
            read_native_items("-x --bogus --bogus=5 --t 5"),
            ["!letter x", "!name bogus", "!name bogus=5", "!ambiguous t 2", "5"]
        );
        assert_eq!(read_native_items("-d"), ["!no value duration true"]);
        assert_eq!(read_native_items("--dur"), ["!no value duration false"]);
        assert_eq!(read_native_items("--lat=3 U"), ["!value latency", "U"]);
        assert_eq!(read_native_items("--=5"), ["!ambiguous =5 9"]);
        assert_eq!(read_native_items("-r"), ["!letter r"]);
        assert_eq!(read_items("-r -?", Dialect::Wrk, false), ["!refused", "!refused"]);
    }

    #[test]
    fn only_imitated_names_can_be_abbreviated() {
        assert_eq!(read_native_items("--req 5"), ["!name req", "5"]);
        assert_eq!(read_native_items("--head U --heade A:b"), ["!name head", "U", "header:A:b"]);
        assert_eq!(read_items("--head A:b", Dialect::Wrk, false), ["header:A:b"]);
        assert_eq!(read_native_items("--requests 5 --breakout --rate 5"), ["requests:5", "breakout:", "rate:5"]);
        assert_eq!(read_native_items("--breakout=all --breakout all"), ["breakout:all", "breakout:", "all"]);
        assert_eq!(read_items("--d 5", Dialect::WrkCmm, false), ["!ambiguous d 2", "5"]);
        assert_eq!(read_items("--ra 5", Dialect::Wrk2, false), ["rate:5"]);
    }
}
