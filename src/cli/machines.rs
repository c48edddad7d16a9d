//! The options about several machines, as typed, and the [`Machines`] that follow from them.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::Dialect;
use onrush_plan::machines::{Machines, OnLoss};

use super::flags::{Flag, Id};
use super::refusal::{Refusal, wrong};
use super::values::{count, time};

/// The most machines.
const MACHINES_MAX: u64 = 4096;
/// How long machines may take to join, and to be silent, if nothing else is said.
const JOIN: Duration = Duration::from_secs(300);
const LOSS: Duration = Duration::from_secs(5);
/// A shorter silence is that of a busy machine.
const LOSS_MIN: Duration = Duration::from_secs(1);

/// The options about several machines.
#[derive(Debug, Default)]
pub(crate) struct TypedMachines {
    count: Option<u64>,
    address: Option<SocketAddr>,
    token_file: Option<PathBuf>,
    join: Option<Duration>,
    loss: Option<Duration>,
    on_loss: Option<OnLoss>,
}

impl TypedMachines {
    pub(super) fn take(&mut self, flag: &'static Flag, value: OsString) -> Result<(), Refusal> {
        let native = Dialect::Native;
        match flag.id {
            Id::Machines => self.count = Some(count(flag, &value, native, MACHINES_MAX)?),
            Id::Coordinate => self.address = Some(address(flag, &value)?),
            Id::TokenFile => self.token_file = Some(PathBuf::from(value)),
            Id::JoinTimeout => self.join = Some(time(flag, &value, native)?),
            Id::LossTimeout => {
                let loss = time(flag, &value, native)?;
                if loss < LOSS_MIN {
                    return Err(wrong(flag, &value, "at least 1s: a busy machine may be silent for a moment"));
                }
                self.loss = Some(loss);
            }
            _ => {
                self.on_loss = Some(match value.as_encoded_bytes() {
                    b"stop" => OnLoss::Stop,
                    b"continue" => OnLoss::Continue,
                    _ => return Err(wrong(flag, &value, "unknown; write stop or continue")),
                });
            }
        }
        Ok(())
    }

    fn is_typed(&self) -> bool {
        let Self { count, address, token_file, join, loss, on_loss } = self;
        count.is_some()
            || address.is_some()
            || token_file.is_some()
            || join.is_some()
            || loss.is_some()
            || on_loss.is_some()
    }
}

/// The machines of a run of so many connections, if there are several. `alone`: what else was typed that only one machine
/// can do, with the reason.
pub(super) fn decide(
    machines: TypedMachines,
    connections: u64,
    alone: &[(bool, &str, &str)],
) -> Result<Option<Machines>, Refusal> {
    if !machines.is_typed() {
        return Ok(None);
    }
    let (Some(count), Some(address), Some(token_file)) = (machines.count, machines.address, machines.token_file) else {
        let line = "a run on several machines needs all of --machines N, --coordinate ADDR and --token-file FILE";
        return Err(Refusal::Misused(line.to_owned()));
    };
    if let Some((_, option, reason)) = alone.iter().find(|(is_typed, ..)| *is_typed) {
        return Err(Refusal::Cannot(format!("{option} {reason}: leave out --machines, or that")));
    }
    if connections < count {
        let line = format!("-c {connections} is less than --machines {count}: each machine needs a connection");
        return Err(Refusal::Misused(line));
    }
    Ok(Some(Machines {
        count: count as u32,
        address,
        token_file,
        join: machines.join.unwrap_or(JOIN),
        loss: machines.loss.unwrap_or(LOSS),
        on_loss: machines.on_loss.unwrap_or_default(),
    }))
}

/// An address to listen on; without a host, all of this machine's.
fn address(flag: &'static Flag, value: &OsStr) -> Result<SocketAddr, Refusal> {
    let refused = || wrong(flag, value, "write ADDR:PORT with an address of this machine, or :PORT for all of them");
    let text = value.to_str().ok_or_else(refused)?;
    match text.strip_prefix(':') {
        Some(port) => {
            port.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)).map_err(|_| refused())
        }
        None => text.parse().map_err(|_| refused()),
    }
}
