//! Tools of all integration tests: cases, the program as a command, servers, and readers of the report.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use onrush_serve::{EmbeddedServer, ServeConfig};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

/// Every test runs once on each backend.
pub const BACKENDS: [&str; 2] = ["uring", "epoll"];

/// Start of the verdict's line.
const VERDICT: &str = "verdict: ";
/// Start of the line of `-v` on processor usage.
const USAGE: &str = "usage: ";

/// Start of the note on wrk's mean, which every run with `-v` prints.
pub const REWRITTEN: &str = "note: latency as measured; wrk would print Avg ";

/// Notes that may appear in any run that shares its processors.
pub const OF_THE_MACHINE: [&str; 9] = [
    "note: the hypervisor took",
    "note: onrush itself was stalled",
    "note: no response from",
    "note: the target was unavailable for ",
    " had a request in flight on average",
    " before the end of the run had no response (",
    " requests/s between the first and last third",
    " of the responses took ten times the median ",
    " were sent more than ",
];

/// Time limit of a program. A program that exceeds it is killed, and its test fails.
const LONGEST_RUN: Duration = Duration::from_secs(60);

/// One test.
pub struct Case {
    pub name: &'static str,
    pub how: &'static [TestMode],
    /// Required programs, in the syntax of [`is_installed`]. The test is skipped without them.
    pub needs: &'static [&'static str],
    pub run: fn(&Context),
}

/// Exceptions to running each test on each backend and beside other tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TestMode {
    /// Run the test only once: the backend makes no difference.
    Once,
    /// Run the test alone: it takes ports, descriptors or processors that others need, or observes this process's
    /// resources.
    Alone,
}

/// The context of a test.
pub struct Context {
    pub backend: &'static str,
}

/// Makes a list of [`Case`]s from functions: `name (Once, Alone) needs "tool", "tool";`. Only the name is required.
macro_rules! cases {
    ($($name:ident $(($($how:ident),+))? $(needs $($tool:literal),+)?;)*) => {
        /// The tests of this file.
        pub fn cases() -> Vec<$crate::harness::Case> {
            vec![$($crate::harness::Case {
                name: stringify!($name),
                how: &[$($($crate::harness::TestMode::$how),+)?],
                needs: &[$($($tool),+)?],
                run: $name,
            }),*]
        }
    };
}
pub(crate) use cases;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_onrush");

/// True if a program can be found; with arguments, if it succeeds with them. `::1` checks for the IPv6 loopback address
/// instead, `io_uring` for the kernel's permission to use it, a path for the permission to open the file.
pub fn is_installed(program: &'static str) -> bool {
    static KNOWN: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().expect("nobody panics while it is locked");
    *known.entry(program).or_insert_with(|| look_for(program))
}

