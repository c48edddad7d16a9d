//! Parses the command lines of `onrush sweep` and `onrush vs`: experiments without a file.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use onrush_plan::Dialect;
use onrush_text::units::format_duration_exact;

use super::LabCommand;
use super::design::{self, Circumstances};
use super::options::{ARGS, LIST, OptionMap, SYSCTL, URL, redact_value};
use super::outline::{ExperimentOutline, OutlineFactor, OutlineLevel};
use super::typed::{OPTIONS, SHORTHAND, TypedLab};
use onrush_load::cli::flags;
use onrush_load::cli::hints;
use onrush_load::cli::levels::parse_levels;
use onrush_load::cli::lexer::{ArgLexer, Item, Misuse};
use onrush_load::cli::pace::parse_rate;
use onrush_load::cli::refusal::is_url;
use onrush_load::cli::spelling::Spelling;
use onrush_load::cli::values::Value;

/// Number of times that `sweep` and `vs` measure each point by default.
const SWEEP_ROUNDS: u32 = 3;
const VERSUS_ROUNDS: u32 = 10;

/// Options that set the length of a `vs` run, so that the default duration and warm-up do not apply.
const LENGTHS: [&str; 4] = ["duration", "requests", "until", "stages"];
const WARMUPS: [&str; 2] = ["warmup", "delay-stats"];

/// Default duration of a `vs` run, and of its warm-up.
const SLICE: Duration = Duration::from_secs(2);
const WARMUP: Duration = Duration::from_millis(500);
/// Maximum default duration of a `vs` run with a rate. Twenty such runs take seven minutes.
const SLICE_MAX: Duration = Duration::from_secs(20);

/// Parses the arguments after `sweep`; `None` if help was requested.
pub(crate) fn parse_sweep(args: &[OsString]) -> Result<Option<LabCommand>, String> {
    let Some(mut typed) = read(args, true)? else { return Ok(None) };
    if let Some(line) = typed.missing_url_message(1) {
        return Err(line);
    }
    if typed.lists.is_empty() {
        return Err("nothing is varied; give -c, -t, -R, --streams or --sysctl a list, such as -c 1,8,64 or -c 1..64"
            .to_owned());
    }
    if typed.words.is_empty() && !typed.run.0.contains_key(LIST) {
        return Err("no URL; try onrush sweep -c 1,8,64 http://127.0.0.1:8080/".to_owned());
    }
    let mut words = std::mem::take(&mut typed.words).into_iter();
    typed.run.0.insert(URL.to_owned(), words.by_ref().take(1).collect());
    typed.run.0.insert(ARGS.to_owned(), words.collect());
    let one = |key: &String, value: &String| (key.clone(), vec![value.clone()]);
    let name = |key: &str| key.strip_prefix(SYSCTL).unwrap_or(key).to_owned();
    let factors = if typed.is_zipped {
        let length = typed.lists[0].1.len();
        if let Some((key, list)) = typed.lists.iter().find(|(_, list)| list.len() != length) {
            return Err(format!(
                "--zip: {} has {length} levels and {} has {}; lists to be zipped must be equally long",
                name(&typed.lists[0].0),
                name(key),
                list.len()
            ));
        }
        let level = |index: usize| OutlineLevel {
            label: None,
            sets: typed.lists.iter().map(|(key, list)| one(key, &list[index])).collect(),
        };
        let names: Vec<String> = typed.lists.iter().map(|(key, _)| name(key)).collect();
        vec![OutlineFactor { name: names.join("+"), levels: (0..length).map(level).collect() }]
    } else {
        let level = |key: &String, value: &String| OutlineLevel { label: None, sets: vec![one(key, value)] };
        let factor = |(key, list): &(String, Vec<String>)| OutlineFactor {
            name: name(key),
            levels: list.iter().map(|value| level(key, value)).collect(),
        };
        typed.lists.iter().map(factor).collect()
    };
    to_command(typed, "sweep", factors, SWEEP_ROUNDS).map(Some)
}

/// Parses the arguments after `vs`; `None` if help was requested.
pub(crate) fn parse_versus(args: &[OsString]) -> Result<Option<LabCommand>, String> {
    let Some(mut typed) = read(args, false)? else { return Ok(None) };
    if let Some(line) = typed.missing_url_message(2) {
        return Err(line);
    }
    let urls = std::mem::take(&mut typed.words);
    if urls.len() < 2 {
        return Err("needs at least two URLs; try onrush vs http://a/ http://b/".to_owned());
    }
    // If a URL is repeated, it gets a number.
    let label = |index: usize| {
        let shown = redact_value(URL, &urls[index]);
        let earlier = urls[..index].iter().filter(|url| redact_value(URL, url) == shown).count();
        (earlier > 0).then(|| format!("{shown} ({})", earlier + 1))
    };
    let level = |(index, url): (usize, &String)| OutlineLevel {
        label: label(index),
        sets: vec![(URL.to_owned(), vec![url.clone()])],
    };
    for (options, length) in [(&LENGTHS[..], default_duration(&typed.run)), (&WARMUPS, WARMUP)] {
        if !options.iter().any(|key| typed.run.0.contains_key(*key)) {
            typed.run.0.insert(options[0].to_owned(), vec![format_duration_exact(length)]);
        }
    }
    let levels = urls.iter().enumerate().map(level).collect();
    to_command(typed, "vs", vec![OutlineFactor { name: URL.to_owned(), levels }], VERSUS_ROUNDS).map(Some)
}

