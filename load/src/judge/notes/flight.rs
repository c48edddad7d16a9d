//! Notes on idle connections and on requests missing from the latencies.
//!
//! By Little's law, the rate times the mean latency is the mean number of requests in flight that got a response. In a
//! closed loop, every connection always has one request in flight. If the numbers differ, the figures miss something.

use onrush_stats::{Count, Distribution};
use onrush_text::units::{format_count, format_thousands, format_us};

use super::facts::NoteFacts;
use super::format_seconds;
use crate::figures::NS_PER_US;
use crate::record::evidence::Places;
use crate::record::{Document, Note, NoteId};

/// Connections are busy enough if at least this share of them have a request in flight.
const BUSY_SHARE: f64 = 0.95;
/// Hanging requests are noted above this share of the requests in flight.
const HANGING_SHARE: f64 = 0.05;
/// Minimum age of a hanging request, in nanoseconds.
const HANGING_MIN_NS: u64 = 200_000_000;

/// In a run shorter than this, in nanoseconds, the time spent connecting is no cause for a note.
const PLACES_MIN_NS: u64 = 200_000_000;

/// The notes on requests in flight and on idle connections.
pub fn flight_notes(facts: &NoteFacts<'_>) -> Vec<Note> {
    let &NoteFacts { document, ref latency, ref censored, elapsed_ns, completed } = facts;
    let Document { evidence: Some(evidence), in_flight: Some(in_flight), plan, requests, connections, .. } = document
    else {
        return Vec::new();
    };
    // The imitated tools leave responses out of the latencies, so that Little's law does not hold.
    if plan.once || facts.is_compat() || completed == 0 || elapsed_ns == 0 {
        return Vec::new();
    }
    // If the script blocks a thread, responses wait to be read. If the run went on, the ends of its open requests are
    // known.
    let unread = facts.is_held_up() || document.open_loop.as_ref().is_some_and(|open_loop| open_loop.run_on_s > 0.0);
    let hanging = censored
        .as_ref()
        .filter(|_| !unread)
        .and_then(|censored| Hanging::from_ages(censored, requests.abandoned, latency));
    let flight = FlightFigures {
        connections: facts.most_connections(),
        elapsed_ns,
        mean: in_flight.mean,
        // Latencies that started in the warm-up were partly in flight outside the measured time.
        answered: (latency.sum() as f64 / elapsed_ns as f64).min(in_flight.mean),
        busy: in_flight.busy_connections,
        places: (elapsed_ns >= PLACES_MIN_NS).then_some(evidence.load.places),
        reconnects: connections.opened * 2 > completed,
        hanging,
        slowest_ns: latency.max().unwrap_or(0),
        is_scheduled: plan.schedule.is_some(),
    };
    flight.notes()
}

/// Figures on the requests in flight. Means cover the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FlightFigures {
    /// Number of connections that should have been busy.
    connections: u64,
    /// Measured time in nanoseconds.
    elapsed_ns: u64,
    /// Mean number of requests in flight, regardless of their outcome.
    mean: f64,
    /// The part of `mean` explained by the latencies: the rate times the mean latency.
    answered: f64,
    /// Mean number of connections with a request in flight.
    busy: f64,
    /// Activity of the other connections, if measured.
    places: Option<Places>,
    /// True if a connection serves only one or two requests, so that connecting is part of the load.
    reconnects: bool,
    /// Requests that hung at the end.
    hanging: Option<Hanging>,
    /// Latency of the slowest response, in nanoseconds.
    slowest_ns: u64,
    /// True if requests follow a schedule. Then most connections idle most of the time, and percentiles include the
    /// ages of unanswered requests.
    is_scheduled: bool,
}

/// Requests in flight at the end for longer than responses took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hanging {
    count: u64,
    /// Sum of their ages, in nanoseconds.
    sum_ns: u128,
    /// Age of the youngest hanging request, in nanoseconds.
    youngest_ns: u64,
    /// Age of the oldest hanging request, in nanoseconds.
    oldest_ns: u64,
    /// Number of responses at least as slow as the youngest hanging request is old.
    as_slow: u64,
}

impl Hanging {
    /// The requests in flight at the end that outnumber the responses of at least their age; `None` without such
    /// requests. The largest `abandoned` ages in `censored` belong to abandoned requests.
    fn from_ages<A: Count, B: Count>(
        censored: &Distribution<A>,
        abandoned: u64,
        latency: &Distribution<B>,
    ) -> Option<Self> {
        let descending = |values: Vec<(u64, u64)>| values.into_iter().rev();
        let mut answers = descending(latency.values().collect()).peekable();
        let mut skip = abandoned;
        let mut open = 0;
        let mut as_slow = 0;
        let mut sum_ns = 0;
        let mut oldest_ns = None;
        let mut hanging = None;
        for (age_ns, count) in descending(censored.values().collect()) {
            let skipped = skip.min(count);
            skip -= skipped;
            let count = count - skipped;
            if age_ns < HANGING_MIN_NS {
                break;
            } else if count == 0 {
                continue;
            }
            while let Some((_, count)) = answers.next_if(|&(latency_ns, _)| latency_ns >= age_ns) {
                as_slow += count;
            }
            open += count;
            sum_ns += u128::from(age_ns) * u128::from(count);
            let oldest_ns = *oldest_ns.get_or_insert(age_ns);
            if open > as_slow {
                hanging = Some(Self { count: open, sum_ns, youngest_ns: age_ns, oldest_ns, as_slow });
            }
        }
        hanging
    }
}

