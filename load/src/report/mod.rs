//! The text report, ours or byte for byte like wrk's, as a function of the record of a run.
//!
//! This module measures nothing, judges nothing and looks nothing up: all printed data is in [`crate::record`].
//!
//! `form` prints a record in any form. `opening` renders the first lines, `text` the others. `table` formats rows,
//! `account` says how requests ended, `percentiles` and `spectrum` are for latencies, and `parts` has a row for each
//! stage, name or class. `markdown` is for tickets, `once` for a single request, `for_script` for a script's `done`.

mod account;
pub mod form;
pub mod markdown;
mod table;

mod for_script;
mod once;
mod opening;
pub mod parts;
mod percentiles;
mod spectrum;
mod text;

#[cfg(test)]
mod tests;

pub use for_script::summary_for_script;
pub use form::closing;
pub use once::once;
pub use opening::opening;
