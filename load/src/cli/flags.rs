//! The table of all options, and lookups in it.
//!
//! The table only describes: [`super::front`] matches spellings, [`super::typed`] gives options their meaning.

use Origin::{Wrk, Wrk2, WrkCmm};

use super::flag::flag;
pub use super::flag::{Flag, Id, Origin};
use onrush_plan::Dialect;

/// All options, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Flag> + Clone {
    SECTIONS.iter().flat_map(|(_, flags)| *flags)
}

/// Options of a single run, which the commands that make many runs do not take.
pub const OF_ONE_RUN: [Id; 18] = [
    Id::FindMax,
    Id::Over,
    Id::Once,
    Id::Output,
    Id::SocketsOutput,
    Id::RequestLog,
    Id::LogSample,
    Id::SampleResponses,
    Id::Format,
    Id::Machines,
    Id::Coordinate,
    Id::TokenFile,
    Id::JoinTimeout,
    Id::LossTimeout,
    Id::OnLoss,
    Id::Compat,
    Id::Quiet,
    Id::Help,
];

/// The option with this id.
pub fn by_id(id: Id) -> &'static Flag {
    all().find(|flag| flag.id == id).expect("the table has every option")
}

/// The option with this letter.
pub fn by_letter(letter: char) -> Option<&'static Flag> {
    all().find(|flag| flag.spelling.short == Some(letter))
}

/// The option with exactly this name.
pub fn by_name(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.spelling.long == name)
}

/// The options in a dialect's own list whose names begin with `prefix`.
pub fn by_prefix(prefix: &str, dialect: Dialect) -> Vec<&'static Flag> {
    all().filter(|flag| flag.is_listed_by(dialect) && flag.spelling.long.starts_with(prefix)).collect()
}

/// The table, in the order of the help and of `docs/command-line.md`: the heading of each section, and its options.
pub const SECTIONS: [(&str, &[Flag]); 11] = [
    ("Load", LOAD),
    ("Request rate", PACE),
    ("Finding the highest load", SEARCH),
    ("Requests", REQUEST),
    ("Timeouts", LIMITS),
    ("Connections", WAY),
    ("TLS", TLS),
    ("HTTP/2", HTTP),
    ("Several machines", MACHINES),
    ("Output", OUTPUT),
    ("Internals", ENGINE),
];

/// How much load, and for how long.
const LOAD: &[Flag] = &[
    flag(Id::Connections, "-c, --connections N")
        .common()
        .from(Wrk)
        .help("connections to keep open, all threads together (10)"),
    flag(Id::Duration, "-d, --duration T").common().from(Wrk).help("how long the run lasts (10s)"),
    flag(Id::Threads, "-t, --threads N")
        .common()
        .from(Wrk)
        .help("threads that share the connections (2)\n(1 if there is only one connection)"),
    flag(Id::Requests, "-n, --requests N")
        .common()
        .help("send exactly N requests, without a time limit; with\n-d too, whichever is reached first ends the run"),
    flag(Id::Until, "--until LIST")
        .help("end the run once the figures are this precise, with\n95 % confidence: 'p99+-2%,rate+-1%' (5m at most)"),
    flag(Id::Probe, "--probe WHAT").one_of(&["off", "up"]).help(
        "what follows a closed loop to find out its limit: off,\n\
         or the longest time to go on with half as many in\n\
         flight (a fifth of -d, if that is 10s or more), or up\n\
         or up:T, with half as many more",
    ),
    flag(Id::Warmup, "--warmup T")
        .common()
        .help("put load on the target for T before measuring\nstarts; -d and -n count from then on"),
    flag(Id::DelayStats, "-D, --delay-stats T").from(WrkCmm).help("wrk-cmm's name for --warmup; uses its layout"),
];

