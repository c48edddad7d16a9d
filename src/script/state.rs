//! One Lua state: how it is made, and how its phases are called.
//!
//! Every library of LuaJIT is there, `debug` and `ffi` too: a script may do what a C program may do.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::anyhow;
use mlua::{Function, IntoLuaMulti, Lua, Table, Value, ffi};

use super::call::{self, Arity};
use super::{Exit, Setting, Slot, message, native};
use crate::random::Random;

/// Whose state it is.
pub enum Who {
    /// That of `setup` and `done`, which can ask the others.
    Main(Arc<[Slot]>),
    /// That of a thread, numbered from 1.
    Thread(u32),
}

/// What a script has decided about its thread. Shared by the functions in its state and by whoever has the state.
#[derive(Debug, Default)]
pub struct Decisions {
    /// It wants the thread to end.
    pub is_stopped: Cell<bool>,
    /// Where further connections are to go.
    pub address: Cell<Option<SocketAddr>>,
    /// The program is to end, with this code.
    pub exit: Cell<Option<i32>>,
}

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
// whoever has the state is the only one who uses any of it: before the start the main thread, then a worker, and the main
// thread again when the worker has given it back. `Slot`, which hands it over, is a mutex.
unsafe impl Send for State {}

impl State {
    /// A state with all libraries and the table `wrk`, in which no script has run yet.
    pub fn new(setting: &Setting<'_>, who: Who) -> anyhow::Result<Self> {
        // SAFETY: called with no state there is nothing to be violated.
        let raw = unsafe { ffi::luaL_newstate() };
        anyhow::ensure!(!raw.is_null(), "there is not enough memory for a Lua state; use fewer threads (-t)");
        let owner = Owner(raw);
        // SAFETY: the state was just made and is closed by `owner`, after the last use of `lua`.
        let lua = unsafe {
            ffi::luaL_openlibs(raw);
            Lua::get_or_init_from_ptr(raw).clone()
        };
        let prepared = prepare(&lua, raw, setting, who);
        let (decisions, calls) = prepared.map_err(|error| anyhow!("cannot set up Lua: {error}"))?;
        Ok(Self { path: setting.path.display().to_string(), decisions, calls, lua, owner })
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

    /// The outcome of a call; an error if the script has called `os.exit`, whatever it did with that afterwards.
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

/// Puts everything into a new state that is there before the script.
fn prepare(
    lua: &Lua,
    raw: *mut ffi::lua_State,
    setting: &Setting<'_>,
    who: Who,
) -> mlua::Result<(Rc<Decisions>, Table)> {
    let number = match who {
        Who::Main(_) => None,
        Who::Thread(number) => Some(number),
    };
    let decisions = Rc::new(Decisions::default());
    find_modules(lua, setting)?;
    seed(lua, setting.seed, number.unwrap_or(0))?;
    let native = native::table(lua, setting, who, &decisions)?;
    let words = lua.load(include_str!("wrk.lua")).set_name("=wrk");
    let calls: Table = words.call((native, given(lua, setting)?, number))?;
    // SAFETY: the state is not in use by anybody else, and nothing lies on its stack.
    unsafe {
        call::prepare(lua, raw, &calls)?;
    }
    Ok((decisions, calls))
}

/// Lets `require` look into the working directory first and then beside the script.
fn find_modules(lua: &Lua, setting: &Setting<'_>) -> mlua::Result<()> {
    let Some(folder) = setting.path.parent().and_then(|folder| folder.to_str()).filter(|folder| !folder.is_empty())
    else {
        return Ok(());
    };
    let package: Table = lua.globals().get("package")?;
    for (field, ending) in [("path", "lua"), ("cpath", "so")] {
        let usual: String = package.get(field)?;
        package.set(field, format!("./?.{ending};{folder}/?.{ending};{usual}"))?;
    }
    Ok(())
}

/// Gives `math.random` a sequence of its own.
fn seed(lua: &Lua, seed: u64, number: u32) -> mlua::Result<()> {
    let start = Random::new(Random::new(seed).next().wrapping_add(u64::from(number))).next();
    let math: Table = lua.globals().get("math")?;
    // What a number of Lua can hold exactly.
    math.get::<Function>("randomseed")?.call((start >> 11) as f64)
}

/// What `wrk.lua` is told of the command line.
fn given(lua: &Lua, setting: &Setting<'_>) -> mlua::Result<Table> {
    let headers = lua.create_table()?;
    for (name, value) in setting.headers {
        headers.raw_set(name.as_str(), value.as_str())?;
    }
    let given = lua.create_table()?;
    given.raw_set("script", setting.path.display().to_string())?;
    given.raw_set("scheme", setting.scheme)?;
    given.raw_set("host", setting.host)?;
    given.raw_set("port", setting.port)?;
    given.raw_set("method", setting.method)?;
    given.raw_set("path", setting.target)?;
    given.raw_set("headers", headers)?;
    given.raw_set("body", setting.body.map(|body| lua.create_string(body)).transpose()?)?;
    let through = setting.proxy.unwrap_or_default();
    given.raw_set("origin", through.origin)?;
    given.raw_set("login", through.login)?;
    given.raw_set("is_proxied", setting.proxy.is_some())?;
    given.raw_set("addresses", setting.addresses.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    given.raw_set("is_wrk2", setting.is_wrk2)?;
    Ok(given)
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
