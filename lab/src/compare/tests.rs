//! Comparisons of files and folders: runs found, pairs, and refusals.

use std::fs;
use std::time::Duration;

use onrush_load::fixtures as reported;
use onrush_load::record::ledger::FailureSum;
use onrush_load::record::{Document, RunFacts, RunResult};
use onrush_plan::{Dialect, Metric, Order, Plan, Position};
use onrush_stats::{Distribution, Errors, Statuses};
use tempfile::TempDir;

use super::fixtures::runs_of_two_targets;
use super::*;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/server.txt");

fn compare(inputs: &[PathBuf]) -> Compare {
    Compare { inputs: inputs.to_vec(), force: false, limits: Vec::new(), form: ComparisonForm::Text }
}

fn run_comparison(inputs: &[PathBuf]) -> PrintedComparison {
    compare_files(&compare(inputs))
}

fn plan(url: &str, connections: u32) -> Plan {
    reported::plan(Dialect::Native, url, 1, 1, connections)
}

/// A result with this many responses in one second.
fn result(plan: &Plan, completed: u64) -> Document {
    let mut outcome = reported::flawless(completed, 10);
    outcome.elapsed = Duration::from_secs(1);
    Document::judged(plan, &reported::fill_from_latencies(outcome))
}

/// Writes results into a new folder.
fn write_documents(documents: &[(&str, Document)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, document) in documents {
        fs::write(folder.path().join(name), document.to_json()).unwrap();
    }
    folder
}

/// The named documents of an experiment with these rates, after an optional change.
fn experiment(a: &[f64], b: &[f64], change: impl Fn(&mut Position)) -> Vec<(String, Document)> {
    let documents = runs_of_two_targets(a, b).into_iter().enumerate().map(|(index, run)| {
        let mut position = run.position.clone().unwrap();
        let url = format!("http://{}/", position.levels[0].level);
        let document = result(&plan(&url, 10), run.value(Metric::Rate).unwrap() as u64);
        change(&mut position);
        let document = reported::with_facts(document, |facts| facts.experiment = Some(position));
        (format!("{index}.json"), document)
    });
    documents.collect()
}

/// The other document, at the position of this one.
fn at_position(document: &Document, other: Document) -> Document {
    reported::with_facts(other, |facts| facts.experiment.clone_from(&document.experiment))
}

fn folder_of(documents: &[(String, Document)]) -> TempDir {
    let documents: Vec<_> = documents.iter().map(|(name, document)| (name.as_str(), document.clone())).collect();
    write_documents(&documents)
}

#[test]
fn runs_are_named_by_their_files() {
    let run = |completed| result(&plan("http://a/", 10), completed);
    let files = [
        ("new-1.json", run(1_100)),
        ("new-2.json", run(1_200)),
        ("old-1.json", run(1_000)),
        ("old-2.json", run(1_050)),
    ];
    let folder = write_documents(&files);
    let of = |labels: [&str; 2]| {
        run_comparison(&labels.map(|label| PathBuf::from(format!("{}:{label}", folder.path().display())))).text
    };
    assert!(of(["old", "new"]).starts_with("A = old (2 runs), B = new (2 runs), not in rounds\n"));
    assert!(of(["old-2", "new-1"]).starts_with("A = old-2 (1 run), B = new-1 (1 run), not in rounds\n"));
}

const A: [f64; 6] = [1_000.0, 1_100.0, 1_050.0, 1_020.0, 1_080.0, 1_010.0];
const B: [f64; 6] = [1_110.0, 1_200.0, 1_170.0, 1_120.0, 1_190.0, 1_120.0];

#[test]
fn experiment_rounds_are_pairs() {
    let results = folder_of(&experiment(&A, &B, |_| ()));
    let PrintedComparison { text, said, exit } = compare_folder(results.path());
    assert_eq!((exit, said), (0, Vec::new()), "{text}");
    assert!(text.starts_with("A = A, B = B: 6 rounds of \"test\", interleaved\n"), "{text}");
    assert!(text.contains("\nB is 10 % faster (95 %: 8.4 … 12 %)\n"), "{text}");
    let labelled = ["A", "target=B"].map(|label| PathBuf::from(format!("{}:{label}", results.path().display())));
    assert_eq!(run_comparison(&labelled).text.replace("target=B", "B"), text);
}

