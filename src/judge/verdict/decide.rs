//! The rules of the verdict, in the order in which they are tried; the first that applies decides.
//!
//! What was observed comes first: the generator, because its faults invalidate every other figure, then what the target
//! and the way to it did. A rate is judged by counts. Where a closed loop shows nothing of the kind, only the probe
//! decides: from the latencies alone it cannot be told whether requests queued.

use onrush_text::units::listed;

use super::words::{count, number, percent, seconds, time};
use crate::record::NoteId;
use crate::record::evidence::{
    Backlog, Elasticity, Evidence, Generator, Listening, Load, MainFailure, Network, Places, Probe, Refusal, Target,
    Thread, Unreadable,
};
use onrush_plan::LimitedBy;

/// A thread or a target counts as busy from this share of the time.
const BUSY: f64 = 0.9;
/// A thread of the generator that waited for a processor for this share of the time measured only that ...
const STARVED: f64 = 0.2;
/// ... and one that is less busy than this leaves requests no time to queue in it.
const UNDOUBTED: f64 = 0.75;
/// A generator that was stalled for this share of the run has measured only itself ...
const STOPPED: f64 = 0.05;
/// ... and so has a thread that the script held up.
pub const HELD_UP: f64 = 0.05;
/// Missing connections matter from this share of those asked for.
const MISSING: f64 = 0.05;
/// A wait for a processor is worth a word from this share of a thread's time.
const WAITED_FOR: f64 = 0.05;
/// Without a rate, the rate is that of error pages if they are this share of the responses.
const REFUSED: f64 = 0.1;
/// Due requests had to wait for a connection if all were in use for this share of the time.
pub const CROWDED: f64 = 0.05;
/// Connections that had no request in flight for this share of the time were the limit.
const UNUSED: f64 = 0.5;
/// A target whose threads were on a processor, or waited for one, for less than this share of the time waited for something else.
const BLOCKED: f64 = 0.1;
/// A rate was kept up with if at least this share of what was due was sent ...
const SENT: f64 = 0.99;
/// ... fewer than this share of the responses were unsuccessful, and as few requests failed ...
const FAILED: f64 = 0.01;
/// ... and the target was silent for less than this share of the run.
const OUTAGE: f64 = 0.01;
/// Losses matter from this share of the segments.
const LOST: f64 = 0.01;
/// Fewer losses matter if waiting for retransmissions may account for this share of the mean latency ...
const WAITED: f64 = 0.25;
/// ... and they are at least this share of the segments.
const LOST_MIN: f64 = 0.001;
/// The fewest lost segments from which anything is concluded.
const LOSSES_MIN: u64 = 10;
/// The shortest time Linux waits before it retransmits a segment, in microseconds (`TCP_RTO_MIN`).
const RETRANSMISSION_US: f64 = 200_000.0;
/// Segments queue on the way if a round trip takes this many times as long as the shortest ...
const QUEUED: f64 = 3.0;
/// ... and this share of the median latency.
const ROUND_TRIP: f64 = 0.5;
/// Delayed acknowledgements are the limit if this share of the latencies is about 40 ms ...
const DELAYED: f64 = 0.25;
/// ... and only part of a response had arrived in this share of the readings.
const HALF_ANSWERED: f64 = 0.3;
/// A target has died if it sent no response for this share of the run, at its end ...
const SILENT: f64 = 0.1;
/// ... and for at least this long, in seconds.
const SILENT_MIN_S: f64 = 0.2;
/// A target that falls silent for this share of the run limits it.
const QUIET: f64 = 0.25;
/// Requests that hang limit a run from this share of those in flight.
const HANGING: f64 = 0.05;
/// More than in proportion, or less than nothing, it follows only where connections are not alike or are too many.
const BEYOND: f64 = 1.3;
/// Below this elasticity, more in flight bring less.
const BACKWARDS: f64 = -0.3;
/// A number of requests in flight that grows by more than this share of the square root of all requests may be a backlog.
const WANDERS: f64 = 0.125;
/// Two numbers of requests in flight are compared from this ratio on.
const FILLED: f64 = 2.0;
/// A difference of two rates means something from this many standard errors on.
const ERRORS: f64 = 3.0;
/// The least dispersion of responses that is believed.
const DISPERSED: f64 = 0.1;
/// Failures count as all alike from this share on.
const ALIKE: f64 = 0.995;
/// The fewest responses from which anything is concluded.
const RESPONSES_MIN: u64 = 20;

/// The conclusion of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruling {
    pub limited_by: LimitedBy,
    /// What a probe found, in short.
    pub summary: Option<String>,
    pub reason: String,
    pub advice: Option<String>,
    /// The notes that would say it again.
    pub says: &'static [NoteId],
}

impl Ruling {
    fn saying(self, says: &'static [NoteId]) -> Self {
        Self { says, ..self }
    }

    fn in_short(self, summary: String) -> Self {
        Self { summary: Some(summary), ..self }
    }
}

/// The rules on what was observed, in order.
const OBSERVED: [fn(&Evidence) -> Option<Ruling>; 18] = [
    ports,
    stopped,
    script,
    held_up,
    generator_cpu,
    died,
    unused,
    unreadable,
    silent,
    hanging,
    listen_queue,
    schedule,
    losses,
    delayed_ack,
    too_few,
    failing,
    refusing,
    doubtful,
];

/// Decides what limited the run.
pub(super) fn decide(evidence: &Evidence) -> Ruling {
    let observed = OBSERVED.iter().find_map(|rule| rule(evidence));
    if let Some(ruling) = observed.or_else(|| overload(evidence)) {
        return ruling;
    }
    let ruling = probe(evidence).or_else(|| busy_target(evidence)).unwrap_or_else(|| unclear(evidence));
    let waits =
        waits_elsewhere(evidence).filter(|_| matches!(ruling.limited_by, LimitedBy::Target | LimitedBy::Unclear));
    Ruling { reason: ruling.reason + &waits.unwrap_or_default(), ..ruling }
}

