//! The plan of a run: plain data that can be stored, sent to another machine and split between threads.
//!
//! It comes after the command line ([`crate::cli`]) and before any measuring.

pub mod condition;
pub mod experiment;
pub mod filter;
pub mod levels;
pub mod limits;
pub mod load;
pub mod material;
pub mod output;
pub mod part;
pub mod percent;
pub mod place;
pub mod proxy;
pub mod request;
pub mod resolve;
pub mod schedule;
pub mod search;
pub mod secrets;
pub mod socket;
pub mod stop;
pub mod target;
pub mod tls;
pub mod transport;
pub mod watch;
pub mod way;

pub use condition::{Condition, StopTerm};
pub use experiment::Experiment;
pub use filter::Filter;
pub use levels::Levels;
pub use load::{Load, PerConnection};
pub use material::{Material, Unreadable};
pub use output::{Breakout, Format, Kind, Output, Show};
pub use part::Part;
pub use percent::Percent;
pub use place::{Order, Place, PlacedLevel};
pub use proxy::Proxy;
pub use request::Request;
pub use resolve::Addresses;
pub use schedule::Schedule;
pub use search::Search;
pub use socket::SocketOptions;
pub use stop::Stop;
pub use target::Target;
pub use tls::Tls;
pub use watch::SocketWatch;
pub use way::Way;

use serde::{Deserialize, Serialize};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use limits::SCRIPT_MAX_MIB;

/// One run, decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Where the load goes.
    pub target: Target,
    /// How connections get there.
    pub way: Way,
    /// How TLS is spoken with it; `None`: not at all.
    pub tls: Option<Tls>,
    /// What every request says, but for its body.
    pub request: Request,
    /// The body of every request, if there is one.
    pub body: Option<Material>,
    /// The script that has a say in what is sent, and when.
    pub script: Option<Script>,
    /// How many threads and connections.
    pub load: Load,
    /// When requests are due; `None`: whenever a connection is free.
    pub schedule: Option<Schedule>,
    /// How many connections there are over time; `None`: as many as the load says.
    pub levels: Option<Levels>,
    /// How many connections other machines may have before the first of these: those that come from several addresses take
    /// turns.
    pub first_connection: u32,
    /// Requests on one connection at most, before it is replaced; `None`: any number.
    pub requests_per_connection: Option<PerConnection>,
    /// When the run ends.
    pub stop: Stop,
    /// It ends before that when all these figures are known well enough; none: it does not.
    pub until: Vec<StopTerm>,
    /// How long load is put on the target before anything is measured; the end is counted from there.
    pub warmup: Duration,
    /// A request is counted as timed out when it lasts longer; `None`: never.
    pub timeout: Option<Duration>,
    /// A request is abandoned and its connection replaced when it lasts longer; `None`: never.
    pub give_up: Option<Duration>,
    /// Whose rules and whose text.
    pub dialect: Dialect,
    /// Which backend was asked for.
    pub io: Io,
    /// Whether the phases of every request are measured.
    pub phases: bool,
    /// Whether one request is sent and shown in full instead of a test.
    pub once: bool,
    /// Whether idle waits are busy-polled instead of slept through.
    pub spin: Spin,
    /// Start of every random sequence of the run.
    pub seed: u64,
    /// What becomes of the result, here.
    #[serde(skip)]
    pub show: Show,
}

impl Plan {
    /// Reads the files that the run needs; they are not opened later.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read.
    pub fn read_materials(&mut self) -> Result<(), Unreadable> {
        self.script.iter_mut().try_for_each(|script| script.file.read("the script (-s)", SCRIPT_MAX_MIB))?;
        self.tls.iter_mut().try_for_each(Tls::read_materials)
    }

    /// The body of every request, which may be empty.
    ///
    /// # Errors
    ///
    /// When it did not come with the plan.
    pub fn body(&self) -> Result<&[u8], Unreadable> {
        self.body.as_ref().map_or(Ok(&[]), Material::contents)
    }

    /// The same, shared with callers that keep it.
    ///
    /// # Errors
    ///
    /// As [`Plan::body`].
    pub fn shared_body(&self) -> Result<Arc<[u8]>, Unreadable> {
        self.body.as_ref().map_or_else(|| Ok(Arc::default()), Material::shared)
    }

    /// Whether stages say how long the run lasts.
    pub fn is_staged(&self) -> bool {
        let stages = self.schedule.iter().flat_map(|schedule| &schedule.stages);
        self.levels.is_some() || stages.into_iter().any(|stage| stage.length.is_some())
    }

    /// The login for a proxy that every request carries.
    pub fn request_login(&self) -> Option<&str> {
        let proxy = self.way.proxy.as_ref()?;
        let login = self.request.headers.iter().find(|header| proxy.is_login(header));
        login.map(|(_, value)| value.as_str())
    }

    /// The header fields that the user gave: not the login, and not the `Host` that every request has unless the user says
    /// otherwise.
    pub fn own_headers(&self) -> Vec<(String, String)> {
        let authority = self.target.authority();
        let is_own = |header: &&(String, String)| {
            let is_login = self.way.proxy.as_ref().is_some_and(|proxy| proxy.is_login(header));
            !is_login && (header.0 != "Host" || header.1 != authority)
        };
        self.request.headers.iter().filter(is_own).cloned().collect()
    }
}

/// A Lua script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Its file.
    pub file: Material,
    /// The words after the URL.
    pub args: Vec<String>,
}

/// Whose options, rules and report are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// onrush's own: wrk's text with the latency as measured.
    Native,
    /// wrk 4.2.
    Wrk,
    /// The centminmod fork of wrk.
    WrkCmm,
    /// The constant-rate fork of wrk.
    Wrk2,
}

impl Dialect {
    /// Whether another tool is imitated.
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

/// Whether a worker with few requests in flight looks again and again instead of sleeping: waking up costs time that is
/// not the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spin {
    /// Where there are processors to spare.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How the operating system is asked for input and output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Io {
    /// The best there is.
    Auto,
    /// io_uring, or an error.
    Uring,
    /// epoll.
    Epoll,
    /// In-memory peers and virtual time, described by a file.
    Sim(PathBuf),
}
