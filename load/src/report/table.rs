//! Table of wrk and of its centminmod fork: headings, rows, percentiles and cells.

use onrush_plan::Percent;
use onrush_text::units;

use crate::figures::SummaryStatistics;

/// The tool whose table to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLayout {
    /// wrk's: three figures and the share within one deviation.
    Wrk,
    /// The centminmod fork's: additionally the minimum, and more percentiles.
    Cmm,
}

impl TableLayout {
    /// The line of headings.
    pub fn header(self) -> &'static str {
        match self {
            Self::Wrk => "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n",
            Self::Cmm => "  Thread Stats   Avg     Stdev       Max       Min   +/- Stdev\n",
        }
    }

    /// Formats a row. `text` formats a figure with its unit.
    pub fn row(self, name: &str, figures: &SummaryStatistics, text: fn(f64) -> String) -> String {
        let columns: &[(f64, usize)] = match self {
            Self::Wrk => &[(figures.mean, 8), (figures.stdev, 10), (figures.max, 9)],
            Self::Cmm => &[(figures.mean, 8), (figures.stdev, 10), (figures.max, 10), (figures.min, 10)],
        };
        // "-nan" is C's output for 0/0 on x86-64, and existing parsers expect it.
        let cells: String =
            columns.iter().map(|&(figure, width)| cell(&text(figure).replace("NaN", "-nan"), width)).collect();
        let within = figures.within.map_or("-nan".to_owned(), |share| format!("{:.2}", share * 100.0));
        format!("    {name:<10}{cells}{within:>8}%\n")
    }

    /// The row of the latency in a run without a response.
    pub fn row_without_responses() -> String {
        format!("    {:<10}no responses\n", "Latency")
    }

    /// The list of latency percentiles: the requested ones, or the layout's default. `line` formats each, given its
    /// label.
    pub fn percentiles(self, asked: Option<&[Percent]>, line: impl Fn(&str, f64) -> String) -> String {
        let mut text = DISTRIBUTION.to_owned();
        for percent in asked.unwrap_or_default() {
            text += &line(&format!("{percent:>7}%"), percent.value());
        }
        if asked.is_some() {
            return text;
        }
        let percents: &[f64] = match self {
            Self::Wrk => &[50.0, 75.0, 90.0, 99.0],
            Self::Cmm => &[50.0, 75.0, 90.0, 95.0, 99.0, 99.99],
        };
        for &percent in percents {
            let label = match self {
                Self::Wrk => format!("{percent:7.0}%"),
                Self::Cmm => format!("{percent:7.2}%"),
            };
            text += &line(&label, percent);
        }
        text
    }
}

/// Heading of a list of percentiles.
pub const DISTRIBUTION: &str = "  Latency Distribution\n";

/// A line of a percentile list, with a label of eight characters and a latency in microseconds.
pub fn percentile(label: &str, us: f64) -> String {
    bounded(label, "", us)
}

/// A line with a time in microseconds that may be a bound; `sign` then says which.
pub fn bounded(label: &str, sign: &str, us: f64) -> String {
    format!("{label}{}\n", cell(&format!("{sign}{}", units::format_us(us)), 10))
}

/// Right-aligns a number so that the digits line up for every unit, and truncates the rest.
pub fn cell(text: &str, width: usize) -> String {
    let letters = text.bytes().rev().take(2).take_while(u8::is_ascii_alphabetic).count();
    let (blanks, room) = (2 - letters, width - (2 - letters));
    format!("{text:>room$.room$}{:blanks$}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_unit_are_aligned() {
        let table = [
            ("23.54us", [" 23.54us", "   23.54us", "  23.54us"]),
            ("1.23s", ["  1.23s ", "    1.23s ", "   1.23s "]),
            ("115.12", ["115.12  ", "  115.12  ", " 115.12  "]),
            ("49.94k", [" 49.94k ", "   49.94k ", "  49.94k "]),
            ("1000.00ms", ["1000.00m", " 1000.00ms", "1000.00ms"]),
        ];
        for (text, cells) in table {
            assert_eq!([8, 10, 9].map(|width| cell(text, width)), cells);
        }
    }

    #[test]
    fn published_fork_tables_match_to_the_byte() {
        let times = [
            ("Latency", [3_030.0, 1_340.0, 16_260.0, 218.0, 0.7918]),
            ("Connect", [692.49, 380.32, 1_450.0, 82.0, 0.57]),
            ("TTFB", [3_020.0, 1_340.0, 16_260.0, 216.0, 0.7921]),
            ("TTLB", [3.19, 36.2, 7_470.0, 0.0, 0.9926]),
        ];
        let figures =
            |[mean, stdev, max, min, share]: [f64; 5]| SummaryStatistics { mean, stdev, max, min, within: Some(share) };
        let mut table: String =
            times.map(|(name, row)| TableLayout::Cmm.row(name, &figures(row), units::format_us)).into_iter().collect();
        let rates = figures([16_300.0, 1_340.0, 19_500.0, 12_150.0, 0.7833]);
        table += &TableLayout::Cmm.row("Req/Sec", &rates, units::format_metric);
        let published = "    Latency     3.03ms    1.34ms   16.26ms  218.00us   79.18%
    Connect   692.49us  380.32us    1.45ms   82.00us   57.00%
    TTFB        3.02ms    1.34ms   16.26ms  216.00us   79.21%
    TTLB        3.19us   36.20us    7.47ms    0.00us   99.26%
    Req/Sec    16.30k     1.34k    19.50k    12.15k    78.33%
";
        assert_eq!(table, published);
    }

    #[test]
    fn empty_rows_are_nan() {
        let row = TableLayout::Wrk.row("Latency", &SummaryStatistics::default(), units::format_us);
        assert_eq!(row, "    Latency     0.00us    0.00us   0.00us    -nan%\n");
        let row = TableLayout::Cmm.row("Req/Sec", &SummaryStatistics::default(), units::format_metric);
        assert_eq!(row, "    Req/Sec     0.00      0.00      0.00      0.00      -nan%\n");
    }

    #[test]
    fn percentile_lines_match_wrk_and_fork() {
        let wrk = "  Latency Distribution
     50%   50.00us
     75%   75.00us
     90%   90.00us
     99%   99.00us
";
        let cmm = "  Latency Distribution
  50.00%   50.00us
  75.00%   75.00us
  90.00%   90.00us
  95.00%   95.00us
  99.00%   99.00us
  99.99%   99.99us
";
        assert_eq!(TableLayout::Wrk.percentiles(None, percentile), wrk);
        assert_eq!(TableLayout::Cmm.percentiles(None, percentile), cmm);
        let asked = ["50", "99.9", "99.9999"].map(|percent| percent.parse().unwrap());
        let expected = "  Latency Distribution\n     50%   50.00us\n   99.9%   99.90us\n99.9999%  100.00us\n";
        assert_eq!(TableLayout::Wrk.percentiles(Some(&asked), percentile), expected);
    }
}
