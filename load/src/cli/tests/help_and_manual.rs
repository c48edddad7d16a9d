//! The help, the versions and the order of the manual.

use super::*;

const MANUAL: &str = include_str!("../../../../docs/command-line.md");

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
    assert_eq!(printed("onrush -c 5 --help http://all/"), (help::help(false), String::new(), 0));
    assert_eq!(printed("onrush -h"), (help::SHORT.to_owned(), String::new(), 0));
    assert_eq!(printed("onrush"), (String::new(), help::usage(Dialect::Native), 1));
    let line = format!("onrush {} [epoll]\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed("onrush -v --io epoll"), (line, String::new(), 0));
    assert!(run("onrush -v http://h/").output.verbose);
    assert_eq!(refused("onrush -c 5"), "onrush: no URL; try onrush -c100 -d30s http://127.0.0.1:8080/");
}

#[test]
fn manual_lists_options_in_table_order() {
    let headings: Vec<&str> = MANUAL.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let expected: Vec<&str> = flags::all().map(|flag| flag.spelling.whole).collect();
    assert_eq!(headings, expected);
}
