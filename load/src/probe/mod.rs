//! Probe after a closed loop: does the target respond more slowly if fewer requests are in flight?
//!
//! The workers of the run continue with half as many requests in flight, on the same connections and with the same
//! script, before the target can rest. `course.rs` decides tick by tick; `rate.rs` holds the statistics. If a probe
//! needs more connections than the run had, a separate run opens them. Nothing here decides the limit of a run.

mod course;
mod rate;
#[cfg(test)]
mod simulation;

use std::time::Duration;

use onrush_plan::{Load, Plan, Probing, Stop};
use onrush_stats::{Errors, Phase, Totals};
use onrush_text::units::{format_duration_spaced, format_thousands};

use crate::failure::describe_row_cause;
use crate::run::{Interrupt, Outcome, Probe, RUN_TICK, RunEnd, Slot, TICK, Tail, TailEnd, nanos};
use crate::session;

use course::{BaselineRun, ProbeCourse, ProbeStep, TickCounts, Unaffordable};
use rate::MeasuredRate;

/// Maximum share of the probe for which onrush may be stalled ...
const STOPPED: f64 = 0.05;
/// ... and for which the target may send nothing while requests are in flight ...
const SILENT: f64 = 0.1;
/// ... where only silences at least as long as this many responses took in the run count.
const SILENT_RESPONSES: f64 = 40.0;
/// Maximum share of failed requests, and maximum increase in the share of error pages. Also the maximum number of
/// connections closed while idle, per response.
const FAILED: f64 = 0.01;
/// Time allowed for opening one connection, with a TLS handshake and a slow target, before a probe that needs more
/// connections ...
const OPENING: Duration = Duration::from_micros(500);
/// ... and the minimum for all of them.
const OPENING_MIN: Duration = Duration::from_millis(200);

/// The run that a probe follows.
struct ProbedRun<'a> {
    plan: &'a Plan,
    /// Requests in flight per connection.
    streams: u32,
    /// Number of requests that a script sends together, counted as one in flight.
    batch: u64,
    /// Responses per tick at the end of the run.
    counts: &'a [f64],
    base: BaselineRun,
    /// Share of unsuccessful responses.
    refused: f64,
}

/// Runs the probe after a closed loop, on the connections in `tail` or new ones, and ends the workers. If no probe can
/// decide within the budget, returns one without a result and the time it would need. A signal ends only the probe.
/// `None` if the plan does not allow a probe.
pub fn run_after(plan: &Plan, outcome: &mut Outcome, tail: Option<Tail>, interrupt: &Interrupt) -> Option<Probe> {
    if Probing::reason_against(plan).is_some() {
        dismiss_workers(tail, outcome);
        return None;
    }
    let streams = outcome.streams_per_connection(plan);
    let in_flight = plan.load.connections.saturating_mul(streams);
    let probing = plan.output.probing.unwrap_or(Probing { up: false, time: Duration::ZERO });
    let (other, needs_more) = (probing.other_in_flight(in_flight), probing.needs_more_connections(in_flight));
    let none = Probe { up: other > in_flight, was_planned: plan.output.probing.is_some(), ..Probe::default() };
    let counts = outcome.recent.clone();
    let counts = &counts[start_of_last_part(counts.len())..];
    if outcome.batch > 1 && streams > 1 {
        dismiss_workers(tail, outcome);
        let why = "requests that the script sends together share the streams of a connection";
        return Some(Probe { failed: Some(why.to_owned()), ..none });
    }
    let Some(run) = MeasuredRate::from_end_of_run(counts, in_flight) else {
        dismiss_workers(tail, outcome);
        return Some(none);
    };
    let run = run.in_shorter_ticks((RUN_TICK.as_nanos() / TICK.as_nanos()) as u32);
    let opening = if needs_more { OPENING_MIN.max(OPENING * other.div_ceil(streams)) } else { Duration::ZERO };
    let ticks = probing.time.saturating_sub(opening).as_nanos() / TICK.as_nanos();
    let base = BaselineRun { run, other, ticks: ticks as u64 };
    let setting =
        ProbedRun { plan, streams, batch: outcome.batch as u64, counts, base, refused: unsuccessful_share(outcome) };
    if let Err(Unaffordable(ticks)) = ProbeCourse::start(base, 0, in_flight.into()) {
        dismiss_workers(tail, outcome);
        let needed_s = Some((opening + TICK * ticks as u32).as_secs_f64());
        return Some(Probe { needed_s, ..none });
    }
    Some(match tail {
        Some(tail) if !needs_more => {
            let (probe, end) = setting.run_probe(tail, Totals::default(), Duration::ZERO, interrupt);
            outcome.stuck_after.extend(end.stuck);
            probe
        }
        tail => {
            dismiss_workers(tail, outcome);
            setting.run_probe_with_new_connections(opening, interrupt)
        }
    })
}

