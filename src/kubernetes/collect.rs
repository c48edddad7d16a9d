//! `--collect`: follows the log of a run's coordinator, fetches the results, and returns the exit code of the run.

use std::fs::Permissions;
use std::io::{BufRead, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use flate2::read::GzDecoder;
use onrush_load::program::{EXIT_WRONG, Screen, say};
use onrush_plan::file_contents;
use onrush_text::{escape, escape_controls_in_lines};
use serde_json::Value;
use tempfile::Builder;

use super::kubectl::Kubectl;
use super::log::{LineMark, LogLine, ResultDigest, UnreadableLine};
use super::manifest::{Component, MARK, selector};

/// Poll interval for the state of a pod.
const LOOK: Duration = Duration::from_secs(1);
/// Number of attempts to read a log that ended before its run did.
const TRIES: u32 = 10;
/// Time for machines to end after the run.
const PARTING: Duration = Duration::from_secs(10);

/// Maximum length of a log line, and maximum size of a result, in bytes.
const LINE_MAX: u64 = 64 << 10;
const RESULT_MAX: u64 = 4 << 30;

#[derive(Debug)]
pub(super) struct Collect {
    pub run: String,
    pub namespace: Option<String>,
    pub into: PathBuf,
}

/// Collects the results of a run; returns the exit code of the run.
pub(super) fn collect_run(asked: &Collect) -> u8 {
    let kubectl = Kubectl::new(asked.namespace.clone());
    let results = ReceivedResults::new(LineMark(String::new()));
    let mut collector = LogCollector { asked, kubectl, screen: Screen::open(false), seen: 0, results };
    let failed = |words: &str| {
        say(&format!("onrush kubernetes: {words}"));
        EXIT_WRONG
    };
    let code = collector.carry_out().unwrap_or_else(|error| failed(&format!("{error:#}")));
    collector.screen.failure("the log").map_or(code, |words| failed(&words))
}

struct LogCollector<'a> {
    asked: &'a Collect,
    kubectl: Kubectl,
    screen: Screen,
    /// Number of log lines that have been read and printed.
    seen: usize,
    results: ReceivedResults,
}

/// The results that the log has named so far.
#[derive(Debug)]
struct ReceivedResults {
    /// Mark at the start of lines about results.
    mark: LineMark,
    /// Compressed results read from the log. The last one may still lack pieces.
    logged: Vec<LoggedResult>,
    /// Results that wait in the pod, each with the path of the program that sends it.
    waiting: Vec<(ResultDigest, String)>,
    /// Number of results that have been named. `is_damaged`: a line about results could not be read.
    named: usize,
    is_damaged: bool,
    /// The exit code of the run, and the number of results that should have been named.
    exit: Option<(u8, usize)>,
}

#[derive(Debug)]
struct LoggedResult {
    sum: ResultDigest,
    /// Number of pieces that have not been read.
    missing: usize,
    compressed: Vec<u8>,
}

