//! The log of requests: its file, and which requests it has.

use onrush_plan::RequestLog;

use super::*;

#[test]
fn requests_are_logged_in_the_file_that_is_named() {
    assert_eq!(run("onrush h").show.request_log, None);
    let log = |one_of: u64| Some(RequestLog { path: "a/r.csv".into(), one_of });
    assert_eq!(run("onrush --request-log a/r.csv h").show.request_log, log(1));
    let plan = run("onrush --log-sample 1/100 --request-log a/r.csv -o r.json h");
    assert_eq!(plan.show.request_log, log(100));
    let kinds: Vec<Kind> = plan.show.files().iter().map(|output| output.kind).collect();
    assert_eq!(kinds, [Kind::Json, Kind::Requests]);
}

#[test]
fn what_cannot_be_logged_is_refused_with_what_can_be() {
    let no_file = "not a file; standard output has the report, and a pipe is >(COMMAND) or its name";
    let no_share = "not one of N requests; write 1/N, for instance 1/100";
    let none = "one of none; write 1/1 or leave it out to log every request";
    for (line, expected) in [
        ("--request-log - h", format!("--request-log \"-\": {no_file}")),
        ("--log-sample 100 --request-log r.csv h", format!("--log-sample \"100\": {no_share}")),
        ("--log-sample 2/3 --request-log r.csv h", format!("--log-sample \"2/3\": {no_share}")),
        ("--log-sample 1/+3 --request-log r.csv h", format!("--log-sample \"1/+3\": {no_share}")),
        ("--log-sample 1/0 --request-log r.csv h", format!("--log-sample \"1/0\": {none}")),
        (
            "--log-sample 1/10 h",
            "--log-sample: there is no log; add --request-log, for instance --request-log requests.csv".to_owned(),
        ),
        (
            "--request-log r.csv --find-max 'p99<5ms' h",
            "--find-max and --request-log: a search has many runs; log one at the load that it finds; leave one of the two out"
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(&format!("onrush {line}")), format!("onrush: {expected}"), "{line}");
    }
    assert_eq!(
        refused("wrk --request-log r.csv http://h/"),
        "wrk: --request-log: wrk has no log of requests; leave it out"
    );
}
