//! Lua: the script of `-s`, its callbacks and its phases.
//!
//! There is one state for every thread and one main state, and they share nothing; what goes from one to another is
//! copied. [`Script::load`] makes them all and runs every phase before the start. The [`MakeCallbacks`] of a thread carry
//! its state into the worker, which gives it back when it drops them; [`Script::done`] then runs in the main state, which
//! may ask the others. A state is never used by two threads at the same time.
//!
//! To read in this order: `state` is a state, a `slot` where it lies, `fresh` what is in it before the script, `wrk.lua`
//! what scripts find in it, `native` what that file needs of the host, `copy`, `address` and `statistics` are parts of
//! it, `decisions` are what comes back, `stack` keeps recursion within the C stack. While requests are under way, a
//! `thread` is the script of a worker, `written` its requests, `callbacks` what else the engine calls, `call` how that
//! gets into Lua, `meter` how long it takes; `fields` are the header fields that are shown, `message` is what a user reads
//! of an error. Nothing here sends a request or measures a response.

mod address;
mod call;
mod callbacks;
mod copy;
mod decisions;
mod fields;
mod fresh;
mod message;
mod meter;
mod native;
mod slot;
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

use anyhow::anyhow;
use onrush_proto::http1::{self, Outline};
use thiserror::Error;

use self::call::Arity;
use self::native::Who;
use self::slot::{Slot, lock};
use self::state::State;
use self::thread::ScriptThread;
use crate::engine::{MakeCallbacks, Wants};
use crate::stats::Errors;

pub use self::stack::STACK_BYTES;
pub use self::statistics::View;

/// Is told what a script says: a line, with its end.
pub type Listener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// What the command line says, as far as scripts can see it.
#[derive(Clone)]
pub struct Setting<'a> {
    /// The name of the script's file.
    pub path: &'a Path,
    /// What is in it.
    pub file: &'a [u8],
    /// The words after the URL.
    pub args: &'a [String],
    /// The URL as it was typed.
    pub url: &'a str,
    /// Its scheme.
    pub scheme: &'a str,
    /// Its host, without brackets.
    pub host: &'a str,
    /// Its port, if it names one.
    pub port: Option<&'a str>,
    /// The method of the plan's request.
    pub method: &'a str,
    /// Its target: path and query.
    pub target: &'a str,
    /// The header fields that the user gave; of a name that comes twice a script sees the last.
    pub headers: &'a [(String, String)],
    /// The body that the user gave.
    pub body: Option<&'a [u8]>,
    /// The proxy, if connections go to one.
    pub proxy: Option<Through<'a>>,
    /// Where the load goes.
    pub addresses: &'a [SocketAddr],
    /// Who is told what the script says.
    pub listener: Listener,
    /// How many threads there are.
    pub threads: u32,
    /// Start of every random sequence.
    pub seed: u64,
    /// Whether messages are in wrk's words alone.
    pub is_compat: bool,
    /// Whether statistics have the shape that wrk2 gives them, and `delay` is a function like any other, as there.
    pub is_wrk2: bool,
}

/// What a script sees of a proxy: nothing, but what it formats is made for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Through<'a> {
    /// What comes before the path in each request; `None`: nothing, as there is a tunnel.
    pub origin: Option<&'a str>,
    /// The value of `Proxy-Authorization`, where each request needs it.
    pub login: Option<&'a str>,
}

/// What `done` is told.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How long the run took, in microseconds.
    pub duration_us: u64,
    /// How many responses were complete.
    pub requests: u64,
    /// How many bytes were received.
    pub bytes: u64,
    /// wrk's five totals.
    pub errors: Errors,
    /// What went wrong, by phase and cause.
    pub ledger: Vec<LedgerRow>,
    /// The latencies, in microseconds.
    pub latency: View,
    /// The requests per second of a thread.
    pub rates: View,
}

/// One kind of failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Where in the life of a request it happened.
    pub phase: String,
    /// Why.
    pub cause: String,
    /// How often.
    pub count: u64,
}

/// A loaded script: all of its states, and what it decided before the run.
pub struct Script {
    main: State,
    threads: Arc<[Slot]>,
    /// The requests of every thread, if they are always the same.
    prebuilt: Option<Vec<Vec<u8>>>,
    depth: usize,
    wants: Wants,
    arity: Arity,
    is_compat: bool,
}

