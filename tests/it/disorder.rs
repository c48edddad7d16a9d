//! What a latency is where the network changes the order of what it carries, so that bytes come before they can be read.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Context, cases};
use crate::results::number;

cases! {
    the_wait_for_a_segment_that_comes_too_late_counts needs "unshare -rn test -w /dev/net/tun", "ip -V", "python3";
}

fn the_wait_for_a_segment_that_comes_too_late_counts(context: &Context) {
    let mut command = Command::new("unshare");
    command.args(["-rn", "python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/disorder.py")]);
    command.args([env!("CARGO_BIN_EXE_onrush"), "--io", context.backend, "--format", "json"]);
    let output = command.args(["-t1", "-c1", "-n250", "http://10.9.0.2/"]).output().expect("it runs");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(number(&document, "/requests/completed"), 250.0, "{document}");
    // The last fifth of the answers is that of the late segments.
    let late_ms = number(&document, "/latency/service/percentiles_us/90") / 1e3;
    assert!((19.9..200.0).contains(&late_ms), "{late_ms} ms");
}
