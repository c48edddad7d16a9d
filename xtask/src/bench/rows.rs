//! The table as data: the work of each row, its measures, its contenders, and the limits.

use super::contender::{Contender, EPOLL, GeneratorProgram, H2LOAD, OHA, ONRUSH, SHB, WRK, WRK2, contender};
use super::measure::{
    BESIDE, BYTES, CPU, ELAPSED, EVIDENCE, INSTRUCTIONS, INSTRUCTIONS_ALONE, KEPT, LATENESS_50, LATENESS_99, MEMORY,
    Measure, MeasureComparison, MeasureLimit, RATE, RATE_ERROR, SYSTEM_CALLS, TARGET_CPU,
};
use super::work::{BenchTarget, BenchWork, LIST, NAMED_LIST, RESULT};

/// One row of the table: some work, and its measures.
#[derive(Debug)]
pub struct BenchRow {
    /// Name in `ROWS=`.
    pub name: &'static str,
    /// Description of the work.
    pub sentence: &'static str,
    pub work: BenchWork,
    pub comparisons: &'static [MeasureComparison],
    /// Largest number of rounds: more of them would add no information.
    pub rounds_max: usize,
}

impl BenchRow {
    /// Compares all onrush contenders of the row, once per measure, with another build; and also the instructions and
    /// system calls of the first contender.
    pub fn between_builds(&self) -> Vec<MeasureComparison> {
        let mut all: Vec<MeasureComparison> = Vec::new();
        let mut add =
            |measure: Measure, ours: Contender, is_new: fn(&MeasureComparison, &MeasureComparison) -> bool| {
                let Some((limit, before)) = measure.between_builds.zip(ours.before()) else { return };
                let limit = (measure != SYSTEM_CALLS || !self.work.calls_vary).then_some(limit);
                let comparison = MeasureComparison { measure, ours, other: Some(before), limit };
                if all.iter().all(|known| is_new(known, &comparison)) {
                    all.push(comparison);
                }
            };
        for comparison in self.comparisons {
            add(comparison.measure, comparison.ours, |known, new| known != new);
        }
        let first = self.comparisons.iter().map(|comparison| comparison.ours).find(|ours| ours.program.is_onrush());
        let simulated = self.work.scenario.is_some();
        for measure in [if simulated { INSTRUCTIONS } else { INSTRUCTIONS_ALONE }, SYSTEM_CALLS] {
            add(measure, first.unwrap_or(ONRUSH), |known, new| known.measure != new.measure);
        }
        all
    }
}

const fn at_most(limit: f64, measure: Measure, ours: Contender, other: Contender) -> MeasureComparison {
    MeasureComparison { limit: Some(MeasureLimit::AtMost(limit)), ..beside(measure, ours, other) }
}

const fn at_least(limit: f64, measure: Measure, ours: Contender, other: Contender) -> MeasureComparison {
    MeasureComparison { limit: Some(MeasureLimit::AtLeast(limit)), ..beside(measure, ours, other) }
}

const fn beside(measure: Measure, ours: Contender, other: Contender) -> MeasureComparison {
    MeasureComparison { measure, ours, other: Some(other), limit: None }
}

/// A value without a comparison.
const fn value(limit: Option<MeasureLimit>, measure: Measure, ours: Contender) -> MeasureComparison {
    MeasureComparison { measure, ours, other: None, limit }
}

const fn below(limit: f64, measure: Measure, ours: Contender) -> MeasureComparison {
    value(Some(MeasureLimit::AtMost(limit)), measure, ours)
}

/// A row with as many rounds as requested.
const fn row(
    name: &'static str,
    sentence: &'static str,
    work: BenchWork,
    comparisons: &'static [MeasureComparison],
) -> BenchRow {
    BenchRow { name, sentence, work, comparisons, rounds_max: usize::MAX }
}

