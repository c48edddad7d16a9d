//! The probe after a closed loop (`--probe`). On simulated targets, the answer is known and equal on all machines. On
//! the embedded target, a busy machine may prevent an answer but not lead to a wrong one.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Context, Scratch, cases, fetch_target_counts, finish, signal, target, url, wait_for_load};
use crate::results::document;
use crate::simulation::{simulate, simulated_document};

cases! {
    probes_decide_the_limit_of_loops (Once);
    rates_are_sustained_only_if_complete (Once);
    other_figures_exclude_the_probe (Once);
    late_threads_measure_only_the_run;
    upward_probes_predict_rates (Once);
    required_probe_times_are_reported (Once);
    scripts_continue_during_probes (Once);
    explicit_probes_stay_silent_without_notes (Once);
    probes_on_busy_machines_are_never_wrong (Alone);
    signals_during_probes_end_only_probes;
    quitting_during_probes_leaves_complete_files;
    probes_are_announced_with_notes (Once);
    inconclusive_probe_options_are_refused (Once);
}

/// Requests are served in parallel.
const DELAY: &str = "latency_us = 0.0\ndelay = { ms = 5.0, sd = 2.0 }";
/// Four workers.
const POOL: &str = "latency_us = 100.0\npool = { workers = 4, ms = 5.0, sd = 2.0 }";
/// Both scenarios give clients the same times: only a probe can tell them apart.
const WORDS: &str = "-t1 -c8 -d2s";

fn probes_decide_the_limit_of_loops(context: &Context) {
    for (scenario, limited_by, others) in [(DELAY, "connections", [0.7, 2.0]), (POOL, "target", [-1.0, 0.3])] {
        let (output, document) = simulated_document(context.onrush().words(WORDS).words("--probe 2s"), scenario);
        assert_eq!(document["verdict"]["limited_by"], limited_by, "{scenario}: {output:?}");
        let elasticity = &document["evidence"]["probe"]["elasticity"];
        let [low, high] = ["low", "high"].map(|end| elasticity[end].as_f64().expect("it has one"));
        assert!(others[0] < low && high < others[1], "{scenario}: {elasticity}");
        assert!(output.verdict.contains("/s with 8 in flight, "), "{output:?}");
        let summary = document["verdict"]["summary"].as_str().expect("there is one");
        assert!(output.verdict.starts_with(summary), "{output:?}");
        let slots = document["evidence"]["probe"]["slots"].as_array().expect("a list");
        assert_eq!((&slots[0]["in_flight"], &slots[0]["tick_s"]), (&json!(8), &json!(0.1)), "the end of the run");
        assert!(!output.verdict.contains("-c"), "nothing is known beyond 8: {output:?}");
    }
}

fn rates_are_sustained_only_if_complete(context: &Context) {
    let limited_by = |scenario: &str, words: &str| {
        let (_, document) = simulated_document(context.onrush().words("-t1").words(words), scenario);
        document["verdict"]["limited_by"].as_str().expect("there is one").to_owned()
    };
    // Two workers serve 2,000 requests per second together.
    let pool = "latency_us = 100.0\npool = { workers = 2, ms = 1.0, sd = 0.5 }";
    for words in ["-R1000 -c64 -d10s", "-R1700 -c200 -d10s --arrivals poisson", "--stages 10s:100..1500 -c64"] {
        assert_eq!(limited_by(pool, words), "schedule", "{words}");
    }
    for words in [
        "-R2100 -c2000 -d10s",
        "-R2500 -c64 -d10s --max-late 1ms",
        "-R4000 -n7600 -c10",
        "-R4000 -n8000 -c2000",
        "--stages 8s:1000,2s:4000 -c5000",
        "--stages 10s:100..4000 -c5000",
    ] {
        assert_ne!(limited_by(pool, words), "schedule", "{words}");
    }
    let resets = "latency_us = 1000.0\n[[fault]]\nevery = 2\nwhat = \"reset\"";
    assert_ne!(limited_by(resets, "-R1000 -d10s"), "schedule");
}

