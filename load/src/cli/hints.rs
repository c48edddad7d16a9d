//! The native messages about misused options and words, with the right spelling if it can be guessed. They recognise
//! the options of other load generators, too.

use std::ffi::{OsStr, OsString};
use std::iter;

use onrush_plan::secrets;
use strsim::damerau_levenshtein;

use super::flag::Flag;
use super::flags;
use super::foreign::foreign_option_hint;
use super::lexer::Misuse;
use super::spelling::Spelling;
use crate::requests::QUOTES;

/// The command that lists the options of a run.
const HELP: &str = "onrush --help all";

/// One line about a misused option, without the program's name.
pub fn misuse_hint(misuse: &Misuse) -> String {
    match misuse {
        Misuse::Refused => "no such option".to_owned(),
        Misuse::Letter(letter) => unknown_letter_hint(*letter),
        Misuse::Name(name) => unknown_name_hint(name_of(name)),
        Misuse::OneDash(name) => single_dash_hint(name_of(name)),
        Misuse::Ambiguous(name, flags) => format!("--{} may mean{}; write more of it", name_of(name), listed(flags)),
        Misuse::NoValue(spelling, _) => missing_value_hint(spelling),
        Misuse::Value(spelling) => unexpected_value_hint(&format!("--{}", spelling.long)),
    }
}

/// One line about an option misused after a command, which also has its `own` options.
pub fn command_misuse_hint(misuse: &Misuse, own: impl Iterator<Item = &'static str> + Clone) -> String {
    if let Misuse::Name(typed) = misuse
        && let Some(near) = nearest_name(name_of(typed), own)
    {
        return unknown_option_hint(&format!("--{}", name_of(typed)), Some(near), "");
    }
    misuse_hint(misuse)
}

/// The option's name without an attached value.
fn name_of(typed: &str) -> &str {
    typed.split(['=', ':', ' ']).next().unwrap_or_default()
}

/// One line about a missing value.
pub fn missing_value_hint(spelling: &Spelling) -> String {
    format!("--{} needs a value: --{0} {}", spelling.long, spelling.value.unwrap_or_default())
}

/// One line about an option, as typed, that has a value attached but takes none.
pub fn unexpected_value_hint(option: &str) -> String {
    format!("{option} takes no value; leave out the = and what follows it")
}

/// One line about an unknown option as typed: the name that was probably `meant`, or the `help` command that lists all
/// options.
pub fn unknown_option_hint(typed: &str, meant: Option<&str>, help: &str) -> String {
    let typed = typed.escape_debug();
    match meant {
        Some(name) => format!("unknown option {typed}; did you mean --{name}?"),
        None => format!("unknown option {typed}; all options: {help}"),
    }
}

fn listed(flags: &[&Flag]) -> String {
    let names: Vec<String> = flags.iter().map(|flag| format!(" --{}", flag.name())).collect();
    names.join(",")
}

fn unknown_letter_hint(letter: char) -> String {
    let other_case = if letter.is_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
    let typed = format!("-{letter}");
    if let Some(advice) = foreign_option_hint(&typed, &typed) {
        advice
    } else if let Some(flag) = flags::by_letter(other_case) {
        format!("unknown option -{}; did you mean -{other_case} (--{})?", letter.escape_debug(), flag.name())
    } else {
        unlisted_option_hint(&typed)
    }
}

fn unknown_name_hint(name: &str) -> String {
    let typed = format!("--{name}");
    if let Some(advice) = foreign_option_hint(&typed, &typed) {
        return advice;
    }
    unknown_option_hint(&typed, nearest_name(name, flags::all().map(|flag| flag.name())), HELP)
}

fn single_dash_hint(name: &str) -> String {
    let typed = format!("-{name}");
    if let Some(advice) = foreign_option_hint(&typed, &typed) {
        return advice;
    }
    match flags::by_name(name) {
        Some(flag) => format!("unknown option {typed}; did you mean --{}, with two dashes?", flag.name()),
        None => foreign_option_hint(&format!("--{name}"), &typed).unwrap_or_else(|| unlisted_option_hint(&typed)),
    }
}

fn unlisted_option_hint(typed: &str) -> String {
    unknown_option_hint(typed, None, HELP)
}

