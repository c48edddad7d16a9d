//! Host functions for `wrk.lua`.
//!
//! They never raise an error for a mistake of the script: they return the problem, and `wrk.lua` raises it with the
//! script's line.

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mlua::{Lua, LuaString, Table, Value};

use super::copy::{self, Direction};
use super::decisions::Decisions;
use super::holder::{StateHolder, lock_holder};
use super::{ScriptSetting, address, module, shell, stack};

/// Who uses a state.
pub enum StateOwner {
    /// The main state of `setup` and `done`, which can access the other states.
    Main(Arc<[StateHolder]>),
    /// A thread, numbered from 1.
    Thread(u32),
}

/// Creates the table of host functions that `wrk.lua` gets in one state.
pub fn host_functions(
    lua: &Lua,
    setting: &ScriptSetting<'_>,
    who: StateOwner,
    decisions: &Rc<Decisions>,
) -> mlua::Result<Table> {
    let name = setting.path.file_name().unwrap_or_default().to_string_lossy();
    let speaker = match &who {
        StateOwner::Main(_) => name.into_owned(),
        StateOwner::Thread(number) => format!("{name}, thread {number}"),
    };
    let listener = Arc::clone(&setting.listener);
    let say = move |_: &Lua, text: LuaString| {
        listener(&[speaker.as_bytes(), b": ", &*text.as_bytes(), b"\n"].concat());
        Ok(())
    };
    let native = lua.create_table()?;
    let decided = Rc::clone(decisions);
    let exit = move |_: &Lua, code: f64| {
        decided.exit.set(Some(code as i64 as i32));
        Ok(())
    };
    native.raw_set("exit", lua.create_function(exit)?)?;
    native.raw_set("say", lua.create_function(say)?)?;
    let listener = Arc::clone(&setting.listener);
    let tell = move |_: &Lua, text: LuaString| {
        listener(&[&*text.as_bytes(), b"\n"].concat());
        Ok(())
    };
    native.raw_set("tell", lua.create_function(tell)?)?;
    native.raw_set("time_us", lua.create_function(|_, ()| Ok(time_us()))?)?;
    native.raw_set("connect", lua.create_function(|_, place: String| Ok(address::accepts_connections(&place)))?)?;
    let lookup = |_: &Lua, (host, service): (LuaString, LuaString)| {
        let found = address::lookup_addresses(&host.to_string_lossy(), &service.to_string_lossy());
        Ok(found.map_or_else(|problem| (None, Some(problem)), |places| (Some(places), None)))
    };
    native.raw_set("lookup", lua.create_function(lookup)?)?;
    // SAFETY: the function only pushes a boolean, for which every C function has room.
    native.raw_set("is_stack_low", unsafe { lua.create_c_function(stack::lua_is_stack_low)? })?;
    let problem = |_: &Lua, path: LuaString| Ok(module::load_problem(&path.to_string_lossy()));
    native.raw_set("module_problem", lua.create_function(problem)?)?;
    let own = module::file_identity(setting.path);
    let is_script = move |_: &Lua, path: LuaString| {
        Ok(own.is_some() && module::file_identity(Path::new(&path.to_string_lossy())) == own)
    };
    native.raw_set("is_script", lua.create_function(is_script)?)?;
    shell::add_command_functions(lua, &native, matches!(who, StateOwner::Thread(_)))?;
    let reach = Rc::new(match who {
        StateOwner::Main(threads) => StateReach::Others(threads),
        StateOwner::Thread(_) => StateReach::Own(Rc::clone(decisions)),
    });
    add_thread_functions(lua, &native, &reach)?;
    Ok(native)
}

/// Adds the functions behind a thread object.
fn add_thread_functions(lua: &Lua, native: &Table, reach: &Rc<StateReach>) -> mlua::Result<()> {
    let of = Rc::clone(reach);
    let get = move |lua: &Lua, (number, name): (usize, LuaString)| {
        let copied = of.with_thread_state(lua, number, |thread, _| {
            let value = thread_globals(thread)?.get::<Value>(copy_name(thread, &name)?);
            copy::copy_value(&value.map_err(|error| error.to_string())?, lua, Direction::FromThread)
        });
        Ok(copied.flatten().map_or_else(|problem| (Value::Nil, Some(problem)), |value| (value, None)))
    };
    let of = Rc::clone(reach);
    let set = move |lua: &Lua, (number, name, value): (usize, LuaString, Value)| {
        let set = of.with_thread_state(lua, number, |thread, _| {
            let value = copy::copy_value(&value, thread, Direction::ToThread)?;
            thread_globals(thread)?.set(copy_name(thread, &name)?, value).map_err(|error| error.to_string())
        });
        Ok(set.flatten().err())
    };
    let of = Rc::clone(reach);
    let stop = move |lua: &Lua, number: usize| {
        Ok(of.with_thread_state(lua, number, |_, decided| decided.is_stopped.set(true)).err())
    };
    let of = Rc::clone(reach);
    let place = move |lua: &Lua, number: usize| {
        let place = of.with_thread_state(lua, number, |_, decided| decided.address.get());
        Ok(place.ok().flatten().map(|place| place.to_string()))
    };
    let of = Rc::clone(reach);
    let set_place = move |lua: &Lua, (number, place): (usize, String)| {
        let place: Option<SocketAddr> = place.parse().ok();
        Ok(of.with_thread_state(lua, number, |_, decided| decided.address.set(place)).err())
    };
    native.raw_set("get", lua.create_function(get)?)?;
    native.raw_set("set", lua.create_function(set)?)?;
    native.raw_set("stop", lua.create_function(stop)?)?;
    native.raw_set("place", lua.create_function(place)?)?;
    native.raw_set("move", lua.create_function(set_place)?)
}

/// The threads that a state's script can access.
enum StateReach {
    /// Only its own thread.
    Own(Rc<Decisions>),
    /// All threads whose state is not in use by a worker.
    Others(Arc<[StateHolder]>),
}

impl StateReach {
    /// Accesses thread `number`; `lua` is the requesting state.
    fn with_thread_state<T>(
        &self,
        lua: &Lua,
        number: usize,
        look: impl FnOnce(&Lua, &Decisions) -> T,
    ) -> Result<T, String> {
        match self {
            Self::Own(decisions) => Ok(look(lua, decisions)),
            Self::Others(threads) => match &*lock_holder(&threads[number - 1]) {
                Some(state) => Ok(look(state.lua(), state.decisions())),
                None => Err(format!(
                    "thread {number} is still inside the script, so its variables cannot be read or \
                                     changed"
                )),
            },
        }
    }
}

/// The globals of a thread. With a metatable, accessing them calls the script again.
fn thread_globals(lua: &Lua) -> Result<Table, String> {
    if stack::is_stack_low() { Err("stack overflow".to_owned()) } else { Ok(lua.globals()) }
}

/// Copies a name into another state.
fn copy_name(lua: &Lua, name: &LuaString) -> Result<LuaString, String> {
    lua.create_string(&*name.as_bytes()).map_err(|error| error.to_string())
}

/// The wall clock, in whole microseconds.
fn time_us() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as f64
}
