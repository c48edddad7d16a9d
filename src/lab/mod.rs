//! What an experiment is beside its runs: their [`order`], the [`Folder`] with what is known of the [`Host`], the [`words`]
//! that are shown, and what is started around runs: a [`Hook`], a [`Target`].

mod folder;
mod group;
mod hook;
mod host;
mod order;
mod target;
pub mod words;

pub use folder::{Folder, Made};
pub use group::Groups;
pub use hook::{Hook, HookEnded};
pub use host::Host;
pub use order::{Turn, order};
pub use target::{Start, Target, Unready};
