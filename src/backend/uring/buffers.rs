//! Receive buffers that belong to the thread: a ring from which the kernel takes one for whatever arrives, and to
//! which it goes back as soon as its bytes have been read.

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// The number of buffers, a power of two. A thread that falls behind more than that is told so by the kernel.
const BUFFERS: u16 = 1024;
/// The size of one buffer. Small answers fit; larger ones cost a completion for each.
const BUFFER_BYTES: usize = 4096;
/// The group of buffers; there is only one.
pub const GROUP: u16 = 0;

/// The buffers and the ring that offers them.
pub struct Buffers {
    /// `BUFFERS` entries, the ring proper; page-aligned, as the kernel asks.
    entries: NonNull<BufRingEntry>,
    memory: Box<[u8]>,
    tail: u16,
}

impl Buffers {
    /// Makes the buffers and registers their ring (kernel 5.19).
    ///
    /// # Errors
    ///
    /// When the kernel does not know rings of buffers, or has no memory to pin.
    pub fn register(submitter: &Submitter<'_>) -> io::Result<Self> {
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc::alloc_zeroed(layout()) };
        let entries = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffers =
            Self { entries, memory: vec![0; usize::from(BUFFERS) * BUFFER_BYTES].into_boxed_slice(), tail: 0 };
        // SAFETY: the entries live as long as the buffers do, and the owner drops its ring before them.
        unsafe { submitter.register_buf_ring_with_flags(entries.as_ptr() as u64, BUFFERS, GROUP, 0)? };
        (0..BUFFERS).for_each(|id| buffers.give_back(id));
        Ok(buffers)
    }

    /// The first `length` bytes of a buffer that the kernel handed out.
    pub fn bytes(&mut self, id: u16, length: usize) -> &mut [u8] {
        let start = usize::from(id) * BUFFER_BYTES;
        &mut self.memory[start..start + length]
    }

    /// Offers a buffer to the kernel again.
    pub fn give_back(&mut self, id: u16) {
        let address = self.memory[usize::from(id) * BUFFER_BYTES..].as_ptr() as u64;
        let index = usize::from(self.tail & (BUFFERS - 1));
        // SAFETY: the index is below the number of entries, and the kernel reads an entry only once the tail has
        // passed it.
        let entry = unsafe { self.entries.add(index).as_mut() };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry and is only ever written here; the kernel reads it atomically.
        let tail = unsafe { &*BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the memory came from the same layout, and the ring that knew it is gone.
        unsafe { alloc::dealloc(self.entries.as_ptr().cast(), layout()) };
    }
}

fn layout() -> Layout {
    const { assert!(BUFFERS.is_power_of_two()) };
    Layout::from_size_align(usize::from(BUFFERS) * size_of::<BufRingEntry>(), 4096).expect("a page is a power of two")
}
