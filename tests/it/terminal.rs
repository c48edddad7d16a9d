//! Terminals, pipes and signals, as seen by a user and by a script. Runs of more than a second are ended by a signal.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::endings::{fill, waits_for_reader};
use crate::harness::{
    Context, Onrush, ProgramOutput, cases, fetch_target_counts, finish, on_terminal, signal, target, terminal, url,
    wait_for_load, wait_until,
};
use crate::peers::Silent;

cases! {
    progress_lines_disappear_at_the_end (Once);
    narrowed_terminals_keep_no_progress_line (Once);
    warm_ups_are_shown_with_rate (Once);
    notes_are_coloured_on_a_terminal_unless_asked_not_to_be (Once);
    nothing_is_drawn_without_a_terminal (Once);
    first_lines_pass_pipes_at_once (Once);
    closed_pipes_end_the_program_quietly (Once);
    full_disks_print_one_line_with_code_1 (Once);
    closed_streams_are_harmless (Once);
    one_signal_produces_the_report_at_once;
    signals_end_request_runs;
    two_signals_quit (Once);
    signals_before_first_connections_end_runs;
    signals_at_start_leave_nothing_partial;
}

/// Moves to the start of the line, and erases to the end of the screen.
const ERASE: &str = "\r\x1b[J";

fn progress_lines_disappear_at_the_end(context: &Context) {
    let server = target();
    let (shown, output) = with_terminal(context.onrush().words("-c1 -d1s").word(url(&server, "/status/301")));
    assert_eq!(output.code, 0, "{output:?}");
    output.assert_standard();
    let drawn: Vec<&str> = shown.split(ERASE).collect();
    let (last, lines) = drawn.split_last().expect("something was drawn");
    let lines: Vec<&str> =
        lines.iter().map(|line| line.trim_end_matches('\r')).filter(|line| !line.is_empty()).collect();
    assert!(!lines.is_empty(), "{shown:?}");
    for line in &lines {
        assert!(line.contains("s of 1s, ") && line.contains(" requests/s, ") && line.ends_with(" errors"), "{line:?}");
        assert!(line.chars().count() < 80 && !line.contains('\n'), "{line:?}");
    }
    assert!(lines.iter().any(|line| !line.contains(" 0 requests/s")), "{shown:?}");
    assert!(!last.contains("requests/s"), "the line is gone at the end: {shown:?}");
    assert!(last.contains("you measured the redirect\r\n"), "notes follow in its place: {shown:?}");
}

fn narrowed_terminals_keep_no_progress_line(context: &Context) {
    let server = target();
    let (mut terminal, peer) = terminal();
    let size = |columns| Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size(80)).expect("it has a size");
    let onrush = context.onrush().words("-c1 -d4s").word(url(&server, "/delay/2"));
    let child = onrush.with(|command| _ = command.stderr(peer)).spawn();
    let mut screen = vt100::Parser::new(24, 80, 0);
    let mut shown = String::new();
    while !shown.contains("s of 4s, ") {
        let mut buffer = [0; 4096];
        let n = terminal.read(&mut buffer).expect("something is drawn");
        shown.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    // The program must not draw between the resize and its notification.
    signal(&child, Signal::STOP);
    let stat = format!("/proc/{}/stat", child.id());
    wait_until(|| fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")));
    let flags = fcntl_getfl(&terminal).expect("it has flags");
    fcntl_setfl(&terminal, flags | OFlags::NONBLOCK).expect("they can be set");
    let mut rest = Vec::new();
    let _ = terminal.read_to_end(&mut rest);
    fcntl_setfl(&terminal, flags).expect("they can be set");
    screen.process(shown.as_bytes());
    screen.process(&rest);
    let text = screen.screen().contents();
    assert!(text.contains(" requests/s, "), "{text:?}");
    // A terminal that rewraps the line keeps the cursor at the same character: with the cursor at the first one, the
    // whole line is erased.
    assert_eq!(screen.screen().cursor_position(), (0, 0), "{text:?}");
    tcsetwinsize(&terminal, size(20)).expect("it has a size");
    screen.screen_mut().set_size(24, 20);
    signal(&child, Signal::CONT);
    let mut rest = Vec::new();
    // Reading fails once no process has the other end open.
    let _ = terminal.read_to_end(&mut rest);
    screen.process(&rest);
    let output = finish(child);
    assert_eq!(output.code, 0, "{output:?}");
    let text = screen.screen().contents();
    assert!(!text.contains("s of 4s"), "{text:?}\n{:?}", String::from_utf8_lossy(&rest));
}

fn warm_ups_are_shown_with_rate(context: &Context) {
    let server = target();
    let (shown, output) =
        with_terminal(context.onrush().words("-c2 --warmup 500ms -d500ms").word(url(&server, "/delay/2")));
    assert_eq!(output.code, 0, "{output:?}");
    let lines: Vec<&str> = shown.split(ERASE).filter(|line| line.starts_with("warming up ")).collect();
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end_matches('\r')).collect();
    assert!(lines.iter().all(|line| line.contains(" of 0.5 s, ") && line.ends_with(" requests/s")), "{shown:?}");
    assert!(lines.iter().any(|line| !line.contains(", 0 requests/s")), "{shown:?}");
    assert!(shown.contains("s of 500ms, "), "the run follows: {shown:?}");
}

