//! The options on several machines, and the resulting [`Machines`].

use std::env;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::machines::{MachineRank, Machines, OnLoss};
use onrush_text::units::format_count;

use super::draft::PlanDraft;
use super::flag::{Flag, flag, put};
use super::load::CONNECTIONS;
use super::probe::DraftProbe;
use super::refusal::PlanRefusal;
use super::slurm::Task;
use super::values::Value;

const MACHINES_MAX: u64 = 4096;
/// Default time for machines to join, and default silence after which a machine counts as lost.
const JOIN: Duration = Duration::from_secs(300);
const LOSS: Duration = Duration::from_secs(5);
/// Shortest silence after which a machine may count as lost. A busy machine may be silent for less.
const LOSS_MIN: Duration = Duration::from_secs(1);

/// The reason why experiments refuse the options.
const ONE_MACHINE: &str = "an experiment runs on a single machine";
/// The words after a tool's name that refuse the options.
const ONE_PROGRAM: &str = "is one program on one machine";

pub(super) const OPTIONS: &[Flag] = &[
    flag("--machines N", |draft, value| put(&mut draft.machines.count, value.count(MACHINES_MAX)))
        .common()
        .excludes(&[
            ("once", "one machine sends the request"),
            ("sockets", "the sockets of one machine are sampled"),
            ("sockets-output", "the sockets of one machine are sampled"),
            ("request-log", "the requests of one machine are logged"),
            ("log-sample", "the requests of one machine are logged"),
            ("sample-responses", "the responses of one machine are kept"),
        ])
        .needs(&[
            (|draft| !draft.is_simulated(), "--io sim simulates one machine; leave one of the two out"),
            (
                |draft| !matches!(draft.load.probe, Some(DraftProbe::On { .. })),
                "--probe observes one machine; leave one of the two out",
            ),
        ])
        .single_run_only(ONE_MACHINE)
        .native_only(ONE_PROGRAM)
        .help(
            "carry the run out on N machines, on each of which\n\
             'onrush worker' runs: -c, -R, -n and stages are those\n\
             of all together, -t and -b those of each",
        )
        .reference(
            "Machines that take part, 1 to 4,096. `-c`, `-R`, `-n`, `--max-inflight` and `--stages` are totals, `-t` \
             and `-b` per machine.",
            "onrush --machines 2 --coordinate 10.0.0.1:7070 --token-file token -c 2k -R 100k http://10.0.0.9/",
        ),
    flag("--coordinate ADDR", |draft, value| put(&mut draft.machines.address, parse_listen_address(value)))
        .single_run_only(ONE_MACHINE)
        .native_only(ONE_PROGRAM)
        .help("where this one waits for them, as ADDR:PORT or :PORT;\nnot needed if srun starts all of them")
        .reference(
            "Address at which the coordinator listens: `ADDR:PORT`, or `:PORT` for all addresses.",
            "onrush --machines 2 --coordinate :7070 --token-file token http://10.0.0.9/",
        ),
    flag("--token-file FILE", |draft, value| put(&mut draft.machines.token_file, Ok(value.path())))
        .single_run_only(ONE_MACHINE)
        .native_only(ONE_PROGRAM)
        .help("the secret of the run, which all of them need; made if\nthere is none")
        .reference(
            "Secret of the run, 64 hexadecimal digits that only the owner may read (mode 0600). Created if missing. \
             Each machine needs a copy.",
            "onrush --machines 2 --coordinate 10.0.0.1:7070 --token-file token http://10.0.0.9/",
        ),
    flag("--join-timeout T", |draft, value| put(&mut draft.machines.join, value.time()))
        .single_run_only(ONE_MACHINE)
        .native_only(ONE_PROGRAM)
        .help("how long they may take to join and to get ready (5m)")
        .reference(
            "Time for all machines to join and get ready: 5 minutes by default. If one is missing then, nothing is \
             sent.",
            "onrush --machines 2 --coordinate 10.0.0.1:7070 --token-file token --join-timeout 30s http://10.0.0.9/",
        ),
    flag("--loss-timeout T", |draft, value| {
        let loss = value.time()?;
        if loss < LOSS_MIN {
            return Err(value.wrong("at least 1s: a busy machine may be silent for a moment"));
        }
        draft.machines.loss = Some(loss);
        Ok(())
    })
    .single_run_only(ONE_MACHINE)
    .native_only(ONE_PROGRAM)
    .help("a machine that is silent for so long is lost (5s)")
    .reference(
        "Silence after which a machine is lost: 5 s by default, at least 1 s. A worker that loses the coordinator \
         stops sending after the same time.",
        "onrush --machines 2 --coordinate 10.0.0.1:7070 --token-file token --loss-timeout 2s http://10.0.0.9/",
    ),
    flag("--on-loss HOW", |draft, value| {
        put(&mut draft.machines.on_loss, value.choice(&[OnLoss::Stop, OnLoss::Continue]))
    })
    .one_of(&["stop", "continue"])
    .single_run_only(ONE_MACHINE)
    .native_only(ONE_PROGRAM)
    .help("what becomes of the run then: stop, or continue with\nthe others (stop)")
    .reference(
        "Reaction to a lost machine: `stop` (default) ends the run with a report, `continue` goes on with the \
         others.",
        "onrush --machines 2 --coordinate 10.0.0.1:7070 --token-file token --on-loss continue http://10.0.0.9/",
    ),
];

/// The options on several machines, as typed.
#[derive(Debug, Default)]
pub struct MachinesDraft {
    count: Option<u64>,
    address: Option<SocketAddr>,
    token_file: Option<PathBuf>,
    join: Option<Duration>,
    loss: Option<Duration>,
    /// `--on-loss`.
    pub on_loss: OnLoss,
}

impl PlanDraft {
    /// The machines of the run; `None` for a run on one machine.
    pub(super) fn to_machines(&self, warnings: &mut Vec<String>) -> Result<Option<Machines>, PlanRefusal> {
        if self.typed_of(OPTIONS).next().is_none() {
            return Ok(None);
        }
        let typed = &self.machines;
        // Only this is configured by the environment: the program that launched this process on all machines knows
        // their ranks.
        let task = if typed.address.is_none() { Task::from_environment(|name| env::var(name).ok()) } else { None };
        let (count, address, token_file, place) = find_gathering(typed, task.as_ref()).map_err(PlanRefusal::Misused)?;
        let connections = self.load.connections.unwrap_or(CONNECTIONS);
        if connections < count {
            let line = format!("-c {connections} is less than --machines {count}: each machine needs a connection");
            return Err(PlanRefusal::Misused(line));
        }
        if self.has("script") {
            let line = "with --machines, the script's done() is not called: each machine has a script of its own";
            warnings.push(line.to_owned());
        }
        Ok(Some(Machines {
            count: count as u32,
            address,
            token_file,
            join: typed.join.unwrap_or(JOIN),
            loss: typed.loss.unwrap_or(LOSS),
            on_loss: typed.on_loss,
            place,
        }))
    }
}

/// The number of machines, their meeting point and token file, and this machine's rank if known from Slurm. The error
/// names the missing options.
fn find_gathering(
    machines: &MachinesDraft,
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
fn parse_listen_address(value: Value) -> Result<SocketAddr, PlanRefusal> {
    let refused = || value.wrong("write ADDR:PORT with an address of this machine, or :PORT for all of them");
    let text = value.utf8().ok_or_else(refused)?;
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
        let typed = |count, address, token: bool| MachinesDraft {
            count,
            address,
            token_file: token.then(|| "token".into()),
            ..MachinesDraft::default()
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
