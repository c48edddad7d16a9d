//! Whole command lines, and the resulting plans or texts.

mod connect;
mod connections;
mod foreign;
mod help_and_manual;
mod http;
mod pace;
mod request_log;
mod sampling;
mod schedule;
mod transport;
mod until;

use std::time::Duration;

use onrush_plan::schedule::{Arrivals, CatchUp, Rate, Stage};
use onrush_plan::{Breakout, Format, OutputKind, Percent, Stop};

use super::*;
use crate::fixtures::words;
use crate::worker;

/// The only command that a run itself needs.
const COMMANDS: Commands = Commands { named: &[worker::COMMAND], ..Commands::NONE };

fn parsed(args: &[OsString], words_end_options: bool) -> Invocation {
    parse_ordered(args, &COMMANDS, words_end_options, &InputFiles::default(), &mut |_| ())
}

fn run(line: &str) -> Plan {
    match parsed(&words(line), false) {
        Invocation::Run { plan, warnings } => {
            assert_eq!(warnings, [""; 0], "{line}");
            *plan
        }
        other => panic!("{line}: {other:?}"),
    }
}

/// Standard output, standard error, exit code.
fn printed(line: &str) -> (String, String, u8) {
    match parsed(&words(line), false) {
        Invocation::Print { stdout, stderr, exit } => (stdout, stderr, exit),
        other => panic!("{line}: {other:?}"),
    }
}

/// The only line of a refusal on standard error, without the line ending.
fn refused(line: &str) -> String {
    let (stdout, stderr, exit) = printed(line);
    assert_eq!((stdout.as_str(), exit), ("", 1), "{line}");
    let only = stderr.strip_suffix('\n').filter(|rest| !rest.contains('\n'));
    only.unwrap_or_else(|| panic!("{line}: {stderr:?}")).to_owned()
}

/// A refusal on standard error in a compat dialect. Checks that standard output has wrk's usage.
fn refused_by_wrk(line: &str) -> String {
    let (stdout, stderr, exit) = printed(line);
    assert_eq!((stdout, exit), (help::usage(Dialect::Wrk), 1), "{line}");
    stderr
}

/// Connections, threads, seconds, percentiles.
fn shape(plan: &Plan) -> (u32, u32, Option<f64>, bool) {
    let seconds = plan.stop.duration.map(|duration| duration.as_secs_f64());
    (plan.load.connections, plan.load.threads, seconds, plan.output.percentiles)
}

