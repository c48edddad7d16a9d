//! The integration tests: the real program against real servers. One binary, a file per topic; every test runs once per
//! backend unless the backend makes no difference to it, and beside others unless it would disturb them. A test whose
//! tool is not installed is skipped by name and counted as ignored.

mod counting;
mod harness;
mod http2_peers;
mod peers;
mod recorder;
mod report;
mod tls_peers;
mod tls_processes;

/// Source and destination of connections.
mod addresses;
/// Allocations per request.
mod allocations;
/// How much of the time a target was there.
mod availability;
/// Which backend runs, and why.
mod backends;
/// Scripts with errors, and scripts that misbehave.
mod broken_scripts;
/// Checks of responses.
mod checks;
/// Connections that end after a number of requests.
mod closing;
/// Collecting the results of a run in a cluster.
mod collecting;
/// Differences between saved results.
mod comparing;
/// wrk's users' expectations, called as wrk.
mod compat;
/// Runs the examples in the documents, and checks that the things they name exist.
mod documents;
/// Output files, no matter how a run ends.
mod endings;
/// Where the time of the own threads went.
mod evidence;
/// Failures are counted and named.
mod failures;
/// Searches for the highest load.
mod find_max;
/// Cost of many machines.
mod fleet;
mod gates;
/// Broken and hostile servers, if the kernel is involved.
mod hostile;
/// HTTP/2 with real servers.
mod http2;
/// HTTP/2 with servers that break its rules, or use them against the client.
mod http2_hostile;
/// HTTP/2 with the libraries of Go and Python, and with Caddy.
mod http2_libraries;
/// Experiments.
mod lab;
/// Absurd numbers and edge cases.
mod limits;
mod lists;
/// Measurements of the machine as much as of the program; run by `make check-machine` alone.
mod machine;
/// Runs on several machines.
mod machines;
/// Results that are added up.
mod merging;
/// Observations of a target on this machine.
mod monitor;
/// The command lines of `compat`, with wrk's mistakes corrected.
mod native;
/// Scripts as users have written them for wrk.
mod old_scripts;
/// Ports that speak another protocol.
mod other_protocols;
/// How long connecting, the handshake, the first and the last byte take.
mod phases;
/// The local ports of connections.
mod ports;
/// The probe after a closed loop, which finds its limit.
mod probe;
/// Through proxies, real and hostile ones.
mod proxies;
/// Requests by a schedule.
mod rates;
mod request_log;
/// Result files.
mod results;
/// Experiments that end early and go on.
mod resuming;
/// Samples of sockets, compared with ss's output.
mod sampling;
/// Modules that scripts load.
mod script_modules;
/// Threads that a script ends.
mod script_stops;
/// Lua scripts: their input, their decisions, and the examples.
mod scripts;
/// Text that must not be in any output.
mod secrets;
/// Command lines that users published.
mod seeds;
/// Runs against nginx and Python's server, whose logs count the requests.
mod servers;
/// Many sessions in one process.
mod sessions;
/// Kernel settings that an experiment changes.
mod settings;
/// Saved results, as reports and as tables.
mod showing;
/// The whole program in virtual time.
mod simulation;
/// Situations with a known bottleneck, on sockets.
mod situations;
/// Socket options, and the kernel's use of them.
mod sockets;
/// Paths of the embedded target whose limit is known.
mod targets;
/// HTTPS: real servers, bad certificates, broken handshakes.
mod templates;
/// Terminals, pipes, signals.
mod terminal;
mod tls;
mod until;
/// The limit of a run.
mod verdict;
/// Load before anything is measured.
mod warm_up;
/// Requests, byte by byte.
mod wire;

use std::env;
use std::panic;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use harness::{BACKENDS, Case, Context, TestMode, is_installed};
use libtest_mimic::{Arguments, Conclusion, Trial};

/// How many tests run at a time: most of them wait for most of their time.
const AT_ONCE: usize = 8;

