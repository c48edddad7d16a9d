//! Result files: what is in them, that others can read it, and what happens when they cannot be written.

use std::fs;
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Context, Onrush, Output, Scratch, cases, target, url};
use crate::peers::{crowded, read_head, server};

cases! {
    every_file_says_what_the_report_says;
    every_document_follows_the_schema;
    the_document_has_exactly_the_keys_that_apply;
    jq_reads_the_document needs "jq";
    another_implementation_decodes_the_histogram_to_the_same_counts needs "python3 -m hdrh.histogram";
    standard_output_can_be_the_document_alone;
    a_path_that_cannot_be_written_ends_the_program_before_the_test;
    a_full_disk_is_named_and_the_report_is_there;
    nothing_half_written_is_left_behind;
    lines_are_written_while_the_test_runs;
    results_are_merged_without_loss;
    what_cannot_be_merged_is_refused_with_its_reason;
    secrets_stay_out_of_every_file;
    phases_take_as_long_as_the_server_delays_them;
    a_connect_whose_first_packet_is_dropped_takes_as_long_as_its_repetition;
    the_breakout_of_wrk_cmm_is_printed_to_the_byte;
    a_warm_up_measures_nothing;
    a_signal_in_the_warm_up_ends_a_test_that_measured_nothing;
    a_long_run_has_at_most_1200_rows;
}

/// Runs a test with `-o` for each of these names and gives their contents.
fn written<const N: usize>(program: Onrush, scratch: &Scratch, names: [&str; N]) -> (Output, [String; N]) {
    let paths = names.map(|name| scratch.path().join(name));
    let output = paths.iter().fold(program, |program, path| program.word("-o").word(path)).run();
    assert_eq!(output.code, 0, "{output:?}");
    (output, paths.map(|path| fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))))
}

/// Runs a test and gives its document.
fn document(program: Onrush, scratch: &Scratch) -> (Output, Value) {
    let (output, [text]) = written(program, scratch, ["result.json"]);
    (output, serde_json::from_str(&text).expect("it is JSON"))
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer} in {document}"))
}

fn every_file_says_what_the_report_says(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("results"));
    let program = context.onrush().words("-c4 -t2 -d1500ms").word(url(&server, "/"));
    let names = ["r.json", "r.csv", "r.hgrm", "r.md", "r.ndjson"];
    let (output, [json, csv, hgrm, markdown, lines]) = written(program, &scratch, names);
    let document: Value = serde_json::from_str(&json).unwrap();
    let requests = output.requests();
    assert_eq!(number(&document, "/requests/completed") as u64, requests);
    assert_eq!(number(&document, "/latency/service/count") as u64, requests);
    assert_eq!(number(&document, "/status/200") as u64, requests);
    assert_eq!(document["tool"]["backend"], context.backend);
    let threads: f64 = (0..2).map(|index| number(&document, &format!("/threads/{index}/completed"))).sum();
    assert_eq!(threads as u64, requests);
    assert!(number(&document, "/threads/0/cpu_s") > 0.0);

    let column = |text: &str, index: usize| -> u64 {
        text.lines().skip(1).map(|row| row.split(',').nth(index).unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!((csv.lines().count(), column(&csv, 3)), (3, requests), "{csv}");
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().map(|row| row["completed"].as_u64().unwrap()).sum::<u64>(), requests, "{lines}");
    assert!(hgrm.contains(&format!("Total count    = {requests:12}]")), "{hgrm}");
    assert!(markdown.lines().nth(2).unwrap().starts_with(&format!("| {requests} | 1500")), "{markdown}");
}

