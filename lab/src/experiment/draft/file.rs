//! Reads an experiment from a TOML file, and reports every mistake with its line.

use std::ops::Range;
use std::time::Duration;

use onrush_load::cli::units;
use onrush_plan::experiment::Hooks;
use onrush_plan::{Dialect, Order};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::options::{COMMAND, OptionMap, SYSCTL, canonical_key, nearest_name_hint};
use super::outline::{ExperimentOutline, OutlineFactor, OutlineLevel, OutlineServer, READY, RETRIES_MAX, ROUNDS_MAX};

/// A mistake in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileFault {
    /// Number of the line, from 1; `None` if the mistake concerns the whole file.
    pub line: Option<usize>,
    /// The fault, as a sentence.
    pub words: String,
}

pub(super) fn parse_outline(text: &str) -> Result<ExperimentOutline, FileFault> {
    let root = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line_number(text, span.start));
        FileFault { line, words: error.message().trim().replace('\n', ", ") }
    })?;
    let root = FileTable { text, name: "", table: root.get_ref() };
    root.reject_unknown_keys(&[
        "name", "rounds", "order", "seed", "retry", "baseline", "attach", "run", "factor", "target", "hooks", "made",
    ])?;
    let factors = root.tables("factor")?;
    Ok(ExperimentOutline {
        name: root.string("name")?.unwrap_or_default(),
        rounds: root.integer("rounds", 1..ROUNDS_MAX + 1)?.unwrap_or(3) as u32,
        order: root.choice("order", &ORDERS)?.unwrap_or_default(),
        seed: root.integer("seed", 0..i64::MAX as u64)?.unwrap_or(1),
        retries: root.integer("retry", 0..RETRIES_MAX + 1)?.unwrap_or(0) as u32,
        baseline: parse_baseline(&root)?,
        attach: root.strings("attach")?.into_iter().map(Into::into).collect(),
        run: parse_run_options(&root)?,
        factors: factors.iter().map(parse_factor).collect::<Result<_, _>>()?,
        server: root.table("target")?.map(|table| parse_server(&table)).transpose()?,
        hooks: root.table("hooks")?.map_or(Ok(Hooks::default()), |table| parse_hooks(&table))?,
    })
}

const ORDERS: [(&str, Order); 3] =
    [("interleaved", Order::Interleaved), ("random", Order::Random), ("sequential", Order::Sequential)];

fn parse_baseline(root: &FileTable<'_>) -> Result<Vec<(String, String)>, FileFault> {
    let Some(table) = root.table("baseline")? else { return Ok(Vec::new()) };
    table
        .table
        .iter()
        .map(|(key, value)| Ok((key.get_ref().to_string(), table.scalar(key.get_ref(), value)?)))
        .collect()
}

fn parse_run_options(root: &FileTable<'_>) -> Result<OptionMap, FileFault> {
    let Some(table) = root.table("run")? else { return Ok(OptionMap::default()) };
    Ok(OptionMap(table.options("", &[])?.into_iter().collect()))
}

fn parse_factor(table: &FileTable<'_>) -> Result<OutlineFactor, FileFault> {
    table.reject_unknown_keys(&["name", "levels"])?;
    let name = table.string("name")?.filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(table.fault_in_table("a factor needs a name, such as name = \"connections\""));
    };
    let Some((_, levels)) = table.find("levels") else {
        return Err(table.fault_in_table("a factor needs levels, such as levels = [1, 8, 64]"));
    };
    let DeValue::Array(levels) = levels.get_ref() else {
        return Err(table.fault_at(levels.span(), "levels must be a list, such as [1, 8, 64]"));
    };
    let level = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::Table(inner) => {
            let inner = FileTable { text: table.text, name: "levels", table: inner };
            let label = inner.string("label")?;
            Ok(OutlineLevel { label, sets: inner.options("", &["label"])? })
        }
        // A plain value is that of the option after which the factor is named.
        _ => {
            table.check_option_name(&name, value.span())?;
            Ok(OutlineLevel { label: None, sets: table.parse_setting(&name, value)?.into_iter().collect() })
        }
    };
    Ok(OutlineFactor { levels: levels.iter().map(level).collect::<Result<_, _>>()?, name: name.clone() })
}

