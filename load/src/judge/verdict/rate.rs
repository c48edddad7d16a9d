//! Rules on a rate, which is judged by counts.

use super::failures::{advice_on_failures, describe_failures, describe_refusals, fails_often, refuses_too_many};
use super::ruling::{Ruling, make_ruling, unclear_ruling};
use super::words::{format_count, format_number, format_percent, format_seconds, format_time};
use crate::record::NoteId;
use crate::record::evidence::{Backlog, Elasticity, Evidence, Load};
use onrush_plan::LimitedBy;

/// Due requests had to wait for a connection if all connections were in use for at least this share of the time.
pub const CROWDED: f64 = 0.05;
/// A target kept up with the rate if at least this share of the due requests was sent ...
const SENT: f64 = 0.99;
/// ... and the target was silent for less than this share of the run.
const OUTAGE: f64 = 0.01;
/// Above this elasticity, the rate grows more than in proportion, as it may if connections differ.
pub(super) const BEYOND: f64 = 1.3;
/// The requests in flight may be a growing backlog if they increase by more than this share of the square root of all
/// requests.
const WANDERS: f64 = 0.125;
/// A target kept up with the rate if the mean queue was shorter than this share of the square root of all responses. At
/// or beyond its limit, the queue is a random walk without return: its mean is that root times the deviations of
/// arrivals and services (1 each for Poisson arrivals and exponential services). With the smallest drift visible in the
/// counts of a run, three roots, the queue stays this short in 1 to 3 of 100 simulated runs that leave few requests at
/// the end.
const SHORT: f64 = 0.15;
/// Minimum ratio at which two numbers of requests in flight are compared.
const FILLED: f64 = 2.0;
/// A difference between two rates is significant if it is at least this many standard errors.
const ERRORS: f64 = 3.0;
/// The lowest credible dispersion of responses.
const DISPERSED: f64 = 0.1;
/// The summary of a verdict that leaves open whether the target kept up.
pub(super) const UNTOLD: &str = "it is unclear whether the target kept up";
/// The notes on due requests that had to wait.
const WAITING: &[NoteId] = &[NoteId::Behind, NoteId::Crowded];

/// A rate that the target kept up with: no more requests than usual remain at the end, the latency does not grow, and
/// the responses are as expected.
pub(super) fn rule_on_kept_schedule(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    let asked_per_s = load.asked_per_s?;
    let is_kept = load.behind()? <= load.usually_left?
        && is_ordinary(evidence)
        && !may_grow(load)
        && !may_queue(load)
        && load.growth.is_none()
        && load.sent.is_none_or(|sent| sent >= SENT);
    let is_answered = load.completed > 0 && !refuses_too_many(load) && !fails_often(load);
    (is_kept && is_answered && load.quiet_s < OUTAGE * load.elapsed_s).then_some(())?;
    let [asked, reached] = [asked_per_s, load.rate_per_s].map(format_number);
    let reached = if reached == asked { String::new() } else { format!("{reached}/s were answered, ") };
    let reason = format!("{reached}{} in flight on average", format_number(load.in_flight));
    make_ruling(LimitedBy::Schedule, format!("the target kept up with {asked} requests/s"), reason, "")
}

/// True if more requests are in flight later in the run than earlier. This may be a growing backlog or chance: in a
/// queue at its limit, the number in flight varies by up to the square root of all requests.
pub(super) fn may_grow(load: &Load) -> bool {
    load.backlog.is_some_and(|Backlog { before, last, .. }| {
        last - before > 2.0 + WANDERS * (load.completed as f64).sqrt() + 2.0 * before.max(0.0).sqrt()
    })
}

/// True if the mean queue is so long that the target may be at its limit. The queue is the number in flight minus that
/// at the quietest time of the run, when workers and network held all requests, plus the due requests that waited for a
/// connection.
pub(super) fn may_queue(load: &Load) -> bool {
    let is_long = |Backlog { before, last, least, .. }: Backlog| {
        let queue = |least: f64| before.midpoint(last) - least + waiting_for_connections(load);
        least.is_some_and(|least| queue(least) > 0.5 + SHORT * (load.completed as f64).sqrt())
    };
    load.backlog.is_some_and(is_long)
}

