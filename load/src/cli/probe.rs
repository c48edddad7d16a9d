//! Parses `--probe`, and decides whether a probe follows a run.

use std::time::Duration;

use onrush_plan::{Format, Plan, Probing};

use super::refusal::PlanRefusal;
use super::values::Value;

/// Without `--probe`, only a run of at least this length is followed by a probe ...
const LENGTH_MIN: Duration = Duration::from_secs(10);
/// ... that takes this fraction of the run ...
const PART: u32 = 5;
/// ... and at most this long.
const TIME_MAX: Duration = Duration::from_secs(6);

/// `--probe`, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftProbe {
    /// No probe at all.
    Off,
    /// A probe.
    On {
        /// True for more requests in flight than the run has, not fewer.
        up: bool,
        /// Maximum duration; `None` for the usual one.
        time: Option<Duration>,
    },
}

pub(super) fn parse_probe(value: Value) -> Result<DraftProbe, PlanRefusal> {
    let text = value.utf8().unwrap_or_default();
    let (up, rest) = match text.strip_prefix("up") {
        Some("") => return Ok(DraftProbe::On { up: true, time: None }),
        Some(rest) => (true, rest.strip_prefix(':')),
        None if text == "off" => return Ok(DraftProbe::Off),
        None => (false, Some(text)),
    };
    let time = rest.and_then(|rest| value.part(rest).time().ok());
    match time.filter(|time| !time.is_zero()) {
        Some(time) => Ok(DraftProbe::On { up, time: Some(time) }),
        None => Err(value.wrong("write off, a time such as 2s, up, or up:2s")),
    }
}

/// The probe that may follow the run of a plan; `None` if there is none. Rejects a requested probe
/// that the plan does not allow.
pub(super) fn decide_probe(plan: &Plan, typed: Option<DraftProbe>) -> Result<Option<Probing>, PlanRefusal> {
    let duration = plan.stop.duration.unwrap_or_default();
    let usual = (duration / PART).min(TIME_MAX);
    let begins_again =
        |up| plan.script.is_some() && Probing { up, time: usual }.needs_more_connections(plan.in_flight_max());
    match (typed, Probing::reason_against(plan)) {
        (Some(DraftProbe::Off), _) => Ok(None),
        (Some(DraftProbe::On { up, .. }), None) if begins_again(up) => {
            let line = "--probe: with more in flight, the requests of a script would have to begin again; leave it out";
            Err(PlanRefusal::Misused(line.to_owned()))
        }
        (Some(DraftProbe::On { up, time }), None) => {
            Ok(Some(Probing { up, time: time.unwrap_or(usual.max(LENGTH_MIN / PART)) }))
        }
        (Some(DraftProbe::On { .. }), Some(why)) => Err(PlanRefusal::Misused(format!("--probe: {why}; leave it out"))),
        (None, obstacle) => {
            let is_usual = duration >= LENGTH_MIN && plan.stop.requests.is_none() && plan.until.is_empty();
            let is_harmless = ["GET", "HEAD"].contains(&&plan.request.method[..])
                && plan.body.is_none()
                && plan.script.is_none()
                && plan.list.as_ref().is_none_or(|list| list.is_safe);
            // A probe sends requests only if it was announced, which only notes below a text report
            // do.
            let is_announced = plan.output.notes && plan.output.format == Format::Text && !plan.dialect.is_compat();
            let follows = obstacle.is_none() && is_usual && is_harmless && is_announced;
            Ok(follows.then_some(Probing { up: false, time: usual }))
        }
    }
}

/// Switches off the probe for each of several runs, which give the answer together.
///
/// # Errors
///
/// Fails if a probe was requested.
pub fn forbid_probe(typed: &mut Option<DraftProbe>) -> Result<(), PlanRefusal> {
    match typed.replace(DraftProbe::Off) {
        None | Some(DraftProbe::Off) => Ok(()),
        Some(DraftProbe::On { .. }) => {
            let line = "--probe: a search or an experiment varies the load itself; leave it out";
            Err(PlanRefusal::Misused(line.to_owned()))
        }
    }
}
