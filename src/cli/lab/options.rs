//! The options of a run by their names, as an experiment has them: a command line in another form.

use std::collections::BTreeMap;
use std::ffi::OsString;

use strsim::damerau_levenshtein;

use super::super::command;
use super::super::flags::{self, FLAGS, Flag, Id};
use crate::plan::secrets;
use crate::settings::Name;

/// Options, each with what was said of it: nothing for one without a value, and as often as it is given. [`URL`] and
/// [`ARGS`] are among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options(pub BTreeMap<String, Vec<String>>);

/// The key of the target.
pub(super) const URL: &str = "url";

/// The key of a script's arguments.
pub(super) const ARGS: &str = "args";

/// The option that leaves secrets in files.
pub(super) const KEEP_SECRETS: &str = "keep-secrets";

/// What the keys of settings of the host begin with.
pub(super) const SYSCTL: &str = "sysctl.";

/// The key of the command that starts the target.
pub(super) const COMMAND: &str = "target.command";

/// The option that has sockets sampled, and the file that the samples of a run by itself go into.
const SOCKETS: &str = "sockets";
const SAMPLES: &str = "sockets.ndjson";

/// Options that say what becomes of one run, where an experiment has something of its own.
const OWN: [(Id, &str); 8] = [
    (Id::FindMax, "an experiment has runs, no searches"),
    (Id::Over, "an experiment has runs, no searches"),
    (Id::Once, "each target is requested once before the first round anyway"),
    (Id::Output, "each run has its file in the folder of the experiment"),
    (Id::SocketsOutput, "each run has a file for its samples in the folder of the experiment"),
    (Id::Format, "an experiment prints tables"),
    (Id::Compat, "an experiment has onrush's own runs"),
    (Id::Help, "onrush lab --help prints the help"),
];

/// Options that may be given several times.
const REPEATABLE: [Id; 4] = [Id::Header, Id::Resolve, Id::FailIf, Id::Label];

impl Options {
    /// Whether a key can be one, and how its value is given.
    ///
    /// # Errors
    ///
    /// Why not, with the nearest name.
    pub fn check(key: &str) -> Result<(), String> {
        let name = key.strip_prefix(SYSCTL);
        if name.is_some_and(|name| !name.is_empty()) || [URL, ARGS, COMMAND].contains(&key) {
            return Ok(());
        }
        match flags::by_name(key) {
            Some(flag) => match OWN.iter().find(|(id, _)| *id == flag.id) {
                Some((_, reason)) => Err(format!("--{key} makes no sense here: {reason}")),
                None => Ok(()),
            },
            None => Err(format!("unknown option {key:?}; {}", nearest(key))),
        }
    }

    /// These, but for what others say.
    pub fn with<'a>(&self, others: impl IntoIterator<Item = &'a (String, Vec<String>)>) -> Self {
        let mut all = self.clone();
        all.0.extend(others.into_iter().cloned());
        all
    }

    /// The words of a command line that say the same.
    ///
    /// # Errors
    ///
    /// Where an option without a value has one, or the reverse.
    pub fn words(&self) -> Result<Vec<OsString>, String> {
        let mut words = vec![OsString::from("onrush")];
        for (key, values) in &self.0 {
            let Some(flag) = flags::by_name(key) else { continue };
            words.extend(spelt(flag, values)?.into_iter().map(OsString::from));
        }
        if self.0.contains_key(SOCKETS) {
            words.push(format!("--sockets-output={SAMPLES}").into());
        }
        let args = self.0.get(ARGS).map_or(&[][..], Vec::as_slice);
        if args.iter().any(|word| word.starts_with('-')) {
            words.push("--".into());
        }
        words.extend(self.0.get(URL).into_iter().flatten().chain(args).map(OsString::from));
        Ok(words)
    }

    /// What sets the host, by names without the prefix.
    pub fn settings(&self) -> Vec<(String, String)> {
        let named = self.0.iter().filter_map(|(key, values)| Some((key.strip_prefix(SYSCTL)?, values)));
        named.map(|(name, values)| (name.to_owned(), values.join(" "))).collect()
    }

    /// The command that starts the target.
    pub fn command(&self) -> Option<String> {
        self.0.get(COMMAND).map(|values| values.join(" "))
    }
}

/// A key as it is known: settings have two spellings, `net.core.rmem_max` and `net/core/rmem_max`.
pub(super) fn canonical(key: &str) -> String {
    let name = key.strip_prefix(SYSCTL).and_then(|name| Name::parse(name).ok());
    name.map_or_else(|| key.to_owned(), |name| format!("{SYSCTL}{name}"))
}

/// A value of an option without secrets.
pub(super) fn redacted(key: &str, value: &str) -> String {
    match key {
        URL => secrets::url(value),
        COMMAND => secrets::words(value.split(' ')).join(" "),
        _ if key.starts_with(SYSCTL) => value.to_owned(),
        _ => {
            let word = command::redacted(&format!("--{key}={value}"), "", "");
            word.strip_prefix(&format!("--{key}=")).unwrap_or(&word).to_owned()
        }
    }
}

/// An option as words.
fn spelt(flag: &Flag, values: &[String]) -> Result<Vec<String>, String> {
    let name = flag.long;
    if flag.takes_value() && values.is_empty() {
        return Err(format!("{name} needs a value; try {name} = \"…\""));
    }
    if values.len() > 1 && !REPEATABLE.contains(&flag.id) {
        return Err(format!(
            "{name} takes one value; to vary it write [[factor]], name = \"{name}\", levels = [{}]",
            values.join(", ")
        ));
    }
    if flag.value.is_none() && !values.is_empty() {
        return Err(format!("{name} takes no value; write {name} = true"));
    }
    Ok(match values {
        [] => vec![format!("--{name}")],
        _ => values.iter().map(|value| format!("--{name}={value}")).collect(),
    })
}

/// The name that may have been meant.
fn nearest(key: &str) -> String {
    if let [letter] = key.chars().collect::<Vec<_>>()[..]
        && let Some(flag) = flags::by_letter(letter)
    {
        return format!("did you mean {}?", flag.long);
    }
    let names = FLAGS.iter().map(|flag| flag.long).chain([URL, ARGS, COMMAND]);
    near(key, names).unwrap_or_else(|| "write the long name of an option, as onrush --help lists them".to_owned())
}

/// The nearest of some names, if it is near.
pub(super) fn near<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let (far, name) = names.map(|name| (damerau_levenshtein(typed, name), name)).min()?;
    (far <= 2.max(typed.chars().count() / 3)).then(|| format!("did you mean {name}?"))
}
