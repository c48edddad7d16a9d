//! Every option is in the generated texts, and every completion is accepted. Only bash is started.

use std::collections::BTreeSet;
use std::process::Command as Process;

use super::*;
use crate::cli::{Invocation, parse};

fn generate_text(what: &str) -> String {
    let args = ["onrush", OPTION, what].map(OsString::from);
    match parse(args, &crate::COMMANDS) {
        Invocation::Print { stdout, stderr, exit: 0 } if stderr.is_empty() => stdout,
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn unknown_generate_values_are_rejected() {
    for args in [&["onrush", "--generate"][..], &["onrush", "--generate", "manual"], &["onrush", "--generate=html"]] {
        let Invocation::Print { stderr, exit, .. } = parse(args.iter().map(OsString::from), &crate::COMMANDS) else {
            panic!("{args:?}");
        };
        assert!(stderr.ends_with(": write one of man, complete-bash, complete-zsh, complete-fish\n"), "{stderr}");
        assert_eq!(exit, 1);
    }
    // In wrk's dialect the option is unknown.
    let args = ["wrk", "--generate", "man"].map(OsString::from);
    assert!(matches!(parse(args, &crate::COMMANDS), Invocation::Print { exit: 1, .. }));
}

#[test]
fn every_option_is_in_manual_and_completions() {
    let program = KnownProgram::from_commands(&crate::COMMANDS);
    let [man, bash, zsh, fish] = ALL.map(|(what, _)| generate_text(what));
    let of_commands = program.commands.iter().flat_map(|command| &command.options);
    for option in program.options().chain(of_commands) {
        let long = option.spelling.long;
        assert!(man.contains(&format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-"))), "{long}");
        assert!(bash.contains(&format!("--{long}")), "{long}");
        assert!(zsh.contains(&format!("--{long}")), "{long}");
        assert!(fish.contains(&format!(" -l {long} ")), "{long}");
    }
    for command in &program.commands {
        for text in [&man, &bash, &zsh, &fish] {
            assert!(text.contains(command.name), "{}", command.name);
        }
    }
}

#[test]
fn manual_names_every_documentation_page() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
    let pages = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: BTreeSet<String> =
        pages.filter(|name| name.ends_with(".md") && !["README.md", "SUMMARY.md"].contains(&&**name)).collect();
    let named: BTreeSet<String> = man::PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(named, pages);
}

/// The option accepts every offered value.
#[test]
fn every_choice_is_accepted() {
    for flag in flags::all() {
        for choice in flag.choices {
            let long = flag.spelling.long;
            let value = if choice.ends_with(':') { format!("{choice}2") } else { (*choice).to_owned() };
            let option = format!("--{long}={value}");
            let mut args = vec!["onrush", &option];
            args.extend(match long {
                "compat" if *choice == "wrk2" => &["-R100"],
                "urls-order" => &["--urls", "examples/urls.txt"][..],
                "arrivals" => &["-R100"],
                "over" => &["--find-max", "p99<1s"],
                "on-loss" => &["--machines=2", "--coordinate=:7070", "--token-file=token"],
                "tls-min" | "tls-max" | "tls-resume" => &["https://127.0.0.1/"],
                "alpn-list" => &["https://127.0.0.1/"],
                _ => &[],
            });
            if !args.last().unwrap().contains("://") {
                args.push("http://127.0.0.1/");
            }
            match parse(args.iter().map(OsString::from), &crate::COMMANDS) {
                Invocation::Run { .. } | Invocation::Command { .. } => {}
                Invocation::Print { stderr, .. } => panic!("{option}: {stderr}"),
            }
        }
    }
}

#[test]
fn completions_of_multi_run_commands_are_accepted() {
    let program = KnownProgram::from_commands(&crate::COMMANDS);
    for command in program.commands.iter().filter(|command| command.runs) {
        for option in program.options_of(command).filter(|option| option.spelling.value.is_none()) {
            let option = format!("--{}", option.spelling.long);
            let many = if command.name == "kubernetes" { "--machines=2" } else { "--plan" };
            let args = ["onrush", command.name, &option, many, "-c1,2", "http://127.0.0.1/", "http://127.0.0.1:1/"];
            if let Invocation::Print { stderr, .. } = parse(args.map(OsString::from), &crate::COMMANDS) {
                assert!(!stderr.contains("unknown") && !stderr.contains("is for"), "{option}: {stderr}");
            }
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
        let words: Vec<&str> = line.split(' ').chain([word]).collect();
        let asks = format!(
            "{script}\nCOMP_WORDS=({line} '{word}')\nCOMP_CWORD={}\n_onrush {}\necho \"${{COMPREPLY[*]}}\"\n",
            words.len() - 1,
            words[0],
        );
        let output = Process::new("bash").args(["--norc", "-c", &asks]).output().expect("bash");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.stderr.is_empty(), "{line} {word}: {}", String::from_utf8_lossy(&output.stderr));
        let fits = if word.starts_with('/') { said.starts_with(expected) } else { said.trim() == expected };
        assert!(fits, "{line} {word}: {said}");
    }
}
