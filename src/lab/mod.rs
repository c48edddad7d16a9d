//! The parts of an experiment other than its runs: their [`order`], the [`Folder`], facts about the [`Host`], the
//! [`words`] that are shown, and the commands that are run around the runs: a [`Hook`], a [`Target`].

mod folder;
mod group;
mod hook;
mod host;
mod order;
mod output;
mod target;
pub mod words;

pub use folder::{Attached, Folder, Made, Occupied, TARGETS};
pub use group::{Groups, ending};
pub use hook::{Hook, HookEnded};
pub use host::Host;
pub use order::{Turn, order};
pub use target::{Start, Target, Unready};
