//! Calls by the engine during the run.

use super::*;

#[test]
fn only_a_running_thread_can_be_stopped() {
    let mut script = load_script(
        "function setup(t) t:stop() end
         function init() wrk.thread:stop() end
         function request() count = (count or 0) + 1; if count == 3 then wrk.thread:stop() end return wrk.format() end",
    );
    let mut thread = first_thread(&mut script);
    thread.next_batch().unwrap();
    assert!(!thread.is_stopped());
    thread.next_batch().unwrap();
    assert!(thread.is_stopped());
}

#[test]
fn stopped_threads_send_nothing_more() {
    for last in ["", "return nil", "return ''", "return {}", "return 'GET'", "return wrk.format()"] {
        let mut script = load_script(&format!(
            "local n = 0; function request() n = n + 1; if n > 2 then wrk.thread:stop() {last} end return wrk.format() end"
        ));
        let mut thread = first_thread(&mut script);
        assert_eq!(thread.next_batch().map(|batch| batch.len()), Ok(1), "{last}");
        assert_eq!(thread.next_batch().map(|batch| batch.len()), Ok(0), "{last}");
        assert!(thread.is_stopped(), "{last}");
    }
    // The first call, before the run, may also stop its thread.
    let mut thread = first_thread(&mut load_script("function request() wrk.thread:stop() end"));
    assert_eq!(thread.next_batch().map(|batch| batch.len()), Ok(0));
    assert!(thread.is_stopped());
    // An error also counts as a stop.
    let mut script = load_script(
        "local n = 0; function request() n = n + 1; if n > 1 then wrk.thread:stop() error('boom') end return wrk.format() end",
    );
    assert!(first_thread(&mut script).next_batch().is_err_and(|problem| problem.contains("boom")));
}

