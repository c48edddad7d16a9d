//! The backend of a run, its line in `-v`, and runs where io_uring is forbidden.

use std::process::Command;

use onrush_engine::backend;

use crate::harness::{Context, Scratch, Served, cases, target, url};

cases! {
    version_lines_explain_the_backend;
    forbidden_io_uring_falls_back_unless_requested (Once) needs "python3", "io_uring";
    kernel_refusals_are_not_blamed_on_servers (Once) needs "python3";
    epoll_runs_never_touch_io_uring (Once) needs "python3";
    busy_polling_is_reported_and_selectable;
    request_clocks_start_before_sending (Once);
}

/// A script that forbids itself a system call, given by number, and then executes the program on its command line.
const FORBID: &str = "\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number, action = int(sys.argv[1]), int(sys.argv[2])
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, action), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))
program = struct.pack('HxxxxxxP', len(rules), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[3], sys.argv[3:])
";

/// Numbers of `io_uring_setup` and `io_uring_enter`.
const IO_URING_SETUP: u32 = 425;
const IO_URING_ENTER: u32 = 426;
/// Filter action: the call fails with this error, as under Docker's filter.
const fn answer(errno: u32) -> u32 {
    0x0005_0000 | errno
}
/// Filter action: the call kills the process.
const KILL: u32 = 0x8000_0000;

/// Runs the program under a filter for a system call.
fn filtered(call: u32, action: u32, words: &[&str]) -> (String, i32) {
    let scratch = Scratch::new("forbidden");
    let script = scratch.file("forbid.py", FORBID);
    let mut command = Command::new("python3");
    command.arg(script).args([call, action].map(|number| number.to_string()));
    command.arg(env!("CARGO_BIN_EXE_onrush")).args(words);
    let output = command.output().expect("python3 starts");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code().unwrap_or(-1))
}

fn version_lines_explain_the_backend(context: &Context) {
    let output = context.onrush().words("-v -n1 -c1 --spin off").word(url(&target(), "/")).run_plain();
    let name = backend::default_name();
    assert!(output.stderr.contains(&format!("[{name}]: ")), "{output:?}");
    let server = target();
    let forced = context.onrush().words("-v -n1 -c1 --io").word(context.backend).word(url(&server, "/")).run_plain();
    assert!(forced.stderr.contains(&format!("[{}]: asked for with --io", context.backend)), "{forced:?}");
}

fn forbidden_io_uring_falls_back_unless_requested(_: &Context) {
    let server = target();
    for call in [IO_URING_SETUP, IO_URING_ENTER] {
        let (said, code) = filtered(call, answer(1), &["-v", "-n1", "-c1", &url(&server, "/")]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("[epoll]: a filter forbids io_uring, as Docker's seccomp profile does"), "{said}");
    }
    let (said, code) = filtered(IO_URING_SETUP, answer(1), &["--io", "uring", "-n1", "-c1", &url(&server, "/")]);
    assert_eq!(code, 2, "{said}");
    assert!(said.starts_with("onrush: --io uring: a filter forbids io_uring"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

fn kernel_refusals_are_not_blamed_on_servers(_: &Context) {
    let server = target();
    let words = ["--io", "epoll", "-d1s", "-c1", "-t1", &url(&server, "/")];
    let (said, code) = filtered(libc::SYS_sendto as u32, answer(libc::ENOMEM as u32), &words);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("× refused by this machine's kernel: out of memory (ENOMEM)"), "{said}");
}

fn epoll_runs_never_touch_io_uring(_: &Context) {
    let server = target();
    let (said, code) = filtered(IO_URING_SETUP, KILL, &["-v", "--io", "epoll", "-n1", "-c1", &url(&server, "/")]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("[epoll]: asked for with --io"), "{said}");
    let (_, code) = filtered(IO_URING_SETUP, KILL, &["-n1", "-c1", &url(&server, "/")]);
    assert_eq!(code, -1, "the filter kills who does touch it");
}

fn busy_polling_is_reported_and_selectable(context: &Context) {
    let server = target();
    for (spin, words) in
        [("on", "busy-polling is on: asked for with --spin"), ("off", "busy-polling is off: turned off with --spin")]
    {
        let onrush = context.onrush().words("-v -c1 -n10 --io").word(context.backend);
        let output = onrush.word("--spin").word(spin).word(url(&server, "/")).run_plain();
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.stderr.contains(words), "{output:?}");
    }
}

/// More connections than io_uring's queue of 4,096 entries: some requests are submitted before the wait.
fn request_clocks_start_before_sending(context: &Context) {
    let server = Served::start();
    let url = format!("http://{}/delay/150", server.address);
    // The fork's table has a column for the lowest latency. Too few responses arrive for wrk's rewriting to change it.
    let options = "--compat wrk-cmm -t1 -c4500 -n4500 --timeout 10";
    let output = context.onrush().words(options).words("--io").word(context.backend).word(url).run_plain();
    assert_eq!(output.requests(), 4500, "{output:?}");
    let row = output.line("Latency ").expect("the row is there");
    let least = row.split_whitespace().nth(4).expect("the column is there");
    let milliseconds = match least.strip_suffix("ms") {
        Some(number) => number.parse::<f64>().expect("a number"),
        None => 1e3 * least.trim_end_matches('s').parse::<f64>().expect("seconds"),
    };
    assert!(milliseconds >= 150.0, "{row}");
}
