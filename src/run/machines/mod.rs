//! One run on several machines: a coordinator, and a worker on each of them.
//!
//! The coordinator's side: a `hub` carries the connections, a `coordinator` knows what to do next, and `remote` is what a
//! supervisor sees of it; one that takes part has a worker of its `own`. A worker's side is its [`member`]. Both speak in
//! [`message`]s on a `channel`, and know the same secret ([`onrush_plan::token`]).

mod channel;
mod coordinator;
mod figures;
mod hub;
pub mod member;
pub mod message;
mod own;
mod remote;
#[cfg(test)]
mod tests;

pub(super) use channel::frame;
pub(super) use coordinator::{Ask, Job, Rules, Told};
pub(super) use hub::Hub;
pub use hub::NoAddress;
pub(super) use own::Own;
pub(super) use remote::{Machine, Remote};