/// Mean number of due requests that waited for a connection. Without a lack of connections, they waited for a moment of
/// sending or for onrush.
pub(super) fn waiting_for_connections(load: &Load) -> f64 {
    load.backlog.filter(|_| is_crowded(load)).map_or(0.0, |backlog| backlog.waiting)
}

/// True if few requests are left or overdue at the end, or no more than are in flight on average. A slowly growing
/// backlog behind highly variable latencies may look ordinary.
fn is_ordinary(Evidence { load, latency, .. }: &Evidence) -> bool {
    let left = load.behind().unwrap_or(0) as f64;
    let runs = if load.in_flight > 0.0 { load.all_in_flight() / load.in_flight } else { 1.0 };
    let in_flight = load.rate_per_s * latency.map_or(0.0, |latency| latency.mean_us) / 1e6 * runs;
    left <= (1.0 - SENT) * (load.completed as f64 + left) || left <= in_flight + 3.0 * in_flight.sqrt() + 2.0
}

/// A rate that was not reached, or reached only with failures or a growing backlog. The limit may be the target, the
/// requests in flight, or unclear.
pub(super) fn rule_on_overload(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    let asked = format!(
        "asked for {} requests/s, reached {}",
        format_number(load.asked_per_s?),
        format_number(load.rate_per_s)
    );
    if load.quiet_s >= OUTAGE * load.elapsed_s {
        let reason = format!("no response for {} in total; {asked}", format_seconds(load.quiet_s));
        return make_ruling(LimitedBy::Target, "the target fell silent", reason, "find out what stops it");
    }
    let growth = load.growth.map(|growth| format!("latency grew by {} a second", format_time(growth * 1e6)));
    let is_left = |left: &u64| *left > load.usually_left.unwrap_or(u64::MAX);
    let said = |behind: u64| match load.overrun_s.filter(|_| load.left.is_some_and(|left| left < behind)) {
        Some(overrun_s) => format!("the run ended {} after the last request was due", format_time(overrun_s * 1e6)),
        None => format!("{} unsent or in flight at the end", format_count(behind, "request")),
    };
    let left = load.behind().filter(is_left).map(said);
    let some_left = load.behind().filter(|_| !is_ordinary(evidence)).map(said);
    let unsent = load.sent.filter(|sent| *sent < SENT);
    let unsent = unsent.map(|sent| format!("only {} of the due requests were sent", format_percent(sent)));
    let is_behind = growth.is_some() && is_backlog(load) || left.is_some() && !may_be_chance(load);
    let is_sent = unsent.is_none();
    let why = growth.or(left).or(unsent).or(some_left);
    let failed = describe_failures(load).filter(|_| fails_often(load));
    if let Some(why) = why.as_ref().filter(|_| uses_all_connections(evidence)) {
        let besides = failed.or_else(|| refuses_too_many(load).then(|| describe_refusals(load)));
        let besides = besides.map_or(String::new(), |besides| format!("; {besides}"));
        let threads = evidence.generator.threads.len().max(1) as u64;
        let full = match (load.in_flight_max, load.connections % threads) {
            (Some(most), 0) => format!("as many requests in flight as allowed ({})", format_number(most as f64)),
            (Some(_), _) => "as many requests in flight on a thread as allowed".to_owned(),
            (None, 0) => format!("all {} in use", format_count(load.connections, "connection")),
            (None, _) => "all connections of a thread in use".to_owned(),
        };
        let filled = FilledConnections::from_evidence(evidence);
        let more = format!("allow more ({})", load.room.unwrap_or_default().option());
        let (limited_by, summary, advice) = match filled.as_ref().map(|filled| filled.elasticity) {
            Some(Elasticity { high, .. }) if high < Elasticity::STAYS => {
                (LimitedBy::Target, "the target is at its limit (more in flight gave no higher rate)", String::new())
            }
            Some(Elasticity { low, high, .. }) if low > Elasticity::FOLLOWS && high < BEYOND => {
                (LimitedBy::Connections, "the number of requests in flight is the limit", more)
            }
            _ => (
                LimitedBy::Unclear,
                "the rate was not reached, and the limit is unclear",
                more + ": if the rate stays the same, the target is the limit",
            ),
        };
        let rates =
            filled.filter(|_| limited_by != LimitedBy::Unclear).map_or(String::new(), |filled| filled.describe_rates());
        let reason = format!("{asked}; {why}, with {full}{rates}{besides}");
        return Some(make_ruling(limited_by, summary, reason, &advice)?.saying(WAITING));
    }
    if refuses_too_many(load) {
        let begins = if is_sent { "requests were sent and answered, but".to_owned() } else { format!("{asked};") };
        let reason = format!("{begins} {}", describe_refusals(load));
        return Some(
            make_ruling(LimitedBy::Target, "the target did not handle the rate", reason, "find out why")?
                .saying(&[NoteId::Statuses]),
        );
    }
    if let Some(failed) = failed {
        return make_ruling(
            LimitedBy::Target,
            "the target did not handle the rate",
            format!("{asked}; {failed}"),
            advice_on_failures(load).unwrap_or("find out why"),
        );
    }
    let why = why?;
    if !is_behind {
        return Some(unclear_ruling(UNTOLD, format!("{asked}; {why}"), None));
    }
    Some(
        make_ruling(LimitedBy::Target, "the target fell behind the rate", format!("{asked}; {why}"), "")?
            .saying(WAITING),
    )
}

