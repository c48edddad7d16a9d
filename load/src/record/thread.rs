//! What each thread of the generator did, and where its own time went.

use onrush_plan::Plan;
use onrush_stats::Activity;
use serde::{Deserialize, Serialize};

use super::InFlight;
use super::distribution::figure;
use crate::run::{Outcome, WorkerShare};

/// One thread of the generator. `user_s` and `system_s` add up to its processor time, and so do `cpu_s` and `busy_polled_s`;
/// with `queued_s` and `asleep_s` they add up to all of its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Thread {
    /// Its maximum number of connections.
    pub connections: u32,
    /// How many it opened while the run was measured, replacements included.
    pub opened: u64,
    /// Requests it started.
    pub started: u64,
    /// Responses complete.
    pub completed: u64,
    /// What it had in flight, as an average over the measured time; unknown for a thread that never returned, like
    /// everything below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// Processor time without busy-polling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Processor time spent busy-polling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_polled_s: Option<f64>,
    /// Processor time outside the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_s: Option<f64>,
    /// Processor time inside the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_s: Option<f64>,
    /// Time in the run queue, ready to run but without a processor; only where the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_s: Option<f64>,
    /// Time in which it neither ran nor was ready to run; only where `queued_s` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep_s: Option<f64>,
    /// Time spent in the script, if there is one, estimated from a sample of its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_s: Option<f64>,
    /// How often it waited for the kernel, and what each wait returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// How long after they were due requests were handed to the kernel, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
}

/// The waits for the kernel, and the backlog found after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Waits {
    /// How many there were.
    pub count: u64,
    /// Completions handled after them: pieces received, connects decided, remainders of requests sent.
    pub completions: u64,
    /// Most completions handled after a single wait.
    pub completions_max: u64,
}

/// How long after they were due requests were handed to the kernel. In a closed loop a request is due as soon as a
/// connection is free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Lateness {
    /// On average.
    pub mean_us: f64,
    /// At most.
    pub max_us: f64,
}

impl Thread {
    /// What a worker did in a run.
    pub(super) fn of(share: &WorkerShare, plan: &Plan, outcome: &Outcome) -> Self {
        let WorkerShare { connections, counters, activity } = share;
        let seconds = |of: fn(&Activity) -> u64| activity.as_ref().map(|activity| of(activity) as f64 / 1e9);
        let known = |of: fn(&Activity) -> Option<u64>| Some(of(activity.as_ref()?)? as f64 / 1e9);
        // Only the sums of whole runs are added up.
        let in_flight = InFlight::of(&counters.occupancy, outcome.elapsed).map(|in_flight| InFlight {
            requests_us: None,
            connections_us: None,
            ..in_flight
        });
        Self {
            connections: *connections,
            opened: counters.connects,
            started: counters.started,
            completed: counters.completed,
            in_flight: in_flight.filter(|_| activity.is_some()),
            cpu_s: seconds(|activity| activity.cpu_ns().saturating_sub(activity.spun_ns)),
            busy_polled_s: seconds(|activity| activity.spun_ns.min(activity.cpu_ns())),
            user_s: seconds(|activity| activity.user_ns),
            system_s: seconds(|activity| activity.system_ns),
            queued_s: known(|activity| activity.queued_ns),
            asleep_s: known(Activity::asleep_ns),
            script_s: seconds(|activity| activity.script_ns).filter(|_| plan.script.is_some()),
            waits: activity.as_ref().map(Waits::of),
            lateness: activity.as_ref().and_then(Lateness::of),
        }
    }
}

impl Waits {
    fn of(activity: &Activity) -> Self {
        let Activity { waits, completions, completions_max, .. } = *activity;
        Self { count: waits, completions, completions_max }
    }
}

impl Lateness {
    fn of(activity: &Activity) -> Option<Self> {
        let Activity { submissions, lateness_sum_ns, lateness_max_ns, .. } = *activity;
        let mean_ns = lateness_sum_ns as f64 / submissions as f64;
        (submissions > 0).then(|| Self { mean_us: figure(mean_ns / 1e3), max_us: figure(lateness_max_ns as f64 / 1e3) })
    }
}
