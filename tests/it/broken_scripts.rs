//! Scripts with errors, and misbehaving scripts: each ends in one clear message, or in a correct run.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionread;
use rustix::process::Signal;

use crate::harness::{Context, ProgramOutput, Scratch, cases, finish, signal, target, url, wait_until};
use crate::recorder::RecordingServer;

cases! {
    missing_or_invalid_scripts_are_fatal (Once);
    callback_errors_name_file_and_line (Once);
    wrong_value_types_are_named (Once);
    malformed_requests_are_refused_with_position (Once);
    later_malformed_requests_end_the_run (Once);
    scripts_can_send_multi_megabyte_requests;
    batches_may_change_their_size;
    scripts_can_exit_in_every_phase (Once);
    signals_end_scripts_stuck_before_start (Once);
    second_signals_end_scripts_with_unread_output (Once);
    signals_end_commands_of_scripts;
    blocking_calls_delay_neither_report_nor_exit (Once);
    slow_script_functions_are_reported (Once);
    endless_recursion_is_reported (Once);
    scripts_may_return_values (Once);
    hanging_callbacks_are_named_and_the_rest_reported (Once);
    untransferable_values_are_refused (Once);
    old_scripts_may_call_wrk_init (Once);
    scripts_may_redefine_globals (Once);
}

/// Much longer than the harness's time limit, so the script must end the program.
const UNTIL_ENDED: &str = "-d1h";

fn missing_or_invalid_scripts_are_fatal(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("broken"));
    let missing = scratch.path().join("missing.lua");
    let directory = scratch.path().to_owned();
    let broken = scratch.file("broken.lua", "wrk.method = \"POST\"\nfunction request( return 1 end\n");
    let binary = scratch.file("binary.lua", b"\x1bLJ\x02\x00\xff\xff");
    for (path, is_read, words) in [
        (&missing, false, vec!["missing.lua", "No such file"]),
        (&directory, false, vec!["s a directory"]),
        (&broken, true, vec!["broken.lua:2: ", "near 'return'"]),
        (&binary, true, vec!["binary.lua"]),
    ] {
        for onrush in context.both() {
            let onrush = onrush.words("-t2 -c2").script(path).word(url(&server, "/"));
            // An unreadable script ends the program before it chooses a backend.
            let output = if is_read { onrush.run() } else { onrush.run_plain() };
            assert_refused(&output, &words);
            assert_eq!(output.stderr.lines().count(), 1, "said once, in one line: {output:?}");
        }
    }
}

fn callback_errors_name_file_and_line(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("errors"));
    for (callback, is_run) in [
        ("do local here = 1", false),
        ("function setup(thread)", false),
        ("function init(args)", false),
        ("function request()", false),
        ("local n = 0 function request() n = n + 1 if n < 5 then return wrk.format() end", true),
        ("function response(status)", true),
        ("function delay()", true),
    ] {
        let file = scratch.file(
            "broken.lua",
            format!("-- One.\n{callback}\n  local function deep() error(\"boom\") end\n  deep()\nend\n"),
        );
        for onrush in context.both() {
            let output = onrush.words("-t2 -c4").word(UNTIL_ENDED).script(&file).word(url(&server, "/")).run();
            assert_refused(&output, &["broken.lua:3: boom", "stack traceback:", "broken.lua:4:"]);
            assert_eq!(output.stdout.contains("Running"), is_run, "{callback}: {output:?}");
            assert_eq!(output.stderr.matches("broken.lua:3: boom").count(), 1, "{callback}: {output:?}");
        }
    }
    let file = scratch.file("done.lua", "function done()\n  local x = nil + 1\nend\n");
    for onrush in context.both() {
        let output = onrush.words("-t1 -c1 -n1").script(&file).word(url(&server, "/")).run();
        output.assert_standard();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.contains("done.lua:2: attempt to perform arithmetic on a nil value"), "{output:?}");
    }
}

