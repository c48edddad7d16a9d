//! `kubectl`, which knows the cluster and our account there.

use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{anyhow, bail};
use onrush_text::{escape, reason};
use serde_json::Value;

use crate::run;

/// The most that it may print and say, in bytes: nobody has larger results or objects.
const OUTPUT_MAX: u64 = 256 << 20;
const SAID_MAX: u64 = 64 << 10;
/// Time for its output to arrive after its end: a process that it started may still hold the pipe.
const SAYING: Duration = Duration::from_secs(1);

/// Where it is called from.
#[derive(Debug)]
pub(super) struct Kubectl {
    namespace: Option<String>,
}

impl Kubectl {
    /// A `kubectl` for this namespace; `None`: its own default.
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

    /// Its output.
    ///
    /// # Errors
    ///
    /// Its error message, or too much output.
    pub fn output(&self, words: &[&str]) -> anyhow::Result<Vec<u8>> {
        let mut call = self.start(words)?;
        let mut printed = Vec::new();
        call.printed.by_ref().take(OUTPUT_MAX + 1).read_to_end(&mut printed)?;
        if printed.len() as u64 > OUTPUT_MAX {
            bail!("kubectl {}: it printed more than {} MiB", call.name, OUTPUT_MAX >> 20);
        }
        call.end().map(|()| printed)
    }

    /// The objects in its output.
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

    /// Starts it, to read its output.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn start(&self, words: &[&str]) -> anyhow::Result<KubectlProcess> {
        let mut command = self.command(words);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| missing(&error))?;
        let printed = child.stdout.take().map(BufReader::new).expect("it is a pipe");
        let mut stderr = child.stderr.take().expect("it is a pipe");
        let (tell, said) = mpsc::channel();
        run::beside("kubectl", move || {
            let mut beginning = Vec::new();
            let _ = stderr.by_ref().take(SAID_MAX).read_to_end(&mut beginning);
            // Nobody waits for further output.
            let _ = io::copy(&mut stderr, &mut io::sink());
            let _ = tell.send(beginning);
        })?;
        Ok(KubectlProcess { name: words.first().copied().unwrap_or_default().to_owned(), child, printed, said })
    }
}

/// A call of it, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct KubectlProcess {
    name: String,
    child: Child,
    /// Its output.
    pub printed: BufReader<ChildStdout>,
    /// Its standard error, once it has ended.
    said: Receiver<Vec<u8>>,
}

impl KubectlProcess {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// Its error message.
    pub fn end(mut self) -> anyhow::Result<()> {
        if self.child.wait()?.success() {
            return Ok(());
        }
        let said = self.said.recv_timeout(SAYING).unwrap_or_default();
        // Without a cluster it repeats itself; the last line is for people.
        let said = String::from_utf8_lossy(&said);
        let said = escape(said.trim().lines().last().unwrap_or_default().as_bytes());
        // The message names the right, and its owner.
        let rights = if said.contains("orbidden") {
            "; docs/kubernetes.md has a Role with the rights that it needs"
        } else {
            ""
        };
        bail!("kubectl {}: {said}{rights}", self.name)
    }
}

impl Drop for KubectlProcess {
    fn drop(&mut self) {
        // It has ended, or nobody reads it any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn missing(error: &io::Error) -> anyhow::Error {
    anyhow!("kubectl cannot be called: {}; install it, and let it know the cluster", reason(error))
}
