//! The table as data: what is measured, against whom, and what it has to reach.

use super::contender::Contender::{self, *};
use super::load::{Load, Target};

/// One row of the table: one kind of work.
#[derive(Debug)]
pub struct Row {
    /// What `ROWS=` calls it.
    pub name: &'static str,
    /// The work, in words.
    pub work: &'static str,
    /// How it is measured.
    pub kind: Kind,
}

impl Row {
    /// Whether it compares somebody with `contender`.
    pub fn compares_with(&self, contender: Contender) -> bool {
        match &self.kind {
            Kind::Rounds(experiment) => experiment.comparisons.iter().any(|pair| pair.other == Some(contender)),
            Kind::Storm => contender == Wrk,
            Kind::Counted(_) | Kind::Steady | Kind::Instructions => false,
        }
    }
}

/// How a row is measured.
#[derive(Debug)]
pub enum Kind {
    /// Contenders do the same work in turns.
    Rounds(Experiment),
    /// onrush does the same work with something and without it: too small a difference for processor time to show.
    Counted(Overhead),
    /// Thousands of connections at once.
    Storm,
    /// A new connection per request for a long time.
    Steady,
    /// Instructions are counted.
    Instructions,
}

/// Work that contenders do in turns.
#[derive(Debug)]
pub struct Experiment {
    /// The work.
    pub load: Load,
    /// What counts, unless a comparison says otherwise.
    pub measure: Measure,
    /// More rounds than this tell nothing more.
    pub rounds_max: usize,
    /// Who is compared with whom.
    pub comparisons: &'static [Comparison],
}

/// Work that onrush does with `load.options` and, in another run, with `load.without` in their place.
#[derive(Debug)]
pub struct Overhead {
    /// The work.
    pub load: Load,
    /// What the one may cost, as a multiple of the other.
    pub limit: f64,
}

/// What counts in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Processor time of the generator, user and system, for one request.
    CpuPerRequest,
    /// Bytes of bodies for a second of the generator's processor time.
    BytesPerCpu,
    /// The most memory the generator ever had.
    Memory,
    /// Requests per second, by the clock.
    Rate,
    /// Processor time of the target for one request.
    TargetCpuPerRequest,
}

impl Experiment {
    /// What a contender puts its load on: the work's target, except for those who are targets themselves.
    pub fn target(&self, contender: Contender) -> Target {
        match contender {
            Serve => Target::Serve,
            BareServer => Target::Bare,
            _ => self.load.target,
        }
    }

    /// What counts in a comparison.
    pub fn measure(&self, comparison: &Comparison) -> Measure {
        comparison.measure.unwrap_or(self.measure)
    }
}

impl Measure {
    /// The unit of a value.
    pub fn unit(self) -> &'static str {
        match self {
            Self::CpuPerRequest => "µs CPU/request",
            Self::BytesPerCpu => "GB/CPU-second",
            Self::Memory => "MB peak memory",
            Self::Rate => "requests/s",
            Self::TargetCpuPerRequest => "µs CPU/request of the target",
        }
    }

    /// The value of one round.
    pub fn value(self, sample: &Sample, load: &Load) -> f64 {
        let requests = sample.requests as f64;
        match self {
            Self::CpuPerRequest => sample.cpu_us / requests,
            Self::BytesPerCpu => requests * load.body_bytes as f64 / sample.cpu_us / 1e3,
            Self::Memory => sample.memory_bytes / 1e6,
            Self::Rate => sample.per_second,
            Self::TargetCpuPerRequest => sample.target_cpu_us / requests,
        }
    }
}

/// What one round of one contender gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Requests that were answered, as the generator reports.
    pub requests: u64,
    /// Requests per second, as the generator reports.
    pub per_second: f64,
    /// Processor time of the generator.
    pub cpu_us: f64,
    /// The most memory the generator had.
    pub memory_bytes: f64,
    /// Processor time of the target during the round.
    pub target_cpu_us: f64,
}

/// Two contenders, and what their ratio has to be.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Whose value stands above the line.
    pub ours: Contender,
    /// Whose value stands below it; none where the value itself counts.
    pub other: Option<Contender>,
    /// What has to be reached, if anything.
    pub limit: Option<Limit>,
    /// What counts here, if not what counts in the row.
    pub measure: Option<Measure>,
}

impl Comparison {
    /// The same, of something else than counts in the row.
    const fn of(self, measure: Measure) -> Self {
        Self { measure: Some(measure), ..self }
    }
}

/// What has to be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

const fn at_most(ours: Contender, other: Contender, limit: f64) -> Comparison {
    Comparison { limit: Some(Limit::AtMost(limit)), ..beside(ours, other) }
}

const fn at_least(ours: Contender, other: Contender, limit: f64) -> Comparison {
    Comparison { limit: Some(Limit::AtLeast(limit)), ..beside(ours, other) }
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
    seconds: 1,
    pinned: true,
};

/// The same work over TLS.
const TLS: Load = Load { target: Target::Tls, connections: 50, ..SMALL };

/// Requests with bodies, whose length is in the path; the target reads them.
const UPLOAD: Load = Load { target: Target::Serve, options: &["-s", "benches/scripts/upload.lua"], ..SMALL };

/// Where onrush writes a result file, from the root of the repository.
pub const RESULT: &str = "target/bench/result.json";

const ANY: usize = usize::MAX;

/// As many rounds as there are to be.
const fn rounds(load: Load, measure: Measure, comparisons: &'static [Comparison]) -> Kind {
    Kind::Rounds(Experiment { load, measure, rounds_max: ANY, comparisons })
}

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
        work: "response() looks at status, headers and body",
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
        work: "every tenth of 100 connections is answered after 0.1 ms, the others after a second",
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
        work: "10,000 connections, answers after a second",
        kind: Kind::Rounds(Experiment {
            load: Load { target: Target::Serve, path: "/delay/1000", connections: 10_000, seconds: 4, ..SMALL },
            measure: Measure::Memory,
            // Memory differs by pages from run to run, and a round takes four seconds.
            rounds_max: 7,
            comparisons: &[
                Comparison { ours: Uring, other: None, limit: Some(Limit::AtMost(20.0)), measure: None },
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
    Row { name: "storm", work: "19,000 connections that ask once each", kind: Kind::Storm },
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
    fn values_follow_from_what_a_round_gave() {
        let sample =
            Sample { requests: 1_000, per_second: 990.0, cpu_us: 4_000.0, memory_bytes: 2e7, target_cpu_us: 3_000.0 };
        let load = Load { body_bytes: 1 << 20, ..SMALL };
        for (measure, expected) in [
            (Measure::CpuPerRequest, 4.0),
            (Measure::BytesPerCpu, 262.144),
            (Measure::Memory, 20.0),
            (Measure::Rate, 990.0),
            (Measure::TargetCpuPerRequest, 3.0),
        ] {
            assert_eq!(measure.value(&sample, &load), expected, "{measure:?}");
        }
    }

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
