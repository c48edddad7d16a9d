//! Completions for fish.

use super::{CompletionWord, Described, KnownProgram, help_on_one_line, run_options, wrk_options};

pub(super) fn completion_script(program: &KnownProgram) -> String {
    let names: Vec<&str> = program.0.iter().map(|command| command.name).collect();
    let names = names.join(" ");
    let mut text = String::from(
        "# Completions of onrush for fish, written by onrush --generate complete-fish.\n\ncomplete -c onrush -f\n",
    );
    for command in &program.0 {
        let about = quote_text(command.about);
        text += &format!("complete -c onrush -n __fish_is_first_token -a {} -d {about}\n", command.name);
    }
    let of_run = format!("-c onrush -n {}", quote_text(&format!("not __fish_seen_subcommand_from {names}")));
    text += &format_completions(&of_run, &mut run_options());
    for command in &program.0 {
        let of_command =
            format!("-c onrush -n {}", quote_text(&format!("__fish_seen_subcommand_from {}", command.name)));
        text += &format_completions(&of_command, &mut command.all_options());
        if command.word == CompletionWord::File {
            text += &format!("complete {of_command} -F\n");
        }
    }
    for name in ["wrk", "wrk-cmm", "wrk2"] {
        text += &format!("complete -c {name} -f\n");
        text += &format_completions(&format!("-c {name}"), &mut wrk_options());
    }
    text
}

fn format_completions(of: &str, options: &mut dyn Iterator<Item = &Described>) -> String {
    let entry = |option: &Described| {
        let short = option.spelling.short.map(|letter| format!(" -s {letter}")).unwrap_or_default();
        let value = match option.value_kinds().next().filter(|_| option.spelling.takes_value()) {
            None => String::new(),
            Some(CompletionWord::File) => " -r -F".to_owned(),
            Some(CompletionWord::Folder) => " -x -a '(__fish_complete_directories)'".to_owned(),
            Some(CompletionWord::Choice(choices)) => format!(" -x -a {}", quote_text(&choices.join(" "))),
            Some(CompletionWord::Text | CompletionWord::Url) => " -x".to_owned(),
        };
        let help = quote_text(&help_on_one_line(option.help));
        format!("complete {of}{short} -l {}{value} -d {help}\n", option.spelling.long)
    };
    options.map(entry).collect()
}

fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
