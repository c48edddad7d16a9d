//! Calls to a script's functions during the run.
//!
//! All values needed for a call stay at the bottom of the state's stack. Each callback runs inside a C function of ours
//! in one protected call, so that any error (from the script, from a finalizer, or out of memory) arrives as a message.
//! Lua may unwind out of such a function at any call into Lua, so the function must not own anything that needs
//! dropping.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};

use mlua::ffi::{self, lua_State};
use mlua::{Lua, Table};
use onrush_engine::Response;

use super::decisions::Decisions;
use super::{fields, message};

/// Positions on the stack of a state.
const HANDLER: c_int = 1;
const REQUEST: c_int = 2;
const RESPONSE: c_int = 3;
const DELAY: c_int = 4;
/// The string that was returned last. While it is kept here, no other string can have the same address.
const LAST: c_int = 5;

/// Registry keys under which values are kept until they are put on the stack.
const KEYS: [&CStr; 2] = [c"onrush.handler", c"onrush.wrk"];

/// Maximum number of arguments that `response` gets.
const ALL: u8 = 5;

/// How many arguments the script's `response` gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arity {
    /// Number of arguments to pass.
    pub arguments: u8,
}

impl Arity {
    /// The arguments for a function with this number of named parameters. wrk lacks the fourth and fifth arguments:
    /// they are passed only to a function that names the fourth, and never in a run as wrk.
    pub fn for_function(named: u8, is_variadic: bool, is_compat: bool) -> Self {
        let most = if is_compat { 3 } else { ALL };
        let arguments = match named {
            0..=3 if is_variadic => 3,
            4 if is_variadic => ALL,
            _ => named,
        };
        Self { arguments: arguments.min(most) }
    }

    /// True if `response` gets the second value returned by `request`.
    pub fn has_value(self) -> bool {
        self.arguments == ALL
    }
}

/// Prepares the stack for calls. `calls` is the return value of `wrk.lua`.
///
/// # Safety
///
/// `raw` must be the state of `lua`, used by no other code, with an empty stack.
pub unsafe fn prepare_stack(lua: &Lua, raw: *mut lua_State, calls: &Table) -> mlua::Result<()> {
    lua.set_named_registry_value("onrush.handler", calls.get::<mlua::Value>("handler")?)?;
    lua.set_named_registry_value("onrush.wrk", lua.globals().get::<mlua::Value>("wrk")?)?;
    // SAFETY: the state is ours, its stack is empty, and a new stack has room for twenty values.
    unsafe {
        ffi::lua_settop(raw, 0);
        ffi::lua_getfield(raw, ffi::LUA_REGISTRYINDEX, KEYS[0].as_ptr());
        ffi::lua_pushstring(raw, c"request".as_ptr());
        ffi::lua_getfield(raw, ffi::LUA_REGISTRYINDEX, KEYS[1].as_ptr());
        ffi::lua_pushcclosure(raw, call_request, 2);
        ffi::lua_pushstring(raw, c"response".as_ptr());
        ffi::lua_pushcclosure(raw, call_response, 1);
        ffi::lua_pushstring(raw, c"delay".as_ptr());
        ffi::lua_pushcclosure(raw, call_delay, 1);
        ffi::lua_pushnil(raw);
    }
    Ok(())
}

/// Input and output of one call for the next batch of requests.
pub struct RequestCall<'a> {
    /// The script's decisions. If the script stops its thread, the text is ignored.
    decisions: &'a Decisions,
    /// True if the second value that the script returns is kept.
    keeps_value: bool,
    /// Key of that value, unless nil; set by the call.
    value: Cell<Option<c_int>>,
}

impl<'a> RequestCall<'a> {
    /// A call for the thread about which the script makes these decisions.
    pub fn new(decisions: &'a Decisions, keeps_value: bool) -> Self {
        Self { decisions, keeps_value, value: Cell::new(None) }
    }
}

/// A batch of requests written by the script.
pub struct WrittenBatch<'a> {
    /// Text of the requests, not yet checked.
    pub text: &'a [u8],
    /// Key of the second value returned, unless nil. Must be passed to [`release_value`] eventually.
    pub value: Option<c_int>,
}

