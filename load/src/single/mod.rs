//! A single run, the default without a subcommand: its output and its end.
//!
//! # One way to end
//!
//! 1. **Measure.** The measurements are kept, no matter what ends the run: time, requests, a signal, a script, a bug.
//! 2. **Files.** Each is written in its own thread, so a slow file does not delay the report. During a probe, the files
//!    are kept ready: a signal that ends the process writes them.
//! 3. **Report**, and the notes.
//! 4. **Wait** up to [`files::PATIENCE`] for unfinished files.
//! 5. **`done()`** of the script, which may do anything.
//! 6. **Exit code.** Zero means that every named file is new and complete. Any other code comes with a line about the
//!    state of each file.
//!
//! Each step is taken even if an earlier one failed. Only a second signal, or a signal during a step that may never
//! end, cuts this short. Even then, the line about the files is printed.

mod opening;
#[cfg(test)]
mod situations;

use std::time::Duration;

use onrush_plan::condition::Condition;
use onrush_plan::secrets::KnownSecrets;
use onrush_plan::{Format, Io, Plan, RequestList};

use crate::failure;
use crate::files::{self, FileStates, Files, KeptFiles};
use crate::input::InputFiles;
use crate::judge::{self, JudgedRun};
use crate::live::{Messages, ProgressLine, WaitingLine};
use crate::probe;
use crate::program::{
    EXIT_BROKEN, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_NOT_STARTED, EXIT_NOTHING_COMPLETED, EXIT_OUR_FAULT,
    EXIT_WRONG, ORDER, Screen, Signals, code_of, guard, highest_precedence, say, screen, with_stack,
};
use crate::record::evidence::Evidence;
use crate::record::gate::Gate;
use crate::record::{Document, Verdict};
use crate::report;
use crate::run::{self, Breakdown, Interrupt, Outcome, Probe, RunEnd, Tail};
use crate::script::{Exit, LoadedScript};
use crate::session::{self, SessionResult};
use opening::RunOpening;
use screen::{has_colours, say_lines};

/// How long the report waits for the files. Those on a local disk are usually complete by then.
const GRACE: Duration = Duration::from_millis(500);

/// Runs a plan, prints its report, writes its files, and returns the exit code. Errors are printed too.
pub fn run_and_report(plan: &mut Plan) -> u8 {
    let has_script = plan.script.is_some();
    with_stack(has_script, run::host::check_address_space(plan, has_script), || run_steps(plan))
}

/// Takes all steps in order, and returns the exit code.
fn run_steps(plan: &mut Plan) -> u8 {
    let begun = Signals::listen(&[]).and_then(|signals| {
        let kept = KeptFiles::write_before_quitting(&signals);
        Ok((Files::for_plan(plan, &signals)?, kept, signals))
    });
    let (mut files, kept, signals) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            say(&format!("{}{error:#}", message_prefix(plan)));
            return code_of(&error);
        }
    };
    let states = files.states().clone();
    let interrupt = signals.interrupt.clone();
    let read = interrupt.run_blocking(|| InputFiles::default().read_files(plan));
    screen::hide(KnownSecrets::from_plan(plan));
    let is_ours = plan.script.is_some() && plan.output.format == Format::Json;
    let screen = Screen::open(is_ours);
    let plan = &*plan;
    let mut opening = RunOpening::new(plan, interrupt.clone(), screen);
    let mut line = ProgressLine::on_stderr("", plan);
    let mut waiting = WaitingLine { plan, is_said: plan.output.notes };
    let ran = guard(|| {
        opening.print_version();
        read?;
        session::run(plan, &interrupt, &mut [&mut opening, &mut line, &mut waiting, &mut Messages, &mut files])
    });
    let ran = ran.and_then(|ran| ran);
    drop(line);
    let mut ending = RunEnding {
        plan,
        interrupt,
        states,
        kept,
        said: Vec::new(),
        broken: Vec::new(),
        our_fault: None,
        undecided: Vec::new(),
        lost: Vec::new(),
        was_probed: false,
        code: 0,
        was_written: false,
    };
    let screen = match ran {
        Ok(ran) => ending.conclude(ran, opening, files),
        Err(error) => {
            ending.record_error(&error);
            // Removes files that were opened but not written.
            drop(files);
            opening.screen
        }
    };
    ending.print_messages(screen)
}

