//! Threads stopped by a script with `thread:stop()`.

use crate::harness::{Context, cases, target, url};
use crate::scripts::assert_ran;
use crate::simulation::simulate;

cases! {
    threads_stop_with_the_stopping_response;
    threads_stop_with_the_unwritten_request;
    threads_may_stop_at_first_request (Once);
    stopping_threads_end_no_other (Once);
}

fn threads_stop_with_the_stopping_response(context: &Context) {
    let script = "n = 0 function response() n = n + 1 if n == 10 then wrk.thread:stop() end end";
    for onrush in context.both() {
        let server = target();
        // If the script does not stop the thread, the test finally fails.
        let output = onrush.words("-t1 -c2 -d20").lua(script).word(url(&server, "/")).run();
        assert_ran(&output);
        assert_eq!(output.requests(), 10, "{output:?}");
        assert!(output.took.as_secs() < 20, "{output:?}");
    }
    // Responses that arrived at the same time are counted and passed to the script.
    let batch = "n = 0
        function setup(thread) first = thread end
        function init() batch = wrk.format():rep(20) end
        function request() return batch end
        function response() n = n + 1 if n == 30 then wrk.thread:stop() end end
        function done(summary) print('told', summary.requests - first:get('n')) end";
    for onrush in context.both() {
        let output = onrush.words("-t1 -c2 -d20").lua(batch).word(url(&target(), "/")).run();
        assert_ran(&output);
        assert!(output.stdout.ends_with("told\t0\n"), "{output:?}");
    }
    // The first of three responses that arrived during a stall stops the thread.
    let stall = "connect_us = 0.0\nlatency_us = 1000.0\n[[generator_stall]]\nfrom_s = 0.0035\nfor_s = 0.5";
    let output = simulate(context.onrush().words("-t1 -c3 -d20").lua(script), stall);
    assert_eq!(output.requests(), 10, "{output:?}");
}

fn threads_stop_with_the_unwritten_request(context: &Context) {
    let last = |text: &str| {
        format!(
            "local n = 0
             function request() n = n + 1 if n > 300 then wrk.thread:stop() {text} end return wrk.format() end
             function done(summary) print('done', summary.requests) end"
        )
    };
    let usual = [("-t1 -c1", 1), ("-t2 -c8", 2), ("-t2 -c8 -R9000", 2), ("-t2 -c8 --http2", 2)];
    let others = ["return ''", "return", "return 'no request'"].map(|text| (text, ("-t1 -c1", 1)));
    for (text, (words, threads)) in usual.map(|usual| ("return nil", usual)).into_iter().chain(others) {
        // wrk has no HTTP/2.
        for onrush in context.both().into_iter().filter(|onrush| !onrush.is_compat() || !words.contains("--http2")) {
            let server = target();
            // If the script does not stop the thread, the test finally fails.
            let output = onrush.words("-d20").words(words).lua(&last(text)).word(url(&server, "/")).run();
            let requests = output.requests();
            // The first request was only inspected, and one on each other connection may be in flight.
            let all = threads * 300 - 1;
            assert!((all - 6..=all).contains(&requests), "{words} {text}: {output:?}");
            assert_eq!(output.code, 0, "{words} {text}: {output:?}");
            assert!(output.stdout.ends_with(&format!("done\t{requests}\n")), "{words} {text}: {output:?}");
            assert!(!output.stdout.contains("errors"), "{words} {text}: {output:?}");
            assert!(output.took.as_secs() < 20, "{words} {text}: {output:?}");
        }
    }
}

fn threads_may_stop_at_first_request(context: &Context) {
    let server = target();
    let script =
        "function request() if wrk.thread.id == 1 then wrk.thread:stop() return nil end return wrk.format() end
        function done(summary) print('done', summary.requests) end";
    for (words, code, requests) in [("-t1 -c1 -d20", 5, 0), ("-t2 -c2 -n20", 0, 10), ("-t2 -c2 -n20 -R1000", 0, 10)] {
        for onrush in context.both() {
            // The imitated tools have no exit code for a run without a response.
            let code = if onrush.is_compat() { 0 } else { code };
            let output = onrush.words(words).lua(script).word(url(&server, "/")).run();
            assert_eq!(output.code, code, "{words}: {output:?}");
            assert!(output.stdout.ends_with(&format!("done\t{requests}\n")), "{words}: {output:?}");
        }
    }
    let output = context.onrush().words("--once").lua(script).word(url(&server, "/")).run();
    assert_eq!((output.code, output.stderr.contains("stdin:1")), (5, false), "{output:?}");
}

fn stopping_threads_end_no_other(context: &Context) {
    let script = "
        local n = 0
        function request()
            n = n + 1
            if wrk.thread.id == 1 and n > 50 then wrk.thread:stop() return nil end
            return wrk.format()
        end";
    // 49 requests of one thread, as the first was only inspected, and a thousand per second and connection of the
    // other. Requests in flight on the first thread's other connection are no failures.
    let output = simulate(context.onrush().words("-t2 -c4 -d1s").lua(script), "connect_us = 0.0\nlatency_us = 1000.0");
    assert!((2_040..=2_049).contains(&output.requests()), "{output:?}");
    assert!(!output.stdout.contains("errors"), "{output:?}");
    let ended = "note: the script ended thread 1 after ";
    assert!(output.stderr.contains(ended), "{output:?}");
    // The script omitted the requests: neither the target nor the schedule is the limit.
    for words in ["-R1000 -d2s", "-R1000 -n2000", "-n4000"] {
        let onrush = context.onrush().words("-t2 -c4").words(words).lua(script);
        let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1000.0");
        assert!(output.stderr.contains(ended), "{words}: {output:?}");
        assert_eq!(output.stderr.contains(" requests were not sent"), words.contains("-n"), "{words}: {output:?}");
        let verdict = "the script is the limit: it ended 1 thread while the run went on";
        let is_judged = output.verdict.starts_with(verdict) || output.stderr.contains(verdict);
        assert!(is_judged, "{words}: {output:?}");
    }
    // About ten of the 49 are sent in the warm-up.
    let onrush = context.onrush().words("-t1 -c1 -d1s --warmup 10ms").lua(script);
    let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1000.0");
    assert!((37..=40).contains(&output.requests()) && output.code == 0, "{output:?}");
    let onrush = context.onrush().words("-t1 -c1 -d1s --warmup 1s").lua(script);
    let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1000.0");
    assert!(output.stderr.contains("note: the script ended its only thread in the warm-up\n"), "{output:?}");
    let onrush = context.onrush().words("-t1 -c1 -d30s --find-max p99<50ms").lua(script);
    let output = simulate(onrush, "connect_us = 0.0\nlatency_us = 1000.0");
    assert!(output.code == 1 && output.stderr.contains("the script ended 1 of 1 thread"), "{output:?}");
}
