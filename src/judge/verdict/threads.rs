//! The threads of onrush in words: how busy they were, and the reason of their waits.

use super::words::percent;
use crate::record::evidence::{Evidence, Thread};

/// A thread or a target counts as busy from this share of the time.
pub(super) const BUSY: f64 = 0.9;
/// A thread that is less busy than this leaves requests no time to queue in it.
pub(super) const UNDOUBTED: f64 = 0.75;
/// A wait for a processor is worth a word from this share of a thread's time.
const WAITED_FOR: f64 = 0.05;

/// True if a thread waited for a processor for a time that is worth a word.
pub(super) fn waits(thread: &Thread) -> bool {
    thread.queued.is_some_and(|queued| queued >= WAITED_FOR)
}

/// How much a thread worked, and how long it waited for a processor if that is worth a word, or made it busy.
pub(super) fn how_busy(thread: &Thread) -> String {
    let is_why = |limit: f64| thread.busy >= limit && thread.worked() < limit;
    let tells = is_why(BUSY) || is_why(UNDOUBTED);
    let queued = thread.queued.filter(|queued| *queued >= WAITED_FOR || tells);
    let waiting = queued.map_or(String::new(), |queued| format!(", {} waiting for a processor", percent(queued)));
    format!("{} busy{waiting}", percent(thread.worked()))
}

/// Describes the threads that match, if any, with the figures of the first.
pub(super) fn busy_threads(
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

/// How busy the generator was meanwhile.
pub(super) fn meanwhile(evidence: &Evidence) -> String {
    busiest(evidence).map_or(String::new(), |thread| format!("; onrush's busiest thread was {}", how_busy(thread)))
}

/// Its busiest thread; none in virtual time.
pub(super) fn busiest(Evidence { generator, .. }: &Evidence) -> Option<&Thread> {
    generator.threads.iter().max_by(|one, other| one.busy.total_cmp(&other.busy))
}