fn wrong_value_types_are_named(context: &Context) {
    let server = target();
    for (script, words) in [
        ("function request() return {} end", "request()"),
        ("function request() return true end", "request()"),
        ("function request() end", "request() returned a nil value"),
        ("function request() return wrk.format(nil, {}) end", "wrk.format"),
        ("wrk.headers = 5", "headers"),
        ("wrk.body = print", "body"),
        ("wrk.method = {}", "bad method"),
        ("wrk.path = {}", "bad path"),
        ("wrk.headers.A = {}", "header 'A'"),
        ("function setup(thread) thread.addr = 5 end", "wrk.addr expected, got number"),
        ("function setup(thread) thread.other = 5 end", "cannot set 'number' on thread"),
        ("function init() wrk.connect(5) end", "wrk.addr expected, got number"),
        ("function init() wrk.lookup() end", "lookup"),
        ("error({})", "stdin:1: error: table: 0x"),
        ("error()", "stdin:1: error: nil"),
        ("local made = {} made:missing()", "stdin:1: attempt to call method 'missing' (a nil value)"),
        ("error('seen\\0hidden')", "stdin:1: seen\\x00hidden"),
    ] {
        for onrush in context.both() {
            let output = onrush.words("-t1 -c1 -n9").lua(script).word(url(&server, "/")).run();
            assert_refused(&output, &[words]);
        }
    }
}

fn malformed_requests_are_refused_with_position(context: &Context) {
    let server = target();
    for (script, reason) in [
        ("function request() return 'GET / HTTP/1.1\\r\\nHost: h\\r\\n' end", "incomplete request at 3:1"),
        ("function request() return wrk.format() .. 'x' end", "invalid HTTP method at 4:1"),
        ("function request() return '' end", "incomplete request at 1:1"),
        ("function request() return 5 end", "invalid HTTP method at 1:1"),
        ("wrk.method = 'F(TCH'", "invalid HTTP method at 1:1"),
        ("wrk.path = '/a b'", "invalid constant string at 1:8"),
        ("wrk.path = '/\\xc3\\xa4'", "invalid URL at 1:6"),
        ("wrk.headers['A B'] = 'c'", "invalid character in header at "),
        ("wrk.headers['Transfer-Encoding'] = 'chunked' wrk.body = 'x'", "unexpected content-length header at "),
        (
            "wrk.headers.Connection = 'close' function request() return wrk.format():rep(2) end",
            "data received after completed connection: close message at 5:1",
        ),
    ] {
        for onrush in context.both() {
            let is_compat = onrush.is_compat();
            let output = onrush.words("-t1 -c1 -n9").lua(script).word(url(&server, "/")).run();
            assert_refused(&output, &[reason]);
            assert!(!output.stdout.contains("Running"), "{output:?}");
            assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
            assert!(is_compat || output.stderr.contains(" (line and byte of the returned text): "), "{output:?}");
        }
    }
}

fn later_malformed_requests_end_the_run(context: &Context) {
    let server = target();
    for last in ["nil", "''", "'GET / HTTP/1.1'", "{}"] {
        let script = format!(
            "local n = 0 function request() n = n + 1 if n > 20 then return {last} end return wrk.format() end"
        );
        for onrush in context.both() {
            let output = onrush.words("-t1 -c2").word(UNTIL_ENDED).lua(&script).word(url(&server, "/")).run();
            let words = if last.starts_with('\'') { "incomplete request at 1:" } else { "request() returned a " };
            assert_refused(&output, &[words]);
        }
    }
}

fn scripts_can_send_multi_megabyte_requests(context: &Context) {
    let server = target();
    let script = "
        local text
        function init() text = wrk.format('POST', '/sink', nil, ('x'):rep(20e6)) end
        function request() return text end
        function response(status, _, body) if body ~= '20000000' then error(body) end wrk.thread:stop() end";
    let output = context.onrush().words("-t1 -c1").word(UNTIL_ENDED).lua(script).word(url(&server, "/sink")).run();
    assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
}

fn batches_may_change_their_size(context: &Context) {
    let script = "
        local n, sent, answered = 0, 0, 0
        function request()
            n = n + 1
            local size = n % 5 + 1
            if n > 1 then sent = sent + size end
            return wrk.format(nil, '/' .. size):rep(size)
        end
        function response() answered = answered + 1 if sent > 300 then wrk.thread:stop() end end
        function setup(thread) one = thread thread:set('numbers', {}) end
        function done(summary) print('answered', summary.requests) end";
    for onrush in context.both() {
        let recorder = RecordingServer::start("127.0.0.1");
        let url = format!("http://{}/", recorder.address());
        let output = onrush.words("-t1 -c1").word(UNTIL_ENDED).lua(script).word(url).run();
        assert_eq!(output.code, 0, "{output:?}");
        assert!((270..=330).contains(&output.requests()), "{output:?}");
        assert_eq!(output.line("answered"), Some(&*format!("answered\t{}", output.requests())), "{output:?}");
        let paths: Vec<_> = recorder.requests().iter().map(|request| request[5..6].to_owned()).collect();
        // The first batch was only inspected.
        assert_eq!(paths[..19].concat(), "3334444555551223334");
    }
}

