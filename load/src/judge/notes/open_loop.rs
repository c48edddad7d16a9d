//! Notes on missed schedules and on the precision of the latency since the due time.

use std::time::Duration;

use onrush_plan::limits::CONNECTIONS_MAX;
use onrush_plan::schedule::LATE;
use onrush_plan::{Dialect, Percent};
use onrush_proto::http2::STREAMS_ASSUMED;
use onrush_stats::{RowFigures, has_enough_beyond, rank};
use onrush_text::units::{
    PERCENT_MIN, format_count, format_duration_exact, format_duration_spaced, format_thousands, format_us,
};

use super::facts::{NoteFacts, duration, seconds_ns};
use super::was_or_were;
use crate::figures::NS_PER_US;
use crate::figures::bounds::{PercentileBounds, UnboundedRequests};
use crate::judge::gates::count_unbounded_requests;
use crate::judge::verdict::CROWDED;
use crate::record::evidence::{Latency, Room};
use crate::record::{self, Document, Note, NoteId, OpenLoop, Plan, Requests, Row, Schedule};
use crate::run::nanos;

/// Late and unsent requests are noted above this percentage.
const MISSED_PERCENT: u64 = 1;
/// Threads count as busy if they work for at least this share of the time.
const BUSY_SHARE: f64 = 0.95;
/// A rate is constant if its mean is at least this share of its maximum.
const CONSTANT: f64 = 0.99;
/// A latency rises if it is this many times that of the previous third. A steadily growing backlog gives 3 and 1.67.
const RISES: f64 = 1.3;
/// A run shorter than this, in seconds, is mostly spent connecting.
const BUSY_MIN_S: f64 = 0.2;
/// Requests due while all connections were busy are noted if this was so for [`CROWDED`] of the time. If late requests
/// have a note, this share of the late requests is enough.
const CROWDED_OF_LATE: f64 = 0.5;
/// If all connections were busy for less than this share of the time, they were so only for a while.
const PASSING: f64 = 0.5;
/// If responses take this many times as long while connections are busy, the target may be the bottleneck.
const SLOWED: f64 = 2.0;
/// Requests left over from the warm-up are mentioned from this many per second, the smallest visible rate.
const SHOWN_PER_S: f64 = 0.01;
/// Maximum number of connections advised, unless a tenth of the advised number was used: latencies with few connections
/// do not predict latencies with many.
const NEEDED_MAX: u64 = 10_000;
/// A thread that waited for a processor for this share of the time measured mostly that wait.
const STARVED: f64 = 0.2;
/// Waiting for a processor is mentioned if it takes at least this share of a thread's time.
const WAITED: f64 = 0.05;

/// A missed schedule: fewer requests were sent than were due.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Behind {
    /// Number of due requests, including those left over from the warm-up.
    due: u64,
    /// Due requests left over from the warm-up; zero below a hundredth of a request per second.
    carried: u64,
    sent: u64,
    /// Sent requests per second.
    sent_per_s: f64,
    /// Due requests still unsent at the end.
    unsent: u64,
    /// True if the backlog grew throughout: the rate was constant, and no request was dropped.
    grows: bool,
    /// The bottleneck, if known.
    bottleneck: Option<Bottleneck>,
}

/// The bottleneck that kept requests from being sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bottleneck {
    /// All connections had a request in flight.
    Connections(Crowded),
    /// The threads were always busy.
    Threads {
        /// The number of threads.
        threads: u64,
    },
    /// `--catch-up` limited the pace of late requests.
    CatchUp(f64),
}

/// Requests were due while every possible connection had a request in flight or paused for the script.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crowded {
    /// The share (0 to 1) of the time.
    share: f64,
    /// The number of connections; `None`: stages set it.
    connections: Option<u64>,
    /// Maximum number of requests in flight; `None` if a connection has at most one.
    in_flight: Option<u64>,
    /// Number of requests that a script sends at once.
    batch: u64,
    /// Number of threads, if the connections are divided unevenly among them.
    unevenly: Option<u64>,
    /// True if connections paused for the script.
    pauses: bool,
    /// The option that makes room for more requests.
    room: InflightOption,
    remedy: Remedy,
}

