//! Reading files, good and bad.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use onrush_load::fixtures;
use onrush_plan::{Dialect, Metric};
use tempfile::TempDir;

use super::*;

/// Value of the metric with this name.
fn value_of(run: &SavedRun, id: &str) -> Option<f64> {
    run.value(id.parse().unwrap())
}

/// A report as wrk prints it.
const WRK: &str = "Running 30s test @ http://[x VM IP]:8080/a b
  12 threads and 400 connections

  Thread Stats   Avg      Stdev     Max   +/- Stdev

    Latency   253.11ms  234.74ms   1.98s    85.79%
    Req/Sec    63.26     28.05   313.00     74.75%
  22640 requests in 30.03s, 24.07MB read
  Socket errors: connect 1, read 2, write 3, timeout 259
  Non-2xx or 3xx responses: 7
Requests/sec:    753.86
Transfer/sec:    820.70KB
";

/// A report as wrk2 prints it, with both latencies.
const WRK2: &str = "Running 30s test @ http://127.0.0.1:80/index.html
  2 threads and 100 connections
  Thread calibration: mean lat.: 9747 usec, rate sampling interval: 21 msec
  Thread calibration: mean lat.: 9631 usec, rate sampling interval: 21 msec
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.46ms    1.93ms  12.50ms   67.66%
    Req/Sec     1.05k     1.12k    2.50k    64.84%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    6.67ms
 99.900%   12.30ms
100.000%   12.50ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
      12.503     1.000000        39500          inf
#[Mean    =        6.460, StdDeviation   =        1.930]
#[Max     =       12.496, Total count    =        39500]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%    0.33ms
 99.900%    1.30ms
100.000%    2.50ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.021     0.000000            1         1.00
#[Mean    =        0.460, StdDeviation   =        0.930]
#[Max     =        2.496, Total count    =        39500]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  60018 requests in 30.00s, 19.81MB read
Requests/sec:   2000.28
Transfer/sec:    676.18KB
";

fn written(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn read(folder: &TempDir) -> Read {
    all(&[folder.path().to_owned()])
}

/// Problems of a log with this text, without the file name.
fn problems(text: &str) -> Vec<String> {
    let folder = written(&[("a.log", text.as_bytes())]);
    let said = read(&folder).problems;
    said.iter().map(|line| line.split_once("a.log\"").map_or(line.as_str(), |(_, rest)| rest).to_owned()).collect()
}

fn document(completed: u64) -> Document {
    let plan = fixtures::plan(Dialect::Native, "http://127.0.0.1:8080/", 1, 2, 10);
    Document::judged(&plan, &fixtures::fill_from_latencies(fixtures::flawless(completed, 10)))
}

#[test]
fn report_lines_are_read_with_units() {
    let text = format!("Tests\n=====\n\n## First round:\n\n    $ wrk -t12 http://x/\n{WRK}");
    let folder = written(&[("a.log", text.as_bytes())]);
    let Read { runs, problems } = read(&folder);
    assert_eq!(problems, Vec::<String>::new());
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.section.as_deref(), run.label.as_deref()), (Some("Tests"), Some("First round")));
    assert_eq!((run.url.as_deref(), run.host()), (Some("http://[x VM IP]:8080/a b"), Some("[x VM IP]:8080")));
    assert_eq!((run.threads, run.connections, run.origin.line, run.origin.tool), (Some(12), Some(400), Some(7), "wrk"));
    for (id, value) in [
        ("requests", 22_640.0),
        ("duration", 30.03e6),
        ("rate", 753.86),
        ("bytes", 25_239_224.0),
        ("transfer", 820.7 * 1024.0),
        ("mean", 253_110.0),
        ("stdev", 234_740.0),
        ("max", 1.98e6),
        ("errors.connect", 1.0),
        ("errors.read", 2.0),
        ("errors.write", 3.0),
        ("errors.timeout", 259.0),
        ("errors.socket", 265.0),
        ("errors.status", 7.0),
    ] {
        assert_eq!(value_of(run, id), Some(value), "{id}");
    }
}

