//! Comparing saved results: experiments, single runs, saved output, and refusals.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Context, ProgramOutput, Scratch, cases};
use crate::simulation::simulate;

cases! {
    experiment_rounds_are_compared (Once);
    slower_targets_fail_under_limits (Once);
    single_results_differ_without_a_verdict (Once);
    error_pages_are_not_faster (Once);
    incomparable_results_are_named_with_code_1 (Once);
}

/// A simulated target, and one ten times as slow.
const FAST: &str = "latency_us = 5000.0\njitter_us = 500.0\n";
const SLOW: &str = "latency_us = 50000.0\njitter_us = 5000.0\n";

/// Measures both targets in turn, and returns the folder of the experiment.
fn experiment(context: &Context, scratch: &Scratch) -> PathBuf {
    let [fast, slow] = [("fast.toml", FAST), ("slow.toml", SLOW)].map(|(name, text)| scratch.file(name, text));
    let levels = format!(
        "levels = [{{ label = 'fast', io = 'sim:{}' }}, {{ label = 'slow', io = 'sim:{}' }}]",
        fast.display(),
        slow.display()
    );
    let run = "[run]\nurl = 'http://127.0.0.1/'\nrequests = 40\nthreads = 1\nconnections = 4";
    let file = format!("name = 'speed'\nrounds = 6\n{run}\n[[factor]]\nname = 'target'\n{levels}\n");
    let (file, folder) = (scratch.file("speed.toml", file), scratch.path().join("e"));
    let output = context.onrush().words("lab --out").word(&folder).word(file).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    folder
}

fn compared(context: &Context, words: &str, paths: &[&Path]) -> ProgramOutput {
    let command = context.onrush().word("compare").words(words);
    paths.iter().fold(command, |command, path| command.word(path)).run_plain()
}

/// Measures a simulated target once. Returns the path of the result; the report's text is in a file next to it.
fn single(context: &Context, scratch: &Scratch, (name, words, scenario): (&str, &str, &str)) -> PathBuf {
    let path = scratch.path().join(name);
    let output = simulate(context.onrush().words(words).word("-o").word(&path), scenario);
    fs::write(path.with_extension("txt"), &output.stdout).unwrap();
    assert_eq!(output.code, 0, "{output:?}");
    path
}

