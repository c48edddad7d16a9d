//! Result files: contents, other programs as readers, and unwritable files.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Context, Onrush, ProgramOutput, Scratch, cases, finish, signal, target, url, wait_for_load, wait_until,
};
use crate::peers::{read_head, server};
use crate::simulation::simulate;
use crate::tls_peers::{TlsServer, self_signed};

cases! {
    files_agree_with_the_report;
    file_rows_cover_the_whole_run (Once);
    busy_polling_is_not_busy_time;
    sent_bytes_are_those_accepted_by_kernel;
    documents_follow_the_schema (Once);
    documents_have_exactly_applicable_keys (Once);
    jq_reads_documents (Once) needs "jq";
    histograms_decode_in_other_implementations (Once) needs "python3 -m hdrh.histogram";
    standard_output_can_be_only_the_document (Once);
    unwritable_paths_end_before_the_run (Once);
    full_disks_are_named_beside_reports (Once);
    full_disks_keep_previous_files (Once) needs "unshare -rm true";
    no_partial_file_remains (Once);
    lines_are_written_during_runs (Once);
    secrets_stay_out_of_every_file (Once);
    long_runs_have_at_most_1200_rows (Once);
}

/// Runs a test with `-o` for each of these names, and returns the contents.
pub fn written<const N: usize>(program: Onrush, scratch: &Scratch, names: [&str; N]) -> (ProgramOutput, [String; N]) {
    let paths = names.map(|name| scratch.path().join(name));
    let output = paths.iter().fold(program, |program, path| program.word("-o").word(path)).run();
    assert_eq!(output.code, 0, "{output:?}");
    (output, paths.map(|path| fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))))
}

/// Runs a test, and returns its document.
pub fn document(program: Onrush, scratch: &Scratch) -> (ProgramOutput, Value) {
    let (output, [text]) = written(program, scratch, ["result.json"]);
    (output, serde_json::from_str(&text).expect("it is JSON"))
}

pub fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer} in {document}"))
}

fn files_agree_with_the_report(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("results"));
    // More than a second, so that there are two rows, unless a stall at the end removes the last one.
    let program = context.onrush().words("-c4 -t2 -d1100ms").word(url(&server, "/delay/2"));
    let names = ["r.json", "r.csv", "r.hgrm", "r.md", "r.ndjson"];
    let (output, [json, csv, hgrm, markdown, lines]) = written(program, &scratch, names);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert!(!json.contains(" -0.0"), "{json}");
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
    let rows = document["timeline"].as_array().unwrap().len();
    assert_eq!((csv.lines().count(), column(&csv, 3)), (1 + rows, requests), "{csv}");
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().map(|row| row["completed"].as_u64().unwrap()).sum::<u64>(), requests, "{lines}");
    assert!(hgrm.contains(&format!("Total count    = {requests:12}]")), "{hgrm}");
    let lasted = onrush_text::units::format_us(number(&document, "/duration_s") * 1e6);
    let row = format!("\n| requests | {} in {lasted} |\n", onrush_text::units::format_thousands(requests));
    assert!(markdown.contains(&row), "{markdown}");
}

