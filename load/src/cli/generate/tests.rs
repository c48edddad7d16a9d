//! Names of the generated texts, the pages in the manual page, and the offered values.

use std::collections::BTreeSet;
use std::io::Write;

use super::*;
use crate::cli::{Invocation, parse};

#[test]
fn unknown_generate_values_are_rejected() {
    for args in [&["onrush", "--generate"][..], &["onrush", "--generate", "manual"], &["onrush", "--generate=html"]] {
        let Invocation::Print { stderr, exit, .. } = parse(args.iter().map(OsString::from), &Commands::NONE) else {
            panic!("{args:?}");
        };
        assert!(stderr.ends_with(": write one of man, complete-bash, complete-zsh, complete-fish\n"), "{stderr}");
        assert_eq!(exit, 1);
    }
    // In wrk's dialect the option is unknown.
    let args = ["wrk", "--generate", "man"].map(OsString::from);
    assert!(matches!(parse(args, &Commands::NONE), Invocation::Print { exit: 1, .. }));
}

#[test]
fn manual_names_every_documentation_page() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    let pages = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: BTreeSet<String> =
        pages.filter(|name| name.ends_with(".md") && !["README.md", "SUMMARY.md"].contains(&&**name)).collect();
    let named: BTreeSet<String> = man::PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(named, pages);
}

/// The option accepts every offered value.
#[test]
fn every_choice_is_accepted() {
    let mut list = tempfile::NamedTempFile::new().unwrap();
    list.write_all(b"/\n").unwrap();
    let urls = ["--urls", list.path().to_str().unwrap()];
    for flag in flags::all() {
        for choice in flag.described.choices {
            let long = flag.name();
            let value = if choice.ends_with(':') { format!("{choice}2") } else { (*choice).to_owned() };
            let option = format!("--{long}={value}");
            let mut args = vec!["onrush", &option];
            args.extend(match long {
                "compat" if *choice == "wrk2" => &["-R100"],
                "urls-order" => &urls[..],
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
            match parse(args.iter().map(OsString::from), &Commands::NONE) {
                Invocation::Run { .. } | Invocation::Command { .. } => {}
                Invocation::Print { stderr, .. } => panic!("{option}: {stderr}"),
            }
        }
    }
}
