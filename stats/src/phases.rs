//! The durations of the phases of connections and requests, never counted from due times.

use serde::{Deserialize, Serialize};

use super::{Count, Distribution};

/// The phases, each in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Phases<C: Count> {
    /// Opening a connection, until a request can be sent: one per established connection.
    pub connect: Distribution<C>,
    /// The TLS handshake, which is part of `connect`; `None` until there is one.
    pub tls: Option<Box<Distribution<C>>>,
    /// From the first byte of a request handed to the kernel to the first byte of its response: one per response.
    pub ttfb: Distribution<C>,
    /// From the first byte of a response to its last: one per response.
    pub ttlb: Distribution<C>,
    /// True while TTFB and TTLB are not recorded because all responses so far arrived in one piece: their TTFB is their
    /// latency, and their TTLB is zero. [`Self::record_omitted`] records both later.
    pub is_left_out: bool,
}

impl<C: Count> Phases<C> {
    /// Records the omitted phases, if any, of responses with these latencies.
    pub fn record_omitted(&mut self, latency: &Distribution<C>) {
        if self.is_left_out {
            self.is_left_out = false;
            self.add_left_out(latency);
        }
    }

    /// Adds the phases of other responses to those of responses with these latencies; phases omitted in both stay
    /// omitted.
    pub fn add_phases<B: Count>(&mut self, latency: &Distribution<C>, other: &Phases<B>, others: &Distribution<B>) {
        self.connect += &other.connect;
        if let Some(tls) = other.tls.as_deref().filter(|tls| tls.count() > 0) {
            **self.tls.get_or_insert_default() += tls;
        }
        if other.is_left_out && (self.is_left_out || latency.count() == 0) {
            self.is_left_out = true;
            return;
        }
        self.record_omitted(latency);
        if other.is_left_out {
            self.add_left_out(others);
        } else {
            self.ttfb += &other.ttfb;
            self.ttlb += &other.ttlb;
        }
    }

    fn add_left_out<B: Count>(&mut self, latency: &Distribution<B>) {
        self.ttfb += latency;
        self.ttlb.record_many(0, latency.count());
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.connect.clear();
        if let Some(tls) = &mut self.tls {
            tls.clear();
        }
        self.ttfb.clear();
        self.ttlb.clear();
        self.is_left_out = false;
    }
}

impl<C: Count> Default for Phases<C> {
    fn default() -> Self {
        Self {
            connect: Distribution::default(),
            tls: None,
            ttfb: Distribution::default(),
            ttlb: Distribution::default(),
            is_left_out: false,
        }
    }
}
