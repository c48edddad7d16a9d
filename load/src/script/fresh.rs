//! Creates a Lua state in which everything is ready before the script runs.

use std::rc::Rc;

use mlua::{Function, Lua, Table, ffi};
use onrush_plan::Random;

use super::decisions::Decisions;
use super::native::{self, StateOwner};
use super::state::LuaState;
use super::{ScriptSetting, call, module};

/// Creates a state with all libraries and the table `wrk`. The script has not run in it yet.
pub fn create_state(setting: &ScriptSetting<'_>, who: StateOwner) -> anyhow::Result<LuaState> {
    LuaState::new(setting.path, |lua, raw| fill_state(lua, raw, setting, who))
}

/// Fills a new state.
fn fill_state(
    lua: &Lua,
    raw: *mut ffi::lua_State,
    setting: &ScriptSetting<'_>,
    who: StateOwner,
) -> mlua::Result<(Rc<Decisions>, Table)> {
    let number = match who {
        StateOwner::Main(_) => None,
        StateOwner::Thread(number) => Some(number),
    };
    let decisions = Rc::new(Decisions::default());
    set_module_paths(lua, setting)?;
    seed_random(lua, setting.seed, number.unwrap_or(0))?;
    let native = native::host_functions(lua, setting, who, &decisions)?;
    let words = lua.load(include_str!("wrk.lua")).set_name("=wrk");
    let calls: Table = words.call((native, command_line_table(lua, setting)?, number))?;
    // SAFETY: no other code uses the state, and its stack is empty.
    unsafe {
        call::prepare_stack(lua, raw, &calls)?;
    }
    Ok((decisions, calls))
}

/// Sets where `require` searches: the working directory, the script's directory, LuaJIT's own folders, and Debian's.
fn set_module_paths(lua: &Lua, setting: &ScriptSetting<'_>) -> mlua::Result<()> {
    let folder = setting.path.parent().and_then(|folder| folder.to_str()).filter(|folder| !folder.is_empty());
    let package: Table = lua.globals().get("package")?;
    for ((field, of_debian), ending) in module::debian_folders().into_iter().zip(["lua", "so"]) {
        let usual: String = package.get(field)?;
        let first = folder.map(|folder| format!("./?.{ending};{folder}/?.{ending};")).unwrap_or_default();
        package.set(field, format!("{first}{usual};{of_debian}"))?;
    }
    Ok(())
}

/// Seeds `math.random` with a separate sequence for each thread.
fn seed_random(lua: &Lua, seed: u64, number: u32) -> mlua::Result<()> {
    let start = Random::new(Random::new(seed).next().wrapping_add(u64::from(number))).next();
    let math: Table = lua.globals().get("math")?;
    // A Lua number holds this many bits exactly.
    math.get::<Function>("randomseed")?.call((start >> 11) as f64)
}

/// The part of the command line passed to `wrk.lua`.
fn command_line_table(lua: &Lua, setting: &ScriptSetting<'_>) -> mlua::Result<Table> {
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