fn scripts_can_exit_in_every_phase(context: &Context) {
    let server = target();
    for (script, has_begun) in [
        ("io.write('bye\\n') os.exit(7)", false),
        ("function setup() io.write('bye\\n') os.exit(7) end", false),
        ("function init() io.write('bye\\n') os.exit(7) end", false),
        ("function request() io.write('bye\\n') os.exit(7) end", false),
        ("function response() io.write('bye\\n') os.exit(7) end", true),
        ("function delay() io.write('bye\\n') os.exit(7) end", true),
        ("function done() io.write('bye\\n') os.exit(7) end", true),
    ] {
        for onrush in context.both() {
            let output = onrush.words("-t2 -c2 -n20").lua(script).word(url(&server, "/")).run();
            assert_eq!(output.code, 7, "{script}: {output:?}");
            assert!(output.stdout.contains("bye\n"), "{script}: {output:?}");
            assert_eq!(output.stdout.contains("Running"), has_begun, "{script}: {output:?}");
            assert_eq!(output.stdout.contains("Requests/sec"), has_begun, "{script}: {output:?}");
        }
    }
    for (code, expected) in [("", 0), ("true", 0), ("false", 1), ("0", 0), ("255", 255)] {
        let script = format!("function init() os.exit({code}) end");
        let output = context.onrush().words("-t1 -c1 -n1").lua(&script).word(url(&server, "/")).run();
        assert_eq!(output.code, expected, "os.exit({code}): {output:?}");
    }
}

fn signals_end_scripts_stuck_before_start(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("waits"));
    let begun = "io.write('begun') io.flush() while true do end";
    let waits = format!("io.write('begun') io.flush() io.open('{}', 'r+'):read()", pipe(&scratch).display());
    for script in
        [begun.to_owned(), format!("function setup() {begun} end"), format!("function init() {begun} end"), waits]
    {
        for onrush in context.both() {
            let mut child = onrush.words("-t1 -c1 -n1").lua(&script).word(url(&server, "/")).spawn();
            child.stdout.as_mut().expect("it is a pipe").read_exact(&mut [0; 5]).expect("it says so");
            signal(&child, Signal::INT);
            assert_eq!(finish(child).code, 130, "{script}");
        }
    }
}

fn slow_script_functions_are_reported(context: &Context) {
    let server = target();
    let lasting = "local till = os.time() + 7 while os.time() < till do end";
    let started: Vec<_> = [
        (lasting.to_owned(), "its file, outside of all functions,"),
        (format!("function init() {lasting} end"), "init()"),
        (format!("function request() {lasting} return wrk.format() end"), "its first request()"),
        (format!("function done() {lasting} end"), "done()"),
    ]
    .map(|(script, function)| {
        let onrush = context.onrush().words("-t1 -c1 -d10ms").lua(&script).word(url(&server, "/"));
        (onrush.spawn(), format!("onrush: the script has been in {function} for 5 s\n"))
    })
    .into();
    for (child, line) in started {
        let output = finish(child);
        assert!(output.stderr.contains(&line), "{line}: {output:?}");
    }
}

fn signals_end_commands_of_scripts(context: &Context) {
    let server = target();
    for call in ["os.execute(C)", "io.popen(C):read('*a')", "io.popen(C):close()"] {
        for (name, code) in [("init", 130), ("request", 0), ("response", 0)] {
            for onrush in context.both() {
                // A number of seconds that appears in no other process's command line.
                let seconds = format!("60.{}", server.address().port());
                let script = format!(
                    "C = 'sleep {seconds}; true'
                     local n = 0
                     function {name}() n = n + 1 if n > 9 or '{name}' == 'init' then {call} end return wrk.format() end",
                );
                let began = Instant::now();
                let child = onrush.words("-t2 -c2 -d60s").lua(&script).word(url(&server, "/")).spawn();
                // A program about to be started by a shell may miss the signal.
                wait_until(|| processes(&["sleep", &seconds]) == if name == "init" { 1 } else { 2 });
                signal(&child, Signal::INT);
                // The commands of the script share its standard output, which ends with the last of them.
                let output = finish(child);
                assert_eq!(output.code, code, "{call} in {name}: {output:?}");
                assert_eq!(output.stdout.contains("Requests/sec"), code == 0, "{call} in {name}: {output:?}");
                assert_eq!(processes(&["sleep", &seconds]), 0, "{call} in {name}");
                assert!(began.elapsed().as_secs() < 30, "{call} in {name}: a command went on");
            }
        }
    }
}