/// Every request is in a row, however the run ends and whatever the number of threads.
fn file_rows_cover_the_whole_run(context: &Context) {
    let scenario = "latency_us = 4000.0\njitter_us = 1000.0\nanswer = \"HTTP/1.1 404 Not Found\\r\\nContent-Length: 2\\r\\n\\r\\nno\"\n";
    let scratch = Scratch::new("rows");
    let stops = ["-d 1s", "-d 2s", "-d 1300ms", "-n 3000", "-d 1s --warmup 150ms"];
    for (threads, stop) in [1, 2, 4].into_iter().flat_map(|threads| stops.map(|stop| (threads, stop))) {
        let words = format!("-t{threads} -c8 {stop}");
        let paths = ["r.json", "r.csv", "r.ndjson"].map(|name| scratch.path().join(name));
        let program = paths.iter().fold(context.onrush().words(&words), |program, path| program.word("-o").word(path));
        let output = simulate(program, scenario);
        assert_eq!(output.code, 0, "{words}: {output:?}");
        let [json, csv, lines] = paths.map(|path| fs::read_to_string(path).unwrap());
        let document: Value = serde_json::from_str(&json).unwrap();
        let rows = document["timeline"].as_array().unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, *rows, "{words}");
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let end_ns = rows.iter().fold(0, |end_ns, row| {
            assert_eq!(nanos(number(row, "/start_s")), end_ns, "{words}");
            assert!(number(row, "/length_s") > 0.0, "{words}");
            end_ns + nanos(number(row, "/length_s"))
        });
        assert_eq!(end_ns, nanos(number(&document, "/duration_s")), "{words}");
        let cells: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
        for (total, row, heading) in [
            ("/requests/started", "/started", "started"),
            ("/requests/completed", "/completed", "completed"),
            ("/bytes_sent", "/bytes_sent", "bytes_sent"),
            ("/bytes_received", "/bytes_received", "bytes_received"),
            ("/errors/status", "/errors/status", "status_errors"),
        ] {
            let expected = number(&document, total);
            assert_eq!(rows.iter().map(|of| number(of, row)).sum::<f64>(), expected, "{words}: {total}");
            let column = cells[0].iter().position(|cell| *cell == heading).unwrap();
            let in_csv = cells[1..].iter().map(|row| row[column].parse::<f64>().unwrap()).sum::<f64>();
            assert_eq!(in_csv, expected, "{words}: {heading}");
        }
    }
}

fn busy_polling_is_not_busy_time(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("spinning"));
    let program = context.onrush().words("-c1 -t1 -d300ms --spin on").word(url(&server, "/"));
    let (_, document) = document(program, &scratch);
    let [cpu_s, busy_polled_s] =
        ["cpu_s", "busy_polled_s"].map(|name| number(&document, &format!("/threads/0/{name}")));
    // Every request takes at least a microsecond of processor time, however busy the machine is.
    assert!(cpu_s > 1e-6 * number(&document, "/requests/completed"), "{document}");
    assert!(busy_polled_s > 0.0 && cpu_s + busy_polled_s < number(&document, "/duration_s"), "{document}");
}

/// A server that responds after reading part of a request, then reads the rest.
fn sent_bytes_are_those_accepted_by_kernel(context: &Context) {
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    let address = server(move |mut stream| {
        let mut buffer = vec![0; 64 * 1024];
        let mut is_answered = false;
        loop {
            let n = stream.read(&mut buffer)?;
            count.fetch_add(n as u64, Ordering::Relaxed);
            if n == 0 {
                return Ok(());
            }
            if !std::mem::replace(&mut is_answered, true) {
                stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")?;
                // No socket buffer takes the rest: it is not sent before the response arrives.
                thread::sleep(Duration::from_millis(200));
            }
        }
    });
    let scratch = Scratch::new("cut-off");
    let body = scratch.file("body", vec![b'x'; 16 << 20]);
    let program = context.onrush().words("-c2 -t1 -n3 --body").word(format!("@{}", body.display()));
    let (_, document) = document(program.word(format!("http://{address}/")), &scratch);
    let sent = number(&document, "/bytes_sent") as u64;
    wait_until(|| received.load(Ordering::Relaxed) >= sent);
    assert_eq!(sent, received.load(Ordering::Relaxed));
    assert!(sent < 3 * (16 << 20), "{sent}");
}

fn documents_follow_the_schema(context: &Context) {
    let schema = include_str!("../../docs/result.schema.json");
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).expect("a schema");
    let follows = |document: &Value, what: &str| {
        let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{what}: {errors:?}");
    };
    let (server, scratch) = (target(), Scratch::new("schema"));
    let lines =
        ["-n 20", "-n 20 --breakout -L --percentiles 50 -H A:b --body x=1 --warmup 10ms", "-n200 -d1 --timeout 1us"];
    for (index, words) in lines.into_iter().enumerate() {
        for program in context.both() {
            let words = if program.is_compat() { words.replace(" --timeout 1us", "") } else { words.to_owned() };
            let path = ["/", "/status/404", "/close"][index];
            let (_, document) = document(program.words("-c2").words(&words).word(url(&server, path)), &scratch);
            follows(&document, &words);
        }
    }
    let tls = TlsServer::new(&self_signed(&["localhost"]));
    let words = "-k -n 20 -c 2 -4 -b 127.0.0.1 --tls-groups X25519";
    let (_, document) = document(context.onrush().words(words).word(tls.url("/")).lua(BATCHES), &scratch);
    follows(&document, words);
    for (pointer, bad) in [("/latency/service/mean_us", Value::Null), ("/schema", "one".into())] {
        let mut broken = document.clone();
        *broken.pointer_mut(pointer).expect("it is there") = bad;
        assert!(!validator.is_valid(&broken), "{pointer}");
    }
    assert!(!validator.is_valid(&serde_json::json!({ "schema": 1 })));
    let mut merge = Command::new(env!("CARGO_BIN_EXE_onrush"));
    let sum = merge.current_dir(scratch.path()).args(["merge", "result.json"]).output().unwrap();
    follows(&serde_json::from_slice(&sum.stdout).unwrap(), "merge");
}