impl FlightFigures {
    /// The notes, most important first.
    fn notes(&self) -> Vec<Note> {
        let idle = self.places.filter(|places| {
            let needed = self.connections as f64 - places.done;
            let connecting = if self.reconnects { 0.0 } else { places.connecting };
            // Pauses between two requests are the generator's. A busy thread has many of them.
            let away = places.never_established + places.waiting + places.pausing + places.leaving + connecting;
            // A replaced connection may be busy while its replacement is still idle.
            let is_idle = self.is_scheduled || self.busy < BUSY_SHARE * needed;
            is_idle && away > (1.0 - BUSY_SHARE) * needed
        });
        let idle = idle.and_then(|places| idle_line(self, &places)).map(|line| Note::doubt(NoteId::Idle, line));
        let hanging = self.hanging.filter(|hanging| {
            let share = hanging.sum_ns as f64 / self.elapsed_ns.max(1) as f64 / self.mean;
            share > HANGING_SHARE
        });
        let hanging = hanging.map(|hanging| Note::doubt(NoteId::Hanging, hanging_line(self, &hanging)));
        idle.into_iter().chain(hanging).collect()
    }
}

/// Names the reasons for idle connections; `None` if all are negligible.
fn idle_line(
    &FlightFigures { connections, busy, is_scheduled, .. }: &FlightFigures,
    places: &Places,
) -> Option<String> {
    let Places { never_established, waiting, connecting, pausing, leaving, done } = *places;
    let rest = connections as f64 - done - busy - never_established - waiting - connecting - pausing - leaving;
    let reasons = [
        (never_established, "were never established"),
        (waiting, "were waiting to reconnect"),
        (connecting, "were connecting"),
        (pausing, "were pausing for the script"),
        (leaving, "were waiting for the server to close them"),
        (done, "were not needed"),
        (rest, "were idle between a response and the next request"),
    ];
    // With a schedule, idle connections are spare capacity.
    let reasons = reasons.into_iter().take(if is_scheduled { 5 } else { 7 });
    // Skips reasons that would print as 0.0.
    let reasons = reasons.filter(|&(mean, _)| mean >= 0.05);
    let reasons: Vec<String> = reasons.map(|(mean, why)| format!("{} {why}", format_mean(mean))).collect();
    let (busy, connections, list) = (format_mean(busy), format_thousands(connections), reasons.join(", "));
    let away = format_mean(never_established + waiting + connecting + pausing + leaving);
    let line = match is_scheduled {
        true => format!("on average, {away} of {connections} connections were unavailable for sending: {list}"),
        false => format!("only {busy} of {connections} connections had a request in flight on average: {list}"),
    };
    (!reasons.is_empty()).then_some(line)
}

/// Formats a mean number: `7.4`, `5,565`.
fn format_mean(mean: f64) -> String {
    if mean < 99.95 { format!("{mean:.1}") } else { format_thousands(mean.round() as u64) }
}