fn blocking_calls_delay_neither_report_nor_exit(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("waits"));
    let pipe = pipe(&scratch);
    for call in [
        "file:read()",
        "os.execute(C)",
        "os.execute('(' .. C .. ') & wait')",
        "io.popen(C):read('*a')",
        "io.popen(C, 'w'):write(('x'):rep(1e6))",
        "io.popen(C):close()",
    ] {
        let seconds = format!("60.{}", server.address().port());
        let script = format!(
            "C = 'sleep {seconds}; true'
             file = io.open('{}', 'r+')
             local n = 0
             function request() n = n + 1 if n > 9 then {call} end return wrk.format() end",
            pipe.display()
        );
        let output = context.onrush().words("-t2 -c2 -d500ms").lua(&script).word(url(&server, "/")).run();
        assert_eq!(output.code, 1, "{call}: {output:?}");
        output.assert_standard();
        assert!(output.stderr.contains("threads 1, 2 are still in the script's request()"), "{call}: {output:?}");
        assert_eq!(processes(&["sleep", &seconds]), 0, "{call}");
        assert!(output.took.as_secs() < 30, "{call}: it went on for {:?}", output.took);
    }
}

/// A named pipe without a writer.
fn pipe(scratch: &Scratch) -> PathBuf {
    let path = scratch.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().expect("it is installed").success());
    path
}

/// Number of processes with this command line.
fn processes(words: &[&str]) -> usize {
    let wanted: String = words.iter().map(|word| format!("{word}\0")).collect();
    let all = fs::read_dir("/proc").expect("there is /proc").flatten();
    all.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())).count()
}

