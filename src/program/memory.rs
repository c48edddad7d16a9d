//! The end of a program that gets no more memory, and of one with a bug. Neither sentence needs new memory.

use std::fmt::{self, Arguments, Display};
use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use onrush_engine::backend::memory;
use rustix::process::{Resource, getrlimit};
use rustix::thread::gettid;

use super::exit::EXIT_NOT_STARTED;
use super::say;
use crate::sysctl;

/// The id of the thread that is ending the program; 0: none.
static ENDING: AtomicI32 = AtomicI32::new(0);
/// Whether the program carries out runs.
static RUNS: AtomicBool = AtomicBool::new(false);
/// The longest sentence, in bytes.
const LINE_BYTES: usize = 512;

/// Has no more memory in use than is needed, and prepares for a limit on address space, if there is one. Must be called
/// before the first thread is created.
pub fn prepare() {
    memory::return_large_pieces();
    if getrlimit(Resource::As).current.is_some() {
        memory::share_heap();
    }
}

/// Notes that the program carries out runs, so that the sentence advises on their load.
pub(super) fn expect_runs() {
    RUNS.store(true, Ordering::Relaxed);
}

/// Ends the program because so many bytes were refused, and a run has no reserve left to end in order.
pub fn give_up(bytes: usize) -> ! {
    end(format_args!("{bytes} more bytes were refused"))
}

/// Says what a panic was. The standard library panics where a new thread gets no memory for its signal stack.
pub fn panicked(panic: &PanicHookInfo<'_>) {
    if panic.payload().downcast_ref::<String>().is_some_and(|words| words.starts_with(NO_SIGNAL_STACK)) {
        end(format_args!("the stack of a thread was refused"));
    }
    say(&format!("onrush: a bug in onrush, please report it: {panic}"));
}

/// How the standard library begins that sentence.
const NO_SIGNAL_STACK: &str = "failed to allocate an alternative stack";

fn end(what: Arguments<'_>) -> ! {
    let me = gettid().as_raw_nonzero().get();
    match ENDING.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {}
        // The sentence itself got no memory.
        Err(ending) if ending == me => memory::exit_at_once(EXIT_NOT_STARTED),
        // Another thread is saying so, and ends this one, too.
        Err(_) => loop {
            thread::sleep(Duration::from_secs(1));
        },
    }
    let mut line = [0; LINE_BYTES];
    let mut rest = &mut line[..];
    // A sentence that were longer would be cut off.
    let sentence = Sentence {
        what,
        limit: getrlimit(Resource::As).current,
        has_runs: RUNS.load(Ordering::Relaxed),
        is_changed: sysctl::any_changed(),
    };
    let _ = writeln!(rest, "onrush: {sentence}");
    let length = LINE_BYTES - rest.len();
    // Past the locks of the standard library, which this thread may hold. If standard error is closed, the line is lost.
    let _ = rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stderr(), &line[..length]));
    memory::exit_at_once(EXIT_NOT_STARTED)
}

/// What happened, and what to do about it.
struct Sentence<'a> {
    what: Arguments<'a>,
    /// How many bytes of address space the process may have, if that is limited.
    limit: Option<u64>,
    /// Whether the program carries out runs, whose load could be lower.
    has_runs: bool,
    /// Whether settings of the kernel are still changed.
    is_changed: bool,
}

impl Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: {}; ", self.what)?;
        if let Some(bytes) = self.limit {
            write!(f, "the limit is {} KiB of address space: raise it with 'ulimit -v'", bytes / 1024)?;
        }
        f.write_str(match (self.limit.is_some(), self.has_runs) {
            (true, true) => ", or try fewer threads (-t), connections (-c) and, over HTTP/2, --streams",
            (false, true) => "try fewer threads (-t), connections (-c) and, over HTTP/2, --streams",
            (true, false) => "",
            (false, false) => "free some memory and try again",
        })?;
        f.write_str(if self.is_changed { "; kernel settings are still changed: run onrush restore" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_what_helps_here() {
        let bytes = 4096;
        let said = |limit, has_runs, is_changed| {
            let what = format_args!("{bytes} more bytes were refused");
            format!("onrush: {}", Sentence { what, limit, has_runs, is_changed })
        };
        let begin = "onrush: out of memory: 4096 more bytes were refused; ";
        let (fewer, limit) =
            ("try fewer threads (-t), connections (-c) and, over HTTP/2, --streams", Some(200_000 << 10));
        let raise = "the limit is 200000 KiB of address space: raise it with 'ulimit -v'";
        assert_eq!(said(None, true, false), format!("{begin}{fewer}"));
        assert_eq!(said(limit, true, false), format!("{begin}{raise}, or {fewer}"));
        // Merging and serving have no such options.
        assert_eq!(said(limit, false, false), format!("{begin}{raise}"));
        assert_eq!(said(None, false, false), format!("{begin}free some memory and try again"));
        let restore = "; kernel settings are still changed: run onrush restore";
        assert_eq!(said(limit, true, true), format!("{begin}{raise}, or {fewer}{restore}"));
        assert!(said(Some(u64::MAX), true, true).len() < LINE_BYTES - 32);
    }
}
