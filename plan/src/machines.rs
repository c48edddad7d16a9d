//! The machines of a distributed run, as known to the coordinator.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The machines of a run, known to the coordinator alone: not part of the plan sent to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    /// Number of machines, at least one.
    pub count: u32,
    /// Address on which the coordinator listens.
    pub address: SocketAddr,
    /// The file with the shared secret; created if missing.
    pub token_file: PathBuf,
    /// Time limit for the machines to join and to set up their parts.
    pub join: Duration,
    /// Length of a silence after which a machine counts as lost.
    pub loss: Duration,
    /// Reaction to the loss of a machine.
    pub on_loss: OnLoss,
    /// This process's place, if all machines were started with the same command line; `None`: this process only
    /// coordinates.
    pub place: Option<MachineRank>,
}

/// The place of one of several processes started with the same command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRank {
    /// The rank, from zero. The process with rank zero takes part and coordinates.
    pub rank: u32,
    /// Coordinator address, as HOST:PORT.
    pub coordinator: String,
}

impl Machines {
    /// Arguments of `onrush worker` for the process at this place.
    pub fn worker_arguments(&self, place: &MachineRank) -> Vec<OsString> {
        let join = format!("{}ms", self.join.as_millis());
        vec![
            "--coordinator".into(),
            place.coordinator.clone().into(),
            "--token-file".into(),
            self.token_file.clone().into(),
            "--index".into(),
            place.rank.to_string().into(),
            "--join-timeout".into(),
            join.into(),
            "--quiet".into(),
        ]
    }
}

/// Reaction of a run to the loss of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Ends the run.
    #[default]
    Stop,
    /// Goes on with the other machines.
    Continue,
}
