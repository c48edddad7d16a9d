//! The options on send times and on the number of connections over time, and the resulting [`Schedule`].

use std::ffi::OsStr;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use onrush_plan::levels::ConnectionLevel;
use onrush_plan::limits::{BURST_MAX, CONNECTIONS_MAX, POISSON_RATE_MAX, RATE_MAX, SEND_SLICE_MAX, TIME_MAX};
use onrush_plan::schedule::{Arrivals, CatchUp, Rate, Stage};
use onrush_plan::{ConnectionLevels, Dialect, Partition, Schedule};
use onrush_text::units::format_duration_exact;

use super::flags::{self, Flag, Id};
use super::refusal::{PlanRefusal, wrong};
use super::units::{self, UnreadableNumber};
use super::values::{parse_count, parse_time, suggest_several};

/// The options on send times, as typed.
#[derive(Debug, Default)]
pub struct TypedPace {
    /// `--rate`. May be zero in the compat dialects.
    rate: Option<Rate>,
    /// `--stages` that set the rate.
    stages: Option<Vec<Stage>>,
    /// `--stages` that set the number of connections.
    levels: Option<Vec<ConnectionLevel>>,
    /// `--max-inflight`: maximum number of connections to open if requests are due while all are busy.
    pub max_inflight: Option<u64>,
    arrivals: Option<Arrivals>,
    catch_up: Option<CatchUp>,
    max_late: Option<Duration>,
    send_slice: Option<Duration>,
    /// The first typed option that requires a rate.
    needs_rate: Option<&'static Flag>,
}

impl TypedPace {
    /// Applies one option. Stages of the same kind cannot be given twice; of other options, the last one wins.
    pub fn apply_option(&mut self, flag: &'static Flag, value: &OsStr, dialect: Dialect) -> Result<(), PlanRefusal> {
        match flag.id {
            Id::Rate => self.rate = Some(parse_rate(flag, value, dialect)?),
            Id::Stages => {
                let text = value.to_string_lossy();
                let is_first = match text.trim_start().strip_prefix("c=") {
                    Some(list) => self.levels.replace(parse_connection_stages(flag, value, list)?).is_none(),
                    None => self.stages.replace(parse_rate_stages(flag, value, &text)?).is_none(),
                };
                if !is_first {
                    return Err(wrong(flag, value, "given twice; write all stages in one list, separated by commas"));
                }
            }
            Id::MaxInflight => self.max_inflight = Some(parse_count(flag, value, dialect, CONNECTIONS_MAX)?),
            Id::Arrivals => self.arrivals = Some(parse_arrivals(flag, value)?),
            Id::CatchUp => self.catch_up = Some(parse_catch_up(flag, value)?),
            Id::MaxLate => self.max_late = Some(parse_positive_time(flag, value, "100ms")?),
            Id::SendSlice => self.send_slice = Some(parse_send_slice(flag, value)?),
            _ => {}
        }
        if !matches!(flag.id, Id::Rate | Id::Stages) {
            self.needs_rate = self.needs_rate.or(Some(flag));
        }
        Ok(())
    }

    /// True if stages change the rate or the number of connections.
    pub fn has_stages(&self) -> bool {
        self.stages.is_some() || self.levels.is_some()
    }

    /// True if `--rate` was typed. A rate set by stages does not count.
    pub fn has_rate(&self) -> bool {
        self.rate.is_some()
    }

    /// Takes the first rate of a search; `None` if no rate was typed. Afterwards, these options have a rate
    /// in any case.
    pub fn take_first_rate(&mut self) -> Option<Rate> {
        let first = self.rate;
        self.rate = first.or(Rate::from_per_second(1));
        first
    }

    /// Total duration of the stages; `None` without stages.
    ///
    /// # Errors
    ///
    /// Fails if `--duration` was typed as well, or if the stages of the rate and of the connections differ in total
    /// duration.
    pub fn stages_duration(&self, typed: Option<Duration>) -> Result<Option<Duration>, PlanRefusal> {
        let rates = self.stages.as_ref().map(|stages| stages.iter().filter_map(|stage| stage.length).sum::<Duration>());
        let levels = self.levels.as_ref().map(|levels| levels.iter().map(|level| level.length).sum::<Duration>());
        match (rates, levels) {
            (Some(rates), Some(levels)) if rates != levels => Err(PlanRefusal::Misused(format!(
                "--stages: the rates last {} and the connections (c=) {}; make them equally long",
                format_duration_exact(rates),
                format_duration_exact(levels)
            ))),
            (None, None) => Ok(None),
            _ if typed.is_some() && self.rate.is_none_or(|_| levels.is_some()) => {
                let line = "--duration and --stages: the run lasts as long as its stages; leave --duration out";
                Err(PlanRefusal::Misused(line.to_owned()))
            }
            _ => Ok(rates.or(levels)),
        }
    }

