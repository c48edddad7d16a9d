//! The integration tests: the real program against real servers. One binary, a file per topic, every test once per
//! backend; a test whose tool is not installed is skipped by name and counted as ignored.

mod harness;
mod peers;
mod recorder;
mod report;
mod tls_peers;
mod tls_processes;

/// Source and destination of connections.
mod addresses;
/// Which backend runs, and why.
mod backends;
/// Scripts with errors, and scripts that misbehave.
mod broken_scripts;
/// Connections that end after a number of requests.
mod closing;
/// Whether saved results differ.
mod comparing;
/// What wrk's users expect, called as wrk.
mod compat;
/// Runs the examples in the documents, and checks that what they name exists.
mod documents;
/// What becomes of the files, no matter how a run ends.
mod endings;
/// Where the time of the own threads went.
mod evidence;
/// Failures are counted and named.
mod failures;
/// Searches for the highest load.
mod find_max;
mod gates;
/// Broken and hostile servers, if the kernel is involved.
mod hostile;
/// Experiments.
mod lab;
/// Absurd numbers and edge cases.
mod limits;
/// Results that are added up.
mod merging;
/// The same command lines, with wrk's mistakes corrected.
mod native;
/// Scripts as users have written them for wrk.
mod old_scripts;
/// How long connecting, the handshake, the first and the last byte take.
mod phases;
/// The local ports of connections.
mod ports;
/// Through proxies, real and hostile ones.
mod proxies;
/// Requests by a schedule.
mod rates;
/// Result files.
mod results;
/// Lua scripts: what they are told, what they decide, and the examples.
mod scripts;
/// What must not be in any output.
mod secrets;
/// Command lines that users published.
mod seeds;
/// Runs against nginx and Python's server, whose logs count the requests.
mod servers;
/// Kernel settings that an experiment changes.
mod settings;
/// Saved results, as reports and as tables.
mod showing;
/// What is seen of a target on this machine.
mod sight;
/// The whole program in virtual time.
mod simulation;
/// Socket options, and what the kernel makes of them.
mod sockets;
/// Terminals, pipes, signals.
mod terminal;
/// HTTPS: real servers, bad certificates, broken handshakes.
mod tls;
mod until;
/// What limited a run.
mod verdict;
/// Load before anything is measured.
mod warm_up;
/// Samples of sockets, compared with what ss says.
mod watching;
/// What is sent, byte by byte.
mod wire;

use harness::{BACKENDS, Case, Context, is_installed};
use std::panic;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let cases: Vec<(&str, Vec<Case>)> = vec![
        ("addresses", addresses::cases()),
        ("backends", backends::cases()),
        ("broken_scripts", broken_scripts::cases()),
        ("closing", closing::cases()),
        ("comparing", comparing::cases()),
        ("compat", compat::cases()),
        ("documents", documents::cases()),
        ("endings", endings::cases()),
        ("evidence", evidence::cases()),
        ("failures", failures::cases()),
        ("find_max", find_max::cases()),
        ("gates", gates::cases()),
        ("hostile", hostile::cases()),
        ("lab", lab::cases()),
        ("limits", limits::cases()),
        ("merging", merging::cases()),
        ("native", native::cases()),
        ("old_scripts", old_scripts::cases()),
        ("phases", phases::cases()),
        ("ports", ports::cases()),
        ("proxies", proxies::cases()),
        ("rates", rates::cases()),
        ("results", results::cases()),
        ("scripts", scripts::cases()),
        ("secrets", secrets::cases()),
        ("seeds", seeds::cases()),
        ("servers", servers::cases()),
        ("settings", settings::cases()),
        ("showing", showing::cases()),
        ("sight", sight::cases()),
        ("simulation", simulation::cases()),
        ("sockets", sockets::cases()),
        ("terminal", terminal::cases()),
        ("tls", tls::cases()),
        ("until", until::cases()),
        ("verdict", verdict::cases()),
        ("warm_up", warm_up::cases()),
        ("watching", watching::cases()),
        ("wire", wire::cases()),
    ];
    let mut trials = Vec::new();
    for backend in BACKENDS {
        for (topic, cases) in &cases {
            trials.extend(cases.iter().map(|case| trial(backend, topic, case)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}

fn trial(backend: &'static str, topic: &str, case: &Case) -> Trial {
    let kernel = (backend == "uring").then_some("io_uring");
    let missing = kernel.iter().chain(case.needs).find(|need| !is_installed(need));
    let name = match missing {
        Some(tool) => format!("{topic}::{} [{backend}] (skipped: no {tool})", case.name),
        None => format!("{topic}::{} [{backend}]", case.name),
    };
    let (run, again) = (case.run, name.clone());
    Trial::test(name, move || {
        // These tests use the real program, real servers and a real clock on a machine that may be busy. A bug fails
        // twice in a row; a test that failed once is printed.
        if panic::catch_unwind(|| run(&Context { backend })).is_err() {
            eprintln!("{again} failed and runs once more");
            run(&Context { backend });
        }
        Ok(())
    })
    .with_ignored_flag(missing.is_some())
}
