//! Tests of tables of published results, and of onrush's own.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use onrush_load::fixtures;
use onrush_load::record::result::{StageFacts, StageSum};
use onrush_load::record::{Document, RunResult};
use onrush_load::report;
use onrush_load::report::form;
use onrush_load::run::Outcome;
use onrush_plan::{Dialect, FactorLevel, Order, Plan, Position};
use onrush_stats::{Cause, Distribution, Phase};
use tempfile::TempDir;

use onrush_plan::column::is_column;

use super::*;

/// Runs with and without averages, from a script: three runs for each of seven settings.
const BUFFERS: &str = include_str!("../../../../tests/fixtures/buffers.md");
/// Two rounds on two machines, from three places, with two loads.
const PROXY: &str = include_str!("../../../../tests/fixtures/proxy.txt");

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn table(inputs: Vec<PathBuf>) -> TableOptions {
    TableOptions { inputs, by: None, columns: Columns::WrkCmm, sort: None, form: TableForm::Markdown }
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn columns(names: &[&str]) -> Columns {
    Columns::Named(names.iter().map(|name| (*name).to_owned()).collect())
}

/// The rows of a table, cell by cell.
fn cells(table: &str) -> Vec<Vec<String>> {
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches(['|', ' ']).split(" | ").map(str::to_owned).collect()).collect()
}

/// The table printed by the script.
fn published() -> &'static str {
    let begin = BUFFERS.find("| rmem_max |").unwrap();
    BUFFERS[begin..].split("\n```").next().unwrap()
}