fn headers(plan: &Plan) -> Vec<String> {
    plan.request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

#[test]
fn recorded_command_lines_agree_in_both_dialects() {
    let table = [
        ("-c 1 -t 1 --latency -d 10 http://127.0.0.1/", (1, 1, Some(10.0), true)),
        ("-c 1 -t 1 --latency -d 10 http://127.0.0.1:1323", (1, 1, Some(10.0), true)),
        ("-c 2 -t 2 --latency -d 10 http://127.0.0.1:1323", (2, 2, Some(10.0), true)),
        ("-c 4 -t 4 --latency -d 10 http://127.0.0.1:1323", (4, 4, Some(10.0), true)),
        ("-t12 -c400 -d30s http://127.0.0.1:8080/cgi-bin/second.pl", (400, 12, Some(30.0), false)),
        ("-t8 -c96 -d30s http://127.0.0.1:8080/cgi-bin/second.pl", (96, 8, Some(30.0), false)),
        ("-t4 -c400 -d30s http://localhost:8080/test", (400, 4, Some(30.0), false)),
        ("-t4 -c400 -d30s http://localhost:8080/asd", (400, 4, Some(30.0), false)),
        ("-t4 -c400 -d30s http://localhost:8080/test2", (400, 4, Some(30.0), false)),
    ];
    for (line, expected) in table {
        for program in ["onrush", "./wrk", "wrk-cmm", "onrush --compat wrk"] {
            assert_eq!(shape(&run(&format!("{program} {line}"))), expected, "{program} {line}");
        }
    }
    for url in ["http://127.0.0.1:80", "http://127.0.0.1:9999", "http://127.0.0.1:23456"] {
        for program in ["onrush", "wrk"] {
            let plan = run(&format!("{program} --latency -H \"Host: www.example.com\" -c 2048 -d 30 -t 2 {url}"));
            assert_eq!(shape(&plan), (2048, 2, Some(30.0), true));
            assert_eq!(headers(&plan), ["Host: www.example.com"]);
            assert_eq!((plan.target.typed.as_str(), plan.request.target.as_str()), (url, "/"));
        }
    }
}

#[test]
fn bare_urls_get_the_defaults() {
    let native = run("onrush 127.0.0.1:8080/x?y");
    assert_eq!(shape(&native), (10, 2, Some(10.0), false));
    assert_eq!((native.timeout, native.give_up), (Some(Duration::from_secs(2)), Some(Duration::from_secs(30))));
    assert_eq!((native.dialect, &native.io), (Dialect::Native, &Io::Auto));
    assert_eq!((native.output.notes, native.output.verbose), (true, false));
    assert_eq!((&*native.request.method, &*native.request.target), ("GET", "/x?y"));
    assert_eq!((headers(&native), native.body), (vec!["Host: 127.0.0.1:8080".to_owned()], None));
    let compat = run("wrk http://127.0.0.1:8080/");
    assert_eq!(shape(&compat), (10, 2, Some(10.0), false));
    assert_eq!((compat.timeout, compat.give_up), (Some(Duration::from_secs(2)), None));
    assert_eq!((compat.dialect, compat.output.notes), (Dialect::Wrk, false));
}

#[test]
fn notes_are_on_by_default_natively() {
    for (line, notes, is_quiet) in [
        ("onrush --notes h", true, false),
        ("onrush --notes=off --notes=on h", true, false),
        ("onrush --notes=off h", false, false),
        ("onrush --quiet h", false, true),
        ("onrush --notes --quiet h", false, true),
        ("wrk --notes=on http://h/", true, false),
        ("wrk --notes --quiet http://h/", false, true),
    ] {
        let show = run(line).output;
        assert_eq!((show.notes, show.is_quiet), (notes, is_quiet), "{line}");
    }
    assert_eq!(refused("onrush --notes=no h"), "onrush: --notes \"no\": unknown; write --notes=on or --notes=off");
    let apart = |option: &str, word: &str| {
        format!("onrush: --{option}: attach the value with an equals sign: --{option}={word}")
    };
    assert_eq!(refused("onrush --notes off http://h/"), apart("notes", "off"));
    assert_eq!(refused("onrush --notes on"), apart("notes", "on"));
    assert_eq!(refused("onrush --breakout all http://h/"), apart("breakout", "all"));
    assert!(run("onrush --notes http://off/").output.notes);
    assert_eq!(
        refused("onrush --quiet -v h"),
        "onrush: --quiet and --version: the one prints less than usual, the other more; leave one of the two out"
    );
    // In hey and oha, `-q` is a rate.
    assert!(refused("onrush -q 5 h").contains("-R"), "{}", refused("onrush -q 5 h"));
    let warned = |line: &str| match parsed(&words(line), false) {
        Invocation::Run { warnings, .. } => warnings,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(warned("onrush h x"), ["onrush: extra arguments are ignored (only scripts use them): \"x\""]);
    assert_eq!(warned("onrush --quiet h x"), Vec::<String>::new());
}

#[test]
fn options_can_be_spelled_in_every_way() {
    for spelled in ["-c10", "-c 10", "--connections=10", "--connections 10", "--con 10", "-c 5 -c 10"] {
        assert_eq!(run(&format!("onrush {spelled} http://h/")).load.connections, 10, "{spelled}");
        assert_eq!(run(&format!("wrk http://h/ {spelled}")).load.connections, 10, "{spelled}");
    }
    assert_eq!(shape(&run("onrush -Lt3 -c30 http://h/")), (30, 3, Some(10.0), true));
    assert_eq!(run("onrush -T500ms --give-up 1.5s h").timeout, Some(Duration::from_millis(500)));
    assert_eq!(run("wrk -T 5 http://h/").timeout, Some(Duration::from_secs(5)));
    assert_eq!(refused("onrush -t1c1d1 http://h/"), "onrush: --threads \"1c1d1\": not a number; try 2 or 8");
}

#[test]
fn bad_urls_are_refused_per_dialect() {
    for url in ["foo", "127.0.0.1:80/", "http:///x", "http://h:70000/", "http://h:/", "http://h/a b", "http://h/\u{e9}"]
    {
        assert_eq!(refused_by_wrk(&format!("wrk '{url}'")), format!("invalid URL: {url}\n"));
    }
    assert_eq!(run("wrk http://h_x/").target.host, "h_x");
    assert_eq!(
        refused("onrush 'http://h/a b'"),
        "onrush: \"http://h/a b\" is not a URL: a blank at character 11; write %20"
    );
    assert_eq!(refused_by_wrk("wrk -t2 -c1 foo"), "invalid URL: foo\n");
    assert_eq!(refused_by_wrk("wrk -- -c1"), "invalid URL: -c1\n");
}

#[test]
fn fewer_connections_than_threads_are_refused() {
    assert_eq!(refused_by_wrk("wrk -t2 -c1 http://h/"), "number of connections must be >= threads\n");
    assert_eq!(refused_by_wrk("wrk -c1 http://h/"), "number of connections must be >= threads\n");
    assert_eq!(refused_by_wrk("wrk -c0 http://h/"), "number of connections must be >= threads\n");
    assert_eq!(
        refused("onrush -t2 -c1 h"),
        "onrush: --threads \"2\": at most 1, the number of connections; every thread needs one"
    );
    assert_eq!(
        refused("onrush -t12 h"),
        "onrush: --threads \"12\": at most 10, the number of connections; every thread needs one; if it is a time, write \
         -d or --give-up"
    );
    assert_eq!(shape(&run("onrush -c1 h")), (1, 1, Some(10.0), false));
}

#[test]
fn bad_values_suggest_corrections() {
    let number = "not a number; try 100 or 10k";
    let compat_time = "not a time; try 10s, 2m or 1h";
    let table = [
        ("-d 1x", format!("--duration \"1x\": {compat_time}")),
        ("-d 1.5s", format!("--duration \"1.5s\": {compat_time}")),
        ("-d 1ms", format!("--duration \"1ms\": {compat_time}")),
        ("-d 1h30m", "--duration \"1h30m\": not a time; write 5400s".to_owned()),
        ("-d 0", "--duration \"0\": must be longer than 0; try 10s".to_owned()),
        ("-d -5", "--duration \"-5\": negative; try 10s, 2m or 1h".to_owned()),
        ("-t 0", "--threads \"0\": must be at least 1".to_owned()),
        ("-c 1kb", format!("--connections \"1kb\": {number}")),
        ("-c -1", "--connections \"-1\": negative; try 100 or 10k".to_owned()),
        ("--timeout 5k", format!("--timeout \"5k\": {compat_time}")),
    ];
    for (option, expected) in table {
        assert_eq!(refused_by_wrk(&format!("./wrk {option} http://h/")), format!("./wrk: {expected}\n"));
    }
    let table = [
        ("--connections 1kb", format!("--connections \"1kb\": {number}")),
        ("-c 0", "--connections \"0\": must be at least 1".to_owned()),
        ("-c 0.0015k", "--connections \"0.0015k\": not a whole number; try 100 or 10k".to_owned()),
        ("-d 0", "--duration \"0\": must be longer than 0; try 10s".to_owned()),
        ("-d 1h30m", "--duration \"1h30m\": not a time; write 5400s".to_owned()),
        ("-n 0", "--requests \"0\": must be at least 1".to_owned()),
        ("-X 'A B'", "--method \"A B\": not the name of a method; try PUT".to_owned()),
        ("-X ''", "--method \"\": not the name of a method; try PUT".to_owned()),
        ("-H Foo", "--header \"Foo\": no colon; write 'Name: value'".to_owned()),
        ("--rcvbuf 0", "--rcvbuf \"0\": must be at least 1".to_owned()),
        ("--sndbuf -1", "--sndbuf \"-1\": negative; try 100 or 10k".to_owned()),
        ("--congestion ''", "--congestion \"\": a name has 1 to 15 characters; try cubic".to_owned()),
        (
            "--unix x --congestion reno",
            "--unix and --congestion: a Unix socket does not use TCP; leave one of the two out".to_owned(),
        ),
        (
            "--unix x --rcvbuf 4k",
            "--unix and --rcvbuf: on a Unix socket the sender's buffer counts; leave one of the two out".to_owned(),
        ),
        ("--seed x", "--seed \"x\": not a number from 0 to 18446744073709551615".to_owned()),
        ("--io kqueue", "--io \"kqueue\": unknown; write auto, uring or epoll".to_owned()),
        ("--compat ab", "--compat \"ab\": unknown; write wrk, wrk-cmm or wrk2".to_owned()),
        ("--body @/nonexistent", "--body \"@/nonexistent\": No such file or directory".to_owned()),
        ("--body @/", "--body \"@/\": Is a directory".to_owned()),
    ];
    for (option, expected) in table {
        assert_eq!(refused(&format!("onrush {option} http://h/")), format!("onrush: {expected}"));
    }
}

#[test]
fn exceeded_limits_are_named() {
    let table = [
        ("-c 2M", "--connections \"2M\": at most 1000000"),
        ("-c 99999999999999999999", "--connections \"99999999999999999999\": at most 1000000"),
        ("--rcvbuf 2G", "--rcvbuf \"2G\": at most 1073741823"),
        ("-t 1025", "--threads \"1025\": at most 1024"),
        ("-d 367h -d 8785h", "--duration \"8785h\": at most 8784h, which is 366 days"),
        ("-n 10P", "--requests \"10P\": at most 9007199254740992"),
        ("--timeout 18446744073709551616", "--timeout \"18446744073709551616\": at most 8784h, which is 366 days"),
    ];
    for (option, expected) in table {
        assert_eq!(refused(&format!("onrush {option} http://h/")), format!("onrush: {expected}"));
    }
    assert_eq!(refused_by_wrk("wrk -c 2M http://h/"), "wrk: --connections \"2M\": at most 1000000\n");
    let long = format!("http://h/{}", "x".repeat(64 << 10));
    assert_eq!(refused(&format!("onrush {long}")), "onrush: the URL has 65545 bytes; at most 65536 are allowed");
    let shown = refused(&format!("onrush -c {} h", "1".repeat(200)));
    assert_eq!(shown, format!("onrush: --connections \"{}\"…: at most 1000000", "1".repeat(80)));
}

#[test]
fn durations_are_read_as_wrk_reads_them() {
    let table = [("90", 90.0), ("1h", 3600.0), ("51", 51.0), ("10S", 10.0), ("2M", 120.0), ("'10 s'", 10.0)];
    for (typed, expected) in table {
        for program in ["wrk", "onrush"] {
            assert_eq!(shape(&run(&format!("{program} -t1 -c1 -d {typed} http://h/"))).2, Some(expected), "{typed}");
        }
    }
    assert_eq!(shape(&run("onrush -d 1ms h")).2, Some(0.001));
}

#[test]
fn request_count_replaces_the_default_duration() {
    let stop = |line| run(line).stop;
    assert_eq!(stop("onrush -n 1.5k h"), Stop { duration: None, requests: Some(1500) });
    assert_eq!(stop("onrush -n 10 -d 3 h"), Stop { duration: Some(Duration::from_secs(3)), requests: Some(10) });
    assert_eq!(stop("wrk -n 10 http://h/"), Stop { duration: None, requests: Some(10) });
}

#[test]
fn once_sends_one_request() {
    let plan = run("onrush --once -c400 -t4 -d30s -n 7 http://h/");
    assert_eq!((plan.once, plan.load.connections, plan.load.threads), (true, 1, 1));
    assert_eq!(plan.stop, Stop { duration: None, requests: Some(1) });
}

#[test]
fn zero_timeouts_differ_between_dialects() {
    let patience = |line| {
        let plan = run(line);
        (plan.timeout.map(|time| time.as_secs()), plan.give_up.map(|time| time.as_secs()))
    };
    assert_eq!(patience("onrush --timeout 0 h"), (None, Some(30)));
    assert_eq!(patience("onrush --timeout 10 h"), (Some(10), Some(50)));
    assert_eq!(patience("onrush --give-up 4 h"), (Some(2), Some(4)));
    assert_eq!(patience("onrush --give-up 0 h"), (Some(2), None));
    assert_eq!(patience("wrk --timeout 0 http://h/"), (Some(0), None));
    assert_eq!(patience("onrush --once -T 1s h"), (Some(1), Some(1)));
    assert_eq!(patience("wrk --once -T 1s http://h/"), (Some(1), Some(1)));
    assert_eq!(patience("onrush --once -T 1s --give-up 5 h"), (Some(1), Some(5)));
    assert_eq!(patience("onrush --once -T 0 h"), (None, Some(30)));
    assert_eq!(patience("onrush --once h"), (Some(2), Some(30)));
    assert_eq!(refused("wrk --give-up 5 http://h/"), "wrk: --give-up: wrk never abandons a request; leave it out");
}

#[test]
fn headers_are_sent_as_rfc_9110_means_them() {
    let line = "-H 'Host: h.example' -H 'A: b: c' -H NoSpace:x -H 'Dup: 1' -H 'Dup: 2' http://127.0.0.1:80/p?q=1#frag";
    for program in ["wrk", "onrush"] {
        let plan = run(&format!("{program} {line}"));
        assert_eq!(plan.request.target, "/p?q=1");
        assert_eq!(headers(&plan), ["Host: h.example", "A: b: c", "NoSpace: x", "Dup: 1", "Dup: 2"]);
        let plan = run(&format!("{program} http://u:p@127.0.0.1:80?x=1"));
        assert_eq!(plan.request.target, "/?x=1");
        assert_eq!(headers(&plan), ["Host: 127.0.0.1:80", "Authorization: Basic dTpw"]);
    }
}

#[test]
fn bodies_make_posts_by_default() {
    let request = |line| {
        let plan = run(line);
        (plan.request.method.clone(), plan.body().unwrap().to_vec())
    };
    assert_eq!(request("onrush --body a=1 h"), ("POST".to_owned(), b"a=1".to_vec()));
    assert_eq!(request("onrush --body '' h"), ("POST".to_owned(), Vec::new()));
    assert_eq!(request("onrush -X PUT --body a h"), ("PUT".to_owned(), b"a".to_vec()));
    assert_eq!(request("wrk --body a http://h/"), ("POST".to_owned(), b"a".to_vec()));
    assert_eq!(request("onrush -X HEAD h"), ("HEAD".to_owned(), Vec::new()));
}

#[test]
fn our_options_work_in_compat_when_written_out() {
    let plan = run("wrk -n 5 -X PUT --once --io sim:/tmp/world.toml --notes --seed 7 http://h/");
    assert_eq!((plan.output.notes, plan.seed, plan.once), (true, 7, true));
    assert_eq!(plan.io, Io::Sim("/tmp/world.toml".into()));
    assert_eq!(refused_by_wrk("wrk --req 5 http://h/"), "wrk: unrecognized option '--req'\n");
}

#[test]
fn misused_options_get_getopts_message_or_hints() {
    let table = [
        ("-x", "invalid option -- 'x'", "unknown option"),
        ("--bogus=5", "unrecognized option '--bogus=5'", "unknown option --bogus"),
        (
            "--t 5",
            "option '--t' is ambiguous; possibilities: '--threads' '--timeout'",
            "--t may mean --threads, --timeout;",
        ),
        ("--h 5", "option '--h' is ambiguous; possibilities: '--header' '--help'", "--h may mean --header, --help;"),
        ("--lat=3", "option '--latency' doesn't allow an argument", "--latency takes no value"),
        ("http://h/ --dur", "option '--duration' requires an argument", "--duration needs a value: --duration T"),
        ("http://h/ -d", "option requires an argument -- 'd'", "--duration needs a value: --duration T"),
    ];
    for (option, getopt, ours) in table {
        assert_eq!(refused_by_wrk(&format!("/opt/bin/wrk {option}")), format!("/opt/bin/wrk: {getopt}\n"));
        if option != "-x" {
            let said = refused(&format!("onrush {option}"));
            assert!(said.starts_with(&format!("onrush: {ours}")), "{said}");
        }
    }
    assert_eq!(refused_by_wrk("wrk -r http://h/"), "");
    assert_eq!(refused_by_wrk("wrk '-?' http://h/"), "");
    assert_eq!(refused("onrush -z 30s h"), "onrush: -z: onrush spells this -d, for instance -d 30s");
    assert_eq!(refused("onrush --http3 h"), "onrush: --http3: onrush does not support HTTP/3 yet");
    assert_eq!(refused("onrush --durtion 5 h"), "onrush: unknown option --durtion; did you mean --duration?");
    assert_eq!(shape(&run("onrush --duration=5s h")).2, Some(5.0));
}

#[test]
fn ignored_arguments_are_warned_about() {
    let warned = |line: &str| match parsed(&words(line), false) {
        Invocation::Run { warnings, .. } => warnings,
        other => panic!("{line}: {other:?}"),
    };
    let expected = |name| vec![format!("{name}: extra arguments are ignored (only scripts use them): \"x\" \"-y\"")];
    assert_eq!(warned("onrush http://h/ x -- -y"), expected("onrush"));
    assert_eq!(warned("wrk http://h/ x -- -y"), expected("wrk"));
    assert_eq!(
        warned("onrush --timeout 5s --give-up 1s h"),
        ["onrush: --give-up 1s is less than --timeout 5s: a request is abandoned before it can time out"]
    );
    assert_eq!(
        warned("onrush --give-up 1s h"),
        ["onrush: --give-up 1s is less than --timeout 2s (the default): a request is abandoned before it can time out"]
    );
    assert_eq!(warned("onrush --give-up 1s --timeout 0 h"), [""; 0]);
    assert_eq!(
        warned("onrush -n 5 -c 20 h"),
        ["onrush: -n 5 is less than -c 20: at most 5 connections send a request"]
    );
    for line in ["onrush -n 5 h", "onrush -n 20 -c 20 h", "onrush -n 5 -c 20 --once h", "onrush --percentiles 0.5,50 h"]
    {
        assert_eq!(warned(line), [""; 0], "{line}");
    }
    assert_eq!(
        warned("onrush --percentiles 0.5,0.99 h"),
        ["onrush: --percentiles 0.5,0.99: these are percentages; the median is 50, not 0.5"]
    );
    assert_eq!(
        warned("onrush -k --sni a -k h"),
        [
            "onrush: --insecure does nothing: the URL is not https://; connections are kept alive anyway",
            "onrush: --sni does nothing: the URL is not https://"
        ]
    );
    for program in ["onrush", "wrk"] {
        let lines = warned(&format!("{program} --once -H Content-Length:9 --body hello http://h/"));
        assert!(lines.len() == 1 && lines[0].contains("'Content-Length: 9' does not fit the body"), "{lines:?}");
        for rest in ["--body hello http://h/", "--once -s x.lua http://h/"] {
            assert_eq!(warned(&format!("{program} -H Content-Length:9 {rest}")), [""; 0]);
        }
    }
    assert_eq!(warned("wrk -H Foo http://h/"), ["wrk: --header \"Foo\" is ignored: no colon; write 'Name: value'"]);
}

#[test]
fn posix_order_makes_later_options_words() {
    let Invocation::Run { plan, warnings } = parsed(&words("wrk -c4 http://h/ -c8"), true) else { panic!("it runs") };
    assert_eq!(plan.load.connections, 4);
    assert_eq!(warnings, ["wrk: extra arguments are ignored (only scripts use them): \"-c8\""]);
}

#[test]
fn stray_words_start_no_load() {
    assert!(refused("onrush -d1 8080").contains("http://127.0.0.1:8080/"));
    assert!(refused("onrush -k 10 http://h/").contains("is not the value of an option"));
    assert!(refused("onrush -k 10 -s x.lua http://h/").contains("is a number, not a host"));
    assert_eq!(run("onrush -s x.lua http://h/ http://b/").target.host, "h");
    assert_eq!(refused_by_wrk("wrk -d1 8080"), "invalid URL: 8080\n");
    let Invocation::Run { warnings, .. } = parsed(&words("wrk http://h/ http://b/"), false) else { panic!("it runs") };
    assert_eq!(warnings, ["wrk: extra arguments are ignored (only scripts use them): \"http://b/\""]);
}

#[test]
fn random_command_lines_never_panic() {
    let pieces = [
        "onrush",
        "wrk",
        "wrk2",
        "--compat",
        "wrk-cmm",
        "-c",
        "-c10",
        "-t",
        "0",
        "--",
        "-",
        "--=",
        "--t",
        "-H",
        "A: b",
        ":",
        "-n",
        "1.5k",
        "http://h/",
        "-Lv",
        "--body",
        "x",
        "-é",
        "--é=",
        "",
        "-d",
        "1ms",
        "--once",
        "serve",
        "--io",
        "sim:",
    ];
    let mut state = 3u64;
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut args = Vec::new();
        for _ in 0..6 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            args.push(OsString::from(pieces[(state >> 33) as usize % pieces.len()]));
        }
        match parsed(&args, state.is_multiple_of(7)) {
            Invocation::Run { .. } | Invocation::Command { .. } => ran += 1,
            Invocation::Print { stdout, stderr, .. } => {
                assert!(!(stdout.is_empty() && stderr.is_empty()), "{args:?}");
                refused += 1;
            }
        }
    }
    assert!(ran > 100 && refused > 100, "{ran} {refused}");
}

