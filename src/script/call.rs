//! The way into a script while requests are under way.
//!
//! Everything that a call needs lies ready at the bottom of the state's stack. Each callback is called by a C function of
//! ours inside one protected call, so that whatever is raised on the way (by the script, by a finalizer, for want of
//! memory) arrives as a message. Such a function may be left at any call into Lua, by unwinding: it owns nothing that
//! would have to be dropped.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use mlua::ffi::{self, lua_State};
use mlua::{Lua, Table};
use onrush_proto::Request;
use onrush_proto::http1::Wire;

use super::state::State;
use super::{Script, Slot, fields, lock, message, outline, refusal};
use crate::backend::coarse_ns;
use crate::engine::{Answer, Callbacks, OnResponse, ScriptFailure, Source, Wants};

/// Where things lie on the stack of a state.
const HANDLER: c_int = 1;
const REQUEST: c_int = 2;
const RESPONSE: c_int = 3;
const DELAY: c_int = 4;
/// The text that was returned last. As long as it lies here no other text can have its address.
const LAST: c_int = 5;

/// Where things wait for their place on the stack.
const KEYS: [&CStr; 2] = [c"onrush.handler", c"onrush.wrk"];

/// So many calls are timed at the beginning.
const FIRST: u64 = 64;
/// From then on, one of so many is timed. It is prime, so that no rhythm of a script falls in with it.
const TIMED: u64 = 61;
/// A call that lasts longer by the coarse clock, in nanoseconds, counts for itself, timed or not: it may be rare. That is at
/// least two ticks of that clock, so that no short one does.
const LONG_NS: u64 = 20_000_000;

/// The script of one worker: what the callbacks share.
pub struct ScriptThread {
    state: Option<State>,
    threads: Arc<[Slot]>,
    index: usize,
    wants: Wants,
    /// How many arguments `response` gets.
    arguments: c_int,
    is_compat: bool,
    meter: RefCell<Meter>,
}

/// What `response` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arity {
    /// How many arguments it gets.
    pub arguments: u8,
}

impl Arity {
    /// What a function with so many named parameters gets. The fourth argument is not wrk's: only who names it gets it.
    pub fn of(named: u8, is_variadic: bool) -> Self {
        Self { arguments: if is_variadic { named.clamp(3, 4) } else { named.min(4) } }
    }
}

impl ScriptThread {
    /// Takes the state of a thread.
    pub fn new(script: &Script, index: usize) -> Self {
        let state = lock(&script.threads[index]).take();
        if let Some(state) = &state {
            // As in wrk, only a thread that runs can be stopped.
            state.decisions().is_stopped.set(false);
        }
        Self {
            state,
            threads: Arc::clone(&script.threads),
            index,
            wants: script.wants,
            arguments: c_int::from(script.arity.arguments),
            is_compat: script.is_compat,
            meter: RefCell::default(),
        }
    }

    /// The script as a worker calls it, in the thread of that; the state goes back when all of it is dropped. Without
    /// `request` there is no source.
    pub fn callbacks(self) -> (Option<Box<dyn Source>>, Callbacks) {
        let (wants, thread) = (self.wants, Rc::new(self));
        let source: Option<Box<dyn Source>> =
            if wants.request { Some(Box::new(Written::of(Rc::clone(&thread)))) } else { None };
        let response = wants.response.then(|| {
            let thread = Rc::clone(&thread);
            OnResponse {
                headers: wants.headers,
                body: wants.body,
                call: Box::new(move |answer| thread.answered(answer)),
            }
        });
        let think_ns = wants.delay.then(|| -> Box<dyn FnMut() -> _> {
            let thread = Rc::clone(&thread);
            Box::new(move || thread.delay_ns())
        });
        let [of_stop, of_address] = [Rc::clone(&thread), Rc::clone(&thread)];
        let callbacks = Callbacks {
            response,
            think_ns,
            is_stopped: Some(Box::new(move || of_stop.state().decisions().is_stopped.get())),
            address: Some(Box::new(move || of_address.state().decisions().address.get())),
            spent_ns: Some(Box::new(move || thread.meter.borrow().spent_ns())),
        };
        (source, callbacks)
    }

    fn delay_ns(&self) -> Result<u64, ScriptFailure> {
        // SAFETY: the state is ours alone.
        let delay = self.timed(|| unsafe { delay_ms(self.state().raw()) });
        // A cast cuts the fraction off and makes zero of what is negative or no number.
        self.ended(delay.map(|ms| (ms as u64).saturating_mul(1_000_000)))
    }

    fn answered(&self, answer: &Answer<'_>) -> Result<(), ScriptFailure> {
        if self.wants.headers && !fields::is_any(answer.head) {
            return Ok(());
        }
        // SAFETY: the state is ours alone.
        let told = self.timed(|| unsafe { tell(self.state().raw(), &Telling { answer, arguments: self.arguments }) });
        self.ended(told)
    }

    /// Makes a call into Lua, whose time is spent in the script.
    fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        let began = self.meter.borrow_mut().begin();
        let outcome = call();
        self.meter.borrow_mut().end(began);
        outcome
    }

    /// The outcome of a call: that the script has called `os.exit` in it counts, whatever it did with that afterwards.
    fn ended<T>(&self, outcome: Result<T, String>) -> Result<T, ScriptFailure> {
        match self.state().decisions().exit.get() {
            Some(code) => Err(ScriptFailure::Exit(code)),
            None => outcome.map_err(|problem| ScriptFailure::Raised(self.state().located(problem))),
        }
    }

    fn state(&self) -> &State {
        self.state.as_ref().expect("whoever has it keeps it until it is dropped")
    }
}

