//! Measurements and course of a run.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onrush_engine::WorkerEnd;
use onrush_plan::schedule::Arrivals;
use onrush_plan::secrets::{self, KnownSecrets};
use onrush_plan::{Dialect, Io, Plan};
use onrush_proto::http2::{ReadableData, ReadableFrame};
use onrush_stats::{
    Activity, BufferSizes, Cause, ConnectionSpread, Counters, Gap, SocketSamples, Timeline, Totals, Transcript,
    silences,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::due_gaps::{DueGap, compute_due_gaps, worker_loads};
use super::machine::MachineShare;
use super::snapshot::Collector;
use super::until::StopRule;
use super::{Choice, MonitorReport, Ports, Probe, Shortage, StopRuleResult, host, nanos};

/// Measurements and course of a run, as plain data.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Totals of all workers.
    pub totals: Totals,
    /// Time from the common start to the end of the last worker.
    pub elapsed: Duration,
    /// How long the run continued after its counted part, so that the remaining due requests could end.
    pub ran_on: Duration,
    /// Processor time of threads other than the workers while the workers ran; unknown with a warm-up and in virtual
    /// time.
    pub beside: Option<Duration>,
    /// Total suspension of the machine during the run, including the warm-up. No other duration here includes it.
    pub suspended: Duration,
    /// Reason why the run ended.
    pub ended: RunEnd,
    /// Precision of the `--until` metrics at the end.
    pub until: Option<StopRuleResult>,
    /// Name of the backend.
    pub backend: &'static str,
    /// Addresses that refused the first connection while another address accepted it, each with the error number.
    pub dropped: Vec<(SocketAddr, i32)>,
    /// The addresses that accepted connections.
    pub addresses: Vec<SocketAddr>,
    /// By how much the hard open-file limit was too low, if it was.
    pub descriptors: Option<Shortage>,
    /// How much later than planned the warm-up ended and measuring started.
    pub delayed: Duration,
    /// Start of measuring, since the Unix epoch.
    pub started_at: Duration,
    /// The run second by second.
    pub timeline: Timeline,
    /// Totals of each stage of the plan, in order; empty if the plan has fewer than two stages.
    pub stages: Vec<Totals>,
    /// Shares of the workers, in order.
    pub workers: Vec<WorkerShare>,
    /// Facts about the machine that ran it.
    pub host: host::HostFacts,
    /// Local ports at the end, if the run exhausted them.
    pub ports: Option<Ports>,
    /// Periods without a response while requests were in flight, in order.
    pub silences: Vec<Gap>,
    /// Periods without a response while requests were due, in order; `None` if there is no schedule or it is unknown.
    pub due_gaps: Option<Vec<DueGap>>,
    /// Periods in which at least one worker waited for a response.
    pub awaited: Vec<Gap>,
    /// For each worker, in order: periods covered by batches sent ahead.
    pub ahead: Vec<Vec<Gap>>,
    /// Periods in which at least one worker was stalled, in order and without overlaps.
    pub stalls: Vec<Gap>,
    /// Periods in which the script held up at least one worker, in order and without overlaps.
    pub in_script: Vec<Gap>,
    /// Distribution of requests over the connections that were open at the end.
    pub spread: ConnectionSpread,
    /// Actual buffer sizes of connections, if the plan sets a size.
    pub buffers: BufferSizes,
    /// Counts of the HTTP/2 connections, if there can be any.
    pub http2: Option<onrush_proto::http2::Http2Counts>,
    /// Transcript of the wire, if the plan asks for one.
    pub transcript: Option<Box<Transcript>>,
    /// The secrets of the plan, to be redacted; empty if they may be shown.
    pub known: KnownSecrets,
    /// Number of requests in the script's first batch, if known before the run.
    pub batch: usize,
    /// True if pauses in a script delayed requests.
    pub pauses: bool,
    /// True if the script's `delay()` ever returned something other than a number.
    pub pauses_unread: bool,
    /// Reason the run broke off early, if it did.
    pub breakdown: Option<Breakdown>,
    /// Threads (numbered from 1) that never returned from their script, with the blocking callback. Their measurements
    /// since the last hand-over are missing.
    pub stuck: Vec<(usize, &'static str)>,
    /// Threads (numbered from 1) that never returned from their script after the run, which is complete.
    pub stuck_after: Vec<(usize, &'static str)>,
    /// Threads (numbered from 1) that were stopped by their script before the end of the run, with the time since
    /// measuring began; zero in the warm-up.
    pub stopped: Vec<(usize, Duration)>,
    /// Observations of the target and the machine; `None` if they were not watched.
    pub seen: Option<MonitorReport>,
    /// Number of responses in each tenth of a second, for at least the last minute; empty unless a probe may follow.
    pub recent: Vec<f64>,
    /// The probe after the run, if there was one.
    pub probe: Option<Probe>,
    /// Sums of the socket samples; `None` if no samples were requested.
    pub sampled: Option<SocketSamples>,
    /// Shares of the machines; empty for a run on one machine.
    pub machines: Vec<MachineShare>,
}

/// One worker's share of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WorkerShare {
    /// Number of connections.
    pub connections: u32,
    /// Counters of the worker.
    pub counters: Counters,
    /// Breakdown of the worker's time; `None` if the worker never returned, so its end is unknown.
    pub activity: Option<Activity>,
}

/// The callback that blocks a worker's thread, and the due time of the worker's end (since the start).
#[derive(Clone, Copy, Debug)]
pub(super) struct StuckThread {
    pub callback: &'static str,
    pub since: Duration,
}

/// Reason a run broke off. Earlier measurements are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Breakdown {
    /// The script failed: the error and its position, as shown to the user.
    Script(String),
    /// The script called `os.exit` with this code.
    Exit(i32),
    /// A thread (numbered from 1) panicked: a bug in onrush. Its measurements since the last hand-over are missing.
    Bug(usize),
}

