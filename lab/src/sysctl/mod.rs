//! Borrows kernel settings (sysctls): changes them for a while, and restores them no matter how the process ends.
//!
//! [`Loan`] changes settings and restores them. Each change is written to a journal first, so that [`restore`] can undo
//! it after the process was killed. A setting is restored only if it still has the value set by onrush. Nothing here
//! prints, listens for signals or ends the process.
//!
//! A `name` leads to a file of the `tree`. A `change` holds the old value and ours. The `journal` holds all changes,
//! with the boot and the network namespace (`here`). `leftover` restores after a kill, `effect` has caveats about
//! settings, and `refusal` the messages.

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

/// Checks that a setting exists and that its value can be read, so that it can be restored later. Does not check
/// permissions: a plan may be examined without privileges.
///
/// # Errors
///
/// Says why the setting cannot be borrowed.
pub fn check(name: &SettingName) -> Result<(), SysctlRefusal> {
    tree::Tree::host().read(name).map(drop)
}

/// Directory that holds the journals. A reboot empties it, and undoes the changes.
pub const DIRECTORY: &str = "/run/onrush";

#[cfg(test)]
mod tests;