/// One line about a first word that is a command instead of a host: a command of another tool, or one of `names` in the
/// wrong place or misspelt by one letter. `None` if the word may be a host.
pub fn command_hint<'a>(words: &[OsString], has_script: bool, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let (word, rest) = words.split_first()?;
    if word == "run" && !rest.is_empty() && !has_script {
        let line =
            "\"run\" is not a host: onrush needs no such word, and takes a script with -s, as in onrush -s FILE URL";
        return Some(format!("{line}; {}", host_hint("run/")));
    }
    if let Some((name, instead)) = ELSEWHERE.iter().find(|(name, _)| word == name) {
        return Some(format!("{name:?} is not a command of onrush: {instead}; {}", host_hint(&format!("{name}/"))));
    }
    let is_bare = |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let word = word.to_str().filter(is_bare)?;
    // Short words are all similar to each other.
    let is_near = |name: &str| word == name || (name.len() > 3 && damerau_levenshtein(word, name) <= 1);
    let near = iter::once("help").chain(names).find(|name| is_near(name))?;
    let dashes = if near == "help" { "--" } else { "" };
    let reason = match (word == near, near) {
        (true, "help") => "is not a host: onrush --help prints the help".to_owned(),
        (true, _) => format!("must be the first word: onrush {near}"),
        (false, _) => format!("is not a host: perhaps you mean onrush {dashes}{near}"),
    };
    Some(format!("{word:?} {reason}; {}", host_hint(&format!("{word}/"))))
}

/// The advice in case the word is a host after all; `rest` is the URL after the scheme.
fn host_hint(rest: &str) -> String {
    format!("for a host of that name write http://{rest}")
}

/// Commands of other tools, and the advice for each.
const ELSEWHERE: [(&str, &str); 3] = [
    ("attack", "onrush -R 100 -d 10s URL sends 100 requests per second"),
    ("plot", "-o result.hgrm is for HdrHistogram's plotter, and -o result.csv has a row per second"),
    ("report", "onrush show result.json prints a saved result, and onrush table makes a table of several"),
];

/// One line about words that must be misplaced: options or quotation marks in the typography of web pages, the rest of
/// an unquoted header, a number instead of a host, or a URL after the first word. `cut`: name and value of a header
/// that was cut off before its secret. `None` if the words may be right.
pub fn stray_word_hint(words: &[OsString], has_script: bool, cut: Option<(&str, &str)>) -> Option<String> {
    let shown = |word: &OsStr| format!("{:?}", secrets::redact_url(&word.to_string_lossy()));
    let has_scheme = |word: &OsStr| word.to_string_lossy().contains("://");
    let (first, rest) = words.split_first()?;
    // If the value was cut off after its scheme, even a single word may be a secret instead of a host.
    let is_scheme = cut.is_some_and(|(_, value)| !value.is_empty()) && words.iter().any(|word| !has_scheme(word));
    let url_follows = rest.iter().any(|word| has_scheme(word));
    // The words after the URL of a script are its arguments.
    let rest = if has_script { &[] } else { rest };
    if let Some(line) = iter::once(first).chain(rest).find_map(|word| typography_hint(word)) {
        return Some(line);
    }
    if let Some((name, value)) = cut.filter(|_| is_scheme || !rest.is_empty() || (url_follows && !has_scheme(first))) {
        // The other word may be a secret.
        let begin = format!("{name}: {value}");
        let begin = begin.trim_end();
        return Some(format!(
            "--header \"{begin}\" ends at a blank; put all of it in quotes, as in -H '{begin} value'"
        ));
    }
    if let Some(second) = rest.iter().find(|word| has_scheme(word)) {
        let are_urls = has_scheme(first);
        let first = shown(first);
        let second = shown(second);
        return Some(if are_urls {
            format!(
                "{first} and {second} are two URLs, but a run has one target: start a run for each, or compare them \
                 with onrush vs URL_A URL_B"
            )
        } else {
            format!("{first} comes before the URL {second} and is not the value of an option: leave it out")
        });
    }
    let word = first.to_str()?;
    let (host, path) = word.split_at(word.find(['/', '?', '#']).unwrap_or(word.len()));
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let path = secrets::redact_text(if path.is_empty() { "/" } else { path });
    let is_port = host.parse::<u16>().is_ok_and(|port| port > 0);
    let port = if is_port {
        format!("for that port on this machine write http://127.0.0.1:{host}{path}; ")
    } else {
        String::new()
    };
    Some(format!("{} is a number, not a host: {port}{}", shown(first), host_hint(&format!("{host}{path}"))))
}

/// Typographic dashes that web pages and word processors put in place of one or two hyphens.
const DASHES: [char; 6] = ['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}'];

