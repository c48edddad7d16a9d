//! Reads the command lines of `onrush sweep` and `onrush vs`: experiments without a file.

use std::ffi::OsString;
use std::path::PathBuf;

use super::super::flags::Id;
use super::super::front::{Front, Item, Misuse};
use super::super::hints;
use super::design::{self, Circumstances};
use super::draft::{Draft, DraftFactor, DraftLevel, RETRIES_MAX, ROUNDS_MAX};
use super::options::{ARGS, Options, SYSCTL, URL, canonical, near, redacted};
use super::{Lab, count, folder};
use crate::plan::{Dialect, Order};

/// How often `sweep` and `vs` measure each point.
const SWEEP_ROUNDS: u32 = 3;
const VERSUS_ROUNDS: u32 = 10;

/// The duration and the warm-up of a run of `vs`, each with the options that replace it.
const SLICE: [(&[&str], &str); 2] =
    [(&["duration", "requests", "until", "stages"], "2s"), (&["warmup", "delay-stats"], "500ms")];

/// The options of the two commands themselves, and whether they take a value.
const OWN: [(&str, bool); 12] = [
    ("sysctl", true),
    ("zip", false),
    ("rounds", true),
    ("order", true),
    ("out", true),
    ("resume", true),
    ("force", false),
    ("retry", true),
    ("allow-host-changes", false),
    ("plan", false),
    ("name", true),
    ("help", false),
];

/// What was typed.
#[derive(Debug, Default)]
struct Typed {
    /// The options of the command itself, in their order.
    own: Vec<(&'static str, String)>,
    run: Options,
    words: Vec<String>,
    /// Lists of levels, by their option.
    lists: Vec<(String, Vec<String>)>,
}

/// Reads the arguments after `sweep`; `None`: the help was asked for.
pub(crate) fn sweep(args: &[OsString]) -> Result<Option<Lab>, String> {
    let Some(mut typed) = read(args, true)? else { return Ok(None) };
    if typed.lists.is_empty() {
        return Err("nothing is varied; give -c, -t, -R or --sysctl a list, such as -c 1,8,64".to_owned());
    }
    if typed.words.is_empty() {
        return Err("no URL; try onrush sweep -c 1,8,64 http://127.0.0.1:8080/".to_owned());
    }
    let mut words = std::mem::take(&mut typed.words).into_iter();
    typed.run.0.insert(URL.to_owned(), words.by_ref().take(1).collect());
    typed.run.0.insert(ARGS.to_owned(), words.collect());
    let one = |key: &String, value: &String| (key.clone(), vec![value.clone()]);
    let name = |key: &str| key.strip_prefix(SYSCTL).unwrap_or(key).to_owned();
    let factors = if typed.has("zip") {
        let length = typed.lists[0].1.len();
        if let Some((key, list)) = typed.lists.iter().find(|(_, list)| list.len() != length) {
            let (first, key) = (name(&typed.lists[0].0), name(key));
            return Err(format!(
                "--zip: {first} has {length} levels and {key} has {}; lists to be zipped must be equally long",
                list.len()
            ));
        }
        let level = |index: usize| DraftLevel {
            label: None,
            sets: typed.lists.iter().map(|(key, list)| one(key, &list[index])).collect(),
        };
        let names: Vec<String> = typed.lists.iter().map(|(key, _)| name(key)).collect();
        vec![DraftFactor { name: names.join("+"), levels: (0..length).map(level).collect() }]
    } else {
        let level = |key: &String, value: &String| DraftLevel { label: None, sets: vec![one(key, value)] };
        let factor = |(key, list): &(String, Vec<String>)| DraftFactor {
            name: name(key),
            levels: list.iter().map(|value| level(key, value)).collect(),
        };
        typed.lists.iter().map(factor).collect()
    };
    typed.lab("sweep", factors, SWEEP_ROUNDS).map(Some)
}

/// Reads the arguments after `vs`; `None`: the help was asked for.
pub(crate) fn versus(args: &[OsString]) -> Result<Option<Lab>, String> {
    let Some(mut typed) = read(args, false)? else { return Ok(None) };
    let urls = std::mem::take(&mut typed.words);
    if urls.len() < 2 {
        return Err("needs at least two URLs; try onrush vs http://a/ http://b/".to_owned());
    }
    // A repeated URL gets a number.
    let label = |index: usize| {
        let shown = redacted(URL, &urls[index]);
        let earlier = urls[..index].iter().filter(|url| redacted(URL, url) == shown).count();
        (earlier > 0).then(|| format!("{shown} ({})", earlier + 1))
    };
    let level = |(index, url): (usize, &String)| DraftLevel {
        label: label(index),
        sets: vec![(URL.to_owned(), vec![url.clone()])],
    };
    for (option, value) in SLICE {
        if !option.iter().any(|key| typed.run.0.contains_key(*key)) {
            typed.run.0.insert(option[0].to_owned(), vec![value.to_owned()]);
        }
    }
    let levels = urls.iter().enumerate().map(level).collect();
    typed.lab("vs", vec![DraftFactor { name: URL.to_owned(), levels }], VERSUS_ROUNDS).map(Some)
}

/// Reads options and words. `takes_lists`: some options may have a list of levels.
fn read(args: &[OsString], takes_lists: bool) -> Result<Option<Typed>, String> {
    let mut typed = Typed::default();
    let rest = typed.take_own(args)?;
    if typed.has("help") {
        return Ok(None);
    }
    let mut front = Front::new(&rest, Dialect::Native, false);
    while let Some(item) = front.next().map_err(|misuse| hint(&misuse))? {
        match item {
            Item::Word(word) => typed.words.push(text(word)?),
            Item::ShortHelp => return Ok(None),
            Item::Flag(flag, _) if flag.id == Id::Help => return Ok(None),
            Item::Flag(flag, value) => {
                let (key, value) = (flag.spelling.long.to_owned(), text(value)?);
                let is_list = [Id::Connections, Id::Threads, Id::Rate].contains(&flag.id) && value.contains(',');
                Options::check(&key)?;
                if is_list && takes_lists {
                    typed.list(key, &value)?;
                } else {
                    let values = typed.run.0.entry(key).or_default();
                    values.extend(Some(value).filter(|value| flag.spelling.takes_value() || !value.is_empty()));
                }
            }
        }
    }
    Ok(Some(typed))
}

/// The message about a misused option; it also suggests options of the command itself.
fn hint(misuse: &Misuse) -> String {
    let name = match misuse {
        Misuse::Name(name) => name.split('=').next().unwrap_or_default(),
        _ => "",
    };
    let own = near(name, OWN.iter().map(|(own, _)| *own)).filter(|_| !name.is_empty());
    own.map_or_else(
        || hints::hint(misuse),
        |near| format!("unknown option --{name}; {}", near.replace("mean ", "mean --")),
    )
}

fn text(word: OsString) -> Result<String, String> {
    word.into_string().map_err(|word| format!("{word:?} is not valid UTF-8"))
}

impl Typed {
    /// Takes out the options of the command itself; returns the other words.
    fn take_own(&mut self, args: &[OsString]) -> Result<Vec<OsString>, String> {
        let mut rest = Vec::new();
        let mut args = args.iter();
        while let Some(word) = args.next() {
            let typed = word.to_str().and_then(|word| word.strip_prefix("--")).unwrap_or_default();
            let (name, value) = typed.split_once('=').map_or((typed, None), |(name, value)| (name, Some(value)));
            let Some(&(name, takes_value)) = OWN.iter().find(|(own, _)| *own == name) else {
                rest.push(word.clone());
                continue;
            };
            let value = match (takes_value, value) {
                (false, Some(_)) => return Err(hints::takes_no_value(name)),
                (false, None) => String::new(),
                (true, Some(value)) => value.to_owned(),
                (true, None) => text(args.next().ok_or_else(|| format!("--{name} needs a value"))?.clone())?,
            };
            if name == "sysctl" {
                let wrong =
                    || format!("--sysctl {value:?}: write NAME=VALUE,VALUE, such as net.core.somaxconn=128,4096");
                let (setting, levels) = value.split_once('=').ok_or_else(wrong)?;
                self.list(canonical(&format!("{SYSCTL}{}", setting.trim())), levels)?;
            } else {
                self.own.push((name, value));
            }
        }
        Ok(rest)
    }

