//! The dialect in force, and the error messages of GNU getopt, which users of wrk know.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use onrush_plan::Dialect;

use super::flag::Flag;
use super::lexer::{ArgLexer, Item, Misuse};

/// The dialect of a command line: that of `--compat`, wherever it is, else that of the program's name. An unknown name
/// after `--compat` is ignored here and rejected when the option is read.
pub(super) fn choose_dialect(args: &[OsString], words_end_options: bool) -> Dialect {
    let Some((program, rest)) = args.split_first() else { return Dialect::Native };
    let called = Path::new(program).file_name().and_then(dialect_by_name).unwrap_or(Dialect::Native);
    let mut lexer = ArgLexer::new(rest, called, words_end_options);
    let mut asked = None;
    loop {
        match lexer.next_item() {
            Ok(Some(Item::Flag(flag, name))) if flag.name() == "compat" => asked = dialect_by_name(&name).or(asked),
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => return asked.unwrap_or(called),
        }
    }
}

/// The dialects of imitated tools, in the order of the choices of `--compat`.
pub(super) const IMITATED: [Dialect; 3] = [Dialect::Wrk, Dialect::WrkCmm, Dialect::Wrk2];

/// The dialect of the tool with this name.
fn dialect_by_name(name: &OsStr) -> Option<Dialect> {
    IMITATED.into_iter().find(|dialect| name == dialect.name())
}

/// getopt's message about a misused option, without the program's name; `None` for a misuse about which getopt prints
/// nothing.
pub(super) fn getopt_message(misuse: &Misuse) -> Option<String> {
    let quoted = |flags: &[&Flag]| flags.iter().map(|flag| format!(" '--{}'", flag.name())).collect::<String>();
    match misuse {
        Misuse::Refused => None,
        // Occurs only natively: getopt reads such a word letter by letter.
        Misuse::OneDash(_) => None,
        Misuse::Letter(letter) => Some(format!("invalid option -- '{letter}'")),
        Misuse::Name(name) => Some(format!("unrecognized option '--{name}'")),
        Misuse::Ambiguous(name, flags) => {
            Some(format!("option '--{name}' is ambiguous; possibilities:{}", quoted(flags)))
        }
        Misuse::NoValue(spelling, true) => {
            Some(format!("option requires an argument -- '{}'", spelling.short.unwrap_or_default()))
        }
        Misuse::NoValue(spelling, false) => Some(format!("option '--{}' requires an argument", spelling.long)),
        Misuse::Value(spelling) => Some(format!("option '--{}' doesn't allow an argument", spelling.long)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect_of(line: &str) -> Dialect {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        choose_dialect(&args, false)
    }

    #[test]
    fn program_name_selects_the_dialect() {
        let table = [
            ("onrush U", Dialect::Native),
            ("wrk U", Dialect::Wrk),
            ("./wrk U", Dialect::Wrk),
            ("/usr/local/bin/wrk-cmm U", Dialect::WrkCmm),
            ("/opt/wrk2", Dialect::Wrk2),
            ("/opt/wrk/onrush", Dialect::Native),
            ("wrk3 U", Dialect::Native),
            ("", Dialect::Native),
        ];
        for (line, expected) in table {
            assert_eq!(dialect_of(line), expected, "{line}");
        }
    }

    #[test]
    fn last_compat_option_wins() {
        let table = [
            ("onrush --compat wrk U", Dialect::Wrk),
            ("onrush -c 10 U --compat=wrk-cmm -L", Dialect::WrkCmm),
            ("wrk --bogus --compat wrk2 U", Dialect::Wrk2),
            ("onrush --compat wrk2 U --compat wrk", Dialect::Wrk),
            ("onrush --compat nonsense U", Dialect::Native),
            ("onrush -H --compat wrk U", Dialect::Native),
            ("onrush U -- --compat wrk", Dialect::Native),
        ];
        for (line, expected) in table {
            assert_eq!(dialect_of(line), expected, "{line}");
        }
    }
}
