//! Descriptions of onrush's threads: their utilization and the reason for their waits.

use super::words::format_percent;
use crate::record::evidence::{Evidence, Thread};

/// A thread or a target counts as busy if it works for at least this share of the time.
pub(super) const BUSY: f64 = 0.9;
/// In a thread that is less busy than this, requests have no reason to queue.
pub(super) const UNDOUBTED: f64 = 0.75;
/// Waits for a processor are mentioned if they take at least this share of a thread's time.
const WAITED_FOR: f64 = 0.05;

/// True if a thread's waits for a processor are worth mentioning.
pub(super) fn waits_notably(thread: &Thread) -> bool {
    thread.queued.is_some_and(|queued| queued >= WAITED_FOR)
}

/// A thread's utilization, with its wait for a processor if notable or if it made the thread busy.
pub(super) fn describe_utilization(thread: &Thread) -> String {
    let is_why = |limit: f64| thread.busy >= limit && thread.worked() < limit;
    let tells = is_why(BUSY) || is_why(UNDOUBTED);
    let queued = thread.queued.filter(|queued| *queued >= WAITED_FOR || tells);
    let waiting =
        queued.map_or(String::new(), |queued| format!(", {} waiting for a processor", format_percent(queued)));
    format!("{} busy{waiting}", format_percent(thread.worked()))
}

/// Describes the matching threads by the figures of the first; `None` if no thread matches.
pub(super) fn describe_busy_threads(
    evidence: &Evidence,
    is_busy: impl Fn(&Thread) -> bool,
    say: impl Fn(&Thread) -> String,
) -> Option<String> {
    let threads = &evidence.generator.threads;
    let busy: Vec<&Thread> = threads.iter().filter(|thread| is_busy(thread)).collect();
    let words = say(busy.first()?);
    Some(match (busy.len(), threads.len()) {
        (1, 1) => format!("its only thread was {words}"),
        (2, 2) => format!("both threads were {words}"),
        (all, of) if all == of => format!("all {all} threads were {words}"),
        (1, of) => format!("1 of {of} threads was {words}"),
        (some, of) => format!("{some} of {of} threads were {words}"),
    })
}

/// A clause on the generator's utilization during the run.
pub(super) fn generator_utilization_clause(evidence: &Evidence) -> String {
    busiest_thread(evidence)
        .map_or(String::new(), |thread| format!("; onrush's busiest thread was {}", describe_utilization(thread)))
}

/// The busiest thread; `None` in virtual time.
pub(super) fn busiest_thread(Evidence { generator, .. }: &Evidence) -> Option<&Thread> {
    generator.threads.iter().max_by(|one, other| one.busy.total_cmp(&other.busy))
}
