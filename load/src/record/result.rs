//! The result of a run, or of several added up: sums that add up exactly, and facts about each run.
//!
//! A result file contains it, and whatever reads the file back reads this alone; the figures in the file are for people.
//! Results add up with `+=`, in any order and grouping.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::ops::AddAssign;
use std::time::Duration;

use onrush_plan::{Dialect, Percent, Position};
use onrush_stats::timeline::{ROWS_MAX, RowFigures};
use onrush_stats::{ByName, Corrupt, Distribution, Errors, Ledger, Totals};
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::evidence::measured::unseen;
use super::gate::Gate;
use super::http2::Http2;
use super::ledger::FailureSum;
use super::{
    Addresses, Ended, Host, Machine, Moment, Note, Plan, RequestLog, Shortage, Shown, Sockets, StoppedThread, Thread,
    Tool, Unavailable, Until, Verdict,
};
use crate::failure;
use crate::figures::correct::{batch_spacing_us, rewrite_as_wrk};
use crate::figures::rate::{counted_requests, requested_by_end_per_s, requested_per_s};
use crate::figures::{bounds, unavailable};
use crate::run::machines::figures::Bound;
use crate::run::{self, Outcome, nanos};

/// Rounding errors of moments in seconds.
const SAME_MOMENT_S: f64 = 1e-6;

/// The result of one run, or of several added up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// The plan of the first run; secrets are redacted.
    pub plan: Plan,
    /// Measurements of all runs together.
    pub sums: Sums,
    /// Facts about each run, in the order of [`RunFacts::order`].
    pub runs: Vec<RunFacts>,
    /// Notes on a sum, in alphabetical order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// Measurements that add up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Everything measured, without the failures and the names, which follow with their words.
    pub totals: Totals,
    /// Number of requests on which the rate is based.
    pub counted: u64,
    /// wrk's error totals.
    pub errors: Errors,
    /// Failures by phase and cause.
    pub ledger: Vec<FailureSum>,
    /// Outcomes by the name of requests.
    pub names: Vec<NameSum>,
    /// Measurements by stage; `None` unless all runs have the same stages.
    pub stages: Option<Vec<StageSum>>,
    /// Latencies as wrk would rewrite them; `None` if no run imitates it.
    pub wrk: Option<Distribution<u64>>,
    /// Counts of the HTTP/2 connections; `None` if there can be none.
    pub http2: Option<Http2>,
}

/// Outcomes of the requests with one name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NameSum {
    /// The name; `None` for requests without one.
    pub name: Option<String>,
    /// Start of the first run that has the name, and the position in its list.
    pub place: (Moment, u64),
    /// The outcomes.
    pub outcomes: onrush_stats::OfName<u64>,
}

/// Measurements of one stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageSum {
    /// Requests started.
    pub started: u64,
    /// Complete responses.
    pub completed: u64,
    /// Requests sent more than a millisecond after they were due; `None` without a schedule.
    pub late: Option<u64>,
    /// Requests that were not sent because it was too late; `None` without a schedule.
    pub dropped: Option<u64>,
    /// wrk's error totals.
    pub errors: Errors,
    /// Requests without a good response in time, each counted once.
    pub erroneous: u64,
    /// Latency of complete responses; with a schedule, since the due times.
    pub latency: Distribution<u64>,
}

