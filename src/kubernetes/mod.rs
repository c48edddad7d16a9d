//! `onrush kubernetes`: a run on the machines of a Kubernetes cluster, without an operator or additional rights.
//!
//! `command` parses the options. `packed` is the run with everything it needs, and `manifest` describes its objects for
//! `kubectl apply`. In the coordinator's pod, `pod` executes the run and writes its results as lines of the `log`.
//! `collect` fetches the results from the log, or from the waiting pod, through `kubectl`. Nothing else here
//! communicates with the cluster.

mod collect;
mod command;
mod kubectl;
mod log;
mod manifest;
mod packed;
mod pod;
#[cfg(test)]
mod tests;

pub use command::COMMAND;
