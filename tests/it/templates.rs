//! Placeholders (`--templates`) and forms: requests, and faults.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::harness::{Context, Scratch, cases, target, url};
use crate::servers::{LoggingServer, assert_counted, assert_no_errors};
use crate::tls::NGINX_PAIR;
use crate::tls_peers::{self_signed, write};

cases! {
    nginx_logs_placeholders_in_order needs "nginx";
    sequence_numbers_are_sent_once needs "nginx";
    placeholders_are_filled_in_over_http2_and_tls needs "nginx";
    filled_requests_have_computed_lengths;
    lists_allow_placeholders_in_every_part;
    one_request_of_every_name_is_shown;
    forms_are_sent_as_by_curl;
    many_rows_are_read_quickly (Once);
    faulty_placeholders_are_refused_before_sending (Once);
    faulty_forms_are_explained (Once);
}

/// Request targets in a log, in order.
fn targets(log: &[String]) -> Vec<&str> {
    log.iter().filter_map(|line| line.split('"').nth(1)?.split(' ').nth(1)).collect()
}

/// The number after the last `=` of each target.
fn numbers(log: &[String]) -> Vec<u64> {
    targets(log).iter().filter_map(|target| target.rsplit('=').next()?.parse().ok()).collect()
}

const USERS: &str = "id,name\r\n7,Ada\r\n8,\"Grace, H\"\r\n9,\"a \"\"b\"\"\"\r\n";

fn nginx_logs_placeholders_in_order(context: &Context) {
    let (nginx, scratch) = (LoggingServer::nginx(1_000), Scratch::new("templates"));
    let users = scratch.file("users.csv", USERS);
    let csv = |column: &str| format!("{{{{csv \"{}\" {column}}}}}", users.display());
    let path = format!("/hello?{}&{}&n={{{{seq}}}}", csv("id"), csv("name"));
    let output = context.onrush().words("-t1 -c1 -n5 --templates").word(nginx.url(&path)).run();
    assert_no_errors(&output);
    let log = nginx.log();
    assert_counted(&output, &log, 1);
    let expected = ["7&Ada&n=1", "8&Grace%2C%20H&n=2", "9&a%20%22b%22&n=3", "7&Ada&n=4", "8&Grace%2C%20H&n=5"];
    assert_eq!(targets(&log), expected.map(|query| format!("/hello?{query}")));
}

fn sequence_numbers_are_sent_once(context: &Context) {
    for words in ["-t2 -c10 -n601 --templates", "-t2 -c10 -n601 -R 3000 --templates"] {
        let nginx = LoggingServer::nginx(1_000);
        assert_no_errors(&context.onrush().words(words).word(nginx.url("/hello?n={{seq}}")).run());
        let mut numbers = numbers(&nginx.log());
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=601).collect::<Vec<_>>(), "{words}");
    }
}

fn placeholders_are_filled_in_over_http2_and_tls(context: &Context) {
    for (is_tls, listen, words) in
        [(false, " http2", "--http2 --streams 5"), (true, " ssl http2", "-k --http2 --streams 5"), (true, " ssl", "-k")]
    {
        let pair = if is_tls { NGINX_PAIR } else { "" };
        let nginx = LoggingServer::nginx_with(listen, pair, |directory| write(&self_signed(&["localhost"]), directory));
        let url = nginx.url("/hello?n={{seq}}").replace("http://", if is_tls { "https://" } else { "http://" });
        assert_no_errors(&context.onrush().words("-t2 -c4 -n300 --templates").words(words).word(url).run());
        let numbers: BTreeSet<u64> = numbers(&nginx.log()).into_iter().collect();
        assert_eq!(numbers.len(), 300, "{listen}");
    }
}