fn notes_are_coloured_on_a_terminal_unless_asked_not_to_be(context: &Context) {
    let server = target();
    for (no_colour, expected) in [(None, true), (Some(""), true), (Some("1"), false)] {
        let onrush = context.onrush().words("-c2 -n20").word(url(&server, "/status/301"));
        let onrush = onrush.with(|command| match no_colour {
            Some(value) => _ = command.env("NO_COLOR", value),
            None => _ = command.env_remove("NO_COLOR"),
        });
        let (shown, _) = with_terminal(onrush);
        assert!(shown.contains("note:"), "{shown:?}");
        assert_eq!(shown.contains("\x1b[1;33m"), expected, "NO_COLOR={no_colour:?}: {shown:?}");
    }
}

fn nothing_is_drawn_without_a_terminal(context: &Context) {
    let server = target();
    let output = context.onrush().words("-c1 -d500ms").word(url(&server, "/status/301")).run();
    assert!(!output.stderr.contains(['\r', '\x1b']) && !output.stderr.contains("requests/s"), "{output:?}");
    assert!(!output.stdout.contains(['\r', '\x1b']), "{output:?}");
    output.note("you measured the redirect");
}

fn first_lines_pass_pipes_at_once(context: &Context) {
    let server = target();
    let url = url(&server, "/delay/5");
    let mut child = context.onrush().words("-c1 -d20s").word(&url).spawn();
    assert_eq!(first_line(&mut child), format!("Running 20s test @ {url}\n"));
    assert!(matches!(child.try_wait(), Ok(None)), "before the run ends");
    signal(&child, Signal::INT);
    child.wait().expect("it ends");
}

fn closed_pipes_end_the_program_quietly(context: &Context) {
    let server = target();
    for name in [None, Some("wrk")] {
        let onrush = name.map_or_else(|| context.onrush(), |name| context.called(name));
        let mut child = onrush.words("-t1 -c1 -d1s").word(url(&server, "/delay/5")).spawn();
        // Like `head -1`: the pipe is closed after the first line.
        first_line(&mut child);
        let output = finish(child);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{name:?}");
    }
}

fn full_disks_print_one_line_with_code_1(context: &Context) {
    let server = target();
    let full = || File::create("/dev/full").expect("every Linux has it");
    for name in [None, Some("wrk")] {
        let onrush = name.map_or_else(|| context.onrush(), |name| context.called(name));
        let onrush = onrush.with(|command| _ = command.stdout(full()));
        let output = onrush.words("-t1 -c1 -n10").word(url(&server, "/")).run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        output.note("cannot write the report to standard output: No space left on device");
    }
    assert!(fetch_target_counts(server.address()).requests > 0, "the runs took place");
}

