//! No matter how a run ends, exit code 0 means that every output file is new and complete. With any other code, each
//! file is new and complete or unchanged, and standard error says which.
//!
//! Runs of five seconds or more end early: by a signal or by their script.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pipe::pipe;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Context, Onrush, ProgramOutput, Scratch, cases, fetch_target_counts, finish, signal, target, url, wait_for_load,
    wait_until,
};

cases! {
    files_are_complete_or_untouched (Once);
    signals_at_any_step_lose_no_file (Once);
    runs_proceed_with_an_unread_report (Once);
    blocked_reports_end_with_one_signal (Once);
    unread_fifos_do_not_block (Once);
    signals_end_name_lookups (Once) needs "unshare -rmn true", "python3", "ss";
    interrupted_runs_are_marked (Once);
    lost_terminals_lose_nothing (Once) needs "env --default-signal=HUP true";
    failing_scripts_lose_nothing (Once);
    script_output_stays_out_of_documents (Once);
    unstarted_runs_touch_no_file (Once);
    line_files_are_truncated_at_first_row (Once);
    files_are_written_only_once (Once);
    file_size_limits_are_ordinary_errors (Once);
    quit_signals_leave_no_partial_file (Once);
    initially_ignored_quit_signals_end_nothing (Once);
    exits_do_not_hide_stuck_threads (Once);
    files_are_written_without_new_threads (Once);
    foreign_changes_of_line_files_are_named (Once);
    files_of_standard_streams_are_refused (Once);
}

/// Previous content of every file.
const OLD: &str = "old\n";

/// Formats of output files. Every run here writes all of them.
const NAMES: [&str; 5] = ["r.json", "r.csv", "r.hgrm", "r.md", "r.ndjson"];

/// A directory with an old file of each format.
struct OldFiles(Scratch);

impl OldFiles {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        NAMES.iter().for_each(|name| drop(scratch.file(name, OLD)));
        Self(scratch)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a run write all files.
    fn written_by(&self, onrush: Onrush) -> Onrush {
        NAMES.iter().fold(onrush, |onrush, name| onrush.word("-o").word(self.path(name)))
    }

    /// Checks the invariant, and returns the number of new files.
    fn check(&self, output: &ProgramOutput, what: &str) -> usize {
        let is_new = |name: &str| {
            let text = fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{what}: {name}: {error}"));
            let is_old = text == OLD;
            assert!(is_old || is_complete(name, &text), "{what}: {name} is half a file: {text:?}\n{output:?}");
            !is_old
        };
        let new: Vec<bool> = NAMES.iter().map(|name| is_new(name)).collect();
        assert!(output.code != 0 || new.iter().all(|is_new| *is_new), "{what}: {new:?} {output:?}");
        for (name, is_new) in NAMES.iter().zip(&new).filter(|_| output.code > 0) {
            let says = |words: &str| output.stderr.contains(&format!("{:?} {words}", self.path(name)));
            let is_said =
                if *is_new { says("is complete") || says("is not complete") } else { says("was not written") };
            assert!(is_said, "{what}: nothing true is said about {name}: {output:?}");
        }
        let left = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = left.filter(|name| !NAMES.contains(&name.as_str()) && !name.ends_with(".lua")).collect();
        assert!(left.is_empty(), "{what}: {left:?} are left");
        new.into_iter().filter(|is_new| *is_new).count()
    }
}

/// True if the text is a complete file with this name.
fn is_complete(name: &str, text: &str) -> bool {
    match name.rsplit_once('.').unwrap().1 {
        "json" => serde_json::from_str::<Value>(text).is_ok_and(|document| document["schema"] == 4),
        "ndjson" => {
            text.is_empty()
                || text.ends_with('\n') && text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok())
        }
        "csv" => text.starts_with("start_s,") && text.ends_with('\n'),
        "hgrm" => text.trim_end().ends_with(']'),
        _ => text.starts_with('`') && text.contains("\n| errors | ") && text.ends_with('\n'),
    }
}

