//! Renders the text of a report from its figures, from a finished run or from a document.

use std::cmp::Reverse;

use onrush_plan::checks::StatusList;
use onrush_stats::Errors;
use onrush_text::units;

use super::table::TableLayout;
use crate::figures::SummaryStatistics;
use crate::record::STATUSES_NAMED;

/// Content of the text, line by line.
pub struct ReportText {
    /// The tool whose table to draw.
    pub layout: TableLayout,
    /// True to print zeros where nothing was measured, like the imitated tools.
    pub has_zeros: bool,
    /// Latency, in microseconds.
    pub latency_us: SummaryStatistics,
    /// Phases, each with its name and its figures in microseconds.
    pub phases_us: Vec<(&'static str, SummaryStatistics)>,
    /// Summary of the requests per second of the threads.
    pub rates: SummaryStatistics,
    /// Rendered latency percentiles; empty if not shown.
    pub percentiles: String,
    /// Lines below the table.
    pub totals: ReportTotals,
}

/// Figures of the lines below the table. Error lines appear only if there were errors.
pub struct ReportTotals {
    /// Responses that count in the rate.
    pub counted: u64,
    /// Responses to requests carried over from a warm-up, if shown. They do not count in the rate.
    pub carried: u64,
    /// How requests ended and which of them are errors, one line each, if shown.
    pub account: String,
    /// Measured time, in microseconds.
    pub elapsed_us: f64,
    /// Bytes received.
    pub bytes: u64,
    /// wrk's five error totals, and failed checks.
    pub errors: Errors,
    /// The statuses that count as success, if the plan names them.
    pub expected: Option<StatusList>,
    /// Interim responses (1xx), if shown.
    pub interim: u64,
    /// Number of responses by status, if shown.
    pub statuses: Vec<(u16, u64)>,
    /// Requests in flight per HTTP/2 connection, if shown.
    pub streams: Option<StreamLimits>,
    /// Responses per second.
    pub rate_per_s: f64,
    /// Bytes received per second.
    pub bytes_per_s: f64,
}

/// How many requests may be in flight per HTTP/2 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Number of streams requested (`--streams`).
    pub asked: u32,
    /// Smallest number that a server allowed.
    pub allowed: u32,
    /// True if no server ever allowed more.
    pub is_constant: bool,
}

impl ReportText {
    /// Renders the whole text below the first lines.
    pub fn render(&self) -> String {
        let shows = |figures: &SummaryStatistics| figures.within.is_some() || self.has_zeros;
        let Self { layout, latency_us, .. } = self;
        let mut text = layout.header().to_owned();
        text += &if shows(latency_us) {
            layout.row("Latency", latency_us, units::format_us)
        } else {
            TableLayout::row_without_responses()
        };
        for (name, figures) in self.phases_us.iter().filter(|(_, figures)| shows(figures)) {
            text += &layout.row(name, figures, units::format_us);
        }
        if shows(&self.rates) || shows(latency_us) {
            text += &layout.row("Req/Sec", &self.rates, units::format_metric);
        }
        if shows(latency_us) {
            text += &self.percentiles;
        }
        text + &self.totals.render()
    }
}

impl ReportTotals {
    /// Renders the lines below the table.
    pub fn render(&self) -> String {
        let Self {
            counted,
            carried,
            ref account,
            elapsed_us,
            bytes,
            errors,
            ref expected,
            interim,
            ref statuses,
            streams,
            rate_per_s,
            bytes_per_s,
        } = *self;
        let read = units::format_bytes(bytes as f64);
        let mut text = format!("  {counted} requests in {}, {read}B read\n", units::format_us(elapsed_us));
        if carried > 0 {
            text += &format!("  {carried} more were carried over from the warm-up\n");
        }
        text += account;
        if errors.socket() > 0 {
            text += &format!(
                "  Socket errors: connect {}, read {}, write {}, timeout {}\n",
                errors.connect, errors.read, errors.write, errors.timeout
            );
        }
        if interim > 0 {
            text += &format!("  Interim responses (1xx): {interim}\n");
        }
        if errors.status > 0 {
            let others = expected
                .as_ref()
                .map_or("Non-2xx or 3xx responses".to_owned(), |expected| format!("Responses other than {expected}"));
            text += &format!("  {others}: {}\n", errors.status);
        }
        if errors.check > 0 {
            text += &format!("  Failed checks: {}\n", errors.check);
        }
        // If all responses had the same status of success, no line is needed.
        if !matches!(statuses[..], [] | [(200..300, _)]) {
            text += &format!("  Status {}\n", counts(statuses));
        }
        text += &streams.map_or(String::new(), |streams| streams.line());
        text += &format!("Requests/sec: {rate_per_s:9.2}\n");
        text += &format!("Transfer/sec: {:>10}B\n", units::format_bytes(bytes_per_s));
        text
    }
}

impl StreamLimits {
    /// The line about the limit; empty if the server allows the requested number.
    fn line(self) -> String {
        let [asked, allowed] = [self.asked, self.allowed].map(|streams| units::format_thousands(streams.into()));
        let allows = if self.is_constant { "allows" } else { "allowed as few as" };
        let line = format!("  Streams: the server {allows} {allowed} of {asked} on a connection\n");
        if self.allowed < self.asked { line } else { String::new() }
    }
}

/// Statuses with their counts, the most frequent first: `200: 1,234 · 404: 5`. A long list ends with the sum of the
/// others.
pub fn counts(statuses: &[(u16, u64)]) -> String {
    let mut statuses = statuses.to_vec();
    statuses.sort_by_key(|&(status, count)| (Reverse(count), status));
    let (named, others) = statuses.split_at(statuses.len().min(STATUSES_NAMED));
    let others: u64 = others.iter().map(|(_, count)| count).sum();
    let named = named.iter().map(|&(status, count)| format!("{status}: {}", units::format_thousands(count)));
    let others = (others > 0).then(|| format!("others: {}", units::format_thousands(others)));
    named.chain(others).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_stream_limits_have_a_line() {
        let line = |allowed| StreamLimits { asked: 1_000, allowed, is_constant: allowed != 7 }.line();
        assert_eq!([1_000, 1_024].map(line), [""; 2]);
        assert_eq!(line(100), "  Streams: the server allows 100 of 1,000 on a connection\n");
        assert_eq!(line(7), "  Streams: the server allowed as few as 7 of 1,000 on a connection\n");
    }

    #[test]
    fn statuses_are_sorted_by_count() {
        assert_eq!(counts(&[(200, 1_234), (404, 5)]), "200: 1,234 · 404: 5");
        assert_eq!(counts(&[(200, 5), (301, 5), (404, 1_000)]), "404: 1,000 · 200: 5 · 301: 5");
        let many: Vec<_> = (500..510).map(|status| (status, 2)).collect();
        assert_eq!(counts(&many), "500: 2 · 501: 2 · 502: 2 · 503: 2 · 504: 2 · 505: 2 · others: 8");
    }
}
