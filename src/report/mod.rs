//! The report: wrk's text to the byte, and the notes below it.
//!
//! It turns a plan and an outcome into text. It measures nothing and looks nothing up: everything it prints was decided
//! in [`onrush_plan`] or measured in [`crate::run`].

pub mod export;
pub mod files;
pub mod input;
pub mod json;
pub mod merge;
pub mod result;
pub mod show;
mod table;

pub mod bounds;
mod correct;
mod errno;
mod failure;
mod for_script;
mod gate;
mod gates;
mod judgement;
mod layout;
mod notes;
mod once;
mod parts;
mod percentiles;
mod proxy;
mod rate;
mod silences;
mod spectrum;
mod text;
mod tls;
mod unavailable;
mod verdict;

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;

pub use failure::Failure;
pub use for_script::summary_for_script;
pub use gate::{Gate, Judged};
pub use gates::{annotation, objective};
pub use judgement::Judgement;
pub use notes::{EXPECTS_TLS, Flight, Hanging, Lost, Note, Places, print_notes};
pub use once::once;
pub use unavailable::unanswered;
pub use verdict::VERDICT_MIN;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use onrush_plan::{Breakout, Dialect, Plan, Show, Stop, secrets};
use onrush_stats::{Cause, Distribution, OpenLoop, Phase, Row, Totals};
use onrush_text::{escape, units};
use rustix::io::Errno;

use correct::Rewritten;
use percentiles::Percentiles;
use spectrum::Spectrum;
use table::{Figures, Layout};
use text::Text;

use crate::run::{Breakdown, Outcome, Shortage, Waiting, host};
use crate::script::Exit;

/// Nanoseconds in a microsecond, the unit of wrk's latencies.
const NS_PER_US: f64 = 1000.0;

/// The lines before the run: duration, URL, threads and connections, and natively the rate.
pub fn opening(plan: &Plan) -> String {
    // Reports are passed around like files; wrk's shows the URL as typed.
    let keeps_url = plan.show.keeps_secrets || plan.dialect.is_compat();
    let hidden = || secrets::Known::of(plan).hide_in(&secrets::url(&plan.target.typed));
    let url = if keeps_url { plan.target.typed.clone() } else { hidden() };
    let schedule = plan.schedule.as_ref().filter(|_| !plan.dialect.is_compat()).map(result::Schedule::of);
    first_lines(plan.stop, &url, plan.load.threads, plan.load.connections) + &due(schedule.as_ref())
}

/// The line that marks a report with a rate, whose latency is defined differently.
fn due(schedule: Option<&result::Schedule>) -> String {
    let line = |it: &result::Schedule| {
        format!("  {} requests/s, latency counted from when each request was due\n", it.asked())
    };
    schedule.map_or(String::new(), line)
}

/// The first two lines of a report.
fn first_lines(stop: Stop, url: &str, threads: u32, connections: u32) -> String {
    let length = match stop {
        Stop { duration: None, requests: Some(requests) } => format!("{requests} requests"),
        Stop { duration, .. } => units::duration(duration.unwrap_or_default()),
    };
    format!("Running {length} test @ {url}\n  {threads} threads and {connections} connections\n")
}

/// Everything after the run: the table, the totals and the rates.
pub fn closing(plan: &Plan, outcome: &Outcome) -> String {
    let layout = Layout::of(plan);
    let latency = Latency::of(plan, outcome);
    let measured = |phase| Figures::measured(phase, NS_PER_US);
    let phases = phases(plan, outcome).into_iter();
    Text {
        layout,
        has_zeros: plan.dialect.is_compat(),
        latency_us: latency.figures_us(),
        phases_us: phases.map(|(name, phase)| (name, phase.map_or_else(Figures::default, measured))).collect(),
        rates: Some(rates(plan, &outcome.totals.rates)),
        percentiles: percentiles(plan, outcome, &latency),
        totals: summary(plan, outcome),
    }
    .render()
}

/// The threads' requests per second. wrk2 computes them from a histogram, except the maximum.
fn rates(plan: &Plan, rates: &Distribution<u64>) -> Figures {
    match plan.dialect {
        Dialect::Wrk2 => Figures { max: rates.max().unwrap_or(0) as f64, ..Figures::binned(rates.binned()) },
        Dialect::Native | Dialect::Wrk | Dialect::WrkCmm => Figures::measured(rates, 1.0),
    }
}

