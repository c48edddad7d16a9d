//! Builds the document from the plan and the outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_plan::checks::Check;
use onrush_plan::tls::{GROUPS, SUITES, TlsName, TlsVersion};
use onrush_plan::{Dialect, Plan, secrets};
use onrush_stats::timeline::{RowFigures, Timeline};
use onrush_stats::{ByClass, Cause, Count, Counters, Handshakes, Latencies, Negotiated, Phase, Stats, TlsFailure};
use onrush_text::escape;

use super::distribution::figure;
use super::evidence::Evidence;
use super::evidence::measured::unseen;
use super::{
    Addresses, Agreed, Connections, Distribution, Document, Ended, Exact, ExampleKind, Host, Http2, InFlight, Latency,
    LedgerRow, Moment, OfName, OpenLoop, Phases, RequestLog, Requests, Row, RowLatency, SCHEMA, Script, Shortage,
    Shown, StageRow, StoppedThread, Thread, ThreadRates, Tls, Tool, Wrk2, distribution,
};
use crate::failure::{self, Failure, describe_row_cause};
use crate::figures::correct::{batch_spacing_us, rewrite_as_wrk};
use crate::figures::rate::{count_per_second, counted_requests};
use crate::run::{self, MachineShare, Outcome, host, nanos};

/// Nanoseconds in a second.
const NS_PER_S: f64 = 1e9;

/// The part of a sum by which the one that follows from a rounded mean may differ.
const SUM_SLACK: u128 = 1_000_000_000;

/// The flaw of a run in which no request completed.
pub const NO_RESPONSE: &str = "no response";

impl Document {
    /// Why the run is not a complete one with responses, if so.
    pub fn flaw(&self) -> Option<String> {
        let nothing = self.requests.completed == 0;
        let reason = self.incomplete.clone().or(nothing.then(|| NO_RESPONSE.to_owned()));
        reason.or(self.interrupted.then(|| "it was interrupted".to_owned()))
    }

