//! Tracks the script function running before or after the run, to report slow ones.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The current function of a script, shared with a watching thread until dropped.
#[derive(Debug, Default)]
pub struct ScriptPhase(Arc<SharedPhase>);

/// The watching thread's view of the phase.
#[derive(Clone, Debug)]
pub struct PhaseWatch(Arc<SharedPhase>);

#[derive(Debug, Default)]
struct SharedPhase {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// The current function and the time of its call; `None` between calls.
    function: Option<(&'static str, Instant)>,
    is_over: bool,
}

impl ScriptPhase {
    /// A view of the phase for the watching thread.
    pub fn watch(&self) -> PhaseWatch {
        PhaseWatch(Arc::clone(&self.0))
    }

    /// Makes a call, during which this function is the current one.
    pub fn track_call<T>(&self, function: &'static str, call: impl FnOnce() -> T) -> T {
        self.0.change_state(|now| now.function = Some((function, Instant::now())));
        let outcome = call();
        self.0.change_state(|now| now.function = None);
        outcome
    }
}

impl Drop for ScriptPhase {
    fn drop(&mut self) {
        self.0.change_state(|now| now.is_over = true);
    }
}

impl PhaseWatch {
    /// Calls `name` with the name of each function that takes this long, while it is still running; only once for
    /// several calls in a row. Returns when the phase is dropped.
    pub fn report_long_calls(&self, long: Duration, mut name: impl FnMut(&'static str)) {
        let mut named = None;
        let mut now = self.0.lock();
        while !now.is_over {
            now = match now.function.filter(|function| named != Some(*function)) {
                None => self.0.changed.wait(now).unwrap_or_else(PoisonError::into_inner),
                Some((_, since)) if since.elapsed() < long => {
                    let left = long.saturating_sub(since.elapsed());
                    self.0.changed.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0
                }
                Some((function, since)) => {
                    named = Some((function, since));
                    name(function);
                    now
                }
            };
        }
    }
}

impl SharedPhase {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_state(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn long_calls_are_reported_once() {
        let (phase, (sender, named)) = (ScriptPhase::default(), mpsc::channel());
        let watch = phase.watch();
        let watching = thread::spawn(move || {
            watch
                .report_long_calls(Duration::from_millis(50), |function| sender.send(function).expect("it is awaited"));
        });
        phase.track_call("setup()", || ());
        phase.track_call("init()", || assert_eq!(named.recv(), Ok("init()")));
        phase.track_call("init()", || {
            assert_eq!(named.recv(), Ok("init()"));
            thread::sleep(Duration::from_millis(150));
        });
        drop(phase);
        watching.join().unwrap();
        assert_eq!(named.try_iter().count(), 0);
    }
}
