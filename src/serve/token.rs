//! The destination of an event, a timer or a call: something that a thread polls.

/// The listener, the stop signal, the inbox, or a slot and its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PollToken(pub u64);

impl PollToken {
    // The largest number is the own one of a `Poll`.
    pub(super) const LISTENER: Self = Self(u64::MAX - 3);
    pub(super) const STOP: Self = Self(u64::MAX - 1);
    pub(super) const INBOX: Self = Self(u64::MAX - 2);

    /// A connection: its slot, and how many the slot has had before.
    pub(super) fn of_slot(index: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index))
    }

    pub(super) fn index(self) -> usize {
        (self.0 as u32) as usize
    }

    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