const SMALL: BenchWork = BenchWork {
    target: BenchTarget::Bare,
    path: "/",
    options: &[],
    scenario: Some(""),
    body_bytes: 13,
    uploads: false,
    threads: 1,
    connections: 100,
    streams: 0,
    rate: 0,
    seconds: 1,
    requests: 0,
    all_answer: true,
    pinned: true,
    calls_vary: false,
    counted: 20_000,
};

const BIG: BenchWork = BenchWork {
    target: BenchTarget::Serve,
    path: "/bytes/1048576",
    body_bytes: 1 << 20,
    connections: 10,
    counted: 200,
    ..SMALL
};

/// Requests with bodies, whose length is in the path. The target reads the bodies.
const UPLOAD: BenchWork =
    BenchWork { target: BenchTarget::Serve, options: &["-s", "benches/scripts/upload.lua"], counted: 2_000, ..SMALL };

/// The target closes each connection after its response.
const CLOSE: BenchWork = BenchWork {
    target: BenchTarget::Serve,
    path: "/close",
    scenario: Some(
        r#"close = true
answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 13\r\n\r\nHello, World!""#,
    ),
    counted: 5_000,
    ..SMALL
};

const TLS: BenchWork = BenchWork { target: BenchTarget::Tls, scenario: None, connections: 50, counted: 5_000, ..SMALL };

/// A new connection for every request, over TLS.
const TLS_CLOSE: BenchWork = BenchWork { path: "/close", counted: 500, ..TLS };

/// Many requests in flight on few HTTP/2 connections.
const HTTP2: BenchWork =
    BenchWork { target: BenchTarget::Http2, scenario: None, connections: 4, streams: 32, counted: 20_000, ..SMALL };

/// Large bodies over HTTP/2, one at a time on each connection.
const HTTP2_BIG: BenchWork = BenchWork {
    path: "/bytes/1048576",
    body_bytes: 1 << 20,
    connections: 10,
    streams: 1,
    calls_vary: true,
    counted: 200,
    ..HTTP2
};

/// Without a header table, like shb without one.
const TABLELESS: &[&str] = &["--h2-table", "0"];

/// Ten connections, with requests at a rate.
const PACED: BenchWork = BenchWork { connections: 10, options: &["-o", RESULT], ..SMALL };

/// The work of `small`, done by a script.
const fn script(options: &'static [&'static str]) -> BenchWork {
    BenchWork { options, ..SMALL }
}

/// This work without the feature under test.
const NO_SCRIPT: Contender = Contender::onrush("onrush without", |work| BenchWork {
    options: &["-X", "POST", "--body", "name=x&size=3", "-H", "Content-Type: application/x-www-form-urlencoded"],
    ..work
});
/// A repeated request instead of a list, with the length of the list's requests.
const NO_LIST: Contender =
    Contender::onrush("onrush without", |work| BenchWork { path: "/item/1?page=100", options: &[], ..work });
/// Placeholders in the path.
const TEMPLATE: BenchWork =
    BenchWork { path: "/item/{{seq}}?user={{csv target/bench/users.csv id}}", options: &["--templates"], ..SMALL };
/// The requests are filled in by a script.
const IN_LUA: Contender = Contender {
    change: |work| BenchWork { path: "/", options: &["-s", "benches/scripts/template.lua"], ..work },
    ..contender("wrk with a script", WRK.program)
};
/// A repeated request.
const NO_TEMPLATE: Contender =
    Contender::onrush("onrush without", |work| BenchWork { path: "/item/1?user=100000", options: &[], ..work });
/// The list without names.
const NO_NAMES: Contender =
    Contender::onrush("onrush without", |work| BenchWork { options: &["--urls", LIST], ..work });
const NO_PHASES: Contender = Contender::onrush("onrush without", |work| BenchWork { options: &[], ..work });
const NO_RESUMPTION: Contender =
    Contender::onrush("onrush without", |work| BenchWork { options: &["--tls-resume", "off"], ..work });

