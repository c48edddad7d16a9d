//! `onrush kubernetes`: a run on the machines of a Kubernetes cluster, without an operator and without rights of its
//! own.
//!
//! `command` reads the options; `packed` is the run with all that it needs, `manifest` the objects in which it is
//! applied. In the coordinator's pod, `pod` carries it out, and writes its results as lines of the `log`. From there,
//! or from the pod while it waits, `collect` fetches them, through `kubectl`. Nothing here speaks to the cluster
//! otherwise.

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