/// Folder of the same experiment, with the files in another order.
fn experiment() -> TempDir {
    let folder = TempDir::new().unwrap();
    for row in cells(published()).iter().filter(|row| row[2] != "avg").rev() {
        let name = format!("buffertest-rmem_max-{}-wmem_max-{}-{}.json", row[0], row[1], row[2]);
        let percentiles = ["50", "75", "90", "99", "99.999"].iter().zip(&row[8..]);
        let latencies = percentiles
            .map(|(percent, us)| format!("{{\"percentile\": {percent}, \"latency_in_microseconds\": {us}}}"))
            .collect::<Vec<_>>();
        let text = format!(
            "{{\"requests\": {}, \"duration_in_microseconds\": {}, \"bytes\": {}, \"requests_per_sec\": {}, \
             \"bytes_transfer_per_sec\": {}, \"latency_distribution\": [{}]}}",
            row[3],
            row[4],
            row[5],
            row[6],
            row[7],
            latencies.join(", ")
        );
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// A figure with at most two decimals, in hundredths.
fn hundredths(text: &str) -> i64 {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{decimals:0<2}").parse().unwrap()
}

#[test]
fn old_script_tables_are_reproduced() {
    let folder = experiment();
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Shell order: 16777216 is before 262144.
    files.sort();
    let PrintedTable { text, said } = run(&table(files));
    let (first, second) = text.split_once("\n\n").unwrap();
    assert!(second.starts_with("| rmem_max | wmem_max | runs | median_requests_per_sec |"), "{second}");
    assert!(matches!(&said[..], [only] if only.contains("histogram")), "{said:?}");
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (first.lines().collect(), published().lines().collect());
    assert_eq!((ours.len(), &ours[..2]), (theirs.len(), &theirs[..2]));
    let (ours, theirs) = (cells(first), cells(published()));
    for (index, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        if our[2] != "avg" {
            assert_eq!(our, their);
            continue;
        }
        assert_eq!(our[..3], their[..3]);
        for column in 3..our.len() {
            let sum: i64 = ours[index - 3..index].iter().map(|row| hundredths(&row[column])).sum();
            // The script truncates averages; onrush rounds them.
            assert_eq!(hundredths(&their[column]), sum / 3, "{their:?}");
            assert_eq!(hundredths(&our[column]), (2 * sum + 3) / 6, "{our:?}");
        }
    }
}

#[test]
fn published_summaries_need_one_command() {
    let by = names(&["section", "threads", "connections", "host"]);
    let columns = columns(&["mean_us", "requests_per_sec"]);
    let PrintedTable { text, .. } = run(&TableOptions { by, columns, ..table(vec![fixture("proxy.txt")]) });
    let mut found = Vec::new();
    for row in cells(&text).chunks(3) {
        assert_eq!([row[0][4].as_str(), row[1][4].as_str(), row[2][4].as_str()], ["1", "2", "avg"]);
        let ms = |cell: &str| format!("{:.2}ms", cell.parse::<f64>().unwrap() / 1e3);
        let host = row[0][3].trim_start_matches('[').split(' ').next().unwrap();
        found.push(format!(
            "{}:|{} threads and {} connections:|{host}: Latency {}, {} Requests/sec: {}, {}",
            row[0][0],
            row[0][1],
            row[0][2],
            ms(&row[0][5]),
            ms(&row[1][5]),
            row[0][6],
            row[1][6]
        ));
    }
    let (mut section, mut load, mut expected) = (String::new(), String::new(), Vec::new());
    for line in PROXY.split_once("Summary:").unwrap().1.lines().skip(2).filter(|line| !line.is_empty()) {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match line {
            line if line.starts_with("Run") => section = words,
            line if line.ends_with("connections:") => load = words,
            _ => expected.push(format!("{section}|{load}|{words}")),
        }
    }
    assert_eq!((found.len(), found), (12, expected));
}

/// A result of onrush with these latencies.
fn result(latencies_us: impl Iterator<Item = u64>) -> Document {
    let plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 1, 10);
    let mut outcome = fixtures::flawless(1_000, 10);
    outcome.totals.latency = Distribution::new();
    latencies_us.for_each(|us| outcome.totals.latency.record(us * 1_000));
    Document::judged(&plan, &fixtures::fill_from_latencies(outcome))
}

#[test]
fn merged_percentiles_cover_all_requests() {
    let folder = TempDir::new().unwrap();
    // The average of the two medians is 5,050.
    let runs = [("x-1.json", result((0..1_000).map(|_| 100))), ("x-2.json", result((0..10).map(|_| 10_000)))];
    for (name, document) in runs {
        fs::write(folder.path().join(name), document.to_json()).unwrap();
    }
    let PrintedTable { text, said } = run(&table(vec![folder.path().to_owned()]));
    assert_eq!(said, Vec::<String>::new());
    let (first, second) = text.split_once("\n\n").unwrap();
    assert_eq!(cells(first)[2][6], "5050.00", "{first}");
    let heads: Vec<&str> = second.lines().next().unwrap().trim_matches(['|', ' ']).split(" | ").collect();
    let at = |name: &str| heads.iter().position(|head| *head == name).unwrap();
    let row = &cells(second)[0];
    assert_eq!((row[at("runs")].as_str(), row[at("50% latency")].as_str()), ("2", "100"));
    assert!((9_950..=10_050).contains(&row[at("99.999% latency")].parse::<u64>().unwrap()), "{second}");
}

#[test]
fn only_like_runs_are_averaged() {
    let PrintedTable { text, .. } = run(&table(vec![fixture("server.txt"), fixture("guard.md")]));
    assert!(text.starts_with("| name | label | url | threads | connections | run |"), "{text}");
    assert!(!text.contains("| avg |"), "{text}");
}

/// A folder with these results, and their files.
fn saved(results: &[(&str, Document)]) -> (TempDir, Vec<PathBuf>) {
    let folder = TempDir::new().unwrap();
    let write = |(name, document): &(&str, Document)| {
        let path = folder.path().join(name);
        fs::write(&path, document.to_json()).unwrap();
        path
    };
    let paths = results.iter().map(write).collect();
    (folder, paths)
}

/// A result of onrush with this rate.
fn paced(per_s: u64) -> Document {
    let mut plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 1, 10);
    plan.schedule = Some(fixtures::schedule(per_s));
    let plan = Document::judged(&plan, &fixtures::flawless(1_000, 10)).plan;
    fixtures::rebuilt(result(0..10), |result| result.plan = plan)
}

#[test]
fn urls_that_share_a_host_are_not_averaged() {
    let other = "http://127.0.0.1:8080/other".to_owned();
    let other = fixtures::rebuilt(result(0..10), |result| result.plan.url = other);
    let (_folder, paths) = saved(&[("x-1.json", result(0..10)), ("x-2.json", other)]);
    let text = run(&table(paths)).text;
    assert!(text.starts_with("| url | run | requests |") && !text.contains("| avg |"), "{text}");
}

#[test]
fn tools_are_not_averaged() {
    let (folder, mut paths) = saved(&[("x-1.json", result(0..10))]);
    let document = result(0..10);
    let report = format!(
        "Running 1s test @ {}\n  1 threads and 10 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
         Latency   1.00ms  1.00ms   1.00ms    85.79%\n  10 requests in 1.00s, 24.07MB read\nRequests/sec:     10.00\n\
         Transfer/sec:    820.70KB\n",
        document.plan.url
    );
    paths.push(folder.path().join("x-2.log"));
    fs::write(&paths[1], report).unwrap();
    let text = run(&table(paths)).text;
    assert!(text.starts_with("| tool | run | requests |") && !text.contains("| avg |"), "{text}");
}

