//! The options on send times and on the number of connections over time, and the resulting [`Schedule`].

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use onrush_plan::levels::ConnectionLevel;
use onrush_plan::limits::{BURST_MAX, CONNECTIONS_MAX, POISSON_RATE_MAX, RATE_MAX, SEND_SLICE_MAX, TIME_MAX};
use onrush_plan::schedule::{Arrivals, CatchUp, Rate, Stage};
use onrush_plan::{ConnectionLevels, Dialect, Partition, Schedule};
use onrush_text::units::format_duration_exact;

use super::flag::Origin::Wrk2;
use super::flag::{Flag, Need, flag, put};
use super::flags;
use super::refusal::PlanRefusal;
use super::units::{self, UnreadableNumber};
use super::values::Value;

/// The condition of options that only make sense with a rate. wrk2 refuses a missing rate in its own words.
pub(super) const RATE_NEEDED: Need = (
    |draft| draft.pace.rate.is_some() || draft.pace.stages.is_some() || draft.dialect == Dialect::Wrk2,
    "there is no rate; add -R, for instance -R 1000",
);

pub(super) const OPTIONS: &[Flag] = &[
    flag("-R, --rate N", |draft, value| put(&mut draft.pace.rate, parse_rate(value)))
        .common()
        .from(Wrk2)
        .swept_as("-R")
        .help("send N requests per second in total, on schedule\nhowever slow the target is (90/m: 90 per minute)")
        .reference(
            "Requests per second, all threads together: `1000`, `10k`, `1.5M`, at most a billion; per minute with `/m` \
             (`-R 90/m`, but `-R 1m` is a million per second). The schedule does not wait for connections to open.",
            "onrush -R 10k http://127.0.0.1:8080/",
        ),
    flag("--stages LIST", |draft, value| {
        let text = value.lossy();
        let pace = &mut draft.pace;
        let is_first = match text.trim_start().strip_prefix("c=") {
            Some(list) => pace.levels.replace(parse_connection_stages(value, list)?).is_none(),
            None => pace.stages.replace(parse_rate_stages(value, &text)?).is_none(),
        };
        if is_first {
            return Ok(());
        }
        Err(value.wrong("given twice; write all stages in one list, separated by commas"))
    })
    .common()
    .help(
        "rates in sequence, each with its duration:\n\
         10s:1k,30s:1k..20k,1m:20k; with c= in front, numbers\n\
         of connections; the run lasts as long as its stages",
    )
    .reference(
        "A sequence of rates: `10s:1k` is a step, `30s:1k..20k` a ramp. Replaces `-d` and `-R`; `-n` may end \
         it earlier. A warm-up uses the first rate. Each stage gets a row in the report and in result files.\n\n\
         ```console\n\
         $ onrush --stages 100ms:1k,200ms:1k..5k,100ms:5k http://127.0.0.1:8080/\n\
         ```\n\n\
         With `c=` in front, stages set the number of connections instead of `-c`. A falling ramp closes \
         connections after their response. With `-R`, or a second list of equal length for rates, no stage may \
         have fewer connections than threads.\n\n\
         ```console\n\
         $ onrush --stages c=100ms:10,200ms:10..50,100ms:5 http://127.0.0.1:8080/\n\
         ```",
        "",
    ),
    flag("--max-inflight N", |draft, value| put(&mut draft.pace.max_inflight, value.count(CONNECTIONS_MAX)))
        .needs(&[RATE_NEEDED])
        .help("while requests are due and all connections are busy,\nopen more, up to N in total (-c)")
        .reference(
            "With a rate, the most requests in flight, hence connections. The run starts with `-c`; more are opened \
             while requests are due and all connections are busy, and stay open. Otherwise such requests wait, and a \
             note estimates the connections needed.",
            "onrush -R 10k --max-inflight 100 http://127.0.0.1:8080/",
        ),
    flag("--arrivals NAME", |draft, value| put(&mut draft.pace.arrivals, parse_arrivals(value)))
        .one_of(&["uniform", "poisson", "burst:"])
        .needs(&[RATE_NEEDED])
        .help("how requests are spaced: uniform, poisson or burst:N,\nN at once (uniform)")
        .reference(
            "Spacing of requests: `uniform` (default); `poisson`, random like independent users, at most ten million \
             per second; `burst:N`, N at once.",
            "onrush -R 10k --arrivals poisson http://127.0.0.1:8080/",
        ),
    flag("--catch-up F", |draft, value| put(&mut draft.pace.catch_up, parse_catch_up(value)))
        .needs(&[RATE_NEEDED])
        .help("after a stall, send at up to F times the rate (as fast\nas possible)")
        .reference(
            "Limits late requests to F times the rate; with 1 a stall is never made up. Without it, late requests are \
             sent as soon as a connection is free. Called as wrk2, onrush uses 2, only after its own stalls.",
            "onrush -R 10k --catch-up 1.5 http://127.0.0.1:8080/",
        ),
    flag("--max-late T", |draft, value| put(&mut draft.pace.max_late, value.positive_time("100ms")))
        .needs(&[RATE_NEEDED])
        .help("drop requests that would be sent more than T late")
        .reference(
            "Drops and counts requests that would be sent more than T late.",
            "onrush -R 10k --max-late 100ms http://127.0.0.1:8080/",
        ),
    flag("--send-slice T", |draft, value| put(&mut draft.pace.send_slice, parse_send_slice(value)))
        .needs(&[RATE_NEEDED])
        .help("send the requests due in each T together, at its end:\nless exact, but cheaper at high rates")
        .reference(
            "Sends the requests due in a [slice](pacing.md#send-slices) of T, at most a second, together at its end. \
             Latencies include the wait; `--max-late` and `requests.late` allow for it. At 50,000/s, slices of 1 ms \
             halve the processor time.",
            "onrush -R 10k --send-slice 200us http://127.0.0.1:8080/",
        ),
];