/// Tries every fault of a script, a reader or a disk, and checks how the run ends.
fn files_are_complete_or_untouched(context: &Context) {
    let server = target();
    let abort = "local ffi = require('ffi') ffi.cdef('void abort(void);') ";
    let all = NAMES.len();
    for (script, code, new) in [
        // Before the run.
        ("os.exit(0)", 1, 0),
        ("os.exit(7)", 7, 0),
        ("error('no')", 1, 0),
        ("function setup() os.exit(7) end", 7, 0),
        ("function init() os.exit(7) end", 7, 0),
        ("function init() pcall(os.exit, 7) end", 7, 0),
        // During the run.
        ("local n = 0 function request() n = n + 1 if n > 9 then os.exit(0) end return wrk.format() end", 0, all),
        ("local n = 0 function request() n = n + 1 if n > 9 then os.exit(7) end return wrk.format() end", 7, all),
        ("local n = 0 function request() n = n + 1 if n > 9 then error('no') end return wrk.format() end", 1, all),
        ("function response() os.exit(7) end", 7, all),
        ("function response() pcall(os.exit, 7) end", 7, all),
        ("function response() error('no') end", 1, all),
        ("function delay() error('no') end", 1, all),
        ("function response() while true do end end", 1, all),
        // After the run.
        ("function done() os.exit(0) end", 0, all),
        ("function done() os.exit(7) end", 7, all),
        ("function done() error('no') end", 1, all),
        ("function done() io.stdout:close() end", 0, all),
        ("function done() ABORT end", -1, all),
    ] {
        let old = OldFiles::new("endings");
        let source = if script.contains("ABORT") {
            abort.to_owned() + &script.replace("ABORT", "ffi.C.abort()")
        } else {
            script.to_owned()
        };
        // The second duration is for the script that never returns. The other runs end by themselves.
        let onrush = context.onrush().words("-t2 -c2 -n1000 -d1s -s").word(old.0.file("s.lua", &source));
        let output = old.written_by(onrush).word(url(&server, "/")).run_plain();
        assert_eq!(output.code, code, "{script}: {output:?}");
        assert_eq!(old.check(&output, script), new, "{script}: {output:?}");
        assert_eq!(output.stdout.contains("Requests/sec:"), new > 0, "{script}: the report is there: {output:?}");
    }
}

/// Steps that never end by themselves, and the signals that end them.
fn signals_at_any_step_lose_no_file(context: &Context) {
    let server = target();
    // `HERE` shows that the script has reached this place, where it receives the next signal.
    for (script, signals, code, new) in [
        // During the measurement, one signal is enough.
        ("function response() HERE end", &[Signal::INT][..], 0, NAMES.len()),
        ("function response() HERE end", &[Signal::TERM], 0, NAMES.len()),
        ("function response() HERE end", &[Signal::HUP], 0, NAMES.len()),
        // Before the run, there is nothing to write.
        ("HERE while true do end", &[Signal::INT], 130, 0),
        ("function init() HERE while true do end end", &[Signal::TERM], 130, 0),
        // After the run, all files exist.
        (
            "function response() HERE end function done() HERE while true do end end",
            &[Signal::HUP, Signal::INT],
            130,
            NAMES.len(),
        ),
    ] {
        let (old, marks) = (OldFiles::new("signals"), Scratch::new("marks"));
        let mark = |number: usize| marks.path().join(number.to_string());
        let tell = |number| format!(" io.open('{}', 'w'):close() ", mark(number).display());
        let source: String = script
            .split("HERE")
            .enumerate()
            .map(|(part, text)| if part > 0 { tell(part) + text } else { text.to_owned() })
            .collect();
        // Only a signal ends this run.
        let onrush = context.onrush().words("-t1 -c1 -d20s -s").word(old.0.file("s.lua", source));
        let child = old.written_by(onrush).word(url(&server, "/delay/5")).spawn();
        for (number, sent) in signals.iter().enumerate() {
            wait_until(|| mark(number + 1).exists());
            signal(&child, *sent);
        }
        let output = finish(child);
        let what = format!("{signals:?} {script}");
        assert_eq!((output.code, old.check(&output, &what)), (code, new), "{what}: {output:?}");
    }
}

