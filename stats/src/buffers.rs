//! The sizes that the kernel reports for connection buffers.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The smallest and largest buffer sizes of all connections, if they were read. The kernel reports twice the requested
/// size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferSizes {
    /// The receive buffers; `None`: sizes were not read, or there was no connection.
    pub rcvbuf: Option<Sizes>,
    /// The send buffers; `None`: sizes were not read, or there was no connection.
    pub sndbuf: Option<Sizes>,
}

/// Smallest and largest size of some buffers, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Smallest size, in bytes.
    pub min: u32,
    /// Largest size, in bytes.
    pub max: u32,
}

impl Sizes {
    /// The sizes of a single buffer.
    pub fn new(bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { min: bytes, max: bytes }
    }

    fn join(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl AddAssign for BufferSizes {
    fn add_assign(&mut self, other: Self) {
        let join = |mine: Option<Sizes>, theirs| mine.into_iter().chain(theirs).reduce(Sizes::join);
        self.rcvbuf = join(self.rcvbuf, other.rcvbuf);
        self.sndbuf = join(self.sndbuf, other.sndbuf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_smallest_and_largest() {
        let mut sum = BufferSizes::default();
        for bytes in [300, 100, 200] {
            sum += BufferSizes { rcvbuf: Some(Sizes::new(bytes)), sndbuf: None };
        }
        assert_eq!(sum, BufferSizes { rcvbuf: Some(Sizes { min: 100, max: 300 }), sndbuf: None });
    }
}