/// The options on send times, as typed.
#[derive(Debug, Default)]
pub struct PaceDraft {
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
}

impl PaceDraft {
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

    /// The number of connections over time; `None` unless stages set it.
    pub fn to_levels(&self) -> Option<ConnectionLevels> {
        self.levels.clone().map(|stages| ConnectionLevels { stages, part: Partition::WHOLE })
    }

    /// The schedule; `None` without a rate. wrk2 requires a rate, and a missing one is rejected in its words.
    pub fn to_schedule(&self, dialect: Dialect) -> Result<Option<Schedule>, PlanRefusal> {
        let rate = self.rate.filter(|rate| *rate > Rate::default());
        let stages = match (self.rate, &self.stages) {
            (Some(_), Some(_)) => return Err(PlanRefusal::both("--rate", "--stages", "both set the rate")),
            (_, Some(stages)) => stages.clone(),
            (_, None) if rate.is_none() && dialect == Dialect::Wrk2 => {
                return Err(PlanRefusal::Wrk("Throughput MUST be specified with the --rate or -R option".to_owned()));
            }
            (Some(_), None) if rate.is_none() => return Err(flags::named("rate").wrong("0", AT_LEAST)),
            (Some(rate), None) => vec![Stage::open_ended(rate)],
            (None, None) => return Ok(None),
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
            return Err(flags::named("arrivals").wrong("poisson", reason));
        }
        Ok(Some(schedule))
    }
}

const AT_LEAST: &str = "must be at least 1; for less than one per second write a rate per minute, for instance 30/m";

/// Parses a rate. A rate of zero is rejected, except in the compat dialects, where this is decided later.
pub fn parse_rate(value: Value) -> Result<Rate, PlanRefusal> {
    let native = Value { dialect: Dialect::Native, ..value };
    let is_rate = |level: &str| parse_rate(native.part(level)).is_ok();
    if let Some(meant) = value.suggest_several(is_rate).filter(|_| !value.dialect.is_compat()) {
        return Err(value.wrong(meant));
    }
    let rate = parse_rate_with_unit(value, &value.lossy())?;
    if rate == Rate::default() && !value.dialect.is_compat() { Err(value.wrong(AT_LEAST)) } else { Ok(rate) }
}

