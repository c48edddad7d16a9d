//! A changed setting, and the restoration of its old value.

use super::name::SettingName;
use super::tree::{Tree, normalised};

/// A setting that was changed, possibly several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingChange {
    /// The setting.
    pub name: SettingName,
    /// The value before the first change, as written by the kernel.
    pub old: String,
    /// Normalised values that onrush may have set: two while the second is being set.
    ours: Vec<String>,
}

/// Outcome of a restoration, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restoration {
    /// The old value is restored.
    Done(String),
    /// Left alone, because another process has changed the setting since.
    Left(String),
    /// The restoration failed; a later attempt may succeed.
    Failed(String),
}

impl SettingChange {
    /// Records the first change of a setting, before the change.
    pub fn new(name: SettingName, old: String, intended: &str) -> Self {
        Self { name, old, ours: vec![normalised(intended)] }
    }

    /// Records the next value of the setting, before the change.
    pub fn record_intent(&mut self, value: &str) {
        self.ours.push(normalised(value));
    }

    /// Records the current value of the setting.
    pub fn record_value(&mut self, value: &str) {
        self.ours = vec![normalised(value)];
    }

    /// True if onrush set this value.
    pub fn is_ours(&self, value: &str) -> bool {
        self.ours.contains(&normalised(value))
    }

    /// The last value that onrush set.
    pub fn ours(&self) -> &str {
        self.ours.last().map_or("", String::as_str)
    }

    /// Restores the old value, unless another process has changed the setting since.
    pub fn restore(&self, tree: &Tree) -> Restoration {
        let name = &self.name;
        let old = normalised(&self.old);
        let found = match tree.read(name) {
            Ok(found) => normalised(&found),
            Err(refusal) => return Restoration::Failed(format!("{name} was {old:?} before: {refusal}")),
        };
        if found == old {
            return Restoration::Done(format!("{name} is {old:?}, as before"));
        }
        if !self.is_ours(&found) {
            let ours = self.ours();
            return Restoration::Left(format!(
                "{name} is {found:?} and was left alone: onrush had set {ours:?}, and the original value was {old:?}"
            ));
        }
        match tree.check(name).and_then(|()| tree.write(name, &self.old)) {
            Err(refusal) => Restoration::Failed(format!("{name} is still {found:?} and was {old:?} before: {refusal}")),
            Ok(()) => match tree.read(name).map(|value| normalised(&value)) {
                Ok(value) if value == old => Restoration::Done(format!("{name} is {old:?} again, after {found:?}")),
                Ok(value) => Restoration::Failed(format!("{name} became {value:?} when restored to {old:?}")),
                Err(refusal) => Restoration::Failed(format!("{name} was restored to {old:?}, but {refusal}")),
            },
        }
    }
}