fn look_for(program: &str) -> bool {
    if program == "io_uring" {
        return onrush_engine::backend::default_name() == "uring";
    }
    if program == "::1" {
        return TcpListener::bind("[::1]:0").is_ok();
    }
    if program.starts_with('/') {
        return File::open(program).is_ok();
    }
    if let Some((program, arguments)) = program.split_once(' ') {
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
        return command.status().is_ok_and(|status| status.success());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    places.push("/usr/sbin".into());
    places.iter().any(|place| place.join(program).is_file())
}

/// Starts the embedded target on a free port.
pub fn target() -> EmbeddedServer {
    EmbeddedServer::start(&ServeConfig { address: "127.0.0.1:0".parse().unwrap(), threads: 1, tls: false })
        .expect("the target starts")
}

/// URL of a path of a server.
pub fn url(server: &EmbeddedServer, path: &str) -> String {
    format!("http://{}{path}", server.address())
}

/// Counters of the embedded target.
#[derive(Debug)]
pub struct TargetCounts {
    /// Accepted connections, without the one that reads the counters.
    pub connections: u64,
    /// Requests with a completely read head.
    pub requests: u64,
}

/// Reads the counters of the embedded target. `connections` is right only in the first call per server, because only
/// the current connection is excluded.
pub fn fetch_target_counts(address: SocketAddr) -> TargetCounts {
    let answer = exchange(address, "GET /stats HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let number = |name: &str| -> u64 {
        let rest = answer.split(&format!("\"{name}\": ")).nth(1).unwrap_or_else(|| panic!("no {name} in {answer}"));
        rest.split(|character: char| !character.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    TargetCounts { connections: number("connections") - 1, requests: number("requests") }
}

/// Sends bytes on a new connection, and returns everything received until the server closes it.
pub fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server accepts");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer
}

/// Waits until a run has started: the embedded target has received a request.
#[track_caller]
pub fn wait_for_load(server: &EmbeddedServer) {
    wait_until(|| fetch_target_counts(server.address()).requests > 0);
}

/// The embedded target in a separate process with the highest possible open-file limit.
pub struct Served {
    child: Child,
    /// Address of the target.
    pub address: SocketAddr,
}

impl Served {
    /// Starts the target on a free port.
    pub fn start() -> Self {
        Self::start_by(&mut Command::new(PROGRAM))
    }

    /// Starts the target from a shell after this preparation.
    pub fn start_after(preparation: &str) -> Self {
        Self::start_by(Command::new("sh").arg("-c").arg(format!("{preparation}; exec \"$0\" \"$@\"")).arg(PROGRAM))
    }

    fn start_by(command: &mut Command) -> Self {
        let mut child = command.args(["serve", "--addr", "0"]).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        Self { child, address }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Context {
    /// The program in native mode, on this backend.
    pub fn onrush(&self) -> Onrush {
        Onrush::new(self.backend, Command::new(PROGRAM), false)
    }

    /// The program called by another name, for instance `wrk`.
    pub fn called(&self, name: &str) -> Onrush {
        let mut command = Command::new(PROGRAM);
        command.arg0(name);
        Onrush::new(self.backend, command, true)
    }

    /// The program called natively, and called as wrk.
    pub fn both(&self) -> [Onrush; 2] {
        [self.onrush(), self.called("wrk")]
    }

    /// The program in native mode under another resource limit. `limit`: the arguments of `ulimit`, such as `-n 12`.
    pub fn limited(&self, limit: &str) -> Onrush {
        self.after(&format!("ulimit {limit}"))
    }

    /// The program in native mode, started from a shell after this preparation.
    pub fn after(&self, preparation: &str) -> Onrush {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{preparation}; exec \"$0\" \"$@\"")).arg(PROGRAM);
        Onrush::new(self.backend, command, false)
    }

    /// The program called through a link whose name selects wrk mode.
    pub fn called_at(&self, link: &Path) -> Onrush {
        Onrush::new(self.backend, Command::new(link), true)
    }
}

/// A command line for one backend. Every run gets `-v`: the backend is checked, and removed from the output, unless the
/// test expects no run.
pub struct Onrush {
    command: Command,
    backend: &'static str,
    compat: bool,
    stdin: Vec<u8>,
    interrupts: Vec<Duration>,
    /// Arguments after `--`.
    script_args: Vec<String>,
}

/// Output of a program, its exit code and its duration.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    pub stdout: String,
    pub stderr: String,
    /// The verdict printed with `-v` or after a run of at least a second; `run_plain` leaves it in the output.
    pub verdict: String,
    /// Notes that `run` removed from standard error because the machine's load may cause them.
    pub of_the_machine: String,
    /// Exit code; -1 after a signal.
    pub code: i32,
    pub took: Duration,
}

impl Onrush {
    fn new(backend: &'static str, mut command: Command, compat: bool) -> Self {
        command.env_remove("POSIXLY_CORRECT").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, backend, compat, stdin: Vec::new(), interrupts: Vec::new(), script_args: Vec::new() }
    }

    /// Adds `--compat wrk`.
    pub fn compat(mut self) -> Self {
        self.compat = true;
        self.words("--compat wrk")
    }

    pub fn is_compat(&self) -> bool {
        self.compat
    }

    /// Adds arguments, separated by spaces.
    pub fn words(mut self, words: &str) -> Self {
        self.command.args(words.split_whitespace());
        self
    }

    /// Adds one argument unchanged.
    pub fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    /// Sets the standard input.
    pub fn stdin(mut self, bytes: &[u8]) -> Self {
        self.stdin = bytes.to_vec();
        self.command.stdin(Stdio::piped());
        self
    }

    /// Adds `-s` with this file.
    pub fn script(self, path: impl AsRef<OsStr>) -> Self {
        self.word("-s").word(path)
    }

    /// Adds `-s` with a pipe from which the program reads this script.
    pub fn lua(self, script: &str) -> Self {
        self.script("/dev/stdin").stdin(script.as_bytes())
    }

    /// Adds `--` and arguments for a script.
    pub fn script_args(mut self, words: &str) -> Self {
        self.script_args = std::iter::once("--").chain(words.split_whitespace()).map(str::to_owned).collect();
        self
    }

    /// Sends SIGINT this long after the start; may be called several times.
    pub fn interrupt_after(mut self, delay: Duration) -> Self {
        self.interrupts.push(delay);
        self
    }

    /// Changes the command itself, for instance its environment.
    pub fn with(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    /// Runs a test: forces the backend, checks that it was used, and removes the additions of `-v` from standard error.
    pub fn run(mut self) -> ProgramOutput {
        self.command.args(["-v", "--io", self.backend]);
        let (backend, compat) = (self.backend, self.compat);
        let mut output = self.run_plain();
        let text = if compat { &mut output.stdout } else { &mut output.stderr };
        // Warnings about the command line precede the backend's line.
        let version = text.split_inclusive('\n').find(|line| line.contains(&format!("[{backend}]")));
        *text = text.replacen(version.unwrap_or_else(|| panic!("no line names {backend}: {text}")), "", 1);
        output.stderr = output.stderr.split_inclusive('\n').filter(|line| !line.starts_with(REWRITTEN)).collect();
        output.take_verdict();
        let is_of_the_machine = |line: &&str| OF_THE_MACHINE.iter().any(|words| line.contains(words));
        let (taken, left): (Vec<&str>, Vec<&str>) = output.stderr.split_inclusive('\n').partition(is_of_the_machine);
        (output.of_the_machine, output.stderr) = (taken.concat(), left.concat());
        output
    }

    /// Starts the command unchanged, for a test that observes the run.
    pub fn spawn(mut self) -> Child {
        let mut child = self.command.args(&self.script_args).spawn().expect("the program starts");
        if let Some(mut input) = child.stdin.take() {
            input.write_all(&self.stdin).expect("the program reads its input");
        }
        child
    }

    /// Runs the command unchanged.
    pub fn run_plain(mut self) -> ProgramOutput {
        let (start, interrupts) = (Instant::now(), std::mem::take(&mut self.interrupts));
        let child = self.spawn();
        for delay in interrupts {
            thread::sleep(delay.saturating_sub(start.elapsed()));
            signal(&child, Signal::INT);
        }
        let output = finish(child);
        ProgramOutput { took: start.elapsed(), ..output }
    }
}

/// Runs the command unchanged, with a new terminal where `attach` puts it. Returns the terminal's text, and the other
/// output.
pub fn on_terminal(onrush: Onrush, attach: impl FnOnce(&mut Command, OwnedFd)) -> (String, ProgramOutput) {
    let (mut terminal, peer) = terminal();
    let child = onrush.with(|command| attach(command, peer)).spawn();
    let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
    // Reading fails once no process has the other end open.
    while let Ok(n @ 1..) = terminal.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..n]);
    }
    (String::from_utf8_lossy(&shown).into_owned(), finish(child))
}

