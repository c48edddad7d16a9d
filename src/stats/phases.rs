//! How long the phases of connections and requests lasted. Nothing here is ever corrected.

use std::ops::AddAssign;

use super::{Count, Distribution};

/// The phases, each in nanoseconds.
#[derive(Clone, Debug)]
pub struct Phases<C: Count> {
    /// Opening a connection, up to the moment at which a request can be sent: one for each connection established.
    pub connect: Distribution<C>,
    /// The part of it that the TLS handshake took; `None` until there is one.
    pub tls: Option<Box<Distribution<C>>>,
    /// First byte of a request handed to the kernel, to the first byte of its response: one for each response.
    pub ttfb: Distribution<C>,
    /// First byte of a response, to its last: one for each response.
    pub ttlb: Distribution<C>,
}

impl<C: Count> Phases<C> {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.connect.clear();
        if let Some(tls) = &mut self.tls {
            tls.clear();
        }
        self.ttfb.clear();
        self.ttlb.clear();
    }
}

impl<C: Count> Default for Phases<C> {
    fn default() -> Self {
        Self {
            connect: Distribution::default(),
            tls: None,
            ttfb: Distribution::default(),
            ttlb: Distribution::default(),
        }
    }
}

impl<A: Count, B: Count> AddAssign<&Phases<B>> for Phases<A> {
    fn add_assign(&mut self, other: &Phases<B>) {
        self.connect += &other.connect;
        if let Some(tls) = other.tls.as_deref().filter(|tls| tls.count() > 0) {
            **self.tls.get_or_insert_default() += tls;
        }
        self.ttfb += &other.ttfb;
        self.ttlb += &other.ttlb;
    }
}
