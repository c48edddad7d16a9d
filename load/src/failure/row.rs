//! Describes a row of the ledger: the failure and its remedy.

use std::net::SocketAddr;

use onrush_plan::Plan;
use onrush_plan::http::HttpVersion;
use onrush_proto::{Code, Error};
use onrush_stats::{Cause, FailureRow, Phase};
use onrush_text::units::{format_count, format_duration_spaced, format_thousands};
use rustix::io::Errno;

use super::{check, errno, proxy, tls};
use crate::run::{Outcome, Ports, Shortage, host};

/// A row of the ledger, and everything else that its description and remedy depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The row; for a Unix socket that refused a connection, with its path as the example.
    pub row: FailureRow,
    /// True if other connections were established.
    pub others_connected: bool,
    /// True if other requests were answered.
    pub others_answered: bool,
    /// True if the server sent nothing at all on any connection.
    pub is_mute: bool,
    /// True if the run was a single request (`--once`).
    pub once: bool,
    /// True if the server reported that its port expects TLS.
    pub expects_tls: bool,
    /// HTTP versions offered in TLS handshakes; empty without TLS.
    pub offered: Vec<HttpVersion>,
    /// True if HTTP/2 was used without TLS, with prior knowledge.
    pub is_http2: bool,
    /// True if requests go to a proxy without a tunnel.
    pub is_proxied: bool,
    /// The local ports of this machine, if they were exhausted.
    pub ports: Option<Ports>,
    /// Number of connections that onrush closed because the server, which should have, did not.
    pub closed_first: u64,
    /// Number of open files that the run needs; `None` if the hard limit does not allow that many.
    pub files_needed: Option<u64>,
    /// The open-file limit, if it is too low and the caller has set this field.
    pub shortage: Option<Shortage>,
}

/// True if the cause is a resource of this machine that was exhausted, such as ports, files or
/// memory.
pub fn is_local_exhaustion(cause: Cause) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
    match cause {
        Cause::Kernel(_) => true,
        Cause::Errno(number) => errno::known_errno(number).is_some_and(|errno| short.contains(&errno)),
        _ => false,
    }
}

impl Failure {
    /// Collects what the description of a row depends on. Leaves [`Failure::shortage`] empty.
    pub fn from_row(plan: &Plan, outcome: &Outcome, row: &FailureRow) -> Self {
        let files_needed = host::descriptors_needed_by_plan(plan);
        let mut row = row.clone();
        if let Some(path) = plan.connect.unix.as_ref().filter(|_| row.phase == Phase::Connect) {
            row.example = path.display().to_string().into_bytes();
        }
        Self {
            row,
            once: plan.once,
            others_connected: outcome.totals.counters.connects > 0,
            others_answered: outcome.totals.counters.completed > 0,
            is_mute: outcome.totals.counters.bytes_received == 0 && outcome.totals.counters.completed == 0,
            expects_tls: outcome.totals.expects_tls,
            offered: offered_versions(plan).to_vec(),
            is_http2: plan.tls.is_none() && plan.http.may_be_http2(),
            is_proxied: plan.connect.proxy.as_ref().is_some_and(|proxy| proxy.tunnel_request(&plan.target).is_none()),
            ports: outcome.ports,
            closed_first: outcome.totals.counters.closed_first,
            files_needed: outcome.descriptors.is_none().then_some(files_needed),
            shortage: None,
        }
    }

    /// True if a resource of this machine was exhausted.
    pub fn is_local_exhaustion(&self) -> bool {
        is_local_exhaustion(self.row.cause)
    }

