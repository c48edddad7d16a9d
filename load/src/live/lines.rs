//! Lines on standard error about a run that is starting or in progress.

use std::io::{self, Write};
use std::sync::Arc;

use onrush_plan::Plan;
use onrush_text::units::format_count;

use crate::program::say;
use crate::resolve::Addresses;
use crate::run::{self, Choice, Gathering, Listener, Observer, Waiting};
use crate::{cli, failure};

/// The line that `-v` prints: version and backend, busy-polling, and the reasons for the choices.
pub fn verbose_line(plan: &Plan, choice: &Choice, addresses: &Addresses) -> String {
    let spin = run::spin::decide_busy_poll(plan, &addresses.0);
    let waits = if spin.spins { "busy-polling is on" } else { "busy-polling is off" };
    let ports = run::host::unchosen_ports_reason(plan).map_or(String::new(), |reason| format!("; {reason}"));
    format!("{}: {}; {waits}: {}{ports}", cli::version(plan.dialect, choice.name), choice.reason, spin.reason)
}

fn host_name() -> String {
    onrush_text::escape(rustix::system::uname().nodename().to_bytes())
}

/// Prints a line when a run waits for its target or for other machines. In a list of observers, it must follow the
/// progress line, which is erased to make room.
pub struct WaitingLine<'a> {
    /// The plan of the run; with `--quiet`, messages about other machines are left out.
    pub plan: &'a Plan,
    /// True to print that the run waits for its target.
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
            let on = if machines == 1 { "there" } else { "on each" };
            let machines = format_count(machines.into(), "machine");
            let typed = format!("; type {on}: onrush worker --coordinator {host}:{port} --token-file {file}");
            // Workers that are started together need nothing typed by the user.
            let typed = if asked.place.is_none() { typed } else { String::new() };
            say(&format!("onrush: waiting for {machines}{typed}"));
        } else {
            let ready = if prepared > 0 { format!(", {prepared} ready") } else { String::new() };
            say(&format!("onrush: {there} of {machines} machines joined{ready}"));
        }
    }
}

/// Prints the messages of a script on standard error.
pub struct Messages;

impl Observer for Messages {
    fn script_listener(&mut self) -> Option<Listener> {
        // If standard error is closed, the message is lost.
        Some(Arc::new(|line| drop(io::stderr().write_all(line))))
    }
}
