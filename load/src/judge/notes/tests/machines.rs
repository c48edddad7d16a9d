//! The notes on the machines of a run.

use super::*;
use crate::run::MachineShare;

/// A machine with half of the load of [`good`].
fn half(name: &str) -> MachineShare {
    MachineShare {
        name: name.to_owned(),
        kernel: "6.1".to_owned(),
        backend: "uring".to_owned(),
        threads: 1,
        connections: 5,
        elapsed: Duration::from_secs(10),
        busiest: Some(0.4),
        ..MachineShare::default()
    }
}

/// The notes on [`good`] with its load shared by these two machines.
fn said_of_both(outcome: Outcome, machines: [MachineShare; 2]) -> Vec<String> {
    said(&Outcome { machines: machines.into(), ..outcome })
}

#[test]
fn equal_machines_get_no_note() {
    assert_eq!(said_of_both(good(), [half("a"), half("b")]), Vec::<String>::new());
}

#[test]
fn lost_machines_have_their_time() {
    let lost = |why: &str, at_ms, busiest| MachineShare {
        lost: Some(format!("machine 2 (b): {why}")),
        elapsed: Duration::from_millis(at_ms),
        busiest,
        ..half("b")
    };
    // The machine's requests in flight neither failed nor hung. Its connections were not missing from the start.
    let mut outcome = good();
    outcome.totals.counters.started += 4;
    outcome.totals.counters.slots_opened = 7;
    outcome.totals.counters.occupancy.open_ns /= 2;
    for (machine, words) in [
        (lost("no message for 5 s", 3_200, None), "no message for 5 s; what it did from 3.2 s on is missing"),
        (lost("it has ended", 0, None), "it has ended; nothing it did is in the result"),
        (
            lost("it has ended", 10_000, None),
            "it has ended; everything it measured has arrived, except its final report",
        ),
        (
            lost("stopped by a signal", 1_300, Some(0.2)),
            "stopped by a signal; from 1.3 s on, its part of the load was missing",
        ),
    ] {
        assert_eq!(said_of_both(outcome.clone(), [half("a"), machine]), [format!("machine 2 (b): {words}")]);
    }
}

#[test]
fn lost_machines_explain_missing_measurements() {
    let lost =
        MachineShare { lost: Some("machine 2 (b): it has ended".to_owned()), elapsed: Duration::ZERO, ..half("b") };
    let outcome = Outcome { elapsed: Duration::from_secs(1), ..outcome_with(1_000, Counters::default()) };
    let said = said_of_both(outcome, [half("a"), lost]);
    assert!(said.iter().any(|words| words.starts_with("machine 2 (b): it has ended")), "{said:?}");
    assert!(!said.iter().any(|words| words.contains("no request")), "{said:?}");
    let mut outcome = flawless(0, 10);
    (outcome.elapsed, outcome.totals.counters.started) = (Duration::from_secs(1), 4);
    let lost = MachineShare { lost: Some("machine 2 (b): it has ended".to_owned()), ..half("b") };
    let said = said_of_both(outcome, [half("a"), lost]);
    let words = "none of the 4 requests got a complete response: all were in flight on a machine that was lost";
    assert!(said.iter().any(|said| said == words), "{said:?}");
}

#[test]
fn machines_with_shifted_times_are_named() {
    let late = MachineShare { late: Duration::from_nanos(447_828_582), ..half("b") };
    let words = "machine 2 (b) began to measure 447.83ms after the others: its start order came late, or it was stopped; its \
                 figures are shifted by as much";
    assert_eq!(said_of_both(good(), [half("a"), late]), [words]);
    let short = MachineShare { elapsed: Duration::from_millis(1_100), ..half("b") };
    let words = "machine 2 (b) measured only until 1.1 s of 10.0 s: it was probably stopped, and its part of the load was missing \
                 from then on";
    assert_eq!(said_of_both(good(), [half("a"), short]), [words]);
    let ends_soon = MachineShare { elapsed: Duration::from_millis(9_900), ..half("b") };
    assert_eq!(said_of_both(good(), [half("a"), ends_soon]), Vec::<String>::new());
}

#[test]
fn differing_and_far_machines_are_named() {
    let mut machines = [half("a"), half("b")];
    machines[1].kernel = "5.10".to_owned();
    machines[0].round_trip = Duration::from_micros(300);
    machines[1].round_trip = Duration::from_micros(4_250);
    let said = said_of_both(good(), machines);
    assert!(said[0].starts_with("the machines have different kernels: 5.10, 6.1; "), "{said:?}");
    assert!(said[1].starts_with("far from the coordinator: machine 2 (b) 4.25ms there and back; "), "{said:?}");
}
