//! No matter how a run ends: exit code 0 means that every output file is new and complete. With any other, each is new
//! and complete, or as it was before, and standard error says which.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pipe::pipe;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Context, Onrush, Output, Scratch, cases, counts, finish, signal, target, url};

cases! {
    every_file_is_new_and_complete_or_as_it_was;
    a_signal_at_any_step_loses_no_file;
    the_run_takes_place_though_nobody_reads_the_report;
    a_report_that_cannot_begin_ends_with_one_signal;
    a_fifo_that_nobody_reads_keeps_nobody_waiting;
    a_signal_ends_the_search_for_a_name needs "unshare -rmn true", "python3", "ss";
    an_interrupted_run_says_so;
    a_terminal_that_goes_away_loses_nothing;
    a_script_that_fails_in_the_middle_loses_nothing;
    what_a_script_prints_stays_out_of_the_document;
    a_run_that_never_begins_touches_no_file;
    an_old_file_of_lines_is_cut_when_the_first_row_comes;
    one_file_is_not_written_twice;
    a_limit_on_the_size_of_files_is_an_error_like_others;
    a_stuck_thread_is_not_hidden_by_an_exit;
    files_are_written_though_no_thread_can_be_made_any_more;
    a_file_of_lines_that_somebody_else_changes_is_named;
    a_file_that_a_standard_stream_goes_to_is_refused;
}

/// The previous content of every file.
const OLD: &str = "old\n";

/// The formats of output files; every run here writes all of them.
const NAMES: [&str; 5] = ["r.json", "r.csv", "r.hgrm", "r.md", "r.ndjson"];

/// A directory with an old file of each format.
struct Old(Scratch);

impl Old {
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

    /// Checks the invariant; returns how many files are new.
    fn check(&self, output: &Output, what: &str) -> usize {
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

/// Whether the text is a complete file of that name.
fn is_complete(name: &str, text: &str) -> bool {
    match name.rsplit_once('.').unwrap().1 {
        "json" => serde_json::from_str::<Value>(text).is_ok_and(|document| document["schema"] == 1),
        "ndjson" => {
            text.is_empty()
                || text.ends_with('\n') && text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok())
        }
        "csv" => text.starts_with("start_s,") && text.ends_with('\n'),
        "hgrm" => text.trim_end().ends_with(']'),
        _ => text.starts_with("| requests |") && text.ends_with("|\n"),
    }
}

/// Every fault that a script, a reader or a disk can have, and how the run ends.
fn every_file_is_new_and_complete_or_as_it_was(context: &Context) {
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
        // After it.
        ("function done() os.exit(0) end", 0, all),
        ("function done() os.exit(7) end", 7, all),
        ("function done() error('no') end", 1, all),
        ("function done() io.stdout:close() end", 0, all),
        ("function done() ABORT end", -1, all),
    ] {
        let old = Old::new("endings");
        let source = if script.contains("ABORT") {
            abort.to_owned() + &script.replace("ABORT", "ffi.C.abort()")
        } else {
            script.to_owned()
        };
        let onrush = context.onrush().words("-t2 -c2 -d300ms -s").word(old.0.file("s.lua", &source));
        let output = old.written_by(onrush).word(url(&server, "/")).run_plain();
        assert_eq!(output.code, code, "{script}: {output:?}");
        assert_eq!(old.check(&output, script), new, "{script}: {output:?}");
        assert_eq!(output.stdout.contains("Requests/sec:"), new > 0, "{script}: the report is there: {output:?}");
    }
}

/// A step that never ends by itself, and the signals that end it.
fn a_signal_at_any_step_loses_no_file(context: &Context) {
    let server = target();
    for sent in [Signal::INT, Signal::TERM, Signal::HUP] {
        for (script, signals, code, new) in [
            // During the measurement, one signal is enough.
            ("", 1, 0, NAMES.len()),
            // Before the run there is nothing to write.
            ("while true do end", 1, 130, 0),
            ("function init() while true do end end", 1, 130, 0),
            // After it all files are there.
            ("function done() while true do end end", 2, 130, NAMES.len()),
        ] {
            let old = Old::new("signals");
            let onrush = context.onrush().words("-t1 -c1 -d20s -s").word(old.0.file("s.lua", script));
            let child = old.written_by(onrush).word(url(&server, "/")).spawn();
            let is_new = |name: &str| fs::read_to_string(old.path(name)).unwrap() != OLD;
            if new > 0 {
                // It has measured for a second.
                wait_until(|| is_new("r.ndjson"));
            } else {
                thread::sleep(Duration::from_millis(700));
            }
            signal(&child, sent);
            if signals == 2 {
                // The second signal is sent when the files exist.
                wait_until(|| is_new("r.json"));
                thread::sleep(Duration::from_millis(700));
                signal(&child, sent);
            }
            let output = finish(child);
            let what = format!("{sent:?} {script}");
            assert_eq!((output.code, old.check(&output, &what)), (code, new), "{what}: {output:?}");
            assert!(output.took < Duration::from_secs(5), "{what}: {output:?}");
        }
    }
}

