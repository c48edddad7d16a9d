//! The rule on the probe, and advice if nothing decides: latencies alone do not show whether requests queued.

use super::find::warms_up;
use super::network::rule_on_network_queue;
use super::rate::{BEYOND, UNTOLD, may_grow, may_queue, waiting_for_connections};
use super::ruling::{Ruling, make_ruling, unclear_ruling};
use super::target::rule_on_target_cpu;
use super::threads::generator_utilization_clause;
use super::words::{format_number, format_percent};
use crate::record::evidence::{Backlog, Elasticity, Evidence, Probe};
use onrush_plan::LimitedBy;

/// A shorter run with a rate, in seconds, does not show its quietest time.
const SHORT_S: f64 = 3.0;
/// Below this elasticity, more requests in flight reduce the rate.
const BACKWARDS: f64 = -0.3;

/// In a sentence, a rate is the same, or half, if it differs by less than this share of the larger rate.
const ABOUT: f64 = 0.05;
/// The reason given for an unclear closed loop without a probe.
const SHOWN: &str = "nothing observed tells which";
/// The summary for an unclear closed loop without a probe.
const EITHER: &str = "the limit is unclear (the target, or the number in flight)";
/// A probe longer than this, in seconds, is not advised.
const PROBE_MAX_S: f64 = 120.0;
/// Factor by which to lengthen a probe that was not precise enough.
const PRECISER: f64 = 4.0;

/// Judges by the probe after the run or by the stages of the run.
pub(super) fn rule_on_probe(evidence: &Evidence) -> Option<Ruling> {
    let probe = evidence.probe.as_ref()?;
    let (first, other) = probe.in_flight()?;
    let Elasticity { low, high, .. } = probe.elasticity?;
    let options = inflight_options(u64::from(first), u64::from(other), evidence.load.connections.max(1));
    let about = |per_s: f64| match &options {
        (options, true) => format!("use {options} for about {}/s", format_number(per_s)),
        (options, false) => format!("use {options}"),
    };
    let [first_per_s, other_per_s] = [first, other].map(|in_flight| probe.rate_per_s(in_flight));
    let rates = format!(
        "{}/s with {} in flight, {}/s with {} in flight",
        format_number(first_per_s),
        format_number(first.into()),
        format_number(other_per_s),
        format_number(other.into())
    );
    if low > BEYOND {
        let reason = format!("the probe was inconclusive: {rates}");
        return Some(unclear_ruling("the limit is unclear (the connections differ)", reason, None));
    }
    let so_many = describe_in_flight(first, other);
    let gave = describe_relative_change(first_per_s, other_per_s);
    if low > Elasticity::FOLLOWS {
        let (summary, advice) = if other > first {
            (format!("{so_many} gave {gave}"), about(other_per_s))
        } else {
            let is_half = first == 2 * other && (other_per_s / first_per_s - 0.5).abs() < ABOUT;
            let so_much = if is_half { "half" } else { &gave };
            let up = if probe.is_from_stages() { "" } else { "--probe up tells whether more would raise the rate" };
            (format!("{so_many} gave {so_much}"), up.to_owned())
        };
        let summary = format!("the number of requests in flight is the limit ({summary})");
        return make_ruling(LimitedBy::Connections, summary, rates, &advice);
    }
    if high < BACKWARDS {
        let advice = if other < first { about(other_per_s) } else { String::new() };
        let summary = format!("the target is beyond its limit ({so_many} gave {gave})");
        return make_ruling(LimitedBy::Target, summary, rates, &advice);
    }
    if high < Elasticity::STAYS {
        if let Some(queued) = rule_on_network_queue(evidence) {
            return Some(queued);
        }
        let target = rule_on_target_cpu(evidence).map_or_else(String::new, |ruling| format!("; {}", ruling.reason));
        let change = other_per_s / first_per_s - 1.0;
        let is_same = change.abs() < ABOUT;
        let so_much = if is_same { format!("the same {}/s", format_number(first_per_s)) } else { gave };
        let summary = format!("the target is at its limit ({so_many} gave {so_much})");
        let advice = if other < first && change >= ABOUT { about(other_per_s) } else { String::new() };
        return make_ruling(LimitedBy::Target, summary, rates + &target, &advice);
    }
    if low > Elasticity::STAYS && high < Elasticity::FOLLOWS {
        let more = if other > first { about(other_per_s) } else { String::new() };
        let summary = format!("the target is near its limit ({so_many} gave {gave})");
        return make_ruling(LimitedBy::Knee, summary, rates, &more);
    }
    None
}