/// Default duration of a `vs` run. With a rate, it is long enough for a comparison, but limited.
fn default_duration(run: &OptionMap) -> Duration {
    let typed = run.0.get("rate").and_then(|values| values.last());
    // If something is wrong with the rate, this is reported when the points are made.
    let rate = |typed: &String| parse_rate(Value::new(flags::named("rate"), typed.as_ref(), Dialect::Native)).ok();
    let asked = typed.and_then(rate);
    let enough = asked.and_then(|asked| Duration::try_from_secs_f64(design::enough_s(asked.per_second())).ok());
    let tenths = |length: Duration| Duration::from_millis(length.as_millis().next_multiple_of(100) as u64);
    enough.map(tenths).filter(|enough| (SLICE..=SLICE_MAX).contains(enough)).unwrap_or(SLICE)
}

/// Parses options and words; `None` if help was requested. `takes_lists`: options that can be varied may have a list of
/// levels.
fn read(args: &[OsString], takes_lists: bool) -> Result<Option<TypedLab>, String> {
    let own = || OPTIONS.iter().chain(&SHORTHAND);
    let mut typed = TypedLab::default();
    let mut lexer =
        ArgLexer::new(args, Dialect::Native, false).with_own_options(own().map(|option| &option.described.spelling));
    loop {
        let item = match lexer.next_item() {
            Ok(Some(item)) => item,
            Ok(None) => return Ok(Some(typed)),
            // A value as in --help=all is ignored, because there is only one help.
            Err(Misuse::Value(spelling)) if spelling.long == "help" => return Ok(None),
            Err(misuse) => {
                return Err(hints::command_misuse_hint(&misuse, own().map(|option| option.described.spelling.long)));
            }
        };
        if let Some((spelling, url)) = url_of(&item) {
            typed.taken_url = Some((*spelling, url.to_owned()));
        }
        match item {
            Item::Word(word) => typed.words.push(to_utf8(word)?),
            Item::ShortHelp => return Ok(None),
            Item::Own(spelling, value) => {
                let option = own().find(|option| option.described.spelling == *spelling);
                option.map_or(Ok(()), |option| option.set(&mut typed, &value))?;
            }
            Item::Flag(flag, _) if flag.name() == "help" => return Ok(None),
            Item::Flag(flag, _) if flag.name() == "version" => typed.is_verbose = true,
            Item::Flag(flag, value) => {
                let key = flag.name().to_owned();
                let value = to_utf8(value)?;
                OptionMap::check_key(&key)?;
                let may_be_list = takes_lists && flag.swept_as.is_some();
                if may_be_list && let Some(levels) = parse_levels(&key, &value)? {
                    typed.vary_option(key, levels)?;
                } else {
                    let values = typed.run.0.entry(key).or_default();
                    values
                        .extend(Some(value).filter(|value| flag.described.spelling.takes_value() || !value.is_empty()));
                }
            }
        }
    }
}

/// An option that took a URL as its value, and that URL. Options for a proxy, whose value may be a URL, are not
/// returned.
fn url_of(item: &Item) -> Option<(&Spelling, &OsStr)> {
    let (spelling, value) = match item {
        Item::Flag(flag, value) if !flag.takes_url() => (&flag.described.spelling, value),
        Item::Own(spelling, value) => (*spelling, value),
        _ => return None,
    };
    is_url(value).then_some((spelling, value))
}

fn to_utf8(word: OsString) -> Result<String, String> {
    word.into_string().map_err(|word| format!("{word:?} is not valid UTF-8"))
}

/// Makes the typed experiment with these factors. `name` and `rounds` are used if none were typed.
fn to_command(mut typed: TypedLab, name: &str, factors: Vec<OutlineFactor>, rounds: u32) -> Result<LabCommand, String> {
    let around =
        Circumstances { folder: typed.result_destination()?, may_change_host: typed.may_change_host, retries: None };
    let outline = ExperimentOutline {
        name: typed.name.unwrap_or_else(|| name.to_owned()),
        rounds: typed.rounds.unwrap_or(rounds),
        order: typed.order,
        seed: 1,
        retries: typed.retries.unwrap_or(0),
        run: typed.run,
        factors,
        ..ExperimentOutline::default()
    };
    let (experiment, warnings) = design::decide_experiment(outline, around)?;
    Ok(LabCommand { experiment: Box::new(experiment), is_plan: typed.is_plan, is_verbose: typed.is_verbose, warnings })
}