    /// The protocol that the server was expected to speak.
    pub fn expected_protocol(&self) -> &'static str {
        match (self.row.cause, &self.offered[..]) {
            (Cause::Protocol(Error::AnsweredInHttp1), _) | (_, [HttpVersion::Http2]) => "HTTP/2",
            (_, []) if self.is_http2 => "HTTP/2",
            (_, [] | [HttpVersion::Http11]) => "HTTP/1.1",
            _ => "HTTP",
        }
    }

    /// The remedy; `None` if none is known.
    pub fn remedy(&self) -> Option<String> {
        let text = match self.row.cause {
            Cause::Errno(number) => return self.errno_remedy(errno::known_errno(number)?),
            Cause::Kernel(number) => match errno::known_errno(number) {
                Some(Errno::NOMEM | Errno::NOBUFS) => "this machine or its control group is short of memory",
                _ => "try other system calls: --io epoll or --io uring",
            },
            Cause::Tls(failure) => {
                return tls::tls_remedy(failure, &self.row.example, &self.offered).map(str::to_owned);
            }
            Cause::Proxy(failure) => proxy::proxy_remedy(failure),
            Cause::Unanswered if self.row.phase == Phase::Tls => tls::IS_IT_TLS,
            Cause::Unanswered => self.unanswered_connect_reason(),
            Cause::Late => "change the limit with --timeout",
            Cause::LateInHead => "an empty line ends the head, after its last field",
            Cause::LateToClose => "the response has neither Content-Length nor Transfer-Encoding: chunked",
            Cause::GivenUp => "change the limit with --give-up",
            Cause::Protocol(Error::ClosedBeforeResponse) if self.may_expect_tls() => {
                return Some(self.silent_server_advice());
            }
            Cause::Protocol(Error::ClosedBeforeResponse | Error::ConnectionEnded) | Cause::Status(_) => return None,
            Cause::Protocol(Error::ClosedInHead | Error::ClosedInBody) => tls::SERVER_LOG,
            Cause::Protocol(Error::SpeaksTls | Error::AnsweredInHttp1) if self.others_answered => MIXED,
            Cause::Protocol(Error::NotHttp) if self.others_answered && tls::begins_with_http2(&self.row.example) => {
                MIXED
            }
            Cause::Protocol(Error::NotHttp) if self.others_answered => tls::SERVER_LOG,
            Cause::Protocol(Error::SpeaksTls) if self.is_proxied => proxy::PLAIN_PORT,
            Cause::Protocol(Error::SpeaksTls) => SPEAKS_TLS,
            Cause::Protocol(Error::NotHttp | Error::EarlyBytes) if tls::begins_with_http2(&self.row.example) => {
                SPEAKS_HTTP2
            }
            // Python's server answers bytes that are not HTTP/1 with a page that has no head.
            Cause::Protocol(Error::NotHttp) if self.is_http2 && self.row.example.starts_with(b"<") => WITHOUT_HTTP2,
            Cause::Protocol(Error::NotHttp) => NOT_HTTP,
            Cause::Protocol(Error::EarlyBytes) if !self.row.example.starts_with(b"H") => NOT_HTTP,
            Cause::Protocol(Error::AnsweredInHttp1) if self.is_proxied => PROXY_WITHOUT_HTTP2,
            Cause::Protocol(Error::AnsweredInHttp1) if !self.offered.is_empty() => AGREED_IN_VAIN,
            Cause::Protocol(Error::AnsweredInHttp1) if self.expects_tls => EXPECTS_TLS,
            Cause::Protocol(Error::AnsweredInHttp1) => WITHOUT_HTTP2,
            Cause::Protocol(Error::Reset(CALM | REFUSED) | Error::GoAway(CALM)) => {
                "fewer --streams or a lower rate (-R) may help"
            }
            Cause::Protocol(Error::Reset(HTTP_1_1) | Error::GoAway(HTTP_1_1)) if self.offered.is_empty() => HTTP1_ONLY,
            Cause::Protocol(Error::Reset(HTTP_1_1) | Error::GoAway(HTTP_1_1)) => HTTP1_WITH_TLS,
            Cause::Protocol(Error::GoAway(_)) if !self.row.example.is_empty() => return None,
            Cause::Protocol(Error::NoStreams | Error::NoWindow | Error::Reset(_) | Error::GoAway(_)) => tls::SERVER_LOG,
            Cause::Protocol(_) | Cause::Check(_) | Cause::GrpcStatus(_) if self.once => return None,
            Cause::Protocol(_) | Cause::Check(_) | Cause::GrpcStatus(_) => "--once shows a response in full",
        };
        Some(text.to_owned())
    }

    fn errno_remedy(&self, errno: Errno) -> Option<String> {
        let text = match errno {
            Errno::MFILE if self.shortage.is_some() => {
                return self.shortage.map(|it| file_limit_message(it.needed, it.hard));
            }
            Errno::MFILE => return Some(file_limit_remedy(self.files_needed?)),
            Errno::NETUNREACH | Errno::HOSTUNREACH => return Some(self.way_there()),
            Errno::ADDRNOTAVAIL if self.ports.is_some() => {
                return self.ports.map(|ports| port_remedy(ports, self.closed_first));
            }
            Errno::ADDRNOTAVAIL => PORTS_IN_USE,
            Errno::TIMEDOUT if self.row.phase == Phase::Connect => self.unanswered_connect_reason(),
            Errno::TIMEDOUT => HOST_GONE,
            Errno::CONNRESET | Errno::PIPE if self.may_expect_tls() => return Some(self.silent_server_advice()),
            Errno::CONNRESET => LIMIT_ON_CONNECTIONS,
            Errno::PIPE => LIMIT_ON_KEEP_ALIVE,
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// True if the port may expect TLS: requests were in plain text, and no response byte arrived.
    fn may_expect_tls(&self) -> bool {
        let is_plain = self.offered.is_empty() && !self.is_proxied;
        self.is_mute && is_plain && matches!(self.row.phase, Phase::Send | Phase::Head)
    }

    /// The advice on a server that sent nothing.
    fn silent_server_advice(&self) -> String {
        let (before, after) = match self.is_http2 {
            true => ("leave out --http2 if it speaks HTTP/1.1, or ", ""),
            false => ("", ", or --http2 if it speaks nothing else"),
        };
        format!("the server sent nothing at all: {before}try https:// if the port expects TLS{after}")
    }

    /// The likely reason for connection attempts without a response.
    fn unanswered_connect_reason(&self) -> &'static str {
        if self.others_connected {
            "others were accepted, so either the server's accept queue was full (see its listen backlog and \
             net.core.somaxconn) or a firewall limits connections"
        } else {
            "a firewall drops the packets, or the address is wrong"
        }
    }

    fn way_there(&self) -> String {
        match std::str::from_utf8(&self.row.example).unwrap_or_default().parse::<SocketAddr>() {
            Ok(address) => format!("'ip route get {}' shows the route", address.ip()),
            Err(_) => "'ip route' shows the routes".to_owned(),
        }
    }
}

