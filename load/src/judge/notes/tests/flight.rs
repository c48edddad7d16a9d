//! The notes on failed, abandoned and open requests.

use super::*;

#[test]
fn abandoned_requests_have_their_duration() {
    let mut outcome = good();
    outcome.totals.counters.started += 2;
    outcome.totals.counters.abandoned = 2;
    let censored = outcome.totals.censored.get_or_insert_default();
    [30_000_000_000, 31_200_000_000].into_iter().for_each(|age| censored.record(age));
    assert_eq!(
        said(&outcome),
        ["2 of 100,002 requests got no complete response: 2 were abandoned (--give-up) after 30.00s to 31.20s"]
    );
}

#[test]
fn unanswered_requests_have_their_share() {
    let mut outcome = good();
    let counters = &mut outcome.totals.counters;
    (counters.started, counters.abandoned, counters.open_at_end, counters.open_late_at_end) = (101_000, 12, 10, 2);
    counters.failed = 978;
    let censored = outcome.totals.censored.get_or_insert_default();
    censored.record_many(31_200_000_000, 12);
    censored.record_many(2_100_000_000, 2);
    censored.record_many(4_000_000, 8);
    let sentence = "0.98 % of 101,000 requests got no complete response: 978 failed; 12 were abandoned (--give-up) and 2 were still in flight \
                    at the end; the longest of these lasted 31.20s";
    assert_eq!(said(&outcome), [sentence]);
}

#[test]
fn timely_open_requests_get_no_note() {
    let mut outcome = good();
    outcome.totals.counters.started += 10;
    outcome.totals.counters.open_at_end = 10;
    outcome.totals.censored.get_or_insert_default().record(50_000);
    assert_eq!(said(&outcome), Vec::<String>::new());
}

#[test]
fn open_requests_may_match_the_slowest_response() {
    let counters = Counters { slots_opened: 10, started: 20, completed: 16, open_at_end: 4, ..Counters::default() };
    let mut outcome = outcome_with(1_000_000, Counters { open_late_at_end: 4, ..counters });
    let ten_seconds = 10_000_000_000;
    outcome.totals.counters.occupancy =
        Occupancy { in_flight_ns: ten_seconds, busy_ns: ten_seconds, open_ns: ten_seconds, ..Occupancy::default() };
    (0..16).for_each(|_| outcome.totals.statuses.record(200));
    outcome.totals.latency.record_many(400_000_000, 16);
    outcome.totals.censored.get_or_insert_default().record_many(396_000_000, 4);
    let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
    plan.timeout = Some(Duration::from_millis(300));
    assert_eq!(said_of(&plan, &outcome), Vec::<String>::new());
    // These requests are late and older than any response.
    outcome.totals.censored = None;
    outcome.totals.censored.get_or_insert_default().record_many(420_000_000, 4);
    assert_eq!(said_of(&plan, &outcome).len(), 1);
}

#[test]
fn overlong_waiting_requests_are_noted() {
    let mut outcome = good();
    outcome.totals.counters.started += 10;
    outcome.totals.counters.open_at_end = 10;
    let censored = |outcome: &mut Outcome, age_ns, count| {
        outcome.totals.censored.get_or_insert_default().record_many(age_ns, count);
        outcome.totals.counters.occupancy.in_flight_ns += age_ns * count;
    };
    censored(&mut outcome, 900_000, 3);
    censored(&mut outcome, 1_900_000_000, 2);
    assert_eq!(ids(&plan(Dialect::Native, "http://h/", 10, 2, 10), &outcome), [NoteId::Lost]);
    censored(&mut outcome, 1_900_000_000, 5);
    assert_eq!(ids(&plan(Dialect::Native, "http://h/", 10, 2, 10), &outcome), [NoteId::Hanging]);
}

#[test]
fn runs_without_responses_account_for_requests() {
    let counters = Counters { started: 12, failed: 2, open_at_end: 10, slots_opened: 10, ..Counters::default() };
    let mut silent = outcome_with(10_000_000, counters);
    let censored = silent.totals.censored.get_or_insert_default();
    [9_970_000_000, 9_980_000_000].into_iter().for_each(|age| censored.record(age));
    let sentence = "none of the 12 requests got a complete response: 2 failed; 10 were still in flight at the end, after 9.97s \
                    to 9.98s";
    assert_eq!(said(&silent), [sentence]);
    (silent.totals.counters.started, silent.totals.counters.failed) = (10, 0);
    assert!(said(&silent)[0].contains(": all were still in flight at the end, "), "{:?}", said(&silent));
}

#[test]
fn large_warm_up_leftovers_are_noted() {
    let about =
        |outcome: &Outcome| said(outcome).into_iter().filter(|line| line.contains("during the warm-up")).count();
    let mut outcome = good();
    outcome.totals.counters.carried = 10;
    assert_eq!(about(&outcome), 0, "as long as all others");
    outcome.totals.latency.record_many(2_000_000_000, 8);
    assert_eq!(about(&outcome), 1, "few, but they lasted longer than there was time in flight");
    outcome.totals.counters.carried = 0;
    assert_eq!(about(&outcome), 0, "nothing was carried");
    let mut hanging = flawless(0, 4);
    (hanging.totals.counters.carried, hanging.elapsed) = (4, Duration::from_secs(1));
    assert_eq!(about(&hanging), 0, "there was no response, so nothing counts with its latency");
}
