//! The request log (`--request-log`), parsed by Python.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Context, Scratch, cases, target, url};

cases! {
    every_request_has_a_line needs "python3";
    discarded_bodies_are_counted needs "python3";
    samples_are_marked needs "python3";
    full_logs_end_without_the_run (Once);
    first_responses_per_status_are_kept;
}

/// Adds up the columns, in decimals instead of floating-point numbers.
const READER: &str = "
import collections, csv, decimal, json, sys
rows = list(csv.DictReader(open(sys.argv[1], newline='')))
ns = lambda text: int(decimal.Decimal(text) * 10**9)
done = [row for row in rows if not row['error']]
count = lambda key: dict(collections.Counter(row[key] for row in rows if row[key]))
print(json.dumps({
    'lines': len(rows),
    'done': len(done),
    'bytes': sum(int(row['bytes']) for row in rows),
    'sizes': sorted({int(row['bytes']) for row in rows}),
    'max_us': max(ns(row['end']) - ns(row['sent']) for row in done) / 1000,
    'max_since_due_us': max(ns(row['end']) - ns(row['due']) for row in done) / 1000,
    'in_order': all(ns(row['due']) <= ns(row['sent']) <= ns(row['first_byte']) <= ns(row['end']) for row in done),
    'status': count('status'),
    'name': count('name'),
    'error': count('error'),
}))
";

/// Contents of a log.
fn read(path: &Path) -> Value {
    let output = Command::new("python3").args(["-c", READER]).arg(path).output().expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

fn every_request_has_a_line(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("log"));
    let list = scratch.file("urls.txt", "/bytes/10 name=small\n/status/503 name=-broken\n/delay/3\n/bytes/5000\n");
    for words in ["-t2 -c8 -n800", "-t1 -c2 -n400 -R 2k --http2 --streams 3"] {
        let [log, result] = ["log.csv", "result.json"].map(|name| scratch.path().join(name));
        let onrush = context.onrush().words(words).words("--request-log").word(&log);
        let output = onrush.word("-o").word(&result).word("--urls").word(&list).word(url(&server, "")).run();
        assert_eq!(output.code, 0, "{output:?}");
        let (read, result): (_, Value) = (read(&log), serde_json::from_slice(&fs::read(&result).unwrap()).unwrap());
        let all = result["requests"]["completed"].as_u64().unwrap();
        assert_eq!((&read["lines"], &read["done"]), (&json!(all), &json!(all)), "{read}");
        assert_eq!((&read["in_order"], &read["error"]), (&json!(true), &json!({})), "{read}");
        assert_eq!(read["status"], result["status"], "{read}");
        assert_eq!(read["name"], json!({ "small": all / 4, "'-broken": all / 4 }), "{read}");
        let shown = if words.contains("-R") { "scheduled" } else { "service" };
        let max = if words.contains("-R") { &read["max_since_due_us"] } else { &read["max_us"] };
        assert_eq!(max.as_f64(), result["latency"][shown]["max_us"].as_f64(), "{read}");
        assert_eq!(result["request_log"], json!({ "one_of": 1, "lines": all, "lost": 0 }));
    }
}

fn discarded_bodies_are_counted(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("log"));
    for words in ["-t1 -c2 -n20", "-t1 -c1 -n20 --http2"] {
        let log = scratch.path().join("log.csv");
        let onrush = context.onrush().words(words).words("--request-log").word(&log);
        let output = onrush.word(url(&server, "/bytes/3000000")).run();
        assert_eq!(output.code, 0, "{output:?}");
        let read = read(&log);
        assert_eq!((&read["lines"], &read["sizes"]), (&json!(20), &json!([3_000_000])), "{words}: {read}");
    }
}

fn samples_are_marked(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("log"));
    let [log, result] = ["log.csv", "result.json"].map(|name| scratch.path().join(name));
    let words = "-t2 -c4 -n1000 --log-sample 1/50";
    let onrush = context.onrush().words(words).word("--request-log").word(&log);
    assert_eq!(onrush.word("-o").word(&result).word(url(&server, "/")).run().code, 0);
    let result: Value = serde_json::from_slice(&fs::read(&result).unwrap()).unwrap();
    assert_eq!(read(&log)["lines"], json!(20));
    assert_eq!(result["request_log"], json!({ "one_of": 50, "lines": 20, "lost": 0 }));
}

fn full_logs_end_without_the_run(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("log"));
    let run =
        |path: &Path| context.onrush().words("-n1000 --request-log").word(path).word(url(&server, "/")).run_plain();
    let output = run(Path::new("/dev/full"));
    assert_eq!((output.code, output.requests()), (1, 1000), "{output:?}");
    let expected = "onrush: --request-log \"/dev/full\": the disk is full; free some space, or choose another";
    assert!(output.stderr.contains(expected), "{output:?}");
    // Nothing is sent if the log cannot be created.
    let output = run(&scratch.path().join("no/log.csv"));
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert!(output.stderr.contains("--request-log") && output.stderr.contains("there is no directory"), "{output:?}");
}

fn first_responses_per_status_are_kept(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("samples"));
    let list = scratch.file("urls.txt", "/bytes/10\n/status/503\n/bytes/100000\n/chunked/20\n");
    for words in ["-t2 -c4 -n200", "-t1 -c2 -n200 --http2 --streams 3"] {
        let folder = scratch.path().join(words.len().to_string());
        let words = format!("{words} --expect-body nowhere --urls");
        let sampling = |folder: &Path| {
            let onrush = context.onrush().words(&words).word(&list).words("--sample-responses 2").word(folder);
            onrush.word(url(&server, ""))
        };
        let output = sampling(&folder).run();
        assert_eq!(output.code, 0, "{output:?}");
        let mut names: Vec<String> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["200-1.txt", "200-2.txt", "503-1.txt", "503-2.txt", "check1-1.txt", "check1-2.txt"]);
        for (name, body_max) in [("503-2.txt", 64 * 1024), ("200-1.txt", 64 * 1024), ("200-2.txt", 64 * 1024)] {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/") && head.contains(&name[..3]), "{text}");
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let whole: usize = length.unwrap_or(20);
            // Chunked bodies are followed by trailers.
            let (body, trailers) = body.split_at(whole.min(body_max));
            let trailers = trailers.to_ascii_lowercase();
            assert_eq!(trailers.starts_with("\r\nx-trail"), length.is_none(), "{name}: {head} {trailers}");
            assert!(length.is_none() || trailers.is_empty(), "{name}: {} bytes and {trailers}", body.len());
        }
        let again = sampling(&folder).run_plain();
        assert!(again.code == 1 && again.stderr.contains("the folder is not empty"), "{again:?}");
    }
    for (value, words) in [("0", "N is a number from 1 to 100"), ("some", "N is a number from 1 to 100")] {
        let onrush = context.onrush().words("-n1 --sample-responses").word(value).word(scratch.path().join("new"));
        let output = onrush.word(url(&server, "/")).run_plain();
        assert!(output.code == 1 && output.stderr.contains(words), "{output:?}");
        assert!(!scratch.path().join("new").exists());
    }
}