/// The HTTP versions offered in TLS handshakes; empty without TLS.
pub(super) fn offered_versions(plan: &Plan) -> &[HttpVersion] {
    plan.tls.as_ref().map_or(&[], |tls| &tls.alpn)
}

/// The remedy for responses which say that the port expects TLS.
pub const EXPECTS_TLS: &str = "the server expects TLS at this port; write https://";
/// The remedy for a proxy that answers HTTP/2 requests in HTTP/1.1.
const PROXY_WITHOUT_HTTP2: &str = "the proxy does not speak HTTP/2: leave out --http2, or write https:// for a tunnel";
/// The remedy for a server that responds in TLS to plain text.
const SPEAKS_TLS: &str = "write https://";
/// The remedy for a server that answers HTTP/2 in an older version.
const WITHOUT_HTTP2: &str = "leave out --http2, or write https:// if the port speaks TLS";
/// The remedy for a server that agreed on HTTP/2 during the TLS handshake, but does not speak it.
const AGREED_IN_VAIN: &str = "the server agreed on HTTP/2 (ALPN) but does not speak it: use --alpn-list http/1.1";
/// A possible reason if other requests are answered.
const MIXED: &str = "other requests were answered: is one of several servers at this address set up differently?";
/// Code with which a server rejects a client that sends too many requests.
const CALM: Code = Code::ENHANCE_YOUR_CALM;
const REFUSED: Code = Code::REFUSED_STREAM;
/// Code with which a server asks for HTTP/1.1.
const HTTP_1_1: Code = Code::HTTP_1_1_REQUIRED;
/// The remedy for HTTP_1_1_REQUIRED.
const HTTP1_ONLY: &str = "the server wants this request in HTTP/1.1: leave out --http2";
/// The remedy for HTTP_1_1_REQUIRED with TLS, where ALPN may have agreed on HTTP/2 by default.
const HTTP1_WITH_TLS: &str =
    "the server wants this request in HTTP/1.1: leave out --http2, or add --alpn-list http/1.1";
