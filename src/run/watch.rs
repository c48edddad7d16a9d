//! Watches workers while they run, stops them, and takes over what they measured.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::outcome::Stuck;
use super::sight::Sight;
use super::snapshot::Collector;
use super::sockets::SocketWatcher;
use super::until::StopRule;
use super::worker::{Gate, Worked};
use super::{Ended, Interrupt, Observer, Outcome, Shortage, Waiting, nanos};
use crate::backend::suspended_ns;
use crate::engine::{Control, WorkerEnd, WorkerLink};
use crate::plan::Plan;
use crate::stats::Timeline;

/// How often the watcher checks for signals and hand-overs.
const WATCH: Duration = Duration::from_millis(20);
/// How often the observer is told the progress of the run.
const SHOW: Duration = Duration::from_millis(200);
/// The shortest time that counts as a suspension: no machine is suspended and awake again in less.
const SUSPENDED_MIN: Duration = Duration::from_millis(10);
/// How long a callback may last at the end of a run.
const PATIENCE_WITH_SCRIPTS: Duration = Duration::from_secs(1);

/// Workers that are set up and wait to be released together. If this is dropped instead, they end without sending
/// anything.
pub struct Prepared {
    pub(super) backend: &'static str,
    pub(super) descriptors: Option<Shortage>,
    pub(super) gate: Arc<Gate>,
    pub(super) control: Arc<Control>,
    pub(super) links: Vec<Arc<WorkerLink>>,
    /// The workers that have not been joined.
    pub(super) workers: Vec<Option<JoinHandle<Option<Worked>>>>,
    /// Watches the target and the machine during the run.
    pub(super) sight: Option<Sight>,
    /// Samples sockets during the run.
    pub(super) sockets: Option<SocketWatcher>,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.gate.open(None);
    }
}

impl Prepared {
    /// Releases the workers at the start, watches them until the last has ended, and adds up.
    pub fn run(mut self, plan: &Plan, start: Instant, interrupt: &Interrupt, observer: &mut dyn Observer) -> Outcome {
        // A run of `-n` waits for its target; `--once` does not. Waiting helps neither with a bad certificate nor with
        // a wrong password.
        let is_compat = plan.dialect.is_compat();
        let waits = plan.stop.requests.is_some() && !plan.once;
        let is_patient = |collector: &Collector| is_compat || (waits && !collector.is_hopeless());
        let mut collector = Collector::new(self.links.clone());
        collector.stop_rule = StopRule::of(plan);
        collector.timeline = Timeline::new(nanos(observer.row()));
        let mut ends: Vec<Option<WorkerEnd>> = self.workers.iter().map(|_| None).collect();
        let (mut interrupted, mut refused, mut has_told, mut shown_at) = (false, false, false, Duration::ZERO);
        let (mut stopped_at, mut overdue) = (None, Overdue::default());
        // A clock set before 1970 must not prevent the run.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at = now + start.saturating_duration_since(Instant::now()) + plan.warmup;
        let suspended_before_ns = suspended_ns();
        self.release(start);
        let stuck = loop {
            let due = self.due(plan, stopped_at);
            if let Some(stuck) = self.ended(overdue.since(due, start.elapsed())) {
                break stuck;
            }
            self.see(plan, start, observer);
            collector.collect();
            self.join_ended(&mut ends, &mut collector);
            std::iter::from_fn(|| collector.finished()).for_each(|second| observer.second(&second));
            interrupted |= interrupt.is_asked();
            refused |= collector.all_refused() && !is_patient(&collector);
            if interrupted || refused || collector.stop_rule.as_ref().is_some_and(StopRule::is_reached) {
                self.control.stop();
            } else if let Some(waiting) = Waiting::of(plan, &collector).filter(|_| !has_told) {
                has_told = true;
                observer.waiting(&waiting);
            }
            if self.control.is_stopped() {
                stopped_at.get_or_insert(start.elapsed());
            }
            if start.elapsed() >= shown_at + SHOW {
                shown_at = start.elapsed();
                observer.progress(&collector.progress(shown_at, plan.warmup));
            }
            thread::park_timeout(WATCH);
        };
        collector.collect();
        self.join_ended(&mut ends, &mut collector);
        refused |= collector.all_refused() && !is_patient(&collector);
        let mut outcome = Outcome::new(self.backend, self.descriptors, started_at + self.delay());
        outcome.seen = self.sight.take().map(Sight::end);
        outcome.watched = self.sockets.take().map(|sockets| sockets.end(start + plan.warmup + self.delay(), observer));
        outcome.suspended = suspended(suspended_before_ns, suspended_ns());
        for (index, end) in ends.into_iter().enumerate() {
            match end {
                Some(end) => outcome.add(end, refused),
                None => outcome.lose(plan, index, stuck[index], start.elapsed()),
            }
        }
        // A thread that never returned may have handed over after the time at which it should have ended.
        outcome.elapsed = outcome.elapsed.max(Duration::from_nanos(collector.totals.until_ns));
        let elapsed_ns = nanos(outcome.elapsed);
        if !matches!(outcome.ended, Ended::Refused { .. }) {
            std::iter::from_fn(|| collector.rest(elapsed_ns)).for_each(|second| observer.second(&second));
        }
        outcome.take_over(collector, plan);
        if interrupted {
            outcome.ended = Ended::Signal;
        } else if outcome.ended == Ended::Duration && outcome.all_requests_ended(plan) {
            outcome.ended = Ended::Requests;
        }
        outcome
    }

