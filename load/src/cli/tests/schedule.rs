//! Rates and stages: when requests are due.

use super::*;

#[test]
fn rates_are_per_second_or_minute() {
    let stage = |line: &str| run(line).schedule.unwrap().stages[0];
    for (typed, per_minute) in [
        ("1000", 60_000),
        ("1m", 60_000_000),
        ("60/m", 60),
        ("1.5k/s", 90_000),
        ("10k/M", 10_000),
        ("1g", 60_000_000_000),
    ] {
        let expected = Stage::open_ended(Rate::from_per_minute(per_minute).unwrap());
        assert_eq!(stage(&format!("onrush -R {typed} h")), expected);
        assert_eq!(stage(&format!("onrush --rate={typed} h")), expected);
    }
    let plan = run("onrush -n 5 -R 1 h");
    assert_eq!(plan.stop, Stop { duration: None, requests: Some(5) });
    assert_eq!(run("onrush -R 1 h").stop, run("onrush h").stop);
    assert_eq!(run("onrush h").schedule, None);
    assert_eq!(run("onrush --once -R 1 h").schedule, None);
}

#[test]
fn bad_rates_suggest_corrections() {
    let least = "must be at least 1; for less than one per second write a rate per minute, for instance 30/m";
    let example = "try 1000, 10k or 90/m";
    for (typed, reason) in [
        ("0", least.to_owned()),
        ("0/m", least.to_owned()),
        ("-5", format!("negative; {example}")),
        ("0.5", format!("not a whole number; {example}")),
        ("fast", format!("not a number; {example}")),
        ("", format!("not a number; {example}")),
        ("5/h", "a rate is per second or per minute; try 10k/s or 90/m".to_owned()),
        ("1T", "at most 1000000000 per second".to_owned()),
        ("61g/m", "at most 1000000000 per second".to_owned()),
        ("99999999999999999999", "at most 1000000000 per second".to_owned()),
    ] {
        assert_eq!(refused(&format!("onrush --rate=\"{typed}\" h")), format!("onrush: --rate {typed:?}: {reason}"));
    }
}

#[test]
fn rate_stages_set_the_duration() {
    let plan = run("onrush --stages '10s:1k, 1.5m:60/m..20k,500ms:0' h");
    let rate = |per_second| Rate::from_per_second(per_second).unwrap();
    let stage = |ms, from, to| Stage { length: Some(Duration::from_millis(ms)), from: rate(from), to: rate(to) };
    let stages = [stage(10_000, 1_000, 1_000), stage(90_000, 1, 20_000), stage(500, 0, 0)];
    assert_eq!(plan.schedule.unwrap().stages, stages);
    assert_eq!(plan.stop, Stop { duration: Some(Duration::from_millis(100_500)), requests: None });
    assert_eq!(run("onrush --stages 1s:5 -n 3 h").stop.requests, Some(3));
}

#[test]
fn rates_give_every_thread_a_connection() {
    for (line, threads) in [
        ("onrush --stages c=1s:1,1s:5 h", 2),
        ("onrush -R 9 --stages c=1s:1,1s:5 h", 1),
        ("onrush --stages 2s:9 --stages c=1s:0,1s:5 h", 2),
        ("onrush --stages 2s:9 --stages c=1s:0..5,1s:5 h", 1),
        ("onrush -t4 -R 9 --stages c=1s:4..9 h", 4),
        ("onrush -t4 --stages c=1s:1,1s:9 h", 4),
    ] {
        assert_eq!(run(line).load.threads, threads, "{line}");
    }
    let expected = "onrush: --threads \"4\": at most 3: with a rate every thread needs a connection, and --stages c= goes down to 3";
    assert_eq!(refused("onrush -t4 -R 9 --stages c=1s:9,1s:3..9 h"), expected);
}

