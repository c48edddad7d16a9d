//! Measurements whose result depends on the machine as much as on the program. They need a quiet machine, and are not
//! tests.
//!
//! `make check-machine` runs them one after the other. It is meant to be run before a release, and whenever their
//! subject changes. Each measurement names its counterpart in `make test`.

use std::fs;
use std::process::Command;
use std::time::Duration;

use onrush_load::run::Target;
use rustix::process::Signal;
use serde_json::Value;

use crate::evidence::{processor_times, unaccounted_s};
use crate::harness::{Context, Scratch, cases, finish, signal, target, url, wait_for_load};
use crate::monitor::{Python, run};
use crate::rates::percentile_us;
use crate::servers::LoggingServer;
use crate::verdict::{alone, assert_limited, verdict};

cases! {
    starved_targets_are_the_limit needs "python3";
    generators_sharing_processors_are_the_limit needs "taskset";
    busy_scripts_are_the_limit;
    single_connections_are_the_limit;
    slow_responses_make_connections_the_limit;
    slow_links_are_the_limit needs "unshare -rn tc qdisc add dev lo root tbf rate 1mbit burst 9kb latency 1s";
    lossy_links_are_the_limit needs "unshare -rn tc qdisc add dev lo root tbf rate 1mbit burst 9kb latency 1s";
    targets_awaiting_acknowledgements_are_the_limit needs "python3";
    targets_not_accepting_are_the_limit needs "python3";
    dying_targets_are_the_limit needs "python3";
    reached_rates_are_the_limit;
    busiest_threads_of_targets_are_observed (Once) needs "python3";
    all_processes_of_a_target_are_counted (Once) needs "nginx";
    replacement_child_processes_are_counted (Once) needs "python3";
    target_work_during_warm_up_is_ignored (Once) needs "python3";
    accept_queue_overflows_are_seen (Once) needs "python3";
    dying_targets_are_observed (Once) needs "python3";
    unix_socket_targets_are_found (Once) needs "python3";
    thread_cpu_times_add_up_to_process_time;
    signals_produce_reports_within_300_ms;
    percentiles_after_freezes_match_wrk2 needs "wrk2";
    merging_and_comparing_take_linear_time (Once);
}

/// `rates` covers this in `make test`, in virtual time and with computed figures. wrk2's own timers run in whole
/// milliseconds, which delays nearly every request by up to a millisecond more than ours.
fn percentiles_after_freezes_match_wrk2(context: &Context) {
    const WORDS: &str = "-t1 -c20 -d10s -R500 -L";
    const TIMERS_US: f64 = 1_000.0;
    // The target freezes once per run, and starts anew after a second without requests.
    let path = "/freeze?every=5s&ms=2000";
    let ours = context.called("wrk2").words(WORDS).word(url(&target(), path)).run().stdout;
    let theirs = Command::new("wrk2").args(WORDS.split(' ')).arg(url(&target(), path)).output().expect("it runs");
    let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
    let of = |percent: &str| [&ours, &theirs].map(|text| percentile_us(text, percent));
    let [p75, p90, p99] = ["75.000%", "90.000%", "99.000%"].map(of);
    println!("after a freeze, ours and wrk2's, in us [{}]: {p75:?}, {p90:?}, {p99:?}", context.backend);
    assert!((p75[0] - p75[1]).abs() <= 1_000.0 + TIMERS_US, "{ours}\n{theirs}");
    for [ours_us, theirs_us] in [p90, p99] {
        assert!((ours_us / theirs_us - 1.0).abs() <= 0.05, "{ours}\n{theirs}");
    }
}

/// Only the time is measured here: in `make test`, `terminal` shows that one signal produces the report at all.
fn signals_produce_reports_within_300_ms(context: &Context) {
    let server = target();
    let onrush = context.onrush().words("-t2 -c4 -d30s --io").word(context.backend);
    let child = onrush.word(url(&server, "/")).spawn();
    wait_for_load(&server);
    signal(&child, Signal::INT);
    let output = finish(child);
    println!("report after a signal [{}]: {:?}", context.backend, output.took);
    assert!(output.code == 0 && output.took < Duration::from_millis(300), "{output:?}");
}

