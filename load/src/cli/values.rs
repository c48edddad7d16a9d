//! The value of an option: parses what several options have in common, and rejects a bad value with an example of a
//! good one.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::limits::{THREADS_MAX, TIME_MAX};
use onrush_plan::{Condition, Dialect};

use super::command_line::shell_quoted;
use super::condition::{self, Purpose};
use super::flag::{Flag, Origin};
use super::foreign;
use super::levels;
use super::refusal::PlanRefusal;
use super::units::{self, UnreadableNumber};

/// The rule for counts, as printed in messages.
pub(super) const AT_LEAST_ONE: &str = "must be at least 1";

/// The value of an option as typed; empty for a switch.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// The option.
    pub flag: &'static Flag,
    /// The text.
    pub text: &'a OsStr,
    /// Whose grammar numbers and times follow.
    pub dialect: Dialect,
}

impl<'a> Value<'a> {
    /// A value typed in this dialect. onrush's own options always have its own grammar.
    pub fn new(flag: &'static Flag, text: &'a OsStr, dialect: Dialect) -> Self {
        Self { flag, text, dialect: if flag.origin == Origin::Ours { Dialect::Native } else { dialect } }
    }

    /// A part of the value, as a value of the same option.
    pub fn part<'b>(self, text: &'b str) -> Value<'b> {
        Value { text: OsStr::new(text), ..self }
    }

    /// Rejects the value for this reason.
    pub fn wrong(self, reason: impl Display) -> PlanRefusal {
        self.flag.wrong(self.text, reason)
    }

    /// The text, with replacement characters for what is not UTF-8.
    pub fn lossy(self) -> Cow<'a, str> {
        self.text.to_string_lossy()
    }

    /// The text, if it is UTF-8.
    pub fn utf8(self) -> Option<&'a str> {
        self.text.to_str()
    }

    /// The text as a path.
    pub fn path(self) -> PathBuf {
        PathBuf::from(self.text)
    }

    /// Parses one of the option's choices into the meaning at the same index.
    pub fn choice<T: Clone>(self, meanings: &[T]) -> Result<T, PlanRefusal> {
        let choices = self.flag.described.choices;
        let index = choices.iter().position(|choice| self.text == *choice);
        index.and_then(|index| meanings.get(index).cloned()).ok_or_else(|| {
            let name = self.flag.name();
            let equals =
                if self.flag.described.spelling.may_take_value() { format!("--{name}=") } else { String::new() };
            let (last, first) = choices.split_last().expect("the option has choices");
            let first = first.iter().map(|choice| format!("{equals}{choice}")).collect::<Vec<_>>().join(", ");
            self.wrong(format_args!("unknown; write {first} or {equals}{last}"))
        })
    }

    /// Parses a count of at most `most`. In the compat dialects, zero is checked later, in wrk's order and with wrk's
    /// messages.
    pub fn count(self, most: u64) -> Result<u64, PlanRefusal> {
        let text = self.lossy();
        match units::parse_count(&text, self.dialect) {
            Ok(0) if !self.dialect.is_compat() => Err(self.wrong(AT_LEAST_ONE)),
            Err(UnreadableNumber::TooLarge) => Err(self.wrong(format_args!("at most {most}"))),
            Ok(count) if count > most => Err(self.wrong(format_args!("at most {most}"))),
            Ok(count) => Ok(count),
            Err(reason) => {
                let native = Value { dialect: Dialect::Native, ..self };
                let is_count = |level: &str| native.part(level).count(most).is_ok();
                let meant = self.suggest_several(is_count).or_else(|| self.foreign_hint().map(str::to_owned));
                if let Some(meant) = meant.filter(|_| !self.dialect.is_compat()) {
                    return Err(self.wrong(meant));
                }
                let example = if most == THREADS_MAX { "2 or 8" } else { "100 or 10k" };
                Err(self.wrong(format_args!("{reason}; try {example}")))
            }
        }
    }

    /// Parses a time of at most [`TIME_MAX`]. Zero is accepted here: the option decides later what it means.
    pub fn time(self) -> Result<Duration, PlanRefusal> {
        let most = || {
            let hours = TIME_MAX.as_secs() / 3600;
            self.wrong(format_args!("at most {hours}h, which is {} days", hours / 24))
        };
        let text = self.lossy();
        match units::parse_time(&text, self.dialect) {
            Err(UnreadableNumber::TooLarge) => Err(most()),
            Ok(time) if time > TIME_MAX => Err(most()),
            Ok(time) => Ok(time),
            Err(reason) => {
                let may_say = !self.dialect.is_compat() || foreign::is_distribution(self.flag.name(), &text);
                if let Some(meant) = self.foreign_hint().filter(|_| may_say) {
                    return Err(self.wrong(meant));
                }
                let example = if self.dialect.is_compat() { "10s, 2m or 1h" } else { "500ms, 1.5s or 2m" };
                let meant = units::seconds_meant(&text);
                let right = meant.map_or_else(|| format!("try {example}"), |seconds| format!("write {seconds}s"));
                Err(self.wrong(format_args!("{reason}; {right}")))
            }
        }
    }

    /// Parses a time longer than zero.
    pub fn positive_time(self, example: &str) -> Result<Duration, PlanRefusal> {
        match self.time()? {
            Duration::ZERO => Err(self.wrong(format_args!("must be longer than 0; try {example}"))),
            time => Ok(time),
        }
    }

    /// Parses a condition for this purpose.
    pub(super) fn condition(self, purpose: Purpose) -> Result<Condition, PlanRefusal> {
        let text = self.lossy();
        condition::parse_condition(&text, purpose).map_err(|flaw| self.wrong(flaw.shown(&text)))
    }

    /// Suggestion for a value that is right for another tool's option with the same letter.
    pub fn foreign_hint(self) -> Option<&'static str> {
        foreign::foreign_value_hint(self.flag.name(), &self.lossy())
    }

    /// Suggestion if several numbers were typed instead of one: a sweep if `is_value` accepts each number for the
    /// option, or the number without its commas between thousands.
    pub fn suggest_several(self, is_value: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.lossy();
        let option = self.flag.swept_as;
        let sweep = option
            .zip(sweep_list(self.flag.name(), &text, is_value))
            .map(|(option, list)| format!("onrush sweep {option} {} URL", shell_quoted(&list)));
        match (without_group_commas(&text), sweep) {
            (Some(number), Some(sweep)) => Some(format!("not a number; write {number}, or for a list {sweep}")),
            (Some(number), None) => Some(format!("not a number; write {number}")),
            (None, Some(sweep)) => Some(format!("not a number; write one of them, or measure each with {sweep}")),
            (None, None) => None,
        }
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
fn sweep_list(name: &str, text: &str, is_value: impl Fn(&str) -> bool) -> Option<String> {
    let list = levels::suggest_range(text).unwrap_or_else(|| text.to_owned());
    let levels = levels::parse_levels(name, &list).ok()??;
    let are_different = levels.iter().collect::<BTreeSet<_>>().len() == levels.len();
    (are_different && levels.iter().all(|level| is_value(level))).then_some(list)
}
