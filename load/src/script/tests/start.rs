//! Everything before the start of the run.

use super::*;

#[test]
fn phases_follow_wrk_order() {
    let folder = Folder::new(
        r#"
        local function note(word)
            local file = io.open("$DIR/order", "a")
            file:write(word, " ")
            file:close()
        end
        note(wrk.thread == nil and wrk.headers.Host == nil and "LOAD" or "LOAD?")
        local count = 0
        function setup(thread) count = count + 1; thread:set("id", count); note("SETUP" .. count) end
        function init(args)
            note("INIT" .. id .. (wrk.headers.Host == "localhost:8080" and wrk.request == nil and type(wrk.thread) == "userdata" and "" or "?"))
        end
        function request() note("PROBE" .. id); return wrk.format() end
        "#,
    );
    let script = folder.load(|_| ()).unwrap();
    let order = std::fs::read_to_string(folder.at("order")).unwrap();
    assert_eq!(order, "LOAD LOAD SETUP1 INIT1 PROBE1 LOAD SETUP2 INIT2 ");
    assert!(script.wants().request);
    assert_eq!(script.prebuilt_requests(0), None);
}

#[test]
fn init_gets_the_url_and_the_arguments() {
    let args = ["-x".to_owned(), "--foo=1".to_owned()];
    let folder = Folder::new("function init(args) n = #args; all = args[0] .. ' ' .. table.concat(args, ' ') end");
    let script = folder.load(|setting| setting.args = &args).unwrap();
    assert_eq!(thread_global::<u32>(&script, 1, "n"), 2);
    assert_eq!(thread_global::<String>(&script, 1, "all"), "http://localhost:8080/p?q -x --foo=1");
}