/// No test can show that files are not compared pairwise: this measures the time.
fn merging_and_comparing_take_linear_time(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("many"));
    let one = scratch.path().join("one.json");
    assert_eq!(context.onrush().words("-n 100 -t1 -c1 -o").word(&one).word(url(&server, "/")).run().code, 0);
    let text = fs::read_to_string(&one).unwrap();
    let at = text.lines().find_map(|line| line.trim().strip_prefix("\"started_at\": \"")).expect("it has begun");
    let at = at.trim_end_matches("\",");
    let took = |count: usize| {
        [0, 1].iter().for_each(|side| fs::create_dir(scratch.path().join(format!("{count}-{side}"))).unwrap());
        for index in 0..count {
            let (minute, hour, day) = (index % 60, index / 60 % 24, index / 1_440 + 1);
            let began = format!("2026-01-{day:02}T{hour:02}:{minute:02}:00.000000Z");
            scratch.file(&format!("{count}-{}/{index}.json", index % 2), text.replace(at, &began));
        }
        let [a, b] = [0, 1].map(|side| scratch.path().join(format!("{count}-{side}")));
        let files = [&a, &b].into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
        let merge = files
            .fold(context.onrush().words("merge -o").word(scratch.path().join("sum.json")), |merge, file| {
                merge.word(file.unwrap().path())
            });
        let (merged, compared) = (merge.run_plain(), context.onrush().word("compare").word(a).word(b).run_plain());
        assert_eq!((merged.code, compared.code), (0, 0), "{merged:?} {compared:?}");
        [merged.took, compared.took].map(|took| took.as_secs_f64())
    };
    let (few, many) = (took(1_000), took(4_000));
    println!("merge and compare: {few:.2?} s for 1,000 results, {many:.2?} s for 4,000");
    assert!(few.iter().zip(many).all(|(few, many)| many <= 5.0 * few), "{few:?} {many:?}");
}

/// On a quiet machine; `evidence` covers the rest in `make test`.
fn thread_cpu_times_add_up_to_process_time(context: &Context) {
    let (document, threads_s, process_s) = processor_times(context, "-c20 -t2 -d2s");
    println!("processor time of the threads [{}]: {threads_s:.3} s of {process_s:.3} s", context.backend);
    assert!(threads_s > 0.8 * process_s - 0.05, "{document}");
    let unaccounted_s = unaccounted_s(&document);
    println!("all times of each thread beyond that of the run [{}]: {unaccounted_s:.3?} s", context.backend);
    assert!(unaccounted_s.iter().all(|seconds| (-0.02..0.1).contains(seconds)), "{document}");
}

// Verdicts: each rule is in `each_situation_has_its_verdict` (load/src/judge/verdict/tests.rs), and those that need
// neither processor time nor a network are in `limits_are_known_in_virtual_time` (simulation.rs).

/// Prints a verdict, and checks its limit and findings.
fn limited(verdict: &Value, limited_by: &str, findings: &[&str]) {
    println!("limited by {limited_by}: {}", verdict["reason"]);
    assert_limited(verdict, limited_by, findings);
}

/// Covered by `each_situation_has_its_verdict`. `target_cpu_time_counts_from_the_start` (load/src/run/monitor/poller.rs)
/// covers the observation of processor time.
fn starved_targets_are_the_limit(context: &Context) {
    let script = "
def work(peer):
    while peer.recv(65536):
        busy(0.002)
        peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
listener = listen(64)
while True: threading.Thread(target=work, args=listener.accept()[:1], daemon=True).start()";
    let server = Python::start(script);
    limited(&verdict(context.onrush().words("-t1 -c8 -d2s").word(server.url())), "target", &[]);
}

/// Covered by `each_situation_has_its_verdict`. `evidence` covers the observation of waiting threads.
fn generators_sharing_processors_are_the_limit(context: &Context) {
    let server = target();
    // Other processes use this processor, with priority.
    let hog = "taskset -p -c 0 $$ >/dev/null; hog() { while :; do :; done; }; hog & a=$!; hog & b=$!; hog & c=$!
               nice -n 19 \"$0\" \"$@\"; code=$?; kill $a $b $c; exit $code";
    let program = context.after(hog).words("-t1 -c64 -d2s --spin off").word(url(&server, "/"));
    limited(&verdict(program), "generator_cpu", &[]);
}

/// Covered by `strict_runs_fail_if_onrush_limits`, except for the share of the time.
fn busy_scripts_are_the_limit(context: &Context) {
    let server = target();
    let script = "function request() x = 0; for i = 1, 300000 do x = (x * 7 + i) % 1000 end; return wrk.format() end";
    let program = context.onrush().lua(script).words("-t1 -c4 -d1s").word(url(&server, "/"));
    limited(&verdict(program), "generator_script", &[]);
}

