//! How the generator's own threads spent their time, according to a result file.

use serde_json::Value;

use crate::harness::{Context, Onrush, Scratch, cases, target, url};
use crate::results::{document, number};

cases! {
    thread_cpu_time_is_within_process_time;
    threads_sharing_processors_are_queued (Once) needs "taskset";
    threads_with_slow_targets_sleep;
    unknown_kernel_figures_are_omitted (Once) needs "unshare -rm true";
}

/// Runs the program after `before`, as a child of a shell that continues with `after`.
fn between(context: &Context, before: &str, after: &str) -> Onrush {
    context.after(&format!("{before}; \"$0\" \"$@\"; code=$?; {after}; exit $code"))
}

/// Sum of a figure over all threads.
fn sum(document: &Value, name: &str) -> f64 {
    let threads = document["threads"].as_array().unwrap();
    threads.iter().map(|thread| number(thread, &format!("/{name}"))).sum()
}

/// Difference between each thread's total time and the run, in seconds.
pub fn unaccounted_s(document: &Value) -> Vec<f64> {
    let unaccounted_s = |thread| {
        let of = |name: &str| number(thread, &format!("/{name}"));
        let [cpu_s, parts_s] = [of("cpu_s") + of("busy_polled_s"), of("user_s") + of("system_s")];
        assert!((cpu_s - parts_s).abs() < 1e-6, "{document}");
        parts_s + of("queued_s") + of("asleep_s") - number(document, "/duration_s")
    };
    document["threads"].as_array().unwrap().iter().map(unaccounted_s).collect()
}

/// Checks that the time of each thread is accounted for. On a busy machine, a thread may start late and get its last
/// processor time only after the end; `machine` is stricter.
fn assert_accounted(document: &Value) {
    let allowed_s = -0.5 * number(document, "/duration_s")..1.0;
    let unaccounted_s = unaccounted_s(document);
    assert!(unaccounted_s.iter().all(|seconds| allowed_s.contains(seconds)), "{unaccounted_s:?}: {document}");
}

/// Runs against the target. Returns the document, and the processor time of the threads and of the process, in seconds.
pub fn processor_times(context: &Context, words: &str) -> (Value, f64, f64) {
    let (server, scratch) = (target(), Scratch::new("processor"));
    let (output, document) = document(between(context, ":", "times").words(words).word(url(&server, "/")), &scratch);
    // The last line of the output of `times` is for the shell's children: `0m0.84s 0m1.02s`.
    let line = output.stdout.lines().last().unwrap();
    let [user_s, system_s] = [0, 1].map(|index| -> f64 {
        let time = line.split(' ').nth(index).unwrap();
        time.strip_prefix("0m").and_then(|time| time.strip_suffix('s')).unwrap().parse().unwrap()
    });
    let threads_s = sum(&document, "user_s") + sum(&document, "system_s");
    (document, threads_s, user_s + system_s)
}

fn thread_cpu_time_is_within_process_time(context: &Context) {
    let (document, threads_s, process_s) = processor_times(context, "-c4 -t2 -d500ms");
    // The difference includes the time of other threads, and the rounding by the shell.
    let beside_s = number(&document, "/evidence/generator/beside_s");
    assert!(beside_s > 0.0 && beside_s <= process_s - threads_s + 0.02, "{beside_s} of {process_s}: {document}");
    assert!(threads_s < process_s + 0.05, "{threads_s} of {process_s}: {document}");
    assert!(sum(&document, "user_s") > 0.0 && sum(&document, "system_s") > 0.0, "{document}");
    assert_accounted(&document);
    assert_eq!(sum(&document, "opened"), number(&document, "/connections/opened"));
    let in_flight = sum(&document, "in_flight/mean") / number(&document, "/in_flight/mean");
    assert!((in_flight - 1.0).abs() < 1e-9, "{document}");
    // Every response is a completion, and only a few waits found nothing.
    let completions = sum(&document, "waits/completions");
    assert!(completions >= number(&document, "/requests/completed"), "{document}");
    assert!((1.0..=20.0).contains(&number(&document, "/threads/0/waits/completions_max")), "{document}");
}

fn threads_sharing_processors_are_queued(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("queue"));
    let pinned = "first=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status); \
                  taskset -pc $first $$ >&2; timeout 20 sh -c 'while :; do :; done' & other=$!";
    let program = between(context, pinned, "kill $other").words("-c4 -t1 -d400ms").word(url(&server, "/"));
    let (_, document) = document(program, &scratch);
    // It should be half of the time if both are treated equally.
    assert!(sum(&document, "queued_s") > 0.02, "{document}");
    assert_accounted(&document);
}

fn threads_with_slow_targets_sleep(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("asleep"));
    let (_, document) = document(context.onrush().words("-c2 -t1 -d1s").word(url(&server, "/delay/300")), &scratch);
    assert!(sum(&document, "asleep_s") > 0.25 * number(&document, "/duration_s"), "{document}");
    assert_accounted(&document);
    assert_eq!(document["threads"][0].get("script_s"), None, "there is no script");
}

fn unknown_kernel_figures_are_omitted(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("unknown"));
    // Without `/proc`, there is no `schedstat`.
    let hidden = "exec unshare -rm sh -c 'mount -t tmpfs none /proc && exec \"$0\" \"$@\"' \"$0\" \"$@\"";
    let program = context.after(hidden).words("-c2 -t1 -n 100").word(url(&server, "/"));
    let (_, document) = document(program, &scratch);
    let thread = &document["threads"][0];
    assert!(number(thread, "/user_s") + number(thread, "/system_s") > 0.0, "{document}");
    assert_eq!((thread.get("queued_s"), thread.get("asleep_s")), (None, None), "{document}");
}
