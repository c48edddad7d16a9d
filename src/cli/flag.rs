//! One option: its spellings, its value, its help, and the tool that it comes from. [`super::flags`] has the table of
//! all options.

use crate::plan::Dialect;

/// One option.
#[derive(Debug)]
pub(super) struct Flag {
    /// What the parser calls it.
    pub id: Id,
    /// Its letter, if it has one.
    pub short: Option<char>,
    /// Its name, without dashes.
    pub long: &'static str,
    /// The name of its value in the help; `None` if it takes none. One after `[=` may be left out and is
    /// otherwise attached.
    pub value: Option<&'static str>,
    /// What it does. The first line holds in every dialect and is all that a compat usage shows.
    pub help: &'static [&'static str],
    /// Its group in the help.
    pub group: Group,
    /// Who knows it.
    pub origin: Origin,
}

/// What the parser calls an option; the help in the table says what each one does.
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

/// A heading of the help, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// How much, how long.
    Load,
    /// When requests are sent, if not whenever a connection is free.
    Pace,
    /// How the highest load is found.
    Search,
    /// What is sent.
    Request,
    /// When a request is too slow.
    Limits,
    /// From where to where.
    Way,
    /// How `https` is spoken.
    Tls,
    /// What is printed.
    Output,
    /// How the generator works.
    Engine,
}

/// The tool an option comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// wrk, and therefore its forks too.
    Wrk,
    /// The centminmod fork only.
    WrkCmm,
    /// The constant-rate fork only.
    Wrk2,
    /// onrush.
    Ours,
}

impl Flag {
    /// Whether a value has to follow.
    pub fn takes_value(&self) -> bool {
        self.value.is_some() && !self.may_take_value()
    }

    /// Whether a value may be attached.
    pub fn may_take_value(&self) -> bool {
        self.value.is_some_and(|value| value.starts_with("[="))
    }

    /// Whether a dialect's own list of options has it; natively that list is wrk's. Only these may be abbreviated.
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
            Self::Load => "How much load",
            Self::Pace => "At which rate",
            Self::Search => "How much the server can carry",
            Self::Request => "What is sent",
            Self::Limits => "When a request is too slow",
            Self::Way => "How the server is reached",
            Self::Tls => "How https:// is spoken",
            Self::Output => "What is printed",
            Self::Engine => "How it works",
        }
    }
}
