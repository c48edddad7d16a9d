//! The command lines that users of wrk published, as they typed them, except that hosts and ports are those of a local
//! target and `-d` is 1 second instead of 10 or 30. A repeated line is run once.

use crate::harness::{Context, Output, Served, cases, counts, target};

cases! {
    a_server_is_tuned_with_one_two_and_four_connections;
    a_slow_server_is_hammered_with_four_hundred_connections;
    two_thousand_connections_are_opened_where_a_thousand_files_are_allowed;
}

/// Runs a command line under both names; `shown` is what the report's second line says.
fn assert_reports(context: &Context, words: &str, url: &str, shown: &str) {
    for program in context.both() {
        let output = program.words(words).word(url).run();
        assert_eq!(output.code, 0, "{words} {url}: {output:?}");
        assert_opens(&output, url, shown);
        if words.contains("--latency") {
            output.assert_percentiles();
        }
        assert!(output.requests() > 0 && output.socket_errors("connect") == 0, "{words} {url}: {output:?}");
    }
}

fn assert_opens(output: &Output, url: &str, shown: &str) {
    output.assert_standard();
    assert!(output.stdout.starts_with(&format!("Running 1s test @ {url}\n  {shown}\n")), "{output:?}");
}

fn a_server_is_tuned_with_one_two_and_four_connections(context: &Context) {
    let server = target();
    let bare = format!("http://{}", server.address());
    let with_path = format!("{bare}/");
    assert_reports(context, "-c 1 -t 1 --latency -d 1", &with_path, "1 threads and 1 connections");
    assert_reports(context, "-c 1 -t 1 --latency -d 1", &bare, "1 threads and 1 connections");
    assert_reports(context, "-c 2 -t 2 --latency -d 1", &bare, "2 threads and 2 connections");
    assert_reports(context, "-c 4 -t 4 --latency -d 1", &bare, "4 threads and 4 connections");

    let [native, wrk] = context.both().map(|program| program.word("-h").run_plain());
    assert_eq!((native.code, wrk.code), (0, 1));
    for output in [native, wrk] {
        assert!(output.stdout.contains("-c, --connections") && output.stderr.is_empty(), "{output:?}");
    }
}

fn a_slow_server_is_hammered_with_four_hundred_connections(context: &Context) {
    let server = Served::start();
    // The shell cut the second one at its first semicolon.
    for path in ["/test", "/asd;lfkwk;lef", "/asd", "/test2"] {
        let url = format!("http://localhost:{}{path}", server.address.port());
        assert_reports(context, "-t4 -c400 -d1s", &url, "4 threads and 400 connections");
    }
}

/// wrk opened 1,019 of them and called the others errors.
fn two_thousand_connections_are_opened_where_a_thousand_files_are_allowed(context: &Context) {
    for compat in [false, true] {
        let server = Served::start();
        let url = format!("http://{}", server.address);
        let program = context.limited("-Sn 1024");
        let program = if compat { program.compat().word("--notes") } else { program };
        let program = program.word("--latency").word("-H").word("Host: www.example.com");
        let output = program.words("-c 2048 -d 1 -t 2").word(&url).run();
        assert_eq!(output.code, 0, "{output:?}");
        assert_opens(&output, &url, "2 threads and 2048 connections");
        output.assert_percentiles();
        assert_eq!(output.socket_errors("connect"), 0, "{output:?}");
        assert!(!output.stderr.contains("were established"), "{output:?}");
        assert_eq!(counts(server.address).connections, 2048 + u64::from(compat), "{output:?}");
    }
}