    /// Maximum number of connections in any stage; `None` unless stages set the number.
    pub fn most_connections(&self) -> Option<u32> {
        self.levels.as_ref()?.iter().map(|level| level.from.max(level.to)).max()
    }

    /// Minimum number of connections, at least one, that ever share the rate; `None` unless stages set the number and
    /// there is a rate. Stages without connections do not count.
    pub fn fewest_connections(&self) -> Option<u32> {
        let has_rate = self.rate.is_some() || self.stages.is_some();
        let fewest = |level: &ConnectionLevel| level.from.min(level.to).max(1);
        self.levels.as_ref().filter(|_| has_rate)?.iter().filter(|level| level.from.max(level.to) > 0).map(fewest).min()
    }

    /// Takes the number of connections over time; `None` unless stages set it.
    pub fn levels(&mut self) -> Option<ConnectionLevels> {
        self.levels.take().map(|stages| ConnectionLevels { stages, part: Partition::WHOLE })
    }

    /// The schedule; `None` without a rate. wrk2 requires a rate, and a missing one is rejected in its words.
    pub fn into_schedule(self, dialect: Dialect) -> Result<Option<Schedule>, PlanRefusal> {
        let rate = self.rate.filter(|rate| *rate > Rate::default());
        let stages = match (self.rate, self.stages) {
            (Some(_), Some(_)) => {
                let line = "--rate and --stages: both set the rate; leave one of the two out";
                return Err(PlanRefusal::Misused(line.to_owned()));
            }
            (_, Some(stages)) => stages,
            (_, None) if rate.is_none() && dialect == Dialect::Wrk2 => {
                return Err(PlanRefusal::Wrk("Throughput MUST be specified with the --rate or -R option".to_owned()));
            }
            (Some(_), None) if rate.is_none() => return Err(wrong(flags::by_id(Id::Rate), OsStr::new("0"), AT_LEAST)),
            (Some(rate), None) => vec![Stage::open_ended(rate)],
            (None, None) => {
                let line =
                    |flag: &Flag| format!("--{}: there is no rate; add -R, for instance -R 1000", flag.spelling.long);
                return self.needs_rate.map_or(Ok(None), |flag| Err(PlanRefusal::Misused(line(flag))));
            }
        };
        let schedule = Schedule {
            arrivals: self.arrivals.unwrap_or(Arrivals::Uniform),
            stages,
            part: Partition::WHOLE,
            catch_up: self.catch_up.or((dialect == Dialect::Wrk2).then_some(CatchUp::DOUBLE)),
            max_late: self.max_late,
            send_slice: self.send_slice,
        };
        if schedule.is_too_fast_to_draw() {
            let reason = format_args!("at most {POISSON_RATE_MAX} per second: each due time is drawn at random");
            return Err(wrong(flags::by_id(Id::Arrivals), OsStr::new("poisson"), reason));
        }
        Ok(Some(schedule))
    }
}

const AT_LEAST: &str = "must be at least 1; for less than one per second write a rate per minute, for instance 30/m";

/// Parses a rate. A rate of zero is rejected, except in the compat dialects, where this is decided later.
pub fn parse_rate(flag: &Flag, value: &OsStr, dialect: Dialect) -> Result<Rate, PlanRefusal> {
    let text = value.to_string_lossy();
    let is_rate = |level: &str| parse_rate(flag, OsStr::new(level), Dialect::Native).is_ok();
    if let Some(meant) = suggest_several(flag, &text, is_rate).filter(|_| !dialect.is_compat()) {
        return Err(wrong(flag, value, meant));
    }
    let rate = parse_rate_with_unit(flag, value, &text, dialect)?;
    if rate == Rate::default() && !dialect.is_compat() { Err(wrong(flag, value, AT_LEAST)) } else { Ok(rate) }
}