#[test]
fn report_texts_are_not_later_labels() {
    for line in
        ["verdict: target", "note: all responses were 404", "onrush: --fail-if rate>1", "::error title=onrush::x"]
    {
        let folder =
            written(&[("a.log", format!("First:\n{WRK}{line}\n\n{}", WRK.replace("753.86", "753.87")).as_bytes())]);
        let labels: Vec<_> = read(&folder).runs.into_iter().map(|run| run.label.unwrap()).collect();
        assert_eq!(labels, ["First", "First"], "{line}");
    }
    let folder = written(&[("a.log", format!("verdict of the jury:\n{WRK}").as_bytes())]);
    assert_eq!(read(&folder).runs[0].label.as_deref(), Some("verdict of the jury"));
}

#[test]
fn wrk2_percentiles_count_from_due_times() {
    let folder = written(&[("a.log", WRK2.as_bytes())]);
    let Read { runs, problems } = read(&folder);
    assert_eq!(problems, Vec::<String>::new());
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.origin.tool, run.label.as_deref()), ("wrk2", None));
    let percentiles: Vec<(String, f64)> =
        run.percents().map(|percent| (percent.to_string(), run.value(Metric::percentile(percent)).unwrap())).collect();
    let expected = [("50", 6_670.0), ("99.9", 12_300.0), ("100", 12_500.0)];
    assert_eq!(percentiles, expected.map(|(percent, us)| (percent.to_owned(), us)));
}

#[test]
fn runs_without_responses_have_no_latency() {
    for (row, tool) in
        [("     0.00us    0.00us   0.00us    -nan%", "wrk"), ("   no responses", "onrush"), ("   no answers", "onrush")]
    {
        let text = WRK.replace("   253.11ms  234.74ms   1.98s    85.79%", row);
        let folder = written(&[("a.log", text.as_bytes())]);
        let Read { runs, problems } = read(&folder);
        let [mean, requests] = ["mean", "requests"].map(|id| value_of(&runs[0], id));
        assert_eq!((mean, requests, problems.len()), (None, Some(22_640.0), 0), "{row}");
        assert_eq!(runs[0].origin.tool, tool, "{row}");
    }
}

#[test]
fn bad_report_lines_are_named() {
    let lines: Vec<&str> = WRK.lines().collect();
    let cut = lines[..9].join("\n");
    let beginning = lines[..3].join("\n");
    let mixed = format!("{}\n{}\n{}\n{}\n", lines[0], lines[1], lines[1], lines[2..].join("\n"));
    let again = format!("{}\n{}\n{}\n", lines[..7].join("\n"), lines[1], lines[7..].join("\n"));
    let without_table = WRK.replace("    Latency   253.11ms  234.74ms   1.98s    85.79%\n", "");
    let table = [
        (cut.clone(), 1, " line 1: the run that begins here is cut off: the rest is shown"),
        (format!("{cut}\n{WRK}"), 2, " line 1: the run that begins here is cut off: the rest is shown"),
        (format!("{beginning}\n{WRK}"), 1, " line 1: the run that begins here is cut off: left out"),
        (
            format!("{WRK}Requests/sec: 1.00\nTransfer/sec: 1.00B\n"),
            1,
            " line 13: Requests/sec without a run above it: left out",
        ),
        (
            format!("{mixed}{WRK}"),
            1,
            " line 3: the run that begins on line 1 contains a line of another run, and is left out",
        ),
        (
            format!("{again}{WRK}"),
            1,
            " line 8: the run that begins on line 1 contains a line of another run, and is left out",
        ),
        (without_table, 1, " line 1: the run lacks the line \"Latency\""),
        (WRK.replace("1.98s", "1.98h"), 1, " line 6: \"1.98h\" has a unit that wrk never prints there: left out"),
        (format!("{WRK}{WRK2}"), 2, " line 13: a run of wrk2 follows one of wrk: they measure differently"),
        ("nothing".to_owned(), 0, " has no run of onrush, wrk, wrk-cmm or wrk2"),
    ];
    for (text, runs, problem) in table {
        let folder = written(&[("a.log", text.as_bytes())]);
        assert_eq!(read(&folder).runs.len(), runs, "{problem}");
        assert_eq!(problems(&text), [problem], "{text}");
    }
}