fn parse_server(table: &FileTable<'_>) -> Result<OutlineServer, FileFault> {
    table.reject_unknown_keys(&["command", "ready", "timeout"])?;
    Ok(OutlineServer {
        command: table.string("command")?,
        ready: table.string("ready")?,
        timeout: table.time("timeout")?.unwrap_or(READY),
    })
}

fn parse_hooks(table: &FileTable<'_>) -> Result<Hooks, FileFault> {
    table.reject_unknown_keys(&["before_point", "after_point", "before_run", "after_run", "timeout", "on_error"])?;
    let usual = Hooks::default();
    Ok(Hooks {
        before_point: table.string("before_point")?,
        after_point: table.string("after_point")?,
        before_run: table.string("before_run")?,
        after_run: table.string("after_run")?,
        timeout: table.time("timeout")?.unwrap_or(usual.timeout),
        are_fatal: table.choice("on_error", &[("continue", false), ("stop", true)])?.unwrap_or(usual.are_fatal),
    })
}

struct FileTable<'a> {
    text: &'a str,
    name: &'a str,
    table: &'a DeTable<'a>,
}

impl<'a> FileTable<'a> {
    /// Rejects all keys that are not in `known`.
    fn reject_unknown_keys(&self, known: &[&str]) -> Result<(), FileFault> {
        let Some(key) = self.table.keys().find(|key| !known.contains(&&**key.get_ref())) else { return Ok(()) };
        let place = if self.name.is_empty() { String::new() } else { format!(" in [{}]", self.name) };
        let hint = nearest_name_hint(key.get_ref(), known.iter().copied())
            .unwrap_or_else(|| format!("known are {}", known.join(", ")));
        // A run's option at the top of the file was probably meant for [run].
        let hint = if self.name.is_empty() && OptionMap::check_key(key.get_ref()).is_ok() {
            "it belongs in [run]".to_owned()
        } else {
            hint
        };
        Err(self.fault_at(key.span(), &format!("unknown key {:?}{place}; {hint}", key.get_ref())))
    }

    fn find(&self, key: &str) -> Option<(&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>)> {
        self.table.iter().find(|(name, _)| name.get_ref() == key)
    }