#[test]
fn results_go_where_their_options_say() {
    let plan = run("onrush -o a.json.gz -o b/c.NDJSON -o - --percentiles 99.9,50,50.0 --warmup 1.5s --keep-secrets h");
    let kinds: Vec<OutputKind> = plan.output.outputs.iter().map(|output| output.kind).collect();
    assert_eq!((&kinds[..], plan.output.format), (&[OutputKind::Json, OutputKind::Lines][..], Format::Json));
    let percents: Vec<String> = plan.output.percents.iter().flatten().map(Percent::to_string).collect();
    assert_eq!(percents, ["50", "99.9"]);
    assert!(plan.output.percentiles && plan.output.keeps_secrets && plan.phases && !plan.output.cmm_layout);
    assert_eq!(plan.warmup, Duration::from_millis(1500));
}

#[test]
fn wrk_cmm_options_select_its_layout() {
    for (line, cmm_layout, breakout) in [
        ("onrush h", false, Breakout::None),
        ("onrush --breakout h", true, Breakout::WrkCmm),
        ("wrk --breakout=all http://h/", true, Breakout::All),
        ("onrush -D 1 h", true, Breakout::None),
        ("onrush --warmup 1 h", false, Breakout::None),
        ("onrush -b 127.0.0.1 h", false, Breakout::None),
        ("onrush -b 127.0.0.1 -D 1 h", true, Breakout::None),
        ("wrk -b 127.0.0.1 http://h/", true, Breakout::None),
        ("wrk-cmm http://h/", true, Breakout::None),
    ] {
        let plan = run(line);
        assert_eq!((plan.output.cmm_layout, plan.output.breakout), (cmm_layout, breakout), "{line}");
        assert_eq!(plan.phases, breakout != Breakout::None, "{line}");
    }
}

