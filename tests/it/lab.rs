//! Experiments: measurements and results, steps around runs, their end and resumption.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases, signal, target, url, wait_until};
use crate::peers::{ReservedPort, accepts};
use crate::servers::LoggingServer;

cases! {
    sweeps_measure_every_point_every_round (Once);
    sockets_are_sampled_in_every_run (Once);
    targets_are_compared_in_turns (Once);
    experiments_print_briefly_and_keep_one_folder (Once);
    ranges_end_where_nothing_is_gained (Once);
    plans_are_shown_without_side_effects (Once);
    hooks_know_their_context (Once);
    failing_hooks_fail_only_their_run (Once);
    failing_hooks_can_end_experiments (Once);
    failed_runs_are_repeated_at_once (Once);
    targets_are_started_and_ended_per_point (Once);
    unstartable_targets_stop_experiments (Once);
    unresponsive_targets_stop_experiments (Once);
    dead_targets_fail_later_runs (Once);
    unprintable_plans_are_errors (Once);
    refused_names_move_no_cursor (Once);
    endless_values_are_refused (Once);
    first_hook_output_is_kept (Once);
    silent_targets_are_abandoned_in_time (Once);
    impossible_settings_are_refused_in_plans (Once);
    target_children_end_without_proc (Once) needs "unshare -rm true";
    full_disks_end_experiments_with_reason (Once);
    statuses_are_flagged_and_gates_break (Once);
    strict_runs_that_onrush_limited_break_no_gate (Once);
    published_experiments_can_be_planned (Once);
    load_on_real_servers_is_raised (Once) needs "nginx";
    proxies_are_compared_with_real_servers (Once) needs "nginx", "apache2";
}

/// A run of an experiment in a scratch directory.
pub struct Lab {
    pub scratch: Scratch,
}

impl Lab {
    pub fn new() -> Self {
        Self { scratch: Scratch::new("lab") }
    }

    /// Writes the file of an experiment.
    pub fn file(&self, context: &Context, text: &str) -> PathBuf {
        self.scratch.file("x.toml", text.replace("\n[run]\n", &format!("\n[run]\nio = \"{}\"\n", context.backend)))
    }