fn experiment_rounds_are_compared(context: &Context) {
    let scratch = Scratch::new("compared");
    let folder = experiment(context, &scratch);
    let output = compared(context, "", &[&folder]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.line("A = "), Some("A = fast, B = slow: 6 rounds of \"speed\", interleaved"), "{output:?}");
    assert_eq!(output.line("B is "), Some("B is 90 % slower (95 %: 89 … 91 %)"), "{output:?}");
    assert!(output.line("p50 ").is_some() && output.line("rank test").is_some(), "{output:?}");
    // The sides can be named, and swapped.
    let [a, b] = ["fast", "slow"].map(|label| format!("{}:{label}", folder.display()));
    let output = compared(context, "--format json", &[Path::new(&b), Path::new(&a)]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let at = |pointer: &str| document.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {document:#}"));
    assert_eq!((at("/comparisons/0/paired"), at("/comparisons/0/a/runs")), (&Value::from(true), &Value::from(6)));
    assert_eq!(at("/comparisons/0/metrics/0/metric"), "rate");
    let ratio = at("/comparisons/0/metrics/0/ratio").as_f64().unwrap();
    assert!((9.9..10.1).contains(&ratio), "{ratio}");
    let schema: Value = serde_json::from_str(include_str!("../../docs/comparison.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    assert!(validator.is_valid(&document), "{document:#}");
}

fn slower_targets_fail_under_limits(context: &Context) {
    let scratch = Scratch::new("worse");
    let folder = experiment(context, &scratch);
    let output = compared(context, "--fail-if-worse 10 --fail-if-worse p50:100000", &[&folder]);
    assert_eq!(output.code, 3, "{output:?}");
    output.note("requests/s of B is worse by more than 10 %");
    assert!(!output.stderr.contains("p50 of B is worse"), "{output:?}");
    assert_eq!(compared(context, "--fail-if-worse 99.9", &[&folder]).code, 0);
    // The figure is known to be worse by one limit, and not known to be within another.
    let output = compared(context, "--fail-if-worse p99:5 --fail-if-worse 10 --fail-if-worse p99:5", &[&folder]);
    assert_eq!(output.code, 3, "{output:?}");
    let output = compared(context, "--fail-if-worse 99.9 --fail-if-worse p99:5", &[&folder]);
    assert_eq!(output.code, 6, "{output:?}");
    output.note("cannot tell whether p99 is worse by more than 5.0 %");
}

fn single_results_differ_without_a_verdict(context: &Context) {
    let scratch = Scratch::new("single");
    let [a, b] = [("a.json", "-n 40 -t1 -c2", FAST), ("b.json.gz", "-n 40 -t1 -c2", SLOW)]
        .map(|run| single(context, &scratch, run));
    for (a, b) in [(a.clone(), b.clone()), (a.with_extension("txt"), b.with_extension("txt"))] {
        let output = compared(context, "", &[&a, &b]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        let verdict = "no verdict: B is 90 % slower, but one run per side gives no measure of noise";
        assert_eq!(output.line("no verdict: "), Some(verdict), "{output:?}");
    }
    let judged = compared(context, "--fail-if-worse 95", &[&a, &b]);
    assert_eq!(judged.code, 6, "{judged:?}");
    judged.note("cannot tell whether the metric that decides is worse by more than 95 %: one run per side");
    let piped = context.onrush().word("compare").word(&a).word("-").stdin(&fs::read(&b).unwrap()).run_plain();
    assert!(piped.code == 0 && piped.stdout.contains("requests/s "), "{piped:?}");
}

fn error_pages_are_not_faster(context: &Context) {
    let pages = "answer = \"HTTP/1.1 500 Internal Server Error\\r\\nContent-Length: 0\\r\\n\\r\\n\"";
    let scratch = Scratch::new("pages");
    let [a, b] = [("a.json", "-n 40 -t1 -c2", FAST), ("b.json", "-n 40 -t1 -c2", pages)]
        .map(|run| single(context, &scratch, run));
    let output = compared(context, "", &[&a, &b]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        output.line("no verdict: "),
        Some("no verdict: the shares of responses with an unsuccessful status differ (A 0 of 40, B 40 of 40)"),
        "{output:?}"
    );
    assert!(!output.stdout.contains("faster"), "{output:?}");
}

fn incomparable_results_are_named_with_code_1(context: &Context) {
    let scratch = Scratch::new("uncompared");
    let [a, b] = [("a.json", "-n 50 -t1 -c2", FAST), ("b.json", "-n 50 -t2 -c4", FAST)]
        .map(|run| single(context, &scratch, run));
    let half = scratch.file("half.json", &fs::read(&a).unwrap()[..400]);
    let sum = scratch.path().join("sum.json");
    let merge = context.onrush().words("merge --force -o").word(&sum).word(&a).word(&b).run_plain();
    assert_eq!(merge.code, 0, "{merge:?}");
    let nowhere = format!("{}:b", a.display());
    for (other, words) in [
        (b.as_path(), "threads is 2 instead of 1"),
        (&half, "half.json"),
        (&sum, "is the sum of 2 runs"),
        (Path::new(&nowhere), "is called \"b\""),
        (scratch.path(), "on both sides"),
    ] {
        let output = compared(context, "", &[&a, other]);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        output.note(words);
    }
    assert_eq!(compared(context, "--force", &[&a, &b]).code, 0);
    assert_eq!(compared(context, "", &[&a, &a]).code, 1);

    // Without arguments, the message lists the files in this folder, except for the sum and a damaged file.
    let unnamed = |folder: &Path| {
        let output = context
            .onrush()
            .words("compare")
            .with(|command| {
                command.current_dir(folder);
            })
            .run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        output.stderr
    };
    let start = "onrush compare: name two results, or an experiment's folder; ";
    assert_eq!(unnamed(scratch.path()), format!("{start}here for instance onrush compare a.json b.json\n"));
    fs::create_dir_all(scratch.path().join("onrush-results/20261124-085200-vs")).unwrap();
    scratch.file("onrush-results/20261124-085200-vs/plan.toml", "");
    assert_eq!(
        unnamed(scratch.path()),
        format!(
            "{start}here for instance onrush compare onrush-results/20261124-085200-vs, or onrush compare a.json b.json\n"
        )
    );
    assert_eq!(
        unnamed(Scratch::new("nothing").path()),
        format!(
            "{start}onrush -o before.json URL makes a result, and onrush vs URL_A URL_B measures two targets in turns\n"
        )
    );
}
