//! What client and server agreed on in TLS handshakes.

use std::ops::AddAssign;

/// What one handshake led to, in the numbers that go over the wire; zero where there is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Negotiated {
    /// The version: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3.
    pub version: u16,
    /// The cipher suite.
    pub suite: u16,
    /// The group of the key exchange; zero where an earlier session was resumed without one.
    pub group: u16,
}

/// What all handshakes led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// How many of them resumed an earlier session.
    pub resumed: u64,
    counts: Vec<(Negotiated, u64)>,
}

impl Handshakes {
    /// Takes note of one handshake.
    pub fn record(&mut self, negotiated: Negotiated, resumed: bool) {
        self.resumed += u64::from(resumed);
        self.add(negotiated, 1);
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// What they led to and how often, the most frequent first.
    pub fn counts(&self) -> Vec<(Negotiated, u64)> {
        let mut counts = self.counts.clone();
        counts.sort_by_key(|&(negotiated, count)| (std::cmp::Reverse(count), negotiated));
        counts
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.resumed = 0;
        self.counts.clear();
    }

    fn add(&mut self, negotiated: Negotiated, more: u64) {
        match self.counts.iter_mut().find(|(known, _)| *known == negotiated) {
            Some((_, count)) => *count += more,
            None => self.counts.push((negotiated, more)),
        }
    }
}

impl AddAssign<&Self> for Handshakes {
    fn add_assign(&mut self, other: &Self) {
        self.resumed += other.resumed;
        other.counts.iter().for_each(|&(negotiated, count)| self.add(negotiated, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_agreement_is_counted_and_the_most_frequent_comes_first() {
        let new = Negotiated { version: 0x0304, suite: 0x1301, group: 0x001d };
        let old = Negotiated { version: 0x0303, suite: 0xc02f, group: 0 };
        let (mut one, mut other) = (Handshakes::default(), Handshakes::default());
        one.record(old, true);
        one.record(new, false);
        other.record(new, false);
        one += &other;
        assert_eq!(one.counts(), [(new, 2), (old, 1)]);
        assert_eq!((one.total(), one.resumed), (3, 1));
    }
}
