//! Checks the borders between modules, which are invariants of ARCHITECTURE.md: which file may name what.
//!
//! They are checked like spelling: by the names a file contains, not by what they resolve to. The borders are listed
//! once, in [`BORDERS`], and none is crossed unnoticed.

use super::Finding;
use super::source::Source;

/// What reads a clock.
const CLOCKS: &[&str] = &["Instant", "SystemTime", "std::time::*"];

/// What can make a thread wait for another.
const LOCKS: &[&str] = &["Mutex", "RwLock", "Condvar", "mpsc", "std::sync::*"];

/// What prints.
const PRINTING: &[&str] = &["println!", "eprintln!", "print!", "eprint!", "dbg!", "stdout", "stderr"];

/// What logs.
const LOGGING: &[&str] = &["trace!", "debug!", "info!", "warn!", "error!"];

/// What ends the process.
const EXITING: &[&str] = &["process::exit", "process::abort", "std::process::*"];

/// What opens files.
const FILES: &[&str] = &["std::fs", "fs::File", "std::fs::*"];

/// What starts a thread.
const SPAWNING: &[&str] = &["thread::spawn", "thread::scope", "thread::Builder", "std::thread::*"];

/// What reaches outside the process.
const SYSTEM: &[&str] = &["std::net", "std::fs", "std::os", "std::process", "std::thread", "rustix", "libc"];

/// All of the program's own code: what is neither a test nor a tool.
const PROGRAM: &[&str] = &["src/", "engine/src/", "plan/src/", "proto/src/", "stats/src/", "text/src/"];

/// A border: what the files in some places never name.
struct Border {
    /// The places it encloses: directories with a slash at the end, or files.
    within: &'static [&'static str],
    /// The places in them that may cross it.
    except: &'static [&'static str],
    /// What may not be named, in groups; see [`super::names::Name::contains`].
    names: &'static [&'static [&'static str]],
    /// Whether code for tests may cross it.
    spares_tests: bool,
    /// The invariant, as the message gives it.
    rule: &'static str,
}

const BORDERS: &[Border] = &[
    Border {
        within: &["proto/src/"],
        except: &[],
        names: &[CLOCKS, SYSTEM],
        spares_tests: true,
        rule: "proto never reads a clock or a socket",
    },
    Border {
        within: &["src/", "engine/", "plan/", "proto/", "stats/", "text/", "xtask/", "fuzz/"],
        except: &["engine/src/backend/", "src/script/"],
        names: &[&["unsafe"]],
        spares_tests: false,
        rule: "only `engine/src/backend/` and `src/script/` contain `unsafe`",
    },
    Border {
        within: PROGRAM,
        except: &["src/run/", "src/serve/"],
        names: &[SPAWNING],
        spares_tests: true,
        rule: "only `src/run/` and `src/serve/` start threads",
    },
    Border {
        within: PROGRAM,
        except: &["engine/src/tls/", "src/run/machines/channel.rs", "src/serve/tls.rs"],
        names: &[&["rustls"]],
        spares_tests: true,
        rule: "only `engine/src/tls/`, `src/run/machines/channel.rs` and `src/serve/tls.rs` name rustls",
    },
    Border {
        within: PROGRAM,
        except: &["src/serve/http2/"],
        names: &[&["h2"], &["tokio"]],
        spares_tests: true,
        rule: "only `src/serve/http2/` names h2 and tokio",
    },
    Border {
        within: PROGRAM,
        except: &["src/script/"],
        names: &[&["mlua"]],
        spares_tests: true,
        rule: "only `src/script/` names mlua",
    },
    Border {
        within: &["engine/src/"],
        except: &[],
        names: &[LOCKS, PRINTING, LOGGING],
        spares_tests: true,
        rule: "after the start the data plane takes no lock and writes nothing",
    },
    Border {
        within: PROGRAM,
        except: &[
            "src/main.rs",
            "src/program/",
            "src/live/",
            "src/files/destination.rs",
            "src/merge/mod.rs",
            "src/serve/",
            "src/kubernetes/",
            "src/cli/",
        ],
        names: &[PRINTING, EXITING],
        spares_tests: true,
        rule: "a session prints nothing and ends no process: only the program does",
    },
    Border {
        within: &["src/run/", "engine/src/", "src/script/", "src/session/", "stats/src/"],
        except: &[
            "src/run/host.rs",
            "src/run/monitor/",
            "src/run/spin.rs",
            "engine/src/backend/ports.rs",
            "engine/src/backend/uring/probe.rs",
            "engine/src/backend/sim/scenario.rs",
            // The libraries that a script loads by itself.
            "src/script/module.rs",
        ],
        names: &[FILES],
        spares_tests: true,
        rule: "after the plan no file is read for input: what a run needs of files is in the plan",
    },
    Border {
        within: &["stats/src/"],
        except: &[],
        names: &[CLOCKS, PRINTING, LOGGING],
        spares_tests: true,
        rule: "stats never print and never measure: they are plain data",
    },
    Border {
        within: &["src/figures/", "src/record/", "src/judge/", "src/report/", "src/files/", "src/live/"],
        except: &[],
        names: &[CLOCKS, &["onrush_engine"]],
        spares_tests: true,
        rule: "what shows or judges a run never measures: it sees snapshots and results only",
    },
    Border {
        within: &["src/search/"],
        except: &["src/search/runner.rs"],
        names: &[CLOCKS, PRINTING, FILES, &["thread"]],
        spares_tests: true,
        rule: "a search decides by what its runs measured: only its runner reads a clock, runs and prints",
    },
    Border {
        within: &["src/saved/", "src/tables/", "src/compare/"],
        except: &[],
        names: &[CLOCKS, PRINTING, &["crate::run"]],
        spares_tests: true,
        rule: "tables and comparisons depend on files alone: they read no clock, and measure and print nothing",
    },
];

