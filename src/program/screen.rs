//! Standard output and standard error during a run: a failed write is remembered and stops nothing.

use std::fs::File;
use std::io::{self, IsTerminal, Write};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdout, stderr, stdout};

use crate::script;

/// Where the report goes.
pub struct Screen {
    /// Standard output; `None` where there is none.
    out: Option<File>,
    /// The first error in writing to it.
    failure: Option<io::Error>,
}

impl Screen {
    /// Opens standard output. `is_ours`: nothing else may be written there, so that the output of a script, and of what
    /// it starts, goes to standard error.
    pub fn open(is_ours: bool) -> Self {
        // A descriptor of 3 or above, so that it does not become one of the standard streams.
        let out = fcntl_dupfd_cloexec(stdout(), 3).map(File::from);
        if is_ours {
            // Without a standard error, the script's output stays where it is.
            let _ = dup2_stdout(stderr());
        }
        match out {
            Ok(out) => Self { out: Some(out), failure: None },
            Err(errno) => Self { out: None, failure: Some(errno.into()) },
        }
    }

    /// Writes text, after what a script has printed. After a failure nothing more is written.
    pub fn print(&mut self, text: &str) {
        script::flush();
        if let Some(out) = self.out.as_mut().filter(|_| self.failure.is_none()) {
            self.failure = out.write_all(text.as_bytes()).err();
        }
    }

    /// Whether the reader has closed the pipe.
    pub fn is_unheard(&self) -> bool {
        self.failure.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The first error. A closed pipe is none: its reader has seen enough.
    pub fn failure(self) -> Option<io::Error> {
        self.failure.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }
}

/// Writes a line to standard error; if that is closed, the line is lost.
pub fn say(line: &str) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Whether output on standard error may have colours.
pub fn has_colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
