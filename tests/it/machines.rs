//! Runs on several machines, all of which are this one.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Context, Onrush, ProgramOutput, Scratch, cases, fetch_target_counts, finish, signal, target, url, wait_for_load,
};
use crate::peers::RefusingPort;
use crate::results::number;
use crate::servers::LoggingServer;

cases! {
    machines_send_exactly_one_machines_requests;
    sequences_never_repeat_across_machines (Once) needs "nginx";
    killed_machines_end_runs_with_reports (Once);
    runs_may_continue_without_a_machine (Once);
    silent_machines_are_lost (Once);
    signalled_machines_leave_their_measurements (Once);
    signalled_machines_report_the_signal (Once);
    jointly_suspended_machines_continue (Once);
    machines_short_of_files_are_named (Once);
    endless_scripts_keep_no_unneeded_worker (Once);
    nothing_is_sent_without_a_coordinator (Once);
    nothing_is_sent_until_all_joined (Once);
    strangers_are_refused_harmlessly (Once);
    setup_failures_reach_the_coordinator (Once);
    searches_on_two_machines_find_loads (Once);
    searches_losing_machines_keep_results (Once);
}

/// A coordinator that waits for workers.
pub struct Coordinator {
    pub child: Child,
    pub address: String,
    pub token: PathBuf,
    document: PathBuf,
    scratch: Scratch,
}

impl Coordinator {
    /// Starts a coordinator with these arguments.
    pub fn start(onrush: Onrush, name: &str, words: &str, url: &str) -> Self {
        let scratch = Scratch::new(name);
        let (token, document) = (scratch.path().join("token"), scratch.path().join("run.json"));
        let mut child = onrush
            .words("--coordinate 127.0.0.1:0 --token-file")
            .word(&token)
            .words("-o")
            .word(&document)
            .words(words)
            .word(url)
            .spawn();
        // One of the first lines contains the coordinator's address; the lines after it are read at the end.
        let mut lines = String::new();
        let stderr = child.stderr.as_mut().expect("it is a pipe");
        while !(lines.ends_with('\n') && lines.contains("--coordinator ")) {
            let mut byte = [0];
            stderr.read_exact(&mut byte).unwrap_or_else(|_| panic!("it does not say where it waits: {lines}"));
            lines.extend(byte.map(char::from));
        }
        let address = lines.split("--coordinator ").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address.expect("an address follows the option").to_owned();
        Self { child, address, token, document, scratch }
    }

    /// Starts a worker for this coordinator.
    pub fn worker(&self, words: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
        command.args(["worker", "--coordinator", &self.address, "--token-file"]).arg(&self.token);
        command.args(words.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    pub fn end(self) -> (ProgramOutput, Value) {
        let output = finish(self.child);
        let document = fs::read(&self.document)
            .ok()
            .map_or(Value::Null, |text| serde_json::from_slice(&text).expect("it is JSON"));
        drop(self.scratch);
        (output, document)
    }
}

fn machines_send_exactly_one_machines_requests(context: &Context) {
    let server = target();
    let words = format!("--io {} --machines 3 -t2 -c9 -n1001 --label a=b", context.backend);
    let coordinator = Coordinator::start(context.onrush(), "machines-exact", &words, &url(&server, "/"));
    let workers: Vec<Child> =
        (0..3).map(|index| coordinator.worker(&format!("--name m{index} --index {index}"))).collect();
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!((number(&document, "/requests/completed"), number(&document, "/connections/asked")), (1001.0, 9.0));
    let machines = document["machines"].as_array().expect("there are some");
    let names: Vec<&str> = machines.iter().filter_map(|machine| machine["name"].as_str()).collect();
    assert_eq!(names.len(), 3, "{document:#}");
    let completed: Vec<f64> = machines.iter().map(|machine| number(machine, "/completed")).collect();
    assert_eq!((completed.iter().sum::<f64>(), completed[0]), (1001.0, 334.0), "{document:#}");
    assert!(machines.iter().all(|machine| machine["backend"] == context.backend), "{document:#}");
    assert_eq!(document["threads"].as_array().map(Vec::len), Some(6));
    assert!(output.stdout.contains("1001 requests in") && output.stdout.contains("  Machine"), "{output:?}");
    assert_eq!(fetch_target_counts(server.address()).requests, 1001);
    for worker in workers {
        let output = finish(worker);
        assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:?}");
    }
}

fn sequences_never_repeat_across_machines(context: &Context) {
    let nginx = LoggingServer::nginx(1000);
    let words = "--machines 2 -t1 -c6 -R 300 -n 300 --templates";
    let coordinator = Coordinator::start(context.onrush(), "machines-seq", words, &nginx.url("/hello?{{seq}}"));
    let workers = [coordinator.worker(""), coordinator.worker("")];
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 0, "{output:?}");
    let log = nginx.log();
    let mut numbers: Vec<u64> =
        log.iter().filter_map(|line| line.split("/hello?").nth(1)?.split([' ', '"']).next()?.parse().ok()).collect();
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!((count, numbers.len()), (log.len(), count), "{log:?}");
    assert_eq!((number(&document, "/requests/completed"), count), (count as f64, 300));
    workers.into_iter().for_each(|worker| assert_eq!(finish(worker).code, 0));
}