#[test]
fn failed_rounds_are_left_out_and_counted() {
    let fail = |position: &mut Position| {
        if (position.round, position.levels[0].index) == (2, 1) {
            position.failed = Some("the hook said 7".to_owned());
        }
    };
    let mut documents = experiment(&A, &B, fail);
    documents[2].1 = reported::with_facts(documents[2].1.clone(), |facts| facts.interrupted = true);
    documents[9].1 = at_position(&documents[9].1, result(&plan("http://B/", 10), 0));
    let PrintedComparison { text, said, exit } = compare_folder(folder_of(&documents).path());
    assert!(text.starts_with("A = A, B = B: 3 rounds of \"test\", interleaved, 3 rounds left out\n"), "{text}");
    for words in ["1.json: the hook said 7", "2.json: it was interrupted", "9.json: no response"] {
        assert!(said.iter().any(|line| line.contains("left out") && line.contains(words)), "{said:?}");
    }
    assert_eq!((exit, said.len()), (0, 3));
}

#[test]
fn repeated_runs_count_once() {
    let mut documents = experiment(&A, &B, |_| ());
    let mut failed = reported::with_received_bytes(documents[3].1.clone(), 1);
    failed.mark_as_failed(Some("no"));
    documents.push(("99.json".to_owned(), failed));
    let PrintedComparison { text, .. } = compare_folder(folder_of(&documents).path());
    assert!(text.starts_with("A = A, B = B: 6 rounds of \"test\", interleaved\n"), "{text}");
}

#[test]
fn unpaired_runs_are_groups_with_drift_named() {
    let results = folder_of(&experiment(&A, &B, |position| position.order = Order::Sequential));
    let PrintedComparison { text, said, .. } = compare_folder(results.path());
    assert!(text.starts_with("A = A (6 runs), B = B (6 runs), not in rounds\n"), "{text}");
    assert!(said.iter().any(|line| line.contains("is not cancelled")), "{said:?}");
    assert!(text.contains("\nB is 10 % faster (95 %: 4.3 … 17 %)\n"), "{text}");
}

#[test]
fn single_runs_have_no_verdict() {
    let results =
        [("a.json", result(&plan("http://a/", 10), 1_000)), ("b.json", result(&plan("http://b/", 10), 1_200))];
    let folder = write_documents(&results);
    let inputs = ["a.json", "b.json"].map(|name| folder.path().join(name));
    let PrintedComparison { text, said, exit } = run_comparison(&inputs);
    assert_eq!((exit, said), (0, Vec::new()), "{text}");
    assert!(text.contains("no verdict: B is 20 % faster, but one run per side gives no measure of noise"), "{text}");
    let limits = vec![RegressionLimit { metric: None, share: 0.0 }];
    let PrintedComparison { said, exit, .. } = compare_files(&Compare { limits, ..compare(&inputs) });
    assert!(exit == 6 && said[0].starts_with("cannot tell whether "), "{said:?}");
}

#[test]
fn regressions_exit_with_3() {
    let folder = folder_of(&experiment(&B, &A, |_| ()));
    let with = |share| {
        let limits = vec![RegressionLimit { metric: None, share }];
        compare_files(&Compare { limits, ..compare(&[folder.path().to_path_buf()]) })
    };
    let PrintedComparison { said, exit, .. } = with(0.05);
    assert!(exit == 3 && said[0].contains("requests/s of B is worse by more than 5.0 %"), "{said:?}");
    assert_eq!((with(0.2).exit, with(0.2).said), (0, Vec::new()));
}

#[test]
fn plans_may_differ_in_one_thing() {
    let mut more = plan("http://b/", 10);
    more.load.threads = 2;
    let one = result(&plan("http://a/", 10), 1_000);
    let folder = write_documents(&[("a.json", one), ("b.json", result(&more, 1_200))]);
    let inputs = ["a.json", "b.json"].map(|name| folder.path().join(name));
    let PrintedComparison { text, said, exit } = run_comparison(&inputs);
    assert_eq!((text.as_str(), exit), ("", 1));
    assert!(said[0].contains("threads is 2 instead of 1") && said[0].contains("url is"), "{said:?}");
    let PrintedComparison { text, exit, .. } = compare_files(&Compare { force: true, ..compare(&inputs) });
    assert!(exit == 0 && text.contains("B is 20 % faster"), "{text}");
}

#[test]
fn sides_with_several_plans_are_refused() {
    let of_plan = |connections| result(&plan("http://a/", connections), 1_000 + u64::from(connections));
    let folder = write_documents(&[("a1.json", of_plan(10)), ("a2.json", of_plan(20))]);
    let other = write_documents(&[("b.json", result(&plan("http://a/", 10), 900))]);
    let PrintedComparison { said, exit, .. } =
        run_comparison(&[folder.path().to_path_buf(), other.path().to_path_buf()]);
    assert!(exit == 1 && said[0].contains("a2.json\" has a different plan from the rest"), "{said:?}");
}

