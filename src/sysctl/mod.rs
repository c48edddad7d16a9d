//! Borrows kernel settings (sysctls): changes them for a while, and restores them no matter how the process ends.
//!
//! [`Loan`] changes settings and restores them. Each change is written to a journal before it is made, so that
//! [`restore`] can undo it after the process was killed. A setting is restored only if it still has the value that we
//! gave it. Nothing here prints, listens for signals or ends the process.
//!
//! A `name` leads to a file of the `tree`; a `change` has the old value and ours, and the `journal` all changes, with
//! the boot and the network namespace (`here`). `leftover` restores after a kill, `effect` has caveats about settings,
//! and `refusal` the messages.

mod change;
mod effect;
mod here;
mod journal;
mod leftover;
mod loan;
mod name;
mod refusal;
mod tree;

pub use change::Restoration;
pub use effect::effect;
pub use leftover::{Leftover, restore};
pub use loan::{Loan, Restorer};
pub use name::SettingName;
pub use refusal::SysctlRefusal;

/// Checks that a setting exists and that its value can be read, so that it could be restored. Ignores whether this
/// process may change it: a plan may be looked at without privileges.
///
/// # Errors
///
/// Why it cannot be borrowed.
pub fn check(name: &SettingName) -> Result<(), SysctlRefusal> {
    tree::Tree::host().read(name).map(drop)
}

/// Where journals are kept. A restart of the machine empties it, and undoes the changes.
pub const DIRECTORY: &str = "/run/onrush";

#[cfg(test)]
mod tests;
