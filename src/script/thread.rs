//! The script of one worker, which calls it during the run.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::Arc;

use onrush_engine::{Response, ScriptFailure, Wants};

use super::call::{self, Telling};
use super::decisions::Decisions;
use super::holder::{StateHolder, lock};
use super::meter::Meter;
use super::state::State;
use super::{Script, fields};

/// The script of one worker, shared by the callbacks.
pub struct ScriptThread {
    state: Option<State>,
    threads: Arc<[StateHolder]>,
    index: usize,
    /// The callbacks and arguments that the script needs.
    pub wants: Wants,
    /// The number of arguments of `response`.
    arguments: c_int,
    /// Whether messages have exactly wrk's words.
    pub is_compat: bool,
    meter: RefCell<Meter>,
}

impl ScriptThread {
    /// Takes the state of a thread.
    pub fn new(script: &Script, index: usize) -> Self {
        let state = lock(&script.threads[index]).take();
        if let Some(state) = &state {
            // As in wrk, only a running thread can be stopped.
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

    /// The length of the pause that the script asks for; `None` if it did not return a number.
    pub fn delay_ns(&self) -> Result<Option<u64>, ScriptFailure> {
        // SAFETY: no other code uses the state.
        let delay = self.timed(|| unsafe { call::delay_ms(self.state().raw()) });
        // The cast drops the fraction and turns negative numbers into zero.
        self.ended(delay.map(|ms| ms.map(|ms| (ms as u64).saturating_mul(1_000_000))))
    }

    /// Passes a response to the script.
    pub fn answered(&self, response: &Response<'_>) -> Result<(), ScriptFailure> {
        // wrk has no table of headers to pass then.
        if self.is_compat && self.wants.headers && !fields::is_any(response.head) {
            return Ok(());
        }
        // SAFETY: no other code uses the state.
        let result =
            self.timed(|| unsafe { call::tell(self.state().raw(), &Telling { response, arguments: self.arguments }) });
        self.ended(result)
    }

    /// The text of the next requests; `None` once the script has stopped the thread.
    ///
    /// # Safety
    ///
    /// The text is valid until another method of this thread is called.
    pub unsafe fn request(&self) -> Result<Option<&[u8]>, ScriptFailure> {
        // SAFETY: no other code uses the state, and the caller uses the text before the next call.
        let text = self.timed(|| unsafe { call::request(self.state().raw(), Some(self.decisions())) });
        let text = self.ended(text)?;
        Ok((!self.decisions().is_stopped.get()).then_some(text))
    }

    /// The script's decisions about its thread.
    pub fn decisions(&self) -> &Decisions {
        self.state().decisions()
    }

    /// The time spent in the script so far, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.meter.borrow().spent_ns()
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

    fn state(&self) -> &State {
        self.state.as_ref().expect("the thread keeps it until it is dropped")
    }
}

impl Drop for ScriptThread {
    fn drop(&mut self) {
        *lock(&self.threads[self.index]) = self.state.take();
    }
}
