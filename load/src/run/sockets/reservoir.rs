//! Limits the sockets of a sample: a selected socket stays selected as long as it exists.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use onrush_plan::Random;

use super::reading::SocketReading;

/// The sockets of a sample: those whose addresses and ports hash to the smallest numbers. The hash depends on the seed.
#[derive(Debug)]
pub struct Reservoir {
    seed: u64,
    most: usize,
    /// Heap with the largest number first.
    chosen: BinaryHeap<NumberedSample>,
    left_out: u64,
}

#[derive(Debug)]
struct NumberedSample {
    number: u64,
    reading: SocketReading,
}

impl Ord for NumberedSample {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl PartialOrd for NumberedSample {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NumberedSample {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for NumberedSample {}

impl Reservoir {
    /// A reservoir of at most `most` sockets.
    pub fn new(seed: u64, most: usize) -> Self {
        Self { seed, most, chosen: BinaryHeap::new(), left_out: 0 }
    }

    /// Offers the kernel's message about a socket to the sample. If the sample is full, the socket with the largest
    /// number is left out.
    pub fn offer_socket(&mut self, body: &[u8]) {
        let number = hash_socket(self.seed, body);
        if self.chosen.len() == self.most {
            self.left_out += 1;
            if self.chosen.peek().is_none_or(|last| last.number <= number) {
                return;
            }
            self.chosen.pop();
        }
        self.chosen.extend(SocketReading::from_message(body).map(|reading| NumberedSample { number, reading }));
    }

    /// The selected sockets in a fixed order, and the number of sockets left out.
    pub fn into_readings(self) -> (Vec<SocketReading>, u64) {
        let chosen = self.chosen.into_sorted_vec();
        (chosen.into_iter().map(|numbered| numbered.reading).collect(), self.left_out)
    }
}

/// Hash of a socket's ports and addresses.
fn hash_socket(seed: u64, body: &[u8]) -> u64 {
    let ends = body.get(4..40).unwrap_or_default();
    let words = ends.chunks(8).map(|part| part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    words.fold(seed, |number, word| Random::new(number ^ word).next())
}