/// A script that sends two requests at once.
const BATCHES: &str = "function init() local r = wrk.format() both = r .. r end function request() return both end";

fn documents_have_exactly_applicable_keys(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("keys"));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let (_, native) = document(context.onrush().words("-n 10 -c 1").word(url(&server, "/")), &scratch);
    assert_eq!(
        keys(&native),
        "bytes_received bytes_sent command connections duration_s ended errors evidence host in_flight latency ledger notes phases \
         plan rate_per_s requests result schema shown started_at status suspended_s thread_rates threads timeline tool unseen verdict"
    );
    assert_eq!(
        keys(&native["requests"]),
        "abandoned carried completed interim open open_late started timeout unsuccessful"
    );
    assert_eq!(keys(&native["connections"]), "asked established opened");
    assert_eq!(keys(&native["errors"]), "connect read status timeout write");
    assert_eq!(keys(&native["phases"]), "connect ttfb ttlb");
    assert_eq!(keys(&native["latency"]), "service wrk_mean_us");
    assert_eq!(keys(&native["latency"]["service"]), "count max_us mean_us min_us percentiles_us stdev_us");
    let (_, wrk) = document(context.called("wrk").words("-t1 -c1 -n10").word(url(&server, "/")), &scratch);
    assert_eq!(keys(&wrk["latency"]), "service wrk wrk_spacing_us");
}

fn jq_reads_documents(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("jq"));
    let (output, _) = document(context.onrush().words("-n 500 -c 5").word(url(&server, "/")), &scratch);
    let sum = ".requests.completed, ([.timeline[].completed] | add), ([.result.runs[].rows[].latency.bins[][1]] | add)";
    let jq = Command::new("jq").arg("-c").arg(sum).arg(scratch.path().join("result.json")).output().unwrap();
    let expected = format!("{0}\n{0}\n{0}\n", output.requests());
    assert_eq!(String::from_utf8_lossy(&jq.stdout), expected, "{}", String::from_utf8_lossy(&jq.stderr));
}

/// Reads documents with PyPI's hdrhistogram: count, sum over all bins, minimum, maximum and percentiles.
const DECODE: &str = "
import json, sys
from hdrh.histogram import HdrHistogram
document = json.load(open(sys.argv[1]))
totals, phases = document['result']['sums']['totals'], document['phases']
views = ((document['latency']['service'], totals['latency']),) + tuple(
    (phases[phase], totals['phases'][phase]) for phase in ('ttfb', 'connect'))
for view, measured in views:
    decoded = HdrHistogram.decode(measured['bins'])
    total = sum(item.count_added_in_this_iter_step for item in decoded.get_recorded_iterator())
    assert decoded.get_total_count() == total == view['count'], (decoded.get_total_count(), total, view['count'])
    for percent in ('50', '90'):
        # Which value is the percentile of a few is a matter of definition, by one at the most.
        ours, one = view['percentiles_us'][percent] * 1000, 100 / view['count']
        low, high = (decoded.get_value_at_percentile(float(percent) + step) for step in (-one, one))
        assert low * 0.998 <= ours <= high * 1.002, (percent, low, ours, high)
    assert abs(decoded.get_max_value() / 1000 - view['max_us']) <= view['max_us'] / 500
print(document['latency']['service']['count'])
";

