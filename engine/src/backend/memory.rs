//! How the C library's allocator takes and returns memory.

/// A larger piece is returned to the system when it is freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 128 * 1024;

/// Has large pieces of memory, such as the histograms of which results are made, always come from the system and go
/// back there. Otherwise the C library keeps them after the first few, and fills each with zeroes, which are memory in
/// use.
pub fn return_large_pieces() {
    #[cfg(target_env = "gnu")]
    // SAFETY: this only sets a parameter of the allocator, which it may do at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Makes all threads allocate from one heap. Otherwise the C library reserves up to 128 MiB for each, which counts
/// against a limit on address space, and ends the process where a new thread does not even get a few bytes.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: this sets a number in the C library, and no other thread exists yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
