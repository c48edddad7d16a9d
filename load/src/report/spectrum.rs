//! wrk2's latency block: percentiles, their detailed spectrum, and the figures below.

use onrush_plan::Percent;
use onrush_stats::{Distribution, SpectrumRow, has_enough_beyond};
use onrush_text::units;

use super::table::bounded;
use crate::figures::estimate::{KnownPercentile, PercentileEstimates};
use crate::figures::{IncompleteRequests, NS_PER_US};

/// Title of the block of scheduled latencies.
pub const RECORDED: &str = "Recorded Latency";
/// Title of the block of service latencies.
pub const UNCORRECTED: &str = "Uncorrected Latency (measured without taking delayed starts into account)";

/// Percentiles that are listed by default.
const LISTED: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
/// Number of steps of the spectrum for each halving of the distance to 100 %.
const TICKS: u32 = 5;
/// Number of buckets in wrk2's histogram, each twice as wide as the previous one.
const BUCKETS: u32 = 27;
/// Number of parts of a bucket.
const SUB_BUCKETS: u32 = 2_048;

/// Figures of a block. Times are in microseconds.
pub struct Spectrum {
    /// A percentile, and its mark if it is a bound.
    percentile: Box<dyn Fn(f64) -> (&'static str, f64)>,
    steps: Vec<SpectrumRow>,
    /// Number of microseconds in one unit of the steps.
    step_us: f64,
    mean_us: f64,
    stdev_us: f64,
    max_us: f64,
    /// Age of the oldest unanswered request, since it was due; zero if there is none.
    oldest_us: f64,
    /// Number of values that the mean, the deviation and the maximum cover.
    count: u64,
    /// Requests without a value.
    incomplete: IncompleteRequests,
}

impl Spectrum {
    /// The figures of a measurement in nanoseconds. The percentiles cover all due requests, the other figures only
    /// complete responses.
    pub fn from_measured(
        completed: &Distribution<u64>,
        estimate: PercentileEstimates,
        incomplete: IncompleteRequests,
    ) -> Self {
        let (mean, stdev, count) = (completed.mean(), completed.stdev(), completed.count());
        let max = estimate.requests().completed.max();
        let all = estimate.distribution();
        let (greatest, oldest) = (all.max().unwrap_or(0), estimate.requests().censored.max().unwrap_or(0));
        let mut steps = all.binned().spectrum(TICKS);
        steps.iter_mut().for_each(|step| step.value = step.value.min(greatest));
        Self {
            percentile: Box::new(move |percent| {
                let known = estimate.percentile(percent).unwrap_or(KnownPercentile::About(0));
                (known.bound_sign(), known.ns() as f64 / NS_PER_US)
            }),
            steps,
            step_us: 1.0 / NS_PER_US,
            mean_us: mean.unwrap_or(0.0) / NS_PER_US,
            stdev_us: stdev / NS_PER_US,
            max_us: max.unwrap_or(0) as f64 / NS_PER_US,
            oldest_us: oldest as f64 / NS_PER_US,
            count,
            incomplete,
        }
    }

    /// The figures as wrk2 computes them, from whole microseconds.
    pub fn from_wrk2_bins(recorded: &Distribution<u64>) -> Self {
        let (recorded, binned) = (recorded.clone(), recorded.binned());
        Self {
            steps: binned.spectrum(TICKS),
            step_us: 1.0,
            mean_us: binned.mean(),
            stdev_us: binned.stdev(),
            max_us: binned.max() as f64,
            oldest_us: 0.0,
            count: recorded.count(),
            incomplete: IncompleteRequests::default(),
            percentile: Box::new(move |percent| ("", recorded.binned().percentile(percent) as f64)),
        }
    }

    /// The line of this percentile, under this label.
    pub fn line(&self, label: &str, percent: f64) -> String {
        let (sign, us) = (self.percentile)(percent);
        bounded(label, sign, us)
    }