#[test]
fn static_scripts_are_called_once() {
    assert_eq!(prebuilt_text(""), "GET /p?q HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
    let text = prebuilt_text("wrk.method = 'POST'; wrk.path = '/x'; wrk.body = 'a=b'; wrk.headers['X-Num'] = 7");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /x HTTP/1.1");
    lines.sort_unstable();
    assert_eq!(lines, ["Content-Length: 3", "Host: localhost:8080", "X-Num: 7"]);
    assert_eq!(body, "a=b");
    let script = load_script(
        "request = 'no function'; function setup(t) t:set('wrk_path', '/t' .. t.id) end function init() wrk.path = wrk_path end",
    );
    assert_eq!(script.wants(), Wants::default());
    assert!(script.prebuilt_requests(0).unwrap().starts_with(b"GET /t1 HTTP/1.1\r\n"));
    assert!(script.prebuilt_requests(1).unwrap().starts_with(b"GET /t2 HTTP/1.1\r\n"));
}

#[test]
fn command_line_is_in_the_table() {
    let headers = [("Host", "a"), ("Dup", "1"), ("Dup", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let folder = Folder::new("");
    let script = folder.load(|setting| {
        setting.headers = &headers;
        (setting.method, setting.body, setting.threads) = ("PUT", Some(b"\0x".as_slice()), 1);
    });
    let script = script.unwrap();
    let text = String::from_utf8_lossy(script.prebuilt_requests(0).unwrap()).into_owned();
    assert!(text.starts_with("PUT /p?q HTTP/1.1\r\n") && text.ends_with("\r\n\r\n\0x"), "{text}");
    assert!(text.contains("Host: a\r\n") && text.contains("Dup: 2\r\n") && !text.contains("Dup: 1"), "{text}");
    let folder = Folder::new("given = { wrk.scheme, wrk.host, wrk.port or 'none', wrk.body or 'none' }");
    let script = folder.load(|setting| (setting.host, setting.port) = ("::1", None)).unwrap();
    assert_eq!(thread_global::<Vec<String>>(&script, 0, "given"), ["http", "::1", "none", "none"]);
    assert_eq!(script.prebuilt_requests(0).unwrap(), b"GET /p?q HTTP/1.1\r\nHost: [::1]\r\n\r\n");
}

#[test]
fn wrk_module_wins_over_the_script() {
    let folder = Folder::new(
        "local own = require('wrk'); assert(own == wrk and require 'wrk' == package.loaded.wrk)
         assert(require('helper') == wrk)
         function setup(thread) assert(require('wrk').addrs[1]) end
         function init() own.path = '/own' end",
    );
    let path = folder.at("wrk.lua");
    std::fs::write(&path, &folder.source).unwrap();
    std::fs::write(folder.at("helper.lua"), "return require('wrk')").unwrap();
    let script = folder.load(|setting| setting.path = &path).unwrap();
    assert!(script.prebuilt_requests(1).unwrap().starts_with(b"GET /own HTTP/1.1\r\n"));
}

#[test]
fn hooks_of_the_table_can_be_replaced() {
    let own = "wrk.init = function(args) wrk.request = function() return 'GET /own HTTP/1.1\\r\\n\\r\\n' end end";
    assert_eq!(prebuilt_text(own), "GET /own HTTP/1.1\r\n\r\n");
    assert!(load_error("wrk.init = function() end").contains("wrk.request is a nil value"));
    let script = load_script("wrk.setup = function(thread) thread:set('seen', thread.id) end");
    assert_eq!(thread_global::<u32>(&script, 1, "seen"), 2);
    let text = prebuilt_text("local old = wrk.format; wrk.format = function() return old('HEAD', '/f') end");
    assert!(text.starts_with("HEAD /f HTTP/1.1\r\n"), "{text}");
}

#[test]
fn init_may_call_wrk_init() {
    let script = load_script(
        "init = function(args) wrk.init(args); r = wrk.format(nil, '/a') .. wrk.format(nil, '/b') end
         request = function() return r end",
    );
    assert_eq!(script.first_batch_size(), 2);
}

#[test]
fn format_falls_back_to_the_table() {
    let script = load_script(
        r#"
        function init()
            plain = wrk.format()
            method = wrk.format("DELETE")
            path = wrk.format(nil, "/other")
            local own = { A = true, ["Content-Length"] = 99 }
            headers = wrk.format(nil, nil, own)
            is_host_added, length = own.Host, own["Content-Length"]
            wrk.body = "abc"
            body = wrk.format("POST", nil, {})
            own_body = wrk.format("POST", 5, {}, 12345)
        end
        "#,
    );
    let text = |name| thread_global::<String>(&script, 0, name);
    assert_eq!(text("plain"), "GET /p?q HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
    assert_eq!(text("method"), "DELETE /p?q HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
    assert_eq!(text("path"), "GET /other HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
    assert!(text("headers").contains("A: true\r\n") && !text("headers").contains("Content-Length"));
    assert_eq!(text("is_host_added"), "localhost:8080");
    assert_eq!(thread_global::<Option<u32>>(&script, 0, "length"), None);
    assert!(text("body").contains("Content-Length: 3\r\n") && text("body").ends_with("\r\n\r\nabc"));
    assert!(text("own_body").starts_with("POST 5 HTTP/1.1\r\n") && text("own_body").ends_with("\r\n\r\n12345"));
}

#[test]
fn bad_requests_are_named_with_a_remedy() {
    let table = [
        (
            "wrk.headers['content-length'] = 3 wrk.body = 'abc'",
            "2 headers give the length, one of them content-length (in wrk.headers); leave it out: wrk.format() sets \
             Content-Length",
        ),
        (
            "function request() return wrk.format('POST', nil, { ['content-length'] = 3 }, 'abc') end",
            "2 headers give the length, one of them content-length; leave it out",
        ),
        (
            "wrk.headers['content-length'] = 3",
            "content-length (in wrk.headers) is \"3\", but the body has 0 bytes; leave it out",
        ),
        (
            "wrk.headers['content-length'] = 'x'",
            "content-length (in wrk.headers) is \"x\", which is not a length; leave it out",
        ),
        (
            "wrk.headers['transfer-encoding'] = 'chunked' wrk.body = 'abc'",
            "transfer-encoding: chunked (in wrk.headers) contradicts Content-Length, which wrk.format() sets; leave \
             transfer-encoding out",
        ),
        ("wrk.headers['Transfer-Encoding'] = 'chunked'", "is set, but the body is not in chunks"),
        ("wrk.path = '/a b'", "a blank in wrk.path \"/a b\"; write %20"),
        ("wrk.path = 'a'", "wrk.path \"a\" does not begin with /"),
        ("wrk.path = ''", "wrk.path is empty; it must begin with /"),
        ("wrk.path = '/\u{e4}'", "'\u{e4}' in wrk.path \"/\u{e4}\"; write %C3%A4"),
        ("wrk.path = '/\\xe4'", "a byte above 127 in wrk.path"),
        ("wrk.path = '/a\\r'", "a line break in wrk.path \"/a\"; cut it off, as with path:gsub(\"%s+$\", \"\")"),
        ("wrk.path = '/a\\n'", "a line break in wrk.path \"/a\"; cut it off"),
        ("function request() return wrk.format(nil, '/?token=secret b') end", "a blank in the path \"/?token=REDACTED"),
        ("wrk.method = 'post'", "wrk.method is \"post\", but methods are case-sensitive; write POST"),
        ("wrk.method = 'A(B'", "wrk.method is \"A(B\"; a method has letters, digits and -"),
        ("wrk.headers['A B'] = 1", "' ' in the header name \"A B\" (in wrk.headers); use only letters, digits and -"),
        ("wrk.headers.A = 'b\\rc'", "a line break in the value of the header A (in wrk.headers); leave it out"),
        ("wrk.headers.A = 'b\\0c'", "a control character in the value of the header A (in wrk.headers)"),
        (
            "wrk.headers.A = 'b\\nc'",
            "a header line has no colon; write 'Name: value', without line breaks in the value",
        ),
        (
            "function request() return wrk.format('POST', nil, {}, nil) .. 'a=b' end",
            "\"a=b\" follows a request; give a body a Content-Length",
        ),
        (
            "wrk.headers.Connection = 'close' function request() return wrk.format():rep(2) end",
            "the previous request closes its connection ('Connection: close' or HTTP/1.0)",
        ),
        ("function request() return '' end", "the text is empty; return wrk.format()"),
        (
            "function request() return 'GET / HTTP/1.1\\r\\nA: b\\r\\n' end",
            "the empty line after the headers is missing",
        ),
        ("function request() return 'GET /\\r\\n\\r\\n' end", "\"/\" follows the method; write a path and HTTP/1.1"),
    ];
    for (source, reason) in table {
        let message = load_error(source);
        assert!(message.contains(reason), "{source}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn unknown_methods_are_allowed() {
    for (method, is_fine) in [("FETCH", true), ("QUERY", true), ("x-y", true), ("get", false), ("PATCH", true)] {
        let source = format!("wrk.method = '{method}'");
        let folder = Folder::new(&source);
        assert_eq!(folder.load(|_| ()).is_ok(), is_fine, "{method}");
        assert_eq!(folder.load(|setting| setting.is_compat = true).is_ok(), method == "PATCH", "as wrk: {method}");
    }
}

#[test]
fn wrong_arguments_are_named_with_line() {
    let table = [
        ("wrk.format({})", "test.lua:1: bad method for wrk.format (string or number expected, got table)"),
        ("wrk.format(nil, print)", "test.lua:1: bad path for wrk.format (string or number expected, got function)"),
        ("wrk.format(nil, nil, 'A: b')", "test.lua:1: bad headers for wrk.format (table expected, got string)"),
        (
            "wrk.format(nil, nil, {A = {}})",
            "test.lua:1: bad header 'A' for wrk.format (string or number expected, got table)",
        ),
        ("wrk.format(nil, nil, {}, {})", "test.lua:1: bad body for wrk.format (string or number expected, got table)"),
        ("wrk.connect(5)", "test.lua:1: bad argument #1 to 'connect' (wrk.addr expected, got number)"),
        ("wrk.lookup()", "test.lua:1: bad argument #1 to 'lookup' (string expected, got nil)"),
        ("wrk.lookup('h', {})", "test.lua:1: bad argument #2 to 'lookup' (string or number expected, got table)"),
    ];
    for (call, expected) in table {
        let message = load_error(call);
        assert_eq!(message.lines().next(), Some(expected));
        assert!(message.ends_with("\n\ttest.lua:1: in main chunk"), "{message}");
    }
}

#[test]
fn bad_script_files_end_the_start() {
    assert_eq!(load_error("x ="), "test.lua:1: unexpected symbol near '<eof>'");
    assert!(load_error("\nerror('boom')").starts_with("test.lua:2: boom\nstack traceback:\n"));
    assert!(
        load_error("function setup() nothing.x = 1 end").starts_with("test.lua:1: attempt to index global 'nothing'")
    );
    let message = load_error("wrk.headers = 'Host: a'");
    assert!(message.starts_with("test.lua: attempt to index field 'headers' (a string value)"), "{message}");
    let message = load_error("wrk.path = {}");
    assert!(
        message.starts_with("test.lua: bad path for wrk.format (string or number expected, got table)"),
        "{message}"
    );
    assert!(load_error("function init() error({}) end").starts_with("test.lua:1: error: table: 0x"));
    assert!(load_error("function init() error() end").starts_with("test.lua:1: error: nil\n"));
    // A NUL byte does not end the message.
    assert!(load_error("error('a\\0b\\27[31m')").starts_with("test.lua:1: a\\x00b\\x1b[31m\nstack traceback:\n"));
}

#[test]
fn script_return_values_are_ignored() {
    for value in ["{}", "nil, {}", "function() end", "io.stdout", "false", "5"] {
        assert!(
            prebuilt_text(&format!("wrk.path = '/set' return {value}")).starts_with("GET /set HTTP/1.1\r\n"),
            "{value}"
        );
    }
}

#[test]
fn bad_first_requests_end_the_start() {
    let incomplete = "request = function() return 'GET / HTTP/1.1\\r\\nA: b\\r\\n' end";
    let message = load_error(incomplete);
    assert!(
        message.contains("request() of the script did not return") && message.contains("incomplete request at 3:1"),
        "{message}"
    );
    let compat = Folder::new(incomplete).load(|setting| setting.is_compat = true).err().unwrap();
    assert_eq!(compat.to_string(), "incomplete request at 3:1");
    assert!(load_error("wrk.method = 'F(TCH'").contains("wrk.request() of the script did not return"));
    assert!(load_error("wrk.method = 'F(TCH'").contains("invalid HTTP method at 1:1"));
    let message = load_error("\nfunction request()\nend");
    assert!(message.starts_with("test.lua:2: request() returned a nil value; it must return the text of"), "{message}");
    assert!(message.contains(", or call wrk.thread:stop()\n"), "{message}");
    assert!(load_error("function request() error('early') end").starts_with("test.lua:1: early\nstack traceback:\n"));
}

#[test]
fn random_numbers_follow_seed_and_thread() {
    let folder = Folder::new("number = math.random()");
    let numbers = |seed| {
        let script = folder.load(|setting| setting.seed = seed).unwrap();
        [
            thread_global::<f64>(&script, 0, "number"),
            thread_global(&script, 1, "number"),
            main_global(&script, "number"),
        ]
    };
    let one = numbers(1);
    assert!(one[0] != one[1] && one[1] != one[2] && one[0] != one[2]);
    assert_eq!(numbers(1), one);
    assert_ne!(numbers(2)[0], one[0]);
}

#[test]
fn modules_and_libraries_are_found() {
    let folder = Folder::new(
        "local ffi = require('ffi')
         ffi.cdef('int abs(int);')
         seen = require('beside').word .. ffi.C.abs(-5) .. bit.bor(1, 2) .. table.getn({ 1, 2 }) .. type(jit) .. type(setfenv)
         source, rest, is_cwd_first = debug.getinfo(1, 'S').source, select('#', ...), package.path:sub(1, 8) == './?.lua;'
         is_plain = arg == nil and _G.ffi == nil",
    );
    std::fs::write(folder.at("beside.lua"), "return { word = 'found' }").unwrap();
    let script = folder.load(|_| ()).unwrap();
    assert_eq!(thread_global::<String>(&script, 0, "seen"), "found532tablefunction");
    assert_eq!(thread_global::<String>(&script, 0, "source"), format!("@{}", folder.at("test.lua").display()));
    assert_eq!(thread_global::<u32>(&script, 0, "rest"), 0);
    assert!(thread_global::<bool>(&script, 0, "is_cwd_first") && thread_global::<bool>(&script, 0, "is_plain"));
}

#[test]
fn wall_clock_is_in_microseconds() {
    let script = load_script("time = wrk.time_us(); seconds = os.time()");
    let (time, seconds) = (main_global::<f64>(&script, "time"), main_global::<f64>(&script, "seconds"));
    assert!((time / 1e6 - seconds).abs() < 2.0 && time.fract() == 0.0, "{time}");
}

/// Runs a script in a separate process.
fn run_in_process(source: &str) -> std::process::Output {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["script::tests::start::script_process_entry", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(SOURCE, source).output().unwrap()
}

/// Environment variable that holds the path of the script for such a process.
const SOURCE: &str = "ONRUSH_TEST_SCRIPT";

#[test]
fn script_process_entry() {
    let Ok(source) = std::env::var(SOURCE) else { return };
    let folder = Folder::new(&source);
    let outcome = folder.load(|_| ()).and_then(|mut script| {
        let mut sources = script.take_callbacks().into_iter().filter_map(|make| Called::from_callbacks(make).source);
        sources.try_for_each(|mut source| Ok(source.next_batch(&mut Vec::new()).map(drop)?))
    });
    flush_output();
    let code = outcome.err().and_then(|error| {
        let failure = error.downcast_ref::<ScriptFailure>().map(|failure| match failure {
            ScriptFailure::Exit(code) => Some(*code),
            ScriptFailure::Raised(_) => None,
        });
        failure.unwrap_or_else(|| error.downcast_ref::<Exit>().map(|exit| exit.0))
    });
    std::process::exit(code.unwrap_or(99));
}

#[test]
fn exit_ends_the_process_and_loses_nothing_printed() {
    let output = run_in_process(
        "local ffi = require('ffi'); ffi.cdef('int printf(const char *, ...);')
         io.write('one '); ffi.C.printf('two '); io.write('three\\n')
         function init() wrk.log('in', 2, nil) end
         function request() if wrk.thread.id == 2 then os.exit(7) end return wrk.format() end",
    );
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stdout).contains("one two three\n"));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "test.lua, thread 1: in\t2\tnil\ntest.lua, thread 2: in\t2\tnil\n"
    );
}

#[test]
fn unresolved_names_end_the_process_despite_pcall() {
    let output = run_in_process("pcall(wrk.lookup, 'nosuch.invalid', 'http')");
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("unable to resolve nosuch.invalid:http "), "{message}");
}

#[test]
fn exit_accepts_lua_exit_codes() {
    for (argument, code) in [("", 0), ("true", 0), ("false", 1), ("3", 3)] {
        let output = run_in_process(&format!("os.exit({argument})"));
        assert_eq!(output.status.code(), Some(code), "os.exit({argument})");
    }
}

#[test]
fn commands_run_as_in_c() {
    let script = load_script(
        "local function read(command) local file = assert(io.popen(command)) local text = file:read('*a') return text, file:close() end
         assert(os.execute() == 1 and os.execute('exit 3') == 3 * 256 and os.execute('kill -9 $$') == 9)
         assert(os.execute(7) == 127 * 256 and os.execute('true\\0false') == 0)
         local text, is_closed = read('printf \"a b\\\\nc\"; exit 5')
         assert(text == 'a b\\nc' and is_closed == true)
         local lines = 0
         for line in io.popen('seq 1 5000', 'r'):lines() do lines = lines + 1 end
         assert(lines == 5000)
         local file = io.popen('cat > $DIR/written', 'w')
         assert(io.type(file) == 'file' and file:write(('x'):rep(1e5)) and io.close(file))
         assert(io.type(file) == 'closed file' and not pcall(file.close, file))
         assert(#io.open('$DIR/written'):read('*a') == 1e5)
         -- A child has none of the script's pipes, and gets its end.
         local one, two = io.popen('cat', 'w'), io.popen('cat', 'w')
         assert(one:close() and two:close())
         local none, problem, number = io.popen('true', 'x')
         assert(none == nil and problem == 'true: Invalid argument' and number == 22)
         for _, call in ipairs { os.execute, io.popen } do assert(not pcall(call, {})) end
         for _ = 1, 600 do io.popen('true') end
         collectgarbage() collectgarbage()
         assert(read('trap \"\" INT; echo $(grep -c . /proc/self/stat)') == '1\\n')
         -- No signal is blocked.
         assert(read('grep SigBlk /proc/self/status'):match('SigBlk:%s*0+\\n'))",
    );
    assert_eq!(script.first_batch_size(), 1);
}