/// One line about a typographic dash before an option, or a typographic quotation mark before a word.
fn typography_hint(word: &OsStr) -> Option<String> {
    let word = word.to_str()?;
    let first = word.chars().next()?;
    if QUOTES.contains(&first) {
        return Some(format!("'{first}' is not a quote character in the shell; write ' or \""));
    }
    let name = word.trim_start_matches('-').strip_prefix(DASHES)?.trim_start_matches('-').split('=').next()?;
    // The text after a letter may be a value, and may be secret.
    let option = match flags::by_name(name) {
        Some(flag) => format!("--{}", flag.name()),
        None => format!("-{}", name.chars().next().filter(|&letter| flags::by_letter(letter).is_some())?),
    };
    let dash = word.chars().find(|character| DASHES.contains(character))?;
    Some(format!("'{dash}' is a typographic dash, not '-'; write {option}"))
}

/// The first name that starts with the typed word, else the most similar one if it is similar enough, else one with a
/// long common prefix.
pub fn nearest_name<'a>(typed: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    if let Some(name) = names.clone().find(|name| name.starts_with(typed)) {
        return Some(name);
    }
    let (distance, name) =
        names.clone().map(|name| (damerau_levenshtein(typed, name), name)).min_by_key(|near| near.0)?;
    if distance <= typed.chars().count() / 3 {
        return Some(name);
    }
    // Finds --connections for --conns.
    let shared = |name: &str| typed.bytes().zip(name.bytes()).take_while(|(one, other)| one == other).count();
    let longest = names.clone().map(shared).max().filter(|shared| *shared >= 4 && typed.len() - shared <= 3)?;
    names.clone().find(|name| shared(name) == longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_options_get_the_nearest_name() {
        let table = [
            (Misuse::Name("durtion=5".to_owned()), "unknown option --durtion; did you mean --duration?"),
            (Misuse::Name("req".to_owned()), "unknown option --req; did you mean --requests?"),
            (Misuse::Name("treads".to_owned()), "unknown option --treads; did you mean --threads?"),
            (Misuse::Name("conns".to_owned()), "unknown option --conns; did you mean --connections?"),
            (Misuse::Name("xyzzy".to_owned()), "unknown option --xyzzy; all options: onrush --help all"),
            (Misuse::Name("locatoin".to_owned()), "unknown option --locatoin; all options: onrush --help all"),
            (
                Misuse::OneDash("duration=5s".to_owned()),
                "unknown option -duration; did you mean --duration, with two dashes?",
            ),
            (Misuse::OneDash("h2".to_owned()), "-h2: onrush spells this --http2"),
            (Misuse::OneDash("hx".to_owned()), "unknown option -hx; all options: onrush --help all"),
            (Misuse::Letter('S'), "unknown option -S; did you mean -s (--script)?"),
            (Misuse::Letter('C'), "-C: onrush spells this -H, for instance -H 'Cookie: sid=abc'; connections are -c"),
            (Misuse::Letter('y'), "unknown option -y; all options: onrush --help all"),
        ];
        for (misuse, expected) in table {
            assert_eq!(misuse_hint(&misuse), expected);
        }
    }

    #[test]
    fn near_commands_are_not_hosts() {
        let commands = ["serve", "merge", "show", "lab", "sweep", "vs", "restore"];
        let said = |word: &str| command_hint(&[word.into()], false, commands.into_iter());
        for (word, reason) in [
            ("help", "is not a host: onrush --help prints the help"),
            ("serve", "must be the first word: onrush serve"),
            ("merge", "must be the first word: onrush merge"),
            ("server", "is not a host: perhaps you mean onrush serve"),
            ("restor", "is not a host: perhaps you mean onrush restore"),
            ("mrege", "is not a host: perhaps you mean onrush merge"),
            ("shwo", "is not a host: perhaps you mean onrush show"),
            ("vs", "must be the first word: onrush vs"),
            ("halp", "is not a host: perhaps you mean onrush --help"),
        ] {
            let expected = format!("{word:?} {reason}; for a host of that name write http://{word}/");
            assert_eq!(said(word), Some(expected));
        }
        assert_eq!(
            said("report").as_deref(),
            Some(
                "\"report\" is not a command of onrush: onrush show result.json prints a saved result, and onrush table \
                 makes a table of several; for a host of that name write http://report/"
            )
        );
        assert!(said("plot").is_some_and(|line| line.contains("-o result.hgrm is for HdrHistogram's plotter")));
        for word in [
            "plot.local",
            "h",
            "db",
            "lap",
            "localhost",
            "hello",
            "serve:8080",
            "serve/",
            "server.local",
            "http://serve",
            "http://help/",
            "",
        ] {
            assert_eq!(said(word), None, "{word}");
        }
        let run = ["run", "script.js"].map(OsString::from);
        assert_eq!(
            (command_hint(&run[..1], false, iter::empty()), command_hint(&run, true, iter::empty())),
            (None, None)
        );
        assert_eq!(
            command_hint(&run, false, iter::empty()).as_deref(),
            Some(
                "\"run\" is not a host: onrush needs no such word, and takes a script with -s, as in onrush -s FILE \
                 URL; for a host of that name write http://run/"
            )
        );
    }

    #[test]
    fn stray_words_are_not_hosts() {
        let said = |line: &str, has_script| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            stray_word_hint(&words, has_script, None)
        };
        let number = |word: &str, url: &str, host: &str| {
            Some(format!(
                "{word:?} is a number, not a host: for that port on this machine write {url}; for a host of that name \
                 write {host}"
            ))
        };
        assert_eq!(said("8080", false), number("8080", "http://127.0.0.1:8080/", "http://8080/"));
        assert_eq!(said("8080/a?b", true), number("8080/a?b", "http://127.0.0.1:8080/a?b", "http://8080/a?b"));
        assert_eq!(
            said("70000", false).as_deref(),
            Some("\"70000\" is a number, not a host: for a host of that name write http://70000/")
        );
        assert_eq!(
            said("10 http://h/?token=x", false).as_deref(),
            Some(
                "\"10\" comes before the URL \"http://h/?token=REDACTED\" and is not the value of an option: leave it out"
            )
        );
        assert_eq!(
            said("http://a/ x http://b/", false).as_deref(),
            Some(
                "\"http://a/\" and \"http://b/\" are two URLs, but a run has one target: start a run for each, or \
                 compare them with onrush vs URL_A URL_B"
            )
        );
        for line in ["http://8080/", "10.0.0.5", "127.1", "8080.example", "http://h/ x 10", "h"] {
            assert_eq!(said(line, false), None, "{line}");
        }
        assert_eq!(said("h http://b/", true), None);
    }

    #[test]
    fn typographic_dashes_and_quotes_are_recognized() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            stray_word_hint(&words, false, None)
        };
        for (line, expected) in [
            ("\u{2013}c10 http://h/", "'\u{2013}' is a typographic dash, not '-'; write -c"),
            ("http://h/ \u{2013}HA:zebra", "'\u{2013}' is a typographic dash, not '-'; write -H"),
            ("\u{2014}duration=5s http://h/", "'\u{2014}' is a typographic dash, not '-'; write --duration"),
            ("\u{2013}-latency http://h/", "'\u{2013}' is a typographic dash, not '-'; write --latency"),
            ("http://h/ -\u{2011}latency", "'\u{2011}' is a typographic dash, not '-'; write --latency"),
            ("\u{201c}http://h/\u{201d}", "'\u{201c}' is not a quote character in the shell; write ' or \""),
        ] {
            assert_eq!(said(line).as_deref(), Some(expected), "{line}");
        }
        for line in ["h \u{2013}", "http://h/ \u{2013}9", "\u{2013}"] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn unquoted_header_values_are_not_shown() {
        let said = |line: &str, has_script| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            stray_word_hint(&words, has_script, Some(("X-Api-Key", "")))
        };
        let expected = "--header \"X-Api-Key:\" ends at a blank; put all of it in quotes, as in -H 'X-Api-Key: value'";
        for (line, has_script) in
            [("zebra http://h/", false), ("http://h/ zebra", false), ("zebra h", false), ("zebra http://h/", true)]
        {
            assert_eq!(said(line, has_script).as_deref(), Some(expected), "{line}");
        }
        for (line, has_script) in [("http://h/", false), ("http://h/ zebra", true), ("h zebra", true)] {
            assert_eq!(said(line, has_script), None, "{line}");
        }
        let of_scheme = |words: &[OsString], has_script| stray_word_hint(words, has_script, Some(("X", "Bearer")));
        let expected = "--header \"X: Bearer\" ends at a blank; put all of it in quotes, as in -H 'X: Bearer value'";
        for words in [&["zebra", "http://h/"][..], &["http://h/", "zebra"], &["zebra"]] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(of_scheme(&words, false).as_deref(), Some(expected));
            assert_eq!(of_scheme(&words, true).as_deref(), Some(expected));
        }
        assert_eq!(of_scheme(&["http://h/".into()], false), None);
    }
}