impl LogCollector<'_> {
    fn carry_out(&mut self) -> anyhow::Result<u8> {
        if !self.asked.into.is_dir() {
            bail!("--into {:?}: no such folder; create it, or name another", self.asked.into);
        }
        let pod = self.wait_for_coordinator()?;
        let (mut has_fetched, mut has_read) = (Ok(()), Ok(()));
        for _ in 0..TRIES {
            let fetched;
            (fetched, has_read) = self.follow_log(&pod)?;
            has_fetched = fetched.and(has_fetched);
            if self.results.exit.is_some() || !self.is_running(&pod)? {
                break;
            }
            thread::sleep(LOOK);
        }
        let Some((code, named)) = self.results.exit else {
            let pods =
                self.kubectl.query_objects(&["get", "pods", "--field-selector", &format!("metadata.name={pod}")])?;
            let state = pods.first().map_or_else(|| "deleted".to_owned(), pod_state);
            // Complete results are written even if the log is incomplete.
            let written = self.write_results();
            self.report_failed_pods();
            has_read?;
            written?;
            bail!("the coordinator's log breaks off before the end of the run; state of its pod: {state}");
        };
        let written = self.write_results();
        if code != 0 {
            self.report_failed_pods();
        }
        self.delete_objects();
        has_fetched.and(written)?;
        if self.results.named < named {
            bail!(
                "only {} of {named} results are left in the log, because the cluster deleted its beginning; with \
                 --log-max 0 results wait in the pod instead, for ten minutes",
                self.results.named
            );
        }
        if self.results.is_damaged {
            bail!("a line of the log about results is damaged; compare the written files with kubectl logs {pod}");
        }
        Ok(code)
    }

    /// Waits until the coordinator's pod is running or has ended; returns the pod's name.
    fn wait_for_coordinator(&mut self) -> anyhow::Result<String> {
        let job = Component::Coordinator.job(&self.asked.run);
        let jobs = self.kubectl.query_objects(&["get", "job", &job])?;
        let mark = jobs.first().and_then(|job| job["metadata"]["annotations"][MARK].as_str());
        let mark = mark.ok_or_else(|| {
            anyhow!(
                "the Job {job} has no annotation {MARK}, so results in its log cannot be \
                                        recognized; kubectl logs job/{job} shows the report"
            )
        })?;
        self.results.mark = LineMark(mark.to_owned());
        let selector = Component::Coordinator.selector(&self.asked.run);
        let mut said = String::new();
        loop {
            let pods = self.kubectl.query_objects(&["get", "pods", "-l", &selector])?;
            let state = match pods.first() {
                Some(pod) if pod["status"]["phase"] != "Pending" => {
                    return pod["metadata"]["name"]
                        .as_str()
                        .map(str::to_owned)
                        .ok_or_else(|| anyhow!("a pod has no name"));
                }
                Some(pod) => pod_state(pod),
                None => {
                    let jobs = self.kubectl.query_objects(&["get", "job", &job])?;
                    if let Some(ended) = jobs.first().and_then(job_outcome) {
                        bail!("the coordinator's pod is gone: {ended}");
                    }
                    format!("not created yet (kubectl describe job {job})")
                }
            };
            if state != said {
                say(&format!("onrush kubernetes: waiting for the coordinator's pod: {state}"));
                said = state;
            }
            thread::sleep(LOOK);
        }
    }

    fn is_running(&self, pod: &str) -> anyhow::Result<bool> {
        let pods = self.kubectl.query_objects(&["get", "pods", "--field-selector", &format!("metadata.name={pod}")])?;
        Ok(pods.first().is_some_and(|pod| pod["status"]["phase"] == "Running"))
    }

    /// Prints the log to its end, starting after the last line already printed. Fetches waiting results once the run
    /// has ended. Returns two outcomes: that of fetching, and that of reading the log.
    fn follow_log(&mut self, pod: &str) -> anyhow::Result<(anyhow::Result<()>, anyhow::Result<()>)> {
        let mut log = self.kubectl.start(&["logs", "--follow", pod])?;
        let mut fetched = Ok(());
        // The log is read from its start, which the cluster may have deleted meanwhile.
        self.results.forget_results();
        for index in 0.. {
            let mut line = Vec::new();
            log.printed.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).context("the log cannot be read")?;
            if line.is_empty() {
                break;
            }
            let is_new = index >= self.seen;
            self.seen = self.seen.max(index + 1);
            let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line));
            let Some(line) = self.results.process_line(&line) else { continue };
            match line {
                LogEvent::Text(text) if is_new => self.screen.print(&(escape_controls_in_lines(&text) + "\n")),
                LogEvent::Text(_) => {}
                LogEvent::Exit => fetched = self.fetch_results(pod),
            }
        }
        // An incomplete log is read again, no matter how this call of `kubectl` ended.
        Ok((fetched, log.end()))
    }

    /// Fetches the results that wait in the pod, which then ends.
    fn fetch_results(&mut self, pod: &str) -> anyhow::Result<()> {
        if self.results.waiting.is_empty() {
            return Ok(());
        }
        let mut program = String::new();
        for (sum, sender) in std::mem::take(&mut self.results.waiting) {
            let words = ["exec", pod, "--", &sender, "kubernetes", "--send", &sum.name];
            let compressed = self.kubectl.output(&words).with_context(|| format!("{:?} was not fetched", sum.name))?;
            self.results.logged.push(LoggedResult { sum, missing: 0, compressed });
            program = sender;
        }
        // Fetched results are written first, because the only other copy is then deleted.
        self.write_results()?;
        self.kubectl.output(&["exec", pod, "--", &program, "kubernetes", "--fetched"]).map(drop)
    }

    /// Writes all complete results. Fails with the first result that is incomplete or cannot be written.
    fn write_results(&mut self) -> anyhow::Result<()> {
        let into = &self.asked.into;
        self.results.logged.drain(..).map(|logged| write_result(into, &logged)).fold(Ok(()), anyhow::Result::and)
    }

    /// Prints a line on each machine whose pod has failed or has not started.
    fn report_failed_pods(&self) {
        let selector = Component::Workers.selector(&self.asked.run);
        // Whether or not this query succeeds, the run has its exit code.
        for pod in self.kubectl.query_objects(&["get", "pods", "-l", &selector]).unwrap_or_default() {
            if pod["status"]["phase"] == "Pending" || pod["status"]["phase"] == "Failed" {
                let name = escape(pod["metadata"]["name"].as_str().unwrap_or_default().as_bytes());
                say(&format!("onrush kubernetes: pod {name}: {}", pod_state(&pod)));
            }
        }
    }

    /// Deletes the objects that are no longer needed, including secrets. Finished Jobs stay for a day because of their
    /// logs. Machines that still wait for a node or for the run are ended now.
    fn delete_objects(&self) {
        let workers = Component::Workers.job(&self.asked.run);
        let begun = Instant::now();
        let ended = loop {
            match self.kubectl.query_objects(&["get", "job", &workers]) {
                Ok(jobs) if jobs.iter().all(|job| job_outcome(job).is_some()) => break Ok(Vec::new()),
                Ok(_) if begun.elapsed() < PARTING => thread::sleep(LOOK),
                Ok(_) => {
                    let end = r#"{"spec":{"activeDeadlineSeconds":1}}"#;
                    break self.kubectl.output(&["patch", "job", &workers, "--patch", end]);
                }
                Err(error) => break Err(error),
            }
        };
        let selector = selector(&self.asked.run);
        let rest = self.kubectl.output(&["delete", "service,secret,configmap", "-l", &selector, "--wait=false"]);
        if let Err(error) = ended.and(rest) {
            say(&format!("onrush kubernetes: some objects of the run were not deleted: {error:#}"));
        }
    }
}