fn every_document_follows_the_schema(context: &Context) {
    let schema = include_str!("../../docs/result.schema.json");
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).expect("a schema");
    let (server, scratch) = (target(), Scratch::new("schema"));
    let lines = ["-n 20", "-n 20 --breakout -L --percentiles 50 -H A:b --body x=1 --warmup 10ms", "-d1 --timeout 1us"];
    for (index, words) in lines.into_iter().enumerate() {
        for program in context.both() {
            let words = if program.is_compat() { words.replace(" --timeout 1us", "") } else { words.to_owned() };
            let path = ["/", "/status/404", "/close"][index];
            let (_, document) = document(program.words("-c2").words(&words).word(url(&server, path)), &scratch);
            let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{words}: {errors:?}");
        }
    }
    let mut broken: Value = serde_json::json!({ "schema": 1 });
    assert!(!validator.is_valid(&broken));
    broken["schema"] = "one".into();
    assert!(!validator.is_valid(&broken));
}

fn the_document_has_exactly_the_keys_that_apply(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("keys"));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let (_, native) = document(context.onrush().words("-n 10 -c 1").word(url(&server, "/")), &scratch);
    assert_eq!(
        keys(&native),
        "bytes_received bytes_sent command connections duration_s errors host latency ledger notes phases plan \
         rate_per_s requests schema started_at status threads timeline tool"
    );
    assert_eq!(keys(&native["requests"]), "abandoned completed open started timeout");
    assert_eq!(keys(&native["connections"]), "asked lived opened");
    assert_eq!(keys(&native["errors"]), "connect read status timeout write");
    assert_eq!(keys(&native["phases"]), "connect ttfb ttlb");
    assert_eq!(keys(&native["latency"]), "service");
    assert_eq!(keys(&native["latency"]["service"]), "count hdr max_us mean_us min_us percentiles_us stdev_us");
    let (_, wrk) = document(context.called("wrk").words("-t1 -c1 -d1").word(url(&server, "/")), &scratch);
    assert_eq!(keys(&wrk["latency"]), "service wrk");
}

fn jq_reads_the_document(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("jq"));
    let (output, _) = document(context.onrush().words("-n 500 -c 5").word(url(&server, "/")), &scratch);
    let sum = ".requests.completed, ([.timeline[].completed] | add), ([.timeline[].latency_bins[][1]] | add)";
    let jq = Command::new("jq").arg("-c").arg(sum).arg(scratch.path().join("result.json")).output().unwrap();
    let expected = format!("{0}\n{0}\n{0}\n", output.requests());
    assert_eq!(String::from_utf8_lossy(&jq.stdout), expected, "{}", String::from_utf8_lossy(&jq.stderr));
}

/// Reads documents with PyPI's hdrhistogram: the count, the sum over all bins, the least and greatest, percentiles.
const DECODE: &str = "
import json, sys
from hdrh.histogram import HdrHistogram
document = json.load(open(sys.argv[1]))
for view in (document['latency']['service'], document['phases']['ttfb'], document['phases']['connect']):
    decoded = HdrHistogram.decode(view['hdr'])
    total = sum(item.count_added_in_this_iter_step for item in decoded.get_recorded_iterator())
    assert decoded.get_total_count() == total == view['count'], (decoded.get_total_count(), total, view['count'])
    for percent in ('50', '90'):
        ours, theirs = view['percentiles_us'][percent], decoded.get_value_at_percentile(float(percent)) / 1000
        assert view['count'] < 100 or abs(theirs - ours) <= ours / 50, (percent, ours, theirs)
    assert abs(decoded.get_max_value() / 1000 - view['max_us']) <= view['max_us'] / 500
print(document['latency']['service']['count'])
";

fn another_implementation_decodes_the_histogram_to_the_same_counts(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("hdr"));
    let (output, _) = document(context.onrush().words("-n 20k -c 5").word(url(&server, "/")), &scratch);
    let path = scratch.path().join("result.json");
    let decoded = Command::new("python3").args(["-c", DECODE]).arg(path).output().unwrap();
    let printed = String::from_utf8_lossy(&decoded.stdout);
    assert_eq!(printed.trim(), output.requests().to_string(), "{}", String::from_utf8_lossy(&decoded.stderr));
}

fn standard_output_can_be_the_document_alone(context: &Context) {
    let server = target();
    let output = context.onrush().words("--format json -n 50 -c 5").word(url(&server, "/")).run();
    let document: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    assert_eq!((output.code, number(&document, "/requests/completed")), (0, 50.0));
    assert!(document["phases"]["ttfb"]["count"] == 50);
}