/// The percentiles of the latency that the table shows, if the report has any.
fn percentiles(plan: &Plan, outcome: &Outcome, latency: &Latency<'_>) -> String {
    let Totals { latency: service, open_loop, .. } = &outcome.totals;
    let Show { percentiles, spectrum, u_latency, percents, .. } = &plan.show;
    let wanted = Percentiles {
        layout: Layout::of(plan),
        is_native: !plan.dialect.is_compat(),
        are_asked_for: *percentiles,
        has_spectrum: *spectrum,
        has_service: *u_latency,
        asked: percents.as_deref(),
    };
    match open_loop.as_deref() {
        Some(open_loop) => wanted.render(true, &recorded(plan, outcome, open_loop), || uncorrected(service, open_loop)),
        None if wanted.is_native => {
            let recorded = Spectrum::measured(service, &Distribution::new(), 0, 0);
            wanted.render(false, &recorded, || Spectrum::measured(service, &Distribution::new(), 0, 0))
        }
        None if wanted.are_asked_for => {
            wanted.layout.percentiles(wanted.asked, |percent| latency.percentile_us(percent))
        }
        None => String::new(),
    }
}

/// The service latency in a run with a rate.
fn uncorrected(service: &Distribution<u64>, open_loop: &OpenLoop<u64>) -> Spectrum {
    match &open_loop.wrk2 {
        Some(wrk2) => Spectrum::of_wrk2(&wrk2.uncorrected),
        None => Spectrum::measured(service, &Distribution::new(), 0, 0),
    }
}

/// The latency since requests were due.
fn recorded(plan: &Plan, outcome: &Outcome, OpenLoop { scheduled, censored, wrk2, .. }: &OpenLoop<u64>) -> Spectrum {
    match wrk2 {
        Some(wrk2) => Spectrum::of_wrk2(&wrk2.recorded),
        None => {
            let in_flight = bounds::in_flight(plan, outcome).map_or(0, |ages| ages.count());
            Spectrum::measured(scheduled, censored, in_flight, outcome.totals.counters.failed)
        }
    }
}

/// The phases to show, in order; never corrected.
fn phases<'a>(plan: &Plan, outcome: &'a Outcome) -> Vec<(&'static str, Option<&'a Distribution<u64>>)> {
    let phases = outcome.totals.phases.as_deref();
    let connect = ("Connect", phases.map(|phases| &phases.connect));
    let tls = ("TLS", phases.and_then(|phases| phases.tls.as_deref()));
    let ttfb = ("TTFB", phases.map(|phases| &phases.ttfb));
    let ttlb = ("TTLB", phases.map(|phases| &phases.ttlb));
    match plan.show.breakout {
        Breakout::None => Vec::new(),
        Breakout::WrkCmm => vec![connect, ttfb, ttlb],
        Breakout::All => vec![connect, tls, ttfb, ttlb],
    }
}

/// Why a run could not start: no server accepted a first connection; the last attempt was to `address`.
pub fn refusal(plan: &Plan, outcome: &Outcome, address: SocketAddr, cause: Cause) -> String {
    let rows = outcome.totals.ledger.rows();
    let is_about_tls = rows.iter().any(|row| (row.phase, row.cause) == (Phase::Tls, cause));
    let whom = whom(plan, address, is_about_tls);
    match cause {
        Cause::Errno(number) if errno::known(number) == Some(Errno::CONNREFUSED) => {
            format!("unable to connect to {whom}: {}: nothing listens there", errno::words(number))
        }
        Cause::Proxy(failure) => format!("no tunnel through {whom}: {}", proxy::sentence(failure)),
        Cause::Tls(failure) => {
            let row = rows.iter().find(|row| row.cause == cause);
            let example = row.map_or_else(String::new, |row| escape(&row.example));
            format!("TLS handshake with {whom} failed: {}", tls::sentence(failure, &example))
        }
        Cause::Unanswered if is_about_tls => tls::unanswered(&whom),
        _ => unable(plan, outcome, address, is_about_tls, cause),
    }
}

