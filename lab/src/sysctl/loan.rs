//! Borrows settings: changes them for a while and restores them.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onrush_text::error_reason;

use super::change::{Restoration, SettingChange};
use super::here::KernelNamespace;
use super::journal::Journal;
use super::name::SettingName;
use super::refusal::SysctlRefusal;
use super::tree::{Tree, normalised};

/// The exclusive right to change the settings of this network namespace. Dropping the loan restores them; to learn
/// whether that worked, call [`Loan::restore`] first.
#[derive(Debug)]
pub struct Loan(Restorer);

/// Restores the settings of a [`Loan`] from any thread. Clones share one loan.
#[derive(Clone, Debug)]
pub struct Restorer(Arc<Mutex<LentSetting>>);

#[derive(Debug)]
struct LentSetting {
    tree: Tree,
    here: KernelNamespace,
    /// `None` once the settings have been restored for good.
    journal: Option<Journal>,
    /// The changes, in the order of the first change of each setting.
    changes: Vec<SettingChange>,
    /// Failed restorations not yet reported.
    unsaid: Vec<String>,
}

impl Loan {
    /// Borrows the settings, with a journal in this directory, which is created if missing.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be written, another process has borrowed the settings, or a killed one left them
    /// changed.
    pub fn open(directory: &Path) -> Result<Self, SysctlRefusal> {
        Self::new(Tree::host(), directory)
    }

    /// Like [`Loan::open`], for the settings in this tree.
    pub(super) fn new(tree: Tree, directory: &Path) -> Result<Self, SysctlRefusal> {
        let here = KernelNamespace::read()
            .map_err(|error| SysctlRefusal::System { name: "/proc".to_owned(), reason: error_reason(&error) })?;
        let mut journal = Journal::open(directory, &here.namespace)?;
        // The machine has lost the changes of earlier boots.
        let left = journal.read()?.filter(|left| !left.changes.is_empty() && left.here.boot == here.boot);
        if let Some(left) = left {
            return Err(SysctlRefusal::Leftover(left.pid));
        }
        journal.restart(&here)?;
        let lent = LentSetting { tree, here, journal: Some(journal), changes: Vec::new(), unsaid: Vec::new() };
        Ok(Self(Restorer(Arc::new(Mutex::new(lent)))))
    }

    /// Sets a value, and returns the resulting one, which the kernel may have adjusted.
    ///
    /// # Errors
    ///
    /// Fails if the setting cannot be changed, or another process has changed it. In that case all settings are
    /// restored; the next [`Loan::restore`] names those that could not be.
    pub fn set(&self, name: &SettingName, value: &str) -> Result<String, SysctlRefusal> {
        let mut lent = self.0.lock();
        lent.set(name, value).inspect_err(|_| lent.restore())
    }

    /// Restores all settings, the last changed one first. Returns a sentence for each that was not restored. The
    /// settings may be changed again afterwards.
    pub fn restore(&self) -> Vec<String> {
        let mut lent = self.0.lock();
        lent.restore();
        std::mem::take(&mut lent.unsaid)
    }

    /// A handle that can restore the settings from another thread.
    pub fn restorer(&self) -> Restorer {
        self.0.clone()
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.restore();
    }
}

impl Restorer {
    /// Restores all settings for good: they cannot be changed again. Returns a sentence for each that was not restored.
    pub fn restore(&self) -> Vec<String> {
        let mut lent = self.lock();
        lent.restore();
        lent.restore_for_good();
        std::mem::take(&mut lent.unsaid)
    }

    /// Locks the settings, even if another thread panicked while holding the lock: they must be restored.
    fn lock(&self) -> MutexGuard<'_, LentSetting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LentSetting {
    fn set(&mut self, name: &SettingName, value: &str) -> Result<String, SysctlRefusal> {
        let Some(journal) = &mut self.journal else { return Err(SysctlRefusal::Over) };
        if value.contains(char::is_control) {
            return Err(SysctlRefusal::Value { name: name.to_string(), value: value.to_owned() });
        }
        let old = self.tree.read(name)?;
        let found = normalised(&old);
        let known = self.changes.iter().position(|change| change.name == *name);
        if let Some(change) = known.map(|at| &self.changes[at]).filter(|change| !change.is_ours(&found)) {
            let ours = change.ours().to_owned();
            return Err(SysctlRefusal::Changed { name: name.to_string(), found, ours });
        }
        if found == normalised(value) {
            return Ok(found);
        }
        self.tree.check(name)?;
        let at = match known {
            Some(at) => {
                journal.record_intent(name, &self.changes[at].old, value)?;
                self.changes[at].record_intent(value);
                at
            }
            None => {
                journal.record_intent(name, &old, value)?;
                self.changes.push(SettingChange::new(name.clone(), old, value));
                self.changes.len() - 1
            }
        };
        self.tree.write(name, value)?;
        let became = normalised(&self.tree.read(name)?);
        self.changes[at].record_value(&became);
        journal.record_value(name, &became)?;
        Ok(became)
    }

    /// Restores all settings. A failed restoration stays in the journal, unless another process has changed the
    /// setting.
    fn restore(&mut self) {
        let Self { tree, here, journal, changes, unsaid } = self;
        let mut failed = Vec::new();
        for change in changes.drain(..).rev() {
            match change.restore(tree) {
                Restoration::Done(_) => {}
                Restoration::Left(sentence) => unsaid.push(sentence),
                Restoration::Failed(sentence) => {
                    unsaid.push(sentence);
                    failed.push(change);
                }
            }
        }
        failed.reverse();
        *changes = failed;
        if let Some(journal) = journal.as_mut().filter(|_| changes.is_empty()) {
            unsaid.extend(journal.restart(here).err().map(|refusal| refusal.to_string()));
        }
    }

    fn restore_for_good(&mut self) {
        if let Some(journal) = self.journal.take().filter(|_| self.changes.is_empty()) {
            self.unsaid.extend(journal.remove().err().map(|refusal| refusal.to_string()));
        }
        // From now on, `onrush restore` handles a journal of settings that could not be restored.
        self.changes.clear();
    }
}
