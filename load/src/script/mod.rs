//! Lua scripts (`-s`): their callbacks and phases.
//!
//! There is one state per thread and a main state. States share nothing; values are copied between them.
//! [`LoadedScript::load`] creates all states and runs every phase before the start. The [`MakeCallbacks`] of a thread
//! move its state to the worker, and dropping the callbacks returns it. Then [`LoadedScript::call_done`] runs in the
//! main state, which may read from the others. Two threads never use a state at the same time.
//!
//! - Before the run: `state` is a Lua state, `holder` keeps it while no worker uses it, `fresh` prepares it for the
//!   script, and `phase` watches for slow functions.
//! - For scripts: `wrk.lua` is the environment of the script, `native` provides the host functions, with `copy`,
//!   `address`, `module`, `shell` and `statistics` as parts. `decisions` holds the script's decisions, and `stack`
//!   keeps recursion within the C stack.
//! - During the run: `thread` is the script of a worker, `written` its requests, `refused` the errors in them,
//!   `returned` a value passed on to their responses. `callbacks` are the other functions that the engine calls, `call`
//!   calls into Lua, and `meter` measures the time. `fields` converts header fields, and `message` formats errors.
//!
//! Nothing here sends a request or measures a response.

mod address;
mod call;
mod callbacks;
mod copy;
mod decisions;
mod fields;
mod fresh;
mod holder;
mod message;
mod meter;
mod module;
mod native;
mod phase;
mod refused;
mod returned;
mod shell;
mod stack;
mod state;
mod statistics;
#[cfg(test)]
mod tests;
mod thread;
mod written;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use onrush_engine::{Listener, MakeCallbacks, Wants};
use onrush_stats::Errors;
use thiserror::Error;

use self::call::Arity;
use self::holder::{StateHolder, lock_holder};
use self::native::StateOwner;
use self::state::LuaState;
use self::thread::ScriptThread;

pub use self::phase::{PhaseWatch, ScriptPhase};
pub use self::shell::end_commands;
pub use self::statistics::StatisticsView;

/// Requirements of a script at its start, including the parts of the command line that it can see.
#[derive(Clone)]
pub struct ScriptSetting<'a> {
    /// Path of the script's file.
    pub path: &'a Path,
    /// Contents of the script's file.
    pub file: &'a [u8],
    /// The script's own arguments, which follow the URL.
    pub args: &'a [String],
    /// The URL as typed.
    pub url: &'a str,
    /// Scheme of the URL.
    pub scheme: &'a str,
    /// Host of the URL, without brackets.
    pub host: &'a str,
    /// Port of the URL, if given.
    pub port: Option<&'a str>,
    /// Method of the plan's request.
    pub method: &'a str,
    /// The request target: path and query.
    pub target: &'a str,
    /// The user's header fields; if a name occurs several times, the script sees the last one.
    pub headers: &'a [(String, String)],
    /// The user's request body, if there is one.
    pub body: Option<&'a [u8]>,
    /// The proxy, if connections use one.
    pub proxy: Option<ScriptProxy<'a>>,
    /// Addresses of the target.
    pub addresses: &'a [SocketAddr],
    /// Gets the lines that the script logs.
    pub listener: Listener,
    /// Number of threads of the run.
    pub threads: u32,
    /// Seed from which the random sequence of each thread is derived.
    pub seed: u64,
    /// True if messages use exactly wrk's words.
    pub is_compat: bool,
    /// True for wrk2: statistics have wrk2's shape, and `delay` is an ordinary function.
    pub is_wrk2: bool,
}

/// How `wrk.format` writes requests that go through a proxy; invisible to scripts.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptProxy<'a> {
    /// Scheme and authority prefixed to the path of each request; `None` in a tunnel.
    pub origin: Option<&'a str>,
    /// Value of `Proxy-Authorization`, if each request needs it.
    pub login: Option<&'a str>,
}

/// The results of a run, as passed to `done`.
#[derive(Clone, Debug)]
pub struct ScriptSummary {
    /// Length of the run in microseconds.
    pub duration_us: u64,
    /// Number of complete responses that count in the rate.
    pub requests: u64,
    /// Number of bytes received.
    pub bytes: u64,
    /// The five totals of errors that wrk counts.
    pub errors: Errors,
    /// Numbers of failures by phase and cause.
    pub ledger: Vec<LedgerRow>,
    /// Latencies in microseconds.
    pub latency: StatisticsView,
    /// Requests per second of each thread.
    pub rates: StatisticsView,
    /// True if no tool is imitated: statistics without values are then nil.
    pub is_native: bool,
}

/// One kind of failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Phase in which the request failed, in wrk's terms.
    pub phase: String,
    /// The cause, in words.
    pub cause: String,
    /// Number of failures of this kind.
    pub count: u64,
}

/// A loaded script: its states, and its decisions before the run.
pub struct LoadedScript {
    main: LuaState,
    threads: Arc<[StateHolder]>,
    /// Requests of each thread, if they never change.
    prebuilt: Option<Vec<Vec<u8>>>,
    depth: usize,
    wants: Wants,
    arity: Arity,
    is_compat: bool,
    phase: ScriptPhase,
    /// True if the first call of `request` stops the first thread.
    stops_first: bool,
}

