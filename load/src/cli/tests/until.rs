//! Options combined with `--until`, and the duration of such a run.

use super::{refused, run};

#[test]
fn stop_rules_default_to_five_minutes() {
    for (words, seconds, requests) in [
        ("--until p99+-2%", Some(300), None),
        ("--until p99+-2% -d 20s", Some(20), None),
        ("--until p50±1%,rate+-1% -R 100 --warmup 5s", Some(300), None),
        ("--until p99+-2% -n 1M", None, Some(1_000_000)),
    ] {
        let plan = run(&format!("onrush {words} http://h/"));
        assert_eq!(plan.stop.duration.map(|duration| duration.as_secs()), seconds, "{words}");
        assert_eq!((plan.stop.requests, plan.until.is_empty()), (requests, false), "{words}");
    }
    assert_eq!(run("onrush --until p99+-2% --until p50+-1% http://h/").until[0].text, "p50+-1%", "the last one counts");
    let terms = run("onrush --until p99+-2%,rate+-2%,p99±2.0%,p99+-1% http://h/").until;
    let texts: Vec<&str> = terms.iter().map(|term| term.text.as_str()).collect();
    assert_eq!(texts, ["p99+-2%", "rate+-2%", "p99+-1%"], "what is given twice is said once");
    assert_eq!(run("wrk2 -R 100 --until scheduled.p99+-2% http://h/").until.len(), 1);
    assert!(run("onrush --once --until p99+-2% http://h/").until.is_empty());
}

#[test]
fn impossible_stop_rules_are_refused_with_remedies() {
    for (words, line) in [
        ("--until p99", "--until \"p99\": at the end: expected +- and a precision here"),
        ("--until p99+-2%,latenzy+-1%", "--until \"p99+-2%,latenzy+-1%\": at \"latenzy+-1%\": unknown metric"),
        ("--until p99+-2", "--until \"p99+-2\": at \"2\": \"2\" is not a percentage; try p99+-2%"),
        ("--until p99<50ms", "--until \"p99<50ms\": at \"<50ms\": expected +- and a precision here"),
        ("--until max+-2%", "--until \"max+-2%\": max has no confidence interval"),
        ("--fail-if p99+-2%", "--fail-if \"p99+-2%\": at \"+-2%\": +- is for --until"),
        ("--until p99+-2% -d 19s", "--until: 19s is too short for 20 batches of a second; write -d 20s or longer"),
        ("--until scheduled.p9+-2%", "--until scheduled.p9+-2%: there is no rate; add -R, for instance -R 1000"),
        (
            "--until p99+-2% --stages 30s:1k",
            "--until and --stages: a changing load has no steady figures; leave one of the two out",
        ),
        (
            "--until rate+-1%,p99.9+-2% -R 100",
            "--until p99.9+-2%: needs at least 200,000 responses, but the run has at most 30,000; make it longer (-d)",
        ),
        ("--until p99+-2% -n 10k", "needs at least 20,000 responses, but the run has at most 10,000"),
        ("--until p99+-2% --stages c=30s:1..9", "--until and --stages: "),
    ] {
        let refused = refused(&format!("onrush {words} http://h/"));
        assert!(refused.contains(line), "{words}: {refused}");
    }
}
