//! Counts instructions or system calls of a program. Processor time differs from run to run by more than a careless
//! change costs; counts hardly differ.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::tools;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The instructions of all threads in user space.
    Instructions,
    /// The system calls of all threads.
    SystemCalls,
}

impl Counter {
    /// The program that counts it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Instructions => "valgrind",
            Self::SystemCalls => "strace",
        }
    }

    /// Why nothing can be counted here, if so.
    pub fn missing(self) -> Option<String> {
        (!tools::has(self.program())).then(|| format!("skipped: {} is not installed", self.program()))
    }

    /// Runs a program at the root of the repository and counts; the counter writes into `directory`.
    ///
    /// # Errors
    /// A program that cannot be started, fails or is not counted.
    pub fn count(self, program: &Path, arguments: &[impl AsRef<OsStr>], directory: &Path) -> io::Result<f64> {
        let summary = directory.join("system-calls");
        let mut command = Command::new(self.program());
        match self {
            Self::Instructions => command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]),
            Self::SystemCalls => command.args(["-f", "-c", "-o"]).arg(&summary),
        };
        let output = command.arg(program).args(arguments).current_dir(crate::root()).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let count = match self {
            Self::Instructions => collected(&text),
            Self::SystemCalls => total(&fs::read_to_string(&summary).unwrap_or_default()),
        };
        let count = count.filter(|_| output.status.success());
        count.ok_or_else(|| io::Error::other(format!("{} did not count: {}", self.program(), text.trim())))
    }
}

/// The number after `Collected :` in what callgrind prints.
fn collected(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse().ok()
}

/// The value of `calls` in the last line of strace's summary. Columns before it may be empty.
pub fn total(summary: &str) -> Option<f64> {
    let end = summary.lines().next()?.find(" calls")? + " calls".len();
    let line = summary.lines().find(|line| line.ends_with(" total"))?;
    line.get(..end)?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_number_is_read() {
        assert_eq!(collected("==7== \n==7== Events    : Ir\n==7== Collected : 387947\n"), Some(387_947.0));
        assert_eq!(collected("valgrind: no such program\n"), None);
    }

    #[test]
    fn straces_number_is_read_whatever_columns_are_empty() {
        let summary = |total: &str| {
            format!(
                "% time     seconds  usecs/call     calls    errors syscall\n\
                 ------ ----------- ----------- --------- --------- ----------------\n \
                 58.52    0.284070        4509        63        57 futex\n{total}\n"
            )
        };
        for line in [
            "100.00    0.485450          19     24883       162 total",
            "100.00    0.485450                 24883       162 total",
            "100.00    0.485450          19     24883           total",
        ] {
            assert_eq!(total(&summary(line)), Some(24_883.0), "{line}");
        }
        assert_eq!(total("strace: ptrace: not permitted\n"), None);
    }
}
