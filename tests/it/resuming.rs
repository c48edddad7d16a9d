//! Experiments that end early and resume: signals, folders that belong to one process, later changes and damage.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Context, cases, fetch_target_counts, finish, signal, target, url, wait_until};
use crate::lab::{Lab, two_points};

cases! {
    interrupted_experiments_resume (Once);
    second_signals_quit (Once);
    later_changes_are_refused (Once);
    resuming_needs_what_was_left_out (Once);
    folders_belong_to_one_process (Once);
    damaged_results_are_repeated (Once);
    replaced_folders_are_never_written (Once);
    signals_end_endless_attachments (Once);
    signals_end_endless_results (Once) needs "/proc/kmsg";
}

/// Starts an experiment, and waits for the end of its first run.
fn begun(lab: &Lab, context: &Context, server: &str) -> Child {
    let text = two_points(server, "").replace("requests = 50", "duration = \"1s\"").replace("rounds = 1", "rounds = 2");
    let file = lab.file(context, &text);
    let child = lab.onrush(context, "lab --out folder").word(file).spawn();
    wait_until(|| lab.path("journal").exists() && lab.runs().len() == 1);
    child
}

fn interrupted_experiments_resume(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let child = begun(&lab, context, &url(&server, "/delay/2"));
    let before = fetch_target_counts(server.address()).requests;
    wait_until(|| fetch_target_counts(server.address()).requests > before + 20);
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.code, 130, "{output:?}");
    let first = lab.results();
    assert_eq!(first.len(), 2, "{first:?} {output:?}");
    let interrupted = first.iter().find(|name| name.ends_with(".interrupted-1.json")).expect("it is kept");
    assert_eq!(lab.document(interrupted)["interrupted"], true);
    assert!(output.stderr.contains("continue with: onrush lab --resume folder"), "{output:?}");
    let begun_at: Vec<Value> = first.iter().map(|name| lab.document(name)["started_at"].clone()).collect();
    let output = lab.onrush(context, "lab -v --resume folder").run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(lab.results().len(), 5, "{output:?}");
    assert_eq!(output.stderr.lines().filter(|line| line.starts_with('[')).count(), 3, "{output:?}");
    for (name, at) in first.iter().zip(begun_at) {
        assert_eq!(lab.document(name)["started_at"], at, "{name} was measured before");
    }
    let again = lab.onrush(context, "lab -v --resume folder").run_plain();
    assert!(again.code == 0 && again.stderr.contains("4 of 4 runs measured"), "{again:?}");
    assert!(!again.stderr.contains("\n["), "{again:?}");
}

fn second_signals_quit(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let rest = "[hooks]\nbefore_run = 'trap \"\" INT; touch begun; sleep 30'\nafter_run = 'touch after; sleep 30'\n";
    let text = two_points(&url(&server, "/"), rest);
    let child = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).spawn();
    wait_until(|| lab.scratch.path().join("begun").exists());
    signal(&child, Signal::INT);
    thread::sleep(Duration::from_millis(50));
    signal(&child, Signal::TERM);
    let output = finish(child);
    assert_eq!(output.code, 130, "{output:?}");
    assert!(output.took < Duration::from_secs(10), "{output:?}");
}

fn later_changes_are_refused(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let text = two_points(&url(&server, "/"), "[hooks]\nbefore_run = '[ $ONRUSH_LEVEL_LOAD = small ]'\n");
    let file = lab.file(context, &text);
    assert_eq!(lab.onrush(context, "lab --out folder").word(&file).run_plain().code, 1);
    let changed = fs::read_to_string(&file)
        .unwrap()
        .replace("before_run = '[ $ONRUSH_LEVEL_LOAD = small ]'", "after_point = 'true'");
    fs::write(&file, changed).unwrap();
    let refused = lab.onrush(context, "lab --resume folder").word(&file).run_plain();
    assert!(refused.code == 1 && refused.stderr.contains("the experiment has changed"), "{refused:?}");
    let forced = lab.onrush(context, "lab --force --resume folder").word(&file).run_plain();
    assert_eq!((forced.code, lab.results().len()), (0, 2), "{forced:?}");
    let plan = lab.text("plan.toml");
    let kernel = plan.lines().find(|line| line.starts_with("kernel")).unwrap();
    fs::write(lab.path("plan.toml"), plan.replace(kernel, "kernel = \"1.0\"")).unwrap();
    let refused = lab.onrush(context, "lab --resume folder").word(&file).run_plain();
    assert!(
        refused.stderr.contains("the experiment has changed") || refused.stderr.contains("the kernel was 1.0"),
        "{refused:?}"
    );
    let other = lab.onrush(context, "lab --resume .").run_plain();
    assert!(other.code == 1 && other.stderr.contains("plan.toml cannot be read"), "{other:?}");
}

fn resuming_needs_what_was_left_out(context: &Context) {
    let server = target();
    let command = "[ $ONRUSH_LEVEL_LOAD = small ]";
    for secret in ["", "\nheader = \"Cookie: hush\""] {
        let lab = Lab::new();
        let text = two_points(&url(&server, "/"), &format!("[hooks]\nbefore_run = '{command}'\n"));
        let file = lab.file(context, &text.replace("threads = 1", &format!("threads = 1{secret}")));
        let output = lab.onrush(context, "lab --out folder").word(&file).run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        let files = fs::read_dir(lab.path("")).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.is_file()) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("hush") && !text.contains(command), "{path:?}");
        }
        let refused = lab.onrush(context, "lab --resume folder").run_plain();
        let words = "its plan lacks commands or secrets";
        assert!(refused.code == 1 && refused.stderr.contains(words), "{refused:?}");
        let other = lab.onrush(context, "lab folder/plan.toml --out other").run_plain();
        assert!(other.code == 1 && other.stderr.contains("this file has only digests of the commands"), "{other:?}");
        let output = lab.onrush(context, "lab --resume folder").word(&file).run_plain();
        assert!(output.stderr.contains("1 of 2 runs measured, 1 failed"), "{output:?}");
    }
}