#[test]
fn rates_resembling_run_numbers_stay_apart() {
    let (_folder, paths) = saved(&[("x-1000.json", paced(1_000)), ("x-100.json", paced(100))]);
    let text = run(&table(paths)).text;
    assert!(text.starts_with("| rate | run | requests |") && !text.contains("| avg |"), "{text}");
    let rates: Vec<String> = cells(&text).into_iter().map(|mut row| row.remove(0)).collect();
    assert_eq!(rates, ["100", "1000"]);
}

#[test]
fn rates_have_all_stages() {
    let document = fixtures::rebuilt(paced(100), |result| {
        let stages = &mut result.plan.schedule.as_mut().unwrap().stages;
        stages[0].length_s = Some(10.0);
        stages.push(stages[0].clone());
        stages[1].to_per_s = 250.5;
    });
    let (_folder, paths) = saved(&[("x-1.json", document)]);
    let text = run(&TableOptions { columns: columns(&["rate"]), ..table(paths) }).text;
    assert_eq!(cells(&text), [["1", "10s:100,10s:100..250.5"]]);
}

#[test]
fn factors_win_over_fields() {
    let [one, other] = [("x-rate-9-1.json", 1), ("x-rate-10-1.json", 2)]
        .map(|(name, bytes_received)| (name, fixtures::with_received_bytes(result(0..10), bytes_received)));
    let (_folder, paths) = saved(&[other, one]);
    let text = run(&table(paths.clone())).text;
    assert!(text.starts_with("| rate | run | requests |"), "{text}");
    assert_eq!([&cells(&text)[0][0], &cells(&text)[1][0]], ["9", "10"]);
    let csv =
        run(&TableOptions { by: names(&["host"]), form: TableForm::Csv, columns: Columns::Short, ..table(paths) }).text;
    let heads = csv.lines().next().unwrap().split(',').filter(|head| *head == "rate").count();
    assert_eq!(heads, 1, "{csv}");
}

#[test]
fn latencies_of_two_kinds_are_not_averaged() {
    let (_folder, paths) = saved(&[("x-1.json", result(0..10)), ("x-2.json", paced(100))]);
    let text = run(&table(paths.clone())).text;
    assert!(text.starts_with("| rate | run | requests |") && !text.contains("| avg |"), "{text}");
    let together = TableOptions { by: names(&["host"]), ..table(paths) };
    let PrintedTable { text, said } = run(&together);
    assert!(matches!(&said[..], [only] if only.ends_with("add rate and tool to --by")), "{said:?}");
    let average = cells(&text).into_iter().find(|row| row[1] == "avg").unwrap();
    // Empty cells at the end have been trimmed.
    assert_eq!((average[2].as_str(), average.len()), ("10.00", 7), "{text}");
    let second = text.split_once("\n\n").unwrap().1;
    assert!(!second.contains("latency"), "{second}");
}

#[test]
fn fields_that_follow_from_factors_have_no_column() {
    let folder = TempDir::new().unwrap();
    for (name, connections) in [("c-1-1.json", 1), ("c-10-1.json", 10), ("c-1-2.json", 1)] {
        let document = fixtures::with_received_bytes(result(0..10), name.len() as u64);
        let document = fixtures::rebuilt(document, |result| result.plan.connections = connections);
        fs::write(folder.path().join(name), document.to_json() + &" ".repeat(connections as usize)).unwrap();
    }
    let text = || run(&table(vec![folder.path().to_owned()])).text;
    assert!(text().starts_with("| c | run | requests |"), "{}", text());
    let document = fixtures::rebuilt(result(0..10), |result| result.plan.connections = 7);
    fs::write(folder.path().join("c-1-3.json"), document.to_json()).unwrap();
    assert!(text().starts_with("| connections | c | run | requests |"), "{}", text());
}

#[test]
fn labels_win_over_file_names() {
    let folder = TempDir::new().unwrap();
    for (name, server) in [("c-1-1.json", "nginx"), ("c-1-2.json", "caddy"), ("c-1-3.json", "nginx")] {
        let labels = [("server", server), ("c", "10")].map(|(key, level)| (key.to_owned(), level.to_owned()));
        let document = fixtures::with_facts(result(0..10), |facts| facts.labels = labels.into());
        let document = fixtures::with_received_bytes(document, name.as_bytes()[4].into());
        fs::write(folder.path().join(name), document.to_json()).unwrap();
    }
    let text = run(&TableOptions { columns: columns(&["requests"]), ..table(vec![folder.path().to_owned()]) }).text;
    let rows: Vec<String> = cells(&text).iter().map(|row| row[..3].join(" ")).collect();
    assert_eq!(rows, ["10 caddy 2", "10 caddy avg", "10 nginx 1", "10 nginx 3", "10 nginx avg"], "{text}");
}