fn runs_proceed_with_an_unread_report(context: &Context) {
    let server = target();
    let gone = || {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (stdout, code) in [(gone(), 0), (full(), 1)] {
        let old = OldFiles::new("unread");
        let onrush = context.onrush().words("-c1 -n10").with(|command| _ = command.stdout(stdout));
        let output = old.written_by(onrush).word(url(&server, "/")).run_plain();
        assert_eq!(old.check(&output, "unread"), NAMES.len());
        assert_eq!((output.code, output.stderr.contains("No space left on device")), (code, code == 1), "{output:?}");
    }
    // The reader of the pipe never reads: the files are written nevertheless, and one signal is enough.
    let (_reader, writer) = pipe().unwrap();
    fill(&writer);
    let old = OldFiles::new("blocked");
    let onrush = context.onrush().words("-c1 -n10").with(|command| _ = command.stdout(Stdio::from(writer)));
    // If the first lines of the report are printed only after the run, they block nothing.
    let child = old.written_by(onrush).words("--format json").word(url(&server, "/")).spawn();
    wait_until(|| waits_for_reader(&child));
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!((output.code, old.check(&output, "blocked")), (130, NAMES.len()), "{output:?}");
}

/// If the first lines are printed before the run, there is no run, and one signal is enough.
fn blocked_reports_end_with_one_signal(context: &Context) {
    let server = target();
    let (_reader, writer) = pipe().unwrap();
    fill(&writer);
    let old = OldFiles::new("blocked");
    let onrush = context.onrush().words("-c1 -n10").with(|command| _ = command.stdout(Stdio::from(writer)));
    let child = old.written_by(onrush).word(url(&server, "/")).spawn();
    wait_until(|| waits_for_reader(&child));
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!((output.code, old.check(&output, "blocked")), (130, 0), "{output:?}");
}

/// True if the main thread of a program waits for a reader of a full pipe.
pub fn waits_for_reader(child: &Child) -> bool {
    fs::read_to_string(format!("/proc/{}/wchan", child.id())).is_ok_and(|place| place.contains("pipe_write"))
}

/// Fills a pipe completely.
pub fn fill(writer: impl AsFd) {
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while rustix::io::write(&writer, &[b' '; 4096]).is_ok() {}
    while rustix::io::write(&writer, b" ").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
}

fn unread_fifos_do_not_block(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("fifo"));
    let fifos = ["f.ndjson", "f.json"].map(|name| scratch.path().join(name));
    for fifo in &fifos {
        mknodat(CWD, fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    let write_into = |onrush: Onrush| fifos.iter().fold(onrush, |onrush, fifo| onrush.word("-o").word(fifo));
    let other = scratch.path().join("r.json");
    let onrush = write_into(context.onrush().words("-c1 -n10")).word("-o").word(&other);
    let output = onrush.word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    output.assert_standard();
    assert!(is_complete("r.json", &fs::read_to_string(&other).unwrap()));
    assert_eq!(output.stderr.matches("no reader, or the disk is too slow").count(), 2, "{output:?}");
    // Readers that do read get everything.
    let read = |fifo| Command::new("cat").arg(fifo).stdout(Stdio::piped()).spawn().unwrap();
    let readers = [0, 1].map(|index| read(&fifos[index]));
    let output = write_into(context.onrush().words("-c1 -n10")).word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    for (fifo, reader) in fifos.iter().zip(readers) {
        let text = String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap();
        assert!(!text.is_empty() && is_complete(&fifo.to_string_lossy(), &text), "{text} {output:?}");
    }
}

/// The name server never responds.
fn signals_end_name_lookups(context: &Context) {
    const SILENT: &str = "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                          s.bind((\"127.0.0.1\", 53))\ns.recv(512)\nopen(\"asked\", \"w\")\ntime.sleep(20)\n";
    const JAIL: &str = "ip link set lo up; echo nameserver 127.0.0.1 >resolv; echo 'hosts: dns' >nss; \
                        mount --bind resolv /etc/resolv.conf; mount --bind nss /etc/nsswitch.conf; \
                        python3 silent.py & until ss -lun | grep -q :53; do sleep 0.05; done; exec \"$0\" \"$@\"";
    let (old, jail) = (OldFiles::new("names"), Scratch::new("jail"));
    jail.file("silent.py", SILENT);
    let in_jail = |command: &mut Command| {
        let mut jailed = Command::new("unshare");
        jailed.args(["-rmn", "sh", "-c", JAIL]).arg(command.get_program()).args(command.get_args());
        jailed.current_dir(jail.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        *command = jailed;
    };
    let onrush = old.written_by(context.onrush().words("-c1 -d20s")).word("http://somewhere.example/");
    // `unshare` and `sh` execute the program.
    let child = onrush.with(in_jail).spawn();
    wait_until(|| jail.path().join("asked").exists());
    signal(&child, Signal::INT);
    let output = last_words(child);
    assert!(output.took < Duration::from_secs(10), "{output:?}");
    assert_eq!((output.code, old.check(&output, "name")), (5, NAMES.len()), "{output:?}");
    output.note("interrupted before");
}

/// Output of a program that leaves behind children, which keep its pipes open.
fn last_words(mut child: Child) -> ProgramOutput {
    let start = Instant::now();
    let (status, mut stderr) = (child.wait().expect("it ends"), vec![0; 64 * 1024]);
    let length = child.stderr.take().map_or(0, |mut pipe| pipe.read(&mut stderr).unwrap_or(0));
    stderr.truncate(length);
    ProgramOutput::new(std::process::Output { status, stdout: Vec::new(), stderr }, start.elapsed())
}

fn interrupted_runs_are_marked(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("interrupted"));
    let path = scratch.path().join("r.json");
    let child = context.onrush().words("-c1 -d10s -o").word(&path).word(url(&server, "/delay/5")).spawn();
    wait_for_load(&server);
    signal(&child, Signal::INT);
    let output = finish(child);
    let document = document(&path);
    assert_eq!((output.code, &document["interrupted"]), (0, &Value::Bool(true)), "{output:?}");
    let note = output.note("interrupted after ");
    assert!(note.contains(" of 10s"), "{note}");
    assert!(document["incomplete"].is_null(), "what was measured is all there");
}

fn lost_terminals_lose_nothing(context: &Context) {
    let run = |onrush: Onrush| {
        let (server, old) = (target(), OldFiles::new("hup"));
        let child = old.written_by(onrush).words("-c1").word(url(&server, "/delay/5")).spawn();
        wait_for_load(&server);
        signal(&child, Signal::HUP);
        let output = finish(child);
        assert_eq!((output.code, old.check(&output, "hup")), (0, NAMES.len()), "{output:?}");
        document(&old.path("r.json"))
    };
    // These tests may themselves have been started with nohup(1), which a shell cannot undo.
    let hears = context.after("exec env --default-signal=HUP \"$0\" \"$@\"");
    assert_eq!(run(hears.words("-d10s"))["interrupted"], true);
    let nohup = run(context.after("trap '' HUP").words("-d500ms"));
    assert!(nohup["interrupted"].is_null(), "nohup(1) is respected");
}

fn failing_scripts_lose_nothing(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("middle"));
    let script = "local n = 0 function response() n = n + 1 if n == 20 then error('tired') end end";
    for program in context.both() {
        let path = scratch.path().join("r.json");
        let onrush = program.words("-t1 -c1 -d10s -o").word(&path).lua(script).word(url(&server, "/"));
        let output = onrush.run();
        assert_eq!(output.code, 1, "{output:?}");
        output.assert_standard();
        assert!((19..=21).contains(&output.requests()), "{output:?}");
        let document = document(&path);
        assert!(document["incomplete"].as_str().is_some_and(|why| why.contains("tired")), "{document}");
        assert!(document["requests"]["completed"].as_u64().unwrap() >= 19);
        let last = output.stderr.lines().rev().find(|line| line.contains("tired")).expect("it is said");
        assert!(last.contains(":1: tired"), "{output:?}");
    }
}

fn script_output_stays_out_of_documents(context: &Context) {
    let server = target();
    let script = "print('from the chunk') function init() io.write('from init\\n') os.execute('echo from a child') end
                  function done() print('from done') io.stderr:write('to stderr\\n') end";
    let output =
        context.onrush().words("--format json -n 10 -c 1 -t 1").lua(script).word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let document: Value = serde_json::from_str(&output.stdout).expect("it is JSON and nothing else");
    assert_eq!(document["requests"]["completed"], 10);
    for words in ["from the chunk", "from init", "from a child", "from done", "to stderr"] {
        output.note(words);
    }
}

fn unstarted_runs_touch_no_file(context: &Context) {
    let server = target();
    for words in ["http://nosuch.invalid/", "http://127.0.0.1:1/", "-s /nowhere.lua", "-s ERROR"] {
        let old = OldFiles::new("never");
        let onrush = old.written_by(context.onrush().words("-c1 -d1"));
        let output = match words {
            "-s ERROR" => onrush.script(old.0.file("s.lua", "error('no')")).word(url(&server, "/")),
            "-s /nowhere.lua" => onrush.words(words).word(url(&server, "/")),
            _ => onrush.words(words),
        };
        let output = output.run_plain();
        assert!(output.code == 1 || output.code == 2, "{output:?}");
        assert_eq!(old.check(&output, words), 0, "{output:?}");
    }
    // A missing file is not created.
    let scratch = Scratch::new("never-new");
    let path = scratch.path().join("new.ndjson");
    let output = context.onrush().words("-c1 -d1 -o").word(&path).words("http://nosuch.invalid/").run_plain();
    assert!(output.code == 1 && !path.exists(), "{output:?}");
    // A wrong option is found before any file is opened.
    let old = OldFiles::new("refused");
    let output = old.written_by(context.onrush()).words("-d 1x").word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    NAMES.iter().for_each(|name| assert_eq!(fs::read_to_string(old.path(name)).unwrap(), OLD, "{name}"));
}

fn line_files_are_truncated_at_first_row(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("cut"));
    let path = scratch.file("r.ndjson", "a line of an earlier run that is longer than every new one\n".repeat(100));
    let output = context.onrush().words("-c1 -n20 -o").word(&path).word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(is_complete("r.ndjson", &text) && text.lines().count() == 1, "{text}");
}