/// Covered by `limits_are_known_in_virtual_time`.
fn single_connections_are_the_limit(context: &Context) {
    let server = target();
    let verdict = verdict(context.onrush().words("-t1 -c1 -d2s").word(url(&server, "/delay/20")));
    limited(&verdict, "connections", &[]);
}

/// Covered by `each_situation_has_its_verdict`. `limits_are_known_in_virtual_time` covers a target that stops as a
/// whole.
fn slow_responses_make_connections_the_limit(context: &Context) {
    let server = target();
    let of = |path: &str| verdict(context.onrush().words("-t1 -c10 -d2s").word(url(&server, path)));
    limited(&of("/stall?every=20&ms=20"), "connections", &[]);
    // A target that stops as a whole holds up every connection, however many there are.
    limited(&of("/freeze?every=600ms&ms=400"), "target", &[]);
}

/// Covered by `each_situation_has_its_verdict`.
fn slow_links_are_the_limit(context: &Context) {
    let prepare = "tc qdisc add dev lo root tbf rate 20mbit burst 70kb latency 2s";
    let verdict = alone(context, prepare, "-t1 -c10 -d3s http://127.0.0.1:8080/bytes/20000");
    limited(&verdict, "network", &[]);
}

/// Covered by `each_situation_has_its_verdict`.
fn lossy_links_are_the_limit(context: &Context) {
    // Packets that exceed its short queue are lost.
    let prepare = "tc qdisc add dev lo root tbf rate 20mbit burst 70kb limit 20kb";
    let verdict = alone(context, prepare, "-t1 -c10 -d3s http://127.0.0.1:8080/bytes/20000");
    limited(&verdict, "network", &[]);
}

/// Covered by `each_situation_has_its_verdict`.
fn targets_awaiting_acknowledgements_are_the_limit(context: &Context) {
    let script = "
def halves(peer):
    while peer.recv(65536):
        peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\n')
        peer.sendall(b'hel')
        peer.sendall(b'lo\\n')
listener = listen(64)
while True: threading.Thread(target=halves, args=listener.accept()[:1], daemon=True).start()";
    let server = Python::start(script);
    let verdict = verdict(context.onrush().words("-t1 -c4 -d3s").word(server.url()));
    limited(&verdict, "target", &["delayed_ack"]);
}

/// Covered by `each_situation_has_its_verdict`. `accept_queue_overflows_are_seen` (load/src/run/monitor/poller.rs) covers
/// the observation of the queue.
fn targets_not_accepting_are_the_limit(context: &Context) {
    let script = "
listener = listen(1)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0], 0.02), daemon=True).start()
    time.sleep(0.3)";
    let server = Python::start(script);
    let verdict = verdict(context.onrush().words("-t1 -c40 -d3s").word(server.url()));
    limited(&verdict, "target", &["listen_queue"]);
}

/// Covered by `dying_targets_are_found`, and in virtual time.
fn dying_targets_are_the_limit(context: &Context) {
    let server = Python::start("afterwards(listen(64), 1, lambda: os._exit(1))");
    let verdict = verdict(context.onrush().words("-t1 -c4 -d3s").word(server.url()));
    limited(&verdict, "target", &["target_died"]);
}

/// Covered by `limits_are_known_in_virtual_time`.
fn reached_rates_are_the_limit(context: &Context) {
    let server = target();
    let verdict = verdict(context.onrush().words("-t1 -c10 -R200 -d2s").word(url(&server, "/")));
    limited(&verdict, "schedule", &[]);
}

// Targets: their observation does not depend on the backend.

/// Observations of the target of a run.
fn seen(context: &Context, words: &str) -> Target {
    let seen = run(context, words).seen.expect("the target was watched");
    println!("seen: {seen:?}");
    seen.target.expect("the target was seen")
}

