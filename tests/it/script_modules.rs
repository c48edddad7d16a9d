//! Modules loaded by scripts with `require`: their own, in C, and Debian's.

use std::fs;
use std::process::Command;

use crate::harness::{Context, Scratch, cases, target, url};
use crate::scripts::assert_ran;

cases! {
    c_modules_use_the_embedded_lua (Once) needs "gcc";
    c_modules_with_own_lua_are_refused (Once) needs "gcc";
    scripts_never_shadow_modules (Once);
    debian_modules_are_found (Once) needs "dpkg -s lua-cjson lua-socket lua-lpeg";
}

fn c_modules_use_the_embedded_lua(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("c-module"));
    let module = "
        struct lua_State;
        void lua_pushnumber(struct lua_State *, double);
        double luaL_checknumber(struct lua_State *, int);
        void lua_pushcclosure(struct lua_State *, int (*)(struct lua_State *), int);
        static int twice(struct lua_State *L) { lua_pushnumber(L, 2 * luaL_checknumber(L, 1)); return 1; }
        int luaopen_ours_twice(struct lua_State *L) { lua_pushcclosure(L, twice, 0); return 1; }";
    fs::create_dir(scratch.path().join("ours")).unwrap();
    compiled(&scratch, module, "ours/twice.so", &[]);
    let script = scratch.file("script.lua", "print(require('ours.twice')(21))");
    for onrush in context.both() {
        let output = onrush.words("-t1 -c1 -n1").script(&script).word(url(&server, "/")).run_plain();
        if cfg!(target_feature = "crt-static") {
            let words = "twice.so: a static onrush cannot load C modules; build onrush from source to use them";
            assert!(output.code == 1 && output.stderr.contains(words), "{output:?}");
        } else {
            assert!(output.code == 0 && output.stdout.starts_with("42\n42\n"), "{output:?}");
        }
    }
}

fn c_modules_with_own_lua_are_refused(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("own-lua"));
    let lua = "void lua_pushnumber(void *L, double n) { *(volatile int *)0 = 1; }";
    compiled(&scratch, lua, "liblua5.1.so.0", &["-Wl,-soname,liblua5.1.so.0"]);
    let module = "void lua_pushnumber(void *, double); int luaopen_own(void *L) { lua_pushnumber(L, 1); return 1; }";
    let library = scratch.path().join("liblua5.1.so.0").display().to_string();
    compiled(&scratch, module, "own.so", &[&library]);
    for load in ["require('own')", "require('own.deeper')", "assert(package.loadlib('DIR/own.so', 'luaopen_own'))()"] {
        let text = load.replace("DIR", scratch.path().to_str().unwrap());
        let script = scratch.file("script.lua", text);
        for onrush in context.both() {
            let output = onrush.words("-t1 -c1 -n1").script(&script).word(url(&server, "/")).run_plain();
            let is_static = cfg!(target_feature = "crt-static");
            let words = if is_static {
                "own.so: a static onrush cannot load C modules"
            } else {
                "own.so: the module links its own Lua (liblua5.1.so.0)"
            };
            assert!(output.code == 1 && output.stderr.contains(words), "{load}: {output:?}");
        }
    }
}

fn compiled(scratch: &Scratch, text: &str, library: &str, words: &[&str]) {
    let source = scratch.file("library.c", text);
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-w", "-o"]).arg(scratch.path().join(library)).arg(source).args(words);
    assert!(gcc.status().expect("it is installed").success(), "{text}");
}

fn debian_modules_are_found(context: &Context) {
    let server = target();
    let script = r#"
        local cjson, socket, lpeg = require("cjson"), require("socket"), require("lpeg")
        function request() return wrk.format("POST", "/echo", {}, cjson.encode({ at = socket.gettime() })) end
        function response(status, headers, body)
            local text = body:match("{.*}")
            assert(cjson.decode(text).at > 1e9 and lpeg.match(lpeg.P("{") * lpeg.P(1) ^ 0, text) == #text + 1)
        end
        function done(summary) print(cjson.encode({ requests = summary.requests })) end"#;
    for onrush in context.both() {
        let output = onrush.words("-t2 -c4 -n200").lua(script).word(url(&server, "/echo")).run_plain();
        if cfg!(target_feature = "crt-static") {
            assert!(output.code == 1 && output.stderr.contains("a static onrush cannot load C modules"), "{output:?}");
        } else {
            assert_ran(&output);
            assert!(output.stdout.ends_with("{\"requests\":200}\n"), "{output:?}");
        }
    }
}

fn scripts_never_shadow_modules(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("named-like"));
    let folders = ["own", "others"].map(|name| scratch.path().join(name));
    folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let script = scratch.file("own/words.lua", "print(require('words').hello)");
    let run = || {
        let path = format!("{}/?.lua", folders[1].display());
        let onrush = context.onrush().words("-t1 -c1 -n1").script(&script).word(url(&server, "/"));
        onrush.with(|command| _ = command.env("LUA_PATH", path)).run_plain()
    };
    let output = run();
    assert!(output.code == 1 && output.stderr.contains("module 'words' not found"), "{output:?}");
    scratch.file("others/words.lua", "return { hello = 'from the module' }");
    let output = run();
    assert_ran(&output);
    assert!(output.stdout.starts_with("from the module\n"), "{output:?}");
}