    /// `onrush` in the directory, with `folder` for the results.
    pub fn onrush(&self, context: &Context, words: &str) -> Onrush {
        context.onrush().words(words).with(|command| _ = command.current_dir(self.scratch.path()))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join("folder").join(name)
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn document(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// The results in the folder, by name.
    pub fn results(&self) -> Vec<String> {
        let no_results = ["host.json", "targets.json"];
        let entries =
            fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            entries.filter(|name| name.ends_with(".json") && !no_results.contains(&name.as_str())).collect();
        names.sort();
        names
    }

    /// The points in the order of measurement: the lines of the journal about runs.
    pub fn runs(&self) -> Vec<String> {
        let journal = self.text("journal");
        let lines = journal.lines().filter(|line| line.contains(" round "));
        lines.map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }
}

fn sweeps_measure_every_point_every_round(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let words =
        format!("sweep -v -c 2,4 -t 1,2 -n 50 --rounds 2 --out folder --label from=here --io {}", context.backend);
    let output = lab.onrush(context, &words).word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let points =
        ["connections-2-threads-1", "connections-2-threads-2", "connections-4-threads-1", "connections-4-threads-2"];
    let expected: Vec<String> =
        points.iter().flat_map(|point| [1, 2].map(|round| format!("{point}-{round}.json"))).collect();
    assert_eq!(lab.results(), expected);
    let document = lab.document("connections-4-threads-1-2.json");
    assert_eq!((&document["plan"]["connections"], &document["plan"]["threads"]), (&4.into(), &1.into()));
    assert_eq!(document["labels"]["from"], "here");
    let place = &document["experiment"];
    assert_eq!((&place["name"], &place["order"], &place["round"]), (&"sweep".into(), &"interleaved".into(), &2.into()));
    assert_eq!(place["levels"][0]["factor"], "connections");
    assert_eq!((&place["levels"][0]["level"], &place["levels"][0]["index"]), (&"4".into(), &2.into()));
    assert_eq!((&place["levels"][1]["baseline"], &place["point"]), (&true.into(), &3.into()));
    let ids: Vec<Value> = expected.iter().map(|name| lab.document(name)["experiment"]["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && id.as_str().is_some_and(|id| id.len() == 16)), "{ids:?}");
    // Each round contains every point once.
    let mut positions: Vec<(u64, u64)> = expected
        .iter()
        .map(|name| {
            let place = &lab.document(name)["experiment"];
            (place["round"].as_u64().unwrap(), place["position"].as_u64().unwrap())
        })
        .collect();
    positions.sort_unstable();
    assert_eq!(positions, (0..8).map(|place| (place / 4 + 1, place)).collect::<Vec<_>>());
    assert_eq!(lab.document("targets.json")[0]["status"], 200);
    assert!(lab.document("host.json")["cpus"].as_u64().is_some_and(|cpus| cpus > 0));
    assert!(output.stdout.starts_with("connections  threads  runs  requests/s"), "{output:?}");
    assert!(
        output.stdout.contains("\nEvery run, latencies in microseconds:\n") && output.stdout.contains("avg"),
        "{output:?}"
    );
    let table = lab.text("table.md");
    assert!(table.starts_with("| connections | threads | runs | requests/s |") && table.contains("| avg |"), "{table}");
    assert_eq!(lab.text("table.csv").lines().count(), 9, "{output:?}");
    assert!(output.stdout.ends_with(&lab.text("comparison.txt")), "{output:?}");
    assert_eq!(output.stderr.lines().filter(|line| line.starts_with('[')).count(), 8, "{output:?}");
    assert!(output.stderr.contains("8 of 8 runs measured"), "{output:?}");
}

fn sockets_are_sampled_in_every_run(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    // A sample is taken after half a second.
    let words = format!("sweep -c 2,4 --sockets -d 1s --rounds 1 --out folder --io {}", context.backend);
    let output = lab.onrush(context, &words).word(url(&server, "/delay/2")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let lines = lab.text("sockets-connections-4-1.ndjson");
    assert!(lines.lines().count() >= 4, "{lines}");
    let document = lab.document("connections-4-1.json");
    assert_eq!(document["sockets"]["sampled"]["sockets"], 4, "{document}");
    assert_eq!(output.stdout.matches("\nsockets of connections=").count(), 2, "{output:?}");
}

fn targets_are_compared_in_turns(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let words = format!("vs -n 50 --warmup 20ms --rounds 3 -c2 --out folder --io {}", context.backend);
    let output = lab.onrush(context, &words).word(url(&server, "/")).word(url(&server, "/bytes/1000")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(lab.results().len(), 6);
    let document = lab.document("url2-3.json");
    assert_eq!(document["plan"]["url"], url(&server, "/bytes/1000").as_str());
    assert_eq!(document["plan"]["warmup_s"], 0.02);
    assert_eq!(document["experiment"]["levels"][0]["level"], url(&server, "/bytes/1000").as_str());
}

fn experiments_print_briefly_and_keep_one_folder(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let folders: Vec<String> = (0..2)
        .map(|_| {
            let words = format!("vs -n 200 --warmup 20ms --rounds 3 -c2 --io {}", context.backend);
            let onrush = lab.onrush(context, &words).word(url(&server, "/")).word(url(&server, "/bytes/1000"));
            let output = onrush.run_plain();
            assert_eq!(output.code, 0, "{output:?}");
            let lines: Vec<&str> = output.stdout.lines().collect();
            let heads: Vec<&str> = lines[0].split_whitespace().collect();
            assert_eq!(heads[..4], ["url", "runs", "requests/s", "spread"], "{output:?}");
            assert!(heads.len() <= 10 && heads.ends_with(&["errors"]), "{output:?}");
            assert!(lines[1].starts_with(&url(&server, "/")) && lines[2].contains("/bytes/1000 "), "{output:?}");
            assert!(lines[4].starts_with("A = http://") && lines.len() == 6, "{output:?}");
            // The first line announces the runs, the last one names the folder.
            let said: Vec<&str> = output.stderr.lines().filter(|line| !line.starts_with("note: ")).collect();
            assert_eq!(said.len(), 2, "{output:?}");
            assert!(said[0].starts_with("vs: 6 runs"), "{output:?}");
            let folder = said[1].strip_prefix("6 of 6 runs measured; everything is in onrush-results/").expect(said[1]);
            assert!(folder.ends_with("-vs") || folder.ends_with("-vs-2"), "{output:?}");
            folder.to_owned()
        })
        .collect();
    assert_ne!(folders[0], folders[1]);
    assert_eq!(fs::read_dir(lab.scratch.path()).unwrap().count(), 1, "all of them are in one");
    let results = lab.scratch.path().join("onrush-results");
    for folder in folders {
        assert!(results.join(&folder).join("url1-3.json").exists(), "{folder}");
        let compared = fs::read_to_string(results.join(&folder).join("comparison.txt")).unwrap();
        assert!(compared.contains("exploratory"), "{compared}");
    }
}

/// A simulated target that serves two requests at a time, in a millisecond each.
const PAIR: &str = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 2\nservice_us = 1000.0\n";

fn ranges_end_where_nothing_is_gained(context: &Context) {
    let lab = Lab::new();
    let scenario = lab.scratch.file("pair.toml", PAIR);
    let swept = |list: &str| {
        let words = format!("sweep --rounds 2 -t1 -d 2s -c {list} --io sim:{} http://127.0.0.1/", scenario.display());
        let output = lab.onrush(context, &words).run_plain();
        assert_eq!(output.code, 0, "{output:?}");
        output.stdout
    };
    let all = swept("1..12");
    let levels: Vec<&str> = all.lines().skip(1).map_while(|line| line.split_whitespace().next()).collect();
    assert_eq!(levels, ["1", "2", "4", "8", "12"], "{all}");
    assert!(all.contains("\nno gain beyond -c 2"), "{all}");
    let rising = swept("1..2");
    assert!(rising.contains("\n-c 2 has ") && rising.contains(" more requests/s than -c 1; try more\n"), "{rising}");
}

fn strict_runs_that_onrush_limited_break_no_gate(context: &Context) {
    let lab = Lab::new();
    let stalled =
        lab.scratch.file("stalled.toml", "latency_us = 1000.0\n[[generator_stall]]\nfrom_s = 0.5\nfor_s = 0.5\n");
    for (gate, code, said) in [("p99>1h", 4, "2 of 2 runs measured;"), ("p50>1us", 3, ", a gate broke in 2")] {
        let words = format!("sweep --rounds 1 -d 2s -c 4,8 --strict --fail-if {gate} --io sim:{}", stalled.display());
        let output = lab.onrush(context, &words).word("http://127.0.0.1/").run_plain();
        assert_eq!(output.code, code, "{output:?}");
        assert!(output.stderr.contains(said) || output.stdout.contains(said), "{said}: {output:?}");
        assert!(!output.stderr.contains("gate broken: --strict"), "{output:?}");
    }
}

fn plans_are_shown_without_side_effects(context: &Context) {
    let lab = Lab::new();
    let file = lab.file(
        context,
        "name = \"x\"\n[run]\nurl = \"http://127.0.0.1:1/\"\n[[factor]]\nname = \"connections\"\nlevels = [1, 2]\n",
    );
    let output = lab.onrush(context, "lab --plan").word(&file).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.starts_with("x: 2 points × 3 rounds = 6 runs, interleaved, at least 60s\n"), "{output:?}");
    assert!(output.stdout.contains("connections=2\n       onrush --connections=2"), "{output:?}");
    assert_eq!(fs::read_dir(lab.scratch.path()).unwrap().count(), 1, "{output:?}");
}

/// An experiment of one run of each of two points.
pub fn two_points(server: &str, rest: &str) -> String {
    format!(
        "name = \"x\"\nrounds = 1\n[run]\nrequests = 50\nthreads = 1\nurl = \"{server}\"\n\
         [[factor]]\nname = \"load\"\nlevels = [{{ label = \"small\", connections = 1 }}, {{ label = \"large\", connections = 8 }}]\n{rest}"
    )
}

fn hooks_know_their_context(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let log = lab.scratch.path().join("log");
    let hook = |name: &str| {
        format!("{name} = 'echo {name} $ONRUSH_POINT $ONRUSH_ROUND $ONRUSH_LEVEL_LOAD >> {}'\n", log.display())
    };
    let hooks: String = ["before_point", "after_point", "before_run", "after_run"].map(hook).concat();
    let text = two_points(&url(&server, "/"), &format!("[hooks]\n{hooks}"))
        .replace("rounds = 1", "rounds = 2\norder = \"sequential\"");
    let file = lab.file(context, &text);
    let output = lab.onrush(context, "lab --out folder").word(&file).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let log = fs::read_to_string(log).unwrap();
    let of = |point: &str| {
        format!(
            "before_point load-{point} 1 {point}\nbefore_run load-{point} 1 {point}\nafter_run load-{point} 1 {point}\n\
             before_run load-{point} 2 {point}\nafter_run load-{point} 2 {point}\nafter_point load-{point} 2 {point}\n"
        )
    };
    // The first request to the target is made at the first point, which is also the point of the first run.
    assert_eq!(log, of("small") + &of("large"), "{output:?}");
}

fn failing_hooks_fail_only_their_run(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let rest = "[hooks]\nbefore_run = 'echo why >&2; case $ONRUSH_LEVEL_LOAD in small) exit 3;; esac'\nafter_run = 'case $ONRUSH_ROUND in 2) sleep 60;; esac'\ntimeout = \"1s\"\n";
    let text = two_points(&url(&server, "/"), rest).replace("rounds = 1", "rounds = 2");
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(lab.results(), ["load-large-1.json", "load-large-2.failed-1.json"], "{output:?}");
    assert!(output.stderr.contains("failed: before_run failed with exit status 3"), "{output:?}");
    assert!(output.stderr.contains("1 of 4 runs measured, 3 failed"), "{output:?}");
    let failed = &lab.document("load-large-2.failed-1.json")["experiment"]["failed"];
    assert!(failed.as_str().unwrap().contains("after_run took longer than"), "{failed}");
    assert_eq!(lab.text("output/before_run-load-small-1.txt"), "why\n");
    assert!(output.took < Duration::from_secs(20), "{output:?}");
}

fn failing_hooks_can_end_experiments(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let rest = "[hooks]\nbefore_run = 'exit 1'\non_error = \"stop\"\n";
    let file = lab.file(context, &two_points(&url(&server, "/"), rest));
    let output = lab.onrush(context, "lab --out folder").word(file).run_plain();
    assert_eq!((output.code, lab.runs().len()), (5, 1), "{output:?}");
}

fn failed_runs_are_repeated_at_once(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let once = lab.scratch.path().join("once");
    let rest = format!("[hooks]\nbefore_run = '[ -e {0} ] || {{ touch {0}; exit 1; }}'\n", once.display());
    let file = lab.file(context, &two_points(&url(&server, "/"), &rest));
    let output = lab.onrush(context, "lab --out folder --retry 1").word(file).run_plain();
    assert_eq!((output.code, lab.results().len(), lab.runs().len()), (0, 2, 3), "{output:?}");
    assert!(
        output.stderr.contains("exit status 1; its output is in ") && output.stderr.contains("; retrying"),
        "{output:?}"
    );
}

fn targets_are_started_and_ended_per_point(context: &Context) {
    let lab = Lab::new();
    let reserved = ReservedPort::new();
    let address = reserved.address;
    let onrush = env!("CARGO_BIN_EXE_onrush");
    let level = |name: &str, threads: u32| {
        format!(
            "{{ label = \"{name}\", \"target.command\" = 'echo $$ >> pids; exec {onrush} serve --addr {address} --threads {threads}' }}"
        )
    };
    let text = format!(
        "name = \"x\"\nrounds = 2\n[run]\nrequests = 50\nurl = \"http://{address}/\"\n\
         [[factor]]\nname = \"server\"\nlevels = [{}, {}]\n[target]\ntimeout = \"20s\"\n",
        level("one", 1),
        level("two", 2)
    );
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let pids = fs::read_to_string(lab.scratch.path().join("pids")).unwrap();
    assert!(pids.lines().count() >= 4, "{pids}");
    assert!(pids.lines().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()), "{pids}");
    assert!(lab.text("output/target-server-two.txt").contains("(2 threads)"));
}

fn unstartable_targets_stop_experiments(context: &Context) {
    let (lab, reserved) = (Lab::new(), ReservedPort::new());
    let text =
        two_points(&format!("http://{}/", reserved.address), "[target]\ncommand = 'echo no such thing; exit 7'\n");
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!((output.code, lab.results().len()), (5, 0), "{output:?}");
    assert!(
        output.stderr.contains("ended before the target was ready, with exit status 7")
            && output.stderr.contains("no such thing"),
        "{output:?}"
    );
}

fn unresponsive_targets_stop_experiments(context: &Context) {
    let lab = Lab::new();
    let reserved = ReservedPort::new();
    let text = two_points(&format!("http://{}/", reserved.address), "");
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.stderr.contains("onrush: load=small: unable to connect to")
            && output.stderr.ends_with("0 of 2 runs measured; there is nothing to keep, so there is no folder\n"),
        "{output:?}"
    );
    assert!(!lab.path("").exists());
    let words = format!("vs -c2 --io {0} http://{1}/ http://{1}/b", context.backend, reserved.address);
    let output = lab.onrush(context, &words).run_plain();
    assert_eq!(output.code, 2, "{output:?}");
    let left: Vec<_> = fs::read_dir(lab.scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["x.toml"], "{output:?}");
}

fn dead_targets_fail_later_runs(context: &Context) {
    let lab = Lab::new();
    let reserved = ReservedPort::new();
    let mut server = Command::new(env!("CARGO_BIN_EXE_onrush"))
        .args(["serve", "--addr", &reserved.address.to_string()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(accepts(&mut server, reserved.address));
    let rest = format!("[hooks]\nafter_run = 'kill -9 {}'\non_error = \"continue\"\n", server.id());
    // A run with a number of requests would wait for the target.
    let text = two_points(&format!("http://{}/delay/2", reserved.address), &rest);
    let text = text.replace("rounds = 1", "rounds = 2").replace("requests = 50", "duration = \"500ms\"");
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    server.wait().unwrap();
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(lab.results().len(), 1, "{output:?}");
    assert!(
        output.stderr.contains("failed: unable to connect") && output.stderr.contains("1 of 4 runs measured, 3 failed"),
        "{output:?}"
    );
}

fn refused_names_move_no_cursor(context: &Context) {
    let lab = Lab::new();
    let file = lab.file(context, &two_points("http://127.0.0.1:1/", ""));
    let nowhere = "\u{1b}[31mX\u{9b}/q";
    for words in
        [&["lab", nowhere][..], &["lab", "--resume", nowhere], &["lab", "--out", nowhere, &file.display().to_string()]]
    {
        let output = words.iter().fold(lab.onrush(context, ""), |program, word| program.word(word)).run_plain();
        assert!(output.code == 1 && output.stderr.contains("\\u{1b}[31mX\\u{9b}/q"), "{output:?}");
        assert!(!output.stderr.contains(['\u{1b}', '\u{9b}']), "{output:?}");
    }
}

fn unprintable_plans_are_errors(context: &Context) {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let sweep = context.onrush().words("sweep --plan -c 1,2 http://127.0.0.1:1/");
    let output = sweep.with(|command| _ = command.stdout(full)).run_plain();
    let words = "onrush: cannot write the plan to standard output: ";
    assert!(output.code == 1 && output.stderr.contains(words), "{output:?}");
}

fn endless_values_are_refused(context: &Context) {
    let output = context.onrush().words("lab --plan /dev/zero").run_plain();
    let words = "onrush lab: /dev/zero cannot be read: it is longer than 1 MiB\n";
    assert!(output.code == 1 && output.stderr.ends_with(words), "{output:?}");
    let output = context.onrush().words("show /dev/zero").run_plain();
    assert!(output.code == 1 && output.stderr.contains("\"/dev/zero\" is longer than 64 MiB"), "{output:?}");
    let lab = Lab::new();
    let text = two_points("http://127.0.0.1:1/", "").replace("rounds = 1", "rounds = 1\nattach = [\"large\"]");
    let file = lab.file(context, &text);
    fs::File::create(lab.scratch.path().join("large")).unwrap().set_len((64 << 20) + 1).unwrap();
    let output = lab.onrush(context, "lab --out folder").word(&file).run_plain();
    let words = "attach: large cannot be read: it is longer than 64 MiB";
    assert!(output.code == 1 && output.stderr.contains(words), "{output:?}");
    assert!(!lab.path("").exists(), "{output:?}");
}

fn first_hook_output_is_kept(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let rest = "[hooks]\nbefore_run = 'head -c 20000000 /dev/zero'\n";
    let file = lab.file(context, &two_points(&url(&server, "/"), rest));
    let output = lab.onrush(context, "lab --out folder").word(file).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let kept = lab.text("output/before_run-load-small-1.txt");
    let (first, line) = kept.split_at(16 << 20);
    assert!(first.bytes().all(|byte| byte == 0), "{line}");
    let left_out = line.strip_prefix("\n[onrush keeps the first 16 MiB of this output; the rest, at least ");
    let left_out = left_out.and_then(|line| line.strip_suffix(" bytes, is left out]\n")).expect(line);
    assert!((1..=20_000_000 - (16 << 20)).contains(&left_out.parse::<u64>().unwrap()), "{left_out}");
}

fn silent_targets_are_abandoned_in_time(context: &Context) {
    let lab = Lab::new();
    // The kernel accepts the connections.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let rest = "[target]\ncommand = 'sleep 60'\ntimeout = \"300ms\"\n";
    let text = two_points(&format!("http://{}/", silent.local_addr().unwrap()), rest);
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!(output.code, 5, "{output:?}");
    assert!(output.stderr.contains("the target was not ready within 300ms"), "{output:?}");
    // A first request would wait for 10 seconds.
    assert!(output.took < Duration::from_secs(8), "{output:?}");
}

fn impossible_settings_are_refused_in_plans(context: &Context) {
    let lab = Lab::new();
    for (name, words) in [
        ("net.ipv4.tcp_rnem", "the kernel has no setting net.ipv4.tcp_rnem; nearest in net.ipv4: tcp_rmem"),
        ("net.ipv4", "net.ipv4 is a group of settings"),
        ("net..core", ": \"net..core\" is not the name of a setting"),
    ] {
        let factor = format!("[[factor]]\nname = \"s\"\nlevels = [{{ \"sysctl.{name}\" = \"1\" }}]\n");
        let text = format!("name = \"x\"\n[run]\nurl = \"http://127.0.0.1:1/\"\n{factor}");
        let output = lab.onrush(context, "lab --plan").word(lab.file(context, &text)).run_plain();
        assert!(output.code == 1 && output.stderr.contains(words), "{name}: {output:?}");
    }
    let output = context.onrush().words("sweep --plan --sysctl net//core=1,2 http://127.0.0.1:1/").run_plain();
    assert!(output.code == 1 && output.stderr.contains("is not the name of a setting"), "{output:?}");
}

fn target_children_end_without_proc(context: &Context) {
    let lab = Lab::new();
    // The child ignores the first signal; its parent does not.
    let stubborn = lab.scratch.file("stubborn.sh", "trap '' TERM\necho $$ > child\nsleep 60 &\nwait\nsleep 60\n");
    let rest = format!("[target]\ncommand = 'sh {} & wait'\ntimeout = \"1s\"\n", stubborn.display());
    let file = lab.file(context, &two_points("http://127.0.0.1:1/", &rest));
    let onrush = env!("CARGO_BIN_EXE_onrush");
    let script = format!("mount -t tmpfs none /proc && exec {onrush} lab --out folder {}", file.display());
    let mut unshare = Command::new("unshare");
    unshare.args(["-rm", "sh", "-c", &script]).current_dir(lab.scratch.path());
    let output = ProgramOutput::new(unshare.output().unwrap(), Duration::ZERO);
    assert!(output.stderr.contains("the target was not ready within 1s"), "{output:?}");
    let child = fs::read_to_string(lab.scratch.path().join("child")).unwrap();
    let is_alive = |id: &str| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
    };
    wait_until(|| !is_alive(child.trim()));
}

fn full_disks_end_experiments_with_reason(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let file = lab.file(context, &two_points(&url(&server, "/"), ""));
    // Enough for the plan, but not for a result.
    let onrush = context.limited("-f 8").words("lab --out folder").word(file);
    let output = onrush.with(|command| _ = command.current_dir(lab.scratch.path())).run_plain();
    assert_eq!((output.code, lab.path("").exists()), (1, false), "{output:?}");
    let why = "-1.json cannot be written: the file exceeds the file-size limit; raise the limit (ulimit -f)";
    assert!(output.stderr.contains(why), "{output:?}");
    // A measurement that cannot be saved is printed.
    assert!(output.stderr.lines().any(|line| line.starts_with("[1/") && line.contains("/s")), "{output:?}");
}

fn statuses_are_flagged_and_gates_break(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let text = two_points(&url(&server, "/status/503"), "")
        .replace("threads = 1", "threads = 1\nfail-if = [\"errors>50%\", \"p99>10s\"]");
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!((output.code, lab.results().len()), (3, 2), "{output:?}");
    assert!(
        output.stderr.contains("responds with status 503") && output.stderr.contains("gate broken: errors>50%"),
        "{output:?}"
    );
}

/// The experiment files shown in the documents.
fn published() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/experiments");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn published_experiments_can_be_planned(context: &Context) {
    let runs = [("capacity", 18), ("proxies", 20), ("socket-buffers", 21)];
    assert_eq!(published().len(), runs.len());
    for (file, (name, runs)) in published().iter().zip(runs) {
        let output = context.onrush().words("lab --plan").word(file).run_plain();
        assert!(file.ends_with(format!("{name}.toml")) && output.code == 0, "{output:?}");
        assert!(output.stdout.contains(&format!("= {runs} runs, interleaved")), "{output:?}");
    }
}

fn load_on_real_servers_is_raised(context: &Context) {
    let (nginx, lab) = (LoggingServer::nginx(1000), Lab::new());
    let text = fs::read_to_string(&published()[0]).unwrap();
    let text = text
        .replace("http://127.0.0.1:1323/", &nginx.url("/hello"))
        .replace("duration = \"10s\"", "requests = 300")
        .replace("\"1s\"", "\"50ms\"")
        .replace("rounds = 3", "rounds = 1");
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(lab.results().len(), 6, "{output:?}");
    assert_eq!(output.stdout.matches("A = load=connections=1,threads=1, B = ").count(), 5, "{output:?}");
}

/// Apache with a CGI script.
struct Apache {
    process: Child,
    reserved: ReservedPort,
    _scratch: Scratch,
}

impl Apache {
    fn new() -> Self {
        let (scratch, reserved) = (Scratch::new("apache"), ReservedPort::new());
        let root = scratch.path().display().to_string();
        let script = scratch.file("second.pl", "#!/bin/sh\nprintf 'Content-type: text/html\\n\\nhello'\n");
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let modules: String = ["mpm_event", "authz_core", "alias", "cgid"]
            .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
            .concat();
        let configuration = format!(
            "ServerRoot {root}\nServerName localhost\nListen {}\nPidFile {root}/pid\nErrorLog {root}/error.log\n\
             {modules}User daemon\nGroup nogroup\nScriptSock {root}/cgi.sock\nScriptAlias /cgi-bin/ {root}/\n\
             <Directory {root}>\nRequire all granted\nOptions +ExecCGI\n</Directory>\n",
            reserved.address
        );
        let configuration = scratch.file("httpd.conf", configuration);
        let mut process = Command::new("apache2")
            .args(["-D", "FOREGROUND", "-f"])
            .arg(configuration)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("apache2 starts");
        assert!(accepts(&mut process, reserved.address));
        Self { process, reserved, _scratch: scratch }
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        signal(&self.process, Signal::TERM);
        let _ = self.process.wait();
    }
}

fn proxies_are_compared_with_real_servers(context: &Context) {
    let (apache, lab) = (Apache::new(), Lab::new());
    let nginx = LoggingServer::nginx_with(
        "",
        &format!("location /cgi-bin {{ proxy_pass http://{}; }}", apache.reserved.address),
        |_| {},
    );
    let text = fs::read_to_string(&published()[1]).unwrap();
    let text = text
        .replace("127.0.0.1:8081", &apache.reserved.address.to_string())
        .replace("127.0.0.1:8080", &nginx.address().to_string())
        .replace("duration = \"30s\"", "requests = 20")
        .replace("\"2s\"", "\"50ms\"")
        .replace("rounds = 5", "rounds = 1")
        .replace("threads = 12, connections = 400", "threads = 2, connections = 8")
        .replace("threads = 8, connections = 96", "threads = 1, connections = 4");
    let output: ProgramOutput = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(lab.results().len(), 4, "{output:?}");
    let targets = lab.document("targets.json");
    let heads = [0, 1].map(|index| targets[index]["head"].as_str().unwrap().to_owned());
    assert!(heads[0].contains("Apache") && heads[1].contains("nginx"), "{targets}");
    assert!((0..2).all(|index| targets[index]["status"] == 200 && targets[index]["body_bytes"] == 5), "{targets}");
    assert_eq!(lab.document("url-nginx-load-focused-1.json")["status"].as_object().unwrap().len(), 1);
}
