//! The program's memory: the system's allocator, but a refusal never ends in a crash.
//!
//! A run keeps a reserve. When memory is refused, the reserve is given up and the run is told to end, so that what it
//! measured is reported. Where there is no reserve, or it is used up, the program ends with a sentence.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;

/// The reserve: enough to add up, judge, write and report what was measured. Until it is used it takes only address space.
const RESERVE: Layout = Layout::new::<[u8; 24 * 1024 * 1024]>();
/// How often a refused request is repeated after the reserve was given up: another thread may still be doing that.
const RETRIES: usize = 100;

static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static IS_SHORT: AtomicBool = AtomicBool::new(false);

/// The allocator of the program.
#[derive(Debug)]
pub struct Memory {
    give_up: fn(usize) -> !,
}

/// A larger piece is returned to the system when it is freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 128 * 1024;

/// Has large pieces of memory, such as the histograms of which results are made, always come from the system and go back
/// there. Otherwise the C library keeps them after the first few, and fills each with zeroes, which are memory in use.
pub fn return_large_pieces() {
    #[cfg(target_env = "gnu")]
    // SAFETY: this only sets a parameter of the allocator, which it may do at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Ends the process at once. Buffers are not flushed and exit handlers not called: this thread may be inside either.
pub fn exit_at_once(code: u8) -> ! {
    // SAFETY: this returns nothing and touches no memory.
    unsafe { libc::_exit(code.into()) }
}

/// Aborts the process when a panic unwinds through it.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // A second panic during the first one aborts.
        panic!("a panic must not leave the allocator");
    }
}

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
    /// An allocator that calls `give_up` when it cannot provide that many bytes. It may be called on any thread, also by
    /// itself if it allocates. A panic in it aborts the process, because none may leave an allocator.
    pub const fn new(give_up: fn(usize) -> !) -> Self {
        Self { give_up }
    }

    /// Returns what `ask` gets, and does not return without it. `ask` is moved, so that what it knows stays in registers.
    #[inline]
    fn insist(&self, bytes: usize, ask: impl Fn() -> *mut u8 + Copy) -> *mut u8 {
        let place = ask();
        if place.is_null() { self.insist_again(bytes, ask) } else { place }
    }

    #[cold]
    #[inline(never)]
    fn insist_again(&self, bytes: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
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
        let _guard = AbortOnUnwind;
        (self.give_up)(bytes)
    }
}

// SAFETY: every call is passed on to the system's allocator as it is, and repeated only if it returned nothing, which
// leaves an old allocation as it was.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        self.insist(layout.size(), move || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        self.insist(layout.size(), move || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        self.insist(size, move || unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and all memory comes from the system's allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// More than any machine has.
    const TOO_MUCH: usize = isize::MAX as usize - 4096;

    fn ask(memory: &Memory) {
        let layout = Layout::from_size_align(TOO_MUCH, 1).unwrap();
        // SAFETY: the layout is not empty.
        memory.insist(layout.size(), move || unsafe { System.alloc(layout) });
    }

    #[test]
    fn what_is_refused_is_never_returned_as_nothing() {
        static REFUSED: AtomicUsize = AtomicUsize::new(0);
        let asking = thread::spawn(|| {
            ask(&Memory::new(|bytes| {
                REFUSED.store(bytes, Ordering::Relaxed);
                loop {
                    thread::park();
                }
            }));
        });
        while REFUSED.load(Ordering::Relaxed) == 0 {
            assert!(!asking.is_finished(), "it must not return");
            thread::yield_now();
        }
        assert_eq!(REFUSED.load(Ordering::Relaxed), TOO_MUCH);
    }

    /// Set in a process that is to end.
    const IS_CHILD: &str = "ONRUSH_TEST_MEMORY";

    #[test]
    fn a_panic_does_not_leave_the_allocator() {
        if std::env::var_os(IS_CHILD).is_some() {
            ask(&Memory::new(|bytes| panic!("{bytes} bytes refused")));
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["backend::memory::tests::a_panic_does_not_leave_the_allocator", "--exact", "--test-threads=1"]);
        let output = child.env(IS_CHILD, "").output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    }
}