/// Describes the number of `other` requests in flight relative to `first`.
fn describe_in_flight(first: u32, other: u32) -> String {
    // Among few requests, one more or less is a different share.
    let is_about = |exact: bool| exact || first >= 10;
    match (first, other) {
        (1, 2) => "twice as many in flight".to_owned(),
        _ if first / 2 == other && is_about(first.is_multiple_of(2)) => "half as many in flight".to_owned(),
        _ if first - first / 4 == other && is_about(first.is_multiple_of(4)) => "three quarters in flight".to_owned(),
        _ if first + first.div_ceil(2) == other && is_about(first.is_multiple_of(2)) => {
            "half as many more in flight".to_owned()
        }
        _ => format!("{other} in flight instead of {first}"),
    }
}

/// The relative change between two rates.
fn describe_relative_change(first_per_s: f64, other_per_s: f64) -> String {
    let change = other_per_s / first_per_s.max(f64::MIN_POSITIVE) - 1.0;
    format!("{} {}", format_percent(change.abs()), if change < 0.0 { "less" } else { "more" })
}

/// The options that change the number in flight from `first` to about `other` on this many connections, with
/// connections as in the probe. True if the options give exactly `other`.
fn inflight_options(first: u64, other: u64, connections: u64) -> (String, bool) {
    let streams = (first / connections).max(1);
    let needed = other.div_ceil(streams);
    let each = match other.div_ceil(needed) {
        each if (needed, each) == (connections, streams) => other / needed,
        each => each,
    };
    let options = if each == streams {
        format!("-c {needed}")
    } else if needed == connections {
        format!("--streams {each}")
    } else {
        format!("-c {needed} --streams {each}")
    };
    (options, needed * each == other)
}

/// The verdict if nothing decides, with advice on how to find out.
pub(super) fn unclear_without_rule(evidence: &Evidence) -> Ruling {
    let Evidence { load, probe, .. } = evidence;
    if load.asked_per_s.is_some() {
        // With few responses, the usual number of requests in flight is unknown.
        let is_short = load.usually_left.is_none() || may_grow(load) || may_queue(load);
        let advice = is_short.then(|| "run longer (-d)".to_owned());
        let grows = load.backlog.filter(|_| may_grow(load) || may_queue(load));
        let ended = "the numbers of due and finished requests do not tell".to_owned();
        let reason = grows.map_or(ended, |Backlog { before, last, least, .. }| {
            let waiting = waiting_for_connections(load);
            let [mean, before, last] = [before.midpoint(last) + waiting, before, last].map(format_number);
            match least.filter(|_| !may_grow(load)).map(format_number) {
                Some(_) if load.elapsed_s < SHORT_S => {
                    format!("{mean} requests were in flight on average, in a run too short to tell a queue from slow responses")
                }
                Some(least) => {
                    let waited = if waiting < 0.5 { "" } else { " or waited for a connection" };
                    format!("{mean} requests were in flight{waited} on average and {least} at the quietest time, like the queue of a target at its limit")
                }
                None => {
                    format!("{before} requests were in flight earlier in the run and {last} later, which may be chance or a backlog")
                }
            }
        });
        return unclear_ruling(UNTOLD, reason, advice);
    }
    let probe = probe.clone().unwrap_or_default();
    let would = |up: bool, time_s: f64| {
        let up = if up { "up:" } else { "" };
        // A longer probe does not help while the rate rises.
        if warms_up(load) {
            return Some("add --warmup: the rate rose during the run".to_owned());
        }
        (time_s <= PROBE_MAX_S).then(|| format!("--probe {up}{}s may tell", time_s.ceil().max(1.0)))
    };
    let (reason, advice) = match (&probe, probe.in_flight(), probe.elasticity) {
        (Probe { failed: Some(failed), needed_s, up, .. }, ..) => {
            let longer = needed_s.and_then(|time_s| would(*up, time_s));
            (format!("the probe after the run was inconclusive: {failed}"), longer)
        }
        (_, Some((first, other)), Some(Elasticity { low, high, .. })) => {
            // Converts an elasticity to the change of the rate at this ratio of requests in flight.
            let ratio = f64::from(other) / f64::from(first);
            let change = |elasticity: f64| format_percent((1.0 - ratio.powf(elasticity.clamp(0.0, 1.0))).abs());
            let reason = format!(
                "with {other} in flight instead of {first}, the target answered {} to {} {} requests, which is not \
                 precise enough: {} would mean the number in flight, and 0 % the target",
                change(low),
                change(high),
                if other > first { "more" } else { "fewer" },
                change(1.0),
            );
            (reason, would(other > first, probe.duration_s * PRECISER).filter(|_| !probe.is_from_stages()))
        }
        _ => match probe.needed_s {
            Some(time_s) if probe.was_planned => {
                (format!("{SHOWN}, and there was too little time for a probe"), would(probe.up, time_s))
            }
            Some(time_s) => (SHOWN.to_owned(), would(probe.up, time_s)),
            None if probe.was_planned => (SHOWN.to_owned(), Some("run longer (-d)".to_owned())),
            None => (SHOWN.to_owned(), None),
        },
    };
    unclear_ruling(EITHER, reason + &generator_utilization_clause(evidence), advice)
}
