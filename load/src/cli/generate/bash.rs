//! Completions for bash that need no other package.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{CompletionWord, Described, KnownProgram, run_options, wrk_options};

pub(super) fn completion_script(program: &KnownProgram) -> String {
    let mut text = String::from(
        "# Completions of onrush for bash, written by onrush --generate complete-bash.\n\n\
         _onrush_words() { COMPREPLY=($(compgen -W \"$2\" -- \"$1\")); }\n\
         _onrush_paths() {\n    \
             local path\n    \
             COMPREPLY=()\n    \
             while IFS= read -r path; do COMPREPLY+=(\"$path\"); done < <(compgen \"$2\" -- \"$1\")\n    \
             compopt -o filenames 2>/dev/null || true\n\
         }\n\n\
         # The value of the option before the word, in a command; false: it takes none.\n\
         _onrush_value() {\n    case $1:$2 in\n",
    );
    let names: Vec<&str> = program.0.iter().map(|command| command.name).collect();
    let options = |name: &str| -> Vec<&Described> {
        match name {
            "" => run_options().collect(),
            "wrk" => wrk_options().collect(),
            _ => program.0.iter().filter(|it| it.name == name).flat_map(|it| it.all_options()).collect(),
        }
    };
    let all: Vec<&str> = ["", "wrk"].into_iter().chain(names.iter().copied()).collect();
    let (mut values, mut second): (BTreeMap<String, Vec<String>>, Vec<String>) = Default::default();
    for name in &all {
        for option in options(name) {
            let mut words = option.value_kinds().filter(|_| option.spelling.takes_value());
            let spellings = spellings(option).map(|spelling| format!("{name}:{spelling}"));
            if let Some(kind) = words.next() {
                values.entry(completion_action(kind)).or_default().extend(spellings.clone());
            }
            if words.next() == Some(CompletionWord::Folder) {
                second.extend(spellings);
            }
        }
    }
    for (action, spellings) in values {
        writeln!(text, "        {}) {action} ;;", spellings.join("|")).expect("memory");
    }
    text += "        *) return 1 ;;\n    esac\n}\n\n_onrush_options() {\n    case $1 in\n";
    for name in &all {
        let spellings: Vec<String> = options(name).into_iter().flat_map(spellings).collect();
        writeln!(text, "        '{name}') echo '{}' ;;", spellings.join(" ")).expect("memory");
    }
    text += "    esac\n}\n\n";
    let files: Vec<&str> =
        program.0.iter().filter(|command| command.word == CompletionWord::File).map(|command| command.name).collect();
    write!(
        text,
        "_onrush() {{\n    \
             local command= cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} first=\n    \
             (( COMP_CWORD > 1 )) && first=${{COMP_WORDS[COMP_CWORD - 2]}}\n    \
             # bash takes an equals sign for a word of its own.\n    \
             if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=$first; fi\n    \
             case ${{1##*/}} in wrk*) command=wrk ;; esac\n    \
             if (( COMP_CWORD > 1 )) && [[ -z $command ]]; then\n        \
                 case ${{COMP_WORDS[1]}} in {}) command=${{COMP_WORDS[1]}} ;; esac\n    \
             fi\n    \
             case $command:$first in {}) _onrush_paths \"$cur\" -d; return ;; esac\n    \
             _onrush_value \"$command\" \"$prev\" \"$cur\" && return\n    \
             if [[ $cur == -* ]]; then\n        \
                 _onrush_words \"$cur\" \"$(_onrush_options \"$command\")\"\n    \
             elif (( COMP_CWORD == 1 )) && [[ -z $command ]]; then\n        \
                 _onrush_words \"$cur\" '{}'\n    \
             else\n        \
                 case $command in {}) _onrush_paths \"$cur\" -f ;; *) COMPREPLY=() ;; esac\n    \
             fi\n\
         }}\n\
         complete -F _onrush onrush wrk wrk-cmm wrk2\n",
        names.join("|"),
        second.join("|"),
        names.join(" "),
        files.join("|"),
    )
    .expect("memory");
    text
}

/// Bash code that completes a value of this kind.
fn completion_action(kind: CompletionWord) -> String {
    match kind {
        CompletionWord::File => "_onrush_paths \"$3\" -f".to_owned(),
        CompletionWord::Folder => "_onrush_paths \"$3\" -d".to_owned(),
        CompletionWord::Choice(choices) => format!("_onrush_words \"$3\" '{}'", choices.join(" ")),
        CompletionWord::Text | CompletionWord::Url => "COMPREPLY=()".to_owned(),
    }
}

/// All spellings of an option, with their dashes.
fn spellings(option: &Described) -> impl Iterator<Item = String> + Clone {
    let short = option.spelling.short.map(|letter| format!("-{letter}"));
    short.into_iter().chain([format!("--{}", option.spelling.long)])
}
