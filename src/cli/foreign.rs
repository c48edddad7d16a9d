//! Options of other load generators that onrush does not have, values that only theirs can have, and the hint that each
//! gets.

use onrush_plan::limits::CONNECTIONS_MAX;
use onrush_plan::{Dialect, secrets};

use super::command_line::quoted;
use super::flags::Id;
use super::units;

/// The hint for another tool's option, from its spelling in the table and as it was typed.
pub(super) fn foreign(spelling: &str, typed: &str) -> Option<String> {
    let (_, advice) = FOREIGN.iter().find(|(spellings, _)| spellings.contains(&spelling))?;
    Some(match advice {
        Advice::Spelled(ours) => spelled(typed, ours),
        Advice::NotYet(what) => format!("{typed}: onrush does not support {what} yet"),
        Advice::Needless(why) => format!("{typed}: {why}; leave it out"),
        Advice::Instead(way) => format!("{typed}: {way}"),
    })
}

/// Whether another tool has an option that is spelled so, dashes included.
pub(super) fn is_foreign(spelling: &str) -> bool {
    FOREIGN.iter().any(|(spellings, _)| spellings.contains(&spelling))
}

fn spelled(typed: &str, ours: &str) -> String {
    format!("{typed}: onrush spells this {ours}")
}

/// Whether only its value tells which tool's option a letter is.
pub(super) fn needs_value(letter: char) -> bool {
    BY_VALUE.iter().any(|(known, ..)| *known == letter) || STREAMS.contains(letter)
}

/// The hint for another tool's letter whose value tells what is meant.
pub(super) fn by_value(letter: char, value: &str) -> Option<String> {
    if letter == 'A' && is_user_agent(value) {
        return Some(spelled("-A", "-H 'User-Agent: X'"));
    }
    if letter == 'e' && is_variable(value) {
        return Some(
            "-e: onrush sets no variables; write values after the URL, where a script's init gets them as args"
                .to_owned(),
        );
    }
    if STREAMS.contains(letter) && !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(spelled(&format!("-{letter}"), &format!("--streams, for instance --http2 --streams {value}")));
    }
    let (.., ours) = BY_VALUE.iter().find(|(known, part, _)| *known == letter && value.contains(part))?;
    Some(spelled(&format!("-{letter}"), ours))
}

/// Whether it is the name of a browser for curl's `-A` and not a login for ab's: `Mozilla/5.0 (X; rv:1)`.
fn is_user_agent(value: &str) -> bool {
    value.split_once(':').is_some_and(|(user, _)| user.contains([' ', '/']))
}