    fn list(&mut self, key: String, levels: &str) -> Result<(), String> {
        if self.lists.iter().any(|(other, _)| *other == key) {
            return Err(format!("{key} has two lists; combine them into one"));
        }
        let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
        if levels.iter().any(String::is_empty) {
            return Err(format!("{key}: its list has an empty entry"));
        }
        self.lists.push((key, levels));
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.own.iter().any(|(own, _)| *own == name)
    }

    fn own(&self, name: &str) -> Option<&String> {
        self.own.iter().rev().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
        self.own(name).map(|value| count(name, Ok(value.into()), least, most)).transpose()
    }

    /// The experiment with these factors.
    fn lab(self, name: &str, factors: Vec<DraftFactor>, rounds: u32) -> Result<Lab, String> {
        let order = match self.own("order").map(String::as_str) {
            None | Some("interleaved") => Order::Interleaved,
            Some("random") => Order::Random,
            Some("sequential") => Order::Sequential,
            Some(other) => return Err(format!("--order {other:?}: write interleaved, random or sequential")),
        };
        let retries = self.number("retry", 0, RETRIES_MAX)?.map(|number| number as u32);
        let rounds = self.number("rounds", 1, ROUNDS_MAX)?.map_or(rounds, |number| number as u32);
        let around = Circumstances {
            folder: folder(
                self.own("out").map(PathBuf::from),
                self.own("resume").map(PathBuf::from),
                self.has("force"),
            )?,
            may_change_host: self.has("allow-host-changes"),
            retries: None,
        };
        let is_plan = self.has("plan");
        let name = self.own("name").map_or(name, String::as_str).to_owned();
        let retries = retries.unwrap_or(0);
        let draft = Draft { name, rounds, order, seed: 1, retries, run: self.run, factors, ..Draft::default() };
        let (experiment, warnings) = design::decide(draft, around)?;
        Ok(Lab { experiment: Box::new(experiment), is_plan, warnings })
    }
}
