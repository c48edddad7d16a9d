//! Lines on standard error about a run that is starting or in progress.

use std::io::{self, Write};
use std::sync::Arc;

use onrush_plan::{Addresses, Plan};
use onrush_text::units::counted;

use crate::program::say;
use crate::run::{self, Choice, Gathering, Listener, Observer, Waiting};
use crate::{cli, failure};

/// The line for `-v`: the version, the backend, and the reasons for the choices.
pub fn verbose(plan: &Plan, choice: &Choice, addresses: &Addresses) -> String {
    let spin = run::spin::decide_busy_poll(plan, &addresses.0);
    let waits = if spin.spins { "busy-polling is on" } else { "busy-polling is off" };
    let ports = run::host::unchosen_ports_reason(plan).map_or(String::new(), |reason| format!("; {reason}"));
    format!("{}: {}; {waits}: {}{ports}", cli::version(plan.dialect, choice.name), choice.reason, spin.reason)
}

fn host_name() -> String {
    onrush_text::escape(rustix::system::uname().nodename().to_bytes())
}

/// Reports that a run waits for its target. Comes after the progress line in a list of observers, because it is printed
/// in its place.
pub struct WaitingLine<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// True if the wait is reported.
    pub is_said: bool,
}

impl Observer for WaitingLine<'_> {
    fn on_waiting(&mut self, waiting: &Waiting) {
        if self.is_said {
            say(&failure::waiting_line(self.plan, waiting));
        }
    }

    fn on_machine_message(&mut self, words: &str) {
        if !self.plan.output.is_quiet {
            say(&format!("onrush: {words}"));
        }
    }

    fn on_gathering(&mut self, gathering: &Gathering) {
        let Gathering { address, machines, there, prepared } = *gathering;
        let Some(asked) = self.plan.output.machines.as_ref().filter(|_| !self.plan.output.is_quiet) else { return };
        if there == 0 {
            let file = asked.token_file.display();
            let host = if address.ip().is_unspecified() { host_name() } else { address.ip().to_string() };
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            let port = address.port();
            let on = if machines == 1 { "which" } else { "each of which" };
            let machines = counted(machines.into(), "machine");
            let typed = format!(", on {on} to type: onrush worker --coordinator {host}:{port} --token-file {file}");
            // For workers started together, the user types nothing.
            let typed = if asked.place.is_none() { typed } else { String::new() };
            say(&format!("onrush: waiting for {machines}{typed}"));
        } else {
            let ready = if prepared > 0 { format!(", {prepared} ready") } else { String::new() };
            say(&format!("onrush: {there} of {machines} machines joined{ready}"));
        }
    }
}

/// Prints the messages of a script.
pub struct Messages;

impl Observer for Messages {
    fn script_listener(&mut self) -> Option<Listener> {
        // If standard error is closed, the line is lost.
        Some(Arc::new(|line| drop(io::stderr().write_all(line))))
    }
}