/// Whether it is a variable for k6's `-e` and not a referrer for curl's: `NAME=value`.
fn is_variable(value: &str) -> bool {
    let name = value.split('=').next().filter(|name| name.len() < value.len());
    name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

/// What is wrong with a value that an option cannot have but another tool's option of the same letter can, and what to
/// write instead.
pub(super) fn meant(id: Id, value: &str) -> Option<String> {
    match id {
        Id::Timeout if is_media_type(value) => {
            let header = quoted(&format!("Content-Type: {value}"));
            Some(format!("not a time; onrush's option for the -T of ab, hey and oha is -H {header}"))
        }
        Id::DelayStats if is_file(value) => {
            let file = quoted(&format!("@{}", value.trim_start_matches('@')));
            Some(format!("not a time; onrush's option for the -D of hey and oha is --body {file}"))
        }
        Id::DelayStats if is_distribution(id, value) => Some(match value {
            "exp" => "not a time; onrush's option for wrk2's -D exp is --arrivals poisson".to_owned(),
            "fixed" => "not a time; wrk2's -D fixed is how onrush sends requests; leave it out".to_owned(),
            _ => format!("not a time; wrk2's -D {value} has no counterpart: --arrivals is uniform, poisson or burst:N"),
        }),
        Id::Method if is_host_and_port(value) => {
            let proxy = quoted(&secrets::misspelt_url(&format!("http://{value}")));
            Some(format!("not the name of a method; onrush's option for the -X of ab is --http-proxy {proxy}"))
        }
        Id::BindIp if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() => {
            Some(format!("not an address; onrush's option for the -b of ab is --rcvbuf {value} --sndbuf {value}"))
        }
        Id::BindIp if value.contains('=') => Some(
            "not an address; onrush's option for the -b of curl is -H, for instance -H 'Cookie: sid=abc'".to_owned(),
        ),
        Id::Threads if is_time(value) => {
            Some(format!("not a number; onrush's option for oha's -t is --give-up {value}, and for ab's -d {value}"))
        }
        Id::Script => {
            let stages = stages(value)?;
            Some(format!("not a file but a stage; onrush's option for k6's -s is --stages '{stages}'"))
        }
        _ => None,
    }
}

/// Returns whether it is a distribution of arrivals, which the wrk2 of DeathStarBench takes for `-D`.
pub(super) fn is_distribution(id: Id, value: &str) -> bool {
    id == Id::DelayStats && ["exp", "fixed", "norm", "zipf"].contains(&value)
}

/// Whether it is the type of a content, with or without parameters: `text/html`.
fn is_media_type(value: &str) -> bool {
    let kinds = ["application", "audio", "font", "image", "message", "model", "multipart", "text", "video"];
    value.split_once('/').is_some_and(|(kind, _)| kinds.contains(&kind)) && !value.contains(char::is_control)
}

/// Whether it is the name of a file, and not a mistyped time.
fn is_file(value: &str) -> bool {
    let begins_as_name = value.starts_with(|first: char| first.is_alphabetic() || "@_".contains(first));
    let is_name = value.contains('/') || value.contains('.') && begins_as_name;
    is_name && !value.contains(|c: char| c.is_control() || c == ' ')
}

/// Whether it is the address of a proxy, perhaps with a user: `proxy:3128`.
fn is_host_and_port(value: &str) -> bool {
    let value = value.rsplit_once('@').map_or(value, |(_, address)| address);
    let is_name = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    value.split_once(':').is_some_and(|(host, port)| is_name(host) && port.parse::<u16>().is_ok())
}

/// Whether it is a time with a unit.
fn is_time(value: &str) -> bool {
    value.ends_with(|last: char| last.is_ascii_alphabetic()) && units::time(value, Dialect::Native).is_ok()
}

/// k6's stages, such as `30s:10,1m:20`, as onrush's stages of connections: each begins where the one before ended,
/// the first at 1, k6's default.
fn stages(value: &str) -> Option<String> {
    let mut stages = Vec::new();
    let mut level = "1";
    for stage in value.split(',') {
        let (length, target) = stage.split_once(':')?;
        units::time(length, Dialect::Native).ok().filter(|length| !length.is_zero())?;
        units::metric(target, Dialect::Native).ok().filter(|target| *target <= CONNECTIONS_MAX)?;
        stages.push(format!("{length}:{level}..{target}"));
        level = target;
    }
    Some(format!("c={}", stages.join(",")))
}

/// What to tell about a spelling of another tool.
enum Advice {
    /// onrush has it under this spelling.
    Spelled(&'static str),
    /// onrush does not have this feature.
    NotYet(&'static str),
    /// onrush does not need it, for this reason.
    Needless(&'static str),
    /// onrush has another way to the same end.
    Instead(&'static str),
}

/// Spellings of ab, autocannon, bombardier, curl, h2load, hey, k6, oha, plow, shb and vegeta that onrush does not know.
/// Where the same name means something else with one dash, as vegeta writes it, it is there with both.
const FOREIGN: &[(&[&str], Advice)] = &[
    (&["-z", "--test-duration"], Advice::Spelled("-d, for instance -d 30s")),
    (
        &["--concurrency", "--clients", "--vus", "--users", "-workers", "--max-connections"],
        Advice::Spelled("-c, for instance -c 100"),
    ),
    (&["--iterations", "--amount", "--num-requests"], Advice::Spelled("-n, for instance -n 10k")),
    (&["--workers", "--cpus"], Advice::Spelled("-t, for instance -t 4")),
    // autocannon, h2load and ab.
    (
        &["-w"],
        Advice::Spelled(
            "-t, for instance -t 4; h2load's 16 is --h2-window 64KiB, ab's table of the result -o result.md",
        ),
    ),
    (&["-m", "--request"], Advice::Spelled("-X, for instance -X PUT")),
    (&["-p", "--body-file", "--body-path", "-body"], Advice::Spelled("--body, for instance --body @data.json")),
    (&["--data", "--data-ascii", "--data-raw", "--data-binary"], Advice::Spelled("--body, for instance --body 'a=1'")),
    (&["--headers"], Advice::Spelled("-H, for instance -H 'Accept: text/html'")),
    // bombardier and ab.
    (
        &["-f"],
        Advice::Spelled(
            "--body @FILE; siege's list is --urls FILE, ab's version of TLS --tls-min 1.2 --tls-max 1.2, h2load's frame \
             size --h2-max-frame",
        ),
    ),
    (&["--chunked"], Advice::NotYet("chunked request bodies")),
    (&["--user-agent"], Advice::Spelled("-H, for instance -H 'User-Agent: X'")),
    (&["-e", "--referer"], Advice::Spelled("-H, for instance -H 'Referer: http://example.com/'")),
    (&["--cookie"], Advice::Spelled("-H, for instance -H 'Cookie: a=1'")),
    (&["--content-type"], Advice::Spelled("-H, for instance -H 'Content-Type: application/json'")),
    (&["--compressed"], Advice::Spelled("-H, for instance -H 'Accept-Encoding: gzip'")),
    (&["-I", "--head"], Advice::Spelled("-X, for instance -X HEAD")),
    (&["--include"], Advice::Spelled("--once, which shows one request in full")),
    // curl, ab and k6.
    (
        &["-i"],
        Advice::Spelled(
            "--once, which shows one request in full; ab's HEAD is -X HEAD, k6's iterations are -n, h2load's list is --urls FILE",
        ),
    ),
    (&["--max-time", "--connect-timeout", "-timeout"], Advice::Spelled("--give-up, for instance --give-up 5s")),
    (&["--host"], Advice::Spelled("-H, for instance -H 'Host: www.example.com'")),
    (&["-a", "--user"], Advice::Spelled("--basic-auth, for instance --basic-auth user:password")),
    // curl, k6 and ab.
    (&["-u"], Advice::Spelled("--basic-auth user:password; k6's VUs are -c, ab's file to PUT is -X PUT --body @FILE")),
    // hey, curl and ab.
    (
        &["-A"],
        Advice::Spelled("-H 'Accept: text/html'; curl's is -H 'User-Agent: X', ab's login --basic-auth user:password"),
    ),
    (&["--no-keepalive"], Advice::Spelled("--disable-keepalive")),
    (
        &["--keepalive", "--keep-alive"],
        Advice::Instead("connections are kept open unless there is --disable-keepalive"),
    ),
    (&["--session-tickets"], Advice::Instead("TLS sessions are resumed unless there is --tls-resume off")),
    (&["--laddr"], Advice::Spelled("-b, for instance -b 10.0.0.5")),
    (&["-l", "--latencies"], Advice::Spelled("--latency")),
    (&["--debug", "--verbose"], Advice::Spelled("--once, which shows one request in full")),
    (&["--qps", "--rate-limit", "--max-rate"], Advice::Spelled("-R, for instance -R 10k")),
    (&["--rps"], Advice::Spelled("-R, for instance -R 10k, for all connections together (h2load: each)")),
    (&["-rate"], Advice::Spelled("-R, for instance -R 10k; vegeta's 0 with at most 10 workers is -c 10")),
    // bombardier and ab.
    (
        &["-r"],
        Advice::Spelled(
            "-R, for instance -R 10k; h2load's connections a second are --stages c=10s:1..100, ab's can be left out, because \
             no error ends a run",
        ),
    ),
    // hey and oha.
    (&["-q"], Advice::Spelled("-R, for instance -R 10k, for all connections together (hey: each)")),
    (
        &["--burst-rate", "--burst-delay"],
        Advice::Spelled("--arrivals, for instance -R 50 --arrivals burst:100 for 100 at once every 2 s"),
    ),
    (&["--latency-correction"], Advice::Needless("with -R latencies count from when requests are due")),
    (&["--max-workers", "--max-vus"], Advice::Spelled("--max-inflight, for instance --max-inflight 1000")),
    (&["--dist"], Advice::Spelled("--arrivals, for instance --arrivals poisson")),
    (&["--poisson"], Advice::Spelled("--arrivals poisson")),
    (&["--warm-up", "--warm-up-time"], Advice::Spelled("--warmup, for instance --warmup 5s")),
    (
        &["--stage"],
        Advice::Spelled(
            "--stages c=10s:1..10,1m:10..50; k6's stages ramp from the previous level, onrush's name both levels",
        ),
    ),
    (&["--ramp-up"], Advice::Spelled("--stages, for instance --stages 10s:1k..20k")),
    (&["--h2", "--h2c"], Advice::Spelled("--http2")),
    (&["--http-version"], Advice::Spelled("--http2 or --http1.1, which is the default")),
    (&["--http3"], Advice::NotYet("HTTP/3")),
    // h2load.
    (&["--max-concurrent-streams"], Advice::Spelled("--streams, for instance --streams 100")),
    (&["--window-bits"], Advice::Spelled("--h2-window, in bytes, for instance --h2-window 64KiB")),
    (
        &["-W", "--connection-window-bits"],
        Advice::Spelled("--h2-connection-window, in bytes, for instance --h2-connection-window 1MiB for 20 bits"),
    ),
    (
        &["-N", "--connection-inactivity-timeout"],
        Advice::Instead("connections may be idle; --give-up is for requests, for instance --give-up 10s"),
    ),
    (&["--encoder-header-table-size"], Advice::Needless("the header fields of requests use no table")),
    (&["--max-frame-size"], Advice::Spelled("--h2-max-frame, for instance --h2-max-frame 16KiB")),
    (&["--groups"], Advice::Spelled("--tls-groups, for instance --tls-groups X25519")),
    (&["--header-table-size"], Advice::Spelled("--h2-table, for instance --h2-table 4KiB")),
    // shb.
    (
        &["--batch-linger"],
        Advice::Needless("over HTTP/2 onrush waits for several responses for as long as latencies hardly grow"),
    ),
    (&["--npn-list"], Advice::Spelled("--alpn-list, for instance --alpn-list h2,http/1.1")),
    (&["--h1"], Advice::Spelled("--http1.1")),
    (
        &["-P", "--pipelining", "--pipeline"],
        Advice::Instead(
            "onrush does not support pipelining from the command line yet; with HTTP/2 write --streams, for instance \
             --http2 --streams 16",
        ),
    ),
    (&["-j", "--json"], Advice::Spelled("--format json, or -o FILE.json beside the report")),
    (
        &["--output-format"],
        Advice::Spelled(
            "--format json, or beside the report -o result.csv for a row per second, --request-log for a row per request",
        ),
    ),
    (&["-g", "--db-url", "--log-file"], Advice::Spelled("--request-log, for instance --request-log requests.csv")),
    (&["--summary-export"], Advice::Spelled("-o, for instance -o result.json")),
    (&["--summary-trend-stats"], Advice::Spelled("--percentiles, for instance --percentiles 50,95,99.9")),
    (&["--tag"], Advice::Spelled("--label, for instance --label server=nginx")),
    (&["--name"], Advice::Spelled("--label, for instance --label attack=first")),
    (&["--junit", "--junit-xml"], Advice::Spelled("-o, for instance -o result.xml")),
    // autocannon.
    (&["--expectBody"], Advice::Spelled("--expect-body, for instance --expect-body '\"ok\":true'")),
    // curl.
    (
        &["--fail", "--fail-with-body"],
        Advice::Instead(
            "statuses of 400 or more are errors; --expect-status 2xx says which are not, --fail-if 'errors>0' fails",
        ),
    ),
    // drill and artillery.
    (
        &["--assert", "--assertion", "--expect"],
        Advice::Spelled("--expect-status, --expect-body or --expect-header, for instance --expect-status 200,204"),
    ),
    (
        &["--threshold", "--thresholds"],
        Advice::Spelled("--fail-if, for instance --fail-if 'p99>50ms' --fail-if 'errors>1%'"),
    ),
    (
        &["--think-time", "--thinktime"],
        Advice::Instead(
            "a script pauses before a request: -s FILE, with function delay() return 100 end for 100 ms; or send at a \
             fixed rate with -R, for instance -R 100",
        ),
    ),
    (
        &["--prometheus", "--prometheus-port", "--prometheus-addr"],
        Advice::Instead("there is no endpoint for Prometheus; -o result.ndjson gets a line per second during the run"),
    ),
    (&["--plot"], Advice::Spelled("-o, for instance -o result.hgrm for HdrHistogram's plotter")),
    (
        &["--csv", "--out"],
        Advice::Spelled("-o result.csv for a row per second, --request-log FILE for a row per request"),
    ),
    (&["-E"], Advice::Spelled("--cert, for instance --cert FILE")),
    (&["--root-certs"], Advice::Spelled("--cacert, for instance --cacert FILE")),
    (&["-Z", "--ciphers"], Advice::Spelled("--tls-ciphers, for instance --tls-ciphers TLS_AES_128_GCM_SHA256")),
    (&["--skip-verify", "--insecure-skip-tls-verify"], Advice::Spelled("-k (--insecure)")),
    (&["-x", "--proxy"], Advice::Spelled("--http-proxy, for instance --http-proxy http://10.0.0.1:3128")),
    (&["--unix-socket"], Advice::Spelled("--unix, for instance --unix /run/app.sock")),
    (
        &["--rand-regex-url"],
        Advice::Instead("random parts of a URL are written as {{rand 1 9}} or {{uuid}}, with --templates"),
    ),
    (
        &["--targets", "--lazy", "--urls-from-file", "--input-file"],
        Advice::Spelled("--urls, for instance --urls urls.txt"),
    ),
    (&["--no-tui", "--no-print"], Advice::Needless("into a pipe only the report is printed")),
    (
        &[
            "--disable-redirects",
            "--redirects",
            "--location",
            "--follow",
            "--follow-redirects",
            "--max-redirs",
            "--max-redirects",
        ],
        Advice::Needless("redirects are never followed, but count as responses"),
    ),
    (&["--color", "--no-color"], Advice::Needless("colours are for terminals only, unless NO_COLOR is set")),
    (&["--disable-compression"], Advice::Needless("onrush requests no compression")),
];

/// Letters that name a method or a body to most tools, and with a number the streams of a connection: `-m` of h2load, `-p`
/// of oha.
const STREAMS: &str = "mp";

/// Letters whose value tells which option of another tool is meant, ab's or h2load's: a part of such a value, and how onrush spells the option.
const BY_VALUE: [(char, &str, &str); 6] = [
    ('A', ":", "--basic-auth user:password"),
    ('C', "=", "-H, for instance -H 'Cookie: sid=abc'"),
    ('P', ":", "--http-proxy http://USER:PW@HOST:PORT"),
    ('p', "h2c", "--http2"),
    ('p', "http/1.1", "--http1.1"),
    ('e', ".csv", "-o, for instance -o out.hgrm for the percentiles, or -o out.csv for a row per second"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flags;

    #[test]
    fn other_tools_spellings_get_their_own_advice() {
        let said = |typed| foreign(typed, typed).unwrap();
        assert_eq!(said("-z"), "-z: onrush spells this -d, for instance -d 30s");
        assert_eq!(
            said("-q"),
            "-q: onrush spells this -R, for instance -R 10k, for all connections together (hey: each)"
        );
        let stages = "--stage: onrush spells this --stages c=10s:1..10,1m:10..50; k6's stages ramp from the previous level, onrush's name both levels";
        assert_eq!(said("--stage"), stages);
        assert_eq!(said("--max-vus"), "--max-vus: onrush spells this --max-inflight, for instance --max-inflight 1000");
        assert_eq!(said("--http3"), "--http3: onrush does not support HTTP/3 yet");
        assert_eq!(
            said("--location"),
            "--location: redirects are never followed, but count as responses; leave it out"
        );
        assert_eq!(said("--user-agent"), "--user-agent: onrush spells this -H, for instance -H 'User-Agent: X'");
        assert_eq!(said("--junit"), "--junit: onrush spells this -o, for instance -o result.xml");
        assert!(said("--threshold").ends_with("--fail-if 'p99>50ms' --fail-if 'errors>1%'"));
        assert!(said("--think-time").contains("function delay() return 100 end"));
        assert!(said("--prometheus").ends_with("-o result.ndjson gets a line per second during the run"));
        assert_eq!(said("--no-tui"), "--no-tui: into a pipe only the report is printed; leave it out");
    }

    #[test]
    fn a_value_tells_which_tools_letter_is_meant() {
        let said = |letter, value| by_value(letter, value).unwrap_or_default();
        assert_eq!(said('A', "user:pw"), "-A: onrush spells this --basic-auth user:password");
        assert_eq!(said('A', "Mozilla/5.0 (X; rv:1)"), "-A: onrush spells this -H 'User-Agent: X'");
        assert_eq!(said('C', "sid=abc"), "-C: onrush spells this -H, for instance -H 'Cookie: sid=abc'");
        assert_eq!(said('P', "user:pw"), "-P: onrush spells this --http-proxy http://USER:PW@HOST:PORT");
        assert_eq!(
            said('e', "out.csv"),
            "-e: onrush spells this -o, for instance -o out.hgrm for the percentiles, or -o out.csv for a row per second"
        );
        let streams = "onrush spells this --streams, for instance --http2 --streams 32";
        assert_eq!(
            ['m', 'p'].map(|letter| said(letter, "32")),
            ["-m", "-p"].map(|typed| format!("{typed}: {streams}"))
        );
        assert_eq!(said('p', "h2c"), "-p: onrush spells this --http2");
        assert_eq!(said('p', "http/1.1"), "-p: onrush spells this --http1.1");
        for (letter, value) in [
            ('A', "text/html"),
            ('m', "PUT"),
            ('p', "4x"),
            ('p', "body.json"),
            ('C', "10"),
            ('P', "4"),
            ('e', "http://h/"),
            ('z', "a:b"),
            ('A', ""),
        ] {
            assert_eq!(by_value(letter, value), None, "-{letter} {value}");
        }
        let variable =
            "-e: onrush sets no variables; write values after the URL, where a script's init gets them as args";
        assert_eq!([said('e', "NAME=value"), said('e', "HOST_1=http://a/?b=c")], [variable; 2]);
        assert_eq!(by_value('e', "http://h/?a=b"), None);
        assert!("ACPemp".chars().all(needs_value) && !needs_value('z'));
    }

    #[test]
    fn a_value_meant_for_another_tools_option_names_ours() {
        let stages = |text: &str| meant(Id::Script, text);
        for (id, value, expected) in [
            (Id::Timeout, "text/html; charset=utf-8", Some("-H 'Content-Type: text/html; charset=utf-8'")),
            (Id::Timeout, "text/a'b", Some(r"-H 'Content-Type: text/a'\''b'")),
            (Id::Timeout, "10s/x", None),
            (Id::DelayStats, "Mozilla/5.0 (X)", None),
            (Id::Timeout, "text", None),
            (Id::DelayStats, "body.json", Some("--body @body.json")),
            (Id::DelayStats, "@./5.json", Some("--body @./5.json")),
            (Id::DelayStats, "/tmp/body", Some("--body @/tmp/body")),
            (Id::DelayStats, "1.5sec", None),
            (Id::DelayStats, "-1.5s", None),
            (Id::DelayStats, ".5s", None),
            (Id::DelayStats, "soon", None),
            (Id::Threads, "500ms", Some("--give-up 500ms, and for ab's -d 500ms")),
            (Id::Threads, "1.5", None),
            (Id::Threads, "4x", None),
            (Id::Script, "30s:10,1.5m:2k", Some("--stages 'c=30s:1..10,1.5m:10..2k'")),
            (Id::Duration, "body.json", None),
        ] {
            let said = meant(id, value);
            let is_right = match (&said, expected) {
                (Some(said), Some(expected)) => said.ends_with(&format!(" is {expected}")),
                (said, expected) => said.is_none() && expected.is_none(),
            };
            assert!(is_right, "{value}: {said:?}");
        }
        for text in ["0s:50,1m:50", "30s:99999999", "x.lua", "a:b", "30s:", ":10", "30s:10,", "C:10", "./30s:10"] {
            assert_eq!(stages(text), None, "{text}");
        }
    }

    #[test]
    fn no_advice_is_hidden_by_an_option_of_ours_or_names_one_that_is_none() {
        for (spellings, advice) in FOREIGN {
            for typed in *spellings {
                match typed.strip_prefix("--") {
                    Some(name) => assert!(flags::by_name(name).is_none(), "{typed}"),
                    None if typed.len() > 2 => assert!(is_foreign(typed), "{typed}"),
                    None => assert!(flags::by_letter(typed.chars().nth(1).unwrap()).is_none(), "{typed}"),
                }
            }
            if let Advice::Spelled(ours) | Advice::Instead(ours) = advice {
                assert_is_ours(ours);
            }
        }
        for (letter, _, ours) in BY_VALUE {
            assert!(flags::by_letter(letter).is_none(), "-{letter}");
            assert_is_ours(ours);
        }
    }

    /// Checks that every option in an advice is one of onrush's.
    fn assert_is_ours(ours: &str) {
        for word in ours.split([' ', ',']).filter(|word| word.starts_with('-')) {
            let known = match word.strip_prefix("--") {
                Some(name) => flags::by_name(name).is_some(),
                None => flags::by_letter(word.chars().nth(1).unwrap()).is_some(),
            };
            assert!(known, "{ours}");
        }
    }
}
