//! The results passed to `done`.

use super::*;

#[test]
fn done_receives_the_totals() {
    let mut script = load_script(
        r#"
        function done(summary, latency, requests)
            text = string.format("%s %d %s", summary.duration, summary.requests, summary.bytes)
            names = {}
            for name, count in pairs(summary.errors) do names[#names + 1] = name .. count end
            table.sort(names)
            row = summary.ledger[1].phase .. summary.ledger[1].cause .. summary.ledger[1].count .. #summary.ledger
            rate = requests.mean
        end
        "#,
    );
    assert!(script.has_done());
    script.call_done(&summary(latencies())).unwrap();
    assert_eq!(main_global::<String>(&script, "text"), "1000123 7 51");
    assert_eq!(main_global::<Vec<String>>(&script, "names"), ["connect1", "read2", "status5", "timeout4", "write3"]);
    assert_eq!(main_global::<String>(&script, "row"), "connectrefused91");
    assert_eq!(main_global::<u32>(&script, "rate"), 5);
    assert!(!load_script("done = 1").has_done());
    let problem =
        load_script("function done() error('late') end").call_done(&summary(latencies())).unwrap_err().to_string();
    assert!(problem.contains("test.lua:1: late\nstack traceback:"), "{problem}");
}

/// Evaluates expressions about `latency` in `done`.
fn evaluate_in_done(view: StatisticsView, is_wrk2: bool, expressions: &[&str]) -> Vec<String> {
    evaluate_with_summary(&summary(view), is_wrk2, expressions)
}

fn evaluate_with_summary(summary: &ScriptSummary, is_wrk2: bool, expressions: &[&str]) -> Vec<String> {
    let shown: Vec<String> =
        expressions.iter().map(|code| format!("show(pcall(function() return {code} end))")).collect();
    let source = format!(
        "local function show(ok, ...)
             local words = {{}}
             for i = 1, select('#', ...) do words[i] = tostring((select(i, ...))) end
             return ok and table.concat(words, ' ') or 'error'
         end
         function done(summary, latency) shown = {{ {} }} end",
        shown.join(", ")
    );
    let mut script = Folder::new(&source).load(|setting| setting.is_wrk2 = is_wrk2).unwrap();
    script.call_done(summary).unwrap();
    main_global(&script, "shown")
}

#[test]
fn statistics_have_the_shape_of_wrk() {
    let expressions = [
        ("latency.min", "10"),
        ("latency.max", "40"),
        ("latency.mean", "20"),
        ("latency.stdev", "10"),
        ("latency:percentile(0)", "10"),
        ("latency:percentile(29.9)", "10"),
        ("latency:percentile(30)", "20"),
        ("latency:percentile(69.9)", "20"),
        ("latency:percentile(70)", "40"),
        ("latency:percentile(100)", "40"),
        ("latency:percentile(-1)", "10"),
        ("latency:percentile(1e99)", "40"),
        ("latency:percentile('50')", "20"),
        ("latency:percentile(nil)", "error"),
        ("latency(1)", "10 3"),
        ("latency(2)", "20 4"),
        ("latency(3)", "40 3"),
        ("latency(0)", "0 3"),
        ("latency(4)", "0 3"),
        ("latency(-1)", "0 3"),
        ("#latency", "3"),
        ("latency[2]", "2"),
        ("type(latency[2])", "string"),
        ("latency.unknown", "unknown"),
        ("latency.raw", "nil"),
        ("latency.scheduled", "nil"),
        ("type(latency)", "userdata"),
    ];
    let results = evaluate_in_done(latencies(), false, &expressions.map(|(code, _)| code));
    for ((code, expected), result) in expressions.iter().zip(results) {
        assert_eq!(result, *expected, "{code}");
    }
}

#[test]
fn statistics_have_the_shape_of_wrk2() {
    let mut recorded = Distribution::new();
    [(10, 3), (20, 4), (100_001, 3)].into_iter().for_each(|(us, count)| recorded.record_many(us, count));
    let expressions = [
        ("latency(1)", "error"),
        ("latency[3]", "10"),
        ("latency[4]", "20"),
        ("latency[7]", "20"),
        ("latency[8]", "100031"),
        ("#latency", "10"),
        ("latency.min", "10"),
        ("latency.max", "99968"),
        ("latency.mean", "30011"),
        ("latency.unknown", "unknown"),
        ("latency:percentile(-1)", "10"),
        ("latency:percentile(34.9)", "10"),
        ("latency:percentile(35)", "20"),
        ("latency:percentile(50)", "20"),
        ("latency:percentile(100)", "100031"),
        ("latency:percentile(0/0)", "100031"),
    ];
    let results = evaluate_in_done(StatisticsView::binned(&recorded), true, &expressions.map(|(code, _)| code));
    for ((code, expected), result) in expressions.iter().zip(results) {
        assert_eq!(result, *expected, "{code}");
    }
    let nothing = evaluate_in_done(
        StatisticsView::binned(&Distribution::new()),
        true,
        &["latency:percentile(50)", "latency.max", "#latency"],
    );
    assert_eq!(nothing, ["0", "0", "0"]);
}

#[test]
fn statistics_of_nothing_are_those_of_wrk() {
    let expressions =
        ["latency.min", "latency.max", "latency.mean", "latency:percentile(50)", "latency(1)", "#latency"];
    let nothing = StatisticsView::measured(&Distribution::new(), 1000.0);
    assert_eq!(evaluate_in_done(nothing, false, &expressions), ["1.844674407371e+19", "0", "0", "0", "0 0", "0"]);
}

#[test]
fn native_empty_statistics_are_nil() {
    let nothing = || StatisticsView::measured(&Distribution::new(), 1000.0);
    let mut view = nothing();
    view.raw = Some(Box::new(nothing()));
    let expressions = [
        ("latency.min", "nil"),
        ("latency.max", "nil"),
        ("latency.mean", "nil"),
        ("latency.stdev", "nil"),
        ("latency:percentile(50)", "nil"),
        ("latency.raw.min", "nil"),
        ("latency(1)", "0 0"),
        ("#latency", "0"),
        ("latency.unknown", "unknown"),
    ];
    let of = |view| ScriptSummary { is_native: true, ..summary(view) };
    let results = evaluate_with_summary(&of(view), false, &expressions.map(|(code, _)| code));
    for ((code, expected), result) in expressions.iter().zip(results) {
        assert_eq!(result, *expected, "{code}");
    }
    let some =
        evaluate_with_summary(&of(latencies()), false, &["latency.min", "latency.stdev", "latency:percentile(50)"]);
    assert_eq!(some, ["10", "10", "20"]);
}

#[test]
fn measured_and_scheduled_latencies_are_separate_views() {
    let mut view = latencies();
    view.raw = Some(Box::new(StatisticsView::new(1.0, 0.0, [(1.0, 1)])));
    view.scheduled = Some(Box::new(StatisticsView::new(2.0, 0.0, [(2.0, 1)])));
    let expressions = ["latency.raw.mean", "latency.raw(1)", "latency.scheduled:percentile(9)"];
    assert_eq!(evaluate_in_done(view, false, &expressions), ["1", "1 1", "2"]);
    let mut measured = Distribution::new();
    [1_500, 2_500].into_iter().for_each(|ns| measured.record(ns));
    let view = StatisticsView::measured(&measured, 1000.0);
    assert_eq!(evaluate_in_done(view, false, &["latency.min", "latency.mean", "latency.max"]), ["1.5", "2", "2.5"]);
}