/// Asks the script for the next batch of requests. An error is the script's message.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses; the bytes are valid until its next use.
pub unsafe fn request_batch<'a>(raw: *mut lua_State, asking: &RequestCall<'_>) -> Result<WrittenBatch<'a>, String> {
    // SAFETY: as the caller promises; `asking` outlives the call, and only its cell changes. `call_request` returns a
    // string.
    unsafe {
        call_protected(raw, REQUEST, std::ptr::from_ref(asking).cast_mut().cast(), 1)?;
        let mut length = 0;
        let text = ffi::lua_tolstring(raw, -1, &mut length);
        ffi::lua_replace(raw, LAST);
        Ok(WrittenBatch { text: std::slice::from_raw_parts(text.cast::<u8>(), length), value: asking.value.get() })
    }
}

/// Releases a value kept under this key, so that Lua can collect it.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses, and `key` an unreleased key of that state.
pub unsafe fn release_value(raw: *mut lua_State, key: c_int) {
    // SAFETY: as the caller promises. Reusing an existing slot cannot fail.
    unsafe { ffi::luaL_unref(raw, ffi::LUA_REGISTRYINDEX, key) }
}

/// Asks the script for the length of a pause, in milliseconds; `None` if it returned something other than a number.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses.
pub unsafe fn delay_ms(raw: *mut lua_State) -> Result<Option<f64>, String> {
    // SAFETY: as the caller promises. `call_delay` returns one value.
    unsafe {
        call_protected(raw, DELAY, std::ptr::null_mut(), 1)?;
        let delay = (ffi::lua_isnumber(raw, -1) != 0).then(|| ffi::lua_tonumber(raw, -1));
        ffi::lua_settop(raw, LAST);
        Ok(delay.filter(|delay| !delay.is_nan()))
    }
}

/// Arguments for a call of `response`.
pub struct ResponseArguments<'a> {
    /// The response to pass on.
    pub response: &'a Response<'a>,
    /// Number of arguments to pass.
    pub arguments: c_int,
    /// Key of the value that `request` returned with this request.
    pub value: Option<c_int>,
}

/// Passes a response to the script.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses.
pub unsafe fn pass_response(raw: *mut lua_State, telling: &ResponseArguments<'_>) -> Result<(), String> {
    // SAFETY: as the caller promises; `telling` outlives the call and is only read.
    unsafe { call_protected(raw, RESPONSE, std::ptr::from_ref(telling).cast_mut().cast(), 0) }
}

/// Calls the function at `place`. Leaves the results on top of the stack, or nothing after an error.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses, and `argument` must match the function.
unsafe fn call_protected(
    raw: *mut lua_State,
    place: c_int,
    argument: *mut c_void,
    results: c_int,
) -> Result<(), String> {
    // SAFETY: as the caller promises. The stack has room, and everything that can raise an error is inside the call.
    unsafe {
        ffi::lua_pushvalue(raw, place);
        ffi::lua_pushlightuserdata(raw, argument);
        if ffi::lua_pcall(raw, 1, results, HANDLER) == ffi::LUA_OK {
            return Ok(());
        }
        let mut length = 0;
        let text = ffi::lua_tolstring(raw, -1, &mut length);
        let bytes = if text.is_null() { &[] } else { std::slice::from_raw_parts(text.cast::<u8>(), length) };
        let problem = message::readable_error(bytes);
        ffi::lua_settop(raw, LAST);
        Err(problem)
    }
}

