//! The rules of the verdict, in the order in which they are tried; the first that applies decides.
//!
//! Faults of the generator come first, because they invalidate every other figure. Then come a rate that was reached,
//! the network and the target. Conclusions from the shape of the latencies alone come last.

use onrush_plan::LimitedBy;

use super::words::{count, number, percent, seconds, time};
use crate::record::evidence::{Evidence, Latency, Load, Thread};
use crate::run::{Listening, Network};

/// A thread or a target counts as busy from this share of the time.
const BUSY: f64 = 0.9;
/// A generator that was stalled for this share of the run has measured only itself.
const STOPPED: f64 = 0.05;
/// Missing connections matter from this share of those asked for.
const MISSING: f64 = 0.05;
/// A rate was reached if this share of the due requests was sent …
const SENT: f64 = 0.99;
/// … and answered …
const ANSWERED: f64 = 0.99;
/// … not so late that a backlog lasted for this share of the run …
const BACKLOG: f64 = 0.1;
/// … or if the responses that are missing are at most this many times the requests usually in flight.
const ON_THE_WAY: f64 = 1.2;
/// Losses matter from this share of the segments.
const LOST: f64 = 0.01;
/// Fewer losses matter if waiting for retransmissions may account for this share of the mean latency …
const WAITED: f64 = 0.25;
/// … and they are at least this share of the segments.
const LOST_MIN: f64 = 0.001;
/// The shortest time Linux waits before it retransmits a segment, in microseconds (`TCP_RTO_MIN`).
const RETRANSMISSION_US: f64 = 200_000.0;
/// The network matters if a round trip takes this share of the median latency …
const ROUND_TRIP: f64 = 0.5;
/// … and at least this long, in microseconds.
const ROUND_TRIP_MIN_US: f64 = 1_000.0;
/// Segments queue on the way if a round trip takes this many times as long as the shortest.
const QUEUED: f64 = 3.0;
/// A connection counts as sending all the time if it had data in flight for this share of it.
const BULK: f64 = 0.8;
/// A generator that is less busy than this acknowledges at once, with its next request …
const PROMPT: f64 = 0.5;
/// … if open connections had no request in flight for at most this share of the time. Acknowledgements that wait for
/// a request account for at most a third of what [`ROUND_TRIP`] asks for.
const PAUSED: f64 = 0.1;
/// Delayed acknowledgements are the limit if this share of the latencies is about 40 ms …
const DELAYED: f64 = 0.25;
/// … and only part of a response had arrived in this share of the readings.
const HALF_ANSWERED: f64 = 0.3;
/// A target has died if it sent no response for this share of the run, at its end …
const SILENT: f64 = 0.1;
/// … and for at least this long, in seconds.
const SILENT_MIN_S: f64 = 0.2;
/// Slow responses hold the connections if they account for this share of the sum of all latencies.
const HELD: f64 = 0.5;
/// A target that falls silent for this share of the run limits it.
const QUIET: f64 = 0.25;
/// Requests queue at the target if the median is this many times the latency without a queue: the 1st percentile, or
/// the median under a lower load.
pub const QUEUEING: f64 = 2.0;
/// Requests do not queue if it is less than this many times the 1st percentile.
const UNQUEUED: f64 = 1.5;
/// A queue explains a ratio of at most this many times the requests in flight.
const QUEUE_MAX: f64 = 1.2;
/// None of them does if the mean, without the slow ones, is less than this many times the 1st percentile.
const EVEN: f64 = 1.25;
/// Requests do not queue in a generator that is less busy than this.
const IDLE: f64 = 0.75;
/// Failures disturb a run from this share of the responses.
const FAILED: f64 = 0.01;
/// More than one request is in flight if their mean is at least this.
const SEVERAL: f64 = 1.05;
/// The fewest responses whose latencies have a shape.
const RESPONSES_MIN: u64 = 20;

/// The conclusion of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruling {
    pub limited_by: LimitedBy,
    pub reason: String,
    pub advice: Option<String>,
}

/// The rules, in order.
const RULES: [fn(&Evidence) -> Option<Ruling>; 15] = [
    ports,
    stopped,
    script,
    generator_cpu,
    schedule,
    network,
    delayed_ack,
    listen_queue,
    died,
    too_few,
    target_cpu,
    slow_responses,
    silent,
    queueing,
    connections,
];

