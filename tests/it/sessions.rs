//! Many sessions in one process, parallel and sequential: each returns its own result, and none leaves anything behind.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use onrush_load::cli::{self, Commands, Invocation};
use onrush_load::input::InputFiles;
use onrush_load::run::{Clock, Interrupt, Listener, Observer, RunEnd};
use onrush_load::session::{self, SessionResult};
use onrush_plan::Plan;

use crate::counting::live_bytes;
use crate::harness::{Context, cases, target};
use crate::tls_peers::{TlsServer, self_signed};

cases! {
    sessions_take_over_connections;
    tls_connections_outlast_sessions;
    forty_sessions_leave_nothing_behind (Once, Alone);
}

/// Records the messages of a script, and starts on request.
#[derive(Default)]
struct ScriptRecorder {
    said: Arc<Mutex<Vec<u8>>>,
    begin: Option<Instant>,
}

impl Observer for ScriptRecorder {
    fn on_ready(&mut self) -> Option<Instant> {
        Some(self.begin.unwrap_or_else(Instant::now))
    }

    fn script_listener(&mut self) -> Option<Listener> {
        let said = Arc::clone(&self.said);
        Some(Arc::new(move |line| said.lock().expect("no thread panics while writing").extend_from_slice(line)))
    }
}

/// A plan from a command line, with the contents of its files.
fn plan(words: &str) -> Plan {
    match cli::parse(format!("onrush {words}").split(' ').map(Into::into), &Commands::NONE) {
        Invocation::Run { mut plan, .. } => {
            InputFiles::default().read_files(&mut plan).expect("its files are there");
            *plan
        }
        other => panic!("{words}: {other:?}"),
    }
}

fn run(words: &str) -> anyhow::Result<SessionResult> {
    session::run(&plan(words), &Interrupt::default(), &mut [])
}

/// Resources of a process: threads, descriptors, and memory in bytes.
#[derive(Clone, Copy, Debug)]
struct Held {
    threads: usize,
    descriptors: usize,
    memory: usize,
}

fn held() -> Held {
    let count = |folder: &str| fs::read_dir(folder).expect("Linux has /proc").count();
    Held { threads: count("/proc/self/task"), descriptors: count("/proc/self/fd"), memory: live_bytes() }
}

