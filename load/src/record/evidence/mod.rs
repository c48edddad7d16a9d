//! The facts of a run that tell what limited it: plain numbers. Shares are between 0 and 1.
//!
//! `measured` has those of one run, `stages` what a changing number of connections tells; those of a sum are gathered in `runs`.

pub(crate) mod measured;
mod stages;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use onrush_plan::checks::{StatusList, is_failure};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::failure::errno_words;

pub use crate::run::{Elasticity, Probe, Slot};
pub use crate::run::{Listening, Machine, Network, Target};

/// A response is slow if it took this many times the median.
pub const SLOW: u64 = 10;

/// Everything that the verdict rests on. What could not be observed is left out.
///
/// That of a sum follows from the sum's latencies and counts, and for everything else from the evidence of its runs: what
/// is an average at any time adds up over runs at the same time, shares are averages weighted by time, and what is about
/// one machine is there only if all runs were on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The generator.
    pub generator: Generator,
    /// The load that was asked for, and what was reached.
    pub load: Load,
    /// Service latencies; left out if there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// The generator's end of some connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The target, if it is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The machine of the generator.
    pub machine: Machine,
    /// The probe after the run, or what its stages tell in place of one; left out where none was needed. In a sum: those after its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// The generator: its threads, and what held them up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Generator {
    /// Each thread; one that never returned from its script is left out.
    pub threads: Vec<Thread>,
    /// How many of them the script ended while the run went on for a twentieth of its time at least.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped: u64,
    /// How many processors the threads may use; unknown in a sum of runs on several machines. Where runs took place one
    /// after another, their threads are counted one after another, and so are the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<usize>,
    /// How long at least one thread was stalled: stopped, or without a processor. In a sum of runs at the same time: on
    /// average.
    pub stalled_s: f64,
    /// How often that happened. In a sum: in all runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stalls: u64,
    /// When it was for at least 200 ms, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long_stalls: Vec<Stall>,
    /// How long its control group was throttled, summed over processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_s: Option<f64>,
    /// The time of all threads together, in seconds.
    pub thread_s: f64,
    /// The processor time that watching the target and the machine, and adding up, took meanwhile; left out with a warm-up and in
    /// virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_s: Option<f64>,
}

impl Generator {
    /// The share of its threads' time for which its control group was throttled. Less than one thread counts as one.
    pub fn throttled(&self, elapsed_s: f64) -> f64 {
        self.throttled_s.unwrap_or(0.0) / self.thread_s.max(elapsed_s).max(f64::MIN_POSITIVE)
    }
}

/// A time in which the generator was stalled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Stall {
    /// When it began, in seconds since measuring began.
    pub start_s: f64,
    /// How long it lasted, in seconds.
    pub length_s: f64,
}

/// One thread of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Thread {
    /// The share of the time in which it worked, waited for a processor, or was in the script; busy-polling does not count as
    /// work.
    pub busy: f64,
    /// The share of the time in which it waited for a processor; left out if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<f64>,
    /// The share of the time spent inside the script, estimated.
    pub script: f64,
    /// The share of the time in which the script held it up, for 20 ms or more at a time.
    #[serde(default, skip_serializing_if = "is_none")]
    pub held_up: f64,
}

impl Thread {
    /// The share of the time in which it worked.
    pub fn worked(&self) -> f64 {
        (self.busy - self.queued.unwrap_or(0.0)).max(0.0)
    }
}