fn histograms_decode_in_other_implementations(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("hdr"));
    let (output, _) = document(context.onrush().words("-n 2k -c 5").word(url(&server, "/")), &scratch);
    let path = scratch.path().join("result.json");
    let decoded = Command::new("python3").args(["-c", DECODE]).arg(path).output().unwrap();
    let printed = String::from_utf8_lossy(&decoded.stdout);
    assert_eq!(printed.trim(), output.requests().to_string(), "{}", String::from_utf8_lossy(&decoded.stderr));
}

fn standard_output_can_be_only_the_document(context: &Context) {
    let server = target();
    let output = context.onrush().words("--format json -n 50 -c 5").word(url(&server, "/")).run();
    let document: Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    assert_eq!((output.code, number(&document, "/requests/completed")), (0, 50.0));
    assert!(document["phases"]["ttfb"]["count"] == 50);
}

fn unwritable_paths_end_before_the_run(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("paths"));
    fs::create_dir(scratch.path().join("directory.json")).unwrap();
    for (name, words) in [
        ("nowhere/r.json", "there is no directory"),
        ("directory.json", "this is a directory"),
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

fn full_disks_are_named_beside_reports(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("full"));
    for name in ["full.json", "full.csv", "full.ndjson"] {
        let path = scratch.path().join(name);
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let good = scratch.path().join("good.md");
        let program = context.onrush().words("-n 20 -o").word(&path).word("-o").word(&good);
        let output = program.word(url(&server, "/")).run();
        output.assert_standard();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.note("--output").contains(name) && output.note("disk is full").contains("free some space"));
        assert!(good.exists(), "the others are written");
        fs::remove_file(good).unwrap();
    }
}

/// Writes to a disk of 4 KiB that is visible only to this program.
fn full_disks_keep_previous_files(context: &Context) {
    const SCRIPT: &str = "mount -t tmpfs -o size=4k none disk && echo old >disk/old.json && \
                          $0 \"$@\" -n 20 -c 1 -o disk/old.json -o good.json; echo code $?; ls -A disk; cat disk/old.json";
    let (server, scratch) = (target(), Scratch::new("disk"));
    fs::create_dir(scratch.path().join("disk")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", SCRIPT, env!("CARGO_BIN_EXE_onrush"), "--io", context.backend]);
    let output = command.arg(url(&server, "/")).current_dir(scratch.path()).output().expect("it runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("Requests/sec: ") && stdout.ends_with("\ncode 1\nold.json\nold\n"), "{stdout}{stderr}");
    let expected = "onrush: --output \"disk/old.json\": the disk is full; free some space, or choose another\n\
                    onrush: \"disk/old.json\" was not written, \"good.json\" is complete\n";
    assert!(stderr.ends_with(expected), "{stderr}");
    assert!(fs::read_to_string(scratch.path().join("good.json")).unwrap().ends_with("}\n"), "the others are written");
}

fn no_partial_file_remains(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("half"));
    let names = |path: &Path| {
        let mut names: Vec<String> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let old = scratch.file("old.json", "untouched");
    // The run never ends by itself.
    let words = format!("-c2 -d 20s -o {}", old.display());
    // Killed during the run: nothing is written.
    let mut child = context.onrush().words(&words).word(url(&server, "/delay/5")).spawn();
    wait_for_load(&server);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(scratch.path()), ["old.json"]);
    // Refused before the run.
    let output = context.onrush().words(&words).word("http://127.0.0.1:1/").run();
    assert_eq!(output.code, 2, "{output:?}");
    assert_eq!(
        (names(scratch.path()), fs::read_to_string(&old).unwrap()),
        (vec!["old.json".to_owned()], "untouched".into())
    );
    // The file is replaced as a whole.
    let output = context.onrush().words("-n 5 -o").word(&old).word(url(&server, "/")).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(names(scratch.path()), ["old.json"]);
    assert!(fs::read_to_string(&old).unwrap().starts_with("{\n"));
}

fn lines_are_written_during_runs(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("lines"));
    let path = scratch.path().join("r.ndjson");
    // The run continues until a signal ends it.
    let program = context.onrush().words("-c2 -d20s -o").word(&path);
    let mut child = program.word(url(&server, "/delay/5")).spawn();
    let read = || fs::read_to_string(&path).unwrap_or_default();
    wait_until(|| !read().is_empty());
    let early = read();
    assert!(child.try_wait().unwrap().is_none(), "it runs until a signal ends it");
    assert!(early.ends_with('\n') && serde_json::from_str::<Value>(early.lines().next().unwrap()).is_ok(), "{early}");
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.code, 0, "{output:?}");
    let completed = |line| serde_json::from_str::<Value>(line).unwrap()["completed"].as_u64().unwrap();
    assert_eq!(read().lines().map(completed).sum::<u64>(), output.requests(), "{output:?}");
}

