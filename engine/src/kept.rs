//! The parts of a response kept for a script or as a sample, and their shared memory budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onrush_proto::http1;

/// Default limit on the memory for kept parts, in bytes: a server that never stops sending must not use up all memory.
const PARTS_MAX: usize = 256 * 1024 * 1024;
/// Memory that a connection keeps for later from one part of a response, in bytes.
const KEPT_MAX: usize = 64 * 1024;
/// Smallest amount that a body takes from the budget at once, in bytes, however small its pieces.
const STEP_BYTES: usize = 512;

/// Memory shared by all workers, in bytes. Accessed only when a part needs more than its connection has, not for each
/// part.
#[derive(Debug)]
pub struct Budget {
    max: usize,
    left: AtomicUsize,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn with_capacity(max: usize) -> Self {
        Self { max, left: AtomicUsize::new(max) }
    }

    /// Takes up to `wanted` bytes. Returns the number taken.
    fn take_up_to(&self, wanted: usize) -> usize {
        let take = |left: usize| Some(left - left.min(wanted));
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        before.map_or(0, |left| left.min(wanted))
    }

    fn return_bytes(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// True if more than half is in use: connections must then keep no memory for later.
    fn is_tight(&self) -> bool {
        self.left.load(Ordering::Relaxed) < self.max / 2
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::with_capacity(PARTS_MAX)
    }
}

/// The parts of a response kept for the script or as a sample.
#[derive(Debug)]
pub(super) struct KeptResponse {
    pub head: Part,
    pub trailers: Part,
    pub body: Part,
}

impl KeptResponse {
    /// An empty response, whose parts take their memory from `budget`.
    pub fn new(budget: &Arc<Budget>) -> Self {
        let part = || Part { bytes: Vec::new(), is_cut: false, taken: 0, budget: Arc::clone(budget) };
        Self { head: part(), trailers: part(), body: part() }
    }

    /// True if a part did not fit.
    pub fn was_truncated(&self) -> bool {
        self.head.is_cut || self.trailers.is_cut || self.body.is_cut
    }

    /// Forgets the response but keeps the memory, up to a limit.
    pub fn clear(&mut self) {
        for part in [&mut self.head, &mut self.trailers, &mut self.body] {
            part.clear();
        }
    }
}

/// A connection's pool of memory for kept responses, which is reused.
pub(super) struct KeptResponsePool {
    /// Memory of ended responses; boxed, as in open requests.
    #[expect(clippy::vec_box, reason = "a request takes a box without moving its contents")]
    free: Vec<Box<KeptResponse>>,
    budget: Arc<Budget>,
}

impl KeptResponsePool {
    /// An empty pool, whose responses take their memory from `budget`.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Self { free: Vec::new(), budget: Arc::clone(budget) }
    }

    /// Takes the memory for one response from the pool, or makes some if the pool is empty.
    pub fn take_memory(&mut self) -> Box<KeptResponse> {
        self.free.pop().unwrap_or_else(|| Box::new(KeptResponse::new(&self.budget)))
    }

    /// Takes back the memory of a response that is no longer needed.
    pub fn recycle_memory(&mut self, mut kept: Box<KeptResponse>) {
        kept.clear();
        self.free.push(kept);
    }
}

/// The kept bytes of a head, a body or trailers.
#[derive(Debug)]
pub(super) struct Part {
    bytes: Vec<u8>,
    is_cut: bool,
    /// Number of bytes taken from the budget.
    taken: usize,
    budget: Arc<Budget>,
}

impl Part {
    /// The bytes kept, which may be only the beginning.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds bytes while there is room; the rest is not kept.
    pub fn add(&mut self, data: &[u8]) {
        if self.is_cut {
            return;
        }
        if data.len() > self.room() {
            self.grow(data.len() - self.room());
        }
        let room = self.room();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
        self.is_cut = data.len() > room;
    }