/// The steps after the measurement, and their results so far.
struct RunEnding<'a> {
    plan: &'a Plan,
    interrupt: Interrupt,
    states: FileStates,
    kept: KeptFiles,
    /// Failure messages, printed at the very end.
    said: Vec<String>,
    /// Gates that are broken or undecided.
    broken: Vec<Gate>,
    /// The verdict that onrush itself limited the run, if `--strict` makes that a failure.
    our_fault: Option<Verdict>,
    /// Options that would have judged the run, had a signal not ended it.
    undecided: Vec<&'static str>,
    /// Machines lost during the run, each with the cause.
    lost: Vec<String>,
    /// True if a probe followed the run.
    was_probed: bool,
    code: u8,
    /// True if the command line asked for files.
    was_written: bool,
}

impl RunEnding<'_> {
    /// Writes the files, prints the report, waits, and calls `done()`.
    fn conclude(
        &mut self,
        SessionResult { mut outcome, script, tail, .. }: SessionResult,
        mut opening: RunOpening<'_>,
        files: Files,
    ) -> Screen {
        if let RunEnd::Refused { address, cause } = outcome.ended {
            self.said.push(format!("onrush: {}", failure::start_refusal(self.plan, &outcome, address, cause)));
            self.code = EXIT_NOT_STARTED;
            return opening.screen;
        }
        let (plan, interrupt) = (self.plan, self.interrupt.clone());
        self.code = exit_code(plan, &outcome);
        let (probe, files) = self.probe_after_run(&mut outcome, tail, files);
        outcome.probe = probe;
        self.was_probed = outcome.probe.is_some();
        self.lost = outcome.machines.iter().filter_map(|machine| machine.lost.clone()).collect();
        if matches!(outcome.ended, RunEnd::Signal | RunEnd::NeverBegun) {
            self.undecided = judging_option_names(self.plan);
        } else if outcome.probe.as_ref().is_some_and(Probe::is_interrupted) && asks_for_verdict(plan) {
            self.undecided = vec!["--fail-if verdict"];
        }
        let (first_lines, mut screen) = (opening.take_first_lines(), opening.screen);
        // The files and the report depend on this judgement alone.
        let judged = self.take_step(|| Ok(JudgedRun::from_outcome(plan, &outcome)));
        self.our_fault = judged.as_ref().and_then(|judged| judged.strict_failure(plan)).cloned();
        let document = judged.as_ref().map(|judged| &judged.document);
        let gates = document.iter().flat_map(|document| &document.gates);
        // With `--once`, a gate may be undecided: there is only one request.
        let has_failed = |gate: &&Gate| gate.broken || gate.undecided && !plan.once;
        self.broken = gates.filter(|gate| has_failed(gate) && !gate.is_strict()).cloned().collect();
        if !plan.output.files().is_empty() {
            self.was_written = true;
            if let (Some(document), Some(files)) = (document, files) {
                self.take_step(|| {
                    files.write(document);
                    Ok(())
                });
            }
            self.states.wait_until_final(GRACE);
        }
        // The reader of the report may block, and `done` may loop: from here on, the first signal quits.
        interrupt.run_blocking(|| {
            let text = document
                .and_then(|document| self.take_step(|| render_report(plan, &outcome, document)))
                .unwrap_or_default();
            self.take_step(|| {
                screen.print(&(first_lines + &text));
                Ok(())
            });
            if !screen.has_lost_reader() {
                self.take_step(|| {
                    let judged = judged.as_ref();
                    say_lines(&judged.map_or_else(String::new, |judged| judged.lines(&plan.output, has_colours())));
                    Ok(())
                });
            }
            self.wait_for_files();
            if let Some(mut script) = script.filter(|_| {
                // `done` might touch the state of a stuck thread, which is forbidden.
                outcome.breakdown.is_none() && outcome.stuck.is_empty() && outcome.stuck_after.is_empty()
            }) {
                let done = guard(|| call_done(plan, &outcome, &mut script)).and_then(|done| done);
                done.unwrap_or_else(|error| self.record_error(&error));
            }
        });
        if plan.once {
            let shown = self.take_step(|| show_other_names(plan, &interrupt, &mut screen));
            let (code, broken) = shown.unwrap_or_default();
            self.code = if self.code == 0 { code } else { self.code };
            self.broken.extend(broken);
        }
        self.record_breakdown(&outcome);
        screen
    }

    /// Runs the probe if it would reveal more. Returns the probe, if it was run, and the files, unless a signal has
    /// written them in the meantime.
    fn probe_after_run(
        &mut self,
        outcome: &mut Outcome,
        tail: Option<Tail>,
        files: Files,
    ) -> (Option<Probe>, Option<Files>) {
        let (plan, interrupt, kept) = (self.plan, self.interrupt.clone(), self.kept.clone());
        if self.take_step(|| Ok(needs_probe(plan, outcome))) != Some(true) {
            probe::dismiss_workers(tail, outcome);
            return (None, Some(files));
        }
        let keeps = plan.output.probing.is_some() && !plan.output.files().is_empty();
        let draft = self.take_step(|| Ok(keeps.then(|| JudgedRun::from_outcome(plan, outcome).document))).flatten();
        let probe = || self.take_step(|| Ok(probe::run_after(plan, outcome, tail, &interrupt))).flatten();
        let Some(draft) = draft else { return (probe(), Some(files)) };
        kept.keep(files, draft);
        (probe(), kept.take())
    }

    /// Takes one step; a failure does not end the remaining steps.
    fn take_step<T>(&mut self, work: impl FnOnce() -> anyhow::Result<T>) -> Option<T> {
        let done = guard(work).and_then(|done| done);
        done.map_err(|error| self.record_error(&error)).ok()
    }

    fn wait_for_files(&self) {
        if self.plan.output.files().is_empty() || self.states.wait_until_final(Duration::ZERO) {
            return;
        }
        say(&format!("onrush: waiting up to {} s for the files; Ctrl-C quits", files::PATIENCE.as_secs()));
        self.states.wait_until_final(files::PATIENCE);
        self.states.abandon_incomplete();
    }

    /// Handles an error, which may be a script's request to exit.
    fn record_error(&mut self, error: &anyhow::Error) {
        if let Some(&Exit(code)) = error.downcast_ref() {
            return self.set_exit_code(code);
        }
        self.code = code_of(error);
        self.said.push(format!("{}{error:#}", message_prefix(self.plan)));
    }

    /// Records why a run broke off, if it did.
    fn record_breakdown(&mut self, outcome: &Outcome) {
        for sentence in
            failure::stuck_thread_lines(outcome).into_iter().chain(failure::late_stuck_thread_lines(outcome))
        {
            self.code = EXIT_WRONG;
            self.said.push(format!("onrush: {sentence}"));
        }
        match &outcome.breakdown {
            None => {}
            Some(Breakdown::Exit(code)) => self.set_exit_code(*code),
            Some(Breakdown::Script(words)) => {
                self.code = EXIT_WRONG;
                self.said.push(format!("{}{words}", message_prefix(self.plan)));
            }
            Some(Breakdown::Bug(thread)) => {
                self.code = EXIT_WRONG;
                self.said.push(format!("onrush: {}", failure::thread_panic_message(*thread)));
            }
        }
    }

    /// Sets a script's exit code, of which the system keeps eight bits. Code 0 does not hide a failure.
    fn set_exit_code(&mut self, code: i32) {
        let code = code as u8;
        self.code = if code == 0 && !self.said.is_empty() { EXIT_WRONG } else { code };
    }

    /// Prints the remaining messages and returns the exit code.
    fn print_messages(mut self, screen: Screen) -> u8 {
        let unwritten = if self.was_written { files::unwritable_files(&self.states) } else { Vec::new() };
        let mut said: Vec<String> = unwritten.iter().map(|error| format!("onrush: {error}")).collect();
        said.extend(screen.failure("the report").map(|line| format!("onrush: {line}")));
        let is_short = !self.was_written && !self.plan.output.files().is_empty();
        if self.code == 0 && (!said.is_empty() || is_short) || self.code == EXIT_NOTHING_COMPLETED && !said.is_empty() {
            self.code = EXIT_WRONG;
        }
        if self.code == 0 {
            let codes = [
                (EXIT_BROKEN, self.broken.iter().any(|gate| gate.broken)),
                (EXIT_OUR_FAULT, self.our_fault.is_some()),
                (EXIT_INCONCLUSIVE, !self.lost.is_empty() || self.broken.iter().any(|gate| gate.undecided)),
                (EXIT_INTERRUPTED, !self.undecided.is_empty()),
            ];
            self.code = highest_precedence(ORDER, &codes);
        }
        said.extend(self.our_fault.iter().map(strict_message));
        said.extend(self.broken.iter().map(|gate| format!("onrush: {}", gate.sentence())));
        if self.code == EXIT_INTERRUPTED {
            let what = if self.was_probed { "the probe after the run" } else { "the run" };
            said.push(format!("onrush: a signal ended {what} early, so {} cannot pass", self.undecided.join(", ")));
        }
        if ![0, EXIT_BROKEN, EXIT_OUR_FAULT].contains(&self.code) {
            said.extend(self.states.describe_states().map(|account| format!("onrush: {account}")));
        }
        said.extend(std::mem::take(&mut self.said));
        // With --quiet, the loss was not announced during the run.
        let lost: Vec<String> = self.lost.iter().map(|why| format!("onrush: {why}")).collect();
        if self.plan.output.is_quiet {
            said.extend_from_slice(&lost);
        }
        self.interrupt.run_blocking(|| said.iter().for_each(|line| say(line)));
        if self.plan.output.annotates {
            let lost = lost.iter().filter(|_| !self.plan.output.is_quiet);
            said.iter().chain(lost).for_each(|line| say(&judge::annotation(line)));
        }
        self.code
    }
}

