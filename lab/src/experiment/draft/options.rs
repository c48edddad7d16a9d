//! The options of a run by name, as experiments store them.

use std::collections::BTreeMap;
use std::ffi::OsString;

use onrush_plan::file_contents::sha256_hex;
use onrush_plan::secrets;

use crate::sysctl::SettingName;
use onrush_load::cli::command_line;
use onrush_load::cli::flag::Flag;
use onrush_load::cli::flags;
use onrush_load::cli::hints;

/// Options by name, each with its values: none for a switch, several if the option is repeated. The keys include
/// [`URL`] and [`ARGS`], which are not options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionMap(pub BTreeMap<String, Vec<String>>);

/// The key for the target's URL.
pub(super) const URL: &str = "url";
/// The key for the list of requests.
pub(super) const LIST: &str = "urls";

/// The key for a script's arguments.
pub(super) const ARGS: &str = "args";

/// The option that keeps secrets in files.
pub(super) const KEEP_SECRETS: &str = "keep-secrets";

/// Prefix of the keys for host settings.
pub(super) const SYSCTL: &str = "sysctl.";

/// The key for the target's command.
pub(super) const COMMAND: &str = "target.command";

/// Prefix of the digest that replaces a command in the stored plan of an experiment.
const DIGEST: &str = "sha256:";

/// The option for socket sampling, and the one for its file in a run outside an experiment.
const SOCKETS: &str = "sockets";
const SAMPLES: &str = "sockets.ndjson";

impl OptionMap {
    /// Checks that a key is the name of an option that an experiment may set.
    ///
    /// # Errors
    ///
    /// Returns the reason why it may not, or the nearest name.
    pub fn check_key(key: &str) -> Result<(), String> {
        if let Some(name) = key.strip_prefix(SYSCTL) {
            return SettingName::parse(name).map(drop).map_err(|refusal| refusal.to_string());
        }
        if [URL, ARGS, COMMAND].contains(&key) {
            return Ok(());
        }
        match flags::by_name(key) {
            Some(flag) => {
                flag.single_run_only.map_or(Ok(()), |reason| Err(format!("--{key} makes no sense here: {reason}")))
            }
            None => Err(format!("unknown option {key:?}; {}", nearest_option_hint(key))),
        }
    }

    /// These options, with those in `others` added or replaced.
    pub fn overridden_by<'a>(&self, others: impl IntoIterator<Item = &'a (String, Vec<String>)>) -> Self {
        let mut all = self.clone();
        all.0.extend(others.into_iter().cloned());
        all
    }

    /// The command line that these options are equivalent to, starting with the program's name.
    ///
    /// # Errors
    ///
    /// Fails if a switch has a value, or if another option has none.
    pub fn to_arguments(&self) -> Result<Vec<OsString>, String> {
        let mut words = vec![OsString::from("onrush")];
        for (key, values) in &self.0 {
            let Some(flag) = flags::by_name(key) else { continue };
            words.extend(option_arguments(flag, values)?.into_iter().map(OsString::from));
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

    /// The host settings, named without the prefix of their keys.
    pub fn settings(&self) -> Vec<(String, String)> {
        let named = self.0.iter().filter_map(|(key, values)| Some((key.strip_prefix(SYSCTL)?, values)));
        named.map(|(name, values)| (name.to_owned(), values.join(" "))).collect()
    }

    /// The command that starts the target; `None` if onrush does not start it.
    pub fn command(&self) -> Option<String> {
        self.0.get(COMMAND).map(|values| values.join(" "))
    }
}

/// The canonical spelling of a key. Settings can be spelt in two ways: `net.core.rmem_max` and `net/core/rmem_max`.
pub(super) fn canonical_key(key: &str) -> String {
    let name = key.strip_prefix(SYSCTL).and_then(|name| SettingName::parse(name).ok());
    name.map_or_else(|| key.to_owned(), |name| format!("{SYSCTL}{name}"))
}

/// The value of an option without its secrets. A command is replaced by its digest.
pub(super) fn redact_value(key: &str, value: &str) -> String {
    match key {
        URL => secrets::redact_url(value),
        COMMAND if is_digest(value) => value.to_owned(),
        COMMAND => format!("{DIGEST}{}", sha256_hex(value.as_bytes())),
        _ if key.starts_with(SYSCTL) => value.to_owned(),
        _ => {
            let word = command_line::redact_word(&format!("--{key}={value}"), "", "");
            word.strip_prefix(&format!("--{key}=")).unwrap_or(&word).to_owned()
        }
    }
}

/// True if this is the digest of a command that was left out of the plan.
pub(super) fn is_digest(command: &str) -> bool {
    command.starts_with(DIGEST)
}

/// An option with its values, as arguments of a command line.
fn option_arguments(flag: &Flag, values: &[String]) -> Result<Vec<String>, String> {
    let name = flag.name();
    if flag.described.spelling.takes_value() && values.is_empty() {
        return Err(format!("{name} needs a value; try {name} = \"…\""));
    }
    if values.len() > 1 && !flag.is_repeatable {
        return Err(format!(
            "{name} takes one value; to vary it, add [[factor]] with name = \"{name}\", levels = [{}]",
            values.join(", ")
        ));
    }
    if flag.described.spelling.value.is_none() && !values.is_empty() {
        return Err(format!("{name} takes no value; write {name} = true"));
    }
    Ok(match values {
        [] => vec![format!("--{name}")],
        _ => values.iter().map(|value| format!("--{name}={value}")).collect(),
    })
}

/// A hint that names the option which was probably meant.
fn nearest_option_hint(key: &str) -> String {
    if let [letter] = key.chars().collect::<Vec<_>>()[..]
        && let Some(flag) = flags::by_letter(letter)
    {
        return format!("did you mean {}?", flag.name());
    }
    let names = flags::all().map(|flag| flag.name()).chain([URL, ARGS, COMMAND]);
    nearest_name_hint(key, names)
        .unwrap_or_else(|| "use the long name of an option; onrush --help all lists them".to_owned())
}

/// A hint that names the nearest of these names; `None` if none is near enough.
pub(super) fn nearest_name_hint<'a>(typed: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    hints::nearest_name(typed, names).map(|name| format!("did you mean {name}?"))
}