/// The sentence on a connection that could not be established, and what to do about it.
fn unable(plan: &Plan, outcome: &Outcome, address: SocketAddr, is_about_tls: bool, cause: Cause) -> String {
    let phase = if is_about_tls { Phase::Tls } else { Phase::Connect };
    let example = address.to_string().into_bytes();
    let row = Row { phase, cause, count: 1, first_tenth: 0, last_tenth: 0, example };
    let failure = Failure { shortage: outcome.descriptors, ..Failure::of(plan, outcome, &row) };
    let way_out = failure.way_out().map_or(String::new(), |way_out| format!("; {way_out}"));
    let whom = whom(plan, address, is_about_tls);
    let why = failure::why(cause, plan.timeout);
    if is_about_tls {
        return format!("TLS handshake with {whom} failed: {why}{way_out}");
    }
    format!("unable to connect to {whom}: {why}{way_out}")
}

/// The name of the peer of a connection to `address`.
fn whom(plan: &Plan, address: SocketAddr, is_about_tls: bool) -> String {
    match (&plan.way.unix, &plan.way.proxy) {
        (Some(path), _) => path.display().to_string(),
        // TLS is spoken with the target after the proxy.
        (None, Some(_)) if is_about_tls => plan.target.authority(),
        (None, Some(_)) => format!("the proxy {address}"),
        (None, None) => address.to_string(),
    }
}

/// The line printed while a run waits for its target.
pub fn waiting(plan: &Plan, waiting: &Waiting) -> String {
    let whom = whom(plan, waiting.address, matches!(waiting.cause, Cause::Tls(_)));
    let why = match waiting.cause {
        Cause::Errno(number) => errno::short(number),
        cause => failure::why(cause, plan.timeout),
    };
    format!("onrush: waiting for {whom} ({why}), up to {}", units::spaced(waiting.limit))
}

/// The threads that never returned from their script, if any: one sentence per function.
pub fn stuck(outcome: &Outcome) -> Vec<String> {
    let mut threads_in: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for &(thread, callback) in &outcome.stuck {
        threads_in.entry(callback).or_default().push(thread.to_string());
    }
    let sentence = |(callback, threads): (&str, Vec<String>)| {
        let (threads, are, they) = match &threads[..] {
            [thread] => (format!("thread {thread}"), "is", "it"),
            _ => (format!("threads {}", threads.join(", ")), "are", "they"),
        };
        format!(
            "{threads} {are} still in the script's {callback}() more than a second after the end of the run: what \
             {they} measured last is missing from the report; look for an endless loop in {callback}()"
        )
    };
    threads_in.into_iter().map(sentence).collect()
}

