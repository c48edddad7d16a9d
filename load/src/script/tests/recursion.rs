//! Scripts with endless recursion end with a Lua error, never with a signal.

use onrush_plan::limits::SCRIPT_STACK_BYTES;

use super::*;

const WAYS: &str = include_str!("recursion.lua");

/// Runs `work` on a stack like the one for scripts.
fn run_on_script_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(SCRIPT_STACK_BYTES);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

#[test]
fn recursion_through_the_library_is_an_error() {
    run_on_script_stack(|| {
        let ways = main_global::<mlua::Table>(&load_script(WAYS), "recursions").raw_len();
        assert!(ways > 30);
        let mut with_line = 0;
        for way in 1..=ways {
            let problem = load_error(&format!("{WAYS}\nfunction init()\n  recursions[{way}][2]()\nend\n"));
            let first = problem.lines().next().unwrap_or_default();
            let (place, raised) = first.split_once(": ").unwrap_or_default();
            assert!(first.starts_with("test.lua:") && first.ends_with("stack overflow"), "{way}: {first}");
            assert!(raised.len() < 60, "no place is repeated: {way}: {first}");
            // LuaJIT reserves stack to find the place of the error, and sometimes exhausts even that.
            with_line += usize::from(place.starts_with("test.lua:"));
        }
        assert!(with_line * 10 >= ways * 9, "{with_line} of {ways}");
    });
}

#[test]
fn scripts_survive_stack_overflows() {
    let script = run_on_script_stack(|| {
        load_script(
            r#"
            function nest(depth, call) return depth == 0 and "end" or call(depth) end
            local function gsub(depth)
                return (string.gsub("a", "a", function() return nest(depth - 1, gsub) end))
            end
            local function wrap(depth) return coroutine.wrap(function() return nest(depth - 1, wrap) end)() end
            local function resume(depth)
                return select(2, assert(coroutine.resume(coroutine.create(function() return nest(depth - 1, resume) end))))
            end
            local function endless() return (coroutine.wrap(endless)()) end
            local function endless_gsub() return (string.gsub("a", "a", endless_gsub)) end
            function init()
                overflows = 0
                for _ = 1, 20 do
                    overflows = overflows + (pcall(endless) and 0 or 1) + (pcall(endless_gsub) and 0 or 1)
                    answer = nest(900, wrap) .. nest(900, resume)
                end
            end
            "#,
        )
    });
    assert_eq!(
        (thread_global::<u32>(&script, 0, "overflows"), thread_global::<String>(&script, 0, "answer")),
        (40, "endend".into())
    );
}

#[test]
fn coroutines_behave_as_in_plain_lua() {
    let script = load_script(
        r#"
        local function count(...)
            local sum = 0
            for i = 1, select('#', ...) do sum = sum + (select(i, ...) or 0) end
            local more = coroutine.yield(sum, nil, select('#', ...))
            coroutine.yield(more)
            error("inside")
        end
        local next_one = coroutine.wrap(count)
        local sum, nothing, given = next_one(1, nil, 3, nil) one = sum .. " " .. tostring(nothing) .. " " .. given
        two = next_one("more")
        local _, problem = pcall(function() return 1, next_one() end) raised = problem
        local _, problem = pcall(function() return 1, next_one() end) dead = problem
        local thread = coroutine.create(function() error({ "table" }) end)
        local is_well, value = coroutine.resume(thread)
        resumed = tostring(is_well) .. " " .. value[1] .. " " .. coroutine.status(thread)
        local _, problem = pcall(function() return 1, coroutine.wrap(5) end) wrapped = problem
        local _, problem = pcall(function() return 1, string.gsub("a") end) gsubbed = problem
        local _, problem = pcall(function() return 1, load() end) loaded = problem
        pieces = load((function() local n = 0 return function() n = n + 1 return ({ "return ", "1, ", "2" })[n] end end)())
        pieces = { pieces() }
        "#,
    );
    let text = |name: &str| {
        let with_folder: String = main_global(&script, name);
        with_folder.rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!(text("one"), "4 nil 4");
    assert_eq!(text("two"), "more");
    assert_eq!(text("raised"), "test.lua:7: inside");
    assert_eq!(text("dead"), "test.lua:13: cannot resume dead coroutine");
    assert_eq!(text("resumed"), "false table dead");
    assert_eq!(text("wrapped"), "test.lua:17: bad argument #1 to 'wrap' (function expected, got number)");
    assert_eq!(text("gsubbed"), "test.lua:18: bad argument #2 to 'gsub' (string expected, got no value)");
    assert!(text("loaded").starts_with("test.lua:19: bad argument #1 to 'load'"), "{}", text("loaded"));
    assert_eq!(main_global::<Vec<u32>>(&script, "pieces"), [1, 2]);
}