/// Reason a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// The duration has elapsed.
    #[default]
    Duration,
    /// All requests of `-n` have ended.
    Requests,
    /// A signal ended the run.
    Signal,
    /// A signal arrived before anything was sent to the target.
    NeverBegun,
    /// Every first connection was refused.
    Refused {
        /// The last address tried.
        address: SocketAddr,
        /// The cause of the last refusal.
        cause: Cause,
    },
    /// Connections could no longer be established.
    StayedAway,
}

impl Outcome {
    /// A run on this backend without measurements; `started_at` counts from the Unix epoch.
    pub(crate) fn new(backend: &'static str, descriptors: Option<Shortage>, started_at: Duration) -> Self {
        Self {
            totals: Totals::default(),
            elapsed: Duration::ZERO,
            ran_on: Duration::ZERO,
            beside: None,
            suspended: Duration::ZERO,
            delayed: Duration::ZERO,
            ended: RunEnd::Duration,
            until: None,
            backend,
            dropped: Vec::new(),
            addresses: Vec::new(),
            descriptors,
            started_at,
            timeline: Timeline::default(),
            stages: Vec::new(),
            workers: Vec::new(),
            host: host::HostFacts::default(),
            ports: None,
            silences: vec![Gap::ALL],
            due_gaps: None,
            awaited: Vec::new(),
            ahead: Vec::new(),
            stalls: Vec::new(),
            in_script: Vec::new(),
            spread: ConnectionSpread::default(),
            buffers: BufferSizes::default(),
            http2: None,
            transcript: None,
            known: KnownSecrets::default(),
            batch: 1,
            pauses: false,
            pauses_unread: false,
            breakdown: None,
            stuck: Vec::new(),
            stuck_after: Vec::new(),
            stopped: Vec::new(),
            seen: None,
            recent: Vec::new(),
            probe: None,
            sampled: None,
            machines: Vec::new(),
        }
    }