fn files_are_written_only_once(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("twice"));
    std::os::unix::fs::symlink("a.json", scratch.path().join("link.csv")).unwrap();
    let at = |name: &str| scratch.path().join(name);
    for (one, other) in [("a.json", "link.csv"), ("link.csv", "a.json")] {
        let onrush = context.onrush().words("-c1 -n1 -o").word(at(one)).word("-o").word(at(other));
        let output = onrush.word(url(&server, "/")).run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        output.note("the same file as");
    }
}

fn file_size_limits_are_ordinary_errors(context: &Context) {
    let server = target();
    let old = OldFiles::new("size");
    let onrush = old.written_by(context.limited("-f 1").words("-c1 -n10")).word(url(&server, "/"));
    let output = onrush.run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    output.note("the file exceeds the file-size limit; raise the limit (ulimit -f)");
    assert!(old.check(&output, "limited") < NAMES.len());
    output.assert_standard();
}

fn quit_signals_leave_no_partial_file(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("quit"));
    let old = scratch.file("old.json", OLD);
    let (new, lines) = (scratch.path().join("new.json"), scratch.path().join("new.ndjson"));
    // Without a core file, even if these tests were started with the signal ignored. The first line appears after a
    // second.
    let hears = context.after("ulimit -c 0; exec env --default-signal=QUIT \"$0\" \"$@\"");
    let onrush = hears.words("-d30s -t1 -c2 --io").word(context.backend);
    let onrush = [&old, &new, &lines].iter().fold(onrush, |onrush, path| onrush.word("-o").word(path));
    let child = onrush.word(url(&server, "/delay/5")).spawn();
    wait_for_load(&server);
    assert!(lines.exists());
    signal(&child, Signal::QUIT);
    let output = finish(child);
    assert_eq!(output.code, -1, "the signal ends it: {output:?}");
    assert!(output.took < Duration::from_secs(20), "{output:?}");
    assert_eq!(fs::read_to_string(&old).unwrap(), OLD);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "{output:?}");
}