fn the_run_takes_place_though_nobody_reads_the_report(context: &Context) {
    let server = target();
    let gone = || {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (stdout, code) in [(gone(), 0), (full(), 1)] {
        let old = Old::new("unread");
        let onrush = context.onrush().words("-c1 -n10").with(|command| _ = command.stdout(stdout));
        let output = old.written_by(onrush).word(url(&server, "/")).run_plain();
        assert_eq!(old.check(&output, "unread"), NAMES.len());
        assert_eq!((output.code, output.stderr.contains("No space left on device")), (code, code == 1), "{output:?}");
    }
    // The pipe has a reader that never reads: the files are written all the same, and one signal is enough.
    let (_reader, writer) = pipe().unwrap();
    fill(&writer);
    let old = Old::new("blocked");
    let onrush = context.onrush().words("-c1 -n10").with(|command| _ = command.stdout(Stdio::from(writer)));
    // The first lines of the report block nothing if they are printed after the run.
    let child = old.written_by(onrush).words("--format json").word(url(&server, "/")).spawn();
    thread::sleep(Duration::from_millis(1500));
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!((output.code, old.check(&output, "blocked")), (130, NAMES.len()), "{output:?}");
}

/// If they are printed before it there is no run, and one signal is enough, too.
fn a_report_that_cannot_begin_ends_with_one_signal(context: &Context) {
    let server = target();
    let (_reader, writer) = pipe().unwrap();
    fill(&writer);
    let old = Old::new("blocked");
    let onrush = context.onrush().words("-c1 -n10").with(|command| _ = command.stdout(Stdio::from(writer)));
    let child = old.written_by(onrush).word(url(&server, "/")).spawn();
    thread::sleep(Duration::from_millis(1500));
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!((output.code, old.check(&output, "blocked")), (130, 0), "{output:?}");
}

/// Fills a pipe completely.
fn fill(writer: &OwnedFd) {
    rustix::io::ioctl_fionbio(writer, true).unwrap();
    while rustix::io::write(writer, &[b' '; 4096]).is_ok() {}
    while rustix::io::write(writer, b" ").is_ok() {}
    rustix::io::ioctl_fionbio(writer, false).unwrap();
}

fn a_fifo_that_nobody_reads_keeps_nobody_waiting(context: &Context) {
    let server = target();
    for name in ["f.ndjson", "f.json"] {
        let scratch = Scratch::new("fifo");
        let (fifo, other) = (scratch.path().join(name), scratch.path().join("r.json"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let onrush = context.onrush().words("-c1 -d1500ms -o").word(&fifo).word("-o").word(&other);
        let output = onrush.word(url(&server, "/")).run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        output.assert_standard();
        assert!(is_complete("r.json", &fs::read_to_string(&other).unwrap()));
        assert!(output.took < Duration::from_secs(40), "{output:?}");
        output.note("it has no reader");
        // A reader that does read gets all of it.
        let reader = Command::new("cat").arg(&fifo).stdout(Stdio::piped()).spawn().unwrap();
        let onrush = context.onrush().words("-c1 -d1500ms -o").word(&fifo).word(url(&server, "/"));
        let output = onrush.run_plain();
        let read = reader.wait_with_output().unwrap().stdout;
        assert_eq!(output.code, 0, "{output:?}");
        assert!(is_complete(name, &String::from_utf8(read).unwrap()), "{output:?}");
    }
}

/// The name server never responds.
fn a_signal_ends_the_search_for_a_name(context: &Context) {
    const SILENT: &str = "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                          s.bind((\"127.0.0.1\", 53))\ns.recv(512)\nopen(\"asked\", \"w\")\ntime.sleep(20)\n";
    const JAIL: &str = "ip link set lo up; echo nameserver 127.0.0.1 >resolv; echo 'hosts: dns' >nss; \
                        mount --bind resolv /etc/resolv.conf; mount --bind nss /etc/nsswitch.conf; \
                        python3 silent.py & until ss -lun | grep -q :53; do sleep 0.05; done; exec \"$0\" \"$@\"";
    let (old, jail) = (Old::new("names"), Scratch::new("jail"));
    jail.file("silent.py", SILENT);
    let in_jail = |command: &mut Command| {
        let mut jailed = Command::new("unshare");
        jailed.args(["-rmn", "sh", "-c", JAIL]).arg(command.get_program()).args(command.get_args());
        jailed.current_dir(jail.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        *command = jailed;
    };
    let onrush = old.written_by(context.onrush().words("-c1 -d20s")).word("http://somewhere.example/");
    // `unshare` and `sh` become the program.
    let child = onrush.with(in_jail).spawn();
    wait_until(|| jail.path().join("asked").exists());
    let start = Instant::now();
    signal(&child, Signal::INT);
    let (code, stderr) = last_words(child);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    let took = start.elapsed();
    let output =
        Output { stdout: String::new(), stderr, code, verdict: String::new(), of_the_machine: String::new(), took };
    assert_eq!((output.code, old.check(&output, "name")), (5, NAMES.len()), "{output:?}");
    output.note("interrupted before");
}

/// The exit code and standard error of a program that leaves children behind, which keep its pipes open.
fn last_words(mut child: std::process::Child) -> (i32, String) {
    let code = child.wait().expect("it ends").code().unwrap_or(-1);
    let mut text = vec![0; 64 * 1024];
    let length = child.stderr.take().map_or(0, |mut pipe| pipe.read(&mut text).unwrap_or(0));
    (code, String::from_utf8_lossy(&text[..length]).into_owned())
}

/// Waits for something that happens within seconds.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() && start.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(is_so(), "it never came");
}

fn an_interrupted_run_says_so(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("interrupted"));
    let path = scratch.path().join("r.json");
    let onrush = context.onrush().words("-c1 -d10s -o").word(&path).word(url(&server, "/"));
    let output = onrush.interrupt_after(Duration::from_millis(700)).run_plain();
    let document = document(&path);
    assert_eq!((output.code, &document["interrupted"]), (0, &Value::Bool(true)));
    let note = output.note("interrupted after ");
    assert!(note.contains(" of 10s"), "{note}");
    assert!(document["incomplete"].is_null(), "what was measured is all there");
}

fn a_terminal_that_goes_away_loses_nothing(context: &Context) {
    let server = target();
    let run = |nohup: bool| {
        let old = Old::new("hup");
        let onrush = if nohup { context.after("trap '' HUP") } else { context.onrush() };
        let child = old.written_by(onrush.words("-c1 -d2s")).word(url(&server, "/")).spawn();
        thread::sleep(Duration::from_millis(600));
        signal(&child, Signal::HUP);
        let output = finish(child);
        assert_eq!((output.code, old.check(&output, "hup")), (0, NAMES.len()), "{output:?}");
        document(&old.path("r.json"))
    };
    assert_eq!(run(false)["interrupted"], true);
    assert!(run(true)["interrupted"].is_null(), "nohup(1) is respected");
}

fn a_script_that_fails_in_the_middle_loses_nothing(context: &Context) {
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
        assert!(output.took < Duration::from_secs(5), "{output:?}");
    }
}

fn what_a_script_prints_stays_out_of_the_document(context: &Context) {
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

fn a_run_that_never_begins_touches_no_file(context: &Context) {
    let server = target();
    for words in ["http://nosuch.invalid/", "http://127.0.0.1:1/", "-s /nowhere.lua", "-s ERROR"] {
        let old = Old::new("never");
        let onrush = old.written_by(context.onrush().words("-c1 -d1"));
        let output = match words {
            "-s ERROR" => onrush.script(old.0.file("s.lua", "error('no')")).word(url(&server, "/")),
            "-s /nowhere.lua" => onrush.words(words).word(url(&server, "/")),
            _ => onrush.words(words),
        };
        let output = output.run_plain();
        assert!(output.code == 1 || output.code == 2, "{output:?}");
        assert_eq!(old.check(&output, words), 0, "{output:?}");
        // A file that did not exist is not created.
        let scratch = Scratch::new("never-new");
        let path = scratch.path().join("new.ndjson");
        let output = context.onrush().words("-c1 -d1 -o").word(&path).words("http://nosuch.invalid/").run_plain();
        assert!(output.code == 1 && !path.exists(), "{output:?}");
    }
    // A wrong option is found before any file is opened.
    let old = Old::new("refused");
    let output = old.written_by(context.onrush()).words("-d 1x").word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    NAMES.iter().for_each(|name| assert_eq!(fs::read_to_string(old.path(name)).unwrap(), OLD, "{name}"));
}

fn an_old_file_of_lines_is_cut_when_the_first_row_comes(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("cut"));
    let path = scratch.file("r.ndjson", "a line of an earlier run that is longer than every new one\n".repeat(100));
    let output = context.onrush().words("-c1 -n20 -o").word(&path).word(url(&server, "/")).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(is_complete("r.ndjson", &text) && text.lines().count() == 1, "{text}");
}

fn one_file_is_not_written_twice(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("twice"));
    std::os::unix::fs::symlink("a.json", scratch.path().join("link.csv")).unwrap();
    let at = |name: &str| scratch.path().join(name);
    for (one, other) in [("a.json", "link.csv"), ("link.csv", "a.json")] {
        let onrush = context.onrush().words("-c1 -n1 -o").word(at(one)).word("-o").word(at(other));
        let output = onrush.word(url(&server, "/")).run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        output.note("it is the same file as");
    }
}

