//! Saved results as reports, compressed, through pipes, and as tables.

use std::fs;

use serde_json::Value;

use crate::harness::{Context, Scratch, cases, on_terminal, target, url};
use crate::results::number;

cases! {
    saved_results_reproduce_printed_reports (Once);
    documents_pass_through_standard_streams (Once);
    sums_are_reports_only_on_terminals (Once);
    unreadable_files_are_named_and_skipped (Once);
    folders_of_results_become_tables (Once);
}

fn saved_results_reproduce_printed_reports(context: &Context) {
    let scratch = Scratch::new("shown");
    let path = scratch.path().join("result.json.gz");
    let scenario = scratch.file("404.toml", "answer = \"HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\n\\r\\n\"");
    for words in [
        "-d 3s -c4 -t2 --latency",
        "-n 500 -c4 --breakout=all --percentiles 50,99.9",
        "-d 3s -R 500 -L -U",
        "-d 3s -R 500 -U --percentiles 50,99",
    ] {
        let onrush = context.onrush().words(words).words("--io").word(format!("sim:{}", scenario.display()));
        let run = onrush.word("-o").word(&path).word("http://127.0.0.1:8080/").run_plain();
        let shown = context.onrush().word("show").word(&path).run_plain();
        assert_eq!((run.code, shown.code), (0, 0), "{run:?} {shown:?}");
        assert_eq!((&shown.stdout, &shown.stderr), (&run.stdout, &run.stderr), "{words}");
    }
    assert_eq!(fs::read(&path).unwrap()[..2], [0x1f, 0x8b]);
    // As another tool, which prints no notes.
    let slow = scratch.file("slow.toml", "latency_us = 4321.0\njitter_us = 90000.0\n");
    for words in ["wrk -d3s -c4 -L", "wrk-cmm -d3s -c4 -L -b", "wrk2 -d3s -c9 -R50 -L -U", "wrk2 -d3s -c9 -R900"] {
        let words = format!("--compat {words} --notes=off --io").replace(" -b ", " --breakout ");
        let onrush = context.onrush().words(&words).word(format!("sim:{}", slow.display()));
        let run = onrush.word("-o").word(&path).word("http://127.0.0.1:8080/").run_plain();
        let shown = context.onrush().word("show").word(&path).run_plain();
        assert_eq!((run.code, shown.code), (0, 0), "{run:?} {shown:?}");
        assert_eq!(shown.stdout, run.stdout, "{words}");
    }
}

fn documents_pass_through_standard_streams(context: &Context) {
    let server = target();
    let run = context.onrush().words("-n 50 -c 5 -o -").word(url(&server, "/")).run();
    let document: Value = serde_json::from_str(&run.stdout).expect("it is JSON and nothing else");
    assert_eq!(number(&document, "/requests/completed"), 50.0);
    let piped = |words: &str| {
        let output = context.onrush().words(words).stdin(run.stdout.as_bytes()).run_plain();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{words}: {output:?}");
        output.stdout
    };
    assert_eq!(piped("show --format json -"), run.stdout);
    assert!(piped("show --format cmm-json -").starts_with("{\n\t\"requests\": 50,\n"));
    let merged: Value = serde_json::from_str(&piped("merge -o - -")).expect("it is JSON");
    assert_eq!(number(&merged, "/requests/completed"), 50.0);
    assert!(piped("table --columns requests -").ends_with("| 1 | 50 |\n"));
}

fn sums_are_reports_only_on_terminals(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("sum"));
    let path = scratch.path().join("a.json");
    assert_eq!(context.onrush().words("-n 50 -c 5 -o").word(&path).word(url(&server, "/")).run().code, 0);
    let merge = || context.onrush().word("merge").word(&path);
    let (shown, output) = on_terminal(merge(), |command, terminal| _ = command.stdout(terminal));
    assert!(shown.starts_with("Running 50 requests test @ ") && output.code == 0, "{shown}{output:?}");
    assert!(serde_json::from_str::<Value>(&merge().run_plain().stdout).is_ok());
    let (shown, _) = on_terminal(merge().words("-o -"), |command, terminal| _ = command.stdout(terminal));
    assert!(shown.starts_with('{'), "{shown}");
}

fn unreadable_files_are_named_and_skipped(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("unread"));
    let [whole, half] = ["whole.json", "half.json"].map(|name| scratch.path().join(name));
    assert_eq!(context.onrush().words("-n 50 -c 5 -o").word(&whole).word(url(&server, "/")).run().code, 0);
    let text = fs::read(&whole).unwrap();
    fs::write(&half, &text[..text.len() / 2]).unwrap();
    for command in ["show", "table"] {
        let output = context.onrush().word(command).word(&half).word(&whole).run_plain();
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.stdout.contains("50") && output.stderr.contains("half.json"), "{output:?}");
        assert!(output.stderr.contains(" is cut off after "), "{output:?}");
        let output = context.onrush().word(command).word(&half).run_plain();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.lines().count()), (1, "", 1), "{output:?}");
    }
}

fn folders_of_results_become_tables(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("folder"));
    for name in ["x-c-10-1.json", "x-c-2-1.json.gz", "x-c-2-2.json"] {
        let path = scratch.path().join(name);
        assert_eq!(context.onrush().words("-n 50 -o").word(path).word(url(&server, "/")).run().code, 0);
    }
    let output = context.onrush().words("table --columns wrk-cmm").word(scratch.path()).run_plain();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let key = |line: &str| line.split(" | ").take(3).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = output.stdout.lines().map(key).collect();
    let first = ["| c run requests", "| 2 1 50", "| 2 2 50", "| 2 avg 50.00", "| 10 1 50", "| 10 avg 50.00"];
    assert_eq!(
        (&rows[0], &rows[2..7]),
        (&first[0].to_owned(), &first[1..].iter().map(|row| (*row).to_owned()).collect::<Vec<_>>()[..])
    );
}
