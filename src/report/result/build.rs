//! From what was decided and measured to the document.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::failure::why_row;
use super::super::{escape, notes, rewritten};
use super::distribution::figure;
use super::{
    Agreed, Connections, Distribution, Document, Host, InFlight, Latency, LedgerRow, Moment, Phases, Requests, Row,
    SCHEMA, Script, Thread, Tls, Tool, distribution,
};
use crate::plan::tls::{GROUPS, Named, SUITES, Version};
use crate::plan::{Plan, secrets};
use crate::run::{Ended, Outcome, host, nanos};
use crate::stats::timeline::{Stretch, Timeline};
use crate::stats::{self, Count, Counters, Handshakes, Negotiated, Occupancy, Stats};

/// Nanoseconds in a second.
const NS_PER_S: f64 = 1e9;

impl Document {
    /// The document of a run.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let Stats { counters, statuses, ledger, latency, batch_latency, phases, censored, .. } = &outcome.totals;
        let view = |measured: &stats::Distribution<u64>| distribution(measured, plan.show.percents.as_deref());
        let started_at = Moment(u64::try_from(outcome.started_at.as_micros()).unwrap_or(u64::MAX));
        let duration_s = outcome.elapsed.as_secs_f64();
        let notes = notes(plan, outcome);
        let sentences = notes.iter().filter(|note| !note.is_a_figure());
        let shown = |text: String| {
            if plan.show.keeps_secrets { text } else { outcome.known.hide_in(&secrets::sentence(&text)) }
        };
        Self {
            schema: SCHEMA,
            tool: Tool {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                backend: outcome.backend.to_owned(),
            },
            host: Host::of(&outcome.host),
            command: outcome.known.hide_in(&plan.show.command),
            plan: super::Plan::of(plan, &outcome.known),
            started_at,
            duration_s,
            sources: None,
            interrupted: matches!(outcome.ended, Ended::Signal | Ended::NeverBegun),
            incomplete: super::super::incomplete(outcome).map(shown),
            requests: Requests::of(counters),
            bytes_received: counters.bytes_received,
            bytes_sent: counters.bytes_sent,
            rate_per_s: rate(counted(outcome), duration_s),
            in_flight: InFlight::of(&counters.occupancy, outcome.elapsed).filter(|_| !outcome.has_lost_threads()),
            connections: Connections {
                asked: u64::from(plan.load.connections),
                lived: counters.slots_opened,
                opened: counters.connects,
                closed_first: plan.requests_per_connection.map(|_| counters.closed_first),
            },
            status: statuses.iter().collect(),
            errors: ledger.totals(),
            ledger: ledger.rows().iter().map(|row| LedgerRow::of(row, plan)).collect(),
            latency: Latency {
                service: view(latency),
                batch: batch_latency.as_deref().map(view),
                wrk_mean_us: rewritten(plan, outcome).mean_us().filter(|_| !plan.dialect.is_compat() && !plan.once),
                wrk: plan.dialect.is_compat().then(|| view(&rewritten(plan, outcome).distribution())),
            },
            phases: phases.as_deref().map(|phases| Phases::of(phases, view)),
            censored: censored.as_deref().map(view),
            timeline: rows(&outcome.timeline, nanos(outcome.elapsed)),
            threads: outcome.workers.iter().map(|share| Thread::of(share, plan, outcome)).collect(),
            script: (plan.script.is_some() && !outcome.has_lost_threads())
                .then(|| Script { share: outcome.script_share(plan) }),
            tls: Tls::of(&outcome.totals.handshakes),
            notes: sentences.map(|note| shown(note.in_full())).collect(),
        }
    }
}

