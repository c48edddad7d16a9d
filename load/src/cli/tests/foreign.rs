//! Options and values with another meaning in another load generator.

use super::*;

#[test]
fn foreign_options_are_refused_with_ours() {
    for (words, expected) in [
        ("-z 5s", "-z: onrush spells this -d, for instance -d 30s"),
        (
            "-A user:pw",
            "-A: onrush spells this for hey and oha -H 'Accept: text/html'; for curl -H 'User-Agent: X'; for ab --basic-auth \
             user:password",
        ),
        ("-Puser:pw", "-P: onrush spells this --http-proxy http://USER:PW@HOST:PORT"),
        ("-B 10.0.0.5 http://a/", "-B takes no value; onrush's option for the -B of ab is -b 10.0.0.5"),
        (
            "-rate=50/s",
            "-rate: onrush spells this -R, for instance -R 10k; vegeta's 0 with at most 10 workers is -c 10",
        ),
        ("-workers=10", "-workers: onrush spells this -c, for instance -c 100"),
        ("--workers=10", "--workers: onrush spells this -t, for instance -t 4"),
        ("-keepalive=false", "-keepalive: connections are kept open unless there is --disable-keepalive"),
        ("-name=first", "-name: onrush spells this --label, for instance --label attack=first"),
        ("--location", "--location: redirects are never followed, but count as responses; leave it out"),
    ] {
        assert_eq!(refused(&format!("onrush {words} h")), format!("onrush: {expected}"));
    }
    assert_eq!(refused_by_wrk("wrk -A user:pw http://h/"), "wrk: invalid option -- 'A'\n");
    // `--compat` takes effect even after the option.
    assert_eq!(refused_by_wrk("onrush -A --compat wrk http://h/"), "onrush: invalid option -- 'A'\n");
}

#[test]
fn foreign_values_name_our_option() {
    let of_ab_hey_oha =
        "not a time; onrush's option for the -T of ab, hey and oha is -H, for instance -H 'Content-Type: text/html'";
    for (words, expected) in [
        ("-T text/xml", format!("--timeout \"text/xml\": {of_ab_hey_oha}")),
        ("-T text", "--timeout \"text\": not a time; try 500ms, 1.5s or 2m".to_owned()),
        (
            "-D body.json",
            "--delay-stats \"body.json\": not a time; onrush's option for the -D of hey and oha is --body @FILE"
                .to_owned(),
        ),
        (
            "-D exp",
            "--delay-stats \"exp\": not a time; onrush's option for wrk2's -D exp is --arrivals poisson".to_owned(),
        ),
        (
            "-D zipf",
            "--delay-stats \"zipf\": not a time; wrk2's -D norm and -D zipf have no counterpart: --arrivals is uniform, poisson or burst:N"
                .to_owned(),
        ),
        ("--dist exp", "--dist: onrush spells this --arrivals, for instance --arrivals poisson".to_owned()),
        (
            "-t 4s",
            "--threads \"4s\": not a number; onrush's option for the -t of oha is --give-up 5s, for that of ab -d 30s"
                .to_owned(),
        ),
        ("-t 1.5", "--threads \"1.5\": not a whole number; try 2 or 8".to_owned()),
        (
            "-s 30s:10",
            "--script \"30s:10\": not a file but a stage; onrush's option for the -s of k6 is --stages, for instance --stages c=30s:1..10,1m:10..20"
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(&format!("onrush {words} h")), format!("onrush: {expected}"));
    }
    let compat_time = "wrk: --timeout \"text/xml\": not a time; try 10s, 2m or 1h\n";
    assert_eq!(refused_by_wrk("wrk -T text/xml http://h/"), compat_time);
    // Scripts call DeathStarBench's wrk2 `wrk`.
    let compat = "wrk: --delay-stats \"exp\": not a time; onrush's option for wrk2's -D exp is --arrivals poisson\n";
    assert_eq!(refused_by_wrk("wrk -D exp http://h/"), compat);
    assert_eq!(refused_by_wrk("wrk -t 4s http://h/"), "wrk: --threads \"4s\": not a number; try 2 or 8\n");
    assert!(run("wrk -s 30s:10 http://h/").script.is_some());
}

/// Every option on the page about other tools gets an answer.
#[test]
fn hints_agree_with_the_documents() {
    let page = include_str!("../../../../docs/other-tools.md");
    let codes = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let (mut tool, mut answered, mut apart) = ("", 0, Vec::new());
    for line in page.lines() {
        tool = line.strip_prefix("## ").unwrap_or(tool);
        let [_, _, theirs, here, _] = line.split('|').collect::<Vec<_>>()[..] else { continue };
        let ours: Vec<String> = codes(here).iter().flat_map(|code| words(code)).filter_map(option).collect();
        for code in codes(theirs) {
            let Some(options) = code.strip_prefix(tool) else { continue };
            let options = options.trim_start_matches(" attack").trim_start_matches(" run");
            let typed = format!("onrush{options} http://127.0.0.1:8080/");
            let Invocation::Print { stderr: said, .. } = parsed(&words(&typed), false) else { continue };
            if !options.starts_with(" -") {
                continue;
            }
            let named: Vec<String> =
                said.split([' ', '\n', ';', ',', ':']).map(OsString::from).filter_map(option).collect();
            let is_needless = ours.is_empty() || said.ends_with("leave it out\n");
            // A number means threads, even if too large.
            let agree = is_needless || options.starts_with(" -t ") || ours.iter().any(|ours| named.contains(ours));
            if !agree || said.contains("all options") {
                apart.push(format!("{code}: the page has {here}, the hint is {said}"));
            }
            answered += 1;
        }
    }
    assert_eq!(apart, [""; 0]);
    assert!(answered > 50, "{answered}");

    /// The full name of the onrush option in a word, if any.
    fn option(word: OsString) -> Option<String> {
        let word = word.into_string().ok()?;
        let name = word.split('=').next().unwrap_or_default();
        let flag = match name.strip_prefix("--") {
            Some(name) => flags::by_name(name),
            None => flags::by_letter(name.strip_prefix('-')?.chars().next()?).filter(|_| name.len() == 2),
        };
        flag.map(|flag| flag.name().to_owned())
    }
}

