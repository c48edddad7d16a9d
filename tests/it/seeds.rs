//! The command lines that users of wrk published, as they typed them, except that hosts and ports are those of a local
//! target and `-d` is 1 second instead of 10 or 30, the shortest that wrk knows. A repeated line is run once, some by the
//! one name and some by the other.

use rustix::process::Signal;

use crate::harness::{Context, Onrush, Output, Served, cases, counts, finish, signal, target, wait_until};

cases! {
    a_server_is_tuned_with_one_two_and_four_connections (Once);
    a_slow_server_is_hammered_with_four_hundred_connections;
    the_soft_limit_on_files_is_raised_for_two_thousand_connections;
}

/// Runs a command line; `shown` is what the report's second line says.
fn assert_reports(program: Onrush, words: &str, url: &str, shown: &str) {
    let is_compat = program.is_compat();
    let output = program.words(words).word(url).run();
    assert_eq!(output.code, 0, "{words} {url}: {output:?}");
    assert_opens(&output, url, shown);
    match words.contains("--latency") {
        true if is_compat => output.assert_percentiles(),
        true => output.assert_native_percentiles(),
        false => {}
    }
    assert!(output.requests() > 0 && output.socket_errors("connect") == 0, "{words} {url}: {output:?}");
}

fn assert_opens(output: &Output, url: &str, shown: &str) {
    output.assert_standard();
    assert!(output.stdout.starts_with(&format!("Running 1s test @ {url}\n  {shown}\n")), "{output:?}");
}

fn a_server_is_tuned_with_one_two_and_four_connections(context: &Context) {
    let server = target();
    let bare = format!("http://{}", server.address());
    let with_path = format!("{bare}/");
    let [native, wrk] = context.both();
    assert_reports(native, "-c 1 -t 1 --latency -d 1", &with_path, "1 threads and 1 connections");
    assert_reports(wrk, "-c 1 -t 1 --latency -d 1", &bare, "1 threads and 1 connections");
    let [native, wrk] = context.both();
    assert_reports(wrk, "-c 2 -t 2 --latency -d 1", &bare, "2 threads and 2 connections");
    assert_reports(native, "-c 4 -t 4 --latency -d 1", &bare, "4 threads and 4 connections");

    let [native, wrk] = context.both().map(|program| program.word("-h").run_plain());
    assert_eq!((native.code, wrk.code), (0, 1));
    for output in [native, wrk] {
        assert!(output.stdout.contains("-c, --connections") && output.stderr.is_empty(), "{output:?}");
    }
}

fn a_slow_server_is_hammered_with_four_hundred_connections(context: &Context) {
    let server = Served::start();
    // There were others with other paths. The shell cut this one at its first semicolon.
    for (program, path) in context.both().into_iter().zip(["/test", "/asd;lfkwk;lef"]) {
        let url = format!("http://localhost:{}{path}", server.address.port());
        assert_reports(program, "-t4 -c400 -d1s", &url, "4 threads and 400 connections");
    }
}

/// wrk opened 1,019 of them and called the others errors.
fn the_soft_limit_on_files_is_raised_for_two_thousand_connections(context: &Context) {
    for compat in [false, true] {
        let server = Served::start();
        let url = format!("http://{}/delay/100", server.address);
        let program = context.limited("-Sn 1024");
        let program = if compat { program.compat().word("--notes") } else { program };
        let program = program.word("--latency").word("-H").word("Host: www.example.com");
        // Once they are all open, and one of them has had a response, a signal ends the run.
        let program = program.words("-c 2048 -d 50 -t 2 --io").word(context.backend);
        let child = program.word(&url).spawn();
        let mut asked = 0;
        wait_until(|| {
            let counts = counts(server.address);
            asked += 1;
            counts.connections - (asked - 1) >= 2048 + u64::from(compat) && counts.requests > 2048 + u64::from(compat)
        });
        signal(&child, Signal::INT);
        let output = finish(child);
        assert_eq!(output.code, 0, "{output:?}");
        output.assert_standard();
        let opening = format!("Running 50s test @ {url}\n  2 threads and 2048 connections\n");
        assert!(output.stdout.starts_with(&opening), "{output:?}");
        if compat {
            output.assert_percentiles()
        } else {
            output.assert_native_percentiles()
        }
        assert_eq!(output.socket_errors("connect"), 0, "{output:?}");
        assert!(!output.stderr.contains("were established"), "{output:?}");
        assert_eq!(counts(server.address).connections - asked, 2048 + u64::from(compat), "{output:?}");
    }
}