#[test]
fn contradictory_options_are_refused_with_alternatives() {
    let endings = "its ending selects the format: .json, .json.gz, .csv, .hgrm, .md, .ndjson or .xml";
    let table = [
        ("-o result", format!("--output \"result\": {endings}")),
        ("-o x.csv.gz", format!("--output \"x.csv.gz\": {endings}")),
        (
            "-o /dev/stdout",
            "--output \"/dev/stdout\": standard output is -o -, which prints the JSON document".to_owned(),
        ),
        ("-d 1min", "--duration \"1min\": not a time; write 60s".to_owned()),
        (
            "-u 10",
            "-u: onrush spells this for curl --basic-auth user:password; for k6 -c, for instance -c 100; for ab -X PUT --body @FILE"
                .to_owned(),
        ),
        (
            "-i",
            "-i: onrush spells this for ab -X HEAD; for curl --once, which shows one request in full; for k6 -n, for instance -n 10k; for h2load --urls FILE"
                .to_owned(),
        ),
        ("-p 10", "-p: onrush spells this for ab --body @FILE; for oha --streams, for instance --http2 --streams 10; for h2load --http2 or --http1.1".to_owned()),
        ("--head", "--head: onrush spells this -X, for instance -X HEAD".to_owned()),
        ("-o a.json -o a.json", "--output \"a.json\": given twice; each result needs its own file".to_owned()),
        ("--percentiles 50,x", "--percentiles \"x\": not a percentage; try 50,90,99.9".to_owned()),
        ("--percentiles 0", "--percentiles \"0\": more than 0 and at most 100".to_owned()),
        ("--breakout=tls", "--breakout \"tls\": unknown; write --breakout or --breakout=all".to_owned()),
        ("--format xml", "--format \"xml\": unknown; write wrk or json".to_owned()),
        ("--format summary", "--format summary: onrush does not support summaries yet; write wrk or json".to_owned()),
        (
            "--once --format json",
            "--once: the request is shown as text; leave --format json out".to_owned(),
        ),
    ];
    for (words, expected) in table {
        assert_eq!(refused(&format!("onrush {words} h")), format!("onrush: {expected}"));
    }
}

