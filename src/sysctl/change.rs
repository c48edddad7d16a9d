//! A setting that was changed, and how its old value is restored.

use super::name::SettingName;
use super::tree::{Tree, normalised};

/// A setting that was changed, perhaps several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingChange {
    /// Which setting.
    pub name: SettingName,
    /// Its value before the first change, as the kernel wrote it.
    pub old: String,
    /// The normalised values that it may have because of us: two of them while the second is being set.
    ours: Vec<String>,
}

/// Outcome of undoing a change, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restoration {
    /// The setting has its old value.
    Done(String),
    /// Another process has changed it since; it was left alone.
    Left(String),
    /// It could not be restored now; a later attempt may succeed.
    Failed(String),
}

impl SettingChange {
    /// The first change of a setting, about to be made.
    pub fn new(name: SettingName, old: String, intended: &str) -> Self {
        Self { name, old, ours: vec![normalised(intended)] }
    }

    /// Notes that the setting is about to get another value.
    pub fn intend(&mut self, value: &str) {
        self.ours.push(normalised(value));
    }

    /// Notes that the setting now has this value.
    pub fn became(&mut self, value: &str) {
        self.ours = vec![normalised(value)];
    }

    /// True if we gave the setting this value.
    pub fn is_ours(&self, value: &str) -> bool {
        self.ours.contains(&normalised(value))
    }

    /// The last value that we gave it.
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
                "{name} is {found:?} and was left alone: onrush had set it to {ours:?}, and before it was {old:?}"
            ));
        }
        match tree.check(name).and_then(|()| tree.write(name, &self.old)) {
            Err(refusal) => Restoration::Failed(format!("{name} is still {found:?} and was {old:?} before: {refusal}")),
            Ok(()) => match tree.read(name).map(|value| normalised(&value)) {
                Ok(value) if value == old => Restoration::Done(format!("{name} is {old:?} again, after {found:?}")),
                Ok(value) => Restoration::Failed(format!("{name} became {value:?} when it was restored to {old:?}")),
                Err(refusal) => Restoration::Failed(format!("{name} was restored to {old:?}, but {refusal}")),
            },
        }
    }
}
