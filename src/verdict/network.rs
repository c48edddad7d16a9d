//! Computes the state of the network from readings of connections.

use onrush_stats::Sockets;

use super::Network;

impl Network {
    /// Computes means and shares from sums over readings; `None` without a reading.
    pub fn of(sockets: &Sockets, lost_per_request: f64) -> Option<Self> {
        let of = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let of_time = |at: usize| of(sockets.busy_us[at], sockets.between_readings_us);
        Some(Self {
            readings: sockets.readings,
            rtt_us: of(sockets.rtt_sum_us, sockets.readings)?,
            rtt_min_us: sockets.rtt_min_us.map(f64::from),
            retransmitted: of(sockets.retransmits, sockets.segments_sent).unwrap_or_default(),
            out_of_order: sockets.out_of_order.and_then(|segments| of(segments, sockets.segments_received)),
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
    fn sums_become_means_and_shares_and_what_was_not_counted_is_left_out() {
        let sockets = Sockets {
            readings: 4,
            in_flight: 2,
            half_answered: 1,
            rtt_sum_us: 1_000,
            rtt_min_us: Some(100),
            segments_sent: 50,
            segments_received: 200,
            retransmits: 5,
            out_of_order: Some(20),
            between_readings_us: 1_000_000,
            busy_us: [500_000, 250_000, 125_000],
        };
        let network = Network {
            readings: 4,
            rtt_us: 250.0,
            rtt_min_us: Some(100.0),
            retransmitted: 0.1,
            out_of_order: Some(0.1),
            lost_per_request: 0.5,
            busy: Some(0.5),
            window_limited: Some(0.25),
            buffer_limited: Some(0.125),
            half_answered: Some(0.5),
        };
        assert_eq!(Network::of(&sockets, 0.5), Some(network));
        let once = Sockets { readings: 1, rtt_sum_us: 7, ..Sockets::default() };
        assert_eq!(Network::of(&once, 0.0), Some(Network { readings: 1, rtt_us: 7.0, ..Network::default() }));
        assert_eq!(Network::of(&Sockets::default(), 0.0), None);
    }
}
