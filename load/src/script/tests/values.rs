//! Values copied between states, and the addresses that threads connect to.

use super::*;

#[test]
fn values_are_copied_whole_between_threads() {
    let script = load_script(
        r#"
        function setup(thread)
            local shared = { 1 }
            local value = { n = 1.5, yes = true, no = false, text = "a\0b", deep = { { { "x" } } }, one = shared, two = shared }
            thread:set("value", value)
            thread:set("gone", nil)
            thread:set("plain", "a\0b")
            value.n = 99
            back = thread:get("value")
            missing = thread:get("missing")
            is_own = thread.id == 1 and thread:get("wrk_own") == nil
        end
        function init()
            wrk.thread:set("own", { 1, 2 })
            sum = own[1] + own[2] + #wrk.thread:get("own")
            is_same = value.one == value.two
        end
        gone = 1
        "#,
    );
    assert_eq!(thread_global::<String>(&script, 0, "plain"), "a\0b");
    assert_eq!(thread_global::<Option<u32>>(&script, 0, "gone"), None);
    assert!(thread_global::<bool>(&script, 0, "is_same"));
    assert_eq!(thread_global::<u32>(&script, 1, "sum"), 5);
    let value: mlua::Table = main_global(&script, "back");
    assert_eq!(value.get::<f64>("n").unwrap(), 1.5);
    assert_eq!(value.get::<String>("text").unwrap(), "a\0b");
    assert_eq!((value.get::<bool>("yes").unwrap(), value.get::<bool>("no").unwrap()), (true, false));
    let deep: mlua::Table = value.get("deep").unwrap();
    let deep: Vec<Vec<String>> = deep.get(1).unwrap();
    assert_eq!(deep, [["x"]]);
    assert!(script.main.lua().globals().get::<mlua::Value>("missing").unwrap().is_nil());
}

#[test]
fn uncopyable_values_are_named_with_position() {
    let table = [
        ("t:set('x', print)", "cannot transfer 'function' to thread"),
        ("t:set('x', { a = { print } })", "cannot transfer 'function' to thread at a.1"),
        ("t:set('x', io.stdout)", "cannot transfer 'userdata' to thread"),
        ("t:set('x', { [t] = 1 })", "cannot transfer 'userdata' to thread at [userdata]"),
        ("t:set('x', coroutine.create(print))", "cannot transfer 'thread' to thread"),
        ("t:set('x', { n = 1LL })", "cannot transfer 'cdata' to thread at n"),
        ("local a = {}; a.b = { a }; t:set('x', a)", "cannot transfer 'table' to thread at b.1, which contains itself"),
        (
            "local a = {}; for _ = 1, 1e5 do a = { a } end; t:set('x', a)",
            "cannot transfer 'table' to thread: more than 100 tables deep",
        ),
        ("t:get('print')", "cannot transfer 'function' from thread"),
        ("t:get('wrk')", "cannot transfer 'function' from thread at "),
    ];
    for (call, expected) in table {
        let message = load_error(&format!("function setup(t) {call} end"));
        assert!(message.starts_with(&format!("test.lua:1: {expected}")), "{call}: {message}");
    }
    let script = load_script("function setup(t) ok, problem = pcall(t.set, t, 'x', print); kind = type(problem) end");
    assert_eq!(main_global::<String>(&script, "kind"), "string");
}

#[test]
fn other_thread_members_match_wrk() {
    let script = load_script("function setup(t) word = t.bogus end");
    assert_eq!(main_global::<String>(&script, "word"), "bogus");
    assert!(load_error("function setup(t) t.x = {} end").starts_with("test.lua:1: cannot set 'table' on thread"));
    assert!(load_error("function setup(t) t.addr = 5 end").contains("wrk.addr expected, got number"));
}

#[test]
fn addresses_can_be_looked_up_read_and_chosen() {
    let mut script = load_script(
        r#"
        is_early = wrk.addrs ~= nil
        function setup(thread)
            list = { tostring(wrk.addrs[1]), tostring(wrk.addrs[2]), tostring(thread.addr) }
            local found = wrk.lookup("127.0.0.1", 8081)
            if thread.id == 2 then thread.addr = found[1] end
            list[4] = tostring(thread.addr)
            named = tostring(wrk.lookup("127.0.0.1", "http")[1])
            has_server = wrk.connect(wrk.lookup("127.0.0.1", "1")[1])
        end
        function init() own = tostring(wrk.thread.addr); has_list = wrk.addrs ~= nil end
        "#,
    );
    let list = ["127.0.0.1:8080", "::1:8080", "127.0.0.1:8080", "127.0.0.1:8081"];
    assert_eq!(main_global::<Vec<String>>(&script, "list"), list);
    assert_eq!(main_global::<String>(&script, "named"), "127.0.0.1:80");
    assert!(!main_global::<bool>(&script, "has_server") && !main_global::<bool>(&script, "is_early"));
    assert!(!thread_global::<bool>(&script, 0, "has_list"));
    assert_eq!(
        [0, 1].map(|index| thread_global::<String>(&script, index, "own")),
        ["127.0.0.1:8080", "127.0.0.1:8081"]
    );
    let threads: Vec<_> = script.take_callbacks().into_iter().map(Called::from_callbacks).collect();
    assert_eq!([0, 1].map(|index| threads[index].address()), [None, Some("127.0.0.1:8081".parse().unwrap())]);
}

#[test]
fn listening_addresses_accept_connections() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = load_script(&format!("is_there = wrk.connect(wrk.lookup('127.0.0.1', {port})[1])"));
    assert!(main_global::<bool>(&script, "is_there"));
}

#[test]
fn scripts_may_resolve_the_target() {
    let mut script =
        load_script("wrk.resolve = function(host, service) wrk.addrs = wrk.lookup('127.0.0.2', service) end");
    assert_eq!(first_thread(&mut script).address(), Some("127.0.0.2:8080".parse().unwrap()));
}

#[test]
fn done_reads_the_workers_state() {
    let mut script = load_script(
        r#"
        threads = {}
        function setup(thread) table.insert(threads, thread) end
        count = 0
        function request() count = count + 1; return wrk.format() end
        function done(summary, latency, requests)
            sum, own = threads[1]:get("count") + threads[2]:get("count"), count
        end
        "#,
    );
    let workers: Vec<_> = script
        .take_callbacks()
        .into_iter()
        .map(|make| {
            thread::spawn(|| {
                let mut called = Called::from_callbacks(make);
                (0..1000).for_each(|_| drop(called.next_batch().unwrap()));
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    script.call_done(&summary(latencies())).unwrap();
    assert_eq!((main_global::<u32>(&script, "sum"), main_global::<u32>(&script, "own")), (2001, 0));
}

#[test]
fn lost_threads_are_not_touched() {
    let mut script = load_script(
        "function setup(t) if t.id == 1 then one = t end end
         function done() ok, problem = pcall(one.get, one, 'x'); _, stop = pcall(one.stop, one); one:set('x', 1) end",
    );
    let callbacks = script.take_callbacks();
    let problem = script.call_done(&summary(latencies())).unwrap_err().to_string();
    assert!(problem.contains("test.lua:2: thread 1 is still inside the script"), "{problem}");
    assert!(main_global::<String>(&script, "problem").contains("thread 1 is still inside the script"));
    assert!(main_global::<String>(&script, "stop").contains("thread 1 is still inside the script"));
    drop(callbacks);
    script.call_done(&summary(latencies())).unwrap();
}
