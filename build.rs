//! Lets C modules of scripts use LuaJIT: what they call is exported where the program can load libraries at all.

use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|target_env| target_env == "gnu") {
        let list = format!("{}/lua.list", env::var("OUT_DIR").expect("Cargo sets it"));
        fs::write(&list, "{ lua_*; luaL_*; };\n").expect("the folder for outputs can be written");
        println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={list}");
    }
}
