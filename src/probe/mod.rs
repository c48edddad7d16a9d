//! The probe after a closed loop: does the target answer less if fewer requests are in flight?
//!
//! The workers of the run go on with half as many requests in flight: on the same connections, with the same script,
//! before the target could rest. `course.rs` decides for how long, and what follows, tick by tick; `rate.rs` is the
//! statistics. If more are to be in flight than the run had connections for, another run opens them. Nothing here
//! decides what limited a run.

mod course;
mod rate;
#[cfg(test)]
mod simulation;

use std::time::Duration;

use onrush_plan::{Load, Plan, Probing, Stop};
use onrush_stats::{Errors, Phase, Totals};
use onrush_text::units::{counted, spaced};

use crate::failure::why_row;
use crate::run::{Interrupt, Outcome, Probe, RUN_TICK, RunEnd, Slot, TICK, Tail, TailEnd, nanos};
use crate::session;

use course::{BaselineRun, ProbeCourse, ProbeStep, TickCounts, Unaffordable};
use rate::MeasuredRate;

/// The largest part of the time for which onrush may be stalled ...
const STOPPED: f64 = 0.05;
/// ... and for which the target may send nothing, with requests in flight ...
const SILENT: f64 = 0.1;
/// ... each time for as long as so many responses would have taken in the run.
const SILENT_RESPONSES: f64 = 40.0;
/// The largest share of requests that may fail, and by which error pages may be more than in the run; of as many,
/// connections may be closed while they do not send.
const FAILED: f64 = 0.01;
/// The longest time that opening a connection takes, with a TLS handshake of a slow target, where a probe needs more
/// ...
const OPENING: Duration = Duration::from_micros(500);
/// ... and the least for all of them.
const OPENING_MIN: Duration = Duration::from_millis(200);

/// The run that a probe follows.
struct ProbedRun<'a> {
    plan: &'a Plan,
    /// How many requests each connection had in flight.
    streams: u32,
    /// How many requests of a script are sent together, and count as one in flight.
    batch: u64,
    /// The responses in each part of the end of the run.
    counts: &'a [f64],
    base: BaselineRun,
    /// The share of the responses that were unsuccessful.
    refused: f64,
}

/// The probe after a closed loop, whose workers stay if it is to go on with them; if there is none, how long one would
/// take. A signal ends it alone. `None`: none can follow.
pub fn after(plan: &Plan, outcome: &mut Outcome, tail: Option<Tail>, interrupt: &Interrupt) -> Option<Probe> {
    if Probing::obstacle(plan).is_some() {
        dismiss(tail, outcome);
        return None;
    }
    let streams = outcome.streams(plan);
    let in_flight = plan.load.connections.saturating_mul(streams);
    let probing = plan.output.probing.unwrap_or(Probing { up: false, time: Duration::ZERO });
    let (other, needs_more) = (probing.other(in_flight), probing.needs_more(in_flight));
    let none = Probe { up: other > in_flight, was_planned: plan.output.probing.is_some(), ..Probe::default() };
    let counts = outcome.recent.clone();
    let counts = &counts[first_of_last_part(counts.len())..];
    if outcome.batch > 1 && streams > 1 {
        dismiss(tail, outcome);
        let why = "requests of a script that are sent together share the streams of a connection";
        return Some(Probe { failed: Some(why.to_owned()), ..none });
    }
    let Some(run) = MeasuredRate::at_end(counts, in_flight) else {
        dismiss(tail, outcome);
        return Some(none);
    };
    let run = run.in_shorter_ticks((RUN_TICK.as_nanos() / TICK.as_nanos()) as u32);
    let opening = if needs_more { OPENING_MIN.max(OPENING * other.div_ceil(streams)) } else { Duration::ZERO };
    let ticks = probing.time.saturating_sub(opening).as_nanos() / TICK.as_nanos();
    let base = BaselineRun { run, other, ticks: ticks as u64 };
    let setting =
        ProbedRun { plan, streams, batch: outcome.batch as u64, counts, base, refused: refused_share(outcome) };
    if let Err(Unaffordable(ticks)) = ProbeCourse::begin(base, 0, in_flight.into()) {
        dismiss(tail, outcome);
        let needed_s = Some((opening + TICK * ticks as u32).as_secs_f64());
        return Some(Probe { needed_s, ..none });
    }
    Some(match tail {
        Some(tail) if !needs_more => {
            let (probe, end) = setting.carry_out(tail, Totals::default(), Duration::ZERO, interrupt);
            outcome.stuck.extend(end.stuck);
            probe
        }
        tail => {
            dismiss(tail, outcome);
            setting.carry_out_with_more(opening, interrupt)
        }
    })
}

