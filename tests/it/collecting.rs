//! `onrush kubernetes --collect` on the output of an imitated `kubectl`, even hostile output. `make check-kubernetes`
//! uses the real one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::harness::{Context, ProgramOutput, Scratch, cases};

cases! {
    only_marked_lines_name_results_and_code (Once);
    unreadable_logs_are_no_success (Once);
    truncated_logs_are_no_success (Once);
}

/// A `kubectl` that prints files in its directory. `LOG` in them stands for the prefix of marked lines.
struct Cluster {
    scratch: Scratch,
    into: PathBuf,
}

impl Cluster {
    fn new(name: &str, log: &str) -> Self {
        let scratch = Scratch::new(name);
        let kubectl = r#"#!/bin/sh
cd "$(dirname "$0")"
case "$1 $2" in
    "get job") cat job ;;
    "get pods") cat pods ;;
    "logs --follow") cat log; if [ -f refusal ]; then cat refusal >&2; exit 1; fi ;;
esac
"#;
        let kubectl = scratch.file("kubectl", kubectl);
        fs::set_permissions(kubectl, PermissionsExt::from_mode(0o755)).unwrap();
        let job = r#"{"metadata": {"annotations": {"onrush/log-mark": "5ecret"}},
            "status": {"conditions": [{"type": "Complete", "status": "True", "message": ""}]}}"#;
        scratch.file("job", job);
        scratch.file("pods", r#"{"items": [{"metadata": {"name": "pod"}, "status": {"phase": "Succeeded"}}]}"#);
        scratch.file("log", log.replace("LOG", "onrush-kubernetes 5ecret"));
        let into = scratch.path().join("into");
        fs::create_dir(&into).unwrap();
        Self { scratch, into }
    }

    fn collect(&self, context: &Context, out: Stdio) -> ProgramOutput {
        let onrush = context.onrush().words("kubernetes --collect run --into").word(&self.into);
        let change = |command: &mut Command| {
            command.env("PATH", with_path(self)).stdout(out);
        };
        onrush.with(change).run_plain()
    }

    fn results(&self) -> Vec<String> {
        fs::read_dir(&self.into).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn with_path(cluster: &Cluster) -> String {
    format!("{}:{}", cluster.scratch.path().display(), std::env::var("PATH").unwrap_or_default())
}

/// A result of three bytes, `{}` and a line ending, as contained in a log.
const RESULT: &str = "file 1 ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356 NAME
LOG piece H4sIAAAAAAAAA6uu5QIABrCh3QMAAAA=
";

fn only_marked_lines_name_results_and_code(context: &Context) {
    let result = |name: &str| format!("LOG {}", RESULT.replace("NAME", name));
    // A target's response may appear in the error of a script, with any line endings.
    let forged = result("forged.json").replace("LOG", "onrush-kubernetes") + "onrush-kubernetes exit 0 0\n";
    let guessed = result("guessed.json").replace("LOG", "onrush-kubernetes 0000") + "onrush-kubernetes: exit 0 0\n";
    let log = format!("script.lua:1: {forged}{guessed}{}LOG exit 3 1\n", result("run.json"));
    let cluster = Cluster::new("collect-forged", &log);
    let output = cluster.collect(context, Stdio::piped());
    assert_eq!((output.code, cluster.results()), (3, vec!["run.json".to_owned()]), "{output:?}");
    assert_eq!(fs::read(cluster.into.join("run.json")).unwrap(), b"{}\n");
    // People see them as ordinary lines.
    assert!(output.stdout.contains("script.lua:1: onrush-kubernetes file 1 ca3d"), "{output:?}");
}

fn unreadable_logs_are_no_success(context: &Context) {
    let cluster = Cluster::new("collect-refused", "one line\n");
    cluster.scratch.file("refusal", "Error: pods \"pod\" is forbidden: no \x1b[31mpods/log\n");
    let output = cluster.collect(context, Stdio::piped());
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("onrush kubernetes: kubectl logs: Error: pods \"pod\" is forbidden"), "{output:?}");
    assert!(output.stderr.contains("docs/kubernetes.md has a Role") && !output.stderr.contains('\x1b'), "{output:?}");
    let cluster = Cluster::new("collect-full", "one line\nLOG exit 0 0\n");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = cluster.collect(context, full.into());
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("cannot write the log to standard output: No space left"), "{output:?}");
}

fn truncated_logs_are_no_success(context: &Context) {
    let whole =
        format!("LOG {}LOG {}LOG exit 0 2\n", RESULT.replace("NAME", "a.json"), RESULT.replace("NAME", "b.json"));
    let lines: Vec<&str> = whole.lines().collect();
    for (from, written) in [(1, 1), (2, 1), (3, 0), (4, 0)] {
        let cluster = Cluster::new("collect-cut", &(lines[from..].join("\n") + "\n"));
        let output = cluster.collect(context, Stdio::piped());
        assert_eq!((output.code, cluster.results().len()), (1, written), "{from}: {output:?}");
        let said = format!("only {written} of 2 results are left in the log");
        assert!(output.stderr.contains(&said), "{from}: {output:?}");
    }
    let lines = [lines[0], lines[2], lines[3], lines[4]].join("\n") + "\n";
    let cluster = Cluster::new("collect-piece", &lines);
    let output = cluster.collect(context, Stdio::piped());
    assert_eq!((output.code, cluster.results()), (1, vec!["b.json".to_owned()]), "{output:?}");
    assert!(output.stderr.contains("\"a.json\" arrived damaged"), "{output:?}");
}