#[test]
fn scripts_take_the_words_after_the_url() {
    let plan = run("onrush -s x.lua http://h/ -c3 -- -x --foo=1 bar");
    let args = ["-x", "--foo=1", "bar"].map(str::to_owned).to_vec();
    assert_eq!(plan.script, Some(onrush_plan::LuaScript { file: onrush_plan::FileContents::unread("x.lua"), args }));
    assert_eq!(plan.load.connections, 3);
    let plan = run("wrk --script=x.lua http://h/ a b");
    assert_eq!(plan.script.map(|script| script.args), Some(vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn requests_per_connection_are_as_typed() {
    let limits = |line: &str| {
        let plan = run(line);
        let closes = plan.request.headers.contains(&("Connection".to_owned(), "close".to_owned()));
        (plan.requests_per_connection.map(|limit| limit.most), closes)
    };
    for (line, expected) in [
        ("onrush h", (None, false)),
        ("onrush -H Connection:close h", (None, true)),
        ("onrush --requests-per-connection 1k h", (Some(1000), false)),
        ("onrush --disable-keepalive h", (Some(1), true)),
        ("onrush --disable-keepalive --requests-per-connection 1 h", (Some(1), true)),
        ("wrk --requests-per-connection 1 http://h/", (Some(1), true)),
    ] {
        assert_eq!(limits(line), expected, "{line}");
    }
}

#[test]
fn option_messages_hide_other_secrets() {
    const SECRET: &str = "kanarienvogel7";
    let lines: [&[&str]; 31] = [
        &["-H", "Authorization: Bearer {}", "--duratoin", "5", "h"],
        &["-H", "Cookie: id={}", "-R", "{}", "h"],
        &["-H", "X-Api-Key: {}", "--stages", "5s:{}", "h"],
        &["-H", "X-Api-Key: {}", "http://h/", "{}"],
        &["--basic-auth", "me:{}", "-c", "{}", "h"],
        &["--basic-auth=me:{}", "-c", "me:{}", "h"],
        &["--basic-auth", "--once", "me:{}", "http://h/"],
        // An unquoted header.
        &["-H", "Authorization:", "{}", "http://h/"],
        &["-HAuthorization:", "Bearer", "{}", "http://h/", "--conns"],
        &["http://h/", "-H", "Authorization:", "Bearer", "{}"],
        &["-H", "Authorization:Bearer", "{}", "http://h/"],
        &["-n", "5", "http://h/", "-H", "Authorization:Bearer", "{}"],
        &["-H", "X-Own:bearer", "{}"],
        &["-HAuthorization:Bearer", "{}", "-H", "A:b", "http://h/"],
        &["-H", "Authorization: Bearer", "{}", "-s", "x.lua", "http://h/"],
        &["-H", "Cookie", "{}", "http://h/", "--conns"],
        &["-d1s", "http://h/", "Bearer", "{}"],
        &["--compat", "wrk", "http://h/", "-H", "Authorization:Bearer", "{}"],
        &["--compat", "wrk", "http://h/", "-H", "Cookie", "{}"],
        &["--header:Authorization:{}", "h"],
        &["-header=Cookie: {}", "h"],
        &["--he=Cookie: {}", "h"],
        &["--label", "token={}", "--label", "token={}", "h"],
        // Values of other tools' options.
        &["-b", "theme={}", "h"],
        &["-c", "Cookie: a={}", "h"],
        &["-T", "Authorization: Bearer {}", "h"],
        &["--fail-if", "p99>5ms,token={}", "h"],
        &["u:{}@h/", "--percentiles", "{}"],
        &["h/?api_key={}", "--seed", "{}"],
        &["serve", "--password", "{}", "{}"],
        &["lab", "--token={}", "{}"],
    ];
    for line in lines {
        let words = ["onrush"].iter().chain(line).map(|word| OsString::from(word.replace("{}", SECRET)));
        let said = match parsed(&words.collect::<Vec<_>>(), false) {
            Invocation::Print { stderr, .. } => stderr,
            Invocation::Run { warnings, .. } => warnings.concat(),
            Invocation::Command { .. } => panic!("{line:?}"),
        };
        assert!(!said.is_empty() && !said.contains("kanarien"), "{line:?}: {said}");
    }
    let file = refused("onrush --token-file=/run/onrush/key --bogus h");
    assert_eq!(file, "onrush: unknown option --bogus; all options: onrush --help all", "a file is no secret");
    let kept = parsed(&words("onrush --keep-secrets -H Cookie:id=kanarienvogel7 http://h/ kanarienvogel7"), false);
    assert!(matches!(kept, Invocation::Run { warnings, .. } if warnings[0].ends_with("\"kanarienvogel7\"")));
}