/// Facts about one run. Times are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFacts {
    /// Name of the run's file; empty until it becomes part of a sum.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The tool that measured.
    pub tool: Tool,
    /// The machine of the generator.
    pub host: Host,
    /// The command line, quoted for a shell.
    pub command: String,
    /// Its labels (`--label`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its position in an experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Position>,
    /// Start of measuring.
    pub started_at: Moment,
    /// Measured time.
    pub elapsed_ns: u64,
    /// Time for which the machine was suspended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suspended_ns: u64,
    /// True if a signal ended the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Reason of an early end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Reason why the run, or a measurement of it, is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Number of threads that returned nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_threads: u64,
    /// Threads stopped by the script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped_threads: Vec<StoppedThread>,
    /// Connections asked for.
    pub asked: u64,
    /// Different connections established.
    pub established: u64,
    /// Connections closed by onrush after their last request; `None` without `--requests-per-connection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_first: Option<u64>,
    /// The open-file limit, if it was too low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
    /// The target's addresses, if not all of them got load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Addresses>,
    /// Buffers and samples of sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<Sockets>,
    /// The destination of a redirect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// True if a response said that the port expects TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expects_tls: bool,
    /// Facts about the schedule; `None` in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopFacts>,
    /// The mean that wrk would print, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrk_mean_us: Option<f64>,
    /// wrk's mean spacing of responses on one connection; `None` unless wrk's latencies are in the sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrk_spacing_us: Option<u64>,
    /// True if phases were measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_phases: bool,
    /// Length of a row of the timeline, except for the last.
    pub row_ns: u64,
    /// The timeline.
    pub rows: Vec<RowFigures>,
    /// The stages that the run began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageFacts>,
    /// The request log, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_log: Option<RequestLog>,
    /// The machines of a distributed run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
    /// The generator's threads.
    pub threads: Vec<Thread>,
    /// Share (0 to 1) of the threads' time spent in the script; `None` without one, or if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_share: Option<f64>,
    /// Number of requests that the script sends at once, if it is more than one and was known before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// True if the script delayed requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pauses: bool,
    /// True if the script's `delay()` returned something other than a number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pauses_unread: bool,
    /// Precision of the metrics of `--until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The facts for the verdict; `None` if nothing was measured, and for a single request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Facts that could not be observed, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// The percentiles asked for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Vec<Percent>>,
    /// Parts of the report that were shown.
    pub shown: Shown,
    /// The verdict on the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Outcomes of its gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Notes for its user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// Facts about a schedule and its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenLoopFacts {
    /// Requests asked for, per second.
    pub asked_per_s: f64,
    /// `asked_per_s` without the requests in flight at the end if the target keeps up.
    pub asked_by_end_per_s: f64,
    /// Time for which the schedule continued uncounted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_on_ns: u64,
    /// True if open requests may take longer than others of their age.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsteady: bool,
    /// Unavailability of the target; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
}

/// Facts about a stage of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageFacts {
    /// Start, from the start of measuring.
    pub from_ns: u64,
    /// End, from the start of measuring.
    pub until_ns: u64,
    /// Mean rate asked for, per second; `None` without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// Connections asked for at its start and at its end; `None` if stages do not set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<(u32, u32)>,
}

