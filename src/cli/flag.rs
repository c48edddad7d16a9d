//! One option: its spellings, its value, its help and its origin. [`super::flags`] has the table of all options.

use crate::plan::Dialect;

/// One option.
#[derive(Debug)]
pub(super) struct Flag {
    /// Its name in the parser.
    pub id: Id,
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// Its name, without dashes.
    pub long: &'static str,
    /// The name of its value in the help; `None` if it takes none. `[=…]` is an optional value, attached with an equals
    /// sign.
    pub value: Option<&'static str>,
    /// What it does. The usage in the compat dialects shows the first line only, which is true in every dialect.
    pub help: &'static [&'static str],
    /// Its group in the help.
    pub group: Group,
    /// The tool it comes from.
    pub origin: Origin,
}

/// The name of an option in the parser; the help in the table describes each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Id {
    Connections,
    Duration,
    Threads,
    Requests,
    Until,
    Method,
    Header,
    Body,
    BasicAuth,
    DisableKeepalive,
    RequestsPerConnection,
    Once,
    Timeout,
    GiveUp,
    Latency,
    Notes,
    Version,
    Help,
    Io,
    Compat,
    Spin,
    Seed,
    Script,
    Rate,
    Stages,
    MaxInflight,
    Arrivals,
    CatchUp,
    MaxLate,
    SendSlice,
    FindMax,
    Over,
    ULatency,
    BatchLatency,
    BindIp,
    ConnectTo,
    Resolve,
    Ipv4,
    Ipv6,
    Unix,
    HttpProxy,
    Rcvbuf,
    Sndbuf,
    Congestion,
    DelayStats,
    Breakout,
    Insecure,
    CaCert,
    Cert,
    Key,
    Sni,
    TlsMin,
    TlsMax,
    TlsCiphers,
    TlsGroups,
    TlsResume,
    Output,
    Sockets,
    SocketsOutput,
    Warmup,
    Percentiles,
    FailIf,
    Strict,
    Annotate,
    Format,
    Label,
    KeepSecrets,
}

/// The sections of the help, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// How much load, and for how long.
    Load,
    /// When requests are sent, if not as soon as a connection is free.
    Pace,
    /// The search for the highest load.
    Search,
    /// What is sent.
    Request,
    /// When a request is too slow.
    Limits,
    /// How connections get to the target.
    Way,
    /// TLS.
    Tls,
    /// What is printed and written.
    Output,
    /// How the generator works.
    Engine,
}

/// The tool an option comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// wrk, and therefore also its forks.
    Wrk,
    /// wrk-cmm, the centminmod fork, only.
    WrkCmm,
    /// wrk2, the constant-rate fork, only.
    Wrk2,
    /// onrush.
    Ours,
}

impl Flag {
    /// Whether a value must follow.
    pub fn takes_value(&self) -> bool {
        self.value.is_some() && !self.may_take_value()
    }

    /// Whether a value may be attached.
    pub fn may_take_value(&self) -> bool {
        self.value.is_some_and(|value| value.starts_with("[="))
    }

    /// Whether it is in a dialect's own list of options; natively that list is wrk's. Only these may be abbreviated.
    pub fn is_listed_by(&self, dialect: Dialect) -> bool {
        match self.origin {
            Origin::Wrk => true,
            Origin::WrkCmm => dialect == Dialect::WrkCmm,
            Origin::Wrk2 => dialect == Dialect::Wrk2,
            Origin::Ours => false,
        }
    }
}

impl Group {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 9] = [
        Self::Load,
        Self::Pace,
        Self::Search,
        Self::Request,
        Self::Limits,
        Self::Way,
        Self::Tls,
        Self::Output,
        Self::Engine,
    ];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Load => "Load",
            Self::Pace => "Request rate",
            Self::Search => "Finding the highest load",
            Self::Request => "Requests",
            Self::Limits => "Timeouts",
            Self::Way => "Connections",
            Self::Tls => "TLS",
            Self::Output => "Output",
            Self::Engine => "Internals",
        }
    }
}
