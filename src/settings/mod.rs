//! Kernel settings (sysctls) that are borrowed: changed for a while, journalled before that, and given back on every way
//! out.
//!
//! [`Loan`] changes settings and restores them. Each change is written to a journal before it is made, so that
//! [`restore`] can undo it when the process was killed. A setting is restored only if it still has the value that we gave
//! it. Nothing here prints, listens to signals or ends the process.

mod change;
mod effect;
mod here;
mod journal;
mod leftover;
mod loan;
mod name;
mod refusal;
mod tree;

pub use change::Fate;
pub use effect::effect;
pub use leftover::{Leftover, restore};
pub use loan::{Loan, Restorer};
pub use name::Name;
pub use refusal::Refusal;

/// Where journals are kept. It is empty after a restart, as are the changes.
pub const DIRECTORY: &str = "/run/onrush";

#[cfg(test)]
mod tests;