fn other_figures_exclude_the_probe(context: &Context) {
    let [without, with] = ["--probe off", "--probe 2s"].map(|probe| {
        let (output, mut document) = simulated_document(context.onrush().words(WORDS).words(probe), DELAY);
        let probe = document["evidence"].as_object_mut().expect("an object").remove("probe");
        // These keys differ by their nature.
        for key in ["command", "plan", "verdict", "started_at", "host", "result"] {
            document.as_object_mut().expect("an object").remove(key);
        }
        (output.stdout, document, probe)
    });
    let probe = with.2.expect("there was one");
    assert!(probe["requests"].as_u64() > Some(200) && probe["duration_s"].as_f64() < Some(2.1), "{probe:#}");
    assert!(probe["slots"].as_array().is_some_and(|slots| slots.len() >= 2), "{probe:#}");
    assert_eq!(
        (&without.2.expect("the time it would take")["requests"], &with.1["duration_s"]),
        (&json!(0), &json!(2.0))
    );
    assert_eq!((with.0, with.1), (without.0, without.1));
}

/// A thread that is inside its script at the end of the run ends later than the other one, which stays for the probe.
fn late_threads_measure_only_the_run(context: &Context) {
    let script = "local threads = 0
        function setup(thread) threads = threads + 1; thread:set('is_slow', threads == 2) end
        function response()
            if not is_slow then return end
            local begun = os.clock()
            while os.clock() < begun + 0.03 do end
        end";
    let (server, scratch) = (target(), Scratch::new("apart"));
    let program = context.onrush().words("-t2 -c4 -d1s --probe 500ms").lua(script).word(url(&server, "/delay/2"));
    let document = document(program, &scratch).1;
    let count = |name: &str| document["requests"][name].as_u64().unwrap_or(0);
    let ended: u64 = ["completed", "abandoned", "open", "unknown"].map(count).iter().sum();
    assert_eq!(count("started") + count("carried"), ended, "{:#}", document["requests"]);
}

fn upward_probes_predict_rates(context: &Context) {
    let run = |scenario, words: &str| simulate(context.onrush().words("-t1 -d2s").words(words), scenario).verdict;
    let more = run(DELAY, "-c8 --probe up:15s");
    let expected = "the number of requests in flight is the limit (half as many more in flight gave ";
    assert!(more.starts_with(expected), "{more}");
    let expected = more.split("; use -c 12 for about ").nth(1).and_then(|words| words.strip_suffix("/s"));
    let per_s: f64 = expected.and_then(|words| words.replace(',', "").parse().ok()).expect("a number");
    // Twelve requests, each in 5 ms, with a connect time of zero.
    assert!((2_280.0..=2_520.0).contains(&per_s), "{more}");
    let full = run(POOL, "-c8 --probe up:15s");
    assert!(full.starts_with("the target is at its limit (half as many more ") && !full.contains("-c"), "{full}");
    // With a single request in flight, no lower number exists.
    for words in ["-c1 -d10s", "-c1 --probe 10s -d10s", "-c1 --probe up -d20s"] {
        let two = run(DELAY, words);
        assert!(two.contains("(twice as many in flight gave ") && two.contains("; use -c 2 for about "), "{two}");
    }
    let one_worker = "latency_us = 10.0\npool = { workers = 1, ms = 5.0 }";
    let one = run(one_worker, "-c1 -d10s");
    assert!(one.starts_with("the target is at its limit (twice as many in flight gave the same "), "{one}");
}

fn required_probe_times_are_reported(context: &Context) {
    let run = |words: &str, scenario: &str| {
        let (output, document) = simulated_document(context.onrush().words("-t1").words(words), scenario);
        assert_eq!(document["verdict"]["limited_by"], "unclear", "{words}: {output:?}");
        assert!(document["evidence"]["probe"]["requests"].as_u64().unwrap_or(0) == 0, "{words}: {document:#}");
        output.verdict
    };
    // Exponential service at 80 requests per second: 160 requests in two seconds.
    let slow = "latency_us = 10.0\npool = { workers = 1, ms = 12.5, dist = \"exp\" }";
    let long = run("-c8 -d10s", slow);
    assert!(long.contains(", and there was too little time for a probe; ") && long.contains("--probe "), "{long}");
    let seconds: u64 = long.split("--probe ").nth(1).and_then(|it| it.split('s').next()?.parse().ok()).expect("a time");
    let told = simulate(context.onrush().words(&format!("-t1 -c8 -d10s --probe {}s", seconds + 2)), slow);
    assert!(told.verdict.contains("gave the same"), "{told:?}");
    // A probe that would be refused is not suggested; one that would run automatically is.
    for words in ["-c8 -d2s", "-c8 -d10s -X POST"] {
        let advice = run(words, DELAY);
        assert!(advice.ends_with("; --probe 1s may tell"), "{words}: {advice}");
    }
    let script = simulate(context.onrush().words("-t1 -c8 -d10s").lua("wrk.path = '/x'"), DELAY);
    assert!(script.verdict.ends_with("; --probe 1s may tell"), "{script:?}");
    let (_, short) = simulated_document(context.onrush().words("-t1 -c8 -d400ms --probe 5s"), DELAY);
    assert_eq!(short["verdict"]["advice"], "run longer (-d)");
}