/// The option that makes room for more requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InflightOption {
    room: Room,
    connections: u64,
    /// Streams per connection: the requested number, or fewer if the server's limit is lower.
    streams: u64,
    /// The server's limit on streams per connection.
    allowed: u64,
}

impl InflightOption {
    /// The option for this many requests in flight. Above the server's stream limit, more connections help.
    fn for_requests(self, requests: u64) -> String {
        let each = requests.div_ceil(self.connections);
        match self.room {
            Room::Stages => format!("raise {}", self.room.option()),
            Room::Streams if each <= self.allowed => format!("use --streams {each}"),
            Room::Streams | Room::Connections => format!("use -c {}", requests.div_ceil(self.streams)),
            Room::MaxInflight => format!("use --max-inflight {requests}"),
        }
    }
}

/// Remedies for busy connections.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Remedy {
    /// About this many connections suffice; over HTTP/2, room for this many batches of requests.
    About(u64),
    /// Unknown: the more connections are busy, the longer responses take. Means in nanoseconds.
    Target {
        /// Mean latency while less than half of the connections had a request in flight.
        calm_ns: f64,
        /// Mean latency over the whole run.
        mean_ns: f64,
    },
    /// Not more connections: according to the verdict, the target is the limit.
    Verdict,
    /// Not more connections: the target was silent.
    Silence,
    /// Perhaps more connections: there was no time with few busy connections to compare with.
    Unknown,
}

/// A burst larger than the connections can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Burst {
    requests: u64,
    /// Maximum number of connections.
    connections: u64,
    /// Number of connections needed; over HTTP/2, number of batches in flight.
    needed: u64,
    /// Maximum number of requests in flight; `None` if a connection has at most one.
    in_flight: Option<u64>,
    /// Number of requests that a script sends at once.
    batch: u64,
    /// True if stages set the number of connections.
    is_staged: bool,
}

/// The verdict's advice on more connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionsAdvice {
    /// More connections would not help: requests hang, onrush was the limit, or the target was the limit for a reason
    /// unrelated to connections.
    Useless,
    /// More connections may help, but the latencies do not predict how many, because the target was silent for a time.
    Uncounted,
    /// The verdict gives no advice.
    Unknown,
}

/// Reasons for late requests despite free connections.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LateReason {
    /// onrush was stalled for this long in total, in stalls that no other note mentions.
    Stalled(Duration),
    /// The script blocked a thread for this share (0 to 1) of the time.
    Script(f64),
    /// A thread waited for a processor for this share (0 to 1) of the time.
    Waited(f64),
}

/// It is mentioned that a run continued after its end if it did so for at least this long, in seconds.
const RAN_ON_MIN_S: f64 = 0.1;

/// A percentile known only within bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Uncertain {
    percent: Percent,
    between: PercentileBounds,
    /// The requests that leave the percentile uncertain.
    missing: UnboundedRequests,
}

/// True if a notable share of the requests was late or unsent.
pub fn is_missed(requests: &Requests) -> bool {
    let ScheduleCounts { due, late, dropped, unsent, .. } = ScheduleCounts::from_requests(requests);
    (late + dropped + unsent) * 100 > due * MISSED_PERCENT
}

/// Outcomes of scheduled requests.
#[derive(Clone, Copy)]
struct ScheduleCounts {
    due: u64,
    carried: u64,
    late: u64,
    dropped: u64,
    unsent: u64,
}

impl ScheduleCounts {
    fn from_requests(requests: &Requests) -> Self {
        let of = |count: Option<u64>| count.unwrap_or_default();
        Self {
            due: of(requests.due),
            carried: of(requests.due_before),
            late: of(requests.late),
            dropped: of(requests.dropped),
            unsent: of(requests.unsent),
        }
    }
}

struct ScheduledRun<'a> {
    facts: &'a NoteFacts<'a>,
    plan: &'a Plan,
    schedule: Option<&'a Schedule>,
    open_loop: &'a OpenLoop,
    counts: ScheduleCounts,
    lateness: &'a record::Distribution,
    /// Total length of the run's silences, in nanoseconds.
    silent_ns: u64,
    elapsed_s: f64,
}

