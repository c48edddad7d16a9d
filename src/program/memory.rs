//! The end of a program that gets no more memory, and of one with a bug. Neither sentence needs new memory.

use std::fmt::{self, Arguments, Display};
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{process, thread};

use rustix::process::{Resource, getrlimit};

use super::exit::EXIT_NOT_STARTED;
use super::say;
use crate::backend::memory;

/// Whether a thread is ending the program.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The longest sentence, in bytes.
const LINE_BYTES: usize = 512;

/// Prepares for a limit on address space, if there is one. Must be called before the first thread is created.
pub fn prepare() {
    if getrlimit(Resource::As).current.is_some() {
        memory::share_heap();
    }
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
    while IS_ENDING.swap(true, Ordering::Relaxed) {
        // Another thread is saying so, and ends this one, too.
        thread::sleep(Duration::from_secs(1));
    }
    let mut line = [0; LINE_BYTES];
    let mut rest = &mut line[..];
    // A sentence that were longer would be cut off.
    let _ = writeln!(rest, "onrush: {}", Sentence { what, limit: getrlimit(Resource::As).current });
    let length = LINE_BYTES - rest.len();
    // If standard error is closed, the line is lost.
    let _ = io::stderr().write_all(&line[..length]);
    process::exit(EXIT_NOT_STARTED.into())
}

/// What happened, and what to do about it.
struct Sentence<'a> {
    what: Arguments<'a>,
    /// How many bytes of address space the process may have, if that is limited.
    limit: Option<u64>,
}

impl Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: {}; ", self.what)?;
        if let Some(bytes) = self.limit {
            write!(f, "the limit is {} KiB of address space: raise it with 'ulimit -v', or try fewer ", bytes / 1024)?;
        } else {
            f.write_str("try fewer ")?;
        }
        f.write_str("threads (-t) and connections (-c)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_named_where_there_is_one() {
        let bytes = 4096;
        let said = |limit| Sentence { what: format_args!("{bytes} more bytes were refused"), limit }.to_string();
        assert_eq!(
            said(None),
            "out of memory: 4096 more bytes were refused; try fewer threads (-t) and connections (-c)"
        );
        let limited = said(Some(200_000 << 10));
        assert!(limited.contains("the limit is 200000 KiB of address space: raise it with 'ulimit -v', "), "{limited}");
        assert!(said(Some(u64::MAX)).len() < LINE_BYTES - 32);
    }
}