/// Ends the workers of a run that nobody needs any more.
pub fn dismiss(tail: Option<Tail>, outcome: &mut Outcome) {
    if let Some(tail) = tail {
        outcome.stuck.extend(tail.end().stuck);
    }
}

/// Beginning of the last of so many equal parts of a run: its first part may differ from the rest.
fn first_of_last_part(counts: usize) -> usize {
    counts - (counts * 7 / 10).max(10).min(counts)
}

impl ProbedRun<'_> {
    /// Carries out a probe for which a run of its own opens more connections first.
    fn carry_out_with_more(&self, opening: Duration, interrupt: &Interrupt) -> Probe {
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
                    tail.end();
                    return failed(format!("only {open} of its {connections} connections were open"), &outcome.totals);
                }
                self.carry_out(tail, outcome.totals, opening, interrupt).0
            }
            Ok(session::SessionResult { outcome, .. }) => {
                let is_signal = matches!(outcome.ended, RunEnd::Signal | RunEnd::NeverBegun);
                let why = if is_signal { Probe::SIGNAL } else { "its connections could not be opened" };
                failed(why.to_owned(), &outcome.totals)
            }
            Err(error) => failed(format!("it failed: {error:#}"), &Totals::default()),
        }
    }

    /// Carries out a probe with these workers, which have recorded something of it before, in this time.
    fn carry_out(&self, mut tail: Tail, before: Totals, passed: Duration, interrupt: &Interrupt) -> (Probe, TailEnd) {
        let (begin, base) = (tail.tick(), &self.base);
        let Ok(mut course) = ProbeCourse::begin(*base, begin, tail.in_flight().div_ceil(self.batch)) else {
            unreachable!("it has begun before")
        };
        tail.limit(course.first(), self.streams);
        let broke_off = loop {
            if !tail.wait(interrupt) {
                break Some("a thread of onrush, or its script, ended early".to_owned());
            }
            if interrupt.is_asked() {
                break Some(Probe::SIGNAL.to_owned());
            }
            let in_flight = tail.in_flight().div_ceil(self.batch);
            let look = TickCounts { tick: tail.tick(), in_flight, ticks: &|from| tail.ticks(from) };
            match course.go_on(&look) {
                ProbeStep::Wait => {}
                ProbeStep::Limit(in_flight) => tail.limit(in_flight, self.streams),
                ProbeStep::End => break None,
            }
        };
        let ticks = tail.ticks(begin).to_vec();
        let length = TICK * tail.tick().saturating_sub(begin) as u32;
        let mut end = tail.end();
        end.totals += &before;
        let counters = &end.totals.counters;
        let mut probe =
            Probe { duration_s: (passed + length).as_secs_f64(), requests: counters.started, ..Probe::default() };
        probe.failed = broke_off.or_else(|| self.unlike(&end, &ticks));
        if probe.failed.is_none() {
            self.tell(&mut probe, &course, &ticks, begin);
        }
        (probe, end)
    }

    /// Adds the results of a probe's course.
    fn tell(&self, probe: &mut Probe, course: &ProbeCourse, ticks: &[f64], begin: u64) {
        let per_s = |rate: &MeasuredRate| rate.per_tick / TICK.as_secs_f64();
        if let Some([was, now]) = course.drift() {
            let in_flight = self.base.run.in_flight;
            let [was, now] = [was, now].map(|rate| per_s(&rate));
            let drift =
                format!("with {in_flight} in flight the target answered {was:.0} requests/s, and {now:.0} later");
            probe.failed = Some(drift);
            return;
        }
        let Some(told) = course.result() else {
            let other = self.base.other;
            probe.failed = Some(format!("the requests in flight did not become {other} soon enough for an answer"));
            probe.needed_s = Some(2.0 * probe.duration_s);
            probe.up = other > self.base.run.in_flight;
            return;
        };
        let run = Slot {
            in_flight: self.base.run.in_flight,
            tick_s: RUN_TICK.as_secs_f64(),
            completed: whole(&self.counts[self.counts.len() - self.base.run.ticks..]),
        };
        let slot = |window: &course::ProbeWindow| {
            let from = (window.from - begin) as usize;
            Slot {
                in_flight: window.in_flight,
                tick_s: TICK.as_secs_f64(),
                completed: whole(&ticks[from..from + window.ticks as usize]),
            }
        };
        // The two that are compared come first.
        let of = |is: &dyn Fn(u32) -> bool| -> Vec<Slot> {
            course.windows.iter().filter(|window| is(window.in_flight)).map(slot).collect()
        };
        let (all, told_of) = (run.in_flight, told.0.in_flight);
        let repeated = of(&|in_flight| in_flight == all);
        let run = if repeated.is_empty() { vec![run] } else { repeated };
        probe.slots = [run, of(&|it| it == told_of), of(&|it| ![all, told_of].contains(&it))].concat();
        probe.elasticity = Some(told.1);
    }

    /// Returns why a probe tells nothing, as the end of a sentence.
    fn unlike(&self, end: &TailEnd, ticks: &[f64]) -> Option<String> {
        let TailEnd { totals, stalled_ns, .. } = end;
        let counters = &totals.counters;
        let length_s = ticks.len() as f64 * TICK.as_secs_f64();
        let stalled_s = *stalled_ns as f64 / nanos(Duration::from_secs(1)) as f64;
        if stalled_s > STOPPED * length_s {
            return Some(format!("onrush was stalled for {} in it", in_ms(stalled_s)));
        }
        let errors = totals.ledger.totals();
        let failed = errors.connect + errors.read + errors.write;
        if failed as f64 > FAILED * counters.completed as f64 {
            let rows = totals.ledger.rows().iter();
            let rows = rows
                .filter(|row| !matches!(row.phase, Phase::Timeout | Phase::Status | Phase::Check | Phase::Abandoned));
            let most = rows.max_by_key(|row| row.count).map(|row| why_row(row, self.plan));
            return Some(format!(
                "{} failed in it: {}",
                counted(failed, "connect or request"),
                most.unwrap_or_default()
            ));
        }
        let least = SILENT_RESPONSES / self.base.run.per_tick;
        let silences = ticks.split(|&responses| responses > 0.0).map(|silence| silence.len() as f64);
        let silent_s = silences.filter(|&silence| silence >= least).sum::<f64>() * TICK.as_secs_f64();
        if silent_s > SILENT * length_s {
            return Some(format!("the target sent no response for {} in it", in_ms(silent_s)));
        }
        if counters.idle_closed as f64 > FAILED * counters.completed as f64 {
            return Some(format!("the server closed connections between requests, {} in all", counters.idle_closed));
        }
        let refused = refused_of(totals);
        (refused > self.refused + FAILED).then(|| {
            format!(
                "{:.0} % of the responses in it were unsuccessful, and {:.0} % in the run",
                100.0 * refused,
                100.0 * self.refused
            )
        })
    }
}

/// A probe that tells nothing.
fn failed(why: String, totals: &Totals) -> Probe {
    Probe { failed: Some(why), requests: totals.counters.started, ..Probe::default() }
}

/// A time in running text, in whole milliseconds.
fn in_ms(seconds: f64) -> String {
    spaced(Duration::from_millis((seconds * 1e3).round() as u64))
}

/// The share of the responses that are unsuccessful, by their status or by a check.
fn refused_share(outcome: &Outcome) -> f64 {
    refused_of(&outcome.totals)
}

fn refused_of(totals: &Totals) -> f64 {
    let Errors { status, check, .. } = totals.ledger.totals();
    status.max(check) as f64 / totals.counters.completed.max(1) as f64
}

/// Counts as whole numbers with an equal sum: parts of late responses belong to several ticks.
fn whole(counts: &[f64]) -> Vec<u64> {
    let (mut sum, mut told) = (0.0, 0);
    let whole = |&count: &f64| {
        sum += count;
        let next = (sum + 0.5) as u64;
        next - std::mem::replace(&mut told, next)
    };
    counts.iter().map(whole).collect()
}