#[test]
fn interleaved_reports_are_never_mixed() {
    let other = WRK.replace("22640 requests", "1 requests").replace("753.86", "1.00").replace("[x VM", "[y VM");
    let (one, other): (Vec<&str>, Vec<&str>) = (WRK.lines().collect(), other.lines().collect());
    let mut random = onrush_plan::Random::new(15);
    for _ in 0..500 {
        let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
        let mut text = String::new();
        while one.peek().is_some() || other.peek().is_some() {
            let next = if random.below(2) == 0 {
                one.next().or_else(|| other.next())
            } else {
                other.next().or_else(|| one.next())
            };
            text += &format!("{}\n", next.unwrap());
        }
        let log = log::read(&text);
        assert!(log.reports.len() == 2 || !log.problems.is_empty(), "{text}");
        for ParsedReport { url, figures, .. } in &log.reports {
            let is_one = url.contains("[x VM");
            let [requests, rate] = [Metric::Requests, Metric::Rate].map(|metric| figures.get(&metric));
            assert!(requests.is_none_or(|requests| (*requests == 22_640.0) == is_one), "{text}");
            assert!(rate.is_none_or(|rate| (*rate == 753.86) == is_one), "{text}");
        }
    }
}

#[test]
fn files_of_one_run_are_combined() {
    let json = r#"{"requests": 5, "duration_in_microseconds": 3.5, "bytes": 6, "requests_per_sec": 1.25,
        "bytes_transfer_per_sec": 2, "latency_distribution": [{"percentile": 99.999, "latency_in_microseconds": 9}]}"#;
    let folder = written(&[
        ("a-size-10-1.log", WRK.as_bytes()),
        ("a-size-10-1.json", json.as_bytes()),
        ("a-size-9-2.log", WRK2.as_bytes()),
        ("a-size-9-2.json", b""),
        ("ss_output-size-9.log", b"[{\"state\": \"ts\"}]"),
        ("sockets.log", b"[{\"state\": \"ts\"}]"),
        ("notes.md", b"Running late test @ home"),
    ]);
    let Read { runs, problems } = read(&folder);
    let [nine, ten] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((value_of(ten, "requests"), ten.connections, ten.run), (Some(5.0), Some(400), Some(1)));
    assert_eq!(value_of(ten, "mean"), Some(253_110.0));
    assert_eq!(
        (value_of(nine, "requests"), &nine.factors),
        (Some(60_018.0), &vec![("size".to_owned(), "9".to_owned())])
    );
    assert!(matches!(&problems[..], [empty] if empty.contains("a-size-9-2.json")), "{problems:?}");
}

#[test]
fn copied_results_count_once() {
    let folder = written(&[("a.log", WRK.as_bytes()), ("b.txt", format!("again:\n{WRK}").as_bytes())]);
    let Read { runs, problems } = read(&folder);
    assert_eq!(runs.len(), 1);
    assert!(
        matches!(&problems[..], [copy] if copy.ends_with("b.txt\" line 2: this run was already read, and counts once"))
    );
    let other = written(&[("a.log", WRK.as_bytes())]);
    assert_eq!(all(&[folder.path().to_owned(), other.path().to_owned()]).runs.len(), 2);
}

