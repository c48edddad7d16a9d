//! Finds silences: periods of a run during which no response completed, with exact start and end times.
//!
//! Each worker records the long gaps between its own completions. In the intersection of all workers' gaps, no worker
//! completed anything; such a silence starts and ends with a completion by one of them. If a schedule or a script
//! decides when requests are sent, there may have been no request in flight. So each worker also keeps the part of its
//! gaps in which it had a request in flight, and the times around them for which it had sent requests ahead of their
//! due times.

use serde::{Deserialize, Serialize};

/// Shorter gaps, in nanoseconds, are not kept.
pub const GAP_MIN_NS: u64 = 200_000_000;

/// Largest number of gaps kept by one worker; if there are more, the longest are kept.
const GAPS_MAX: usize = 1024;

/// Largest number of times ahead kept per gap: the first ones and the last.
const AHEAD_MAX: usize = 64;

/// A time without any completion, in nanoseconds since measuring began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Time of the completion before the gap, or of the beginning of the run.
    pub from_ns: u64,
    /// Time of the completion after the gap, or of the end of the run.
    pub until_ns: u64,
}

/// The gaps of one worker.
#[derive(Clone, Debug, Default)]
pub struct Silences {
    last_ns: u64,
    /// Time since which a request has been in flight.
    asked_ns: Option<u64>,
    gaps: Vec<Gap>,
    awaited: Vec<Gap>,
    /// The times ahead that began since the last completion, and the time ahead before them.
    recent: Vec<Gap>,
    /// The times ahead that overlap the gaps.
    ahead: Vec<Gap>,
    /// True if requests in flight during a gap, or due in it, may still hold up responses.
    is_behind: bool,
}

/// The gaps of one worker, once it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerGaps {
    /// All gaps, in order. The last one is open-ended: other workers may have continued when this one had nothing left
    /// to do.
    pub gaps: Vec<Gap>,
    /// The parts of the gaps in which a request was awaited.
    pub awaited: Vec<Gap>,
    /// Times around the gaps, in order, in which the due requests had already been sent: each extends from the sending
    /// of a batch to the due time of the first request after it.
    pub ahead: Vec<Gap>,
}

impl Gap {
    /// A gap that covers a run of any length.
    pub const ALL: Self = Self { from_ns: 0, until_ns: u64::MAX };