fn initially_ignored_quit_signals_end_nothing(context: &Context) {
    let server = target();
    let child = context.after("trap '' QUIT").words("-c1 -d500ms").word(url(&server, "/delay/5")).spawn();
    wait_for_load(&server);
    signal(&child, Signal::QUIT);
    let output = finish(child);
    assert_eq!(output.code, 0, "as commands that a shell started in the background: {output:?}");
}

fn exits_do_not_hide_stuck_threads(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("hidden"));
    let stuck = scratch.path().join("stuck");
    let script = format!(
        "local n = 0 function response()
           n = n + 1
           if n > 20 and wrk.thread.id == 1 then io.open('{0}', 'w'):close() while true do end end
           if wrk.thread.id == 2 and io.open('{0}') then os.exit(0) end
         end",
        stuck.display()
    );
    let path = scratch.path().join("r.json");
    // The script ends the run.
    let onrush = context.onrush().words("-t2 -c2 -d10s -o").word(&path).lua(&script).word(url(&server, "/"));
    let output = onrush.run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    output.note("thread 1 is still in the script's response()");
}

/// Simulates a lack of memory: there is room for everything but the stack of a thread.
fn files_are_written_without_new_threads(context: &Context) {
    const SCRIPT: &str = r#"
        local ffi = require("ffi")
        ffi.cdef([[
            struct step { uint16_t code; uint8_t yes, no; uint32_t value; };
            struct steps { uint16_t count; struct step *steps; };
            int prctl(int, long, long, long, long);
            long syscall(long, ...);
        ]])
        local seccomp, clone = 317, 56
        if jit.arch == "arm64" then seccomp, clone = 277, 220 end
        -- clone() and clone3() fail with EAGAIN, in all threads.
        local steps = ffi.new("struct step[5]", {
            { 0x20, 0, 0, 0 }, { 0x15, 1, 0, clone }, { 0x15, 0, 1, 435 }, { 0x06, 0, 0, 0x0005000b }, { 0x06, 0, 0, 0x7fff0000 },
        })
        local count = 0
        function request()
            count = count + 1
            if count == 10 then
                ffi.C.prctl(38, 1, 0, 0, 0)
                local long = ffi.typeof("long")
                assert(ffi.C.syscall(seccomp, long(1), long(1), ffi.new("struct steps", { 5, steps })) == 0)
                error("no thread any more")
            end
            return wrk.format()
        end"#;
    let (server, old) = (target(), OldFiles::new("no-thread"));
    let onrush = context.onrush().words("-t1 -c1 -d5s -s").word(old.0.file("s.lua", SCRIPT));
    let output = old.written_by(onrush).word(url(&server, "/")).run_plain();
    assert_eq!((output.code, old.check(&output, "no thread")), (1, NAMES.len()), "{output:?}");
    output.note("no thread any more");
}

