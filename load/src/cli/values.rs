//! Parses the values of options. Rejects a bad value with an example of a good one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::column::is_column;
use onrush_plan::limits::{BUFFER_MAX, THREADS_MAX, TIME_MAX};
use onrush_plan::list::ListOrder;
use onrush_plan::secrets;
use onrush_plan::{Breakout, Condition, Dialect, Format, Io, Percent, SocketOptions, Spin, StopTerm};

use super::command_line::shell_quoted;
use super::condition::{self, Purpose};
use super::flags::{Flag, Id};
use super::foreign;
use super::levels;
use super::refusal::{PlanRefusal, wrong};
use super::units::{self, UnreadableNumber};
use crate::requests::is_token;

/// The rule for counts, as printed in messages.
pub(super) const AT_LEAST_ONE: &str = "must be at least 1";

/// Parses a count of at most `most`. In the compat dialects, zero is checked later, in wrk's order and with wrk's
/// messages.
pub(super) fn parse_count(flag: &Flag, value: &OsStr, dialect: Dialect, most: u64) -> Result<u64, PlanRefusal> {
    match units::parse_count(&value.to_string_lossy(), dialect) {
        Ok(0) if !dialect.is_compat() => Err(wrong(flag, value, AT_LEAST_ONE)),
        Err(UnreadableNumber::TooLarge) => Err(wrong(flag, value, format_args!("at most {most}"))),
        Ok(count) if count > most => Err(wrong(flag, value, format_args!("at most {most}"))),
        Ok(count) => Ok(count),
        Err(reason) => {
            let text = value.to_string_lossy();
            let meant = suggest_several(flag, &text, |level| {
                parse_count(flag, OsStr::new(level), Dialect::Native, most).is_ok()
            })
            .or_else(|| foreign::foreign_value_hint(flag.id, &text).map(str::to_owned));
            if let Some(meant) = meant.filter(|_| !dialect.is_compat()) {
                return Err(wrong(flag, value, meant));
            }
            let example = if most == THREADS_MAX { "2 or 8" } else { "100 or 10k" };
            Err(wrong(flag, value, format_args!("{reason}; try {example}")))
        }
    }
}

/// Suggestion if several numbers were typed instead of one: a sweep if `is_value` accepts each number for the option,
/// or the number without its commas between thousands.
pub(super) fn suggest_several(flag: &Flag, text: &str, is_value: impl Fn(&str) -> bool) -> Option<String> {
    let option = match flag.id {
        Id::Connections | Id::Threads | Id::Rate => flag.spelling.short.map(|letter| format!("-{letter}")),
        Id::Streams => Some("--http2 --streams".to_owned()),
        _ => None,
    };
    let sweep = option
        .zip(sweep_list(flag, text, is_value))
        .map(|(option, list)| format!("onrush sweep {option} {} URL", shell_quoted(&list)));
    match (without_group_commas(text), sweep) {
        (Some(number), Some(sweep)) => Some(format!("not a number; write {number}, or for a list {sweep}")),
        (Some(number), None) => Some(format!("not a number; write {number}")),
        (None, Some(sweep)) => Some(format!("not a number; write one of them, or measure each with {sweep}")),
        (None, None) => None,
    }
}

/// A number such as `1,500`, without the commas between groups of three digits.
fn without_group_commas(text: &str) -> Option<String> {
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (first, rest) = text.split_once(',')?;
    let begins = (1..=3).contains(&first.len()) && is_digits(first) && !first.starts_with('0');
    let is_grouped = begins && rest.split(',').all(|part| part.len() == 3 && is_digits(part));
    is_grouped.then(|| text.replace(',', ""))
}

/// The list that makes a sweep of this text, if it can be one.
fn sweep_list(flag: &Flag, text: &str, is_value: impl Fn(&str) -> bool) -> Option<String> {
    let list = levels::suggest_range(text).unwrap_or_else(|| text.to_owned());
    let levels = levels::parse_levels(flag.spelling.long, &list).ok()??;
    let are_different = levels.iter().collect::<BTreeSet<_>>().len() == levels.len();
    (are_different && levels.iter().all(|level| is_value(level))).then_some(list)
}

/// Parses a buffer size in bytes.
pub(super) fn parse_buffer(flag: &Flag, value: &OsStr) -> Result<u32, PlanRefusal> {
    Ok(parse_count(flag, value, Dialect::Native, BUFFER_MAX)? as u32)
}

/// Parses the name of a congestion control algorithm. Whether the kernel has it is checked only before the run.
pub(super) fn parse_congestion(flag: &Flag, value: &OsStr) -> Result<String, PlanRefusal> {
    let name = value.to_str().filter(|text| SocketOptions::is_name(text));
    let most = SocketOptions::NAME_MAX;
    name.map(str::to_owned)
        .ok_or_else(|| wrong(flag, value, format_args!("a name has 1 to {most} characters; try cubic")))
}

