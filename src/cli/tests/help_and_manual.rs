//! The help, the versions and the manual: each contains every option.

use super::*;

const MANUAL: &str = include_str!("../../../docs/command-line.md");

#[test]
fn wrks_help_exits_with_1() {
    let usage = help::usage(Dialect::Wrk);
    assert_eq!(printed("wrk"), (usage.clone(), String::new(), 1));
    assert_eq!(printed("wrk --help"), (usage.clone(), String::new(), 1));
    assert_eq!(printed("wrk -h"), (usage.clone(), String::new(), 1));
    let line = version(Dialect::Wrk, "epoll");
    assert!(line.starts_with("wrk 4.2.0-onrush-") && line.contains(" [epoll] Copyright"), "{line}");
    assert_eq!(version(Dialect::Wrk2, "epoll"), line.replace("4.2", "4.0"));
    assert_eq!(printed("wrk --io epoll -v"), (format!("{line}\n{usage}"), String::new(), 1));
    assert_eq!(printed("wrk --io epoll -v foo").0, format!("{line}\n{usage}"));
    assert!(run("wrk -v -t1 -c1 -d1 http://h/").output.verbose);
}

#[test]
fn native_help_exits_with_0() {
    assert_eq!(printed("onrush --help"), (help::help(false), String::new(), 0));
    assert_eq!(printed("onrush --help all"), (help::help(true), String::new(), 0));
    assert_eq!(printed("onrush --help=all"), printed("onrush --help all"));
    for command in ["serve", "merge", "show", "compare", "table", "lab", "sweep", "vs", "restore"] {
        let help = printed(&format!("onrush {command} --help"));
        assert_eq!((&help.1[..], help.2), ("", 0), "{command}");
        assert_eq!(printed(&format!("onrush {command} --help=all")), help, "{command}");
        assert_eq!(printed(&format!("onrush {command} --help all")), help, "{command}");
    }
    assert_eq!(printed("onrush -c 5 --help http://all/"), (help::help(false), String::new(), 0));
    assert_eq!(printed("onrush -h"), (help::SHORT.to_owned(), String::new(), 0));
    assert_eq!(printed("onrush"), (String::new(), help::usage(Dialect::Native), 1));
    let line = format!("onrush {} [epoll]\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed("onrush -v --io epoll"), (line, String::new(), 0));
    assert!(run("onrush -v http://h/").output.verbose);
    assert_eq!(refused("onrush -c 5"), "onrush: no URL; try onrush -c100 -d30s http://127.0.0.1:8080/");
}

#[test]
fn subcommand_help_lists_all_options() {
    for command in COMMANDS.named {
        let help = (command.help)();
        for option in (command.options)() {
            assert!(help.contains(&format!(" {}", option.spelling.whole)), "{}", option.spelling.whole);
            assert!(!option.help.is_empty(), "{}", option.spelling.whole);
        }
        assert!(help.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{help}");
        let listed = help::help(false);
        let line = listed.lines().find(|line| line.contains(&format!(" onrush {} ", command.name)));
        assert!(line.is_some_and(|line| line.ends_with(&format!("  {}", command.about))), "{}", command.name);
    }
}

#[test]
fn experiment_options_differ_from_run_options() {
    for option in lab::draft::LAB_ARGUMENTS.options.iter().chain(&lab::draft::SHORTHAND) {
        let name = option.described.spelling.long;
        assert!(flags::by_name(name).is_none(), "{name}");
        // -v prints more in either case.
        let is_known = |letter| flags::by_letter(letter).is_some_and(|flag| flag.id == flags::Id::Version);
        assert!(option.described.spelling.short.is_none_or(is_known), "{name}");
        assert!(flags::by_prefix(name, Dialect::Native).is_empty(), "{name}");
    }
}

#[test]
fn manual_lists_options_in_table_order() {
    let headings: Vec<&str> = MANUAL.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let expected: Vec<&str> = flags::all().map(|flag| flag.spelling.whole).collect();
    assert_eq!(headings, expected);
}

#[test]
fn every_option_has_a_working_example() {
    let sections = MANUAL.split("\n### `").skip(1);
    for (section, flag) in sections.zip(flags::all()) {
        let example = section.lines().find_map(|line| line.strip_prefix("$ ")).expect("an example");
        assert!(
            example.contains(&format!("--{}", flag.spelling.long))
                || example.contains(&format!("-{}", flag.spelling.short.unwrap()))
        );
        let args = words(example);
        match parsed(&args, false) {
            Invocation::Run { .. } | Invocation::Command { .. } => {}
            Invocation::Print { exit: 0, .. } => assert!(matches!(flag.id, flags::Id::Help | flags::Id::Version)),
            Invocation::Print { stderr, .. } => panic!("{example}: {stderr}"),
        }
    }
}