/// Decides what limited the run.
pub(super) fn decide(evidence: &Evidence) -> Ruling {
    RULES.iter().find_map(|rule| rule(evidence)).unwrap_or_else(|| unclear(evidence))
}

fn ruling(limited_by: LimitedBy, reason: String, advice: &str) -> Option<Ruling> {
    Some(Ruling { limited_by, reason, advice: Some(advice.to_owned()).filter(|advice| !advice.is_empty()) })
}

fn ports(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    (load.without_port > 0 && misses(load)).then_some(())?;
    let reason = format!(
        "{} found no free local port, and {} of {} were missing on average",
        count(load.without_port, "connect"),
        number(load.missing),
        count(load.connections, "connection")
    );
    ruling(LimitedBy::Ports, reason, "use more source addresses (-b), or widen net.ipv4.ip_local_port_range")
}

fn stopped(Evidence { generator, load, .. }: &Evidence) -> Option<Ruling> {
    // A stall delays responses. It does not make a target refuse or reset every connection.
    let has_no_start = load.completed == 0 && load.connect_errors + load.read_errors >= load.connections;
    (generator.stalled_s >= STOPPED * load.elapsed_s && load.elapsed_s > 0.0 && !has_no_start).then_some(())?;
    let reason = format!(
        "onrush was stalled for {} of {}: the process was suspended or got no processor",
        seconds(generator.stalled_s),
        seconds(load.elapsed_s)
    );
    ruling(LimitedBy::GeneratorCpu, reason, "keep other programs off its processors")
}

fn script(evidence: &Evidence) -> Option<Ruling> {
    let in_script = |thread: &Thread| thread.busy >= BUSY && thread.script >= thread.busy / 2.0;
    let reason = busy_threads(evidence, in_script, |thread| {
        format!("{} busy, {} of the run in the script", percent(thread.busy), percent(thread.script))
    })?;
    ruling(LimitedBy::GeneratorScript, reason, "do less per request in the script, or use more threads (-t)")
}

