//! The help, the versions and the order of the manual.

use super::*;
use crate::record::schema;

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
    assert_eq!(printed("onrush -h"), (help::short_help(), String::new(), 0));
    assert_eq!(printed("onrush"), (String::new(), help::usage(Dialect::Native), 1));
    let line = format!("onrush {} [epoll]\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(printed("onrush -v --io epoll"), (line, String::new(), 0));
    assert!(run("onrush -v http://h/").output.verbose);
    assert_eq!(refused("onrush -c 5"), "onrush: no URL; try onrush -c100 -d30s http://127.0.0.1:8080/");
}

#[test]
fn the_document_of_options_is_the_table() {
    let (above, rest) = MANUAL.split_once("\n## Load\n").unwrap();
    let (_, below) = rest.split_once("\n## Exit codes\n").unwrap();
    let text = format!("{above}\n{}## Exit codes\n{below}", options_in_markdown());
    schema::check_text("docs/command-line.md", &text, "the_document_of_options");
}

/// All sections of options, as in `docs/command-line.md`.
fn options_in_markdown() -> String {
    let mut text = String::new();
    for section in &flags::SECTIONS {
        text += &format!("## {}\n\n{}", section.title, wrapped(section.about));
        for flag in section.flags {
            text += &format!("### `{}`\n\n{}", flag.described.spelling.whole, wrapped(flag.reference));
            if !flag.example.is_empty() {
                text += &format!("```console\n$ {}\n```\n\n", flag.example);
            }
        }
    }
    text
}

/// Paragraphs in lines of at most 120 characters; tables and fenced blocks as they are.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        if paragraph.starts_with(['|', '`']) && paragraph.contains('\n') {
            lines += paragraph;
        } else {
            let mut length = 0;
            for word in paragraph.split(' ') {
                let more = word.chars().count() + 1;
                let fits = length == 0 || length + more <= 121;
                lines += if length == 0 {
                    ""
                } else if fits {
                    " "
                } else {
                    "\n"
                };
                length = if fits { length + more } else { more };
                lines += word;
            }
        }
        lines += "\n\n";
    }
    lines
}
