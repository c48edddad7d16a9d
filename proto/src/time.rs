//! Time as protocols and engine see it: nanoseconds since an origin chosen by the driver.

use std::ops::Add;

/// A moment, in nanoseconds since the driver's origin. This crate never reads a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The latest moment, which stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Nanoseconds from `earlier` to this moment; zero if it is not later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A moment some nanoseconds later; never past [`Nanos::MAX`].
impl Add<u64> for Nanos {
    type Output = Self;

    fn add(self, nanoseconds: u64) -> Self {
        Self(self.0.saturating_add(nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_arithmetic_saturates() {
        assert_eq!(Nanos(7).since(Nanos(3)), 4);
        assert_eq!(Nanos(3).since(Nanos(7)), 0);
        assert_eq!(Nanos(3) + 4, Nanos(7));
        assert_eq!(Nanos(3) + u64::MAX, Nanos::MAX);
    }
}
