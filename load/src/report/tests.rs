//! Whole reports, compared byte by byte with published ones and with figures computed by hand.

use std::time::Duration;

use onrush_plan::http::HttpVersion;
use onrush_plan::{Breakout, Dialect, FileContents, LuaScript, OutputOptions, Plan, Stop};
use onrush_stats::{Cause, Counters, Phase};

use super::form::{ReportForm, text};
use super::text::ReportTotals;
use super::*;
use crate::fixtures::{outcome_with, plan, record_failures, report_closing, schedule, shaped_distribution};
use crate::record::Document;
use crate::run::{Outcome, RunEnd};

/// The lines of the report below the table.
fn summary(plan: &Plan, outcome: &Outcome) -> ReportTotals {
    text(&Document::judged(plan, outcome), ReportForm::Report, false).unwrap().totals
}

fn report(plan: &Plan, outcome: &Outcome) -> String {
    opening(plan, None) + &report_closing(plan, outcome)
}

/// A native report without its percentiles, which wrk prints only on request.
fn without_percentiles(report: &str) -> String {
    let (before, rest) = report.split_once("  Latency Distribution\n").expect("they are there");
    let is_percentile = |line: &&str| line.starts_with("     max ") || line.get(7..8) == Some("%");
    before.to_owned() + &rest.split_inclusive('\n').skip_while(is_percentile).collect::<String>()
}

/// Counters with these two totals.
fn counters(completed: u64, bytes_received: u64) -> Counters {
    Counters { completed, bytes_received, ..Counters::default() }
}

/// One connection, 1 ms: 9 responses after 50 us and one after 350 us. wrk sees a mean spacing of 100 us, adds 250 us
/// and 150 us, and arrives at a mean and a deviation of 100 us.
fn stalled_once() -> Outcome {
    let mut outcome = outcome_with(1_000, Counters { batches: 10, ..counters(10, 510) });
    outcome.totals.latency.record_many(50_000, 9);
    outcome.totals.latency.record(350_000);
    outcome.totals.rates.record(10_000);
    outcome
}

#[test]
fn first_lines_hide_url_secrets() {
    let mut plan = plan(Dialect::Native, "http://h/a/hunter-22", 1, 1, 1);
    plan.request.headers = vec![("Cookie".to_owned(), "sid=hunter-22".to_owned())];
    assert!(opening(&plan, None).contains(" @ http://h/a/REDACTED\n"), "{}", opening(&plan, None));
}

#[test]
fn short_runs_print_like_wrk() {
    let plan = plan(Dialect::Native, "http://127.0.0.1:18080/", 1, 1, 2);
    let mut outcome = outcome_with(1_001_860, counters(8_376, 8_376 * 70));
    outcome.totals.latency = shaped_distribution(8_376, 8_086, 253_910.0, 295_110.0, 4_300_000.0);
    outcome.totals.rates = shaped_distribution(10, 7, 8_420.0, 1_560.0, 10_420.0);
    let printed = "Running 1s test @ http://127.0.0.1:18080/
  1 threads and 2 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   253.91us  295.11us   4.30ms   96.54%
    Req/Sec     8.42k     1.56k   10.42k    70.00%
  8376 requests in 1.00s, 572.58KB read
Requests/sec:   8360.45
Transfer/sec:    571.52KB
";
    assert_eq!(without_percentiles(&report(&plan, &outcome)), printed);
}

#[test]
fn late_responses_print_like_wrk() {
    let plan = plan(Dialect::Native, "http://[x86_64 VM IP]:8080/cgi-bin/second.pl", 30, 12, 400);
    let mut outcome = outcome_with(30_032_100, counters(22_640, 25_238_790));
    outcome.totals.latency = shaped_distribution(22_640, 19_423, 253_110_000.0, 234_740_000.0, 1_980_000_000.0);
    outcome.totals.rates = shaped_distribution(3_600, 2_691, 63.26, 28.05, 313.0);
    record_failures(&mut outcome, 259, Phase::Timeout, Cause::Late);
    let printed = "Running 30s test @ http://[x86_64 VM IP]:8080/cgi-bin/second.pl
  12 threads and 400 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   253.11ms  234.74ms   1.98s    85.79%
    Req/Sec    63.26     28.05   313.00     74.75%
  22640 requests in 30.03s, 24.07MB read
  Socket errors: connect 0, read 0, write 0, timeout 259
Requests/sec:    753.86
Transfer/sec:    820.70KB
";
    assert_eq!(without_percentiles(&report(&plan, &outcome)), printed);
}