fn a_path_that_cannot_be_written_ends_the_program_before_the_test(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("paths"));
    fs::create_dir(scratch.path().join("directory.json")).unwrap();
    for (name, words) in [
        ("nowhere/r.json", "there is no directory"),
        ("directory.json", "it is a directory"),
        ("nowhere/r.ndjson", "there is no directory"),
        ("nowhere/r.csv", "there is no directory"),
    ] {
        for program in context.both() {
            let path = scratch.path().join(name);
            let output = program.words("-d 20s -t1 -c1 -o").word(&path).word(url(&server, "/")).run_plain();
            assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
            output.note(words);
            output.note(path.to_str().unwrap());
            assert!(output.took < Duration::from_secs(10), "{output:?}");
        }
    }
}

fn a_full_disk_is_named_and_the_report_is_there(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("full"));
    for name in ["full.json", "full.csv", "full.ndjson"] {
        let path = scratch.path().join(name);
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let good = scratch.path().join("good.md");
        let program = context.onrush().words("-d 300ms -o").word(&path).word("-o").word(&good);
        let output = program.word(url(&server, "/")).run();
        output.assert_standard();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.note("--output").contains(name) && output.note("disk is full").contains("make room"));
        assert!(good.exists(), "the others are written");
        fs::remove_file(good).unwrap();
    }
}

fn nothing_half_written_is_left_behind(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("half"));
    let names = |path: &Path| {
        let mut names: Vec<String> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let old = scratch.file("old.json", "untouched");
    let words = format!("-c2 -d 20s -o {}", old.display());
    // Ended in the middle of the run, so that nothing is written.
    let mut child = context.onrush().words(&words).word(url(&server, "/")).spawn();
    thread::sleep(Duration::from_millis(300));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(scratch.path()), ["old.json"]);
    // Refused from the start.
    let output = context.onrush().words(&words).word("http://127.0.0.1:1/").run();
    assert_eq!(output.code, 2, "{output:?}");
    assert_eq!(
        (names(scratch.path()), fs::read_to_string(&old).unwrap()),
        (vec!["old.json".to_owned()], "untouched".into())
    );
    // And written, it is replaced whole.
    let output = context.onrush().words("-n 5 -o").word(&old).word(url(&server, "/")).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(names(scratch.path()), ["old.json"]);
    assert!(fs::read_to_string(&old).unwrap().starts_with("{\n"));
}