/// The notes on a run with a schedule. `more` is the verdict's advice on more connections. `is_said` leaves out what
/// the verdict already reports: the missed rate, and connections that were all in use.
pub fn open_loop_notes(facts: &NoteFacts<'_>, more: ConnectionsAdvice, is_said: bool) -> Vec<Note> {
    let Document { open_loop: Some(open_loop), plan, requests, .. } = facts.document else { return Vec::new() };
    let run = ScheduledRun {
        facts,
        plan,
        schedule: plan.schedule.as_ref(),
        open_loop,
        counts: ScheduleCounts::from_requests(requests),
        lateness: &open_loop.lateness,
        silent_ns: facts.silences().iter().map(|silence| seconds_ns(silence.heard_s)).sum(),
        elapsed_s: facts.document.duration_s,
    };
    run.notes(more, is_said)
}

impl ScheduledRun<'_> {
    fn notes(&self, more: ConnectionsAdvice, is_said: bool) -> Vec<Note> {
        let ScheduleCounts { due, carried, late, dropped, .. } = self.counts;
        let lateness = self.lateness;
        let slice = self.send_slice();
        let sent = lateness.count;
        let burst = self.oversized_burst();
        let crowded = self.busy_connections(more);
        let late = (late * 100 > sent * MISSED_PERCENT).then(|| {
            let limit = LATE + slice.unwrap_or_default();
            let p99_us = self.facts.document.evidence.as_ref().and_then(|evidence| evidence.load.lateness_p99_us);
            let p99_ns = p99_us.filter(|_| has_enough_beyond(99.0, sent)).map(us_to_ns);
            let reason = if crowded.is_none() { self.reason_for_late_requests() } else { None };
            let line = late_line(late, sent, limit, p99_ns, lateness.max_us.map_or(0, us_to_ns));
            Note::failure(NoteId::Late, line + &late_reason_words(reason, burst.as_ref()))
        });
        let in_percentiles = !self.facts.document.imitates(Dialect::Wrk2);
        let dropped = (dropped > 0)
            .then(|| Note::failure(NoteId::Dropped, too_late_line(dropped, due + carried, in_percentiles)));
        let behind = self.missed_schedule(crowded);
        let crowded = crowded.filter(|_| behind.is_none() && burst.is_none());
        let crowded =
            crowded.and_then(|crowded| if is_said { number_line(&crowded) } else { Some(crowded_line(&crowded)) });
        let crowded = crowded.map(|line| Note::failure(NoteId::Crowded, line));
        let behind = behind.and_then(|behind| if is_said { unsent_line(&behind) } else { Some(behind_line(&behind)) });
        let behind = behind.map(|line| Note::doubt(NoteId::Behind, line));
        let uncertain = self
            .first_uncertain_percentile()
            .map(|uncertain| Note::failure(NoteId::Uncertain, uncertain_line(&uncertain)));
        let sliced = slice.filter(|slice| self.is_sliced(*slice)).zip(lateness.mean_us);
        let sliced = sliced.map(|(slice, mean_us)| Note::hint(NoteId::Sliced, sliced_line(slice, mean_us)));
        let ran_on =
            (self.open_loop.run_on_s >= RAN_ON_MIN_S).then(|| Note::hint(NoteId::RanOn, ran_on_line(self.open_loop)));
        [behind, crowded, late, dropped, uncertain, sliced, ran_on].into_iter().flatten().collect()
    }

    fn send_slice(&self) -> Option<Duration> {
        self.schedule.and_then(|schedule| schedule.send_slice_s).map(duration)
    }

    /// True if a slice ends during the measured time. Requests due after the last slice are sent when they are due.
    fn is_sliced(&self, slice: Duration) -> bool {
        let Some(duration_s) = self.plan.duration_s else { return true };
        let warmup = duration(self.plan.warmup_s.unwrap_or_default());
        let last_ns = nanos(warmup + duration(duration_s)).saturating_sub(1);
        last_ns - last_ns % nanos(slice).max(1) > nanos(warmup)
    }

    /// The reason for late requests despite free connections.
    fn reason_for_late_requests(&self) -> Option<LateReason> {
        let generator = &self.facts.document.evidence.as_ref()?.generator;
        let held_up = generator.threads.iter().map(|thread| thread.held_up).fold(0.0, f64::max);
        if held_up * 100.0 > MISSED_PERCENT as f64 {
            return Some(LateReason::Script(held_up));
        }
        let waited = generator.threads.iter().filter_map(|thread| thread.queued).fold(0.0, f64::max);
        let waited = (waited >= WAITED).then_some(LateReason::Waited(waited));
        // Stalls too short for a note of their own, if they may explain the late requests.
        let stalled_s = generator.stalled_s;
        if stalled_s * 100.0 <= self.elapsed_s * MISSED_PERCENT as f64 || !generator.long_stalls.is_empty() {
            return waited;
        }
        // Requests due during the stalls, and requests that had to wait because of them.
        let explained = 2.0 * stalled_s / self.elapsed_s;
        let late = self.counts.late as f64 / self.lateness.count as f64;
        waited.filter(|_| late > explained).or(Some(LateReason::Stalled(duration(stalled_s))))
    }

    /// True if the latency rose from each third of the run to the next, as under a backlog.
    fn latency_rises(&self) -> bool {
        let rows: Vec<&RowFigures> = self.facts.document.timeline.iter().map(Row::figures).collect();
        let third = rows.len() / 3;
        let mean = |rows: &[&RowFigures]| {
            let (sum_ns, count) = rows
                .iter()
                .fold((0, 0), |(sum_ns, count), row| (sum_ns + row.scheduled.sum_ns, count + row.scheduled.count()));
            sum_ns as f64 / count.max(1) as f64
        };
        let thirds: Vec<f64> = rows.chunks_exact(third.max(1)).take(3).map(mean).collect();
        thirds.len() == 3 && thirds.windows(2).all(|pair| pair[1] > RISES * pair[0])
    }

    fn missed_schedule(&self, crowded: Option<Crowded>) -> Option<Behind> {
        let ScheduleCounts { due, carried, dropped, unsent, .. } = self.counts;
        if (dropped + unsent) * 100 <= due * MISSED_PERCENT || self.elapsed_s == 0.0 {
            return None;
        }
        let bottleneck = if self.elapsed_s < BUSY_MIN_S {
            None
        } else if self.are_threads_busy() {
            Some(Bottleneck::Threads { threads: self.facts.document.threads_of_all() })
        } else {
            self.catch_up_bottleneck().or(crowded.map(Bottleneck::Connections))
        };
        let sent = self.lateness.count;
        let [sent_per_s, carried_per_s] = [sent, carried].map(|requests| requests as f64 / self.elapsed_s);
        // The backlog of a silence does not grow afterwards. A backlog that is worked off shrinks.
        let is_overload = match bottleneck {
            Some(Bottleneck::Connections(crowded)) => crowded.remedy != Remedy::Silence,
            Some(Bottleneck::Threads { .. }) => true,
            Some(Bottleneck::CatchUp(_)) | None => false,
        };
        let is_constant = self.open_loop.asked_per_s >= CONSTANT * self.schedule?.most_per_second();
        let grows = is_overload && is_constant && self.latency_rises() && dropped == 0 && unsent > carried;
        Some(Behind {
            due: due + carried,
            carried: if carried_per_s < SHOWN_PER_S { 0 } else { carried },
            sent,
            sent_per_s,
            unsent,
            grows,
            bottleneck,
        })
    }

    /// True if the threads were always busy.
    fn are_threads_busy(&self) -> bool {
        let worked: Vec<f64> = self.facts.document.threads.iter().filter_map(|thread| thread.cpu_s).collect();
        let worked_s: f64 = worked.iter().sum();
        !worked.is_empty() && worked_s >= BUSY_SHARE * self.elapsed_s * worked.len() as f64
    }

    /// `--catch-up` as the bottleneck, if it alone held back most of the unsent requests.
    fn catch_up_bottleneck(&self) -> Option<Bottleneck> {
        let factor = self.schedule.filter(|_| !self.facts.is_compat())?.catch_up?;
        let ScheduleCounts { dropped, unsent, .. } = self.counts;
        (2 * self.open_loop.held_back > unsent + dropped).then_some(Bottleneck::CatchUp(factor))
    }

    /// Busy connections as the reason for waiting requests, with a remedy; `None` if they were not the reason.
    fn busy_connections(&self, more: ConnectionsAdvice) -> Option<Crowded> {
        let (counts, latency, silent_s) = (self.counts, &self.facts.latency, self.silent_ns as f64 / 1e9);
        let threads = self.facts.document.threads_of_all() as f64;
        let threads_s = self.elapsed_s * threads;
        let share = self.open_loop.all_busy_s / threads_s;
        let schedule = self.schedule?;
        let sent = self.lateness.count.max(1) as f64;
        let late_share = counts.late as f64 / sent;
        let noted = if late_share * 100.0 > MISSED_PERCENT as f64 { CROWDED_OF_LATE * late_share } else { 1.0 };
        let least_share = CROWDED.min(noted);
        if threads_s == 0.0 || share < least_share || latency.count() == 0 {
            return None;
        }
        let most = self.most_batches();
        let known = self.plan.connection_stages.is_none().then_some(most);
        // Responses after a silence do not show the usual latency.
        let mean_ns = latency.sum().saturating_sub(u128::from(most * self.silent_ns)) as f64 / latency.count() as f64;
        let calm = self.facts.document.evidence.as_ref().and_then(|evidence| evidence.latency);
        let calm_ns = calm.and_then(|Latency { calm_us, .. }| calm_us).map(|calm_us| calm_us * NS_PER_US);
        // By Little's law if the target keeps its speed, plus a margin, because connections become free unevenly.
        let batch = self.batch_size() as f64;
        let pause_ns = self.open_loop.paused_s * 1e9 * batch / sent;
        let batches_per_ns = schedule.most_per_second() / 1e9 / batch;
        let taken = batches_per_ns * (mean_ns + pause_ns);
        let on_average = taken + 2.0 * taken.sqrt();
        // If connections were scarce only for a while, one more is needed for each request that became due during the
        // longest wait.
        let is_passing = counts.unsent * 100 <= counts.due * MISSED_PERCENT && self.silent_ns == 0 && share < PASSING;
        let due = counts.due as f64 / batch;
        let waited = known.filter(|_| is_passing).map_or(0.0, |most| {
            let longest_s = self.open_loop.all_busy_max_s.min(self.lateness.max_us.unwrap_or(0.0) / 1e6);
            most as f64 + (batches_per_ns * longest_s * 1e9).min(due)
        });
        let needed = on_average.max(waited).ceil() as u64;
        let heard_share = share - silent_s * threads / threads_s;
        let remedy = match (calm_ns, needed.max(known.map_or(1, |most| most + 1))) {
            _ if heard_share < least_share => Remedy::Silence,
            (None, _) => Remedy::Unknown,
            (Some(calm_ns), _) if mean_ns > SLOWED * calm_ns => Remedy::Target { calm_ns, mean_ns },
            _ if more == ConnectionsAdvice::Useless || self.is_starved() => Remedy::Verdict,
            _ if more == ConnectionsAdvice::Uncounted => Remedy::Unknown,
            (_, CONNECTIONS_MAX..) => Remedy::Unknown,
            (_, needed) if needed > NEEDED_MAX.max(10 * most) => Remedy::Unknown,
            // The stages do reach this number, but at the wrong time.
            (_, needed) if needed <= most => Remedy::Unknown,
            (_, needed) => Remedy::About(needed),
        };
        let threads = self.facts.document.threads_of_all().max(1);
        let connections = known.map(|_| self.facts.most_connections());
        Some(Crowded {
            share: share.min(1.0),
            connections,
            in_flight: self.facts.in_flight_cap(),
            batch: self.batch_size(),
            unevenly: connections.filter(|connections| connections % threads > 0).map(|_| threads),
            pauses: self.open_loop.paused_s > 0.0,
            room: self.inflight_option(),
            remedy,
        })
    }

    /// True if threads waited so long for a processor that latencies say little about the target.
    fn is_starved(&self) -> bool {
        let mut threads = self.facts.document.evidence.iter().flat_map(|evidence| &evidence.generator.threads);
        threads.any(|thread| thread.queued.is_some_and(|queued| queued >= STARVED))
    }

    fn inflight_option(&self) -> InflightOption {
        let Document { plan, http2, evidence, .. } = self.facts.document;
        let asked = plan.http2.and_then(|http2| http2.streams).filter(|_| self.facts.in_flight_cap().is_some());
        let allowed = http2.as_ref().and_then(|http2| http2.streams_allowed).unwrap_or(STREAMS_ASSUMED).max(1);
        InflightOption {
            room: evidence.as_ref().and_then(|evidence| evidence.load.room).unwrap_or_default(),
            connections: u64::from(plan.connections).max(1),
            streams: asked.map_or(1, |asked| asked.min(allowed)).into(),
            allowed: allowed.into(),
        }
    }

    /// Number of requests that the script sends at once.
    fn batch_size(&self) -> u64 {
        self.facts.document.batch.unwrap_or(1).max(1) as u64
    }

    /// Maximum number of batches in flight: one per connection, or more over HTTP/2.
    fn most_batches(&self) -> u64 {
        let most = self.facts.in_flight_cap().map(|requests| requests / self.batch_size());
        most.unwrap_or_else(|| self.facts.most_connections())
    }

    /// A burst with more requests than the connections can take, one batch each.
    fn oversized_burst(&self) -> Option<Burst> {
        let requests = self.schedule?.burst()?.get();
        let batch = self.batch_size();
        let needed = requests.div_ceil(batch);
        (needed > self.most_batches()).then(|| Burst {
            requests,
            connections: self.facts.most_connections(),
            needed,
            in_flight: self.facts.in_flight_cap(),
            batch,
            is_staged: self.plan.connection_stages.is_some(),
        })
    }

    /// The first uncertain percentile, skipping percentiles among the few largest values (or the largest, if
    /// percentiles were requested). A few unsent requests due in the last instant make no percentile uncertain.
    fn first_uncertain_percentile(&self) -> Option<Uncertain> {
        let document = self.facts.document;
        if document.imitates(Dialect::Wrk2) {
            return None;
        }
        let estimate = document.estimate_since_due().ok()??;
        let missing = count_unbounded_requests(&document.requests, self.open_loop, &estimate, false);
        let UnboundedRequests { due, failed, abandoned, dropped, unsent, hanging } = missing;
        if failed + abandoned + dropped + hanging == 0 && unsent * 100 <= due * MISSED_PERCENT {
            return None;
        }
        let mut percents = Percent::asked_or_usual(self.plan.percentiles.as_deref());
        let is_asked = self.plan.percentiles.is_some();
        percents.retain(|percent| match percent.value() {
            value if is_asked => rank(value, due) < due,
            value => has_enough_beyond(value, due),
        });
        percents.sort_unstable();
        let uncertain = |percent: Percent| {
            let between = estimate.bounds(percent.value()).filter(|between| !between.is_known())?;
            Some(Uncertain { percent, between, missing })
        };
        percents.into_iter().find_map(uncertain)
    }
}

