//! `onrush merge`: sums and refusals.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Context, Onrush, ProgramOutput, Scratch, cases, fetch_target_counts, finish, signal, target, url, wait_until,
};
use crate::results::{number, written};
use crate::tls_peers::{Authority, TlsServer};

cases! {
    results_are_merged_without_loss (Once);
    sums_list_their_runs_and_times (Once);
    unmergeable_results_are_refused_with_reason (Once);
    runs_with_different_options_are_not_merged (Once);
    results_with_secrets_merge_with_redacted_ones (Once);
    sums_break_gates_of_their_runs (Once);
    absurd_figures_are_refused (Once);
    unreadably_large_sums_are_refused (Once);
    unwritable_sums_leave_nothing_behind (Once);
}

fn merge(scratch: &Scratch, words: &str) -> ProgramOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
    let output = command.arg("merge").args(words.split_whitespace()).current_dir(scratch.path()).output().unwrap();
    ProgramOutput::new(output, Duration::ZERO)
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
    let markdown = fs::read_to_string(scratch.path().join("sum.md")).unwrap();
    let of = "The sum of 3 results: a.json, b.json, c.json; the command and the URL are those of the first.\n\n`";
    assert!(markdown.starts_with(of) && markdown.contains("\n| requests | 2,100 in "), "{markdown}");

    // A gate broken by the parts is judged by the figures of the sum.
    let gated = |name: &str| {
        let program =
            context.onrush().words("-n700 -c5 --fail-if requests<1k,p99<1h -o").word(scratch.path().join(name));
        assert_eq!(program.word(url(&server, "/")).run_plain().code, 3);
    };
    ["d.json", "e.json"].into_iter().for_each(gated);
    let both: Value = serde_json::from_str(&merge(&scratch, "d.json e.json").stdout).unwrap();
    let gate = &both["gates"][0];
    assert_eq!((&gate["broken"], &gate["terms"][0]["was"]), (&false.into(), &"1,400".into()), "{both}");
    assert_eq!((&gate["terms"][1]["holds"], both["gates"].as_array().unwrap().len()), (&true.into(), 1));

    // A single result is its own sum, and a sum can be merged again.
    let alone: Value = serde_json::from_str(&merge(&scratch, "a.json").stdout).unwrap();
    assert_eq!(alone["latency"], parts[0]["latency"]);
    assert_eq!(merge(&scratch, "a.json b.json -o ab.json").code, 0);
    let other_way: Value = serde_json::from_str(&merge(&scratch, "ab.json c.json").stdout).unwrap();
    assert_eq!(other_way["latency"]["service"]["hdr"], sum["latency"]["service"]["hdr"]);
    assert_eq!(other_way["latency"]["service"]["percentiles_us"], sum["latency"]["service"]["percentiles_us"]);
}

fn sums_list_their_runs_and_times(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("sources"));
    let program = |name: &str| {
        let onrush = context.onrush().words("-t1 -c3 -d1s --io").word(context.backend).word("-o");
        onrush.word(scratch.path().join(name)).word(url(&server, "/delay/5"))
    };
    // Two runs follow one another; the third overlaps the second.
    let first = program("a.json").run_plain();
    let before = fetch_target_counts(server.address()).requests;
    let second = program("b.json").spawn();
    wait_until(|| fetch_target_counts(server.address()).requests > before);
    let outputs = [first, program("c.json").run_plain(), finish(second)];
    assert!(outputs.iter().all(|output| output.code == 0), "{outputs:?}");
    let merged = |files: &str| {
        let output = merge(&scratch, files);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        output.stdout
    };
    let text = merged("a.json b.json c.json");
    assert_eq!(merged("c.json b.json a.json"), text);
    let sum: Value = serde_json::from_str(&text).unwrap();
    let name = |index: usize| sum["sources"]["files"][index]["name"].as_str().unwrap().to_owned();
    assert_eq!((number(&sum, "/sources/count"), name(0)), (3.0, "a.json".to_owned()));
    assert!(
        sum["notes"][0]["text"].as_str().unwrap().starts_with("the sum of 3 runs, up to 2 of them at the same time"),
        "{sum}"
    );
    assert_eq!(number(&sum, "/connections/asked"), 6.0);
    let duration_s = number(&sum, "/duration_s");
    assert!((2.0..3.0).contains(&duration_s), "three seconds, but two of the runs overlap: {duration_s}");
    let rate = number(&sum, "/requests/completed") / duration_s;
    assert!((number(&sum, "/rate_per_s") / rate - 1.0).abs() < 1e-9);
    // A sum is judged, and displayed, like a run.
    assert_eq!(number(&sum, "/evidence/load/completed"), number(&sum, "/requests/completed"));
    assert_eq!(sum["evidence"]["generator"]["threads"].as_array().map(Vec::len), Some(3), "{sum}");
    scratch.file("sum.json", &text);
    let shown = context.onrush().words("show").word(scratch.path().join("sum.json")).run_plain();
    let verdict = format!("verdict: {}", shown.stderr.split("verdict: ").nth(1).unwrap_or_default());
    assert!(verdict.contains(sum["verdict"]["reason"].as_str().unwrap()), "{shown:?}");
    merged("a.json b.json c.json -o sum.md");
    assert!(fs::read_to_string(scratch.path().join("sum.md")).unwrap().contains("\n| verdict | "));
    // A spreadsheet can compute this rate, too.
    merged("a.json b.json c.json -o sum.csv");
    let csv = fs::read_to_string(scratch.path().join("sum.csv")).unwrap();
    let column = |index: usize| -> f64 {
        csv.lines().skip(1).map(|row| row.split(',').nth(index).unwrap().parse::<f64>().unwrap()).sum()
    };
    assert!((column(3) / column(1) / rate - 1.0).abs() < 1e-6, "{csv}");
}