/// Each request is sent at its due time.
const EXACT: Contender = contender("onrush -R, busy-polling", ONRUSH.program);
/// This rate over HTTP/1.1.
const EXACT_HTTP1: Contender = Contender {
    change: |work| BenchWork { target: BenchTarget::Http1, streams: 0, ..work },
    ..contender("onrush -R, HTTP/1.1", ONRUSH.program)
};
/// This rate, woken by the kernel.
const ASLEEP: Contender =
    Contender::onrush("onrush -R --spin off", |work| BenchWork { options: &["--spin", "off", "-o", RESULT], ..work });
/// Requests are sent together, at the ends of slices.
const SLICED: Contender = Contender::onrush("onrush -R --send-slice 200us", |work| BenchWork {
    options: &["--spin", "off", "--send-slice", "200us"],
    ..work
});
/// This rate, as coarse as wrk2's timers.
const COARSE: Contender = Contender::onrush("onrush -R --send-slice 1ms", |work| BenchWork {
    options: &["--spin", "off", "--send-slice", "1ms"],
    ..work
});
const UNPACED: Contender = Contender::onrush("onrush", |work| BenchWork { rate: 0, ..work });

/// shb, gathering responses for 10 µs instead of 500 µs.
const SHB_10: Contender = Contender {
    change: |work| BenchWork { options: &["--batch-linger", "10"], ..work },
    ..contender("shb, 10 us", SHB.program)
};
/// shb with its default options.
const SHB_500: Contender =
    Contender { change: |work| BenchWork { options: &[], ..work }, ..contender("shb, 500 us", SHB.program) };
/// onrush with its default header table.
const TABLE: Contender = Contender::onrush("onrush, usual table", |work| BenchWork { options: &[], ..work });
/// As many requests in flight, over HTTP/1.1.
const HTTP1: Contender = Contender::onrush("onrush, HTTP/1.1", |work| BenchWork {
    target: BenchTarget::Http1,
    streams: 0,
    options: &[],
    ..work
});

/// As many connections as fit the target's backlog: no storm.
const FEWER: Contender = Contender::onrush("onrush with 4,000", |work| work.of_requests(4_000));
/// wrk opens all connections before it checks the time, so a run of a second takes as long as the connects, and gets
/// hardly any responses.
const WRK_OPENING: Contender =
    Contender { change: |work| BenchWork { target: BenchTarget::Bare, seconds: 1, all_answer: false, ..work }, ..WRK };

const BARE_URING: Contender = contender("bare io_uring", GeneratorProgram::Bare("bare-uring"));
const BARE_SPIN: Contender = Contender {
    change: |work| BenchWork { options: &["spin"], ..work },
    ..contender("bare io_uring, busy-polling", BARE_URING.program)
};
const BARE_EPOLL: Contender = contender("bare epoll", GeneratorProgram::Bare("bare-epoll"));
const BARE_RECEIVE: Contender = contender("bare receive", GeneratorProgram::Bare("bare-poll"));
const BARE_DISCARD: Contender = contender("bare discard", GeneratorProgram::Bare("bare-discard"));
const BARE_CONNECTS: Contender = contender("bare connects", GeneratorProgram::Bare("bare-storm"));
const BARE_HTTP2: Contender = contender("bare HTTP/2", GeneratorProgram::Bare("bare-http2"));
/// Cost of HTTP/2 if the server sends each response in one piece, as with HTTP/1.1.
const ONE_PIECE: Contender =
    Contender::onrush("onrush, in one piece", |work| BenchWork { target: BenchTarget::Bare, options: &[], ..work });
const ONE_PIECE_HTTP1: Contender = Contender::onrush("onrush, HTTP/1.1, in one piece", |work| BenchWork {
    target: BenchTarget::Bare,
    streams: 0,
    options: &[],
    ..work
});
/// Cost of HTTP/2 if nothing is decoded.
const BARE_HTTP1: Contender = Contender {
    change: |work| BenchWork { target: BenchTarget::Http1, streams: 0, options: &[], ..work },
    ..contender("bare HTTP/1.1", BARE_URING.program)
};
const SERVE: Contender = Contender::onrush("onrush serve", |work| BenchWork { target: BenchTarget::Subject, ..work });
const BARE_SERVER: Contender = contender("bare server", ONRUSH.program);

