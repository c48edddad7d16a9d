//! Options and values that mean something in another load generator.

use super::*;

#[test]
fn another_tools_options_are_refused_with_ours() {
    for (words, expected) in [
        ("-A user:pw", "-A: onrush spells this --basic-auth user:password"),
        (
            "-A text/html",
            "-A: onrush spells this -H 'Accept: text/html'; curl's is -H 'User-Agent: X', ab's login --basic-auth \
             user:password",
        ),
        ("-A curl/8:1", "-A: onrush spells this -H 'User-Agent: X'"),
        ("-C sid=abc", "-C: onrush spells this -H, for instance -H 'Cookie: sid=abc'"),
        ("-C10", "unknown option -C; did you mean -c (--connections)?"),
        ("-Puser:pw", "-P: onrush spells this --http-proxy http://USER:PW@HOST:PORT"),
        ("-P 4", "-P: onrush does not support pipelining from the command line yet"),
        (
            "-e out.csv",
            "-e: onrush spells this -o, for instance -o out.hgrm for the percentiles, or -o out.csv for a row per second",
        ),
        ("-e http://a/", "-e: onrush spells this -H, for instance -H 'Referer: http://example.com/'"),
    ] {
        assert_eq!(refused(&format!("onrush {words} h")), format!("onrush: {expected}"));
    }
    assert_eq!(refused_by_wrk("wrk -A user:pw http://h/"), "wrk: invalid option -- 'A'\n");
    // What follows may be an option that counts.
    assert_eq!(refused_by_wrk("onrush -A --compat wrk http://h/"), "onrush: invalid option -- 'A'\n");
}

#[test]
fn a_value_that_only_another_tool_has_is_refused_with_the_option_for_it() {
    let of_ab_hey_oha = "not a time; onrush's option for the -T of ab, hey and oha is";
    for (words, expected) in [
        ("-T text/xml", format!("--timeout \"text/xml\": {of_ab_hey_oha} -H 'Content-Type: text/xml'")),
        ("-T text", "--timeout \"text\": not a time; try 500ms, 1.5s or 2m".to_owned()),
        (
            "-D body.json",
            "--delay-stats \"body.json\": not a time; onrush's option for the -D of hey and oha is --body @body.json"
                .to_owned(),
        ),
        (
            "-t 4s",
            "--threads \"4s\": not a number; onrush's option for oha's -t is --give-up 4s, and for ab's -d 4s"
                .to_owned(),
        ),
        ("-t 1.5", "--threads \"1.5\": not a whole number; try 2 or 8".to_owned()),
        (
            "-s 30s:10",
            "--script \"30s:10\": not a file but a stage; onrush's option for k6's -s is --stages 'c=30s:1..10'"
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(&format!("onrush {words} h")), format!("onrush: {expected}"));
    }
    let compat_time = "wrk: --timeout \"text/xml\": not a time; try 10s, 2m or 1h\n";
    assert_eq!(refused_by_wrk("wrk -T text/xml http://h/"), compat_time);
    assert_eq!(refused_by_wrk("wrk -t 4s http://h/"), "wrk: --threads \"4s\": not a number; try 2 or 8\n");
    assert!(run("wrk -s 30s:10 http://h/").script.is_some());
}

#[test]
fn a_value_with_commas_is_a_list_for_a_sweep_or_a_number_with_separators() {
    let each = "not a number; write one of them, or measure each with onrush sweep";
    for (words, expected) in [
        ("-c 10,20", format!("--connections \"10,20\": {each} -c 10,20 URL")),
        ("-t 1,2,4", format!("--threads \"1,2,4\": {each} -t 1,2,4 URL")),
        ("-R 90/m,1k", format!("--rate \"90/m,1k\": {each} -R 90/m,1k URL")),
        ("-c 1,000", "--connections \"1,000\": not a number; write 1000".to_owned()),
        ("-n 1,000,500", "--requests \"1,000,500\": not a number; write 1000500".to_owned()),
        ("-R 1,500", "--rate \"1,500\": not a number; write 1500, or for a list onrush sweep -R 1,500 URL".to_owned()),
        ("-c 0,500", "--connections \"0,500\": not a number; try 100 or 10k".to_owned()),
        ("-c 10,", "--connections \"10,\": not a number; try 100 or 10k".to_owned()),
        ("-n 10,20", "--requests \"10,20\": not a number; try 100 or 10k".to_owned()),
    ] {
        assert_eq!(refused(&format!("onrush {words} h")), format!("onrush: {expected}"));
    }
    let compat = "wrk: --connections \"10,20\": not a number; try 100 or 10k\n";
    assert_eq!(refused_by_wrk("wrk -c 10,20 http://h/"), compat);
}