    /// The line of the maximum, the largest latency of a response. If an unanswered request is older, a second line
    /// gives its age.
    pub fn max_lines(&self) -> String {
        bounded(&format!("{:>8}", "max"), "", self.max_us) + &self.oldest_line()
    }

    /// The line about the oldest unanswered request; empty unless its age exceeds the largest latency.
    pub fn oldest_line(&self) -> String {
        if self.oldest_us <= self.max_us {
            return String::new();
        }
        format!("  Oldest request without a response: {}\n", units::format_us(self.oldest_us))
    }

    /// True if enough values lie beyond a percentile to make it meaningful.
    pub fn has_enough_beyond(&self, percent: f64) -> bool {
        has_enough_beyond(percent, self.count + self.incomplete.timed_count())
    }

    /// The first part of the block: the title and the percentiles, requested or default. In native form, default
    /// percentiles are left out if too few values lie beyond them. If an unanswered request is older than the maximum,
    /// one line for the maximum and one for that age replace the line of 100 %.
    pub fn format_list(&self, name: &str, asked: Option<&[Percent]>, is_native: bool) -> String {
        let mut text = format!("  Latency Distribution (HdrHistogram - {name})\n");
        let line = |label: String, percent: f64| self.line(&format!("{label}%"), percent);
        let has_older = is_native && !self.oldest_line().is_empty();
        let is_shown = |percent: f64| !is_native || self.has_enough_beyond(percent) || percent == 100.0 && !has_older;
        match asked {
            Some(asked) => asked.iter().for_each(|percent| text += &line(format!("{percent:>7}"), percent.value())),
            None => LISTED
                .into_iter()
                .filter(|&percent| is_shown(percent))
                .for_each(|percent| text += &line(format!("{percent:7.3}"), percent)),
        }
        match asked {
            _ if !has_older => text,
            Some(_) => text + &self.oldest_line(),
            None => text + &self.max_lines(),
        }
    }