/// Responses that are more expensive to read.
const NGINX_HEAD: Contender = Contender::onrush("onrush, a head of nginx's", |work| BenchWork {
    scenario: Some(
        r#"answer = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Type: text/html\r\nContent-Length: 13\r\nLast-Modified: Fri, 20 Nov 2026 12:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"655b4c80-d\"\r\nAccept-Ranges: bytes\r\n\r\nHello, World!""#,
    ),
    ..work
});
const CHUNKED: Contender = Contender::onrush("onrush, a chunked body", |work| BenchWork {
    scenario: Some(
        r#"answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n8\r\n, World!\r\n0\r\n\r\n""#,
    ),
    ..work
});
const IN_PIECES: Contender =
    Contender::onrush("onrush, a head in two pieces", |work| BenchWork { scenario: Some("split = 50"), ..work });

/// All rows of the table, in its order.
pub const ROWS: &[BenchRow] = &[
    row(
        "small",
        "keep-alive, 13-byte body, 100 connections",
        SMALL,
        &[
            at_most(0.76, CPU, ONRUSH, WRK),
            at_most(1.03, CPU, ONRUSH, SHB),
            at_most(0.80, CPU, EPOLL, WRK),
            beside(CPU, ONRUSH, H2LOAD),
            beside(CPU, ONRUSH, OHA),
        ],
    ),
    row(
        "thousand",
        "the same, 1,000 connections",
        BenchWork { connections: 1_000, ..SMALL },
        &[at_most(0.80, CPU, ONRUSH, WRK), at_most(1.03, CPU, ONRUSH, SHB), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "pipelined",
        "16 requests per batch, which a script returns as one string",
        script(&["-s", "benches/scripts/pipeline.lua"]),
        &[at_most(0.70, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "script-format",
        "request() puts path and header into wrk.format",
        script(&["-s", "benches/scripts/format.lua"]),
        &[at_most(0.80, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "script-string",
        "request() returns the same string each time",
        script(&["-s", "benches/scripts/string.lua"]),
        &[at_most(0.78, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "script-response",
        "response() reads status, headers and body",
        script(&["-s", "benches/scripts/response.lua"]),
        &[at_most(0.80, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "script-static",
        "a script that only sets method, body and headers; without: -X, --body, -H",
        script(&["-s", "benches/scripts/static.lua"]),
        &[
            at_most(1.02, INSTRUCTIONS, ONRUSH, NO_SCRIPT),
            at_most(1.02, SYSTEM_CALLS, ONRUSH, NO_SCRIPT),
            beside(CPU, ONRUSH, NO_SCRIPT),
        ],
    ),
    row(
        "list",
        "a list of 10,000 requests; without: the same request again and again",
        // Excludes reading the list, which takes as long as some thousand requests.
        BenchWork { seconds: 4, ..script(&["--urls", LIST]) },
        &[at_most(1.05, CPU, ONRUSH, NO_LIST), beside(CPU, EPOLL, NO_LIST)],
    ),
    row(
        "template",
        "a path with {{seq}} and {{csv FILE COLUMN}}, by wrk in Lua; without: the same request again and again",
        TEMPLATE,
        &[at_most(0.75, CPU, ONRUSH, IN_LUA), beside(CPU, EPOLL, IN_LUA), beside(CPU, ONRUSH, NO_TEMPLATE)],
    ),
    row(
        "names",
        "a list with 200 names, 4 threads, unpinned; without: no names",
        BenchWork { seconds: 4, threads: 4, pinned: false, ..script(&["--urls", NAMED_LIST]) },
        &[at_most(1.05, CPU, ONRUSH, NO_NAMES), below(60.0, MEMORY, ONRUSH)],
    ),
    row(
        "big",
        "1 MiB bodies, 10 connections",
        BIG,
        &[
            at_least(3.3, BYTES, ONRUSH, WRK),
            at_least(1.5, BYTES, ONRUSH, SHB),
            beside(BYTES, EPOLL, WRK),
            beside(BYTES, ONRUSH, H2LOAD),
            beside(BYTES, ONRUSH, OHA),
        ],
    ),
    row(
        "big-full",
        "1 MiB bodies, 20 connections, the target at its limit",
        BenchWork { connections: 20, ..BIG },
        &[at_most(0.65, CPU, ONRUSH, WRK), at_most(0.65, CPU, EPOLL, WRK)],
    ),
    row(
        "upload",
        "10 KiB in every request, 100 connections",
        BenchWork { path: "/sink?10240", ..UPLOAD },
        &[at_most(0.80, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "upload-big",
        "1 MiB in every request, 10 connections",
        BenchWork { path: "/sink?1048576", connections: 10, calls_vary: true, counted: 200, ..UPLOAD },
        &[at_most(1.0, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "mixed",
        "10 of 100 connections get responses after 0.1 ms, the others after a second",
        BenchWork {
            target: BenchTarget::Serve,
            path: "/mixed",
            scenario: Some("latency_us = 100.0\njitter_us = 999900.0"),
            seconds: 2,
            calls_vary: true,
            ..SMALL
        },
        &[
            at_least(0.98, RATE, ONRUSH, WRK),
            at_least(0.98, RATE, EPOLL, WRK),
            beside(CPU, ONRUSH, WRK),
            beside(CPU, EPOLL, WRK),
        ],
    ),
    BenchRow {
        // Memory varies by pages between runs, and a round takes four seconds.
        rounds_max: 7,
        ..row(
            "idle",
            "10,000 connections, responses after a second",
            BenchWork {
                target: BenchTarget::Serve,
                path: "/delay/1000",
                scenario: Some("latency_us = 1e6"),
                connections: 10_000,
                seconds: 4,
                calls_vary: true,
                ..SMALL
            },
            &[
                below(20.0, MEMORY, ONRUSH),
                beside(MEMORY, ONRUSH, WRK),
                beside(MEMORY, ONRUSH, SHB),
                beside(MEMORY, ONRUSH, H2LOAD),
                beside(MEMORY, ONRUSH, OHA),
            ],
        )
    },
    row(
        "reconnect",
        "new connection per request, 100 at a time",
        CLOSE,
        &[at_most(0.88, CPU, ONRUSH, WRK), at_most(1.0, CPU, ONRUSH, SHB), at_most(0.92, CPU, EPOLL, WRK)],
    ),
    BenchRow {
        // Each round has thousands of connections.
        rounds_max: 11,
        ..row(
            "storm",
            "19,000 connections with one request each",
            BenchWork { target: BenchTarget::Gate(19_000), seconds: 30, counted: 18_000, ..SMALL }.of_requests(19_000),
            &[
                at_most(2.0, ELAPSED, ONRUSH, BARE_CONNECTS),
                at_most(1.3, CPU, ONRUSH, FEWER),
                beside(ELAPSED, ONRUSH, WRK_OPENING),
            ],
        )
    },
    BenchRow {
        rounds_max: 3,
        ..row(
            "reconnect-long",
            "new connection per request, 20 seconds",
            BenchWork { options: &["-o", RESULT], seconds: 20, ..CLOSE },
            &[value(Some(MeasureLimit::AtLeast(0.9)), KEPT, ONRUSH)],
        )
    },
    row(
        "tls",
        "TLS, keep-alive, small responses, 50 connections",
        TLS,
        &[at_most(0.85, CPU, ONRUSH, WRK), at_most(1.05, CPU, ONRUSH, SHB), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "tls-resumed",
        "TLS, new connection per request, sessions resumed",
        TLS_CLOSE,
        &[at_most(0.90, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    row(
        "tls-full",
        "TLS, new connection per request, full handshakes",
        TLS_CLOSE,
        &[at_most(1.0, CPU, NO_RESUMPTION, SHB)],
    ),
    row(
        "tls-big",
        "TLS, 1 MiB bodies, 10 connections",
        BenchWork {
            path: "/bytes/1048576",
            body_bytes: 1 << 20,
            connections: 10,
            calls_vary: true,
            counted: 100,
            ..TLS
        },
        &[at_least(1.2, BYTES, ONRUSH, WRK), beside(BYTES, EPOLL, WRK), beside(BYTES, ONRUSH, SHB)],
    ),
    BenchRow {
        rounds_max: 5,
        ..row(
            "tls-memory",
            "TLS, keep-alive, 5,000 connections",
            BenchWork { connections: 5_000, seconds: 6, ..TLS },
            &[at_most(1.0, MEMORY, ONRUSH, WRK), beside(MEMORY, ONRUSH, SHB)],
        )
    },
    row(
        "http2",
        "HTTP/2, 4 connections with 32 streams each",
        BenchWork { options: TABLELESS, ..HTTP2 },
        &[
            at_most(1.05, CPU, ONRUSH, SHB_10),
            at_most(1.15, CPU, TABLE, SHB_10),
            at_most(0.65, CPU, ONRUSH, H2LOAD),
            at_most(1.25, CPU, ONRUSH, BARE_HTTP2),
            beside(CPU, ONRUSH, SHB_500),
            beside(CPU, EPOLL, SHB_10),
        ],
    ),
    row(
        "http2-one",
        "HTTP/2, one connection with 100 streams",
        BenchWork { connections: 1, streams: 100, options: TABLELESS, ..HTTP2 },
        &[at_most(1.05, CPU, ONRUSH, SHB_10), beside(CPU, ONRUSH, H2LOAD), beside(CPU, ONRUSH, SHB_500)],
    ),
    row(
        "http2-wide",
        "HTTP/2, 100 connections with one stream each",
        BenchWork { connections: 100, streams: 1, options: TABLELESS, ..HTTP2 },
        &[
            at_most(1.05, CPU, ONRUSH, SHB_10),
            at_most(1.15, CPU, ONRUSH, HTTP1),
            beside(CPU, BARE_HTTP2, BARE_HTTP1),
            beside(CPU, ONE_PIECE, ONE_PIECE_HTTP1),
            beside(CPU, ONRUSH, SHB_500),
        ],
    ),
    row(
        "http2-many",
        "HTTP/2, 100 connections with 100 streams each",
        BenchWork { connections: 100, streams: 100, options: TABLELESS, ..HTTP2 },
        &[at_most(1.05, CPU, ONRUSH, SHB_10), beside(CPU, ONRUSH, H2LOAD), beside(CPU, ONRUSH, SHB_500)],
    ),
    row(
        "http2-tls",
        "HTTP/2 over TLS, 4 connections with 32 streams each",
        BenchWork { target: BenchTarget::TlsHttp2, options: TABLELESS, counted: 5_000, ..HTTP2 },
        &[
            at_most(1.05, CPU, ONRUSH, SHB_10),
            at_most(0.65, CPU, ONRUSH, H2LOAD),
            beside(CPU, ONRUSH, SHB_500),
            beside(CPU, EPOLL, SHB_10),
        ],
    ),
    row(
        "http2-big",
        "HTTP/2, 1 MiB bodies, 10 connections",
        HTTP2_BIG,
        &[at_least(1.0, BYTES, ONRUSH, SHB_500), at_least(1.0, BYTES, ONRUSH, H2LOAD)],
    ),
    row(
        "http2-big-many",
        "HTTP/2, 1 MiB bodies, 4 connections with 16 streams each",
        BenchWork { connections: 4, streams: 16, ..HTTP2_BIG },
        &[beside(BYTES, ONRUSH, SHB_500), beside(BYTES, ONRUSH, H2LOAD), beside(BYTES, EPOLL, H2LOAD)],
    ),
    row(
        "http2-upload",
        "HTTP/2, 1 MiB in every request, 10 connections",
        BenchWork { target: BenchTarget::Serve, path: "/sink", uploads: true, ..HTTP2_BIG },
        &[at_least(1.0, BYTES, ONRUSH, SHB_500), at_least(1.0, BYTES, ONRUSH, H2LOAD)],
    ),
    BenchRow {
        rounds_max: 9,
        ..row(
            "http2-rate",
            "HTTP/2, 1,000 requests/s for ten seconds, 10 connections",
            BenchWork {
                streams: 1,
                connections: 10,
                rate: 1_000,
                seconds: 10,
                options: &["-o", RESULT],
                counted: 2_000,
                ..HTTP2
            },
            &[
                at_most(1.1, LATENESS_50, EXACT, EXACT_HTTP1),
                at_most(1.1, LATENESS_99, EXACT, EXACT_HTTP1),
                below(0.1, RATE_ERROR, EXACT),
            ],
        )
    },
    row(
        "phases",
        "phases and a JSON file; without: neither",
        BenchWork { options: &["--breakout=all", "-o", RESULT], ..SMALL },
        &[
            at_most(1.03, INSTRUCTIONS, ONRUSH, NO_PHASES),
            at_most(1.03, SYSTEM_CALLS, ONRUSH, NO_PHASES),
            beside(CPU, ONRUSH, NO_PHASES),
        ],
    ),
    BenchRow {
        rounds_max: 7,
        ..row(
            "evidence",
            "the evidence for the verdict, in runs of five seconds",
            BenchWork { target: BenchTarget::Serve, options: &["-o", RESULT], seconds: 5, ..SMALL },
            &[below(1.0, BESIDE, ONRUSH), below(0.02, EVIDENCE, EPOLL)],
        )
    },
    row(
        "one",
        "one connection, one thread, a core to itself",
        BenchWork { connections: 1, ..SMALL },
        &[
            at_least(1.0, RATE, ONRUSH, WRK),
            at_least(0.95, RATE, ONRUSH, BARE_RECEIVE),
            at_least(0.95, RATE, ONRUSH, BARE_SPIN),
            beside(RATE, BARE_SPIN, BARE_RECEIVE),
        ],
    ),
    row(
        "two",
        "two threads, 200 connections, unpinned",
        BenchWork { threads: 2, connections: 200, pinned: false, ..SMALL },
        &[at_most(0.80, CPU, ONRUSH, WRK), beside(CPU, EPOLL, WRK)],
    ),
    BenchRow {
        rounds_max: 3,
        ..row(
            "rate-1k",
            "1,000 requests/s for ten seconds, 10 connections",
            BenchWork { rate: 1_000, seconds: 10, counted: 2_000, ..PACED },
            &[
                below(2.0, LATENESS_50, EXACT),
                below(50.0, LATENESS_99, EXACT),
                below(40.0, LATENESS_50, ASLEEP),
                below(300.0, LATENESS_99, ASLEEP),
                below(0.1, RATE_ERROR, EXACT),
            ],
        )
    },
    BenchRow {
        rounds_max: 3,
        ..row(
            "rate-10k",
            "10,000 requests/s, 10 connections",
            BenchWork { rate: 10_000, seconds: 2, ..PACED },
            &[below(0.1, RATE_ERROR, EXACT)],
        )
    },
    row(
        "rate-50k",
        "50,000 requests/s, 100 connections; onrush: as fast as possible",
        BenchWork { rate: 50_000, seconds: 2, ..SMALL },
        &[
            at_most(3.2, CPU, ASLEEP, UNPACED),
            at_most(1.25, CPU, SLICED, UNPACED),
            at_most(0.75, CPU, COARSE, WRK2),
            below(100.0, LATENESS_99, ASLEEP),
            below(0.1, RATE_ERROR, ASLEEP),
        ],
    ),
    row("target", "onrush serve for /, 100 connections", SMALL, &[at_most(1.1, TARGET_CPU, SERVE, BARE_SERVER)]),
    row(
        "limit",
        "the limit itself: as small, bare loops",
        SMALL,
        &[
            beside(CPU, BARE_URING, WRK),
            beside(CPU, BARE_EPOLL, WRK),
            beside(CPU, ONRUSH, BARE_URING),
            beside(CPU, EPOLL, BARE_EPOLL),
        ],
    ),
    row(
        "discard",
        "the limit itself: as big, a bare loop",
        BIG,
        &[beside(BYTES, BARE_DISCARD, WRK), beside(BYTES, ONRUSH, BARE_DISCARD)],
    ),
    row(
        "instructions",
        "instructions for responses that differ in form",
        SMALL,
        &[
            value(None, INSTRUCTIONS, ONRUSH),
            value(None, INSTRUCTIONS, NGINX_HEAD),
            value(None, INSTRUCTIONS, CHUNKED),
            value(None, INSTRUCTIONS, IN_PIECES),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::super::measure::ValueSource;
    use super::*;

    #[test]
    fn rows_and_contenders_have_unique_names() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..at].iter().all(|earlier| earlier.name != row.name), "{}", row.name);
        }
    }

    #[test]
    fn options_fit_their_program_and_name_existing_files() {
        for row in ROWS {
            for pair in row.work.options.windows(2).filter(|pair| pair[0] == "-s") {
                assert!(crate::root().join(pair[1]).is_file(), "{}", pair[1]);
            }
            for contender in row.comparisons.iter().flat_map(|one| [Some(one.ours), one.other]).flatten() {
                let options = (contender.change)(row.work).options;
                let takes = match contender.program {
                    GeneratorProgram::Onrush(_) => true,
                    // None of the options are passed to h2load.
                    GeneratorProgram::H2load => options.is_empty() || row.work.streams > 0,
                    GeneratorProgram::Shb => options.is_empty() || options == ["--batch-linger", "10"],
                    GeneratorProgram::Wrk => options.iter().all(|option| !option.starts_with("-o")),
                    GeneratorProgram::Bare(_) => options == ["spin"] || options.is_empty() || row.work.streams > 0,
                    _ => options.is_empty(),
                };
                assert!(takes, "{}: {} with {options:?}", row.name, contender.name);
            }
        }
    }

    #[test]
    fn builds_are_compared_on_every_row() {
        let row = |name| ROWS.iter().find(|row| row.name == name).unwrap();
        let shown = |name| -> Vec<(&str, &str)> {
            let comparisons: Vec<MeasureComparison> = row(name).between_builds();
            assert!(comparisons.iter().all(|one| one.other == one.ours.before()));
            comparisons.iter().map(|one| (one.ours.name, one.measure.unit)).collect()
        };
        let counted = |ours| [(ours, INSTRUCTIONS.unit), (ours, SYSTEM_CALLS.unit)];
        let timed = [RATE, CPU].map(|measure| [("onrush", measure.unit), ("onrush (epoll)", measure.unit)]);
        assert_eq!(shown("mixed"), [timed.concat(), counted("onrush").to_vec()].concat());
        assert_eq!(shown("phases"), [counted("onrush").to_vec(), vec![("onrush", CPU.unit)]].concat());
        assert_eq!(shown("rate-10k"), counted("onrush -R, busy-polling"));
        assert_eq!(shown("tls")[2..], [("onrush", INSTRUCTIONS_ALONE.unit), ("onrush", SYSTEM_CALLS.unit)]);
        for row in ROWS {
            let comparisons = row.between_builds();
            let counts = comparisons.iter().filter(|one| matches!(one.measure.how, ValueSource::Counted(_)));
            assert!(counts.count() >= 2, "{}", row.name);
        }
    }
}
