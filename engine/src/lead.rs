//! Time by which preparation precedes a request's due time, so that the request leaves on time.

use onrush_proto::Nanos;

/// Upper limit on the lead, in nanoseconds: nothing is received during it.
const MAX_NS: u64 = 10_000;

/// The lead grows by 1/`UP` when it was too short, and shrinks by 1/`DOWN` otherwise. So it settles where it is long
/// enough for 16 of 17 requests.
const UP: u64 = 16;
const DOWN: u64 = 256;

/// Time by which preparation precedes a request's due time.
#[derive(Debug)]
pub(super) struct Lead {
    ns: u64,
}

impl Default for Lead {
    /// The lead before any preparation has been timed.
    fn default() -> Self {
        Self { ns: MAX_NS / 2 }
    }
}

impl Lead {
    /// Start of preparation for a request due at this moment.
    pub fn preparation_start(&self, due: Nanos) -> Nanos {
        Nanos(due.0.saturating_sub(self.ns))
    }

    /// Adjusts the lead to a preparation that took this long, in nanoseconds. A very long one is ignored: other
    /// processes had the processor, or no lead would help.
    pub fn adjust_to(&mut self, took_ns: u64) {
        if took_ns > 4 * MAX_NS {
            return;
        }
        if took_ns > self.ns {
            self.ns = (self.ns + self.ns / UP + 1).min(MAX_NS);
        } else {
            self.ns -= self.ns / DOWN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After learning from 1,000 requests: number of the next 1,000 for which the lead is enough, and their mean wait
    /// until they are due, in nanoseconds.
    fn enough(took_ns: impl Fn(u64) -> u64) -> (usize, u64) {
        let mut lead = Lead::default();
        let mut left = Vec::new();
        for number in 0..2_000 {
            let took_ns = took_ns(number);
            left.extend((number >= 1_000).then(|| lead.ns.checked_sub(took_ns)).flatten());
            lead.adjust_to(took_ns);
            assert!((DOWN - 1..=MAX_NS).contains(&lead.ns), "{lead:?}");
        }
        (left.len(), left.iter().sum::<u64>() / left.len().max(1) as u64)
    }

    #[test]
    fn leads_suffice_for_most_requests() {
        let (count, left_ns) = enough(|number| 1_000 + number * 7 % 10 * 100);
        assert!((900..1_000).contains(&count) && left_ns < 600, "{count} {left_ns}");
        let (count, left_ns) = enough(|_| 2_000);
        assert!(count > 900 && left_ns < 100, "{count} {left_ns}");
        let (count, left_ns) = enough(|number| if number % 50 == 0 { 9_000 } else { 1_500 });
        assert!(count > 900 && left_ns < 200, "one in fifty changes little: {count} {left_ns}");
        let (count, _) = enough(|number| if number % 2 == 0 { 12_000 } else { 9_000 });
        assert_eq!(count, 500, "it helps in part");
        let (count, left_ns) = enough(|number| if number % 2 == 0 { 1_000_000 } else { 1_500 });
        assert!(
            (450..500).contains(&count) && left_ns < 100,
            "those that no lead helps change nothing: {count} {left_ns}"
        );
    }
}
