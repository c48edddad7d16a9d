//! The sum of samples of sockets.

use super::Distribution;

/// What samples of sockets add up to.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Samples that were taken.
    pub samples: u64,
    /// Samples that the kernel refused.
    pub failed: u64,
    /// Sockets; one that is in a sample but not in the one before it is another one.
    pub sockets: u64,
    /// What was said about a socket in a sample.
    pub readings: u64,
    /// Sockets that were not read because a sample had too many, summed over samples.
    pub left_out: u64,
    /// Segments that were sent once more between two samples of a socket.
    pub retransmits: u64,
    /// The smoothed round trips, in microseconds.
    pub rtt_us: Distribution<u32>,
    /// The congestion windows, in segments.
    pub cwnd: Distribution<u32>,
    /// How fast data has arrived at peers lately, in bits per second.
    pub delivery_bps: Distribution<u32>,
    /// The shares of the receive buffers' limits that were used, in millionths.
    pub rcvbuf_use: Distribution<u32>,
    /// Likewise of the send buffers.
    pub sndbuf_use: Distribution<u32>,
}

impl Watched {
    /// A share (0 to 1) in millionths.
    pub fn ppm(share: f64) -> u64 {
        (share * 1e6).round() as u64
    }
}