/// The resources held once everything has been cleaned up: the target's connections and a joined thread take a moment
/// to disappear.
fn held_in_the_end(before: Held) -> Held {
    let began = Instant::now();
    loop {
        let now = held();
        let is_done = now.threads <= before.threads && now.descriptors <= before.descriptors;
        if is_done || began.elapsed() > Duration::from_secs(10) {
            return now;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The minimum over a short time, to exclude resources that the last session has yet to free.
fn held_at_rest() -> Held {
    thread::sleep(Duration::from_millis(200));
    held()
}

/// One session of each kind: complete, timed, refused, interrupted, with a printing script, and with an exiting one.
fn one_of_each(url: &str, scripts: &Path, io: &str) {
    let load = format!("-t2 -c10 --io {io}");
    let whole = run(&format!("{load} -n 500 {url}")).expect("it runs").outcome;
    assert_eq!((whole.totals.counters.completed, whole.ended), (500, RunEnd::Requests));
    let timed = run(&format!("{load} -d 100ms --warmup 50ms {url}")).expect("it runs").outcome;
    assert!(timed.totals.counters.completed > 0 && timed.ended == RunEnd::Duration);
    let refused = run(&format!("{load} -d 10s http://127.0.0.1:1/")).expect("it runs").outcome;
    assert!(matches!(refused.ended, RunEnd::Refused { .. }));

    let interrupt = Interrupt::default();
    let asks = interrupt.clone();
    let ends = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        asks.request_end();
    });
    let plan_of_an_hour = plan(&format!("{load} -d 1h {url}"));
    let interrupted = session::run(&plan_of_an_hour, &interrupt, &mut []).expect("it runs").outcome;
    assert!(interrupted.ended == RunEnd::Signal && interrupted.elapsed < Duration::from_secs(60));
    ends.join().expect("it does nothing but ask");

    // The first session's listener gets all messages.
    let (mut recorder, mut deaf) = (ScriptRecorder::default(), ScriptRecorder::default());
    let says = plan(&format!("{load} -n 10 -s {} {url}", scripts.join("says.lua").display()));
    let said = session::run(&says, &Interrupt::default(), &mut [&mut recorder, &mut deaf]).expect("it runs");
    assert_eq!(said.outcome.totals.counters.completed, 10);
    drop(said);
    let said = recorder.said.lock().expect("no thread panics while writing").clone();
    assert_eq!(said, b"says.lua, thread 1: here\nsays.lua, thread 2: here\n");
    assert!(deaf.said.lock().expect("no thread panics while writing").is_empty());
    let exits = run(&format!("{load} -n 10 -s {} {url}", scripts.join("exits.lua").display()));
    assert!(exits.is_err_and(|error| error.is::<onrush_load::script::Exit>()), "and this process continues");
}

/// Two simultaneous sessions.
fn begin_together(url: &str) {
    let (begin, plan) = (Instant::now() + Duration::from_millis(200), plan(&format!("-t1 -c2 -n 2 {url}")));
    thread::scope(|scope| {
        for _ in 0..2 {
            let plan = &plan;
            scope.spawn(move || {
                let mut agreed = ScriptRecorder { begin: Some(begin), ..ScriptRecorder::default() };
                let observers: &mut [&mut dyn Observer] = &mut [&mut agreed, &mut ScriptRecorder::default()];
                let ran = session::run(plan, &Interrupt::default(), observers).expect("it runs");
                assert!(Instant::now() >= begin && ran.outcome.totals.counters.completed == 2);
            });
        }
    });
}

fn sessions_take_over_connections(context: &Context) {
    let server = target();
    let mut spares = Vec::new();
    for (load, connects, left) in [("-t2 -c4", 4, 4), ("-t3 -c6", 2, 6), ("-t1 -c3", 0, 6)] {
        let plan = plan(&format!("{load} -n 6000 --io {} http://{}/", context.backend, server.address()));
        let ran =
            session::run_on(spares, &mut None, &mut Clock::for_io(&plan.io), &plan, &Interrupt::default(), &mut [])
                .expect("it runs");
        let counters = &ran.outcome.totals.counters;
        assert_eq!((counters.completed, counters.connects, counters.failed), (6_000, connects, 0), "{load}");
        assert_eq!(counters.slots_opened, u64::from(plan.load.connections), "{load}");
        spares = ran.spares;
        assert_eq!(spares.len(), left, "{load}");
    }
}

fn tls_connections_outlast_sessions(context: &Context) {
    let server = TlsServer::new(&self_signed(&["localhost"]));
    for (version, handshakes) in [("1.2", 4), ("1.3", 8)] {
        let plan = plan(&format!("-k -t1 -c4 -n 400 --tls-max {version} --io {} {}", context.backend, server.url("/")));
        let mut spares = Vec::new();
        for _ in 0..2 {
            let (mut clock, interrupt) = (Clock::for_io(&plan.io), Interrupt::default());
            let ran = session::run_on(spares, &mut None, &mut clock, &plan, &interrupt, &mut []).expect("it runs");
            assert_eq!(ran.outcome.totals.counters.completed, 400, "TLS {version}");
            spares = ran.spares;
        }
        assert_eq!(server.heard(|heard| heard.handshakes), handshakes, "TLS {version}");
    }
}

fn forty_sessions_leave_nothing_behind(_: &Context) {
    let server = target();
    let url = format!("http://{}/", server.address());
    let scripts = tempfile::tempdir().expect("there is room");
    let write = |name: &str, text: &str| fs::write(scripts.path().join(name), text).expect("there is room");
    write("says.lua", "function init() wrk.log('here') end");
    write("exits.lua", "function init() os.exit(3) end");
    let sessions = || {
        one_of_each(&url, scripts.path(), "auto");
        begin_together(&url);
        thread::scope(|scope| {
            for io in ["auto", "epoll"] {
                let (url, scripts) = (&url, scripts.path());
                scope.spawn(move || one_of_each(url, scripts, io));
            }
        });
    };
    // The first sessions create things that are kept, such as the library's random numbers and the allocator's arenas.
    sessions();
    let before = held_at_rest();
    (0..2).for_each(|_| sessions());
    let after = held_in_the_end(before);
    assert!(after.threads <= before.threads && after.descriptors <= before.descriptors, "{before:?}, then {after:?}");
    assert!(after.memory < before.memory + 64 * 1024, "{before:?}, then {after:?}");
}
