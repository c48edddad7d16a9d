//! A generator that stands still, and a server that does not.

use super::*;

/// Answers after 10 ms, whatever the generator does.
const QUICK: &str = "connect_us = 0.0\nlatency_us = 10000.0\n";

fn standing(connections: u32, duration_ms: u64, span: &str) -> Ran {
    let rules = Rules { timeout_ns: Some(300 * MS), ..settings().rules };
    let limits = Settings { give_up_ns: Some(500 * MS), duration_ns: Some(duration_ms * MS), rules, ..settings() };
    run_http(Settings { connections, ..limits }, &format!("{QUICK}[[standstill]]\n{span}"))
}

#[test]
fn what_arrived_while_the_generator_stood_still_is_answered_and_not_given_up() {
    // More connections than one turn of the loop has completions.
    for connections in [3 * HANDLED_PER_TURN as u32, 3, 1] {
        let Ran { totals, end } = standing(connections, 3_000, "from_s = 1.005\nfor_s = 1.0");
        let counters = &totals.counters;
        assert_eq!((counters.abandoned, counters.failed, counters.open_late_at_end), (0, 0, 0), "{connections}");
        // They took that long all the same.
        assert_eq!(counters.late, u64::from(connections));
        assert!(totals.latency.max().unwrap() > 1_000 * MS);
        let [gap] = end.standstills[..] else { panic!("{:?}", end.standstills) };
        assert!((1_000 * MS..1_020 * MS).contains(&gap.from_ns) && gap.until_ns == 2_005 * MS, "{gap:?}");
        assert_conserved(&totals);
    }
}

#[test]
fn what_arrived_before_the_end_counts_although_nobody_looked() {
    for connections in [1, 3 * HANDLED_PER_TURN as u32] {
        let Ran { totals, end } = standing(connections, 1_500, "from_s = 1.005\nfor_s = 2.0");
        let counters = &totals.counters;
        assert_eq!((counters.abandoned, counters.failed, counters.open_at_end), (0, 0, 0), "{connections}");
        assert_eq!(end.elapsed_ns, 1_500 * MS);
        assert!(totals.latency.max().unwrap() <= 500 * MS, "nothing is longer than to the end");
        assert_eq!(end.standstills.len(), 1);
        assert_conserved(&totals);
    }
}

#[test]
fn a_silent_server_is_silent_also_for_one_who_stood_still() {
    let fault = "from_s = 1.005\nfor_s = 1.0\n[[fault]]\nevery = 1\nwhat = 'hang'";
    let Ran { totals, .. } = standing(2, 3_000, fault);
    assert!(totals.counters.abandoned > 0 && totals.counters.completed == 0);
}

#[test]
fn short_delays_are_not_worth_a_word() {
    let Ran { totals, end } = standing(2, 1_000, "from_s = 0.505\nfor_s = 0.1");
    assert_eq!((end.standstills, totals.counters.late), (vec![], 0));
}
