//! The machines of a distributed run, as known to the coordinator.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The machines of a run. Not sent to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    /// Number of machines, at least one.
    pub count: u32,
    /// Coordinator address, for listening.
    pub address: SocketAddr,
    /// The file with the shared secret; created if missing.
    pub token_file: PathBuf,
    /// Time for the machines to join and to set their parts up.
    pub join: Duration,
    /// Silence after which a machine is lost.
    pub loss: Duration,
    /// Policy for a lost machine.
    pub on_loss: OnLoss,
    /// This process's place, if all machines were started with one command line; `None`: it only coordinates.
    pub place: Option<MachineRank>,
}

/// The place of one of several processes with one command line.
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

/// Policy for a run that has lost a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Ends the run.
    #[default]
    Stop,
    /// Goes on with the other machines.
    Continue,
}
