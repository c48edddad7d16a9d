//! Absurd numbers and edge cases, unreadable files, unknown names, limits of the machine.

use std::fs::{self, DirEntry};
use std::path::Path;

use crate::harness::{Context, ProgramOutput, Scratch, Served, cases, fetch_target_counts, target, url, wait_until};

cases! {
    smallest_and_largest_loads_run;
    connections_are_opened_for_any_division;
    bad_values_print_one_line (Once);
    bad_wrk_values_are_explained (Once);
    unreadable_bodies_print_one_line (Once);
    large_bodies_arrive_through_pipes (Once);
    unknown_hosts_print_one_line (Once);
    only_script_threads_have_large_stacks (Once);
    foreign_messages_are_truncated_and_counted (Once);
    address_space_shortage_prints_one_line;
    connections_without_a_request_need_no_memory;
}

fn smallest_and_largest_loads_run(context: &Context) {
    let server = target();
    for (options, shown) in [
        ("-c1 -d500ms", "  1 threads and 1 connections"),
        ("-t1 -c1 -d500ms", "  1 threads and 1 connections"),
        ("-t64 -c64 -d1s", "  64 threads and 64 connections"),
        ("-n1 -c10", "  2 threads and 10 connections"),
        // As a 32-bit number, this would be zero.
        ("-n4294967296 -t1 -c1 -d500ms", "  1 threads and 1 connections"),
    ] {
        let output = context.onrush().words(options).word(url(&server, "/delay/5")).run();
        assert_eq!(output.code, 0, "{options}: {output:?}");
        output.assert_standard();
        assert_eq!(output.stdout.lines().nth(1), Some(shown), "{options}");
        assert!(output.requests() > 0, "{options}: {output:?}");
        assert_eq!(output.line("Socket errors"), None, "{options}: {output:?}");
    }
    let once = context.onrush().words("-n1 -c10").word(url(&server, "/")).run();
    assert_eq!(once.requests(), 1);
    // A millisecond may not be enough for a response, but there is a report in any case.
    let output = context.onrush().words("-d1ms").word(url(&server, "/")).run();
    output.assert_standard();
    assert!(output.stdout.starts_with("Running 1ms test @ "), "{output:?}");
    assert_eq!(output.code, if output.requests() == 0 { 5 } else { 0 }, "{output:?}");
}

fn connections_are_opened_for_any_division(context: &Context) {
    for name in [None, Some("wrk")] {
        for (threads, connections) in [(3, 10), (7, 50), (1, 33)] {
            let server = target();
            let onrush = name.map_or_else(|| context.onrush(), |name| context.called(name));
            // One request each: no response arrives before all have connected.
            let onrush = onrush.words(&format!("-t{threads} -c{connections} -n{connections}"));
            let output = onrush.word(url(&server, "/delay/200")).run();
            assert_eq!(output.code, 0, "{output:?}");
            // Called as wrk, one additional connection checks before the run that the target listens.
            let probes = u64::from(name.is_some());
            assert_eq!(
                fetch_target_counts(server.address()).connections,
                connections + probes,
                "{name:?} -t{threads} -c{connections}"
            );
        }
    }
}

fn bad_values_print_one_line(context: &Context) {
    let server = target();
    for (option, value) in [
        ("--connections", "0"),
        ("--connections", "-1"),
        ("--connections", "1000001"),
        ("--connections", "99999999999999999999999"),
        ("--connections", "ten"),
        ("--threads", "0"),
        ("--threads", "1025"),
        ("--threads", "11"),
        ("--duration", "0"),
        ("--duration", "-1s"),
        ("--duration", "1e9"),
        ("--duration", "367d"),
        ("--duration", "9999999h"),
        ("--timeout", "soon"),
        ("--give-up", "1x"),
        ("--requests", "0"),
        ("--requests", "1.5"),
        ("--method", "GE T"),
        ("--header", "no colon"),
        ("--seed", "-1"),
        ("--io", "telepathy"),
        ("--compat", "ab"),
    ] {
        let output = context.onrush().word(option).word(value).word(url(&server, "/")).run_plain();
        assert_is_one_line(&output, 1);
        assert!(output.stderr.contains(option) && output.stderr.contains(value), "{option} {value}: {output:?}");
    }
    for bad in
        ["http://", "http://a b/", "ftp://127.0.0.1/", "http://127.0.0.1:99999/", "http://[::1/", "http:127.0.0.1"]
    {
        assert_is_one_line(&context.onrush().word(bad).run_plain(), 1);
    }
    let counts = fetch_target_counts(server.address());
    assert_eq!((counts.connections, counts.requests), (0, 0));
}

fn bad_wrk_values_are_explained(context: &Context) {
    let server = target();
    for options in ["-c -1", "-c 99999999999999999999999", "-t 0", "-d 0", "-t20 -c10"] {
        let output = context.called("wrk").words(options).word(url(&server, "/")).run_plain();
        assert_eq!((output.code, output.stderr.lines().count()), (1, 1), "{options}: {output:?}");
    }
    let counts = fetch_target_counts(server.address());
    assert_eq!((counts.connections, counts.requests), (0, 0));
}

