//! Parses `--probe`, and decides whether a probe follows a run.

use std::ffi::OsStr;
use std::time::Duration;

use onrush_plan::{Dialect, Format, Plan, Probing};

use super::flag::Flag;
use super::refusal::{PlanRefusal, wrong};
use super::values::parse_time;

/// Without `--probe`, only a run of at least this length is followed by a probe ...
const LENGTH_MIN: Duration = Duration::from_secs(10);
/// ... that takes this fraction of the run ...
const PART: u32 = 5;
/// ... and at most this long.
const TIME_MAX: Duration = Duration::from_secs(6);

/// The value of `--probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedProbe {
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

pub(super) fn parse_probe(flag: &Flag, value: &OsStr) -> Result<TypedProbe, PlanRefusal> {
    let text = value.to_str().unwrap_or_default();
    let (up, rest) = match text.strip_prefix("up") {
        Some("") => return Ok(TypedProbe::On { up: true, time: None }),
        Some(rest) => (true, rest.strip_prefix(':')),
        None if text == "off" => return Ok(TypedProbe::Off),
        None => (false, Some(text)),
    };
    let time = rest.map(|rest| parse_time(flag, OsStr::new(rest), Dialect::Native)).and_then(Result::ok);
    match time.filter(|time| !time.is_zero()) {
        Some(time) => Ok(TypedProbe::On { up, time: Some(time) }),
        None => Err(wrong(flag, value, "write off, a time such as 2s, up, or up:2s")),
    }
}

/// The probe that may follow the run of a plan; `None` if there is none. Rejects a requested probe
/// that the plan does not allow.
pub(super) fn decide_probe(plan: &Plan, typed: Option<TypedProbe>) -> Result<Option<Probing>, PlanRefusal> {
    let duration = plan.stop.duration.unwrap_or_default();
    let usual = (duration / PART).min(TIME_MAX);
    let begins_again =
        |up| plan.script.is_some() && Probing { up, time: usual }.needs_more_connections(plan.in_flight_max());
    match (typed, Probing::reason_against(plan)) {
        (Some(TypedProbe::Off), _) => Ok(None),
        (Some(TypedProbe::On { up, .. }), None) if begins_again(up) => {
            let line = "--probe: with more in flight, the requests of a script would have to begin again; leave it out";
            Err(PlanRefusal::Misused(line.to_owned()))
        }
        (Some(TypedProbe::On { up, time }), None) => {
            Ok(Some(Probing { up, time: time.unwrap_or(usual.max(LENGTH_MIN / PART)) }))
        }
        (Some(TypedProbe::On { .. }), Some(why)) => Err(PlanRefusal::Misused(format!("--probe: {why}; leave it out"))),
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
pub fn forbid_probe(typed: &mut Option<TypedProbe>) -> Result<(), PlanRefusal> {
    match typed.replace(TypedProbe::Off) {
        None | Some(TypedProbe::Off) => Ok(()),
        Some(TypedProbe::On { .. }) => {
            let line = "--probe: a search or an experiment varies the load itself; leave it out";
            Err(PlanRefusal::Misused(line.to_owned()))
        }
    }
}
