//! The streams reset by the client: frames that the server sent before it learned of the reset are not mistakes.

use std::collections::VecDeque;

/// Number of streams remembered individually.
const KEPT_MAX: usize = 64;

/// The streams that were reset.
#[derive(Debug, Default)]
pub(super) struct Resets {
    recent: VecDeque<u32>,
    /// The highest forgotten ID; nothing is certain about lower ones.
    forgotten: u32,
}

impl Resets {
    /// Remembers a reset stream, and forgets the oldest if there are too many.
    pub(super) fn remember_stream(&mut self, id: u32) {
        if self.recent.len() == KEPT_MAX
            && let Some(oldest) = self.recent.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest);
        }
        self.recent.push_back(id);
    }

    /// Number of heap bytes.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.recent.capacity() * size_of::<u32>()
    }

    /// True if a stream was reset, or may have been.
    pub(super) fn may_have(&self, id: u32) -> bool {
        id <= self.forgotten || self.recent.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_resets_excuse_old_streams() {
        let mut resets = Resets::default();
        let ids = |from: u32| (from..).step_by(4).take(KEPT_MAX);
        ids(9).for_each(|id| resets.remember_stream(id));
        assert!(ids(9).all(|id| resets.may_have(id) && !resets.may_have(id - 2)));
        resets.remember_stream(1001);
        assert!(resets.may_have(7) && resets.may_have(9) && !resets.may_have(11) && resets.may_have(1001));
    }
}