/// Whether a probe would tell more: nothing that was observed decides about this closed loop.
pub fn needs_probe(evidence: &Evidence) -> bool {
    evidence.load.asked_per_s.is_none() && OBSERVED.iter().all(|rule| rule(evidence).is_none())
}

fn ruling(limited_by: LimitedBy, reason: String, advice: &str) -> Option<Ruling> {
    let advice = Some(advice.to_owned()).filter(|advice| !advice.is_empty());
    Some(Ruling { limited_by, summary: None, reason, advice, says: &[] })
}

/// The notes on connections that are missing.
const MISSED: &[NoteId] = &[NoteId::FewerConnections, NoteId::Idle];
/// The notes on requests that were due and had to wait.
const WAITING: &[NoteId] = &[NoteId::Behind, NoteId::Crowded];

fn ports(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    (load.without_port > 0 && misses(load)).then_some(())?;
    let reason = format!(
        "{} found no free local port, and {} of {} were missing on average",
        count(load.without_port, "connect"),
        number(load.missing),
        count(load.connections, "connection")
    );
    let advice = "use more source addresses (-b), or widen net.ipv4.ip_local_port_range";
    Some(ruling(LimitedBy::Ports, reason, advice)?.saying(MISSED))
}

fn stopped(evidence: &Evidence) -> Option<Ruling> {
    let Evidence { generator, load, .. } = evidence;
    let is_long = generator.stalled_s >= STOPPED * load.elapsed_s && load.elapsed_s > 0.0;
    (is_long && !has_failed(evidence)).then_some(())?;
    let reason = format!(
        "onrush was stalled for {} of {}: the process was suspended or got no processor, and the latencies include it",
        seconds(generator.stalled_s),
        seconds(load.elapsed_s)
    );
    Some(ruling(LimitedBy::GeneratorCpu, reason, "keep other programs off its processors")?.saying(&[NoteId::Stalled]))
}

fn script(evidence: &Evidence) -> Option<Ruling> {
    let is_busy = is_busy(evidence);
    let in_script = |thread: &Thread| is_busy(thread) && thread.script >= thread.busy / 2.0;
    let reason = busy_threads(evidence, in_script, |thread| {
        format!("{}, {} of the run in the script", how_busy(thread), percent(thread.script))
    })?;
    ruling(LimitedBy::GeneratorScript, reason, "do less per request in the script, or use more threads (-t)")
}

fn held_up(evidence: &Evidence) -> Option<Ruling> {
    let (is_busy, has_failed) = (is_busy(evidence), has_failed(evidence));
    // A thread that waits for a processor does so in callbacks, too.
    let is_held_up = |thread: &Thread| {
        thread.held_up >= HELD_UP.max(thread.queued.unwrap_or(0.0)) && !is_busy(thread) && !has_failed
    };
    let reason = busy_threads(evidence, is_held_up, |thread| {
        format!("held up by callbacks for {} of the run, and the latencies include it", percent(thread.held_up))
    })?;
    let advice = "do not wait or compute for long in callbacks: pause with delay(), prepare in init()";
    ruling(LimitedBy::GeneratorScript, reason, advice)
}

fn generator_cpu(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    let (waits_matter, is_busy) = (!has_failed(evidence), is_busy(evidence));
    let taken = |evidence| taken(evidence).filter(|_| waits_matter);
    // A thread that its control group stops waits for a processor, too: another one would not help.
    if evidence.generator.throttled(load.elapsed_s) >= STARVED {
        return taken(evidence);
    }
    let is_starved = |thread: &Thread| waits_matter && thread.queued.is_some_and(|queued| queued >= STARVED);
    let is_limit = |thread: &Thread| is_busy(thread) || is_starved(thread);
    let Generator { threads, cpus, .. } = &evidence.generator;
    let works = |thread: &Thread| thread.worked() >= BUSY;
    if threads.iter().any(|thread| is_limit(thread) && waits(thread)) && !threads.iter().any(works) {
        let is_waiting = |thread: &Thread| is_limit(thread) && waits(thread);
        let reason = busy_threads(evidence, is_waiting, |thread| {
            let [waited, worked] = [thread.queued.unwrap_or(0.0), thread.worked()].map(percent);
            format!("waiting for a processor for {waited} of the time, and working for {worked}")
        })?;
        let (others, advice) = others(evidence);
        return ruling(LimitedBy::GeneratorCpu, reason + ": " + &others, &advice);
    }
    let Some(reason) = busy_threads(evidence, is_limit, how_busy) else { return taken(evidence) };
    let advice = match cpus {
        None => "use more machines, or more threads (-t) where one has processors left",
        Some(cpus) if threads.len() < *cpus => "use more threads (-t), or another machine",
        Some(_) => "use more machines: every processor of this one is in use",
    };
    ruling(LimitedBy::GeneratorCpu, reason, advice)
}

/// Returns whether a thread waited for a processor for a time that is worth a word.
fn waits(thread: &Thread) -> bool {
    thread.queued.is_some_and(|queued| queued >= WAITED_FOR)
}

/// Who had the processors that threads of onrush waited for, as far as it is known, and what to do about it.
fn others(Evidence { generator, target, .. }: &Evidence) -> (String, String) {
    let Generator { threads, cpus, .. } = generator;
    if let Some(cpus) = cpus.filter(|cpus| threads.len() > *cpus) {
        let share = format!("{} threads share {}", number(threads.len() as f64), processors(cpus as f64));
        return (share, format!("use fewer threads (-t {cpus})"));
    }
    let waited: f64 = threads.iter().filter_map(|thread| thread.queued).sum();
    match target.as_ref().filter(|target| target.cpus_used >= waited / 2.0) {
        Some(Target { name, cpus_used, cpus_allowed, .. }) => (
            format!("the target on this machine ({name}) used {} of {}", number(*cpus_used), processors(*cpus_allowed)),
            "give onrush processors of its own (taskset), or use another machine".to_owned(),
        ),
        None => {
            ("other programs had it".to_owned(), "stop them, or give onrush processors of its own (taskset)".to_owned())
        }
    }
}

