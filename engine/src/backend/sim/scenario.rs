//! A simulated server's behaviour, as a file: `--io sim:FILE` runs any command line against it.
//!
//! ```toml
//! latency_us = 1000.0            # how long after a request its response arrives, at least
//! signal_s = 45.0                # when the run is interrupted, as if by Ctrl-C
//!
//! [capacity]                     # two requests are worked on at a time, for 4 ms on average, and at most 100 wait
//! workers = 2
//! service_us = 4000.0
//! spread = "exponential"
//! queue = 100
//! noise = 0.05                   # up to 5 % more or less in each second
//! cliff = { waiting = 50, slower = 3.0 }   # with more than 50 waiting, everything takes three times as long
//!
//! # Instead of [capacity], [pool] has the names of the embedded target's /pool: workers, ms, sd, dist and slow.
//! # pool = { workers = 4, ms = 5.0, sd = 1.0 }
//!
//! serves = 4                     # of all connections four are served, the others wait unread until one is closed
//!
//! [delay]                        # added to the latency of each response, without a queue, as by /delay/5?sd=1.5:
//! ms = 5.0                       # 5 ms on average, log-normal with a standard deviation of 1.5 ms;
//! sd = 1.5                       # or without sd: dist = "exp", or dist = "two" and slow = 50.0 for a half that is slow
//!
//! [[stall]]                      # no responses in these seconds; those that are due arrive at their end
//! from_s = 20.0
//! for_s = 10.0
//!
//! [[outage]]                     # the server is killed, and starts again: connections are reset, connects refused
//! from_s = 40.0
//! for_s = 3.0
//!
//! [[fault]]                      # every third request loses its connection within the response
//! every = 3
//! what = "reset"
//! after_bytes = 20
//!
//! [[connection_fault]]           # every second connection gets a response two milliseconds after it was accepted
//! every = 2
//! what = { answer = "HTTP/1.1 408 Request Timeout\r\n\r\n" }
//! after_us = 2000.0
//! ```
//!
//! Time is virtual for all of the program: its workers, their supervisor and a search go by the same clock, so that
//! the same command line gives the same output, to the byte, however busy the machine is. Dates are those of 1970.
//! Only a search has more than one run on a clock: scenario times count from its beginning, its pauses included, but
//! each run finds a server without a queue.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Context, ensure};
use onrush_proto::Nanos;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::capacity::share;
use super::nanos;

pub use super::capacity::{Capacity, Cliff, Pool};
pub use super::service::{Dist, Service, Spread};

/// A simulated server, and the network to it. Times count from the start of the run, or of the search that the run
/// belongs to. Every thread has its own server, with an equal share of the capacity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Duration of a connect, in microseconds.
    pub connect_us: f64,
    /// Time from a request to its response, in microseconds, before jitter, delay and queueing.
    pub latency_us: f64,
    /// Random addition to the latency, uniform up to this many microseconds.
    pub jitter_us: f64,
    /// Processing capacity; `None`: any number of requests are served at once. Excludes `pool`.
    pub capacity: Option<Capacity>,
    /// `capacity` in terms of the embedded target's `/pool`.
    pub pool: Option<Pool>,
    /// Number of connections served at a time, divided equally among the threads of a run; zero: unlimited. Other
    /// connections are accepted, but their bytes stay unread. They are served in the order of their first bytes.
    pub serves: u32,
    /// Random delay added to the latency of each response, however many are served at once.
    pub delay: Option<Service>,
    /// The response to every request, head and body, sent as it is.
    pub answer: String,
    /// True if the server closes the connection after each response, whether or not `answer` announces that.
    pub close: bool,
    /// Size in bytes of the pieces in which the response arrives; zero: a single piece.
    pub split: usize,
    /// Time between pieces, in microseconds.
    pub split_pause_us: f64,
    /// Number of bytes of a client's send that are accepted at once; zero: unlimited.
    pub window: usize,
    /// Delay before the rest of a send is accepted, in microseconds.
    pub window_pause_us: f64,
    /// True if `split` and `window` are only upper limits on sizes drawn at random for each piece and each send.
    pub uneven: bool,
    /// Idle time after which the server closes a connection, in microseconds; zero: never.
    pub idle_us: f64,
    /// Number of connections that each thread can have open at a time before local ports run out; zero: unlimited.
    pub ports: usize,
    /// The addresses that accept connections; all others refuse. Empty: all accept.
    pub listens: HashSet<IpAddr>,
    /// Times without responses: those due arrive at the end.
    pub stall: Vec<Span>,
    /// Times without a server: at the start all connections are reset, and until the end connects are refused.
    pub outage: Vec<Span>,
    /// Times in which connects are refused.
    pub refuse: Vec<Span>,
    /// The error number of connects during `refuse` and `outage`.
    pub refuse_errno: i32,
    /// Times in which connects wait in the server's backlog; at the end the server accepts all of them.
    pub backlog: Vec<Span>,
    /// Time of a simulated Ctrl-C, in seconds; `None`: never.
    pub signal_s: Option<f64>,
    /// Times in which onrush itself stalls, as if it had been stopped.
    pub generator_stall: Vec<Span>,
    /// Faults of individual requests.
    pub fault: Vec<Fault>,
    /// Faults of individual connections, whatever is sent on them.
    pub connection_fault: Vec<ConnectionFault>,
}

