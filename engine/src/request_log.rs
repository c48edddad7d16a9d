//! A worker's request log: entries of a fixed size, passed on page by page. It formats nothing and waits for nobody. A
//! page for which there is no room is lost, and counted.

use std::sync::Arc;

use onrush_plan::Random;
use onrush_stats::{Counters, LogEntry};

/// Number of entries per page: so many that passing a page on costs next to nothing per request, and few enough for a
/// cache.
const PAGE: usize = 2048;

/// Takes a page of entries. Called by all workers, so it must never block.
pub type PassOn = Arc<dyn Fn(Vec<LogEntry>) -> Passed + Send + Sync>;

/// Outcome of passing on a page of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The page will be written.
    On,
    /// The page is lost: there was no room for it.
    NoRoom,
    /// Writing has ended; the reason is reported elsewhere.
    Nowhere,
}

/// One worker's request log, passed on whenever a page is full or handed over.
pub struct RequestLog {
    pass_on: PassOn,
    /// One in `one_of` requests is logged.
    one_of: u64,
    /// Draws one request from each group: a fixed position could pick the same request from a list every time.
    random: Random,
    /// Number of requests before the next logged one, and number of those after it in its group.
    before: u64,
    after: u64,
    page: Vec<LogEntry>,
}

impl RequestLog {
    /// A log of one in `one_of` requests, drawn with this seed. `one_of` is at least 1: every request.
    pub fn new(one_of: u64, seed: u64, pass_on: PassOn) -> Self {
        let mut log = Self { pass_on, one_of, random: Random::new(seed), before: 0, after: 0, page: Vec::new() };
        log.draw_from_group();
        log
    }

    /// Draws one request from the next group.
    fn draw_from_group(&mut self) {
        let place = self.random.below(self.one_of);
        (self.before, self.after) = (self.after + place, self.one_of - 1 - place);
    }

    /// True if the next started request goes into the log. Call once per started request.
    pub(super) fn picks_next_request(&mut self) -> bool {
        let is_picked = self.before == 0;
        if is_picked {
            self.draw_from_group();
        } else {
            self.before -= 1;
        }
        is_picked
    }

    pub(super) fn add(&mut self, entry: LogEntry, counters: &mut Counters) {
        if self.page.capacity() == 0 {
            self.page.reserve_exact(PAGE);
        }
        self.page.push(entry);
        if self.page.len() == PAGE {
            self.hand_over(counters);
        }
    }

    /// Passes on the current page.
    pub(super) fn hand_over(&mut self, counters: &mut Counters) {
        let count = self.page.len() as u64;
        if count == 0 {
            return;
        }
        let mut page = std::mem::take(&mut self.page);
        // Pages waiting to be written take up no more memory than necessary.
        page.shrink_to_fit();
        match (self.pass_on)(page) {
            Passed::On => counters.logged += count,
            Passed::NoRoom => counters.unlogged += count,
            Passed::Nowhere => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_random_request_per_group_is_logged() {
        let mut log = RequestLog::new(10, 1, Arc::new(|_| Passed::On));
        let picked: Vec<usize> = (0..1000).filter(|_| log.picks_next_request()).collect();
        assert_eq!(picked.iter().map(|number| number / 10).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        let places: std::collections::HashSet<usize> = picked.iter().map(|number| number % 10).collect();
        assert_eq!(places.len(), 10);
        let mut all = RequestLog::new(1, 1, Arc::new(|_| Passed::On));
        assert!((0..100).all(|_| all.picks_next_request()));
    }
}
