//! The plan of an experiment: the factors, how often and in what order each point is measured, and the commands around
//! the runs.

use std::path::PathBuf;
use std::time::Duration;

use super::{Order, Plan};

/// The folder in which the results of experiments are that were given no folder of their own.
pub const RESULTS: &str = "onrush-results";

/// The file in the folder of an experiment that has its plan.
pub const PLAN: &str = "plan.toml";

/// An experiment with everything decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name, from which the folder's name is made.
    pub name: String,
    /// How often each point is measured.
    pub rounds: u32,
    /// The order of the runs.
    pub order: Order,
    /// The seed of the random sequence that the order is drawn from.
    pub seed: u64,
    /// How often a failed run is repeated immediately.
    pub retries: u32,
    /// The factors that vary.
    pub factors: Vec<Factor>,
    /// The points to measure, at least one.
    pub points: Vec<Point>,
    /// The target that is started for each point and ended after it.
    pub server: Option<ManagedServer>,
    /// The commands that run around points and runs.
    pub hooks: Hooks,
    /// Files that are copied into the folder.
    pub attach: Vec<PathBuf>,
    /// True if settings of the host may be changed.
    pub may_change_host: bool,
    /// The folder that everything is written to.
    pub folder: ResultDestination,
    /// The experiment as a file, with every decision.
    pub text: String,
    /// The command without secrets.
    pub shown: String,
}

/// Something that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels, at least one.
    pub levels: Vec<Level>,
    /// The index of the level that all others are compared with.
    pub baseline: usize,
}

/// One level of a factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// For people, without secrets.
    pub shown: String,
    /// For file names, with the factor.
    pub file: String,
}

/// One combination of levels, and the run that follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The index of the level of each factor.
    pub levels: Vec<usize>,
    /// The prefix of its file names.
    pub file: String,
    /// The plan of the run.
    pub plan: Plan,
    /// Settings of the host, with their names as in sysctl(8).
    pub settings: Vec<(String, String)>,
    /// The command that starts the target, where the command is varied.
    pub command: Option<String>,
}

/// A target that is started for each point.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedServer {
    /// The shell command.
    pub command: Option<String>,
    /// A request that gets a response once the target is ready; `None`: one of the point's requests.
    pub ready: Option<Box<Plan>>,
    /// The longest time it may take to become ready.
    pub timeout: Duration,
}

/// Shell commands that run around points and runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Before the first run of a point, whenever the point changes.
    pub before_point: Option<String>,
    /// After the last run of a point.
    pub after_point: Option<String>,
    /// Before each run.
    pub before_run: Option<String>,
    /// After each run.
    pub after_run: Option<String>,
    /// The longest time that each may take.
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

/// All commands of an experiment: hooks around points and runs, the target's, and the commands of points that vary it.
pub fn commands<'a>(
    hooks: &'a Hooks,
    of_target: Option<&'a String>,
    of_points: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = &'a str> {
    let Hooks { before_point, after_point, before_run, after_run, timeout: _, are_fatal: _ } = hooks;
    let of_hooks = [before_point, after_point, before_run, after_run].into_iter().flatten();
    of_hooks.chain(of_target).chain(of_points).map(String::as_str)
}

/// Where results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultDestination {
    /// A new folder; without a path, named after the experiment and the time.
    New(Option<PathBuf>),
    /// The folder of an unfinished experiment.
    Resumed {
        /// Its path.
        path: PathBuf,
        /// True to continue even if something has changed since.
        is_forced: bool,
    },
}

impl Experiment {
    /// The number of planned runs.
    pub fn runs(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.rounds)
    }

    /// The levels of a point in words.
    pub fn words(&self, point: &Point) -> String {
        let levels = self.factors.iter().zip(&point.levels);
        let words = levels.map(|(factor, &level)| format!("{}={}", factor.name, factor.levels[level].shown));
        words.collect::<Vec<_>>().join(" ")
    }
}
