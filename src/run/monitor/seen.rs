//! Observations of a target on this machine, of the machine, and of connections: plain numbers. Shares are between 0
//! and 1.

use onrush_stats::SocketStats;
use serde::{Deserialize, Serialize};

use super::Unobserved;

/// Observations of a target on this machine, and of the machine, during a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonitorReport {
    /// The target, if it is on this machine and could be seen.
    pub target: Option<Target>,
    /// The machine; the run fills in how long it was suspended.
    pub machine: Machine,
    /// How long the generator's control group was throttled, summed over processors.
    pub throttled_s: Option<f64>,
    /// Facts that could not be observed.
    pub unseen: Vec<Unobserved>,
}

/// The processes that listen on the address under load, all of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Target {
    /// The name of the first one.
    pub name: String,
    /// How many there are.
    pub processes: usize,
    /// True if all of them ended during the run; in a sum: during the last one.
    pub ended: bool,
    /// How many processors they kept busy, on average.
    pub cpus_used: f64,
    /// How many processors they may use, by affinity and control group.
    pub cpus_allowed: f64,
    /// The share of the time in which the busiest of their threads was on a processor.
    pub busiest_thread: f64,
    /// The longest that one of their threads was ready to run and had no processor, as a share of the time; left out if
    /// the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<f64>,
    /// How long their control group was throttled, summed over processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_s: Option<f64>,
    /// Its listening sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<Listening>,
    /// Its end of some connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// The target's listening sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Listening {
    /// The most connections seen waiting to be accepted.
    pub waiting_max: u32,
    /// How many connections may wait.
    pub limit: u32,
    /// How often a queue in this network namespace overflowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflows: Option<u64>,
}

/// The machine of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// The share of its processors' time that the hypervisor gave to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<f64>,
    /// Step of the wall clock, forwards or backwards. In a sum: the largest of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_s: Option<f64>,
    /// How long it was suspended.
    pub suspended_s: f64,
}

/// One end of some connections, as `TCP_INFO` reports it. Round trips include delayed acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Network {
    /// The number of readings.
    pub readings: u64,
    /// The mean of the smoothed round trips.
    pub rtt_us: f64,
    /// The shortest round trip; left out if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_min_us: Option<f64>,
    /// The share of the segments that were retransmitted.
    pub retransmitted: f64,
    /// The share of the segments that were retransmitted needlessly: the peer had them already and reported it (DSACK).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needless: Option<f64>,
    /// The share of the segments that arrived out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<f64>,
    /// How many segments arrived out of order, counted between the first and the last reading of each connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_order_segments: Option<u64>,
    /// Lost segments: retransmitted, but not needlessly. Older versions added segments out of order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Lost segments per request.
    pub lost_per_request: f64,
    /// The share of the time with data in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// The share of the time in which the peer's window was the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_limited: Option<f64>,
    /// The share of the time in which the send buffer was the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_limited: Option<f64>,
    /// Of the readings with a request in flight, the share in which only part of the response had arrived.
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
            lost: Some(sockets.lost()),
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