/// So many per second; zero in no time.
pub fn rate(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

/// The requests that make the rate. What a warm-up leaves in flight is completed in the window, and what is open at the end
/// balances it. Where the last request ends the run, nothing is open: there it is those that were started in the window.
pub fn counted(outcome: &Outcome) -> u64 {
    let Counters { completed, carried, .. } = outcome.totals.counters;
    if outcome.ended == Ended::Requests { completed.saturating_sub(carried) } else { completed }
}

/// The rows of the time line of a run that lasted so long.
fn rows(timeline: &Timeline, elapsed_ns: u64) -> Vec<Row> {
    let rows = (0..).zip(&timeline.rows).map(|(index, stretch)| {
        let from_ns = index * timeline.length_ns;
        let until_ns = (from_ns + timeline.length_ns).min(elapsed_ns);
        Row::of(stretch, from_ns, until_ns)
    });
    rows.collect()
}

impl Row {
    /// What was done between these two moments, in nanoseconds since measuring began.
    pub fn of(stretch: &Stretch, from_ns: u64, until_ns: u64) -> Self {
        let us = |ns: f64| figure(ns / 1e3);
        let mean_us = stretch.mean_ns().map(us);
        let seconds = |ns: u64| ns as f64 / NS_PER_S;
        Self {
            start_s: seconds(from_ns),
            length_s: seconds(until_ns.saturating_sub(from_ns)),
            runs: None,
            started: stretch.started,
            completed: stretch.completed,
            bytes_sent: stretch.bytes_sent,
            bytes_received: stretch.bytes_received,
            errors: (stretch.errors.total() > 0).then_some(stretch.errors),
            mean_us,
            max_us: mean_us.map(|_| us(stretch.latency_max_ns as f64)),
            latency_bins: stretch.latency_bins.clone(),
        }
    }

    /// The stretch that this is the row of.
    pub fn stretch(&self) -> Stretch {
        let mut stretch = Stretch {
            started: self.started,
            completed: self.completed,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            errors: self.errors.unwrap_or_default(),
            latency_max_ns: (self.max_us.unwrap_or(0.0) * 1e3).round() as u64,
            latency_bins: self.latency_bins.clone(),
            latency_sum_ns: 0,
        };
        let sum_ns = self.mean_us.unwrap_or(0.0) * 1e3 * stretch.latencies() as f64;
        stretch.latency_sum_ns = sum_ns.round() as u128;
        stretch
    }
}

impl Host {
    fn of(facts: &host::Facts) -> Self {
        Self {
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

impl InFlight {
    pub(super) fn of(occupancy: &Occupancy, elapsed: Duration) -> Option<Self> {
        let mean = |sum_ns: u64| sum_ns as f64 / elapsed.as_nanos() as f64;
        (!elapsed.is_zero())
            .then(|| Self { mean: mean(occupancy.in_flight_ns), busy_connections: mean(occupancy.busy_ns) })
    }
}

impl Requests {
    fn of(counters: &Counters) -> Self {
        Self {
            started: counters.started - counters.returned,
            completed: counters.completed,
            timeout: counters.late,
            abandoned: counters.abandoned,
            open: counters.open_at_end,
            carried: counters.carried,
            interim: counters.interim,
        }
    }
}

impl LedgerRow {
    fn of(row: &stats::Row, plan: &Plan) -> Self {
        let example = escape(&row.example);
        Self {
            phase: row.phase.name().to_owned(),
            cause: why_row(row, plan.timeout),
            count: row.count,
            first_s: row.first_s(),
            last_s: row.last_s(),
            example: (!example.is_empty())
                .then(|| if plan.show.keeps_secrets { example } else { secrets::text(&example) }),
        }
    }
}

impl Phases {
    fn of<C: Count>(phases: &stats::Phases<C>, view: impl Fn(&stats::Distribution<C>) -> Distribution) -> Self {
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
        let agreed = |(Negotiated { version, suite, group }, connections)| Agreed {
            version: Version::name_of(version).to_owned(),
            suite: Named::name_of(SUITES, suite),
            group: (group != 0).then(|| Named::name_of(GROUPS, group)),
            connections,
        };
        let agreed: Vec<Agreed> = handshakes.in_use().into_iter().map(agreed).collect();
        let Handshakes { total, resumed, .. } = *handshakes;
        (!agreed.is_empty()).then_some(Self { handshakes: total, resumed, agreed })
    }
}
