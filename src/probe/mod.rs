//! The probe after a closed loop: does the target answer less if fewer requests are in flight?
//!
//! `design.rs` decides how long the slots must be and whether there is time for them, [`after`] carries them out on new
//! connections, and `elasticity.rs` is what follows from the responses in them. Nothing here decides what limited a run.

mod design;
mod elasticity;

use std::time::Duration;

use onrush_plan::levels::Level;
use onrush_plan::{Levels, Load, Part, Plan, Probing, Slots, Stop};
use onrush_stats::{Errors, Phase};
use onrush_text::units::counted;

use crate::failure::why_row;
use crate::live::ProgressLine;
use crate::record::evidence::measured::{heard_s, silences};
use crate::run::{Ended, Interrupt, Observer, Outcome, Probe, Slot, nanos};
use crate::session;

use design::{Base, Design, Unaffordable};
use elasticity::elasticity;

/// The share of the connections that must be open on average; with fewer, slots differ in more than is asked for.
const OPEN: f64 = 0.98;
/// By this much, as a logarithm, the rate may differ from that of the run before.
const CHANGED: f64 = 0.2;
/// The largest part of the time for which onrush may be stalled ...
const STOPPED: f64 = 0.05;
/// ... and for which the target may send nothing, with requests in flight.
const SILENT: f64 = 0.1;
/// The largest share of requests that may fail, and by which error pages may be more than in the run; of as many,
/// connections may be closed while they do not send.
const FAILED: f64 = 0.01;

/// The probe after a closed loop; if there is none, how long one would take. A signal ends it alone. `None`: none
/// can follow.
pub fn after(plan: &Plan, outcome: &Outcome, interrupt: &Interrupt) -> Option<Probe> {
    if Probing::obstacle(plan).is_some() {
        return None;
    }
    let latency = &outcome.totals.latency;
    let at = |percent: f64| Duration::from_nanos(latency.percentile(percent));
    let streams = outcome.streams(plan);
    let in_flight = plan.load.connections.saturating_mul(streams);
    let rate_per_s = outcome.totals.counters.completed as f64 / outcome.elapsed.as_secs_f64();
    let base = Base { in_flight, streams, rate_per_s, p50: at(50.0), p90: at(90.0) };
    let asked = plan.show.probing.and_then(|probing| Some((probing.other(in_flight)?, probing.time)));
    // Where a single request was in flight, only more can be tried.
    let usual = || Probing { up: in_flight == 1, time: Duration::ZERO }.other(in_flight);
    let (other, time) = asked.or_else(|| Some((usual()?, Duration::ZERO)))?;
    let refused = refused_share(outcome);
    Some(match Design::of(&base, other, time) {
        Ok(design) => as_before(run(plan, &design, refused, interrupt), &base),
        Err(Unaffordable { needed }) => {
            let was_planned = plan.show.probing.is_some();
            Probe { needed_s: Some(needed.as_secs_f64()), up: other > in_flight, was_planned, ..Probe::default() }
        }
    })
}

/// The probe, which tells nothing if the target was not as it was in the run.
fn as_before(mut probe: Probe, base: &Base) -> Probe {
    let per_s = probe.in_flight().map(|(first, _)| probe.rate_per_s(first));
    if let Some(per_s) = per_s.filter(|per_s| (per_s / base.rate_per_s).ln().abs() > CHANGED) {
        let was = base.rate_per_s;
        probe.failed = Some(format!("the target answered {per_s:.0} requests/s in it, and {was:.0} in the run"));
        probe.elasticity = None;
    }
    probe
}

/// The share of the responses that are unsuccessful, by their status or by a check.
fn refused_share(outcome: &Outcome) -> f64 {
    let Errors { status, check, .. } = outcome.totals.ledger.totals();
    status.max(check) as f64 / outcome.totals.counters.completed.max(1) as f64
}

/// Carries out a probe with the plan of a run that has just ended, in which this share of the responses was unsuccessful.
fn run(plan: &Plan, design: &Design, refused: f64, interrupt: &Interrupt) -> Probe {
    let plan = of(plan, design);
    let mut line = ProgressLine::on_stderr("probe: ", &plan);
    let ran = session::run(&plan, interrupt, &mut [&mut Ticks(design.tick), &mut line]);
    drop(line);
    let outcome = match ran {
        Ok(ran) => ran.outcome,
        Err(error) => return Probe { failed: Some(format!("it failed: {error:#}")), ..Probe::default() },
    };
    let counters = &outcome.totals.counters;
    let mut probe = Probe {
        duration_s: (design.warm_up + outcome.elapsed).as_secs_f64(),
        requests: counters.started + counters.carried,
        ..Probe::default()
    };
    match unlike(&plan, &outcome, refused).map_or_else(|| slots(design, &outcome), Err) {
        Ok(slots) => {
            probe.slots = slots;
            probe.elasticity = elasticity(&probe);
            if probe.elasticity.is_none() {
                probe.failed = Some("there was no response in one of its slots".to_owned());
            }
        }
        Err(why) => probe.failed = Some(why),
    }
    probe
}

