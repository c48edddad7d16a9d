//! Settings of the C library's allocator.

/// Larger pieces are returned to the system when freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 128 * 1024;

/// Takes large pieces of memory, such as the histograms behind results, from the system and returns them there.
/// Otherwise the C library keeps them after the first few and fills each with zeros, which makes all their pages
/// resident.
pub fn return_large_pieces() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call only sets a parameter of the allocator, which is allowed at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Makes all threads allocate from one heap. Otherwise the C library reserves up to 128 MiB per thread, which counts
/// against an address-space limit. If a new thread then cannot get even a few bytes, the process ends.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call sets a number in the C library, and no other thread exists yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