fn killed_machines_end_runs_with_reports(context: &Context) {
    let server = target();
    let coordinator = Coordinator::start(
        context.onrush(),
        "machines-kill",
        "--machines 2 -t1 -c4 -d30s --fail-if errors>0",
        &url(&server, "/delay/50"),
    );
    let [first, second] = ["--index 0 --name a", "--index 1 --name b"].map(|words| coordinator.worker(words));
    wait_for_load(&server);
    thread::sleep(Duration::from_millis(700));
    let killed = Instant::now();
    signal(&second, Signal::KILL);
    let (output, document) = coordinator.end();
    assert!(killed.elapsed() < Duration::from_secs(5), "it was noticed at once");
    assert_eq!(output.code, 6, "{output:?}");
    assert!(output.stderr.contains("machine 2 (b): the worker ended; the run ends (--on-loss)\n"), "{output:?}");
    assert!(output.stderr.contains("machine 2 (b): the worker ended; what it did from "), "{output:?}");
    assert_eq!(document["verdict"]["reason"], "1 of 2 machines was lost, and its part of the load was missing");
    assert!(output.stdout.contains("requests in") && output.stdout.contains("(lost)"), "{output:?}");
    assert_eq!(document["machines"][1]["lost"], "machine 2 (b): the worker ended", "{document:#}");
    let sum: f64 = [0, 1].map(|index| number(&document, &format!("/machines/{index}/completed"))).iter().sum();
    assert_eq!(number(&document, "/requests/completed"), sum);
    // The machine's requests in flight have not failed: their outcome is unknown.
    let [started, open, unknown] =
        ["started", "open", "unknown"].map(|key| document["requests"][key].as_f64().unwrap_or_default());
    assert!(unknown <= 2.0 && started == sum + open + unknown, "{:#}", document["requests"]);
    assert_eq!(document["gates"][0]["broken"], false, "{:#}", document["gates"]);
    assert_eq!(finish(first).code, 0);
    let _ = finish(second);
}

fn runs_may_continue_without_a_machine(context: &Context) {
    let server = target();
    let scratch = Scratch::new("machines-rows");
    let lines = scratch.path().join("rows.ndjson");
    let words = format!("--machines 2 -t1 -c4 -d2s --on-loss continue --fail-if rate<1 -o {}", lines.display());
    let coordinator = Coordinator::start(context.onrush(), "machines-continue", &words, &url(&server, "/"));
    let [first, second] = ["--index 0", "--index 1"].map(|words| coordinator.worker(words));
    wait_for_load(&server);
    signal(&first, Signal::KILL);
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 6, "{output:?}");
    assert!(number(&document, "/duration_s") > 1.9, "{document:#}");
    assert!(document["machines"][1]["lost"].is_null() && document["machines"][0]["lost"].is_string(), "{document:#}");
    // The rows report the loss, too, in the document and in the lines written during the run.
    let lines = fs::read_to_string(lines).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["machines_lost"], 1, "{lines:?}");
    assert_eq!(Some(&lines), document["timeline"].as_array(), "{document:#}");
    assert_eq!(finish(second).code, 0);
    let _ = finish(first);
}

fn silent_machines_are_lost(context: &Context) {
    let server = target();
    let words = "--machines 2 -t1 -c4 -d30s --loss-timeout 2s";
    let coordinator = Coordinator::start(context.onrush(), "machines-silent", words, &url(&server, "/"));
    let [first, second] = ["--index 0", "--index 1"].map(|words| coordinator.worker(words));
    wait_for_load(&server);
    signal(&second, Signal::STOP);
    let stopped = Instant::now();
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 6, "{output:?}");
    assert!(output.stderr.contains("no message for 2 s"), "{output:?}");
    // The machine's duration ends with its last row, not with the detection of its loss.
    let (lasted, run) = (number(&document, "/machines/1/duration_s"), number(&document, "/duration_s"));
    assert!(lasted < run - 1.5 && stopped.elapsed() >= Duration::from_secs(2), "{lasted} {run}");
    assert_eq!(finish(first).code, 0);
    // Once resumed, the machine notices that the coordinator has given it up.
    signal(&second, Signal::CONT);
    let output = finish(second);
    assert!(output.code != 0 && output.stderr.contains("sending has stopped"), "{output:?}");
}

