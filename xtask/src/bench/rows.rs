//! The table as data: what is measured, against what, and the limits.

use super::contender::Contender::{self, *};
use super::contender::Paced;
use super::experiment::{Comparison, Experiment, Kind, Limit, Measure, Overhead, Summary};
use super::load::{Load, RESULT, Target};

/// One row of the table: one kind of work.
#[derive(Debug)]
pub struct Row {
    /// Its name in `ROWS=`.
    pub name: &'static str,
    /// The work, in words.
    pub work: &'static str,
    /// How it is measured.
    pub kind: Kind,
}

impl Row {
    /// Whether it compares another contender with `contender`.
    pub fn compares_with(&self, contender: Contender) -> bool {
        match &self.kind {
            Kind::Rounds(experiment) => experiment.comparisons.iter().any(|pair| pair.other == Some(contender)),
            Kind::Storm => contender == Wrk,
            Kind::Counted(_) | Kind::Evidence(_) | Kind::Steady | Kind::Instructions => false,
        }
    }
}

const fn at_most(ours: Contender, other: Contender, limit: f64) -> Comparison {
    Comparison { limit: Some(Limit::AtMost(limit)), ..beside(ours, other) }
}

const fn at_least(ours: Contender, other: Contender, limit: f64) -> Comparison {
    Comparison { limit: Some(Limit::AtLeast(limit)), ..beside(ours, other) }
}

/// A value that is compared with nothing.
const fn value(ours: Contender, at_most: f64) -> Comparison {
    Comparison { ours, other: None, limit: Some(Limit::AtMost(at_most)), measure: None }
}

const fn beside(ours: Contender, other: Contender) -> Comparison {
    Comparison { ours, other: Some(other), limit: None, measure: None }
}

const SMALL: Load = Load {
    target: Target::Bare,
    path: "/",
    options: &[],
    without: &[],
    body_bytes: 13,
    threads: 1,
    connections: 100,
    rate: 0,
    seconds: 1,
    pinned: true,
};

/// The same work over TLS.
const TLS: Load = Load { target: Target::Tls, connections: 50, ..SMALL };

/// Requests with bodies, whose length is in the path; the target reads them.
const UPLOAD: Load = Load { target: Target::Serve, options: &["-s", "benches/scripts/upload.lua"], ..SMALL };

const ANY: usize = usize::MAX;

/// A row of as many rounds as requested.
const fn rounds(load: Load, measure: Measure, comparisons: &'static [Comparison]) -> Kind {
    Kind::Rounds(Experiment { load, measure, rounds_max: ANY, summary: Summary::Median, comparisons })
}

/// Ten connections on which requests are sent at a rate: other load on the machine can only make them later.
const fn held(rate: u32, seconds: u32, comparisons: &'static [Comparison]) -> Kind {
    Kind::Rounds(Experiment {
        load: Load { connections: 10, rate, seconds, ..SMALL },
        measure: Measure::Lateness50,
        rounds_max: 3,
        summary: Summary::Lowest,
        comparisons,
    })
}

/// Each request is sent when it is due.
const EXACT: Contender = Paced(&Paced { name: "onrush -R, busy-polling", options: &[] });
/// The same, woken by the kernel.
const ASLEEP: Contender = Paced(&Paced { name: "onrush -R --spin off", options: &["--spin", "off"] });
/// Requests are sent together, at the ends of slices.
const SLICED: Contender =
    Paced(&Paced { name: "onrush -R --send-slice 200us", options: &["--spin", "off", "--send-slice", "200us"] });
/// The same, as coarse as wrk2's timers.
const COARSE: Contender =
    Paced(&Paced { name: "onrush -R --send-slice 1ms", options: &["--spin", "off", "--send-slice", "1ms"] });

/// The work of `small`, done by a script.
const fn script(options: &'static [&'static str], comparisons: &'static [Comparison]) -> Kind {
    rounds(Load { options, ..SMALL }, Measure::CpuPerRequest, comparisons)
}