/// Parses a rate, which is per second unless `text`, a part of `value`, ends with another unit. The imitated tools have
/// no other unit.
fn parse_rate_with_unit(flag: &Flag, value: &OsStr, text: &str, dialect: Dialect) -> Result<Rate, PlanRefusal> {
    let (count, unit) = text.split_once('/').filter(|_| !dialect.is_compat()).unwrap_or((text, "s"));
    let made = match unit.to_ascii_lowercase().as_str() {
        "s" => Rate::from_per_second,
        "m" => Rate::from_per_minute,
        _ => return Err(wrong(flag, value, "a rate is per second or per minute; try 10k/s or 90/m")),
    };
    let most = || wrong(flag, value, format_args!("at most {RATE_MAX} per second"));
    match units::parse_count(count, dialect) {
        Ok(count) => made(count).ok_or_else(most),
        Err(UnreadableNumber::TooLarge) => Err(most()),
        Err(reason) if dialect.is_compat() => Err(wrong(flag, value, format_args!("{reason}; try 1000 or 10k"))),
        Err(reason) => Err(wrong(flag, value, format_args!("{reason}; try 1000, 10k or 90/m"))),
    }
}

/// The words of an example of stages of one kind.
struct StageExample {
    what: &'static str,
    stage: &'static str,
    list: &'static str,
}

const RATES: StageExample = StageExample { what: "a rate", stage: "10s:1k..20k", list: "10s:1k,30s:1k..20k" };
const LEVELS: StageExample =
    StageExample { what: "a number of connections", stage: "30s:10..200", list: "c=10s:10,30s:10..200" };

/// Parses stages of the rate, separated by commas. Each has a duration, a colon, and one or two rates.
fn parse_rate_stages(flag: &Flag, value: &OsStr, list: &str) -> Result<Vec<Stage>, PlanRefusal> {
    let rate = |stage: &OsStr, text: &str| parse_rate_with_unit(flag, stage, text, Dialect::Native);
    let stages = parse_stage_list(flag, value, list, &RATES, rate)?.into_iter();
    let stages: Vec<Stage> = stages.map(|(length, from, to)| Stage { length: Some(length), from, to }).collect();
    if stages.iter().all(Stage::is_idle) {
        return Err(wrong(flag, value, "no request is ever due; at least one stage needs a rate above 0"));
    }
    Ok(stages)
}

/// Parses stages of the connections, which follow `c=` and have numbers of connections instead of rates.
fn parse_connection_stages(flag: &Flag, value: &OsStr, list: &str) -> Result<Vec<ConnectionLevel>, PlanRefusal> {
    let number = |stage: &OsStr, text: &str| {
        let most = || wrong(flag, stage, format_args!("at most {CONNECTIONS_MAX} connections"));
        match units::parse_count(text, Dialect::Native) {
            Ok(number) if number <= CONNECTIONS_MAX => Ok(number as u32),
            Ok(_) | Err(UnreadableNumber::TooLarge) => Err(most()),
            Err(reason) => Err(wrong(flag, stage, format_args!("{reason}; try {}", LEVELS.stage))),
        }
    };
    let levels = parse_stage_list(flag, value, list, &LEVELS, number)?;
    if levels.iter().all(|(_, from, to)| from.max(to) == &0) {
        return Err(wrong(flag, value, "there is never a connection; at least one stage needs one or more"));
    }
    Ok(levels.into_iter().map(|(length, from, to)| ConnectionLevel { length, from, to }).collect())
}

/// Parses stages of either kind into the duration, start and end of each.
fn parse_stage_list<T>(
    flag: &Flag,
    value: &OsStr,
    list: &str,
    shape: &StageExample,
    read: impl Fn(&OsStr, &str) -> Result<T, PlanRefusal>,
) -> Result<Vec<(Duration, T, T)>, PlanRefusal> {
    if list.contains(',') && list.split(',').any(|text| text.trim().is_empty()) {
        let example = shape.list;
        let reason = format_args!("a stage is missing before or after a comma; try {example}");
        return Err(wrong(flag, value, reason));
    }
    let stages =
        list.split(',').map(|text| parse_stage(flag, text.trim(), shape, &read)).collect::<Result<Vec<_>, _>>()?;
    let total = stages.iter().try_fold(Duration::ZERO, |sum, (length, ..)| sum.checked_add(*length));
    if total.is_none_or(|total| total > TIME_MAX) {
        let days = TIME_MAX.as_secs() / 86_400;
        return Err(wrong(flag, value, format_args!("all stages together last at most {days} days")));
    }
    Ok(stages)
}

