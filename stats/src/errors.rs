//! The ledger of failures. Each row has a phase, a cause, a count, the first and last time, and one example.
//!
//! The ledger stores causes as data; the report puts them into words.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The part of a request's life in which a failure occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Resolving the host's name.
    Resolve,
    /// Opening a connection.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Sending the request.
    Send,
    /// Waiting for the response or reading its head.
    Head,
    /// Reading the body.
    Body,
    /// Waiting longer than `--timeout`.
    Timeout,
    /// No phase: the response is complete, but its status is unsuccessful: 400 or more, or an unexpected one.
    Status,
    /// No phase: the response is complete, but failed a check, or its trailers report a failed gRPC call.
    Check,
    /// Waiting longer than `--give-up`.
    Abandoned,
}

impl Phase {
    /// The phase's name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Send => "send",
            Self::Head => "head",
            Self::Body => "body",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Check => "check",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Cause of a failure, as data; the example of a row shows what the server did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// The operating system reported a failure of the peer or the network, or a lack of resources, with this error
    /// number.
    Errno(i32),
    /// The kernel of this machine refused an operation, with this error number.
    Kernel(i32),
    /// The response broke the protocol or ended too soon.
    Protocol(onrush_proto::Error),
    /// An attempt to connect was neither accepted nor refused.
    Unanswered,
    /// The TLS handshake failed, or TLS failed later.
    Tls(TlsFailure),
    /// The proxy did not open a tunnel to the target.
    Proxy(ProxyFailure),
    /// The request exceeded `--timeout`.
    Late,
    /// The request exceeded `--timeout` after part of the response's head had arrived.
    LateInHead,
    /// The request exceeded `--timeout` after the head of a response that ends when the connection closes had arrived.
    LateToClose,
    /// The response had this status.
    Status(u16),
    /// The response failed a check: the number, in the plan, of the first one it failed. The example is the actual
    /// value, or the beginning of the body.
    Check(u8),
    /// The response had this `grpc-status`, which is not 0. All undefined values are represented by one more than the
    /// highest defined one.
    GrpcStatus(u8),
    /// The request was abandoned after `--give-up`.
    GivenUp,
}

/// The reason why TLS failed, certificates first. The example of a row is the certificate, the message or the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsFailure {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for other names.
    WrongName,
    /// The certificate is self-signed.
    SelfSigned,
    /// The certificate is not signed by a trusted CA.
    UnknownIssuer,
    /// The certificate has another flaw.
    Certificate,
    /// The server ended the handshake with this alert.
    Alert(u8),
    /// Client and server have no version, suite or group in common.
    Incompatible,
    /// The server answered in plain text.
    PlainText,
    /// The server's bytes are neither TLS nor text.
    NotTls,
    /// The server violated the TLS protocol.
    Misbehaved,
    /// The server closed the connection in the middle of the handshake.
    Closed,
    /// The server chose none of the offered protocols (ALPN).
    NoProtocol,
}

/// The reason why a proxy did not open a tunnel to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProxyFailure {
    /// The proxy responded with this status instead of success.
    Status(u16),
    /// The proxy's response cannot be parsed.
    Answer(onrush_proto::Error),
    /// The proxy responded before the request was sent.
    Early,
    /// The proxy closed the connection before it responded.
    Closed,
    /// The proxy did not respond in time.
    Silent,
}

impl TlsFailure {
    /// True if the client rejected the server's certificate.
    pub fn is_about_certificate(self) -> bool {
        self <= Self::Certificate
    }

    /// True if the server supports none of the offered protocols (ALPN).
    pub fn is_about_protocol(self) -> bool {
        matches!(self, Self::NoProtocol | Self::Alert(120))
    }
}

/// The failures of one phase and cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRow {
    /// The phase in which the requests failed.
    pub phase: Phase,
    /// The cause that the failures share.
    pub cause: Cause,
    /// Number of failures with this phase and cause.
    pub count: u64,
    /// Time of the first failure, in tenths of a second since the start of the run, rounded down.
    pub first_tenth: u32,
    /// Time of the last failure, in tenths of a second since the start of the run, rounded down.
    pub last_tenth: u32,
    /// One example: the address, or the server's bytes. Unescaped; may be empty.
    pub example: Vec<u8>,
}

impl FailureRow {
    /// The order of examples when rows are added: the smaller row provides the example, and an empty example comes
    /// last.
    fn example_order(&self) -> (bool, &[u8]) {
        (self.example.is_empty(), &self.example)
    }

    /// Time of the first failure, in seconds since the start, rounded down to a tenth.
    pub fn first_s(&self) -> f64 {
        f64::from(self.first_tenth) / 10.0
    }

    /// Time of the last failure, in seconds since the start, rounded down to a tenth.
    pub fn last_s(&self) -> f64 {
        f64::from(self.last_tenth) / 10.0
    }
}

/// All failures, one row per phase and cause, in the order of their first failures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    rows: Vec<FailureRow>,
}

impl Ledger {
    /// Records one failure in this tenth of a second of the run. The example is made only for a new row.
    pub fn record(&mut self, phase: Phase, cause: Cause, tenth: u32, example: impl FnOnce() -> Vec<u8>) {
        match self.find(phase, cause) {
            Some(row) => {
                row.count += 1;
                row.first_tenth = row.first_tenth.min(tenth);
                row.last_tenth = row.last_tenth.max(tenth);
            }
            None => {
                self.rows.push(FailureRow {
                    phase,
                    cause,
                    count: 1,
                    first_tenth: tenth,
                    last_tenth: tenth,
                    example: example(),
                });
            }
        }
    }

