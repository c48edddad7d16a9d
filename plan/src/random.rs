//! A small repeatable random sequence, for arrivals, jitter and simulated servers. Not for secrets.

use std::f64::consts::TAU;

/// SplitMix64 (Steele, Lea, Flood 2014): one chain of multiplications per number; any seed works.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence that follows from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, any of the 64-bit ones.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence of numbers, which nobody iterates over")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number, from `0..bound`; zero if the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// The next number, above 0 and up to 1, with the resolution of the mantissa: every value has a logarithm.
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A number from the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// A number from the standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    /// A number from the log-normal distribution with mean 1 and this standard deviation.
    pub fn log_normal(&mut self, deviation: f64) -> f64 {
        let variance = (1.0 + deviation * deviation).ln();
        (variance.sqrt() * self.normal() - variance / 2.0).exp()
    }
}