#[test]
fn labels_named_like_columns_get_their_own() {
    let taken = ["host", "run", "runs", "requests", "p99_us", "50%", "spread_percent"];
    assert!(taken.into_iter().chain(FIELDS).all(is_column));
    assert!(!["server", "c", "hosts", "p", "label.host"].into_iter().any(is_column));
    let folder = TempDir::new().unwrap();
    let labels = taken.map(|key| (key.to_owned(), "mine".to_owned()));
    let document = fixtures::with_facts(result(0..10), |facts| facts.labels = labels.into());
    fs::write(folder.path().join("a.json"), document.to_json()).unwrap();
    let csv =
        run(&TableOptions { form: TableForm::Csv, columns: Columns::Short, ..table(vec![folder.path().to_owned()]) })
            .text;
    let mut heads: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(taken.map(|key| heads.contains(&&*format!("label.{key}"))), [true; 7], "{csv}");
    heads.sort_unstable();
    assert!(heads.windows(2).all(|pair| pair[0] != pair[1]), "{csv}");
}

#[test]
fn wide_tables_leave_unknown_cells_empty() {
    let inputs = vec![fixture("guard.md"), fixture("server.txt")];
    let csv = run(&TableOptions { form: TableForm::Csv, columns: Columns::Short, ..table(inputs.clone()) }).text;
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| lines[0].iter().position(|head| *head == name).unwrap();
    assert_eq!(lines.len(), 10);
    assert_eq!((lines[1][at("p99_us")], lines[4][at("p99_us")], lines[1][at("section")]), ("65530", "", ""));
    assert_eq!((lines[2][at("timeouts")], lines[2][at("mean_us")]), ("110", "90050.00"));

    let json = run(&TableOptions { form: TableForm::Json, columns: Columns::Short, ..table(inputs) }).text;
    let rows: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.len(), 9);
    assert_eq!((&rows[0]["p99_us"], &rows[3]["p99_us"]), (&65_530.into(), &serde_json::Value::Null));
    assert_eq!((&rows[0]["connections"], &rows[0]["label"]), (&2048.into(), &"test nginx server itself".into()));
}

#[test]
fn rows_sort_within_their_groups() {
    let sort = |column: &str, descends| Some(Sort { column: column.to_owned(), descends });
    let columns = columns(&["requests_per_sec"]);
    let sorted = |by: Option<Vec<String>>, sort, form| {
        let made = run(&TableOptions { by, columns: columns.clone(), sort, form, ..table(vec![fixture("proxy.txt")]) });
        made.text
    };
    let text = sorted(names(&["host", "threads"]), sort("requests_per_sec", true), TableForm::Markdown);
    let rates: Vec<(String, f64)> =
        cells(&text).into_iter().map(|mut row| (row.remove(2), row.pop().unwrap().parse().unwrap())).collect();
    let averages: Vec<f64> = rates.iter().filter(|(name, _)| name == "avg").map(|(_, rate)| *rate).collect();
    assert!(averages.len() == 4 && averages.is_sorted_by(|one, next| one >= next), "{averages:?}");
    for group in rates.split_inclusive(|(name, _)| name == "avg") {
        assert!(group[..group.len() - 1].is_sorted_by(|one, next| one.1 >= next.1), "{group:?}");
    }
    let csv = sorted(names(&[]), sort("host", false), TableForm::Csv);
    assert_eq!(csv.lines().count(), 25);
}

#[test]
fn unknown_columns_list_the_known_ones() {
    for wrong in [
        TableOptions { by: names(&["rmem"]), ..table(vec![fixture("guard.md")]) },
        TableOptions { columns: columns(&["rmem"]), ..table(vec![fixture("guard.md")]) },
        TableOptions {
            sort: Some(Sort { column: "rmem".to_owned(), descends: false }),
            ..table(vec![fixture("guard.md")])
        },
    ] {
        let PrintedTable { text, said } = run(&wrong);
        assert!(text.is_empty() && said[0].starts_with("no column \"rmem\"; the columns are folder, file"), "{said:?}");
    }
}

/// Result of a run of an experiment, with this many responses.
fn in_experiment(round: u32, levels: &[(&str, &str, u32)], completed: u64) -> Document {
    let plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 1, 10);
    let levels = levels.iter().map(|&(factor, level, index)| FactorLevel {
        factor: factor.to_owned(),
        level: level.to_owned(),
        index,
        baseline: false,
    });
    let position = Position {
        name: "e".to_owned(),
        id: "1".to_owned(),
        order: Order::Interleaved,
        rounds: 2,
        round,
        before: 0,
        point: 1,
        levels: levels.collect(),
        failed: None,
    };
    let document = Document::judged(&plan, &fixtures::fill_from_latencies(fixtures::flawless(completed, 10)));
    fixtures::with_facts(document, |facts| facts.experiment = Some(position))
}