/// The remedy for a server that starts with HTTP/2.
const SPEAKS_HTTP2: &str = "the server speaks HTTP/2: add --http2";
/// The question about a response that is not HTTP.
const NOT_HTTP: &str = "does the port speak HTTP?";
/// The remedy for exhausted local ports, if their number is unknown.
const PORTS_IN_USE: &str =
    "a closed connection keeps its port for a minute: keep connections alive or use more addresses";
/// The likely reason for an established connection whose packets are no longer acknowledged.
const HOST_GONE: &str = "the host, or the path to it, stopped responding";
/// Where to look after a reset.
const LIMIT_ON_CONNECTIONS: &str = "the server's log or its limits on connections may say why";
/// Where to look after a write to a connection closed by the server.
const LIMIT_ON_KEEP_ALIVE: &str = "the server's log or its limits on keep-alive may say why";
pub(super) const MORE_PORTS: &str =
    "use more source addresses (-b) or more addresses of the target, or widen net.ipv4.ip_local_port_range";

/// The remedy for a low open-file limit that needs no privileges to raise.
fn file_limit_remedy(needed: u64) -> String {
    format!("raise the limit with 'ulimit -n {needed}'")
}

/// The sentence on an open-file limit that is too low, with the remedy.
pub fn file_limit_message(needed: u64, allowed: u64) -> String {
    let (allowed, wanted) = (format_thousands(allowed), format_thousands(needed));
    format!("the limit is {allowed} open files, but {wanted} are needed; {}", host::open_files_command(needed))
}

/// The remedy for exhausted local ports.
fn port_remedy(Ports { usable, time_wait }: Ports, closed_first: u64) -> String {
    let ours = match closed_first {
        0 => String::new(),
        count => {
            format!(
                " (onrush had to close {} itself, so the TIME_WAIT state is here)",
                format_count(count, "connection")
            )
        }
    };
    format!(
        "there are {} per pair of addresses, and {} on this machine are in TIME_WAIT{ours}: keep connections alive, \
         {MORE_PORTS}",
        format_thousands(usable),
        format_count(time_wait, "connection")
    )
}

/// Describes the cause of a row as [`describe_cause`] does, except for TLS handshakes without a response.
pub fn describe_row_cause(row: &FailureRow, plan: &Plan) -> String {
    match row {
        FailureRow { phase: Phase::Tls, cause: Cause::Unanswered, .. } => "no response to a TLS handshake".to_owned(),
        FailureRow { cause, .. } => describe_cause(*cause, plan),
    }
}

/// Describes a cause, with limits and checks from the plan, but without a remedy.
pub fn describe_cause(cause: Cause, plan: &Plan) -> String {
    let timeout = || format_duration_spaced(plan.timeout.unwrap_or_default());
    match cause {
        Cause::Errno(number) => errno::describe_errno(number),
        Cause::Kernel(number) => format!("refused by this machine's kernel: {}", errno::describe_errno(number)),
        Cause::Protocol(error) => error.to_string(),
        Cause::Tls(failure) => tls::describe_tls_failure(failure),
        Cause::Proxy(failure) => proxy::describe_proxy_failure(failure),
        Cause::Unanswered => "no response to a connection attempt".to_owned(),
        Cause::Late => format!("no complete response within {}", timeout()),
        Cause::LateInHead => format!("no end of the response's head within {}", timeout()),
        Cause::LateToClose => {
            format!("no end of the response within {}; it lasts until the server closes the connection", timeout())
        }
        Cause::GivenUp => format!("abandoned after {}", format_duration_spaced(plan.give_up.unwrap_or_default())),
        Cause::Status(status) => format!("status {status}"),
        Cause::Check(number) => check::describe_failed_check(&plan.checks, number.into()),
        Cause::GrpcStatus(status) => check::describe_grpc_status(status),
    }
}

/// wrk's term for the errors of a phase.
pub fn wrk_error_class(phase: Phase) -> &'static str {
    match phase {
        Phase::Resolve | Phase::Connect | Phase::Tls => "connect",
        Phase::Send => "write",
        Phase::Head | Phase::Body => "read",
        Phase::Timeout => "timeout",
        Phase::Status => "status",
        Phase::Check => "check",
        Phase::Abandoned => "abandoned",
    }
}