fn closed_streams_are_harmless(context: &Context) {
    let server = target();
    let run = |closing: &str| {
        let script = format!(r#"exec "$0" "$@" {closing}"#);
        let in_shell = |command: &mut Command| {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg(command.get_program());
            shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            *command = shell;
        };
        context.onrush().with(in_shell).words("-c2 -n20").word(url(&server, "/status/301")).run_plain()
    };
    let mute = run("2>&-");
    assert_eq!((mute.code, mute.requests()), (0, 20), "{mute:?}");
    mute.assert_standard();
    let unheard = run(">&-");
    assert_eq!((unheard.code, unheard.stdout.as_str()), (0, ""), "{unheard:?}");
    unheard.note("you measured the redirect");
    assert_eq!(run("<&- >&- 2>&-").code, 0);
}

fn one_signal_produces_the_report_at_once(context: &Context) {
    for sent in [Signal::INT, Signal::TERM] {
        for onrush in context.both() {
            let (server, is_native) = (target(), !onrush.is_compat());
            let onrush = onrush.words("-t2 -c4 -d30s --io").word(context.backend);
            let child = onrush.word(url(&server, "/delay/5")).spawn();
            wait_for_load(&server);
            signal(&child, sent);
            let output = finish(child);
            assert_eq!(output.code, 0, "{output:?}");
            output.assert_standard();
            assert!(output.requests() > 0, "{output:?}");
            assert!(output.took < Duration::from_secs(10), "{output:?}");
            if is_native {
                output.note("interrupted after");
            }
        }
    }
}

fn signals_end_request_runs(context: &Context) {
    let server = target();
    let onrush = context.onrush().words("-c2 -n1000000 --io").word(context.backend);
    let child = onrush.word(url(&server, "/delay/20")).spawn();
    // Two responses are complete by then.
    wait_until(|| fetch_target_counts(server.address()).requests > 4);
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.code, 0, "{output:?}");
    assert!((2..1_000_000).contains(&output.requests()), "{output:?}");
    output.note("interrupted after");
}

fn two_signals_quit(context: &Context) {
    for [first, second] in [[Signal::INT, Signal::INT], [Signal::INT, Signal::TERM], [Signal::TERM, Signal::INT]] {
        let server = target();
        let (_unread, pipe) = io::pipe().expect("a pipe can be made");
        let full = pipe.try_clone().expect("a pipe can be shared");
        let onrush = context.onrush().with(|command| _ = command.stdout(pipe));
        let mut child = onrush.words("-c2 -d30s").word(url(&server, "/delay/5")).spawn();
        wait_for_load(&server);
        fill(full);
        signal(&child, first);
        // One signal ends the run, but cannot end the wait for a reader that never reads.
        wait_until(|| waits_for_reader(&child));
        // A second signal sent earlier would be taken for an echo of the first.
        thread::sleep(Duration::from_millis(100));
        assert!(matches!(child.try_wait(), Ok(None)), "the first signal does not quit");
        signal(&child, second);
        assert_eq!(finish(child).code, 130, "{first:?} {second:?}");
    }
}

fn signals_before_first_connections_end_runs(context: &Context) {
    let silent = Silent::new();
    let url = format!("http://{}/", silent.address);
    let child = context.onrush().words("-c2 -d30s --io").word(context.backend).word(&url).spawn();
    // Waits until a connection attempt is pending.
    let waits = format!(":{:04X} 02 ", silent.address.port());
    wait_until(|| fs::read_to_string("/proc/net/tcp").is_ok_and(|sockets| sockets.contains(&waits)));
    signal(&child, Signal::INT);
    let output = finish(child);
    assert!(output.took < Duration::from_secs(10), "{output:?}");
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    output.note("no request could be sent");
}

fn signals_at_start_leave_nothing_partial(context: &Context) {
    let server = target();
    for delay_us in [0, 300, 1_000, 2_000, 3_000, 5_000, 10_000] {
        let onrush = context.onrush().words("-c100 -d1s --io").word(context.backend);
        let child = onrush.word(url(&server, "/delay/5")).spawn();
        thread::sleep(Duration::from_micros(delay_us));
        signal(&child, Signal::INT);
        let output = finish(child);
        // Before the program handles signals, it has printed nothing.
        match output.code {
            -1 => assert_eq!(output.stdout, "", "{output:?}"),
            0 | 5 => output.assert_standard(),
            code => panic!("{code}: {output:?}"),
        }
    }
}

/// Runs with a terminal as standard error. Returns the terminal's text, and the other output.
fn with_terminal(onrush: Onrush) -> (String, ProgramOutput) {
    on_terminal(onrush, |command, terminal| _ = command.stderr(terminal))
}

/// Reads one line of a child's output, and closes the pipe.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it can be read");
    line
}
