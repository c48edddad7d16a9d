//! The plan of a run: plain data that can be stored, sent to another machine and split between threads. It is complete
//! before anything is measured.
//!
//! - Work: `target`, `request`, `load`, `levels` (connections over time), `list`, `templates`, `checks`, `schedule`
//!   (when requests are due), `stages`, `stop`, `condition` on a `metric`, `probing`, `search`, `experiment`.
//! - Connections: `resolve`, `connect`, `socket`, `proxy`, `tls`, `http`.
//! - Result: `output`, `sampling`, `column`.
//! - Transport: `part` and `transport` share a plan between threads and machines, `file_contents` holds the
//!   contents of files.
//! - `limits` has every limit with its reason; `secrets` redacts.

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
pub mod resolve;
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
pub mod token;
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
pub use resolve::Addresses;
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
use limits::{ABANDONED_WITHIN, RUN_ON_SLACK, SCRIPT_MAX_MIB};

/// One run with everything decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Where the load goes.
    pub target: Target,
    /// How connections reach the target.
    #[serde(rename = "way")]
    pub connect: ConnectOptions,
    /// The TLS settings; `None`: no TLS.
    pub tls: Option<TlsOptions>,
    /// Which versions of HTTP are spoken, and how.
    pub http: Http,
    /// The content of every request, except for its body.
    pub request: Request,
    /// The body of every request, if there is one.
    pub body: Option<FileContents>,
    /// The list of requests that are sent instead, each a difference from that content.
    pub list: Option<RequestList>,
    /// Conditions for a successful response.
    #[serde(default)]
    pub checks: Checks,
    /// Values of the placeholders in all of that; `None`: they are sent as they are.
    pub templates: Option<Templates>,
    /// The Lua script that shapes requests and their timing.
    pub script: Option<LuaScript>,
    /// The number of threads and connections.
    pub load: Load,
    /// The most requests in flight at a time; `None`: as many as the connections can have.
    pub in_flight_max: Option<u32>,
    /// When requests are due; `None`: whenever a connection is free.
    pub schedule: Option<Schedule>,
    /// The number of connections over time; `None`: the number in `load`.
    pub levels: Option<ConnectionLevels>,
    /// The number of connections that come before the first of these on other machines. Connections take turns with the
    /// source addresses, so their numbers must continue across machines.
    pub first_connection: u32,
    /// The most requests that a connection carries before it is replaced; `None`: any number.
    pub requests_per_connection: Option<PerConnection>,
    /// When the run ends.
    pub stop: Stop,
    /// How long the schedule goes on after its planned end, uncounted, to learn how the requests that were due have
    /// ended, at most; zero: it does not.
    #[serde(default)]
    pub run_on: Duration,
    /// The run ends earlier once all these figures are precise enough; empty: it does not.
    pub until: Vec<StopTerm>,
    /// The length of the warm-up, under load but not measured; the end of the run is counted from its end.
    pub warmup: Duration,
    /// A request that takes longer is counted as a timeout; `None`: never.
    pub timeout: Option<Duration>,
    /// A request that takes longer is abandoned and its connection replaced; `None`: never.
    pub give_up: Option<Duration>,
    /// The tool whose rules and report text apply.
    pub dialect: Dialect,
    /// The backend.
    pub io: Io,
    /// True to measure the phases of every request.
    pub phases: bool,
    /// True to send one request and show it in full, instead of a load test.
    pub once: bool,
    /// Busy-polling of idle waits.
    pub spin: Spin,
    /// The seed of every random sequence of the run.
    pub seed: u64,
    /// Output on this machine.
    #[serde(skip)]
    pub output: OutputOptions,
}

impl Plan {
    /// How long the schedule must go on after its planned end so that these conditions can be judged by all requests
    /// that were due: until each has ended or is older than the largest limit of a percentile, or has been abandoned.
    pub fn needed_run_on<'a>(&self, conditions: impl IntoIterator<Item = &'a Condition>) -> Duration {
        if self.schedule.is_none() || self.stop.duration.is_none() {
            return Duration::ZERO;
        }
        let limit = conditions.into_iter().flat_map(|it| &it.terms).filter_map(Term::limit_of_due).max();
        // The bins of the ages are up to a five-hundredth wide.
        let older = limit.map_or(Duration::ZERO, |limit| limit.saturating_add(limit / 250 + RUN_ON_SLACK));
        self.give_up.map_or(older, |give_up| older.min(give_up.saturating_add(ABANDONED_WITHIN)))
    }

    /// Reads the files that the run needs; they are not opened later.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read.
    pub fn read_files(&mut self) -> Result<(), UnreadableFile> {
        self.script.iter_mut().try_for_each(|script| script.file.read("--script", SCRIPT_MAX_MIB))?;
        self.list.iter_mut().try_for_each(RequestList::read_files)?;
        self.templates.iter_mut().try_for_each(Templates::read_files)?;
        self.tls.iter_mut().try_for_each(TlsOptions::read_files)
    }

    /// The body of every request, which may be empty.
    ///
    /// # Errors
    ///
    /// When its contents did not come with the plan.
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

    /// The most requests that may be in flight without a schedule, one batch of a script counting as one.
    pub fn in_flight_max(&self) -> u32 {
        self.load.connections.saturating_mul(self.http.streams.unwrap_or(1))
    }

    /// The proxy login that every request carries.
    pub fn request_login(&self) -> Option<&str> {
        let proxy = self.connect.proxy.as_ref()?;
        let login = self.request.headers.iter().find(|header| proxy.is_login(header));
        login.map(|(_, value)| value.as_str())
    }

    /// The header fields that the user gave: without the proxy login, and without the default `Host`.
    pub fn own_headers(&self) -> Vec<(String, String)> {
        let authority = self.target.authority();
        let is_own = |header: &&(String, String)| {
            let is_login = self.connect.proxy.as_ref().is_some_and(|proxy| proxy.is_login(header));
            !is_login && (header.0 != "Host" || header.1 != authority)
        };
        self.request.headers.iter().filter(is_own).cloned().collect()
    }
}

/// A Lua script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LuaScript {
    /// The file of the script.
    pub file: FileContents,
    /// The arguments after the URL.
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

/// Busy-polling, instead of blocking, of a worker with few requests in flight: a wakeup takes time that would count as
/// the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spin {
    /// If there are processors to spare.
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
    /// The best that this machine supports.
    #[default]
    Auto,
    /// io_uring; an error if it is not available.
    Uring,
    /// epoll.
    Epoll,
    /// In-memory peers and virtual time, described by a file.
    Sim(PathBuf),
}
