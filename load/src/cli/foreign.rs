//! Hints about options and values of other load generators that onrush does not have.

use onrush_plan::Dialect;

use super::units;

/// The hint for another tool's option: `spelling` is its name in the table, `typed` is what the user typed. `None` if
/// no tool has the option.
pub(super) fn foreign_option_hint(spelling: &str, typed: &str) -> Option<String> {
    let rows: Vec<_> = FOREIGN.iter().filter(|row| has_spelling(row, spelling)).collect();
    match rows[..] {
        [] => None,
        [(.., answer)] if answer.starts_with('-') => Some(format!("{typed}: onrush spells this {answer}")),
        [(.., answer)] => Some(format!("{typed}: {answer}")),
        _ => {
            let answers: Vec<String> = rows.iter().map(|(_, tools, answer)| format!("for {tools} {answer}")).collect();
            Some(format!("{typed}: onrush spells this {}", answers.join("; ")))
        }
    }
}

/// True if another tool has an option with this spelling (with its dashes) and onrush has none.
pub(super) fn is_foreign(spelling: &str) -> bool {
    FOREIGN.iter().any(|row| has_spelling(row, spelling))
}

fn has_spelling((spellings, ..): &(&str, &str, &str), spelling: &str) -> bool {
    spellings.split(' ').any(|known| known == spelling)
}

/// Suggestion for a value that is invalid in onrush, but right for another tool's option with the same letter.
pub(super) fn foreign_value_hint(name: &str, value: &str) -> Option<&'static str> {
    let (.., answer) = VALUES.iter().find(|(of, is_meant, _)| *of == name && is_meant(value))?;
    Some(answer)
}

/// True for a distribution of arrivals, the value of `-D` in DeathStarBench's wrk2.
pub(super) fn is_distribution(name: &str, value: &str) -> bool {
    name == "delay-stats" && ["exp", "fixed", "norm", "zipf"].contains(&value)
}

/// True for a file name, but not for a mistyped time.
fn is_file(value: &str) -> bool {
    value.contains('/') || value.contains('.') && value.starts_with(|first: char| first.is_alphabetic() || first == '@')
}

fn is_time(value: &str) -> bool {
    value.ends_with(|last: char| last.is_ascii_alphabetic()) && units::parse_time(value, Dialect::Native).is_ok()
}

/// True for a k6 stage such as `30s:10`.
fn is_stage(value: &str) -> bool {
    value.split_once(':').is_some_and(|(time, level)| is_time(time) && level.starts_with(|c: char| c.is_ascii_digit()))
}

type ForeignValue = (&'static str, fn(&str) -> bool, &'static str);

/// Options of onrush, each with the form of another tool's values and the suggestion for them.
const VALUES: &[ForeignValue] = &[
    (
        "timeout",
        |value| value.contains('/'),
        "not a time; onrush's option for the -T of ab, hey and oha is -H, for instance -H 'Content-Type: text/html'",
    ),
    ("delay-stats", is_file, "not a time; onrush's option for the -D of hey and oha is --body @FILE"),
    ("delay-stats", |value| value == "exp", "not a time; onrush's option for wrk2's -D exp is --arrivals poisson"),
    ("delay-stats", |value| value == "fixed", "not a time; wrk2's -D fixed is how onrush sends requests; leave it out"),
    (
        "delay-stats",
        |value| is_distribution("delay-stats", value),
        "not a time; wrk2's -D norm and -D zipf have no counterpart: --arrivals is uniform, poisson or burst:N",
    ),
    (
        "method",
        |value| value.contains(':'),
        "not the name of a method; onrush's option for the -X of ab is --http-proxy, for instance --http-proxy \
         http://10.0.0.1:3128",
    ),
    (
        "bind-ip",
        |value| value.parse::<u32>().is_ok(),
        "not an address; onrush's options for the -b of ab are --rcvbuf and --sndbuf",
    ),
    (
        "bind-ip",
        |value| value.contains('='),
        "not an address; onrush's option for the -b of curl is -H, for instance -H 'Cookie: sid=abc'",
    ),
    ("threads", is_time, "not a number; onrush's option for the -t of oha is --give-up 5s, for that of ab -d 30s"),
    (
        "script",
        is_stage,
        "not a file but a stage; onrush's option for the -s of k6 is --stages, for instance --stages c=30s:1..10,1m:10..20",
    ),
];

