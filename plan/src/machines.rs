//! The machines that carry out one run together, as the one that coordinates them knows them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The machines of a run. It is not part of what they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    /// How many take part, at least one.
    pub count: u32,
    /// Where the coordinator listens for them.
    pub address: SocketAddr,
    /// The file with the secret that they share; made if it does not exist.
    pub token_file: PathBuf,
    /// How long they may take to come and to set their parts up.
    pub join: Duration,
    /// How long one of them may be silent before it is lost.
    pub loss: Duration,
    /// What becomes of a run that has lost one.
    pub on_loss: OnLoss,
}

/// What becomes of a run that has lost a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It ends.
    #[default]
    Stop,
    /// The others go on.
    Continue,
}