fn signalled_machines_leave_their_measurements(context: &Context) {
    let server = target();
    let coordinator =
        Coordinator::start(context.onrush(), "machines-term", "--machines 2 -t1 -c4 -d30s", &url(&server, "/"));
    let [first, second] = ["--index 0", "--index 1 --name b"].map(|words| coordinator.worker(words));
    wait_for_load(&server);
    thread::sleep(Duration::from_millis(300));
    signal(&second, Signal::TERM);
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 6, "{output:?}");
    assert!(output.stderr.contains("machine 2 (b): stopped by a signal"), "{output:?}");
    assert!(number(&document, "/machines/1/completed") > 0.0, "{document:#}");
    // The sum contains every answered request, except those in flight.
    let sent = fetch_target_counts(server.address()).requests as f64;
    let completed = number(&document, "/requests/completed");
    assert!((completed..=completed + 4.0).contains(&sent), "{sent} {completed}");
    assert_eq!(finish(first).code, 0);
    assert_eq!(finish(second).code, 6);
}

fn signalled_machines_report_the_signal(context: &Context) {
    let server = target();
    let coordinator =
        Coordinator::start(context.onrush(), "machines-all-term", "--machines 2 -t1 -c4 -d30s", &url(&server, "/"));
    let workers = [coordinator.worker("--index 0"), coordinator.worker("--index 1")];
    wait_for_load(&server);
    workers.iter().for_each(|worker| signal(worker, Signal::TERM));
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 6, "{output:?}");
    assert!(!output.stderr.contains("the others continue"), "{output:?}");
    assert!(number(&document, "/requests/completed") > 0.0, "{document:#}");
    workers.into_iter().for_each(|worker| assert_eq!(finish(worker).code, 6));
}

fn jointly_suspended_machines_continue(context: &Context) {
    let server = target();
    let words = "--machines 1 -t1 -c4 -d4s --loss-timeout 1s";
    let coordinator = Coordinator::start(context.onrush(), "machines-asleep", words, &url(&server, "/"));
    let worker = coordinator.worker("");
    wait_for_load(&server);
    [&coordinator.child, &worker].into_iter().for_each(|child| signal(child, Signal::STOP));
    thread::sleep(Duration::from_millis(1_500));
    [&worker, &coordinator.child].into_iter().for_each(|child| signal(child, Signal::CONT));
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(document["machines"][0]["lost"].is_null(), "{document:#}");
    assert_eq!(finish(worker).code, 0);
}

fn machines_short_of_files_are_named(context: &Context) {
    // A coordinator detects the shortage before anything else.
    let scratch = Scratch::new("machines-files");
    let words = "--machines 40 --coordinate 127.0.0.1:0 -c40 -d1s http://127.0.0.1:1/ --token-file";
    let output = context.limited("-n 100").words(words).word(scratch.path().join("token")).run_plain();
    assert_eq!(output.code, 2, "{output:?}");
    let said = "--machines 40: the coordinator needs 144 open files, but the limit is 100; 'sudo prlimit --pid $$ \
                --nofile=144' raises the limit";
    assert!(output.stderr.contains(said), "{output:?}");
    // A machine continues with fewer connections, and reports the number.
    let server = target();
    let words = "--machines 2 -t1 -c100 -d1s";
    let coordinator = Coordinator::start(context.onrush(), "machines-few-files", words, &url(&server, "/"));
    let first = coordinator.worker("--index 0");
    let onrush = context.limited("-n 64");
    let words = format!("worker --coordinator {} --index 1 --name b --token-file", coordinator.address);
    let second = onrush.words(&words).word(&coordinator.token).spawn();
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 0, "{output:?}");
    let machine = &document["machines"][1];
    let connections = number(machine, "/connections");
    assert!(connections < 50.0 && number(machine, "/shortage/allowed") == 64.0, "{machine:#}");
    let said = format!("machine 2 (b) had room for only {connections} connections: there, the limit is 64 open files");
    assert!(output.stderr.contains(&said) && !output.stderr.contains("before the run ended"), "{output:?}");
    assert_eq!((finish(first).code, finish(second).code), (0, 0));
}