fn generator_cpu(evidence: &Evidence) -> Option<Ruling> {
    let reason = busy_threads(
        evidence,
        |thread| thread.busy >= BUSY,
        |thread| {
            let queued = thread.queued.filter(|queued| *queued >= MISSING);
            let waiting =
                queued.map_or(String::new(), |queued| format!(", {} waiting for a processor", percent(queued)));
            format!("{} busy{waiting}", percent(thread.busy))
        },
    )?;
    let threads = evidence.generator.threads.len() as f64;
    let starved =
        evidence.generator.threads.iter().filter_map(|thread| thread.queued).sum::<f64>() / threads >= MISSING;
    let advice = if starved {
        "give it a processor of its own, or use another machine"
    } else if evidence.generator.cpus.is_none() {
        "use more machines, or more threads (-t) where one has processors left"
    } else if evidence.generator.cpus.is_some_and(|cpus| evidence.generator.threads.len() < cpus) {
        "use more threads (-t), or another machine"
    } else {
        "use more machines: every processor of this one is in use"
    };
    ruling(LimitedBy::GeneratorCpu, reason, advice)
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

fn schedule(Evidence { load, latency, .. }: &Evidence) -> Option<Ruling> {
    let asked_per_s = load.asked_per_s?;
    let is_backlog = load.lateness_p99_us.is_some_and(|late_us| late_us >= BACKLOG * load.elapsed_s * 1e6);
    (is_sent(load) && !is_backlog).then_some(())?;
    // Missing responses may be in flight at the end, but not more of them than at any other time.
    let missing = (asked_per_s - load.rate_per_s) * load.elapsed_s;
    let on_the_way = latency.as_ref().map_or(0.0, |latency| ON_THE_WAY * asked_per_s * latency.p50_us / 1e6);
    (load.rate_per_s >= ANSWERED * asked_per_s || missing <= on_the_way).then_some(())?;
    let reason = format!("the target kept up with {} requests/s", number(asked_per_s));
    ruling(LimitedBy::Schedule, reason, "")
}

fn network(evidence: &Evidence) -> Option<Ruling> {
    let Evidence { latency, network, target, .. } = evidence;
    let latency = latency.as_ref()?;
    let theirs = target.as_ref().and_then(|target| target.network.as_ref());
    let ends = || network.iter().chain(theirs);
    let lost = ends().map(|end| end.retransmitted.max(end.out_of_order.unwrap_or(0.0))).fold(0.0, f64::max);
    let waited_us = ends().map(|end| end.lost_per_request).fold(0.0, f64::max) * RETRANSMISSION_US;
    // A full accept queue causes retransmissions, too.
    let is_lost = lost >= LOST || (lost >= LOST_MIN && waited_us >= WAITED * latency.mean_us);
    if is_lost && listen_queue(evidence).is_none() {
        let reason = format!("{} of the segments were lost or out of order", percent(lost));
        return ruling(
            LimitedBy::Network,
            reason,
            "check the links between the two machines (ip -s link, tc -s qdisc)",
        );
    }
    let shortest = ends().filter_map(|end| end.rtt_min_us).reduce(f64::min);
    if let Some(shortest_us) = shortest.filter(|us| *us >= ROUND_TRIP_MIN_US && *us >= ROUND_TRIP * latency.p50_us) {
        let median = time(latency.p50_us);
        let reason =
            format!("the shortest round trip took {} while the median latency was {median}", time(shortest_us));
        return ruling(LimitedBy::Network, reason, "use more connections (-c), or a generator closer to the target");
    }
    let is_explained = [delayed_ack, listen_queue].iter().any(|rule| rule(evidence).is_some());
    theirs.filter(|_| !is_explained).and_then(|theirs| queued_on_the_way(evidence, latency, theirs))
}

/// Detects response segments that queue on their way to the generator. Its own round trips cannot show them, because
/// the target may delay its acknowledgements until it responds. The target's can: a generator that is not busy
/// acknowledges at once, with its next request. On a connection that pauses, or waits until a request is due, the
/// acknowledgement may be delayed by up to 40 ms.
fn queued_on_the_way(evidence: &Evidence, latency: &Latency, theirs: &Network) -> Option<Ruling> {
    let shortest_us = theirs.rtt_min_us?;
    let is_queued = theirs.rtt_us >= ROUND_TRIP_MIN_US && theirs.rtt_us >= QUEUED * shortest_us;
    // A large response takes several round trips, with data in flight all the time.
    let least = if theirs.busy.is_some_and(|busy| busy >= BULK) { ROUND_TRIP / 2.0 } else { ROUND_TRIP };
    let is_of_latency = (least..=1.0 / ROUND_TRIP).contains(&(theirs.rtt_us / latency.p50_us));
    let is_prompt = evidence.generator.threads.iter().all(|thread| thread.busy < PROMPT)
        && evidence.load.idle.is_none_or(|idle| idle <= PAUSED);
    (is_queued && is_of_latency && is_prompt).then_some(())?;
    let reason = format!(
        "round trips took {} on average and {} at best, while the median latency was {}: segments queued on the way",
        time(theirs.rtt_us),
        time(shortest_us),
        time(latency.p50_us)
    );
    ruling(LimitedBy::Network, reason, "check the bandwidth of the links between the two machines")
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
    ruling(LimitedBy::Target, reason, "raise its backlog and net.core.somaxconn, or have it accept faster")
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
    let failed = [counted(load.connect_errors, "connect"), counted(load.read_errors, "request")];
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    let failed = (!failed.is_empty()).then(|| format!("{} failed", failed.join(" and ")));
    // Some of them may be among those that failed.
    let late = counted(load.timeouts, "request").map(|requests| format!("{requests} took longer than --timeout"));
    let all: Vec<String> = failed.into_iter().chain(late).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Whether the target responded at first and later stopped.
pub(super) fn has_died(Evidence { load, target, .. }: &Evidence) -> bool {
    let is_silent = load.silent_at_end_s >= SILENT_MIN_S && load.silent_at_end_s >= SILENT * load.elapsed_s;
    let has_failed = load.connect_errors + load.read_errors + load.timeouts > 0
        || target.as_ref().is_some_and(|target| target.ended);
    load.completed > 0 && is_silent && has_failed
}

fn too_few(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    (load.completed < RESPONSES_MIN).then_some(())?;
    if load.completed == 0 {
        return ruling(LimitedBy::Unclear, "there were no responses".to_owned(), "");
    }
    ruling(LimitedBy::Unclear, format!("there were only {}", count(load.completed, "response")), "run longer (-d)")
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

/// Detects slow responses that hold the connections most of the time, while the others are fast.
fn slow_responses(evidence: &Evidence) -> Option<Ruling> {
    let Evidence { load, latency, .. } = evidence;
    let &Latency { mean_us, p50_us, calm_us, slow, slow_time, .. } = latency.as_ref()?;
    let slows_down = calm_us.is_some_and(|calm_us| mean_us >= QUEUEING * calm_us);
    (is_held(evidence) && !slows_down && queues_elsewhere(evidence) && !is_sent_in_time(evidence)).then_some(())?;
    let reason = format!(
        "{} of the responses took ten times the median of {} or longer; they account for {} of all response times{}",
        percent(slow as f64 / load.completed as f64),
        time(p50_us),
        percent(slow_time),
        meanwhile(evidence)
    );
    let advice = format!("find out why these are slow, or use more connections ({})", option_of(load));
    ruling(LimitedBy::Connections, reason, &advice)
}

/// Whether slow responses hold the connections most of the time, although no queue makes them slow and the target does
/// not fall silent as a whole.
pub fn is_held(Evidence { load, latency, .. }: &Evidence) -> bool {
    latency.as_ref().is_some_and(|&Latency { p50_us, slow_mean_us, slow_time, .. }| {
        // A queue has as many requests at most as there are connections.
        let is_queue = slow_mean_us <= QUEUE_MAX * load.connections as f64 * p50_us;
        let is_silent = load.quiet_s >= load.elapsed_s * slow_time / 2.0;
        slow_time >= HELD && !is_queue && !is_silent
    })
}

/// Detects a target that falls silent as a whole for a good part of the run.
fn silent(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    (load.quiet_s >= QUIET * load.elapsed_s && load.quiet_s > 0.0).then_some(())?;
    let reason = format!(
        "it sent no response for {} of {} in all, with requests in flight{}",
        seconds(load.quiet_s),
        seconds(load.elapsed_s),
        meanwhile(evidence)
    );
    ruling(LimitedBy::Target, reason, "find out what stops it")
}

/// Whether requests that wait do so elsewhere: if onrush itself is busy, they may have queued in it.
fn queues_elsewhere(Evidence { generator, load, .. }: &Evidence) -> bool {
    load.in_flight >= SEVERAL && generator.threads.iter().all(|thread| thread.busy < IDLE)
}

fn queueing(evidence: &Evidence) -> Option<Ruling> {
    let Evidence { load, latency, target, .. } = evidence;
    let &Latency { p1_us, p50_us, min_us, calm_us, mean_us, .. } = latency.as_ref()?;
    queues_elsewhere(evidence).then_some(())?;
    // A queue multiplies latency by at most the requests in flight; slower ones are another kind of request.
    let by_queue = |times: f64, least: f64| times >= least && times <= QUEUE_MAX * load.in_flight;
    let place =
        if target.is_some() { "at the target" } else { "at the target, or in the network (not visible from here)" };
    let in_flight = number(load.in_flight);
    let figures = if let Some(calm_us) = calm_us.filter(|calm_us| mean_us >= QUEUEING * calm_us) {
        let [mean, calm] = [mean_us, calm_us].map(time);
        format!("responses took {mean} on average with {in_flight} in flight, against {calm} with few")
    } else if p1_us > 0.0 && by_queue(p50_us / p1_us, QUEUEING) {
        let times = number(p50_us / p1_us);
        format!("with {in_flight} in flight, the median of {} was {times} times the 1st percentile", time(p50_us))
    } else if min_us > 0.0 && by_queue(p50_us / min_us, QUEUEING.max(load.in_flight / 3.0)) {
        let times = number(p50_us / min_us);
        format!("with {in_flight} in flight, the median of {} was {times} times the shortest latency", time(p50_us))
    } else {
        return None;
    };
    let reason = format!("requests queued {place}: {figures}{}", meanwhile(evidence));
    ruling(LimitedBy::Target, reason, "")
}

fn connections(evidence: &Evidence) -> Option<Ruling> {
    let Evidence { load, latency, .. } = evidence;
    let &Latency { mean_us, p1_us, p50_us, min_us, slow, slow_time, .. } = latency.as_ref()?;
    // If the first ones took less time, all the others may have queued; if the mean is longer, some have.
    let others_us = mean_us * (1.0 - slow_time) / (1.0 - slow as f64 / load.completed.max(slow + 1) as f64);
    let is_even = p50_us < QUEUEING * min_us && others_us < EVEN * p1_us;
    let is_alike = p50_us < UNQUEUED * p1_us && (load.in_flight < SEVERAL || is_even);
    ((is_alike || p50_us == 0.0) && !fails(load) && !is_sent_in_time(evidence)).then_some(())?;
    let there = count(load.connections, "connection");
    let there =
        if misses(load) { format!("{} of {there}", number(load.connections as f64 - load.missing)) } else { there };
    let reason = format!(
        "with {there}, the median of {} is close to the 1st percentile of {}, so nothing queued at the target{}",
        time(p50_us),
        time(p1_us),
        meanwhile(evidence)
    );
    ruling(LimitedBy::Connections, reason, &format!("use more connections ({})", option_of(load)))
}

fn unclear(evidence: &Evidence) -> Ruling {
    let Evidence { load, latency, .. } = evidence;
    let failures = failures(load).filter(|_| fails(load));
    let advice = if failures.is_some() {
        Some("find out why first".to_owned())
    } else if is_sent(load) {
        // More connections would send no more requests.
        None
    } else {
        Some(format!(
            "run it again on {} ({}): if it gets no more than about {} responses/s, and onrush's threads still have time to \
             spare, the target is the limit",
            count(2 * load.connections, "connection"),
            option_of(load),
            number(load.rate_per_s)
        ))
    };
    let reason = match latency {
        _ if failures.is_some() => failures.unwrap_or_default(),
        _ if is_sent(load) => {
            let missing = (load.asked_per_s.unwrap_or_default() - load.rate_per_s) * load.elapsed_s;
            let missing = count(missing.round() as u64, "response");
            format!("the whole rate was sent, but {missing} had not arrived at the end{}", meanwhile(evidence))
        }
        Some(latency) if latency.p1_us > 0.0 => format!(
            "cannot tell whether requests queued: with {} in flight, the shortest latency was {}, the 1st percentile {}, \
             the median {} and the mean {}{}",
            number(load.in_flight),
            time(latency.min_us),
            time(latency.p1_us),
            time(latency.p50_us),
            time(latency.mean_us),
            meanwhile(evidence)
        ),
        _ => "the latencies show no pattern".to_owned(),
    };
    Ruling { limited_by: LimitedBy::Unclear, reason, advice }
}

/// Whether failures are frequent enough to disturb every figure.
fn fails(load: &Load) -> bool {
    (load.connect_errors + load.read_errors + load.timeouts) as f64 >= FAILED * load.completed as f64
        && load.connect_errors + load.read_errors + load.timeouts > 0
}

/// Whether the whole rate was sent.
fn is_sent(load: &Load) -> bool {
    load.sent.is_some_and(|sent| sent >= SENT)
}

/// Whether the whole rate was sent, and mostly in time: more connections would send no more.
fn is_sent_in_time(Evidence { load, latency, .. }: &Evidence) -> bool {
    let usual_us = latency.as_ref().map_or(0.0, |latency| latency.p50_us);
    is_sent(load) && load.lateness_p99_us.is_none_or(|late_us| late_us < usual_us / 2.0)
}

/// The option that allows more connections.
fn option_of(load: &Load) -> &'static str {
    if load.asked_per_s.is_some() { "--max-inflight" } else { "-c" }
}

/// How busy the generator was meanwhile.
fn meanwhile(Evidence { generator, .. }: &Evidence) -> String {
    let busiest = generator.threads.iter().map(|thread| thread.busy).reduce(f64::max);
    busiest.map_or(String::new(), |busy| format!("; onrush's busiest thread was {} busy", percent(busy)))
}

/// Whether connections that were asked for were missing.
fn misses(load: &Load) -> bool {
    load.missing >= MISSING * load.connections as f64
}

fn processors(allowed: f64) -> String {
    format!("{} processor{}", number(allowed), if allowed == 1.0 { "" } else { "s" })
}
