//! One option: its spelling, its help and its origin. [`super::flags`] has the table of all options.

use onrush_plan::Dialect;

use super::spelling::Spelling;

#[derive(Debug)]
pub(crate) struct Flag {
    /// Its name in the parser.
    pub id: Id,
    /// How it is written.
    pub spelling: Spelling,
    /// Its purpose, in lines. The usage in the compat dialects shows only the first, which is true in every dialect.
    pub help: &'static str,
    /// The values that it takes, if they are few.
    pub choices: &'static [&'static str],
    /// The tool it comes from.
    pub origin: Origin,
    /// True if `--help` has it, and not only `--help all`.
    pub is_common: bool,
}

/// The name of an option in the parser; the help in the table describes each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    Connections,
    Duration,
    Threads,
    Requests,
    Until,
    Probe,
    Method,
    Header,
    Body,
    Urls,
    UrlsOrder,
    ExpectStatus,
    ExpectBody,
    ExpectHeader,
    Templates,
    Form,
    DataUrlencode,
    BasicAuth,
    DisableKeepalive,
    RequestsPerConnection,
    Once,
    Timeout,
    GiveUp,
    Latency,
    Notes,
    Quiet,
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
    Http2,
    Http2PriorKnowledge,
    Http11,
    AlpnList,
    Streams,
    H2Window,
    H2ConnectionWindow,
    H2MaxFrame,
    H2Table,
    Output,
    Sockets,
    SocketsOutput,
    RequestLog,
    LogSample,
    SampleResponses,
    Warmup,
    Percentiles,
    FailIf,
    Strict,
    Annotate,
    Format,
    Label,
    KeepSecrets,
    Machines,
    Coordinate,
    TokenFile,
    JoinTimeout,
    LossTimeout,
    OnLoss,
}

/// The tool an option comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// wrk, and therefore also its forks.
    Wrk,
    /// wrk-cmm, the centminmod fork, only.
    WrkCmm,
    /// wrk2, the constant-rate fork, only.
    Wrk2,
    /// onrush.
    Ours,
}

/// Our own option with this spelling, without a help yet.
pub(crate) const fn flag(id: Id, spelling: &'static str) -> Flag {
    Flag { id, spelling: Spelling::parse(spelling), help: "", choices: &[], origin: Origin::Ours, is_common: false }
}

impl Flag {
    /// The option with this help.
    pub const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// The option as one that takes only these values, or mostly these.
    pub const fn one_of(self, choices: &'static [&'static str]) -> Self {
        Self { choices, ..self }
    }

    /// The option as one that `--help` has.
    pub const fn common(self) -> Self {
        Self { is_common: true, ..self }
    }

    /// The option as one of another tool.
    pub const fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// True if it is in a dialect's own list of options; natively that list is wrk's. Only these may be abbreviated.
    pub fn is_listed_by(&self, dialect: Dialect) -> bool {
        match self.origin {
            Origin::Wrk => true,
            Origin::WrkCmm => dialect == Dialect::WrkCmm,
            Origin::Wrk2 => dialect == Dialect::Wrk2,
            Origin::Ours => false,
        }
    }
}