    /// The outcome of a run that was cancelled before its start.
    pub fn interrupted(choice: &Choice) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { ended: RunEnd::NeverBegun, host: host::read_host_facts(), ..Self::new(choice.name, None, now) }
    }

    /// Records a worker that returned no result: it is stuck in a callback, or panicked before `now`.
    pub(super) fn record_lost_worker(&mut self, plan: &Plan, index: usize, stuck: Option<StuckThread>, now: Duration) {
        if let Some(StuckThread { callback, .. }) = stuck {
            self.stuck.push((index + 1, callback));
        } else {
            self.breakdown.get_or_insert(Breakdown::Bug(index + 1));
        }
        let until = stuck.map_or(now, |stuck| stuck.since);
        // Requests after the end are not counted.
        let most = plan.stop.duration.filter(|_| !plan.run_on.is_zero()).unwrap_or(Duration::MAX);
        self.elapsed = self.elapsed.max(until.saturating_sub(plan.warmup).min(most));
        let connections = plan.load.most_connections_of(index as u32);
        self.workers.push(WorkerShare { connections, counters: Counters::default(), activity: None });
        self.ahead.push(Vec::new());
        // Completions since the worker's last hand-over are unknown.
        self.silences.clear();
    }

    /// Records a thread on another machine that returned no result.
    pub(super) fn record_lost_remote_thread(&mut self) {
        self.workers.push(WorkerShare { connections: 0, counters: Counters::default(), activity: None });
        self.ahead.push(Vec::new());
        self.silences.clear();
    }

    pub(super) fn take_collected(&mut self, mut collector: Collector, plan: &Plan) {
        self.totals = std::mem::take(collector.totals());
        self.hide_secrets(plan);
        if plan.phases {
            self.totals.phases.get_or_insert_default();
        }
        if plan.schedule.is_some() {
            let open_loop = self.totals.open_loop.get_or_insert_default();
            if plan.dialect == Dialect::Wrk2 {
                open_loop.wrk2.get_or_insert_default();
            }
        }
        self.totals.settle_phases();
        let no_port = Cause::Errno(Errno::ADDRNOTAVAIL.raw_os_error());
        if self.machines.is_empty() && self.totals.ledger.rows().iter().any(|row| row.cause == no_port) {
            self.ports = Ports::read();
        }
        self.recent =
            collector.recent_counts.take().map_or_else(Vec::new, |recent| recent.into_counts(nanos(self.elapsed)));
        self.until = collector.stop_rule.and_then(StopRule::into_result);
        self.timeline = collector.timeline;
        self.stages = collector.stages.totals;
        self.timeline.end_run(nanos(self.elapsed));
        debug_assert!(self.timeline.adds_up_to(&self.totals), "the rows are the run");
        debug_assert!(self.follows_littles_law(plan), "latencies longer than requests were in flight");
        self.compute_response_gaps(plan);
        self.host = host::read_host_facts();
        if matches!(plan.io, Io::Sim(_)) {
            // Virtual time is not tied to a machine.
            self.host.boot_id = None;
        }
        for (worker, share) in self.workers.iter_mut().zip(collector.shares) {
            worker.counters = share.counters;
            worker.activity = worker.activity.map(|_| share.activity);
        }
    }

    /// Computes [`Self::silences`] and [`Self::due_gaps`] from what the workers reported.
    pub(super) fn compute_response_gaps(&mut self, plan: &Plan) {
        let run = Gap { until_ns: nanos(self.elapsed), ..Gap::ALL };
        let gaps = silences::common_gaps(&self.silences, &[run]);
        self.silences = silences::common_gaps(&gaps, &self.awaited);
        let Some(schedule) = plan.schedule.as_ref().filter(|_| !self.has_lost_threads() && !self.elapsed.is_zero())
        else {
            return;
        };
        // Each machine of a distributed run draws its own due times.
        if schedule.arrivals == Arrivals::Poisson && !self.machines.is_empty() {
            return;
        }
        // Requests held back by the script are not the target's fault.
        let gaps = if self.pauses { &self.silences } else { &gaps };
        let (mut found, mut after) =
            compute_due_gaps(plan, schedule, gaps, &worker_loads(plan, &self.machines), &self.ahead);
        let open_loop = self.totals.open_loop.as_deref();
        let unsent = open_loop.map_or(0, |open_loop| open_loop.unsent);
        // If `-n` ends the schedule before the run, the last requests may still be in flight or unsent.
        let rest = after.pop_if(|last| last.until_ns == run.until_ns && unsent > 0);
        let waited = silences::common_gaps(&after, &self.silences).into_iter().map(|gap| {
            // A request answered after the gap waited at least as long as the gap; histogram bins are 0.1 % wide.
            let at_least_ns = gap.length_ns() - gap.length_ns() / 500;
            let waits = open_loop
                .into_iter()
                .flat_map(|open_loop| open_loop.scheduled.values().chain(open_loop.censored.values()));
            let due = waits.filter(|(ns, _)| *ns >= at_least_ns).map(|(_, count)| count).sum();
            DueGap { gap, due }
        });
        found.extend(waited.filter(|waited| waited.due > 0));
        found.extend(rest.map(|gap| DueGap { gap, due: unsent }));
        self.due_gaps = Some(found);
    }

    /// True if the latencies add up to no more than the time for which requests were in flight (Little's law). Not
    /// checked with a warm-up, whose requests are included with their whole latency, nor for imitated tools, which
    /// leave out some latencies.
    fn follows_littles_law(&self, plan: &Plan) -> bool {
        let Totals { latency, counters, .. } = &self.totals;
        let is_all = plan.warmup.is_zero() && !plan.dialect.is_compat() && !self.has_lost_threads();
        !is_all || latency.sum() <= u128::from(counters.occupancy.in_flight_ns)
    }

    /// Redacts secrets in output of servers and scripts before it is shown.
    fn hide_secrets(&mut self, plan: &Plan) {
        self.known = KnownSecrets::from_plan(plan);
        let known = &self.known;
        self.totals.ledger.rewrite_examples(|example| known.redact(example));
        if let Some(seen) = &mut self.http2 {
            seen.reasons.iter_mut().for_each(|reason| reason.text = known.redact(&reason.text));
        }
        self.totals.location =
            self.totals.location.take().map(|location| known.redact_typed(&location, secrets::redact_url));
        if let Some(Breakdown::Script(words)) = &mut self.breakdown {
            *words = known.hide_in(words);
        }
        if let Some(transcript) = &mut self.transcript {
            transcript.sent = known.redact(&transcript.sent);
            transcript.head = known.redact(&transcript.head);
            transcript.unread = known.redact(&transcript.unread);
            transcript.body = known.hide(&transcript.body);
            transcript.trailers = known.redact(&transcript.trailers);
            for frame in transcript.frames_mut() {
                let (ReadableFrame::Lines(text) | ReadableFrame::Data(ReadableData { body: text, .. })) = frame;
                *text = known.redact(text);
            }
        }
    }

    /// Adds the results of a worker. `refused`: true if the run ended because no address accepted a connection.
    pub(super) fn add_worker_end(&mut self, end: WorkerEnd, refused: bool) {
        self.elapsed = self.elapsed.max(Duration::from_nanos(end.elapsed_ns));
        self.ran_on = self.ran_on.max(Duration::from_nanos(end.ran_on_ns));
        let (counters, activity) = (Counters::default(), Some(Activity::default()));
        self.workers.push(WorkerShare { connections: end.connections, counters, activity });
        self.stopped.extend(end.stopped_ns.map(|at_ns| (self.workers.len(), Duration::from_nanos(at_ns))));
        if let Some((address, cause)) = end.refusal.filter(|_| refused) {
            self.ended = RunEnd::Refused { address, cause };
        } else if end.stayed_away {
            self.ended = RunEnd::StayedAway;
        }
        for dropped in end.dropped {
            if !self.dropped.contains(&dropped) {
                self.dropped.push(dropped);
            }
        }
        for address in end.working {
            if !self.addresses.contains(&address) {
                self.addresses.push(address);
            }
        }
        self.silences = silences::common_gaps(&self.silences, &end.silences);
        self.awaited = silences::union_of_gaps(&self.awaited, &end.awaited);
        self.ahead.push(end.ahead);
        self.stalls = silences::union_of_gaps(&self.stalls, &end.stalls);
        self.in_script = silences::union_of_gaps(&self.in_script, &end.in_script);
        self.spread += end.spread;
        self.buffers += end.buffers;
        if let Some(seen) = &end.http2 {
            self.http2.get_or_insert_default().add_counts(seen);
        }
        self.transcript = self.transcript.take().or(end.transcript);
        self.pauses |= end.pauses;
        self.pauses_unread |= end.pauses_unread;
        let breakdown = end.failure.map(|failure| match failure {
            onrush_engine::ScriptFailure::Raised(words) => Breakdown::Script(words),
            onrush_engine::ScriptFailure::Exit(code) => Breakdown::Exit(code),
        });
        self.breakdown = self.breakdown.take().or(breakdown);
    }

    /// True if a thread returned no result, so that its latest measurements are missing.
    pub fn has_lost_threads(&self) -> bool {
        self.count_lost_threads() > 0
    }

    /// Number of threads that returned no result. Several panicked threads count as one.
    pub fn count_lost_threads(&self) -> u64 {
        self.stuck.len() as u64 + u64::from(matches!(self.breakdown, Some(Breakdown::Bug(_))))
    }

    /// Maximum number of simultaneous connections, over all machines: lower than planned if the open-file limit is too
    /// low.
    pub fn most_connections(&self, plan: &Plan) -> u64 {
        if !self.machines.is_empty() {
            return self.machines.iter().map(|machine| machine.connections).sum();
        }
        let most = u64::from(host::connections_within_limit(plan, self.descriptors).unwrap_or(plan.load.max_inflight));
        // With several streams per connection, fewer connections are enough for all requests in flight.
        let is_reached_earlier = plan.load.may_grow() && plan.http.streams.is_some_and(|streams| streams > 1);
        if is_reached_earlier { most.min(self.totals.counters.slots_opened.max(1)) } else { most }
    }

    /// Maximum number of requests in flight per connection: as requested, or as the server allowed. If the server's
    /// limit varied, the highest observed number.
    pub fn streams_per_connection(&self, plan: &Plan) -> u32 {
        let asked = plan.http.streams.unwrap_or(1);
        let seen = self.http2.as_ref().filter(|seen| seen.connections > 0);
        seen.map_or(1, |seen| match seen.streams_allowed_max {
            Some(most) if seen.streams_allowed_min.is_some_and(|least| least >= most.min(asked)) => {
                asked.min(most.max(1))
            }
            Some(_) => seen.streams_peak.clamp(1, asked),
            None => asked,
        })
    }

    /// Estimated share (0 to 1) of all threads' time that was spent in callbacks of the script.
    pub fn script_share(&self) -> f64 {
        let time_ns = self.elapsed.as_nanos() as f64 * self.workers.len() as f64;
        if time_ns > 0.0 { (self.totals.activity.script_ns as f64 / time_ns).min(1.0) } else { 0.0 }
    }

    pub(super) fn all_requests_ended(&self, plan: &Plan) -> bool {
        let counters = &self.totals.counters;
        if let Some(open_loop) = &self.totals.open_loop {
            let are_gone = open_loop.unsent == 0 && counters.open_at_end == 0;
            return are_gone && plan.stop.requests.is_some_and(|requests| open_loop.due >= requests);
        }
        let ended = counters.completed + counters.failed + counters.abandoned;
        plan.stop.requests.is_some_and(|requests| ended >= requests + counters.carried)
    }
}
