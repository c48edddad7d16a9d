//! The request log: its file and its requests.

use onrush_plan::RequestLogOptions;

use super::*;

#[test]
fn request_logs_go_to_the_named_file() {
    assert_eq!(run("onrush h").output.request_log, None);
    let log = |one_of: u64| Some(RequestLogOptions { path: "a/r.csv".into(), one_of });
    assert_eq!(run("onrush --request-log a/r.csv h").output.request_log, log(1));
    let plan = run("onrush --log-sample 1/100 --request-log a/r.csv -o r.json h");
    assert_eq!(plan.output.request_log, log(100));
    let kinds: Vec<OutputKind> = plan.output.files().iter().map(|output| output.kind).collect();
    assert_eq!(kinds, [OutputKind::Json, OutputKind::Requests]);
}

#[test]
fn impossible_request_logs_are_refused_with_remedies() {
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
    ] {
        assert_eq!(refused(&format!("onrush {line}")), format!("onrush: {expected}"), "{line}");
    }
    assert_eq!(
        refused("wrk --request-log r.csv http://h/"),
        "wrk: --request-log: wrk has no log of requests; leave it out"
    );
}
