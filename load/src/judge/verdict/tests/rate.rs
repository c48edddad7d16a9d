//! Verdicts on rates.

use super::*;

/// An open loop that used all of its connections in the end. With two in use, responses took `calm_ms`.
fn fill_connections(evidence: &mut Evidence, calm_ms: f64) {
    evidence.load.backlog = Some(Backlog { before: 9.0, last: 9.0, least: Some(9.0), waiting: 0.0, last_per_s: 500.0 });
    let load = &mut evidence.load;
    (load.left, load.crowded, load.in_flight, load.dispersion) = (Some(50), Some(0.9), 9.0, Some(1.0));
    let few =
        Latency { calm_us: Some(calm_ms * MS), calm: 1_000, calm_in_flight: Some(2.0), ..evidence.latency.unwrap() };
    evidence.latency = Some(few);
}

#[test]
fn rates_are_judged_by_due_and_ended() {
    let said = |change: EvidenceChange| {
        let verdict = verdict_after(|evidence| {
            keep_rate(evidence);
            change(evidence);
        });
        verdict.to_string()
    };
    for (change, expected) in [
        ((|_| ()) as EvidenceChange, "the target kept up with 500 requests/s: 9.9 in flight on average"),
        (|evidence| evidence.load.completed = 4, "the target kept up with 500 requests/s: 9.9 in flight on average"),
        (
            |evidence| (evidence.load.growth, evidence.load.rate_per_s) = (Some(0.09), 410.0),
            "the target fell behind the rate: asked 500 requests/s, reached 410, latency growing by 90.0 ms a second",
        ),
        (
            |evidence| evidence.load.growth = Some(0.0042),
            "it is unclear whether the target kept up: asked 500 requests/s, reached 500: latency growing by 4.20 ms a second",
        ),
        (
            |evidence| evidence.load.left = Some(50),
            "the target fell behind the rate: asked 500 requests/s, reached 500, 50 requests unsent or in flight at the end",
        ),
        (
            |evidence| {
                let load = &mut evidence.load;
                (load.left, load.overdue, load.overrun_s) = (Some(0), Some(50), Some(2.04));
            },
            "the target fell behind the rate: asked 500 requests/s, reached 500, ending 2.0 s after the last request was due",
        ),
        (
            |evidence| (evidence.load.left, evidence.load.crowded) = (Some(50), Some(0.9)),
            "the rate was not reached, and the limit is unclear: asked 500 requests/s, reached 500, 50 requests unsent or in flight at the end, with all 10 connections in use; allow \
             more (-c): if it reaches no more, the target is the limit",
        ),
        (
            |evidence| {
                fill_connections(evidence, 18.0);
                (evidence.load.in_flight_max, evidence.load.room) = (Some(20), Some(Room::Streams));
            },
            "the number of requests in flight is the limit: asked 500 requests/s, reached 500, 50 requests unsent or in flight at the end, \
             with as many requests in flight as allowed (20); it answered 111/s with 2 in flight, 500/s with 9 in flight; \
             allow more (--streams)",
        ),
        (
            |evidence| (evidence.load.left, evidence.load.dispersion) = (Some(200), Some(1.0)),
            "it is unclear whether the target kept up: asked 500 requests/s, reached 500: 200 requests unsent or in flight at the end",
        ),
        (
            |evidence| fill_connections(evidence, 4.0),
            "the target is at its limit (more in flight brought no more): asked 500 requests/s, reached 500, 50 requests unsent or in flight at the end, with all 10 \
             connections in use; it answered 500/s with 2 in flight, 500/s with 9 in flight",
        ),
        (
            |evidence| fill_connections(evidence, 18.0),
            "the number of requests in flight is the limit: asked 500 requests/s, reached 500, 50 requests unsent or in flight at the end, \
             with all 10 connections in use; it answered 111/s with 2 in flight, 500/s with 9 in flight; allow more (-c)",
        ),
        (
            |evidence| {
                fill_connections(evidence, 4.0);
                evidence.latency.as_mut().unwrap().calm = 20;
            },
            "the rate was not reached, and the limit is unclear: asked 500 requests/s, reached 500, 50 requests unsent or in flight at the end, with all 10 connections in use; allow \
             more (-c): if it reaches no more, the target is the limit",
        ),
        (
            |evidence| {
                let load = &mut evidence.load;
                (load.usually_left, load.left) = (Some(100), Some(40));
                load.backlog =
                    Some(Backlog { before: 12.0, last: 40.0, least: None, waiting: 0.0, last_per_s: 1_000.0 });
            },
            "it is unclear whether the target kept up: 12 requests were in flight \
             earlier in the run and 40 later, which may be chance or a backlog; run longer (-d)",
        ),
        (
            |evidence| {
                evidence.load.backlog =
                    Some(Backlog { before: 17.0, last: 15.0, least: Some(4.0), waiting: 0.0, last_per_s: 1_000.0 })
            },
            "it is unclear whether the target kept up: 16 requests were in flight on average \
             and 4 at the quietest time, a queue as of a target at its limit; run longer (-d)",
        ),
        (
            |evidence| {
                evidence.load.backlog =
                    Some(Backlog { before: 17.0, last: 15.0, least: Some(6.0), waiting: 0.0, last_per_s: 1_000.0 })
            },
            "the target kept up with 500 requests/s: 9.9 in flight on average",
        ),
        (
            |evidence| {
                let short = Backlog { before: 7.0, last: 7.0, least: Some(6.0), waiting: 100.0, last_per_s: 500.0 };
                (evidence.load.backlog, evidence.load.crowded) = (Some(short), Some(0.5));
            },
            "it is unclear whether the target kept up: 107 requests were in flight or waited for a connection on average \
             and 6 at the quietest time, a queue as of a target at its limit; run longer (-d)",
        ),
        (
            |evidence| evidence.load.read_errors = 2_500,
            "the target did not cope with the rate: asked 500 requests/s, reached 500: 2,500 requests failed; find out why",
        ),
        (
            |evidence| evidence.load.sent = Some(0.8),
            "it is unclear whether the target kept up: asked 500 requests/s, reached 500: only 80 % of what was due was sent",
        ),
        (
            |evidence| (evidence.load.sent, evidence.load.crowded) = (Some(0.8), Some(0.5)),
            "the rate was not reached, and the limit is unclear: asked 500 requests/s, reached 500, only 80 % of what was due was sent, with all 10 connections in \
             use; allow more (-c): if it reaches no more, the target is the limit",
        ),
        (
            |evidence| evidence.load.refused = 4_150,
            "the target did not cope with the rate: sent and answered, but 83 % of the responses were neither 2xx nor 3xx; find out why \
             it refuses them",
        ),
        (
            |evidence| {
                (evidence.load.refused, evidence.load.sent, evidence.load.crowded) = (4_150, Some(0.4), Some(0.9))
            },
            "the rate was not reached, and the limit is unclear: asked 500 requests/s, reached 500, only 40 % of what was due was sent, with all 10 connections in \
             use; 83 % of the responses were neither 2xx nor 3xx; allow more (-c): if it reaches no more, the \
             target is the limit",
        ),
        (
            |evidence| (evidence.load.refused, evidence.load.sent) = (4_150, Some(0.4)),
            "the target did not cope with the rate: asked 500 requests/s, reached 500: 83 % of the responses were neither 2xx nor 3xx; \
             find out why it refuses them",
        ),
        (
            |evidence| {
                (evidence.load.left, evidence.load.usually_left) = (Some(1), None);
                evidence.target = Some(Target { busiest_thread: 0.99, ..visible_target() });
            },
            "it is unclear whether the target kept up: neither what was due nor what has ended tells; run longer (-d)",
        ),
        (
            |evidence| evidence.load.quiet_s = 1.0,
            "the target fell silent: for 1.0 s in all; asked 500 requests/s, reached 500; find out what stops it",
        ),
    ] {
        assert_eq!(said(change), expected);
    }
}