/// Equal if their files are.
impl PartialEq for RunResult {
    fn eq(&self, other: &Self) -> bool {
        serde_json::to_string(self).ok() == serde_json::to_string(other).ok()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RunResult {
    /// The result of one run, without secrets and not judged yet.
    pub fn from_outcome(plan: &onrush_plan::Plan, outcome: &Outcome) -> Self {
        let started_at = Moment(u64::try_from(outcome.started_at.as_micros()).unwrap_or(u64::MAX));
        Self {
            plan: Plan::of(plan, &outcome.known),
            sums: Sums::from_outcome(plan, outcome, started_at),
            runs: vec![RunFacts::from_outcome(plan, outcome, started_at)],
            notes: Vec::new(),
        }
    }

    /// The facts, if this is the result of a single run.
    pub fn single(&self) -> Option<&RunFacts> {
        if let [only] = &self.runs[..] { Some(only) } else { None }
    }

    /// True if the results imitate this tool.
    pub fn imitates(&self, dialect: Dialect) -> bool {
        self.plan.dialect == dialect.name()
    }

    /// Names the only run after its file, unless it has a name.
    pub fn name_run(&mut self, name: &str) {
        if let [only] = &mut self.runs[..]
            && only.name.is_empty()
        {
            name.clone_into(&mut only.name);
        }
    }

    /// Adds a note, unless it is there.
    pub fn add_note(&mut self, note: Note) {
        if let Err(index) = self.notes.binary_search_by(|known| known.text.cmp(&note.text)) {
            self.notes.insert(index, note);
        }
    }

    /// The sum of results, each with the name of its file.
    ///
    /// # Errors
    ///
    /// If there are none, or if their figures are too large to be added.
    pub fn sum(results: impl IntoIterator<Item = (String, Self)>) -> Result<Self, Corrupt> {
        let mut bound = Bound::default();
        let mut sum: Option<Self> = None;
        for (name, mut result) in results {
            if !bound.admit_figures(&result.sums, 1) {
                return Err(Corrupt::Figures);
            }
            result.name_run(&name);
            match &mut sum {
                Some(sum) => *sum += result,
                None => sum = Some(result),
            }
        }
        sum.ok_or(Corrupt::Count)
    }

    fn first(&self) -> Option<(Moment, &str, u64, u64)> {
        self.runs.first().map(RunFacts::order)
    }
}

impl AddAssign<Self> for RunResult {
    fn add_assign(&mut self, mut other: Self) {
        if other.first() < self.first() {
            mem::swap(&mut self.plan, &mut other.plan);
        }
        let have_same_stages =
            self.plan.schedule == other.plan.schedule && self.plan.connection_stages == other.plan.connection_stages;
        self.sums += other.sums;
        self.sums.stages = self.sums.stages.take().filter(|_| have_same_stages);
        self.runs.append(&mut other.runs);
        self.runs.sort_by(|one, another| one.order().cmp(&another.order()));
        other.notes.into_iter().for_each(|note| self.add_note(note));
    }
}

impl Sums {
    fn from_outcome(plan: &onrush_plan::Plan, outcome: &Outcome, started_at: Moment) -> Self {
        let mut totals = outcome.totals.clone();
        let by_name = totals.by_name.take();
        let is_rewritten = totals.open_loop.is_none() && plan.dialect.is_compat();
        let http2 = outcome.http2.as_ref().map(|seen| Http2::of(seen, totals.counters.returned, &totals.activity));
        if http2.is_some() {
            totals.counters.returned = 0;
        }
        let errors = totals.ledger.totals();
        (totals.ledger, totals.location, totals.expects_tls) = (Ledger::default(), None, false);
        Self {
            counted: counted_requests(outcome),
            errors,
            ledger: FailureSum::from_outcome(plan, outcome, started_at),
            names: NameSum::from_outcome(plan, by_name.as_deref(), started_at),
            stages: Some(if plan.dialect.is_compat() { Vec::new() } else { StageSum::from_outcome(plan, outcome) }),
            wrk: is_rewritten.then(|| rewrite_as_wrk(plan, outcome).distribution()),
            http2,
            totals,
        }
    }
}

impl AddAssign<Self> for Sums {
    fn add_assign(&mut self, other: Self) {
        self.totals += &other.totals;
        self.counted += other.counted;
        self.errors += other.errors;
        FailureSum::add_all(&mut self.ledger, other.ledger);
        NameSum::add_all(&mut self.names, other.names);
        self.stages =
            Option::zip(self.stages.take(), other.stages).and_then(|(mine, theirs)| StageSum::add_all(mine, theirs));
        if let Some(theirs) = other.wrk {
            *self.wrk.get_or_insert_default() += &theirs;
        }
        if let Some(theirs) = other.http2 {
            self.http2.get_or_insert_default().add(&theirs);
        }
    }
}

impl NameSum {
    /// The outcomes by each name of the list, in its order, and then those without a name, if there are any.
    fn from_outcome(plan: &onrush_plan::Plan, by_name: Option<&ByName<u64>>, started_at: Moment) -> Vec<Self> {
        let Some(list) = plan.list.as_ref().filter(|list| !list.names.is_empty()) else { return Vec::new() };
        let mut found: BTreeMap<u16, &onrush_stats::OfName<u64>> = by_name.into_iter().flat_map(ByName::iter).collect();
        let mut sum = |name: Option<&String>, number: u16| Self {
            name: name.cloned(),
            place: (started_at, number.into()),
            outcomes: found.remove(&number).cloned().unwrap_or_default(),
        };
        let rest = sum(None, 0);
        let rest = Some(rest).filter(|rest| rest.outcomes.latency.count() + rest.outcomes.failed > 0);
        let named: Vec<Self> = (1..).zip(&list.names).map(|(number, name)| sum(Some(name), number)).collect();
        named.into_iter().chain(rest).collect()
    }

    fn add_all(mine: &mut Vec<Self>, theirs: Vec<Self>) {
        let known: HashMap<Option<String>, usize> =
            mine.iter().enumerate().map(|(index, sum)| (sum.name.clone(), index)).collect();
        for other in theirs {
            match known.get(&other.name) {
                Some(&index) => {
                    mine[index].place = mine[index].place.min(other.place);
                    mine[index].outcomes += &other.outcomes;
                }
                None => mine.push(other),
            }
        }
        mine.sort_by(|one, other| {
            (one.name.is_none(), one.place, &one.name).cmp(&(other.name.is_none(), other.place, &other.name))
        });
    }
}

impl StageSum {
    fn from_outcome(plan: &onrush_plan::Plan, outcome: &Outcome) -> Vec<Self> {
        let begun = plan.stages().into_iter().zip(&outcome.stages).filter(|(stage, _)| stage.from < outcome.elapsed);
        let sum = |(_, totals): (_, &Totals)| {
            let Totals { counters, open_loop, latency, ledger, .. } = totals;
            let open_loop = open_loop.as_deref();
            Self {
                started: counters.started,
                completed: counters.completed,
                late: open_loop.map(|open_loop| open_loop.late),
                dropped: open_loop.map(|open_loop| open_loop.dropped),
                errors: ledger.totals(),
                erroneous: totals.errors(),
                latency: open_loop.map_or(latency, |open_loop| &open_loop.scheduled).clone(),
            }
        };
        begun.map(sum).collect()
    }

    /// The sums stage by stage; `None` if only one of the results has stages.
    fn add_all(mut mine: Vec<Self>, mut theirs: Vec<Self>) -> Option<Vec<Self>> {
        if mine.is_empty() != theirs.is_empty() {
            return None;
        }
        if mine.len() < theirs.len() {
            mem::swap(&mut mine, &mut theirs);
        }
        let both = |mine: Option<u64>, theirs: Option<u64>| Some(mine? + theirs?);
        for (mine, theirs) in mine.iter_mut().zip(theirs) {
            mine.started += theirs.started;
            mine.completed += theirs.completed;
            mine.late = both(mine.late, theirs.late);
            mine.dropped = both(mine.dropped, theirs.dropped);
            mine.errors += theirs.errors;
            mine.erroneous += theirs.erroneous;
            mine.latency += &theirs.latency;
        }
        Some(mine)
    }
}

impl RunFacts {
    fn from_outcome(plan: &onrush_plan::Plan, outcome: &Outcome, started_at: Moment) -> Self {
        let counters = &outcome.totals.counters;
        let evidence = Evidence::of(plan, outcome);
        let is_closed = outcome.totals.open_loop.is_none();
        Self {
            name: String::new(),
            tool: Tool::own(outcome.backend),
            host: Host::of(&outcome.host),
            command: outcome.known.hide_in(&plan.output.command),
            labels: super::build::labels(plan, &outcome.known),
            experiment: plan.output.position.clone(),
            started_at,
            elapsed_ns: nanos(outcome.elapsed),
            suspended_ns: nanos(outcome.suspended),
            interrupted: matches!(outcome.ended, run::RunEnd::Signal | run::RunEnd::NeverBegun),
            ended: Ended::of(outcome.ended),
            incomplete: failure::incompleteness_reason(outcome).map(|words| outcome.known.redact_in(&words)),
            lost_threads: outcome.count_lost_threads(),
            stopped_threads: outcome.stopped.iter().map(StoppedThread::of).collect(),
            asked: u64::from(plan.load.connections),
            established: counters.slots_opened,
            closed_first: plan.requests_per_connection.map(|_| counters.closed_first),
            shortage: Shortage::of(plan, outcome),
            addresses: Addresses::of(outcome),
            sockets: Sockets::of(plan, outcome),
            location: outcome
                .totals
                .location
                .as_ref()
                .map(|location| outcome.known.redact_in(&onrush_text::escape(location.as_bytes()))),
            expects_tls: outcome.totals.expects_tls,
            open_loop: OpenLoopFacts::from_outcome(plan, outcome),
            wrk_mean_us: (is_closed && !plan.dialect.is_compat() && !plan.once)
                .then(|| rewrite_as_wrk(plan, outcome).mean_us())
                .flatten(),
            wrk_spacing_us: (is_closed && plan.dialect.is_compat()).then(|| batch_spacing_us(plan, outcome)),
            has_phases: outcome.totals.phases.is_some(),
            row_ns: outcome.timeline.length_ns,
            rows: outcome.timeline.rows.clone(),
            stages: if plan.dialect.is_compat() { Vec::new() } else { StageFacts::from_outcome(plan, outcome) },
            request_log: RequestLog::of(plan, counters),
            machines: outcome.machines.iter().map(Machine::of).collect(),
            threads: outcome.workers.iter().map(|share| Thread::of(share, plan, outcome)).collect(),
            script_share: (plan.script.is_some() && !outcome.has_lost_threads()).then(|| outcome.script_share()),
            batch: (outcome.batch > 1).then_some(outcome.batch),
            pauses: outcome.pauses,
            pauses_unread: outcome.pauses_unread,
            until: outcome.until.as_ref().map(Until::of),
            unseen: evidence.as_ref().map_or_else(Vec::new, |_| unseen(plan, outcome)),
            evidence,
            percentiles: plan.output.percents.clone(),
            shown: Shown::of(&plan.output),
            verdict: None,
            gates: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The key by which the runs of a sum are ordered.
    pub fn order(&self) -> (Moment, &str, u64, u64) {
        (self.started_at, &self.name, self.elapsed_ns, self.asked)
    }

    /// Start of measuring, in nanoseconds since 1970.
    pub(super) fn start_ns(&self) -> u128 {
        u128::from(self.started_at.0) * 1_000
    }

    /// Measured time.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns)
    }

    /// Start and end of each row, in nanoseconds since the start of measuring, and its measurements.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64, &RowFigures)> {
        (0..).zip(&self.rows).map(|(index, row): (u64, _)| {
            let from_ns = index.saturating_mul(self.row_ns).min(self.elapsed_ns);
            (from_ns, from_ns.saturating_add(self.row_ns).min(self.elapsed_ns), row)
        })
    }

    /// True if there can be as many rows.
    pub(super) fn has_possible_rows(&self) -> bool {
        self.rows.len() <= ROWS_MAX && self.row_ns > 0
    }
}

impl OpenLoopFacts {
    fn from_outcome(plan: &onrush_plan::Plan, outcome: &Outcome) -> Option<Self> {
        let open_loop = outcome.totals.open_loop.as_deref()?;
        let unavailable = unavailable::Unavailability::from_outcome(plan, outcome).as_ref().map(Unavailable::of);
        let last = unavailable.as_ref().and_then(|unavailable| unavailable.spans.last());
        let ends_s = last.map_or(0.0, |span| span.start_s + span.length_s);
        let is_silent = ends_s > 0.0 && ends_s >= outcome.elapsed.as_secs_f64() - SAME_MOMENT_S;
        let are_open = open_loop.open.as_ref().is_some_and(|open| open.count() > 0);
        Some(Self {
            asked_per_s: requested_per_s(plan, outcome)?,
            asked_by_end_per_s: requested_by_end_per_s(plan, outcome)?,
            run_on_ns: nanos(outcome.ran_on),
            unsteady: are_open && (open_loop.unsent > 0 || is_silent || bounds::is_backlog(plan, outcome)),
            unavailable,
        })
    }
}

impl StageFacts {
    fn from_outcome(plan: &onrush_plan::Plan, outcome: &Outcome) -> Vec<Self> {
        let stages = plan.stages();
        let last = stages.len().saturating_sub(1);
        let count = stages.len().min(outcome.stages.len());
        let begun = stages.into_iter().take(count).enumerate().filter(|(_, stage)| stage.from < outcome.elapsed);
        let facts = |(index, stage): (usize, onrush_plan::RunStage)| {
            // The time after the last stage belongs to it.
            let until = if index == last { outcome.elapsed } else { stage.until.min(outcome.elapsed) };
            Self {
                from_ns: nanos(stage.from),
                until_ns: nanos(until),
                asked_per_s: plan.schedule.as_ref().map(|schedule| schedule.per_second_between(stage.from, until)),
                connections: plan.levels.as_ref().map(|levels| levels.connections_between(stage.from, until)),
            }
        };
        begun.map(facts).collect()
    }
}

#[cfg(test)]
mod tests;
