//! The plan of an experiment: the factors, the number and order of each point's measurements, and the commands around
//! the runs.

use std::path::PathBuf;
use std::time::Duration;

use super::{Order, Plan};

/// The default parent folder of experiment results.
pub const RESULTS: &str = "onrush-results";

/// Name of the file with the plan in an experiment's folder.
pub const PLAN: &str = "plan.toml";

/// An experiment with everything decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The name of the experiment, from which the folder's name is made.
    pub name: String,
    /// Number of measurements of each point.
    pub rounds: u32,
    /// The order in which the runs of all points are made.
    pub order: Order,
    /// Seed of the order of the runs.
    pub seed: u64,
    /// Number of times that a failed run is repeated immediately.
    pub retries: u32,
    /// The quantities that are varied.
    pub factors: Vec<Factor>,
    /// The points to measure, at least one.
    pub points: Vec<Point>,
    /// The target, started for each point and stopped after it.
    pub server: Option<ManagedServer>,
    /// The commands that run around points and runs.
    pub hooks: Hooks,
    /// Files to copy into the results folder.
    pub attach: Vec<PathBuf>,
    /// True if the experiment may change the settings of this host (sysctl).
    pub may_change_host: bool,
    /// The folder for all output: a new one, or that of an experiment to continue.
    pub folder: ResultDestination,
    /// The experiment as the text of a file, with every decision; it contains secrets.
    pub text: String,
    /// Text without secrets, and with digests in place of commands.
    pub shown: String,
}

/// A quantity that an experiment varies, with the levels to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// The name, which is also a column of tables.
    pub name: String,
    /// The factor's levels, at least one.
    pub levels: Vec<Level>,
    /// The index of the baseline, the level that all others are compared with.
    pub baseline: usize,
}

/// One level of a factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The level as shown to people, without secrets.
    pub shown: String,
    /// The level and its factor, as used in file names.
    pub file: String,
}

/// A combination of levels, one of each factor, and the resulting run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Indices of the levels, one for each factor.
    pub levels: Vec<usize>,
    /// Prefix of the point's file names.
    pub file: String,
    /// The plan of every run of this point.
    pub plan: Plan,
    /// Names (as in sysctl(8)) and values of the host settings to make before the point is measured.
    pub settings: Vec<(String, String)>,
    /// The command that starts the target, if it is varied.
    pub command: Option<String>,
}

/// A target started for each point.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedServer {
    /// The shell command that starts the target; `None`: the command of each point.
    pub command: Option<String>,
    /// A request that is answered once the target is ready; `None`: one of the point's requests.
    pub ready: Option<Box<Plan>>,
    /// Longest time for the target to become ready.
    pub timeout: Duration,
}

/// Shell commands that run around points and runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Runs before the first run of a point, whenever the point changes.
    pub before_point: Option<String>,
    /// Runs after the last run of a point, whenever the point changes.
    pub after_point: Option<String>,
    /// Runs before each run of a point.
    pub before_run: Option<String>,
    /// Runs after each run of a point.
    pub after_run: Option<String>,
    /// Time limit of each hook; a hook that exceeds it has failed.
    pub timeout: Duration,
    /// True if a failing command ends the experiment.
    pub are_fatal: bool,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            before_point: None,
            after_point: None,
            before_run: None,
            after_run: None,
            timeout: Duration::from_secs(60),
            are_fatal: false,
        }
    }
}

/// All commands of an experiment: hooks around points and runs, the target's command, and the commands of points that
/// vary it.
pub fn commands<'a>(
    hooks: &'a Hooks,
    of_target: Option<&'a String>,
    of_points: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = &'a str> {
    let Hooks { before_point, after_point, before_run, after_run, timeout: _, are_fatal: _ } = hooks;
    let of_hooks = [before_point, after_point, before_run, after_run].into_iter().flatten();
    of_hooks.chain(of_target).chain(of_points).map(String::as_str)
}

/// The folder to which results are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultDestination {
    /// A new folder; without a path, named after the experiment and the time.
    New(Option<PathBuf>),
    /// The folder of an unfinished experiment.
    Resumed {
        /// The path of the folder.
        path: PathBuf,
        /// True to continue even if something has changed since the experiment was started.
        is_forced: bool,
    },
}

impl Experiment {
    /// The number of planned runs: one per point and round, without retries.
    pub fn planned_runs(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.rounds)
    }

    /// The levels of a point, in words.
    pub fn levels_in_words(&self, point: &Point) -> String {
        let levels = self.factors.iter().zip(&point.levels);
        let words = levels.map(|(factor, &level)| format!("{}={}", factor.name, factor.levels[level].shown));
        words.collect::<Vec<_>>().join(" ")
    }
}