/// When requests are sent, if not as soon as a connection is free.
const PACE: &[Flag] = &[
    flag(Id::Rate, "-R, --rate N")
        .common()
        .from(Wrk2)
        .help("send N requests per second in total, on schedule\nhowever slow the target is (90/m: 90 per minute)"),
    flag(Id::Stages, "--stages LIST").common().help(
        "rates in sequence, each with its duration:\n\
         10s:1k,30s:1k..20k,1m:20k; with c= in front, numbers\n\
         of connections; the run lasts as long as its stages",
    ),
    flag(Id::MaxInflight, "--max-inflight N")
        .help("while requests are due and all connections are busy,\nopen more, up to N in total (-c)"),
    flag(Id::Arrivals, "--arrivals NAME")
        .one_of(&["uniform", "poisson", "burst:"])
        .help("how requests are spaced: uniform, poisson or burst:N,\nN at once (uniform)"),
    flag(Id::CatchUp, "--catch-up F").help("after a stall, send at up to F times the rate (as fast\nas possible)"),
    flag(Id::MaxLate, "--max-late T").help("drop requests that would be sent more than T late"),
    flag(Id::SendSlice, "--send-slice T")
        .help("send the requests due in each T together, at its end:\nless exact, but cheaper at high rates"),
];

/// The search for the highest load.
const SEARCH: &[Flag] = &[
    flag(Id::FindMax, "--find-max COND").common().help(
        "find the highest rate at which COND holds, such as\n'p99<50ms'; -d is the time for the whole search\n(60s), -R the first rate to try",
    ),
    flag(Id::Over, "--over WHAT").one_of(&["rate", "connections", "threads"]).help("what --find-max varies: rate, connections or threads\n(rate)"),
];

/// What is sent.
const REQUEST: &[Flag] = &[
    flag(Id::Method, "-X, --method NAME").one_of(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]).common().help("request method (GET; POST with a body)"),
    flag(Id::Header, "-H, --header H").common().from(Wrk).help("add a header, \"Name: value\"; may be repeated"),
    flag(Id::Body, "--body DATA").common().help("request body; @FILE reads a file, @- standard input"),
    flag(Id::Form, "-F, --form NAME=CONTENT").common().help(
        "send a form in parts, as curl does; NAME=@FILE sends a\nfile, NAME=<FILE its content; may be repeated",
    ),
    flag(Id::DataUrlencode, "--data-urlencode DATA")
        .help("send percent-encoded fields, as curl does: NAME=TEXT\nor NAME@FILE; may be repeated, and are joined by &"),
    flag(Id::Urls, "--urls FILE").common().help(
        "send the requests in FILE (-: standard input), a line\neach: [METHOD] URL-or-path [weight=N] [name=X], then\nperhaps header lines and @FILE, its body",
    ),
    flag(Id::UrlsOrder, "--urls-order HOW").one_of(&["seq", "shuffle", "weighted"])
        .help("seq (one after the other), shuffle, or weighted\n(drawn by weight) (seq)"),
    flag(Id::Templates, "--templates").common().help(
        "fill in {{seq}}, {{rand A B}}, {{uuid}}, {{now}},\n{{line FILE}} and {{csv FILE COLUMN}} in URLs, headers\nand bodies, anew for every request",
    ),
    flag(Id::Script, "-s, --script FILE")
        .common()
        .from(Wrk)
        .help("a Lua script that makes requests\n(the words after the URL are its arguments)"),
    flag(Id::BasicAuth, "--basic-auth U:P").help("log in as user U with password P, as U:P@ in the URL"),
    flag(Id::DisableKeepalive, "--disable-keepalive")
        .help("use a new connection for every request, and send\n\"Connection: close\""),
    flag(Id::RequestsPerConnection, "--requests-per-connection N")
        .help("replace a connection after N requests; the last one\ncarries \"Connection: close\""),
    flag(Id::ExpectStatus, "--expect-status LIST")
        .common()
        .help("statuses of success, such as 200,204, 2xx or\n200-204,404; every other one is an error (below 400)"),
    flag(Id::ExpectBody, "--expect-body TEXT")
        .common()
        .help("count a response as an error unless its body contains\nTEXT; may be repeated"),
    flag(Id::ExpectHeader, "--expect-header H")
        .help("the same for a header: \"Name: value\", or \"Name\" for\nany value; may be repeated"),
    flag(Id::Once, "--once").common().help("send one request, and show it and the response"),
];