#[test]
fn broken_servers_print_like_wrk() {
    let plan = plan(Dialect::Native, "http://localhost:8080/test", 30, 4, 400);
    let mut outcome = outcome_with(30_008_100, counters(13_317, 2_423_600));
    outcome.totals.latency = shaped_distribution(13_317, 9_338, 16.67e9, 7.51e9, 28.0e9);
    outcome.totals.rates = shaped_distribution(515, 449, 115.12, 221.26, 1_330.0);
    record_failures(&mut outcome, 213, Phase::Connect, Cause::Errno(111));
    record_failures(&mut outcome, 500, Phase::Head, Cause::Errno(104));
    record_failures(&mut outcome, 4, Phase::Body, Cause::Errno(104));
    record_failures(&mut outcome, 4_979, Phase::Timeout, Cause::Late);
    let printed = "Running 30s test @ http://localhost:8080/test
  4 threads and 400 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    16.67s     7.51s   28.00s    70.12%
    Req/Sec   115.12    221.26     1.33k    87.18%
  13317 requests in 30.01s, 2.31MB read
  Socket errors: connect 213, read 504, write 0, timeout 4979
Requests/sec:    443.78
Transfer/sec:     78.87KB
";
    assert_eq!(without_percentiles(&report(&plan, &outcome)), printed);
}

#[test]
fn error_statuses_have_their_own_line() {
    let mut outcome = outcome_with(30_037_300, counters(28_187, 4_904_700));
    record_failures(&mut outcome, 368, Phase::Connect, Cause::Errno(111));
    record_failures(&mut outcome, 119, Phase::Head, Cause::Errno(104));
    record_failures(&mut outcome, 5_061, Phase::Timeout, Cause::Late);
    record_failures(&mut outcome, 28_187, Phase::Status, Cause::Status(500));
    let printed = "  28187 requests in 30.04s, 4.68MB read
  Socket errors: connect 368, read 119, write 0, timeout 5061
  Non-2xx or 3xx responses: 28187
Requests/sec:    938.40
Transfer/sec:    159.46KB
";
    assert_eq!(summary(&plan(Dialect::Wrk, "http://h/", 30, 1, 1), &outcome).render(), printed);
}

#[test]
fn wrk_rates_use_whole_microseconds() {
    let rates = |dialect| {
        let plan = plan(dialect, "http://h/", 1, 1, 1);
        let mut outcome = outcome_with(10, counters(3, 3_000));
        outcome.elapsed = Duration::from_nanos(10_900);
        let document = Document::judged(&plan, &outcome);
        (summary(&plan, &outcome).render().lines().nth(1).unwrap().to_owned(), format!("{:.2}", document.rate_per_s))
    };
    assert_eq!(rates(Dialect::Native), ("Requests/sec: 275229.36".to_owned(), "275229.36".to_owned()));
    assert_eq!(rates(Dialect::Wrk), ("Requests/sec: 300000.00".to_owned(), "275229.36".to_owned()));
}

