//! Checks of responses (`--expect-status`, `--expect-header`, `--expect-body`): counts, messages, and the end of a run.

use serde_json::{Value, json};

use crate::harness::{Context, Scratch, cases, target, url};
use crate::servers::{LoggingServer, assert_no_errors};
use crate::simulation::simulated_document;

cases! {
    nginx_passes_valid_checks needs "nginx";
    failed_checks_are_counted_named_and_shown;
    status_lists_define_success;
    checks_work_with_http2_rates_and_warm_ups;
    large_bodies_are_searched_completely;
    once_reports_check_results (Once);
    scripts_work_with_checks (Once);
    unsuccessful_responses_do_not_sustain_a_rate (Once);
    faulty_checks_are_refused_before_sending (Once);
}

fn nginx_passes_valid_checks(context: &Context) {
    let nginx = LoggingServer::nginx(1_000);
    let words = "-t1 -c4 -n200 --expect-status 200 --expect-header server --expect-body World";
    let onrush = context.onrush().words(words).word("--expect-header").word("content-length: 13");
    let output = onrush.word(nginx.url("/hello")).run();
    assert_no_errors(&output);
    assert_eq!((output.line("Failed checks"), nginx.log().len()), (None, 200), "{output:?}");
}

fn failed_checks_are_counted_named_and_shown(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("checks"));
    let [result, rows] = ["result.json", "rows.csv"].map(|name| scratch.path().join(name));
    let onrush = context.onrush().words("-t1 -c2 -n50 --body hello --expect-body hell --expect-body heaven -o");
    let onrush = onrush.word(&result).word("-o").word(&rows).word("--fail-if").word("errors.check>0");
    let output = onrush.word(url(&server, "/echo")).run();
    assert_eq!(output.code, 3, "{output:?}");
    assert_eq!(output.line("Failed checks:"), Some("Failed checks: 50"), "{output:?}");
    assert!(output.note("check: 50").contains("50 × the body does not contain \"heaven\""), "{output:?}");
    assert!(output.stderr.contains("received: \"POST /echo HTTP/1.1\\x0d"), "{output:?}");
    let document: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
    assert_eq!(document["errors"]["check"], 50, "{document}");
    assert_eq!(document["requests"]["unsuccessful"], 50, "{document}");
    assert_eq!(document["plan"]["expected"], json!({ "body": ["hell", "heaven"] }));
    let row = &document["ledger"][0];
    assert_eq!((&row["phase"], &row["example_is"]), (&json!("check"), &json!("received")), "{document}");
    let rows = std::fs::read_to_string(&rows).unwrap();
    let mut rows = rows.lines().map(|row| row.split(','));
    let column = rows.next().unwrap().position(|name| name == "check_errors").unwrap();
    let failed = rows.map(|mut row| row.nth(column).unwrap().parse::<u64>().unwrap());
    assert_eq!(failed.sum::<u64>(), 50);
}

fn status_lists_define_success(context: &Context) {
    let server = target();
    let gate = |list: &str, path: &str| {
        let onrush = context.onrush().words("-t1 -c2 -n50 --fail-if errors>0 --expect-status").word(list);
        onrush.word(url(&server, path)).run()
    };
    let output = gate("200,404", "/status/404");
    assert_eq!((output.code, output.line("Responses other")), (0, None), "{output:?}");
    let output = gate("404", "/");
    assert_eq!((output.code, output.line("Responses other")), (3, Some("Responses other than 404: 50")), "{output:?}");
    let said = output.note("instead of 404");
    assert!(said.contains("all 50 responses were 200 instead of 404; --once shows one in full"), "{said}");
}

fn checks_work_with_http2_rates_and_warm_ups(context: &Context) {
    let server = target();
    for words in ["--http2 --streams 4", "-R 2k", "--warmup 100ms", "--disable-keepalive"] {
        for (text, is_there) in [("ell", true), ("elk", false)] {
            let onrush = context.onrush().words("-t1 -c2 -n60 --body hello --expect-status 2xx").words(words);
            let onrush = onrush.words("--expect-header Content-Length --expect-body").word(text);
            let output = onrush.word(url(&server, "/echo")).run();
            // Requests of a warm-up may be in flight when the measurement starts.
            let more = output.line("1 more").map_or(0, |_| 1) + output.line("2 more").map_or(0, |_| 2);
            let line = (!is_there).then(|| format!("Failed checks: {}", output.requests() + more));
            assert!(output.requests() >= 60, "{words}: {output:?}");
            assert_eq!(output.line("Failed checks"), line.as_deref(), "{words}: {output:?}");
        }
    }
}