    /// The second part of the block: the spectrum, and the figures below it.
    pub fn format_detail(&self) -> String {
        let mut text = "\n  Detailed Percentile spectrum:\n".to_owned();
        text += &format!("{:>12} {:>12} {:>12} {:>12}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
        for &SpectrumRow { value, share, count } in &self.steps {
            let value_ms = value as f64 * self.step_us / 1e3;
            text += &format!("{value_ms:12.3} {share:12.6} {count:12} {:12.2}\n", 1.0 / (1.0 - share));
        }
        let Self { count, incomplete, .. } = *self;
        let [mean, stdev, max] = [self.mean_us, self.stdev_us, self.max_us].map(format_ms);
        text += &format!("#[Mean    = {mean}, StdDeviation   = {stdev}]\n");
        text += &format!("#[Max     = {max}, Total count    = {count:12}]\n");
        text += &incomplete.histogram_comments();
        text += &format!("#[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]\n");
        text + "----------------------------------------------------------\n"
    }
}

/// Microseconds as milliseconds; NaN as in C.
fn format_ms(us: f64) -> String {
    if us.is_nan() { format!("{:>12}", "-nan") } else { format!("{:12.3}", us / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::estimate::DueRequests;

    /// Block published in wrk2's README, without the last lines: mean and deviation cannot be derived from the
    /// spectrum.
    const PUBLISHED: &str = "  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    6.67ms
 75.000%    7.78ms
 90.000%    9.14ms
 99.000%   11.18ms
 99.900%   12.30ms
 99.990%   12.45ms
 99.999%   12.50ms
100.000%   12.50ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
       4.053     0.100000         3951         1.11
       4.935     0.200000         7921         1.25
       5.627     0.300000        11858         1.43
       6.179     0.400000        15803         1.67
       6.671     0.500000        19783         2.00
       6.867     0.550000        21737         2.22
       7.079     0.600000        23733         2.50
       7.287     0.650000        25698         2.86
       7.519     0.700000        27659         3.33
       7.783     0.750000        29644         4.00
       7.939     0.775000        30615         4.44
       8.103     0.800000        31604         5.00
       8.271     0.825000        32597         5.71
       8.503     0.850000        33596         6.67
       8.839     0.875000        34571         8.00
       9.015     0.887500        35070         8.89
       9.143     0.900000        35570        10.00
       9.335     0.912500        36046        11.43
       9.575     0.925000        36545        13.33
       9.791     0.937500        37032        16.00
       9.903     0.943750        37280        17.78
      10.015     0.950000        37543        20.00
      10.087     0.956250        37795        22.86
      10.167     0.962500        38034        26.67
      10.279     0.968750        38268        32.00
      10.343     0.971875        38390        35.56
      10.439     0.975000        38516        40.00
      10.535     0.978125        38636        45.71
      10.647     0.981250        38763        53.33
      10.775     0.984375        38884        64.00
      10.887     0.985938        38951        71.11
      11.007     0.987500        39007        80.00
      11.135     0.989062        39070        91.43
      11.207     0.990625        39135       106.67
      11.263     0.992188        39193       128.00
      11.303     0.992969        39226       142.22
      11.335     0.993750        39255       160.00
      11.367     0.994531        39285       182.86
      11.399     0.995313        39319       213.33
      11.431     0.996094        39346       256.00
      11.455     0.996484        39365       284.44
      11.471     0.996875        39379       320.00
      11.495     0.997266        39395       365.71
      11.535     0.997656        39408       426.67
      11.663     0.998047        39423       512.00
      11.703     0.998242        39431       568.89
      11.743     0.998437        39439       640.00
      11.807     0.998633        39447       731.43
      12.271     0.998828        39454       853.33
      12.311     0.999023        39463      1024.00
      12.327     0.999121        39467      1137.78
      12.343     0.999219        39470      1280.00
      12.359     0.999316        39473      1462.86
      12.375     0.999414        39478      1706.67
      12.391     0.999512        39482      2048.00
      12.399     0.999561        39484      2275.56
      12.407     0.999609        39486      2560.00
      12.415     0.999658        39489      2925.71
      12.415     0.999707        39489      3413.33
      12.423     0.999756        39491      4096.00
      12.431     0.999780        39493      4551.11
      12.431     0.999805        39493      5120.00
      12.439     0.999829        39495      5851.43
      12.439     0.999854        39495      6826.67
      12.447     0.999878        39496      8192.00
      12.447     0.999890        39496      9102.22
      12.455     0.999902        39497     10240.00
      12.455     0.999915        39497     11702.86
      12.463     0.999927        39498     13653.33
      12.463     0.999939        39498     16384.00
      12.463     0.999945        39498     18204.44
      12.479     0.999951        39499     20480.00
      12.479     0.999957        39499     23405.71
      12.479     0.999963        39499     27306.67
      12.479     0.999969        39499     32768.00
      12.479     0.999973        39499     36408.89
      12.503     0.999976        39500     40960.00
      12.503     1.000000        39500          inf
";

    /// A distribution with this spectrum.
    fn published_distribution() -> Distribution<u64> {
        let (mut distribution, mut seen) = (Distribution::new(), 0);
        for line in PUBLISHED.lines().skip_while(|line| !line.contains("TotalCount")).skip(2) {
            let cells: Vec<f64> = line.split_whitespace().map(|cell| cell.parse().unwrap()).collect();
            let (value_us, count) = ((cells[0] * 1e3).round() as u64, cells[2] as u64);
            distribution.record_many(value_us, count - seen);
            seen = count;
        }
        distribution
    }

    #[test]
    fn published_blocks_match_to_the_byte() {
        let spectrum = Spectrum::from_wrk2_bins(&published_distribution());
        let block = spectrum.format_list(RECORDED, None, false) + &spectrum.format_detail();
        // Values between two steps of the spectrum are unknown. Two percentiles are given.
        let published = PUBLISHED
            .replace("99.000%   11.18ms", "99.000%   11.21ms")
            .replace("99.900%   12.30ms", "99.900%   12.31ms");
        let (above, below) = block.split_at(published.len());
        assert_eq!(above, published);
        let below: Vec<&str> = below.lines().collect();
        assert_eq!(below[1], "#[Max     =       12.496, Total count    =        39500]");
        assert_eq!(below[2], "#[Buckets =           27, SubBuckets     =         2048]");
        assert_eq!(below[3], "-".repeat(58));
        assert!(below[0].starts_with("#[Mean    =        6.") && below.len() == 4, "{below:?}");
    }

    #[test]
    fn native_percentiles_count_unanswered_requests() {
        let (mut completed, mut censored) = (Distribution::new(), Distribution::new());
        (0..99).for_each(|_| completed.record(1_000_500));
        censored.record(5_000_000_000);
        let due = DueRequests {
            completed: completed.clone(),
            censored: censored.clone(),
            is_steady: true,
            ..DueRequests::default()
        };
        let spectrum =
            Spectrum::from_measured(&completed, PercentileEstimates::new(due), IncompleteRequests::new(1, 0, 3));
        let asked = ["50", "99.5"].map(|percent| percent.parse().unwrap());
        let block = spectrum.format_list(RECORDED, Some(&asked), true) + &spectrum.format_detail();
        let list = "  Latency Distribution (HdrHistogram - Recorded Latency)\n     50%    1.00ms\n   99.5%   >5.00s \n  Oldest request without a response: 5.00s\n";
        assert_eq!(spectrum.format_list(RECORDED, Some(&asked), true), list);
        assert!(block.starts_with(&format!("{list}\n  Detailed")), "{block}");
        let lines: Vec<&str> = block.lines().collect();
        assert_eq!(lines[1..3], ["     50%    1.00ms", "   99.5%   >5.00s "]);
        let below = [
            "    5000.000     1.000000          100          inf",
            "#[Mean    =        1.000, StdDeviation   =        0.000]",
            "#[Max     =        1.000, Total count    =           99]",
            "#[GivenUp =            1 abandoned or dropped, counted like others of their age]",
            "#[Failed  =            3 without a response, left out]",
            "#[Buckets =           27, SubBuckets     =         2048]",
        ];
        assert_eq!(lines[lines.len() - 7..lines.len() - 1], below);
        let open = IncompleteRequests::new(1, 1, 0).histogram_comments();
        assert_eq!(open, "#[Open    =            1 still open at the end, counted like others of their age]\n");
    }

    #[test]
    fn spectrum_lines_have_ten_values_above() {
        let mut completed = Distribution::new();
        completed.record_many(1_000_000, 999);
        let labels = |spectrum: &Spectrum, is_native| {
            let list = spectrum.format_list(RECORDED, None, is_native);
            list.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let spectrum = |censored: &Distribution<u64>| {
            let (completed, censored) = (completed.clone(), censored.clone());
            let incomplete = IncompleteRequests::new(censored.count(), 0, 0);
            let due = DueRequests { completed: completed.clone(), censored, is_steady: true, ..DueRequests::default() };
            Spectrum::from_measured(&completed, PercentileEstimates::new(due), incomplete)
        };
        let fewer = spectrum(&Distribution::new());
        assert_eq!(labels(&fewer, true), ["50.000%", "75.000%", "90.000%", "100.000%"]);
        assert_eq!(labels(&fewer, false).len(), LISTED.len());
        // Unanswered requests are included.
        let mut censored = Distribution::new();
        censored.record(1);
        let enough = spectrum(&censored);
        assert_eq!(labels(&enough, true), ["50.000%", "75.000%", "90.000%", "99.000%", "100.000%"]);
    }
}
