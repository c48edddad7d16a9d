//! The plan of a run: plain data that can be stored, sent to another machine and split between threads. It is complete
//! before anything is measured. No file is read here, and no name resolved.
//!
//! - Work: `target`, `request`, `load`, `levels` (connections over time), `list`, `templates`, `checks`, `schedule`
//!   (when requests are due), `stages`, `stop`, `condition` on a `metric`, `probing`, `search`, `experiment`.
//! - Connections: `connect`, `socket`, `proxy`, `tls`, `http`.
//! - Result: `output`, `sampling`, `column`.
//! - Transport: `part` and `transport` share a plan between threads and machines, `file_contents` holds the
//!   contents of files.
//! - `limits` states every limit with its reason; `secrets` redacts.

#![forbid(unsafe_code)]

pub mod checks;
pub mod column;
pub mod condition;
pub mod connect;
pub mod experiment;
pub mod file_contents;
pub mod filter;
#[cfg(any(test, feature = "testing"))]
pub mod fixtures;
pub mod http;
pub mod levels;
mod limited_by;
pub mod limits;
pub mod list;
pub mod load;
pub mod machines;
pub mod metric;
pub mod output;
pub mod part;
pub mod percent;
pub mod percent_encoding;
pub mod position;
mod probing;
pub mod proxy;
mod random;
pub mod request;
pub mod sampling;
pub mod schedule;
pub mod search;
pub mod secrets;
pub mod socket;
mod stages;
pub mod stop;
pub mod target;
mod templates;
pub mod tls;
pub mod transport;

pub use checks::Checks;
pub use condition::{Condition, StopTerm};
pub use connect::ConnectOptions;
pub use experiment::Experiment;
pub use file_contents::{FileContents, UnreadableFile};
pub use filter::SocketFilter;
pub use http::Http;
pub use levels::ConnectionLevels;
pub use limited_by::LimitedBy;
pub use list::RequestList;
pub use load::{Load, PerConnection};
pub use metric::Metric;
pub use output::{Breakout, Format, Output, OutputKind, OutputOptions, RequestLogOptions, SampleOptions};
pub use part::Partition;
pub use percent::Percent;
pub use position::{FactorLevel, Order, Position};
pub use probing::Probing;
pub use proxy::Proxy;
pub use random::Random;
pub use request::Request;
pub use sampling::SocketSampling;
pub use schedule::Schedule;
pub use search::Search;
pub use socket::SocketOptions;
pub use stages::RunStage;
pub use stop::Stop;
pub use target::Target;
pub use templates::Templates;
pub use tls::TlsOptions;

use serde::{Deserialize, Serialize};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use condition::Term;
use limits::{ABANDONED_WITHIN, RUN_ON_SLACK};

/// A run with everything decided: no default is left open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The server to load, as parsed from the URL.
    pub target: Target,
    /// How connections are made to the target.
    #[serde(rename = "way")]
    pub connect: ConnectOptions,
    /// The TLS settings; `None`: no TLS.
    pub tls: Option<TlsOptions>,
    /// HTTP versions and settings.
    pub http: Http,
    /// The content of every request, except for its body.
    pub request: Request,
    /// The body of every request, if any.
    pub body: Option<FileContents>,
    /// The list of requests sent instead of the single request; each entry states only how it differs from that one.
    pub list: Option<RequestList>,
    /// Conditions for a successful response.
    #[serde(default)]
    pub checks: Checks,
    /// Sources of the values for placeholders in the requests; `None`: requests are sent as they are, braces included.
    pub templates: Option<Templates>,
    /// The Lua script that shapes requests and their timing, if any.
    pub script: Option<LuaScript>,
    /// The number of threads and connections.
    pub load: Load,
    /// Limit on requests in flight; `None`: as many as the connections can take.
    pub in_flight_max: Option<u32>,
    /// The due times of requests; `None`: a request is due whenever a connection is free.
    pub schedule: Option<Schedule>,
    /// The number of connections over time; `None`: the number in `load`.
    pub levels: Option<ConnectionLevels>,
    /// Number of this machine's first connection, counted over all machines: connections are assigned source addresses
    /// in turn, so their numbers must continue from machine to machine.
    pub first_connection: u32,
    /// Number of requests after which a connection is replaced; `None`: unlimited.
    pub requests_per_connection: Option<PerConnection>,
    /// The limits at which the run ends.
    pub stop: Stop,
    /// Longest time for which the schedule continues, uncounted, after its planned end so that the outcome of due
    /// requests becomes known; zero: it does not continue.
    #[serde(default)]
    pub run_on: Duration,
    /// Stop terms: the run ends early once all these metrics are precise enough; empty: no early end.
    pub until: Vec<StopTerm>,
    /// Length of the warm-up, under load but not measured. The duration of the run is counted from the end of the
    /// warm-up.
    pub warmup: Duration,
    /// Time after which a request counts as a timeout; `None`: never.
    pub timeout: Option<Duration>,
    /// Time after which a request is abandoned and its connection replaced; `None`: never.
    pub give_up: Option<Duration>,
    /// The tool whose rules and report text apply.
    pub dialect: Dialect,
    /// The backend for input and output.
    pub io: Io,
    /// True to measure the phases of every request.
    pub phases: bool,
    /// True to send a single request and show it in full, instead of a load test.
    pub once: bool,
    /// When to busy-poll instead of blocking.
    pub spin: Spin,
    /// The seed of every random sequence of the run.
    pub seed: u64,
    /// Output on this machine; not part of a plan sent to another one.
    #[serde(skip)]
    pub output: OutputOptions,
}