/// When a request is too slow.
const LIMITS: &[Flag] = &[
    flag(Id::Timeout, "-T, --timeout T")
        .common()
        .from(Wrk)
        .help("count requests that take longer as timed out (2s)\n(0: never)"),
    flag(Id::GiveUp, "--give-up T")
        .help("abandon a request and its connection after T\n(the larger of 30s and 5 x timeout; 0: never)"),
];

/// How connections get to the target.
const WAY: &[Flag] = &[
    flag(Id::BindIp, "-b, --bind-ip A").from(WrkCmm).help("source address, or a range of them: ADDR[/BITS]"),
    flag(Id::ConnectTo, "--connect-to ADDR")
        .help("connect to HOST:PORT instead of the URL's; curl's form\nHOST1:PORT1:HOST2:PORT2 is accepted too"),
    flag(Id::Resolve, "--resolve H:A").help("use address A for the URL's host H; may be repeated"),
    flag(Id::Ipv4, "-4, --ipv4").help("use IPv4 addresses only"),
    flag(Id::Ipv6, "-6, --ipv6").help("use IPv6 addresses only"),
    flag(Id::Unix, "--unix PATH").help("connect to a Unix socket instead of the URL's host"),
    flag(Id::HttpProxy, "--http-proxy URL").help("go through a proxy: http://[user:pass@]host:port"),
    flag(Id::Rcvbuf, "--rcvbuf N").help("receive buffer of each connection, in bytes"),
    flag(Id::Sndbuf, "--sndbuf N").help("send buffer of each connection, in bytes"),
    flag(Id::Congestion, "--congestion NAME").help("congestion control of each connection, such as cubic"),
];

/// TLS.
const TLS: &[Flag] = &[
    flag(Id::Insecure, "-k, --insecure").common().help("do not check the server's certificate"),
    flag(Id::CaCert, "--cacert FILE")
        .help("trust the certificates in FILE (PEM) instead of the\nsystem's; one of them may be the server's own"),
    flag(Id::Cert, "--cert FILE").help("client certificate (PEM)"),
    flag(Id::Key, "--key FILE").help("its key (PEM), if it is not in the same file"),
    flag(Id::Sni, "--sni NAME").help("server name to send and to check (the URL's host)"),
    flag(Id::TlsMin, "--tls-min VERSION").one_of(&["1.2", "1.3"]).help("oldest version to offer: 1.2 or 1.3 (1.2)"),
    flag(Id::TlsMax, "--tls-max VERSION").one_of(&["1.2", "1.3"]).help("newest version to offer: 1.2 or 1.3 (1.3)"),
    flag(Id::TlsCiphers, "--tls-ciphers LIST")
        .help("cipher suites to offer, by OpenSSL or IANA name, most\npreferred first, separated by colons"),
    flag(Id::TlsGroups, "--tls-groups LIST")
        .help("key exchange groups to offer, likewise\n(X25519:P-256:P-384:X25519MLKEM768)"),
    flag(Id::TlsResume, "--tls-resume WHEN")
        .one_of(&["on", "off"])
        .help("whether a connection resumes the TLS session of the\none that it replaces: on or off (on)"),
];