fn folders_belong_to_one_process(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let child = begun(&lab, context, &url(&server, "/delay/2"));
    let refused = lab.onrush(context, "lab --resume folder").run_plain();
    assert!(refused.code == 1 && refused.stderr.contains("another onrush is writing to folder"), "{refused:?}");
    signal(&child, Signal::INT);
    finish(child);
    let refused = lab.onrush(context, "lab --out folder x.toml").run_plain();
    assert!(refused.code == 1 && refused.stderr.contains("folder already exists"), "{refused:?}");
}

fn damaged_results_are_repeated(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let file = lab.file(context, &two_points(&url(&server, "/"), ""));
    let output = lab.onrush(context, "lab --out folder").word(&file).run_plain();
    assert_eq!(output.code, 0, "{output:?}");
    let name = "load-small-1.json";
    let damages = [
        ("\"bins\":\"HIST", "\"bins\":\"MIST", "its histogram cannot be read"),
        ("\"completed\":50", "\"completed\":40", "its figures contradict each other: "),
        ("{", "", "is not a result of onrush"),
    ];
    for (number, (good, bad, reason)) in (1..).zip(damages) {
        let damaged = lab.text(name).replacen(good, bad, 1);
        fs::write(lab.path(name), &damaged).unwrap();
        let output = lab.onrush(context, "lab --resume folder").run_plain();
        assert_eq!(output.code, 0, "{output:?}");
        let aside = format!("{name}.unreadable-{number}");
        let moved = format!("; the file was renamed to {aside}, and the run is repeated");
        assert!(output.stderr.contains(reason) && output.stderr.contains(&moved), "{output:?}");
        assert_eq!(lab.text(&aside), damaged);
        assert!(output.stderr.contains("1 of 2 runs remain") && output.stderr.contains("2 of 2 runs measured"));
    }
    let table = lab.onrush(context, "table --format csv folder").run_plain();
    assert_eq!((table.stdout.lines().count(), table.stderr.as_str()), (3, ""), "{table:?}");
    // A pipe without a writer does not block.
    fs::remove_file(lab.path(name)).unwrap();
    assert!(Command::new("mkfifo").arg(lab.path(name)).status().unwrap().success());
    let output = lab.onrush(context, "lab --resume folder").run_plain();
    assert!(output.code == 0 && output.stderr.contains(&format!("{name} is not a regular file")), "{output:?}");
    assert!(lab.path(name).is_file(), "{output:?}");
    // Nor does a pipe in place of the plan, neither for the command nor for the code that opens the folder.
    fs::remove_file(lab.path("plan.toml")).unwrap();
    assert!(Command::new("mkfifo").arg(lab.path("plan.toml")).status().unwrap().success());
    for given in ["", "x.toml "] {
        let output = lab.onrush(context, &format!("lab {given}--resume folder")).run_plain();
        let said = &output.stderr;
        assert!(output.code == 1 && said.contains("plan.toml") && said.contains("not a regular file"), "{output:?}");
    }
}

fn replaced_folders_are_never_written(context: &Context) {
    let (server, lab) = (target(), Lab::new());
    let rest = "[hooks]\nbefore_run = '[ $ONRUSH_LEVEL_LOAD = small ] || { mv folder elsewhere; mkdir folder; }'\n";
    let text = two_points(&url(&server, "/"), rest).replace("rounds = 1", "rounds = 1\norder = \"sequential\"");
    let output = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).run_plain();
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("folder was moved, replaced or deleted"), "{output:?}");
    assert_eq!(fs::read_dir(lab.path("")).unwrap().count(), 0, "{output:?}");
    assert!(lab.scratch.path().join("elsewhere/load-small-1.json").exists(), "{output:?}");
}

/// A single signal ends the reading of a needed file that blocks before its end, as some in `/proc` do.
fn signals_end_endless_attachments(context: &Context) {
    let lab = Lab::new();
    let pipe = lab.scratch.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = two_points("http://127.0.0.1:1/", "").replace("threads = 1", "threads = 1\nscript = \"pipe\"");
    let child = lab.onrush(context, "lab --out folder").word(lab.file(context, &text)).spawn();
    // Returns when the other side is opened for reading. It stays open, so there is no end.
    let writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    signal(&child, Signal::INT);
    let output = finish(child);
    drop(writer);
    assert_eq!(output.code, 130, "{output:?}");
    assert!(!lab.path("").exists(), "{output:?}");
}

/// Read as a result, and as any other file that tables accept.
fn signals_end_endless_results(context: &Context) {
    // The file blocks until the kernel logs another message; only root may read it.
    let endless = Path::new("/proc/kmsg");
    let (server, lab) = (target(), Lab::new());
    let file = lab.file(context, &two_points(&url(&server, "/"), ""));
    assert_eq!(lab.onrush(context, "lab --out folder").word(&file).run_plain().code, 0);
    let results = lab.results();
    for name in ["other.json", &results[0]] {
        let path = lab.path(name);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(endless, &path).unwrap();
        let child = lab.onrush(context, "lab --resume folder").word(&file).spawn();
        let is_open = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|path| path == endless);
        let descriptors = format!("/proc/{}/fd", child.id());
        wait_until(|| fs::read_dir(&descriptors).is_ok_and(|mut open| open.any(|entry| entry.is_ok_and(is_open))));
        signal(&child, Signal::INT);
        let output = finish(child);
        assert_eq!(output.code, 130, "{name}: {output:?}");
        fs::remove_file(path).unwrap();
    }
}
