//! Calls to a script's functions during the run.
//!
//! Everything that a call needs is kept at the bottom of the state's stack. Each callback is called by a C function of
//! ours inside one protected call, so that any error (from the script, from a finalizer, or because memory ran out)
//! arrives as a message. Lua may unwind out of such a function at any call into Lua, so the function owns nothing that
//! must be dropped.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};

use mlua::ffi::{self, lua_State};
use mlua::{Lua, Table};
use onrush_engine::Response;

use super::decisions::Decisions;
use super::{fields, message};

/// The positions on the stack of a state.
const HANDLER: c_int = 1;
const REQUEST: c_int = 2;
const RESPONSE: c_int = 3;
const DELAY: c_int = 4;
/// The last returned text. While it is here, no other text can have its address.
const LAST: c_int = 5;

/// The registry keys under which values are stored until they are put on the stack.
const KEYS: [&CStr; 2] = [c"onrush.handler", c"onrush.wrk"];

/// How many arguments `response` may get.
const ALL: u8 = 5;

/// The parameters of `response`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arity {
    /// The number of arguments it gets.
    pub arguments: u8,
}

impl Arity {
    /// The arguments for a function with this number of named parameters. wrk does not have the fourth and the fifth:
    /// only a function that names the fourth gets it, or both, and none gets them in a run as wrk.
    pub fn for_function(named: u8, is_variadic: bool, is_compat: bool) -> Self {
        let most = if is_compat { 3 } else { ALL };
        let arguments = match named {
            0..=3 if is_variadic => 3,
            4 if is_variadic => ALL,
            _ => named,
        };
        Self { arguments: arguments.min(most) }
    }

    /// True if `response` gets the second value that `request` returned.
    pub fn has_value(self) -> bool {
        self.arguments == ALL
    }
}

/// Prepares the stack for calls. `calls` is what `wrk.lua` returned.
///
/// # Safety
///
/// `raw` must be the state of `lua`, used by no other code, with an empty stack.
pub unsafe fn prepare(lua: &Lua, raw: *mut lua_State, calls: &Table) -> mlua::Result<()> {
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

/// Parameters of a request for the next batch.
pub struct RequestCall<'a> {
    /// The script's decisions. If it stops its thread, the text may be anything.
    decisions: &'a Decisions,
    /// True if the second value that it returns is kept.
    keeps_value: bool,
    /// The key of that value, unless it is nil; set by the call.
    value: Cell<Option<c_int>>,
}

impl<'a> RequestCall<'a> {
    /// For requests of the thread with these decisions.
    pub fn new(decisions: &'a Decisions, keeps_value: bool) -> Self {
        Self { decisions, keeps_value, value: Cell::new(None) }
    }
}

/// The requests that the script has written.
pub struct WrittenBatch<'a> {
    /// Their text.
    pub text: &'a [u8],
    /// The key of the second value, unless that is nil; to be passed to [`release`] in the end.
    pub value: Option<c_int>,
}

/// Asks the script for the next batch of requests.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses; the bytes last until its next use.
pub unsafe fn request<'a>(raw: *mut lua_State, asking: &RequestCall<'_>) -> Result<WrittenBatch<'a>, String> {
    // SAFETY: as the caller promises; `asking` outlives the call, and only its cell changes. `call_request` returns a
    // string.
    unsafe {
        call(raw, REQUEST, std::ptr::from_ref(asking).cast_mut().cast(), 1)?;
        let mut length = 0;
        let text = ffi::lua_tolstring(raw, -1, &mut length);
        ffi::lua_replace(raw, LAST);
        Ok(WrittenBatch { text: std::slice::from_raw_parts(text.cast::<u8>(), length), value: asking.value.get() })
    }
}

/// Releases the value with a key.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses, and the key one of its own that has not been released.
pub unsafe fn release(raw: *mut lua_State, key: c_int) {
    // SAFETY: as the caller promises. A slot that exists is reused, which cannot fail.
    unsafe { ffi::luaL_unref(raw, ffi::LUA_REGISTRYINDEX, key) }
}