impl Plan {
    /// Time for which the schedule must go on after its planned end so that these conditions can be judged by all due
    /// requests: until each has ended or been abandoned, or is older than the largest percentile limit.
    pub fn needed_run_on<'a>(&self, conditions: impl IntoIterator<Item = &'a Condition>) -> Duration {
        if self.schedule.is_none() || self.stop.duration.is_none() {
            return Duration::ZERO;
        }
        let limit = conditions.into_iter().flat_map(|it| &it.terms).filter_map(Term::limit_of_due).max();
        // Bins of ages are up to a five-hundredth of their values wide.
        let older = limit.map_or(Duration::ZERO, |limit| limit.saturating_add(limit / 250 + RUN_ON_SLACK));
        self.give_up.map_or(older, |give_up| older.min(give_up.saturating_add(ABANDONED_WITHIN)))
    }

    /// The body of every request, which may be empty.
    ///
    /// # Errors
    ///
    /// If the contents of the body were neither read nor attached.
    pub fn body(&self) -> Result<&[u8], UnreadableFile> {
        self.body.as_ref().map_or(Ok(&[]), FileContents::contents)
    }

    /// The body, shared with callers that keep it.
    ///
    /// # Errors
    ///
    /// As for [`Plan::body`].
    pub fn shared_body(&self) -> Result<Arc<[u8]>, UnreadableFile> {
        self.body.as_ref().map_or_else(|| Ok(Arc::default()), FileContents::shared)
    }

    /// Limit on requests in flight without a schedule; one batch of a script counts as one.
    pub fn in_flight_max(&self) -> u32 {
        self.load.connections.saturating_mul(self.http.streams.unwrap_or(1))
    }

    /// The proxy login sent with every request; `None` without a proxy, without a login, or through a tunnel.
    pub fn request_login(&self) -> Option<&str> {
        let proxy = self.connect.proxy.as_ref()?;
        let login = self.request.headers.iter().find(|header| proxy.is_login(header));
        login.map(|(_, value)| value.as_str())
    }

    /// The header fields given by the user, without the proxy login and the default `Host`.
    pub fn own_headers(&self) -> Vec<(String, String)> {
        let authority = self.target.authority();
        let is_own = |header: &&(String, String)| {
            let is_login = self.connect.proxy.as_ref().is_some_and(|proxy| proxy.is_login(header));
            !is_login && (header.0 != "Host" || header.1 != authority)
        };
        self.request.headers.iter().filter(is_own).cloned().collect()
    }
}

/// A Lua script and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LuaScript {
    /// The script's file.
    pub file: FileContents,
    /// The arguments that follow the URL, passed to the script.
    pub args: Vec<String>,
}

/// The tool whose options, rules and report are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// onrush: wrk's text with the latency as measured.
    #[default]
    Native,
    /// wrk 4.2.
    Wrk,
    /// The centminmod fork of wrk.
    WrkCmm,
    /// The constant-rate fork of wrk.
    Wrk2,
}

impl Dialect {
    /// True if the rules of another tool are followed.
    pub fn is_compat(self) -> bool {
        self != Self::Native
    }

    /// The name of the tool whose rules are followed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "onrush",
            Self::Wrk => "wrk",
            Self::WrkCmm => "wrk-cmm",
            Self::Wrk2 => "wrk2",
        }
    }
}

/// When a worker with only a few requests in flight busy-polls instead of blocking. A wake-up takes time that would be
/// counted as the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spin {
    /// Busy-polls if there are processors to spare.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The backend for input and output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Io {
    /// The best backend supported by this machine.
    #[default]
    Auto,
    /// io_uring; an error if it is not available.
    Uring,
    /// epoll, whether or not io_uring is available.
    Epoll,
    /// In-memory peers and virtual time, described by a file.
    Sim(PathBuf),
}
