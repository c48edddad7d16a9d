//! Sums of readings of some connections' [`TcpInfo`].

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::TcpInfo;

/// Sums over readings. Of each connection's counters, the increase since its previous reading is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketStats {
    /// Number of readings, one per connection and time.
    pub readings: u64,
    /// Readings with a request in flight.
    pub in_flight: u64,
    /// Readings with a partly received response.
    pub half_answered: u64,
    /// Sum of the smoothed round-trip times, in microseconds.
    pub rtt_sum_us: u64,
    /// Shortest round-trip time of all, in microseconds.
    pub rtt_min_us: Option<u32>,
    /// Segments sent.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Segments retransmitted needlessly: the peer received them twice. `None`: the kernel does not report them for
    /// some readings.
    pub needless: Option<u64>,
    /// Segments received out of order. `None`: the kernel does not report them for some readings.
    pub out_of_order: Option<u64>,
    /// Microseconds between consecutive readings that report `busy_us`, summed over connections.
    pub between_readings_us: u64,
    /// Microseconds with data in flight, and the parts limited by the peer's window and by our send buffer.
    pub busy_us: [u64; 3],
}

impl SocketStats {
    /// Records a reading of a connection. `before`: the previous reading of that connection, and its age in
    /// microseconds. Of a first reading, only the round-trip times count, because a retransmitted SYN, sent again after
    /// meeting a full accept queue, would also be in the counters.
    pub fn record_reading(&mut self, before: Option<(TcpInfo, u64)>, now: &TcpInfo) {
        let since = |of: fn(&TcpInfo) -> Option<u32>| {
            let (before, _) = before.as_ref()?;
            Some(u64::from(of(now)?.saturating_sub(of(before)?)))
        };
        // A first reading only shows that the kernel reports the counter.
        let reported = |of: fn(&TcpInfo) -> Option<u32>| if before.is_some() { since(of) } else { of(now).map(|_| 0) };
        let busy_us = before.and_then(|(before, passed_us)| {
            let (before, now) = (before.busy_us?, now.busy_us?);
            Some([0, 1, 2].map(|part| now[part].saturating_sub(before[part]).min(passed_us)))
        });
        *self += Self {
            readings: 1,
            rtt_sum_us: u64::from(now.rtt_us),
            rtt_min_us: now.rtt_min_us,
            segments_sent: since(|info| info.segments_sent).unwrap_or(0),
            segments_received: since(|info| info.segments_received).unwrap_or(0),
            retransmits: since(|info| Some(info.retransmits)).unwrap_or(0),
            needless: reported(|info| info.received_twice),
            out_of_order: reported(|info| info.out_of_order),
            between_readings_us: before.filter(|_| busy_us.is_some()).map_or(0, |(_, passed_us)| passed_us),
            busy_us: busy_us.unwrap_or_default(),
            ..Self::default()
        };
    }

    /// Segments retransmitted because they were lost: all retransmissions that are not known to be needless.
    pub fn lost_segments(&self) -> u64 {
        self.retransmits.saturating_sub(self.needless.unwrap_or(0))
    }
}

impl AddAssign for SocketStats {
    fn add_assign(&mut self, other: Self) {
        let readings = (self.readings, other.readings);
        let sum = |mine: Option<u64>, theirs: Option<u64>| match readings {
            (0, _) => theirs,
            (_, 0) => mine,
            _ => mine.zip(theirs).map(|(mine, theirs)| mine + theirs),
        };
        self.needless = sum(self.needless, other.needless);
        self.out_of_order = sum(self.out_of_order, other.out_of_order);
        self.readings += other.readings;
        self.in_flight += other.in_flight;
        self.half_answered += other.half_answered;
        self.rtt_sum_us += other.rtt_sum_us;
        self.rtt_min_us = self.rtt_min_us.into_iter().chain(other.rtt_min_us).min();
        self.segments_sent += other.segments_sent;
        self.segments_received += other.segments_received;
        self.retransmits += other.retransmits;
        self.between_readings_us += other.between_readings_us;
        for (mine, theirs) in self.busy_us.iter_mut().zip(other.busy_us) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_start_at_the_previous_reading() {
        let first = TcpInfo {
            rtt_us: 100,
            rtt_min_us: Some(90),
            retransmits: 1,
            segments_sent: Some(10),
            segments_received: Some(20),
            received_twice: Some(1),
            out_of_order: Some(2),
            bytes_received: Some(1),
            busy_us: Some([500, 200, 100]),
        };
        let second = TcpInfo {
            rtt_us: 300,
            rtt_min_us: Some(80),
            retransmits: 4,
            received_twice: Some(3),
            segments_sent: Some(15),
            busy_us: Some([900, 250, 100]),
            ..first
        };
        let mut sockets = SocketStats::default();
        sockets.record_reading(None, &first);
        sockets.record_reading(Some((first, 600)), &second);
        let expected = SocketStats {
            readings: 2,
            rtt_sum_us: 400,
            rtt_min_us: Some(80),
            segments_sent: 5,
            segments_received: 0,
            retransmits: 3,
            needless: Some(2),
            out_of_order: Some(0),
            between_readings_us: 600,
            busy_us: [400, 50, 0],
            ..SocketStats::default()
        };
        assert_eq!(sockets, expected);
        sockets.record_reading(Some((second, 600)), &TcpInfo { out_of_order: None, busy_us: None, ..second });
        assert_eq!((sockets.out_of_order, sockets.between_readings_us, sockets.readings), (None, 600, 3));
        let mut sum = SocketStats::default();
        sum += sockets;
        sum += expected;
        assert_eq!((sum.readings, sum.retransmits, sum.needless, sum.out_of_order), (5, 6, Some(4), None));
    }
}
