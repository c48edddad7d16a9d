//! Comparing saved results: experiments, single runs, texts, and refusals.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Context, Output, Scratch, cases, target, url};

cases! {
    the_rounds_of_an_experiment_are_compared;
    a_slower_target_fails_where_it_may_not_be_slower;
    single_results_and_texts_have_a_difference_and_no_verdict;
    error_pages_are_not_faster;
    what_cannot_be_compared_is_named_and_exits_with_1;
}

/// Measures two targets in turns, the second one ten times as slow; returns the folder.
fn experiment(context: &Context, scratch: &Scratch) -> PathBuf {
    let (server, folder) = (target(), scratch.path().join("e"));
    let [a, b] = ["/delay/5", "/delay/50"].map(|path| url(&server, path));
    let command = context.onrush().words("vs --rounds 6 -n 40 --warmup 10ms -t1 -c4 --io").word(context.backend);
    let output = command.word("--out").word(&folder).word(a).word(b).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    folder
}

fn compared(context: &Context, words: &str, paths: &[&Path]) -> Output {
    let command = context.onrush().word("compare").words(words);
    paths.iter().fold(command, |command, path| command.word(path)).run_plain()
}

fn single(context: &Context, scratch: &Scratch, name: &str, words: &str, url: &str) -> PathBuf {
    let path = scratch.path().join(name);
    let command = context.onrush().words(words).words("--io").word(context.backend);
    let output = command.word("-o").word(&path).word(url).run_plain();
    fs::write(path.with_extension("txt"), &output.stdout).unwrap();
    assert_eq!(output.code, 0, "{output:?}");
    path
}

fn the_rounds_of_an_experiment_are_compared(context: &Context) {
    let scratch = Scratch::new("compared");
    let folder = experiment(context, &scratch);
    let output = compared(context, "", &[&folder]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.line("A = http://").is_some_and(|line| line.ends_with("6 rounds of \"vs\", interleaved")),
        "{output:?}"
    );
    // On a busy machine, onrush itself was the limit of some runs.
    let verdict = output.line("B is ").or(output.line("no verdict: onrush itself was the limit in "));
    let is_expected = |line: &str| line.starts_with("no") || line.contains("% slower (95 %: ");
    assert!(verdict.is_some_and(is_expected), "{output:?}");
    assert!(output.line("p50 ").is_some() && output.line("rank test").is_some(), "{output:?}");
    // Its sides can be named, and exchanged.
    let [a, b] = ["url1", "url2"].map(|label| format!("{}:{label}", folder.display()));
    let output = compared(context, "--format json", &[Path::new(&b), Path::new(&a)]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let at = |pointer: &str| document.pointer(pointer).unwrap_or_else(|| panic!("{pointer}: {document:#}"));
    assert_eq!((at("/comparisons/0/paired"), at("/comparisons/0/a/runs")), (&Value::from(true), &Value::from(6)));
    assert_eq!(at("/comparisons/0/metrics/0/metric"), "rate");
    let ratio = at("/comparisons/0/metrics/0/ratio").as_f64().unwrap();
    assert!(ratio > 2.0, "{ratio}");
    let schema: Value = serde_json::from_str(include_str!("../../docs/comparison.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    assert!(validator.is_valid(&document), "{document:#}");
}

fn a_slower_target_fails_where_it_may_not_be_slower(context: &Context) {
    let scratch = Scratch::new("worse");
    let folder = experiment(context, &scratch);
    forget_limits(&folder);
    let output = compared(context, "--fail-if-worse 10 --fail-if-worse p50:100000", &[&folder]);
    assert_eq!(output.code, 3, "{output:?}");
    output.note("requests/s of B is worse by more than 10 %");
    assert!(!output.stderr.contains("p50 of B is worse"), "{output:?}");
    assert_eq!(compared(context, "--fail-if-worse 99.9", &[&folder]).code, 0);
}

/// Removes the verdicts from results: on a busy machine onrush itself is the limit, and then nothing counts as worse.
fn forget_limits(folder: &Path) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if let Ok(Value::Object(mut document)) = serde_json::from_str(&text) {
            document.remove("verdict");
            fs::write(&path, Value::Object(document).to_string()).unwrap();
        }
    }
}

fn single_results_and_texts_have_a_difference_and_no_verdict(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("single"));
    let [a, b] = [("a.json", "/delay/4"), ("b.json.gz", "/delay/40")]
        .map(|(name, path)| single(context, &scratch, name, "-n 40 -t1 -c2", &url(&server, path)));
    for (a, b) in [(a.clone(), b.clone()), (a.with_extension("txt"), b.with_extension("txt"))] {
        let output = compared(context, "", &[&a, &b]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        // On a busy machine onrush itself was the limit.
        let verdict = output.line("no verdict: ");
        let is_expected = |line: &str| {
            line.starts_with("no verdict: onrush itself was the limit in ")
                || line.ends_with("% slower, but one run per side gives no measure of noise")
        };
        assert!(verdict.is_some_and(is_expected), "{output:?}");
    }
    let piped = context.onrush().word("compare").word(&a).word("-").stdin(&fs::read(&b).unwrap()).run_plain();
    assert!(piped.code == 0 && piped.stdout.contains("requests/s "), "{piped:?}");
}

fn error_pages_are_not_faster(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("pages"));
    let [a, b] = [("a.json", "/delay/4"), ("b.json", "/status/500")]
        .map(|(name, path)| single(context, &scratch, name, "-n 40 -t1 -c2", &url(&server, path)));
    let output = compared(context, "", &[&a, &b]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        output.line("no verdict: "),
        Some("no verdict: the shares of responses with a status of 400 or more differ (A 0 %, B 100 %)"),
        "{output:?}"
    );
    assert!(!output.stdout.contains("faster"), "{output:?}");
}

fn what_cannot_be_compared_is_named_and_exits_with_1(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("uncompared"));
    let of = |name: &str, words: &str, path: &str| single(context, &scratch, name, words, &url(&server, path));
    let a = of("a.json", "-n 50 -t1 -c2", "/");
    let b = of("b.json", "-n 50 -t2 -c4", "/");
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
}