/// Versions of HTTP.
const HTTP: &[Flag] = &[
    flag(Id::Http2, "--http2")
        .common()
        .help("speak HTTP/2 and nothing else: by ALPN to https,\nfrom the first byte (prior knowledge) to http"),
    flag(Id::Http2PriorKnowledge, "--http2-prior-knowledge").help("the same"),
    flag(Id::Http11, "--http1.1").help("speak HTTP/1.1 (the default)"),
    flag(Id::AlpnList, "--alpn-list LIST")
        .one_of(&["h2,http/1.1", "http/1.1,h2", "h2", "http/1.1"])
        .help("versions that an https server may choose from, the\npreferred first: h2,http/1.1"),
    flag(Id::Streams, "--streams N")
        .common()
        .help("most requests in flight on a connection of HTTP/2 (1);\nthe server may allow fewer"),
    flag(Id::H2Window, "--h2-window SIZE").help("how much of a response the server may send ahead\n(1 GiB)"),
    flag(Id::H2ConnectionWindow, "--h2-connection-window SIZE")
        .help("the same for all responses of a connection (1 GiB)"),
    flag(Id::H2MaxFrame, "--h2-max-frame SIZE").help("longest frame to accept (16 KiB)"),
    flag(Id::H2Table, "--h2-table SIZE").help("table for the server's header fields (4 KiB)"),
];

/// A run on several machines.
const MACHINES: &[Flag] = &[
    flag(Id::Machines, "--machines N").common().help(
        "carry the run out on N machines, on each of which\n'onrush worker' runs: -c, -R, -n and stages are those\nof all together, -t and -b those of each",
    ),
    flag(Id::Coordinate, "--coordinate ADDR").help("where this one waits for them, as ADDR:PORT or :PORT;\nnot needed if srun starts all of them"),
    flag(Id::TokenFile, "--token-file FILE").help("the secret of the run, which all of them need; made if\nthere is none"),
    flag(Id::JoinTimeout, "--join-timeout T").help("how long they may take to join and to get ready (5m)"),
    flag(Id::LossTimeout, "--loss-timeout T").help("a machine that is silent for so long is lost (5s)"),
    flag(Id::OnLoss, "--on-loss HOW")
        .one_of(&["stop", "continue"])
        .help("what becomes of the run then: stop, or continue with\nthe others (stop)"),
];

/// What is printed and written.
const OUTPUT: &[Flag] = &[
    flag(Id::Latency, "-L, --latency").common().from(Wrk).help("print more percentiles of the latency"),
    flag(Id::ULatency, "-U, --u_latency")
        .from(Wrk2)
        .help("print the uncorrected latency too\n(since requests were sent, not due); implies -L"),
    flag(Id::BatchLatency, "-B, --batch_latency")
        .from(Wrk2)
        .help("record one latency per pipelined batch, as wrk2 does"),
    flag(Id::Percentiles, "--percentiles LIST").common().help(
        "percentiles in the report and in the files, such as\n50,90,99.9; full: the report has the whole spectrum",
    ),
    flag(Id::Breakout, "--breakout[=all]")
        .one_of(&["all"])
        .from(WrkCmm)
        .help("print rows for connect, first byte and last byte\nin wrk-cmm's layout; =all adds the TLS handshake"),
    flag(Id::Output, "-o, --output FILE").common().help(
        "also write the result: .json (everything), .csv (one\n\
         row a second), .hgrm, .md, .ndjson (while it runs),\n\
         .xml (JUnit); may be repeated; - is standard output",
    ),
    flag(Id::Sockets, "--sockets[=FILTER]").help(
        "sample sockets every second, as ss shows them: those\nof the run, or of 'state established sport = :80'",
    ),
    flag(Id::SocketsOutput, "--sockets-output FILE").help("write the samples of sockets to this .ndjson file"),
    flag(Id::RequestLog, "--request-log FILE")
        .common()
        .help("write a line for each request to this CSV file: its\ntimes, status, bytes, name and error"),
    flag(Id::LogSample, "--log-sample 1/N").help("log one of N requests (1/1)"),
    flag(Id::SampleResponses, "--sample-responses N DIR")
        .help("keep the first N responses of each status and failed\ncheck in this folder, a file each"),
    flag(Id::FailIf, "--fail-if COND")
        .common()
        .help("fail the run (exit code 3) if COND is met;\n'p99>50ms,rate>1k' means both; may be repeated"),
    flag(Id::Strict, "--strict")
        .common()
        .help("exit with code 4 if onrush itself limited the run:\nits threads, its script or local ports"),
    flag(Id::Annotate, "--annotate").help("also print failures as GitHub annotations"),
    flag(Id::Format, "--format NAME")
        .one_of(&["wrk", "json"])
        .common()
        .help("what to print: wrk (its report) or json (wrk)"),
    flag(Id::Label, "--label KEY=VALUE").help("label the run in results; may be repeated"),
    flag(Id::KeepSecrets, "--keep-secrets").help("keep passwords, tokens and the like in results"),
    flag(Id::Notes, "--notes[=WHEN]")
        .one_of(&["on", "off"])
        .help("print notes and the verdict to stderr after the\nreport: on or off (on; off where a tool is imitated)"),
    flag(Id::Quiet, "--quiet").common().help("print the report and errors only: no progress, no\nnotes, no warnings"),
    flag(Id::Version, "-v, --version").common().from(Wrk).help("print the version; with a URL, then run"),
    flag(Id::Help, "-h, --help")
        .common()
        .from(Wrk)
        .help("print these options\n(-h: the ten most used; --help: the common ones;\n--help all: all of them)"),
];

