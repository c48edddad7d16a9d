//! Buffers from which the kernel takes one for each receive.

use std::alloc::{self, Layout};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// Number of buffers, a power of two, and their size.
const BUFFERS: u16 = 1024;
const BUFFER_BYTES: usize = 4096;

/// Buffers from which the kernel takes one for each receive.
pub struct ProvidedBuffers {
    entries: *mut BufRingEntry,
    memory: Vec<u8>,
    tail: u16,
}

impl ProvidedBuffers {
    /// Registers the buffers. The ring of entries is never freed.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the buffers.
    pub fn register(ring: &IoUring) -> io::Result<Self> {
        let bytes = usize::from(BUFFERS) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(bytes, 4096).map_err(io::Error::other)?;
        // SAFETY: the layout is not empty.
        let entries = unsafe { alloc::alloc_zeroed(layout) }.cast::<BufRingEntry>();
        // SAFETY: the entries are page-aligned, zeroed, and never freed.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries as u64, BUFFERS, 0, 0)? };
        let mut buffers = Self { entries, memory: vec![0; usize::from(BUFFERS) * BUFFER_BYTES], tail: 0 };
        (0..BUFFERS).for_each(|id| buffers.give_back(id));
        buffers.publish();
        Ok(buffers)
    }

    /// The first `length` bytes of the buffer with this identifier.
    pub fn bytes(&self, id: u16, length: usize) -> &[u8] {
        &self.memory[usize::from(id) * BUFFER_BYTES..][..length]
    }

    /// Returns a buffer to the kernel. The kernel sees it only after [`Self::publish`].
    pub fn give_back(&mut self, id: u16) {
        let address = self.memory[usize::from(id) * BUFFER_BYTES..].as_ptr() as u64;
        let index = usize::from(self.tail & (BUFFERS - 1));
        // SAFETY: the index is below the number of entries, and the kernel reads an entry only after the tail has
        // passed it.
        let entry = unsafe { &mut *self.entries.add(index) };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Publishes the returned buffers to the kernel.
    pub fn publish(&self) {
        // SAFETY: the tail is in the first entry and is written only here; the kernel reads it atomically.
        let tail = unsafe { &*BufRingEntry::tail(self.entries).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}