#[test]
fn warm_up_requests_affect_only_counted_rates() {
    let table = [
        (RunEnd::Duration, 50, 150),
        (RunEnd::Signal, 50, 150),
        (RunEnd::StayedAway, 50, 150),
        (RunEnd::Requests, 0, 150),
        (RunEnd::Requests, 50, 100),
        (RunEnd::Requests, 200, 0),
    ];
    for (ended, carried, rate) in table {
        let mut outcome = outcome_with(1_000_000, Counters { carried, ..counters(150, 3_000) });
        outcome.ended = ended;
        for dialect in [Dialect::Native, Dialect::WrkCmm] {
            let plan = plan(dialect, "http://h/", 1, 1, 1);
            let (document, text) = (Document::judged(&plan, &outcome), summary(&plan, &outcome).render());
            assert_eq!((document.rate_per_s, document.requests.completed), (rate as f64, 150), "{ended:?} {carried}");
            let line = format!("\nRequests/sec: {:9.2}\nTransfer/sec:      2.93KB\n", rate as f64);
            assert!(text.ends_with(&line), "{ended:?} {carried}: {text}");
            // The line gives the requests that count in the rate, and separately those that do not.
            let more = if dialect == Dialect::Native && rate < 150 {
                format!("\n  {} more were carried over from the warm-up\n", 150 - rate)
            } else {
                "\nRequests/sec: ".to_owned()
            };
            let beginning = format!("  {rate} requests in 1.00s, 2.93KB read{more}");
            assert!(text.starts_with(&beginning), "{ended:?} {carried}: {text}");
        }
    }
}

#[test]
fn native_reports_show_measured_figures() {
    let printed = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    80.00us   94.87us 350.00us   90.00%
    Req/Sec    10.00k     0.00    10.00k   100.00%
  Latency Distribution
     max  350.00us
  10 requests in 1.00ms, 510.00B read
Requests/sec:  10000.00
Transfer/sec:    498.05KB
";
    assert_eq!(report_closing(&plan(Dialect::Native, "http://h/", 1, 1, 1), &stalled_once()), printed);
}

/// Percentiles of a native report, where request n took n microseconds, and the lines below.
fn distribution(requests: u64, change: impl FnOnce(&mut OutputOptions)) -> String {
    let mut plan = plan(Dialect::Native, "http://h/", 1, 1, 1);
    change(&mut plan.output);
    let mut outcome = outcome_with(1_000_000, counters(requests, 0));
    (1..=requests).for_each(|us| outcome.totals.latency.record(us * 1_000));
    outcome.totals.rates.record(1);
    let text = report_closing(&plan, &outcome);
    let lines = text.split_once("  Latency Distribution\n").unwrap().1;
    lines.split_inclusive('\n').take_while(|line| !line.contains(" requests in ")).collect()
}

#[test]
fn native_percentiles_need_ten_slower_requests() {
    let first = |lines: &str| lines.lines().map(|line| line[..8].trim().to_owned()).collect::<Vec<_>>().join(" ");
    for (requests, labels) in [
        (19, "max"),
        (20, "50% max"),
        (999, "50% 75% 90% max"),
        (1_000, "50% 75% 90% 99% max"),
        (9_999, "50% 75% 90% 99% max"),
        (10_000, "50% 75% 90% 99% 99.9% max"),
    ] {
        assert_eq!(first(&distribution(requests, |_| {})), labels, "{requests}");
    }
    let asked = distribution(10_000, |show| show.percentiles = true);
    assert_eq!(first(&asked), "50% 75% 90% 95% 99% 99.9% max");
    // Exact to 0.1 %: 501 us, 751 us, 901 us and 991 us.
    let lines = "     50%  501.12us\n     75%  750.85us\n     90%    0.90ms\n     99%    0.99ms\n     max    1.00ms\n";
    assert_eq!(distribution(1_000, |_| {}), lines);
    // A requested percentile is always shown.
    let percents = Some(vec!["99.9".parse().unwrap()]);
    let listed = distribution(10, |show| (show.percentiles, show.percents) = (true, percents));
    assert_eq!(listed, "   99.9%   10.00us\n");
}

#[test]
fn requested_spectra_follow_the_percentiles() {
    let text = distribution(20, |show| (show.percentiles, show.spectrum) = (true, true));
    let beginning = "     50%   11.00us\n     max   20.00us\n\n  Detailed Percentile spectrum:\n       Value ";
    assert!(text.starts_with(beginning) && text.contains("#[Mean    =        0.011,"), "{text}");
}