/// The load that was asked for, and what was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Load {
    /// How long the run measured.
    pub elapsed_s: f64,
    /// Connections asked for.
    pub connections: u64,
    /// The most requests that could be in flight, where a connection of HTTP/2 may have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_max: Option<u64>,
    /// With a rate: the option that makes room for more requests in flight; left out by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
    /// Requests in flight, on average.
    pub in_flight: f64,
    /// In a sum: those of all runs, whether at the same time or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_of_all: Option<f64>,
    /// The share of the time in which open connections had no request in flight: pausing, or waiting until one was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// Open connections, on average.
    pub open: f64,
    /// Missing connections, on average: never established, waiting to reconnect, or connecting.
    pub missing: f64,
    /// What connections were doing without a request in flight, where that was something else than waiting for one to be
    /// due.
    #[serde(default, skip_serializing_if = "Places::is_empty")]
    pub places: Places,
    /// How many requests the server allows on a connection at the same time, where that did not change, is fewer than were asked
    /// for, and as many were in flight for at least a hundredth of the time that connections were open (HTTP/2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_allowed: Option<u32>,
    /// Responses.
    pub completed: u64,
    /// Responses per second.
    pub rate_per_s: f64,
    /// Requests per second asked for; left out without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// The share of the due requests that were sent; left out without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<f64>,
    /// The 99th percentile of the requests' lateness, in microseconds; left out without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_p99_us: Option<f64>,
    /// Connects that failed because no local port was free.
    pub without_port: u64,
    /// Connects that failed for another reason than what this machine lacks: a port, a descriptor, memory.
    pub connect_errors: u64,
    /// Requests that failed while their response was awaited or read, and connections that failed without a request in flight.
    pub read_errors: u64,
    /// Requests that failed before their response was complete, while they were sent or later; left out by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Connections that failed without a request in flight; left out by older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<u64>,
    /// Why most connects, requests and connections failed; left out if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_failure: Option<MainFailure>,
    /// The requests whose responses could not be read, if none was complete and that is so of most of them for the same reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<Unreadable>,
    /// The statuses of success; left out: those below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<String>"))]
    pub expected: Option<StatusList>,
    /// Responses with an unsuccessful status.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// The most frequent of these statuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// Responses that failed a check of their head or body.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_checks: u64,
    /// Requests in flight at the end that had been for at least a second and three times the slowest response.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hanging: u64,
    /// With a rate: requests that were due and had not ended when the run did, because they were unsent or in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// In a run of a number of requests with a rate: how many more would have been due while it waited for the last of them, at most
    /// as many as ended in that time; left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue: Option<u64>,
    /// How long the run went on after the last of them was due, in seconds; in a sum, the longest time. Left out with `overdue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun_s: Option<f64>,
    /// With a rate: how many requests may be left, or overdue, if it was kept up with, by the rate in the last third of the run and the
    /// latencies before; left out where there were too few responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usually_left: Option<u64>,
    /// With a rate: the share of the time in which requests were due while all connections were in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowded: Option<f64>,
    /// With a rate: how fast the latency since requests were due grew, in seconds a second, if it did so steadily. In a
    /// queue that is the part of the load that it cannot serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<f64>,
    /// With a constant rate: how many requests were in flight earlier and later in the run, if it was long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
    /// With a constant rate: the index of dispersion of the responses in a tenth of a second, their variance divided by their mean;
    /// 1 if they are independent of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispersion: Option<f64>,
    /// In a closed loop, the total length of silences that are much longer than the latencies.
    pub silent_s: f64,
    /// For how long in all there was no response to the requests in flight, as far as onrush would have noticed one: the
    /// total of `silences`; with a rate, of those in which twenty were to be expected.
    pub quiet_s: f64,
    /// Requests that lasted longer than the timeout.
    pub timeouts: u64,
    /// Requests abandoned; left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub abandoned: u64,
    /// Set if not a byte of a response arrived, although requests were sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_mute: bool,
    /// How long the silence before the end was, as far as onrush would have noticed a response.
    pub silent_at_end_s: f64,
    /// Whether connects or requests failed in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed_at_end: bool,
    /// The times without a response to the requests in flight: at least 200 ms, and ten times the 99th percentile of the
    /// latency, or with a rate its median or a hundred responses that were to be expected; in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<Silence>,
    /// The most requests that one connection had, as a multiple of the mean over connections open at the end. In a sum:
    /// the largest of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hottest: Option<f64>,
    /// Responses per second in thirds of the run, if it was long enough; left out under a rate, and in a sum of runs that
    /// did not take place at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thirds: Option<Thirds>,
}

/// Streams that a server did not allow are worth a word if connections had all of them in use for this share of the time that
/// they were open.
const BLOCKED: f64 = 0.01;

/// Whether that is so, of times in the same unit.
pub fn were_often_in_use(blocked: f64, open: f64) -> bool {
    blocked > 0.0 && blocked >= BLOCKED * open
}

impl Load {
    /// How many requests failed; in older results, errors of connections without one are among them.
    pub fn failed_requests(&self) -> u64 {
        self.failed.unwrap_or(self.read_errors)
    }

    /// How many connections failed without a request in flight; unknown in older results.
    pub fn failed_connections(&self) -> u64 {
        self.failed_connections.unwrap_or(0)
    }

    /// How many connects, requests and connections failed, and requests were abandoned.
    pub fn failures(&self) -> u64 {
        let failed = [self.connect_errors, self.failed_requests(), self.failed_connections(), self.abandoned];
        failed.into_iter().fold(0, u64::saturating_add)
    }

    /// With a rate: by how many requests the run was behind its schedule at the end.
    pub fn behind(&self) -> Option<u64> {
        Some(self.left?.max(self.overdue.unwrap_or(0)))
    }

    /// The requests in flight on average, in a sum those of all runs: what is left of them at the ends of runs adds up.
    pub fn all_in_flight(&self) -> f64 {
        self.in_flight_of_all.unwrap_or(self.in_flight)
    }
}

/// An option that makes room for more requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Room {
    /// `-c`: more connections.
    #[default]
    Connections,
    /// `--streams`: more on each connection, which the server allows.
    Streams,
    /// `--max-inflight`, which was given.
    MaxInflight,
    /// `--stages c=`, which set the number of connections.
    Stages,
}

impl Room {
    /// The option as a user writes it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Connections => "-c",
            Self::Streams => "--streams",
            Self::MaxInflight => "--max-inflight",
            Self::Stages => "--stages c=",
        }
    }
}

