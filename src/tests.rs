//! The commands: their names, their help, and the generated files and the manual, which cover them all.

use std::ffi::OsString;
use std::process::Command as Process;

use onrush_load::cli::flags;
use onrush_load::fixtures::words;

use super::*;

fn parsed(line: &str) -> Invocation {
    cli::parse(words(line), &COMMANDS)
}

/// Standard output, standard error, exit code.
fn printed(line: &str) -> (String, String, u8) {
    match parsed(line) {
        Invocation::Print { stdout, stderr, exit } => (stdout, stderr, exit),
        other => panic!("{line}: {other:?}"),
    }
}

/// The only line of a refusal on standard error, without the line ending.
fn refused(line: &str) -> String {
    let (stdout, stderr, exit) = printed(line);
    assert_eq!((stdout.as_str(), exit), ("", 1), "{line}");
    stderr.strip_suffix('\n').unwrap_or_else(|| panic!("{line}: {stderr:?}")).to_owned()
}

fn generate_text(what: &str) -> String {
    match printed(&format!("onrush --generate {what}")) {
        (text, error, 0) if error.is_empty() => text,
        other => panic!("{what}: {other:?}"),
    }
}

/// Bash's completions after `line` for the beginning of a word.
fn completed(script: &str, line: &str, word: &str) -> String {
    let words: Vec<&str> = line.split(' ').chain([word]).collect();
    let asks = format!(
        "{script}\nCOMP_WORDS=({line} '{word}')\nCOMP_CWORD={}\n_onrush {}\necho \"${{COMPREPLY[*]}}\"\n",
        words.len() - 1,
        words[0],
    );
    let output = Process::new("bash").args(["--norc", "-c", &asks]).output().expect("bash");
    assert!(output.stderr.is_empty(), "{line} {word}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn serve_is_a_command_only_first() {
    assert!(matches!(parsed("onrush serve"), Invocation::Command { .. }));
    assert_eq!(printed("wrk serve").1, "invalid URL: serve\n");
    assert_eq!(printed("onrush --compat wrk serve").1, "invalid URL: serve\n");
    assert!(refused("onrush -c10 serve").contains("must be the first word"));
    assert!(matches!(parsed("onrush -c10 http://serve/"), Invocation::Run { .. }));
    assert!(refused("onrush serv --addr 8080").contains("perhaps you mean onrush serve;"));
    assert!(refused("onrush help").contains("onrush --help prints the help"));
}

#[test]
fn each_command_has_help_with_all_options() {
    let (listed, ..) = printed("onrush --help");
    for command in COMMANDS.named {
        let name = command.name;
        let help = (command.help)();
        for line in ["--help", "--help=all", "--help all"] {
            assert_eq!(printed(&format!("onrush {name} {line}")), (help.clone(), String::new(), 0));
        }
        for option in (command.options)() {
            assert!(help.contains(&format!(" {}", option.spelling.whole)), "{}", option.spelling.whole);
            assert!(!option.help.is_empty(), "{}", option.spelling.whole);
        }
        assert!(help.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{help}");
        let line = listed.lines().find(|line| line.contains(&format!(" onrush {name} ")));
        assert!(line.is_some_and(|line| line.ends_with(&format!("  {}", command.about))), "{name}");
    }
}

#[test]
fn every_option_has_a_working_example() {
    let sections = include_str!("../docs/command-line.md").split("\n### `").skip(1);
    for (section, flag) in sections.zip(flags::all()) {
        let example = section.lines().find_map(|line| line.strip_prefix("$ ")).expect("an example");
        assert!(
            example.contains(&format!("--{}", flag.name()))
                || example.contains(&format!("-{}", flag.described.spelling.short.unwrap()))
        );
        match parsed(example) {
            Invocation::Run { .. } | Invocation::Command { .. } => {}
            Invocation::Print { exit: 0, .. } => assert!(["help", "version"].contains(&flag.name())),
            Invocation::Print { stderr, .. } => panic!("{example}: {stderr}"),
        }
    }
}

#[test]
fn options_of_series_name_their_flaws() {
    let took = "lacks its value and took the URL \"http://h/?token=REDACTED\" instead; write";
    for command in ["sweep -c 1,2", "vs http://a/"] {
        let name = command.split(' ').next().unwrap();
        let said = format!("onrush {name}: --header {took} --header H http://h/?token=REDACTED");
        assert_eq!(refused(&format!("onrush {command} -H http://h/?token=x")), said);
        let said = refused(&format!("onrush {command} -R http://u:pw@a/?token=x http://target/"));
        assert!(said.contains("--rate \"http://REDACTED@a/?token=REDACTED\": a rate is per second"), "{said}");
    }
    let own = "--out lacks its value and took the URL \"http://h/\" instead; write --out DIR http://h/";
    assert_eq!(refused("onrush sweep -c 1,2 --out http://h/"), format!("onrush sweep: {own}"));
}

#[test]
fn proposed_sweeps_are_accepted() {
    for words in [
        "--streams 1,8",
        "-c 10,20",
        "-c 1..64",
        "-c 1-64",
        "-c 1..8,64",
        "-t '1 2 4'",
        "-R 90/m,1k",
        "-R 1,500",
        "-R 1k..8k",
    ] {
        let said = refused(&format!("onrush {words} h"));
        let (_, proposed) = said.split_once("onrush sweep").unwrap();
        let invocation = parsed(&format!("onrush sweep{proposed}"));
        assert!(matches!(invocation, Invocation::Command { .. }), "{proposed}: {invocation:?}");
    }
}

#[test]
fn searches_refuse_logs_and_samples() {
    for (option, expected) in [
        ("--request-log r.csv", "--request-log: a search has many runs; log one at the load found"),
        ("--sockets-output s.ndjson", "--sockets-output: a search has many runs; sample one at the rate found"),
    ] {
        let said = refused(&format!("onrush {option} --find-max 'p99<5ms' h"));
        assert_eq!(said, format!("onrush: --find-max and {expected}; leave one of the two out"));
    }
}

#[test]
fn every_option_is_in_manual_and_completions() {
    let [man, bash, zsh, fish] = ["man", "complete-bash", "complete-zsh", "complete-fish"].map(generate_text);
    let of_commands = COMMANDS.named.iter().flat_map(|command| (command.options)());
    for spelling in flags::all().map(|flag| flag.described.spelling).chain(of_commands.map(|option| option.spelling)) {
        let long = spelling.long;
        assert!(man.contains(&format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-"))), "{long}");
        assert!(bash.contains(&format!("--{long}")), "{long}");
        assert!(zsh.contains(&format!("--{long}")), "{long}");
        assert!(fish.contains(&format!(" -l {long} ")), "{long}");
    }
    for command in COMMANDS.named {
        for text in [&man, &bash, &zsh, &fish] {
            assert!(text.contains(command.name), "{}", command.name);
        }
    }
}

#[test]
fn bash_completes_with_the_generated_script() {
    let script = generate_text("complete-bash");
    for (line, word, expected) in [
        ("onrush --io", "u", "uring"),
        ("onrush", "ser", "serve"),
        ("onrush serve", "--t", "--threads --tls"),
        ("onrush --con", "", ""),
        ("onrush", "--connec", "--connections --connect-to"),
        ("onrush sweep", "--roun", "--rounds"),
        ("onrush sweep", "--warm", "--warmup"),
        ("wrk", "--lat", "--latency"),
        ("wrk", "--htt", ""),
        ("onrush show --format", "wrk-", "wrk-cmm"),
        ("onrush --cacert", "/etc/host", "/etc/host"),
        ("onrush --sample-responses 3", "/et", "/etc"),
    ] {
        let said = completed(&script, line, word);
        let fits = if word.starts_with('/') { said.contains(expected) } else { said == expected };
        assert!(fits, "{line} {word}: {said}");
    }
}

#[test]
fn completions_of_multi_run_commands_are_accepted() {
    let script = generate_text("complete-bash");
    for (name, many) in [("sweep", "--plan"), ("vs", "--plan"), ("kubernetes", "--machines=2")] {
        let command = COMMANDS.named.iter().find(|command| command.name == name).unwrap();
        let own = (command.options)();
        let takes_value = |long: &str| match own.iter().find(|option| option.spelling.long == long) {
            Some(option) => option.spelling.value.is_some(),
            None => flags::by_name(long).is_some_and(|flag| flag.described.spelling.value.is_some()),
        };
        let offered = completed(&script, &format!("onrush {name}"), "--");
        assert!(offered.split(' ').count() > 40, "{offered}");
        for option in offered.split(' ').filter(|option| !takes_value(&option[2..])) {
            let line = ["onrush", name, option, many, "-c1,2", "http://127.0.0.1/", "http://127.0.0.1:1/"];
            if let Invocation::Print { stderr, .. } = cli::parse(line.map(OsString::from), &COMMANDS) {
                assert!(!stderr.contains("unknown") && !stderr.contains("is for"), "{option}: {stderr}");
            }
        }
    }
}
