//! One run on several machines: a coordinator, and a worker on each of them.
//!
//! Coordinator: `coordinator_server` runs the connections, `coordinator` decides the next steps, and `remote` is the
//! supervisor's view of both. A coordinator that takes part starts its `own` worker. Worker: [`worker_client`]. Both
//! exchange [`message`]s over a `channel` and share a secret ([`crate::token`]).

mod channel;
mod coordinator;
mod coordinator_server;
pub(crate) mod figures;
pub mod message;
mod own;
mod remote;
#[cfg(test)]
mod tests;
pub mod worker_client;

pub(super) use channel::encode_frame;
pub(super) use coordinator::{CoordinatorEvent, CoordinatorRequest, CoordinatorRules, WorkerJobs};
pub(super) use coordinator_server::CoordinatorServer;
pub use coordinator_server::NoAddress;
pub(super) use own::OwnWorker;
pub(super) use remote::{Remote, RemoteMachine};
