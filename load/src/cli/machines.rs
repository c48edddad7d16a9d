//! The options on several machines, as typed, and the resulting [`Machines`].

use std::env;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::Dialect;
use onrush_plan::machines::{MachineRank, Machines, OnLoss};
use onrush_text::units::format_count;

use super::flags::{Flag, Id};
use super::refusal::{PlanRefusal, wrong};
use super::slurm::Task;
use super::values::{parse_count, parse_time};

const MACHINES_MAX: u64 = 4096;
/// Default time for machines to join, and default silence after which a machine counts as lost.
const JOIN: Duration = Duration::from_secs(300);
const LOSS: Duration = Duration::from_secs(5);
/// Shortest silence after which a machine may count as lost. A busy machine may be silent for less.
const LOSS_MIN: Duration = Duration::from_secs(1);

/// The options on several machines, as typed.
#[derive(Debug, Default)]
pub struct TypedMachines {
    count: Option<u64>,
    address: Option<SocketAddr>,
    token_file: Option<PathBuf>,
    join: Option<Duration>,
    loss: Option<Duration>,
    on_loss: Option<OnLoss>,
}

impl TypedMachines {
    pub(super) fn apply_option(&mut self, flag: &'static Flag, value: OsString) -> Result<(), PlanRefusal> {
        let native = Dialect::Native;
        match flag.id {
            Id::Machines => self.count = Some(parse_count(flag, &value, native, MACHINES_MAX)?),
            Id::Coordinate => self.address = Some(parse_listen_address(flag, &value)?),
            Id::TokenFile => self.token_file = Some(PathBuf::from(value)),
            Id::JoinTimeout => self.join = Some(parse_time(flag, &value, native)?),
            Id::LossTimeout => {
                let loss = parse_time(flag, &value, native)?;
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

    /// True if the run is to continue after losing a machine.
    pub fn goes_on(&self) -> bool {
        self.on_loss == Some(OnLoss::Continue)
    }

    /// True if any of the options was typed.
    pub fn is_typed(&self) -> bool {
        let Self { count, address, token_file, join, loss, on_loss } = self;
        count.is_some()
            || address.is_some()
            || token_file.is_some()
            || join.is_some()
            || loss.is_some()
            || on_loss.is_some()
    }
}

/// The machines of a run with this many connections; `None` for a run on one machine. `alone` lists options that only a
/// single machine supports: true if the option was typed, its name, and the reason.
pub(super) fn decide_machines(
    machines: TypedMachines,
    connections: u64,
    alone: &[(bool, &str, &str)],
) -> Result<Option<Machines>, PlanRefusal> {
    if !machines.is_typed() {
        return Ok(None);
    }
    // Only this is configured by the environment: the program that launched this process on all machines knows their
    // ranks.
    let task = if machines.address.is_none() { Task::from_environment(|name| env::var(name).ok()) } else { None };
    let (count, address, token_file, place) = find_gathering(&machines, task.as_ref()).map_err(PlanRefusal::Misused)?;
    if let Some((_, option, reason)) = alone.iter().find(|(is_typed, ..)| *is_typed) {
        return Err(PlanRefusal::Cannot(format!("{option} {reason}: leave out --machines, or that")));
    }
    if connections < count {
        let line = format!("-c {connections} is less than --machines {count}: each machine needs a connection");
        return Err(PlanRefusal::Misused(line));
    }
    Ok(Some(Machines {
        count: count as u32,
        address,
        token_file,
        join: machines.join.unwrap_or(JOIN),
        loss: machines.loss.unwrap_or(LOSS),
        on_loss: machines.on_loss.unwrap_or_default(),
        place,
    }))
}

/// The number of machines, their meeting point and token file, and this machine's rank if known from Slurm. The error
/// names the missing options.
fn find_gathering(
    machines: &TypedMachines,
    task: Option<&Task>,
) -> Result<(u64, SocketAddr, PathBuf, Option<MachineRank>), String> {
    match (machines.count, machines.address, &machines.token_file, task) {
        (Some(count), Some(address), Some(token_file), _) => Ok((count, address, token_file.clone(), None)),
        (Some(count), None, _, Some(task)) if count != u64::from(task.tasks) => {
            let tasks = task.tasks;
            let words = format_count(tasks.into(), "task");
            Err(format!(
                "--machines {count}: this step of Slurm has {words}; write --machines {tasks}, or srun -n {count}"
            ))
        }
        (Some(count), None, Some(token_file), Some(task)) => {
            Ok((count, task.address(), token_file.clone(), Some(task.place()?)))
        }
        (Some(count), None, None, Some(_)) => Err(format!(
            "--machines {count} in a step of Slurm needs --token-file FILE, in a folder that all nodes share, such as $HOME"
        )),
        _ => Err("a run on several machines needs all of --machines N, --coordinate ADDR and --token-file FILE; \
                  if srun starts it on all of them, leave out --coordinate"
            .to_owned()),
    }
}

/// Parses an address to listen on. Without a host, it stands for all addresses of this machine.
fn parse_listen_address(flag: &'static Flag, value: &OsStr) -> Result<SocketAddr, PlanRefusal> {
    let refused = || wrong(flag, value, "write ADDR:PORT with an address of this machine, or :PORT for all of them");
    let text = value.to_str().ok_or_else(refused)?;
    match text.strip_prefix(':') {
        Some(port) => {
            port.parse().map(|port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)).map_err(|_| refused())
        }
        None => text.parse().map_err(|_| refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinator_addresses_are_typed_or_from_slurm() {
        let typed = |count, address, token: bool| TypedMachines {
            count,
            address,
            token_file: token.then(|| "token".into()),
            ..TypedMachines::default()
        };
        let task = Task::from_environment(|name| {
            let value = match name {
                "SLURM_PROCID" => "1",
                "SLURM_STEP_NUM_TASKS" => "2",
                "SLURM_STEP_NODELIST" => "n[1-2]",
                "SLURM_JOB_ID" | "SLURM_STEP_ID" => "0",
                _ => return None,
            };
            Some(value.to_owned())
        });
        let here = "127.0.0.1:7".parse().ok();
        assert_eq!(find_gathering(&typed(Some(3), here, true), None).unwrap().1.port(), 7);
        let (.., place) = find_gathering(&typed(Some(2), None, true), task.as_ref()).unwrap();
        assert_eq!(place, Some(MachineRank { rank: 1, coordinator: "n1:20000".to_owned() }));
        for (count, token, is_task, part) in [
            (Some(2), true, false, "leave out --coordinate"),
            (Some(3), true, true, "has 2 tasks; write --machines 2, or srun -n 3"),
            (Some(2), false, true, "needs --token-file FILE"),
            (None, true, true, "needs all of --machines N"),
        ] {
            let said = find_gathering(&typed(count, None, token), task.as_ref().filter(|_| is_task)).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }
}
