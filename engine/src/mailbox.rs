//! Hands a worker's intervals to the collector: two boxes and no lock.
//!
//! There are two intervals. The worker fills one; the other is in the mailbox, empty or full, or with the collector. If
//! no empty interval is available, the worker keeps filling its own, so that nothing is lost and nothing waits.

use crossbeam_utils::atomic::AtomicCell;

use onrush_stats::Interval;

/// Hand-over point for one worker's intervals.
pub struct Mailbox {
    full: AtomicCell<Option<Box<Interval>>>,
    empty: AtomicCell<Option<Box<Interval>>>,
}

// A cell larger than a pointer would take a lock.
const _: () = assert!(AtomicCell::<Option<Box<Interval>>>::is_lock_free());

impl Default for Mailbox {
    fn default() -> Self {
        Self { full: AtomicCell::new(None), empty: AtomicCell::new(Some(Box::default())) }
    }
}

impl Mailbox {
    /// Swaps the worker's interval for an empty one. Returns false, and leaves `current` as it is, if the collector has
    /// not returned the last one yet.
    pub fn hand_over(&self, current: &mut Box<Interval>) -> bool {
        let fresh = self.empty.take();
        let is_there = fresh.is_some();
        if let Some(fresh) = fresh {
            self.full.store(Some(std::mem::replace(current, fresh)));
        }
        is_there
    }

    /// Passes the full interval, if there is one, to `take`. Then empties the interval and returns it to the mailbox.
    pub fn collect(&self, take: impl FnOnce(&Interval)) {
        if let Some(mut interval) = self.full.take() {
            take(&interval);
            interval.clear();
            self.empty.store(Some(interval));
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush_stats::Totals;

    use super::*;

    #[test]
    fn late_collectors_lose_no_interval() {
        let (mailbox, mut totals) = (Mailbox::default(), Totals::default());
        let mut current = Box::<Interval>::default();
        for round in 0..10 {
            current.counters.completed += 1;
            mailbox.hand_over(&mut current);
            if round % 3 == 0 {
                mailbox.collect(|interval| totals += interval);
            }
        }
        mailbox.collect(|interval| totals += interval);
        totals += &*current;
        assert_eq!(totals.counters.completed, 10);
    }

    #[test]
    fn hand_overs_between_threads_lose_nothing() {
        let mailbox = Mailbox::default();
        let mut totals = Totals::default();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut current = Box::<Interval>::default();
                for _ in 0..2_000 {
                    current.counters.completed += 1;
                    current.latency.record(1_000);
                    mailbox.hand_over(&mut current);
                }
                current
            });
            while !worker.is_finished() {
                mailbox.collect(|interval| totals += interval);
            }
            let last = worker.join().expect("the worker ends well");
            mailbox.collect(|interval| totals += interval);
            totals += &*last;
        });
        assert_eq!((totals.counters.completed, totals.latency.count()), (2_000, 2_000));
    }
}