    /// The document of a run that has not been judged yet.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let Stats {
            counters,
            statuses,
            ledger,
            latency,
            by_class,
            by_name,
            batch_latency,
            open_loop,
            phases,
            censored,
            ..
        } = &outcome.totals;
        let (expects_tls, location) = (&outcome.totals.expects_tls, &outcome.totals.location);
        let open_loop = open_loop.as_deref();
        let view = |measured: &onrush_stats::Distribution<u64>| distribution(measured, plan.output.percents.as_deref());
        let started_at = Moment(u64::try_from(outcome.started_at.as_micros()).unwrap_or(u64::MAX));
        let duration_s = outcome.elapsed.as_secs_f64();
        let of_http2 = outcome.http2.as_ref().map(|_| 0);
        let requests = Requests::of(counters, open_loop);
        let requests = Requests { returned: of_http2.unwrap_or(requests.returned), ..requests };
        let is_rewritten = open_loop.is_none() && plan.dialect.is_compat();
        let evidence = Evidence::of(plan, outcome);
        let rewritten = || open_loop.is_none().then(|| rewrite_as_wrk(plan, outcome));
        Self {
            schema: SCHEMA,
            tool: Tool::own(outcome.backend),
            host: Host::of(&outcome.host),
            command: outcome.known.hide_in(&plan.output.command),
            labels: labels(plan, &outcome.known),
            experiment: plan.output.position.clone(),
            plan: super::Plan::of(plan, &outcome.known),
            started_at,
            duration_s,
            suspended_s: outcome.suspended.as_secs_f64(),
            sources: None,
            interrupted: matches!(outcome.ended, run::RunEnd::Signal | run::RunEnd::NeverBegun),
            ended: Ended::of(outcome.ended),
            lost_threads: outcome.count_lost_threads(),
            stopped_threads: outcome.stopped.iter().map(StoppedThread::of).collect(),
            incomplete: failure::incompleteness_reason(outcome).map(|words| outcome.known.redact_in(&words)),
            requests,
            bytes_received: counters.bytes_received,
            bytes_sent: counters.bytes_sent,
            rate_per_s: count_per_second(counted_requests(outcome), duration_s),
            in_flight: InFlight::of(&counters.occupancy, outcome.elapsed).filter(|_| !outcome.has_lost_threads()),
            connections: Connections {
                asked: u64::from(plan.load.connections),
                established: counters.slots_opened,
                opened: counters.connects,
                closed_first: plan.requests_per_connection.map(|_| counters.closed_first),
                idle_closed: open_loop.map(|_| counters.idle_closed).or(some(counters.idle_closed)),
                shortage: Shortage::of(plan, outcome),
            },
            addresses: Addresses::of(outcome),
            sockets: super::Sockets::of(plan, outcome),
            status: statuses.iter().collect(),
            location: location.as_ref().map(|location| outcome.known.redact_in(&escape(location.as_bytes()))),
            expects_tls: *expects_tls,
            errors: ledger.totals(),
            ledger: LedgerRow::all(plan, outcome),
            latency: Latency {
                service: view(latency),
                clamped: latency.clamped,
                scheduled: open_loop.map(|open_loop| view(&open_loop.scheduled)),
                by_class: by_class.as_deref().map(|by_class| classes(by_class, view)).unwrap_or_default(),
                batch: batch_latency.as_deref().map(view),
                wrk_mean_us: rewritten()
                    .filter(|_| !plan.dialect.is_compat() && !plan.once)
                    .and_then(|rewritten| rewritten.mean_us()),
                wrk: rewritten().filter(|_| is_rewritten).map(|rewritten| view(&rewritten.distribution())),
                wrk_spacing_us: is_rewritten.then(|| batch_spacing_us(plan, outcome)),
                wrk2: open_loop
                    .and_then(|open_loop| open_loop.wrk2.as_deref())
                    .map(|recorded| Wrk2::of(recorded, plan.output.u_latency)),
            },
            open_loop: open_loop.and_then(|open_loop| {
                let rates =
                    (count_per_second(open_loop.due, duration_s), count_per_second(requests.started, duration_s));
                OpenLoop::of(plan, outcome, rates)
            }),
            phases: phases.as_deref().map(|phases| Phases::of(phases, view)),
            censored: censored.as_deref().map(view),
            timeline: rows(&outcome.timeline, nanos(outcome.elapsed), &outcome.machines),
            stages: if plan.dialect.is_compat() { Vec::new() } else { StageRow::of(plan, outcome) },
            names: OfName::of(plan, by_name.as_deref()),
            request_log: RequestLog::of(plan, counters),
            machines: outcome.machines.iter().map(super::Machine::of).collect(),
            threads: outcome.workers.iter().map(|share| Thread::of(share, plan, outcome)).collect(),
            thread_rates: ThreadRates::of(&outcome.totals.rates, plan.dialect == Dialect::Wrk2),
            script: (plan.script.is_some() && !outcome.has_lost_threads())
                .then(|| Script { share: outcome.script_share() }),
            batch: (outcome.batch > 1).then_some(outcome.batch),
            pauses: outcome.pauses,
            pauses_unread: outcome.pauses_unread,
            tls: Tls::of(&outcome.totals.handshakes),
            http2: outcome.http2.as_ref().map(|seen| Http2::of(seen, counters.returned, &outcome.totals.activity)),
            until: outcome.until.as_ref().map(super::Until::of),
            unseen: evidence.as_ref().map_or_else(Vec::new, |_| unseen(plan, outcome)),
            evidence,
            verdict: None,
            gates: Vec::new(),
            shown: Shown::of(&plan.output),
            notes: Vec::new(),
        }
    }
}

impl StoppedThread {
    fn of(&(thread, at): &(usize, Duration)) -> Self {
        Self { thread: thread as u64, at_s: at.as_secs_f64() }
    }
}