/// Covered by `target_cpu_time_counts_from_the_start` (load/src/run/monitor/poller.rs) and
/// `busiest_thread_is_found` (load/src/run/monitor/processes.rs).
fn busiest_threads_of_targets_are_observed(context: &Context) {
    // One thread that works without requests, and others that respond.
    let server = Python::start("threading.Thread(target=busy, args=(60,)).start()\nserve(listen(64))");
    let before_s = server.cpu_s();
    let outcome = run(context, &format!("-c4 -t1 -d2s {}", server.url()));
    let (took_s, elapsed_s) = (server.cpu_s() - before_s, outcome.elapsed.as_secs_f64());
    let target = outcome.seen.unwrap().target.unwrap();
    let used_s = target.cpus_used * elapsed_s;
    assert!(took_s > 0.2 && used_s > 0.8 * took_s - 0.05 && used_s < took_s + 0.05, "{took_s}: {target:?}");
    assert!(target.name.starts_with("python") && !target.ended && target.processes == 1, "{target:?}");
    assert!(target.busiest_thread > 0.3 * target.cpus_used && target.busiest_thread < target.cpus_used, "{target:?}");
    assert!(target.cpus_allowed >= 1.0 && target.cpus_used < target.cpus_allowed + 0.1, "{target:?}");
    let listening = target.listening.unwrap();
    assert_eq!((listening.limit, listening.overflows.is_some()), (64, true), "{target:?}");
    let network = target.network.unwrap();
    assert!(network.readings >= 4 && network.rtt_us > 0.0 && network.retransmitted == 0.0, "{target:?}");
    assert!(network.busy.unwrap() > 0.0 && network.out_of_order == Some(0.0), "{target:?}");
}

/// Covered by its namesake in load/src/run/monitor/poller.rs.
fn all_processes_of_a_target_are_counted(context: &Context) {
    let server = LoggingServer::nginx_workers(2);
    let target = seen(context, &format!("-c4 -t1 -d1s {}", server.url("/hello")));
    assert_eq!((target.name.as_str(), target.processes), ("nginx", 3), "{target:?}");
    assert!(target.cpus_used >= target.busiest_thread && target.busiest_thread > 0.0, "{target:?}");
}

/// Covered by its namesake in load/src/run/monitor/poller.rs.
fn replacement_child_processes_are_counted(context: &Context) {
    let script = "
listener = listen(64)
peer = listener.accept()[0]
time.sleep(0.5)
if os.fork() > 0: os._exit(0)
answer(peer)";
    let server = Python::start(script);
    let target = seen(context, &format!("-c1 -t1 -d3s {}", server.url()));
    assert!(!target.ended && target.cpus_used > 0.0, "{target:?}");
}

/// Covered by `target_cpu_time_counts_from_the_start` (load/src/run/monitor/poller.rs).
fn target_work_during_warm_up_is_ignored(context: &Context) {
    let server = Python::start("listener = listen(64)\npeer = listener.accept()[0]\nbusy(0.5)\nanswer(peer)");
    // Half a second of work before the first response, then a request per second.
    let target = seen(context, &format!("-c1 -t1 -R 1 --warmup 2s -d1s {}", server.url()));
    assert!(target.cpus_used < 0.2, "{target:?}");
}

/// Covered by its namesake in load/src/run/monitor/poller.rs.
fn accept_queue_overflows_are_seen(context: &Context) {
    let server = Python::start("listener = listen(1)\nsys.stdin.read()");
    let target = seen(context, &format!("-c8 -t1 -d1s {}", server.url()));
    let listening = target.listening.unwrap();
    // The kernel lets one more connection wait than the backlog says.
    assert_eq!((listening.waiting_max, listening.limit), (2, 1), "{target:?}");
    assert!(listening.overflows.unwrap() >= 1, "{target:?}");
}

/// Covered by `dead_targets_are_reported_ended` (load/src/run/monitor/poller.rs).
fn dying_targets_are_observed(context: &Context) {
    let server = Python::start("listener = listen(64)\nlistener.accept()\ntime.sleep(0.7)\nos._exit(1)");
    let target = seen(context, &format!("-c2 -t1 -d2s {}", server.url()));
    assert!(target.ended && target.processes == 1, "{target:?}");
}

/// Covered by its namesake in load/src/run/monitor/poller.rs.
fn unix_socket_targets_are_found(context: &Context) {
    let scratch = Scratch::new("monitor");
    let path = scratch.path().join("socket");
    let script = format!(
        "listener = socket.socket(socket.AF_UNIX)\nlistener.bind('{}')\nlistener.listen()\nprint(flush=True)\nserve(listener)",
        path.display()
    );
    let _server = Python::start(&script);
    let target = seen(context, &format!("-c2 -t1 -d1s --unix {} http://host/", path.display()));
    assert!(target.name.starts_with("python") && target.cpus_used > 0.0 && target.listening.is_none(), "{target:?}");
}
