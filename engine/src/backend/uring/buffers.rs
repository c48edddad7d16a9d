//! Receive buffers of the thread, in two groups: many small ones for whatever arrives, and a few large ones for large
//! bodies, few enough to stay in the cache. The kernel takes a buffer from a group when bytes have arrived, and gets it
//! back as soon as the bytes have been read.

use std::alloc::{self, Layout};
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Number of small buffers, a power of two. The kernel reports when they run out.
const SMALL_COUNT: u16 = 512;
/// Size of a small buffer. Small responses fit.
pub const SMALL_BYTES: usize = 8192;
/// Number of large buffers, a power of two.
const LARGE_COUNT: u16 = 16;
/// Size of a large buffer: several TLS records.
pub const LARGE_BYTES: usize = 64 * 1024;

/// ID of the group of small buffers.
pub const SMALL: u16 = 0;
/// ID of the group of large buffers.
pub const LARGE: u16 = 1;

/// Both buffer groups.
pub struct Buffers {
    small: Group,
    large: Group,
}

/// Buffers of one size, and the ring that offers them to the kernel.
struct Group {
    /// The entries of the ring, one per buffer; page-aligned, as the kernel requires.
    entries: NonNull<BufRingEntry>,
    count: u16,
    /// Unwritten pages take no memory.
    memory: Box<[u8]>,
    size: usize,
    first: u16,
    tail: u16,
}

impl Buffers {
    /// Allocates the buffers and registers their rings (kernel 5.19).
    ///
    /// # Errors
    ///
    /// If the kernel does not support buffer rings, or has no memory to pin.
    pub fn register(submitter: &Submitter<'_>) -> io::Result<Self> {
        Ok(Self {
            small: Group::register(submitter, SMALL, 0, SMALL_COUNT, SMALL_BYTES)?,
            large: Group::register(submitter, LARGE, SMALL_COUNT, LARGE_COUNT, LARGE_BYTES)?,
        })
    }

    /// Part of a buffer that the kernel handed out.
    pub fn bytes(&mut self, id: u16, part: Range<usize>) -> &mut [u8] {
        let group = self.group(id);
        let start = usize::from(id - group.first) * group.size;
        &mut group.memory[start..start + group.size][part]
    }

    /// Offers a buffer to the kernel again.
    pub fn give_back(&mut self, id: u16) {
        self.group(id).offer(id);
    }

    pub fn is_large(id: u16) -> bool {
        id >= SMALL_COUNT
    }

    fn group(&mut self, id: u16) -> &mut Group {
        if Self::is_large(id) { &mut self.large } else { &mut self.small }
    }
}

impl Group {
    fn register(submitter: &Submitter<'_>, name: u16, first: u16, count: u16, size: usize) -> io::Result<Self> {
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc::alloc_zeroed(layout(count)) };
        let entries = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = vec![0; usize::from(count) * size].into_boxed_slice();
        let mut group = Self { entries, count, memory, size, first, tail: 0 };
        // SAFETY: the entries live as long as the buffers, and the owner drops its ring before them.
        unsafe { submitter.register_buf_ring_with_flags(entries.as_ptr() as u64, count, name, 0)? };
        (first..first + count).for_each(|id| group.offer(id));
        Ok(group)
    }

    fn offer(&mut self, id: u16) {
        let address = self.memory[usize::from(id - self.first) * self.size..].as_ptr() as u64;
        let index = usize::from(self.tail & (self.count - 1));
        // SAFETY: the index is below the number of entries, a power of two, and the kernel reads an entry only once the
        // tail has passed it.
        let entry = unsafe { self.entries.add(index).as_mut() };
        entry.set_addr(address);
        entry.set_len(self.size as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the first entry and is written only here; the kernel reads it atomically.
        let tail = unsafe { &*BufRingEntry::tail(self.entries.as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: the memory came from the same layout, and the ring that used it has been dropped.
        unsafe { alloc::dealloc(self.entries.as_ptr().cast(), layout(self.count)) };
    }
}

fn layout(count: u16) -> Layout {
    const { assert!(SMALL_COUNT.is_power_of_two() && LARGE_COUNT.is_power_of_two()) };
    Layout::from_size_align(usize::from(count) * size_of::<BufRingEntry>(), 4096).expect("a page is a power of two")
}
