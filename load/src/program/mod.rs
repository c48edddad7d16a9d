//! The program around every command: its streams, its signals and its exit codes.

mod exit;
pub mod screen;
mod signals;

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::anyhow;
use onrush_engine::backend::memory;
use rustix::process::{Resource, getrlimit};

use crate::run::host::Cramped;
use crate::run::{self, NoBackend, NotStarted};
pub use exit::EXIT_WRONG;
pub use exit::{
    EXIT_BROKEN, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_NOT_STARTED, EXIT_NOTHING_COMPLETED, EXIT_OUR_FAULT, ORDER,
    SEARCH_ORDER, highest_precedence,
};
pub use screen::{Screen, print, print_noted, say};
pub use signals::{Signals, end_after, leave};

/// Runs `work` if `space` says that there is memory for it, or else prints why not. With a script, `work` runs in a
/// thread with a larger stack, because a script's recursion may overflow the main thread's.
pub fn with_stack(has_script: bool, space: Result<(), Cramped>, work: impl FnOnce() -> u8 + Send) -> u8 {
    let done = space
        .map_err(NotStarted::AddressSpace)
        .and_then(|()| if has_script { run::run_on_large_stack(work) } else { Ok(work()) });
    done.unwrap_or_else(|error| {
        say(&format!("onrush: {error}"));
        EXIT_NOT_STARTED
    })
}

/// Prepares the process: large freed blocks return to the system, threads share one heap under an address-space
/// limit, and file-size limits do not kill the process. Call before the first thread is created.
pub fn prepare() {
    memory::return_large_pieces();
    if getrlimit(Resource::As).current.is_some() {
        memory::share_heap();
    }
    signals::outlive_file_limits();
}

/// Runs `work`, which any signal ends at once. Returns the exit code.
pub fn until_signal(work: impl FnOnce(&Signals) -> u8) -> u8 {
    match Signals::listen(&[]) {
        Ok(signals) => signals.interrupt.run_blocking(|| {
            // The signal arrived just before.
            if signals.interrupt.is_requested() { EXIT_INTERRUPTED } else { work(&signals) }
        }),
        Err(error) => {
            say(&format!("onrush: {error:#}"));
            code_of(&error)
        }
    }
}

/// Exit code of an error that prevented a run.
pub fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<NotStarted>() || error.is::<NoBackend>() { EXIT_NOT_STARTED } else { EXIT_WRONG }
}

/// Runs `work` and turns a panic into an error, so that the remaining steps are taken. The panic hook has printed the
/// panic.
pub fn guard<T>(work: impl FnOnce() -> T) -> anyhow::Result<T> {
    let words = "part of the output is missing because of the bug named above";
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| anyhow!(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_are_named_once() {
        // The panic hook has printed the panic.
        let error = guard(|| panic!("on purpose")).err().unwrap().to_string();
        assert!(error.contains("the bug named above") && !error.contains("on purpose"), "{error}");
    }
}