/// Set by `make check-machine`: runs the measurements that need a quiet machine, and no tests.
const MACHINE: &str = "CHECK_MACHINE";

/// How long each test took.
static TOOK: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// The tests of some topics, with the topic's name.
macro_rules! topics {
    ($($topic:ident),+ $(,)?) => {
        vec![$((stringify!($topic), $topic::cases())),+]
    };
}

fn main() {
    let mut cases = topics![
        addresses,
        allocations,
        availability,
        backends,
        broken_scripts,
        checks,
        closing,
        collecting,
        comparing,
        compat,
        documents,
        endings,
        evidence,
        failures,
        find_max,
        gates,
        hostile,
        http2,
        http2_hostile,
        http2_libraries,
        lab,
        limits,
        lists,
        machines,
        merging,
        monitor,
        native,
        old_scripts,
        other_protocols,
        phases,
        ports,
        probe,
        proxies,
        rates,
        request_log,
        results,
        resuming,
        sampling,
        script_modules,
        script_stops,
        scripts,
        secrets,
        seeds,
        servers,
        sessions,
        settings,
        showing,
        simulation,
        sockets,
        targets,
        templates,
        terminal,
        tls,
        until,
        verdict,
        warm_up,
        wire,
    ];
    let is_machine = env::var_os(MACHINE).is_some();
    if is_machine {
        // Costs show in an optimised program alone.
        cases = match cfg!(debug_assertions) {
            true => topics![machine, situations, seeds],
            false => topics![fleet],
        };
    }
    let start = Instant::now();
    let mut arguments = Arguments::from_args();
    let asked = arguments.test_threads;
    let mut conclusions = Vec::new();
    for (how_many, is_alone) in [(AT_ONCE, false), (1, true)] {
        let mut trials = Vec::new();
        for (topic, cases) in &cases {
            for case in cases.iter().filter(|case| (is_machine || case.how.contains(&TestMode::Alone)) == is_alone) {
                let is_once = case.how.contains(&TestMode::Once);
                let backends = if is_once { &[onrush_engine::backend::default_name()][..] } else { &BACKENDS };
                trials.extend(backends.iter().map(|backend| trial(backend, topic, case)));
            }
        }
        arguments.test_threads = Some(asked.unwrap_or(how_many).min(how_many));
        conclusions.push(libtest_mimic::run(&arguments, trials));
    }
    print_slowest(start.elapsed());
    conclusions.iter().for_each(Conclusion::exit_if_failed);
}

fn trial(backend: &'static str, topic: &str, case: &Case) -> Trial {
    let is_once = case.how.contains(&TestMode::Once);
    let kernel = (backend == "uring").then_some("io_uring");
    let missing = kernel.iter().chain(case.needs).find(|need| !is_installed(need));
    let mut name = format!("{topic}::{}", case.name);
    if !is_once {
        name += &format!(" [{backend}]");
    }
    if let Some(tool) = missing {
        name += &format!(" (skipped: no {tool})");
    }
    let (run, shown) = (case.run, name.clone());
    Trial::test(name, move || {
        let start = Instant::now();
        let outcome = panic::catch_unwind(|| run(&Context { backend }));
        TOOK.lock().expect("nobody panics while it is locked").push((start.elapsed(), shown));
        outcome.map_err(|panic| panic::resume_unwind(panic))
    })
    .with_ignored_flag(missing.is_some())
}

/// Prints the ten slowest tests, and how long all took together.
fn print_slowest(total: Duration) {
    let mut took = TOOK.lock().expect("nobody panics while it is locked");
    took.sort_by(|one, other| other.cmp(one));
    println!("the slowest of {} tests, which took {:.1} s together:", took.len(), total.as_secs_f64());
    took.iter().take(10).for_each(|(took, name)| println!("{:6.2} s  {name}", took.as_secs_f64()));
}