/// Options, the tools that have them, and the answer: onrush's counterpart, or why none is needed. A name with one
/// dash, as in vegeta, is listed only if its meaning differs from that of the name with two.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("-z", "hey and oha", "-d, for instance -d 30s"),
    ("--concurrency --clients --vus -workers", "siege, h2load, k6 and vegeta", "-c, for instance -c 100"),
    ("--iterations --amount", "k6 and autocannon", "-n, for instance -n 10k"),
    ("--workers --cpus", "autocannon and hey", "-t, for instance -t 4"),
    ("-w", "autocannon", "-t 4"),
    ("-w", "h2load", "--h2-window 64KiB, for 16 bits"),
    ("-w", "ab", "-o result.md"),
    ("-m", "ab, hey, oha and bombardier", "-X PUT"),
    ("-m", "h2load", "--streams, for instance --http2 --streams 32"),
    ("--request", "curl", "-X, for instance -X PUT"),
    ("-p", "ab", "--body @FILE"),
    ("-p", "oha", "--streams, for instance --http2 --streams 10"),
    ("-p", "h2load", "--http2 or --http1.1"),
    ("--body-file --body-path -body", "bombardier and vegeta", "--body, for instance --body @data.json"),
    ("--data --data-ascii --data-raw --data-binary", "curl", "--body, for instance --body 'a=1'"),
    ("--headers", "autocannon", "-H, for instance -H 'Accept: text/html'"),
    ("-f", "bombardier", "--body @FILE"),
    ("-f", "ab", "--tls-min 1.2 --tls-max 1.2"),
    ("-f", "h2load", "--h2-max-frame"),
    ("-f", "siege", "--urls FILE"),
    ("--chunked", "vegeta", "onrush does not support chunked request bodies yet"),
    ("--user-agent", "curl", "-H, for instance -H 'User-Agent: X'"),
    ("-e", "ab", "-o out.hgrm for the percentiles, -o out.csv for a row per second"),
    ("-e", "curl", "-H 'Referer: http://example.com/'"),
    ("-e", "k6", "with words after the URL, which a script's init gets as args"),
    ("--referer", "curl", "-H, for instance -H 'Referer: http://example.com/'"),
    ("-C", "ab", "-H, for instance -H 'Cookie: sid=abc'; connections are -c"),
    ("--cookie", "curl", "-H, for instance -H 'Cookie: a=1'"),
    ("--content-type", "siege", "-H, for instance -H 'Content-Type: application/json'"),
    ("--compressed", "curl", "-H, for instance -H 'Accept-Encoding: gzip'"),
    ("-I --head", "curl", "-X, for instance -X HEAD"),
    ("-i", "ab", "-X HEAD"),
    ("-i", "curl", "--once, which shows one request in full"),
    ("-i", "k6", "-n, for instance -n 10k"),
    ("-i", "h2load", "--urls FILE"),
    ("--include --debug --verbose", "curl and oha", "--once, which shows one request in full"),
    ("--max-time --connect-timeout -timeout", "curl and vegeta", "--give-up, for instance --give-up 5s"),
    ("--host", "oha", "-H, for instance -H 'Host: www.example.com'"),
    ("-a --user", "hey, oha and curl", "--basic-auth, for instance --basic-auth user:password"),
    ("-u", "curl", "--basic-auth user:password"),
    ("-u", "k6", "-c, for instance -c 100"),
    ("-u", "ab", "-X PUT --body @FILE"),
    ("-A", "hey and oha", "-H 'Accept: text/html'"),
    ("-A", "curl", "-H 'User-Agent: X'"),
    ("-A", "ab", "--basic-auth user:password"),
    ("--keepalive", "vegeta", "connections are kept open unless there is --disable-keepalive"),
    ("--no-keepalive", "curl", "--disable-keepalive"),
    ("--laddr", "vegeta", "-b, for instance -b 10.0.0.5"),
    ("--session-tickets", "vegeta", "TLS sessions are resumed unless there is --tls-resume off"),
    ("-l --latencies", "bombardier", "--latency"),
    ("--qps", "fortio", "-R, for instance -R 10k"),
    ("--rps", "k6 and h2load", "-R, for instance -R 10k, for all connections together (h2load: each)"),
    ("-rate", "vegeta", "-R, for instance -R 10k; vegeta's 0 with at most 10 workers is -c 10"),
    ("-r", "bombardier", "-R 10k"),
    ("-r", "h2load", "--stages c=10s:1..100"),
    ("-r", "ab", "without an option, because no error ends a run"),
    ("-q", "hey and oha", "-R, for instance -R 10k, for all connections together (hey: each)"),
    (
        "--burst-rate --burst-delay",
        "oha",
        "--arrivals, for instance -R 50 --arrivals burst:100 for 100 at once every 2 s",
    ),
    ("--latency-correction", "oha", "with -R latencies count from when requests are due; leave it out"),
    ("--max-workers --max-vus", "vegeta and k6", "--max-inflight, for instance --max-inflight 1000"),
    ("--dist", "wrk2", "--arrivals, for instance --arrivals poisson"),
    (
        "--stage",
        "k6",
        "--stages c=10s:1..10,1m:10..50; k6's stages ramp from the previous level, onrush's name both levels",
    ),
    ("--h2 --h2c", "shb and vegeta", "--http2"),
    ("--http-version", "oha", "--http2 or --http1.1, which is the default"),
    ("--http3", "curl and oha", "onrush does not support HTTP/3 yet"),
    ("--h1", "h2load", "--http1.1"),
    ("--npn-list", "h2load", "--alpn-list, for instance --alpn-list h2,http/1.1"),
    ("--max-concurrent-streams", "h2load", "--streams, for instance --streams 100"),
    ("--window-bits", "h2load", "--h2-window, in bytes, for instance --h2-window 64KiB"),
    (
        "-W --connection-window-bits",
        "h2load",
        "--h2-connection-window, in bytes, for instance --h2-connection-window 1MiB for 20 bits",
    ),
    (
        "-N --connection-inactivity-timeout",
        "h2load",
        "connections may be idle; --give-up is for requests, for instance --give-up 10s",
    ),
    ("--encoder-header-table-size", "h2load", "the header fields of requests use no table; leave it out"),
    ("--header-table-size", "h2load", "--h2-table, for instance --h2-table 4KiB"),
    ("--max-frame-size", "h2load", "--h2-max-frame, for instance --h2-max-frame 16KiB"),
    ("--groups", "h2load", "--tls-groups, for instance --tls-groups X25519"),
    ("--log-file", "h2load", "--request-log, for instance --request-log requests.csv"),
    ("--warm-up-time", "h2load", "--warmup, for instance --warmup 5s"),
    (
        "--batch-linger",
        "shb",
        "over HTTP/2 onrush waits for several responses for as long as latencies hardly grow; leave it out",
    ),
    (
        "--pipelining --pipeline",
        "autocannon",
        "onrush does not support pipelining from the command line yet; with HTTP/2 write --streams, for instance --http2 \
         --streams 16",
    ),
    ("-j --json", "oha and autocannon", "--format json, or -o FILE.json beside the report"),
    (
        "--output-format",
        "oha",
        "--format json, or beside the report -o result.csv for a row per second, --request-log for a row per request",
    ),
    ("-g --db-url", "ab and oha", "--request-log, for instance --request-log requests.csv"),
    ("--summary-export", "k6", "-o, for instance -o result.json"),
    ("--summary-trend-stats", "k6", "--percentiles, for instance --percentiles 50,95,99.9"),
    ("--out", "k6", "-o result.csv for a row per second, --request-log FILE for a row per request"),
    ("--tag", "k6", "--label, for instance --label server=nginx"),
    ("--name", "vegeta", "--label, for instance --label attack=first"),
    ("--expectBody", "autocannon", "--expect-body, for instance --expect-body '\"ok\":true'"),
    (
        "--fail --fail-with-body",
        "curl",
        "statuses of 400 or more are errors; --expect-status 2xx says which are not, --fail-if 'errors>0' fails",
    ),
    ("-E", "ab", "--cert, for instance --cert FILE"),
    ("--root-certs", "vegeta", "--cacert, for instance --cacert FILE"),
    ("-Z --ciphers", "ab and curl", "--tls-ciphers, for instance --tls-ciphers TLS_AES_128_GCM_SHA256"),
    ("--insecure-skip-tls-verify", "k6", "-k (--insecure)"),
    ("-P", "ab", "--http-proxy http://USER:PW@HOST:PORT"),
    ("-x --proxy", "curl, hey and oha", "--http-proxy, for instance --http-proxy http://10.0.0.1:3128"),
    ("--unix-socket", "curl, oha and vegeta", "--unix, for instance --unix /run/app.sock"),
    ("--rand-regex-url", "oha", "random parts of a URL are written as {{rand 1 9}} or {{uuid}}, with --templates"),
    (
        "--targets --lazy --urls-from-file --input-file",
        "vegeta, oha and h2load",
        "--urls, for instance --urls urls.txt",
    ),
    ("--no-tui --no-print", "oha and bombardier", "into a pipe only the report is printed; leave it out"),
    (
        "--disable-redirects --redirects --location --max-redirs --max-redirects",
        "hey, vegeta, curl, oha and k6",
        "redirects are never followed, but count as responses; leave it out",
    ),
    ("--color --no-color", "oha and k6", "colours are for terminals only, unless NO_COLOR is set; leave it out"),
    ("--disable-compression", "hey and oha", "onrush requests no compression; leave it out"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flags;

    #[test]
    fn hints_are_reachable_and_name_known_options() {
        for (spellings, _, answer) in FOREIGN {
            for typed in spellings.split(' ') {
                match typed.strip_prefix("--") {
                    Some(name) => assert!(flags::by_name(name).is_none(), "{typed}"),
                    None if typed.len() > 2 => assert!(is_foreign(typed), "{typed}"),
                    None => assert!(flags::by_letter(typed.chars().nth(1).unwrap()).is_none(), "{typed}"),
                }
            }
            for word in answer.split([' ', ',', ';', '(', ')']).filter(|word| word.starts_with('-')) {
                let known = match word.strip_prefix("--") {
                    Some(name) => flags::by_name(name).is_some(),
                    None => flags::by_letter(word.chars().nth(1).unwrap()).is_some(),
                };
                assert!(known, "{answer}");
            }
        }
    }

    #[test]
    fn mistyped_values_are_not_taken_as_foreign() {
        for (name, value) in [
            ("timeout", "text"),
            ("delay-stats", "1.5sec"),
            ("delay-stats", ".5s"),
            ("delay-stats", "soon"),
            ("threads", "1.5"),
            ("threads", "4x"),
            ("script", "x.lua"),
            ("script", "a:b"),
            ("script", "./30s:10"),
            ("duration", "body.json"),
        ] {
            assert_eq!(foreign_value_hint(name, value), None, "{value}");
        }
    }
}
