//! A changed setting, and the restoration of its old value.

use super::name::SettingName;
use super::tree::{Tree, normalised};

/// A setting that was changed, possibly several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingChange {
    /// The setting's name.
    pub name: SettingName,
    /// The value before the first change, as the kernel reported it.
    pub old: String,
    /// Normalised values that onrush may have set: two while the second is being set.
    ours: Vec<String>,
}

/// Outcome of a restoration, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restoration {
    /// The setting has its old value again.
    Done(String),
    /// The setting was left alone, because another process has changed it since.
    Left(String),
    /// The restoration failed; a later attempt may succeed.
    Failed(String),
}

impl SettingChange {
    /// Records that a setting is about to be changed for the first time, from `old` to `intended`.
    pub fn new(name: SettingName, old: String, intended: &str) -> Self {
        Self { name, old, ours: vec![normalised(intended)] }
    }

    /// Records that the setting is about to be changed again, to this value.
    pub fn record_intent(&mut self, value: &str) {
        self.ours.push(normalised(value));
    }

    /// Records the value that the setting has after a change; the kernel may have adjusted it.
    pub fn record_value(&mut self, value: &str) {
        self.ours = vec![normalised(value)];
    }

    /// True if onrush has, or may have, set this value.
    pub fn is_ours(&self, value: &str) -> bool {
        self.ours.contains(&normalised(value))
    }

    /// The last value that onrush set, or was about to set.
    pub fn ours(&self) -> &str {
        self.ours.last().map_or("", String::as_str)
    }

    /// Restores the old value, unless another process has changed the setting since. Checks the result.
    pub fn restore(&self, tree: &Tree) -> Restoration {
        let name = &self.name;
        let old = normalised(&self.old);
        let found = match tree.read(name) {
            Ok(found) => normalised(&found),
            Err(refusal) => return Restoration::Failed(format!("{name} cannot be restored to {old:?}: {refusal}")),
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
            Err(refusal) => Restoration::Failed(format!(
                "{name} is still {found:?} and cannot be restored to {old:?}: \
                                                         {refusal}"
            )),
            Ok(()) => match tree.read(name).map(|value| normalised(&value)) {
                Ok(value) if value == old => {
                    Restoration::Done(format!("{name} was restored from {found:?} to {old:?}"))
                }
                Ok(value) => Restoration::Failed(format!("{name} became {value:?} when restored to {old:?}")),
                Err(refusal) => Restoration::Failed(format!("{name} was restored to {old:?}, but {refusal}")),
            },
        }
    }
}