fn lines_are_written_while_the_test_runs(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("lines"));
    let path = scratch.path().join("r.ndjson");
    let program = context.onrush().words("-c2 -d 3s --io").word(context.backend).word("-o").word(&path);
    let mut child = program.word(url(&server, "/")).spawn();
    let deadline = Instant::now() + Duration::from_secs(20);
    let early = loop {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if !text.is_empty() || Instant::now() > deadline {
            break text;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let runs = child.try_wait().unwrap().is_none();
    assert!(
        runs && early.ends_with('\n') && serde_json::from_str::<Value>(early.lines().next().unwrap()).is_ok(),
        "{early}"
    );
    assert!(child.wait().unwrap().success());
    let lines = fs::read_to_string(&path).unwrap();
    assert!((2..=4).contains(&lines.lines().count()), "{lines}");
}

fn merge(scratch: &Scratch, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
    let output = command.arg("merge").args(words.split_whitespace()).current_dir(scratch.path()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap_or(-1);
    Output { stdout: text(output.stdout), stderr: text(output.stderr), code, took: Duration::ZERO }
}

fn results_are_merged_without_loss(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("merge"));
    let mut parts = Vec::new();
    for (seed, name) in [(1, "a.json"), (2, "b.json"), (3, "c.json")] {
        let words = format!("-n 700 -c 5 --seed {seed} --percentiles 50,99");
        let (_, [text]) = written(context.onrush().words(&words).word(url(&server, "/")), &scratch, [name]);
        parts.push(serde_json::from_str::<Value>(&text).unwrap());
    }
    let output = merge(&scratch, "a.json b.json c.json -o sum.json -o sum.csv -o sum.hgrm -o sum.md");
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    let sum: Value = serde_json::from_str(&fs::read_to_string(scratch.path().join("sum.json")).unwrap()).unwrap();
    let added = |pointer: &str| parts.iter().map(|part| number(part, pointer)).sum::<f64>();
    for pointer in
        ["/requests/completed", "/bytes_received", "/latency/service/count", "/phases/ttlb/count", "/status/200"]
    {
        assert_eq!(number(&sum, pointer), added(pointer), "{pointer}");
    }
    let mean = parts.iter().map(|part| number(part, "/latency/service/mean_us")).sum::<f64>() / 3.0;
    assert!((number(&sum, "/latency/service/mean_us") / mean - 1.0).abs() < 1e-9);
    let greatest = parts.iter().map(|part| number(part, "/latency/service/max_us")).fold(0.0, f64::max);
    assert_eq!(number(&sum, "/latency/service/max_us"), greatest);
    assert!(fs::read_to_string(scratch.path().join("sum.md")).unwrap().contains("\n| 2100 | "));

    // One result is its own sum, and a sum can be added to.
    let alone: Value = serde_json::from_str(&merge(&scratch, "a.json").stdout).unwrap();
    assert_eq!(alone["latency"], parts[0]["latency"]);
    assert_eq!(merge(&scratch, "a.json b.json -o ab.json").code, 0);
    let other_way: Value = serde_json::from_str(&merge(&scratch, "ab.json c.json").stdout).unwrap();
    assert_eq!(other_way["latency"]["service"]["hdr"], sum["latency"]["service"]["hdr"]);
    assert_eq!(other_way["latency"]["service"]["percentiles_us"], sum["latency"]["service"]["percentiles_us"]);
}

fn what_cannot_be_merged_is_refused_with_its_reason(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("refused"));
    let run = |words: &str, name| written(context.onrush().words(words).word(url(&server, "/")), &scratch, [name]).1;
    let [text] = run("-n 10 -c 2", "a.json");
    run("-n 10 -c 3", "other.json");
    scratch.file("later.json", text.replacen("\"schema\": 1", "\"schema\": 2", 1));
    scratch.file("text.json", "not JSON");
    scratch.file("foreign.json", "{\"requests\": 1}");
    scratch.file("half.json", &text[..text.len() / 2]);
    let damaged = text.replacen("\"hdr\": \"HIST", "\"hdr\": \"MIST", 1);
    scratch.file("damaged.json", damaged);
    for (words, reason) in [
        ("a.json other.json", "have different plans: \"connections\" is not the same; --force adds them"),
        ("a.json later.json", "\"later.json\" has schema 2, and this onrush reads schema 1"),
        ("a.json text.json", "\"text.json\" is no result of onrush"),
        ("foreign.json a.json", "\"foreign.json\" is no result of onrush"),
        ("half.json", "\"half.json\" is no result of onrush"),
        ("a.json damaged.json", "\"damaged.json\" cannot be added"),
        ("nowhere.json", "\"nowhere.json\" cannot be read"),
        ("a.json -o nowhere/sum.json", "there is no directory"),
    ] {
        let output = merge(&scratch, words);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{words}: {output:?}");
        assert!(output.stderr.starts_with("onrush merge: ") && output.stderr.contains(reason), "{words}: {output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
    let forced: Value = serde_json::from_str(&merge(&scratch, "--force a.json other.json").stdout).unwrap();
    assert_eq!(number(&forced, "/connections/asked"), 5.0);
}

fn secrets_stay_out_of_every_file(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("secrets"));
    let typed = format!("http://me:HIDE1@{}/?token=HIDE2", server.address());
    let program = || {
        let headers = ["Cookie: HIDE3", "X-Api-Key: HIDE4", "Authorization: HIDE5"];
        let program = headers.iter().fold(context.onrush(), |program, header| program.word("-H").word(header));
        program.words("-n 5 -c 1 --body password=HIDE6").word(&typed)
    };
    let names = ["r.json", "r.csv", "r.hgrm", "r.md", "r.ndjson"];
    let (_, texts) = written(program(), &scratch, names);
    assert!(texts.iter().all(|text| !text.contains("HIDE")), "{texts:?}");
    assert!(texts[0].contains("REDACTED"), "{}", texts[0]);
    let (_, [kept]) = written(program().words("--keep-secrets"), &scratch, ["kept.json"]);
    (1..=6).for_each(|secret| assert!(kept.contains(&format!("HIDE{secret}")), "HIDE{secret} in {kept}"));
}

/// Where the queue of a listening socket is full, Linux drops the packet that asks for a connection, and the client's
/// kernel repeats it after a second.
fn a_connect_whose_first_packet_is_dropped_takes_as_long_as_its_repetition(context: &Context) {
    let address = crowded(Duration::from_millis(300), |mut stream| {
        let mut requests = BufReader::new(stream.try_clone()?);
        loop {
            read_head(&mut requests)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    });
    let scratch = Scratch::new("connect");
    let (_, document) = document(context.onrush().words("-n 5 -c 1").word(format!("http://{address}/")), &scratch);
    let connect_ms = number(&document, "/phases/connect/min_us") / 1e3;
    assert!((1_000.0..1_100.0).contains(&connect_ms), "{connect_ms} ms");
    assert!(number(&document, "/phases/ttfb/max_us") < 500_000.0, "no other phase has it");
    assert!(number(&document, "/latency/service/max_us") < 500_000.0, "nor has the latency");
}

/// The head comes after 40 ms, the end of the body 25 ms after that; the connection is there at once. How long its
/// delays really were the server says itself: on a busy machine nobody sleeps for exactly so long.
fn phases_take_as_long_as_the_server_delays_them(context: &Context) {
    let (told, delays) = mpsc::channel();
    let address = server(move |mut stream| {
        // Else the kernel keeps the end back until the beginning is acknowledged.
        stream.set_nodelay(true)?;
        let mut requests = BufReader::new(stream.try_clone()?);
        loop {
            read_head(&mut requests)?;
            let asked = Instant::now();
            thread::sleep(Duration::from_millis(40));
            let first = asked.elapsed();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nHello")?;
            thread::sleep(Duration::from_millis(25));
            let _ = told.send([first, asked.elapsed() - first]);
            stream.write_all(b"World")?;
        }
    });
    let scratch = Scratch::new("phases");
    let program = context.onrush().words("-n 20 -c 2 -t 1 --breakout").word(format!("http://{address}/"));
    let (output, document) = document(program, &scratch);
    let delays: Vec<[Duration; 2]> = delays.try_iter().collect();
    for (index, phase) in ["ttfb", "ttlb"].into_iter().enumerate() {
        // The median: on a busy machine either side is woken late now and then.
        let median_ms = number(&document, &format!("/phases/{phase}/percentiles_us/50")) / 1e3;
        let mut told_ms: Vec<f64> = delays.iter().map(|delay| delay[index].as_secs_f64() * 1e3).collect();
        told_ms.sort_by(f64::total_cmp);
        let expected_ms = told_ms[told_ms.len() / 2];
        let allowed_ms = (expected_ms / 20.0).max(1.0);
        assert!((median_ms - expected_ms).abs() < allowed_ms, "{phase}: {median_ms} ms instead of {expected_ms} ms");
        assert_eq!(number(&document, &format!("/phases/{phase}/count")), 20.0);
    }
    assert!(number(&document, "/phases/connect/min_us") < 1_000.0);
    assert_eq!(number(&document, "/phases/connect/count"), 2.0);
    for row in ["Connect", "TTFB", "TTLB"] {
        assert!(output.line(row).is_some(), "{output:?}");
    }
}

fn the_breakout_of_wrk_cmm_is_printed_to_the_byte(context: &Context) {
    let server = target();
    for (program, rows) in [
        (context.called("wrk-cmm").words("--breakout -t1"), "Latency Connect TTFB TTLB Req/Sec"),
        (context.called("wrk").words("--breakout -t1"), "Latency Connect TTFB TTLB Req/Sec"),
        (context.onrush().words("--breakout=all"), "Latency Connect TLS TTFB TTLB Req/Sec"),
        (context.called("wrk-cmm").words("-t1"), "Latency Req/Sec"),
    ] {
        let output = program.words("--latency -c2 -d1").word(url(&server, "/")).run();
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert_eq!(lines[2], "  Thread Stats   Avg     Stdev       Max       Min   +/- Stdev", "{output:?}");
        let rows: Vec<&str> = rows.split(' ').collect();
        for (line, name) in lines[3..].iter().zip(&rows) {
            assert!(line.starts_with(&format!("    {name:<10}")) && line.len() == 4 + 10 + 38 + 8 + 1, "{line:?}");
        }
        let percentiles = &lines[3 + rows.len()..];
        assert_eq!(percentiles[0], "  Latency Distribution");
        let percents = ["50.00", "75.00", "90.00", "95.00", "99.00", "99.99"];
        for (line, percent) in percentiles[1..].iter().zip(percents) {
            assert!(line.starts_with(&format!("  {percent}%")) && line.len() == 8 + 10, "{line:?}");
        }
        assert!(percentiles[7].contains(" requests in "), "{output:?}");
        if rows.contains(&"TLS") {
            assert_eq!(output.line("TLS"), Some("TLS         0.00us    0.00us    0.00us    0.00us    -nan%"));
        }
    }
}

/// Row 28 of what wrk-cmm's users would try: 735 requests a second there, because the delay is in the counts.
fn a_warm_up_measures_nothing(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("warm-up"));
    let slow = url(&server, "/delay/10");
    for (program, words) in [(context.onrush(), "--warmup 1s"), (context.called("wrk-cmm"), "-D 1")] {
        let (output, document) = document(program.words(words).words("-d1 -t1 -c4").word(&slow), &scratch);
        let requests = output.requests();
        assert!((150..=396).contains(&requests), "{output:?}");
        assert!((1.0..1.1).contains(&number(&document, "/duration_s")), "{output:?}");
        let service = &document["latency"]["service"];
        assert!(number(service, "/mean_us") >= number(service, "/min_us") && number(service, "/min_us") >= 10_000.0);
        assert_eq!(number(&document, "/connections/opened"), 0.0);
        assert_eq!(number(&document, "/connections/lived"), 4.0);
        let rows = document["timeline"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| row["completed"].as_u64().unwrap()).sum::<u64>(), requests);
        assert!(rows.len() <= 2, "{rows:?}");
    }
}

