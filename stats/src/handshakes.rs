//! TLS handshakes and their negotiated parameters.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The result of one handshake, as protocol numbers; zero for parameters that were not negotiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Negotiated {
    /// The version: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3.
    pub version: u16,
    /// The cipher suite.
    pub suite: u16,
    /// The group of the key exchange; zero if a session was resumed without one.
    pub group: u16,
    /// True if the protocol is HTTP/2 (ALPN).
    pub is_http2: bool,
}

/// The handshakes while measuring, and the parameters of all connections used, some of which had their handshake before
/// measuring began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Number of handshakes.
    pub total: u64,
    /// Number of handshakes that resumed a session.
    pub resumed: u64,
    /// Parameters in use, ascending, with the number of connections.
    in_use: Vec<(Negotiated, u64)>,
}

impl Handshakes {
    /// Records one handshake and the resulting parameters of its connection.
    pub fn record(&mut self, negotiated: Negotiated, resumed: bool) {
        self.total += 1;
        self.resumed += u64::from(resumed);
        self.record_existing(negotiated, 1);
    }

    /// Records the parameters of existing connections.
    pub fn record_existing(&mut self, negotiated: Negotiated, connections: u64) {
        match self.in_use.binary_search_by_key(&negotiated, |&(known, _)| known) {
            Ok(index) => self.in_use[index].1 += connections,
            Err(index) => self.in_use.insert(index, (negotiated, connections)),
        }
    }

    /// Parameters in use with the number of connections, the most frequent first.
    pub fn parameters_in_use(&self) -> Vec<(Negotiated, u64)> {
        let mut in_use = self.in_use.clone();
        in_use.sort_by_key(|&(negotiated, count)| (std::cmp::Reverse(count), negotiated));
        in_use
    }

    /// Number of different combinations of parameters in use.
    pub fn distinct_count(&self) -> usize {
        self.in_use.len()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        (self.total, self.resumed) = (0, 0);
        self.in_use.clear();
    }
}

impl AddAssign<&Self> for Handshakes {
    fn add_assign(&mut self, other: &Self) {
        self.total += other.total;
        self.resumed += other.resumed;
        other.in_use.iter().for_each(|&(negotiated, count)| self.record_existing(negotiated, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_frequent_parameters_come_first() {
        let new = Negotiated { version: 0x0304, suite: 0x1301, group: 0x001d, is_http2: true };
        let old = Negotiated { version: 0x0303, suite: 0xc02f, group: 0, is_http2: false };
        let (mut one, mut other) = (Handshakes::default(), Handshakes::default());
        one.record(old, true);
        one.record(new, false);
        other.record(new, false);
        one += &other;
        assert_eq!(one.parameters_in_use(), [(new, 2), (old, 1)]);
        assert_eq!((one.total, one.resumed), (3, 1));
        one.record_existing(old, 5);
        assert_eq!(one.parameters_in_use(), [(old, 6), (new, 2)]);
        assert_eq!((one.total, one.resumed), (3, 1), "found connections had their handshakes before");
    }
}