/// Parses a time of at most [`TIME_MAX`]. Zero is accepted here: the option decides later what it means.
pub(super) fn parse_time(flag: &Flag, value: &OsStr, dialect: Dialect) -> Result<Duration, PlanRefusal> {
    let most = || {
        wrong(
            flag,
            value,
            format_args!("at most {}h, which is {} days", whole_hours(TIME_MAX), whole_hours(TIME_MAX) / 24),
        )
    };
    let example = if dialect.is_compat() { "10s, 2m or 1h" } else { "500ms, 1.5s or 2m" };
    let is_data = |text: &str| text.contains('=') || text.starts_with(['{', '[', '@', '<']);
    if !dialect.is_compat() && flag.id == Id::Duration && is_data(&value.to_string_lossy()) {
        let shown = secrets::redact_text(&value.to_string_lossy());
        return Err(wrong(
            flag,
            OsStr::new(&shown),
            "not a time; onrush's option for the -d of curl, hey and oha is --body",
        ));
    }
    match units::parse_time(&value.to_string_lossy(), dialect) {
        Err(UnreadableNumber::TooLarge) => Err(most()),
        Ok(time) if time > TIME_MAX => Err(most()),
        Ok(time) => Ok(time),
        Err(reason) => {
            let text = value.to_string_lossy();
            let may_say = !dialect.is_compat() || foreign::is_distribution(flag.id, &text);
            if let Some(meant) = foreign::foreign_value_hint(flag.id, &text).filter(|_| may_say) {
                return Err(wrong(flag, value, meant));
            }
            let meant = units::seconds_meant(&text);
            let right = meant.map_or_else(|| format!("try {example}"), |seconds| format!("write {seconds}s"));
            Err(wrong(flag, value, format_args!("{reason}; {right}")))
        }
    }
}

fn whole_hours(time: Duration) -> u64 {
    time.as_secs() / 3600
}

/// Parses the path of a script. Rejects stages of k6, whose option has the same letter, `-s`.
pub(super) fn parse_script_path(flag: &Flag, value: OsString, dialect: Dialect) -> Result<PathBuf, PlanRefusal> {
    let meant = foreign::foreign_value_hint(flag.id, &value.to_string_lossy()).filter(|_| !dialect.is_compat());
    match meant {
        Some(meant) => Err(wrong(flag, &value, meant)),
        None => Ok(PathBuf::from(value)),
    }
}

pub(super) fn parse_seed(flag: &Flag, value: &OsStr) -> Result<u64, PlanRefusal> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| wrong(flag, value, format_args!("not a number from 0 to {}", u64::MAX)))
}

pub(super) fn parse_method(flag: &Flag, value: &OsStr) -> Result<String, PlanRefusal> {
    let token = value.to_str().filter(|text| is_token(text));
    token.map(str::to_owned).ok_or_else(|| {
        let meant = foreign::foreign_value_hint(flag.id, &value.to_string_lossy());
        // The proxy may contain a user, as in ab.
        let value = OsString::from(secrets::misspelt_url(&value.to_string_lossy()));
        wrong(flag, &value, meant.unwrap_or("not the name of a method; try PUT"))
    })
}

/// Parses a user and a password. Without a colon, the password is empty.
pub(super) fn parse_user(flag: &Flag, value: &OsStr) -> Result<String, PlanRefusal> {
    // The value must not be shown: it may contain a password.
    let bad = || wrong(flag, OsStr::new("…"), "no user before the colon; try 'user:password'");
    let text = value.to_str().filter(|text| !text.is_empty() && !text.starts_with(':')).ok_or_else(bad)?;
    Ok(if text.contains(':') { text.to_owned() } else { format!("{text}:") })
}

/// Parses a label and its value. A label must not be repeated, and must not be named like a column of the tables.
pub(super) fn parse_label(
    flag: &Flag,
    value: &OsStr,
    known: &BTreeMap<String, String>,
) -> Result<(String, String), PlanRefusal> {
    let pair = value.to_str().and_then(|text| text.split_once('=')).filter(|(key, _)| !key.is_empty());
    let (key, level) = pair.ok_or_else(|| wrong(flag, value, "not a label; try server=nginx"))?;
    if key.trim() != key {
        return Err(wrong(flag, value, "the name has blanks around it; try server=nginx"));
    }
    if is_column(key) {
        let reason = format_args!("onrush table already has a column {key:?}; choose another name");
        return Err(wrong(flag, value, reason));
    }
    if known.contains_key(key) {
        return Err(wrong(flag, value, format_args!("{key:?} already has a value; a run has one value per label")));
    }
    Ok((key.to_owned(), level.to_owned()))
}

