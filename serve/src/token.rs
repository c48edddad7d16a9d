//! Tokens of events, timers and wakeups.

/// Names what an event is for: the listener, the stop signal, the inbox, or the connection in a
/// slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PollToken(pub u64);

impl PollToken {
    // `Poll` reserves the largest number.
    pub(super) const LISTENER: Self = Self(u64::MAX - 3);
    pub(super) const STOP: Self = Self(u64::MAX - 1);
    pub(super) const INBOX: Self = Self(u64::MAX - 2);

    /// A connection, identified by its slot and the number of earlier connections in the slot.
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