#[test]
fn native_reports_count_mixed_statuses() {
    let line = |dialect, counts: &[(u16, u64)]| {
        let mut outcome = outcome_with(1_000_000, counters(10, 0));
        counts.iter().for_each(|&(status, count)| (0..count).for_each(|_| outcome.totals.statuses.record(status)));
        let text = report_closing(&plan(dialect, "http://h/", 1, 1, 1), &outcome);
        text.lines().find_map(|line| line.strip_prefix("  Status ")).map(str::to_owned)
    };
    assert_eq!(line(Dialect::Native, &[(404, 5), (200, 1_234)]).as_deref(), Some("200: 1,234 · 404: 5"));
    assert_eq!(line(Dialect::Native, &[(301, 10)]).as_deref(), Some("301: 10"));
    for (dialect, counts) in
        [(Dialect::Native, &[(204, 10)][..]), (Dialect::Native, &[]), (Dialect::Wrk, &[(404, 5), (200, 5)])]
    {
        assert_eq!(line(dialect, counts), None, "{dialect:?} {counts:?}");
    }
}

#[test]
fn compat_reports_show_wrks_figures() {
    let mut plan = plan(Dialect::Wrk, "http://h/", 1, 1, 1);
    plan.output.percentiles = true;
    let printed = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   100.00us  100.00us 350.00us   83.33%
    Req/Sec    10.00k     0.00    10.00k   100.00%
  Latency Distribution
     50%   50.00us
     75%  150.00us
     90%  250.00us
     99%  350.00us
  10 requests in 1.00ms, 510.00B read
Requests/sec:  10000.00
Transfer/sec:    498.05KB
";
    assert_eq!(report_closing(&plan, &stalled_once()), printed);
}

#[test]
fn fork_reports_have_minimum_and_six_percentiles() {
    let mut plan = plan(Dialect::WrkCmm, "http://h/", 1, 1, 1);
    plan.output.percentiles = true;
    let printed = "  Thread Stats   Avg     Stdev       Max       Min   +/- Stdev
    Latency   100.00us  100.00us  350.00us   50.00us   83.33%
    Req/Sec    10.00k     0.00     10.00k    10.00k   100.00%
  Latency Distribution
  50.00%   50.00us
  75.00%  150.00us
  90.00%  250.00us
  95.00%  350.00us
  99.00%  350.00us
  99.99%  350.00us
  10 requests in 1.00ms, 510.00B read
Requests/sec:  10000.00
Transfer/sec:    498.05KB
";
    assert_eq!(report_closing(&plan, &stalled_once()), printed);
}

#[test]
fn few_batches_are_not_corrected() {
    let plan = plan(Dialect::Wrk, "http://h/", 1, 1, 11);
    let row = "    Latency    80.00us   94.87us 350.00us   90.00%\n";
    assert!(report_closing(&plan, &stalled_once()).contains(row));
}

#[test]
fn compat_shows_whole_microseconds_and_onrush_nanoseconds() {
    let mut outcome = outcome_with(1_000_000, counters(1, 51));
    outcome.totals.latency.record(23_540);
    let row =
        |dialect| report_closing(&plan(dialect, "http://h/", 1, 1, 2), &outcome).lines().nth(1).unwrap().to_owned();
    assert_eq!(row(Dialect::Native), "    Latency    23.54us    0.00us  23.54us  100.00%");
    assert_eq!(row(Dialect::Wrk), "    Latency    24.00us    0.00us  24.00us  100.00%");
}

#[test]
fn runs_without_responses_divide_by_nothing() {
    let native = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   no responses
  0 requests in 0.00us, 0.00B read
Requests/sec:      0.00
Transfer/sec:       0.00B
";
    let printed = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.00us    0.00us   0.00us    -nan%
    Req/Sec     0.00      0.00     0.00      -nan%
  Latency Distribution
     50%    0.00us
     75%    0.00us
     90%    0.00us
     99%    0.00us
  0 requests in 0.00us, 0.00B read
Requests/sec:      0.00
Transfer/sec:       0.00B
";
    for (dialect, printed) in [(Dialect::Native, native), (Dialect::Wrk, printed)] {
        let mut plan = plan(dialect, "http://h/", 1, 1, 1);
        plan.output.percentiles = true;
        assert_eq!(report_closing(&plan, &outcome_with(0, Counters::default())), printed);
    }
}