fn scripts_continue_during_probes(context: &Context) {
    let script = "n = 0
        function request() n = n + 1; return wrk.format('GET', '/' .. n) end
        function response() end
        function done() end";
    let words = "-t1 -c8 -d10s --probe 2s";
    let (output, document) = simulated_document(context.onrush().words(words).lua(script), POOL);
    assert!(output.verdict.contains("(half as many in flight gave the same "), "{output:?}");
    assert!(document["evidence"]["probe"]["requests"].as_u64() > Some(50), "{document:#}");
    let post = simulate(context.onrush().words("-t1 -c8 -d10s --probe 2s -X POST --body x"), POOL);
    assert!(post.verdict.contains("gave the same"), "{post:?}");
    let end = "n = 0
        function response() n = n + 1; if n == 16100 then error('enough') end end";
    let broken = simulate(context.onrush().words("-t1 -c8 -d10s --probe 2s").lua(end), DELAY);
    assert!(broken.verdict.contains("the probe after the run was inconclusive: "), "{broken:?}");
    assert_eq!(broken.code, 0, "the run was whole: {broken:?}");
}

fn explicit_probes_stay_silent_without_notes(context: &Context) {
    for words in ["--quiet", "--format json", "--compat wrk"] {
        let run = |probe: &str| {
            let words = format!("-t1 -c8 -d10s {words} {probe}");
            let (output, document) = simulated_document(context.onrush().words(&words), POOL);
            assert!(!output.stderr.contains("onrush: a probe of up to"), "{words}: {output:?}");
            document["evidence"]["probe"]["requests"].as_u64().unwrap_or(0)
        };
        assert_eq!(run(""), 0, "{words}");
        assert!(run("--probe 2s") > 50, "{words}");
    }
}

fn probes_on_busy_machines_are_never_wrong(context: &Context) {
    for (path, wrong) in [("/delay/4", "target"), ("/pool?workers=4&ms=2", "connections")] {
        let (server, scratch) = (target(), Scratch::new("probed"));
        let program = context.onrush().words("-t1 -c8 -d2s --probe 6s").word(url(&server, path));
        let (output, document) = document(program, &scratch);
        let (verdict, probe) = (&document["verdict"], &document["evidence"]["probe"]);
        assert_ne!(verdict["limited_by"], wrong, "{path}: {output:?}");
        // Every request sent is included in some figure.
        let requests = |figures: &Value, key: &str| figures[key].as_u64().unwrap_or(0);
        let counted = requests(&document["requests"], "started") + requests(probe, "requests");
        let served = fetch_target_counts(server.address()).requests;
        assert!((counted..=counted + 8).contains(&served), "{path}: {counted} of {served} {probe:#}");
    }
}

fn signals_during_probes_end_only_probes(context: &Context) {
    let (output, document) =
        simulated_document(context.onrush().words(WORDS).words("--probe 15s"), &format!("signal_s = 2.1\n{DELAY}"));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!((&document["interrupted"], document["duration_s"].as_f64()), (&Value::Null, Some(2.0)));
    assert!(output.verdict.contains("the probe after the run was inconclusive: a signal ended it"), "{output:?}");
    assert!(document["evidence"]["probe"]["requests"].as_u64() > Some(50), "{document:#}");
    // A real signal, if the machine was quiet enough for a probe.
    let server = target();
    let child = context.onrush().words("-t1 -c4 -d500ms --probe 30s").word(url(&server, "/delay/1")).spawn();
    wait_for_load(&server);
    thread::sleep(Duration::from_millis(1_500));
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.line("Requests/sec").is_some() && !output.stderr.contains("interrupted"), "{output:?}");
    assert!(output.took < Duration::from_secs(20), "{output:?}");
}