impl Tool {
    fn own(backend: &str) -> Self {
        let (name, version) = (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { name, version, backend: backend.to_owned() }
    }
}

/// The latencies by the class of the status.
fn classes(
    by_class: &ByClass<u64>,
    view: impl Fn(&onrush_stats::Distribution<u64>) -> Distribution,
) -> BTreeMap<String, Distribution> {
    let of = |class| Some((format!("{class}xx"), view(by_class.latencies_of_class(class)?)));
    ByClass::<u64>::CLASSES.into_iter().filter_map(of).collect()
}

/// The labels without secrets.
fn labels(plan: &Plan, known: &secrets::KnownSecrets) -> BTreeMap<String, String> {
    let shown = |key: &String, level: &String| known.redact_typed(level, |level| secrets::redact_value(key, level));
    plan.output.labels.iter().map(|(key, level)| (key.clone(), shown(key, level))).collect()
}

/// The rows of the timeline of a run that lasted `elapsed_ns`.
fn rows(timeline: &Timeline, elapsed_ns: u64, machines: &[MachineShare]) -> Vec<Row> {
    let rows = (0..).zip(&timeline.rows).map(|(index, figures)| {
        let from_ns = index * timeline.length_ns;
        let until_ns = (from_ns + timeline.length_ns).min(elapsed_ns);
        Row::of(figures, from_ns, until_ns).without(MachineShare::count_missing(machines, until_ns))
    });
    rows.collect()
}

impl Row {
    /// The row between two times, in nanoseconds since measuring began.
    pub fn of(figures: &RowFigures, from_ns: u64, until_ns: u64) -> Self {
        let service = RowLatency::of(&figures.latency);
        let seconds = |ns: u64| ns as f64 / NS_PER_S;
        Self {
            start_s: seconds(from_ns),
            length_s: seconds(until_ns.saturating_sub(from_ns)),
            runs: None,
            started: figures.started,
            completed: figures.completed,
            bytes_sent: figures.bytes_sent,
            bytes_received: figures.bytes_received,
            errors: (figures.errors.total() > 0).then_some(figures.errors),
            erroneous: Some(figures.erroneous).filter(|erroneous| *erroneous > 0),
            mean_us: service.mean_us,
            max_us: service.max_us,
            sum_ns: service.sum_ns,
            latency_bins: service.latency_bins,
            scheduled: (figures.scheduled.count() > 0).then(|| RowLatency::of(&figures.scheduled)),
            late: Some(figures.late).filter(|late| *late > 0),
            dropped: Some(figures.dropped).filter(|dropped| *dropped > 0),
            machines_lost: None,
        }
    }

    /// Returns the row for a run of which so many machines were lost.
    pub fn without(self, machines: u64) -> Self {
        Self { machines_lost: some(machines), ..self }
    }

    /// The figures of this row.
    pub fn figures(&self) -> RowFigures {
        RowFigures {
            started: self.started,
            completed: self.completed,
            failed: 0,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            errors: self.errors.unwrap_or_default(),
            erroneous: self.erroneous.unwrap_or_default(),
            latency: latencies(self.mean_us, self.max_us, self.sum_ns, &self.latency_bins),
            scheduled: self.scheduled.as_ref().map_or_else(Latencies::default, RowLatency::latencies),
            late: self.late.unwrap_or_default(),
            dropped: self.dropped.unwrap_or_default(),
        }
    }
}

impl Row {
    /// Whether exact sums are those that the means are of.
    pub(super) fn has_its_sums(&self) -> bool {
        let is_near = |sum_ns: Option<Exact>, follows: u128| {
            sum_ns.is_none_or(|Exact(sum_ns)| sum_ns.abs_diff(follows) <= follows / SUM_SLACK)
        };
        let service = latencies(self.mean_us, self.max_us, None, &self.latency_bins);
        let scheduled = |it: &RowLatency| latencies(it.mean_us, it.max_us, None, &it.latency_bins);
        is_near(self.sum_ns, service.sum_ns)
            && self.scheduled.as_ref().is_none_or(|it| is_near(it.sum_ns, scheduled(it).sum_ns))
    }
}

impl RowLatency {
    fn of(measured: &Latencies) -> Self {
        let us = |ns: f64| figure(ns / 1e3);
        let (mean_us, latency_bins) = (measured.mean_ns().map(us), measured.bins.clone());
        let max_us = mean_us.map(|_| us(measured.max_ns as f64));
        let follows = latencies(mean_us, max_us, None, &latency_bins).sum_ns;
        Self { mean_us, max_us, sum_ns: Exact::unless(measured.sum_ns, follows), latency_bins }
    }

