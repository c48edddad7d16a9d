//! Sums of samples of sockets.

use super::Distribution;

/// The sum of samples of sockets.
#[derive(Clone, Debug, Default)]
pub struct SocketSamples {
    /// Samples taken.
    pub samples: u64,
    /// Samples that the kernel refused to give.
    pub failed: u64,
    /// Sockets. A socket that is missing in one sample and present in the next counts again.
    pub sockets: u64,
    /// Readings: one for each socket in a sample.
    pub readings: u64,
    /// Sockets left out because a sample had too many, summed over samples.
    pub left_out: u64,
    /// Segments that were retransmitted between two samples of a socket.
    pub retransmits: u64,
    /// The smoothed round trips, in microseconds.
    pub rtt_us: Distribution<u32>,
    /// The congestion windows, in segments.
    pub cwnd: Distribution<u32>,
    /// The delivery rate, as the kernel estimates it, in bits per second.
    pub delivery_bps: Distribution<u32>,
    /// The used shares of the receive buffers' limits, in millionths.
    pub rcvbuf_use: Distribution<u32>,
    /// Likewise of the send buffers.
    pub sndbuf_use: Distribution<u32>,
}

impl SocketSamples {
    /// A share (0 to 1) in millionths.
    pub fn ppm(share: f64) -> u64 {
        (share * 1e6).round() as u64
    }
}
