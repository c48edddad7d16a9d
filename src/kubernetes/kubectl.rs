//! Calls `kubectl`, which is configured for the cluster and the user's account.

use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{anyhow, bail};
use onrush_load::run;
use onrush_text::{error_reason, escape};
use serde_json::Value;

/// Maximum size of a call's output in bytes: far more than any result or object has.
const OUTPUT_MAX: u64 = 256 << 20;
const SAID_MAX: u64 = 64 << 10;
/// Time to wait for the error message after the process has ended. A child of that process may
/// still hold the pipe.
const SAYING: Duration = Duration::from_secs(1);

/// Calls `kubectl` for one namespace.
#[derive(Debug)]
pub(super) struct Kubectl {
    namespace: Option<String>,
}

impl Kubectl {
    /// Calls for this namespace, or for the default one.
    pub fn new(namespace: Option<String>) -> Self {
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

    /// Runs `kubectl` and returns its standard output.
    ///
    /// # Errors
    ///
    /// Fails if `kubectl` cannot be started, with its error message, or if the output is too long.
    pub fn output(&self, words: &[&str]) -> anyhow::Result<Vec<u8>> {
        let mut call = self.start(words)?;
        let mut printed = Vec::new();
        call.printed.by_ref().take(OUTPUT_MAX + 1).read_to_end(&mut printed)?;
        if printed.len() as u64 > OUTPUT_MAX {
            bail!("kubectl {}: more than {} MiB of output", call.name, OUTPUT_MAX >> 20);
        }
        call.end().map(|()| printed)
    }

    /// Runs `kubectl` and parses the objects in its output.
    ///
    /// # Errors
    ///
    /// As for [`Self::output`].
    pub fn query_objects(&self, words: &[&str]) -> anyhow::Result<Vec<Value>> {
        let text = self.output(&[words, &["-o", "json"]].concat())?;
        let mut list: Value = serde_json::from_slice(&text).map_err(|_| anyhow!("kubectl printed no objects"))?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => vec![list],
        })
    }

    /// Starts `kubectl` and returns the process, whose output can be read.
    ///
    /// # Errors
    ///
    /// Fails if `kubectl` cannot be started.
    pub fn start(&self, words: &[&str]) -> anyhow::Result<KubectlProcess> {
        let mut command = self.command(words);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| missing_kubectl(&error))?;
        let printed = child.stdout.take().map(BufReader::new).expect("it is a pipe");
        let mut stderr = child.stderr.take().expect("it is a pipe");
        let (tell, said) = mpsc::channel();
        run::spawn_detached("kubectl", move || {
            let mut beginning = Vec::new();
            let _ = stderr.by_ref().take(SAID_MAX).read_to_end(&mut beginning);
            // Nobody reads further output.
            let _ = io::copy(&mut stderr, &mut io::sink());
            let _ = tell.send(beginning);
        })?;
        Ok(KubectlProcess { name: words.first().copied().unwrap_or_default().to_owned(), child, printed, said })
    }
}

/// A running `kubectl`, which is killed on drop.
#[derive(Debug)]
pub(super) struct KubectlProcess {
    name: String,
    child: Child,
    /// The standard output of the process.
    pub printed: BufReader<ChildStdout>,
    /// Receives all of standard error, once the process has ended.
    said: Receiver<Vec<u8>>,
}

impl KubectlProcess {
    /// Waits until the process has ended.
    ///
    /// # Errors
    ///
    /// Fails with the error message of `kubectl`.
    pub fn end(mut self) -> anyhow::Result<()> {
        if self.child.wait()?.success() {
            return Ok(());
        }
        let said = self.said.recv_timeout(SAYING).unwrap_or_default();
        // Without a cluster, `kubectl` repeats its message. Only the last line is shown.
        let said = String::from_utf8_lossy(&said);
        let said = escape(said.trim().lines().last().unwrap_or_default().as_bytes());
        // The message names the right that is missing, and the account.
        let rights =
            if said.contains("orbidden") { "; docs/kubernetes.md has a Role with the required rights" } else { "" };
        bail!("kubectl {}: {said}{rights}", self.name)
    }
}

impl Drop for KubectlProcess {
    fn drop(&mut self) {
        // Either the process has ended, or nobody reads its output any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn missing_kubectl(error: &io::Error) -> anyhow::Error {
    anyhow!("cannot run kubectl: {}; install kubectl, and configure access to the cluster", error_reason(error))
}
