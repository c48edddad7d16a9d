//! Options as shown in the help, the manual page and shell completions.

use super::spelling::Spelling;

/// An option with its description and possible values.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// Spelling of the option.
    pub spelling: Spelling,
    /// Purpose of the option, in lines.
    pub help: &'static str,
    /// Possible values, if there are only a few; otherwise empty.
    pub choices: &'static [&'static str],
}

/// Kind of a word on the command line, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionWord {
    /// Any text.
    Text,
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A URL with its scheme.
    Url,
    /// One of these values.
    Choice(&'static [&'static str]),
}

impl Described {
    /// Kind of each word of the option's value: from the choices if there are any, else from the names of the words.
    pub fn value_kinds(&self) -> impl Iterator<Item = CompletionWord> {
        let names = self.spelling.value.unwrap_or_default().split_whitespace();
        names.map(|name| match name {
            _ if !self.choices.is_empty() => CompletionWord::Choice(self.choices),
            "FILE" | "PATH" => CompletionWord::File,
            "DIR" => CompletionWord::Folder,
            "URL" => CompletionWord::Url,
            _ => CompletionWord::Text,
        })
    }
}

/// Formats options with their help starting at `column`. If a spelling is too long, its help starts on the next line.
pub fn format_options(options: impl IntoIterator<Item = Described>, column: usize) -> String {
    options.into_iter().map(|option| format_option(&option.spelling, option.help.lines(), column)).collect()
}

/// Formats one option: its spelling, followed by the lines of its help.
pub fn format_option<'a>(spelling: &Spelling, help: impl Iterator<Item = &'a str>, column: usize) -> String {
    let indent = if spelling.short.is_some() { "  " } else { "      " };
    let mut left = format!("{indent}{}", spelling.whole);
    let mut text = String::new();
    if left.len() >= column {
        text = std::mem::take(&mut left) + "\n";
    }
    for line in help {
        text.push_str(&format!("{left:<column$}{line}\n"));
        left.clear();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(spelling: &'static str, choices: &'static [&'static str]) -> Described {
        Described { spelling: Spelling::parse(spelling), help: "does it\nor not", choices }
    }

    #[test]
    fn value_names_decide_completion() {
        for (spelling, words) in [
            ("--on", vec![]),
            ("--to URL", vec![CompletionWord::Url]),
            ("-k, --keep N DIR", vec![CompletionWord::Text, CompletionWord::Folder]),
            ("-f, --file FILE", vec![CompletionWord::File]),
            ("--way[=HOW]", vec![CompletionWord::Text]),
        ] {
            assert_eq!(option(spelling, &[]).value_kinds().collect::<Vec<_>>(), words, "{spelling}");
        }
        let choices = &["a", "b"];
        assert_eq!(option("--io FILE", choices).value_kinds().collect::<Vec<_>>(), [CompletionWord::Choice(choices)]);
    }

    #[test]
    fn long_spellings_have_their_own_line() {
        let options = [option("-f, --file FILE", &[]), option("--a-long-name", &[])];
        let expected = "  -f, --file FILE  does it\n                   or not\n      \
                        --a-long-name\n                   does it\n                   or not\n";
        assert_eq!(format_options(options, 19), expected);
    }
}