/// A new terminal: the side of the test, and the side for a program.
pub fn terminal() -> (File, OwnedFd) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal can be opened");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("it is ours");
    let peer = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("it has another end");
    (File::from(terminal), peer)
}

/// Reads the remaining output of a child until its end; kills it after the time limit.
pub fn finish(child: Child) -> ProgramOutput {
    let (start, watchdog) = (Instant::now(), Watchdog::start(&child));
    let output = child.wait_with_output().expect("it can be read");
    watchdog.stop();
    ProgramOutput::new(output, start.elapsed())
}

/// Sends a signal to a child, which may have ended by itself.
pub fn signal(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}

/// Waits for a condition that becomes true after a moment, or on a busy machine after seconds.
#[track_caller]
pub fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONGEST_RUN, "it never came");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Kills a program after the time limit.
struct Watchdog(std::sync::mpsc::Sender<()>);

impl Watchdog {
    fn start(child: &Child) -> Self {
        let (stop, stopped) = std::sync::mpsc::channel();
        let id = child.id().to_string();
        thread::spawn(move || {
            if stopped.recv_timeout(LONGEST_RUN) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        });
        Self(stop)
    }

    fn stop(self) {
        let _ = self.0.send(());
    }
}

impl ProgramOutput {
    /// The output of a finished program.
    pub fn new(output: std::process::Output, took: Duration) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            verdict: String::new(),
            of_the_machine: String::new(),
            code: output.status.code().unwrap_or(-1),
            took,
        }
    }

    /// The number that precedes these words in the report, for instance `requests in`.
    pub fn number_before(&self, words: &str) -> f64 {
        let before = self.stdout.split(words).next().filter(|before| before.len() < self.stdout.len());
        let number = before.and_then(|before| before.split_whitespace().last()?.parse().ok());
        number.unwrap_or_else(|| panic!("no number before {words:?} in {}", self.stdout))
    }

    /// The number of requests in the report.
    pub fn requests(&self) -> u64 {
        self.number_before(" requests in") as u64
    }

    /// The first line of the report that starts with this text, without its indentation.
    pub fn line(&self, start: &str) -> Option<&str> {
        self.stdout.lines().map(str::trim_start).find(|line| line.starts_with(start))
    }

    /// One of the four numbers in the line of socket errors; zero without that line.
    pub fn socket_errors(&self, kind: &str) -> u64 {
        let Some(line) = self.line("Socket errors:") else { return 0 };
        let rest = line.split(&format!("{kind} ")).nth(1).unwrap_or_else(|| panic!("no {kind} in {line}"));
        rest.split(',').next().and_then(|number| number.trim().parse().ok()).expect("a number of errors")
    }

    /// Removes the verdict from standard error: it varies, and most tests are about something else.
    pub fn take_verdict(&mut self) {
        let is_usage = |line: &&str| line.starts_with(USAGE);
        if let Some(usage) = self.stderr.lines().find(is_usage).map(str::to_owned) {
            self.stderr = self.stderr.replacen(&format!("{usage}\n"), "", 1);
        }
        if let Some(verdict) = self.stderr.lines().find(|line| line.starts_with(VERDICT)).map(str::to_owned) {
            self.stderr = self.stderr.replacen(&format!("{verdict}\n"), "", 1);
            self.verdict = verdict[VERDICT.len()..].to_owned();
        }
    }

    /// The line on standard error that contains these words, even if it is a note that the machine's load may cause.
    pub fn note(&self, words: &str) -> &str {
        let note = self.stderr.lines().chain(self.of_the_machine.lines()).find(|line| line.contains(words));
        note.unwrap_or_else(|| panic!("no note says {words:?}: {self:?}"))
    }

    /// Checks the eight lines that every report has, their order and their widths. Without responses, a native report
    /// replaces two of them.
    pub fn assert_standard(&self) {
        let mut lines = self.stdout.lines();
        let has_rows = !self.stdout.contains(NO_ANSWERS);
        for start in STANDARD.into_iter().filter(|start| has_rows || !start.starts_with("    ")) {
            assert!(
                lines.any(|line| line.starts_with(start)),
                "no {start:?}, or not in its place, in\n{}",
                self.stdout
            );
        }
        for name in ["    Latency   ", "    Req/Sec   "].into_iter().filter(|_| has_rows) {
            let row = self.stdout.lines().find(|line| line.starts_with(name)).expect("the row is there");
            assert_eq!(row.len(), 4 + 10 + 8 + 10 + 9 + 9, "{row:?}");
        }
    }
}

/// A native report without latencies.
const NO_ANSWERS: &str = "\n    Latency   no responses\n";

/// Starts of the lines of every report.
const STANDARD: [&str; 8] = [
    "Running ",
    "  ",
    "  Thread Stats   Avg      Stdev     Max   +/- Stdev",
    "    Latency   ",
    "    Req/Sec   ",
    "  ",
    "Requests/sec: ",
    "Transfer/sec: ",
];

/// A temporary directory for a test, deleted when this is dropped.
pub struct Scratch(std::path::PathBuf);

impl Scratch {
    /// Creates a directory.
    pub fn new(name: &str) -> Self {
        let unique = format!("onrush-{name}-{}-{:?}", std::process::id(), thread::current().id());
        let path = std::env::temp_dir().join(unique.replace(['(', ')'], ""));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Self(path)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a link to the program in the directory, and returns the path of the link.
    pub fn link(&self, name: &str) -> std::path::PathBuf {
        let path = self.0.join(name);
        std::os::unix::fs::symlink(PROGRAM, &path).expect("a link can be made");
        path
    }

    /// Writes a file into the directory, and returns its path.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> std::path::PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a temporary file can be written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
