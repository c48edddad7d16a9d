//! The script of one worker during the run.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mlua::Lua;
use onrush_engine::{Response, ScriptFailure, Wants};

use super::call::{self, Arity, RequestCall, ResponseArguments, WrittenBatch};
use super::decisions::Decisions;
use super::holder::{StateHolder, lock_holder};
use super::meter::Meter;
use super::returned::KeptValue;
use super::state::LuaState;
use super::{LoadedScript, fields};

/// Number of threads that have taken their state and not returned it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Number of threads that hold their state at the moment.
pub fn count_threads_inside() -> usize {
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
    /// Takes the state of thread `index` (from 0) out of its holder; dropping the result puts it back.
    pub fn new(script: &LoadedScript, index: usize) -> Self {
        let state = lock_holder(&script.threads[index]).take();
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
        let delay = self.time_call(|| unsafe { call::delay_ms(self.state().raw()) });
        // The cast drops the fraction and turns negative numbers into zero.
        self.check_exit(delay.map(|ms| ms.map(|ms| (ms as u64).saturating_mul(1_000_000))))
    }

    /// Passes a response to the script's `response`.
    pub fn pass_response(&self, response: &Response<'_>) -> Result<(), ScriptFailure> {
        // In that case wrk has no table of headers to pass.
        if self.is_compat && self.wants.headers && !fields::has_fields(response.head) {
            return Ok(());
        }
        let arguments = c_int::from(self.arity.arguments);
        let telling = ResponseArguments { response, arguments, value: KeptValue::value_key(response) };
        // SAFETY: no other code uses the state.
        let result = self.time_call(|| unsafe { call::pass_response(self.state().raw(), &telling) });
        self.check_exit(result)
    }

    /// Asks the script for the next requests; `None` once the script has stopped the thread.
    ///
    /// # Safety
    ///
    /// The text is valid until another method of this thread is called.
    pub unsafe fn request_batch(&self) -> Result<Option<WrittenBatch<'_>>, ScriptFailure> {
        if self.decisions().is_stopped.get() {
            return Ok(None);
        }
        let asking = RequestCall::new(self.decisions(), self.arity.has_value());
        // SAFETY: no other code uses the state, and the caller uses the text before the next call.
        let answer = self.time_call(|| unsafe { call::request_batch(self.state().raw(), &asking) });
        let answer = self.check_exit(answer)?;
        Ok((!self.decisions().is_stopped.get()).then_some(answer))
    }

    /// Releases a value that `request` returned with a batch.
    ///
    /// # Safety
    ///
    /// The value must not have been released before, and must not be used afterwards.
    pub unsafe fn release_value(&self, key: c_int) {
        // SAFETY: no other code uses the state, and the caller's promise.
        unsafe { call::release_value(self.state().raw(), key) };
    }

    /// The script's decisions about its thread.
    pub fn decisions(&self) -> &Decisions {
        self.state().decisions()
    }

    /// The state, to read from it.
    pub fn lua(&self) -> &Lua {
        self.state().lua()
    }

    /// Estimated time spent in the script so far, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.meter.borrow().spent_ns()
    }

    /// Takes the long periods in the script since the last call (start, end), in nanoseconds of the monotonic clock.
    pub fn take_long_periods(&self) -> Vec<(u64, u64)> {
        self.meter.borrow_mut().take_long_periods()
    }

    /// Makes a call into Lua and counts its time as spent in the script.
    fn time_call<T>(&self, call: impl FnOnce() -> T) -> T {
        let began = self.meter.borrow_mut().begin_call();
        let outcome = call();
        self.meter.borrow_mut().end_call(began);
        outcome
    }

    /// The outcome of a call; `os.exit` counts even if the script caught the error afterwards.
    fn check_exit<T>(&self, outcome: Result<T, String>) -> Result<T, ScriptFailure> {
        match self.decisions().exit.get() {
            Some(code) => Err(ScriptFailure::Exit(code)),
            None => outcome.map_err(|problem| ScriptFailure::Raised(self.state().add_path(problem))),
        }
    }

    fn state(&self) -> &LuaState {
        self.state.as_ref().expect("the thread keeps it until it is dropped")
    }
}

impl Drop for ScriptThread {
    fn drop(&mut self) {
        *lock_holder(&self.threads[self.index]) = self.state.take();
        INSIDE.fetch_sub(1, Ordering::Relaxed);
    }
}