#[test]
fn experiment_tables_keep_plan_order() {
    let folder = TempDir::new().unwrap();
    let points = [[("z", "64k", 1), ("requests", "9", 1)], [("z", "4k", 2), ("requests", "9", 1)]];
    for (point, levels) in points.iter().enumerate() {
        for round in [2, 1] {
            let mut document = in_experiment(round, levels, 1_000 + u64::from(round));
            if (point, round) == (1, 2) {
                document.mark_as_failed(Some("exit code 7"));
            }
            // The file name has another factor, and fewer.
            fs::write(folder.path().join(format!("p-z-9-{point}{round}.json")), document.to_json()).unwrap();
        }
    }
    let columns = columns(&["requests"]);
    let PrintedTable { text, said } = run(&TableOptions { columns, ..table(vec![folder.path().to_path_buf()]) });
    let rows: Vec<String> = cells(&text).iter().map(|row| row.join(" ")).collect();
    assert_eq!(text.lines().next().unwrap(), "| z | label.requests | run | requests |");
    assert_eq!(rows, ["64k 9 1 1001", "64k 9 2 1002", "64k 9 avg 1001.50", "4k 9 1 1001", "4k 9 avg 1001.00"]);
    assert!(matches!(&said[..], [only] if only.ends_with("p-z-9-12.json\" failed and is left out: exit code 7")));
    let PrintedTable { text, .. } = run(&table(vec![folder.path().to_path_buf()]));
    let summary = text.split_once("\n\n").unwrap().1;
    let counts: Vec<String> = cells(summary).into_iter().map(|mut row| row.swap_remove(2)).collect();
    assert_eq!(counts, ["2", "1"], "{summary}");
}

#[test]
fn factors_named_like_figures_get_columns() {
    let folder = TempDir::new().unwrap();
    for (name, completed) in [("x-requests-5-1.json", 10), ("x-requests-6-1.json", 20)] {
        fs::write(folder.path().join(name), result((0..completed).map(|_| 100)).to_json()).unwrap();
    }
    let PrintedTable { text, .. } = run(&TableOptions {
        form: TableForm::Csv,
        columns: Columns::Short,
        ..table(vec![folder.path().to_path_buf()])
    });
    let heads: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    assert!(heads.contains(&"label.requests") && heads.contains(&"requests"), "{heads:?}");
    let mut unique = heads.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), heads.len(), "{heads:?}");
}

/// A run with a rate, and some unanswered requests.
fn with_a_rate() -> (Plan, Outcome) {
    let mut plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 1, 10);
    plan.schedule = Some(fixtures::schedule(1_000));
    plan.output.percentiles = true;
    let mut outcome = fixtures::flawless(1_000, 10);
    let open_loop = outcome.totals.open_loop.get_or_insert_default();
    (0..1_000).for_each(|_| open_loop.record_response(2_000_000, 1_000_000, false));
    open_loop.lateness.record_many(1_000_000, 1_000);
    open_loop.censored.record(5_000_000_000);
    open_loop.open.get_or_insert_default().record(5_000_000_000);
    (open_loop.due, open_loop.unsent) = (1_001, 1);
    (plan, fixtures::fill_from_latencies(outcome))
}

#[test]
fn own_reports_contain_their_rate() {
    let (plan, outcome) = with_a_rate();
    let folder = TempDir::new().unwrap();
    let text = report::opening(&plan, None) + &fixtures::report_closing(&plan, &outcome);
    assert!(text.contains("\n  1000 requests/s, latency counted from when each request was due\n"), "{text}");
    assert!(text.contains("(HdrHistogram - Recorded Latency)\n 50.000% "), "{text}");
    fs::write(folder.path().join("a.log"), text).unwrap();
    let columns = columns(&["tool", "rate", "p50_us"]);
    let PrintedTable { text, said } = run(&TableOptions { columns, ..table(vec![folder.path().to_path_buf()]) });
    assert_eq!((cells(&text)[0].join(" "), said), ("1 onrush 1000 2000".to_owned(), Vec::new()));
}

#[test]
fn own_merged_reports_are_one_run() {
    let (plan, outcome) = with_a_rate();
    let folder = TempDir::new().unwrap();
    let runs = [0, 1].map(|bytes| fixtures::with_received_bytes(Document::judged(&plan, &outcome), bytes));
    let sum = RunResult::sum(runs.map(|document| ("a.json".to_owned(), *document.result))).unwrap();
    let text = form::print(&Document::from_result(sum), form::ReportForm::Report, false).unwrap().text;
    assert!(text.starts_with("Sum of 2 runs over "), "{text}");
    fs::write(folder.path().join("a.log"), text).unwrap();
    let columns = columns(&["tool", "rate", "p50_us", "requests"]);
    let PrintedTable { text, said } = run(&TableOptions { columns, ..table(vec![folder.path().to_path_buf()]) });
    assert_eq!((cells(&text)[0].join(" "), said), ("1 onrush 1000 2000 2000".to_owned(), Vec::new()));
}