fn a_limit_on_the_size_of_files_is_an_error_like_others(context: &Context) {
    let server = target();
    let old = Old::new("size");
    let onrush = old.written_by(context.limited("-f 1").words("-c1 -n10")).word(url(&server, "/"));
    let output = onrush.run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    output.note("File too large");
    assert!(old.check(&output, "limited") < NAMES.len());
    output.assert_standard();
}

fn a_stuck_thread_is_not_hidden_by_an_exit(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("hidden"));
    let script = "local n = 0 function response()
                    n = n + 1
                    if n > 20 and wrk.thread.id == 1 then while true do end end
                    if n > 200 and wrk.thread.id == 2 then os.exit(0) end
                  end";
    let path = scratch.path().join("r.json");
    let onrush = context.onrush().words("-t2 -c2 -d1s -o").word(&path).lua(script).word(url(&server, "/"));
    let output = onrush.run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    output.note("thread 1 is still in the script's response()");
}

/// As if memory had run out: there is room for everything but the stack of a thread.
fn files_are_written_though_no_thread_can_be_made_any_more(context: &Context) {
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
    let (server, old) = (target(), Old::new("no-thread"));
    let onrush = context.onrush().words("-t1 -c1 -d5s -s").word(old.0.file("s.lua", SCRIPT));
    let output = old.written_by(onrush).word(url(&server, "/")).run_plain();
    assert_eq!((output.code, old.check(&output, "no thread")), (1, NAMES.len()), "{output:?}");
    output.note("no thread any more");
}

