//! Standard output and standard error during a run. A failed write is remembered, and does not stop the run.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anyhow::anyhow;
use onrush_plan::secrets::{self, KnownSecrets};
use onrush_text::error_reason;
use onrush_text::escape_controls_in_lines;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdout, stderr, stdout};

use super::exit::EXIT_WRONG;
use crate::script;

/// Standard output, where the report goes.
pub struct Screen {
    /// Standard output; `None` if closed.
    out: Option<File>,
    /// Why standard output is unavailable: an error once there is something to write.
    missing: Option<io::Error>,
    failure: Option<io::Error>,
}

impl Screen {
    /// Opens standard output. `is_ours` reserves it: whatever a script and its commands print goes to standard error.
    pub fn open(is_ours: bool) -> Self {
        // A descriptor of 3 or above does not become one of the standard streams.
        let out = fcntl_dupfd_cloexec(stdout(), 3).map(File::from);
        if is_ours {
            // If standard error is closed, the script's output stays on standard output.
            let _ = dup2_stdout(stderr());
        }
        match out {
            Ok(out) => Self { out: Some(out), missing: None, failure: None },
            Err(errno) => Self { out: None, missing: Some(errno.into()), failure: None },
        }
    }

    /// Writes text, after flushing what a script has printed. Writes nothing more after a failure.
    pub fn print(&mut self, text: &str) {
        script::flush_output();
        if !text.is_empty() && self.failure.is_none() {
            self.failure = self.missing.take();
        }
        if let Some(out) = self.out.as_mut().filter(|_| self.failure.is_none()) {
            self.failure = out.write_all(text.as_bytes()).err();
        }
    }

    /// True if the reader has closed the pipe.
    pub fn has_lost_reader(&self) -> bool {
        self.failure.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Message about the first failed write; `what` names the text. `None` without a failure, and for a closed pipe,
    /// whose reader has seen enough.
    pub fn failure(self, what: &str) -> Option<String> {
        let failure = self.failure.filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        failure.map(|error| format!("cannot write {what} to standard output: {}", error_reason(&error)))
    }
}

/// Prints the output of a command and returns `exit`, or prints the error and returns [`EXIT_WRONG`]. `speaker`: the
/// command's name, which precedes an error.
pub fn print(speaker: &str, text: anyhow::Result<String>, exit: u8) -> u8 {
    let mut screen = Screen::open(false);
    let printed = text.and_then(|text| {
        screen.print(&text);
        screen.failure("the result").map_or(Ok(()), |failure| Err(anyhow!(failure)))
    });
    printed.map_or_else(
        |error| {
            say(&format!("{speaker}: {error:#}"));
            EXIT_WRONG
        },
        |()| exit,
    )
}

/// Like [`print()`], with notes after the text, on standard error. Returns 0 unless there was an error.
pub fn print_noted(speaker: &str, printed: anyhow::Result<(String, Vec<String>)>) -> u8 {
    let (text, notes) = match printed {
        Ok((text, notes)) => (Ok(text), notes),
        Err(error) => (Err(error), Vec::new()),
    };
    let exit = print(speaker, text, 0);
    notes.iter().for_each(|line| say(line));
    exit
}

/// Secrets that no line may contain. Global, because any part of the process may print a message.
static HIDDEN: OnceLock<KnownSecrets> = OnceLock::new();

/// Hides these secrets in every later line of [`say`]. Only the first call has an effect.
pub fn hide(known: KnownSecrets) {
    let _ = HIDDEN.set(known);
}

/// The text, with the secrets given to [`hide`] replaced.
pub fn hidden(text: &str) -> String {
    HIDDEN.get().map_or_else(|| text.to_owned(), |known| known.hide_in(text))
}

/// Writes a line to standard error, or nowhere if that is closed. Secrets are redacted, even in a misspelt file name. A
/// very long line is truncated. Control characters in names and messages are escaped, so that none moves the cursor.
pub fn say(line: &str) {
    let line = escape_controls_in_lines(&truncate_lines(&secrets::users(&hidden(line))));
    let _ = io::stderr().lock().write_all((line + "\n").as_bytes());
}

/// Writes lines to standard error unchanged, or nowhere if that is closed.
pub fn say_lines(lines: &str) {
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

/// Maximum length of a line on standard error, in bytes: several screens. Only lines with names or messages from
/// elsewhere are longer.
const LINE_MAX: usize = 4096;

/// Truncates long lines.
fn truncate_lines(lines: &str) -> String {
    let one = |line: &str| {
        let end = (0..=LINE_MAX.min(line.len())).rfind(|&at| line.is_char_boundary(at)).unwrap_or(0);
        let left_out = line.len() - end;
        if left_out == 0 { line.to_owned() } else { format!("{}… ({left_out} bytes are left out)", &line[..end]) }
    };
    lines.split('\n').map(one).collect::<Vec<_>>().join("\n")
}

/// True if output on standard error may be coloured.
pub fn has_colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_counted() {
        let fits = "a".repeat(LINE_MAX);
        assert_eq!(truncate_lines(&format!("{fits}\nb")), format!("{fits}\nb"));
        assert_eq!(truncate_lines(&format!("{fits}bc\nd")), format!("{fits}… (2 bytes are left out)\nd"));
        let long = "ä".repeat(1 << 19);
        assert_eq!(
            truncate_lines(&long),
            format!("{}… ({} bytes are left out)", &long[..LINE_MAX], (1 << 20) - LINE_MAX)
        );
        assert!(truncate_lines(&format!("a{long}")).len() < LINE_MAX + 50, "no character is cut in two");
    }
}