/// Asks the script for the length of the pause, in milliseconds; `None` if it did not return a number.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses.
pub unsafe fn delay_ms(raw: *mut lua_State) -> Result<Option<f64>, String> {
    // SAFETY: as the caller promises. `call_delay` returns one value.
    unsafe {
        call(raw, DELAY, std::ptr::null_mut(), 1)?;
        let delay = (ffi::lua_isnumber(raw, -1) != 0).then(|| ffi::lua_tonumber(raw, -1));
        ffi::lua_settop(raw, LAST);
        Ok(delay.filter(|delay| !delay.is_nan()))
    }
}

/// The arguments for `response`.
pub struct ResponseArguments<'a> {
    /// The response.
    pub response: &'a Response<'a>,
    /// The number of arguments.
    pub arguments: c_int,
    /// The key of the value that `request` returned with its request.
    pub value: Option<c_int>,
}

/// Passes a response to the script.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses.
pub unsafe fn tell(raw: *mut lua_State, telling: &ResponseArguments<'_>) -> Result<(), String> {
    // SAFETY: as the caller promises; `telling` outlives the call and is only read.
    unsafe { call(raw, RESPONSE, std::ptr::from_ref(telling).cast_mut().cast(), 0) }
}

/// Calls the function at `place`; after a success, the results are on top of the stack, and after an error, nothing is.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses, and `argument` what the function expects.
unsafe fn call(raw: *mut lua_State, place: c_int, argument: *mut c_void, results: c_int) -> Result<(), String> {
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
        let problem = message::readable(bytes);
        ffi::lua_settop(raw, LAST);
        Err(problem)
    }
}

/// Calls `request()` or, if there is none, `wrk.request()`, with a [`RequestCall`] as the argument. Returns a string.
unsafe extern "C-unwind" fn call_request(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalues of `prepare`, the argument of `request` and room for twenty values.
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
            return ffi::luaL_error(raw, c"wrk.request is a %s value; wrk.init makes it a function".as_ptr(), kind);
        }
        ffi::lua_pushvalue(raw, -1);
        ffi::lua_call(raw, 0, 1 + c_int::from(*keeps_value));
        if *keeps_value {
            // The key of nil is less than zero.
            value.set(Some(ffi::luaL_ref(raw, ffi::LUA_REGISTRYINDEX)).filter(|key| *key >= 0));
        }
        if ffi::lua_isstring(raw, -1) == 0 {
            if decisions.is_stopped.get() {
                ffi::lua_pushstring(raw, c"".as_ptr());
                return 1;
            }
            return complain(raw);
        }
        // Converts a number to a string here, where an error is still caught.
        ffi::lua_tolstring(raw, -1, std::ptr::null_mut());
        1
    }
}

/// Raises an error about the result on top of the stack, which was returned by the function below it.
///
/// # Safety
///
/// For `call_request` only.
unsafe fn complain(raw: *mut lua_State) -> c_int {
    // SAFETY: the two values are there, and `lua_getinfo` takes the function from the top and fills the record in.
    unsafe {
        let kind = ffi::luaL_typename(raw, -1);
        ffi::lua_pushvalue(raw, -2);
        let mut about: ffi::lua_Debug = std::mem::zeroed();
        ffi::lua_getinfo(raw, c">S".as_ptr(), &mut about);
        let words = c"%s:%d: request() returned a %s value; it must return the text of one or more requests, for instance wrk.format(), or call wrk.thread:stop()";
        ffi::luaL_error(raw, words.as_ptr(), about.short_src.as_ptr().cast::<c_char>(), about.linedefined, kind)
    }
}

/// Calls `response(…)` with [`ResponseArguments`] as the argument. If the script has removed the function, nothing
/// happens.
unsafe extern "C-unwind" fn call_response(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalue of `prepare`, the argument of `tell` and room for twenty values.
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
            fields::push(raw, response.head, response.trailers);
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
    // SAFETY: Lua calls this with the upvalue of `prepare` and room for twenty values.
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
