//! Many runs with one purpose: what is varied, how often each point is measured, in which order, and what is done around
//! the runs.

use std::path::PathBuf;
use std::time::Duration;

use super::{Order, Plan};

/// An experiment, decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name, of which its folder's is made.
    pub name: String,
    /// How often each point is measured.
    pub rounds: u32,
    /// In which order.
    pub order: Order,
    /// The start of the random sequence that the order is drawn from.
    pub seed: u64,
    /// How often a failed run is repeated at once.
    pub retries: u32,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// What is measured: at least one point.
    pub points: Vec<Point>,
    /// What is started for each point, and ended after it.
    pub server: Option<Server>,
    /// What is done around points and runs.
    pub hooks: Hooks,
    /// Files that are copied into the folder.
    pub attach: Vec<PathBuf>,
    /// Whether settings of the host may be changed.
    pub may_change_host: bool,
    /// The folder that everything is written into.
    pub folder: Folder,
    /// The experiment as a file: everything that was decided.
    pub text: String,
    /// The same without secrets.
    pub shown: String,
}

/// Something that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels, at least one.
    pub levels: Vec<Level>,
    /// Which of them all others are compared with.
    pub baseline: usize,
}

/// One level of a factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// As people read it, without secrets.
    pub shown: String,
    /// As names of files have it, with the factor.
    pub file: String,
}

/// A choice of levels, and what they make of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The number of the level of each factor.
    pub levels: Vec<usize>,
    /// What the names of its files begin with.
    pub file: String,
    /// The run.
    pub plan: Plan,
    /// Settings of the host, by their names as sysctl(8) has them.
    pub settings: Vec<(String, String)>,
    /// The command that starts the target, where that is varied.
    pub command: Option<String>,
}

/// A target that is started for each point.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// What a shell is told.
    pub command: Option<String>,
    /// A request that says when it is ready; `None`: one like those of the point.
    pub ready: Option<Box<Plan>>,
    /// How long that may take.
    pub timeout: Duration,
}

/// What a shell is told around points and runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Before the first run of a point, whenever the point changes.
    pub before_point: Option<String>,
    /// After the last one.
    pub after_point: Option<String>,
    /// Before each run.
    pub before_run: Option<String>,
    /// After it.
    pub after_run: Option<String>,
    /// How long each may take.
    pub timeout: Duration,
    /// Whether one that fails ends the experiment.
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

/// Where results go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folder {
    /// A new folder; without a path, one that is named after the experiment and the time.
    New(Option<PathBuf>),
    /// That of an experiment that was not finished.
    Resumed {
        /// Its path.
        path: PathBuf,
        /// Whether it does not matter that something has changed since.
        is_forced: bool,
    },
}

impl Experiment {
    /// How many runs there are.
    pub fn runs(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.rounds)
    }

    /// A point as people read it.
    pub fn words(&self, point: &Point) -> String {
        let levels = self.factors.iter().zip(&point.levels);
        let words = levels.map(|(factor, &level)| format!("{}={}", factor.name, factor.levels[level].shown));
        words.collect::<Vec<_>>().join(" ")
    }
}