fn a_signal_in_the_warm_up_ends_a_test_that_measured_nothing(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("early"));
    let path = scratch.path().join("r.json");
    let program = context.onrush().words("--warmup 30s -d 1s -o").word(&path).word(url(&server, "/"));
    let output = program.interrupt_after(Duration::from_millis(500)).run();
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    output.note("ended by a signal before anything was measured: the warm-up was not over");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((number(&document, "/duration_s"), number(&document, "/bytes_received")), (0.0, 0.0));
}

fn a_long_run_has_at_most_1200_rows(context: &Context) {
    let scratch = Scratch::new("hours");
    let scenario = scratch.file("slow.toml", "latency_us = 1000000.0\n");
    let path = scratch.path().join("r.json");
    let program =
        context.onrush().words("-c1 -d2h -o").word(&path).word("--io").word(format!("sim:{}", scenario.display()));
    let output = program.word("http://127.0.0.1:8080/").run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let rows = document["timeline"].as_array().unwrap();
    assert!(rows.len() <= 1_200, "{}", rows.len());
    assert_eq!(rows.iter().map(|row| row["completed"].as_u64().unwrap()).sum::<u64>(), output.requests());
    // How finely virtual time is handed over is a matter of real time.
    assert!([4.0, 8.0].contains(&number(&document, "/timeline/1/start_s")), "two hours in 1,200 rows");
}