/// True if a probe after the run would reveal what limited it, and the run was complete.
fn needs_probe(plan: &Plan, outcome: &Outcome) -> bool {
    let is_whole = matches!(outcome.ended, RunEnd::Duration | RunEnd::Requests)
        && outcome.breakdown.is_none()
        && outcome.stuck.is_empty();
    let evidence = is_whole.then(|| Evidence::of(plan, outcome)).flatten();
    evidence.is_some_and(|evidence| judge::needs_probe(&evidence))
}

/// Names of the given options that judge the run. A run interrupted by a signal passes none of them.
fn judging_option_names(plan: &Plan) -> Vec<&'static str> {
    let asked = [
        ("--fail-if", !plan.output.gates.is_empty()),
        ("--strict", plan.output.is_strict),
        ("--until", !plan.until.is_empty()),
    ];
    asked.into_iter().filter_map(|(option, is_asked)| is_asked.then_some(option)).collect()
}

fn asks_for_verdict(plan: &Plan) -> bool {
    plan.output.gates.iter().any(Condition::asks_for_verdict)
}

/// Message for a verdict that `--strict` makes a failure.
fn strict_message(verdict: &Verdict) -> String {
    format!("onrush: --strict: {verdict}")
}

/// Renders the report that follows the run.
fn render_report(plan: &Plan, outcome: &Outcome, document: &Document) -> anyhow::Result<String> {
    Ok(match plan.output.format {
        _ if plan.once => report::once(plan, outcome),
        Format::Text => report::closing(document)?,
        Format::Json => document.to_json(),
    })
}