#[test]
fn options_taking_the_url_as_value_are_named() {
    let url = "http://h/?token=x";
    for (option, name, value) in [
        ("-H", "header", "H"),
        ("--body", "body", "DATA"),
        ("-o", "output", "FILE"),
        ("--find-max", "find-max", "COND"),
        ("--fail-if", "fail-if", "COND"),
        ("-s", "script", "FILE"),
        ("-R", "rate", "N"),
        ("--tls-ciphers", "tls-ciphers", "LIST"),
        ("--basic-auth", "basic-auth", "U:P"),
        ("--connect-to", "connect-to", "ADDR"),
        ("--cacert", "cacert", "FILE"),
        ("-X", "method", "NAME"),
        ("--until", "until", "LIST"),
    ] {
        let shown = "http://h/?token=REDACTED";
        let expected =
            format!("--{name} lacks its value and took the URL {shown:?} instead; write --{name} {value} {shown}");
        assert_eq!(refused(&format!("onrush {option} {url}")), format!("onrush: {expected}"));
    }
    assert_eq!(run(&format!("onrush --body {url} http://h/")).target.host, "h");
    assert_eq!(
        refused("onrush --http-proxy http://p:1"),
        "onrush: no URL; try onrush -c100 -d30s http://127.0.0.1:8080/"
    );
    assert_eq!(refused_by_wrk("wrk -H http://h/"), "");
}

#[test]
fn wrong_values_are_not_urls() {
    for (option, name, shown, why) in [
        ("--connect-to http://10.0.0.1:80", "connect-to", "http://10.0.0.1:80", ""),
        ("-b http://10.0.0.5", "bind-ip", "http://10.0.0.5", ""),
        ("--resolve http://a/", "resolve", "http://a/", ""),
        ("-o http://collector/r", "output", "http://collector/r", "its ending selects the format"),
        ("-R http://u:pw@a/?token=x", "rate", "http://REDACTED@a/?token=REDACTED", "a rate is per second"),
        ("--connect-to http://u:p/w@a/", "connect-to", "http://REDACTED@a/", "not a host and a port"),
        ("--fail-if http://u:pw@a/", "fail-if", "http://REDACTED@a/", "at the end: expected <"),
    ] {
        for line in
            [format!("{option} http://target/"), format!("http://target/ {option}"), format!("{option} --bogus h")]
        {
            let said = refused(&format!("onrush {line}"));
            assert!(said.starts_with(&format!("onrush: --{name} {shown:?}: {why}")), "{line}: {said}");
        }
    }
}

#[test]
fn comma_values_suggest_sweeps_or_plain_numbers() {
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
        ("-c 1..64", format!("--connections \"1..64\": {each} -c 1..64 URL")),
        ("-c 1-64", format!("--connections \"1-64\": {each} -c 1..64 URL")),
        ("-t '1 2 4'", format!("--threads \"1 2 4\": {each} -t '1 2 4' URL")),
        ("--streams 1..64", format!("--streams \"1..64\": {each} --http2 --streams 1..64 URL")),
        ("--streams 1,8", format!("--streams \"1,8\": {each} --http2 --streams 1,8 URL")),
        ("-R 1k..8k", format!("--rate \"1k..8k\": {each} -R 1k..8k URL")),
        ("-c 0..8", "--connections \"0..8\": not a number; try 100 or 10k".to_owned()),
        ("-c 8..8", "--connections \"8..8\": not a number; try 100 or 10k".to_owned()),
        ("-c 64..1", "--connections \"64..1\": not a number; try 100 or 10k".to_owned()),
        ("-c 64-1", "--connections \"64-1\": not a number; try 100 or 10k".to_owned()),
        ("-c 8,8", "--connections \"8,8\": not a number; try 100 or 10k".to_owned()),
        ("-c 1,2000k", "--connections \"1,2000k\": not a number; try 100 or 10k".to_owned()),
        ("-R 10/s..80/s", "--rate \"10/s..80/s\": a rate is per second or per minute; try 10k/s or 90/m".to_owned()),
        ("-R 10..80/m", "--rate \"10..80/m\": not a number; try 1000, 10k or 90/m".to_owned()),
        ("-R 90/h,1k", "--rate \"90/h,1k\": a rate is per second or per minute; try 10k/s or 90/m".to_owned()),
        ("-c 1..8,64", format!("--connections \"1..8,64\": {each} -c 1..8,64 URL")),
        ("-n 10,20", "--requests \"10,20\": not a number; try 100 or 10k".to_owned()),
    ] {
        assert_eq!(refused(&format!("onrush {words} h")), format!("onrush: {expected}"));
    }
    let compat = "wrk: --connections \"10,20\": not a number; try 100 or 10k\n";
    assert_eq!(refused_by_wrk("wrk -c 10,20 http://h/"), compat);
}
