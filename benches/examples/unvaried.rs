//! A preloaded library that gives a program the same random numbers from the kernel in every run. LuaJIT uses them to
//! decide which code to compile: otherwise a script's instruction count varies by half a per cent between runs.

use std::mem;
use std::process;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_long, c_void};

/// The C library's `syscall`, which the function below overrides and calls. It passes six arguments, the most that a
/// system call takes.
type Syscall = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

/// The next `syscall`, looked up once: the instructions of a look-up per call would be counted, too.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Fills the buffer of `getrandom` with a constant, and forwards every other call.
///
/// # Safety
///
/// As for the system call itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    one: c_long,
    two: c_long,
    three: c_long,
    four: c_long,
    five: c_long,
    six: c_long,
) -> c_long {
    if number == libc::SYS_getrandom {
        // SAFETY: the caller promises a buffer of this length.
        unsafe { (one as *mut u8).write_bytes(7, two as usize) };
        return two;
    }
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // SAFETY: the name ends in a zero.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) };
        if next.is_null() {
            process::abort();
        }
        NEXT.store(next, Ordering::Relaxed);
    }
    // SAFETY: this is the C library's function, and a call ignores surplus arguments.
    unsafe { mem::transmute::<*mut c_void, Syscall>(next)(number, one, two, three, four, five, six) }
}
