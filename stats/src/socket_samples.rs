//! Sums of samples of sockets.

use super::Distribution;

/// The sum of samples of sockets.
#[derive(Clone, Debug, Default)]
pub struct SocketSamples {
    /// Number of samples taken, each of all selected sockets.
    pub samples: u64,
    /// Number of samples refused by the kernel.
    pub failed: u64,
    /// Number of sockets. A socket that is missing from one sample and present in the next is
    /// counted again.
    pub sockets: u64,
    /// Number of readings: one per socket and sample.
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
    /// Use of the receive buffers, in millionths of their limits.
    pub rcvbuf_use: Distribution<u32>,
    /// Use of the send buffers, in millionths of their limits.
    pub sndbuf_use: Distribution<u32>,
}

impl SocketSamples {
    /// Converts a share (0 to 1) into millionths, rounded.
    pub fn ppm(share: f64) -> u64 {
        (share * 1e6).round() as u64
    }
}
