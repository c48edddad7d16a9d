//! Verdicts on rates.

use LimitedBy::{Connections, Schedule, Target as TargetLimit, Unclear};

use super::*;

/// The verdict on a kept rate after a change.
fn verdict_at_rate(change: impl FnOnce(&mut Evidence)) -> Verdict {
    verdict_after(|evidence| {
        keep_rate(evidence);
        change(evidence);
    })
}

/// An open loop that used all of its connections in the end. With two in use, responses took `calm_ms`.
fn fill_connections(evidence: &mut Evidence, calm_ms: f64) {
    let (calm_us, calm_in_flight) = (Some(calm_ms * MS), Some(2.0));
    evidence.latency = evidence.latency.map(|it| Latency { calm_us, calm: 1_000, calm_in_flight, ..it });
    let load = &mut evidence.load;
    (load.left, load.crowded, load.in_flight, load.dispersion) = (Some(50), Some(0.9), 9.0, Some(1.0));
    load.backlog = backlog([9.0; 2], Some(9.0), 0.0);
}

fn backlog([before, last]: [f64; 2], least: Option<f64>, waiting: f64) -> Option<Backlog> {
    Some(Backlog { before, last, least, waiting, last_per_s: 500.0 })
}

/// A change, and the verdicts with two values.
type RateCase = (ValueChange, [(f64, LimitedBy); 2]);

#[test]
fn rates_are_judged_by_due_and_ended() {
    let table: [RateCase; 20] = [
        (|it, left| it.load.left = Some(left as u64), [(9.0, Schedule), (10.0, TargetLimit)]),
        (
            |it, left| (it.load.left, it.load.usually_left) = (Some(left as u64), Some(1_000)),
            [(50.0, Schedule), (51.0, Unclear)],
        ),
        // Three standard errors of the number of responses may be chance.
        (
            |it, left| (it.load.left, it.load.dispersion) = (Some(left as u64), Some(1.0)),
            [(212.0, Unclear), (213.0, TargetLimit)],
        ),
        (
            |it, left| (it.load.left, it.load.dispersion) = (Some(left as u64), Some(0.0)),
            [(67.0, Unclear), (68.0, TargetLimit)],
        ),
        (|it, growth| it.load.growth = Some(growth), [(0.014_1, Unclear), (0.014_2, TargetLimit)]),
        (|it, sent| it.load.sent = Some(sent), [(0.99, Schedule), (0.98, Unclear)]),
        (|it, quiet_s| it.load.quiet_s = quiet_s, [(0.09, Schedule), (0.1, TargetLimit)]),
        (|it, refused| it.load.refused = refused as u64, [(49.0, Schedule), (50.0, TargetLimit)]),
        (|it, failed| it.load.read_errors = failed as u64, [(49.0, Schedule), (50.0, TargetLimit)]),
        (|it, late| it.load.timeouts = late as u64, [(49.0, Schedule), (50.0, TargetLimit)]),
        (|it, hanging| it.load.hanging = hanging as u64, [(4.0, Schedule), (5.0, TargetLimit)]),
        (
            |it, hanging| (it.load.hanging, it.load.connections) = (hanging as u64, 1_000),
            [(49.0, Schedule), (50.0, TargetLimit)],
        ),
        // Numbers in flight that grow, or are large, by chance.
        (|it, last| it.load.backlog = backlog([4.0, last], None, 0.0), [(18.8, Schedule), (18.9, Unclear)]),
        (|it, mean| it.load.backlog = backlog([mean; 2], Some(0.0), 0.0), [(11.1, Schedule), (11.2, Unclear)]),
        // Without a lack of connections, due requests waited for something else.
        (
            |it, crowded| {
                (it.load.backlog, it.load.crowded) = (backlog([7.0; 2], Some(6.0), 100.0), Some(crowded));
                it.load.elapsed_s = 3.0;
            },
            [(0.049, Schedule), (0.05, Unclear)],
        ),
        (
            |it, crowded| (it.load.left, it.load.crowded) = (Some(50), Some(crowded)),
            [(0.049, TargetLimit), (0.05, Unclear)],
        ),
        // The rate with two and with nine in flight gives the elasticity.
        (fill_connections, [(5.8, Unclear), (5.0, TargetLimit)]),
        (fill_connections, [(12.5, Unclear), (13.5, Connections)]),
        (fill_connections, [(18.0, Connections), (30.0, Unclear)]),
        (
            |it, few| {
                fill_connections(it, 4.0 * few / 2.0);
                it.latency.as_mut().unwrap().calm_in_flight = Some(few);
            },
            [(4.5, TargetLimit), (4.6, Unclear)],
        ),
    ];
    let sentences = "\
the target fell behind the rate: asked for 500 requests/s, reached 500; 10 requests unsent or in flight at the end
it is unclear whether the target kept up: asked for 500 requests/s, reached 500; 51 requests unsent or in flight at the end


the target fell behind the rate: asked for 500 requests/s, reached 500; latency grew by 14.2 ms a second
asked for 500 requests/s, reached 500; only 98 % of the due requests were sent
the target fell silent: no response for 0.1 s in total; asked for 500 requests/s, reached 500; find out what stops it
the target did not handle the rate: requests were sent and answered, but 1.0 % of the responses were neither 2xx nor 3xx; find out why
the target did not handle the rate: asked for 500 requests/s, reached 500; 50 requests failed; find out why

5 at the end, after at least a second and three times the slowest response; find out why

4 requests were in flight earlier in the run and 18.9 later, which may be chance or a backlog; run longer (-d)
11.2 requests were in flight on average and 0 at the quietest time, like the queue of a target at its limit; run longer (-d)
107 requests were in flight or waited for a connection on average and 6 at the quietest time, like the queue of a target at its limit; run longer (-d)
asked for 500 requests/s, reached 500; 50 requests unsent or in flight at the end, with all 10 connections in use; allow more (-c): if the rate stays the same, the target is the limit
with all 10 connections in use; the target answered 400/s with 2 in flight, 500/s with 9 in flight
allow more (-c)


";
    assert_eq!(sentences.lines().count(), table.len());
    for (number, ((change, values), sentence)) in table.into_iter().zip(sentences.lines()).enumerate() {
        for (value, limited_by) in values {
            let verdict = verdict_at_rate(|evidence| change(evidence, value));
            assert_eq!(verdict.limited_by, limited_by, "{number}, {value}: {verdict}");
        }
        let verdict = verdict_at_rate(|evidence| change(evidence, values[1].0)).to_string();
        assert!(verdict.ends_with(sentence), "{number}: {verdict}");
    }
    assert_eq!(verdict_at_rate(|it| it.load.completed = 4).limited_by, Schedule, "few responses are enough");
    let noisy = verdict_at_rate(|evidence| {
        fill_connections(evidence, 4.0);
        evidence.latency.as_mut().unwrap().calm = 20;
    });
    assert_eq!(noisy.limited_by, Unclear);
}

