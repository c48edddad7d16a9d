//! Waits for a processor during a run: the effect of the machine on the measurements.

use onrush_load::run::Outcome;

/// Shares of a run in which a thread was runnable without a processor; zero if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Starvation {
    /// The share for the onrush thread that waited longest.
    pub generator: f64,
    /// The share for the target thread that waited longest.
    pub target: f64,
    /// Processor time that the hypervisor gave to others.
    pub stolen: f64,
}

/// Waiting matters from this share of the time on: the latency of at least as large a share of requests includes a
/// wait.
const MATTERS: f64 = 0.01;

impl Starvation {
    /// The waits for a processor during a run.
    pub fn from_outcome(outcome: &Outcome) -> Self {
        let share = |activity: &onrush_stats::Activity| {
            activity.queued_ns.filter(|_| activity.wall_ns > 0).map(|ns| ns as f64 / activity.wall_ns as f64)
        };
        let threads = outcome.workers.iter().filter_map(|worker| share(worker.activity.as_ref()?));
        let seen = outcome.seen.as_ref();
        // The kernel counts a wait when it ends; the wait may have started before the run.
        Self {
            generator: threads.fold(0.0, f64::max).min(1.0),
            target: seen.and_then(|seen| seen.target.as_ref()?.queued).unwrap_or(0.0).min(1.0),
            stolen: seen.and_then(|seen| seen.machine.stolen).unwrap_or(0.0).min(1.0),
        }
    }

    /// Worst values over several runs, each taken from any of them; zero without runs.
    pub fn worst(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |one, other| Self {
            generator: one.generator.max(other.generator),
            target: one.target.max(other.target),
            stolen: one.stolen.max(other.stolen),
        })
    }

    /// True if any thread waited long enough to matter.
    pub fn matters(&self) -> bool {
        self.generator.max(self.target).max(self.stolen) >= MATTERS
    }

    /// Describes each wait long enough to matter by a clause for the middle of a sentence.
    pub fn wait_clauses(&self) -> Vec<String> {
        let waited = |who: &str, share: f64| {
            (share >= MATTERS).then(|| format!("{who} waited for a processor {:.0} % of the time", share * 100.0))
        };
        let stolen = (self.stolen >= MATTERS)
            .then(|| format!("the hypervisor gave {:.0} % of the processor time to others", self.stolen * 100.0));
        let all = [waited("onrush", self.generator), waited("the target", self.target), stolen];
        all.into_iter().flatten().collect()
    }
}