#[test]
fn results_of_ours_are_read_plain_and_compressed() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(document(20).to_json().as_bytes()).unwrap();
    let compressed = gzip.finish().unwrap();
    let plain = document(10).to_json();
    let folder = written(&[("x-1.json", plain.as_bytes()), ("x-2.json.gz", &compressed)]);
    let Read { runs, problems } = read(&folder);
    assert_eq!(problems, Vec::<String>::new());
    let figures: Vec<_> =
        runs.iter().map(|run| (value_of(run, "requests"), run.run, run.threads, run.host())).collect();
    let host = Some("127.0.0.1:8080");
    assert_eq!(figures, [(Some(10.0), Some(1), Some(2), host), (Some(20.0), Some(2), Some(2), host)]);
}

#[test]
fn non_result_files_are_named_and_skipped() {
    let whole = document(10).to_json();
    let newer = whole.replacen("\"schema\": 4", "\"schema\": 999", 1);
    let folder = written(&[
        ("a.json", &whole.as_bytes()[..whole.len() / 2]),
        ("b.json", newer.as_bytes()),
        ("c.json", b"{\"requests\": 1, \"duration_in_microseconds\": 2}"),
        ("d.json", b"{\"results\": []}"),
        ("e.json.gz", &[0x1f, 0x8b, 8, 0]),
        ("f.json", whole.as_bytes()),
    ]);
    let Read { runs, problems } = read(&folder);
    assert_eq!(runs.len(), 1);
    let expected = [
        ("a.json", "is cut off after "),
        ("b.json", "schema 999"),
        ("c.json", "missing field"),
        ("d.json", "not a result of onrush"),
        ("e.json.gz", "cannot be read"),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for ((file, words), problem) in expected.iter().zip(&problems) {
        assert!(problem.contains(file) && problem.contains(words), "{problem}");
    }
    let empty = TempDir::new().unwrap();
    let said = all(&[empty.path().to_owned(), PathBuf::from("/nowhere/at.all")]).problems;
    assert!(said[0].ends_with("has no results: none of its files ends with .json, .log or .txt"), "{said:?}");
    assert_eq!(said[1], "\"/nowhere/at.all\" cannot be read: No such file or directory");
    let said = |folder: &Path| all(&[folder.to_owned()]).problems.concat().replace(folder.to_str().unwrap(), "");
    let outer = TempDir::new().unwrap();
    let add = |number: u32| {
        fs::create_dir(outer.path().join(format!("vs-{number}"))).unwrap();
        fs::write(outer.path().join(format!("vs-{number}/c1-1.json")), &whole).unwrap();
    };
    fs::create_dir(outer.path().join("empty")).unwrap();
    add(10);
    assert_eq!(said(outer.path()), "\"\" has no results itself, but a subfolder has some: \"/vs-10\"");
    (5..10).for_each(add);
    assert_eq!(
        said(outer.path()),
        "\"\" has no results itself, but its subfolders have some: \"/vs-6\", \"/vs-7\", \"/vs-8\", \"/vs-9\", \
         \"/vs-10\" (and 1 before these)"
    );
}

#[test]
fn published_blocks_are_read() {
    let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name);
    // File, number of runs, rate of the last run, and text of every problem.
    let table = [
        ("buffers.md", 1, 32_394.33, "this run was already read"),
        ("tuning.md", 3, 85_894.12, "this run was already read"),
        ("proxy.txt", 24, 1_626.46, "Requests/sec without a run above it"),
        ("server.txt", 6, 1_897.02, ""),
        ("guard.md", 3, 23_425.98, ""),
    ];
    for (name, count, rate, words) in table {
        let Read { runs, problems } = all(&[fixture(name)]);
        assert_eq!(runs.len(), count, "{name}");
        assert_eq!(value_of(runs.last().unwrap(), "rate"), Some(rate), "{name}");
        assert!(problems.iter().all(|problem| problem.contains(words)), "{problems:?}");
        assert_eq!(problems.is_empty(), words.is_empty(), "{problems:?}");
        for run in runs {
            let is_known = |id: &&str| value_of(&run, id).is_some();
            assert!(["requests", "mean", "errors.status"].iter().all(is_known), "{name}");
            assert!(run.threads.is_some() && run.connections.is_some() && run.host().is_some(), "{name}");
        }
    }
}