fn behind_line(behind: &Behind) -> String {
    let rate = |per_s: f64| if per_s < 100.0 { format!("{per_s:.2}") } else { format_thousands(per_s.round() as u64) };
    let why = behind.bottleneck.map(|bottleneck| match bottleneck {
        Bottleneck::Connections(crowded) => match crowded.remedy {
            Remedy::Silence => format!("{} while the target sent no response", busy_words(&crowded)),
            _ => format!("{}; {}", busy_words(&crowded), remedy_words(&crowded)),
        },
        Bottleneck::Threads { threads } => {
            format!("the {} {} always busy; add threads (-t) or machines", format_count(threads, "thread"), was_or_were(threads))
        }
        Bottleneck::CatchUp(factor) => {
            format!(
                "--catch-up {factor} held the others back; without it, late requests are sent as soon as a connection is free"
            )
        }
    });
    let left_over = match behind.carried {
        0 => String::new(),
        carried => format!(" ({} left over from the warm-up)", format_thousands(carried)),
    };
    let waiting = match behind.unsent {
        0 => String::new(),
        unsent => {
            let grows = if behind.grows { ", so latencies grow with the length of the run" } else { "" };
            format!(", and {} {} still unsent at the end{grows}", format_thousands(unsent), was_or_were(unsent))
        }
    };
    let only = if behind.sent == 0 { "" } else { "only " };
    let (sent, due) = (format_thousands(behind.sent), format_count(behind.due, "due request"));
    let (were, per_s) = (was_or_were(behind.due), rate(behind.sent_per_s));
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("{only}{sent} of {due}{left_over} {were} sent ({per_s}/s){waiting}{why}")
}

