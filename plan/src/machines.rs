//! The machines that carry out one run together, as the one that coordinates them knows them.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The machines of a run. Not sent to them.
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
    /// Policy for a lost machine.
    pub on_loss: OnLoss,
    /// This process's place among them, if all were started with one command line; `None`: it only coordinates.
    pub place: Option<MachineRank>,
}

/// One of several processes with one command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRank {
    /// Its number, from zero. The first one takes part and coordinates.
    pub rank: u32,
    /// Where it reaches the coordinator, as HOST:PORT.
    pub coordinator: String,
}

impl Machines {
    /// The arguments of `onrush worker` with which the process at a place takes part.
    pub fn arguments_of(&self, place: &MachineRank) -> Vec<OsString> {
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