    /// Length in nanoseconds.
    pub fn length_ns(self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

impl Silences {
    /// An empty list with room for all gaps, so that recording allocates nothing.
    pub fn new() -> Self {
        Self {
            gaps: Vec::with_capacity(GAPS_MAX + 1),
            awaited: Vec::with_capacity(GAPS_MAX + 1),
            recent: Vec::with_capacity(AHEAD_MAX),
            ahead: Vec::with_capacity(2 * GAPS_MAX + AHEAD_MAX),
            ..Self::default()
        }
    }

    /// Starts measuring: forgets everything except that requests are in flight, and keeps the memory.
    pub fn clear(&mut self) {
        (self.last_ns, self.is_behind) = (0, false);
        self.asked_ns = self.asked_ns.map(|_| 0);
        self.gaps.clear();
        self.awaited.clear();
        self.recent.clear();
        self.ahead.clear();
    }

    /// Records that a request was sent, this long after measuring began. Earlier requests without a response, including
    /// failed ones, still count as awaited.
    pub fn note_request_sent(&mut self, at_ns: u64) {
        self.asked_ns.get_or_insert(at_ns);
    }

    /// Records that a batch was sent at `at_ns`, and that the first request after it is due at `until_ns`.
    pub fn note_sent_ahead(&mut self, at_ns: u64, until_ns: u64) {
        // Of the intervals before the last completion, only the last may overlap the gap after it.
        let before = self.recent.partition_point(|ahead| ahead.from_ns < self.last_ns);
        self.recent.drain(..before.saturating_sub(1));
        if self.recent.len() == AHEAD_MAX {
            self.recent.pop();
        }
        self.recent.push(Gap { from_ns: at_ns, until_ns });
    }

    /// True if a response completed at this time may have been held up by a gap that another response ended, or by the
    /// resulting queue.
    pub fn may_be_held_up(&self, at_ns: u64) -> bool {
        self.is_behind && at_ns.saturating_sub(self.last_ns) < GAP_MIN_NS
    }

    /// Records that nothing is in flight or waiting to be sent: the queue left by a gap is gone.
    pub fn note_caught_up(&mut self) {
        self.is_behind = false;
    }

    /// Records a completion, this long after measuring began; `is_last`: no other request is in flight at that time.
    pub fn record_completion(&mut self, at_ns: u64, is_last: bool) {
        if at_ns.saturating_sub(self.last_ns) >= GAP_MIN_NS {
            self.keep_gap(at_ns);
            self.is_behind = true;
        }
        self.last_ns = at_ns;
        if is_last {
            self.asked_ns = None;
        }
    }

    /// Returns all gaps; the last one is open-ended. Requests sent at or after `ended_ns` do not count as awaited.
    pub fn into_worker_gaps(mut self, ended_ns: u64) -> WorkerGaps {
        self.asked_ns = self.asked_ns.filter(|asked_ns| *asked_ns < ended_ns);
        self.keep_gap(u64::MAX);
        WorkerGaps { gaps: self.gaps, awaited: self.awaited, ahead: self.ahead }
    }

    #[cold]
    fn keep_gap(&mut self, until_ns: u64) {
        let gap = Gap { from_ns: self.last_ns, until_ns };
        if push_longest(&mut self.gaps, gap, GAPS_MAX) {
            let gaps = &self.gaps;
            self.ahead.retain(|ahead| {
                gaps[gaps.partition_point(|gap| gap.until_ns <= ahead.from_ns)..]
                    .first()
                    .is_some_and(|gap| gap.from_ns < ahead.until_ns)
            });
        }
        let known_ns = self.ahead.last().map_or(0, |ahead| ahead.until_ns);
        let new = self
            .recent
            .iter()
            .filter(|ahead| ahead.from_ns.max(self.last_ns) < ahead.until_ns && ahead.until_ns > known_ns);
        self.ahead.extend(new);
        let awaited = self.asked_ns.map(|asked_ns| Gap { from_ns: self.last_ns.max(asked_ns), until_ns });
        if let Some(awaited) = awaited.filter(|awaited| awaited.length_ns() >= GAP_MIN_NS) {
            push_longest(&mut self.awaited, awaited, GAPS_MAX);
        }
    }
}

/// Appends a gap to a list in order. If the list already has `most`, first drops the shorter half and returns true.
pub fn push_longest(gaps: &mut Vec<Gap>, gap: Gap, most: usize) -> bool {
    let is_full = gaps.len() == most;
    if is_full {
        gaps.select_nth_unstable_by_key(most / 2, |gap| std::cmp::Reverse(gap.length_ns()));
        gaps.truncate(most / 2);
        gaps.sort_unstable_by_key(|gap| gap.from_ns);
    }
    gaps.push(gap);
    is_full
}

/// The intersection of two lists, each in order and without overlaps. Omits gaps that are too short to be kept.
pub fn common_gaps(some: &[Gap], others: &[Gap]) -> Vec<Gap> {
    let (mut left, mut right, mut gaps) = (some, others, Vec::new());
    while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        let gap = Gap { from_ns: first.from_ns.max(second.from_ns), until_ns: first.until_ns.min(second.until_ns) };
        if gap.length_ns() >= GAP_MIN_NS {
            gaps.push(gap);
        }
        // The gap that ends first cannot overlap the rest of the other list.
        if first.until_ns <= second.until_ns {
            left = left_rest;
        } else {
            right = right_rest;
        }
    }
    gaps
}

/// The parts of a gap that none of the others covers. The others must be in order and must not overlap.
pub fn uncovered_parts(gap: Gap, others: &[Gap]) -> Vec<Gap> {
    let mut left = gap;
    let mut parts = Vec::new();
    let first = others.partition_point(|other| other.until_ns <= gap.from_ns);
    for other in others[first..].iter().take_while(|other| other.from_ns < gap.until_ns) {
        parts.push(Gap { until_ns: other.from_ns, ..left });
        left.from_ns = left.from_ns.max(other.until_ns);
    }
    parts.push(left);
    parts.retain(|part| part.length_ns() > 0);
    parts
}

/// The union of two lists, in order and without overlaps.
pub fn union_of_gaps(some: &[Gap], others: &[Gap]) -> Vec<Gap> {
    let mut all = [some, others].concat();
    all.sort_unstable_by_key(|gap| gap.from_ns);
    let mut joined: Vec<Gap> = Vec::new();
    for gap in all {
        match joined.last_mut().filter(|last| gap.from_ns <= last.until_ns) {
            Some(last) => last.until_ns = last.until_ns.max(gap.until_ns),
            None => joined.push(gap),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The gaps of a worker with completions at these milliseconds, in milliseconds.
    fn gaps_between(completions_ms: &[u64]) -> Vec<Gap> {
        let mut silences = Silences::new();
        completions_ms.iter().for_each(|ms| silences.record_completion(ms * MS, true));
        silences.into_worker_gaps(u64::MAX).gaps
    }

    fn gaps_in_ms(gaps: &[Gap]) -> Vec<(u64, u64)> {
        gaps.iter().map(|gap| (gap.from_ns / MS, gap.until_ns / MS)).collect()
    }

    #[test]
    fn gaps_are_exact_and_end_open() {
        let end = u64::MAX / MS;
        assert_eq!(gaps_in_ms(&gaps_between(&[])), [(0, end)]);
        assert_eq!(gaps_in_ms(&gaps_between(&[199, 398, 597])), [(597, end)], "too short");
        assert_eq!(
            gaps_in_ms(&gaps_between(&[250, 300, 301, 1_300, 1_299, 1_498])),
            [(0, 250), (301, 1_300), (1_498, end)]
        );
    }

    #[test]
    fn gaps_are_awaited_from_the_first_request() {
        let mut silences = Silences::new();
        silences.note_request_sent(1_000 * MS);
        silences.record_completion(1_001 * MS, true);
        // Two requests, the second answered a second later, followed by a third.
        silences.note_request_sent(2_000 * MS);
        silences.record_completion(2_001 * MS, false);
        silences.record_completion(3_001 * MS, true);
        silences.note_request_sent(4_000 * MS);
        silences.record_completion(4_500 * MS, true);
        // A request that fails, and another one after it.
        silences.note_request_sent(5_000 * MS);
        silences.note_request_sent(5_600 * MS);
        silences.record_completion(5_700 * MS, true);
        silences.note_request_sent(9_000 * MS);
        let awaited_until = |ms: u64| gaps_in_ms(&silences.clone().into_worker_gaps(ms * MS).awaited).len();
        assert_eq!([9_000, 9_001].map(awaited_until), [3, 4], "requests sent after the end are not awaited");
        let WorkerGaps { gaps, awaited, .. } = silences.into_worker_gaps(u64::MAX);
        let end = u64::MAX / MS;
        let expected = [(0, 1_001), (1_001, 2_001), (2_001, 3_001), (3_001, 4_500), (4_500, 5_700), (5_700, end)];
        assert_eq!(gaps_in_ms(&gaps), expected);
        assert_eq!(gaps_in_ms(&awaited), [(2_001, 3_001), (4_000, 4_500), (5_000, 5_700), (9_000, end)]);
    }

    #[test]
    fn earlier_requests_are_awaited_from_the_start() {
        let mut silences = Silences::new();
        silences.note_request_sent(1_000 * MS);
        silences.clear();
        silences.record_completion(300 * MS, true);
        silences.clear();
        assert_eq!(gaps_in_ms(&silences.clone().into_worker_gaps(u64::MAX).awaited), []);
        silences.note_request_sent(50 * MS);
        silences.record_completion(300 * MS, true);
        assert_eq!(gaps_in_ms(&silences.into_worker_gaps(u64::MAX).awaited), [(50, 300)]);
    }

    #[test]
    fn times_ahead_are_kept_around_gaps() {
        let mut silences = Silences::new();
        // A batch for 300 ms each time, answered after 2 ms; the fourth is answered after 700 ms, when two more have
        // left.
        for (sent_ms, answered_ms) in
            [(0, Some(2)), (300, Some(302)), (600, Some(602)), (900, None), (1_200, None), (1_500, Some(1_600))]
        {
            silences.note_sent_ahead(sent_ms * MS, (sent_ms + 300) * MS);
            answered_ms.into_iter().for_each(|ms: u64| silences.record_completion(ms * MS, false));
        }
        // Nothing is missing between responses less than 200 ms apart.
        (17..=20).for_each(|tenth| silences.record_completion(tenth * 100 * MS, false));
        silences.note_sent_ahead(2_010 * MS, u64::MAX);
        silences.record_completion(2_011 * MS, true);
        let WorkerGaps { gaps, ahead, .. } = silences.into_worker_gaps(u64::MAX);
        let end = u64::MAX / MS;
        assert_eq!(gaps_in_ms(&gaps), [(2, 302), (302, 602), (602, 1_600), (2_011, end)]);
        let times: Vec<(u64, u64)> = (0..=5).map(|n| (300 * n, 300 * n + 300)).collect();
        assert_eq!(gaps_in_ms(&ahead), [&times[..], &[(2_010, end)]].concat());
    }

    #[test]
    fn times_ahead_are_kept_at_gap_ends() {
        let mut silences = Silences::new();
        silences.record_completion(5 * MS, false);
        (0..1_000).for_each(|n| silences.note_sent_ahead(10 * n * MS, 10 * (n + 1) * MS));
        silences.record_completion(9_995 * MS, true);
        let ahead = gaps_in_ms(&silences.into_worker_gaps(u64::MAX).ahead);
        assert_eq!((ahead.len(), ahead[0], ahead[AHEAD_MAX - 1]), (AHEAD_MAX, (0, 10), (9_990, 10_000)));
    }

    #[test]
    fn responses_are_held_while_queues_drain() {
        let mut silences = Silences::new();
        let mut held = |completions_ms: &[u64]| {
            let mut is_held = |ms: &u64| {
                let is_held = silences.may_be_held_up(ms * MS);
                silences.record_completion(ms * MS, false);
                is_held
            };
            let held: Vec<bool> = completions_ms.iter().map(&mut is_held).collect();
            silences.note_caught_up();
            held
        };
        assert_eq!(held(&[1, 501, 502, 700, 900, 901]), [false, false, true, true, false, true]);
        assert_eq!(held(&[902, 903, 1_203]), [false; 3]);
        assert_eq!(held(&[1_204, 1_500, 1_501]), [false, false, true]);
        silences.record_completion(2_000 * MS, false);
        silences.clear();
        assert!(!silences.may_be_held_up(1));
    }

    #[test]
    fn only_overlapping_gaps_are_compared() {
        // Looking at every other gap for each gap would take many minutes.
        let gaps =
            |from_ns: u64| (0..300_000).map(move |n| Gap { from_ns: 10 * n + from_ns, until_ns: 10 * n + from_ns + 5 });
        let others: Vec<Gap> = gaps(2).collect();
        let left: u64 = gaps(0).flat_map(|gap| uncovered_parts(gap, &others)).map(Gap::length_ns).sum();
        assert_eq!(left, 600_000);
    }

    #[test]
    fn covered_parts_are_cut_out() {
        let gap = |from_ms: u64, until_ms: u64| Gap { from_ns: from_ms * MS, until_ns: until_ms * MS };
        for (others, left) in [
            (vec![], vec![(100, 900)]),
            (vec![gap(0, 100), gap(900, 950)], vec![(100, 900)]),
            (vec![gap(0, 200), gap(300, 400), gap(850, 950)], vec![(200, 300), (400, 850)]),
            (vec![gap(50, 950)], vec![]),
        ] {
            assert_eq!(gaps_in_ms(&uncovered_parts(gap(100, 900), &others)), left);
        }
    }

    #[test]
    fn silences_are_common_to_all_workers() {
        let some = gaps_between(&[100, 1_300, 1_400, 2_500, 2_600]);
        let others = gaps_between(&[50, 200, 1_350, 2_450, 2_700]);
        let both = common_gaps(&some, &others);
        assert_eq!(
            gaps_in_ms(&both[..2]),
            [(200, 1_300), (1_400, 2_450)],
            "between the last before and the first after"
        );
        assert_eq!(gaps_in_ms(&both[2..]), [(2_700, u64::MAX / MS)]);
        assert_eq!(common_gaps(&others, &some), both, "in any order");
        assert_eq!(common_gaps(&[Gap::ALL], &some), some);
        let busy: Vec<u64> = (0..30).map(|tenth| tenth * 100).collect();
        assert_eq!(gaps_in_ms(&common_gaps(&some, &gaps_between(&busy))), [(2_900, u64::MAX / MS)]);
    }

    /// The common gaps equal those of a single worker with all completions, however they are distributed.
    #[test]
    fn silences_do_not_depend_on_worker_count() {
        let mut random = onrush_plan::Random::new(7);
        for _ in 0..200 {
            let mut at_ms = 0;
            let (mut all, mut dealt) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
            for _ in 0..30 {
                at_ms += 1 + random.next() % 400;
                all.push(at_ms);
                dealt[(random.next() % 3) as usize].push(at_ms);
            }
            let merged = dealt.iter().fold(vec![Gap::ALL], |gaps, worker| common_gaps(&gaps, &gaps_between(worker)));
            assert_eq!(merged, gaps_between(&all));
        }
    }

    #[test]
    fn longest_gaps_are_kept_in_order() {
        let mut silences = Silences::new();
        let mut at_ns = 0;
        for index in 0..10 * GAPS_MAX as u64 {
            at_ns += if index % 1_000 == 999 { 5_000 * MS } else { 250 * MS };
            silences.record_completion(at_ns, true);
        }
        let gaps = silences.into_worker_gaps(u64::MAX).gaps;
        assert!(gaps.len() <= GAPS_MAX && gaps.is_sorted_by_key(|gap| gap.from_ns), "{}", gaps.len());
        assert_eq!(gaps.iter().filter(|gap| gap.length_ns() == 5_000 * MS).count(), 10);
    }

    #[test]
    fn times_ahead_follow_kept_gaps() {
        let mut silences = Silences::new();
        for number in 0..10 * GAPS_MAX as u64 {
            let sent_ns = number * (300 * MS + 10);
            silences.note_sent_ahead(sent_ns, sent_ns + 300 * MS);
            silences.record_completion(sent_ns + 2 * MS + number % 7, true);
        }
        let WorkerGaps { gaps, ahead, .. } = silences.into_worker_gaps(u64::MAX);
        let is_covered =
            |gap: &&Gap| ahead.iter().any(|ahead| ahead.from_ns < gap.from_ns && gap.from_ns < ahead.until_ns);
        assert_eq!(gaps[1..].iter().filter(is_covered).count(), gaps.len() - 1);
        assert!(ahead.len() <= 2 * GAPS_MAX, "{}", ahead.len());
    }
}
