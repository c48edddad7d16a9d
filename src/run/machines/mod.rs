//! One run on several machines: a coordinator, and a worker on each of them.
//!
//! Coordinator: a `hub` carries the connections, a `coordinator` decides what comes next, and `remote` is a
//! supervisor's view of it; a coordinator that takes part has a worker of its `own`. Worker: [`member`]. Both speak in
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