/// Writes a result received through the log. Fails if the result is incomplete or damaged.
fn write_result(into: &Path, LoggedResult { sum, missing, compressed }: &LoggedResult) -> anyhow::Result<()> {
    let mut contents = Vec::new();
    let read = GzDecoder::new(&compressed[..]).take(RESULT_MAX).read_to_end(&mut contents);
    if read.is_err() || *missing > 0 || file_contents::sha256_hex(&contents) != sum.sha256 {
        bail!("{:?} arrived damaged", sum.name);
    }
    let path = into.join(&sum.name);
    replace(into, &path, &contents).with_context(|| format!("{path:?} was not written"))?;
    say(&format!("onrush kubernetes: wrote {}", path.display()));
    Ok(())
}

/// Meaning of a line of the log.
enum LogEvent {
    /// A line for the user.
    Text(String),
    /// The run has ended.
    Exit,
}

impl ReceivedResults {
    /// No results yet. `mark` identifies the lines about results.
    fn new(mark: LineMark) -> Self {
        Self { mark, logged: Vec::new(), waiting: Vec::new(), named: 0, is_damaged: false, exit: None }
    }

    /// Processes a line of the log; `None` if there is nothing to show or to do.
    fn process_line(&mut self, line: &str) -> Option<LogEvent> {
        match LogLine::read(&self.mark, line) {
            None => return Some(LogEvent::Text(line.to_owned())),
            Some(Err(UnreadableLine)) => self.is_damaged = true,
            Some(Ok(LogLine::File(sum, pieces))) => {
                self.named += 1;
                self.logged.push(LoggedResult { sum, missing: pieces, compressed: Vec::new() });
            }
            Some(Ok(LogLine::Piece(bytes))) => match self.logged.last_mut().filter(|last| last.missing > 0) {
                Some(last) => {
                    last.missing -= 1;
                    last.compressed.extend(bytes);
                }
                // This piece belongs to a result whose start is missing.
                None => self.is_damaged = true,
            },
            Some(Ok(LogLine::Waiting(sum, program))) => {
                self.named += 1;
                self.waiting.push((sum, program));
            }
            Some(Ok(LogLine::Exit(code, named))) => {
                self.exit = Some((code, named));
                return Some(LogEvent::Exit);
            }
        }
        None
    }

    /// Forgets all results, because the log is read again.
    fn forget_results(&mut self) {
        *self = Self::new(self.mark.clone());
    }
}

fn replace(folder: &Path, path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    // Other users may read results, unless the umask prevents it.
    let mut file = Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    file.write_all(contents)?;
    file.persist(path)?;
    Ok(())
}

/// The state of a pod, in the terms of Kubernetes.
fn pod_state(pod: &Value) -> String {
    let status = &pod["status"];
    let text = |value: &Value| value.as_str().map(|text| escape(text.as_bytes()));
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let of_container =
        containers.flat_map(|container| [&container["state"]["waiting"], &container["state"]["terminated"]]);
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let is_false = |condition: &&Value| condition["status"] == "False" && condition["type"] == "PodScheduled";
    let why = of_container.chain(conditions.filter(is_false)).chain([status]).find_map(|part| {
        let reason = text(&part["reason"])?;
        let code = part["exitCode"].as_u64().map(|code| format!(", exit code {code}")).unwrap_or_default();
        let message = text(&part["message"]).map(|message| format!(": {message}")).unwrap_or_default();
        Some(format!("{reason}{code}{message}"))
    });
    let phase = text(&status["phase"]).unwrap_or_else(|| "unknown".to_owned());
    why.map_or_else(|| phase.clone(), |why| format!("{phase}, {why}"))
}

/// How a Job ended; `None` if it has not ended.
fn job_outcome(job: &Value) -> Option<String> {
    let conditions = job["status"]["conditions"].as_array()?.iter();
    let mut over = conditions.filter(|condition| {
        condition["status"] == "True"
            && ["Complete", "Failed", "Suspended"].iter().any(|kind| condition["type"] == *kind)
    });
    let last = over.next()?;
    let text = |key: &str| last[key].as_str().map(|text| escape(text.as_bytes())).unwrap_or_default();
    Some(format!("its Job is {}: {}", text("type"), text("message")))
}