fn hanging_line(flight: &FlightFigures, hanging: &Hanging) -> String {
    let requests = format_count(hanging.count, "request");
    let age = format_seconds(hanging.youngest_ns);
    let answers = match hanging.as_slow {
        0 => format!("the slowest response took {}", format_us(flight.slowest_ns as f64 / NS_PER_US)),
        count => format!("only {} took as long", format_count(count, "response")),
    };
    let [answered, mean] = [flight.answered, flight.mean].map(format_mean);
    let where_they_count = if flight.is_scheduled {
        "percentiles estimate them; Avg, Stdev and Max in the Latency row leave them out".to_owned()
    } else {
        format!("latencies leave them out, and cover only {answered} of the {mean} requests in flight on average")
    };
    format!("{requests} sent at least {age} before the end of the run had no response ({answers}); {where_they_count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Ten connections, all busy for ten seconds.
    const BUSY: FlightFigures = FlightFigures {
        connections: 10,
        elapsed_ns: 10_000 * MS,
        mean: 10.0,
        answered: 9.9,
        busy: 10.0,
        places: None,
        reconnects: false,
        hanging: None,
        slowest_ns: 836 * MS,
        is_scheduled: false,
    };

    fn said(flight: FlightFigures) -> Vec<String> {
        flight.notes().into_iter().map(|note| note.text).collect()
    }

    fn distribution(values: &[(u64, u64)]) -> Distribution<u64> {
        let mut distribution = Distribution::new();
        values.iter().for_each(|&(ms, times)| distribution.record_many(ms * MS, times));
        distribution
    }

    fn hanging(censored: &[(u64, u64)], abandoned: u64, latency: &[(u64, u64)]) -> Option<(u64, u64)> {
        let hanging = Hanging::from_ages(&distribution(censored), abandoned, &distribution(latency));
        hanging.map(|hanging| (hanging.count, hanging.as_slow))
    }

    #[test]
    fn idle_connections_are_explained() {
        let (busy, places) = (9.5, Places { connecting: 0.5, ..Places::default() });
        assert_eq!(said(FlightFigures { busy, places: Some(places), ..BUSY }), Vec::<String>::new());
        let (busy, places) =
            (6.7, Places { never_established: 2.0, waiting: 1.1, connecting: 0.2, ..Places::default() });
        assert_eq!(
            said(FlightFigures { busy, places: Some(places), ..BUSY }),
            [
                "only 6.7 of 10 connections had a request in flight on average: 2.0 were never established, 1.1 were waiting \
                 to reconnect, 0.2 were connecting"
            ]
        );
        let (busy, places) = (3.0, Places { pausing: 3.5, leaving: 2.0, done: 1.0, ..Places::default() });
        assert_eq!(
            said(FlightFigures { busy, places: Some(places), ..BUSY }),
            [
                "only 3.0 of 10 connections had a request in flight on average: 3.5 were pausing for the script, 2.0 were \
              waiting for the server to close them, 1.0 were not needed, 0.5 were idle between a response and the next \
              request"
            ]
        );
    }

    #[test]
    fn rarely_idle_connections_get_no_note() {
        let places = Places { waiting: 0.04, connecting: 0.04, done: 9.0, ..Places::default() };
        let flight = FlightFigures { busy: 0.9, places: Some(places), is_scheduled: true, ..BUSY };
        assert_eq!(said(flight), Vec::<String>::new());
        let places = Some(Places { waiting: 0.1, ..places });
        let line = "on average, 0.1 of 10 connections were unavailable for sending: 0.1 were waiting to reconnect";
        assert_eq!(said(FlightFigures { places, ..flight }), [line]);
    }

    #[test]
    fn finished_connections_are_not_missed() {
        let (busy, places) = (3.0, Places { done: 7.0, ..Places::default() });
        assert_eq!(said(FlightFigures { busy, places: Some(places), ..BUSY }), Vec::<String>::new());
    }

    #[test]
    fn hanging_requests_follow_littles_law() {
        // 93 of 100 waited all the time; one response took 836 ms.
        let censored = distribution(&[(950, 93), (3, 7)]);
        let latency = distribution(&[(1, 6_000), (836, 1)]);
        let hanging = Hanging::from_ages(&censored, 0, &latency);
        assert_eq!(hanging.map(|hanging| hanging.count), Some(93));
        let flight = FlightFigures {
            connections: 100,
            elapsed_ns: 1_000 * MS,
            mean: 100.0,
            answered: 7.0,
            hanging,
            slowest_ns: 836 * MS,
            ..BUSY
        };
        let words = "93 requests sent at least 0.9 s before the end of the run had no response (the slowest response took \
                     836.00ms)";
        let closed = "latencies leave them out, and cover only 7.0 of the 100 requests in flight on average";
        assert_eq!(said(flight), [format!("{words}; {closed}")]);
        let scheduled = "percentiles estimate them; Avg, Stdev and Max in the Latency row leave them out";
        assert_eq!(said(FlightFigures { is_scheduled: true, ..flight }), [format!("{words}; {scheduled}")]);
        let few = FlightFigures { mean: 100_000.0, ..flight };
        assert_eq!(said(few), Vec::<String>::new(), "a small part of the requests in flight");
    }

    #[test]
    fn single_slow_responses_excuse_no_crowd() {
        assert_eq!(hanging(&[(4_800, 93)], 0, &[(1, 6_000), (4_900, 1)]), Some((93, 1)));
        let ages = distribution(&[(4_000, 1), (5_000, 2)]);
        let hanging = Hanging::from_ages(&ages, 0, &distribution(&[(1, 9), (4_900, 1)]));
        let said = said(FlightFigures { hanging, ..BUSY });
        assert!(said[0].contains("had no response (only 1 response took as long)"), "{said:?}");
    }

    #[test]
    fn normally_aged_requests_get_no_note() {
        assert_eq!(hanging(&[(396, 4)], 0, &[(400, 16)]), None);
        assert_eq!(hanging(&[(900, 8), (1, 2)], 0, &[(1_000, 8)]), None);
        assert_eq!(hanging(&[(150, 8)], 0, &[(1, 1_000)]), None, "too short a wait");
        assert_eq!(hanging(&[], 0, &[(1, 1)]), None);
    }

    #[test]
    fn abandoned_requests_are_not_open() {
        assert_eq!(hanging(&[(30_000, 5), (1, 3)], 5, &[(1, 9)]), None);
        assert_eq!(hanging(&[(30_000, 5), (20_000, 3)], 5, &[(1, 9)]), Some((3, 0)));
    }
}
