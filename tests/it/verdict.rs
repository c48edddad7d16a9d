//! What limited a run: situations with a real target, a real generator and a real network, in which the limit is known.

use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Context, Onrush, Scratch, cases, signal, target, url};
use crate::results::document;
use crate::sight::Python;

cases! {
    a_target_without_processor_time_is_the_limit needs "python3";
    a_generator_that_shares_its_processor_is_the_limit needs "taskset";
    a_script_that_takes_all_the_time_is_the_limit;
    a_single_connection_is_the_limit;
    a_few_slow_responses_make_the_connections_the_limit;
    few_local_ports_are_the_limit needs "unshare -rn true", "ip -V";
    a_slow_link_is_the_limit needs "unshare -rn tc qdisc add dev lo root tbf rate 1mbit burst 9kb latency 1s";
    a_link_that_loses_segments_is_the_limit needs "unshare -rn tc qdisc add dev lo root tbf rate 1mbit burst 9kb latency 1s";
    a_target_that_waits_for_acknowledgements_is_the_limit needs "python3";
    a_target_that_does_not_accept_is_the_limit needs "python3";
    a_rate_that_is_reached_is_the_limit;
    a_target_that_dies_is_the_limit needs "python3";
    a_generator_that_is_stopped_is_the_limit;
    strict_runs_fail_where_onrush_was_the_limit;
    what_cannot_be_seen_is_said needs "unshare -rm true";
}

/// Expects this verdict of one of three runs: other load on the machine may change the situation. Runs of which the
/// verdict rightly says that onrush itself had no processor do not count, and after ten of them the test gives up on
/// such a machine.
fn expect(limited_by: &str, findings: &[&str], run: impl Fn() -> Value) {
    let mut verdicts = Vec::new();
    for _ in 0..10 {
        let verdict = run();
        let found = verdict["findings"].as_array().expect("a list").clone();
        let is_found = |finding: &&str| found.iter().any(|found| found == finding);
        if verdict["limited_by"] == limited_by && findings.iter().all(is_found) {
            return;
        }
        let generator = &verdict["evidence"]["generator"];
        let threads = generator["threads"].as_array().expect("a list");
        let is_queued = threads.iter().any(|thread| thread["queued"].as_f64() > Some(0.2));
        let is_stopped = generator["stalled_s"].as_f64() > Some(0.1);
        if verdict["limited_by"] != "generator_cpu" || !(is_queued || is_stopped) {
            verdicts.push(verdict);
        }
        assert!(verdicts.len() < 3, "not {limited_by} {findings:?}: {verdicts:#?}");
    }
    eprintln!("other processes had the processors all the time: whether {limited_by} would be found is unknown");
}

/// The verdict of a run.
fn verdict(program: Onrush) -> Value {
    document(program, &Scratch::new("verdict")).1["verdict"].take()
}

fn a_target_without_processor_time_is_the_limit(context: &Context) {
    let script = "
def work(peer):
    while peer.recv(65536):
        busy(0.002)
        peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
listener = listen(64)
while True: threading.Thread(target=work, args=listener.accept()[:1], daemon=True).start()";
    expect("target", &[], || {
        let server = Python::start(script);
        verdict(context.onrush().words("-t1 -c8 -d2s").word(server.url()))
    });
}

fn a_generator_that_shares_its_processor_is_the_limit(context: &Context) {
    let server = target();
    expect("generator_cpu", &[], || {
        // Other processes use the same processor, with priority.
        let hog = "taskset -p -c 0 $$ >/dev/null; hog() { while :; do :; done; }; hog & a=$!; hog & b=$!; hog & c=$!
                   nice -n 19 \"$0\" \"$@\"; code=$?; kill $a $b $c; exit $code";
        verdict(context.after(hog).words("-t1 -c64 -d2s --spin off").word(url(&server, "/")))
    });
}

fn a_script_that_takes_all_the_time_is_the_limit(context: &Context) {
    let server = target();
    let script = "function request() x = 0; for i = 1, 300000 do x = (x * 7 + i) % 1000 end; return wrk.format() end";
    expect("generator_script", &[], || {
        verdict(context.onrush().lua(script).words("-t1 -c4 -d2s").word(url(&server, "/")))
    });
}

fn a_single_connection_is_the_limit(context: &Context) {
    let server = target();
    expect("connections", &[], || verdict(context.onrush().words("-t1 -c1 -d2s").word(url(&server, "/delay/20"))));
}

fn a_few_slow_responses_make_the_connections_the_limit(context: &Context) {
    let server = target();
    let of = |path: &str| verdict(context.onrush().words("-t1 -c10 -d2s").word(url(&server, path)));
    expect("connections", &[], || of("/stall?every=20&ms=20"));
    // A target that stops as a whole holds any number of connections.
    expect("target", &[], || of("/freeze?every=600ms&ms=400"));
}

/// The verdict of a run with these arguments in its own network, after a script that prepares it. An embedded target
/// listens on port 8080 there.
fn alone(context: &Context, prepare: &str, words: &str) -> Value {
    let scratch = Scratch::new("alone");
    let file = scratch.path().join("result.json");
    let script = format!(
        "ip link set lo up; {prepare}; $0 serve --addr 127.0.0.1:8080 >/dev/null & server=$!; sleep 0.5
         $0 --io $1 {words} -o {}; kill $server",
        file.display()
    );
    let mut command = Command::new("unshare");
    let output = command.args(["-rn", "sh", "-c", &script, env!("CARGO_BIN_EXE_onrush"), context.backend]).output();
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    serde_json::from_slice::<Value>(&text).expect("it is JSON")["verdict"].take()
}