/// With `--once` and a list of named requests, shows the first request of every other name. Returns the exit code and
/// the broken gates.
fn show_other_names(plan: &Plan, interrupt: &Interrupt, screen: &mut Screen) -> anyhow::Result<(u8, Vec<Gate>)> {
    let (mut code, mut broken) = (0, Vec::new());
    for list in plan.list.iter().flat_map(RequestList::first_requests_of_other_names) {
        if interrupt.is_requested() {
            return Ok((EXIT_NOTHING_COMPLETED, broken));
        }
        // The kernel frees the memory of a ring only after a while, and unprivileged users may lock little memory for
        // rings.
        let io = if matches!(plan.io, Io::Sim(_)) { plan.io.clone() } else { Io::Epoll };
        let plan = Plan { list: Some(list), io, ..plan.clone() };
        let outcome = session::run(&plan, interrupt, &mut [])?.outcome;
        screen.print(&format!("\n{}", report::once(&plan, &outcome)));
        let judged = JudgedRun::from_outcome(&plan, &outcome);
        say_lines(&judged.lines(&plan.output, has_colours()));
        broken.extend(judged.document.gates.into_iter().filter(|gate| gate.broken && !gate.is_strict()));
        code = code.max(exit_code(&plan, &outcome));
    }
    Ok((code, broken))
}

fn call_done(plan: &Plan, outcome: &Outcome, script: &mut LoadedScript) -> anyhow::Result<()> {
    if script.has_done() { script.call_done(&report::summary_for_script(plan, outcome)) } else { Ok(()) }
}

fn exit_code(plan: &Plan, outcome: &Outcome) -> u8 {
    let nothing = outcome.totals.counters.completed == 0 || outcome.ended == RunEnd::StayedAway;
    if nothing && !plan.dialect.is_compat() { EXIT_NOTHING_COMPLETED } else { 0 }
}

/// Prefix of error messages; empty in wrk mode.
fn message_prefix(plan: &Plan) -> &'static str {
    if plan.dialect.is_compat() { "" } else { "onrush: " }
}