fn quitting_during_probes_leaves_complete_files(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("quit"));
    for twice in [true, false] {
        let files = ["json", "csv", "ndjson"].map(|kind| scratch.path().join(format!("x{twice}.{kind}")));
        let program = files.iter().fold(context.onrush(), |program, file| program.word("-o").word(file));
        let child = program.words("-t1 -c4 -d500ms --probe 30s").word(url(&server, "/delay/1")).spawn();
        wait_for_load(&server);
        thread::sleep(Duration::from_millis(2_000));
        if twice {
            signal(&child, Signal::INT);
            signal(&child, Signal::TERM);
        } else {
            signal(&child, Signal::QUIT);
        }
        let output = finish(child);
        // If the machine itself was the limit, no probe follows, and the run has ended normally.
        let was_quit = output.line("Requests/sec").is_none();
        assert!(was_quit || output.code == 0 && !output.verdict.contains("probe"), "{output:?}");
        let document: Value = serde_json::from_str(&fs::read_to_string(&files[0]).expect("the file is there"))
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert!(document["requests"]["completed"].as_u64() > Some(10), "{output:?}");
        assert!(files.iter().all(|file| fs::metadata(file).is_ok_and(|file| file.len() > 0)), "{output:?}");
    }
}

fn probes_are_announced_with_notes(context: &Context) {
    let is_announced = |words: &str| {
        let output = simulate(context.onrush().words(words), DELAY);
        assert!(!output.stdout.contains("after the run"), "{output:?}");
        output.stderr.contains(
            "onrush: a probe of up to 2s may follow the run, to find what limits it (--probe off prevents it)\n",
        )
    };
    for words in ["-c8 -d10s", "-c1 -d10s", "-c8 -d10s -X HEAD", "-c8 -d1s --probe 2s", "-c8 -d1s -X POST --probe up"] {
        assert!(is_announced(words), "{words}");
    }
    for words in [
        "-c8 -d9s",
        "-c8 -d10s --probe off",
        "-c8 -d10s --quiet",
        "-c8 -d10s --notes=off",
        "-c8 -d10s -X POST",
        "-c8 -d10s --body x",
        "-c8 -d10s -n 100",
        "-c8 -d10s -R 100",
        "-c8 -d10s --disable-keepalive",
        "-c8 -d10s --compat wrk",
    ] {
        assert!(!is_announced(words), "{words}");
    }
}

fn inconclusive_probe_options_are_refused(context: &Context) {
    let scratch = Scratch::new("refused");
    let script = scratch.file("s.lua", "x = 1");
    let lab = scratch.file("x.toml", "name = 'x'\n[run]\nurl = 'http://127.0.0.1:9/'\nprobe = '3s'\n");
    let (script, lab) = (format!("-s {}", script.display()), format!("lab --plan {}", lab.display()));
    for (words, why) in [
        ("-R 10", "--probe: with a rate, "),
        ("--stages 1s:10", "--probe: with a rate, "),
        ("--stages c=1s:1", "--probe: stages vary the connections already"),
        ("--once", "--probe: --once sends a single request"),
        (&format!("-c1 {script}"), "--probe: with more in flight, the requests of a script "),
        ("--requests-per-connection 9", "--probe: connections that are replaced "),
        ("--find-max p99<1s", "--probe: a search or an experiment varies the load itself"),
    ] {
        let output = context.onrush().words(words).words("--probe 3s http://127.0.0.1:9/").run_plain();
        assert_eq!(output.code, 1, "{words}: {output:?}");
        assert!(output.stderr.contains(why), "{words}: {output:?}");
    }
    for words in ["sweep --plan -c 1..2 --probe 3s http://127.0.0.1:9/", &lab] {
        let output = context.onrush().words(words).run_plain();
        assert_eq!(output.code, 1, "{words}: {output:?}");
        assert!(output.stderr.contains("a search or an experiment varies the load itself"), "{words}: {output:?}");
    }
    for value in ["0s", "", "maybe", "up:", "up3s", "-3s", "off:3s"] {
        let output = context.onrush().word("--probe").word(value).word("http://127.0.0.1:9/").run_plain();
        let said = format!("onrush: --probe \"{value}\": write off, a time such as 2s, up, or up:2s\n");
        assert_eq!((output.code, output.stderr), (1, said));
    }
}