#[test]
fn differing_failure_shares_leave_no_verdict() {
    let mut documents = experiment(&A, &B, |_| ());
    for (_, document) in documents.iter_mut().skip(6) {
        let completed = document.requests.completed;
        *document = reported::rebuilt(document.clone(), |result| {
            let failures = Errors { status: completed, ..Errors::default() };
            result.sums.totals.statuses = Statuses::default();
            (0..completed).for_each(|_| result.sums.totals.statuses.record(500));
            result.sums.totals.counters.unsuccessful = completed;
            (result.sums.errors, result.runs[0].rows[0].errors) = (failures, failures);
            result.sums.ledger = vec![FailureSum { count: completed, ..FailureSum::default() }];
        });
    }
    let PrintedComparison { text, .. } = compare_folder(folder_of(&documents).path());
    assert!(
        text.contains("\nno verdict: the shares of responses with an unsuccessful status differ (A 0 %, B 100 %)\n"),
        "{text}"
    );
    assert!(!text.contains("faster"), "{text}");
}

#[test]
fn under_a_rate_the_99th_percentile_decides() {
    let mut documents = experiment(&[1_000.0; 5], &[1_000.0; 5], |_| ());
    let mut plan = plan("http://a/", 10);
    plan.schedule = Some(reported::schedule(1_000));
    for (index, (_, document)) in documents.iter_mut().enumerate() {
        let mut outcome = reported::flawless(10_000, 10);
        let open_loop = outcome.totals.open_loop.get_or_insert_default();
        let slow = [1_000, 1_030, 980, 1_010, 1_000][index % 5] * if index < 5 { 100 } else { 88 };
        (0..10_000).for_each(|request| {
            open_loop.record_response(if request % 50 == 0 { slow * 1_000 } else { 1_000 }, 1_000, false)
        });
        open_loop.lateness.record_many(1_000, 10_000);
        open_loop.due = 10_000;
        let of_rate = reported::with_received_bytes(
            Document::judged(&plan, &reported::fill_from_latencies(outcome)),
            index as u64,
        );
        *document = at_position(document, of_rate);
    }
    let PrintedComparison { text, said, .. } = compare_folder(folder_of(&documents).path());
    assert!(text.contains("\np99 of B is 12 % lower (95 %: 12 … 12 %)\n"), "{text}{said:?}");
    assert!(text.contains("\nexploratory (not part of the verdict):\nrequests/s "), "{text}");
    assert!(!text.contains("p99.9 "), "two of ten thousand are beyond\n{text}");

    // B is so slow that it has too few responses for a percentile.
    for (index, (_, document)) in documents.iter_mut().enumerate().skip(5) {
        let mut outcome = reported::flawless(1_000, 10);
        let open_loop = outcome.totals.open_loop.get_or_insert_default();
        (0..1_000).for_each(|_| open_loop.record_response(1_000_000, 1_000, false));
        (open_loop.due, open_loop.unsent) = (10_000, 9_000);
        open_loop.censored.record_many(5_000_000_000, 9_000);
        open_loop.open.get_or_insert_default().record_many(5_000_000_000, 9_000);
        open_loop.lateness.record_many(1_000, 1_000);
        let slow = reported::with_received_bytes(
            Document::judged(&plan, &reported::fill_from_latencies(outcome)),
            10 + index as u64,
        );
        *document = at_position(document, slow);
    }
    let PrintedComparison { text, said, .. } = compare_folder(folder_of(&documents).path());
    let words = "no verdict: B got 10,000 responses/s, but 100,000 requests/s were due: latencies that grow with ";
    assert!(text.contains(words), "{text}{said:?}");
}