#[test]
fn equal_texts_are_parsed_once() {
    let mut script = load_script(
        "local n = 0
         function request() n = n + 1; return wrk.format(nil, n < 4 and '/a' or '/b') .. wrk.format('HEAD') end",
    );
    assert_eq!(script.first_batch_size(), 2);
    let mut thread = first_thread(&mut script);
    let (one, two, three) = (thread.next_batch().unwrap(), thread.next_batch().unwrap(), thread.next_batch().unwrap());
    assert_eq!(request_bytes(&one[0]), b"GET /a HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
    assert_eq!(request_bytes(&one[1]), b"HEAD /p?q HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
    assert!(std::ptr::eq(request_bytes(&one[0]), request_bytes(&two[0])));
    assert_eq!(request_bytes(&three[0]), b"GET /b HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
}

#[test]
fn batch_sizes_may_change() {
    let mut script = load_script("local n = 0; function request() n = n + 1; return wrk.format():rep(n) end");
    assert_eq!(script.first_batch_size(), 1);
    let mut thread = first_thread(&mut script);
    assert_eq!([0; 3].map(|_| thread.next_batch().unwrap().len()), [2, 3, 4]);
}

#[test]
fn requests_may_have_a_hundred_megabytes() {
    let mut script =
        load_script("local body = ('x'):rep(1e8); function request() return wrk.format('POST', '/', {}, body) end");
    let mut thread = first_thread(&mut script);
    assert_eq!(thread.next_batch().unwrap()[0].body().len(), 100_000_000);
}

#[test]
fn callback_errors_have_line_and_traceback() {
    let folder = Folder::new(
        r#"
        local n = 0
        function request() n = n + 1; if n == 2 then helper() elseif n == 3 then return nil elseif n == 4 then return "GET" end return wrk.format() end
        function response() error("heard") end
        function delay() error(setmetatable({}, { __tostring = function() return "shown" end })) end
        function helper() error("boom") end
        "#,
    );
    let mut script = folder.load(|_| ()).unwrap();
    let mut thread = first_thread(&mut script);
    let name = folder.at("test.lua").display().to_string();
    let problem = thread.next_batch().unwrap_err();
    assert!(problem.starts_with(&format!("{name}:6: boom\nstack traceback:\n")), "{problem}");
    assert!(problem.contains(":3: in function"), "{problem}");
    let problem = thread.next_batch().unwrap_err();
    assert!(problem.contains("test.lua:3: request() returned a nil value"), "{problem}");
    let problem = thread.next_batch().unwrap_err();
    assert!(problem.contains("incomplete request at 1:4"), "{problem}");
    let problem = thread.pass_response(&RESPONSE).unwrap_err().to_string();
    assert!(problem.starts_with(&format!("{name}:4: heard\n")), "{problem}");
    let problem = thread.delay_ns().unwrap_err().to_string();
    assert!(problem.starts_with(&format!("{name}:5: error: shown\n")), "{problem}");
    // The state is still usable.
    assert_eq!(thread.next_batch().unwrap().len(), 1);
}

#[test]
fn callback_errors_stay_in_the_protected_call() {
    let table = [
        ("local function f() return 1 + f() end return f()", "stack overflow"),
        ("error(nil)", "error: nil"),
        ("error(error)", "error: function: builtin"),
        ("error(setmetatable({}, { __tostring = error }))", "error: a table value whose __tostring fails"),
        ("error('a\\0b')", "a\\x00b"),
        ("local o = {} o:missing()", "attempt to call method 'missing' (a nil value)"),
        ("local o o:missing()", "attempt to index local 'o' (a nil value)"),
        ("coroutine.wrap(function() error('within') end)()", "within"),
        ("coroutine.yield()", "attempt to yield"),
        ("return { wrk.format() }", "request() returned a table value"),
        ("return function() end", "request() returned a function value"),
        ("return true", "request() returned a boolean value"),
        ("return ''", "incomplete request at 1:1"),
        ("return 5", "invalid HTTP method at 1:1"),
        (
            "local p = newproxy(true) getmetatable(p).__gc = function() error('late') end p = nil collectgarbage() return 1",
            "",
        ),
    ];
    for (code, expected) in table {
        let mut script = load_script(&format!(
            "local n = 0; function request() n = n + 1; if n == 2 then {code} end return wrk.format() end"
        ));
        let mut thread = first_thread(&mut script);
        let problem = thread.next_batch().err().unwrap_or_default();
        assert!(problem.contains(expected) && !problem.is_empty(), "{code}: {problem}");
        assert_eq!(thread.next_batch().map(|batch| batch.len()), Ok(1), "{code}");
    }
}

#[test]
fn globals_may_be_guarded_or_come_from_elsewhere() {
    let strict = "setmetatable(_G, { __index = function(_, name) error('no global ' .. name, 2) end })";
    let message = load_error(strict);
    assert!(message.contains("no global"), "{message}");
    let mut script =
        load_script("setmetatable(_G, { __index = { request = function() return wrk.format('HEAD') end } })");
    assert!(script.wants().request);
    assert!(request_bytes(&first_thread(&mut script).next_batch().unwrap()[0]).starts_with(b"HEAD "));
}

#[test]
fn responses_are_passed_on_unchanged() {
    let mut script = load_script(
        "function response(status, headers, body, latency_us)
             seen = { status, headers.Server, headers['X-Two'], headers.Empty, headers['X-Trail'], #body, latency_us }
             names = 0; for _ in pairs(headers) do names = names + 1 end
         end",
    );
    assert_eq!(script.wants(), Wants { response: true, headers: true, body: true, ..Wants::default() });
    let mut thread = first_thread(&mut script);
    thread.pass_response(&RESPONSE).unwrap();
    drop(thread);
    assert_eq!(thread_global::<Vec<String>>(&script, 0, "seen"), ["201", "a", "2", "", "t", "11", "1.5"]);
    assert_eq!(thread_global::<u32>(&script, 0, "names"), 4);
}

#[test]
fn as_wrk_fieldless_responses_skip_the_callback() {
    for (is_compat, count) in [(false, 2), (true, 1)] {
        let folder = Folder::new("count = 0; function response(status, headers) count = count + 1 end");
        let mut script = folder.load(|setting| setting.is_compat = is_compat).unwrap();
        let mut thread = first_thread(&mut script);
        thread.pass_response(&Response { head: b"HTTP/1.0 200 OK\r\n\r\n", trailers: b"", ..RESPONSE }).unwrap();
        thread.pass_response(&RESPONSE).unwrap();
        drop(thread);
        assert_eq!(thread_global::<u32>(&script, 0, "count"), count);
    }
}

#[test]
fn only_named_response_arguments_are_wanted() {
    let table = [
        ("", (false, false), 0),
        ("status", (false, false), 1),
        ("status, headers", (true, false), 2),
        ("status, headers, body", (true, true), 3),
        ("...", (true, true), 3),
        ("s, h, b, latency_us", (true, true), 4),
        ("s, h, b, l, more", (true, true), 5),
        ("s, h, b, l, ...", (true, true), 5),
        ("s, h, b, l, value, more", (true, true), 5),
    ];
    for (parameters, (headers, body), count) in table {
        let source = format!("function response({parameters}) end");
        let script = load_script(&source);
        assert_eq!(script.wants(), Wants { response: true, headers, body, ..Wants::default() }, "{source}");
        assert_eq!(script.arity.arguments, count, "{source}");
        let as_wrk = Folder::new(&source).load(|setting| setting.is_compat = true).unwrap();
        assert_eq!(as_wrk.arity.arguments, count.min(3), "{source}");
    }
    let mut script = load_script("function response(...) count = select('#', ...) end");
    first_thread(&mut script).pass_response(&RESPONSE).unwrap();
    assert_eq!(thread_global::<u32>(&script, 0, "count"), 3);
}

#[test]
fn callbacks_set_in_init_count() {
    let mut script = load_script(
        "function init() delay = function() delay = nil; return 3 end; response = function() response = nil end end",
    );
    assert_eq!((script.wants().delay, script.wants().response), (true, true));
    let mut thread = first_thread(&mut script);
    assert_eq!([0; 2].map(|_| thread.delay_ns().unwrap()), [Some(3_000_000), Some(0)]);
    assert_eq!([0; 2].map(|_| thread.pass_response(&RESPONSE)), [Ok(()), Ok(())]);
}

#[test]
fn delays_are_whole_milliseconds() {
    let table = [
        ("100", Some(100_000_000)),
        ("1.9", Some(1_000_000)),
        ("0.9", Some(0)),
        ("-5", Some(0)),
        ("nil", None),
        ("'7'", Some(7_000_000)),
        ("{}", None),
        ("0/0", None),
        ("1/0", Some(u64::MAX)),
    ];
    for (value, expected) in table {
        let mut script = load_script(&format!("function delay() return {value} end"));
        assert_eq!(first_thread(&mut script).delay_ns(), Ok(expected), "{value}");
    }
    assert_eq!(first_thread(&mut load_script("function delay() end")).delay_ns(), Ok(None));
    let source = Folder::new("function delay() return 1 end");
    assert!(!source.load(|setting| setting.is_wrk2 = true).unwrap().wants().delay, "wrk2 has no delay");
}

#[test]
fn time_inside_the_script_is_estimated() {
    let mut script = load_script(
        "function request() local ends = wrk.time_us() + 500; while wrk.time_us() < ends do end return wrk.format() end",
    );
    let mut thread = first_thread(&mut script);
    assert_eq!(thread.spent_ns(), 0);
    (0..200).for_each(|_| drop(thread.next_batch().unwrap()));
    let spent = thread.spent_ns() as f64 / 1e6;
    // Two hundred calls of half a millisecond; a busy machine can only prolong them.
    assert!((90.0..10_000.0).contains(&spent), "{spent} ms");
}

#[test]
fn http2_headers_match_in_any_case() {
    let text = "function response(status, headers)
        assert(headers['Content-Length'] == '2' and headers['content-length'] == '2')
        assert(headers['X-None'] == nil and headers[1] == nil and headers[{}] == nil)
        for name in pairs(headers) do assert(name == 'content-length') end
    end";
    let mut script = load_script(text);
    let head = b"HTTP/2 200\r\ncontent-length: 2\r\n\r\n";
    first_thread(&mut script).pass_response(&Response { head, trailers: b"", ..RESPONSE }).unwrap();
}

/// wrk parses only the first text, and many scripts have paths with blanks or non-ASCII characters.
#[test]
fn as_wrk_only_the_first_path_is_checked() {
    let source = "
        local paths, n = { '/first', '/a b', '/\\195\\188' }, 0
        function request() n = n % 3 + 1 return wrk.format('GET', paths[n]) end";
    for (is_compat, expected) in [
        (
            false,
            Err("invalid constant string at 1:8 (line and byte of the returned text): a blank in the path \"/a b\""),
        ),
        (true, Ok(["GET /a b HTTP/1.1\r\n", "GET /\u{fc} HTTP/1.1\r\n", "GET /first HTTP/1.1\r\n"])),
    ] {
        let folder = Folder::new(source);
        let mut script = folder.load(|setting| setting.is_compat = is_compat).unwrap();
        let mut thread = first_thread(&mut script);
        match expected {
            Ok(lines) => {
                for line in lines {
                    let batch = thread.next_batch().unwrap();
                    assert!(batch.len() == 1 && request_bytes(&batch[0]).starts_with(line.as_bytes()), "{line}");
                }
            }
            Err(words) => assert!(thread.next_batch().unwrap_err().contains(words)),
        }
    }
}

#[test]
fn second_values_return_with_each_response() {
    let source = "
        local n = 0
        seen = {}
        setmetatable(seen, { __mode = 'v' })
        function request()
            n = n + 1
            seen[n] = { number = n }
            return wrk.format():rep(2), n ~= 4 and seen[n] or nil, 'dropped'
        end
        function response(status, headers, body, latency_us, value)
            told = (told or '') .. (value and value.number or '-') .. ' '
        end
        function alive() collectgarbage() local k = 0 for _ in pairs(seen) do k = k + 1 end return k end";
    let mut script = load_script(source);
    let mut thread = first_thread(&mut script);
    // The first call was made before the run.
    let mut batches: Vec<Vec<Request>> = (0..3).map(|_| thread.next_batch().unwrap()).collect();
    for (batch, request) in [(1, 0), (0, 1), (2, 0), (1, 1)] {
        thread.pass_response(&Response { remark: batches[batch][request].remark(), ..RESPONSE }).unwrap();
    }
    // Both batches share one string. A value is released in the first call after its last request has ended.
    assert!(std::ptr::eq(request_bytes(&batches[0][0]), request_bytes(&batches[1][0])));
    batches.remove(0);
    thread.next_batch().unwrap();
    drop(thread);
    assert_eq!(thread_global::<String>(&script, 0, "told"), "3 2 - 3 ");
    assert_eq!(
        thread_global::<mlua::Function>(&script, 0, "alive").call::<u32>(()).unwrap(),
        2,
        "the third, and the last one"
    );
    // In a run as wrk, there are exactly three arguments.
    let folder = Folder::new(&source.replace("value.number", "error(value)"));
    let mut script = folder.load(|setting| setting.is_compat = true).unwrap();
    let mut thread = first_thread(&mut script);
    let batch = thread.next_batch().unwrap();
    assert!(batch[0].remark().is_none());
    thread.pass_response(&Response { remark: batch[0].remark(), ..RESPONSE }).unwrap();
    drop(thread);
    assert_eq!(thread_global::<String>(&script, 0, "told"), "- ");
}
