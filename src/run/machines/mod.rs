//! One run on several machines: a coordinator, and a worker on each of them.
//!
//! Coordinator: `coordinator_server` carries the connections, a `coordinator` decides what comes next, and
//! `remote` is a supervisor's view of it; a coordinator that takes part has a worker of its `own`. Worker:
//! [`worker_client`]. Both speak in [`message`]s on a `channel`, and know the same secret ([`onrush_plan::token`]).

mod channel;
mod coordinator;
mod coordinator_server;
mod figures;
pub mod message;
mod own;
mod remote;
#[cfg(test)]
mod tests;
pub mod worker_client;

pub(super) use channel::frame;
pub(super) use coordinator::{CoordinatorEvent, CoordinatorRequest, CoordinatorRules, WorkerJobs};
pub(super) use coordinator_server::CoordinatorServer;
pub use coordinator_server::NoAddress;
pub(super) use own::OwnWorker;
pub(super) use remote::{Remote, RemoteMachine};
