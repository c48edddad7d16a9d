//! Options of other load generators that onrush does not have, and the hint that each gets.

/// The hint for another tool's option, from its spelling in the table and as it was typed.
pub(super) fn foreign(spelling: &str, typed: &str) -> Option<String> {
    let (_, advice) = FOREIGN.iter().find(|(spellings, _)| spellings.contains(&spelling))?;
    Some(match advice {
        Advice::Spelled(ours) => format!("{typed}: onrush spells this {ours}"),
        Advice::NotYet(what) => format!("{typed}: onrush does not support {what} yet"),
        Advice::Needless(why) => format!("{typed}: {why}; leave it out"),
    })
}

/// Whether another tool has an option of this name.
pub(super) fn is_foreign(name: &str) -> bool {
    FOREIGN.iter().any(|(spellings, _)| spellings.iter().any(|typed| typed.strip_prefix("--") == Some(name)))
}

/// What to tell about a spelling of another tool.
enum Advice {
    /// onrush has it under this spelling.
    Spelled(&'static str),
    /// onrush does not have this feature.
    NotYet(&'static str),
    /// onrush does not need it, for this reason.
    Needless(&'static str),
}

/// Spellings of ab, autocannon, bombardier, curl, h2load, hey, k6, oha, plow and vegeta that onrush does not know.
const FOREIGN: &[(&[&str], Advice)] = &[
    (&["-z", "--test-duration"], Advice::Spelled("-d, for instance -d 30s")),
    (&["--concurrency", "--clients", "--vus", "--users"], Advice::Spelled("-c, for instance -c 100")),
    (&["--iterations", "--amount", "--num-requests"], Advice::Spelled("-n, for instance -n 10k")),
    (&["-w", "--workers", "--cpus"], Advice::Spelled("-t, for instance -t 4")),
    (&["-m", "--request"], Advice::Spelled("-X, for instance -X PUT")),
    (&["-p", "--body-file", "--body-path"], Advice::Spelled("--body, for instance --body @data.json")),
    (
        &["--data", "--data-ascii", "--data-raw", "--data-binary", "--data-urlencode"],
        Advice::Spelled("--body, for instance --body 'a=1'"),
    ),
    (&["--headers"], Advice::Spelled("-H, for instance -H 'Accept: text/html'")),
    (&["-F", "--form"], Advice::NotYet("multipart forms")),
    (&["--user-agent"], Advice::Spelled("-H, for instance -H 'User-Agent: X'")),
    (&["-e", "--referer"], Advice::Spelled("-H, for instance -H 'Referer: http://example.com/'")),
    (&["--cookie"], Advice::Spelled("-H, for instance -H 'Cookie: a=1'")),
    (&["--content-type"], Advice::Spelled("-H, for instance -H 'Content-Type: application/json'")),
    (&["--compressed"], Advice::Spelled("-H, for instance -H 'Accept-Encoding: gzip'")),
    (&["-I", "--head"], Advice::Spelled("-X, for instance -X HEAD")),
    (&["--include"], Advice::Spelled("--once, which shows one request in full")),
    // curl, ab and k6.
    (&["-i"], Advice::Spelled("--once, which shows one request in full; ab's HEAD is -X HEAD, k6's iterations are -n")),
    (&["--max-time", "--connect-timeout"], Advice::Spelled("--give-up, for instance --give-up 5s")),
    (&["--host"], Advice::Spelled("-H, for instance -H 'Host: www.example.com'")),
    (&["-a", "--user"], Advice::Spelled("--basic-auth, for instance --basic-auth user:password")),
    // curl, k6 and ab.
    (&["-u"], Advice::Spelled("--basic-auth user:password; k6's VUs are -c, ab's file to PUT is -X PUT --body @FILE")),
    (&["-A"], Advice::Spelled("-H, for instance -H 'Accept: text/html'")),
    (&["--no-keepalive"], Advice::Spelled("--disable-keepalive")),
    (&["-l", "--latencies"], Advice::Spelled("--latency")),
    (&["--debug", "--verbose"], Advice::Spelled("--once, which shows one request in full")),
    (&["--qps", "--rps", "--rate-limit", "--max-rate"], Advice::Spelled("-R, for instance -R 10k")),
    // hey and oha.
    (&["-q"], Advice::Spelled("-R, for instance -R 10k, for all connections together (hey: each)")),
    (
        &["--burst-rate", "--burst-delay"],
        Advice::Spelled("--arrivals, for instance -R 50 --arrivals burst:100 for 100 at once every 2 s"),
    ),
    (&["--latency-correction"], Advice::Needless("with -R latencies count from when requests are due")),
    (&["--max-workers", "--max-vus"], Advice::Spelled("--max-inflight, for instance --max-inflight 1000")),
    (&["--poisson"], Advice::Spelled("--arrivals poisson")),
    (&["--warm-up", "--warm-up-time"], Advice::Spelled("--warmup, for instance --warmup 5s")),
    (&["--stage"], Advice::Spelled("--stages, each from where the last one ended, for instance --stages c=10s:0..10")),
    (&["--ramp-up"], Advice::Spelled("--stages, for instance --stages 10s:1k..20k")),
    (&["--http2", "--http3", "--h2", "--h2c", "--http-version"], Advice::NotYet("HTTP/2 or HTTP/3")),
    (&["-P", "--pipelining", "--pipeline"], Advice::NotYet("pipelining from the command line")),
    (&["--json", "--output-format"], Advice::Spelled("--format json, or -o FILE.json beside the report")),
    (&["--csv", "--out"], Advice::Spelled("-o, for instance -o result.csv")),
    (&["--ciphers"], Advice::Spelled("--tls-ciphers, for instance --tls-ciphers TLS_AES_128_GCM_SHA256")),
    (&["--skip-verify", "--insecure-skip-tls-verify"], Advice::Spelled("-k (--insecure)")),
    (&["-x", "--proxy"], Advice::Spelled("--http-proxy, for instance --http-proxy http://10.0.0.1:3128")),
    (&["--unix-socket"], Advice::Spelled("--unix, for instance --unix /run/app.sock")),
    (&["--targets", "--urls-from-file", "--input-file"], Advice::NotYet("lists of URLs")),
    (&["--no-tui", "--no-print", "--quiet"], Advice::Needless("into a pipe only the report is printed")),
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
        let stages = "--stage: onrush spells this --stages, each from where the last one ended, for instance --stages c=10s:0..10";
        assert_eq!(said("--stage"), stages);
        assert_eq!(said("--max-vus"), "--max-vus: onrush spells this --max-inflight, for instance --max-inflight 1000");
        assert_eq!(said("--http2"), "--http2: onrush does not support HTTP/2 or HTTP/3 yet");
        assert_eq!(
            said("--location"),
            "--location: redirects are never followed, but count as responses; leave it out"
        );
        assert_eq!(said("--user-agent"), "--user-agent: onrush spells this -H, for instance -H 'User-Agent: X'");
        assert_eq!(said("--no-tui"), "--no-tui: into a pipe only the report is printed; leave it out");
    }

    #[test]
    fn no_advice_is_hidden_by_an_option_of_ours_or_names_one_that_is_none() {
        for (spellings, advice) in FOREIGN {
            for typed in *spellings {
                match typed.strip_prefix("--") {
                    Some(name) => assert!(flags::by_name(name).is_none(), "{typed}"),
                    None => assert!(flags::by_letter(typed.chars().nth(1).unwrap()).is_none(), "{typed}"),
                }
            }
            let Advice::Spelled(ours) = advice else { continue };
            for word in ours.split([' ', ',']).filter(|word| word.starts_with('-')) {
                let known = match word.strip_prefix("--") {
                    Some(name) => flags::by_name(name).is_some(),
                    None => flags::by_letter(word.chars().nth(1).unwrap()).is_some(),
                };
                assert!(known, "{ours}");
            }
        }
    }
}