/// The number of unsent requests and of connections that may be enough. The verdict on the rate reports neither.
fn unsent_line(behind: &Behind) -> Option<String> {
    let number = match &behind.bottleneck {
        Some(Bottleneck::Connections(crowded)) => number_line(crowded),
        _ => None,
    };
    let grows = if behind.grows { ", so latencies grow with the length of the run" } else { "" };
    let due = format_count(behind.due, "due request");
    let unsent = (behind.unsent > 0).then(|| {
        format!(
            "{} of {due} {} still unsent at the end{grows}",
            format_thousands(behind.unsent),
            was_or_were(behind.unsent)
        )
    });
    let parts: Vec<String> = unsent.into_iter().chain(number).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The number of connections needed, if known.
fn number_line(crowded: &Crowded) -> Option<String> {
    matches!(crowded.remedy, Remedy::About(_)).then(|| remedy_words(crowded))
}

fn crowded_line(crowded: &Crowded) -> String {
    let (percent, busy, remedy) = (100.0 * crowded.share, busy_words(crowded), remedy_words(crowded));
    format!("for {percent:.0} % of the run, {busy} while requests were due; {remedy}")
}

fn busy_words(&Crowded { connections, in_flight, unevenly, pauses, .. }: &Crowded) -> String {
    let uneven = connections.zip(unevenly).map_or(String::new(), |(connections, threads)| {
        format!(" ({} are divided unevenly among {threads} threads)", format_count(connections, "connection"))
    });
    if let Some(in_flight) = in_flight {
        let who = if unevenly.is_some() { "the connections of a thread" } else { "all connections" };
        let most = connections.map_or(String::new(), |_| format!(" ({} in total)", format_thousands(in_flight)));
        let paused = if pauses { ", or paused for the script" } else { "" };
        return format!("{who} had as many requests in flight as allowed{most}{paused}{uneven}");
    }
    let who = match (connections, unevenly) {
        (None, _) => "all connections were",
        (Some(1), _) => "the connection was",
        (Some(_), Some(_)) => "all connections of a thread were",
        (Some(connections), None) => &format!("all {} were", format_count(connections, "connection")),
    };
    let paused = if pauses { " or pausing for the script" } else { "" };
    format!("{who} busy{paused}{uneven}")
}

fn remedy_words(&Crowded { in_flight, batch, room, remedy, .. }: &Crowded) -> String {
    // An HTTP/2 connection can have several requests in flight.
    let (more, half) = match in_flight {
        None => ("connections", "fewer than half of the connections were busy"),
        Some(_) => ("requests in flight", "fewer than half as many were in flight"),
    };
    match remedy {
        Remedy::About(batches) => {
            let requests = batches * batch;
            let needed = format_thousands(if in_flight.is_some() { requests } else { batches });
            // Over HTTP/1.1 a batch is sent on one connection.
            let is_batch_each = in_flight.is_none() && room.room == Room::Connections;
            let how = room.for_requests(if is_batch_each { batches } else { requests });
            format!("about {needed} {more} would be needed; {how}")
        }
        Remedy::Target { calm_ns, mean_ns } => {
            let [calm, mean] = [calm_ns, mean_ns].map(|ns| format_us(ns / NS_PER_US));
            format!("responses took {calm} while {half}, and {mean} on average: the target may be the limit")
        }
        Remedy::Verdict => format!("more {more} may not help: they were probably not the limit"),
        Remedy::Silence => "the target sent no response during that time".to_owned(),
        Remedy::Unknown => format!("more {more} may help ({})", room.room.option()),
    }
}

/// Converts microseconds to whole nanoseconds.
fn us_to_ns(us: f64) -> u64 {
    (us * NS_PER_US).round() as u64
}

fn late_line(late: u64, sent: u64, limit: Duration, p99_ns: Option<u64>, max_ns: u64) -> String {
    let text = |ns: u64| format_us(ns as f64 / NS_PER_US);
    let p99 = p99_ns.map_or(String::new(), |p99_ns| format!("p99 {}, ", text(p99_ns)));
    let share = late as f64 / sent.max(1) as f64 * 100.0;
    let share = if sent < PERCENT_MIN { String::new() } else { format!(" ({share:.2} %)") };
    let (late, sent, limit, max) =
        (format_thousands(late), format_count(sent, "request"), format_duration_spaced(limit), text(max_ns));
    format!(
        "{late} of {sent}{share} were sent more than {limit} late, which latencies include (delay of all requests: {p99}max \
         {max})"
    )
}

fn late_reason_words(reason: Option<LateReason>, burst: Option<&Burst>) -> String {
    let reason = reason.map(|reason| match reason {
        LateReason::Stalled(stalled) => {
            format!("onrush itself was stalled for {} in total", format_us(stalled.as_secs_f64() * 1e6))
        }
        LateReason::Script(share) => {
            format!("the script's callbacks held up a thread of onrush for {:.0} % of the time", share * 100.0)
        }
        LateReason::Waited(share) => {
            format!("a thread of onrush waited for a processor for {:.0} % of the time", share * 100.0)
        }
    });
    let words: Vec<String> = reason.into_iter().chain(burst.map(burst_words)).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join("; ")) }
}

