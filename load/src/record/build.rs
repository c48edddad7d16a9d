//! Builds the document from the plan and the outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_plan::tls::{GROUPS, SUITES, TlsName, TlsVersion};
use onrush_plan::{Dialect, Percent, Plan, secrets};
use onrush_stats::timeline::RowFigures;
use onrush_stats::{ByClass, Count, Counters, Handshakes, Latencies, Negotiated, Stats, Statuses};

use super::distribution::figure;
use super::gate::Gate;
use super::result::{RunFacts, RunResult};
use super::sources::nanos as nanos_of;
use super::{
    Agreed, Connections, Distribution, Document, Host, InFlight, Latency, LedgerRow, Machine, Note, OfName, OpenLoop,
    Phases, RequestLog, Requests, Row, RowLatency, SCHEMA, Script, Shortage, Sources, StageRow, StoppedThread,
    ThreadRates, Tls, Tool, Verdict, Wrk2, axis, distribution, runs,
};
use crate::figures::rate::count_per_second;
use crate::run::{self, Outcome, host};

/// Nanoseconds in a second.
const NS_PER_S: f64 = 1e9;

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
        Self::from_result(RunResult::from_outcome(plan, outcome))
    }

    /// The figures of a result. A single run keeps its judgement; a sum has none yet.
    pub fn from_result(result: RunResult) -> Self {
        let RunResult { plan, sums, runs, notes: _ } = &result;
        let Stats {
            counters, statuses, latency, by_class, batch_latency, open_loop, phases, censored, handshakes, ..
        } = &sums.totals;
        let single = result.single();
        let is_single = single.is_some();
        let first = &runs[0];
        let percents = result.percents();
        let view = |measured: &onrush_stats::Distribution<u64>| distribution(measured, percents.as_deref());
        let sources = Sources::from_runs(runs);
        let segments = sources.segments();
        let elapsed =
            Duration::from_nanos(segments.iter().map(|it| it.length_ns() as u64).fold(0, u64::saturating_add));
        let duration_s = elapsed.as_secs_f64();
        let all_have = |has: fn(&RunFacts) -> bool| runs.iter().all(has);
        let open_loop = open_loop.as_deref().filter(|_| all_have(|run| run.open_loop.is_some()));
        let requests = Requests::of(counters, sums.totals.open_loop.as_deref());
        let has_lost_threads = runs.iter().any(|run| run.lost_threads > 0);
        let suspended_ns = runs.iter().map(|run| run.suspended_ns).fold(0, u64::saturating_add);
        let as_wrk2 = result.imitates(Dialect::Wrk2);
        let idle_closed = sums.totals.open_loop.as_deref().map(|_| counters.idle_closed);
        let scheduled = open_loop.map(|open_loop| view(&open_loop.scheduled));
        let mut document = Self {
            schema: SCHEMA,
            tool: first.tool.clone(),
            host: first.host.clone(),
            command: first.command.clone(),
            labels: common_labels(runs),
            experiment: single.and_then(|run| run.experiment.clone()),
            plan: plan.clone(),
            started_at: first.started_at,
            duration_s,
            suspended_s: Duration::from_nanos(suspended_ns).as_secs_f64(),
            interrupted: runs.iter().any(|run| run.interrupted),
            ended: single.and_then(|run| run.ended),
            lost_threads: runs.iter().map(|run| run.lost_threads).fold(0, u64::saturating_add),
            stopped_threads: single.map(|run| run.stopped_threads.clone()).unwrap_or_default(),
            incomplete: sources.incomplete(),
            requests,
            bytes_received: counters.bytes_received,
            bytes_sent: counters.bytes_sent,
            rate_per_s: count_per_second(sums.counted, duration_s),
            in_flight: InFlight::of(&counters.occupancy, elapsed).filter(|_| !has_lost_threads),
            connections: Connections {
                asked: sources.most(|run| run.asked).max(runs.iter().map(|run| run.asked).max().unwrap_or(0)),
                established: sources
                    .most(|run| run.established)
                    .max(runs.iter().map(|run| run.established).max().unwrap_or(0)),
                opened: counters.connects,
                closed_first: runs.iter().filter_map(|run| run.closed_first).reduce(u64::saturating_add),
                idle_closed: idle_closed.or(some(counters.idle_closed)),
                shortage: single.and_then(|run| run.shortage),
            },
            addresses: single.and_then(|run| run.addresses.clone()),
            sockets: super::Sockets::of_runs(runs),
            status: statuses.iter().collect(),
            location: runs.iter().filter_map(|run| run.location.clone()).min(),
            expects_tls: all_have(|run| run.expects_tls),
            errors: sums.errors,
            ledger: sums.ledger.iter().map(|sum| LedgerRow::from_sum(sum, first.started_at)).collect(),
            latency: Latency {
                service: view(latency),
                clamped: latency.clamped,
                by_class: by_class.as_deref().map(|by_class| classes(by_class, statuses, view)).unwrap_or_default(),
                batch: batch_latency.as_deref().map(view),
                wrk_mean_us: single.and_then(|run| run.wrk_mean_us),
                wrk: sums.wrk.as_ref().filter(|_| all_have(|run| run.wrk_spacing_us.is_some())).map(view),
                wrk_spacing_us: single.and_then(|run| run.wrk_spacing_us),
                wrk2: open_loop
                    .and_then(|open_loop| open_loop.wrk2.as_deref())
                    .map(|recorded| Wrk2::of(recorded, all_have(|run| run.shown.service_latency))),
                scheduled,
            },
            open_loop: open_loop
                .and_then(|open_loop| OpenLoop::from_runs(runs, open_loop, counters, elapsed, percents.as_deref())),
            phases: phases.as_deref().filter(|_| all_have(|run| run.has_phases)).map(|phases| Phases::of(phases, view)),
            censored: censored.as_deref().map(view),
            timeline: match single {
                Some(run) => rows(run),
                None => axis::rows(runs, &segments),
            },
            stages: StageRow::from_runs(sums.stages.as_deref(), runs, &sources, view),
            names: sums.names.iter().map(|sum| OfName::from_sum(sum, percents.as_deref())).collect(),
            request_log: runs.iter().filter_map(|run| run.request_log).reduce(RequestLog::with),
            machines: single.map(|run| run.machines.clone()).unwrap_or_default(),
            threads: runs.iter().flat_map(|run| &run.threads).cloned().collect(),
            thread_rates: ThreadRates::of(&sums.totals.rates, as_wrk2),
            script: match single {
                Some(run) => run.script_share.map(|share| Script { share }),
                None => Script::from_runs(runs),
            },
            batch: runs.iter().filter_map(|run| run.batch).max(),
            pauses: runs.iter().any(|run| run.pauses),
            pauses_unread: runs.iter().any(|run| run.pauses_unread),
            tls: Tls::of(handshakes),
            http2: sums.http2.clone(),
            until: single.and_then(|run| run.until.clone()),
            unseen: single.map(|run| run.unseen.clone()).unwrap_or_default(),
            evidence: single.and_then(|run| run.evidence.clone()),
            verdict: single.and_then(|run| run.verdict.clone()),
            gates: single.map(|run| run.gates.clone()).unwrap_or_default(),
            shown: first.shown.clone(),
            notes: runs.iter().flat_map(|run| own_notes(run, is_single)).collect(),
            sources: None,
            result: Box::new(result),
        };
        if !is_single {
            sources.sort(&mut document.notes);
            document.notes.splice(0..0, sources.note());
            document.notes.extend(document.result.notes.iter().cloned());
            document.sources = Some(sources);
            (document.evidence, document.unseen) = runs::evidence(&document, &document.result.sums.totals.latency);
        }
        document
    }
}