    /// Adds the lines appended by `write` while there is room.
    pub fn add_lines(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_cut {
            return;
        }
        write(&mut self.bytes);
        let missing = self.bytes.capacity() - self.taken;
        if missing > 0 {
            self.taken += self.budget.take_up_to(missing);
        }
        if self.taken < self.bytes.capacity() {
            self.is_cut = true;
            self.bytes.truncate(self.taken);
            self.bytes.truncate(self.bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
            self.bytes.shrink_to(self.taken);
        }
    }

    /// Unfolds the folded lines from the byte `start` on.
    pub fn unfold(&mut self, start: usize) {
        http1::unfold(&mut self.bytes, start);
    }

    fn room(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Makes room for `missing` more bytes, and for some after them, as far as the budget allows.
    fn grow(&mut self, missing: usize) {
        let granted = self.budget.take_up_to(missing.max(self.bytes.capacity() / 2).max(STEP_BYTES));
        self.bytes.reserve_exact(self.room() + granted);
        self.taken += granted;
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.is_cut = false;
        if self.taken > 0 {
            let stays = if self.budget.is_tight() { 0 } else { self.taken.min(KEPT_MAX) };
            self.bytes.shrink_to(stays);
            self.budget.return_bytes(self.taken - stays);
            self.taken = stays;
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.budget.return_bytes(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_cut_at_the_budget() {
        let budget = Arc::new(Budget::with_capacity(1000));
        let (mut one, mut other) = (KeptResponse::new(&budget), KeptResponse::new(&budget));
        one.body.add(&[1; 400]);
        other.body.add(&[2; 400]);
        one.body.add(&[1; 100]);
        assert!(!one.was_truncated(), "it has taken more than it needed at once");
        other.body.add(&[2; 100]);
        other.body.add(&[2; 1]);
        assert!(other.was_truncated());
        assert_eq!((one.body.bytes().len(), other.body.bytes().len()), (500, 488));
        other.clear();
        drop(one);
        other.body.add(&[3; 1000]);
        assert!(!other.was_truncated());
        other.body.add(&[3]);
        assert!(other.was_truncated() && other.body.bytes() == [3; 1000]);
    }

    #[test]
    fn heads_are_cut_after_whole_lines() {
        const HEAD: &[u8] = b"HTTP/2 200\na: 1\nb: 2\n";
        for max in 0..=40 {
            let budget = Arc::new(Budget::with_capacity(max));
            let mut kept = KeptResponse::new(&budget);
            kept.head.add_lines(|text| {
                text.reserve_exact(HEAD.len());
                text.extend_from_slice(HEAD);
            });
            let lines = [0, 11, 16, 21].into_iter().rfind(|&end| end <= max).unwrap();
            assert_eq!(kept.head.bytes(), &HEAD[..lines]);
            assert_eq!(kept.was_truncated(), max < HEAD.len());
            assert!(kept.head.bytes.capacity() <= max && budget.left.load(Ordering::Relaxed) == max - kept.head.taken);
            kept.head.add_lines(|text| text.extend_from_slice(b"c: 3\n"));
            assert!(kept.head.bytes().len() <= max);
            drop(kept);
            assert_eq!(budget.left.load(Ordering::Relaxed), max);
        }
    }

    #[test]
    fn trailers_are_unfolded_across_any_split() {
        let mut kept = KeptResponse::new(&Arc::default());
        for piece in [&b"A: b\r\n"[..], b" c", b"\r", b"\n\td\r\nE: f\r\n"] {
            let start = kept.trailers.bytes().len();
            kept.trailers.add_lines(|text| text.extend_from_slice(piece));
            kept.trailers.unfold(start);
        }
        assert_eq!(kept.trailers.bytes(), b"A: b   c  \td\r\nE: f\r\n");
    }

    #[test]
    fn memory_returns_to_the_budget() {
        let budget = Arc::new(Budget::with_capacity(10 * KEPT_MAX));
        let mut kept: Vec<KeptResponse> = (0..20).map(|_| KeptResponse::new(&budget)).collect();
        for kept in &mut kept {
            for length in [1, 7, 3 * KEPT_MAX, 9] {
                kept.body.add(&vec![0; length]);
                assert!(!kept.was_truncated(), "what earlier connections keep takes nothing from this one");
            }
            kept.clear();
            assert!(kept.body.taken <= KEPT_MAX && kept.body.bytes.capacity() <= KEPT_MAX);
        }
        assert!(budget.left.load(Ordering::Relaxed) >= budget.max / 2 - KEPT_MAX);
        drop(kept);
        assert_eq!(budget.left.load(Ordering::Relaxed), budget.max);
    }
}