/// The table.
pub const ROWS: &[Row] = &[
    Row {
        name: "small",
        work: "keep-alive, 13-byte body, 100 connections",
        kind: rounds(
            SMALL,
            Measure::CpuPerRequest,
            &[
                at_most(Uring, Wrk, 0.76),
                at_most(Uring, Shb, 1.03),
                at_most(Epoll, Wrk, 0.80),
                beside(Uring, H2load),
                beside(Uring, Oha),
            ],
        ),
    },
    Row {
        name: "thousand",
        work: "the same, 1,000 connections",
        kind: rounds(
            Load { connections: 1_000, ..SMALL },
            Measure::CpuPerRequest,
            &[at_most(Uring, Wrk, 0.80), at_most(Uring, Shb, 1.03)],
        ),
    },
    Row {
        name: "pipelined",
        work: "16 requests per batch, which a script returns as one string",
        kind: script(&["-s", "benches/scripts/pipeline.lua"], &[at_most(Uring, Wrk, 0.70)]),
    },
    Row {
        name: "script-format",
        work: "request() puts path and header into wrk.format",
        kind: script(&["-s", "benches/scripts/format.lua"], &[at_most(Uring, Wrk, 0.80)]),
    },
    Row {
        name: "script-string",
        work: "request() returns the same string each time",
        kind: script(&["-s", "benches/scripts/string.lua"], &[at_most(Uring, Wrk, 0.78)]),
    },
    Row {
        name: "script-response",
        work: "response() reads status, headers and body",
        kind: script(&["-s", "benches/scripts/response.lua"], &[at_most(Uring, Wrk, 0.80)]),
    },
    Row {
        name: "script-static",
        work: "a script that only sets method, body and headers; without: -X, --body, -H",
        kind: Kind::Counted(Overhead {
            load: Load {
                options: &["-s", "benches/scripts/static.lua"],
                without: &[
                    "-X",
                    "POST",
                    "--body",
                    "name=x&size=3",
                    "-H",
                    "Content-Type: application/x-www-form-urlencoded",
                ],
                ..SMALL
            },
            limit: 1.02,
        }),
    },
    Row {
        name: "big",
        work: "1 MiB bodies, 10 connections",
        kind: rounds(
            Load { target: Target::Serve, path: "/bytes/1048576", body_bytes: 1 << 20, connections: 10, ..SMALL },
            Measure::BytesPerCpu,
            &[at_least(Uring, Wrk, 3.3), at_least(Uring, Shb, 1.5), beside(Uring, H2load), beside(Uring, Oha)],
        ),
    },
    Row {
        name: "upload",
        work: "10 KiB in every request, 100 connections",
        kind: rounds(
            Load { path: "/sink?10240", ..UPLOAD },
            Measure::CpuPerRequest,
            &[at_most(Uring, Wrk, 0.80), beside(Epoll, Wrk)],
        ),
    },
    Row {
        name: "upload-big",
        work: "1 MiB in every request, 10 connections",
        kind: rounds(
            Load { path: "/sink?1048576", connections: 10, ..UPLOAD },
            Measure::CpuPerRequest,
            &[at_most(Uring, Wrk, 1.0), beside(Epoll, Wrk)],
        ),
    },
    Row {
        name: "mixed",
        work: "10 of 100 connections get responses after 0.1 ms, the others after a second",
        kind: rounds(
            Load { target: Target::Serve, path: "/mixed", seconds: 2, ..SMALL },
            Measure::Rate,
            &[
                at_least(Uring, Wrk, 0.98),
                at_least(Epoll, Wrk, 0.98),
                beside(Uring, Wrk).of(Measure::CpuPerRequest),
                beside(Epoll, Wrk).of(Measure::CpuPerRequest),
            ],
        ),
    },
    Row {
        name: "idle",
        work: "10,000 connections, responses after a second",
        kind: Kind::Rounds(Experiment {
            load: Load { target: Target::Serve, path: "/delay/1000", connections: 10_000, seconds: 4, ..SMALL },
            measure: Measure::Memory,
            // Memory differs by pages from run to run, and a round takes four seconds.
            rounds_max: 7,
            summary: Summary::Median,
            comparisons: &[
                value(Uring, 20.0),
                beside(Uring, Wrk),
                beside(Uring, Shb),
                beside(Uring, H2load),
                beside(Uring, Oha),
            ],
        }),
    },
    Row {
        name: "reconnect",
        work: "new connection per request, 100 at a time",
        kind: rounds(
            Load { target: Target::Serve, path: "/close", ..SMALL },
            Measure::CpuPerRequest,
            &[at_most(Uring, Wrk, 0.88), at_most(Uring, Shb, 1.0), at_most(Epoll, Wrk, 0.92)],
        ),
    },
    Row { name: "storm", work: "19,000 connections with one request each", kind: Kind::Storm },
    Row { name: "reconnect-long", work: "new connection per request, 20 seconds", kind: Kind::Steady },
    Row {
        name: "tls",
        work: "TLS, keep-alive, small responses, 50 connections",
        kind: rounds(
            TLS,
            Measure::CpuPerRequest,
            &[at_most(Uring, Wrk, 0.85), at_most(Uring, Shb, 1.05), beside(Epoll, Wrk)],
        ),
    },
    Row {
        name: "tls-resumed",
        work: "TLS, new connection per request, sessions resumed",
        kind: rounds(Load { path: "/close", ..TLS }, Measure::CpuPerRequest, &[at_most(Uring, Wrk, 0.90)]),
    },
    Row {
        name: "tls-full",
        work: "TLS, new connection per request, full handshakes",
        kind: rounds(
            Load { path: "/close", without: &["--tls-resume", "off"], ..TLS },
            Measure::CpuPerRequest,
            &[at_most(Without, Shb, 1.0)],
        ),
    },
    Row {
        name: "tls-big",
        work: "TLS, 1 MiB bodies, 10 connections",
        kind: rounds(
            Load { path: "/bytes/1048576", body_bytes: 1 << 20, connections: 10, ..TLS },
            Measure::BytesPerCpu,
            &[at_least(Uring, Wrk, 1.2), beside(Epoll, Wrk), beside(Uring, Shb)],
        ),
    },
    Row {
        name: "tls-memory",
        work: "TLS, keep-alive, 5,000 connections",
        kind: Kind::Rounds(Experiment {
            load: Load { connections: 5_000, seconds: 6, ..TLS },
            measure: Measure::Memory,
            rounds_max: 5,
            summary: Summary::Median,
            comparisons: &[at_most(Uring, Wrk, 1.0), beside(Uring, Shb)],
        }),
    },
    Row {
        name: "phases",
        work: "phases and a JSON file; without: neither",
        kind: Kind::Counted(Overhead {
            load: Load { options: &["--breakout=all", "-o", RESULT], ..SMALL },
            limit: 1.03,
        }),
    },
    Row {
        name: "evidence",
        work: "the evidence for the verdict, as a share of the run",
        kind: Kind::Evidence(Load { target: Target::Serve, seconds: 5, ..SMALL }),
    },
    Row {
        name: "one",
        work: "one connection, one thread, a core to itself",
        kind: rounds(
            Load { connections: 1, ..SMALL },
            Measure::Rate,
            &[
                at_least(Uring, Wrk, 1.0),
                at_least(Uring, BarePoll, 0.95),
                at_least(Uring, BareSpin, 0.95),
                beside(BareSpin, BarePoll),
            ],
        ),
    },
    Row {
        name: "two",
        work: "two threads, 200 connections, unpinned",
        kind: rounds(
            Load { threads: 2, connections: 200, pinned: false, ..SMALL },
            Measure::CpuPerRequest,
            &[at_most(Uring, Wrk, 0.80)],
        ),
    },
    Row {
        name: "rate-1k",
        work: "1,000 requests/s for ten seconds, 10 connections",
        kind: held(
            1_000,
            10,
            &[
                value(EXACT, 2.0),
                value(EXACT, 50.0).of(Measure::Lateness99),
                value(ASLEEP, 40.0),
                value(ASLEEP, 300.0).of(Measure::Lateness99),
                value(EXACT, 0.1).of(Measure::RateError),
            ],
        ),
    },
    Row {
        name: "rate-10k",
        work: "10,000 requests/s, 10 connections",
        kind: held(10_000, 2, &[value(EXACT, 0.1).of(Measure::RateError)]),
    },
    Row {
        name: "rate-50k",
        work: "50,000 requests/s, 100 connections; onrush: as fast as possible",
        kind: rounds(
            Load { rate: 50_000, seconds: 2, ..SMALL },
            Measure::CpuPerRequest,
            &[
                at_most(ASLEEP, Uring, 3.2),
                at_most(SLICED, Uring, 1.25),
                at_most(COARSE, Wrk2, 0.75),
                value(ASLEEP, 100.0).of(Measure::Lateness99),
                value(ASLEEP, 0.1).of(Measure::RateError),
            ],
        ),
    },
    Row {
        name: "target",
        work: "onrush serve for /, 100 connections",
        kind: rounds(SMALL, Measure::TargetCpuPerRequest, &[at_most(Serve, BareServer, 1.1)]),
    },
    Row {
        name: "limit",
        work: "the limit itself: as small, bare loops",
        kind: rounds(
            SMALL,
            Measure::CpuPerRequest,
            &[beside(BareUring, Wrk), beside(BareEpoll, Wrk), beside(Uring, BareUring), beside(Epoll, BareEpoll)],
        ),
    },
    Row {
        name: "discard",
        work: "the limit itself: as big, a bare loop",
        kind: rounds(
            Load { target: Target::Serve, path: "/bytes/1048576", body_bytes: 1 << 20, connections: 10, ..SMALL },
            Measure::BytesPerCpu,
            &[beside(BareDiscard, Wrk), beside(Uring, BareDiscard)],
        ),
    },
    Row { name: "instructions", work: "instructions of proto and stats", kind: Kind::Instructions },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..at].iter().all(|earlier| earlier.name != row.name), "{}", row.name);
        }
    }

    #[test]
    fn options_are_given_only_to_those_who_take_them_and_name_files_that_are_there() {
        for row in ROWS {
            let (load, comparisons) = match &row.kind {
                Kind::Rounds(experiment) => (experiment.load, experiment.comparisons),
                Kind::Counted(overhead) => (overhead.load, &[][..]),
                Kind::Evidence(load) => (*load, &[][..]),
                Kind::Storm | Kind::Steady | Kind::Instructions => continue,
            };
            for pair in load.options.windows(2).filter(|pair| pair[0] == "-s") {
                assert!(crate::root().join(pair[1]).is_file(), "{}", pair[1]);
            }
            let takers = [Uring, Epoll, Wrk, Without].map(Some);
            let asked = comparisons.iter().flat_map(|pair| [Some(pair.ours), pair.other.or(Some(pair.ours))]);
            let is_understood = load.options.is_empty() || asked.into_iter().all(|one| takers.contains(&one));
            assert!(is_understood, "{}", row.name);
        }
    }
}