impl Drop for ScriptThread {
    fn drop(&mut self) {
        *lock(&self.threads[self.index]) = self.state.take();
    }
}

/// The requests that `request` writes.
struct Written {
    thread: Rc<ScriptThread>,
    /// Where the text lies that `requests` came from.
    last: *const u8,
    requests: Vec<Request>,
}

impl Written {
    fn of(thread: Rc<ScriptThread>) -> Self {
        Self { thread, last: std::ptr::null(), requests: Vec::new() }
    }
}

impl Source for Written {
    fn next(&mut self, batch: &mut Vec<Request>) -> Result<(), ScriptFailure> {
        // SAFETY: the state is ours alone, and the text is used before the next call.
        let text = self.thread.timed(|| unsafe { request(self.thread.state().raw()) });
        let text = self.thread.ended(text)?;
        if text.as_ptr() != self.last {
            self.last = std::ptr::null();
            let refused = |error| ScriptFailure::Raised(refusal("request()", error, self.thread.is_compat));
            let outlines = outline(text).map_err(refused)?;
            let bytes: Rc<[u8]> = text.into();
            self.requests.clear();
            self.requests.extend(outlines.into_iter().map(|outline| Request::Http1(Wire::among(&bytes, outline))));
            self.last = text.as_ptr();
        }
        batch.extend_from_slice(&self.requests);
        Ok(())
    }
}

/// Estimates the time spent in calls: the first and the long ones are all timed, the others by some of them.
#[derive(Debug, Default)]
struct Meter {
    calls: u64,
    /// The first calls, which may be the only ones, and compile.
    first_ns: u64,
    /// The long ones behind them, and how many they are.
    long_ns: u64,
    long: u64,
    /// Those of the others that were timed, and how many they are.
    sampled_ns: u64,
    sampled: u64,
}

/// When a call began, by the coarse clock and, if it is timed, exactly.
struct Began {
    coarse_ns: u64,
    at: Option<Instant>,
}

impl Meter {
    fn begin(&mut self) -> Began {
        self.calls += 1;
        let is_timed = self.calls <= FIRST || self.calls.is_multiple_of(TIMED);
        Began { coarse_ns: coarse_ns(), at: is_timed.then(Instant::now) }
    }

    fn end(&mut self, began: Began) {
        let coarse_ns = coarse_ns() - began.coarse_ns;
        let timed_ns = began.at.map(|at| at.elapsed().as_nanos() as u64);
        match timed_ns {
            Some(timed_ns) if self.calls <= FIRST => self.first_ns += timed_ns,
            _ if coarse_ns >= LONG_NS => {
                self.long += 1;
                self.long_ns += timed_ns.unwrap_or(coarse_ns);
            }
            Some(timed_ns) => {
                self.sampled += 1;
                self.sampled_ns += timed_ns;
            }
            None => {}
        }
    }

    /// The time spent so far, in nanoseconds. Until another is timed, a call is taken to last as long as the first ones.
    fn spent_ns(&self) -> u64 {
        let others = self.calls.saturating_sub(FIRST + self.long);
        let (timed, timed_ns) = if self.sampled > 0 { (self.sampled, self.sampled_ns) } else { (FIRST, self.first_ns) };
        let others_ns = u128::from(others) * u128::from(timed_ns) / u128::from(timed);
        self.first_ns + self.long_ns + others_ns as u64
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
/// `raw` must be a prepared state that nobody else uses; the bytes last until its next use.
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

/// Asks how long to pause.
///
/// # Safety
///
/// `raw` must be a prepared state that nobody else uses.
unsafe fn delay_ms(raw: *mut lua_State) -> Result<f64, String> {
    // SAFETY: as the caller promises. `call_delay` returns one value.
    unsafe {
        call(raw, DELAY, std::ptr::null_mut(), 1)?;
        let delay = ffi::lua_tonumber(raw, -1);
        ffi::lua_settop(raw, LAST);
        Ok(delay)
    }
}

/// What `response` is to be told.
struct Telling<'a> {
    answer: &'a Answer<'a>,
    arguments: c_int,
}

/// Tells of a response.
///
/// # Safety
///
/// `raw` must be a prepared state that nobody else uses.
unsafe fn tell(raw: *mut lua_State, telling: &Telling<'_>) -> Result<(), String> {
    // SAFETY: as the caller promises; `telling` outlives the call and is only read.
    unsafe { call(raw, RESPONSE, std::ptr::from_ref(telling).cast_mut().cast(), 0) }
}

/// Calls what lies at `place`; the results lie on top of the stack, or nothing does.
///
/// # Safety
///
/// `raw` must be a prepared state that nobody else uses, and `argument` what the function expects.
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

/// `delay()`. Returns what it returns, or nil where there is none any more.
unsafe extern "C-unwind" fn call_delay(raw: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with the upvalue of `prepare` and room for twenty values.
    unsafe {
        ffi::lua_pushvalue(raw, ffi::lua_upvalueindex(1));
        ffi::lua_gettable_(raw, ffi::LUA_GLOBALSINDEX);
        if ffi::lua_isfunction(raw, -1) == 0 {
            return 0;
        }
        ffi::lua_call(raw, 0, 1);
        1
    }
}