#[test]
fn own_reports_have_extra_lines() {
    let mut plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 1, 10);
    let mut outcome = fixtures::flawless(1_000, 10);
    outcome.totals.statuses.record(404);
    let folder = TempDir::new().unwrap();
    for spectrum in [false, true] {
        (plan.output.percentiles, plan.output.spectrum) = (spectrum, spectrum);
        let text = report::opening(&plan, None) + &fixtures::report_closing(&plan, &outcome);
        assert!(text.contains("\n     max    1.00ms\n") && text.contains("\n  Status 200: 1,000 · 404: 1\n"), "{text}");
        fs::write(folder.path().join("a.log"), text).unwrap();
        let columns = columns(&["tool", "p99_us", "max_us", "requests"]);
        let PrintedTable { text, said } = run(&TableOptions { columns, ..table(vec![folder.path().to_path_buf()]) });
        assert_eq!((cells(&text)[0].join(" "), said), ("1 onrush 1000 1000 1000".to_owned(), Vec::new()));
    }
}

#[test]
fn mismatched_means_and_percentiles_are_named() {
    let (plan, outcome) = with_a_rate();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.json"), Document::judged(&plan, &outcome).to_json()).unwrap();
    let said = |names: &[&str]| {
        run(&TableOptions { columns: columns(names), ..table(vec![folder.path().to_path_buf()]) }).said
    };
    assert!(matches!(&said(&["mean_us", "p99_us"])[..], [only] if only.contains("mean, deviation")));
    assert_eq!((said(&["mean_us"]), said(&["p99_us", "requests"])), (Vec::new(), Vec::new()));
    let wide = run(&TableOptions {
        form: TableForm::Json,
        columns: Columns::Short,
        ..table(vec![folder.path().to_path_buf()])
    });
    assert_eq!(wide.said.len(), 2);
}

#[test]
fn incomplete_runs_are_listed_and_named() {
    let why = Some("machine 2 (b): the worker ended".to_owned());
    let lost = fixtures::with_facts(result(0..10), |facts| facts.incomplete = why);
    let cut = fixtures::with_facts(result(0..10), |facts| facts.interrupted = true);
    let cut = fixtures::with_received_bytes(cut, 1);
    let (_folder, paths) =
        saved(&[("a.json", lost), ("b.json", cut), ("c.json", fixtures::with_received_bytes(result(0..10), 2))]);
    let PrintedTable { text, said } = run(&table(paths));
    let [only] = &said[..] else { panic!("{said:?}") };
    assert!(only.starts_with("figures of incomplete runs: ") && !only.contains("c.json"), "{only}");
    assert!(only.contains("a.json\" (machine 2 (b): the worker ended), "), "{only}");
    assert!(only.ends_with("b.json\" (it was interrupted)"), "{only}");
    assert!(text.lines().count() > 4, "{text}");
}

#[test]
fn percentiles_without_an_upper_bound_are_named() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, failed| {
        let (plan, mut outcome) = with_a_rate();
        outcome.totals.counters.failed = failed;
        fixtures::record_failures(&mut outcome, failed, Phase::Head, Cause::Late);
        let open_loop = outcome.totals.open_loop.get_or_insert_default();
        open_loop.lateness.record_many(1_000_000, failed);
        open_loop.due += failed;
        fs::write(folder.path().join(name), Document::judged(&plan, &fixtures::fill_from_latencies(outcome)).to_json())
            .unwrap();
    };
    write("a.json", 100);
    write("b.json", 2);
    let said = |names: &[&str]| {
        run(&TableOptions { columns: columns(names), ..table(vec![folder.path().to_path_buf()]) }).said
    };
    let [only] = &said(&["p50_us", "p99_us"])[..] else { panic!("one line") };
    let words = "percentiles may be larger, because requests that were due have no response: ";
    assert!(only.starts_with(words) && only.ends_with("a.json\" from p99 up"), "{only}");
    assert_eq!((said(&["p50_us"]), said(&["requests"])), (Vec::new(), Vec::new()));
}

/// The short table of these files, for a terminal.
fn short(inputs: Vec<PathBuf>) -> PrintedTable {
    run(&TableOptions { columns: Columns::Short, form: TableForm::Text, ..table(inputs) })
}

