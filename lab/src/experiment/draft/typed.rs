//! The arguments of `onrush lab`, `onrush sweep` and `onrush vs` as typed, and the commands' own options.

use std::ffi::OsString;
use std::path::PathBuf;

use onrush_load::cli::arguments::{Setter, path, switch, text};
use onrush_load::cli::refusal::url_as_value_hint;
use onrush_load::cli::spelling::Spelling;
use onrush_plan::Order;
use onrush_plan::experiment::ResultDestination;

use super::options::{OptionMap, SYSCTL, canonical_key};
use super::outline::{RETRIES_MAX, ROUNDS_MAX};

#[derive(Debug, Default)]
pub(crate) struct TypedLab {
    out: Option<PathBuf>,
    resume: Option<PathBuf>,
    is_forced: bool,
    pub retries: Option<u32>,
    pub may_change_host: bool,
    pub is_plan: bool,
    pub is_verbose: bool,
    pub name: Option<String>,
    pub rounds: Option<u32>,
    pub order: Order,
    pub is_zipped: bool,
    /// Options that all runs have in common.
    pub run: OptionMap,
    /// Lists of levels, each with the option that they vary.
    pub lists: Vec<(String, Vec<String>)>,
    /// The experiment file given to `lab`; `None` for `lab --resume DIR` alone, and for `sweep` and `vs`.
    pub file: Option<PathBuf>,
    /// The words given to `sweep` and `vs`: URLs, and arguments for a script.
    pub words: Vec<String>,
    /// The last option that took a URL as its value, and that URL.
    pub taken_url: Option<(Spelling, OsString)>,
}

/// Options that all three commands have.
pub(super) const OPTIONS: [Setter<TypedLab>; 7] = [
    path("--out DIR", |typed: &mut TypedLab, path| {
        typed.out = Some(path);
        Ok(())
    })
    .help("write all results to DIR (onrush-results/TIME-NAME)"),
    path("--resume DIR", |typed: &mut TypedLab, path| {
        typed.resume = Some(path);
        Ok(())
    })
    .help("continue an unfinished experiment; sweep and vs: with\nthe same command line"),
    switch("--force", |typed: &mut TypedLab| typed.is_forced = true)
        .help("with --resume: even if something has changed since"),
    text("--retry N", |typed: &mut TypedLab, text| {
        count(text, 0, RETRIES_MAX).map(|count| typed.retries = Some(count))
    })
    .help("retry a failed run at once, up to N times (0)"),
    switch("--plan", |typed: &mut TypedLab| typed.is_plan = true).help("show points, order and time; run nothing"),
    switch("-v, --verbose", |typed: &mut TypedLab| typed.is_verbose = true).help("print every run and all figures"),
    switch("--allow-host-changes", |typed: &mut TypedLab| typed.may_change_host = true)
        .help("change settings of this host, and restore them"),
];

/// Options of `sweep` and `vs` that describe the experiment, as a file does for `lab`.
pub(crate) const SHORTHAND: [Setter<TypedLab>; 5] = [
    text("--name NAME", |typed: &mut TypedLab, name| {
        typed.name = Some(name.to_owned());
        Ok(())
    })
    .help("the NAME in the folder's name (sweep or vs)"),
    text("--rounds N", |typed: &mut TypedLab, text| count(text, 1, ROUNDS_MAX).map(|count| typed.rounds = Some(count)))
        .help("how often each point is measured (sweep: 3, vs: 10)"),
    text("--order NAME", |typed: &mut TypedLab, name| order(name).map(|order| typed.order = order))
        .one_of(&["interleaved", "random", "sequential"])
        .help("random, sequential or interleaved (interleaved)"),
    switch("--zip", |typed: &mut TypedLab| typed.is_zipped = true).help("pair the lists instead of crossing them"),
    text("--sysctl NAME=LIST", |typed: &mut TypedLab, text| {
        let (name, levels) =
            text.split_once('=').ok_or("write NAME=VALUE,VALUE, such as net.core.somaxconn=128,4096")?;
        let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
        if levels.iter().any(String::is_empty) {
            return Err("its list has an empty entry".to_owned());
        }
        let key = format!("{SYSCTL}{}", name.trim());
        OptionMap::check_key(&key)?;
        typed.vary_option(canonical_key(&key), levels)
    })
    .help("values to try for a setting of this host"),
];

impl TypedLab {
    /// Decides from `--out` and `--resume` where the results go. Rejects both together, and `--force` without
    /// `--resume`.
    pub fn result_destination(&mut self) -> Result<ResultDestination, String> {
        match (self.out.take(), self.resume.take()) {
            (Some(_), Some(_)) => Err("--out and --resume both name a folder; leave one of the two out".to_owned()),
            (out, None) if self.is_forced => {
                let path = out.unwrap_or_else(|| PathBuf::from("DIR"));
                Err(format!("--force needs --resume: --resume {} --force", path.display()))
            }
            (out, None) => Ok(ResultDestination::New(out)),
            (None, Some(path)) => Ok(ResultDestination::Resumed { path, is_forced: self.is_forced }),
        }
    }

    /// One line about the option that took a URL as its value, if there are fewer than `needed` words without this URL.
    pub fn missing_url_message(&self, needed: usize) -> Option<String> {
        let (spelling, url) = self.taken_url.as_ref().filter(|_| self.words.len() < needed)?;
        Some(url_as_value_hint(spelling, url))
    }

    /// Varies the option `key` over a list of levels. Rejects a second list for the same option.
    pub fn vary_option(&mut self, key: String, levels: Vec<String>) -> Result<(), String> {
        if self.lists.iter().any(|(other, _)| *other == key) {
            return Err(format!("{key} has two lists; combine them into one"));
        }
        self.lists.push((key, levels));
        Ok(())
    }
}

fn count(text: &str, least: u64, most: u64) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.map(|number| number as u32).ok_or_else(|| format!("write a whole number from {least} to {most}"))
}

fn order(name: &str) -> Result<Order, String> {
    match name {
        "interleaved" => Ok(Order::Interleaved),
        "random" => Ok(Order::Random),
        "sequential" => Ok(Order::Sequential),
        _ => Err("write interleaved, random or sequential".to_owned()),
    }
}