/// The most frequent failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct MainFailure {
    /// How often it happened.
    pub count: u64,
    /// Why, as the ledger has it.
    pub why: String,
    /// The remedy, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl MainFailure {
    /// Returns the most frequent cause in the rows of a ledger, each with its phase and whether this machine ran out of something.
    pub fn of(rows: impl Iterator<Item = (String, bool, Self)>) -> Option<Self> {
        let mut all = BTreeMap::<String, Self>::new();
        for (phase, ours, row) in rows {
            // Others are late or abandoned, or were answered.
            if ours || !["resolve", "connect", "tls", "send", "head", "body"].contains(&phase.as_str()) {
                continue;
            }
            let is_refusal = phase == "connect" && row.why == errno_words(Errno::CONNREFUSED.raw_os_error());
            let advice = if is_refusal { Some(NOTHING_LISTENED.to_owned()) } else { row.advice };
            let known = all.entry(row.why.clone()).or_insert(Self { count: 0, why: row.why, advice: None });
            known.count = known.count.saturating_add(row.count);
            known.advice = known.advice.take().or(advice);
        }
        all.into_values().max_by(|one, other| one.count.cmp(&other.count).then_with(|| other.why.cmp(&one.why)))
    }
}

/// The remedy for refused connects.
const NOTHING_LISTENED: &str = "nothing listened there: is the target running, and its address right?";

/// Requests whose responses could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Unreadable {
    /// How many there were.
    pub requests: u64,
    /// Why, as the ledger has it.
    pub why: String,
}

impl Unreadable {
    /// Those of the most frequent reason, if none was answered and they are more than half of what failed or was abandoned, and of
    /// what hangs.
    pub fn of(each: impl Iterator<Item = Self>, ended: u64, hanging: u64, completed: u64) -> Option<Self> {
        let mut all = BTreeMap::<String, u64>::new();
        for Self { requests, why } in each {
            let sum = all.entry(why).or_default();
            *sum = sum.saturating_add(requests);
        }
        let most = all.into_iter().max_by_key(|(_, requests)| *requests);
        let most = most.map(|(why, requests)| Self { requests, why });
        most.filter(|it| completed == 0 && 2 * u128::from(it.requests) > u128::from(ended.max(hanging)))
    }
}

/// The most frequent unsuccessful status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// Whether there was no other one.
    pub is_only: bool,
}

impl Refusal {
    /// That of these statuses and their numbers, of which those of a list, or `None`, are expected; of equally frequent ones, the lowest.
    pub fn of(statuses: impl Iterator<Item = (u16, u64)>, expected: Option<&StatusList>) -> Option<Self> {
        let others: Vec<(u16, u64)> = statuses.filter(|(status, _)| is_failure(expected, *status)).collect();
        let &(status, _) = others.iter().max_by_key(|(status, count)| (*count, Reverse(*status)))?;
        Some(Self { status, is_only: others.len() == 1 })
    }
}

/// How many connections were not busy, by reason; each on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Places {
    /// Never established.
    #[serde(default, skip_serializing_if = "is_none")]
    pub never_established: f64,
    /// Waiting to reconnect.
    #[serde(default, skip_serializing_if = "is_none")]
    pub waiting: f64,
    /// Being established.
    #[serde(default, skip_serializing_if = "is_none")]
    pub connecting: f64,
    /// Without a rate: pausing for the script.
    #[serde(default, skip_serializing_if = "is_none")]
    pub pausing: f64,
    /// Waiting for the server to close them (`--requests-per-connection`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub leaving: f64,
    /// With no request left to send (`-n`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub done: f64,
}

impl Places {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A time without a response to the requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Silence {
    /// When it began, in seconds since measuring began.
    pub start_s: f64,
    /// How long it lasted, in seconds.
    pub length_s: f64,
    /// For how much of that onrush could have noticed a response: it was neither stalled nor held up by its script, and had
    /// connections. In a sum: at least.
    pub heard_s: f64,
}

/// Requests in flight, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Backlog {
    /// In the first half of the run, but for its beginning. A run that is too short for that has its mean here and in
    /// `last`.
    pub before: f64,
    /// In the last third.
    pub last: f64,
    /// In the row with the fewest, but for the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Due requests that waited for a connection, on average.
    pub waiting: f64,
    /// Responses per second in the last third.
    pub last_per_s: f64,
}

/// How the rate changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Thirds {
    /// Responses per second in the first third.
    pub first_per_s: f64,
    /// Responses per second in the last third.
    pub last_per_s: f64,
    /// The standard error of the difference, by the seconds within each third.
    pub error_per_s: f64,
}

/// Service latencies, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Latency {
    /// The mean.
    pub mean_us: f64,
    /// With a rate, the mean of requests sent while less than half of the connections were busy, warm-up included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm_us: Option<f64>,
    /// How many those were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calm: u64,
    /// How many requests were in flight on average when those were sent, with themselves; left out in a sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calm_in_flight: Option<f64>,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The share of the latencies between 38 and 46 ms, where Linux's delayed acknowledgements (40 ms) put them.
    pub delayed: f64,
    /// How many responses took at least ten times the median.
    pub slow: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_none(mean: &f64) -> bool {
    *mean == 0.0
}
