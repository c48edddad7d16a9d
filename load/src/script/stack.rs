//! The C stack available to a script, and a check for the remaining space.
//!
//! LuaJIT limits its own stack, separately in every coroutine, but not the C stack. Three kinds of recursion could
//! exhaust the C stack: `string.gsub`, which uses ten kilobytes of it; `load`, which calls a function for more text
//! with a whole parser on the stack; and coroutines inside coroutines. `wrk.lua` calls this check before each of these.
//! Any other recursion overflows LuaJIT's own stack first, after using at most 6 MiB of the C stack.

use std::ffi::c_int;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;

use mlua::ffi::{self, lua_State};

thread_local! {
    /// Middle address of this thread's stack.
    static MIDDLE: usize = stack_middle();
}

/// True if this thread has used half of its stack.
pub fn is_stack_low() -> bool {
    let here = 0_u8;
    let here = ptr::from_ref(black_box(&here)).addr();
    MIDDLE.with(|&middle| here < middle)
}

/// [`is_stack_low`] as a Lua function.
///
/// # Safety
///
/// Must only be called by Lua.
pub unsafe extern "C-unwind" fn lua_is_stack_low(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with room for twenty values.
    unsafe { ffi::lua_pushboolean(raw, c_int::from(is_stack_low())) };
    1
}

/// Middle address of this thread's stack. If it is unknown, the stack is never low. For the first thread, musl reports
/// only the used part of the stack; no script runs there.
fn stack_middle() -> usize {
    let mut attributes = MaybeUninit::uninit();
    let mut lowest = ptr::null_mut();
    let mut bytes = 0;
    // SAFETY: the attributes are used only if the first call has initialised them, and the last call destroys them.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return 0;
        }
        libc::pthread_attr_getstack(attributes.as_ptr(), &mut lowest, &mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
    lowest.addr() + bytes / 2
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Recurses until half of the stack is used. Returns the number of steps of at least a kilobyte each.
    fn recurse_to_half(steps: usize) -> usize {
        let step = [0_u8; 1024];
        black_box(&step);
        let steps = if is_stack_low() { steps } else { recurse_to_half(steps + 1) };
        // The array must stay on the stack until the end.
        black_box(&step);
        steps
    }

    #[test]
    fn stacks_are_low_at_half() {
        // The C library reuses the stack of an ended thread if it is large enough. No other stack is this large.
        const MIB: usize = 64;
        let thread = thread::Builder::new().stack_size(MIB * 1024 * 1024);
        let steps = thread.spawn(|| recurse_to_half(0)).unwrap().join().unwrap();
        assert!((100 * MIB..=512 * MIB).contains(&steps), "{steps}");
    }
}