/// A span of time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Its start, in seconds.
    pub from_s: f64,
    /// Its length, in seconds.
    pub for_s: f64,
}

/// A fault in the response to every n-th request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The requests concerned: the `every`-th, the `2 × every`-th and so on, counted over all connections of a thread.
    pub every: u64,
    /// The kind of fault.
    pub what: Mischief,
    /// Number of response bytes sent before the fault.
    #[serde(default)]
    pub after_bytes: usize,
}

/// A fault on every n-th connection, once on each.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionFault {
    /// The connections concerned, counted like the requests of a [`Fault`].
    pub every: u64,
    /// The kind of fault; [`Mischief::Early`] means [`Mischief::Answer`].
    pub what: Mischief,
    /// Number of bytes received from the client before the fault; zero: on accept.
    #[serde(default)]
    pub after_bytes: usize,
    /// Delay of the fault after that, in microseconds.
    #[serde(default)]
    pub after_us: f64,
}

/// Kinds of request and connection faults.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mischief {
    /// The connection is reset.
    Reset,
    /// The connection is closed.
    Close,
    /// Nothing more arrives.
    Hang,
    /// The thread panics, as if onrush had a bug.
    Bug,
    /// A different response.
    Answer(String),
    /// A different response, sent as soon as the head of the request has arrived, without waiting for the body.
    Early(String),
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            connect_us: 100.0,
            latency_us: 1000.0,
            jitter_us: 0.0,
            capacity: None,
            pool: None,
            serves: 0,
            delay: None,
            signal_s: None,
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
            outage: Vec::new(),
            refuse: Vec::new(),
            refuse_errno: Errno::CONNREFUSED.raw_os_error(),
            backlog: Vec::new(),
            generator_stall: Vec::new(),
            fault: Vec::new(),
            connection_fault: Vec::new(),
        }
    }
}

