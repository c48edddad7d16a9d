//! Lists of requests (`--urls`): requests, order, and faults.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::harness::{Context, Scratch, cases, target, url};
use crate::servers::{LoggingServer, assert_counted, assert_no_errors};

cases! {
    nginx_logs_list_requests_in_order needs "nginx";
    list_requests_are_sent_once needs "nginx";
    requests_are_sent_in_proportion_to_their_weights needs "nginx";
    list_requests_have_separate_parts;
    lists_work_over_http2 needs "nginx";
    names_have_separate_results;
    surplus_names_share_one_row (Once);
    lists_can_name_the_target (Once);
    faulty_lists_are_refused_before_sending (Once);
    long_lists_are_read_quickly (Once);
}

/// Request targets in a log, in order.
fn paths(log: &[String]) -> Vec<String> {
    let path =
        |line: &String| line.split('"').nth(1).unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    log.iter().map(path).collect()
}

/// Number of occurrences of each path.
fn counts(paths: Vec<String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    paths.into_iter().for_each(|path| *counts.entry(path).or_default() += 1);
    counts
}

fn nginx_logs_list_requests_in_order(context: &Context) {
    let (nginx, scratch) = (LoggingServer::nginx(1_000), Scratch::new("list"));
    let list = scratch.file("urls.txt", format!("# three of them\n/hello?a\n{}\n\n/hello?c\n", nginx.url("/hello?b")));
    let output = context.onrush().words("-t1 -c1 -n7 --urls").word(list).word(nginx.url("/")).run();
    assert_no_errors(&output);
    assert!(output.stdout.contains("3 requests from "), "{output:?}");
    let log = nginx.log();
    assert_counted(&output, &log, 1);
    assert_eq!(paths(&log), ["a", "b", "c", "a", "b", "c", "a"].map(|name| format!("/hello?{name}")));
}

fn list_requests_are_sent_once(context: &Context) {
    for order in ["seq", "shuffle"] {
        let (nginx, scratch) = (LoggingServer::nginx(1_000), Scratch::new("list"));
        let lines: String = (0..500).map(|number| format!("/hello?{number}\n")).collect();
        let list = scratch.file("urls.txt", lines);
        let words = format!("-t2 -c8 -n500 --urls-order {order} --urls");
        assert_no_errors(&context.onrush().words(&words).word(list).word(nginx.url("/")).run());
        let paths = paths(&nginx.log());
        let is_sorted = paths.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(!is_sorted, "threads and connections take turns");
        let counts = counts(paths);
        assert!(counts.len() == 500 && counts.values().all(|count| *count == 1), "{order}: {counts:?}");
    }
}

fn requests_are_sent_in_proportion_to_their_weights(context: &Context) {
    let (nginx, scratch) = (LoggingServer::nginx(10_000), Scratch::new("list"));
    let list = scratch.file("urls.txt", "/hello?a weight=6\n/hello?b weight=3\n/hello?c\n");
    let words = "-t2 -c4 -n10000 --urls-order weighted --urls";
    assert_no_errors(&context.onrush().words(words).word(list).word(nginx.url("/")).run());
    let counts = counts(paths(&nginx.log()));
    let expected = [("/hello?a", 6_000.0), ("/hello?b", 3_000.0), ("/hello?c", 1_000.0)];
    let chi: f64 = expected.iter().map(|(path, expected)| (counts[*path] as f64 - expected).powi(2) / expected).sum();
    // Chi-squared with 2 degrees of freedom: 18.4 is the 0.9999 quantile. The seed is fixed, and so are the counts.
    assert!(chi < 18.4, "{chi}: {counts:?}");
}

fn list_requests_have_separate_parts(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("list"));
    let body = scratch.file("body.json", "{\"a\": 1}");
    let once = |text: &str| {
        let list = scratch.file("urls.txt", text);
        let onrush = context.onrush().words("--once -H").word("X-Usual: all").word("--urls").word(list);
        onrush.word(url(&server, "/")).run().stdout
    };
    let fields = "Content-Type: application/json\r\nx-usual: own\r\n";
    let first = once(&format!("\u{feff}PUT /echo\r\n{fields}# more\r\n@{}\r\n\r\n/echo\r\n", body.display()));
    for words in ["PUT /echo HTTP/1.1", "Content-Type: application/json", "x-usual: own", "{\"a\": 1}"] {
        assert!(first.contains(words), "{first}");
    }
    assert!(!first.contains("X-Usual: all"), "{first}");
    let second = once("/echo\nX-Other: b\nX-Other: c\n");
    for words in ["GET /echo HTTP/1.1", "X-Usual: all", "X-Other: b", "X-Other: c"] {
        assert!(second.contains(words), "{second}");
    }
    // A secret in a list is hidden in every output.
    let secret = once("POST /echo\nX-Api-Key: zebra-giraffe-77\n");
    assert!(secret.contains("X-Api-Key: ") && !secret.contains("zebra-giraffe-77"), "{secret}");
    let posted = once(&format!("/echo\n@{}\n", body.display()));
    assert!(posted.contains("POST /echo HTTP/1.1"), "{posted}");
}

