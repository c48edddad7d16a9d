//! The command `onrush worker`: its arguments, and its exit.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::Dialect;

use super::{WorkerOptions, join_run};
use crate::cli::arguments::{Subcommand, path, switch, text};
use crate::cli::units::parse_time;
use crate::cli::{Command, CommandWork, CompletionWord};
use crate::program::with_stack;

/// The command `onrush worker`.
pub const COMMAND: Command = Command {
    name: WORKER.name,
    about: "take part in a run on several machines",
    help: || WORKER.help(),
    options: || WORKER.described_options(),
    word: CompletionWord::Text,
    parse: |args| Ok(parse(args)?.map(|asked| CommandWork::new(move || with_stack(true, Ok(()), || join_run(&asked))))),
};

/// Maximum length of a worker's name, in bytes: its first message is limited to 4 KiB.
const NAME_MAX: usize = 256;
/// Default limit on the wait for the coordinator.
const JOIN: Duration = Duration::from_secs(300);

pub(crate) const WORKER: Subcommand<WorkerOptions> = Subcommand {
    name: "worker",
    help: (
        "\
onrush worker takes part in a run that another machine coordinates with
--machines. It learns everything else from there, carries its part out, and
ends with the run. Nothing is sent to the target before all machines are ready.

Usage: onrush worker --coordinator HOST:PORT --token-file FILE [options]",
        "",
    ),
    options: &[
        text("--coordinator HOST:PORT", |asked: &mut WorkerOptions, text| {
            asked.coordinator = address(text)?;
            Ok(())
        })
        .help("address of the coordinator"),
        path("--token-file FILE", |asked: &mut WorkerOptions, path| {
            asked.token_file = path;
            Ok(())
        })
        .help("secret of the run, the same as the coordinator's"),
        text("--index N", |asked: &mut WorkerOptions, text| {
            asked.index = Some(text.parse().map_err(|_| "write a whole number, 0 for the first machine".to_owned())?);
            Ok(())
        })
        .help("number of this machine, from 0 (any)"),
        text("--name NAME", |asked: &mut WorkerOptions, text| {
            if text.len() > NAME_MAX {
                return Err(format!("write at most {NAME_MAX} bytes"));
            }
            asked.name = Some(text.to_owned());
            Ok(())
        })
        .help("name of this machine in the result (the host name)"),
        text("--join-timeout T", |asked: &mut WorkerOptions, text| {
            asked.join = parse_time(text, Dialect::Native).map_err(|_| "write a time such as 90s or 5m".to_owned())?;
            Ok(())
        })
        .help("time limit for FILE and the coordinator (5m)"),
        switch("--quiet", |asked: &mut WorkerOptions| asked.is_quiet = true).help("print errors only"),
    ],
    word: |_, word| Err(format!("unexpected argument {word:?}; the plan comes from the coordinator")),
};

fn address(text: &str) -> Result<String, String> {
    let is_address = !text.contains('/')
        && text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    is_address.then(|| text.to_owned()).ok_or_else(|| "write HOST:PORT".to_owned())
}

/// Parses the arguments; `None` for a request for help. The error names the fault.
fn parse(args: &[OsString]) -> Result<Option<WorkerOptions>, String> {
    let asked = WorkerOptions {
        coordinator: String::new(),
        token_file: PathBuf::new(),
        index: None,
        name: None,
        join: JOIN,
        is_quiet: false,
    };
    let asked = WORKER.read(args, asked)?;
    match &asked {
        Some(asked) if asked.coordinator.is_empty() || asked.token_file.as_os_str().is_empty() => {
            Err("needs --coordinator HOST:PORT and --token-file FILE; all options: onrush worker --help".to_owned())
        }
        _ => Ok(asked),
    }
}
