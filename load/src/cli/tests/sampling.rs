//! The sampled sockets and the file for the samples.

use onrush_plan::filter::{SocketFilter, States};

use super::*;

#[test]
fn socket_samples_go_to_the_named_file() {
    assert_eq!(run("onrush h").output.sockets, None);
    for line in ["onrush --sockets-output s.ndjson h", "wrk --sockets --sockets-output s.NDJSON http://h/"] {
        let watch = run(line).output.sockets.unwrap();
        assert_eq!(watch.filter, None, "{line}");
        assert!(watch.output.to_str().unwrap().eq_ignore_ascii_case("s.ndjson"), "{line}");
    }
    let plan = run("onrush --sockets='state established' --unix /run/app.sock --sockets-output a/s.ndjson h");
    assert_eq!(plan.output.sockets.unwrap().filter, Some(SocketFilter::States(States(1 << 1))));
    let plan = run("onrush --sockets-output s.ndjson -o r.csv h");
    let kinds: Vec<OutputKind> = plan.output.files().iter().map(|output| output.kind).collect();
    assert_eq!(kinds, [OutputKind::Csv, OutputKind::Sockets]);
}

#[test]
fn impossible_socket_sampling_is_refused_with_remedies() {
    let table = [
        (
            "--sockets h",
            "--sockets: there is no file for the samples; add --sockets-output, for instance --sockets-output s.ndjson",
        ),
        (
            "--sockets 'sport = :80' --sockets-output s.ndjson h",
            "--sockets: attach the filter with an equals sign: --sockets='sport = :80'",
        ),
        ("--sockets-output s.json h", "--sockets-output \"s.json\": its ending must be .ndjson; try s.ndjson"),
        (
            "--sockets=stat --sockets-output s.ndjson h",
            "--sockets \"stat\": unknown word \"stat\"; did you mean state?",
        ),
        (
            "--sockets='src ::1 and sprot 1' --sockets-output s.ndjson h",
            "--sockets \"src ::1 and sprot 1\": at \"sprot 1\": unknown word \"sprot\"; did you mean sport?",
        ),
        (
            "--sockets-output s.ndjson --io sim:x h",
            "--sockets-output: the simulated servers are reached without sockets; leave one of the two out",
        ),
        (
            "--sockets --sockets-output s.ndjson --once h",
            "--sockets: --once is over before there is a sample; leave one of the two out",
        ),
        (
            "--sockets --sockets-output s.ndjson --unix /x h",
            "--sockets: --unix uses no TCP, so there is nothing to sample; leave it out, or select sockets: --sockets='sport = :80'",
        ),
    ];
    for (words, expected) in table {
        assert_eq!(refused(&format!("onrush {words}")), format!("onrush: {expected}"));
    }
}