    /// Releases the workers and the watchers at the start.
    fn release(&mut self, start: Instant) {
        self.gate.open(Some(start));
        self.sockets.iter_mut().for_each(|sockets| sockets.start(start));
    }

    /// Tells the watcher of the target when counting begins, and the observer what was sampled.
    fn see(&mut self, plan: &Plan, start: Instant, observer: &mut dyn Observer) {
        let begins = plan.warmup + self.delay();
        if let Some(sight) = &mut self.sight {
            sight.count_from(begins, start.elapsed());
        }
        if let Some(sockets) = &mut self.sockets {
            sockets.tell(start + begins, observer);
        }
    }

    /// Joins the workers that have ended since the last call; one that panicked leaves nothing.
    fn join_ended(&mut self, ends: &mut [Option<WorkerEnd>], collector: &mut Collector) {
        for (index, worker) in self.workers.iter_mut().enumerate() {
            let Some(worker) = worker.take_if(|worker| worker.is_finished()) else { continue };
            let Ok(Some(Ok(end))) = worker.join() else { continue };
            collector.end(index, &end.interval);
            ends[index] = Some(end);
        }
    }

    /// Returns a value once every worker has ended or is stuck in its script and overdue: for each, the callback that
    /// it is stuck in, if it is.
    fn ended(&self, overdue_since: Option<Duration>) -> Option<Vec<Option<Stuck>>> {
        let look = |worker: &Option<JoinHandle<_>>, link: &WorkerLink| match worker {
            Some(worker) if !worker.is_finished() => {
                Some(Some(Stuck { callback: link.callback().name()?, since: overdue_since? }))
            }
            Some(_) | None => Some(None),
        };
        self.workers.iter().zip(&self.links).map(|(worker, link)| look(worker, link)).collect()
    }

    /// When the workers should end, after the start; `None`: when all requests have ended.
    fn due(&self, plan: &Plan, stopped_at: Option<Duration>) -> Option<Duration> {
        let planned = plan.stop.duration.map(|duration| plan.warmup + self.delay() + duration);
        planned.into_iter().chain(stopped_at).min()
    }

    /// How much later than planned measuring began.
    fn delay(&self) -> Duration {
        self.links.iter().map(|link| link.delay()).max().unwrap_or_default()
    }
}

/// For how long the machine was suspended between two [readings](suspended_ns).
fn suspended(before_ns: i64, after_ns: i64) -> Duration {
    let passed = Duration::from_nanos(u64::try_from(after_ns - before_ns).unwrap_or_default());
    // A thread that loses the processor in the middle of a reading reads a little too much.
    if passed >= SUSPENDED_MIN { passed } else { Duration::ZERO }
}

/// How long the watcher has waited for workers that should have ended.
#[derive(Debug, Default)]
struct Overdue {
    looked_at: Duration,
    waited: Duration,
}

impl Overdue {
    /// Adds the time since the last call; returns when the workers were due to end if that is too long ago. Between two
    /// calls that are far apart the process was stopped: that time does not count.
    fn since(&mut self, due: Option<Duration>, now: Duration) -> Option<Duration> {
        let passed = now.saturating_sub(self.looked_at).min(2 * WATCH);
        self.looked_at = now;
        let due = due.filter(|&due| now >= due)?;
        self.waited += passed;
        (self.waited >= PATIENCE_WITH_SCRIPTS).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspended_is_what_the_clock_that_goes_on_has_gained_on_the_one_that_stands_still() {
        // The machine may have been suspended before the run as well, and a time namespace may set either clock back.
        for before_ns in [0, 86_400_000_000_000, -100_000_000_000] {
            assert_eq!(suspended(before_ns, before_ns), Duration::ZERO);
            assert_eq!(suspended(before_ns, before_ns + 40_000), Duration::ZERO, "a little time between two clocks");
            assert_eq!(suspended(before_ns + 40_000, before_ns), Duration::ZERO);
            assert_eq!(suspended(before_ns, before_ns + 12_300_000_000), Duration::from_millis(12_300));
        }
        let awake = suspended_ns();
        assert_eq!(suspended(awake, suspended_ns()), Duration::ZERO);
    }

    #[test]
    fn nobody_is_overdue_because_the_process_was_stopped() {
        let ms = Duration::from_millis;
        let mut overdue = Overdue::default();
        let looks = |overdue: &mut Overdue, from: u64, until: u64| {
            (from..until).step_by(20).find_map(|now| overdue.since(Some(ms(1_000)), ms(now)))
        };
        assert_eq!(looks(&mut overdue, 0, 1_900), None);
        assert_eq!(looks(&mut overdue, 60_000, 60_040), None, "stopped for a minute");
        assert_eq!(looks(&mut overdue, 60_040, 62_000), Some(ms(1_000)));
        assert_eq!(Overdue::default().since(None, ms(90_000)), None);
    }
}
