//! Completions for zsh.

use super::{CompletionWord, Described, KnownProgram, help_on_one_line, run_options, wrk_options};

pub(super) fn completion_script(program: &KnownProgram) -> String {
    let mut text = String::from(
        "#compdef onrush wrk wrk-cmm wrk2\n# Completions of onrush for zsh, written by onrush --generate complete-zsh.\n\n",
    );
    text += &completion_function("run", &mut run_options(), CompletionWord::Url);
    text += &completion_function("wrk", &mut wrk_options(), CompletionWord::Url);
    for command in &program.0 {
        text += &completion_function(command.name, &mut command.all_options(), command.word);
    }
    text += "_onrush() {\n  local -a commands\n  commands=(\n";
    for command in &program.0 {
        text += &format!("    {}\n", quote_text(&format!("{}:{}", command.name, command.about)));
    }
    text += "  )\n  case $service in\n    wrk*) _onrush_wrk; return ;;\n  esac\n  \
             if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n    \
             _describe -t commands command commands\n    _onrush_run\n  \
             elif (( $+functions[_onrush_$words[2]] )) && [[ $words[2] != (run|wrk) ]]; then\n    \
             shift words\n    (( CURRENT-- ))\n    _onrush_$words[1]\n  \
             else\n    _onrush_run\n  fi\n}\n\n_onrush \"$@\"\n";
    text
}

/// The zsh function that completes these options, and other words as `word`.
fn completion_function(name: &str, options: &mut dyn Iterator<Item = &Described>, word: CompletionWord) -> String {
    let specs: String = options.map(|option| format!("    {}\n", argument_spec(option))).collect();
    let word = match word {
        CompletionWord::File | CompletionWord::Folder => "    '*:file:_files'\n",
        CompletionWord::Url => "    '*:URL:_urls'\n",
        CompletionWord::Text | CompletionWord::Choice(_) => "",
    };
    format!(
        "_onrush_{name}() {{\n  local -a options\n  options=(\n{specs}{word}  )\n  _arguments -s -S $options\n}}\n\n"
    )
}

/// An option in the notation of `_arguments`; every option may be repeated.
fn argument_spec(option: &Described) -> String {
    let help = help_on_one_line(option.help).replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
    let long = option.spelling.long;
    let value = option.spelling.value.unwrap_or_default();
    let names: Vec<&str> = value.split_whitespace().collect();
    let words: String = option
        .value_kinds()
        .zip(names)
        .map(|(kind, name)| format!(":{}:{}", name.replace(':', "\\:"), completion_action(kind)))
        .collect();
    if option.spelling.may_take_value() {
        let choices = option.value_kinds().next().map(completion_action).unwrap_or_default();
        return quote_text(&format!("*--{long}=-[{help}]::value:{choices}"));
    }
    let (short, long) = match option.spelling.takes_value() {
        true => (option.spelling.short.map(|letter| format!("-{letter}+")), format!("--{long}=")),
        false => (option.spelling.short.map(|letter| format!("-{letter}")), format!("--{long}")),
    };
    let names = match short {
        Some(short) => format!("'*'{{{short},{long}}}"),
        None => format!("'*{long}'"),
    };
    names + &quote_text(&format!("[{help}]{words}"))
}

fn completion_action(kind: CompletionWord) -> String {
    match kind {
        CompletionWord::File => "_files".to_owned(),
        CompletionWord::Folder => "_directories".to_owned(),
        CompletionWord::Url => "_urls".to_owned(),
        CompletionWord::Choice(choices) => format!("({})", choices.join(" ").replace(':', "\\:")),
        CompletionWord::Text => " ".to_owned(),
    }
}

fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