fn filled_requests_have_computed_lengths(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("templates"));
    let users = scratch.file("users.csv", USERS);
    let body = scratch.file("body.json", format!("{{\"n\":\"{{{{csv {} name | json}}}}\"}}", users.display()));
    let result = scratch.path().join("result.json");
    let once = || {
        let onrush = context.onrush().words("--once --templates -o").word(&result);
        let onrush = onrush.words("-H").word("X-Id: {{uuid}}").words("--body").word(format!("@{}", body.display()));
        onrush.word(url(&server, "/echo?{{rand 1 1000000}}&{{{{a}}")).run().stdout
    };
    let shown = once();
    for words in ["&{{a}} HTTP/1.1", "Content-Length: 11\n", "{\"n\":\"Ada\"}"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let sent = |shown: &str| shown.lines().filter(|line| line.starts_with('>')).collect::<Vec<_>>().join("\n");
    assert_eq!(sent(&shown), sent(&once()), "every run has the same values");
    let result: Value = serde_json::from_slice(&fs::read(result).expect("a result")).expect("JSON");
    let file = &result["plan"]["templates"][0];
    assert_eq!((file["path"].as_str(), file["bytes"].as_u64()), (users.to_str(), Some(USERS.len() as u64)), "{file}");
    let plain = context.onrush().words("--once").word(url(&server, "/echo?{{seq}}")).run();
    assert!(plain.stdout.contains("/echo?{{seq}} HTTP/1.1"), "{plain:?}");
    assert!(plain.stderr.contains("{{seq}} is sent as it is; --templates fills it in"), "{plain:?}");
}

fn lists_allow_placeholders_in_every_part(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("templates"));
    let words = scratch.file("words.txt", "a b\nc/d\n");
    let body = scratch.file("body.txt", "number {{seq}}");
    let (words, body) = (words.display(), body.display());
    let list = format!("PUT /echo?{{{{line {words}}}}} weight=2\nX-Word: {{{{ line {words} }}}}\n@{body}\n");
    let list = scratch.file("urls.txt", list);
    let onrush = context.onrush().words("--once --templates --urls").word(&list).words("-H").word("X-All: {{seq}}");
    let shown = onrush.word(url(&server, "/")).run().stdout;
    for words in ["PUT /echo?a%20b HTTP/1.1", "X-All: 1\n", "X-Word: a b\n", "Content-Length: 8\n", "number 1"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

fn one_request_of_every_name_is_shown(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("templates"));
    let list =
        scratch.file("urls.txt", "/echo?0\n/echo?1 name=a\n/echo?2 name=b\n/echo?3 name=a\n/echo?{{seq}} name=c\n");
    let shown = |words: &str| {
        let onrush = context.onrush().words("--once --templates --urls").word(&list).words(words);
        let shown = onrush.word(url(&server, "/")).run().stdout;
        shown.lines().filter(|line| line.starts_with("> GET")).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [1, 2, 5].map(|number| format!("> GET /echo?{number} HTTP/1.1"));
    assert_eq!(shown(""), expected);
    assert_eq!(shown("--urls-order shuffle"), expected);
}

fn forms_are_sent_as_by_curl(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("templates"));
    let file = scratch.file("a.txt", "{{seq}}");
    let once = |options: &[&str]| {
        let onrush = options.iter().fold(context.onrush().words("--once"), |onrush, word| onrush.word(word));
        onrush.word(url(&server, "/echo")).run().stdout
    };
    let shown = once(&["--templates", "-F", "n={{seq}}", "-F", &format!("f=@{};type=a/b", file.display())]);
    for words in [
        "POST /echo HTTP/1.1",
        "Content-Type: multipart/form-data; boundary=------------------------",
        "Content-Disposition: form-data; name=\"n\"\n>\n> 1\n> --",
        "Content-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\n> Content-Type: a/b\n>\n> {{seq}}\n> --",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let shown = once(&["-X", "PUT", "--data-urlencode", "a=b c&", "--data-urlencode", "=d"]);
    for words in ["PUT /echo HTTP/1.1", "Content-Type: application/x-www-form-urlencoded\n", "a=b+c%26&d"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let shown = once(&["--templates", "-H", "content-type: a/b", "--data-urlencode", "a= {{rand 7 7}}"]);
    assert!(shown.contains("a=+7") && !shown.contains("x-www-form"), "{shown}");
}

fn many_rows_are_read_quickly(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("templates"));
    let rows: String = (0..200_000).map(|number| format!("{number},user {number}\n")).collect();
    let users = scratch.file("users.csv", format!("id,name\n{rows}"));
    let path = format!("/echo?{{{{csv {0} id}}}}&{{{{csv {0} name}}}}", users.display());
    let output = context.onrush().words("-t2 -c4 -n2000 --templates").word(url(&server, &path)).run();
    assert_no_errors(&output);
}

fn faulty_placeholders_are_refused_before_sending(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("templates"));
    let broken = scratch.file("broken.csv", "id,name\n1,\"a\nb\"\n2,\"c\nd\"\n3\n");
    let breaks = scratch.file("breaks.csv", "id,name\n1,a\n2,\"c\nd\"\n");
    let empty = scratch.file("empty.txt", "");
    for (header, words) in [
        ("{{sqe}}".to_owned(), "--header \"X: {{sqe}}\": {{sqe}}: no placeholder \"sqe\"; did you mean seq?"),
        ("{{seq".to_owned(), "{{ without }} on its line; add it, or write {{{{ for {{ itself"),
        ("{{line /nonexistent}}".to_owned(), "the values \"/nonexistent\": No such file or directory"),
        (format!("{{{{line {}}}}}", empty.display()), "empty.txt\": the file is empty; write a value on each line"),
        (
            format!("{{{{csv {} id}}}}", broken.display()),
            "broken.csv\": line 6: 1 value where the first row has 2 names",
        ),
        (format!("{{{{csv {} nam}}}}", breaks.display()), "breaks.csv\": no column \"nam\"; did you mean name?"),
        (
            format!("{{{{csv {} name}}}}", breaks.display()),
            "breaks.csv\": line 3: a line break or NUL cannot be in a header",
        ),
    ] {
        let onrush = context.onrush().words("-n1 --templates -H").word(format!("X: {header}"));
        let output = onrush.word(url(&server, "/")).run_plain();
        assert!(output.code == 1 && output.stderr.contains(words), "{words}: {output:?}");
    }
    let list = scratch.file("urls.txt", "/a\n\n# more\n/b?{{rand 1}}\n");
    let said = |words: &str, url: String| {
        let output = context.onrush().words(words).word(url).run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        output.stderr
    };
    let line = said(&format!("-n1 --templates --urls {}", list.display()), url(&server, "/"));
    assert!(line.contains("the request in line 4: {{rand 1}}: write {{rand A B}}"), "{line}");
    let line = said("-n1 --templates", "http://{{seq}}/".to_owned());
    assert!(line.contains("a placeholder before the path; a run has one target"), "{line}");
    let line = said("-n1 --templates -s x.lua", url(&server, "/"));
    assert!(line.contains("a script fills in its requests itself; leave one of the two out"), "{line}");
    let compat = context.onrush().compat().words("--templates").word(url(&server, "/")).run_plain();
    assert!(compat.code == 1 && compat.stderr.contains("has no placeholders; leave it out"), "{compat:?}");
    let none = context.onrush().words("-n1 --templates").word(url(&server, "/")).run();
    assert!(none.stderr.contains("no URL, header or body has a placeholder such as {{seq}}"), "{none:?}");
}

