//! Restores the settings that a killed process left changed.

use std::path::Path;

use onrush_text::error_reason;

use super::change::Restoration;
use super::here::KernelNamespace;
use super::journal::Journal;
use super::refusal::SysctlRefusal;
use super::tree::Tree;

/// Changes left by a killed process, and what became of them.
#[derive(Debug, PartialEq, Eq)]
pub enum Leftover {
    /// No process has left changes in this network namespace.
    Nothing,
    /// A reboot has undone the changes.
    Restarted,
    /// Outcome of each restoration; the last change is restored first.
    Changes(Vec<Restoration>),
}

/// Restores the settings in the journal that `directory` holds for this network namespace. Removes the journal, unless
/// a restoration failed and a later attempt may succeed.
///
/// # Errors
///
/// Fails if the process that changed the settings is still running, or the journal cannot be read or removed.
pub fn restore(directory: &Path) -> Result<Leftover, SysctlRefusal> {
    restore_in(&Tree::host(), directory)
}

pub(super) fn restore_in(tree: &Tree, directory: &Path) -> Result<Leftover, SysctlRefusal> {
    let here = KernelNamespace::read()
        .map_err(|error| SysctlRefusal::System { name: "/proc".to_owned(), reason: error_reason(&error) })?;
    let Some(mut journal) = Journal::existing(directory, &here.namespace)? else { return Ok(Leftover::Nothing) };
    let record = journal.read()?.filter(|record| !record.changes.is_empty());
    let (left, is_done) = match record {
        None => (Leftover::Nothing, true),
        Some(record) if record.here.boot != here.boot => (Leftover::Restarted, true),
        Some(record) if record.here.namespace != here.namespace => return Err(journal.damaged()),
        Some(record) => {
            let restorations: Vec<Restoration> =
                record.changes.iter().rev().map(|change| change.restore(tree)).collect();
            let is_done = !restorations.iter().any(|restoration| matches!(restoration, Restoration::Failed(_)));
            (Leftover::Changes(restorations), is_done)
        }
    };
    if is_done {
        journal.remove()?;
    }
    Ok(left)
}
