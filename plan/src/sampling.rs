//! Sockets sampled during a run.

use std::path::PathBuf;

use super::filter::SocketFilter;

/// Sockets sampled during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSampling {
    /// Selects sockets from this network namespace; `None`: the connections of the run.
    pub filter: Option<SocketFilter>,
    /// The file to which the samples are written.
    pub output: PathBuf,
}
