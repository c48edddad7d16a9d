//! Gates: the exit code of a run if a condition holds, and the messages.

use crate::harness::{Context, Scratch, cases, target, url};
use crate::simulation::{simulate, simulated_document};

cases! {
    broken_gates_are_named_with_code_3 (Once);
    passed_gates_are_silent (Once);
    unbounded_percentiles_break_gates (Once);
    interrupted_runs_pass_no_gate (Once);
    gates_become_test_suite_cases;
    other_failures_precede_gates (Once);
    unreadable_conditions_start_nothing (Once);
}

/// Each response takes a millisecond.
const EVEN: &str = "connect_us = 0.0\nlatency_us = 1000.0";

fn broken_gates_are_named_with_code_3(context: &Context) {
    for program in context.both() {
        let gates = "-t1 -c1 -d5s --fail-if p50<5s --fail-if errors>1%,rate>1 --annotate";
        let output = simulate(program.words(gates), EVEN);
        let lines = "onrush: --fail-if p50<5s: it was 1.00ms\n::error title=onrush::--fail-if p50<5s: it was 1.00ms\n";
        assert_eq!((output.code, output.stderr.as_str()), (3, lines), "{output:?}");
    }
    let words = "-t1 -c1 -n20 --fail-if p100<5s --fail-if rate<0.5";
    let (output, document) = simulated_document(context.onrush().words(words), EVEN);
    assert_eq!(output.code, 3, "{output:?}");
    let gates = document["gates"].as_array().unwrap();
    assert_eq!((gates[0]["broken"].as_bool(), gates[1]["broken"].as_bool()), (Some(true), Some(false)));
    assert_eq!(gates[0]["terms"][0]["term"], "p100<5s");
}

fn passed_gates_are_silent(context: &Context) {
    let words = "-t1 -c2 -d5s -R 200 --fail-if scheduled.p99.9>1ms --fail-if rate<0.99*asked --fail-if status.5xx>0 --fail-if dropped>0";
    let output = simulate(context.onrush().words(words), EVEN);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
}

/// Every tenth of 1,000 requests is reset at the start of its response. The other 900 take a millisecond, so the 89th
/// percentile of all is the 891st value, and the 90th is unknown.
fn unbounded_percentiles_break_gates(context: &Context) {
    let scratch = Scratch::new("bounds");
    let [json, suite] = ["r.json", "r.xml"].map(|name| scratch.path().join(name));
    let words = "-t1 -c20 -d5s -R200 --annotate --fail-if p89>50ms --fail-if p99>50ms --fail-if service.p99>50ms";
    let onrush = context.onrush().words(words).word("-o").word(&json).word("-o").word(&suite);
    let output = simulate(onrush, &format!("{EVEN}\n[[fault]]\nevery = 10\nwhat = 'reset'"));
    assert_eq!((output.code, output.requests()), (3, 900), "{output:?}");
    let was = "at least 1.00ms, with no upper bound, because 10 % of the requests due failed";
    output.note(&format!("percentiles from the 90th up are uncertain; the 90th is {was}"));
    output.note("10 % of 1,000 requests got no complete response: 100 failed");
    let broken: Vec<&str> = output.stderr.lines().filter(|line| line.contains("--fail-if")).collect();
    let line = format!("--fail-if p99>50ms: it was {was}");
    let annotation = format!("::error title=onrush::{}", line.replace('%', "%25"));
    assert_eq!(broken, [format!("onrush: {line}"), annotation], "{output:?}");
    let text = std::fs::read_to_string(&suite).unwrap();
    assert!(text.contains(&format!("<failure message=\"it was {was}\"")), "{text}");
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let was_of = |gate: usize| document["gates"][gate]["terms"][0]["was"].as_str().unwrap().to_owned();
    assert_eq!([was_of(0), was_of(1), was_of(2)], ["1.00ms", was, "1.00ms"]);
    let bounds = &document["open_loop"]["percentiles_us"];
    assert_eq!((bounds["75"]["upper"].as_f64(), bounds["90"].get("upper")), (bounds["75"]["lower"].as_f64(), None));
}

/// `onrush --fail-if … && deploy` must not deploy after Ctrl-C.
fn interrupted_runs_pass_no_gate(context: &Context) {
    for (words, scenario, code) in [
        ("", "", 0),
        ("--fail-if p99>50ms", "", 130),
        ("--fail-if p99<50ms", "", 3),
        ("--strict", "", 130),
        (
            "--until p50+-0.1% --fail-if p99>50ms",
            "[capacity]\nworkers = 1\nservice_us = 900.0\nspread = 'exponential'",
            130,
        ),
        ("--fail-if p99>50ms", "refuse = [{ from_s = 0.0, for_s = 99.0 }]", 2),
        ("--fail-if p99>50ms", "[[fault]]\nevery = 1\nwhat = 'hang'", 5),
    ] {
        for program in context.both() {
            let is_compat = program.is_compat();
            let output =
                simulate(program.words("-t1 -c1 -d20s").words(words), &format!("signal_s = 2.0\n{EVEN}\n{scenario}"));
            // In wrk mode, a run without responses is no failure by itself, but its gate is undecided. A run refused by
            // its target does not start.
            let code = match code {
                2 if is_compat => 1,
                5 if is_compat => 6,
                code => code,
            };
            assert_eq!(output.code, code, "{words} {scenario}: {output:?}");
            let line = "onrush: a signal ended the run early, so --";
            assert_eq!(output.stderr.contains(line), code == 130, "{output:?}");
        }
    }
}

fn gates_become_test_suite_cases(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("junit"));
    let file = scratch.path().join("suite.xml");
    let output = context
        .onrush()
        .words("-t1 -c1 -n10 --fail-if p100<5s,rate>0.1 --fail-if errors>5%")
        .words(&format!("-o {}", file.display()))
        .word(url(&server, "/?a=<&b"))
        .run();
    assert_eq!(output.code, 3, "{output:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\""), "{text}");
    assert!(text.contains("tests=\"3\" failures=\"1\" errors=\"0\"") && text.contains("?a=&lt;&amp;b"), "{text}");
    assert_eq!(text.matches("<testcase ").count(), 3, "{text}");
    assert!(text.contains("name=\"p100&lt;5s,rate&gt;0.1\""), "{text}");
    assert_eq!(text.matches("<failure message=\"p100&lt;5s was ").count(), 1, "{text}");
}

fn other_failures_precede_gates(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("gates-order"));
    let script = scratch.file("quits.lua", "function done() os.exit(7) end");
    let quits = context
        .onrush()
        .words(&format!("-t1 -c1 -n5 --fail-if rate>0 -s {}", script.display()))
        .word(url(&server, "/"))
        .run();
    assert_eq!(quits.code, 7, "{quits:?}");
    assert!(quits.stderr.contains("--fail-if rate>0"), "{quits:?}");
    let dead = context.onrush().words("-t1 -c1 -d1s --fail-if errors>=0% http://127.0.0.1:1/").run();
    assert_eq!(dead.code, 2, "{dead:?}");
}

fn unreadable_conditions_start_nothing(context: &Context) {
    let output = context.onrush().words("-d1s --fail-if p99>50ms,eror>1% http://127.0.0.1:1/").run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    let expected =
        "onrush: --fail-if \"p99>50ms,eror>1%\": at \"eror>1%\": unknown metric \"eror\"; did you mean errors?\n";
    assert_eq!(output.stderr, expected);
    let output = context.onrush().words("-d1s --fail-if rate<0.9*asked http://127.0.0.1:1/").run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("there is no rate; add -R"), "{output:?}");
}
