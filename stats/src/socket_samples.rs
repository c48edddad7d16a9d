//! Sums of samples of sockets.

use super::Distribution;

/// The sum of samples of sockets.
#[derive(Clone, Debug, Default)]
pub struct SocketSamples {
    /// Samples taken.
    pub samples: u64,
    /// Samples refused by the kernel.
    pub failed: u64,
    /// Sockets. A socket that is missing in one sample and present in the next counts again.
    pub sockets: u64,
    /// Readings: one per socket and sample.
    pub readings: u64,
    /// Sockets omitted because a sample had too many, summed over samples.
    pub left_out: u64,
    /// Segments retransmitted between two samples of a socket.
    pub retransmits: u64,
    /// The smoothed round-trip times, in microseconds.
    pub rtt_us: Distribution<u32>,
    /// The congestion windows, in segments.
    pub cwnd: Distribution<u32>,
    /// The delivery rates, as estimated by the kernel, in bits per second.
    pub delivery_bps: Distribution<u32>,
    /// Buffer usage: used shares of the receive buffers' limits, in millionths.
    pub rcvbuf_use: Distribution<u32>,
    /// Buffer usage: used shares of the send buffers' limits, in millionths.
    pub sndbuf_use: Distribution<u32>,
}

impl SocketSamples {
    /// A share (0 to 1) in millionths.
    pub fn ppm(share: f64) -> u64 {
        (share * 1e6).round() as u64
    }
}