impl LoadedScript {
    /// Runs the file in every state, calls `setup` and `init` for every thread, and asks the first thread for its first
    /// batch of requests, all on the calling thread. `phase` tracks the current function, including a later `done`.
    ///
    /// # Errors
    ///
    /// Fails with the script's first error, with file and line, or with [`Exit`] if the script ended the program.
    pub fn load(setting: &ScriptSetting<'_>, phase: ScriptPhase) -> anyhow::Result<Self> {
        let threads: Arc<[StateHolder]> = (0..setting.threads).map(|_| StateHolder::default()).collect();
        let main = fresh::create_state(setting, StateOwner::Main(Arc::clone(&threads)))?;
        main.run_file(setting, &phase)?;
        main.call_function(("start", "wrk.resolve()"), &phase, ())?;
        let mut script = Self {
            main,
            threads,
            prebuilt: None,
            depth: 1,
            wants: Wants::default(),
            arity: Arity::default(),
            is_compat: setting.is_compat,
            phase,
            stops_first: false,
        };
        for number in 1..=setting.threads {
            script.load_thread(setting, number)?;
        }
        if shell::is_ending() {
            // A signal that ends a command also ends the program before a run starts, but a moment later.
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(script)
    }

    /// The requests that `thread` (from 0) repeats, as text; `None` if the script writes each batch.
    pub fn prebuilt_requests(&self, thread: usize) -> Option<&[u8]> {
        self.prebuilt.as_ref().map(|of_thread| of_thread[thread].as_slice())
    }

    /// Number of requests in the first thread's first batch, at least one.
    pub fn first_batch_size(&self) -> usize {
        self.depth
    }

    /// The callbacks and arguments that the script needs. They are fixed before the run: a later replacement of
    /// `response` gets the arguments of the original function.
    pub fn wants(&self) -> Wants {
        self.wants
    }

    /// Takes the states of all threads, one for each worker; may be called only once per run. A finished worker drops
    /// its callbacks in its own thread; only then can `done` read its state.
    pub fn take_callbacks(&mut self) -> Vec<MakeCallbacks> {
        let threads = (0..self.threads.len()).map(|index| ScriptThread::new(self, index));
        threads.map(|thread| -> MakeCallbacks { Box::new(|| callbacks::callbacks_for_thread(thread)) }).collect()
    }

    /// True if the script has defined a `done` function.
    pub fn has_done(&self) -> bool {
        self.main.has_function("done")
    }

    /// Calls `done` with the results, if the script has one. Flushes its output even if it fails.
    ///
    /// # Errors
    ///
    /// Fails with the error raised by the script, or with [`Exit`].
    pub fn call_done(&mut self, summary: &ScriptSummary) -> anyhow::Result<()> {
        if !self.has_done() {
            return Ok(());
        }
        let arguments = statistics::done_arguments(self.main.lua(), summary).map_err(|error| anyhow!("{error}"))?;
        let result = self.main.call_function(("done", "done()"), &self.phase, arguments);
        flush_output();
        result
    }

    /// Runs all steps for one thread before the start.
    fn load_thread(&mut self, setting: &ScriptSetting<'_>, number: u32) -> anyhow::Result<()> {
        let index = number as usize - 1;
        let state = fresh::create_state(setting, StateOwner::Thread(number))?;
        state.run_file(setting, &self.phase)?;
        *lock_holder(&self.threads[index]) = Some(state);
        self.main.call_function(("setup", "setup()"), &self.phase, number)?;
        let threads = Arc::clone(&self.threads);
        let mut holder = lock_holder(&threads[index]);
        let state = holder.as_mut().expect("it was put there, and no worker runs yet");
        state.call_init(setting, &self.phase)?;
        let is_dynamic = if number == 1 { state.has_function("request") } else { self.wants.request };
        if is_dynamic && number > 1 {
            return Ok(());
        }
        let name = if is_dynamic { "request()" } else { "wrk.request()" };
        // As in wrk, only a running thread can be stopped. `request` may stop it at once.
        state.decisions().is_stopped.set(false);
        let bytes = state.request_batch(&self.phase).map(<[u8]>::to_vec);
        let bytes = state.check_exit(bytes.map_err(|problem| anyhow!(state.add_path(problem))))?;
        let is_stopped = state.decisions().is_stopped.get();
        let outlines = if is_stopped {
            Vec::new()
        } else {
            refused::find_requests(&bytes, name, setting.is_compat, state.lua()).map_err(|problem| anyhow!(problem))?
        };
        if number == 1 {
            self.stops_first = is_stopped;
            self.depth = outlines.len().max(1);
            // The call of `request` above may have defined the other functions.
            self.arity = state.arity(setting.is_compat);
            self.wants = Wants {
                request: is_dynamic,
                delay: !setting.is_wrk2 && state.has_function("delay"),
                response: state.has_function("response"),
                headers: self.arity.arguments >= 2,
                body: self.arity.arguments >= 3,
            };
        }
        if !is_dynamic {
            self.prebuilt.get_or_insert_default().push(bytes);
        }
        Ok(())
    }
}

/// Flushes the output of C code, so that the report comes afterwards. While a thread is inside the script, it may hold
/// the lock of a stream forever: then only standard output is flushed.
pub fn flush_output() {
    if are_threads_inside() { flush_printed() } else { flush_all_streams() }
}

/// Flushes the standard output of C code, which `print` uses.
pub fn flush_printed() {
    // SAFETY: it is a stream.
    unsafe { libc::fflush(standard_output()) };
}

/// Flushes all C streams. May block forever if a script holds the lock of a stream.
pub fn flush_all_streams() {
    // SAFETY: a null pointer means all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// The stream used by `print` and `io.write`.
fn standard_output() -> *mut libc::FILE {
    unsafe extern "C" {
        #[link_name = "stdout"]
        static OUTPUT: *mut libc::FILE;
    }
    // SAFETY: the C library sets it before the program starts.
    unsafe { OUTPUT }
}

/// True if a thread of a run still holds its script. At the end of the program, such a thread never returned.
pub fn are_threads_inside() -> bool {
    thread::count_threads_inside() > 0
}

/// The script called `os.exit`, which ends the run and sets the exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the script called os.exit({0})")]
pub struct Exit(pub i32);
