//! The program's memory: the system's allocator, but a refusal never ends in a crash.
//!
//! A run keeps a reserve. When memory is refused, the reserve is given up and the run is told to end, so that what it
//! measured is reported. Where there is no reserve, or it is used up, the program ends with a sentence.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;

/// The reserve: enough to add up, write and report what was measured. Until it is used it takes only address space.
const RESERVE: Layout = Layout::new::<[u8; 12 * 1024 * 1024]>();
/// How often a refused request is repeated after the reserve was given up: another thread may still be doing that.
const RETRIES: usize = 100;

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static IS_SHORT: AtomicBool = AtomicBool::new(false);

/// The allocator of the program. It calls this function when it cannot provide that many bytes.
#[derive(Debug)]
pub struct Memory(pub fn(usize) -> !);

/// Makes all threads allocate from one heap. Otherwise the C library maps up to 128 MiB for each, which under a limit on
/// address space nothing else can have, and ends the process where not even a few bytes are left for a new thread.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: this sets a number in the C library, and no other thread exists yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Takes the reserve of a run, before it starts. Returns whether there is one.
pub fn reserve() -> bool {
    IS_SHORT.store(false, Ordering::Relaxed);
    if RESERVED.load(Ordering::Acquire).is_null() {
        // SAFETY: the layout is not empty.
        let reserve = unsafe { System.alloc(RESERVE) };
        give_back(RESERVED.swap(reserve, Ordering::AcqRel));
        return !reserve.is_null();
    }
    true
}

/// Whether memory was refused since the reserve was taken: the run must end.
pub fn is_short() -> bool {
    IS_SHORT.load(Ordering::Relaxed)
}

/// Frees a reserve, if it is one; returns whether it is.
fn give_back(reserve: *mut u8) -> bool {
    if !reserve.is_null() {
        // SAFETY: it was allocated with this layout, and whoever swapped it out is its only owner.
        unsafe { System.dealloc(reserve, RESERVE) };
    }
    !reserve.is_null()
}

impl Memory {
    /// Returns what `ask` gets, and does not return without it.
    #[inline]
    fn insist(&self, bytes: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
        let place = ask();
        if place.is_null() { self.insist_again(bytes, &ask) } else { place }
    }

    #[cold]
    fn insist_again(&self, bytes: usize, ask: &dyn Fn() -> *mut u8) -> *mut u8 {
        if give_back(RESERVED.swap(ptr::null_mut(), Ordering::AcqRel)) {
            IS_SHORT.store(true, Ordering::Relaxed);
        }
        for _ in 0..RETRIES {
            let place = ask();
            if !place.is_null() {
                return place;
            }
            thread::yield_now();
        }
        (self.0)(bytes)
    }
}

// SAFETY: every call is passed on to the system's allocator as it is, and repeated only if it returned nothing, which
// leaves an old allocation as it was.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        self.insist(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        self.insist(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        self.insist(size, || unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and all memory comes from the system's allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_never_returned_as_nothing() {
        let memory = Memory(|bytes| panic!("{bytes} bytes refused"));
        let layout = Layout::from_size_align(isize::MAX as usize - 4096, 1).unwrap();
        // SAFETY: the layout is not empty.
        let panic = std::panic::catch_unwind(|| memory.insist(layout.size(), || unsafe { System.alloc(layout) }));
        let expected = format!("{} bytes refused", layout.size());
        assert_eq!(panic.unwrap_err().downcast_ref::<String>(), Some(&expected));
    }
}