#[test]
fn short_tables_have_a_row_per_group() {
    let with = |rate: f64, us: u64, errors: u64| {
        let mut outcome = fixtures::flawless(0, 1);
        outcome.totals.latency.record_many(us * 1_000, 1_000);
        outcome.totals.counters.failed = errors;
        outcome.elapsed = Duration::from_secs_f64(1_000.0 / rate);
        fixtures::record_failures(&mut outcome, errors, Phase::Body, Cause::Errno(104));
        let plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 1, 10);
        Document::judged(&plan, &fixtures::fill_from_latencies(outcome))
    };
    let (_folder, paths) = saved(&[
        ("x-c-1-1.json", with(12_345.0, 100, 0)),
        ("x-c-1-2.json", with(12_722.0, 200, 1_999)),
        ("x-c-8-1.json", with(999.5, 5_000_000, 0)),
    ]);
    let PrintedTable { text, said } = short(paths);
    assert_eq!(said, Vec::<String>::new());
    assert_eq!(
        text,
        // No group has the 10,000 values that p99.9 needs.
        "c  runs  requests/s  spread       p50       p99  errors\n\
         1     2      12,534   3.0 %  200.00us  200.00us    50 %\n\
         8     1      999.50             5.00s     5.00s     0 %\n"
    );
}

#[test]
fn short_tables_have_at_most_ten_columns() {
    let with = |levels: [&str; 5], bytes_received| {
        let labels = ["a", "b", "c", "d", "e"].into_iter().zip(levels);
        let labels = labels.map(|(key, level)| (key.to_owned(), level.to_owned())).collect();
        let document = fixtures::with_facts(result(0..10), |facts| facts.labels = labels);
        fixtures::with_received_bytes(document, bytes_received)
    };
    let (_folder, paths) = saved(&[
        ("x-1.json", with(["1", "1", "1", "1", "1"], 1)),
        ("x-2.json", with(["1", "1", "1", "1", "1"], 2)),
        ("x-3.json", with(["2", "2", "2", "2", "1"], 3)),
    ]);
    let text = short(paths.clone()).text;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("point            runs  requests/s"), "{text}");
    assert!(
        lines[1].starts_with("a=1 b=1 c=1 d=1     2  ") && lines[2].starts_with("a=2 b=2 c=2 d=2     1  "),
        "{text}"
    );
    let text = short(paths[..2].to_vec()).text;
    assert!(text.starts_with("point                runs"), "{text}");
}

#[test]
fn runs_without_histograms_merge_by_medians() {
    let folder = experiment();
    let PrintedTable { text, said } = short(vec![folder.path().to_owned()]);
    let first: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(first, ["rmem_max", "wmem_max", "runs", "requests/s", "spread", "p50", "p99"], "{text}");
    assert!(matches!(&said[..], [only] if only.contains("medians over the runs")), "{said:?}");
    let rows: Vec<Vec<String>> = cells(published()).into_iter().filter(|row| row[2] != "avg").take(3).collect();
    let mut p99: Vec<f64> = rows.iter().map(|row| row[11].parse().unwrap()).collect();
    p99.sort_by(f64::total_cmp);
    let expected = onrush_text::units::format_us(p99[1]);
    assert!(text.lines().nth(1).unwrap().contains(&expected), "{expected}: {text}");
}

#[test]
fn columns_are_named_like_gates() {
    let mut plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 1, 10);
    plan.schedule = Some(fixtures::schedule(1_000));
    let mut outcome = fixtures::flawless(1_000, 10);
    let open_loop = outcome.totals.open_loop.get_or_insert_default();
    (0..1_000).for_each(|_| open_loop.record_response(2_000_000, 1_000_000, false));
    open_loop.lateness.record_many(1_000_000, 1_000);
    (open_loop.due, open_loop.late) = (1_000, 7);
    let document = Document::judged(&plan, &fixtures::fill_from_latencies(outcome));
    let document = fixtures::with_facts(document, |facts| facts.labels = [("max".to_owned(), "big".to_owned())].into());
    let (_folder, paths) = saved(&[("x-1.json", document)]);
    let columns =
        columns(&["p99", "service.mean", "late", "status.2xx", "errors", "errors.timeout", "rate", "transfer"]);
    let by = names(&["max"]);
    let PrintedTable { text, said } = run(&TableOptions { by, columns, form: TableForm::Csv, ..table(paths) });
    let expected = "max,run,p99_us,service_mean_us,late_requests,status.2xx,errors_percent,timeouts,rate,bytes_transfer_per_sec\n\
                    big,1,2000,1000.00,7,1000,0.00,0,1000,0.00\n";
    assert_eq!(text, expected, "{said:?}");
}

#[test]
fn figure_lists_need_no_file() {
    let PrintedTable { text, said } = run(&TableOptions { columns: Columns::Help, ..table(Vec::new()) });
    assert!(text.starts_with("metric ") && text.contains("\np99 ") && said.is_empty(), "{text}");
}

