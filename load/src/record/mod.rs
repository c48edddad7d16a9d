//! The result of a run as one document: the content of a `.json` file, from which every other file is rendered.
//!
//! These structs are the format. `docs/result.schema.json` is generated from them. Every change of it raises [`SCHEMA`], the
//! only version that is read. A key that does not apply is left out.

mod addresses;
mod axis;
mod bins;
pub(crate) mod build;
mod check;
mod counts;
mod distribution;
mod ended;
mod endpoints;
pub mod evidence;
pub mod gate;
mod http2;
mod imitated;
mod in_flight;
pub mod json;
pub mod ledger;
mod level;
mod machine;
mod moment;
mod named;
mod note;
mod of_name;
mod open_loop;
mod plan;
mod read;
mod request_log;
pub mod result;
mod runs;
mod schedule;
pub mod schema;
mod shown;
mod socket_samples;
mod sockets;
mod sources;
mod stage;
#[cfg(test)]
mod tests;
mod thread;
mod thread_rates;
mod unavailable;
mod until;
pub(crate) mod value;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_plan::{Dialect, Percent, Position};
use onrush_stats::{Errors, RowFigures};
use serde::{Deserialize, Serialize};

use evidence::Evidence;
use gate::Gate;

pub use crate::figures::rate::{count_per_second, counted_requests};
pub use addresses::{Addresses, LeftOut};
pub use build::NO_RESPONSE;
pub use distribution::{Distribution, distribution};
pub use ended::Ended;
pub use endpoints::{Endpoints, Offer};
pub use http2::{AskedHttp2, Http2, OTHER};
pub use imitated::Wrk2;
pub use in_flight::InFlight;
pub use level::Level;
pub use machine::Machine;
pub use moment::Moment;
pub use named::counted_twice;
pub use note::{Note, NoteId, Weight};
pub use of_name::OfName;
pub use open_loop::{Between, OpenLoop};
pub use plan::{Different, Header, Plan, Script as PlannedScript};
pub use read::{damaged, other_file};
pub use request_log::RequestLog;
pub use result::{RunFacts, RunResult};
pub use schedule::{Schedule, Stage};
pub use shown::Shown;
pub use socket_samples::{Extent, SocketSamples};
pub use sockets::{Buffer, Sockets};
use sources::nanos;
pub use sources::{Source, Sources};
pub use stage::StageRow;
pub use thread::{Lateness, Thread, Waits};
pub use thread_rates::ThreadRates;
pub use unavailable::{Span, Unavailable};
pub use until::{Known, Unknown, Until};
pub use verdict::{Finding, VERDICT_MIN, Verdict};

/// Maximum number of statuses that are named one by one.
pub const STATUSES_NAMED: usize = 6;

/// The version of the format.
pub const SCHEMA: u32 = 4;

/// A thread that the script ended before the run was over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct StoppedThread {
    /// Its number, from 1.
    pub thread: u64,
    /// When it ended, in seconds since measuring began; zero in the warm-up.
    pub at_s: f64,
}