pub(super) fn parse_spin(flag: &Flag, value: &OsStr) -> Result<Spin, PlanRefusal> {
    match value.to_str() {
        Some("auto") => Ok(Spin::Auto),
        Some("on") => Ok(Spin::On),
        Some("off") => Ok(Spin::Off),
        _ => Err(wrong(flag, value, "unknown; write auto, on or off")),
    }
}

pub(super) fn parse_percents(flag: &Flag, value: &OsStr) -> Result<Vec<Percent>, PlanRefusal> {
    let text = value.to_str().unwrap_or_default();
    let mut percents: Vec<Percent> = text
        .split(',')
        .map(|part| part.trim().parse().map_err(|reason| wrong(flag, OsStr::new(part), reason)))
        .collect::<Result<_, _>>()?;
    percents.sort_unstable();
    percents.dedup();
    Ok(percents)
}

pub(super) fn parse_gate(flag: &Flag, value: &OsStr) -> Result<Condition, PlanRefusal> {
    let text = value.to_string_lossy();
    let purpose = if flag.id == Id::FindMax { Purpose::Objective } else { Purpose::Gate };
    condition::parse_condition(&text, purpose).map_err(|flaw| wrong(flag, value, flaw.shown(&text)))
}

pub(super) fn parse_until(flag: &Flag, value: &OsStr) -> Result<Vec<StopTerm>, PlanRefusal> {
    let text = value.to_string_lossy();
    condition::parse_stop_terms(&text).map_err(|flaw| wrong(flag, value, flaw.shown(&text)))
}

pub(super) fn parse_breakout(flag: &Flag, value: &OsStr) -> Result<Breakout, PlanRefusal> {
    match value.to_str() {
        Some("") => Ok(Breakout::WrkCmm),
        Some("all") => Ok(Breakout::All),
        _ => Err(wrong(flag, value, "unknown; write --breakout or --breakout=all")),
    }
}

/// Parses `on` or `off`: true if notes are turned on.
pub(super) fn parse_notes(flag: &Flag, value: &OsStr) -> Result<bool, PlanRefusal> {
    match value.to_str() {
        Some("" | "on") => Ok(true),
        Some("off") => Ok(false),
        _ => Err(wrong(flag, value, "unknown; write --notes=on or --notes=off")),
    }
}

pub(super) fn parse_format(flag: &Flag, value: &OsStr) -> Result<Format, PlanRefusal> {
    match value.to_str() {
        Some("wrk") => Ok(Format::Text),
        Some("json") => Ok(Format::Json),
        Some("summary") => {
            let line = "--format summary: onrush does not support summaries yet; write wrk or json";
            Err(PlanRefusal::Cannot(line.to_owned()))
        }
        _ => Err(wrong(flag, value, "unknown; write wrk or json")),
    }
}

pub(super) fn parse_io(flag: &Flag, value: &OsStr) -> Result<Io, PlanRefusal> {
    match value.to_str() {
        Some("auto") => Ok(Io::Auto),
        Some("epoll") => Ok(Io::Epoll),
        Some("uring") => Ok(Io::Uring),
        Some(text) if text.starts_with("sim:") => Ok(Io::Sim(PathBuf::from(&text["sim:".len()..]))),
        _ => Err(wrong(flag, value, "unknown; write auto, uring or epoll")),
    }
}

pub(super) fn parse_order(flag: &Flag, value: &OsStr) -> Result<ListOrder, PlanRefusal> {
    let named = ListOrder::ALL.into_iter().find(|order| value == order.name());
    named.ok_or_else(|| wrong(flag, value, "unknown; write seq, shuffle or weighted"))
}

#[cfg(test)]
mod tests {
    use super::super::flags::by_id;
    use super::*;

    #[test]
    fn labels_are_unique_and_no_columns() {
        let known = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        for (text, reason) in [
            ("host=a", "onrush table already has a column \"host\"; choose another name"),
            ("p99=a", "onrush table already has a column \"p99\"; choose another name"),
            ("a=2", "\"a\" already has a value; a run has one value per label"),
        ] {
            let Err(PlanRefusal::Misused(line)) = parse_label(by_id(Id::Label), OsStr::new(text), &known) else {
                panic!("{text}")
            };
            assert_eq!(line, format!("--label {text:?}: {reason}"));
        }
    }

    #[test]
    fn label_names_are_trimmed() {
        let read = |text: &str| parse_label(by_id(Id::Label), OsStr::new(text), &BTreeMap::new());
        assert_eq!(read("my server= a=b ").unwrap(), ("my server".to_owned(), " a=b ".to_owned()));
        for text in [" a=x", "a =x", " =x", "\ta=x"] {
            let Err(PlanRefusal::Misused(line)) = read(text) else { panic!("{text:?}") };
            assert!(line.ends_with("the name has blanks around it; try server=nginx"), "{line}");
        }
    }
}
