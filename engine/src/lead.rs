//! How long before a request is due its preparation begins, so that it leaves on time: as long as that takes.

use onrush_proto::Nanos;

use crate::backend::Backend;

/// The most it may be, in nanoseconds: nothing is received meanwhile.
const MAX_NS: u64 = 20_000;

/// How long before a request is due its preparation begins.
#[derive(Debug)]
pub(super) struct Lead {
    ns: u64,
}

impl Default for Lead {
    /// Until it is known how long preparing takes.
    fn default() -> Self {
        Self { ns: MAX_NS / 4 }
    }
}

impl Lead {
    /// When to begin what is to leave at this moment: no sooner where it would leave at once.
    pub fn before<B: Backend>(&self, due: Nanos) -> Nanos {
        if B::GATHERS { Nanos(due.0.saturating_sub(self.ns)) } else { due }
    }

    /// Preparing took this long, in nanoseconds. The lead is to be enough nearly always, which makes little difference to
    /// how long nothing is received: preparing takes most of it.
    pub fn learn(&mut self, took_ns: u64) {
        let took_ns = took_ns.min(MAX_NS);
        if took_ns > self.ns {
            self.ns += (took_ns - self.ns).div_ceil(4);
        } else {
            self.ns -= (self.ns - took_ns) / 32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_enough_nearly_always_and_never_long() {
        let mut lead = Lead::default();
        for round in 0..1_000_u64 {
            lead.learn(1_000 + round % 10 * 100);
        }
        assert!((1_700..2_000).contains(&lead.ns), "{lead:?}");
        (0..100).for_each(|_| lead.learn(1_000_000));
        assert_eq!(lead.ns, MAX_NS);
        (0..1_000).for_each(|_| lead.learn(0));
        assert!(lead.ns < 100, "{lead:?}");
    }
}