/// The plan of a probe: the same requests, with slots instead of an end.
fn of(plan: &Plan, design: &Design) -> Plan {
    let slot = |&count: &u32| Level { length: design.slot(), from: count, to: count };
    let active = Levels { stages: design.slots().iter().map(slot).collect(), part: Part::WHOLE };
    let mut plan = Plan {
        stop: Stop { duration: Some(design.slot() * design.count), requests: None },
        slots: Some(Slots { active, sample: design.tick }),
        warmup: design.warm_up,
        until: Vec::new(),
        phases: false,
        ..plan.clone()
    };
    plan.http.streams = plan.http.streams.map(|_| design.streams);
    plan.load = Load::new(plan.load.threads, design.connections());
    plan
}

/// The length of a row is that of a tick.
struct Ticks(Duration);

impl Observer for Ticks {
    fn row(&self) -> Option<Duration> {
        Some(self.0)
    }
}

/// What happened in a probe, so that it tells nothing, as the end of a sentence; in the run before, this share of the
/// responses was unsuccessful.
fn unlike(plan: &Plan, outcome: &Outcome, refused: f64) -> Option<String> {
    let counters = &outcome.totals.counters;
    if matches!(outcome.ended, Ended::Signal | Ended::NeverBegun) {
        return Some(Probe::SIGNAL.to_owned());
    }
    let elapsed_s = outcome.elapsed.as_secs_f64();
    let stalled_s = outcome.stalls.iter().map(|gap| gap.length_ns()).sum::<u64>() as f64 / 1e9;
    if stalled_s > STOPPED * elapsed_s {
        return Some(format!("onrush was stalled for {stalled_s:.1} s in it"));
    }
    let errors = outcome.totals.ledger.totals();
    let failed = errors.connect + errors.read + errors.write;
    if failed as f64 > FAILED * counters.completed as f64 {
        let rows = outcome.totals.ledger.rows().iter();
        let rows =
            rows.filter(|row| !matches!(row.phase, Phase::Timeout | Phase::Status | Phase::Check | Phase::Abandoned));
        let most = rows.max_by_key(|row| row.count).map(|row| why_row(row, plan));
        return Some(format!("{} failed in it: {}", counted(failed, "connect or request"), most.unwrap_or_default()));
    }
    let silent_s = heard_s(&silences(plan, outcome));
    if silent_s > SILENT * elapsed_s {
        return Some(format!("the target sent no response for {silent_s:.1} s in it"));
    }
    if counters.idle_closed as f64 > FAILED * counters.completed as f64 {
        return Some(format!("the server closed connections between requests, {} in all", counters.idle_closed));
    }
    let refused_now = refused_share(outcome);
    (refused_now > refused + FAILED).then(|| {
        format!(
            "{:.0} % of the responses in it were unsuccessful, and {:.0} % in the run",
            100.0 * refused_now,
            100.0 * refused
        )
    })
}

/// The slots of a probe.
///
/// # Errors
///
/// Why it tells nothing, as the end of a sentence.
fn slots(design: &Design, outcome: &Outcome) -> Result<Vec<Slot>, String> {
    let counters = &outcome.totals.counters;
    let elapsed_ns = nanos(outcome.elapsed).max(1) as f64;
    let open = counters.occupancy.open_ns as f64 / elapsed_ns;
    let wanted = f64::from(design.connections());
    let ticks: Vec<u64> = outcome.timeline.rows.iter().map(|row| row.completed).collect();
    let per_slot = (design.slot().as_nanos() / design.tick.as_nanos()) as usize;
    if ticks.len() < per_slot * design.count as usize || outcome.timeline.length_ns != nanos(design.tick) {
        return Err("it ended early".to_owned());
    }
    if open < OPEN * wanted {
        return Err(format!("only {open:.1} of its {wanted} connections were open on average"));
    }
    let slots = design.slots().into_iter().zip(ticks.chunks(per_slot));
    let slot = |(in_flight, ticks): (u32, &[u64])| Slot {
        in_flight,
        tick_s: design.tick.as_secs_f64(),
        completed: ticks[design::DISCARDED as usize..].to_vec(),
    };
    Ok(slots.map(slot).collect())
}
