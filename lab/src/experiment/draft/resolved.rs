//! Formats an experiment as a file that reproduces it, with all decisions and defaults.

use onrush_plan::experiment::Hooks;
use onrush_plan::{Order, secrets};
use toml::{Table, Value};

use super::options::{ARGS, COMMAND, KEEP_SECRETS, OptionMap, URL, redact_value};
use super::outline::{ExperimentOutline, OutlineFactor, OutlineLevel, OutlineServer};

/// The experiment as TOML twice: with and without secrets.
pub(super) fn resolved_texts(outline: &ExperimentOutline) -> (String, String) {
    let keeps_secrets = outline.run.0.contains_key(KEEP_SECRETS);
    let text = resolved_text(outline, &|_, values| values.to_vec());
    let shown = if keeps_secrets { text.clone() } else { resolved_text(outline, &redact_values) };
    (text, shown)
}

/// A function that returns the values to write for the values of an option.
type ValueFilter = dyn Fn(&str, &[String]) -> Vec<String>;

/// The values of an option without secrets. A script's arguments are redacted together, because an argument may show
/// that the next one is a secret.
fn redact_values(key: &str, values: &[String]) -> Vec<String> {
    match key {
        ARGS => secrets::redact_words(values.iter().map(String::as_str)),
        _ => values.iter().map(|value| redact_value(key, value)).collect(),
    }
}

fn resolved_text(outline: &ExperimentOutline, filter: &ValueFilter) -> String {
    let mut root = Table::new();
    let order = match outline.order {
        Order::Interleaved => "interleaved",
        Order::Random => "random",
        Order::Sequential => "sequential",
    };
    root.insert("name".to_owned(), outline.name.clone().into());
    root.insert("rounds".to_owned(), i64::from(outline.rounds).into());
    root.insert("order".to_owned(), order.into());
    root.insert("seed".to_owned(), (outline.seed as i64).into());
    root.insert("retry".to_owned(), i64::from(outline.retries).into());
    let baseline: Table =
        outline.baseline.iter().map(|(factor, level)| (factor.clone(), level.clone().into())).collect();
    root.insert("baseline".to_owned(), Value::Table(baseline));
    let attached = outline.attach.iter().map(|path| Value::from(path.display().to_string()));
    root.insert("attach".to_owned(), Value::Array(attached.collect()));
    root.insert("run".to_owned(), Value::Table(options(&outline.run, filter)));
    root.insert("factor".to_owned(), Value::Array(outline.factors.iter().map(|each| factor(each, filter)).collect()));
    if let Some(target) = &outline.server {
        root.insert("target".to_owned(), Value::Table(server(target, filter)));
    }
    root.insert("hooks".to_owned(), Value::Table(hooks(&outline.hooks, filter)));
    root.to_string()
}

fn server(server: &OutlineServer, filter: &ValueFilter) -> Table {
    let one = |key, text: &String| filter(key, std::slice::from_ref(text)).concat();
    table([
        ("command", server.command.as_ref().map(|command| one(COMMAND, command))),
        ("ready", server.ready.as_ref().map(|ready| one(URL, ready))),
        ("timeout", Some(format!("{}s", server.timeout.as_secs_f64()))),
    ])
}

fn hooks(hooks: &Hooks, filter: &ValueFilter) -> Table {
    let command = |command: &Option<String>| command.as_ref().map(|_| filter(COMMAND, command.as_slice()).concat());
    table([
        ("before_point", command(&hooks.before_point)),
        ("after_point", command(&hooks.after_point)),
        ("before_run", command(&hooks.before_run)),
        ("after_run", command(&hooks.after_run)),
        ("timeout", Some(format!("{}s", hooks.timeout.as_secs_f64()))),
        ("on_error", Some(if hooks.are_fatal { "stop" } else { "continue" }.to_owned())),
    ])
}

/// A table of those keys that have a value.
fn table<const N: usize>(keys: [(&str, Option<String>); N]) -> Table {
    keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?)))).collect()
}

fn factor(factor: &OutlineFactor, filter: &ValueFilter) -> Value {
    let level = |level: &OutlineLevel| {
        let mut table = options(&OptionMap(level.sets.iter().cloned().collect()), filter);
        if let Some(label) = &level.label {
            table.insert("label".to_owned(), label.clone().into());
        }
        Value::Table(table)
    };
    let mut table = Table::new();
    table.insert("name".to_owned(), factor.name.clone().into());
    table.insert("levels".to_owned(), Value::Array(factor.levels.iter().map(level).collect()));
    Value::Table(table)
}

fn options(options: &OptionMap, filter: &ValueFilter) -> Table {
    let shown = |key: &String, values: &[String]| match &filter(key, values)[..] {
        [] => Value::Boolean(true),
        [one] => Value::String(one.clone()),
        several => Value::Array(several.iter().cloned().map(Value::String).collect()),
    };
    options.0.iter().map(|(key, values)| (key.clone(), shown(key, values))).collect()
}
