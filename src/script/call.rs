//! The calls of a script's functions while requests are under way.
//!
//! Everything that a call needs is kept at the bottom of the state's stack. Each callback is called by a C function of
//! ours inside one protected call, so that any error raised on the way (by the script, by a finalizer, for want of
//! memory) arrives as a message. Such a function may be left at any call into Lua, by unwinding: it owns nothing that
//! would have to be dropped.

use std::ffi::{CStr, c_char, c_int, c_void};

use mlua::ffi::{self, lua_State};
use mlua::{Lua, Table};

use super::{fields, message};
use crate::engine::Answer;

/// Where things lie on the stack of a state.
const HANDLER: c_int = 1;
const REQUEST: c_int = 2;
const RESPONSE: c_int = 3;
const DELAY: c_int = 4;
/// The text that was returned last. As long as it lies here no other text can have its address.
const LAST: c_int = 5;

/// Where things wait for their place on the stack.
const KEYS: [&CStr; 2] = [c"onrush.handler", c"onrush.wrk"];

/// What `response` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arity {
    /// How many arguments it gets.
    pub arguments: u8,
}

impl Arity {
    /// What a function with this many named parameters gets. The fourth argument is not wrk's: only a function that names it gets it.
    pub fn of(named: u8, is_variadic: bool) -> Self {
        Self { arguments: if is_variadic { named.clamp(3, 4) } else { named.min(4) } }
    }
}

/// Puts in place what the calls need. `calls` is what `wrk.lua` returned.
///
/// # Safety
///
/// `raw` must be the state of `lua`, not in use by anybody else, with an empty stack.
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

/// Asks for the next batch.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses; the bytes last until its next use.
pub unsafe fn request<'a>(raw: *mut lua_State) -> Result<&'a [u8], String> {
    // SAFETY: as the caller promises. `call_request` returns one string.
    unsafe {
        call(raw, REQUEST, std::ptr::null_mut(), 1)?;
        let mut length = 0;
        let text = ffi::lua_tolstring(raw, -1, &mut length);
        ffi::lua_replace(raw, LAST);
        Ok(std::slice::from_raw_parts(text.cast::<u8>(), length))
    }
}

/// Asks how long to pause, in milliseconds; `None`: what came is no number.
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

/// What `response` is to be told.
pub struct Telling<'a> {
    /// The response.
    pub answer: &'a Answer<'a>,
    /// How many arguments there are.
    pub arguments: c_int,
}

/// Tells of a response.
///
/// # Safety
///
/// `raw` must be a prepared state that no other code uses.
pub unsafe fn tell(raw: *mut lua_State, telling: &Telling<'_>) -> Result<(), String> {
    // SAFETY: as the caller promises; `telling` outlives the call and is only read.
    unsafe { call(raw, RESPONSE, std::ptr::from_ref(telling).cast_mut().cast(), 0) }
}

/// Calls what lies at `place`; the results lie on top of the stack, or nothing does.
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
        let problem = message::told(bytes);
        ffi::lua_settop(raw, LAST);
        Err(problem)
    }
}

/// `request()`, or where there is none, `wrk.request()`. Returns one string.
unsafe extern "C-unwind" fn call_request(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalues of `prepare` and with room for twenty values.
    unsafe {
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
        ffi::lua_call(raw, 0, 1);
        if ffi::lua_isstring(raw, -1) == 0 {
            return complain(raw);
        }
        // Makes a string of a number, while that may still fail.
        ffi::lua_tolstring(raw, -1, std::ptr::null_mut());
        1
    }
}

/// Raises an error about the result on top of the stack, which the function below it returned.
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
        let words = c"%s:%d: request() returned a %s value; it must return the text of one request or more, for instance wrk.format()";
        ffi::luaL_error(raw, words.as_ptr(), about.short_src.as_ptr().cast::<c_char>(), about.linedefined, kind)
    }
}

/// `response(…)`, with a [`Telling`] as the argument. A script that has none any more is told nothing.
unsafe extern "C-unwind" fn call_response(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalue of `prepare`, the argument of `tell` and room for twenty values.
    unsafe {
        let telling = &*ffi::lua_touserdata(raw, 1).cast::<Telling<'_>>();
        let Telling { answer, arguments } = *telling;
        ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(1));
        ffi::lua_gettable_(raw, ffi::LUA_GLOBALSINDEX);
        if ffi::lua_isfunction(raw, -1) == 0 {
            return 0;
        }
        if arguments >= 1 {
            ffi::lua_pushnumber(raw, f64::from(answer.status));
        }
        if arguments >= 2 {
            fields::push(raw, answer.head, answer.trailers);
        }
        if arguments >= 3 {
            ffi::lua_pushlstring_(raw, answer.body.as_ptr().cast(), answer.body.len());
        }
        if arguments >= 4 {
            ffi::lua_pushnumber(raw, answer.latency_ns as f64 / 1000.0);
        }
        ffi::lua_call(raw, arguments, 0);
        0
    }
}

/// `delay()`. Returns what it returns, or zero where there is none any more.
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
