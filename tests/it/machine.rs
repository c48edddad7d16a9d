//! Measurements whose result depends on the machine as much as on the program: they need a quiet one, and are no tests.
//!
//! `make check-machine` runs them one after the other, before a release and whenever their subject changes. Each names
//! what covers it in `make test`.

use std::time::Duration;

use rustix::process::Signal;

use crate::evidence::{processor_times, unaccounted_s};
use crate::harness::{Context, cases, finish, signal, target, url, wait_for_load};

cases! {
    one_signal_brings_the_report_within_300_ms;
    processor_time_of_the_threads_is_that_of_the_process;
}

/// That one signal brings it at all, `terminal` shows in `make test`.
fn one_signal_brings_the_report_within_300_ms(context: &Context) {
    let server = target();
    let onrush = context.onrush().words("-t2 -c4 -d30s --io").word(context.backend);
    let child = onrush.word(url(&server, "/")).spawn();
    wait_for_load(&server);
    signal(&child, Signal::INT);
    let output = finish(child);
    println!("report after a signal [{}]: {:?}", context.backend, output.took);
    assert!(output.code == 0 && output.took < Duration::from_millis(300), "{output:?}");
}

/// What holds on a busy machine, too, `evidence` shows in `make test`.
fn processor_time_of_the_threads_is_that_of_the_process(context: &Context) {
    let (document, threads_s, process_s) = processor_times(context, "-c20 -t2 -d2s");
    println!("processor time of the threads [{}]: {threads_s:.3} s of {process_s:.3} s", context.backend);
    assert!(threads_s > 0.8 * process_s - 0.05, "{document}");
    let unaccounted_s = unaccounted_s(&document);
    println!("all times of each thread beyond that of the run [{}]: {unaccounted_s:.3?} s", context.backend);
    assert!(unaccounted_s.iter().all(|seconds| (-0.02..0.1).contains(seconds)), "{document}");
}