fn burst_words(&Burst { requests, connections, needed, in_flight, batch, is_staged }: &Burst) -> String {
    let room = |in_flight| format!("room for only {}", format_thousands(in_flight));
    let met = in_flight.map_or_else(|| format!("only {}", format_count(connections, "connection")), room);
    let in_all = needed * batch;
    let remedy = match (needed, is_staged, in_flight) {
        (CONNECTIONS_MAX.., ..) => "use smaller bursts".to_owned(),
        (_, true, Some(_)) => "raise --streams or --stages c=".to_owned(),
        (_, true, None) => format!("raise --stages c= to {}", format_thousands(needed)),
        (_, false, Some(_)) => format!("use --max-inflight {in_all}"),
        (_, false, None) => format!("use -c {needed} or --max-inflight {in_all}"),
    };
    format!("bursts of {} requests met {met}; {remedy}", format_thousands(requests))
}

fn too_late_line(dropped: u64, due: u64, in_percentiles: bool) -> String {
    let (dropped, due) = (format_thousands(dropped), format_count(due, "request"));
    let latency = match in_percentiles {
        true => "mean and maximum leave them out, percentiles estimate them",
        false => "no latency includes them",
    };
    format!("{dropped} of {due} were dropped because they would have been sent too late (--max-late); {latency}")
}