fn faulty_forms_are_explained(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("templates"));
    let list = scratch.file("urls.txt", "/a\n");
    for (options, words) in [
        (&["-F", "a=b", "--body", "x"][..], "--body and --form: a request has one body; leave one of the two out"),
        (&["-F", "a=b", "--data-urlencode", "x"], "--form and --data-urlencode: a request has one body"),
        (&["-F", "a=b", "-s", "x.lua"], "--form and --script: a script makes its bodies itself"),
        (&["--data-urlencode", "a", "--urls", list.to_str().expect("UTF-8")], "--data-urlencode and --urls: "),
        (&["-F", "a=b", "-H", "Content-Type: a/b"], "--form and the header 'Content-Type: a/b': only the form's own"),
        (&["-F", "a"], "--form \"a\": write NAME=CONTENT"),
        (&["-F", "a=@/nonexistent"], "--form \"a=@/nonexistent\": No such file or directory"),
        (&["--data-urlencode", "a@/nonexistent"], "--data-urlencode \"a@/nonexistent\": No such file or directory"),
    ] {
        let onrush = options.iter().fold(context.onrush().words("-n1"), |onrush, word| onrush.word(word));
        let output = onrush.word(url(&server, "/")).run_plain();
        assert!(output.code == 1 && output.stderr.contains(words), "{words}: {output:?}");
    }
}
