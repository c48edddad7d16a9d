//! A Lua state and the calls of its phases.
//!
//! Every library of LuaJIT is available, including `debug` and `ffi`: a script can do whatever a C program can.

use std::path::Path;
use std::rc::Rc;

use anyhow::anyhow;
use mlua::{Function, IntoLuaMulti, Lua, Table, Value, ffi};

use super::call::{self, Arity, RequestCall};
use super::decisions::Decisions;
use super::phase::ScriptPhase;
use super::{Exit, ScriptSetting, message};

/// A Lua state with everything that depends on it.
pub struct LuaState {
    /// Path of the script, as shown in messages.
    path: String,
    decisions: Rc<Decisions>,
    /// The functions returned by `wrk.lua`.
    calls: Table,
    lua: Lua,
    // The last field, so that everything referring to the state is dropped before it is closed.
    owner: Owner,
}

// SAFETY: `Lua`, the table, and the `Rc`s here and in the closures of `native` refer only to this state. All of them
// are moved together, and none is given out. LuaJIT keeps nothing per thread. So only the owner of the state uses any
// of it: before the start the main thread, then a worker, and the main thread again after the worker has given it back.
// `StateHolder`, which hands it over, is a mutex.
unsafe impl Send for LuaState {}

impl LuaState {
    /// Creates a state with all libraries. `prepare` fills it, before the script at `path` can run.
    pub fn new(
        path: &Path,
        prepare: impl FnOnce(&Lua, *mut ffi::lua_State) -> mlua::Result<(Rc<Decisions>, Table)>,
    ) -> anyhow::Result<Self> {
        // SAFETY: the call has no preconditions.
        let raw = unsafe { ffi::luaL_newstate() };
        anyhow::ensure!(!raw.is_null(), "not enough memory for a Lua state; use fewer threads (-t)");
        let owner = Owner(raw);
        // SAFETY: the state was just created, and `owner` closes it after the last use of `lua`.
        let lua = unsafe {
            ffi::luaL_openlibs(raw);
            Lua::get_or_init_from_ptr(raw).clone()
        };
        let (decisions, calls) = prepare(&lua, raw).map_err(|error| anyhow!("cannot set up Lua: {error}"))?;
        Ok(Self { path: path.display().to_string(), decisions, calls, lua, owner })
    }

    /// Runs the script's file, which defines its functions.
    pub fn run_file(&self, setting: &ScriptSetting<'_>, phase: &ScriptPhase) -> anyhow::Result<()> {
        let chunk = self.lua.load(setting.file).set_name(format!("@{}", setting.path.display())).into_function();
        let shown = ("run", "its file, outside of all functions,");
        self.call_function(shown, phase, chunk.map_err(|error| anyhow!(self.add_path(error_text(&error))))?)
    }

    /// Adds the script's path to a problem that lacks it: LuaJIT reports no place when memory or its stack runs out.
    pub fn add_path(&self, problem: String) -> String {
        if problem.contains(&self.path) { problem } else { format!("{}: {problem}", self.path) }
    }

    /// Calls a function that `wrk.lua` returned. `shown` is the name that messages give it.
    pub fn call_function(
        &self,
        (name, shown): (&str, &'static str),
        phase: &ScriptPhase,
        arguments: impl IntoLuaMulti,
    ) -> anyhow::Result<()> {
        phase.track_call(shown, || self.call_at_once(name, arguments))
    }

    fn call_at_once(&self, name: &str, arguments: impl IntoLuaMulti) -> anyhow::Result<()> {
        let result = self.calls.get::<Function>(name).and_then(|call| call.call::<(bool, Value)>(arguments));
        self.check_exit(match result {
            // The function's own result is ignored.
            Ok((true, _)) => Ok(()),
            Ok((false, Value::String(problem))) => {
                Err(anyhow!(self.add_path(message::readable_error(&problem.as_bytes()))))
            }
            Ok((false, problem)) => Err(anyhow!("{}: error: a {} value", self.path, problem.type_name())),
            Err(error) => Err(anyhow!(self.add_path(error_text(&error)))),
        })
    }

    /// Passes on the outcome of a call, or [`Exit`] if the script called `os.exit`, even if it caught the error
    /// afterwards.
    pub fn check_exit<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        self.decisions.exit.get().map_or(outcome, |code| Err(Exit(code).into()))
    }

    /// Calls the script's `init` with the arguments after the URL.
    pub fn call_init(&mut self, setting: &ScriptSetting<'_>, phase: &ScriptPhase) -> anyhow::Result<()> {
        let arguments = self.lua.create_sequence_from(setting.args.iter().map(String::as_str));
        let arguments = arguments.and_then(|table| table.raw_set(0, setting.url).map(|()| table));
        self.call_function(("init", "init()"), phase, arguments.map_err(|error| anyhow!(error_text(&error)))?)
    }

    /// Returns the requests of one batch, written before the run; valid until the next use of the state.
    pub fn request_batch(&mut self, phase: &ScriptPhase) -> Result<&[u8], String> {
        let asking = RequestCall::new(&self.decisions, false);
        // SAFETY: no other code uses the state while it is borrowed, and the state keeps the bytes.
        let answer = phase.track_call("its first request()", || unsafe { call::request_batch(self.owner.0, &asking) });
        answer.map(|answer| answer.text).map_err(|problem| self.add_path(problem))
    }

    /// How many arguments to pass to the script's `response`.
    pub fn arity(&self, is_compat: bool) -> Arity {
        let parameters = self.calls.get::<Function>("parameters").and_then(|call| call.call::<(u8, bool)>("response"));
        parameters.map_or_else(
            |_| Arity::default(),
            |(named, is_variadic)| Arity::for_function(named, is_variadic, is_compat),
        )
    }

    /// True if the script has defined a global function with this name.
    pub fn has_function(&self, name: &str) -> bool {
        matches!(self.lua.globals().get(name), Ok(Value::Function(_)))
    }

    /// Decisions of the script about its thread.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// The state, to create values in it.
    pub fn lua(&self) -> &Lua {
        &self.lua
    }

    /// The state, for direct calls; see [`call`].
    pub fn raw(&self) -> *mut ffi::lua_State {
        self.owner.0
    }
}

/// Closes a state.
struct Owner(*mut ffi::lua_State);

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: `LuaState::new` created the state, and nothing refers to it any more.
        unsafe { ffi::lua_close(self.0) };
    }
}

/// The message of an error, without mlua's additions.
fn error_text(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } | mlua::Error::RuntimeError(message) => {
            message::readable_error(message.as_bytes())
        }
        other => message::readable_error(other.to_string().as_bytes()),
    }
}