fn sliced_line(slice: Duration, mean_us: f64) -> String {
    let (slice, mean) = (format_duration_exact(slice), format_us(mean_us));
    format!(
        "sends were grouped into slices of {slice} (--send-slice), which delays each by up to as much; requests were \
         {mean} late on average, for any reason"
    )
}

fn ran_on_line(open_loop: &OpenLoop) -> String {
    let count = |ages: &Option<record::Distribution>| ages.as_ref().map_or(0, |ages| ages.count);
    let known = [
        (count(&open_loop.later), "got a response"),
        (open_loop.later_failed, "failed"),
        (open_loop.later_dropped, "were dropped"),
        (count(&open_loop.open), "did not end"),
    ];
    let known = known.into_iter().filter(|(requests, _)| *requests > 0).enumerate();
    let words: Vec<String> = known
        .map(|(index, (requests, end))| match index {
            0 => format!(": {} {end}", format_count(requests, "request")),
            _ => format!(", {} {end}", format_thousands(requests)),
        })
        .collect();
    let time = format_us(open_loop.run_on_s * 1e6);
    format!("the load went on for {time} after the end, uncounted, to decide a gate{}", words.concat())
}

fn uncertain_line(Uncertain { percent, between, missing }: &Uncertain) -> String {
    let nth = ordinal(&percent.to_string());
    format!("percentiles from the {nth} up are uncertain; the {nth} is {}", between.with_reason(*missing))
}

/// A number as an ordinal: `1st`, `50th`, `99.9th`.
fn ordinal(number: &str) -> String {
    let ending = match number.as_bytes() {
        [.., b'1', b'1' | b'2' | b'3'] if !number.contains('.') => "th",
        [.., b'1'] if !number.contains('.') => "st",
        [.., b'2'] if !number.contains('.') => "nd",
        [.., b'3'] if !number.contains('.') => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
