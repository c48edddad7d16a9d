//! Sockets that are sampled while a run lasts.

use std::path::PathBuf;

use super::filter::SocketFilter;

/// Sockets that are sampled while a run lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSampling {
    /// The sockets of this network namespace to sample; `None`: the connections of the run.
    pub filter: Option<SocketFilter>,
    /// The file that every sample is written to.
    pub output: PathBuf,
}
