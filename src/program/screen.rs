//! Standard output and standard error, as a run uses them: what cannot be written is remembered, and stops nothing.

use std::fs::File;
use std::io::{self, IsTerminal, Write};

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdout, stderr, stdout};

use crate::script;

/// Where the report goes.
pub struct Screen {
    /// Standard output; `None` where there is none.
    out: Option<File>,
    /// The first thing that went wrong with it.
    failure: Option<io::Error>,
}

impl Screen {
    /// Standard output as it is. `is_ours`: nothing else may come there, so that what a script prints, or what it starts,
    /// goes to standard error.
    pub fn open(is_ours: bool) -> Self {
        // Above the standard streams, so that it takes the place of none.
        let out = fcntl_dupfd_cloexec(stdout(), 3).map(File::from);
        if is_ours {
            // Without a standard error it has nowhere to go.
            let _ = dup2_stdout(stderr());
        }
        match out {
            Ok(out) => Self { out: Some(out), failure: None },
            Err(errno) => Self { out: None, failure: Some(errno.into()) },
        }
    }

    /// Writes text, behind what a script has printed. After a failure nothing more is written.
    pub fn print(&mut self, text: &str) {
        script::flush();
        if let Some(out) = self.out.as_mut().filter(|_| self.failure.is_none()) {
            self.failure = out.write_all(text.as_bytes()).err();
        }
    }

    /// Whether whoever reads has had enough.
    pub fn is_unheard(&self) -> bool {
        self.failure.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What went wrong. That the reader has gone is nothing: whoever read the output has seen enough.
    pub fn failure(self) -> Option<io::Error> {
        self.failure.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }
}

/// Writes a line to standard error; if that is closed there is nobody to tell.
pub fn say(line: &str) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Whether what goes to standard error may have colours.
pub fn has_colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