impl Script {
    /// Runs the file in every state, then `setup` and `init` for every thread, and asks the first thread for its first
    /// requests; all of it on the calling thread.
    ///
    /// # Errors
    ///
    /// The first thing that goes wrong, with file and line; [`Exit`], if the script ended the program.
    pub fn load(setting: &Setting<'_>) -> anyhow::Result<Self> {
        let threads: Arc<[Slot]> = (0..setting.threads).map(|_| Slot::default()).collect();
        let main = fresh::state(setting, Who::Main(Arc::clone(&threads)))?;
        main.run(setting)?;
        main.call("start", ())?;
        let mut script = Self {
            main,
            threads,
            prebuilt: None,
            depth: 1,
            wants: Wants::default(),
            arity: Arity::default(),
            is_compat: setting.is_compat,
        };
        for number in 1..=setting.threads {
            script.load_thread(setting, number)?;
        }
        Ok(script)
    }

    /// The requests that `thread` (from 0) sends again and again; `None` if the script writes each batch itself.
    pub fn prebuilt(&self, thread: usize) -> Option<&[u8]> {
        self.prebuilt.as_ref().map(|of_thread| of_thread[thread].as_slice())
    }

    /// How many requests a batch had when the first thread was asked for one.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// What the script wants to be asked and told. It is decided here once and for all: a `response` that is replaced
    /// later gets what the first one named.
    pub fn wants(&self) -> Wants {
        self.wants
    }

    /// Hands out the states of all threads, one for every worker. A worker that is done drops its callbacks, in its own
    /// thread; only then can `done` look into them.
    pub fn callbacks(&mut self) -> Vec<MakeCallbacks> {
        let threads = (0..self.threads.len()).map(|index| ScriptThread::new(self, index));
        threads.map(|thread| -> MakeCallbacks { Box::new(|| callbacks::of(thread)) }).collect()
    }

    /// Whether the script wants to hear the results.
    pub fn has_done(&self) -> bool {
        self.main.has_function("done")
    }

    /// Tells the script the results. What it prints is written out, even if it fails.
    ///
    /// # Errors
    ///
    /// What the script raised, or [`Exit`].
    pub fn done(&mut self, summary: &Summary) -> anyhow::Result<()> {
        if !self.has_done() {
            return Ok(());
        }
        let arguments = statistics::arguments(self.main.lua(), summary).map_err(|error| anyhow!("{error}"))?;
        let told = self.main.call("done", arguments);
        flush();
        told
    }

    /// Everything that happens before the start for one thread.
    fn load_thread(&mut self, setting: &Setting<'_>, number: u32) -> anyhow::Result<()> {
        let index = number as usize - 1;
        let state = fresh::state(setting, Who::Thread(number))?;
        state.run(setting)?;
        *lock(&self.threads[index]) = Some(state);
        self.main.call("setup", number)?;
        let threads = Arc::clone(&self.threads);
        let mut slot = lock(&threads[index]);
        let state = slot.as_mut().expect("it was put there, and no worker runs yet");
        state.init(setting)?;
        let is_dynamic = if number == 1 { state.has_function("request") } else { self.wants.request };
        if is_dynamic && number > 1 {
            return Ok(());
        }
        let name = if is_dynamic { "request()" } else { "wrk.request()" };
        let bytes = state.request().map(<[u8]>::to_vec);
        let bytes = state.ended(bytes.map_err(|problem| anyhow!(state.located(problem))))?;
        let outlines = outline(&bytes).map_err(|error| anyhow!(refusal(name, error, setting.is_compat)))?;
        if number == 1 {
            self.depth = outlines.len();
            // The request just asked for may have been what made the others.
            self.arity = state.arity();
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

/// Writes out what C code has printed so far: the report goes after it.
pub fn flush() {
    // SAFETY: a null pointer stands for all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// The script has called `os.exit`, which ends the run and gives the program this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the script ended the program (os.exit)")]
pub struct Exit(pub i32);

/// Finds the requests in what a script returned.
fn outline(bytes: &[u8]) -> Result<Vec<Outline>, http1::Malformed> {
    let mut outlines = Vec::new();
    http1::outline(bytes, &mut outlines)?;
    Ok(outlines)
}

/// What to say of bytes that are not requests.
fn refusal(function: &str, error: http1::Malformed, is_compat: bool) -> String {
    if is_compat {
        return error.to_string();
    }
    format!(
        "{function} of the script returned what is not one or more complete requests: {error} (line and byte of the \
         returned text); wrk.format() makes complete ones"
    )
}