#[test]
fn rate_verdicts_name_figures_and_remedy() {
    let table: [EvidenceChange; 8] = [
        |_| (),
        |it| it.load.rate_per_s = 410.0,
        |it| (it.load.left, it.load.overdue, it.load.overrun_s) = (Some(0), Some(50), Some(2.04)),
        |it| {
            (it.load.refused, it.load.sent, it.load.crowded) = (4_150, Some(0.4), Some(0.9));
            it.load.in_flight_max = Some(20);
        },
        |it| {
            fill_connections(it, 18.0);
            (it.load.room, it.load.connections) = (Some(Room::MaxInflight), 11);
        },
        |it| {
            fill_connections(it, 4.0);
            (it.load.in_flight_max, it.load.connections) = (Some(22), 11);
        },
        |it| (it.load.backlog, it.load.elapsed_s) = (backlog([17.0, 15.0], Some(4.0), 0.0), 2.9),
        |it| {
            it.load.usually_left = None;
            it.target = Some(Target { busiest_thread: 0.99, ..visible_target() });
        },
    ];
    let sentences = "\
the target kept up with 500 requests/s: 9.9 in flight on average
the target kept up with 500 requests/s: 410/s were answered, 9.9 in flight on average
the target fell behind the rate: asked for 500 requests/s, reached 500; the run ended 2.0 s after the last request was due
the rate was not reached, and the limit is unclear: asked for 500 requests/s, reached 500; only 40 % of the due requests were sent, with as many requests in flight as allowed (20); 83 % of the responses were neither 2xx nor 3xx; allow more (-c): if the rate stays the same, the target is the limit
the number of requests in flight is the limit: asked for 500 requests/s, reached 500; 50 requests unsent or in flight at the end, with all connections of a thread in use; the target answered 111/s with 2 in flight, 500/s with 9 in flight; allow more (--max-inflight)
the target is at its limit (more in flight gave no higher rate): asked for 500 requests/s, reached 500; 50 requests unsent or in flight at the end, with as many requests in flight on a thread as allowed; the target answered 500/s with 2 in flight, 500/s with 9 in flight
it is unclear whether the target kept up: 16 requests were in flight on average, in a run too short to tell a queue from slow responses; run longer (-d)
it is unclear whether the target kept up: the numbers of due and finished requests do not tell; run longer (-d)
";
    assert_eq!(sentences.lines().count(), table.len());
    for (change, expected) in table.into_iter().zip(sentences.lines()) {
        assert_eq!(verdict_at_rate(change).to_string(), expected);
    }
    let refused = verdict_at_rate(|it| (it.load.refused, it.load.sent) = (4_150, Some(0.4)));
    assert!(
        refused.reason.starts_with("asked for 500 requests/s, reached 500; 83 % of the responses were"),
        "{refused}"
    );
}