fn with_rate(dialect: Dialect) -> Plan {
    Plan { schedule: Some(schedule(2)), ..plan(dialect, "http://h/", 1, 1, 1) }
}

/// A run with two requests that took 50 us and ended 4.1 ms after they were due. Half of the rate samples are zero.
fn scheduled(dialect: Dialect) -> Outcome {
    let mut outcome = outcome_with(1_000_000, counters(2, 102));
    let open_loop = outcome.totals.open_loop.get_or_insert_default();
    for _ in 0..2 {
        outcome.totals.latency.record(50_400);
        open_loop.record_response(4_100_400, 50_400, dialect == Dialect::Wrk2);
    }
    [0, 20].into_iter().for_each(|rate| outcome.totals.rates.record(rate));
    outcome
}

#[test]
fn scheduled_latency_uses_wrks_layout() {
    let mut outcome = scheduled(Dialect::Native);
    let printed = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.10ms    0.00us   4.10ms  100.00%
    Req/Sec    10.00     14.14    20.00    100.00%
  2 requests in 1.00s, 102.00B read
Requests/sec:      2.00
Transfer/sec:     102.00B
";
    assert_eq!(report_closing(&with_rate(Dialect::Wrk), &outcome), printed);
    let maximum = "  Latency Distribution\n     max    4.10ms\n  2 requests in";
    let natively = printed.replace("  2 requests in", maximum);
    assert_eq!(report_closing(&with_rate(Dialect::Native), &outcome), natively);
    outcome.totals.open_loop.as_mut().unwrap().censored.record(8_000_000_000);
    let mut plan = with_rate(Dialect::Native);
    plan.output.percentiles = true;
    let text = report_closing(&plan, &outcome);
    let list = "  Latency Distribution (HdrHistogram - Recorded Latency)\n     max    4.10ms\n  Oldest request without a \
                response: 8.00s\n  2 requests";
    assert!(text.contains(list), "{text}");
    plan.output.spectrum = true;
    let text = report_closing(&plan, &outcome);
    assert!(text.contains("Percentile spectrum"), "{text}");
    assert!(
        text.contains("     max    4.10ms\n  Oldest request without a response: 8.00s\n")
            && text.contains("Latency     4.10ms    0.00us   4.10ms"),
        "{text}"
    );
    assert!(!text.contains("Uncorrected"), "{text}");
    // Requested percentiles have no spectrum, and are bounds like the others.
    plan.output.spectrum = false;
    plan.output.percents = Some(vec!["50".parse().unwrap(), "99".parse().unwrap()]);
    let text = report_closing(&plan, &outcome);
    assert!(text.contains("  Latency Distribution\n     50%    4.10ms\n     99%   >8.00s \n  Oldest request without a response: 8.00s\n  2 req"), "{text}");
    // The service latency has a separate list.
    plan.output.u_latency = true;
    let lists = "  Latency Distribution (HdrHistogram - Recorded Latency)
     50%    4.10ms
     99%   >8.00s \n  Oldest request without a response: 8.00s

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
     50%   50.40us
     99%   50.40us
  2 requests";
    let text = report_closing(&plan, &outcome);
    assert!(text.contains(lists), "{text}");
}

#[test]
fn wrk2_figures_come_from_bins() {
    let mut plan = with_rate(Dialect::Wrk2);
    (plan.output.percentiles, plan.output.spectrum, plan.output.u_latency) = (true, true, true);
    // The mean is the middle of the only bin, whose start is below: wrk2 counts no value within one deviation.
    let printed = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.10ms    0.00us   4.10ms    0.00%
    Req/Sec    10.00     10.00    20.00    100.00%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    4.10ms
 75.000%    4.10ms
 90.000%    4.10ms
 99.000%    4.10ms
 99.900%    4.10ms
 99.990%    4.10ms
 99.999%    4.10ms
100.000%    4.10ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       4.103     0.000000            2         1.00
       4.103     1.000000            2          inf
#[Mean    =        4.102, StdDeviation   =        0.000]
#[Max     =        4.100, Total count    =            2]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%   50.00us
 75.000%   50.00us
 90.000%   50.00us
 99.000%   50.00us
 99.900%   50.00us
 99.990%   50.00us
 99.999%   50.00us
100.000%   50.00us

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.050     0.000000            2         1.00
       0.050     1.000000            2          inf
#[Mean    =        0.050, StdDeviation   =        0.000]
#[Max     =        0.050, Total count    =            2]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  2 requests in 1.00s, 102.00B read
Requests/sec:      2.00
Transfer/sec:     102.00B
";
    assert_eq!(report_closing(&plan, &scheduled(Dialect::Wrk2)), printed);
}

