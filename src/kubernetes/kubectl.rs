//! `kubectl`, which knows the cluster and who we are there.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{anyhow, bail};
use onrush_text::{escape, reason};
use serde_json::Value;

/// Where it is called from.
#[derive(Debug)]
pub(super) struct Kubectl {
    namespace: Option<String>,
}

impl Kubectl {
    /// The one that calls for a namespace.
    pub fn of(namespace: Option<String>) -> Self {
        Self { namespace }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        if let Some(namespace) = &self.namespace {
            command.args(["--namespace", namespace]);
        }
        command.args(words.iter().map(OsString::from)).stdin(Stdio::null());
        command
    }

    /// What it prints.
    ///
    /// # Errors
    ///
    /// What it says is wrong.
    pub fn output(&self, words: &[&str]) -> anyhow::Result<Vec<u8>> {
        let Output { status, stdout, stderr } = self.command(words).output().map_err(|error| missing(&error))?;
        if status.success() {
            return Ok(stdout);
        }
        // Without a cluster it repeats itself; the last line is for people.
        let said = String::from_utf8_lossy(&stderr);
        let said = escape(said.trim().lines().last().unwrap_or_default().as_bytes());
        // It says which right it is, and of whom.
        let rights =
            if said.contains("orbidden") { "; docs/machines.md has a Role with the rights that it needs" } else { "" };
        bail!("kubectl {}: {said}{rights}", words.first().copied().unwrap_or_default())
    }

    /// The objects that it prints.
    ///
    /// # Errors
    ///
    /// As for [`Self::output`].
    pub fn objects(&self, words: &[&str]) -> anyhow::Result<Vec<Value>> {
        let text = self.output(&[words, &["-o", "json"]].concat())?;
        let mut list: Value = serde_json::from_slice(&text).map_err(|_| anyhow!("kubectl printed no objects"))?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => vec![list],
        })
    }

    /// Starts it, to read what it prints.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn start(&self, words: &[&str]) -> anyhow::Result<Child> {
        self.command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|error| missing(&error))
    }
}

fn missing(error: &io::Error) -> anyhow::Error {
    anyhow!("kubectl cannot be called: {}; install it, and let it know the cluster", reason(error))
}