/// Returns whether the target failed so often, or was silent for so long, that this decides and not a stall of onrush or a wait for a
/// processor: without these, more would have failed.
fn has_failed(evidence: &Evidence) -> bool {
    let Evidence { generator, load, .. } = evidence;
    // Both times leave out stalls.
    let is_longer = |silent_s: f64| silent_s > generator.stalled_s;
    let is_silent = is_silent(load) && is_longer(load.quiet_s) && unused(evidence).is_none();
    let requests = load.connect_errors.saturating_add(load.failed_requests()).saturating_add(load.abandoned);
    let fails = match load.completed {
        0 => load.failures() > 0 && load.failures() >= load.connections,
        completed => requests >= completed,
    };
    load.unreadable.is_some() || fails || is_silent || (has_died(evidence) && is_longer(load.silent_at_end_s))
}

/// Returns whether a thread worked, or waited for a processor where that matters, nearly all of the time.
fn is_busy(evidence: &Evidence) -> impl Fn(&Thread) -> bool {
    let has_failed = has_failed(evidence);
    move |thread: &Thread| (if has_failed { thread.worked() } else { thread.busy }) >= BUSY
}

/// How much a thread worked, and how long it waited for a processor if that is worth a word, or is what made it busy.
fn how_busy(thread: &Thread) -> String {
    let is_why = |limit: f64| thread.busy >= limit && thread.worked() < limit;
    let tells = is_why(BUSY) || is_why(UNDOUBTED);
    let queued = thread.queued.filter(|queued| *queued >= WAITED_FOR || tells);
    let waiting = queued.map_or(String::new(), |queued| format!(", {} waiting for a processor", percent(queued)));
    format!("{} busy{waiting}", percent(thread.worked()))
}

/// Processors that were taken from the generator: by the limit of its control group, or by the hypervisor.
fn taken(Evidence { generator, load, machine, .. }: &Evidence) -> Option<Ruling> {
    let throttled = generator.throttled(load.elapsed_s);
    let (share, who, advice, says): (_, _, _, &[NoteId]) = match machine.stolen {
        _ if throttled >= STARVED => {
            (throttled, "the limit of its control group", "raise cpu.max", &[NoteId::Throttled])
        }
        Some(stolen) if stolen >= STARVED => {
            (stolen, "the hypervisor", "use a machine with processors of its own", &[NoteId::Stolen])
        }
        _ => return None,
    };
    let reason = format!("{who} took {} of its processors' time", percent(share));
    Some(ruling(LimitedBy::GeneratorCpu, reason, advice)?.saying(says))
}

/// Describes the threads that match, if any; the figures are those of the first.
fn busy_threads(
    evidence: &Evidence,
    is_busy: impl Fn(&Thread) -> bool,
    say: impl Fn(&Thread) -> String,
) -> Option<String> {
    let threads = &evidence.generator.threads;
    let busy: Vec<&Thread> = threads.iter().filter(|thread| is_busy(thread)).collect();
    let words = say(busy.first()?);
    Some(match (busy.len(), threads.len()) {
        (1, 1) => format!("its only thread was {words}"),
        (2, 2) => format!("both threads were {words}"),
        (all, of) if all == of => format!("all {all} threads were {words}"),
        (1, of) => format!("1 of {of} threads was {words}"),
        (some, of) => format!("{some} of {of} threads were {words}"),
    })
}

/// A rate that was kept up with: at the end no more requests are left than usually are, the latency does not grow, and
/// the responses are what was asked for.
fn schedule(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    let asked_per_s = load.asked_per_s?;
    let is_kept = load.behind()? <= load.usually_left?
        && is_ordinary(evidence)
        && !may_grow(load)
        && load.growth.is_none()
        && load.sent.is_none_or(|sent| sent >= SENT);
    let is_answered = load.completed > 0 && !is_refused(load) && !fails(load);
    (is_kept && is_answered && load.quiet_s < OUTAGE * load.elapsed_s).then_some(())?;
    ruling(LimitedBy::Schedule, format!("the target kept up with {} requests/s", number(asked_per_s)), "")
}

/// Returns whether more requests are in flight later in the run than earlier, so that it may be a backlog that grows, or chance: in a
/// queue at its limit their number wanders as far as the square root of all of them.
fn may_grow(load: &Load) -> bool {
    load.backlog.is_some_and(|Backlog { before, last }| {
        last - before > 2.0 + WANDERS * (load.completed as f64).sqrt() + 2.0 * before.max(0.0).sqrt()
    })
}

/// Returns whether few requests are left or overdue at the end, or no more than are in flight on average: a backlog that grows slowly behind
/// latencies that vary much may be within what is usual.
fn is_ordinary(Evidence { load, latency, .. }: &Evidence) -> bool {
    let left = load.behind().unwrap_or(0) as f64;
    let runs = if load.in_flight > 0.0 { load.all_in_flight() / load.in_flight } else { 1.0 };
    let in_flight = load.rate_per_s * latency.map_or(0.0, |latency| latency.mean_us) / 1e6 * runs;
    left <= (1.0 - SENT) * (load.completed as f64 + left) || left <= in_flight + 3.0 * in_flight.sqrt() + 2.0
}

/// Whether too many responses are unsuccessful.
fn is_refused(load: &Load) -> bool {
    refused(load) as f64 >= FAILED * load.completed as f64 && refused(load) > 0
}

/// How many responses are unsuccessful, by their status or by a check: at least the larger number of the two.
fn refused(load: &Load) -> u64 {
    load.refused.max(load.failed_checks)
}

