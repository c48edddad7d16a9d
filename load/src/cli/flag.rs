//! An option: its spelling, its help and its origin. [`super::flags`] holds the table of all options.

use onrush_plan::Dialect;

use super::spelling::Spelling;

/// An option of a run.
#[derive(Debug)]
pub struct Flag {
    /// Identifies the option in the parser.
    pub id: Id,
    /// Spelling of the option.
    pub spelling: Spelling,
    /// Purpose, in lines. The usage of the compat dialects prints only the first line, which must be true in every
    /// dialect.
    pub help: &'static str,
    /// Possible values, if there are only a few; otherwise empty.
    pub choices: &'static [&'static str],
    /// The tool that introduced the option.
    pub origin: Origin,
    /// True if `--help` lists the option; otherwise only `--help all` does.
    pub is_common: bool,
}

/// Identifies an option in the parser. The table of options has the help for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the table of options describes each")]
pub enum Id {
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

/// The tool that introduced an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// wrk, and therefore also its forks.
    Wrk,
    /// Only wrk-cmm, the centminmod fork.
    WrkCmm,
    /// Only wrk2, the constant-rate fork.
    Wrk2,
    /// onrush itself.
    Ours,
}

/// An option that onrush introduced, with this spelling and no help yet.
pub const fn flag(id: Id, spelling: &'static str) -> Flag {
    Flag { id, spelling: Spelling::parse(spelling), help: "", choices: &[], origin: Origin::Ours, is_common: false }
}

impl Flag {
    /// Sets the help text.
    pub const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// Sets the values that completions and help suggest; most options accept no others.
    pub const fn one_of(self, choices: &'static [&'static str]) -> Self {
        Self { choices, ..self }
    }

    /// Lists the option in `--help`, not only in `--help all`.
    pub const fn common(self) -> Self {
        Self { is_common: true, ..self }
    }

    /// Sets the tool that introduced the option.
    pub const fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// True if the help of the imitated tool lists the option; natively, that of wrk does. Only these options may be
    /// abbreviated.
    pub fn is_listed_by(&self, dialect: Dialect) -> bool {
        match self.origin {
            Origin::Wrk => true,
            Origin::WrkCmm => dialect == Dialect::WrkCmm,
            Origin::Wrk2 => dialect == Dialect::Wrk2,
            Origin::Ours => false,
        }
    }
}
