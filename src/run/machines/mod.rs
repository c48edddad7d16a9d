//! One run on several machines: a coordinator, and a worker on each of them.
//!
//! The coordinator's side: a [`hub`] carries the connections, a [`coordinator`] knows what to do next, and [`remote`] is what
//! a supervisor sees of it. A worker's side is its [`member`]. Both speak in [`message`]s on a [`channel`], and know the
//! same [`token`].

mod channel;
mod coordinator;
mod hub;
pub mod member;
pub mod message;
mod remote;
mod token;

pub use hub::NoAddress;
pub(super) use remote::Remote;
pub use remote::{Gathered, MachineShare};
pub use token::{NoToken, Token};

#[cfg(test)]
mod tests;