/// Ends the workers that stayed after a run, and records in `outcome` those that are stuck in the script.
pub fn dismiss_workers(tail: Option<Tail>, outcome: &mut Outcome) {
    if let Some(tail) = tail {
        outcome.stuck_after.extend(tail.end_workers().stuck);
    }
}

/// Index of the part of a run at which its last 70 % begin, or its last ten parts if that is more. Skips the beginning,
/// which may differ from the rest.
fn start_of_last_part(counts: usize) -> usize {
    counts - (counts * 7 / 10).max(10).min(counts)
}

impl ProbedRun<'_> {
    /// Runs a probe that needs more connections, which a separate run opens first.
    fn run_probe_with_new_connections(&self, opening: Duration, interrupt: &Interrupt) -> Probe {
        let Self { plan, streams, base, .. } = self;
        let connections = base.other.div_ceil(*streams);
        let mut opens = Plan {
            stop: Stop { duration: Some(opening), requests: None },
            warmup: Duration::ZERO,
            until: Vec::new(),
            phases: false,
            load: Load::new(plan.load.threads.min(connections), connections),
            ..(*plan).clone()
        };
        opens.http.streams = plan.http.streams.map(|_| *streams);
        opens.output.probing = Some(Probing { up: false, time: Duration::ZERO });
        match session::run(&opens, interrupt, &mut []) {
            Ok(session::SessionResult { outcome, tail: Some(tail), .. }) => {
                let open = outcome.totals.counters.slots_opened;
                if open < u64::from(connections) {
                    tail.end_workers();
                    return failed_probe(
                        format!("only {open} of {connections} connections for the probe were open"),
                        &outcome.totals,
                    );
                }
                self.run_probe(tail, outcome.totals, opening, interrupt).0
            }
            Ok(session::SessionResult { outcome, .. }) => {
                let is_signal = matches!(outcome.ended, RunEnd::Signal | RunEnd::NeverBegun);
                let why = if is_signal { Probe::SIGNAL } else { "the connections for the probe could not be opened" };
                failed_probe(why.to_owned(), &outcome.totals)
            }
            Err(error) => failed_probe(format!("it failed: {error:#}"), &Totals::default()),
        }
    }

    /// Runs a probe with these workers. `before` and `passed` are the counts and the time of the run that opened
    /// connections.
    fn run_probe(&self, mut tail: Tail, before: Totals, passed: Duration, interrupt: &Interrupt) -> (Probe, TailEnd) {
        let (begin, base) = (tail.current_tick(), &self.base);
        let Ok(mut course) = ProbeCourse::start(*base, begin, tail.in_flight().div_ceil(self.batch)) else {
            unreachable!("the same course was affordable before")
        };
        tail.limit_in_flight(course.initial_in_flight(), self.streams);
        let broke_off = loop {
            if !tail.wait_and_collect(interrupt) {
                break Some("a thread of onrush, or its script, ended early".to_owned());
            }
            if interrupt.is_requested() {
                break Some(Probe::SIGNAL.to_owned());
            }
            let in_flight = tail.in_flight().div_ceil(self.batch);
            let look = TickCounts { tick: tail.current_tick(), in_flight, ticks: &|from| tail.complete_ticks(from) };
            match course.next_step(&look) {
                ProbeStep::Wait => {}
                ProbeStep::Limit(in_flight) => tail.limit_in_flight(in_flight, self.streams),
                ProbeStep::End => break None,
            }
        };
        let ticks = tail.complete_ticks(begin).to_vec();
        let length = TICK * tail.current_tick().saturating_sub(begin) as u32;
        let mut end = tail.end_workers();
        end.totals += &before;
        let counters = &end.totals.counters;
        let mut probe =
            Probe { duration_s: (passed + length).as_secs_f64(), requests: counters.started, ..Probe::default() };
        let stuck = end.stuck.first().map(|(_, callback)| format!("{callback}() of the script did not return"));
        probe.failed = stuck.or(broke_off).or_else(|| self.reason_not_comparable(&end, &ticks));
        if probe.failed.is_none() {
            self.add_results(&mut probe, &course, &ticks, begin);
        }
        (probe, end)
    }

    /// Adds the results of a finished course.
    fn add_results(&self, probe: &mut Probe, course: &ProbeCourse, ticks: &[f64], begin: u64) {
        let per_s = |rate: &MeasuredRate| rate.per_tick / TICK.as_secs_f64();
        if let Some([was, now]) = course.drifted_rates() {
            let in_flight = self.base.run.in_flight;
            let [was, now] = [was, now].map(|rate| per_s(&rate));
            let drift = format!(
                "with {in_flight} in flight the target answered {was:.0} requests/s at first, {now:.0} \
                                 later"
            );
            probe.failed = Some(drift);
            return;
        }
        let Some(told) = course.result() else {
            let other = self.base.other;
            probe.failed = Some(format!("the number of requests in flight did not reach {other} in time"));
            probe.needed_s = Some(2.0 * probe.duration_s);
            probe.up = other > self.base.run.in_flight;
            return;
        };
        let run = Slot {
            in_flight: self.base.run.in_flight,
            tick_s: RUN_TICK.as_secs_f64(),
            completed: round_preserving_sum(&self.counts[self.counts.len() - self.base.run.ticks..]),
        };
        let slot = |window: &course::ProbeWindow| {
            let from = (window.from - begin) as usize;
            Slot {
                in_flight: window.in_flight,
                tick_s: TICK.as_secs_f64(),
                completed: round_preserving_sum(&ticks[from..from + window.ticks as usize]),
            }
        };
        // The two windows that are compared come first.
        let of = |is: &dyn Fn(u32) -> bool| -> Vec<Slot> {
            course.windows.iter().filter(|window| is(window.in_flight)).map(slot).collect()
        };
        let (all, told_of) = (run.in_flight, told.0.in_flight);
        let repeated = of(&|in_flight| in_flight == all);
        let run = if repeated.is_empty() { vec![run] } else { repeated };
        probe.slots = [run, of(&|it| it == told_of), of(&|it| ![all, told_of].contains(&it))].concat();
        probe.elasticity = Some(told.1);
    }

    /// Reason why a probe is not comparable with its run, as the end of a sentence.
    fn reason_not_comparable(&self, end: &TailEnd, ticks: &[f64]) -> Option<String> {
        let TailEnd { totals, stalled_ns, .. } = end;
        let counters = &totals.counters;
        let length_s = ticks.len() as f64 * TICK.as_secs_f64();
        let stalled_s = *stalled_ns as f64 / nanos(Duration::from_secs(1)) as f64;
        if stalled_s > STOPPED * length_s {
            return Some(format!("onrush was stalled for {} during the probe", format_ms(stalled_s)));
        }
        let errors = totals.ledger.totals();
        let failed = errors.connect + errors.read + errors.write;
        if failed as f64 > FAILED * counters.completed as f64 {
            let rows = totals.ledger.rows().iter();
            let rows = rows
                .filter(|row| !matches!(row.phase, Phase::Timeout | Phase::Status | Phase::Check | Phase::Abandoned));
            let most = rows.max_by_key(|row| row.count).map(|row| describe_row_cause(row, self.plan));
            return Some(format!(
                "{} failed during the probe: {}",
                if failed == 1 {
                    "1 connect or request".to_owned()
                } else {
                    format!("{} connects or requests", format_thousands(failed))
                },
                most.unwrap_or_default()
            ));
        }
        let least = SILENT_RESPONSES / self.base.run.per_tick;
        let silences = ticks.split(|&responses| responses > 0.0).map(|silence| silence.len() as f64);
        let silent_s = silences.filter(|&silence| silence >= least).sum::<f64>() * TICK.as_secs_f64();
        if silent_s > SILENT * length_s {
            return Some(format!("the target sent no response for {} during the probe", format_ms(silent_s)));
        }
        if counters.idle_closed as f64 > FAILED * counters.completed as f64 {
            return Some(format!(
                "the server closed connections between requests {} times during the probe",
                counters.idle_closed
            ));
        }
        let refused = unsuccessful_share_of(totals);
        (refused > self.refused + FAILED).then(|| {
            format!(
                "{:.0} % of the responses in the probe were unsuccessful, {:.0} % in the run",
                100.0 * refused,
                100.0 * self.refused
            )
        })
    }
}

/// A probe without a result.
fn failed_probe(why: String, totals: &Totals) -> Probe {
    Probe { failed: Some(why), requests: totals.counters.started, ..Probe::default() }
}

/// A time in running text, in whole milliseconds.
fn format_ms(seconds: f64) -> String {
    format_duration_spaced(Duration::from_millis((seconds * 1e3).round() as u64))
}

/// Share of responses that are unsuccessful by their status or by a check.
fn unsuccessful_share(outcome: &Outcome) -> f64 {
    unsuccessful_share_of(&outcome.totals)
}

fn unsuccessful_share_of(totals: &Totals) -> f64 {
    let Errors { status, check, .. } = totals.ledger.totals();
    status.max(check) as f64 / totals.counters.completed.max(1) as f64
}

/// Rounds counts to whole numbers with the same sum. Counts are fractional where late responses are spread over several
/// ticks.
fn round_preserving_sum(counts: &[f64]) -> Vec<u64> {
    let (mut sum, mut told) = (0.0, 0);
    let whole = |&count: &f64| {
        sum += count;
        let next = (sum + 0.5) as u64;
        next - std::mem::replace(&mut told, next)
    };
    counts.iter().map(whole).collect()
}
