//! A setting that was changed, and how it gets its old value back.

use super::name::Name;
use super::tree::{Tree, normalised};

/// A setting that was changed, perhaps several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Which setting.
    pub name: Name,
    /// Its value before the first change, as the kernel wrote it.
    pub old: String,
    /// The values that it may have through us, as they are compared. They are two while the kernel is asked for the second.
    ours: Vec<String>,
}

/// What became of a change that was to be undone; each in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The setting has its old value.
    Restored(String),
    /// Somebody else has changed it since; it was left alone.
    Left(String),
    /// It could not be restored, and may be later.
    Failed(String),
}

impl Change {
    /// A first change that is about to be made.
    pub fn new(name: Name, old: String, intended: &str) -> Self {
        Self { name, old, ours: vec![normalised(intended)] }
    }

    /// The setting is about to get another value.
    pub fn intend(&mut self, value: &str) {
        self.ours.push(normalised(value));
    }

    /// The setting has got this value.
    pub fn became(&mut self, value: &str) {
        self.ours = vec![normalised(value)];
    }

    /// Whether it is we who gave the setting this value.
    pub fn is_ours(&self, value: &str) -> bool {
        self.ours.contains(&normalised(value))
    }

    /// The last value that we gave it.
    pub fn ours(&self) -> &str {
        self.ours.last().map_or("", String::as_str)
    }

    /// Gives the setting its old value back, if it is still we who gave it the one it has.
    pub fn restore(&self, tree: &Tree) -> Fate {
        let (name, old) = (&self.name, normalised(&self.old));
        let found = match tree.read(name) {
            Ok(found) => normalised(&found),
            Err(refusal) => return Fate::Failed(format!("{name} was {old:?} before: {refusal}")),
        };
        if found == old {
            return Fate::Restored(format!("{name} is {old:?}, as before"));
        }
        if !self.is_ours(&found) {
            let ours = self.ours();
            return Fate::Left(format!(
                "{name} is {found:?} and was left so: onrush had set it to {ours:?}, and it was {old:?} before"
            ));
        }
        match tree.check(name).and_then(|()| tree.write(name, &self.old)) {
            Err(refusal) => Fate::Failed(format!("{name} is still {found:?} and was {old:?} before: {refusal}")),
            Ok(()) => match tree.read(name).map(|value| normalised(&value)) {
                Ok(value) if value == old => Fate::Restored(format!("{name} is {old:?} again, after {found:?}")),
                Ok(value) => Fate::Failed(format!("{name} became {value:?} when it was restored to {old:?}")),
                Err(refusal) => Fate::Failed(format!("{name} was restored to {old:?}, but {refusal}")),
            },
        }
    }
}
