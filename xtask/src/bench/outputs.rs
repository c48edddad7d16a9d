//! Reads the generators' reports.

use serde_json::Value;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// wrk's format, also used by onrush and the bare loops.
    Wrk,
    /// h2load's.
    H2load,
    /// shb's.
    Shb,
    /// oha's JSON.
    Oha,
}

/// The figures read from a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedCounts {
    /// Requests with a response.
    pub requests: u64,
    /// Failed requests, and responses with an error status.
    pub errors: u64,
    /// Requests per second.
    pub per_second: f64,
}

/// Reads a report; `None` without figures.
pub fn read(format: ReportFormat, text: &str) -> Option<ReportedCounts> {
    match format {
        ReportFormat::Wrk => wrk(text),
        ReportFormat::H2load => h2load(text),
        ReportFormat::Shb => shb(text),
        ReportFormat::Oha => oha(text),
    }
}

fn wrk(text: &str) -> Option<ReportedCounts> {
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    let after = |start: &str| text.lines().find_map(|line| line.trim().strip_prefix(start));
    // Connect, read and write errors. Timeouts are left out: a timed-out request is late, and counts when its response
    // arrives.
    let failed = after("Socket errors:").map_or(0, |counts| numbers(counts).take(3).sum());
    let refused = after("Non-2xx or 3xx responses:").map_or(0, |counts| numbers(counts).sum());
    Some(ReportedCounts {
        requests: numbers(line).next()?,
        errors: failed + refused,
        per_second: after("Requests/sec:")?.trim().parse().ok()?,
    })
}

/// `requests: 9 total, 9 started, 8 done, 8 succeeded, 0 failed, 0 errored, 0 timeout`
fn h2load(text: &str) -> Option<ReportedCounts> {
    let line = text.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let count = |what: &str| line.split(", ").find_map(|part| part.strip_suffix(what)?.trim().parse::<u64>().ok());
    let finished = text.lines().find(|line| line.starts_with("finished in "))?;
    let per_second = finished.split(", ").find_map(|part| part.strip_suffix(" req/s"))?.parse().ok()?;
    Some(ReportedCounts { requests: count("succeeded")?, errors: count("failed")?, per_second })
}

/// `Requests:     200 (200 ok, 0 errors, of which 0 connect) in 0.080s`
fn shb(text: &str) -> Option<ReportedCounts> {
    let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let mut counts = numbers(after("Requests:")?);
    counts.next()?;
    let (requests, errors) = (counts.next()?, counts.next()?);
    Some(ReportedCounts { requests, errors, per_second: after("Requests/sec:")?.trim().parse().ok()? })
}

/// Requests aborted at the end of the test are not errors.
fn oha(text: &str) -> Option<ReportedCounts> {
    let report: Value = serde_json::from_str(text).ok()?;
    let counts = |name: &str| report.get(name)?.as_object().map(|counts| counts.iter());
    let requests: u64 = counts("statusCodeDistribution")?.filter_map(|(_, count)| count.as_u64()).sum();
    let good = counts("statusCodeDistribution")?.filter(|(status, _)| status.starts_with('2'));
    let good: u64 = good.filter_map(|(_, count)| count.as_u64()).sum();
    let failed = counts("errorDistribution")?.filter(|(error, _)| !error.contains("deadline"));
    let failed: u64 = failed.filter_map(|(_, count)| count.as_u64()).sum();
    let per_second = report.get("summary")?.get("requestsPerSec")?.as_f64()?;
    Some(ReportedCounts { requests, errors: failed + requests - good, per_second })
}

/// The whole numbers in a line that are words of their own.
fn numbers(line: &str) -> impl Iterator<Item = u64> {
    line.split(|between: char| between.is_whitespace() || "(),".contains(between)).filter_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(requests: u64, errors: u64, per_second: f64) -> Option<ReportedCounts> {
        Some(ReportedCounts { requests, errors, per_second })
    }

    #[test]
    fn wrks_report_is_read_with_its_errors() {
        let good = "Running 1s test @ http://h/\n  1 threads and 100 connections\n  \
                    35353 requests in 1.00s, 2.63MB read\nRequests/sec:  35353.00\nTransfer/sec:      2.63MB\n";
        assert_eq!(read(ReportFormat::Wrk, good), counted(35_353, 0, 35_353.0));
        let bad = "  90 requests in 1.10s, 5.94GB read\n  Socket errors: connect 1, read 2, write 3, timeout 4\n  \
                   Non-2xx or 3xx responses: 80\nRequests/sec:     81.82\n";
        assert_eq!(read(ReportFormat::Wrk, bad), counted(90, 86, 81.82));
    }

    #[test]
    fn h2loads_report_is_read() {
        let text = "finished in 1.00s, 66110.00 req/s, 6.12MB/s\n\
                    requests: 66210 total, 66210 started, 66110 done, 66108 succeeded, 2 failed, 2 errored, 1 timeout\n\
                    status codes: 66110 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        assert_eq!(read(ReportFormat::H2load, text), counted(66_108, 2, 66_110.0));
    }

    #[test]
    fn shbs_report_is_read() {
        let text = "Connections:  100\nRequests:     200 (198 ok, 2 errors, of which 1 connect) in 0.080s\n\
                    Requests/sec: 2501.5\n";
        assert_eq!(read(ReportFormat::Shb, text), counted(198, 2, 2_501.5));
    }

    #[test]
    fn oha_reports_are_read_without_aborted_requests() {
        let text = r#"{"summary": {"successRate": 1.0, "requestsPerSec": 250.5},
            "statusCodeDistribution": {"200": 240, "503": 10},
            "errorDistribution": {"aborted due to deadline": 100, "connection refused": 3}}"#;
        assert_eq!(read(ReportFormat::Oha, text), counted(250, 13, 250.5));
    }

    #[test]
    fn reports_without_figures_are_none() {
        for format in [ReportFormat::Wrk, ReportFormat::H2load, ReportFormat::Shb, ReportFormat::Oha] {
            assert_eq!(read(format, "unable to connect\n"), None);
        }
    }
}