    /// The rows, in the order of their first failures.
    pub fn rows(&self) -> &[FailureRow] {
        &self.rows
    }

    /// Replaces every example by what `shown` returns for it.
    pub fn rewrite_examples(&mut self, shown: impl Fn(&[u8]) -> Vec<u8>) {
        self.rows.iter_mut().for_each(|row| row.example = shown(&row.example));
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// wrk's five totals, failed checks, and abandoned requests.
    pub fn totals(&self) -> Errors {
        let mut errors = Errors::default();
        for row in &self.rows {
            let total = match row.phase {
                Phase::Resolve | Phase::Connect | Phase::Tls => &mut errors.connect,
                Phase::Send => &mut errors.write,
                Phase::Head | Phase::Body => &mut errors.read,
                Phase::Timeout => &mut errors.timeout,
                Phase::Status => &mut errors.status,
                Phase::Check => &mut errors.check,
                Phase::Abandoned => &mut errors.abandoned,
            };
            *total += row.count;
        }
        errors
    }

    fn find(&mut self, phase: Phase, cause: Cause) -> Option<&mut FailureRow> {
        self.rows.iter_mut().find(|row| row.phase == phase && row.cause == cause)
    }
}

impl AddAssign<&Self> for Ledger {
    fn add_assign(&mut self, other: &Self) {
        for new in &other.rows {
            match self.find(new.phase, new.cause) {
                Some(row) => {
                    if new.example_order() < row.example_order() {
                        row.example.clone_from(&new.example);
                    }
                    row.count += new.count;
                    row.first_tenth = row.first_tenth.min(new.first_tenth);
                    row.last_tenth = row.last_tenth.max(new.last_tenth);
                }
                None => self.rows.push(new.clone()),
            }
        }
        // Neither the order of the rows nor the examples depend on the order of adding up.
        self.rows.sort_unstable_by_key(|row| (row.first_tenth, row.phase, row.cause));
    }
}

/// wrk's five error totals, failed checks, and abandoned requests. A request may be in several totals. A failure
/// without a request, such as a failed connect, is in one. The metric `errors` counts each request once.
#[derive(derive_more::AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
pub struct Errors {
    /// Failures to resolve a name, to connect, or to complete a TLS handshake.
    pub connect: u64,
    /// Failures while a response was awaited or read, TLS alerts included.
    pub read: u64,
    /// Failures while a request was sent.
    pub write: u64,
    /// Requests that exceeded `--timeout`.
    pub timeout: u64,
    /// Responses with an unsuccessful status: 400 or more, or an unexpected one.
    pub status: u64,
    /// Responses that failed a check of their head or body.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub check: u64,
    /// Requests abandoned after `--give-up`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub abandoned: u64,
}

/// Skips zero counts in serialization.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Errors {
    /// Sum of the socket errors, failing statuses, failed checks and abandoned requests.
    pub fn total(&self) -> u64 {
        self.socket() + self.status + self.check + self.abandoned
    }

    /// True without errors of any kind.
    pub fn is_none(&self) -> bool {
        self.total() == 0
    }

    /// wrk's `Socket errors`: connect, read, write and timeout errors. A timeout may have been answered later.
    pub fn socket(&self) -> u64 {
        self.connect + self.read + self.write + self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: Cause = Cause::Errno(111);

    #[test]
    fn equal_phase_and_cause_share_a_row() {
        let mut ledger = Ledger::default();
        ledger.record(Phase::Connect, REFUSED, 5, || b"127.0.0.1:9".to_vec());
        ledger.record(Phase::Connect, REFUSED, 3, || unreachable!("the row has its example"));
        ledger.record(Phase::Send, REFUSED, 9, Vec::new);
        let example = b"127.0.0.1:9".to_vec();
        let rows = [
            FailureRow { phase: Phase::Connect, cause: REFUSED, count: 2, first_tenth: 3, last_tenth: 5, example },
            FailureRow {
                phase: Phase::Send,
                cause: REFUSED,
                count: 1,
                first_tenth: 9,
                last_tenth: 9,
                example: Vec::new(),
            },
        ];
        assert_eq!(ledger.rows(), rows);
    }

    #[test]
    fn merged_ledgers_keep_first_and_last_times() {
        let mut early = Ledger::default();
        early.record(Phase::Head, REFUSED, 1, || b"early".to_vec());
        let mut late = Ledger::default();
        late.record(Phase::Head, REFUSED, 8, || b"late".to_vec());
        late.record(Phase::Timeout, Cause::Late, 8, Vec::new);
        early += &late;
        let first = &early.rows()[0];
        assert_eq!(
            (first.count, first.first_tenth, first.last_tenth, first.example.as_slice()),
            (2, 1, 8, b"early".as_slice())
        );
        assert_eq!(early.rows()[1], late.rows()[1]);
        early.clear();
        assert!(early.rows().is_empty());
    }

    #[test]
    fn every_phase_has_a_total() {
        let mut ledger = Ledger::default();
        let often = [
            (Phase::Resolve, 1),
            (Phase::Connect, 2),
            (Phase::Tls, 4),
            (Phase::Send, 8),
            (Phase::Head, 16),
            (Phase::Body, 32),
            (Phase::Timeout, 64),
            (Phase::Status, 128),
            (Phase::Check, 256),
            (Phase::Abandoned, 512),
        ];
        for (phase, times) in often {
            (0..times).for_each(|_| ledger.record(phase, REFUSED, 0, Vec::new));
        }
        let totals = Errors { connect: 7, read: 48, write: 8, timeout: 64, status: 128, check: 256, abandoned: 512 };
        assert_eq!(ledger.totals(), totals);
    }
}