/// Those responses: `83 % of the responses were 429`.
fn refusals(load: &Load) -> String {
    let share = percent(refused(load) as f64 / load.completed as f64);
    if load.failed_checks > load.refused {
        return format!("{share} of the responses failed a check");
    }
    let others = load.expected.as_ref().map_or("neither 2xx nor 3xx".to_owned(), |list| format!("other than {list}"));
    let were = load.refusal.map_or(others.clone(), |Refusal { status, is_only }| {
        if is_only { status.to_string() } else { format!("{others}, most of them {status}") }
    });
    format!("{share} of the responses were {were}")
}

/// A closed loop in which so much failed that its rate means little.
fn failing(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let failures = failures(load).filter(|_| load.asked_per_s.is_none() && fails(load))?;
    ruling(LimitedBy::Unclear, failures, advice_on_failures(load).unwrap_or("find out why first"))
}

/// A closed loop whose rate is that of error pages.
fn refusing(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let is_refused = refused(load) as f64 >= REFUSED * load.completed as f64 && refused(load) > 0;
    (load.asked_per_s.is_none() && is_refused).then_some(())?;
    Some(ruling(LimitedBy::Unclear, refusals(load), "find out why first")?.saying(&[NoteId::Statuses]))
}

/// A closed loop whose requests may have queued in the generator.
fn doubtful(evidence: &Evidence) -> Option<Ruling> {
    let busiest = busiest(evidence).filter(|thread| evidence.load.asked_per_s.is_none() && thread.busy >= UNDOUBTED)?;
    let reason = format!("onrush's busiest thread was {}, so requests may have queued in it", how_busy(busiest));
    if waits(busiest) {
        let (others, advice) = others(evidence);
        return ruling(LimitedBy::Unclear, format!("{reason}; {others}"), &advice);
    }
    ruling(LimitedBy::Unclear, reason, "use more threads (-t), or another machine")
}

/// A rate that was not kept up with.
fn overload(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    let asked = format!("asked {} requests/s, reached {}", number(load.asked_per_s?), number(load.rate_per_s));
    if load.quiet_s >= OUTAGE * load.elapsed_s {
        let reason = format!("{asked}: it sent no response for {} in all", seconds(load.quiet_s));
        return ruling(LimitedBy::Target, reason, "find out what stops it");
    }
    let growth = load.growth.map(|growth| format!("latency growing by {} a second", time(growth * 1e6)));
    let is_left = |left: &u64| *left > load.usually_left.unwrap_or(u64::MAX);
    let said = |behind: u64| match load.overrun_s.filter(|_| load.left.is_some_and(|left| left < behind)) {
        Some(overrun_s) => format!("ending {} after the last request was due", time(overrun_s * 1e6)),
        None => format!("{} unsent or in flight at the end", count(behind, "request")),
    };
    let left = load.behind().filter(is_left).map(said);
    let some_left = load.behind().filter(|_| !is_ordinary(evidence)).map(said);
    let unsent = load.sent.filter(|sent| *sent < SENT);
    let unsent = unsent.map(|sent| format!("only {} of what was due was sent", percent(sent)));
    let is_behind = growth.is_some() || left.is_some() && !is_chance(load);
    let is_sent = unsent.is_none();
    let why = growth.or(left).or(unsent).or(some_left);
    let failed = failures(load).filter(|_| fails(load));
    if let Some(why) = why.as_ref().filter(|_| uses_all(evidence)) {
        let besides = failed.or_else(|| is_refused(load).then(|| refusals(load)));
        let besides = besides.map_or(String::new(), |besides| format!("; {besides}"));
        let threads = evidence.generator.threads.len().max(1) as u64;
        let full = match (load.in_flight_max, load.connections % threads) {
            (Some(most), 0) => format!("as many requests in flight as allowed ({})", number(most as f64)),
            (Some(_), _) => "as many requests in flight on a thread as allowed".to_owned(),
            (None, 0) => format!("all {} in use", count(load.connections, "connection")),
            (None, _) => "all connections of a thread in use".to_owned(),
        };
        let filled = Filled::of(evidence);
        let (limited_by, advice) = match filled.as_ref().map(|filled| filled.elasticity) {
            Some(Elasticity { high, .. }) if high < Elasticity::STAYS => (LimitedBy::Target, ""),
            Some(Elasticity { low, high, .. }) if low > Elasticity::FOLLOWS && high < BEYOND => {
                (LimitedBy::Connections, "allow more (--max-inflight)")
            }
            _ => (LimitedBy::Unclear, "allow more (--max-inflight): if it reaches no more, the target is the limit"),
        };
        let rates = filled.filter(|_| limited_by != LimitedBy::Unclear).map_or(String::new(), |filled| filled.words());
        let reason = format!("{asked}, {why}, with {full}{rates}{besides}");
        return Some(ruling(limited_by, reason, advice)?.saying(WAITING));
    }
    if is_refused(load) {
        let begins = if is_sent { "sent and answered, but".to_owned() } else { format!("{asked}:") };
        let reason = format!("{begins} {}", refusals(load));
        return Some(ruling(LimitedBy::Target, reason, "find out why it refuses them")?.saying(&[NoteId::Statuses]));
    }
    if let Some(failed) = failed {
        return ruling(
            LimitedBy::Target,
            format!("{asked}: {failed}"),
            advice_on_failures(load).unwrap_or("find out why"),
        );
    }
    let why = why?;
    if !is_behind {
        return Some(unclear_with(format!("{asked}: {why}"), None));
    }
    Some(ruling(LimitedBy::Target, format!("{asked}, {why}"), "")?.saying(WAITING))
}

/// Returns whether as many requests may be left by chance: as many as three standard errors of the number of responses.
fn is_chance(load: &Load) -> bool {
    let error = |dispersion: f64| (load.completed as f64 * dispersion.max(DISPERSED)).sqrt();
    load.dispersion.is_some_and(|dispersion| load.behind().unwrap_or(0) as f64 <= ERRORS * error(dispersion))
}

/// The rate at two numbers of requests in flight, in an open loop that has come to use all of its connections.
struct Filled {
    /// Requests in flight, on average: when those were sent that found less than half of the connections busy, and in all.
    in_flight: [f64; 2],
    /// Responses per second at these, by Little's law.
    per_s: [f64; 2],
    elasticity: Elasticity,
}