fn endless_scripts_keep_no_unneeded_worker(context: &Context) {
    let server = target();
    let scratch = Scratch::new("machines-endless");
    let onrush = context.onrush().script(scratch.file("endless.lua", "while true do end"));
    let words = "--machines 1 -t1 -c2 -d1s --join-timeout 1s";
    let coordinator = Coordinator::start(onrush, "machines-loading", words, &url(&server, "/"));
    let worker = coordinator.worker("--name a");
    let (output, _) = coordinator.end();
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("still setting up: machine 1 (a); no request was sent"), "{output:?}");
    let output = finish(worker);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.stderr.contains("the run is over; exiting, although a script or a name lookup is still running"),
        "{output:?}"
    );
    // An absurd error text does not make a machine lost.
    let script = scratch.file("long.lua", "function response() error(('x'):rep(200000)) end");
    let coordinator = Coordinator::start(
        context.onrush().script(script),
        "machines-long",
        "--machines 1 -t1 -c2 -d5s",
        &url(&server, "/"),
    );
    let worker = coordinator.worker("--name a");
    let (output, _) = coordinator.end();
    assert_eq!(output.code, 1, "{}", output.stderr.len());
    let beginning: String = output.stderr.chars().take(2_000).collect();
    assert!(output.stderr.contains("machine 1 (a): ") && output.stderr.len() < 100_000, "{beginning}");
    let _ = finish(worker);
}

fn nothing_is_sent_without_a_coordinator(context: &Context) {
    let server = target();
    let words = "--machines 1 -t1 -c4 -d30s --loss-timeout 1s";
    let coordinator = Coordinator::start(context.onrush(), "machines-alone", words, &url(&server, "/"));
    let worker = coordinator.worker("");
    wait_for_load(&server);
    signal(&coordinator.child, Signal::KILL);
    let (_, _) = coordinator.end();
    let output = finish(worker);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("the coordinator ended; sending has stopped"), "{output:?}");
    let before = fetch_target_counts(server.address()).requests;
    thread::sleep(Duration::from_millis(100));
    assert_eq!(fetch_target_counts(server.address()).requests, before);
}

fn nothing_is_sent_until_all_joined(context: &Context) {
    let server = target();
    let words = "--machines 3 -c6 -d1s --join-timeout 4s";
    let coordinator = Coordinator::start(context.onrush(), "machines-few", words, &url(&server, "/"));
    let worker = coordinator.worker("--index 1 --name b");
    let mut other = coordinator.worker("--index 2 --name c");
    let mut said = [0; 14];
    other.stderr.as_mut().unwrap().read_exact(&mut said).expect("it says that it has joined");
    assert_eq!(&said, b"onrush worker:");
    signal(&other, Signal::KILL);
    let _ = finish(other);
    let (output, document) = coordinator.end();
    assert_eq!((output.code, document), (2, Value::Null), "{output:?}");
    let said = "onrush: 1 of 3 machines joined within 4 s; missing: 1, 3; no request was sent; --join-timeout allows \
                more time\n";
    assert!(output.stderr.contains(said), "{output:?}");
    // A machine that joined and left is not merely missing.
    assert!(
        output.stderr.contains("onrush: machine 3 (c): the worker ended; another worker can take its place\n"),
        "{output:?}"
    );
    assert_eq!(fetch_target_counts(server.address()).requests, 0);
    assert_eq!(finish(worker).code, 0);
}

fn strangers_are_refused_harmlessly(context: &Context) {
    let server = target();
    let words = "--machines 1 -t1 -c2 -n100";
    let coordinator = Coordinator::start(context.onrush(), "machines-strange", words, &url(&server, "/"));
    // Peers that speak another protocol, stay silent, or send too much.
    let mut strangers: Vec<TcpStream> =
        (0..30).map(|_| TcpStream::connect(&coordinator.address).expect("it listens")).collect();
    let _ = strangers[0].write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    let _ = strangers[1].write_all(&[0x16, 3, 1, 0xff, 0xff]);
    for _ in 0..100 {
        let _ = strangers[2].write_all(&[7; 65_536]);
    }
    drop(strangers.split_off(10));
    let wrong = coordinator.scratch.file("wrong", "ab".repeat(32));
    let mut command = Command::new("chmod");
    assert!(command.arg("600").arg(&wrong).status().is_ok_and(|status| status.success()));
    let mut other = Command::new(env!("CARGO_BIN_EXE_onrush"));
    other.args(["worker", "--coordinator", &coordinator.address, "--token-file"]).arg(&wrong);
    let other = other.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let output = finish(other);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("the secrets differ; use the same --token-file on both machines"), "{output:?}");
    let output = finish(coordinator.worker("--index 1"));
    assert!(output.code == 2 && output.stderr.contains("--index must be from 0 to 0"), "{output:?}");
    let worker = coordinator.worker("--index 0");
    let (output, document) = coordinator.end();
    assert_eq!((output.code, number(&document, "/requests/completed")), (0, 100.0), "{output:?}");
    for words in ["127.0.0.1 was refused: its secret differs", "is not from 0 to 0"] {
        assert!(output.stderr.contains(words), "{output:?}");
    }
    assert_eq!(finish(worker).code, 0);
    drop(strangers);
    // A peer that is no coordinator is reported as such.
    let scratch = Scratch::new("machines-no-coordinator");
    let token = scratch.file("token", "ab".repeat(32));
    assert!(Command::new("chmod").arg("600").arg(&token).status().is_ok_and(|status| status.success()));
    let output = context
        .onrush()
        .words(&format!("worker --coordinator {} --token-file", server.address()))
        .word(&token)
        .run_plain();
    assert!(output.code == 2 && output.stderr.contains("not an onrush coordinator"), "{output:?}");
}

