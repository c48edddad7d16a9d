//! Sets up the environment of points and runs, and undoes it: host settings, hooks, and the target's command.

use std::fs::OpenOptions;
use std::path::Path;

use anyhow::{anyhow, bail};
use onrush_load::program::{Signals, say};
use onrush_load::run::Interrupt;
use onrush_load::session::ask;
use onrush_plan::experiment::{Experiment, Hooks};
use onrush_text::error_reason;

use super::super::{Folder, Hook, HookEnded, ProcessGroups, TargetNotReady, TargetProcess, TargetStart, describe_exit};
use crate::sysctl::{self, Loan, SettingName};

/// The environment in which points and runs take place.
pub(super) struct PointEnvironment<'a> {
    experiment: &'a Experiment,
    /// The borrowed settings; `None` if no point changes any.
    loan: Option<Loan>,
    /// The running process groups.
    groups: ProcessGroups,
    /// Point and round that were last set up, successfully or not.
    at: Option<(usize, u32)>,
    /// True if they were set up successfully.
    is_set_up: bool,
    target: Option<TargetProcess>,
    /// True if a failure in this attempt at a run ends the experiment.
    pub is_fatal: bool,
    /// True if something failed after a run had been measured.
    pub has_failed: bool,
    /// Settings that could not be restored between points.
    unrestored: Vec<String>,
}

/// The moment at which a hook is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum HookMoment {
    BeforePoint,
    AfterPoint,
    BeforeRun,
    AfterRun,
}

impl HookMoment {
    fn name(self) -> &'static str {
        match self {
            Self::BeforePoint => "before_point",
            Self::AfterPoint => "after_point",
            Self::BeforeRun => "before_run",
            Self::AfterRun => "after_run",
        }
    }

    fn command(self, hooks: &Hooks) -> Option<&str> {
        match self {
            Self::BeforePoint => hooks.before_point.as_deref(),
            Self::AfterPoint => hooks.after_point.as_deref(),
            Self::BeforeRun => hooks.before_run.as_deref(),
            Self::AfterRun => hooks.after_run.as_deref(),
        }
    }
}

impl<'a> PointEnvironment<'a> {
    /// Prepares the environment without setting anything up. From now on, a second signal kills started commands and
    /// restores changed settings. Prints notes on settings with side effects.
    ///
    /// # Errors
    ///
    /// Fails if settings must be changed, but this is not allowed or not possible.
    pub fn new(experiment: &'a Experiment, signals: &Signals) -> anyhow::Result<Self> {
        let mut names: Vec<&str> =
            experiment.points.iter().flat_map(|point| &point.settings).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if let Some(name) = names.first().filter(|_| !experiment.may_change_host) {
            bail!("{name} is a setting of this host; add --allow-host-changes to change it and restore it afterwards");
        }
        let mut said = Vec::new();
        for name in &names {
            let effect = sysctl::effect(&SettingName::parse(name)?).filter(|effect| !said.contains(effect));
            effect.iter().for_each(|effect| say(&format!("note: {effect}")));
            said.extend(effect);
        }
        let loan = if names.is_empty() { None } else { Some(Loan::open(Path::new(sysctl::DIRECTORY))?) };
        let groups = ProcessGroups::default();
        let restorer = loan.as_ref().map(Loan::restorer);
        let started = groups.clone();
        signals.before_quitting(move || {
            started.kill();
            let unrestored = restorer.iter().flat_map(|restorer| restorer.restore());
            unrestored.for_each(|line| say(&format!("onrush: {line}")));
        });
        Ok(Self {
            experiment,
            loan,
            groups,
            at: None,
            is_set_up: false,
            target: None,
            is_fatal: false,
            has_failed: false,
            unrestored: Vec::new(),
        })
    }

    /// Sets every setting to each of its values once, so that rejected values are known before the first run.
    ///
    /// # Errors
    ///
    /// Fails with the value that was rejected, and the reason.
    pub fn try_settings(&mut self) -> anyhow::Result<()> {
        let Some(loan) = &self.loan else { return Ok(()) };
        let mut tried: Vec<&(String, String)> = Vec::new();
        for setting in self.experiment.points.iter().flat_map(|point| &point.settings) {
            if tried.contains(&setting) {
                continue;
            }
            tried.push(setting);
            let (name, value) = setting;
            let became = loan.set(&SettingName::parse(name)?, value)?;
            let normal = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
            if became != normal(value) {
                say(&format!("note: {name}: the kernel turns {value:?} into {became:?}"));
            }
        }
        let unrestored = loan.restore();
        if unrestored.is_empty() { Ok(()) } else { Err(anyhow!(unrestored.join("; "))) }
    }

    /// Sets everything up for a point, unless this has already been done.
    ///
    /// # Errors
    ///
    /// Fails with the step that failed, and the reason.
    pub fn set_up_point(
        &mut self,
        point: usize,
        round: u32,
        folder: &Folder,
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        let is_there = self.is_set_up && self.at.is_some_and(|(at, _)| at == point);
        if is_there && self.describe_target_end().is_none() {
            self.at = Some((point, round));
            return Ok(());
        }
        self.leave_point(folder);
        if interrupt.is_requested() {
            return Err("interrupted".to_owned());
        }
        self.apply_settings(point).inspect_err(|_| self.is_fatal = true)?;
        self.at = Some((point, round));
        self.run_hook(HookMoment::BeforePoint, folder, interrupt)?;
        self.start(folder, interrupt)?;
        self.is_set_up = true;
        Ok(())
    }