fn large_bodies_are_searched_completely(context: &Context) {
    let server = target();
    let (scratch, mut body) = (Scratch::new("checks"), vec![b'x'; 900_000]);
    body.extend(b"the end");
    let file = scratch.file("body", body);
    for (text, failed) in [("xthe end", None), ("xxthe  end", Some("Failed checks: 10"))] {
        for version in ["--http1.1", "--http2"] {
            let onrush = context.onrush().words("-t1 -c1 -n10").words(version).words("--expect-body").word(text);
            let onrush = onrush.word("--body").word(format!("@{}", file.display()));
            let output = onrush.word(url(&server, "/echo")).run();
            assert_eq!((output.line("Failed checks"), output.requests()), (failed, 10), "{version}: {output:?}");
        }
    }
}

fn once_reports_check_results(context: &Context) {
    let server = target();
    let once = |words: &str| {
        context.onrush().words("--once --body hello --expect-status 200").words(words).word(url(&server, "/echo")).run()
    };
    assert!(once("").stdout.ends_with("checks: the only one holds\n"));
    assert!(once("--expect-body hell").stdout.ends_with("checks: all 2 hold\n"));
    let output = once("--expect-body heaven --expect-header ETag");
    let line = "checks: 2 of 3 failed: no header ETag; the body does not contain \"heaven\"\n";
    assert!(output.stdout.ends_with(line), "{output:?}");
}

fn scripts_work_with_checks(context: &Context) {
    let server = target();
    let script = "local seen = 0\nfunction response(status, headers, body) if body == 'hello' then seen = seen + 1 end end\n\
                  function request() return wrk.format('POST', '/echo', {}, 'hello') end";
    let onrush = context.onrush().words("-t1 -c1 -n20 --expect-body hello --expect-body bye").lua(script);
    let output = onrush.word(url(&server, "/")).run();
    assert_eq!((output.line("Failed checks"), output.requests()), (Some("Failed checks: 20"), 20), "{output:?}");
}

fn unsuccessful_responses_do_not_sustain_a_rate(context: &Context) {
    for (words, verdict) in [
        ("--expect-body World --expect-status 200,204", "schedule"),
        ("--expect-status 204", "100 % of the responses were 200"),
        ("--expect-body no", "100 % of the responses failed a check"),
    ] {
        let (_, document) = simulated_document(context.onrush().words("-t1 -c8 -d12s -R500").words(words), "");
        assert!(document["verdict"].to_string().contains(verdict), "{words}: {:#}", document["verdict"]);
    }
}

fn faulty_checks_are_refused_before_sending(context: &Context) {
    for (option, value, reason) in [
        (
            "--expect-status",
            "99",
            "\"99\" is not a status, a range or a class of statuses; write for instance 200, 2xx \
                                   or",
        ),
        ("--expect-status", "2x", "\"2x\" is not a status, a range or a class of statuses"),
        ("--expect-status", "700", "\"700\" is outside 200 to 599"),
        ("--expect-body", "", "an empty text, which every body contains; write a part of the body"),
        ("--expect-header", "Content-Type text/html", "no colon; write 'Name: value', or 'Name' for any value"),
        ("--expect-header", "A: b\nC: d", "a control character in the value; leave it out"),
    ] {
        let output = context.onrush().word(option).word(value).word("http://127.0.0.1:9/").run_plain();
        let line = format!("onrush: {option} {value:?}: {reason}");
        assert!(output.code == 1 && output.stderr.starts_with(&line), "{line}: {output:?}");
    }
    let output = context.onrush().words("--compat wrk --expect-status 200 http://127.0.0.1:9/").run_plain();
    let line = "onrush: --expect-status: wrk does not check responses; leave it out\n";
    assert!(output.code == 1 && output.stderr.ends_with(line), "{output:?}");
}