/// What one run, or several together, measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Document {
    /// The version of the format.
    pub schema: u32,
    /// The tool that measured.
    pub tool: Tool,
    /// The machine that it ran on.
    pub host: Host,
    /// The command line, quoted for a shell; secrets are redacted.
    pub command: String,
    /// The labels of the run (`--label`); in a sum: those that all runs share.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The run's place in an experiment, if it is part of one; left out of sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Position>,
    /// What the run was asked to do; secrets are redacted.
    pub plan: Plan,
    /// When measuring began: RFC 3339, UTC.
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "String"))]
    pub started_at: Moment,
    /// How long was measured, in seconds. In a sum: how long at least one of its runs took place.
    pub duration_s: f64,
    /// How long the machine was suspended during the run, in seconds, warm-up included; no other figure includes that
    /// time. In a sum: the total of all runs.
    pub suspended_s: f64,
    /// A signal ended the run early.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// How it ended, if not because its time was up; left out of sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Why the run broke off, or why something that was measured is missing; left out of a complete run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// How many threads returned nothing at the end: what only they knew is missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_threads: u64,
    /// The threads that the script ended before the run was over; left out of sums.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped_threads: Vec<StoppedThread>,
    /// The runs that this is the sum of; only in sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// What became of the requests.
    pub requests: Requests,
    /// All bytes received, heads included.
    pub bytes_received: u64,
    /// All bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Complete responses per second; if the run ended with its last request, without those to requests of the warm-up.
    pub rate_per_s: f64,
    /// Requests in flight, as an average over the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    /// Connections.
    pub connections: Connections,
    /// The addresses of the target, where one was left out because it refused connections at the start; left out of sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Addresses>,
    /// The sockets of connections, where socket options were set or sockets sampled. In a sum: of all runs, if all have
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<Sockets>,
    /// How often each status was received.
    pub status: BTreeMap<u16, u64>,
    /// Where a redirect leads: the `Location` of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// A response says that the port expects TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expects_tls: bool,
    /// wrk's five error totals.
    pub errors: Errors,
    /// What went wrong, row by row; the totals are sums of it.
    pub ledger: Vec<LedgerRow>,
    /// The views of the latency.
    pub latency: Latency,
    /// What was measured of requests that were due by a schedule, besides their latencies; left out of a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// The phases of connections and requests, where they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The TLS handshakes and what was negotiated, where TLS was spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// What the connections of HTTP/2 saw, if there might be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2>,
    /// Ages of the requests that were abandoned or in flight at the end: each lasted at least that long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Distribution>,
    /// The run row by row. A row is a second, or a multiple of it doubled until there are at most 1,200 rows. Their
    /// lengths add up to the duration, and their content to the totals.
    pub timeline: Vec<Row>,
    /// The stages of the run, if it has several (`--stages`); left out where a tool is imitated. In a sum: those of all runs
    /// together, if all have the same and took place at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRow>,
    /// What became of the requests by the names that their list gives them, in its order; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<OfName>,
    /// The log of requests, if there was one; in a sum: all of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_log: Option<RequestLog>,
    /// The machines that carried the run out together; left out if it was one, and of sums.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
    /// The generator's threads.
    pub threads: Vec<Thread>,
    /// Their requests per second, as in the row `Req/Sec`; zeros if there are no samples.
    pub thread_rates: ThreadRates,
    /// The cost of the script, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// How many requests the script sends at once, if that is more than one and was known before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// The script delayed requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pauses: bool,
    /// `delay()` of the script returned something other than a number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pauses_unread: bool,
    /// The precision of the figures of `--until`; left out of sums, because the batches that it follows from are not in a
    /// document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The facts that the verdict rests on; left out with `--once`, and if nothing was measured. In a sum: those of all its
    /// runs together, and left out if one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What could not be observed, and why.
    pub unseen: Vec<String>,
    /// What limited the run, decided by the evidence; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The outcome of the gates, if there are any. In a sum: of those that all runs have, judged anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// What the report showed.
    pub shown: Shown,
    /// What the user should know about the result, most important first; secrets are redacted.
    pub notes: Vec<Note>,
    /// The result itself, of which everything above follows: it alone is read back.
    #[serde(skip)]
    pub result: Box<RunResult>,
}

/// The tool that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The I/O backend: `uring`, `epoll` or `sim`.
    pub backend: String,
}

/// The machine that ran the generator. What could not be read is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Host {
    /// The identifier of this boot of the machine (`/proc/sys/kernel/random/boot_id`): results with the same one are of
    /// one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The kernel's release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The processor's architecture.
    pub architecture: String,
    /// The processor's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Processors this process may use.
    pub cpus: usize,
    /// Limit on open files during the run, as raised for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files_soft: Option<u64>,
    /// Highest limit that could have been set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files_hard: Option<u64>,
    /// Kernel settings that matter for connections.
    pub sysctls: BTreeMap<String, String>,
}

