//! The script of one worker during the run.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mlua::Lua;
use onrush_engine::{Response, ScriptFailure, Wants};

use super::call::{self, Arity, RequestCall, ResponseArguments, WrittenBatch};
use super::decisions::Decisions;
use super::holder::{StateHolder, lock};
use super::meter::Meter;
use super::returned::KeptValue;
use super::state::LuaState;
use super::{LoadedScript, fields};

/// Number of threads that have taken their state and not returned it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Number of threads that hold their state.
pub fn inside() -> usize {
    INSIDE.load(Ordering::Relaxed)
}

/// The script of one worker, shared by its callbacks.
pub struct ScriptThread {
    state: Option<LuaState>,
    threads: Arc<[StateHolder]>,
    index: usize,
    /// The callbacks and arguments that the script needs.
    pub wants: Wants,
    arity: Arity,
    /// True if messages use exactly wrk's words.
    pub is_compat: bool,
    meter: RefCell<Meter>,
}

impl ScriptThread {
    /// Takes the state of thread `index` out of its holder.
    pub fn new(script: &LoadedScript, index: usize) -> Self {
        let state = lock(&script.threads[index]).take();
        if let Some(state) = &state {
            // As in wrk, only a running thread can be stopped.
            state.decisions().is_stopped.set(script.stops_first && index == 0);
        }
        INSIDE.fetch_add(1, Ordering::Relaxed);
        Self {
            state,
            threads: Arc::clone(&script.threads),
            index,
            wants: script.wants,
            arity: script.arity,
            is_compat: script.is_compat,
            meter: RefCell::default(),
        }
    }

    /// The pause requested by the script, in nanoseconds; `None` if it returned something other than a number.
    pub fn delay_ns(&self) -> Result<Option<u64>, ScriptFailure> {
        // SAFETY: no other code uses the state.
        let delay = self.timed(|| unsafe { call::delay_ms(self.state().raw()) });
        // The cast drops the fraction and turns negative numbers into zero.
        self.ended(delay.map(|ms| ms.map(|ms| (ms as u64).saturating_mul(1_000_000))))
    }

    /// Passes a response to the script.
    pub fn answered(&self, response: &Response<'_>) -> Result<(), ScriptFailure> {
        // wrk then has no table of headers to pass.
        if self.is_compat && self.wants.headers && !fields::is_any(response.head) {
            return Ok(());
        }
        let arguments = c_int::from(self.arity.arguments);
        let telling = ResponseArguments { response, arguments, value: KeptValue::key(response) };
        // SAFETY: no other code uses the state.
        let result = self.timed(|| unsafe { call::tell(self.state().raw(), &telling) });
        self.ended(result)
    }

    /// The next requests; `None` once the script has stopped the thread.
    ///
    /// # Safety
    ///
    /// The text is valid until another method of this thread is called.
    pub unsafe fn request(&self) -> Result<Option<WrittenBatch<'_>>, ScriptFailure> {
        if self.decisions().is_stopped.get() {
            return Ok(None);
        }
        let asking = RequestCall::new(self.decisions(), self.arity.has_value());
        // SAFETY: no other code uses the state, and the caller uses the text before the next call.
        let answer = self.timed(|| unsafe { call::request(self.state().raw(), &asking) });
        let answer = self.ended(answer)?;
        Ok((!self.decisions().is_stopped.get()).then_some(answer))
    }

    /// Releases a value returned with requests.
    ///
    /// # Safety
    ///
    /// The value must not have been released before, and must not be used afterwards.
    pub unsafe fn release(&self, key: c_int) {
        // SAFETY: no other code uses the state, and the caller's promise.
        unsafe { call::release(self.state().raw(), key) };
    }

    /// The script's decisions about its thread.
    pub fn decisions(&self) -> &Decisions {
        self.state().decisions()
    }

    /// The state, for reading.
    pub fn lua(&self) -> &Lua {
        self.state().lua()
    }

    /// Time spent in the script so far, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.meter.borrow().spent_ns()
    }

    /// Takes the long periods in the script since the last call (start, end), in nanoseconds of the monotonic clock.
    pub fn take_long(&self) -> Vec<(u64, u64)> {
        self.meter.borrow_mut().take_long()
    }

    /// Makes a call into Lua and counts its time as spent in the script.
    fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        let began = self.meter.borrow_mut().begin();
        let outcome = call();
        self.meter.borrow_mut().end(began);
        outcome
    }

    /// The outcome of a call; `os.exit` counts even if the script caught the error afterwards.
    fn ended<T>(&self, outcome: Result<T, String>) -> Result<T, ScriptFailure> {
        match self.decisions().exit.get() {
            Some(code) => Err(ScriptFailure::Exit(code)),
            None => outcome.map_err(|problem| ScriptFailure::Raised(self.state().located(problem))),
        }
    }

    fn state(&self) -> &LuaState {
        self.state.as_ref().expect("the thread keeps it until it is dropped")
    }
}

impl Drop for ScriptThread {
    fn drop(&mut self) {
        *lock(&self.threads[self.index]) = self.state.take();
        INSIDE.fetch_sub(1, Ordering::Relaxed);
    }
}
