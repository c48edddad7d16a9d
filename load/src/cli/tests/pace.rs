//! Options about how requests are spaced, gathered and caught up with.

use super::*;

#[test]
fn arrival_and_lateness_options_are_read() {
    let schedule = |options: &str| run(&format!("onrush -R 1k {options} h")).schedule.unwrap();
    let plain = schedule("");
    assert_eq!((plain.arrivals, plain.catch_up, plain.max_late), (Arrivals::Uniform, None, None));
    assert_eq!(schedule("--arrivals poisson").arrivals, Arrivals::Poisson);
    assert_eq!(schedule("--arrivals burst:1k").arrivals, Arrivals::Burst(1_000.try_into().unwrap()));
    assert_eq!(schedule("--catch-up 1.25").catch_up, CatchUp::from_thousandths(1_250));
    assert_eq!(schedule("--catch-up 1").catch_up, CatchUp::from_thousandths(1_000));
    assert_eq!(schedule("--max-late 20ms").max_late, Some(Duration::from_millis(20)));
    assert_eq!((plain.send_slice, schedule("--send-slice 1s").send_slice), (None, Some(Duration::from_secs(1))));
    assert_eq!(schedule("--send-slice 1us").send_slice, Some(Duration::from_micros(1)));
    for (option, reason) in [
        ("--arrivals \"random\"", "unknown; write uniform, poisson or, for instance, burst:100"),
        ("--arrivals \"burst:0\"", "a burst has 1 to 1000000 requests; try burst:100"),
        ("--catch-up \"0.999\"", "must be at least 1, which never makes up for a stall"),
        ("--catch-up \"x\"", "not a factor; try 2 or 1.5"),
        ("--catch-up \"-2\"", "not a factor; try 2 or 1.5"),
        ("--catch-up \"1.2345\"", "not a factor; try 2 or 1.5"),
        ("--catch-up \"1000000\"", "less than 1000000"),
        ("--max-late \"0\"", "must be longer than 0; try 100ms"),
        ("--send-slice \"0\"", "must be longer than 0; try 200us"),
        ("--send-slice \"1001ms\"", "at most 1 s, because requests are late by up to a slice; try 200us"),
        ("--send-slice \"-1us\"", "negative; try 500ms, 1.5s or 2m"),
    ] {
        assert_eq!(refused(&format!("onrush -R 1 {option} h")), format!("onrush: {option}: {reason}"));
    }
}

#[test]
fn poisson_arrivals_are_limited() {
    let message = "onrush: --arrivals \"poisson\": at most 10000000 per second: each due time is drawn at random";
    assert_eq!(refused("onrush --arrivals poisson -R 10000001 h"), message);
    assert_eq!(refused("onrush --arrivals poisson --stages 1s:1..20m h"), message);
    assert_eq!(run("onrush --arrivals poisson -R 10m h").schedule.unwrap().arrivals, Arrivals::Poisson);
}

#[test]
fn u_latency_implies_percentiles() {
    let show = run("onrush -R 1k -U h").output;
    assert!(show.u_latency && show.percentiles && show.spectrum && !show.batch_latency);
    for (line, spectrum) in [
        ("onrush -R 1k -L h", false),
        ("onrush -R 1k --percentiles 50 h", false),
        ("onrush -R 1k --percentiles full h", true),
        ("onrush --percentiles 50 --percentiles full h", true),
        ("onrush --percentiles full --percentiles 50 h", false),
        ("wrk2 -R 1k -L http://h/", true),
    ] {
        let show = run(line).output;
        assert_eq!((show.percentiles, show.spectrum), (true, spectrum), "{line}");
    }
    let asked = run("onrush -R 1k -U -L --percentiles 50 h").output;
    assert!(asked.u_latency && asked.percentiles && !asked.spectrum);
    assert!(run("wrk2 -R 1k -U --percentiles 50 http://h/").output.spectrum);
    assert!(run("wrk2 -R 1k -B http://h/").output.batch_latency);
}
