//! Output buffers shared by connections: a buffer is reused once the transport has released it.

use std::rc::Rc;

use super::frame::{HEADER, PAYLOAD_USUAL};
use crate::Transmit;

/// The length of a large buffer: four frames of data and some small ones.
pub(super) const LARGE: usize = 4 * (HEADER + PAYLOAD_USUAL) + 512;

/// The length of a small buffer, with room for the HEADERS of some tens of requests.
const SMALL: usize = 4096;

/// Number of bytes kept in buffers of each size per thread. If the transport holds all of them, a buffer is made for a
/// single use.
const KEPT_MAX: usize = 1024 * 1024;

/// Number of buffers tried before another one is made.
const TRIES: usize = 4;

/// The buffers of a thread.
#[derive(Debug)]
pub(super) struct BufferPool {
    small: Shelf,
    large: Shelf,
}

#[derive(Debug)]
struct Shelf {
    length: usize,
    kept: Vec<Rc<[u8]>>,
    /// Index of the buffer used last.
    last: usize,
}

impl Default for BufferPool {
    fn default() -> Self {
        Self { small: Shelf::new(SMALL), large: Shelf::new(LARGE) }
    }
}

impl BufferPool {
    /// Passes a buffer of at least `length` bytes to `write`, which returns the number of bytes written.
    pub(super) fn fill_buffer(&mut self, length: usize, write: impl FnOnce(&mut [u8]) -> usize) -> Transmit {
        let shelf = if length <= SMALL { &mut self.small } else { &mut self.large };
        if length <= shelf.length
            && let Some(buffer) = shelf.free_buffer()
            && let Some(bytes) = Rc::get_mut(buffer)
        {
            let written = write(bytes);
            return Transmit::Shared(Rc::clone(buffer), 0..written);
        }
        let mut bytes = vec![0; length];
        let written = write(&mut bytes);
        bytes.truncate(written);
        Transmit::Owned(bytes)
    }
}

impl Shelf {
    fn new(length: usize) -> Self {
        Self { length, kept: Vec::new(), last: 0 }
    }

    /// A free buffer. The one used last comes first, since it is in the processor's cache; the others come in turn.
    fn free_buffer(&mut self) -> Option<&mut Rc<[u8]>> {
        let count = self.kept.len();
        for index in (self.last..self.last + count.min(TRIES)).map(|index| index % count) {
            if Rc::get_mut(&mut self.kept[index]).is_some() {
                self.last = index;
                return self.kept.get_mut(index);
            }
        }
        if (count + 1) * self.length > KEPT_MAX {
            self.last = (self.last + TRIES) % count;
            return None;
        }
        self.kept.push(vec![0; self.length].into());
        self.last = count;
        self.kept.last_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(buffers: &mut BufferPool, text: &[u8]) -> Transmit {
        buffers.fill_buffer(text.len(), |bytes| {
            bytes[..text.len()].copy_from_slice(text);
            text.len()
        })
    }

    #[test]
    fn only_unshared_buffers_are_reused() {
        let mut buffers = BufferPool::default();
        let first = filled(&mut buffers, b"first");
        let second = filled(&mut buffers, b"second");
        assert_eq!([first.contiguous_bytes(), second.contiguous_bytes()], [Some(&b"first"[..]), Some(&b"second"[..])]);
        let places = [first.bytes().as_ptr(), second.bytes().as_ptr()];
        drop(second);
        let third = filled(&mut buffers, b"third");
        assert_eq!(third.bytes().as_ptr(), places[1], "the last one");
        drop(first);
        assert_eq!(filled(&mut buffers, b"fourth").bytes().as_ptr(), places[0], "the next one");
        assert_eq!(buffers.small.kept.len(), 2);
    }

    #[test]
    fn oversized_output_gets_its_own_buffer() {
        let mut buffers = BufferPool::default();
        let large = vec![7; LARGE];
        let held: Vec<_> = (0..KEPT_MAX / LARGE).map(|_| filled(&mut buffers, &large)).collect();
        assert!(held.iter().all(|transmit| matches!(transmit, Transmit::Shared(..))));
        assert!(matches!(filled(&mut buffers, &large), Transmit::Owned(bytes) if bytes == large));
        assert!(matches!(filled(&mut buffers, b"a"), Transmit::Shared(..)));
        drop(held);
        assert!(matches!(filled(&mut buffers, &[7; LARGE + 1]), Transmit::Owned(bytes) if bytes.len() == LARGE + 1));
    }
}
