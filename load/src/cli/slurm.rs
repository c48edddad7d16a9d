//! A Slurm step, as the environment of its tasks describes it: the rank of this task, and the address of the first
//! task.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use onrush_plan::machines::MachineRank;

/// First port, and number of ports, to choose from if Slurm reserves none. They are below the usual ephemeral ports.
const PORTS: (u32, u32) = (20_000, 10_000);

/// A task, and what it knows about its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// Rank of the task, from zero.
    rank: u32,
    /// Number of tasks in the step.
    pub tasks: u32,
    /// First node of the step, where the first task should run ...
    first: String,
    /// ... and the node of this task.
    own: Option<String>,
    port: u16,
}

impl Task {
    /// The task that this process is; `None` if it is none. A batch script and a `salloc` shell are no tasks,
    /// though they have a rank and a number of tasks: only a step knows its nodes.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let first = first_host(&variable("SLURM_STEP_NODELIST")?)?;
        let (job, step) = (number("SLURM_JOB_ID")?, number("SLURM_STEP_ID")?);
        // Simultaneous jobs on one node have similar ids, and must not choose the same port.
        let chosen = || PORTS.0 + job.wrapping_mul(37).wrapping_add(step) % PORTS.1;
        let reserved = variable("SLURM_STEP_RESV_PORTS").and_then(|ports| first_number(&ports).parse().ok());
        Some(Self {
            rank: number("SLURM_PROCID")?,
            tasks: number("SLURM_STEP_NUM_TASKS")?,
            first,
            own: variable("SLURMD_NODENAME"),
            port: reserved.unwrap_or_else(|| chosen() as u16),
        })
    }

    /// The address on which the first task listens as the coordinator.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), self.port)
    }

    /// The task's rank in a run, and the coordinator's address. The error explains why the first task could not be
    /// found.
    pub fn place(&self) -> Result<MachineRank, String> {
        let Self { rank, first, own, port, .. } = self;
        match (rank, own) {
            (0, Some(own)) if own != first => Err(format!(
                "task 0 is on {own}, and the others look for it on {first}: let srun distribute them in another way (-m block)"
            )),
            (0, _) => Ok(rank_at(0, Ipv4Addr::LOCALHOST, *port)),
            _ => Ok(rank_at(*rank, first, *port)),
        }
    }
}

fn rank_at(rank: u32, host: impl Display, port: u16) -> MachineRank {
    MachineRank { rank, coordinator: format!("{host}:{port}") }
}

/// The first host in a list in Slurm's notation: rack07n1 for `rack[07-10,12]n[1-4],gpu1`.
fn first_host(list: &str) -> Option<String> {
    let (mut host, mut rest) = (String::new(), list);
    while let Some(at) = rest.find(['[', ',']) {
        host += &rest[..at];
        if rest[at..].starts_with(',') {
            rest = "";
        } else {
            let (numbers, behind) = rest[at + 1..].split_once(']')?;
            host += first_number(numbers);
            rest = behind;
        }
    }
    host += rest;
    Some(host).filter(|host| !host.is_empty())
}

/// The first number in a list of numbers and ranges, with its leading zeros.
fn first_number(list: &str) -> &str {
    list.split(['-', ',']).next().unwrap_or(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(more: &[(&str, &str)]) -> Option<Task> {
        let of_step = [
            ("SLURM_PROCID", "2"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_STEP_NODELIST", "n[1-4]"),
            ("SLURM_JOB_ID", "812"),
            ("SLURM_STEP_ID", "3"),
            ("SLURMD_NODENAME", "n3"),
        ];
        // The last variable counts; an empty one is unset.
        let find = |name: &str| of_step.iter().chain(more).rev().find(|(known, _)| *known == name);
        Task::from_environment(|name| {
            find(name).map(|(_, value)| (*value).to_owned()).filter(|value| !value.is_empty())
        })
    }

    #[test]
    fn first_host_of_a_list_is_found() {
        for (list, first) in [
            ("n1", "n1"),
            ("n1,n2", "n1"),
            ("node[1-3,07],gpu01", "node1"),
            ("node[07-10]", "node07"),
            ("node[007,9]-ib", "node007-ib"),
            ("rack[2-3]n[04-06],other[1-2]", "rack2n04"),
            ("a-b-1.example.com,a-b-2.example.com", "a-b-1.example.com"),
        ] {
            assert_eq!(first_host(list).unwrap(), first, "{list}");
        }
        for wrong in ["", ",n1", "n[1-3"] {
            assert_eq!(first_host(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn first_slurm_task_coordinates() {
        let third = task(&[]).unwrap();
        assert_eq!((third.tasks, third.address().to_string()), (4, "0.0.0.0:20047".to_owned()));
        assert_eq!(third.place(), Ok(MachineRank { rank: 2, coordinator: "n1:20047".to_owned() }));
        let first = task(&[("SLURM_PROCID", "0"), ("SLURMD_NODENAME", "n1")]).unwrap();
        assert_eq!(first.place(), Ok(MachineRank { rank: 0, coordinator: "127.0.0.1:20047".to_owned() }));
        let elsewhere = task(&[("SLURM_PROCID", "0")]).unwrap().place().unwrap_err();
        assert!(elsewhere.starts_with("task 0 is on n3, and the others look for it on n1"), "{elsewhere}");
    }

    #[test]
    fn slurm_ports_differ_between_jobs_and_steps() {
        let port = |job, step, reserved| {
            let more = [("SLURM_JOB_ID", job), ("SLURM_STEP_ID", step), ("SLURM_STEP_RESV_PORTS", reserved)];
            task(&more).unwrap().port
        };
        assert_eq!(port("812", "3", "12007-12008"), 12007);
        assert_eq!([port("812", "4", ""), port("813", "3", "")], [20_048, 20_084]);
        assert!((20_000..30_000).contains(&port("4294967295", "4294967295", "")));
    }

    #[test]
    fn only_slurm_steps_have_tasks() {
        for missing in ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_JOB_ID", "SLURM_STEP_ID"]
        {
            assert_eq!(task(&[(missing, "")]), None, "{missing}");
        }
    }
}
