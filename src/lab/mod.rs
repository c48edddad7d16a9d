//! What an experiment is beside its runs: their [`order`], the [`Folder`] with what is known of the [`Host`], the [`words`]
//! that are shown, and what is started around runs.

mod folder;
mod host;
mod order;
pub mod words;

pub use folder::{Folder, Made};
pub use host::Host;
pub use order::{Turn, order};