impl Filled {
    /// A queue is longer by one for every request in it, so that the latency of a request tells the rate at the number in flight
    /// when it was sent. The number is known for requests that found few in flight.
    fn of(Evidence { load, latency, .. }: &Evidence) -> Option<Self> {
        let latency = latency.as_ref()?;
        let (few, all) = (latency.calm_in_flight?, load.in_flight);
        let per_s = [few / latency.calm_us? * 1e6, all / latency.mean_us * 1e6];
        let (change, ratio) = ((per_s[1] / per_s[0]).ln(), (all / few).ln());
        // In a queue that is never empty, responses vary as services do, and so does the sum of those that a request waits for.
        let counts = 1.0 / latency.calm as f64 + 1.0 / load.completed as f64;
        let error = ERRORS * (counts * load.dispersion?.max(DISPERSED)).sqrt();
        let is_telling = ratio >= FILLED.ln() && change.is_finite();
        let [value, low, high] = [0.0, -error, error].map(|error| (change + error) / ratio);
        is_telling.then_some(Self { in_flight: [few, all], per_s, elasticity: Elasticity { value, low, high } })
    }

    fn words(&self) -> String {
        let [few, all] = self.in_flight.map(|in_flight| number(in_flight.round()));
        let [few_per_s, all_per_s] = self.per_s.map(number);
        format!("; it answered {few_per_s}/s with {few} in flight, {all_per_s}/s with {all} in flight")
    }
}

/// Whether due requests had to wait for a connection.
pub fn uses_all(Evidence { load, .. }: &Evidence) -> bool {
    load.crowded.is_some_and(|crowded| crowded >= CROWDED)
}

fn losses(evidence: &Evidence) -> Option<Ruling> {
    let mean_us = evidence.latency.as_ref()?.mean_us;
    // Older results do not say how many they were.
    let ends = || ends(evidence).filter(|end| end.lost.is_none_or(|lost| lost >= LOSSES_MIN));
    let lost = ends().map(|end| end.retransmitted - end.needless.unwrap_or(0.0)).fold(0.0, f64::max);
    let waited_us = ends().map(|end| end.lost_per_request).fold(0.0, f64::max) * RETRANSMISSION_US;
    let reason = if lost >= LOST || (lost >= LOST_MIN && waited_us >= WAITED * mean_us) {
        format!("{} of the segments were lost", percent(lost))
    } else {
        format!(
            "{} of the segments arrived out of order: some were lost, or overtaken by others",
            percent(disordered(evidence)?)
        )
    };
    let advice = if evidence.target.is_some() {
        "find out what drops them on this machine (tc -s qdisc, nstat)"
    } else {
        "check the links between the two machines (ip -s link, tc -s qdisc)"
    };
    ruling(LimitedBy::Network, reason, advice)
}

/// The share of the segments that arrived out of order, if it is all that may show losses: a target on this machine says itself what
/// it retransmitted, and a segment that only overtakes another costs nothing.
fn disordered(Evidence { network, target, .. }: &Evidence) -> Option<f64> {
    let network = network.as_ref().filter(|_| target.is_none())?;
    let are_many = network.out_of_order_segments.or(network.lost).is_none_or(|segments| segments >= LOSSES_MIN);
    network.out_of_order.filter(|share| are_many && *share >= LOST)
}

/// Both ends of the connections, as far as they could be seen.
fn ends(evidence: &Evidence) -> impl Iterator<Item = &Network> {
    evidence.network.iter().chain(evidence.target.as_ref().and_then(|target| target.network.as_ref()))
}

/// Connections that had nothing in flight for half of the time: they paused, or waited for their end. A target that is
/// silent then may have nothing to respond to.
fn unused(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let idle = load.idle.filter(|idle| load.asked_per_s.is_none() && *idle >= UNUSED)?;
    let (why, advice) = match load.places {
        Places { pausing, leaving, .. } if leaving > pausing => ("they waited for the server to close them", ""),
        Places { pausing, .. } if pausing > 0.0 => ("they paused for the script", " or shorter pauses"),
        _ => return None,
    };
    let reason = format!("open connections had no request in flight for {} of the time: {why}", percent(idle));
    Some(ruling(LimitedBy::Connections, reason, &format!("use more connections (-c){advice}"))?.saying(&[NoteId::Idle]))
}

fn delayed_ack(Evidence { latency, network, .. }: &Evidence) -> Option<Ruling> {
    let delayed = latency.as_ref().map(|latency| latency.delayed).filter(|delayed| *delayed >= DELAYED)?;
    let half_answered = network.as_ref()?.half_answered.filter(|half_answered| *half_answered >= HALF_ANSWERED)?;
    let reason = format!(
        "{} of the latencies are about 40 ms, and in {} of the samples only part of the response had arrived: the target \
         probably sends responses in pieces and waits for an acknowledgement in between",
        percent(delayed),
        percent(half_answered)
    );
    ruling(LimitedBy::Target, reason, "have the target send each response in one piece, or set TCP_NODELAY")
}

fn listen_queue(Evidence { load, target, .. }: &Evidence) -> Option<Ruling> {
    let listening = target.as_ref()?.listening.filter(|listening| misses(load) && is_full(listening))?;
    let overflows = listening.overflows.filter(|overflows| *overflows > 0);
    let overflows =
        overflows.map_or(String::new(), |overflows| format!(" and overflowed {}", count(overflows, "time")));
    let reason = format!(
        "its accept queue of {} was full{overflows}, and {} of {} were missing on average",
        number(f64::from(listening.limit)),
        number(load.missing),
        count(load.connections, "connection")
    );
    let advice = "raise its backlog and net.core.somaxconn, or have it accept faster";
    Some(ruling(LimitedBy::Target, reason, advice)?.saying(MISSED))
}