/// What became of the requests. `started` and `carried` together are `completed`, `abandoned`, `open`, `unknown` and those that failed.
/// With a schedule, `due` + `due_before` = `started` + `dropped` + `unsent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Requests {
    /// Requests whose first byte was handed to the kernel.
    pub started: u64,
    /// Requests that were in flight when measuring began, at the end of a warm-up.
    pub carried: u64,
    /// Requests whose response was read to its last byte, of any status.
    pub completed: u64,
    /// Of those `completed`, requests whose response took longer than `--timeout`, has an unsuccessful status or failed a check, each
    /// once.
    pub unsuccessful: u64,
    /// Of those `completed`, requests whose response came before they had been sent whole, so that the rest was left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub early: u64,
    /// Requests that lasted longer than `--timeout`, completed or not.
    pub timeout: u64,
    /// Requests abandoned.
    pub abandoned: u64,
    /// Requests in flight when the run ended.
    pub open: u64,
    /// Requests in flight on a machine or in a thread that was lost, when it was last heard: what became of them is unknown. Left
    /// out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Requests that are `open` and have lasted longer than `--timeout`.
    pub open_late: u64,
    /// Requests over HTTP/1.1 that reached a connection when the server had ended it, which it said (408): they were sent again,
    /// and their latency counts from the first time. Those over HTTP/2 are in `http2`. Left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returned: u64,
    /// Interim responses (1xx), which count nowhere else.
    pub interim: u64,
    /// Responses of whose head, body or trailers the script saw only the beginning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_responses: u64,
    /// With a schedule: requests that were due while the run was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// With a schedule: requests that became due in the warm-up and had not been sent by its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_before: Option<u64>,
    /// With a schedule: requests that were sent more than a millisecond after they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// With a schedule: requests that were not sent because they would have been too late (`--max-late`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// With a schedule: requests that were due and had not been sent when the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent: Option<u64>,
}

/// Connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Connections {
    /// How many were asked for: with `--stages c=` the highest number, with `--max-inflight` the initial one. In a sum:
    /// the highest number at one time.
    pub asked: u64,
    /// How many different ones were established, including those that `--max-inflight` added later. In a sum: the
    /// highest number in runs at one time.
    pub established: u64,
    /// How many were opened while the run was measured, replacements included.
    pub opened: u64,
    /// With `--requests-per-connection`: how many onrush closed after their last request, because the server did not
    /// close them within a second or could not know that it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_first: Option<u64>,
    /// How many the server closed with nothing in flight, and without having said that it would; each was reconnected. Left out
    /// without a schedule if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_closed: Option<u64>,
    /// The limit on open files, if it was too low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
}

/// Too few open files for all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Shortage {
    /// How many open files the run needs.
    pub needed: u64,
    /// How many there may be.
    pub allowed: u64,
    /// For how many connections there is room, if that is known to be too few for all of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u64>,
}

/// One thing that went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct LedgerRow {
    /// The phase of a request in which it happened.
    pub phase: String,
    /// Why.
    pub cause: String,
    /// How often.
    pub count: u64,
    /// When it happened first, in seconds since measuring began, rounded down to a tenth of its run.
    pub first_s: f64,
    /// When it happened last, likewise.
    pub last_s: f64,
    /// One example: an address, or a part of what the server sent, the beginning unless it is `...`, with non-text bytes as `\xNN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// What the example is; left out if it is an address or a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_is: Option<ExampleKind>,
    /// What to do about it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// This machine ran out of something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

/// What the example of a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExampleKind {
    /// A part of what the server sent.
    Received,
    /// What was wrong in detail.
    Detail,
}

/// The views of the latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Latency {
    /// As measured: from the handover of the request's first byte to the kernel to the response's last byte. Where a
    /// tool is imitated, in whole microseconds and without late responses.
    pub service: Distribution,
    /// How many responses took longer than an hour, and are recorded as one hour.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clamped: u64,
    /// With a schedule, as measured from the moment at which a request was due to the response's last byte; complete
    /// responses only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Distribution>,
    /// Of these (with a schedule: of `scheduled`), the responses with a status of 300 to 599, by its class: `3xx`, `4xx`,
    /// `5xx`; what is left are those with 2xx. Only where there are any, and where no tool is imitated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_class: BTreeMap<String, Distribution>,
    /// Of batches, to the last byte of their last response; only where a script sends several requests at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Distribution>,
    /// The mean that wrk would print for this run, in microseconds; only where no tool is imitated, and neither in sums nor
    /// with a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrk_mean_us: Option<f64>,
    /// As the imitated tool would rewrite it; only where one is imitated, and not with a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrk: Option<Distribution>,
    /// wrk's mean spacing of responses on one connection, in whole microseconds, from which `wrk` follows; zero if there
    /// were too few. Left out of sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrk_spacing_us: Option<u64>,
    /// As wrk2 records it; only where wrk2 is imitated.
    #[serde(skip)]
    pub wrk2: Option<Wrk2>,
}

