//! The network-related parts of the kernel's `struct tcp_info`.

/// One reading of a connection; counters count from its opening. `None`: the kernel is too old to report the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The smoothed round-trip time, in microseconds, delayed acknowledgements included.
    pub rtt_us: u32,
    /// The shortest round-trip time, in microseconds.
    pub rtt_min_us: Option<u32>,
    /// Retransmitted segments.
    pub retransmits: u32,
    /// Segments sent, including retransmitted ones.
    pub segments_sent: Option<u32>,
    /// Segments received.
    pub segments_received: Option<u32>,
    /// Segments that the peer reported as received twice (DSACK): needless retransmissions.
    pub received_twice: Option<u32>,
    /// Segments received out of order.
    pub out_of_order: Option<u32>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// Microseconds with data in flight, and the parts limited by the peer's window and by our send buffer.
    pub busy_us: Option<[u64; 3]>,
}

impl TcpInfo {
    /// Decodes the kernel's `TCP_INFO` (`include/uapi/linux/tcp.h`); older kernels return less. `None`: it contains no
    /// round-trip time.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            rtt_us: u32_at(68)?,
            // All bits set: no round-trip time yet.
            rtt_min_us: u32_at(148).filter(|&rtt_us| rtt_us != u32::MAX),
            retransmits: u32_at(100)?,
            segments_sent: u32_at(136),
            segments_received: u32_at(140),
            received_twice: u32_at(216),
            out_of_order: u32_at(224),
            bytes_received: u64_at(128),
            busy_us: u64_at(168).zip(u64_at(176)).zip(u64_at(184)).map(|((all, peer), own)| [all, peer, own]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_info_fields_match_the_kernel() {
        let mut bytes = [0; 240];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        for (at, value) in [(68, 1_500_u32), (100, 3), (136, 40), (140, 50), (148, 900), (216, 2), (224, 7)] {
            put(at, &value.to_ne_bytes());
        }
        for (at, value) in [(128, 123_456_u64), (168, 9_000), (176, 4_000), (184, 2_000)] {
            put(at, &value.to_ne_bytes());
        }
        let info = TcpInfo {
            rtt_us: 1_500,
            rtt_min_us: Some(900),
            retransmits: 3,
            segments_sent: Some(40),
            segments_received: Some(50),
            received_twice: Some(2),
            out_of_order: Some(7),
            bytes_received: Some(123_456),
            busy_us: Some([9_000, 4_000, 2_000]),
        };
        assert_eq!(TcpInfo::decode(&bytes), Some(info));
        let older = TcpInfo { received_twice: None, out_of_order: None, ..info };
        assert_eq!(TcpInfo::decode(&bytes[..192]), Some(older));
        let oldest = TcpInfo { rtt_us: 1_500, retransmits: 3, ..TcpInfo::default() };
        assert_eq!(TcpInfo::decode(&bytes[..104]), Some(oldest));
        assert_eq!(TcpInfo::decode(&bytes[..100]), None);
    }
}
