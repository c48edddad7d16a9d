//! What a simulated server does, as a file: `--io sim:FILE` runs any command line against it.
//!
//! ```toml
//! latency_us = 1000.0            # a request is answered so much later
//!
//! [[stall]]                      # nothing is answered in these seconds; what is due then comes at their end
//! from_s = 20.0
//! for_s = 10.0
//!
//! [[fault]]                      # every third request loses its connection inside the answer
//! every = 3
//! what = "reset"
//! after_bytes = 20
//!
//! [[connection_fault]]           # every second connection is greeted, two milliseconds after it was accepted
//! every = 2
//! what = { answer = "HTTP/1.1 408 Request Timeout\r\n\r\n" }
//! after_us = 2000.0
//! ```

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::Context;
use onrush_proto::Nanos;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A simulated server. Times count from the start of the run; every thread has a server of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// How long a connect takes, in microseconds.
    pub connect_us: f64,
    /// How long after a request its answer comes, in microseconds.
    pub latency_us: f64,
    /// Up to so much is added to the latency, evenly distributed, in microseconds.
    pub jitter_us: f64,
    /// The answer, with everything that belongs to it.
    pub answer: String,
    /// Whether the server closes after each answer (that it does so is for `answer` to announce).
    pub close: bool,
    /// The answer comes in pieces of so many bytes; zero: whole.
    pub split: usize,
    /// How long after each other the pieces come, in microseconds.
    pub split_pause_us: f64,
    /// A send takes so many bytes at once; zero: any number.
    pub window: usize,
    /// How long the rest of a send waits, in microseconds.
    pub window_pause_us: f64,
    /// Whether `split` and `window` are the most, and each piece and each send is of any size up to that.
    pub uneven: bool,
    /// For how long a connection may have nothing to answer before the server closes it, in microseconds; zero: any time.
    pub idle_us: f64,
    /// How many connections can be open at a time before local ports run out; zero: any number.
    pub ports: usize,
    /// The addresses on which somebody listens; empty: all.
    pub listens: HashSet<IpAddr>,
    /// When nothing is answered.
    pub stall: Vec<Span>,
    /// When connects are refused.
    pub refuse: Vec<Span>,
    /// The error number of a refused connect.
    pub refuse_errno: i32,
    /// When connects wait in the server's backlog: it takes all of them at the end.
    pub backlog: Vec<Span>,
    /// When onrush itself stands still, as if it had been stopped.
    pub standstill: Vec<Span>,
    /// What goes wrong with single requests.
    pub fault: Vec<Fault>,
    /// What goes wrong with single connections, whatever is asked on them.
    pub connection_fault: Vec<ConnectionFault>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Its start, in seconds.
    pub from_s: f64,
    /// Its length, in seconds.
    pub for_s: f64,
}

/// Something that goes wrong with every so many requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The requests it concerns: the `every`-th, the `2 × every`-th and so on, counted over all connections of a thread.
    pub every: u64,
    /// What happens.
    pub what: Mischief,
    /// How much of the answer is sent before it happens.
    #[serde(default)]
    pub after_bytes: usize,
}

/// Something that goes wrong with every so many connections, once on each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionFault {
    /// The connections it concerns, counted like the requests of a [`Fault`].
    pub every: u64,
    /// What happens; [`Mischief::Early`] is the same as [`Mischief::Answer`].
    pub what: Mischief,
    /// How many bytes of the client have arrived when it happens; zero: it happens as soon as the server has accepted.
    #[serde(default)]
    pub after_bytes: usize,
    /// How much later it happens, in microseconds.
    #[serde(default)]
    pub after_us: f64,
}

/// What can go wrong with a request or a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mischief {
    /// The connection is reset.
    Reset,
    /// The connection is closed.
    Close,
    /// Nothing more comes.
    Hang,
    /// The thread falls, as over a bug of ours.
    Bug,
    /// Other bytes are answered.
    Answer(String),
    /// Other bytes are answered as soon as the head of the request is there, before its body.
    Early(String),
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            connect_us: 100.0,
            latency_us: 1000.0,
            jitter_us: 0.0,
            answer: "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!".into(),
            close: false,
            split: 0,
            split_pause_us: 1.0,
            window: 0,
            window_pause_us: 10.0,
            uneven: false,
            idle_us: 0.0,
            ports: 0,
            listens: HashSet::new(),
            stall: Vec::new(),
            refuse: Vec::new(),
            refuse_errno: Errno::CONNREFUSED.raw_os_error(),
            backlog: Vec::new(),
            standstill: Vec::new(),
            fault: Vec::new(),
            connection_fault: Vec::new(),
        }
    }
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or says something a scenario does not know.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read scenario {path:?}"))?;
        let scenario = toml::from_str(&text).map_err(|error| anyhow::anyhow!(error.message().to_owned()));
        scenario.with_context(|| format!("cannot understand scenario {path:?}"))
    }

    /// How a connect at the start of the run is answered, for the probe that compatible runs make.
    ///
    /// # Errors
    ///
    /// When nobody listens there.
    pub fn probe(&self, address: SocketAddr) -> Result<(), Errno> {
        self.accepts(address, Nanos::default())
    }

    /// When an answer that is due at `at` comes: at the end of the stalls that hold it up.
    pub(super) fn release(&self, at: Nanos) -> Nanos {
        after(&self.stall, at)
    }

    /// Whether a connect that arrives at `at` is accepted.
    pub(super) fn accepts(&self, address: SocketAddr, at: Nanos) -> Result<(), Errno> {
        if self.refuse.iter().any(|span| span.contains(at)) {
            return Err(Errno::from_raw_os_error(self.refuse_errno));
        }
        let is_heard = self.listens.is_empty() || self.listens.contains(&address.ip());
        if is_heard { Ok(()) } else { Err(Errno::CONNREFUSED) }
    }
}

/// When something takes place that is due at `at`: at the end of the spans that hold it up.
pub(super) fn after(spans: &[Span], at: Nanos) -> Nanos {
    spans.iter().filter(|span| span.contains(at)).map(|span| span.end()).fold(at, Nanos::max)
}

impl Span {
    /// Whether this moment lies in it.
    fn contains(&self, at: Nanos) -> bool {
        nanos(self.from_s * 1e6) <= at.0 && at < self.end()
    }

    /// The first moment after it.
    pub(super) fn end(&self) -> Nanos {
        Nanos(nanos((self.from_s + self.for_s) * 1e6))
    }
}

/// Microseconds as nanoseconds.
pub(super) fn nanos(microseconds: f64) -> u64 {
    (microseconds * 1e3).round() as u64
}