fn unmergeable_results_are_refused_with_reason(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("refused"));
    let run = |words: &str, name| written(context.onrush().words(words).word(url(&server, "/")), &scratch, [name]).1;
    let [text] = run("-n 10 -c 2", "a.json");
    run("-n 10 -c 3", "other.json");
    symlink("a.json", scratch.path().join("linked.json")).unwrap();
    scratch.file("later.json", text.replacen("\"schema\": 4", "\"schema\": 5", 1));
    scratch.file("text.json", "not JSON");
    scratch.file("foreign.json", "{\"requests\": 1}");
    scratch.file("half.json", &text[..text.len() / 2]);
    let damaged = text.replacen("\"bins\":\"HIST", "\"bins\":\"MIST", 1);
    scratch.file("damaged.json", damaged);
    scratch.file("copy.json", &text);
    run("-n 10 -c 2", "b.json");
    assert_eq!(merge(&scratch, "a.json b.json -o sum.json").code, 0);
    for (words, reason) in [
        (
            "a.json other.json",
            "\"other.json\" has a different plan from \"a.json\": connections is 3 instead of 2; --force adds",
        ),
        ("a.json other.json a.json", "\"a.json\" is given twice"),
        ("a.json later.json", "\"later.json\" has schema 5, and this onrush reads schema 4"),
        ("a.json text.json", "\"text.json\" is not a result of onrush"),
        ("foreign.json a.json", "\"foreign.json\" is not a result of onrush"),
        ("half.json", "\"half.json\" is cut off after "),
        ("a.json damaged.json", "\"damaged.json\" is damaged: its histogram cannot be read"),
        ("nowhere.json", "\"nowhere.json\" cannot be read"),
        ("a.json ./a.json", "\"./a.json\" and \"a.json\" are the same file"),
        ("a.json linked.json", "\"linked.json\" and \"a.json\" are the same file"),
        ("a.json copy.json", "\"a.json\" and \"copy.json\" hold the same run; a result counts once"),
        ("sum.json b.json", "hold the same run; a result counts once"),
        ("/dev/zero", "\"/dev/zero\" is longer than 64 MiB"),
        ("a.json -o nowhere/sum.json", "there is no directory"),
    ] {
        let output = merge(&scratch, words);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{words}: {output:?}");
        assert!(output.stderr.starts_with("onrush merge: ") && output.stderr.contains(reason), "{words}: {output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
    let forced: Value = serde_json::from_str(&merge(&scratch, "--force a.json other.json").stdout).unwrap();
    assert_eq!(number(&forced, "/connections/asked"), 3.0, "never more than three at a time");
    let note = "a result of a different plan was added: connections is 3 instead of 2";
    let has = forced["notes"].as_array().unwrap().iter().any(|it| it["id"] == "different_plans" && it["text"] == note);
    assert!(has, "{forced}");
}

fn unreadably_large_sums_are_refused(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("long"));
    let [text] = written(context.onrush().words("-n 10 -c 2").word(url(&server, "/")), &scratch, ["a.json"]).1;
    // This character is written as six, and a note twice, so the sum would be too long to be read again.
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let notes = serde_json::json!([{ "id": "interim", "weight": "hint", "text": "\x7f".repeat(11 << 19) }]);
    document["result"]["runs"][0]["notes"] = notes;
    scratch.file("a.json", document.to_string());
    let output = merge(&scratch, "a.json -o sum.json -o sum.csv");
    let why = "the result would have 67 MiB, more than the 64 MiB that onrush reads; merge fewer files";
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{}", output.stderr);
    assert_eq!(output.stderr, format!("onrush merge: --output \"sum.json\": {why}\n"));
    assert!(!scratch.path().join("sum.json").exists() && scratch.path().join("sum.csv").exists());
}