fn a_file_of_lines_that_somebody_else_changes_is_named(context: &Context) {
    let server = target();
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("another process removed it", |path| fs::remove_file(path).unwrap()),
        ("another process moved it", |path| fs::rename(path, path.with_extension("old")).unwrap()),
        ("another process replaced it", |path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            fs::write(path, "").unwrap();
        }),
        ("another process wrote to it or truncated it", |path| {
            OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
        }),
    ];
    for (words, change) in changes {
        let scratch = Scratch::new("changed");
        let path = scratch.path().join("r.ndjson");
        let child = context.onrush().words("-c1 -d2500ms -o").word(&path).word(url(&server, "/")).spawn();
        wait_until(|| fs::read_to_string(&path).is_ok_and(|text| !text.is_empty()));
        change(&path);
        let output = finish(child);
        assert_eq!(output.code, 1, "{output:?}");
        output.assert_standard();
        output.note(words);
        output.note("\" is not complete");
        // What is written later leaves no hole.
        assert!(!fs::read_to_string(&path).unwrap_or_default().contains('\0'));
    }
}

fn a_file_that_a_standard_stream_goes_to_is_refused(context: &Context) {
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
    assert_eq!(counts(server.address()).requests, 0);
}

fn document(path: &Path) -> Value {
    serde_json::from_reader(File::open(path).expect("it is there")).expect("it is JSON")
}