/// Parses a rate, which is per second unless `text`, a part of `value`, ends with another unit. The imitated tools have
/// no other unit.
fn parse_rate_with_unit(value: Value, text: &str) -> Result<Rate, PlanRefusal> {
    let is_compat = value.dialect.is_compat();
    let (count, unit) = text.split_once('/').filter(|_| !is_compat).unwrap_or((text, "s"));
    let made = match unit.to_ascii_lowercase().as_str() {
        "s" => Rate::from_per_second,
        "m" => Rate::from_per_minute,
        _ => return Err(value.wrong("a rate is per second or per minute; try 10k/s or 90/m")),
    };
    let most = || value.wrong(format_args!("at most {RATE_MAX} per second"));
    match units::parse_count(count, value.dialect) {
        Ok(count) => made(count).ok_or_else(most),
        Err(UnreadableNumber::TooLarge) => Err(most()),
        Err(reason) if is_compat => Err(value.wrong(format_args!("{reason}; try 1000 or 10k"))),
        Err(reason) => Err(value.wrong(format_args!("{reason}; try 1000, 10k or 90/m"))),
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
fn parse_rate_stages(value: Value, list: &str) -> Result<Vec<Stage>, PlanRefusal> {
    let stages = parse_stage_list(value, list, &RATES, parse_rate_with_unit)?.into_iter();
    let stages: Vec<Stage> = stages.map(|(length, from, to)| Stage { length: Some(length), from, to }).collect();
    if stages.iter().all(Stage::is_idle) {
        return Err(value.wrong("no request is ever due; at least one stage needs a rate above 0"));
    }
    Ok(stages)
}

/// Parses stages of the connections, which follow `c=` and have numbers of connections instead of rates.
fn parse_connection_stages(value: Value, list: &str) -> Result<Vec<ConnectionLevel>, PlanRefusal> {
    let number = |stage: Value, text: &str| {
        let most = || stage.wrong(format_args!("at most {CONNECTIONS_MAX} connections"));
        match units::parse_count(text, Dialect::Native) {
            Ok(number) if number <= CONNECTIONS_MAX => Ok(number as u32),
            Ok(_) | Err(UnreadableNumber::TooLarge) => Err(most()),
            Err(reason) => Err(stage.wrong(format_args!("{reason}; try {}", LEVELS.stage))),
        }
    };
    let levels = parse_stage_list(value, list, &LEVELS, number)?;
    if levels.iter().all(|(_, from, to)| from.max(to) == &0) {
        return Err(value.wrong("there is never a connection; at least one stage needs one or more"));
    }
    Ok(levels.into_iter().map(|(length, from, to)| ConnectionLevel { length, from, to }).collect())
}

/// Parses stages of either kind into the duration, start and end of each.
fn parse_stage_list<T>(
    value: Value,
    list: &str,
    shape: &StageExample,
    read: impl Fn(Value, &str) -> Result<T, PlanRefusal>,
) -> Result<Vec<(Duration, T, T)>, PlanRefusal> {
    if list.contains(',') && list.split(',').any(|text| text.trim().is_empty()) {
        let example = shape.list;
        return Err(value.wrong(format_args!("a stage is missing before or after a comma; try {example}")));
    }
    let stage = |text: &str| parse_stage(value.part(text.trim()), text.trim(), shape, &read);
    let stages = list.split(',').map(stage).collect::<Result<Vec<_>, _>>()?;
    let total = stages.iter().try_fold(Duration::ZERO, |sum, (length, ..)| sum.checked_add(*length));
    if total.is_none_or(|total| total > TIME_MAX) {
        let days = TIME_MAX.as_secs() / 86_400;
        return Err(value.wrong(format_args!("all stages together last at most {days} days")));
    }
    Ok(stages)
}

fn parse_stage<T>(
    value: Value,
    text: &str,
    &StageExample { what, stage, list }: &StageExample,
    read: impl Fn(Value, &str) -> Result<T, PlanRefusal>,
) -> Result<(Duration, T, T), PlanRefusal> {
    let bad = |reason: fmt::Arguments<'_>| value.wrong(reason);
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
    let length = value.part(length).time()?;
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

fn parse_arrivals(value: Value) -> Result<Arrivals, PlanRefusal> {
    let text = value.utf8().unwrap_or_default();
    let burst = |text: &str| {
        units::parse_count(text, Dialect::Native).ok().filter(|size| *size <= BURST_MAX).and_then(NonZeroU64::new)
    };
    match text.split_once(':') {
        None if text == "uniform" => Ok(Arrivals::Uniform),
        None if text == "poisson" => Ok(Arrivals::Poisson),
        Some(("burst", size)) => burst(size)
            .map(Arrivals::Burst)
            .ok_or_else(|| value.wrong(format_args!("a burst has 1 to {BURST_MAX} requests; try burst:100"))),
        None if text == "burst" => Err(value.wrong("how many at once? try burst:100")),
        _ => Err(value.wrong("unknown; write uniform, poisson or, for instance, burst:100")),
    }
}

/// Parses a factor with at most three decimals, without rounding.
fn parse_catch_up(value: Value) -> Result<CatchUp, PlanRefusal> {
    const MOST: u64 = 1_000_000;
    let text = value.lossy();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0"));
    let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?;
    let thousandths = (decimals.len() <= 3).then(|| format!("{decimals:0<3}"));
    let (Some(whole), Some(thousandths)) = (number(whole), thousandths.and_then(|digits| number(&digits))) else {
        return Err(value.wrong("not a factor; try 2 or 1.5"));
    };
    if whole >= MOST {
        return Err(value.wrong(format_args!("less than {MOST}")));
    }
    let factor = CatchUp::from_thousandths(1_000 * whole + thousandths);
    factor.ok_or_else(|| value.wrong("must be at least 1, which never makes up for a stall"))
}

fn parse_send_slice(value: Value) -> Result<Duration, PlanRefusal> {
    match value.positive_time("200us")? {
        time if time > SEND_SLICE_MAX => {
            let most = SEND_SLICE_MAX.as_secs();
            Err(value.wrong(format_args!("at most {most} s, because requests are late by up to a slice; try 200us")))
        }
        time => Ok(time),
    }
}