#[test]
fn several_status_classes_are_compared_separately() {
    const REDIRECTS: u64 = 100;
    let mut documents = experiment(&A, &B, |_| ());
    for (index, (_, document)) in documents.iter_mut().enumerate() {
        let (completed, success_ns) = (3 * document.requests.completed, if index < 6 { 1_000_000 } else { 1_500_000 });
        let mut outcome = reported::flawless(completed, 10);
        outcome.elapsed = Duration::from_secs(1);
        let totals = &mut outcome.totals;
        totals.latency = Distribution::new();
        totals.latency.record_many(success_ns, completed - REDIRECTS);
        totals.latency.record_many(50_000_000, REDIRECTS);
        let mut outcome = reported::fill_from_latencies(outcome);
        outcome.totals.statuses = Statuses::default();
        (0..completed - REDIRECTS).for_each(|_| outcome.totals.statuses.record(200));
        for _ in 0..REDIRECTS {
            outcome.totals.statuses.record(302);
            outcome.totals.by_class.get_or_insert_default().record(302, 50_000_000);
        }
        let plan = plan(&format!("http://{}/", index / 6), 10);
        let both = reported::with_received_bytes(Document::judged(&plan, &outcome), 10 + index as u64);
        *document = at_position(document, both);
    }
    let folder = folder_of(&documents);
    let judged = |metric: &str| {
        let limits = vec![RegressionLimit { metric: metric.parse().ok(), share: 0.1 }];
        compare_files(&Compare { limits, ..compare(&[folder.path().to_path_buf()]) })
    };
    let ratios = |text: &str| -> Vec<(String, String)> {
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let of_classes = rows.filter(|cells| cells.first().is_some_and(|name| name.ends_with("xx")));
        of_classes.map(|cells| (cells[0].to_owned(), cells[3].to_owned())).collect()
    };
    let expected = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
        rows.iter().map(|(name, ratio)| ((*name).to_owned(), (*ratio).to_owned())).collect()
    };
    let usual = [("p50.2xx", "1.500"), ("p99.2xx", "1.500"), ("p50.3xx", "1.000")];
    let PrintedComparison { text, said, exit } = judged("p99.2xx");
    assert_eq!((ratios(&text), exit), (expected(&usual), 3), "{text}{said:?}");
    assert!(said[0].contains("p99.2xx of B is worse by more than 10 %"), "{said:?}");
    let PrintedComparison { text, said, exit } = judged("mean.3xx");
    assert_eq!((ratios(&text), exit), (expected(&[&usual[..2], &[("mean.3xx", "1.000")], &usual[2..]].concat()), 0));
    assert_eq!(said, Vec::<String>::new());
    for few in ["p99.3xx", "mean.5xx"] {
        let PrintedComparison { text, said, exit } = judged(few);
        assert_eq!((ratios(&text), exit), (expected(&usual), 6), "{few}");
        assert!(said[0].contains("fewer than 20 values above it, or was not recorded"), "{said:?}");
    }
}

#[test]
fn texts_are_compared_as_groups() {
    let label = |label: &str| PathBuf::from(format!("{SERVER}:{label}"));
    let PrintedComparison { text, said, exit } = run_comparison(&[
        label("After switching HTTP responses to binary strings"),
        label("after patching a bug where the length of C strings had to be calculated before being returned"),
    ]);
    assert_eq!(exit, 0, "{said:?}");
    assert!(text.contains("no verdict"), "{text}");
}

#[test]
fn incomparable_runs_are_named() {
    let document = || result(&plan("http://a/", 10), 1_000);
    let folder = write_documents(&[
        ("a.json", document()),
        ("copy.json", document()),
        ("b.json", result(&plan("http://b/", 10), 9)),
    ]);
    let path = |name: &str| folder.path().join(name);
    fs::write(path("half.json"), &document().to_json()[..500]).unwrap();
    fs::write(path("old.json"), document().to_json().replacen("\"schema\": 4", "\"schema\": 0", 1)).unwrap();
    fs::write(path("search.json"), "{\"schema\": 1, \"kind\": \"search\"}").unwrap();
    let both = [document(), result(&plan("http://a/", 10), 2_000)].map(|it| ("x".to_owned(), *it.result));
    let sum = Document::from_result(RunResult::sum(both).unwrap());
    fs::write(path("sum.json"), sum.to_json()).unwrap();
    fs::create_dir(path("empty")).unwrap();
    let labelled = path("a.json:nothing");
    for (other, words) in [
        (path("half.json"), "half.json\" is "),
        (path("old.json"), "has schema 0"),
        (path("search.json"), "the document of a search"),
        (path("sum.json"), "is the sum of 2 runs and"),
        (path("none.json"), "none.json\" cannot be read: "),
        (path("empty"), "none of its files ends with .json"),
        (path("a.json"), "a.json\" is on both sides"),
        (path("copy.json"), "hold the same run"),
        (labelled, "is called \"nothing\"; did you mean \"a\"?"),
    ] {
        let PrintedComparison { text, said, exit } = run_comparison(&[path("a.json"), other.clone()]);
        assert_eq!((text.as_str(), exit), ("", 1), "{other:?}: {said:?}");
        assert!(said.iter().any(|line| line.contains(words)), "{other:?}: {said:?}");
        let is_sum = other.ends_with("sum.json");
        assert_eq!(said.iter().any(|line| line.contains("has no runs")), is_sum, "{other:?}: {said:?}");
    }
    let PrintedComparison { said, exit, .. } = run_comparison(&[path("b.json")]);
    assert!(exit == 1 && said[0].contains("no run is part of an experiment"), "{said:?}");
}

#[test]
fn runs_of_two_experiments_are_not_mixed() {
    let mut documents = experiment(&A, &B, |_| ());
    let other = |facts: &mut RunFacts| facts.experiment.as_mut().unwrap().id = "2".to_owned();
    documents[3].1 = reported::with_facts(documents[3].1.clone(), other);
    let PrintedComparison { said, exit, .. } = compare_folder(folder_of(&documents).path());
    assert!(exit == 1 && said[0].contains("runs of two experiments"), "{said:?}");
}