impl Scenario {
    /// Reads a scenario from a TOML file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not a valid scenario.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{path:?} cannot be read"))?;
        let scenario = toml::from_str(&text).map_err(|error| anyhow::anyhow!(error.message().to_owned()));
        let scenario = scenario.and_then(|scenario: Self| scenario.check().map(|()| scenario));
        scenario.with_context(|| format!("{path:?} is not a valid scenario"))
    }

    /// Checks that no time is negative: virtual time would never get past it.
    fn check(&self) -> anyhow::Result<()> {
        let Self { stall, outage, refuse, backlog, generator_stall, connection_fault, .. } = self;
        let times = [
            ("connect_us", self.connect_us),
            ("latency_us", self.latency_us),
            ("jitter_us", self.jitter_us),
            ("split_pause_us", self.split_pause_us),
            ("window_pause_us", self.window_pause_us),
            ("idle_us", self.idle_us),
            ("signal_s", self.signal_s.unwrap_or_default()),
        ];
        let spans = [stall, outage, refuse, backlog, generator_stall].into_iter().flatten();
        let spans = spans.flat_map(|span| [("from_s", span.from_s), ("for_s", span.for_s)]);
        let faults = connection_fault.iter().map(|fault| ("after_us", fault.after_us));
        for (name, value) in times.into_iter().chain(spans).chain(faults) {
            ensure!(value.is_finite() && value >= 0.0, "{name} = {value}: must be a time of zero or more");
        }
        let services = self.delay.iter().chain(self.pool.as_ref().map(|pool| &pool.service));
        services.into_iter().try_for_each(Service::check)?;
        ensure!(
            self.capacity.is_none() || self.pool.is_none(),
            "capacity and pool exclude each other; leave one of \
                                                                 the two out"
        );
        self.capacity.as_ref().map_or(Ok(()), Capacity::check)
    }

    /// One thread's server, with its share of capacity and served connections. `seed`: the run's, which is the same for
    /// all threads.
    ///
    /// # Errors
    ///
    /// If its capacity cannot be divided by `threads`.
    pub fn share(self, threads: u32, seed: u64) -> anyhow::Result<Self> {
        let capacity = self.capacity_or_pool().map(|capacity| capacity.share(threads, seed)).transpose()?;
        Ok(Self { capacity, pool: None, serves: share("serves", self.serves, threads)?, ..self })
    }

    /// The capacity, in either form.
    pub(super) fn capacity_or_pool(&self) -> Option<Capacity> {
        self.capacity.clone().or(self.pool.map(Capacity::of))
    }

    /// True if the server has a capacity to divide among the threads of a run.
    pub fn is_limited(&self) -> bool {
        self.capacity.is_some() || self.pool.is_some() || self.serves > 0
    }

    /// True if the run has been interrupted by `now`.
    pub fn is_signalled(&self, now: Nanos) -> bool {
        self.signal_s.is_some_and(|at_s| now.0 >= nanos(at_s * 1e6))
    }

    /// The outcome of a connect at the start of the run, for the trial connect of runs that imitate another tool.
    ///
    /// # Errors
    ///
    /// If nothing listens at `address` at that time.
    pub fn probe(&self, address: SocketAddr) -> Result<(), Errno> {
        self.check_accepts(address, Nanos::default())
    }

    /// Arrival time of a response due at `at`, delayed to the end of any stalls.
    pub(super) fn delayed_release(&self, at: Nanos) -> Nanos {
        after(&self.stall, at)
    }

    /// Time at which a connection accepted at `accepted` is reset, if the server is killed at all.
    pub(super) fn killed_at(&self, accepted: Nanos) -> Option<Nanos> {
        let later = self.outage.iter().filter(|span| accepted < span.end());
        later.map(|span| accepted.max(span.begin())).min()
    }

    /// Accepts a connect that arrives at `at`, or returns its error.
    pub(super) fn check_accepts(&self, address: SocketAddr, at: Nanos) -> Result<(), Errno> {
        if self.refuse.iter().chain(&self.outage).any(|span| span.contains(at)) {
            return Err(Errno::from_raw_os_error(self.refuse_errno));
        }
        let is_heard = self.listens.is_empty() || self.listens.contains(&address.ip());
        if is_heard { Ok(()) } else { Err(Errno::CONNREFUSED) }
    }
}

/// Time of an event due at `at`, delayed to the end of any spans.
pub(super) fn after(spans: &[Span], at: Nanos) -> Nanos {
    spans.iter().filter(|span| span.contains(at)).map(|span| span.end()).fold(at, Nanos::max)
}

impl Span {
    fn contains(&self, at: Nanos) -> bool {
        self.begin() <= at && at < self.end()
    }

    fn begin(&self) -> Nanos {
        Nanos(nanos(self.from_s * 1e6))
    }

    /// The first moment after the span.
    pub(super) fn end(&self) -> Nanos {
        Nanos(nanos((self.from_s + self.for_s) * 1e6))
    }
}