    fn latencies(&self) -> Latencies {
        latencies(self.mean_us, self.max_us, self.sum_ns, &self.latency_bins)
    }
}

/// The latencies with these figures.
fn latencies(mean_us: Option<f64>, max_us: Option<f64>, sum_ns: Option<Exact>, bins: &[(u16, u64)]) -> Latencies {
    let max_ns = (max_us.unwrap_or(0.0) * 1e3).round() as u64;
    let mut latencies = Latencies { sum_ns: 0, max_ns, bins: bins.to_vec() };
    let follows = || (mean_us.unwrap_or(0.0) * 1e3 * latencies.count() as f64).round() as u128;
    latencies.sum_ns = sum_ns.map_or_else(follows, |Exact(sum_ns)| sum_ns);
    latencies
}

impl Host {
    fn of(facts: &host::HostFacts) -> Self {
        Self {
            boot_id: facts.boot_id.clone(),
            kernel: facts.kernel.clone(),
            architecture: std::env::consts::ARCH.to_owned(),
            cpu_model: facts.cpu_model.clone(),
            cpus: facts.cpus,
            open_files_soft: facts.open_files_soft,
            open_files_hard: facts.open_files_hard,
            sysctls: facts.sysctls.iter().cloned().collect::<BTreeMap<_, _>>(),
        }
    }
}

impl Shortage {
    fn of(plan: &Plan, outcome: &Outcome) -> Option<Self> {
        let run::Shortage { needed, hard } = outcome.descriptors?;
        Some(Self {
            needed,
            allowed: hard,
            room: host::connections_within_limit(plan, outcome.descriptors).map(u64::from),
        })
    }
}

/// A count, unless it is zero.
fn some(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

impl Requests {
    fn of(counters: &Counters, open_loop: Option<&onrush_stats::OpenLoopStats<u64>>) -> Self {
        let Counters { started, carried, completed, failed, abandoned, open_at_end, .. } = *counters;
        Self {
            unknown: (started + carried).saturating_sub(completed + failed + abandoned + open_at_end),
            started: counters.started,
            completed: counters.completed,
            unsuccessful: counters.unsuccessful,
            early: counters.early,
            timeout: counters.late,
            abandoned: counters.abandoned,
            open: counters.open_at_end,
            open_late: counters.open_late_at_end,
            carried: counters.carried,
            returned: counters.returned,
            interim: counters.interim,
            cut_responses: counters.cut_responses,
            due: open_loop.map(|open_loop| open_loop.due),
            due_before: open_loop.map(|open_loop| open_loop.carried),
            late: open_loop.map(|open_loop| open_loop.late),
            dropped: open_loop.map(|open_loop| open_loop.dropped),
            unsent: open_loop.map(|open_loop| open_loop.unsent),
        }
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        (self.started + self.carried).saturating_sub(self.completed + self.abandoned + self.open + self.unknown)
    }

    /// All requests that were due or, without a schedule, sent.
    pub fn all(&self) -> u64 {
        self.started + self.carried + self.never_sent()
    }

    /// Requests without a good response in time, each once.
    pub fn errors(&self) -> u64 {
        self.failed() + self.abandoned + self.open_late + self.unsuccessful + self.never_sent()
    }

    fn never_sent(&self) -> u64 {
        self.dropped.unwrap_or(0) + self.unsent.unwrap_or(0)
    }
}

impl LedgerRow {
    /// All rows, in the order of phases: that in which those of the threads were added is random and must not show.
    fn all(plan: &Plan, outcome: &Outcome) -> Vec<Self> {
        let mut rows: Vec<&onrush_stats::FailureRow> = outcome.totals.ledger.rows().iter().collect();
        rows.sort_by_key(|row| (row.phase, row.cause));
        rows.into_iter().map(|row| Self::of(row, plan, outcome)).collect()
    }

    fn of(row: &onrush_stats::FailureRow, plan: &Plan, outcome: &Outcome) -> Self {
        let failure = Failure { shortage: outcome.descriptors, ..Failure::from_row(plan, outcome, row) };
        let example = escape(&failure.row.example);
        let advice = failure.remedy().filter(|_| row.phase != Phase::Status);
        Self {
            example_is: ExampleKind::of(row.cause).filter(|_| !example.is_empty()),
            advice,
            ours: failure.is_local_exhaustion(),
            phase: row.phase.name().to_owned(),
            cause: match row.cause {
                // It has what was typed.
                Cause::Check(_) => outcome.known.redact_in(&describe_row_cause(row, plan)),
                _ => describe_row_cause(row, plan),
            },
            count: row.count,
            first_s: row.first_s(),
            last_s: row.last_s(),
            example: (!example.is_empty()).then(|| match row.cause {
                _ if plan.output.keeps_secrets => example,
                Cause::Check(number) if is_of_secret(plan, number) => secrets::REDACTED.to_owned(),
                _ => secrets::redact_text(&example),
            }),
        }
    }
}

/// Whether a check is about a field whose value is a secret.
fn is_of_secret(plan: &Plan, number: u8) -> bool {
    matches!(plan.checks.check_number(number.into()), Some(Check::Header(header)) if secrets::is_secret(&header.name))
}

impl ExampleKind {
    /// That of a failure with this cause; `None`: an address or a path.
    fn of(cause: Cause) -> Option<Self> {
        match cause {
            Cause::Protocol(_)
            | Cause::Proxy(_)
            | Cause::Check(_)
            | Cause::GrpcStatus(_)
            | Cause::Tls(TlsFailure::PlainText | TlsFailure::NotTls) => Some(Self::Received),
            Cause::Tls(_) => Some(Self::Detail),
            _ => None,
        }
    }
}

impl Phases {
    fn of<C: Count>(
        phases: &onrush_stats::Phases<C>,
        view: impl Fn(&onrush_stats::Distribution<C>) -> Distribution,
    ) -> Self {
        Self {
            connect: view(&phases.connect),
            tls: phases.tls.as_deref().map(&view),
            ttfb: view(&phases.ttfb),
            ttlb: view(&phases.ttlb),
        }
    }
}

impl Tls {
    fn of(handshakes: &Handshakes) -> Option<Self> {
        let agreed = |(Negotiated { version, suite, group, is_http2 }, connections)| Agreed {
            version: TlsVersion::name_of(version).to_owned(),
            suite: TlsName::name_of(SUITES, suite),
            group: (group != 0).then(|| TlsName::name_of(GROUPS, group)),
            protocol: is_http2.then(|| onrush_plan::http::HttpVersion::Http2.alpn().to_owned()),
            connections,
        };
        let negotiated: Vec<Agreed> = handshakes.parameters_in_use().into_iter().map(agreed).collect();
        let Handshakes { total, resumed, .. } = *handshakes;
        (!negotiated.is_empty()).then_some(Self { handshakes: total, resumed, negotiated })
    }
}