    /// Undoes what was set up for the last point, if anything.
    pub fn leave_point(&mut self, folder: &Folder) {
        self.target = None;
        // Runs even after a signal, because it undoes what `before_point` did.
        if let Err(line) = self.run_hook(HookMoment::AfterPoint, folder, &Interrupt::default()) {
            say(&format!("onrush: {line}"));
            self.has_failed = true;
        }
        self.at = None;
        self.is_set_up = false;
    }

    /// Describes how the target's command ended by itself; `None` while it is running, or if there is none.
    pub fn describe_target_end(&mut self) -> Option<String> {
        let status = self.target.as_mut()?.exit_status()?;
        Some(format!("the target's command ended early, with {}", describe_exit(status)))
    }

    /// Runs a hook for the current point; does nothing if the experiment does not have this hook.
    ///
    /// # Errors
    ///
    /// Returns a description of the failure.
    pub fn run_hook(&mut self, when: HookMoment, folder: &Folder, interrupt: &Interrupt) -> Result<(), String> {
        let hooks = &self.experiment.hooks;
        let (Some(command), Some((point, round))) = (when.command(hooks), self.at) else { return Ok(()) };
        let name = when.name();
        let unkept = |error| format!("{name}: the output cannot be kept: {}", error_reason(&error));
        let file = format!("{name}-{}-{}.txt", self.experiment.points[point].file, round + 1);
        let path = folder.output_path(&file).map_err(|error| error.to_string())?;
        let output = OpenOptions::new().create(true).append(true).open(&path).map_err(unkept)?;
        let environment = self.environment();
        let hook = Hook { command, environment: &environment, output: &output, timeout: hooks.timeout };
        let ended = hook.run(interrupt, &self.groups);
        let line = format!("{name} {ended}");
        folder.append_to_journal(&line).map_err(|error| error.to_string())?;
        if ended == HookEnded::Succeeded {
            return Ok(());
        }
        self.is_fatal |= hooks.are_fatal;
        Err(format!("{line}; its output is in {}", path.display()))
    }

    /// Restores all settings. Returns a line about each that could not be restored.
    pub fn restore_settings(&mut self) -> Vec<String> {
        let mut unrestored = std::mem::take(&mut self.unrestored);
        unrestored.extend(self.loan.iter().flat_map(Loan::restore));
        unrestored
    }

    /// Sets the settings of a point to their values, and restores all others.
    fn apply_settings(&mut self, point: usize) -> Result<(), String> {
        let (Some(loan), settings) = (&self.loan, &self.experiment.points[point].settings) else { return Ok(()) };
        self.unrestored.extend(loan.restore());
        if let Some(line) = self.unrestored.first() {
            return Err(line.clone());
        }
        for (name, value) in settings {
            let set = SettingName::parse(name).and_then(|name| loan.set(&name, value));
            set.map_err(|refusal| refusal.to_string())?;
        }
        Ok(())
    }

    /// Starts the target's command, if there is one, and waits until the target is ready.
    fn start(&mut self, folder: &Folder, interrupt: &Interrupt) -> Result<(), String> {
        let (Some(server), Some((point, _))) = (&self.experiment.server, self.at) else { return Ok(()) };
        let point = &self.experiment.points[point];
        let Some(command) = point.command.as_ref().or(server.command.as_ref()) else { return Ok(()) };
        let output = folder.output_path(&format!("target-{}.txt", point.file)).map_err(|error| error.to_string())?;
        let environment = self.environment();
        let start = TargetStart { command, environment: &environment, output: &output, timeout: server.timeout };
        let ready = server.ready.as_deref().unwrap_or(&point.plan);
        let target =
            TargetProcess::start(&start, |within| ask::answers(ready, interrupt, within), interrupt, &self.groups);
        let unready = |unready: TargetNotReady| match unready.printed_lines() {
            None => unready.to_string(),
            Some("") => format!("{unready}; it printed nothing"),
            Some(lines) => {
                say(&format!("note: the target's command printed: {lines}"));
                format!("{unready}; its output is in {}", output.display())
            }
        };
        self.target = Some(target.map_err(unready)?);
        Ok(())
    }

    /// Environment variables for commands, which describe the point and the round.
    fn environment(&self) -> Vec<(String, String)> {
        let Some((point, round)) = self.at else { return Vec::new() };
        let Experiment { factors, points, .. } = self.experiment;
        let point = &points[point];
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let levels = factors.iter().zip(&point.levels).map(|(factor, &level)| {
            let name: String = factor.name.chars().map(plain).collect();
            (format!("ONRUSH_LEVEL_{name}"), factor.levels[level].shown.clone())
        });
        let own =
            [("ONRUSH_POINT".to_owned(), point.file.clone()), ("ONRUSH_ROUND".to_owned(), (round + 1).to_string())];
        own.into_iter().chain(levels).collect()
    }
}