/// Why a run broke off, or what is missing from it; `None`: it is complete.
pub fn incomplete(outcome: &Outcome) -> Option<String> {
    let breakdown = outcome.breakdown.as_ref().map(|breakdown| match breakdown {
        Breakdown::Script(words) => words.clone(),
        Breakdown::Exit(code) => Exit(*code).to_string(),
        Breakdown::Bug(thread) => fallen(*thread),
        Breakdown::Memory => OUT_OF_MEMORY.to_owned(),
    });
    let reasons: Vec<String> = breakdown.into_iter().chain(stuck(outcome)).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The sentence on a run that ended because memory was refused.
pub const OUT_OF_MEMORY: &str = "the run ended early because memory was refused: the report covers what was \
                                 measured until then; fewer threads (-t) and connections (-c), or a script that \
                                 keeps less, need less memory";

/// The sentence on a thread, numbered from 1, that panicked because of a bug in onrush.
pub fn fallen(thread: usize) -> String {
    format!(
        "thread {thread} died during the run because of the bug named above: the report covers what was \
         measured until then, except that thread's last tenth of a second"
    )
}

/// The note before a run for whose connections this machine has too few open files or local ports. `ports`: how many
/// there are, if those are too few.
pub fn too_few(plan: &Plan, shortage: Option<Shortage>, ports: Option<u64>) -> Option<String> {
    let connections = units::counted(u64::from(plan.load.connections), "connection");
    let room = host::room(plan, shortage).zip(shortage);
    let (there_are, more_ports) = (|ports| units::thousands(ports), failure::MORE_PORTS);
    match (room, ports) {
        (None, None) => None,
        (None, Some(ports)) => Some(format!(
            "note: {connections} need as many local ports, but there are only {}: {more_ports}",
            there_are(ports)
        )),
        (Some((room, shortage)), ports) => {
            // Where there is room for as many connections as threads, something else may have none.
            let is_fewer = room < plan.load.connections;
            let (room, files) = (units::thousands(u64::from(room)), failure::too_few_files(&shortage));
            let ports =
                ports.map(|ports| format!("; of local ports, too, there are only {}: {more_ports}", there_are(ports)));
            let fewer = if is_fewer { format!("running with {room} of {connections}: ") } else { String::new() };
            Some(format!("note: {fewer}{files}{}", ports.unwrap_or_default()))
        }
    }
}

/// The latencies that the table shows.
enum Latency<'a> {
    /// As measured.
    Measured(&'a Distribution<u64>),
    /// As the imitated tool would show them.
    Rewritten(Rewritten),
    /// As wrk2 records them, in whole microseconds.
    Wrk2(&'a Distribution<u64>),
}

impl<'a> Latency<'a> {
    fn of(plan: &Plan, outcome: &'a Outcome) -> Self {
        let Totals { latency, open_loop, .. } = &outcome.totals;
        match (open_loop.as_deref(), plan.dialect) {
            (Some(OpenLoop { wrk2: Some(wrk2), .. }), _) => Self::Wrk2(&wrk2.recorded),
            (Some(open_loop), _) => Self::Measured(&open_loop.scheduled),
            (None, Dialect::Native) => Self::Measured(latency),
            (None, Dialect::Wrk | Dialect::WrkCmm | Dialect::Wrk2) => Self::Rewritten(rewritten(plan, outcome)),
        }
    }

    fn figures_us(&self) -> Figures {
        match self {
            Self::Measured(latency) => Figures::measured(latency, NS_PER_US),
            Self::Rewritten(latency) => latency.figures(),
            Self::Wrk2(latency) => Figures::binned(latency.binned()),
        }
    }

    fn percentile_us(&self, percent: f64) -> f64 {
        match self {
            Self::Measured(latency) => latency.percentile(percent) as f64 / NS_PER_US,
            Self::Rewritten(latency) => latency.percentile_us(percent) as f64,
            Self::Wrk2(latency) => latency.binned().percentile(percent) as f64,
        }
    }
}

/// The latencies that wrk would print for this outcome.
fn rewritten(plan: &Plan, outcome: &Outcome) -> Rewritten {
    let Totals { latency, batch_latency, counters, .. } = &outcome.totals;
    // wrk counts a batch as one request.
    let latency = batch_latency.as_deref().unwrap_or(latency);
    // Connections that were not needed at a time did not contribute to the rate.
    let unneeded = counters.occupancy.done_ns / (outcome.elapsed.as_nanos() as u64).max(1);
    let connections = match &plan.levels {
        Some(_) => plan.load.connections.saturating_sub(unneeded as u32),
        None => plan.load.connections,
    };
    let spacing = correct::spacing_us(outcome.elapsed, counters.batches, connections);
    Rewritten::new(latency, plan.timeout, spacing)
}

/// The lines below the table.
fn summary(plan: &Plan, outcome: &Outcome) -> text::Totals {
    let counters = &outcome.totals.counters;
    let elapsed_us = outcome.elapsed.as_micros() as f64;
    // The imitated tools use whole microseconds.
    let seconds = if plan.dialect.is_compat() { elapsed_us / 1e6 } else { outcome.elapsed.as_secs_f64() };
    text::Totals {
        completed: counters.completed,
        elapsed_us,
        bytes: counters.bytes_received,
        errors: outcome.totals.ledger.totals(),
        interim: if plan.show.breakout == Breakout::All { counters.interim } else { 0 },
        statuses: if plan.dialect.is_compat() { Vec::new() } else { outcome.totals.statuses.iter().collect() },
        rate_per_s: result::rate(result::counted(outcome), seconds),
        bytes_per_s: result::rate(counters.bytes_received, seconds),
    }
}
