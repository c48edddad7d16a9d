//! Options about the number of connections, other than `-c`.

use onrush_plan::ConnectionLevels;
use onrush_plan::Partition;
use onrush_plan::levels::ConnectionLevel;

use super::*;

#[test]
fn rates_allow_more_connections() {
    let load = |line: &str| {
        let load = run(line).load;
        (load.threads, load.connections, load.max_inflight)
    };
    assert_eq!(load("onrush h"), (2, 10, 10));
    assert_eq!(load("onrush -R 5 --max-inflight 140 h"), (2, 10, 140));
    assert_eq!(load("onrush --max-inflight 1k --stages 1s:5 -c 3 -t 3 h"), (3, 3, 1_000));
    assert_eq!(load("onrush -R 5 -c7 --max-inflight=7 h"), (2, 7, 7));
    assert_eq!(load("onrush -R 5 --max-inflight 20 --once h"), (1, 1, 1));
    assert_eq!(load("wrk2 -R 5 --max-inflight 20 http://h/"), (2, 10, 20));
}

#[test]
fn connection_stages_set_the_duration() {
    let plan = run("onrush --stages 'c=10s:10, 1.5m:10..1k,500ms:0' h");
    let level = |ms, from, to| ConnectionLevel { length: Duration::from_millis(ms), from, to };
    let stages = vec![level(10_000, 10, 10), level(90_000, 10, 1_000), level(500, 0, 0)];
    assert_eq!(plan.levels, Some(ConnectionLevels { stages, part: Partition::WHOLE }));
    assert_eq!(plan.stop, Stop { duration: Some(Duration::from_millis(100_500)), requests: None });
    assert_eq!((plan.load.threads, plan.load.connections, plan.load.max_inflight), (2, 1_000, 1_000));
    assert_eq!(plan.schedule, None);
    assert_eq!(run("onrush --stages c=1s:1 h").load.threads, 1);
    assert_eq!(run("onrush --once --stages c=1s:1 h").levels, None);
    let both = run("onrush --stages 1s:5,1s:5..9 --stages c=2s:3 h");
    assert_eq!((both.schedule.unwrap().stages.len(), both.levels.unwrap().stages.len()), (2, 1));
    assert_eq!(both.stop.duration, Some(Duration::from_secs(2)));
    let rate = run("onrush -R 50 --stages c=2s:3 h");
    assert_eq!((rate.schedule.is_some(), rate.stop.duration), (true, Some(Duration::from_secs(2))));
}

#[test]
fn invalid_connection_stages_are_refused_with_a_correction() {
    let shape = "a stage is a length, a colon and a number of connections; try 30s:10..200";
    let commas = "a stage is missing before or after a comma; try c=10s:10,30s:10..200";
    for (typed, shown, reason) in [
        ("c=", "", shape),
        ("c=10", "10", shape),
        ("c=10s:10,", "c=10s:10,", commas),
        ("c=10s", "10s", shape),
        ("c=10s:", "10s:", shape),
        ("c=10s:1;5s:2", "10s:1;5s:2", "stages are separated by commas; try c=10s:10,30s:10..200"),
        ("c=0s:10", "0s:10", "a stage must last longer than 0; try 10s:10"),
        ("c=10:10s", "10:10s", "the length comes first; write 10s:10"),
        ("c=ever:10", "ever", "not a time; try 500ms, 1.5s or 2m"),
        ("c=10s:0,5s:0..0", "c=10s:0,5s:0..0", "there is never a connection; at least one stage needs one or more"),
        ("c=10s:0", "c=10s:0", "there is never a connection; at least one stage needs one or more"),
        ("c=10s:1..1g", "10s:1..1g", "at most 1000000 connections"),
        ("c=10s:1..99999999999999999999", "10s:1..99999999999999999999", "at most 1000000 connections"),
        ("c=10s:-1", "10s:-1", "negative; try 30s:10..200"),
        ("c=10s:5/s", "10s:5/s", "not a number; try 30s:10..200"),
        ("c=8784h:1,1s:1", "c=8784h:1,1s:1", "all stages together last at most 366 days"),
    ] {
        assert_eq!(refused(&format!("onrush --stages {typed} h")), format!("onrush: --stages {shown:?}: {reason}"));
    }
}

#[test]
fn connection_counts_are_not_given_twice() {
    let stages = "the stages set how many connections there are; leave one of the two out";
    let lasts = "--duration and --stages: the run lasts as long as its stages; leave --duration out";
    for (options, expected) in [
        ("-c 5 --stages c=1s:1", format!("--connections and --stages c=: {stages}")),
        ("-R 5 --max-inflight 5 --stages c=1s:1", format!("--max-inflight and --stages c=: {stages}")),
        ("-d 5 --stages c=1s:1", lasts.to_owned()),
        ("-d 5 -R 5 --stages c=1s:1", lasts.to_owned()),
        ("-d 5 --stages 1s:1 --stages c=1s:1", lasts.to_owned()),
        (
            "--stages c=1s:1 --stages c=2s:1",
            "--stages \"c=2s:1\": given twice; write all stages in one list, separated by commas".to_owned(),
        ),
        (
            "--stages 1s:1,500ms:2 --stages c=2s:1",
            "--stages: the rates last 1.5s and the connections (c=) 2s; make them equally long".to_owned(),
        ),
        ("--max-inflight 50", "--max-inflight: there is no rate; add -R, for instance -R 1000".to_owned()),
        (
            "-R 5 --max-inflight 9",
            "--max-inflight \"9\": the run starts with 10 connections (-c); write 10 or more".to_owned(),
        ),
        ("-R 5 --max-inflight 0", "--max-inflight \"0\": must be at least 1".to_owned()),
        ("-R 5 --max-inflight 2m", "--max-inflight \"2m\": at most 1000000".to_owned()),
        (
            "-t 3 --stages c=1s:2",
            "--threads \"3\": at most 2, the number of connections; every thread needs one".to_owned(),
        ),
    ] {
        assert_eq!(refused(&format!("onrush {options} h")), format!("onrush: {expected}"));
    }
}
