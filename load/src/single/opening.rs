//! Output of a single run before it starts.

use std::time::Instant;

use onrush_plan::{Format, Plan};
use onrush_text::units::format_duration_exact;

use crate::live::verbose_line;
use crate::program::{Screen, say};
use crate::resolve::Addresses;
use crate::run::{self, Choice, Interrupt, Observer};
use crate::{cli, failure, report};

/// An observer that prints everything before a single run, up to the first lines of the report.
pub(super) struct RunOpening<'a> {
    plan: &'a Plan,
    interrupt: Interrupt,
    pub screen: Screen,
    /// True if the first lines of the report have been printed.
    is_printed: bool,
}

impl<'a> RunOpening<'a> {
    /// Prepares to print the opening of a plan. Nothing may have been printed on `screen` yet. While its reader blocks,
    /// a signal quits.
    pub fn new(plan: &'a Plan, interrupt: Interrupt, screen: Screen) -> Self {
        Self { plan, interrupt, screen, is_printed: false }
    }

    /// In wrk mode with `-v`, prints the version at the same point as wrk: before anything can fail.
    pub fn print_version(&mut self) {
        if self.plan.output.verbose
            && self.plan.dialect.is_compat()
            && let Ok(choice) = run::choice::choose_backend(&self.plan.io)
        {
            self.print(&format!("{}\n", cli::version(self.plan.dialect, choice.name)));
        }
    }

    /// Returns the first lines of the report on the first call, and an empty text on later ones or if the format has
    /// none.
    pub fn take_first_lines(&mut self) -> String {
        let is_due = !std::mem::replace(&mut self.is_printed, true)
            && !self.plan.once
            && self.plan.output.format == Format::Text;
        // The connections are on other machines.
        let shortage = run::host::descriptor_shortage(self.plan).filter(|_| self.plan.output.machines.is_none());
        if is_due {
            report::opening(self.plan, run::host::connections_within_limit(self.plan, shortage))
        } else {
            String::new()
        }
    }

    /// Prints lines before the run. While the reader blocks, the run does not start, and a signal quits.
    fn print(&mut self, text: &str) {
        self.interrupt.run_blocking(|| self.screen.print(text));
    }
}

impl Observer for RunOpening<'_> {
    fn on_resolved(&mut self, choice: &Choice, addresses: &Addresses) {
        let plan = self.plan;
        if plan.output.verbose && !plan.dialect.is_compat() {
            say(&verbose_line(plan, choice, addresses));
        }
        // The connections are on other machines.
        if plan.output.machines.is_some() {
            return;
        }
        let shortage = run::host::descriptor_shortage(plan);
        // A run with less than the requested load reports the shortage even without notes.
        let is_other = run::host::connections_within_limit(plan, shortage).is_some() && !plan.output.is_quiet;
        if plan.output.notes || is_other {
            let ports = run::host::port_shortage(plan, addresses, run::Ports::read());
            failure::shortage_note(plan, shortage, ports).iter().for_each(|line| say(line));
        }
    }

    fn on_ready(&mut self) -> Option<Instant> {
        let plan = self.plan;
        let is_silent = plan.output.format == Format::Json || plan.dialect.is_compat();
        if let Some(probing) = plan.output.probing.filter(|_| plan.output.notes && !is_silent) {
            say(&format!(
                "onrush: a probe of up to {} may follow the run, to find what limits it (--probe off prevents it)",
                format_duration_exact(probing.time)
            ));
        }
        let text = self.take_first_lines();
        self.print(&text);
        Some(Instant::now())
    }
}