fn unwritable_sums_leave_nothing_behind(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("unwritten"));
    for name in ["a.json", "b.json"] {
        written(context.onrush().words("-n 10 -c 2").word(url(&server, "/")), &scratch, [name]);
    }
    let in_scratch = |onrush: Onrush| onrush.with(|command| _ = command.current_dir(scratch.path()));
    // Enough for only half of the sum.
    let output = in_scratch(context.limited("-f 8").words("merge a.json b.json -o sum.json")).run_plain();
    let why = "the file exceeds the file-size limit; raise the limit (ulimit -f)\n";
    assert_eq!((output.code, output.stderr), (1, format!("onrush merge: --output \"sum.json\": {why}")));
    // A pipe whose content never ends.
    assert!(Command::new("mkfifo").arg(scratch.path().join("pipe")).status().unwrap().success());
    let child = in_scratch(context.onrush().words("merge a.json pipe -o sum.json")).spawn();
    // Returns when the other side is opened for reading.
    let writer = fs::OpenOptions::new().write(true).open(scratch.path().join("pipe")).unwrap();
    signal(&child, Signal::INT);
    let output = finish(child);
    drop(writer);
    assert_eq!((output.code, output.stderr.as_str()), (130, "onrush: \"sum.json\" was not written\n"));
    let mut left: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.json", "b.json", "pipe"]);
}

/// Tries every option that influences a measurement, each on its own.
fn runs_with_different_options_are_not_merged(context: &Context) {
    let (authority, scratch) = (Authority::new(), Scratch::new("different"));
    let client = authority.issue(&["client.example"], |_| {});
    scratch.file("ca.pem", authority.certificate());
    scratch.file("client.pem", client.certificate);
    scratch.file("key.pem", client.key);
    scratch.file("one.body", "a".repeat(5_000));
    scratch.file("other.body", "a".repeat(4_999) + "b");
    let server = TlsServer::new(&authority.issue(&["localhost"], |_| {}));
    let url = format!("https://localhost:{}/", server.address.port());
    let run = |words: &str, name: &str| {
        let onrush = context.onrush().with(|command| {
            command.current_dir(scratch.path());
        });
        let output = onrush.words("-n4 -c2 -t1 -o").word(name).words(words).word(&url).run();
        assert_eq!((output.code, output.requests()), (0, 4), "{words}: {output:?}");
    };
    let table = [
        ("-k --tls-max 1.2", "tls.max is \"1.2\" instead of \"1.3\""),
        ("-k --tls-min 1.3", "tls.min is \"1.3\" instead of \"1.2\""),
        ("-k --tls-ciphers TLS_AES_128_GCM_SHA256", "tls.ciphers is [\"TLS_AES_128_GCM_SHA256\"] instead of nothing"),
        ("-k --tls-groups P-256", "tls.groups is [\"P-256\"] instead of nothing"),
        ("-k --tls-resume off", "tls.resume is false instead of true"),
        ("-k --sni www.example.com", "tls.name is \"www.example.com\" instead of \"localhost\""),
        ("--cacert ca.pem", "tls.check is true instead of false"),
        ("-k --cert client.pem --key key.pem", "tls.cert is \"client.pem\" instead of nothing"),
        ("-k -b 127.0.0.1", "way is {\"bind_ip\":[\"127.0.0.1\"]} instead of nothing"),
        ("-k --connect-to 127.0.0.1", "way is {\"connect_to\":\"127.0.0.1\"} instead of nothing"),
        ("-k --resolve localhost:127.0.0.1", "way is {\"resolve\":[\"127.0.0.1\"]} instead of nothing"),
        ("-k -4", "way is {\"family\":\"IPv4\"} instead of nothing"),
        ("-k --basic-auth me:pw", "headers.Authorization is \"REDACTED\" instead of nothing"),
        ("-k --disable-keepalive", "headers.Connection is \"close\" instead of nothing"),
    ];
    run("-k", "plain.json");
    for (words, expected) in table {
        run(words, "other.json");
        let output = merge(&scratch, "plain.json other.json");
        assert_eq!(output.code, 1, "{words}: {output:?}");
        assert!(output.stderr.starts_with("onrush merge: \"other.json\" has a different plan from \"plain.json\": "));
        assert!(output.stderr.contains(expected), "{words}: {output:?}");
    }
    run("-k --body @one.body", "one.json");
    run("-k --body @other.body", "other.json");
    let output = merge(&scratch, "one.json other.json");
    assert!(output.code == 1 && output.stderr.contains(": body_sha256 is \""), "{output:?}");
}

