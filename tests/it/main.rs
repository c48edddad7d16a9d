//! Integration tests: the real program against real servers. One binary with a file per topic. Every test runs once per
//! backend unless the backend makes no difference, and in parallel unless it would disturb others. A test whose tool is
//! not installed is skipped by name and counted as ignored.

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
/// Availability of targets.
mod availability;
/// Choice of the backend, and its reason.
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
/// Runs the examples in the documents, and checks that named things exist.
mod documents;
/// Output files after every end of a run.
mod endings;
/// Time of the generator's own threads.
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
/// Measurements that depend on the machine; only run by `make check-machine`.
mod machine;
/// Runs on several machines.
mod machines;
/// Merged results.
mod merging;
/// Observations of a target on this machine.
mod monitor;
/// The command lines of `compat`, with wrk's mistakes corrected.
mod native;
/// Scripts that users wrote for wrk.
mod old_scripts;
/// Ports that speak another protocol.
mod other_protocols;
/// Durations of connects, handshakes, first and last bytes.
mod phases;
/// The local ports of connections.
mod ports;
/// The probe after a closed loop, which finds its limit.
mod probe;
/// Real and hostile proxies.
mod proxies;
/// Requests sent on a schedule.
mod rates;
mod request_log;
/// Result files.
mod results;
/// Experiments that end early and resume.
mod resuming;
/// Samples of sockets, compared with ss's output.
mod sampling;
/// Modules that scripts load.
mod script_modules;
/// Threads that are stopped by a script.
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

/// Number of parallel tests: most of them mostly wait.
const AT_ONCE: usize = 8;

/// Set by `make check-machine`: runs the measurements that need a quiet machine, and no tests.
const MACHINE: &str = "CHECK_MACHINE";

/// Duration of each test.
static TOOK: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// The tests of several topics, each with the name of its topic.
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
        // Costs are visible only in an optimised program.
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

/// Prints the ten slowest tests, and the total time.
fn print_slowest(total: Duration) {
    let mut took = TOOK.lock().expect("nobody panics while it is locked");
    took.sort_by(|one, other| other.cmp(one));
    println!("the slowest of {} tests, which took {:.1} s together:", took.len(), total.as_secs_f64());
    took.iter().take(10).for_each(|(took, name)| println!("{:6.2} s  {name}", took.as_secs_f64()));
}