fn lists_work_over_http2(context: &Context) {
    let (nginx, scratch) = (LoggingServer::nginx_with(" http2", "", |_| {}), Scratch::new("list"));
    let list = scratch.file("urls.txt", "/hello?a\n/hello?b\nX-Own: 1\n/hello?c\n");
    let words = "-t1 -c2 -n300 --http2 --streams 5 -R 1000 --urls";
    let result = scratch.path().join("result.json");
    let onrush = context.onrush().words(words).word(list).word("-o").word(&result);
    assert_no_errors(&onrush.word(nginx.url("/")).run());
    let result: Value = serde_json::from_slice(&fs::read(result).expect("a result")).expect("JSON");
    let listed = &result["plan"]["list"];
    assert_eq!((listed["requests"].as_u64(), listed["order"].as_str()), (Some(3), Some("seq")), "{listed}");
    let counts = counts(paths(&nginx.log()));
    assert!(counts.len() == 3 && counts.values().all(|count| *count == 100), "{counts:?}");
}

/// The slow request is visible although it is rare, and a gate on it breaks.
fn names_have_separate_results(context: &Context) {
    let (target, scratch) = (target(), Scratch::new("list"));
    let lines = "/delay/30 name=slow\n/bytes/10 name=fast weight=30\n/status/503 name=broken weight=3\n/bytes/1\n";
    let list = scratch.file("urls.txt", lines);
    for words in ["-t2 -c4 -n600", "-t1 -c4 -n600 -R 1k --http2 --streams 2"] {
        let file = scratch.path().join("result.json");
        let words = format!("{words} --urls-order weighted --fail-if p50[slow]>20ms --fail-if errors[fast]>0 -o");
        let onrush = context.onrush().words(&words).word(&file).word("--urls").word(&list).word(url(&target, ""));
        let output = onrush.run();
        assert_eq!(output.code, 3, "{output:?}");
        assert!(output.stderr.contains("p50[slow]>20ms: it was "), "{output:?}");
        let result: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let names = result["names"].as_array().unwrap();
        let called: Vec<&str> = names.iter().map(|it| it["name"].as_str().unwrap_or("-")).collect();
        assert_eq!(called, ["slow", "fast", "broken", "-"]);
        let count = |index: usize, key: &str| names[index][key].as_u64().unwrap();
        assert_eq!((0..4).map(|index| count(index, "completed")).sum::<u64>(), 600, "{names:?}");
        assert_eq!(names[2]["status"], serde_json::json!({ "503": count(2, "completed") }));
        assert_eq!(count(2, "unsuccessful"), count(2, "completed"));
        assert_eq!((count(0, "unsuccessful"), count(1, "unsuccessful")), (0, 0));
        let least = |index: usize| names[index]["latency"]["min_us"].as_f64().unwrap();
        assert!(least(0) >= 30_000.0 && least(1) < least(0), "{names:?}");
        assert!(output.stdout.contains("\n  Name ") && output.stdout.contains("\n    (others) "), "{output:?}");
        fs::remove_file(file).unwrap();
    }
    for (gate, words) in [
        ("p99[slo]>1s", "no request of the list is called slo; did you mean slow?"),
        ("late[slow]>0", "late is not known by name"),
        ("p99[slow>1s", "expected the name of a request"),
    ] {
        let onrush =
            context.onrush().words("-n1 --fail-if").word(gate).word("--urls").word(&list).word(url(&target, ""));
        let output = onrush.run_plain();
        assert!(output.code == 1 && output.stderr.contains(words), "{gate}: {output:?}");
    }
    let output = context.onrush().words("-n1 --fail-if p99[slow]>1s").word(url(&target, "/")).run_plain();
    assert!(output.code == 1 && output.stderr.contains("add --urls FILE, whose lines have name=X"), "{output:?}");
}

