//! `onrush worker`: takes part in a run coordinated by another machine, without a display.

mod command;
mod forwarder;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::token::{BadToken, Token};
use anyhow::{anyhow, bail};
use onrush_plan::Plan;

pub use command::COMMAND;
use forwarder::{Forwarder, truncate_reason};

use crate::program::{EXIT_INCONCLUSIVE, EXIT_NOT_STARTED, EXIT_WRONG, Signals, code_of, end_after, guard, say};
use crate::run::Interrupt;
use crate::run::machines::message::{CoordinatorMessage, JoinRefusal, WorkerMessage};
use crate::run::machines::worker_client::{Joining, NotJoined, WorkerClient, WorkerCommand};
use crate::session;

/// Time allowed for sending the remaining messages of a worker that a signal ended.
const FLUSH: Duration = Duration::from_secs(5);
/// Shortest row that a coordinator can request: 1 ms. onrush requests at least a tenth of a second.
const SHORTEST_ROW_NS: u64 = 1_000_000;

/// Time allowed for a worker to exit once its coordinator has.
const GRACE: Duration = Duration::from_secs(5);

/// Options on a worker's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WorkerOptions {
    coordinator: String,
    token_file: PathBuf,
    index: Option<u32>,
    name: Option<String>,
    join: Duration,
    is_quiet: bool,
}

/// Takes part in a run, and returns the exit code.
fn join_run(asked: &WorkerOptions) -> u8 {
    match guard(|| take_part(asked)).and_then(|done| done) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("onrush worker: {error:#}"));
            match error.downcast_ref::<NotJoined>() {
                // Another worker has replaced this one, and the run does not need both.
                Some(NotJoined::Refused { refusal: JoinRefusal::Begun, .. }) => 0,
                Some(NotJoined::Interrupted) => EXIT_INCONCLUSIVE,
                Some(_) => EXIT_NOT_STARTED,
                None if error.is::<BadToken>() => EXIT_NOT_STARTED,
                None => code_of(&error),
            }
        }
    }
}

fn take_part(asked: &WorkerOptions) -> anyhow::Result<u8> {
    let signals = Signals::listen(&[])?;
    let interrupt = signals.interrupt.clone();
    let begun = Instant::now();
    let tell = |words: &str| {
        if !asked.is_quiet {
            say(&format!("onrush worker: waiting for {words}"));
        }
    };
    if !asked.token_file.exists() {
        tell(&format!("the file {:?}; copy it from the coordinator's machine", asked.token_file));
    }
    let token = Token::wait_for_file(&asked.token_file, asked.join, || interrupt.is_requested())?
        .ok_or(NotJoined::Interrupted)?;
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = asked.name.clone().unwrap_or_else(host);
    let joining = Joining {
        coordinator: &asked.coordinator,
        token: &token,
        index: asked.index,
        name: &name,
        patience: asked.join.saturating_sub(begun.elapsed()),
        waiting: &tell,
    };
    let member = joining.join(&interrupt)?;
    // A script may load endlessly.
    end_after(
        member.over_flag(),
        GRACE,
        "onrush worker: the run is over; exiting, although a script or a name lookup is still running",
    )?;
    if !asked.is_quiet {
        say(&format!(
            "onrush worker: joined {} as machine {} of {}",
            asked.coordinator,
            member.index + 1,
            member.machines
        ));
    }
    loop {
        match member.next_command(&interrupt) {
            None => {
                member.flush_reports(FLUSH);
                return Ok(EXIT_INCONCLUSIVE);
            }
            Some(WorkerCommand::Lost(why)) => bail!("{why}; sending has stopped"),
            // A signal takes precedence, even if it has ended the whole run.
            Some(WorkerCommand::Order(CoordinatorMessage::Dismiss)) => {
                return Ok(if interrupt.is_requested() { EXIT_INCONCLUSIVE } else { 0 });
            }
            Some(WorkerCommand::Order(CoordinatorMessage::Prepare { plan, files, row_ns })) => {
                let row = Duration::from_nanos(row_ns.max(SHORTEST_ROW_NS));
                match receive_plan(&member, &interrupt, &plan, &files) {
                    Ok(Some(plan)) => run_part(&member, &plan, row, &interrupt),
                    Ok(None) => return Ok(EXIT_INCONCLUSIVE),
                    Err(error) => report_unprepared(&member, &error),
                }
            }
            // The order belongs to a run that this worker could not set up.
            Some(WorkerCommand::Order(_)) => {}
        }
    }
}

/// Receives the files of a plan, which follow it, and returns the complete plan; `None` if a signal arrived first.
fn receive_plan(
    member: &WorkerClient,
    interrupt: &Interrupt,
    plan: &str,
    files: &[(String, u64)],
) -> anyhow::Result<Option<Plan>> {
    let mut plan = Plan::from_json(plan)?;
    for (digest, length) in files {
        let mut contents = Vec::new();
        while (contents.len() as u64) < *length {
            match member.next_command(interrupt) {
                None => return Ok(None),
                Some(WorkerCommand::Order(CoordinatorMessage::Piece(piece))) => contents.extend_from_slice(&piece),
                Some(WorkerCommand::Order(_)) => bail!("the plan's files did not arrive"),
                Some(WorkerCommand::Lost(why)) => bail!(why),
            }
        }
        if !plan.attach(&Arc::from(contents)) {
            bail!("the file with the digest {digest} is not in the plan, or arrived damaged");
        }
    }
    Ok(Some(plan))
}

/// Reports that a part cannot be set up.
fn report_unprepared(member: &WorkerClient, error: &anyhow::Error) {
    member.send_report(WorkerMessage::Unprepared {
        reason: truncate_reason(format!("{error:#}")),
        is_wrong: code_of(error) == EXIT_WRONG,
    });
}

/// Runs a worker's part of a run, and reports how it ended or why it could not start.
fn run_part(member: &WorkerClient, plan: &Plan, row: Duration, interrupt: &Interrupt) {
    member.clear_stop();
    let mut forwarder = Forwarder::new(member, plan, row, interrupt);
    let ran = guard(|| session::run(plan, interrupt, &mut [&mut forwarder])).and_then(|ran| ran);
    match ran {
        Ok(ran) => forwarder.report_end(&ran.outcome),
        Err(error) if forwarder.has_begun() => {
            say(&format!("onrush worker: {error:#}"));
            forwarder.report_failure(&anyhow!(error));
        }
        Err(error) => {
            say(&format!("onrush worker: {error:#}"));
            report_unprepared(member, &error);
        }
    }
}