/// True if the growth of the latency exceeds chance: in a queue at its limit, the number in flight grows and shrinks by
/// the square root of all requests.
fn is_backlog(load: &Load) -> bool {
    load.growth.is_some_and(|growth| growth * load.completed as f64 >= (load.completed as f64).sqrt())
}

/// True if the requests left at the end may be chance: no more than three standard errors of the number of responses.
fn may_be_chance(load: &Load) -> bool {
    let error = |dispersion: f64| (load.completed as f64 * dispersion.max(DISPERSED)).sqrt();
    load.dispersion.is_some_and(|dispersion| load.behind().unwrap_or(0) as f64 <= ERRORS * error(dispersion))
}

/// The rates at two numbers of requests in flight, in an open loop that eventually used all of its connections.
struct FilledConnections {
    /// Mean number of requests in flight: for requests sent while less than half of the connections were busy, and in
    /// the last third of the run.
    in_flight: [f64; 2],
    /// Responses per second at these numbers: the first by Little's law, the second counted.
    per_s: [f64; 2],
    elasticity: Elasticity,
}

impl FilledConnections {
    /// Compares the rates and computes the elasticity. Every request lengthens the queue by one, so that the latency of
    /// a request gives the rate at the number in flight when it was sent. That number is known for requests that found
    /// few in flight.
    fn from_evidence(Evidence { load, latency, .. }: &Evidence) -> Option<Self> {
        let latency = latency.as_ref()?;
        let Backlog { last: all, last_per_s, .. } = load.backlog?;
        let few = latency.calm_in_flight?;
        let per_s = [few / latency.calm_us? * 1e6, last_per_s];
        let (change, ratio) = ((per_s[1] / per_s[0]).ln(), (all / few).ln());
        // In a queue that is never empty, responses vary as services do. The sum of the services ahead of a request
        // varies equally.
        let counts = 1.0 / latency.calm as f64 + 3.0 / load.completed as f64;
        let error = ERRORS * (counts * load.dispersion?.max(DISPERSED)).sqrt();
        let is_telling = ratio >= FILLED.ln() && change.is_finite();
        let [value, low, high] = [0.0, -error, error].map(|error| (change + error) / ratio);
        is_telling.then_some(Self { in_flight: [few, all], per_s, elasticity: Elasticity { value, low, high } })
    }

    fn describe_rates(&self) -> String {
        let [few, all] = self.in_flight.map(|in_flight| format_number(in_flight.round()));
        let [few_per_s, all_per_s] = self.per_s.map(format_number);
        format!("; the target answered {few_per_s}/s with {few} in flight, {all_per_s}/s with {all} in flight")
    }
}

/// True if due requests had to wait for a connection.
pub fn uses_all_connections(Evidence { load, .. }: &Evidence) -> bool {
    is_crowded(load)
}

fn is_crowded(load: &Load) -> bool {
    load.crowded.is_some_and(|crowded| crowded >= CROWDED)
}