impl Document {
    /// Keeps why the run failed in its experiment, if it did.
    pub fn mark_as_failed(&mut self, reason: Option<&str>) {
        let kept = self.result.runs.iter_mut().filter_map(|run| run.experiment.as_mut());
        for position in kept.chain(&mut self.experiment) {
            position.failed = reason.map(str::to_owned);
        }
    }

    /// Adds the judgement of a single run to its figures and to its result.
    pub fn keep_judgement(&mut self, verdict: Option<Verdict>, gates: Vec<Gate>, notes: Vec<Note>) {
        if let [run] = &mut self.result.runs[..] {
            (run.verdict, run.gates, run.notes) = (verdict.clone(), gates.clone(), notes.clone());
        }
        (self.verdict, self.gates, self.notes) = (verdict, gates, notes);
    }
}

/// The notes of a run; in a sum, each begins with the name of the run.
fn own_notes(run: &RunFacts, is_single: bool) -> impl Iterator<Item = Note> {
    run.notes.iter().map(move |note| match is_single {
        true => note.clone(),
        false => Note { text: format!("{}: {}", run.name, note.text), ..note.clone() },
    })
}

/// The labels that all runs share.
fn common_labels(runs: &[RunFacts]) -> BTreeMap<String, String> {
    let mut labels = runs[0].labels.clone();
    labels.retain(|key, level| runs[1..].iter().all(|run| run.labels.get(key) == Some(level)));
    labels
}

