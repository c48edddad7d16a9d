//! What of a response is kept for a script, and the memory that all kept bodies share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most memory that the bodies kept at one time take in the whole process, in bytes: servers that never end may not
/// use up all there is.
const BODIES_MAX: usize = 256 * 1024 * 1024;
/// So much memory of an earlier response stays with a connection, in bytes.
const KEPT_MAX: usize = 64 * 1024;
/// A body asks for at least so much at once, in bytes, however small the pieces in which it comes.
const STEP_BYTES: usize = 512;

/// Memory that all workers share, in bytes. It is asked for when a body needs more than its connection has, not for
/// each body.
#[derive(Debug)]
pub struct Budget {
    max: usize,
    left: AtomicUsize,
}

impl Budget {
    /// So many bytes.
    pub fn of(max: usize) -> Self {
        Self { max, left: AtomicUsize::new(max) }
    }

    /// Takes as much of `wanted` as there is; returns how much that was.
    fn take(&self, wanted: usize) -> usize {
        let take = |left: usize| Some(left - left.min(wanted));
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        before.map_or(0, |left| left.min(wanted))
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether so much is in use that nobody should keep any for later.
    fn is_tight(&self) -> bool {
        self.left.load(Ordering::Relaxed) < self.max / 2
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(BODIES_MAX)
    }
}

/// What of a response is kept for the script.
#[derive(Debug)]
pub(super) struct Kept {
    pub head: Vec<u8>,
    pub trailers: Vec<u8>,
    pub body: Body,
}

impl Kept {
    /// Nothing yet; bodies take their memory from `budget`.
    pub fn new(budget: &Arc<Budget>) -> Self {
        let body = Body { bytes: Vec::new(), is_cut: false, taken: 0, budget: Arc::clone(budget) };
        Self { head: Vec::new(), trailers: Vec::new(), body }
    }

    /// Forgets the response and keeps the memory, unless that is much.
    pub fn clear(&mut self) {
        for part in [&mut self.head, &mut self.trailers] {
            part.clear();
            part.shrink_to(KEPT_MAX);
        }
        self.body.clear();
    }
}

/// The memory of a connection for what is kept of its responses.
pub(super) struct Shelf {
    /// What ended responses have left; in boxes, as open requests have them.
    #[expect(clippy::vec_box, reason = "a response takes one along without moving what is in it")]
    free: Vec<Box<Kept>>,
    budget: Arc<Budget>,
}

impl Shelf {
    /// Nothing yet; bodies take their memory from `budget`.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Self { free: Vec::new(), budget: Arc::clone(budget) }
    }

    /// A place for one response.
    pub fn take(&mut self) -> Box<Kept> {
        self.free.pop().unwrap_or_else(|| Box::new(Kept::new(&self.budget)))
    }

    /// Takes the place of a response back that nobody looks at any more.
    pub fn put_back(&mut self, mut kept: Box<Kept>) {
        kept.clear();
        self.free.push(kept);
    }
}

/// A body as far as it is kept.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Vec<u8>,
    is_cut: bool,
    /// How much it has of the budget.
    taken: usize,
    budget: Arc<Budget>,
}

impl Body {
    /// What there is of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds what there is room for; returns whether the body was cut here. Of a body that was cut nothing further is kept.
    pub fn add(&mut self, data: &[u8]) -> bool {
        if self.is_cut {
            return false;
        }
        if data.len() > self.room() {
            self.grow(data.len() - self.room());
        }
        let room = self.room();
        self.bytes.extend_from_slice(&data[..data.len().min(room)]);
        self.is_cut = data.len() > room;
        self.is_cut
    }

    fn room(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Makes room for `missing` bytes more and some to come, as far as the budget and the system have them.
    fn grow(&mut self, missing: usize) {
        let granted = self.budget.take(missing.max(self.bytes.capacity() / 2).max(STEP_BYTES));
        if self.bytes.try_reserve_exact(self.room() + granted).is_ok() {
            self.taken += granted;
        } else {
            self.budget.give_back(granted);
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.is_cut = false;
        if self.taken > 0 {
            let stays = if self.budget.is_tight() { 0 } else { self.taken.min(KEPT_MAX) };
            self.bytes.shrink_to(stays);
            self.budget.give_back(self.taken - stays);
            self.taken = stays;
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.budget.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_once_where_the_budget_ends() {
        let budget = Arc::new(Budget::of(1000));
        let (mut one, mut other) = (Kept::new(&budget), Kept::new(&budget));
        assert!(!one.body.add(&[1; 400]) && !other.body.add(&[2; 400]));
        assert!(!one.body.add(&[1; 100]), "it has asked for more than it needed at once");
        assert!(other.body.add(&[2; 100]) && !other.body.add(&[2; 100]), "said once");
        assert_eq!((one.body.bytes().len(), other.body.bytes().len()), (500, 488));
        other.clear();
        drop(one);
        assert!(!other.body.add(&[3; 1000]) && other.body.add(&[3]));
        assert_eq!(other.body.bytes(), [3; 1000]);
    }

    #[test]
    fn everything_taken_is_given_back_and_little_is_kept_meanwhile() {
        let budget = Arc::new(Budget::of(10 * KEPT_MAX));
        let mut kept: Vec<Kept> = (0..20).map(|_| Kept::new(&budget)).collect();
        for kept in &mut kept {
            for length in [1, 7, 3 * KEPT_MAX, 9] {
                assert!(!kept.body.add(&vec![0; length]), "what earlier connections keep takes nothing from this one");
            }
            kept.clear();
            assert!(kept.body.taken <= KEPT_MAX && kept.body.bytes.capacity() <= KEPT_MAX);
        }
        assert!(budget.left.load(Ordering::Relaxed) >= budget.max / 2 - KEPT_MAX);
        drop(kept);
        assert_eq!(budget.left.load(Ordering::Relaxed), budget.max);
    }
}
