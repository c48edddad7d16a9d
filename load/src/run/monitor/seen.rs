//! Observations of a local target, of the machine, and of connections, as plain numbers. Shares are between 0 and 1.

use onrush_stats::SocketStats;
use serde::{Deserialize, Serialize};

use super::Unobserved;

/// Observations of a local target and of the machine during a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonitorReport {
    /// The target, if it is local and observable.
    pub target: Option<Target>,
    /// The machine; the run fills in the suspension.
    pub machine: Machine,
    /// Throttled time during the run, summed over processors, in the most throttled of the generator's control group and
    /// its ancestors. `None` if the group is not visible.
    pub throttled_s: Option<f64>,
    /// Facts that could not be observed.
    pub unseen: Vec<Unobserved>,
}

/// The processes that listen on the tested address, taken together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Target {
    /// Name of the oldest process.
    pub name: String,
    /// Number of processes.
    pub processes: usize,
    /// True if all processes ended during the run; in a sum: during the last run.
    pub ended: bool,
    /// Mean number of processors used.
    pub cpus_used: f64,
    /// Number of processors allowed by affinity and control group.
    pub cpus_allowed: f64,
    /// Share of the time that the busiest thread was on a processor.
    pub busiest_thread: f64,
    /// Maximum time that a thread was ready to run without a processor, as a share of the time; left out if the kernel
    /// does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<f64>,
    /// Throttled time of the control group, summed over processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_s: Option<f64>,
    /// Listening sockets of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<Listening>,
    /// The target's end of some connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// The target's listening sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Listening {
    /// Maximum number of connections seen waiting to be accepted.
    pub waiting_max: u32,
    /// Limit on the number of waiting connections.
    pub limit: u32,
    /// Number of accept-queue overflows in this network namespace, of any socket; left out if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflows: Option<u64>,
}

/// The machine of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Machine {
    /// Share of the processors' time that the hypervisor gave to others; left out if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<f64>,
    /// Step of the wall clock, forwards or backwards. In a sum: the largest step of any run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_s: Option<f64>,
    /// Total time for which the machine was suspended, in seconds.
    pub suspended_s: f64,
}

/// One end of some connections, as `TCP_INFO` reports it. Round trips include delayed acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Network {
    /// Number of readings.
    pub readings: u64,
    /// Mean of the smoothed round trips.
    pub rtt_us: f64,
    /// Shortest round trip; left out if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_min_us: Option<f64>,
    /// Share of segments that were retransmitted.
    pub retransmitted: f64,
    /// Share of segments that were retransmitted needlessly: the peer reported a duplicate (DSACK).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needless: Option<f64>,
    /// Share of segments that arrived out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<f64>,
    /// Number of segments that arrived out of order, counted between the first and the last reading of each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_order_segments: Option<u64>,
    /// Lost segments: retransmitted, but not needlessly. Older versions added segments out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Lost segments per request.
    pub lost_per_request: f64,
    /// Share of the time in which data was in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// Share of the time in which the peer's window limited sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_limited: Option<f64>,
    /// Share of the time in which the size of the send buffer limited sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_limited: Option<f64>,
    /// Share of the readings at which only part of a response had arrived, among those with a request in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_answered: Option<f64>,
}

impl Network {
    /// Computes means and shares from sums over readings; `None` without a reading.
    pub fn from_sockets(sockets: &SocketStats, lost_per_request: f64) -> Option<Self> {
        let of = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let of_time = |at: usize| of(sockets.busy_us[at], sockets.between_readings_us);
        Some(Self {
            readings: sockets.readings,
            rtt_us: of(sockets.rtt_sum_us, sockets.readings)?,
            rtt_min_us: sockets.rtt_min_us.map(f64::from),
            retransmitted: of(sockets.retransmits, sockets.segments_sent).unwrap_or_default(),
            needless: sockets.needless.and_then(|segments| of(segments, sockets.segments_sent)),
            out_of_order: sockets.out_of_order.and_then(|segments| of(segments, sockets.segments_received)),
            out_of_order_segments: sockets.out_of_order,
            lost: Some(sockets.lost_segments()),
            lost_per_request,
            busy: of_time(0),
            window_limited: of_time(1),
            buffer_limited: of_time(2),
            half_answered: of(sockets.half_answered, sockets.in_flight),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_become_means_without_missing_counts() {
        let sockets = SocketStats {
            readings: 4,
            in_flight: 2,
            half_answered: 1,
            rtt_sum_us: 1_000,
            rtt_min_us: Some(100),
            segments_sent: 50,
            segments_received: 200,
            retransmits: 5,
            needless: Some(2),
            out_of_order: Some(20),
            between_readings_us: 1_000_000,
            busy_us: [500_000, 250_000, 125_000],
        };
        let network = Network {
            readings: 4,
            rtt_us: 250.0,
            rtt_min_us: Some(100.0),
            retransmitted: 0.1,
            needless: Some(0.04),
            out_of_order: Some(0.1),
            out_of_order_segments: Some(20),
            lost: Some(3),
            lost_per_request: 0.5,
            busy: Some(0.5),
            window_limited: Some(0.25),
            buffer_limited: Some(0.125),
            half_answered: Some(0.5),
        };
        assert_eq!(Network::from_sockets(&sockets, 0.5), Some(network));
        let once = SocketStats { readings: 1, rtt_sum_us: 7, ..SocketStats::default() };
        assert_eq!(
            Network::from_sockets(&once, 0.0),
            Some(Network { readings: 1, rtt_us: 7.0, lost: Some(0), ..Network::default() })
        );
        assert_eq!(Network::from_sockets(&SocketStats::default(), 0.0), None);
    }
}