impl RunResult {
    /// The percentiles to show: those asked for by any run, and the usual ones unless all asked for others. `None` for
    /// the usual ones alone.
    fn percents(&self) -> Option<Vec<Percent>> {
        let asked = |run: &RunFacts| Percent::asked_or_usual(run.percentiles.as_deref());
        self.runs.iter().any(|run| run.percentiles.is_some()).then(|| {
            let mut percents: Vec<Percent> = self.runs.iter().flat_map(asked).collect();
            percents.sort_unstable();
            percents.dedup();
            percents
        })
    }
}

impl StoppedThread {
    pub(super) fn of(&(thread, at): &(usize, Duration)) -> Self {
        Self { thread: thread as u64, at_s: at.as_secs_f64() }
    }
}

impl Tool {
    pub(super) fn own(backend: &str) -> Self {
        let (name, version) = ("onrush".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { name, version, backend: backend.to_owned() }
    }
}

/// The latencies by the class of the status. A class is left out if some responses of a sum are missing from it, because
/// a run imitated a tool.
fn classes(
    by_class: &ByClass<u64>,
    statuses: &Statuses,
    view: impl Fn(&onrush_stats::Distribution<u64>) -> Distribution,
) -> BTreeMap<String, Distribution> {
    let of = |class| {
        let latencies = by_class.latencies_of_class(class)?;
        (latencies.count() == statuses.class_total(class)).then(|| (format!("{class}xx"), view(latencies)))
    };
    ByClass::<u64>::CLASSES.into_iter().filter_map(of).collect()
}

/// The labels without secrets.
pub(super) fn labels(plan: &Plan, known: &secrets::KnownSecrets) -> BTreeMap<String, String> {
    let shown = |key: &String, level: &String| known.redact_typed(level, |level| secrets::redact_value(key, level));
    plan.output.labels.iter().map(|(key, level)| (key.clone(), shown(key, level))).collect()
}

/// The rows of a single run.
fn rows(run: &RunFacts) -> Vec<Row> {
    let is_missing =
        |machine: &Machine, until_ns: u64| machine.lost.is_some() && nanos_of(machine.duration_s) < until_ns;
    let missing = |until_ns| run.machines.iter().filter(|machine| is_missing(machine, until_ns)).count() as u64;
    run.rows().map(|(from_ns, until_ns, row)| Row::of(row, from_ns, until_ns).without(missing(until_ns))).collect()
}

impl Row {
    /// The row between two times, in nanoseconds since measuring began.
    pub fn of(measured: &RowFigures, from_ns: u64, until_ns: u64) -> Self {
        let RowLatency { mean_us, max_us } = RowLatency::of(&measured.latency);
        let seconds = |ns: u64| ns as f64 / NS_PER_S;
        Self {
            start_s: seconds(from_ns),
            length_s: seconds(until_ns.saturating_sub(from_ns)),
            runs: None,
            started: measured.started,
            completed: measured.completed,
            bytes_sent: measured.bytes_sent,
            bytes_received: measured.bytes_received,
            errors: (measured.errors.total() > 0).then_some(measured.errors),
            erroneous: some(measured.erroneous),
            mean_us,
            max_us,
            scheduled: (measured.scheduled.count() > 0).then(|| RowLatency::of(&measured.scheduled)),
            late: some(measured.late),
            dropped: some(measured.dropped),
            machines_lost: None,
            measured: measured.clone(),
        }
    }

    /// Returns the row for a run of which so many machines were lost.
    pub fn without(self, machines: u64) -> Self {
        Self { machines_lost: some(machines), ..self }
    }

    /// The measurements of this row.
    pub fn figures(&self) -> &RowFigures {
        &self.measured
    }
}

impl RowLatency {
    fn of(measured: &Latencies) -> Self {
        let us = |ns: f64| figure(ns / 1e3);
        let mean_us = measured.mean_ns().map(us);
        Self { mean_us, max_us: mean_us.map(|_| us(measured.max_ns as f64)) }
    }
}

impl Host {
    pub(super) fn of(facts: &host::HostFacts) -> Self {
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
    pub(super) fn of(plan: &Plan, outcome: &Outcome) -> Option<Self> {
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

impl Script {
    /// The share in the time of all threads; `None` if a run has no script, or its time is unknown.
    fn from_runs(runs: &[RunFacts]) -> Option<Self> {
        runs.iter().all(|run| run.script_share.is_some()).then_some(())?;
        let threads = || runs.iter().flat_map(|run| &run.threads);
        let spent_s: f64 = threads().map(|thread| thread.script_s).sum::<Option<f64>>()?;
        let all_s: f64 = runs.iter().map(|run| run.threads.len() as f64 * run.elapsed().as_secs_f64()).sum();
        Some(Self { share: figure(if all_s > 0.0 { (spent_s / all_s).min(1.0) } else { 0.0 }) })
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
