//! One of the machines that carried a run out together.

use serde::{Deserialize, Serialize};

use super::Shortage;
use crate::run::{self, MachineShare};

/// A machine's part in a run. Names and sentences are escaped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The backend that it used.
    pub backend: String,
    /// How many processors it could use.
    pub processors: u32,
    /// How many threads it had.
    pub threads: u32,
    /// The most connections that it could have at a time.
    pub connections: u64,
    /// The limit on open files, if it was too low for all connections of its part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
    /// Requests it sent.
    pub started: u64,
    /// Complete responses it received.
    pub completed: u64,
    /// Requests without a good response in time, each once: what the metric `errors` counts.
    pub failures: u64,
    /// How long its part lasted, in seconds. What it did after that is missing if it was lost.
    pub duration_s: f64,
    /// The share (0 to 1) of a processor that its busiest thread took; left out if that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<f64>,
    /// The shortest round trip between it and the coordinator, in seconds: it began at most half of it early or late.
    pub round_trip_s: f64,
    /// How late it began to measure, because the order to begin came late or it was stopped in the warm-up, in seconds; left out if it
    /// was in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_s: Option<f64>,
    /// How far its clock moved away from the coordinator's during the run, in seconds; left out if that is unknown. No figure
    /// is corrected by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_s: Option<f64>,
    /// What limited its part, if that was the machine itself, by the name of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// The sentence on that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Why it was lost; left out if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl super::Document {
    /// How many threads carried the run out, on all machines together.
    pub fn threads_of_all(&self) -> u64 {
        match &self.machines[..] {
            [] => self.plan.threads.into(),
            machines => machines.iter().map(|machine| u64::from(machine.threads)).sum(),
        }
    }
}

impl Machine {
    /// What is known of it.
    pub(super) fn of(share: &MachineShare) -> Self {
        let (limited_by, limit) = share.limit.clone().unzip();
        Self {
            name: share.name.clone(),
            kernel: share.kernel.clone(),
            backend: share.backend.clone(),
            processors: share.processors,
            threads: share.threads,
            connections: share.connections,
            shortage: share.shortage.map(|run::Shortage { needed, hard }| Shortage {
                needed,
                allowed: hard,
                room: Some(share.connections),
            }),
            started: share.started,
            completed: share.completed,
            failures: share.failures,
            duration_s: share.elapsed.as_secs_f64(),
            busiest: share.busiest,
            round_trip_s: share.round_trip.as_secs_f64(),
            late_s: (!share.late.is_zero()).then_some(share.late.as_secs_f64()),
            drift_s: share.drift_ns.map(|ns| ns as f64 / 1e9),
            limited_by,
            limit,
            lost: share.lost.clone(),
        }
    }
}