#[test]
fn bad_stages_suggest_corrections() {
    let shape = "a stage is a length, a colon and a rate; try 10s:1k..20k";
    let commas = "a stage is missing before or after a comma; try 10s:1k,30s:1k..20k";
    for (typed, shown, reason) in [
        ("1k", "1k", shape),
        ("10s:1k,", "10s:1k,", commas),
        (",", ",", commas),
        ("''", "", shape),
        ("10s:", "10s:", shape),
        (":1k", ":1k", shape),
        ("10s:1k;5s:2k", "10s:1k;5s:2k", "stages are separated by commas; try 10s:1k,30s:1k..20k"),
        ("0s:1k", "0s:1k", "a stage must last longer than 0; try 10s:1k"),
        ("ever:1k", "ever", "not a time; try 500ms, 1.5s or 2m"),
        ("9999h:1k", "9999h", "at most 8784h, which is 366 days"),
        ("8784h:1k,1s:1k", "8784h:1k,1s:1k", "all stages together last at most 366 days"),
        ("10s:0,5s:0..0", "10s:0,5s:0..0", "no request is ever due; at least one stage needs a rate above 0"),
        ("10s:1k..", "10s:1k..", "not a number; try 1000, 10k or 90/m"),
        ("10s:-1", "10s:-1", "negative; try 1000, 10k or 90/m"),
        ("1k:10s", "1k:10s", "the length comes first; write 10s:1k"),
        ("1k..90/m:10s", "1k..90/m:10s", "the length comes first; write 10s:1k..90/m"),
        ("1s:100-200", "1s:100-200", "a ramp has two dots; write 1s:100..200"),
        ("1s:100.200", "1s:100.200", "a ramp has two dots; write 1s:100..200"),
        ("1s:100to200", "1s:100to200", "a ramp has two dots; write 1s:100..200"),
        ("c=1s:1...20", "1s:1...20", "a ramp has two dots; write 1s:1..20"),
        ("1s:1.5", "1s:1.5", "not a whole number; try 1000, 10k or 90/m"),
        ("10s:1..1T", "10s:1..1T", "at most 1000000000 per second"),
    ] {
        assert_eq!(refused(&format!("onrush --stages {typed} h")), format!("onrush: --stages {shown:?}: {reason}"));
    }
}

#[test]
fn pacing_options_need_a_rate() {
    for (options, expected) in [
        ("-R 1 --stages 1s:1", "--rate and --stages: both set the rate; leave one of the two out"),
        ("-d 1 --stages 1s:1", "--duration and --stages: the run lasts as long as its stages; leave --duration out"),
        (
            "--stages 1s:1 --stages 2s:1",
            "--stages \"2s:1\": given twice; write all stages in one list, separated by commas",
        ),
        ("-U", "--u_latency: there is no rate; add -R, for instance -R 1000"),
        ("-B", "--batch_latency: there is no rate; add -R, for instance -R 1000"),
        ("-R 1 -B", "--batch_latency: needs --compat wrk2; result files (-o) have the latency of batches anyway"),
        ("--max-late 1s -U", "--max-late: there is no rate; add -R, for instance -R 1000"),
        ("--send-slice 1ms", "--send-slice: there is no rate; add -R, for instance -R 1000"),
        ("--arrivals poisson", "--arrivals: there is no rate; add -R, for instance -R 1000"),
        ("--catch-up 2", "--catch-up: there is no rate; add -R, for instance -R 1000"),
    ] {
        assert_eq!(refused(&format!("onrush {options} h")), format!("onrush: {expected}"));
    }
}

#[test]
fn wrk2_catches_up_at_twice_the_rate() {
    let usage = help::usage(Dialect::Wrk2);
    for line in ["wrk2 -d1 http://h/", "wrk2 -R0 http://h/", "wrk2 -U http://h/"] {
        let message = "Throughput MUST be specified with the --rate or -R option\n";
        assert_eq!(printed(line), (usage.clone(), message.to_owned(), 1));
    }
    let schedule = run("wrk2 --ra '2 k' http://h/").schedule.unwrap();
    assert_eq!(schedule.stages, [Stage::open_ended(Rate::from_per_second(2_000).unwrap())]);
    assert_eq!(schedule.catch_up, Some(CatchUp::DOUBLE));
    assert_eq!(run("wrk2 -R1 --catch-up 3 http://h/").schedule.unwrap().catch_up, CatchUp::from_thousandths(3_000));
    // wrk2 knows no minutes.
    let message = "wrk2: --rate \"60/m\": not a number; try 1000 or 10k\n";
    assert_eq!(printed("wrk2 -R60/m http://h/"), (usage, message.to_owned(), 1));
}