/// A result of two stages with these rates.
fn staged(asked_per_s: [f64; 2], bytes: u64) -> String {
    let document = Document::judged(
        &fixtures::plan(Dialect::Native, "http://127.0.0.1/", 1, 1, 1),
        &fixtures::fill_from_latencies(fixtures::flawless(1_000, 1)),
    );
    let document = fixtures::rebuilt(document, |result| {
        let sum = |index: usize, completed: u64| StageSum {
            started: completed,
            completed,
            late: Some(index as u64 * 60),
            dropped: Some(0),
            errors: result.sums.errors,
            erroneous: 3,
            latency: result.sums.totals.latency.clone(),
        };
        let facts = |index: usize| StageFacts {
            from_ns: index as u64 * 500_000_000,
            until_ns: (index as u64 + 1) * 500_000_000,
            asked_per_s: Some(asked_per_s[index]),
            connections: None,
        };
        result.sums.stages = Some(vec![sum(0, 400), sum(1, 600)]);
        result.runs[0].stages = vec![facts(0), facts(1)];
    });
    fixtures::with_received_bytes(document, bytes).to_json()
}

#[test]
fn each_stage_has_a_row() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    let of = |form: TableForm| {
        let inputs = vec![folder.path().to_path_buf()];
        run(&TableOptions { columns: Columns::Parts(RunParts::Stages), form, ..table(inputs) })
    };
    write("x-c-1-1.json", staged([1_000.0, 2_000.0], 1));
    assert_eq!(
        of(TableForm::Markdown).text,
        "| c | stage | asked | reached | p50 | p99 | late | errors |\n\
         |---|-------|-------|---------|-----|-----|------|--------|\n\
         | 1 | 0s-500ms | 1,000/s | 800.00/s | 1.00ms | 1.00ms | 0 % | 3 |\n\
         | 1 | 500ms-1s | 2,000/s | 1,200/s | 1.00ms | 1.00ms | 10 % | 3 |\n"
    );
    // Each of several runs has its rows. A run without stages is named.
    write("x-c-1-2.json", staged([1_000.0, 2_000.0], 2));
    let flat = Document::judged(&fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1), &fixtures::flawless(0, 1));
    write("y.json", flat.to_json());
    let PrintedTable { text, said } = of(TableForm::Csv);
    let rows: Vec<&str> = text.lines().collect();
    let head =
        "run,stage,start_s,length_s,asked_per_s,requests_per_sec,p50_us,p99_us,late_requests,dropped_requests,errors";
    assert!(rows[0].ends_with(head), "{text}");
    assert!(rows[4].ends_with("2,2,0.50,0.50,2000.00,1200.00,1000.00,1000.00,60,0,3"), "{text}");
    assert_eq!(rows.len(), 5, "{text}");
    assert!(said.iter().any(|line| line.starts_with("left out, because they have no stages: ")), "{said:?}");
    for name in ["x-c-1-1.json", "x-c-1-2.json"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let PrintedTable { text, said } = of(TableForm::Markdown);
    assert!(text.is_empty() && said[0].starts_with("no result has stages; make one with onrush --stages"), "{said:?}");
}

#[test]
fn each_name_has_a_row() {
    let folder = TempDir::new().unwrap();
    let mut plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
    plan.list = Some(fixtures::list(["log-in", "=cmd()"]));
    let mut outcome = fixtures::flawless(1_000, 1);
    let mut by_name = onrush_stats::ByName::<u32>::default();
    (0..900).for_each(|_| by_name.record_response(1, Some(200), 3_000_000, false));
    (0..100).for_each(|_| by_name.record_response(2, Some(503), 1_000_000, true));
    **outcome.totals.by_name.get_or_insert_default() += &by_name;
    fs::write(folder.path().join("x.json"), Document::judged(&plan, &fixtures::fill_from_latencies(outcome)).to_json())
        .unwrap();
    let of = |form: TableForm| {
        let inputs = vec![folder.path().to_path_buf()];
        run(&TableOptions { columns: Columns::Parts(RunParts::Names), form, ..table(inputs) }).text
    };
    assert_eq!(
        of(TableForm::Markdown),
        "| request | p50 | p99 | responses | errors |\n\
         |---------|-----|-----|-----------|--------|\n\
         | log-in | 3.00ms | - | 900 | 0 |\n\
         | =cmd() | 1.00ms | - | 100 | 100 |\n"
    );
    let rows = of(TableForm::Csv);
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows[0], "run,request,requests,requests_per_sec,mean_us,p50_us,p99_us,max_us,failed,errors");
    assert_eq!(rows[1], "1,log-in,900,900.00,3000.00,3000.00,3000.00,3000.00,0,0");
}