    fn string(&self, key: &str) -> Result<Option<String>, FileFault> {
        let Some((_, value)) = self.find(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(text.to_string())),
            _ => Err(self.fault_at(value.span(), &format!("{key} must be text in quotes"))),
        }
    }

    fn strings(&self, key: &str) -> Result<Vec<String>, FileFault> {
        let Some((_, value)) = self.find(key) else { return Ok(Vec::new()) };
        match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| self.scalar(key, value)).collect(),
            _ => Ok(vec![self.scalar(key, value)?]),
        }
    }

    fn integer(&self, key: &str, range: Range<u64>) -> Result<Option<u64>, FileFault> {
        let Some((_, value)) = self.find(key) else { return Ok(None) };
        let number = self.scalar(key, value)?.parse::<u64>().ok().filter(|number| range.contains(number));
        let words = || {
            let (least, most) = (range.start, range.end - 1);
            self.fault_at(value.span(), &format!("{key} must be a whole number from {least} to {most}"))
        };
        number.map(Some).ok_or_else(words)
    }

    /// A time, which is in seconds if it has no unit, as in the options of a run.
    fn time(&self, key: &str) -> Result<Option<Duration>, FileFault> {
        let Some((_, value)) = self.find(key) else { return Ok(None) };
        let time = units::parse_time(&self.scalar(key, value)?, Dialect::Native).ok().filter(|time| !time.is_zero());
        let words = || self.fault_at(value.span(), &format!("{key} must be a time, such as \"30s\""));
        time.map(Some).ok_or_else(words)
    }

    fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, FileFault> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        let found = choices.iter().find(|(name, _)| *name == text);
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        let span = self.find(key).map_or(0..0, |(_, value)| value.span());
        let words = || self.fault_at(span, &format!("{key} must be {}", names.join(" or ")));
        found.map(|(_, choice)| Some(*choice)).ok_or_else(words)
    }

    fn table(&self, key: &'a str) -> Result<Option<FileTable<'a>>, FileFault> {
        let Some((_, value)) = self.find(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some(FileTable { text: self.text, name: key, table })),
            _ => Err(self.fault_at(value.span(), &format!("{key} must be a table: write [{key}] above its keys"))),
        }
    }

    fn tables(&self, key: &'a str) -> Result<Vec<FileTable<'a>>, FileFault> {
        let Some((_, value)) = self.find(key) else { return Ok(Vec::new()) };
        let words =
            || self.fault_at(value.span(), &format!("{key} must be a list of tables: write [[{key}]] above each"));
        let DeValue::Array(values) = value.get_ref() else { return Err(words()) };
        let table = |value: &'a Spanned<DeValue<'a>>| match value.get_ref() {
            DeValue::Table(table) => Ok(FileTable { text: self.text, name: key, table }),
            _ => Err(words()),
        };
        values.iter().map(table).collect()
    }

    /// The options in a table, without the keys in `own`. The name of an inner table is the last part of a dotted name.
    fn options(&self, prefix: &str, own: &[&str]) -> Result<Vec<(String, Vec<String>)>, FileFault> {
        let mut options = Vec::new();
        for (key, value) in self.table.iter().filter(|(key, _)| !own.contains(&&**key.get_ref())) {
            let name = format!("{prefix}{}", key.get_ref());
            let is_dotted = SYSCTL.starts_with(&format!("{name}."))
                || name.starts_with(SYSCTL)
                || COMMAND.starts_with(&format!("{name}."));
            match value.get_ref() {
                DeValue::Table(inner) if is_dotted => {
                    let inner = FileTable { text: self.text, name: self.name, table: inner };
                    options.extend(inner.options(&format!("{name}."), &[])?);
                }
                _ => {
                    self.check_option_name(&name, key.span())?;
                    options.extend(self.parse_setting(&name, value)?);
                }
            }
        }
        Ok(options)
    }

    /// Rejects a name that is not that of an option.
    fn check_option_name(&self, name: &str, span: Range<usize>) -> Result<(), FileFault> {
        OptionMap::check_key(name).map_err(|words| self.fault_at(span, &words))
    }

    /// An option with its values; `None` for `false`, which leaves a switch off.
    fn parse_setting(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Option<(String, Vec<String>)>, FileFault> {
        let values = match value.get_ref() {
            DeValue::Boolean(false) => return Ok(None),
            DeValue::Boolean(true) => Vec::new(),
            DeValue::Array(values) => values.iter().map(|value| self.scalar(name, value)).collect::<Result<_, _>>()?,
            _ => vec![self.scalar(name, value)?],
        };
        Ok(Some((canonical_key(name), values)))
    }

    /// A value in the form in which it would be typed.
    fn scalar(&self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<String, FileFault> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
            DeValue::Float(number) => Ok(number.as_str().replace('_', "")),
            _ => Err(self.fault_at(value.span(), &format!("{name} must be text in quotes or a decimal number"))),
        }
    }

    fn fault_in_table(&self, words: &str) -> FileFault {
        let first = self.table.keys().map(|key| key.span().start).min();
        FileFault { line: first.map(|at| line_number(self.text, at)), words: words.to_owned() }
    }

    fn fault_at(&self, span: Range<usize>, words: &str) -> FileFault {
        FileFault { line: Some(line_number(self.text, span.start)), words: words.to_owned() }
    }
}

/// Number of the line that contains the byte at this position.
fn line_number(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
