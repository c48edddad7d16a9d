//! Writes an experiment as a file that reproduces it: everything that was decided, with no default left out.

use toml::{Table, Value};

use super::draft::{Draft, DraftFactor};
use super::options::{ARGS, KEEP_SECRETS, Options, redacted};
use crate::plan::{Order, secrets};

/// The experiment as TOML, and the same without secrets.
pub(super) fn texts(draft: &Draft) -> (String, String) {
    let keeps_secrets = draft.run.0.contains_key(KEEP_SECRETS);
    let text = text(draft, &|_, values| values.to_vec());
    let shown = if keeps_secrets { text.clone() } else { self::text(draft, &without_secrets) };
    (text, shown)
}

/// Turns the values of an option into those that are written.
type Shown = dyn Fn(&str, &[String]) -> Vec<String>;

/// The values of an option without secrets. A script's arguments are redacted together, because one may say that
/// the next is a secret.
fn without_secrets(key: &str, values: &[String]) -> Vec<String> {
    match key {
        ARGS => secrets::words(values.iter().map(String::as_str)),
        _ => values.iter().map(|value| redacted(key, value)).collect(),
    }
}

fn text(draft: &Draft, value: &Shown) -> String {
    let mut root = Table::new();
    let order = match draft.order {
        Order::Interleaved => "interleaved",
        Order::Random => "random",
        Order::Sequential => "sequential",
    };
    root.insert("name".to_owned(), draft.name.clone().into());
    root.insert("rounds".to_owned(), i64::from(draft.rounds).into());
    root.insert("order".to_owned(), order.into());
    root.insert("seed".to_owned(), (draft.seed as i64).into());
    root.insert("retry".to_owned(), i64::from(draft.retries).into());
    let baseline: Table = draft.baseline.iter().map(|(factor, level)| (factor.clone(), level.clone().into())).collect();
    root.insert("baseline".to_owned(), Value::Table(baseline));
    let attached = draft.attach.iter().map(|path| Value::from(path.display().to_string()));
    root.insert("attach".to_owned(), Value::Array(attached.collect()));
    root.insert("run".to_owned(), Value::Table(options(&draft.run, value)));
    root.insert("factor".to_owned(), Value::Array(draft.factors.iter().map(|each| factor(each, value)).collect()));
    if let Some(server) = &draft.server {
        let mut table = Table::new();
        let command = server
            .command
            .as_ref()
            .map(|command| ("command", value(super::options::COMMAND, std::slice::from_ref(command)).concat()));
        let ready = server
            .ready
            .as_ref()
            .map(|ready| ("ready", value(super::options::URL, std::slice::from_ref(ready)).concat()));
        let timeout = Some(("timeout", format!("{}s", server.timeout.as_secs_f64())));
        insert(&mut table, [command, ready, timeout]);
        root.insert("target".to_owned(), Value::Table(table));
    }
    let hooks = &draft.hooks;
    let command = |key, command: &Option<String>| {
        Some((key, value(super::options::COMMAND, command.as_slice()).concat())).filter(|_| command.is_some())
    };
    let mut table = Table::new();
    insert(
        &mut table,
        [
            command("before_point", &hooks.before_point),
            command("after_point", &hooks.after_point),
            command("before_run", &hooks.before_run),
            command("after_run", &hooks.after_run),
            Some(("timeout", format!("{}s", hooks.timeout.as_secs_f64()))),
            Some(("on_error", if hooks.are_fatal { "stop" } else { "continue" }.to_owned())),
        ],
    );
    root.insert("hooks".to_owned(), Value::Table(table));
    root.to_string()
}

fn insert<const N: usize>(table: &mut Table, keys: [Option<(&str, String)>; N]) {
    table.extend(keys.into_iter().flatten().map(|(key, value)| (key.to_owned(), Value::String(value))));
}

fn factor(factor: &DraftFactor, value: &Shown) -> Value {
    let level = |level: &super::draft::DraftLevel| {
        let mut table = options(&Options(level.sets.iter().cloned().collect()), value);
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

fn options(options: &Options, value: &Shown) -> Table {
    let shown = |key: &String, values: &[String]| match &value(key, values)[..] {
        [] => Value::Boolean(true),
        [one] => Value::String(one.clone()),
        several => Value::Array(several.iter().cloned().map(Value::String).collect()),
    };
    options.0.iter().map(|(key, values)| (key.clone(), shown(key, values))).collect()
}