/// Finds what crosses a border.
pub fn check(source: &Source) -> Vec<Finding> {
    let borders = BORDERS.iter().filter(|border| source.lies_in(border.within) && !source.lies_in(border.except));
    borders.flat_map(|border| crossings(source, border)).collect()
}

/// Every name in the file that crosses `border`.
fn crossings(source: &Source, border: &Border) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in &source.names {
        let crosses = border.names.iter().copied().flatten().any(|pattern| name.contains(pattern));
        if crosses && !(border.spares_tests && source.is_test(name.line)) {
            findings.push(source.finding(name.line, format!("names `{}`: {}", name.parts.join("::"), border.rule)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crosses(path: &str, code: &str) -> bool {
        !check(&Source::parse(path, code).unwrap()).is_empty()
    }

    /// Each piece of code crosses a border at the first path and none at the second.
    const CROSSINGS: &[(&str, &str, &str)] = &[
        ("fn a() { std::time::Instant::now(); }", "proto/src/a.rs", "src/run/a.rs"),
        ("use std::time::{Duration, SystemTime};", "proto/src/a.rs", "src/run/a.rs"),
        ("use std::net::TcpStream;", "proto/src/a.rs", "src/serve/a.rs"),
        ("use std::{fmt, fs};", "proto/src/a.rs", "src/cli/a.rs"),
        ("use rustix::event;", "proto/src/a.rs", "engine/src/backend/epoll.rs"),
        ("fn a() { unsafe {} }", "engine/src/a.rs", "engine/src/backend/socket.rs"),
        ("fn a() { unsafe {} }", "xtask/src/a.rs", "tests/it/counting.rs"),
        ("#[cfg(test)] mod tests { unsafe impl A for B {} }", "src/cli/a.rs", "src/script/a.rs"),
        ("fn a() { std::thread::spawn(f); }", "engine/src/a.rs", "src/run/a.rs"),
        ("use std::thread; fn a() { thread::Builder::new(); }", "src/live/a.rs", "src/serve/a.rs"),
        ("fn a() { assert!(thread::scope(f)); }", "src/main.rs", "src/run/mod.rs"),
        ("use std::thread::*;", "src/lib.rs", "src/run/mod.rs"),
        ("use rustls::ClientConfig;", "engine/src/connection.rs", "engine/src/tls/a.rs"),
        ("use rustls::ServerConfig;", "src/serve/a.rs", "src/serve/tls.rs"),
        ("use tokio::io::AsyncRead;", "engine/src/a.rs", "src/serve/http2/a.rs"),
        ("fn a(error: h2::Error) {}", "proto/src/a.rs", "src/serve/http2/a.rs"),
        ("fn a(lua: &mlua::Lua) {}", "src/run/a.rs", "src/script/a.rs"),
        ("use std::sync::{Arc, Mutex};", "engine/src/a.rs", "src/run/a.rs"),
        ("fn a() { let b = sync::RwLock::new(1); }", "engine/src/backend/a.rs", "src/run/a.rs"),
        ("use std::sync::mpsc;", "engine/src/a.rs", "src/serve/a.rs"),
        ("fn a() { println!(); }", "engine/src/a.rs", "src/main.rs"),
        ("fn a() { log::warn!(\"b\"); }", "engine/src/backend/a.rs", "src/run/a.rs"),
        ("fn a() { dbg!(1); }", "stats/src/a.rs", "src/program/a.rs"),
        ("fn a() { std::process::exit(1); }", "src/run/a.rs", "src/program/a.rs"),
        ("fn a() { eprintln!(); }", "src/script/a.rs", "src/serve/a.rs"),
        ("use std::fs;", "src/script/a.rs", "plan/src/material.rs"),
        ("fn a() { std::fs::File::open(b); }", "engine/src/tls/a.rs", "src/cli/a.rs"),
        ("use std::time::Instant;", "stats/src/a.rs", "src/run/a.rs"),
        ("use std::time::Instant;", "src/report/a.rs", "src/run/a.rs"),
        ("use onrush_engine::{Engine, Spare};", "src/report/a.rs", "src/run/a.rs"),
        ("fn a(b: onrush_engine::backend::Epoll) {}", "src/live/a.rs", "src/run/a.rs"),
        ("use std::time::Instant;", "src/search/a.rs", "src/search/runner.rs"),
        ("use std::thread; fn a() { thread::sleep(b); }", "src/search/a.rs", "src/search/runner.rs"),
        ("use std::time::Instant;", "src/compare/a.rs", "src/program/a.rs"),
    ];

    #[test]
    fn every_crossing_is_found_where_it_is_one_and_only_there() {
        for (code, forbidden, allowed) in CROSSINGS {
            assert!(crosses(forbidden, code), "not found in {forbidden}: {code}");
            assert!(!crosses(allowed, code), "found in {allowed}: {code}");
        }
    }

    #[test]
    fn every_border_has_a_crossing_that_shows_it() {
        for border in BORDERS {
            let shown = CROSSINGS.iter().any(|(code, forbidden, _)| {
                let source = Source::parse(forbidden, code).unwrap();
                source.lies_in(border.within) && !crossings(&source, border).is_empty()
            });
            assert!(shown, "{}", border.rule);
        }
    }

    #[test]
    fn tests_comments_and_strings_cross_no_border() {
        let path = "engine/src/a.rs";
        assert!(!crosses(path, "#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n}\n"));
        assert!(!crosses(
            path,
            "/// Takes no Mutex; `thread::spawn` is for `run`.\nfn a() -> &'static str { \"println!\" }"
        ));
        assert!(!crosses("engine/src/tests.rs", "fn a() { println!(); }"));
    }

    #[test]
    fn the_message_names_the_thing_and_the_rule() {
        let source = Source::parse("engine/src/a.rs", "use std::sync::Mutex;").unwrap();
        assert_eq!(
            check(&source)[0].to_string(),
            "engine/src/a.rs:1: names `std::sync::Mutex`: after the start the data plane takes no lock and writes nothing"
        );
    }
}
