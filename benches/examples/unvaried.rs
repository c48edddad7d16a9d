//! A library that makes the kernel's random numbers the same in each run of a program that preloads it. LuaJIT decides
//! by them what it compiles, so that the instructions of a script would differ by half a per cent from run to run.

use std::mem;

use libc::{c_long, c_void};

/// The function of the C library with this name, which this one stands in front of: it has as many arguments as the
/// call that needs most.
type Syscall = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

/// Fills the buffer of `getrandom` with one value, and makes every other call.
///
/// # Safety
/// That of the call.
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
    // SAFETY: the name ends in a zero.
    let next: *mut c_void = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) };
    // SAFETY: the C library has this function, and arguments that a call does not use are ignored.
    unsafe { mem::transmute::<*mut c_void, Syscall>(next)(number, one, two, three, four, five, six) }
}