fn secrets_stay_out_of_every_file(context: &Context) {
    let (address, scratch) = (indiscreet(), Scratch::new("secrets"));
    let script = scratch.file("script.lua", "function init() end");
    let typed = format!("http://me:HIDE1@{address}/?token=HIDE2&client_secret=HIDE3#HIDE3");
    let program = || {
        let headers = ["Cookie: HIDE4", "X-Api-Key: HIDE5", "Proxy-Authorization: HIDE6", "My-Session: HIDE7"];
        let program = headers.iter().fold(context.onrush(), |program, header| program.word("-H").word(header));
        let program = program.words("-n 6 -c 1 --basic-auth me:HIDE8 --body user=me&password=HIDE9").script(&script);
        program.word(&typed).script_args(r#"--access-token HIDE10 api_key=HIDE11 {"passwd":"HIDE12"}"#)
    };
    let names = ["r.json", "r.csv", "r.hgrm", "r.md", "r.ndjson"];
    let [kept, printed] = [program().words("--keep-secrets"), program().words("--format json")];
    let (output, texts) = written(program(), &scratch, names);
    assert!(texts.iter().all(|text| !text.contains("HIDE")), "{texts:?}");
    for words in ["/in?session=REDACTED", "Authorization: REDACTED", "--access-token", "me&password=REDACTED"] {
        assert!(texts[0].contains(words), "no {words} in {}", texts[0]);
    }
    assert!(output.note("redirect").contains("/in?session=REDACTED") && !output.stderr.contains("HIDE"), "{output:?}");
    let (output, []) = written(printed, &scratch, []);
    assert!(output.stdout.starts_with('{') && !output.stdout.contains("HIDE"), "{output:?}");
    let (_, [kept]) = written(kept, &scratch, ["kept.json"]);
    (1..=14).for_each(|secret| assert!(kept.contains(&format!("HIDE{secret}")), "HIDE{secret} in {kept}"));
    let names = ["sum.json", "sum.csv", "sum.hgrm", "sum.md"];
    let mut merge = Command::new(env!("CARGO_BIN_EXE_onrush"));
    merge.current_dir(scratch.path()).args(["merge", "r.json"]);
    merge.args(names.iter().flat_map(|name| ["-o", name]));
    assert!(merge.status().unwrap().success());
    let read = |name| fs::read_to_string(scratch.path().join(name)).unwrap();
    assert!(names.iter().all(|name| !read(name).contains("HIDE")));
}

/// A server that redirects with a secret. Every third response is not HTTP, and contains a secret, too.
fn indiscreet() -> SocketAddr {
    let answers = AtomicU32::new(0);
    server(move |mut stream| {
        let mut requests = BufReader::new(stream.try_clone()?);
        loop {
            read_head(&mut requests)?;
            requests.read_exact(&mut [0; "user=me&password=HIDE9".len()])?;
            if answers.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
                return stream.write_all(b"Authorization: HIDE14\r\n\r\n");
            }
            stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /in?session=HIDE13\r\nContent-Length: 0\r\n\r\n")?;
        }
    })
}

fn long_runs_have_at_most_1200_rows(context: &Context) {
    let scratch = Scratch::new("hours");
    let scenario = scratch.file("slow.toml", "latency_us = 1000000.0\n");
    let path = scratch.path().join("r.json");
    let program = context
        .onrush()
        .words("-c1 -d30m --probe off -o")
        .word(&path)
        .word("--io")
        .word(format!("sim:{}", scenario.display()));
    let output = program.word("http://127.0.0.1:8080/").run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let rows = document["timeline"].as_array().unwrap();
    assert!(rows.len() <= 1_200, "{}", rows.len());
    assert_eq!(rows.iter().map(|row| row["completed"].as_u64().unwrap()).sum::<u64>(), output.requests());
    assert_eq!((rows.len(), number(&document, "/timeline/1/start_s")), (900, 2.0), "half an hour in 1,200 rows");
}