fn surplus_names_share_one_row(context: &Context) {
    let (target, scratch) = (target(), Scratch::new("list"));
    let lines: String = (0..300).map(|number| format!("/bytes/1 name=n{number}\n")).collect();
    let (list, file) = (scratch.file("urls.txt", lines), scratch.path().join("result.json"));
    let onrush = context.onrush().words("-t2 -c2 -n600 -o").word(&file).word("--urls").word(list);
    let output = onrush.word(url(&target, "")).run();
    assert_no_errors(&output);
    assert!(output.stderr.contains("the list has 300 names: the first 200 have results of their own"), "{output:?}");
    let result: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let counts: Vec<u64> =
        result["names"].as_array().unwrap().iter().map(|it| it["completed"].as_u64().unwrap()).collect();
    assert_eq!((counts.len(), counts[200]), (201, 200));
    assert!(counts[..200].iter().all(|count| *count == 2), "{counts:?}");
}

fn lists_can_name_the_target(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("list"));
    let list = scratch.file("urls.txt", format!("/bytes/1\nGET {}\n", url(&server, "/bytes/2")));
    let output = context.onrush().words("-t1 -c1 -n4 --urls").word(list).run();
    assert_no_errors(&output);
    assert_eq!(output.requests(), 4);
    let list = scratch.file("paths.txt", "/bytes/1\n");
    let output = context.onrush().words("-n4 --urls").word(list).run_plain();
    assert!(
        output.code == 1 && output.stderr.contains("no URL names a host; give the target, for instance"),
        "{output:?}"
    );
}

fn faulty_lists_are_refused_before_sending(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("list"));
    let long = format!("/{}", "x".repeat(70_000));
    for (text, words) in [
        (&b""[..], "the list is empty; write one request on each line"),
        (b"# nothing\n\n", "the list is empty"),
        (b"/a\nnonsense\n", "line 2: \"nonsense\" is neither a request nor a header"),
        (b"/a\n\nX-A: 1\n", "line 3: \"X-A: 1\" belongs to no request"),
        (b"/a\n\nAuthorization: Bearer zebra-77\n", "belongs to no request"),
        (b"/a\nhttp://ada:zebra/77@h/\n", "line 2: "),
        (b"/a\n127.0.0.1:80/b\n", "line 2: \"127.0.0.1:80/b\" has no scheme; write http:// in front"),
        (b"/a\nhttp://elsewhere:1/b\n", "line 2: \"http://elsewhere:1/b\" is not on http://127.0.0.1:"),
        (b"/a\n/\xff\n", "line 2: not UTF-8"),
        (b"/a\x01\n", "in a path; write %01"),
        (b"POST /a\n@/nonexistent\n", "\"/nonexistent\": No such file or directory"),
        (b"POST /a\n@a\n@b\n", "line 3: the request already has a body"),
        (b"/a weight=x\n", "line 1: \"weight=x\": a weight is a whole number"),
        (b"{\"url\": \"/\"}\n", "line 1: this looks like JSON"),
        (b"/a nam=b\n", "line 1: \"nam=…\" after the URL"),
        (b"/a name=b[c]\n", "line 1: \"name=b[c]\": a name has 1 to 64 characters"),
        (long.as_bytes(), "line 1: the path has 70001 bytes; at most 65536 are allowed"),
    ] {
        let list = scratch.file("urls.txt", text);
        let output = context.onrush().words("-n4 --urls").word(list).word(url(&server, "/")).run_plain();
        assert!(output.code == 1 && output.stderr.contains(words), "{words}: {output:?}");
        assert!(!output.stderr.contains("zebra"), "{output:?}");
    }
    let missing = context.onrush().words("-n1 --urls /nonexistent").word(url(&server, "/")).run_plain();
    assert!(missing.code == 1 && missing.stderr.contains("--urls \"/nonexistent\": No such file"), "{missing:?}");
    let list = scratch.file("urls.txt", "/a\n");
    let both = context.onrush().words("-n1 -s x.lua --urls").word(&list).word(url(&server, "/")).run_plain();
    assert!(both.code == 1 && both.stderr.contains("both say what is sent"), "{both:?}");
    let alone = context.onrush().words("-n1 --urls-order seq").word(url(&server, "/")).run_plain();
    assert!(alone.code == 1 && alone.stderr.contains("there is no list; add --urls FILE"), "{alone:?}");
    let compat = context.onrush().compat().words("--urls").word(&list).word(url(&server, "/")).run_plain();
    assert!(compat.code == 1 && compat.stderr.contains("has no lists of requests"), "{compat:?}");
}

fn long_lists_are_read_quickly(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("list"));
    let lines: String = (0..200_000).map(|number| format!("/bytes/{}?{number}\n", number % 100)).collect();
    let list = scratch.file("urls.txt", lines);
    let output = context.onrush().words("-t2 -c4 -n2000 --urls").word(list).word(url(&server, "/")).run();
    assert_no_errors(&output);
    assert!(output.stdout.contains("  200,000 requests from "), "{output:?}");
}