#[test]
fn empty_wrk2_figures_are_nan() {
    let mut plan = plan(Dialect::Wrk2, "http://h/", 1, 1, 1);
    plan.schedule = Some(schedule(1_000));
    let mut outcome = outcome_with(1_000_000, counters(0, 0));
    outcome.totals.open_loop.get_or_insert_default().wrk2.get_or_insert_default();
    let printed = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     -nanus    -nanus   0.00us    0.00%
    Req/Sec       -nan      -nan   0.00      0.00%
  0 requests in 1.00s, 0.00B read
Requests/sec:      0.00
Transfer/sec:       0.00B
";
    assert_eq!(report_closing(&plan, &outcome), printed);
}

#[test]
fn native_reports_omit_empty_rows() {
    let rows = |dialect| {
        let mut plan = plan(dialect, "http://h/", 1, 1, 1);
        plan.output.breakout = Breakout::All;
        let mut outcome = stalled_once();
        let phases = outcome.totals.phases.get_or_insert_default();
        phases.connect.record(1_000);
        let text = report_closing(&plan, &outcome);
        let rows = text.lines().take_while(|line| !line.starts_with("  Latency"));
        let rows = rows.filter_map(|line| line.strip_prefix("    ")?.split_whitespace().next());
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rows(Dialect::Native), ["Latency", "Connect", "Req/Sec"]);
    assert_eq!(rows(Dialect::Wrk), ["Latency", "Connect", "TLS", "TTFB", "TTLB", "Req/Sec"]);
}

#[test]
fn first_lines_name_the_end_condition() {
    let table = [
        (Some(10_000), None, "10s"),
        (Some(90_000), None, "2m"),
        (Some(500), None, "500ms"),
        (Some(1_500), None, "1.5s"),
        (None, Some(1_000), "1000 requests"),
        (Some(10_000), Some(1_000), "10s"),
    ];
    for (ms, requests, length) in table {
        let mut plan = plan(Dialect::Native, "http://h/?a=b", 1, 2, 10);
        plan.stop = Stop { duration: ms.map(Duration::from_millis), requests };
        let lines = format!("Running {length} test @ http://h/?a=b\n  2 threads and 10 connections\n");
        assert_eq!(opening(&plan, None), lines);
    }
}

#[test]
fn openings_name_streams_per_connection() {
    let both = [HttpVersion::Http2, HttpVersion::Http11];
    for (versions, streams, has_script, expected) in [
        (&both[1..], None, false, ""),
        (&both[..1], None, false, "  HTTP/2, 1 stream on each connection\n"),
        (&both[..1], Some(1), true, "  HTTP/2, 1 stream on each connection\n"),
        (&both[..1], Some(16), false, "  HTTP/2, up to 16 streams on each connection\n"),
        (&both[..], None, false, "  HTTP/2 or HTTP/1.1, 1 stream on each connection\n"),
        // As many as the requests in a batch of the script.
        (&both[..1], None, true, "  HTTP/2\n"),
    ] {
        let mut plan = plan(Dialect::Native, "http://h/", 1, 2, 10);
        (plan.http.versions, plan.http.streams) = (versions.to_vec(), streams);
        plan.script =
            has_script.then(|| LuaScript { file: FileContents::from_bytes("a.lua", Vec::new()), args: Vec::new() });
        let lines = format!("Running 1s test @ http://h/\n  2 threads and 10 connections\n{expected}");
        assert_eq!(opening(&plan, None), lines);
    }
}
