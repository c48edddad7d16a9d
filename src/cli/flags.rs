//! The table of all options, and lookups in it.
//!
//! The table only describes: [`super::front`] matches spellings, [`super::typed`] gives options their meaning.

pub(super) use super::flag::{Flag, Group, Id, Origin};
use crate::plan::Dialect;

/// The option with this id.
pub(super) fn by_id(id: Id) -> &'static Flag {
    FLAGS.iter().find(|flag| flag.id == id).expect("the table has every option")
}

/// The option with this letter.
pub(super) fn by_letter(letter: char) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.short == Some(letter))
}

/// The option with exactly this name.
pub(super) fn by_name(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.long == name)
}

/// The options in a dialect's own list whose names begin with `prefix`.
pub(super) fn by_prefix(prefix: &str, dialect: Dialect) -> Vec<&'static Flag> {
    FLAGS.iter().filter(|flag| flag.is_listed_by(dialect) && flag.long.starts_with(prefix)).collect()
}

/// The table, in the order of the help and of `docs/command-line.md`.
pub(super) const FLAGS: &[Flag] = &[
    Flag {
        id: Id::Connections,
        short: Some('c'),
        long: "connections",
        value: Some("N"),
        help: &["connections to keep open, all threads together (10)"],
        group: Group::Load,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::Duration,
        short: Some('d'),
        long: "duration",
        value: Some("T"),
        help: &["how long the run lasts (10s)"],
        group: Group::Load,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::Threads,
        short: Some('t'),
        long: "threads",
        value: Some("N"),
        help: &["threads that share the connections (2)", "(1 if there is only one connection)"],
        group: Group::Load,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::Requests,
        short: Some('n'),
        long: "requests",
        value: Some("N"),
        help: &[
            "send exactly N requests, without a time limit; with",
            "-d too, whichever is reached first ends the run",
        ],
        group: Group::Load,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Until,
        short: None,
        long: "until",
        value: Some("LIST"),
        help: &[
            "end the run once the figures are this precise, with",
            "95 % confidence: 'p99+-2%,rate+-1%' (5m at most)",
        ],
        group: Group::Load,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Warmup,
        short: None,
        long: "warmup",
        value: Some("T"),
        help: &["put load on the target for T before measuring", "starts; -d and -n count from then on"],
        group: Group::Load,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::DelayStats,
        short: Some('D'),
        long: "delay-stats",
        value: Some("T"),
        help: &["wrk-cmm's name for --warmup; uses its layout"],
        group: Group::Load,
        origin: Origin::WrkCmm,
    },
    Flag {
        id: Id::Rate,
        short: Some('R'),
        long: "rate",
        value: Some("N"),
        help: &["send N requests per second in total, on schedule", "however slow the target is (90/m: 90 per minute)"],
        group: Group::Pace,
        origin: Origin::Wrk2,
    },
    Flag {
        id: Id::Stages,
        short: None,
        long: "stages",
        value: Some("LIST"),
        help: &[
            "rates in sequence, each with its duration:",
            "10s:1k,30s:1k..20k,1m:20k; with c= in front, numbers",
            "of connections; the run lasts as long as its stages",
        ],
        group: Group::Pace,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::MaxInflight,
        short: None,
        long: "max-inflight",
        value: Some("N"),
        help: &["while requests are due and all connections are busy,", "open more, up to N in total (-c)"],
        group: Group::Pace,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Arrivals,
        short: None,
        long: "arrivals",
        value: Some("NAME"),
        help: &["how requests are spaced: uniform, poisson or burst:N,", "N at once (uniform)"],
        group: Group::Pace,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::CatchUp,
        short: None,
        long: "catch-up",
        value: Some("F"),
        help: &["after a stall, send at up to F times the rate (as fast", "as possible)"],
        group: Group::Pace,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::MaxLate,
        short: None,
        long: "max-late",
        value: Some("T"),
        help: &["drop requests that would be sent more than T late"],
        group: Group::Pace,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::SendSlice,
        short: None,
        long: "send-slice",
        value: Some("T"),
        help: &["send the requests due in each T together, at its end:", "less exact, but cheaper at high rates"],
        group: Group::Pace,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::FindMax,
        short: None,
        long: "find-max",
        value: Some("COND"),
        help: &[
            "find the highest rate at which COND holds, such as",
            "'p99<50ms', within -d (60s); -R is the first to try",
        ],
        group: Group::Search,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Over,
        short: None,
        long: "over",
        value: Some("WHAT"),
        help: &["what --find-max varies: rate, connections or threads", "(rate)"],
        group: Group::Search,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Method,
        short: Some('X'),
        long: "method",
        value: Some("NAME"),
        help: &["request method (GET; POST with --body)"],
        group: Group::Request,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Header,
        short: Some('H'),
        long: "header",
        value: Some("H"),
        help: &["add a header, \"Name: value\"; may be repeated"],
        group: Group::Request,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::Body,
        short: None,
        long: "body",
        value: Some("DATA"),
        help: &["request body; @FILE reads a file, @- standard input"],
        group: Group::Request,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Script,
        short: Some('s'),
        long: "script",
        value: Some("FILE"),
        help: &["a Lua script that makes requests", "(the words after the URL are its arguments)"],
        group: Group::Request,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::BasicAuth,
        short: None,
        long: "basic-auth",
        value: Some("U:P"),
        help: &["log in as user U with password P, as U:P@ in the URL"],
        group: Group::Request,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::DisableKeepalive,
        short: None,
        long: "disable-keepalive",
        value: None,
        help: &["use a new connection for every request, and send", "\"Connection: close\""],
        group: Group::Request,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::RequestsPerConnection,
        short: None,
        long: "requests-per-connection",
        value: Some("N"),
        help: &["replace a connection after N requests; the last one", "carries \"Connection: close\""],
        group: Group::Request,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Once,
        short: None,
        long: "once",
        value: None,
        help: &["send one request, and show it and the response"],
        group: Group::Request,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Timeout,
        short: Some('T'),
        long: "timeout",
        value: Some("T"),
        help: &["count requests that take longer as timed out (2s)", "(0: never)"],
        group: Group::Limits,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::GiveUp,
        short: None,
        long: "give-up",
        value: Some("T"),
        help: &["abandon a request and its connection after T", "(the larger of 30s and 5 x timeout; 0: never)"],
        group: Group::Limits,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::BindIp,
        short: Some('b'),
        long: "bind-ip",
        value: Some("A"),
        help: &["source address, or a range of them: ADDR[/BITS]"],
        group: Group::Way,
        origin: Origin::WrkCmm,
    },
    Flag {
        id: Id::ConnectTo,
        short: None,
        long: "connect-to",
        value: Some("ADDR"),
        help: &["connect to HOST:PORT instead of the URL's; curl's form", "HOST1:PORT1:HOST2:PORT2 is accepted too"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Resolve,
        short: None,
        long: "resolve",
        value: Some("H:A"),
        help: &["use address A for the URL's host H; may be repeated"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Ipv4,
        short: Some('4'),
        long: "ipv4",
        value: None,
        help: &["use IPv4 addresses only"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Ipv6,
        short: Some('6'),
        long: "ipv6",
        value: None,
        help: &["use IPv6 addresses only"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Unix,
        short: None,
        long: "unix",
        value: Some("PATH"),
        help: &["connect to a Unix socket instead of the URL's host"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::HttpProxy,
        short: None,
        long: "http-proxy",
        value: Some("URL"),
        help: &["go through a proxy: http://[user:pass@]host:port"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Rcvbuf,
        short: None,
        long: "rcvbuf",
        value: Some("N"),
        help: &["receive buffer of each connection, in bytes"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Sndbuf,
        short: None,
        long: "sndbuf",
        value: Some("N"),
        help: &["send buffer of each connection, in bytes"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Congestion,
        short: None,
        long: "congestion",
        value: Some("NAME"),
        help: &["congestion control of each connection, such as cubic"],
        group: Group::Way,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Insecure,
        short: Some('k'),
        long: "insecure",
        value: None,
        help: &["do not check the server's certificate"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::CaCert,
        short: None,
        long: "cacert",
        value: Some("FILE"),
        help: &["trust the certificates in FILE (PEM) instead of the", "system's; one of them may be the server's own"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Cert,
        short: None,
        long: "cert",
        value: Some("FILE"),
        help: &["client certificate (PEM)"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Key,
        short: None,
        long: "key",
        value: Some("FILE"),
        help: &["its key (PEM), if it is not in the same file"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Sni,
        short: None,
        long: "sni",
        value: Some("NAME"),
        help: &["server name to send and to check (the URL's host)"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::TlsMin,
        short: None,
        long: "tls-min",
        value: Some("VERSION"),
        help: &["oldest version to offer: 1.2 or 1.3 (1.2)"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::TlsMax,
        short: None,
        long: "tls-max",
        value: Some("VERSION"),
        help: &["newest version to offer: 1.2 or 1.3 (1.3)"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::TlsCiphers,
        short: None,
        long: "tls-ciphers",
        value: Some("LIST"),
        help: &["cipher suites to offer, by OpenSSL or IANA name, most", "preferred first, separated by colons"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::TlsGroups,
        short: None,
        long: "tls-groups",
        value: Some("LIST"),
        help: &["key exchange groups to offer, likewise", "(X25519:P-256:P-384:X25519MLKEM768)"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::TlsResume,
        short: None,
        long: "tls-resume",
        value: Some("WHEN"),
        help: &["whether a connection resumes the TLS session of the", "one that it replaces: on or off (on)"],
        group: Group::Tls,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Latency,
        short: Some('L'),
        long: "latency",
        value: None,
        help: &["print the percentiles of the latency", "(--percentiles selects which)"],
        group: Group::Output,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::ULatency,
        short: Some('U'),
        long: "u_latency",
        value: None,
        help: &["print the uncorrected latency too", "(since requests were sent, not due); implies -L"],
        group: Group::Output,
        origin: Origin::Wrk2,
    },
    Flag {
        id: Id::BatchLatency,
        short: Some('B'),
        long: "batch_latency",
        value: None,
        help: &["record one latency per pipelined batch, as wrk2 does"],
        group: Group::Output,
        origin: Origin::Wrk2,
    },
    Flag {
        id: Id::Percentiles,
        short: None,
        long: "percentiles",
        value: Some("LIST"),
        help: &["percentiles in the report and in the files, such as", "50,90,99.9"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Breakout,
        short: None,
        long: "breakout",
        value: Some("[=all]"),
        help: &["print rows for connect, first byte and last byte", "in wrk-cmm's layout; =all adds the TLS handshake"],
        group: Group::Output,
        origin: Origin::WrkCmm,
    },
    Flag {
        id: Id::Output,
        short: Some('o'),
        long: "output",
        value: Some("FILE"),
        help: &[
            "also write the result: .json (everything), .csv (one",
            "row a second), .hgrm, .md, .ndjson (while it runs),",
            ".xml (JUnit); may be repeated; - is standard output",
        ],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Sockets,
        short: None,
        long: "sockets",
        value: Some("[=FILTER]"),
        help: &[
            "sample sockets every second, as ss shows them: those",
            "of the run, or of 'state established sport = :80'",
        ],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::SocketsOutput,
        short: None,
        long: "sockets-output",
        value: Some("FILE"),
        help: &["write the samples of sockets to this .ndjson file"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::FailIf,
        short: None,
        long: "fail-if",
        value: Some("COND"),
        help: &["exit with code 3 if COND holds; 'p99>50ms,rate>1k'", "means both; may be repeated"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Strict,
        short: None,
        long: "strict",
        value: None,
        help: &["exit with code 4 if onrush itself limited the run:", "its threads, its script or local ports"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Annotate,
        short: None,
        long: "annotate",
        value: None,
        help: &["also print failures as GitHub annotations"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Format,
        short: None,
        long: "format",
        value: Some("NAME"),
        help: &["what to print: wrk (its report) or json (wrk)"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Label,
        short: None,
        long: "label",
        value: Some("KEY=VALUE"),
        help: &["label the run in results; may be repeated"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::KeepSecrets,
        short: None,
        long: "keep-secrets",
        value: None,
        help: &["keep passwords, tokens and the like in results"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Notes,
        short: None,
        long: "notes",
        value: None,
        help: &["with --compat: print notes to stderr after the report", "(without --compat they are always printed)"],
        group: Group::Output,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Version,
        short: Some('v'),
        long: "version",
        value: None,
        help: &["print the version; with a URL, then run"],
        group: Group::Output,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::Help,
        short: Some('h'),
        long: "help",
        value: None,
        help: &["-h: the most used options; --help: this text"],
        group: Group::Output,
        origin: Origin::Wrk,
    },
    Flag {
        id: Id::Io,
        short: None,
        long: "io",
        value: Some("NAME"),
        help: &["kernel interface: auto, uring or epoll (auto)"],
        group: Group::Engine,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Compat,
        short: None,
        long: "compat",
        value: Some("NAME"),
        help: &["behave exactly like wrk, wrk-cmm or wrk2, as when", "called by that name"],
        group: Group::Engine,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Spin,
        short: None,
        long: "spin",
        value: Some("WHEN"),
        help: &["busy-poll while at most 4 requests or connects are in", "flight: auto, on or off (auto)"],
        group: Group::Engine,
        origin: Origin::Ours,
    },
    Flag {
        id: Id::Seed,
        short: None,
        long: "seed",
        value: Some("N"),
        help: &["seed of the random sequences, to repeat a run (1)"],
        group: Group::Engine,
        origin: Origin::Ours,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_letter_name_or_meaning_is_there_twice() {
        let mut letters = HashSet::new();
        let mut names = HashSet::new();
        let mut ids = HashSet::new();
        for flag in FLAGS {
            assert!(flag.short.is_none_or(|letter| letters.insert(letter)), "{}", flag.long);
            assert!(names.insert(flag.long), "{}", flag.long);
            assert!(ids.insert(flag.id), "{}", flag.long);
        }
    }

    #[test]
    fn every_flag_has_a_name_of_its_own_and_a_value_a_name_too() {
        for flag in FLAGS {
            assert!(flag.long.len() > 1, "{}", flag.long);
            assert!(
                flag.long.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_46".contains(&byte)),
                "{}",
                flag.long
            );
            assert!(flag.value.is_none_or(|name| !name.is_empty()), "{}", flag.long);
            assert!(!flag.help.is_empty(), "{}", flag.long);
        }
    }

    #[test]
    fn the_table_is_in_the_order_of_its_groups() {
        let place = |flag: &Flag| Group::ALL.iter().position(|group| *group == flag.group);
        assert!(FLAGS.is_sorted_by_key(place));
    }

    #[test]
    fn wrks_abbreviations_mean_in_every_dialect_but_its_forks_what_they_mean_in_wrk() {
        let table = [
            ("c", "connections"),
            ("d", "duration"),
            ("th", "threads"),
            ("ti", "timeout"),
            ("s", "script"),
            ("l", "latency"),
            ("v", "version"),
            ("hea", "header"),
            ("hel", "help"),
        ];
        for (prefix, name) in table {
            for dialect in [Dialect::Native, Dialect::Wrk] {
                let found: Vec<&str> = by_prefix(prefix, dialect).iter().map(|flag| flag.long).collect();
                assert_eq!(found, [name], "{prefix}");
            }
        }
    }

    #[test]
    fn no_name_of_ours_is_an_abbreviation_of_wrks() {
        for flag in FLAGS {
            for other in by_prefix(flag.long, Dialect::Wrk) {
                assert_eq!(flag.long, other.long);
            }
        }
    }

    #[test]
    fn a_fork_adds_its_own_names_to_the_abbreviations() {
        let names = |prefix, dialect| {
            let mut names: Vec<&str> = by_prefix(prefix, dialect).iter().map(|flag| flag.long).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names("d", Dialect::WrkCmm), ["delay-stats", "duration"]);
        assert_eq!(names("b", Dialect::WrkCmm), ["bind-ip", "breakout"]);
        assert_eq!(names("r", Dialect::Wrk2), ["rate"]);
        assert_eq!(names("r", Dialect::Native), [""; 0]);
        assert_eq!(names("t", Dialect::Wrk), ["threads", "timeout"]);
        assert_eq!(names("h", Dialect::Wrk), ["header", "help"]);
    }
}
