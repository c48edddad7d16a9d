//! One Lua state, and how its phases are called.
//!
//! Every library of LuaJIT is there, `debug` and `ffi` too: a script may do what a C program may do.

use std::path::Path;
use std::rc::Rc;

use anyhow::anyhow;
use mlua::{Function, IntoLuaMulti, Lua, Table, Value, ffi};

use super::call::{self, Arity};
use super::decisions::Decisions;
use super::{Exit, Setting, message};

/// A Lua state with all that belongs to it.
pub struct State {
    /// The script's file, as messages name it.
    path: String,
    decisions: Rc<Decisions>,
    /// The functions that `wrk.lua` returns.
    calls: Table,
    lua: Lua,
    // The last field: everything that refers to the state is dropped before it is closed.
    owner: Owner,
}

// SAFETY: `Lua`, the table, and the `Rc`s here and in the closures of `native` refer to this one state and to nothing
// outside of it, all of them are moved together, and none is given out. LuaJIT itself keeps nothing per thread. So
// the owner of the state is the only one that uses any of it: before the start the main thread, then a worker, and the main
// thread again when the worker has given it back. `Slot`, which hands it over, is a mutex.
unsafe impl Send for State {}

impl State {
    /// A state with all libraries. `prepare` puts into it what is there before the script named `path`.
    pub fn new(
        path: &Path,
        prepare: impl FnOnce(&Lua, *mut ffi::lua_State) -> mlua::Result<(Rc<Decisions>, Table)>,
    ) -> anyhow::Result<Self> {
        // SAFETY: called with no state there is nothing to be violated.
        let raw = unsafe { ffi::luaL_newstate() };
        anyhow::ensure!(!raw.is_null(), "there is not enough memory for a Lua state; use fewer threads (-t)");
        let owner = Owner(raw);
        // SAFETY: the state was just made and is closed by `owner`, after the last use of `lua`.
        let lua = unsafe {
            ffi::luaL_openlibs(raw);
            Lua::get_or_init_from_ptr(raw).clone()
        };
        let (decisions, calls) = prepare(&lua, raw).map_err(|error| anyhow!("cannot set up Lua: {error}"))?;
        Ok(Self { path: path.display().to_string(), decisions, calls, lua, owner })
    }

    /// Runs the script's file.
    pub fn run(&self, setting: &Setting<'_>) -> anyhow::Result<()> {
        let chunk = self.lua.load(setting.file).set_name(format!("@{}", setting.path.display())).into_function();
        self.call("run", chunk.map_err(|error| anyhow!(self.located(words(&error))))?)
    }

    /// A problem that the script's file is named in. Where memory or Lua's stack is used up, LuaJIT names no place.
    pub fn located(&self, problem: String) -> String {
        if problem.contains(&self.path) { problem } else { format!("{}: {problem}", self.path) }
    }

    /// Calls one of the functions of `wrk.lua`.
    pub fn call(&self, name: &str, arguments: impl IntoLuaMulti) -> anyhow::Result<()> {
        let result = self.calls.get::<Function>(name).and_then(|call| call.call::<(bool, Value)>(arguments));
        self.ended(match result {
            // What it returns does not matter.
            Ok((true, _)) => Ok(()),
            Ok((false, Value::String(problem))) => Err(anyhow!(self.located(message::told(&problem.as_bytes())))),
            Ok((false, problem)) => Err(anyhow!("{}: error: a {} value", self.path, problem.type_name())),
            Err(error) => Err(anyhow!(self.located(words(&error)))),
        })
    }

    /// The outcome of a call; an error if the script has called `os.exit`, even if it caught that afterwards.
    pub fn ended<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        self.decisions.exit.get().map_or(outcome, |code| Err(Exit(code).into()))
    }

    /// Runs `init`.
    pub fn init(&mut self, setting: &Setting<'_>) -> anyhow::Result<()> {
        let arguments = self.lua.create_sequence_from(setting.args.iter().map(String::as_str));
        let arguments = arguments.and_then(|table| table.raw_set(0, setting.url).map(|()| table));
        self.call("init", arguments.map_err(|error| anyhow!(words(&error)))?)
    }

    /// The requests of one batch, as the script writes them; they last until the state is used again.
    pub fn request(&mut self) -> Result<&[u8], String> {
        // SAFETY: the state is ours while we are borrowed, and so are the bytes, which the state keeps.
        unsafe { call::request(self.owner.0).map_err(|problem| self.located(problem)) }
    }

    /// What `response` takes.
    pub fn arity(&self) -> Arity {
        let parameters = self.calls.get::<Function>("parameters").and_then(|call| call.call::<(u8, bool)>("response"));
        parameters.map_or_else(|_| Arity::default(), |(named, is_variadic)| Arity::of(named, is_variadic))
    }

    /// Whether there is a global function of this name.
    pub fn has_function(&self, name: &str) -> bool {
        matches!(self.lua.globals().get(name), Ok(Value::Function(_)))
    }

    /// What the script has decided.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// The state, for building values in it.
    pub fn lua(&self) -> &Lua {
        &self.lua
    }

    /// The state, for calls without detours; see [`call`].
    pub fn raw(&self) -> *mut ffi::lua_State {
        self.owner.0
    }
}

/// Closes a state.
struct Owner(*mut ffi::lua_State);

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the state was made by `State::new`, and nothing refers to it any more.
        unsafe { ffi::lua_close(self.0) };
    }
}

/// What went wrong, without words about where it was noticed.
fn words(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } | mlua::Error::RuntimeError(message) => {
            message::told(message.as_bytes())
        }
        other => message::told(other.to_string().as_bytes()),
    }
}
