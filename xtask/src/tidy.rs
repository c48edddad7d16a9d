//! Borders between modules: those invariants from ARCHITECTURE.md that neither packages nor lints enforce.
//!
//! The check is textual, by the words in the lines of a file, without comments and tests. Nothing here changes a file.

use std::fs;
use std::io;
use std::path::Path;

const CLOCKS: &[&str] = &["Instant", "SystemTime"];
const LOCKS: &[&str] = &["Mutex", "RwLock", "Condvar", "mpsc"];
const PRINTING: &[&str] =
    &["println!", "eprintln!", "print!", "eprint!", "dbg!", "io::stdout", "io::stderr", "Stdout", "Stderr"];
const EXITING: &[&str] = &["process::exit", "process::abort"];
const FILES: &[&str] = &["std::fs", "fs::", "File"];
const SPAWNING: &[&str] = &["thread::spawn", "thread::scope", "thread::Builder"];
const SYSTEM: &[&str] = &["std::net", "std::fs", "std::os", "std::process", "std::thread", "rustix", "libc"];

/// All code of the program.
const PROGRAM: &[&str] = &[
    "src/",
    "engine/src/",
    "lab/src/",
    "load/src/",
    "plan/src/",
    "proto/src/",
    "serve/src/",
    "stats/src/",
    "text/src/",
];

/// The paths enclosed by a border, the exceptions, the forbidden names, and the invariant. A path is a prefix.
type Border = (&'static [&'static str], &'static [&'static str], &'static [&'static [&'static str]], &'static str);

const BORDERS: &[Border] = &[
    (&["proto/src/"], &[], &[CLOCKS, SYSTEM], "proto never reads a clock or a socket"),
    (
        &["plan/src/"],
        &[],
        &[CLOCKS, FILES, &["ToSocketAddrs", "thread_local!", "rustix", "libc"]],
        "a plan is plain data: what it needs of files, names and clocks is read elsewhere",
    ),
    (PROGRAM, &["load/src/run/", "serve/src/"], &[SPAWNING], "only `load/src/run/` and `serve/src/` may start threads"),
    (
        PROGRAM,
        &["engine/src/tls/", "load/src/run/machines/channel.rs", "serve/src/tls.rs"],
        &[&["rustls"]],
        "only `engine/src/tls/`, `load/src/run/machines/channel.rs` and `serve/src/tls.rs` may use rustls",
    ),
    (PROGRAM, &["serve/src/http2/"], &[&["h2::", "tokio"]], "only `serve/src/http2/` may use h2 and tokio"),
    (PROGRAM, &["load/src/script/"], &[&["mlua"]], "only `load/src/script/` may use mlua"),
    (&["engine/src/"], &[], &[LOCKS, PRINTING], "after the start the data plane takes no lock and writes nothing"),
    (
        PROGRAM,
        &[
            "src/main.rs",
            "load/src/program/",
            "load/src/live/",
            "load/src/files/destination.rs",
            "src/merge/mod.rs",
            "serve/src/",
            "src/kubernetes/",
            "load/src/cli/",
        ],
        &[PRINTING, EXITING],
        "a session prints nothing and ends no process: only the program does",
    ),
    (
        &["load/src/run/", "engine/src/", "load/src/script/", "load/src/session/", "stats/src/"],
        &[
            "load/src/run/host.rs",
            "load/src/run/monitor/",
            "load/src/run/spin.rs",
            "engine/src/backend/ports.rs",
            "engine/src/backend/uring/probe.rs",
            "engine/src/backend/sim/scenario.rs",
            // Libraries loaded by a script itself.
            "load/src/script/module.rs",
        ],
        &[FILES],
        "after the plan no file is read for input: what a run needs of files is in the plan",
    ),
    (&["stats/src/"], &[], &[CLOCKS, PRINTING], "stats never print and never measure: they are plain data"),
    (
        &[
            "load/src/figures/",
            "load/src/record/",
            "load/src/judge/",
            "load/src/report/",
            "load/src/files/",
            "load/src/live/",
        ],
        &[],
        &[CLOCKS, &["onrush_engine"]],
        "what shows or judges a run never measures: it sees snapshots and results only",
    ),
    (
        &["lab/src/search/"],
        &["lab/src/search/runner.rs"],
        &[CLOCKS, PRINTING, FILES, &["thread::"]],
        "a search decides by what its runs measured: only its runner reads a clock, runs and prints",
    ),
    (
        &["lab/src/saved/", "lab/src/tables/", "lab/src/compare/"],
        &[],
        &[CLOCKS, PRINTING, &["onrush_load::run"]],
        "tables and comparisons depend on files alone: they read no clock, and measure and print nothing",
    ),
];

/// Lines below `root` that cross a border.
///
/// # Errors
///
/// If a directory or a file cannot be read.
pub fn tree(root: &Path) -> io::Result<Vec<String>> {
    let (mut found, mut paths) = (Vec::new(), PROGRAM.iter().map(|place| root.join(place)).collect::<Vec<_>>());
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(
                fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?,
            );
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            found.extend(crossings(&path.strip_prefix(root).unwrap_or(&path).to_string_lossy(), &text));
        }
    }
    Ok(found)
}

fn crossings(path: &str, text: &str) -> Vec<String> {
    let is_in = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let is_test = ["tests", "fixtures", "simulation", "situations", "told"]
        .iter()
        .any(|name| path.split(['/', '.']).any(|part| part == *name));
    let borders: Vec<_> =
        BORDERS.iter().filter(|(within, except, ..)| is_in(within) && !is_in(except) && !is_test).collect();
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().zip(1..);
    let of_line = |(line, number): (&str, usize)| {
        let line = line.split("//").next().unwrap_or_default().to_owned();
        let crossed = borders.iter().filter_map(move |(.., names, rule)| {
            let name = names.iter().copied().flatten().find(|name| is_named(name, &line))?;
            Some(format!("{path}:{number}: names `{name}`: {rule}"))
        });
        crossed.collect::<Vec<_>>()
    };
    code.flat_map(of_line).collect()
}

/// True if a line contains a name as a whole word.
fn is_named(name: &str, line: &str) -> bool {
    let is_part = |end: Option<char>| end.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        !is_part(before.chars().next_back()) && (name.ends_with([':', '!']) || !is_part(after.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_crosses_borders() {
        let found = tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn only_border_crossings_are_found() {
        for (within, except, names, rule) in BORDERS {
            for name in names.iter().copied().flatten() {
                let code = format!("fn a() {{ {name} }} // {name}\n");
                let has = |path: &str, code: &str| crossings(path, code).iter().any(|line| line.ends_with(rule));
                let mut enclosed = within.iter().filter(|place| !except.contains(place));
                assert!(enclosed.all(|place| has(&format!("{place}a.rs"), &code)), "{name}: {rule}");
                assert!(!except.iter().any(|place| has(place, &code)), "{name}: {rule}");
                let tests =
                    format!("fn a() {{}} // {name}\nfn b() {{ X{name}; }}\n\n#[cfg(test)]\nmod tests {{ {name} }}");
                assert!(!has(&format!("{}a.rs", within[0]), &tests), "{name}: {rule}");
            }
        }
    }
}
