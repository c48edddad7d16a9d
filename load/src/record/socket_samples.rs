//! A summary of socket samples, as a document has it.

use serde::{Deserialize, Serialize};

use onrush_stats::Distribution;

/// A summary of the socket samples (`--sockets`), without those of the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct SocketSamples {
    /// How many samples were taken.
    pub samples: u64,
    /// How many of them the kernel refused; left out if none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// How many sockets were in them. A socket that is in a sample but not in the previous one counts again.
    pub sockets: u64,
    /// Total number of readings in all samples.
    pub readings: u64,
    /// How many readings were left out because there were too many sockets; left out if none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Segments retransmitted between two samples of a socket.
    pub retransmits: u64,
    /// The smoothed round-trip time, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Extent>,
    /// The congestion window, in segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd: Option<Extent>,
    /// The kernel's delivery rate, in bits per second, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_rate: Option<Extent>,
    /// The share of the receive buffer's limit in use (`skmem.r` of `skmem.rb`); 1 is all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf_use: Option<Extent>,
    /// The share of the send buffer's limit in use (`skmem.w` of `skmem.tb`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf_use: Option<Extent>,
}

/// Minimum, median and maximum of the readings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Extent {
    /// The minimum.
    pub min: f64,
    /// The median, to 0.1 %; left out of sums, because it does not follow from those of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The maximum.
    pub max: f64,
}

impl SocketSamples {
    /// Those of a run.
    pub fn of(sampled: &onrush_stats::SocketSamples) -> Self {
        Self {
            samples: sampled.samples,
            failed: sampled.failed,
            sockets: sampled.sockets,
            readings: sampled.readings,
            left_out: sampled.left_out,
            retransmits: sampled.retransmits,
            rtt: Extent::of(&sampled.rtt_us, 1e3),
            cwnd: Extent::of(&sampled.cwnd, 1.0),
            delivery_rate: Extent::of(&sampled.delivery_bps, 1.0),
            rcvbuf_use: Extent::of(&sampled.rcvbuf_use, 1e6),
            sndbuf_use: Extent::of(&sampled.sndbuf_use, 1e6),
        }
    }

    /// Those of two runs together.
    pub(super) fn with(self, other: Self) -> Self {
        let both = |mine: Option<Extent>, theirs: Option<Extent>| mine.into_iter().chain(theirs).reduce(Extent::with);
        Self {
            samples: self.samples + other.samples,
            failed: self.failed + other.failed,
            sockets: self.sockets + other.sockets,
            readings: self.readings + other.readings,
            left_out: self.left_out + other.left_out,
            retransmits: self.retransmits + other.retransmits,
            rtt: both(self.rtt, other.rtt),
            cwnd: both(self.cwnd, other.cwnd),
            delivery_rate: both(self.delivery_rate, other.delivery_rate),
            rcvbuf_use: both(self.rcvbuf_use, other.rcvbuf_use),
            sndbuf_use: both(self.sndbuf_use, other.sndbuf_use),
        }
    }
}

impl Extent {
    /// From values that are `times` times as large as those shown; `None`: there are none.
    fn of(values: &Distribution<u32>, times: f64) -> Option<Self> {
        let (min, max) = values.min().zip(values.max())?;
        let [min, median, max] = [min, values.percentile(50.0).clamp(min, max), max].map(|value| value as f64 / times);
        Some(Self { min, median: Some(median), max })
    }

    /// Those of the readings of both.
    fn with(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), median: None, max: self.max.max(other.max) }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