fn few_local_ports_are_the_limit(context: &Context) {
    let prepare = "echo 40000 40063 > /proc/sys/net/ipv4/ip_local_port_range";
    expect("ports", &[], || alone(context, prepare, "-t1 -c100 -d2s http://127.0.0.1:8080/"));
}

fn a_slow_link_is_the_limit(context: &Context) {
    let prepare = "tc qdisc add dev lo root tbf rate 20mbit burst 70kb latency 2s";
    expect("network", &[], || alone(context, prepare, "-t1 -c10 -d3s http://127.0.0.1:8080/bytes/20000"));
}

fn a_link_that_loses_segments_is_the_limit(context: &Context) {
    // Packets that do not fit into its short queue are lost.
    let prepare = "tc qdisc add dev lo root tbf rate 20mbit burst 70kb limit 20kb";
    expect("network", &[], || alone(context, prepare, "-t1 -c10 -d3s http://127.0.0.1:8080/bytes/20000"));
}

fn a_target_that_waits_for_acknowledgements_is_the_limit(context: &Context) {
    let script = "
def halves(peer):
    while peer.recv(65536):
        peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\n')
        peer.sendall(b'hel')
        peer.sendall(b'lo\\n')
listener = listen(64)
while True: threading.Thread(target=halves, args=listener.accept()[:1], daemon=True).start()";
    expect("target", &["delayed_ack"], || {
        let server = Python::start(script);
        verdict(context.onrush().words("-t1 -c4 -d3s").word(server.url()))
    });
}

fn a_target_that_does_not_accept_is_the_limit(context: &Context) {
    let script = "
def slowly(peer):
    while peer.recv(65536):
        time.sleep(0.02)
        peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
listener = listen(1)
while True:
    threading.Thread(target=slowly, args=listener.accept()[:1], daemon=True).start()
    time.sleep(0.3)";
    expect("target", &["listen_queue"], || {
        let server = Python::start(script);
        verdict(context.onrush().words("-t1 -c40 -d3s").word(server.url()))
    });
}

fn a_rate_that_is_reached_is_the_limit(context: &Context) {
    let server = target();
    expect("schedule", &[], || verdict(context.onrush().words("-t1 -c10 -R200 -d2s").word(url(&server, "/"))));
}

fn a_target_that_dies_is_the_limit(context: &Context) {
    let script = "threading.Timer(1, os._exit, [1]).start()\nserve(listen(64))";
    expect("target", &["target_died"], || {
        let server = Python::start(script);
        verdict(context.onrush().words("-t1 -c4 -d3s").word(server.url()))
    });
}

fn a_generator_that_is_stopped_is_the_limit(context: &Context) {
    let server = target();
    expect("generator_cpu", &["stalled"], || {
        let scratch = Scratch::new("stopped");
        let file = scratch.path().join("result.json");
        let program = context.onrush().words("-t1 -c4 -d5s -o").word(&file).word(url(&server, "/delay/5"));
        let mut child = program.spawn();
        for (wait_ms, what) in [(2_000, Signal::STOP), (1_000, Signal::CONT)] {
            thread::sleep(Duration::from_millis(wait_ms));
            signal(&child, what);
        }
        child.wait().expect("it ends");
        let text = std::fs::read(&file).expect("it wrote a file");
        serde_json::from_slice::<Value>(&text).expect("it is JSON")["verdict"].take()
    });
}

fn strict_runs_fail_where_onrush_was_the_limit(context: &Context) {
    let server = target();
    let script = "function request() x = 0; for i = 1, 300000 do x = (x * 7 + i) % 1000 end; return wrk.format() end";
    for program in context.both() {
        let output =
            program.lua(script).words("-t1 -c4 -d2s --strict --fail-if verdict=target").word(url(&server, "/")).run();
        assert_eq!(output.code, 4, "{output:?}");
        assert!(
            output.stderr.contains("onrush: --strict: the run was limited by the script: its only thread was "),
            "{output:?}"
        );
    }
    let gate = "-t1 -c1 -d1s --strict --fail-if verdict!=target";
    let output = context.onrush().words(gate).word(url(&server, "/delay/20")).run();
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("onrush: --fail-if verdict!=target: it was "), "{output:?}");
}

fn what_cannot_be_seen_is_said(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("unseen"));
    let file = scratch.path().join("result.json");
    let script = format!(
        "mount -t tmpfs none /proc && exec \"$0\" --io {} -t1 -c2 -d1s -o {} {}",
        context.backend,
        file.display(),
        url(&server, "/delay/5")
    );
    let output =
        Command::new("unshare").args(["-rm", "sh", "-c", &script, env!("CARGO_BIN_EXE_onrush")]).output().unwrap();
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let verdict = serde_json::from_slice::<Value>(&text).unwrap()["verdict"].take();
    let unseen: Vec<&str> = verdict["unseen"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(unseen.iter().any(|words| words.starts_with("the target")), "{verdict:#}");
    assert!(unseen.iter().any(|words| words.contains("waited for a processor")), "{verdict:#}");
    assert!(verdict["evidence"]["generator"]["threads"][0]["queued"].is_null(), "{verdict:#}");
}