/// The phases of connections and requests, each as measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Phases {
    /// Opening a connection, including the TLS handshake.
    pub connect: Distribution,
    /// The TLS handshake, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Distribution>,
    /// From the first byte of the request sent to the first byte of its response received.
    pub ttfb: Distribution,
    /// From the first byte of the response received to its last.
    pub ttlb: Distribution,
}

/// TLS: the handshakes that were measured, and what was negotiated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Tls {
    /// How many handshakes there were while the run was measured.
    pub handshakes: u64,
    /// How many of them resumed an earlier session.
    pub resumed: u64,
    /// What the connections used, including those from the warm-up, whose handshakes were not measured.
    pub negotiated: Vec<Agreed>,
}

/// What client and server negotiated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Agreed {
    /// The version: `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite, by its IANA name.
    pub suite: String,
    /// The group of the key exchange, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The protocol (ALPN), if it is `h2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The number of connections.
    pub connections: u64,
}

/// The cost of a script.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Script {
    /// The part (0 to 1) of the threads' time that was spent inside it, estimated from some of its calls.
    pub share: f64,
}

/// A row of the timeline: a span of the run, usually a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Row {
    /// When it began, in seconds since measuring began.
    pub start_s: f64,
    /// How long it lasted, in seconds; the last one may be shorter.
    pub length_s: f64,
    /// How many runs took place during it; only in sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// Requests started.
    pub started: u64,
    /// Responses complete.
    pub completed: u64,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Errors, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// Requests without a good response in time, each once, if there were any: what the metric `errors` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erroneous: Option<u64>,
    /// The mean service latency, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us: Option<f64>,
    /// The largest service latency, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
    /// The latencies since requests were due, if there is a schedule and any request completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<RowLatency>,
    /// Requests that were sent more than a millisecond after they were due, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Requests that were not sent because they would have been too late, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// How many machines were lost by its end, so that some of their part is missing, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines_lost: Option<u64>,
    /// The measurements of which these are the figures.
    #[serde(skip)]
    pub measured: RowFigures,
}

/// The latencies of a row since requests were due.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct RowLatency {
    /// Their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us: Option<f64>,
    /// The largest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
}

/// Whether a count is left out.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Document {
    /// The latency that the text shows: with a schedule since requests were due; otherwise as the imitated tool
    /// rewrites it, or as measured.
    pub fn shown_latency(&self) -> &Distribution {
        let Latency { service, scheduled, wrk, .. } = &self.latency;
        scheduled.as_ref().or(wrk.as_ref()).unwrap_or(service)
    }

    /// The open loop's figures if the text's percentiles are estimates that include requests without a complete
    /// response: natively, with a schedule.
    pub fn bounded(&self) -> Option<&OpenLoop> {
        self.open_loop.as_ref().filter(|_| self.plan.dialect != Dialect::Wrk2.name())
    }

    /// The largest latency that the text shows, in microseconds, with that of responses after the end of the run.
    pub fn max_us(&self) -> Option<f64> {
        let later = self.bounded().and_then(|open_loop| open_loop.later.as_ref()?.max_us);
        self.shown_latency().max_us.map(|max_us| max_us.max(later.unwrap_or(0.0)))
    }

    /// A percentile of the latency that the text shows; `None`: there is no latency, or this percentile was not
    /// recorded.
    pub fn shown_percentile_us(&self, percent: Percent) -> Option<f64> {
        let between = self.bounded().and_then(|open_loop| open_loop.percentiles_us.get(&percent));
        between.map(|between| between.lower).or_else(|| self.shown_latency().percentiles_us.get(&percent).copied())
    }

    /// How long was measured, as a whole number of nanoseconds.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(nanos(self.duration_s))
    }

    /// The requests that count in the rate, which the document has only implicitly.
    pub fn counted(&self) -> u64 {
        ((self.rate_per_s * self.duration_s).round() as u64).min(self.requests.completed)
    }

    /// The document as text: the figures line by line, and the result in the last line but one.
    pub fn to_json(&self) -> String {
        let figures = json::pretty(self);
        let figures = figures.strip_suffix("\n}").expect("a document is an object with several keys");
        format!("{figures},\n  \"result\": {}\n}}\n", json::line(&self.result))
    }
}