fn second_signals_end_scripts_with_unread_output(context: &Context) {
    let server = target();
    for onrush in context.both() {
        let script = "while true do print('x') end";
        let mut child = onrush.words("-t1 -c1 -n1").lua(script).word(url(&server, "/")).spawn();
        // After the first signal, the program waits for a reader of its output, for which the pipe has no more room.
        let printed = child.stdout.take().expect("it is a pipe");
        wait_until(|| ioctl_fionread(&printed).is_ok_and(|bytes| bytes >= 60_000));
        signal(&child, Signal::INT);
        // Until the first signal has been handled, a second one would be taken for the first.
        wait_until(|| {
            thread::sleep(Duration::from_millis(100));
            signal(&child, Signal::INT);
            matches!(child.try_wait(), Ok(Some(_)))
        });
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

fn endless_recursion_is_reported(context: &Context) {
    let server = target();
    // In and out of coroutines, which have separate Lua stacks, and through a function that needs much of the C stack.
    let recursion = "\
        local depth = 0
        local function deep()
            depth = depth + 1
            if depth % 500 == 0 then return (coroutine.wrap(deep)()) end
            return (string.gsub('a', 'a', deep))
        end\n";
    for callback in ["do", "setup", "init", "request", "response", "delay", "done"] {
        for onrush in context.both() {
            let head = if callback == "do" { "do".to_owned() } else { format!("function {callback}()") };
            let output =
                onrush.words("-t1 -c1 -n2").lua(&format!("{recursion}{head} deep() end")).word(url(&server, "/")).run();
            assert_eq!(output.code, 1, "{callback}: {output:?}");
            assert!(output.stderr.contains("stdin:5: stack overflow\nstack traceback:\n"), "{callback}: {output:?}");
        }
    }
}

fn scripts_may_return_values(context: &Context) {
    let server = target();
    for onrush in context.both() {
        let output = onrush.words("-t2 -c2 -n4").lua("return { encode = print }, 5").word(url(&server, "/")).run();
        assert_eq!(output.code, 0, "{output:?}");
        output.assert_standard();
    }
}

fn hanging_callbacks_are_named_and_the_rest_reported(context: &Context) {
    let server = target();
    for (callback, onrush) in [
        ("request", context.onrush().words("-d500ms")),
        ("response", context.called("wrk").words("-d1")),
        ("delay", context.onrush().words("-d500ms")),
    ] {
        // The second thread continues.
        let script = format!(
            "local n = 0
             function setup(thread) made = (made or 0) + 1 thread:set('id', made) end
             local function stick() n = n + 1 if id == 1 and n > 2 then while true do end end end
             {}
             function done() print('done') end",
            match callback {
                "request" => "function request() stick() return wrk.request() end",
                "response" => "function response() stick() end",
                _ => "function delay() stick() return 1 end",
            }
        );
        let output = onrush.words("-t2 -c2").lua(&script).word(url(&server, "/")).run();
        assert_eq!(output.code, 1, "{output:?}");
        output.assert_standard();
        assert!(output.requests() > 2, "{output:?}");
        let said = output.stderr.lines().find(|line| line.contains("thread 1")).unwrap_or_default();
        assert!(said.contains(&format!("{callback}()")), "{output:?}");
    }
    let output = context
        .onrush()
        .words("--once --give-up 50ms")
        .lua("function response() while true do end end")
        .word(url(&server, "/"))
        .run();
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("response()"), "{output:?}");
}

fn untransferable_values_are_refused(context: &Context) {
    let server = target();
    for (value, words) in [
        ("print", "cannot transfer 'function'"),
        ("{ 1, { print } }", "cannot transfer 'function'"),
        ("(function() local t = {} t.t = t return t end)()", "itself"),
        ("coroutine.create(print)", "cannot transfer 'thread'"),
        ("io.stdout", "cannot transfer 'userdata'"),
    ] {
        for onrush in context.both() {
            let script = format!("function setup(thread)\n thread:set('value', {value})\nend");
            let output = onrush.words("-t1 -c1 -n1").lua(&script).word(url(&server, "/")).run();
            assert_refused(&output, &[words, "stdin:2:"]);
        }
    }
    let script = "
        function setup(thread) one = thread thread:set('deep', { a = { b = { 1, 2 } }, nul = 'x\\0y' }) end
        function init() back = { deep.a.b, deep.nul } f = print end
        function done()
            local back = one:get('back')
            print(back[1][2], #back[2], pcall(one.get, one, 'f'))
        end";
    for onrush in context.both() {
        let output = onrush.words("-t1 -c1 -n9").lua(script).word(url(&server, "/")).run();
        assert_eq!(output.code, 0, "{output:?}");
        let last = output.stdout.lines().last().unwrap();
        assert!(last.starts_with("2\t3\tfalse\t") && last.contains("cannot transfer 'function'"), "{output:?}");
    }
}

fn old_scripts_may_call_wrk_init(context: &Context) {
    for onrush in context.both() {
        let recorder = RecordingServer::start("127.0.0.1");
        let script = "function init(args) wrk.init(args) wrk.path = '/late' end";
        let output = onrush.words("-t1 -c1 -n9").lua(script).word(format!("http://{}/", recorder.address())).run();
        assert_eq!(output.code, 0, "{output:?}");
        assert!(recorder.requests()[0].starts_with("GET /late HTTP/1.1\r\nHost: "), "{output:?}");
    }
}

fn scripts_may_redefine_globals(context: &Context) {
    let server = target();
    let script = "
        for _, name in ipairs({ 'error', 'next', 'pairs', 'select', 'setmetatable', 'tonumber', 'type', 'xpcall' }) do
            _G[name] = nil
        end
        string.format, string.find, string.gsub = nil, nil, nil
        function request() return wrk.format('POST', '/sink', nil, 'x') end
        function response(status, headers, body) one = body end
        function done(summary, latency) print('done', latency:percentile(50) > 0) end";
    for onrush in context.both() {
        let output = onrush.words("-t1 -c1 -n9").lua(script).word(url(&server, "/")).run();
        assert_eq!((output.code, output.stdout.lines().last()), (0, Some("done\ttrue")), "{output:?}");
    }
}

/// Expects exit code 1, a report if the run has started, and a message with all of these words.
#[track_caller]
fn assert_refused(output: &ProgramOutput, words: &[&str]) {
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(output.stdout.contains("Requests/sec"), output.stdout.contains("Running"), "{output:?}");
    for word in words {
        assert!(output.stderr.contains(word), "no {word:?}: {output:?}");
    }
}