fn parse_stage<T>(
    flag: &Flag,
    text: &str,
    &StageExample { what, stage, list }: &StageExample,
    read: impl Fn(&OsStr, &str) -> Result<T, PlanRefusal>,
) -> Result<(Duration, T, T), PlanRefusal> {
    let value = OsStr::new(text);
    let bad = |reason: fmt::Arguments<'_>| wrong(flag, value, reason);
    let is_whole =
        |(length, values): &(&str, &str)| !length.is_empty() && !values.is_empty() && !values.starts_with("//");
    let (length, values) = text
        .split_once(':')
        .filter(is_whole)
        .ok_or_else(|| bad(format_args!("a stage is a length, a colon and {what}; try {stage}")))?;
    if values.contains(':') {
        return Err(bad(format_args!("stages are separated by commas; try {list}")));
    }
    if let Some(right) = suggest_stage(length, values) {
        return Err(bad(format_args!("{right}")));
    }
    let length = parse_time(flag, OsStr::new(length), Dialect::Native)?;
    if length.is_zero() {
        return Err(bad(format_args!("a stage must last longer than 0; try 10s:{values}")));
    }
    let (from, to) = values.split_once("..").unwrap_or((values, values));
    Ok((length, read(value, from)?, read(value, to)?))
}

/// The stage that was probably meant, if its duration was typed last, or if it is a ramp without its two dots.
fn suggest_stage(first: &str, second: &str) -> Option<String> {
    let is_number = |text: &str| units::parse_count(text.split('/').next().unwrap_or(text), Dialect::Native).is_ok();
    let is_length = units::parse_time(second, Dialect::Native).is_ok() && !is_number(second);
    if is_length && first.split("..").all(is_number) {
        return Some(format!("the length comes first; write {second}:{first}"));
    }
    let joined = |joint: &&str| second.split_once(*joint).filter(|(from, to)| is_number(from) && is_number(to));
    // A single dot may be a decimal point.
    let is_ramp =
        |(from, to): &(&str, &str)| !second.contains('.') || second.contains("...") || from.len().min(to.len()) > 1;
    let (from, to) = ["->", "...", "to", "-", "."].iter().find_map(joined).filter(is_ramp)?;
    Some(format!("a ramp has two dots; write {first}:{from}..{to}"))
}

fn parse_arrivals(flag: &Flag, value: &OsStr) -> Result<Arrivals, PlanRefusal> {
    let text = value.to_str().unwrap_or_default();
    let burst = |text: &str| {
        units::parse_count(text, Dialect::Native).ok().filter(|size| *size <= BURST_MAX).and_then(NonZeroU64::new)
    };
    match text.split_once(':') {
        None if text == "uniform" => Ok(Arrivals::Uniform),
        None if text == "poisson" => Ok(Arrivals::Poisson),
        Some(("burst", size)) => burst(size)
            .map(Arrivals::Burst)
            .ok_or_else(|| wrong(flag, value, format_args!("a burst has 1 to {BURST_MAX} requests; try burst:100"))),
        None if text == "burst" => Err(wrong(flag, value, "how many at once? try burst:100")),
        _ => Err(wrong(flag, value, "unknown; write uniform, poisson or, for instance, burst:100")),
    }
}

/// Parses a factor with at most three decimals, without rounding.
fn parse_catch_up(flag: &Flag, value: &OsStr) -> Result<CatchUp, PlanRefusal> {
    const MOST: u64 = 1_000_000;
    let text = value.to_string_lossy();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0"));
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?;
    let thousandths = (decimals.len() <= 3).then(|| format!("{decimals:0<3}"));
    let (Some(whole), Some(thousandths)) = (number(whole), thousandths.and_then(|digits| number(&digits))) else {
        return Err(wrong(flag, value, "not a factor; try 2 or 1.5"));
    };
    if whole >= MOST {
        return Err(wrong(flag, value, format_args!("less than {MOST}")));
    }
    let factor = CatchUp::from_thousandths(1_000 * whole + thousandths);
    factor.ok_or_else(|| wrong(flag, value, "must be at least 1, which never makes up for a stall"))
}

fn parse_positive_time(flag: &Flag, value: &OsStr, example: &str) -> Result<Duration, PlanRefusal> {
    match parse_time(flag, value, Dialect::Native)? {
        Duration::ZERO => Err(wrong(flag, value, format_args!("must be longer than 0; try {example}"))),
        time => Ok(time),
    }
}

fn parse_send_slice(flag: &Flag, value: &OsStr) -> Result<Duration, PlanRefusal> {
    match parse_positive_time(flag, value, "200us")? {
        time if time > SEND_SLICE_MAX => {
            let most = SEND_SLICE_MAX.as_secs();
            Err(wrong(
                flag,
                value,
                format_args!("at most {most} s, because requests are late by up to a slice; try 200us"),
            ))
        }
        time => Ok(time),
    }
}
