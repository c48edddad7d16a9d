//! Parses the report like a user's script, and checks properties of every report.

use crate::harness::ProgramOutput;

/// Length of the embedded target's response to `/`.
pub const PLAIN_BYTES: u64 = 78;

const TIMES_US: &[(&str, f64)] = &[("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6)];
const RATES: &[(&str, f64)] = &[("", 1.0), ("k", 1e3), ("M", 1e6)];
const BYTES: &[(&str, f64)] = &[("B", 1.0), ("KB", 1024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0)];

/// Lines that appear only if needed.
const CONDITIONAL: [&str; 3] = ["Latency Distribution", "Socket errors", "Non-2xx or 3xx responses"];

/// Heading of the percentiles.
const DISTRIBUTION: &str = "  Latency Distribution\n";

/// Percentiles of a native report, in thousandths of a per cent.
const UNASKED: [u64; 5] = [50_000, 75_000, 90_000, 99_000, 99_900];
/// Percentiles requested with `-L`.
const ASKED: [u64; 8] = [50_000, 75_000, 90_000, 95_000, 99_000, 99_900, 99_990, 99_999];

/// Labels of the percentiles that have ten requests beyond them, and of the maximum.
fn natively(thousandths: &[u64], requests: u64) -> Vec<String> {
    let shown = thousandths.iter().filter(|percent| (100_000 - **percent) * requests >= 10 * 100_000);
    let label = |percent: &u64| format!("{:>7}%", *percent as f64 / 1e3);
    shown.map(label).chain(["     max".to_owned()]).collect()
}

#[derive(Debug)]
pub struct TableRow {
    /// Mean, in microseconds or requests per second, like the next two.
    pub mean: f64,
    /// The standard deviation.
    pub stdev: f64,
    /// The maximum.
    pub max: f64,
}

impl ProgramOutput {
    /// The row of latencies.
    pub fn latency_us(&self) -> TableRow {
        self.row("Latency ", TIMES_US)
    }

    /// Row of the rates of single threads.
    pub fn thread_rate(&self) -> TableRow {
        self.row("Req/Sec ", RATES)
    }

    fn row(&self, name: &str, units: &[(&str, f64)]) -> TableRow {
        let line = self.line(name).unwrap_or_else(|| panic!("no {name}in {self:?}"));
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [_, mean, stdev, max, _] = cells[..] else { panic!("four figures in {line:?}") };
        TableRow { mean: scaled(mean, units), stdev: scaled(stdev, units), max: scaled(max, units) }
    }

    /// Duration of the run, as printed.
    pub fn elapsed(&self) -> &str {
        let rest = self.stdout.split(" requests in ").nth(1).expect("the totals are there");
        rest.split(',').next().unwrap_or_default()
    }

    /// The elapsed time in milliseconds.
    pub fn elapsed_ms(&self) -> f64 {
        scaled(self.elapsed(), TIMES_US) / 1e3
    }

    /// Requests per second, from the last line but one.
    pub fn requests_per_s(&self) -> f64 {
        let line = self.line("Requests/sec:").expect("the line is always there");
        line.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number of requests")
    }

    /// Checks the bytes per request. The printed number is rounded, and the end of a run can cut two responses.
    pub fn assert_bytes_per_request(&self, bytes: u64) {
        let text = self.stdout.split(" read\n").next().and_then(|before| before.split_whitespace().last());
        let text = text.expect("the report says how much was read");
        let unit = scaled(text.trim_start_matches(|character: char| !character.is_alphabetic()), BYTES);
        let (read, expected) = (scaled(text, BYTES), (bytes * self.requests()) as f64);
        let slack = 2.0 * bytes as f64 + 0.01 * unit;
        assert!((read - expected).abs() <= slack, "{text} are not {} times {bytes} bytes", self.requests());
    }

    /// Checks that there are no lines about errors or percentiles.
    pub fn assert_nothing_but_standard(&self) {
        self.assert_standard();
        assert_eq!(self.stdout.lines().count(), 8, "{}", self.stdout);
        for line in CONDITIONAL {
            assert!(!self.stdout.contains(line), "{line} in\n{}", self.stdout);
        }
    }

    /// Checks that a native report has percentiles, and no lines about errors.
    pub fn assert_nothing_but_percentiles(&self) {
        self.assert_percentiles_are(&natively(&UNASKED, self.requests()));
        let (table, rest) = self.stdout.split_once(DISTRIBUTION).expect("it was there");
        let rest = &rest[rest.find(" requests in ").expect("it was there")..];
        Self { stdout: format!("{table}  {}{rest}", self.requests()), ..self.clone() }.assert_nothing_but_standard();
    }

    /// Checks wrk's block of percentiles.
    pub fn assert_percentiles(&self) {
        self.assert_percentiles_are(&["     50%", "     75%", "     90%", "     99%"].map(str::to_owned));
    }

    /// Checks the block of requested native percentiles.
    pub fn assert_native_percentiles(&self) {
        self.assert_percentiles_are(&natively(&ASKED, self.requests()));
    }

    /// Checks the block of percentiles: these ascending lines between the table and the totals.
    fn assert_percentiles_are(&self, labels: &[String]) {
        self.assert_standard();
        let lines: Vec<&str> = self.stdout.lines().skip_while(|line| !line.starts_with("    Req/Sec")).collect();
        assert_eq!(lines[1], DISTRIBUTION.trim_end(), "{}", self.stdout);
        let mut last_us = 0.0;
        for (line, label) in lines[2..].iter().zip(labels) {
            assert!(line.starts_with(label) && line.len() == label.len() + 10, "{line:?} is not {label:?}");
            let value_us = scaled(line[label.len()..].trim(), TIMES_US);
            assert!(value_us >= last_us, "{}", self.stdout);
            last_us = value_us;
        }
        assert!(lines[2 + labels.len()].contains(" requests in "), "{}", self.stdout);
    }

    /// Checks that the line of statuses counts every response, and is followed by the rates.
    pub fn assert_all_counted_as_errors(&self) {
        let expected = format!("  Non-2xx or 3xx responses: {}\n", self.requests());
        assert!(self.requests() > 0 && self.stdout.contains(&expected), "no {expected:?} in\n{}", self.stdout);
    }
}

/// A number with its unit, converted to the unit whose factor is one. A unit without a number means one.
fn scaled(text: &str, units: &[(&str, f64)]) -> f64 {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = &text[digits.len()..];
    let found = units.iter().find(|(name, _)| *name == unit);
    let (_, factor) = found.unwrap_or_else(|| panic!("{text:?} has no unit of {units:?}"));
    let number: f64 = if digits.is_empty() { 1.0 } else { digits.parse().expect("a number") };
    number * factor
}