/// Whether an accept queue was seen full. Overflows alone may be another server's: the kernel counts those of all.
pub(super) fn is_full(listening: &Listening) -> bool {
    listening.waiting_max > 0 && listening.waiting_max >= listening.limit
}

fn died(evidence: &Evidence) -> Option<Ruling> {
    has_died(evidence).then_some(())?;
    let load = &evidence.load;
    let ended = evidence.target.as_ref().filter(|target| target.ended).map(|_| "its processes ended".to_owned());
    let why: Vec<String> = ended.into_iter().chain(failures(load)).collect();
    let reason = format!("no responses in the last {}: {}", seconds(load.silent_at_end_s), why.join("; "));
    ruling(LimitedBy::Target, reason, "check the target's log")
}

/// What failed and how often; `None` if nothing did.
fn failures(load: &Load) -> Option<String> {
    let counted = |number: u64, noun| (number > 0).then(|| count(number, noun));
    let failed = [
        counted(load.connect_errors, "connect"),
        counted(load.failed_requests(), "request"),
        counted(load.failed_connections(), "connection"),
    ];
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    let failed = (!failed.is_empty()).then(|| format!("{} failed{}", listed(&failed), most_failed(load)));
    // Some of them may be among those that failed.
    let late = counted(load.timeouts, "request").map(|requests| format!("{requests} took longer than --timeout"));
    // Where --give-up is shorter, nothing times out.
    let abandoned = counted(load.abandoned, "request").filter(|_| load.abandoned > load.timeouts);
    let late = abandoned.map(|requests| format!("{requests} were abandoned (--give-up)")).or(late);
    let all: Vec<String> = failed.into_iter().chain(late).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Why connects, requests and connections failed, and how many of them, if it is at least half.
fn most_failed(load: &Load) -> String {
    let Some(MainFailure { count, why, .. }) = main_failure(load) else { return String::new() };
    match *count as f64 / load.failures().saturating_sub(load.abandoned) as f64 {
        share if share < ALIKE => format!(" ({} of them: {why})", percent(share)),
        _ => format!(" ({why})"),
    }
}

fn main_failure(load: &Load) -> Option<&MainFailure> {
    let failed = load.failures().saturating_sub(load.abandoned);
    load.main_failure.as_ref().filter(|main| main.count.saturating_mul(2) >= failed)
}

/// What to do where the reason of most failures is known.
fn advice_on_failures(load: &Load) -> Option<&str> {
    main_failure(load).filter(|_| fails(load))?.advice.as_deref()
}

/// Whether the target responded at first and later stopped.
pub(super) fn has_died(Evidence { load, target, .. }: &Evidence) -> bool {
    let is_silent = load.silent_at_end_s >= SILENT_MIN_S && load.silent_at_end_s >= SILENT * load.elapsed_s;
    let has_ended = target.as_ref().is_some_and(|target| target.ended);
    load.completed > 0 && is_silent && (load.failed_at_end || has_ended)
}

fn too_few(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    // What was due and got no response, or failed, says as much.
    let failed = load.failures();
    let all = load.completed.saturating_add(load.behind().unwrap_or(0)).saturating_add(failed);
    (all < RESPONSES_MIN || load.completed == 0 && failed == 0).then_some(())?;
    if load.completed == 0 {
        return ruling(LimitedBy::Unclear, "there were no responses".to_owned(), "");
    }
    let were = if load.completed == 1 { "was" } else { "were" };
    let only = format!("there {were} only {}", count(load.completed, "response"));
    match failures(load).filter(|_| fails(load)) {
        Some(failures) => {
            let advice = advice_on_failures(load).unwrap_or("find out why first");
            ruling(LimitedBy::Unclear, format!("{only}: {failures}"), advice)
        }
        None => ruling(LimitedBy::Unclear, only, "run longer (-d)"),
    }
}

/// A closed loop whose target was busy, unless the probe tells otherwise: a target may busy-poll.
fn busy_target(evidence: &Evidence) -> Option<Ruling> {
    let elasticity = evidence.probe.as_ref().and_then(|probe| probe.elasticity);
    let may_be = evidence.load.asked_per_s.is_none() && elasticity.is_none_or(|it| it.low <= Elasticity::STAYS);
    may_be.then(|| target_cpu(evidence)).flatten()
}

fn target_cpu(evidence: &Evidence) -> Option<Ruling> {
    let target = evidence.target.as_ref()?;
    let name = &target.name;
    let reason = if target.busiest_thread >= BUSY {
        format!("the busiest thread of {name} was {} busy", percent(target.busiest_thread))
    } else if target.cpus_allowed > 0.0 && target.cpus_used >= BUSY * target.cpus_allowed {
        format!("{name} used {} of its {}", number(target.cpus_used), processors(target.cpus_allowed))
    } else {
        return None;
    };
    ruling(LimitedBy::Target, reason + &meanwhile(evidence), "")
}

/// A target whose responses cannot be read.
fn unreadable(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let Unreadable { requests, why } = load.unreadable.as_ref()?;
    // What comes before a request fails only the connection.
    let failed = match load.failed_requests() {
        failed if *requests <= failed => count(*requests, "request"),
        0 => count(*requests, "connection"),
        _ => format!("{} requests and connections", number(*requests as f64)),
    };
    let reason = format!("none of its responses could be read: {failed} failed ({why})");
    let advice = main_failure(load).filter(|main| main.why == *why).and_then(|main| main.advice.as_deref());
    ruling(LimitedBy::Target, reason, advice.unwrap_or_default())
}

/// A target that falls silent as a whole for a good part of the run.
fn silent(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    is_silent(load).then_some(())?;
    let why = failures(load).filter(|_| fails(load)).map_or_else(|| meanwhile(evidence), |why| format!(": {why}"));
    // A port that expects another protocol ends connections without a word.
    if load.is_mute && load.failed_requests() > 0 {
        let reason = format!("it sent nothing at all{why}");
        return ruling(
            LimitedBy::Target,
            reason,
            "does it speak this version of HTTP at that port, with or without TLS?",
        );
    }
    let reason =
        format!("it sent no response for {} of {} in all{why}", seconds(load.quiet_s), seconds(load.elapsed_s));
    ruling(LimitedBy::Target, reason, advice_on_failures(load).unwrap_or("find out what stops it"))
}

fn is_silent(load: &Load) -> bool {
    load.quiet_s >= QUIET * load.elapsed_s && load.quiet_s > 0.0
}

/// Requests that get no response while others do.
fn hanging(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    // With a rate, few are in flight at any time.
    let is_rare = load.asked_per_s.is_some() && (load.hanging as f64) < FAILED * load.completed as f64;
    (load.hanging as f64 >= HANGING * load.all_in_flight() && load.hanging > 0 && !is_rare).then_some(())?;
    let latencies = if load.asked_per_s.is_some() { "" } else { "; the latencies leave them out" };
    let slowest = if load.completed == 0 { "" } else { " and three times the slowest response" };
    let reason = format!(
        "{} had no response by the end, after at least a second{slowest}{latencies}",
        count(load.hanging, "request")
    );
    Some(ruling(LimitedBy::Target, reason, "find out why it does not respond to them")?.saying(&[NoteId::Hanging]))
}

/// What the probe after the run tells.
fn probe(evidence: &Evidence) -> Option<Ruling> {
    let probe = evidence.probe.as_ref()?;
    let (first, other) = probe.in_flight()?;
    let Elasticity { low, high, .. } = probe.elasticity?;
    let options = options(u64::from(first), u64::from(other), evidence.load.connections.max(1));
    let about = |per_s: f64| match &options {
        (options, true) => format!("{options}: about {}/s", number(per_s)),
        (options, false) => options.clone(),
    };
    let [first_per_s, other_per_s] = [first, other].map(|in_flight| probe.rate_per_s(in_flight));
    let rates =
        format!("{}/s with {first} in flight, {}/s with {other} in flight", number(first_per_s), number(other_per_s));
    if low > BEYOND {
        let reason = format!("the connections are not alike, so that the probe tells nothing: {rates}");
        return Some(unclear_with(reason, None));
    }
    let so_many = so_many(first, other);
    let brought = brought(first_per_s, other_per_s);
    if low > Elasticity::FOLLOWS {
        let (summary, advice) = if other > first {
            (format!("{so_many} brought {brought}"), about(other_per_s))
        } else {
            let so_much = if first == 2 * other { "half" } else { &brought };
            (format!("{so_many} brought {so_much}"), "--probe up tells whether more would bring more".to_owned())
        };
        let ruling = ruling(LimitedBy::Connections, rates, &advice)?;
        return Some(ruling.in_short(format!("the number of requests in flight is the limit ({summary})")));
    }
    if high < BACKWARDS {
        let advice = if other < first { about(other_per_s) } else { String::new() };
        let ruling = ruling(LimitedBy::Target, rates, &advice)?;
        return Some(ruling.in_short(format!("the target is beyond its limit ({so_many} brought {brought})")));
    }
    if high < Elasticity::STAYS {
        if let Some(queued) = queued_on_the_way(evidence) {
            return Some(queued);
        }
        let target = target_cpu(evidence).map_or_else(String::new, |ruling| format!("; {}", ruling.reason));
        let ruling = ruling(LimitedBy::Target, rates + &target, "")?;
        let same = format!("the same {}/s", number(first_per_s));
        return Some(ruling.in_short(format!("the target is at its limit ({so_many} brought {same})")));
    }
    if low > Elasticity::STAYS && high < Elasticity::FOLLOWS {
        let more = if other > first { about(other_per_s) } else { String::new() };
        let ruling = ruling(LimitedBy::Knee, rates, &more)?;
        return Some(ruling.in_short(format!("the target is near its limit ({so_many} brought {brought})")));
    }
    None
}

/// How many `other` requests in flight are beside `first`.
fn so_many(first: u32, other: u32) -> String {
    // Of few, a request more or less is not the same share.
    let is_about = |exact: bool| exact || first >= 10;
    match (first, other) {
        (1, 2) => "twice as many in flight".to_owned(),
        _ if first / 2 == other && is_about(first.is_multiple_of(2)) => "half as many in flight".to_owned(),
        _ if first - first / 4 == other && is_about(first.is_multiple_of(4)) => "three quarters in flight".to_owned(),
        _ if first + first.div_ceil(2) == other && is_about(first.is_multiple_of(2)) => {
            "half as many more in flight".to_owned()
        }
        _ => format!("{other} in flight instead of {first}"),
    }
}

/// How much more or less one rate is than another.
fn brought(first_per_s: f64, other_per_s: f64) -> String {
    let change = other_per_s / first_per_s.max(f64::MIN_POSITIVE) - 1.0;
    format!("{} {}", percent(change.abs()), if change < 0.0 { "less" } else { "more" })
}

/// Options that put about `other` requests in flight, instead of `first` on this number of connections, on as many as the
/// probe used; and whether it is exactly as many.
fn options(first: u64, other: u64, connections: u64) -> (String, bool) {
    let streams = (first / connections).max(1);
    let needed = other.div_ceil(streams);
    let each = match other.div_ceil(needed) {
        each if (needed, each) == (connections, streams) => other / needed,
        each => each,
    };
    let options = if each == streams {
        format!("-c {needed}")
    } else if needed == connections {
        format!("--streams {each}")
    } else {
        format!("-c {needed} --streams {each}")
    };
    (options, needed * each == other)
}

/// Words on a target that was hardly on a processor while requests were in flight: it was not computing.
fn waits_elsewhere(evidence: &Evidence) -> Option<String> {
    let Evidence { load, target, .. } = evidence;
    let target = target.as_ref().filter(|_| load.asked_per_s.is_none() && load.in_flight >= 1.0)?;
    // One of its threads may have waited for a processor, or segments for the link.
    let busy = target.busiest_thread + target.queued?;
    let is_idle = busy < BLOCKED && target.cpus_used < BLOCKED * load.in_flight.min(target.cpus_allowed);
    let is_free = target.throttled_s.unwrap_or(0.0) == 0.0 && queued_on_the_way(evidence).is_none();
    (is_idle && is_free).then(|| {
        let (name, busiest) = (&target.name, percent(target.busiest_thread));
        let in_flight = number(load.in_flight.round());
        format!(
            "; the target ({name}) waited for something else than a processor (a lock, a disk, a timer, another service): its busiest thread was \
             {busiest} busy while {in_flight} were in flight"
        )
    })
}

/// Segments that queued on the way, as round trips show it.
fn queued_on_the_way(evidence: &Evidence) -> Option<Ruling> {
    let median_us = evidence.latency.as_ref()?.p50_us;
    let is_queued = |end: &&Network| {
        let is_long = |shortest_us: f64| end.rtt_us >= QUEUED * shortest_us;
        end.rtt_min_us.is_some_and(is_long) && end.rtt_us >= ROUND_TRIP * median_us
    };
    // Those of the generator's end include the time that the target takes, if it acknowledges with its response.
    let end = evidence.target.as_ref()?.network.as_ref().filter(is_queued)?;
    let reason = format!(
        "round trips took {} on average and {} at best, while the median latency was {}: segments queued on the way",
        time(end.rtt_us),
        time(end.rtt_min_us?),
        time(median_us)
    );
    // Only a target on this machine shows its end.
    ruling(LimitedBy::Network, reason, "check what limits the bandwidth on this machine (tc -s qdisc)")
}

/// Nothing decides; with what would tell.
fn unclear(evidence: &Evidence) -> Ruling {
    let Evidence { load, probe, .. } = evidence;
    if load.asked_per_s.is_some() {
        // Of few responses it is not known how many requests are usually in flight.
        let is_short = load.usually_left.is_none() || may_grow(load);
        let advice = is_short.then(|| "run longer (-d)".to_owned());
        let reason = "what was due and what has ended do not tell whether the rate was kept up with";
        let grows = load.backlog.filter(|_| may_grow(load)).map_or(String::new(), |Backlog { before, last }| {
            let [before, last] = [before, last].map(number);
            format!(": {before} requests were in flight earlier in the run and {last} later, which may be chance or a backlog")
        });
        return unclear_with(reason.to_owned() + &grows, advice);
    }
    let probe = probe.clone().unwrap_or_default();
    let would = |up: bool, time_s: f64| {
        let up = if up { "up:" } else { "" };
        (time_s <= PROBE_MAX_S || probe.was_planned)
            .then(|| format!("--probe {up}{}s may tell", time_s.ceil().max(1.0)))
    };
    let (reason, advice) = match (&probe, probe.in_flight(), probe.elasticity) {
        (Probe { failed: Some(failed), .. }, ..) => (format!("the probe after the run tells nothing: {failed}"), None),
        (_, Some((first, other)), Some(Elasticity { low, high, .. })) => {
            // What the rate does where the requests in flight change by this.
            let ratio = f64::from(other) / f64::from(first);
            let change = |elasticity: f64| percent((1.0 - ratio.powf(elasticity.clamp(0.0, 1.0))).abs());
            let reason = format!(
                "with {other} in flight instead of {first}, it answered {} to {} {} requests, which is not precise enough: \
                 {} would mean the number in flight, and 0 % the target",
                change(low),
                change(high),
                if other > first { "more" } else { "fewer" },
                change(1.0),
            );
            (reason, would(other > first, probe.duration_s * PRECISER))
        }
        _ => match probe.needed_s {
            Some(time_s) if probe.was_planned => {
                (format!("{SHOWN}, and there was too little time for a probe"), would(probe.up, time_s))
            }
            Some(time_s) => (SHOWN.to_owned(), would(probe.up, time_s)),
            None if probe.was_planned => (SHOWN.to_owned(), Some("run longer (-d)".to_owned())),
            None => (SHOWN.to_owned(), None),
        },
    };
    unclear_with(reason + &meanwhile(evidence), advice)
}

/// Why a closed loop is unclear if no probe was made.
const SHOWN: &str =
    "nothing that was observed tells whether the target or the number of requests in flight was the limit";

/// A probe that would have to be longer, in seconds, is not worth the advice where none was asked for.
const PROBE_MAX_S: f64 = 120.0;

/// How many times as long a probe should be if one was not precise enough.
const PRECISER: f64 = 4.0;

fn unclear_with(reason: String, advice: Option<String>) -> Ruling {
    Ruling { limited_by: LimitedBy::Unclear, summary: None, reason, advice, says: &[] }
}

/// Whether failures are frequent enough to disturb every figure.
fn fails(load: &Load) -> bool {
    // In a closed loop, the time until a connection is replaced is missing from the rate.
    let connections = if load.asked_per_s.is_none() { load.failed_connections() } else { 0 };
    let requests = load.failed_requests().saturating_add(load.timeouts.max(load.abandoned));
    let failed = load.connect_errors.saturating_add(requests).saturating_add(connections);
    failed as f64 >= FAILED * load.completed as f64 && failed > 0
}

/// How busy the generator was meanwhile.
fn meanwhile(evidence: &Evidence) -> String {
    busiest(evidence).map_or(String::new(), |thread| format!("; onrush's busiest thread was {}", how_busy(thread)))
}

/// Its busiest thread; none in virtual time.
fn busiest(Evidence { generator, .. }: &Evidence) -> Option<&Thread> {
    generator.threads.iter().max_by(|one, other| one.busy.total_cmp(&other.busy))
}

/// Whether connections that were asked for were missing.
fn misses(load: &Load) -> bool {
    load.missing >= MISSING * load.connections as f64
}

fn processors(allowed: f64) -> String {
    format!("{} processor{}", number(allowed), if allowed == 1.0 { "" } else { "s" })
}