/// Calls `request()`, or `wrk.request()` by default, with a [`RequestCall`] as the argument. Returns a string.
unsafe extern "C-unwind" fn call_request(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalues of `prepare_stack`, the argument of `request_batch` and room for twenty
    // values.
    unsafe {
        let RequestCall { decisions, keeps_value, value } = &*ffi::lua_touserdata(raw, 1).cast::<RequestCall<'_>>();
        ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(1));
        ffi::lua_gettable_(raw, ffi::LUA_GLOBALSINDEX);
        if ffi::lua_isfunction(raw, -1) == 0 {
            ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(1));
            ffi::lua_gettable_(raw, ffi::lua_upvalueindex(2));
        }
        if ffi::lua_isfunction(raw, -1) == 0 {
            let kind = ffi::luaL_typename(raw, -1);
            return ffi::luaL_error(
                raw,
                c"wrk.request is a %s value; call wrk.init, which makes it a function".as_ptr(),
                kind,
            );
        }
        ffi::lua_pushvalue(raw, -1);
        ffi::lua_call(raw, 0, 1 + c_int::from(*keeps_value));
        if *keeps_value {
            // The key of nil is negative.
            value.set(Some(ffi::luaL_ref(raw, ffi::LUA_REGISTRYINDEX)).filter(|key| *key >= 0));
        }
        if ffi::lua_isstring(raw, -1) == 0 {
            if decisions.is_stopped.get() {
                ffi::lua_pushstring(raw, c"".as_ptr());
                return 1;
            }
            return raise_result_error(raw);
        }
        // Converts a number to a string here, where an error is still caught.
        ffi::lua_tolstring(raw, -1, std::ptr::null_mut());
        1
    }
}

/// Raises an error about the result on top of the stack; the function that returned it is below.
///
/// # Safety
///
/// For `call_request` only.
unsafe fn raise_result_error(raw: *mut lua_State) -> c_int {
    // SAFETY: both values are there, and `lua_getinfo` pops the function and fills in the record.
    unsafe {
        let kind = ffi::luaL_typename(raw, -1);
        ffi::lua_pushvalue(raw, -2);
        let mut about: ffi::lua_Debug = std::mem::zeroed();
        ffi::lua_getinfo(raw, c">S".as_ptr(), &mut about);
        let words = c"%s:%d: request() returned a %s value; it must return the text of one or more requests, for instance wrk.format(), or call wrk.thread:stop()";
        ffi::luaL_error(raw, words.as_ptr(), about.short_src.as_ptr().cast::<c_char>(), about.linedefined, kind)
    }
}

/// Calls `response(…)` with [`ResponseArguments`] as the argument. Does nothing if the script has removed the function.
unsafe extern "C-unwind" fn call_response(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalue of `prepare_stack`, the argument of `pass_response` and room for twenty
    // values.
    unsafe {
        let telling = &*ffi::lua_touserdata(raw, 1).cast::<ResponseArguments<'_>>();
        let ResponseArguments { response, arguments, value } = *telling;
        ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(1));
        ffi::lua_gettable_(raw, ffi::LUA_GLOBALSINDEX);
        if ffi::lua_isfunction(raw, -1) == 0 {
            return 0;
        }
        if arguments >= 1 {
            ffi::lua_pushnumber(raw, f64::from(response.status));
        }
        if arguments >= 2 {
            fields::push_fields(raw, response.head, response.trailers);
        }
        if arguments >= 3 {
            ffi::lua_pushlstring_(raw, response.body.as_ptr().cast(), response.body.len());
        }
        if arguments >= 4 {
            ffi::lua_pushnumber(raw, response.latency_ns as f64 / 1000.0);
        }
        if arguments >= 5 {
            match value {
                Some(key) => ffi::lua_rawgeti_(raw, ffi::LUA_REGISTRYINDEX, key),
                None => ffi::lua_pushnil(raw),
            }
        }
        ffi::lua_call(raw, arguments, 0);
        0
    }
}

/// Calls `delay()`. Returns its result, or zero if the script has removed the function.
unsafe extern "C-unwind" fn call_delay(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalue of `prepare_stack` and room for twenty values.
    unsafe {
        ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(1));
        ffi::lua_gettable_(raw, ffi::LUA_GLOBALSINDEX);
        if ffi::lua_isfunction(raw, -1) == 0 {
            ffi::lua_pushnumber(raw, 0.0);
            return 1;
        }
        ffi::lua_call(raw, 0, 1);
        1
    }
}