fn setup_failures_reach_the_coordinator(context: &Context) {
    // A target that refuses.
    let refusing = RefusingPort::new();
    let coordinator = Coordinator::start(
        context.onrush(),
        "machines-refused",
        "--machines 1 -c2 -d1s",
        &format!("http://{}/", refusing.address),
    );
    let worker = coordinator.worker("--name a");
    let (output, _) = coordinator.end();
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("machine 1 (a): unable to connect to 127.0.0.1:"), "{output:?}");
    let _ = finish(worker);
    // A script that fails on the worker, which lacks its files.
    let server = target();
    let scratch = Scratch::new("machines-script");
    let script = scratch.file("bad.lua", "request = function() error('no more') end");
    let onrush = context.onrush().script(&script);
    let coordinator = Coordinator::start(onrush, "machines-bad", "--machines 1 -t1 -c2 -d5s", &url(&server, "/"));
    let worker = coordinator.worker("");
    let (output, _) = coordinator.end();
    assert!(output.code == 1 && output.stderr.contains("no more"), "{output:?}");
    let _ = finish(worker);
    // The coordinator's address is already in use.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let output = context
        .onrush()
        .words(&format!(
            "--machines 1 --coordinate {} -c1 -d1s http://127.0.0.1:1/ --token-file",
            listener.local_addr().unwrap()
        ))
        .word(scratch.path().join("token"))
        .run_plain();
    assert!(output.code == 1 && output.stderr.contains("another coordinator may be using it"), "{output:?}");
}

fn searches_on_two_machines_find_loads(context: &Context) {
    let server = target();
    let words = "--machines 2 -t1 -c8 --find-max p99<500ms -R 200 -d8s --notes=off";
    let coordinator = Coordinator::start(context.onrush(), "machines-search", words, &url(&server, "/"));
    let workers = [coordinator.worker("--quiet"), coordinator.worker("--quiet")];
    let (output, _) = coordinator.end();
    assert!([0, 6].contains(&output.code), "{output:?}");
    workers.into_iter().for_each(|worker| assert_eq!(finish(worker).code, 0));
}

fn searches_losing_machines_keep_results(context: &Context) {
    let server = target();
    let words = "--machines 2 -t1 -c8 --find-max p99<500ms -R 200 -d30s --notes=off";
    let coordinator = Coordinator::start(context.onrush(), "machines-search-lost", words, &url(&server, "/"));
    let [first, second] = [coordinator.worker("--index 0"), coordinator.worker("--index 1 --name NAME")];
    // The first run ends once its requests have been answered.
    let begun = Instant::now();
    while fetch_target_counts(server.address()).requests < 2_200 && begun.elapsed() < Duration::from_secs(25) {
        thread::sleep(Duration::from_millis(20));
    }
    signal(&second, Signal::KILL);
    let (output, document) = coordinator.end();
    assert_eq!(output.code, 6, "{output:?}");
    assert!(output.stderr.contains("the search ends here: without all machines"), "{output:?}");
    assert!(output.stdout.contains("; the search ended early, because a machine was lost"), "{output:?}");
    assert_eq!(
        (&document["ended"], &document["lost"]),
        (&"machine_lost".into(), &"machine 2 (NAME): the worker ended".into()),
        "{document:#}"
    );
    assert!(document["points"].as_array().is_some_and(|points| !points.is_empty()), "{document:#}");
    assert_eq!(finish(first).code, 0);
    let _ = finish(second);
}