/// How the generator works.
const ENGINE: &[Flag] = &[
    flag(Id::Io, "--io NAME").one_of(&["auto", "uring", "epoll"]).help("kernel interface: auto, uring or epoll (auto)"),
    flag(Id::Compat, "--compat NAME")
        .one_of(&["wrk", "wrk-cmm", "wrk2"])
        .common()
        .help("behave exactly like wrk, wrk-cmm or wrk2, as when\ncalled by that name"),
    flag(Id::Spin, "--spin WHEN")
        .one_of(&["auto", "on", "off"])
        .help("busy-poll while at most 4 requests or connects are in\nflight: auto, on or off (auto)"),
    flag(Id::Seed, "--seed N").help("seed of the random sequences, to repeat a run (1)"),
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
        for flag in all() {
            assert!(flag.spelling.short.is_none_or(|letter| letters.insert(letter)), "{}", flag.spelling.long);
            assert!(names.insert(flag.spelling.long), "{}", flag.spelling.long);
            assert!(ids.insert(flag.id), "{}", flag.spelling.long);
        }
    }

    #[test]
    fn every_flag_has_a_name_of_its_own_and_a_value_a_name_too() {
        for flag in all() {
            assert!(flag.spelling.long.len() > 1, "{}", flag.spelling.long);
            assert!(
                flag.spelling.long.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_.1246".contains(&byte)),
                "{}",
                flag.spelling.long
            );
            assert!(flag.spelling.value.is_none_or(|name| !name.is_empty()), "{}", flag.spelling.long);
            assert!(!flag.help.is_empty(), "{}", flag.spelling.long);
        }
    }

    #[test]
    fn abbreviations_mean_the_same_as_in_wrk() {
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
                let found: Vec<&str> = by_prefix(prefix, dialect).iter().map(|flag| flag.spelling.long).collect();
                assert_eq!(found, [name], "{prefix}");
            }
        }
    }

    #[test]
    fn no_name_of_ours_is_an_abbreviation_of_wrks() {
        for flag in all() {
            for other in by_prefix(flag.spelling.long, Dialect::Wrk) {
                assert_eq!(flag.spelling.long, other.spelling.long);
            }
        }
    }

    #[test]
    fn a_fork_adds_its_own_names_to_the_abbreviations() {
        let names = |prefix, dialect| {
            let mut names: Vec<&str> = by_prefix(prefix, dialect).iter().map(|flag| flag.spelling.long).collect();
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
