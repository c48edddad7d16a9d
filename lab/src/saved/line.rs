//! Recognises the lines of the reports of wrk and its forks.

use onrush_plan::Percent;

/// A line of a report, with cells as printed.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportLine<'a> {
    /// `Running 30s test @ http://localhost/`, or from onrush `Sum of 3 runs over 30.02s @ http://localhost/`: the
    /// start of a report.
    Running {
        /// The URL, which may contain spaces.
        url: &'a str,
    },
    /// `2 threads and 100 connections`
    Load {
        /// Number of threads.
        threads: u64,
        /// Number of connections.
        connections: u64,
    },
    /// `1000 requests/s, latency …`, from onrush with a rate.
    Due {
        /// The requested rate as printed.
        rate: &'a str,
    },
    /// `Thread calibration: …`, from wrk2.
    Calibration,
    /// `Thread Stats …`
    Heading,
    /// `Latency …`, and the other rows of the table.
    Row {
        /// The kind of row.
        row: ReportRow,
        /// The cells after the name of the row.
        cells: Vec<&'a str>,
    },
    /// `Latency Distribution`
    Distribution {
        /// The kind of latency that wrk2 adds in parentheses.
        kind: Option<&'a str>,
    },
    /// `50.000%    6.67ms`
    Percentile {
        /// The percentage of the percentile.
        percent: Percent,
        /// The latency as printed.
        cell: &'a str,
    },
    /// `max  5.62ms`, onrush's last percentile line. Ignored, because the latency row has the maximum.
    Max,
    /// The detailed spectrum of wrk2, and the lines around it.
    Spectrum,
    /// `22640 requests in 30.03s, 24.07MB read`
    Totals {
        /// Number of responses.
        requests: u64,
        /// Measured time as printed.
        time: &'a str,
        /// Number of bytes received, as printed.
        bytes: &'a str,
    },
    /// `Socket errors: connect 0, read 0, write 0, timeout 259`
    Errors([u64; 4]),
    /// `Interim responses (1xx): 3`
    Interim,
    /// `Non-2xx or 3xx responses: 28187`, or from onrush `Responses other than 200,204: 28187`
    Statuses(u64),
    /// `Failed checks: 3`, from onrush.
    Checks(u64),
    /// `Status 200: 1,234 · 404: 5`, from onrush; ignored.
    Counts,
    /// `Requests/sec:    753.86`
    Rate(&'a str),
    /// `Transfer/sec: 820.70KB`: the end of a report.
    Transfer(&'a str),
}

/// Rows of the table of thread statistics, in printed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportRow {
    /// The latency.
    Latency,
    /// A phase of the latency; ignored.
    Phase,
    /// The rates of the threads; ignored.
    Rate,
}

impl<'a> ReportLine<'a> {
    /// Parses a line; `None` if the text is not part of a report.
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(match words[..] {
            ["Running", ..] => Self::Running { url: text.split_once(" test @ ")?.1.trim() },
            ["Sum", "of", _, "runs", "over", _, "@", ..] => Self::Running { url: text.split_once(" @ ")?.1.trim() },
            [threads, "threads", "and", connections, "connections"] => {
                Self::Load { threads: threads.parse().ok()?, connections: connections.parse().ok()? }
            }
            // The remaining words differ between versions.
            [rate, "requests/s,", "latency", ..] | [rate, "requests/s", "each,", "latency", ..] => Self::Due { rate },
            ["Thread", "calibration:", ..] => Self::Calibration,
            ["Thread", "Stats", ..] => Self::Heading,
            ["Latency", "Distribution", ..] => Self::Distribution { kind: text.split_once('(').map(|(_, kind)| kind) },
            ["Latency", ref cells @ ..] => Self::Row { row: ReportRow::Latency, cells: cells.to_vec() },
            ["Connect" | "TLS" | "TTFB" | "TTLB", ref cells @ ..] if cells.len() > 3 => {
                Self::Row { row: ReportRow::Phase, cells: cells.to_vec() }
            }
            ["Req/Sec", ref cells @ ..] => Self::Row { row: ReportRow::Rate, cells: cells.to_vec() },
            ["Detailed", "Percentile", "spectrum:"] | ["Value", "Percentile", ..] => Self::Spectrum,
            [first, ..] if first.starts_with("#[") => Self::Spectrum,
            // The last word is `inf`, which parses as a number.
            [_, _, _, _] if words.iter().all(|word| is_number(word)) => Self::Spectrum,
            [percent, cell] if percent.ends_with('%') => {
                // onrush marks percentiles that are only bounds.
                let cell = cell.trim_start_matches(['>', '≥']);
                Self::Percentile { percent: percent.trim_end_matches('%').parse().ok()?, cell }
            }
            ["max", cell] if cell.starts_with(|first: char| first.is_ascii_digit()) => Self::Max,
            [requests, "requests", "in", time, bytes, "read"] => {
                Self::Totals { requests: requests.parse().ok()?, time: time.trim_end_matches(','), bytes }
            }
            ["Socket", "errors:", "connect", connect, "read", read, "write", write, "timeout", timeout] => {
                let count = |text: &str| text.trim_end_matches(',').parse().ok();
                Self::Errors([count(connect)?, count(read)?, count(write)?, count(timeout)?])
            }
            ["Interim", "responses", ..] => Self::Interim,
            ["Failed", "checks:", count] => Self::Checks(count.parse().ok()?),
            ["Non-2xx", "or", "3xx", "responses:", count] | ["Responses", "other", "than", _, count] => {
                Self::Statuses(count.parse().ok()?)
            }
            ["Status", first, count, ..] if first.ends_with(':') && is_number(&count.replace(',', "")) => Self::Counts,
            ["Requests/sec:", rate] => Self::Rate(rate),
            ["Transfer/sec:", bytes] => Self::Transfer(bytes),
            _ => return None,
        })
    }

    /// Rank of the line in the order in which reports print their lines. Only lines with [`ReportLine::may_repeat`] may
    /// have the rank of the previous line.
    pub fn position(&self) -> u8 {
        match self {
            Self::Running { .. } => 0,
            Self::Load { .. } => 1,
            Self::Due { .. } => 2,
            Self::Calibration => 3,
            Self::Heading => 4,
            Self::Row { row: ReportRow::Latency, .. } => 5,
            Self::Row { row: ReportRow::Phase, .. } => 6,
            Self::Row { row: ReportRow::Rate, .. } => 7,
            Self::Distribution { .. } | Self::Percentile { .. } | Self::Max | Self::Spectrum => 8,
            Self::Totals { .. } => 9,
            Self::Errors(_) => 10,
            Self::Interim => 11,
            Self::Statuses(_) => 12,
            Self::Checks(_) => 13,
            Self::Counts => 14,
            Self::Rate(_) => 15,
            Self::Transfer(_) => 16,
        }
    }

    /// True if a report may have several lines of this kind.
    pub fn may_repeat(&self) -> bool {
        matches!(self.position(), 3 | 6 | 8)
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}