fn unreadable_bodies_print_one_line(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("body"));
    let missing = scratch.path().join("missing");
    // This file exists, but its content cannot be read from the start.
    let unreadable = "/proc/self/mem".into();
    for path in [missing, scratch.path().to_owned(), unreadable] {
        let path = format!("@{}", path.display());
        let output = context.onrush().words("-n1 --body").word(&path).word(url(&server, "/sink")).run_plain();
        assert_is_one_line(&output, 1);
        assert!(output.stderr.contains(&path), "{output:?}");
    }
    let counts = fetch_target_counts(server.address());
    assert_eq!((counts.connections, counts.requests), (0, 0));
}

fn large_bodies_arrive_through_pipes(context: &Context) {
    let server = target();
    let onrush = context.onrush().stdin(&vec![b'x'; 3_000_000]);
    let output = onrush.words("--once --body @-").word(url(&server, "/sink")).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("> POST /sink HTTP/1.1\n"), "{output:?}");
    assert!(output.stdout.contains("\n3000000\n"), "the target counted the bytes: {output:?}");
}

fn unknown_hosts_print_one_line(context: &Context) {
    let output = context.onrush().words("http://nosuch.invalid/").run_plain();
    assert_is_one_line(&output, 1);
    assert!(output.stderr.starts_with("onrush: cannot resolve nosuch.invalid: "), "{output:?}");
    let output = context.called("wrk").words("http://nosuch.invalid:8080/").run_plain();
    assert_is_one_line(&output, 1);
    assert!(output.stderr.contains("unable to resolve nosuch.invalid:8080 "), "{output:?}");
}

/// One line on standard error and nothing on standard output.
fn assert_is_one_line(output: &ProgramOutput, code: i32) {
    assert_eq!((output.code, output.stderr.lines().count()), (code, 1), "{output:?}");
    assert_eq!(output.stdout, "", "{output:?}");
    assert!(output.stderr.ends_with('\n') && output.stderr.len() < 300, "{output:?}");
}

fn only_script_threads_have_large_stacks(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("stacks"));
    let script = scratch.file("script.lua", "function request() return wrk.format() end");
    // A script's stack takes 32 MiB. The reserve of a run takes 24 MiB, and may be allocated later.
    for (script, expected) in [(None, 0.0..80.0), (Some(&script), 96.0..200.0)] {
        // Killed after the check.
        let onrush = context.onrush().words("-t2 -c2 -d1h");
        let onrush = script.into_iter().fold(onrush, |onrush, script| onrush.script(script));
        let mut child = onrush.word(url(&server, "/delay/50")).spawn();
        let process = Path::new("/proc").join(child.id().to_string());
        let is_worker =
            |task: DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("worker-"));
        let workers = || {
            fs::read_dir(process.join("task"))
                .map_or(0, |tasks| tasks.flatten().map(is_worker).filter(|&is| is).count())
        };
        wait_until(|| workers() == 2);
        let maps = fs::read_to_string(process.join("maps")).unwrap();
        let _ = child.kill();
        let _ = child.wait();
        let own: f64 = maps.lines().map(own_mib).sum();
        assert!(expected.contains(&own), "{own} {script:?}\n{maps}");
    }
}

/// The memory of a line of `/proc/PID/maps`, in MiB, if it is writable and anonymous. Adjacent areas are one line.
fn own_mib(map: &str) -> f64 {
    let mut words = map.split_whitespace();
    let (range, rights) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (from, to) = range.split_once('-').unwrap_or_default();
    let bytes = u64::from_str_radix(to, 16).unwrap_or(0) - u64::from_str_radix(from, 16).unwrap_or(0);
    if rights == "rw-p" && words.nth(3).is_none() { bytes as f64 / (1 << 20) as f64 } else { 0.0 }
}

fn foreign_messages_are_truncated_and_counted(context: &Context) {
    let server = target();
    let name = "n".repeat(100_000);
    let long = "error(string.rep('a', 1048576))";
    let outputs = [
        context.onrush().word("show").word(&name).run_plain(),
        context.onrush().word("-n1").word("-s").word(&name).word(url(&server, "/")).run_plain(),
        context.onrush().words("-n1").lua(long).word(url(&server, "/")).run_plain(),
        context.onrush().words("-n1").lua(&format!("init = function() {long} end")).word(url(&server, "/")).run_plain(),
        context
            .onrush()
            .words("-n1")
            .lua(&format!("request = function() {long} end"))
            .word(url(&server, "/"))
            .run_plain(),
    ];
    for output in outputs {
        assert!(output.code == 1 && output.stderr.len() < 10_000, "{} {}", output.code, output.stderr.len());
        assert!(output.stderr.contains("bytes are left out)"), "{output:?}");
    }
}

fn address_space_shortage_prints_one_line(context: &Context) {
    let server = Served::start();
    for (kib, code) in [(50_000, 2), (200_000, 2), (4_000_000, 0)] {
        let onrush = context.limited(&format!("-v {kib}")).words("-c1000 -t16 -n1000");
        let output = onrush.word(format!("http://{}/", server.address)).run_plain();
        match code {
            0 => assert_eq!((output.code, output.requests()), (0, 1_000), "{kib}: {output:?}"),
            _ => assert_is_one_line(&output, code),
        }
    }
}

fn connections_without_a_request_need_no_memory(context: &Context) {
    let server = Served::start();
    // All connections together would need more.
    let onrush = context.limited("-v 250000").words("-t2 -c1000000 -n10").word(format!("http://{}/", server.address));
    let output = onrush.run_plain();
    assert_eq!((output.code, output.requests()), (0, 10), "{output:?}");
}