fn results_with_secrets_merge_with_redacted_ones(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("kept"));
    let run = |words: &str, name: &str| {
        let program = context.onrush().words("-n4 -c2 -H Cookie:id=7 --basic-auth a:b").words(words);
        let program = program.word(format!("--http-proxy=http://c:d@{}", server.address()));
        written(program.word(url(&server, "/?token=7")), &scratch, [name]);
    };
    run("", "a.json");
    run("--keep-secrets", "b.json");
    let sum = scratch.path().join("sum.json");
    assert_eq!(merge(&scratch, "a.json b.json -o sum.json").code, 0);
    let mode = fs::metadata(sum).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "what is private stays private");
    for files in ["a.json b.json", "b.json a.json"] {
        let output = merge(&scratch, files);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{files}: {output:?}");
    }
}

fn sums_break_gates_of_their_runs(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("sum of gates"));
    for name in ["a.json", "b.json"] {
        let words = "-n 200 -c 5 --fail-if requests>300 --fail-if status.5xx>0";
        let (output, _) = written(context.onrush().words(words).word(url(&server, "/")), &scratch, [name]);
        assert_eq!(output.code, 0, "{output:?}");
    }
    let output = merge(&scratch, "a.json b.json -o sum.json -o sum.xml");
    let line = "onrush: --fail-if requests>300: it was 400\n";
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (3, "", line));
    let sum: Value = serde_json::from_str(&fs::read_to_string(scratch.path().join("sum.json")).unwrap()).unwrap();
    let broken: Vec<Option<bool>> = [0, 1].map(|gate| sum["gates"][gate]["broken"].as_bool()).into();
    assert_eq!(broken, [Some(true), Some(false)]);
    let suite = fs::read_to_string(scratch.path().join("sum.xml")).unwrap();
    assert!(suite.contains("<failure message=\"it was 400\""), "{suite}");
    assert_eq!(merge(&scratch, "a.json").code, 0, "alone, it is as it was");
    // A gate that was not judged does not count as passed.
    written(context.onrush().words("-n 200 -c 5").word(url(&server, "/")), &scratch, ["c.json"]);
    let output = merge(&scratch, "a.json c.json -o ac.json");
    let note = |gate: &str| format!("note: gate '{gate}' was not judged for the sum: not all results have it\n");
    assert_eq!((output.code, output.stderr), (0, note("requests>300") + &note("status.5xx>0")));
}

/// A file may be damaged in any way: the program always ends with a message.
fn absurd_figures_are_refused(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("absurd"));
    let (_, [text]) = written(context.onrush().words("-n10 -c2").word(url(&server, "/")), &scratch, ["a.json"]);
    let good: Value = serde_json::from_str(&text).unwrap();
    let table: [(&str, Value); 12] = [
        ("/result/runs", serde_json::json!([])),
        ("/result/runs/0/row_ns", 0.into()),
        ("/result/runs/0/elapsed_ns", (-1).into()),
        ("/result/runs/0/elapsed_ns", (1u64 << 62).into()),
        ("/result/runs/0/rows/0/completed", u64::MAX.into()),
        ("/result/runs/0/rows/0/latency/bins", serde_json::json!([[65_535, 1]])),
        ("/result/runs/0/rows/0/latency/bins", serde_json::json!([[8, 1], [8, 1]])),
        ("/result/sums/totals/counters/completed", u64::MAX.into()),
        ("/result/sums/totals/counters/bytes_received", (-1).into()),
        ("/result/sums/totals/latency/sum", 1e300.into()),
        ("/result/sums/totals/statuses", serde_json::json!([[200, u64::MAX]])),
        ("/result/sums/errors/read", u64::MAX.into()),
    ];
    for (pointer, figure) in table {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect("it is there") = figure.clone();
        for name in ["bad.json", "worse.json"] {
            scratch.file(name, bad.to_string());
        }
        for files in ["a.json bad.json", "bad.json worse.json"] {
            let output = merge(&scratch, files);
            assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{pointer} {figure}: {output:?}");
            assert!(output.stderr.contains("is damaged: "), "{pointer} {figure}: {output:?}");
        }
    }
}