fn foreign_changes_of_line_files_are_named(context: &Context) {
    let server = target();
    type FileChange = fn(&Path);
    let changes: [(&str, FileChange); 4] = [
        ("another process removed the file", |path| fs::remove_file(path).unwrap()),
        ("another process moved the file", |path| fs::rename(path, path.with_extension("old")).unwrap()),
        ("another process replaced the file", |path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            fs::write(path, "").unwrap();
        }),
        ("another process wrote to or truncated the file", |path| {
            OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
        }),
    ];
    let scratch = Scratch::new("changed");
    let paths = [0, 1, 2, 3].map(|index| scratch.path().join(format!("{index}.ndjson")));
    let onrush = paths.iter().fold(context.onrush(), |onrush, path| onrush.word("-o").word(path));
    let child = onrush.words("-c1 -d20s").word(url(&server, "/delay/5")).spawn();
    // The first row is written after a second.
    wait_until(|| paths.iter().all(|path| fs::read_to_string(path).is_ok_and(|text| !text.is_empty())));
    paths.iter().zip(changes).for_each(|(path, (_, change))| change(path));
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.code, 1, "{output:?}");
    output.assert_standard();
    for (path, (words, _)) in paths.iter().zip(changes) {
        output.note(&format!("{path:?}: {words}"));
        output.note(&format!("{path:?} is not complete"));
        // Later writes leave no hole.
        assert!(!fs::read_to_string(path).unwrap_or_default().contains('\0'));
    }
}

fn files_of_standard_streams_are_refused(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("stdout"));
    let (path, link) = (scratch.path().join("r.json"), scratch.path().join("link.json"));
    std::os::unix::fs::symlink("/dev/stdout", &link).unwrap();
    for (named, is_a_file) in [(&path, true), (&link, true), (&link, false)] {
        let into_file = |command: &mut Command| _ = command.stdout(File::create(&path).unwrap());
        let onrush = context.onrush().words("-c1 -n1 -o").word(named);
        let onrush = if is_a_file { onrush.with(into_file) } else { onrush };
        let output = onrush.word(url(&server, "/")).run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        output.note("standard output goes to the same file; choose another for one of the two");
    }
    for name in ["e.ndjson", "e.json"] {
        let path = scratch.path().join(name);
        let onrush = context.onrush().words("-c1 -n1 -o").word(&path).word(url(&server, "/"));
        let output = onrush.with(|command| _ = command.stderr(File::create(&path).unwrap())).run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        let said = fs::read_to_string(&path).unwrap();
        assert!(said.contains("standard error goes to the same file; choose another for one of the two"), "{said}");
    }
    assert_eq!(fetch_target_counts(server.address()).requests, 0);
}

fn document(path: &Path) -> Value {
    serde_json::from_reader(File::open(path).expect("it is there")).expect("it is JSON")
}
