//! The limit of a run with a real target, generator and network, whatever else the machine does. If several limits
//! remain, the rules decide: these are tested in `load/src/judge/verdict/tests.rs`, on runs in virtual time in
//! `simulation.rs`, and on a quiet machine in `machine.rs`.

use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Context, Onrush, Scratch, cases, finish, signal, target, url, wait_for_load};
use crate::monitor::Python;
use crate::results::document;
use crate::simulation::simulate;

cases! {
    local_ports_are_the_limit needs "unshare -rn true", "ip -V";
    dying_targets_are_found needs "python3";
    stopped_generators_are_the_limit;
    blocking_scripts_are_the_limit;
    strict_runs_fail_if_onrush_limits;
    strict_runs_otherwise_fail_by_gates (Once);
    unobservable_facts_are_reported needs "unshare -rm true";
}

/// Checks that a run has this verdict, with these findings.
pub fn assert_limited(verdict: &Value, limited_by: &str, findings: &[&str]) {
    let has_all = findings.iter().all(|finding| has(verdict, finding));
    assert!(verdict["limited_by"] == limited_by && has_all, "not {limited_by}: {verdict:#}");
}

/// True if a verdict has this finding.
fn has(verdict: &Value, finding: &str) -> bool {
    verdict["findings"].as_array().expect("a list").iter().any(|found| found == finding)
}

/// The verdict of a run.
pub fn verdict(program: Onrush) -> Value {
    document(program, &Scratch::new("verdict")).1["verdict"].take()
}

/// Verdict of a run with these arguments in a separate network, after a preparatory script. An embedded target listens
/// on port 8080 there.
pub fn alone(context: &Context, prepare: &str, words: &str) -> Value {
    let scratch = Scratch::new("alone");
    let file = scratch.path().join("result.json");
    let script = format!(
        "ip link set lo up; {prepare}; $0 serve --addr 127.0.0.1:8080 >$2/said & server=$!
         until grep -q http $2/said; do sleep 0.02; done
         $0 --io $1 {words} -o $2/result.json; kill $server"
    );
    let mut command = Command::new("unshare");
    command.args(["-rn", "sh", "-c", &script, env!("CARGO_BIN_EXE_onrush"), context.backend]).arg(scratch.path());
    let output = command.output();
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    serde_json::from_slice::<Value>(&text).expect("it is JSON")["verdict"].take()
}

fn local_ports_are_the_limit(context: &Context) {
    let prepare = "echo 40000 40063 > /proc/sys/net/ipv4/ip_local_port_range";
    let verdict = alone(context, prepare, "-t1 -c100 -d500ms http://127.0.0.1:8080/delay/10");
    assert_limited(&verdict, "ports", &[]);
}

fn dying_targets_are_found(context: &Context) {
    let server = Python::start("afterwards(listen(64), 0.6, lambda: os._exit(1))");
    let verdict = verdict(context.onrush().words("-t1 -c4 -d1s").word(server.url()));
    assert!(has(&verdict, "target_died"), "{verdict:#}");
}

fn stopped_generators_are_the_limit(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("stopped"));
    let file = scratch.path().join("result.json");
    let program = context.onrush().words("-t1 -c4 -d1s --io").word(context.backend).word("-o").word(&file);
    let child = program.word(url(&server, "/delay/10")).spawn();
    wait_for_load(&server);
    signal(&child, Signal::STOP);
    // At least a fifth of a second after the next timer; there are ten per second.
    thread::sleep(Duration::from_millis(400));
    signal(&child, Signal::CONT);
    assert_eq!(finish(child).code, 0);
    let text = std::fs::read(&file).expect("it wrote a file");
    let document: Value = serde_json::from_slice(&text).expect("it is JSON");
    assert_limited(&document["verdict"], "generator_cpu", &["stalled"]);
}

/// A callback that sleeps takes no processor time, and the target is not silent meanwhile.
fn blocking_scripts_are_the_limit(context: &Context) {
    let server = target();
    let always = "function response() os.execute('sleep 0.25') end";
    let once = "local n = 0 function response() n = n + 1 if n == 20 then os.execute('sleep 1') end end";
    for (script, words) in [
        (always, "-t1 -c4 -d2s"),
        (always, "-t1 -c4 -d2s -R 100 --fail-if unavailable>5%"),
        (once, "-t1 -c4 -d2s"),
        (once, "-t1 -c4 -d2s -R 100 --fail-if unavailable>5%"),
    ] {
        let scratch = Scratch::new("blocking");
        let path = scratch.path().join("result.json");
        let program = context.onrush().words(words).word("--strict").word("-o").word(&path);
        let output = program.lua(script).word(url(&server, "/")).run();
        let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).expect("it is JSON");
        // On a busy machine, the generator is also stalled.
        let limits = ["generator_script", "generator_cpu"];
        assert!(limits.iter().any(|limit| document["verdict"]["limited_by"] == *limit), "{output:?}");
        assert_eq!(output.code, 4, "{output:?}");
        let is_blamed = |said: &String| said.contains("sent no response");
        assert!(![&output.stderr, &output.of_the_machine].into_iter().any(is_blamed), "{output:?}");
        let unavailable = &document["open_loop"]["unavailable"]["spans"];
        assert!(unavailable.is_null() || unavailable.as_array().is_some_and(Vec::is_empty), "{unavailable}");
    }
}

fn strict_runs_fail_if_onrush_limits(context: &Context) {
    let server = target();
    let script = "function request() x = 0; for i = 1, 300000 do x = (x * 7 + i) % 1000 end; return wrk.format() end";
    for program in context.both() {
        let words = "-t1 -c4 -n50 --strict --fail-if verdict=target";
        let output = program.lua(script).words(words).word(url(&server, "/")).run();
        assert_eq!(output.code, 4, "{output:?}");
        // The run is limited by the script, or by onrush itself if the script had to wait for a processor.
        let by = ["the script", "onrush itself"].map(|what| format!("onrush: --strict: {what} is the limit"));
        assert!(by.iter().any(|by| output.stderr.contains(by)), "{output:?}");
    }
}

fn strict_runs_otherwise_fail_by_gates(context: &Context) {
    let words = "-t1 -c8 -d1s --probe 4s --strict --fail-if verdict!=target";
    let output = simulate(context.onrush().words(words), "delay = { ms = 1.0, sd = 0.5 }");
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("onrush: --fail-if verdict!=target: it was connections"), "{output:?}");
}

fn unobservable_facts_are_reported(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("unseen"));
    let file = scratch.path().join("result.json");
    let script = format!(
        "mount -t tmpfs none /proc && exec \"$0\" --io {} -t1 -c2 -d200ms -o {} {}",
        context.backend,
        file.display(),
        url(&server, "/delay/5")
    );
    let output =
        Command::new("unshare").args(["-rm", "sh", "-c", &script, env!("CARGO_BIN_EXE_onrush")]).output().unwrap();
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let document: Value = serde_json::from_slice(&text).unwrap();
    let unseen: Vec<&str> = document["unseen"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(unseen.iter().any(|words| words.starts_with("the target")), "{document:#}");
    assert!(unseen.iter().any(|words| words.contains("waited for a processor")), "{document:#}");
    assert!(document["evidence"]["generator"]["threads"][0]["queued"].is_null(), "{document:#}");
}
