//! The timeline as comma-separated values: a heading, then one row per second.

use onrush_stats::Latencies;

use super::super::result::{Document, Row, rate};

/// The heading and the rows. With a schedule, further columns have the latencies since requests were due, the numbers of
/// late and dropped requests, and how long the target was unavailable.
pub fn render(document: &Document) -> String {
    let mut text = String::from(
        "start_s,length_s,started,completed,rate_per_s,bytes_sent,bytes_received,connect_errors,read_errors,\
         write_errors,timeouts,status_errors,mean_us,p50_us,p90_us,p99_us,max_us",
    );
    let has_schedule = document.latency.scheduled.is_some();
    if has_schedule {
        text += ",scheduled_mean_us,scheduled_p50_us,scheduled_p90_us,scheduled_p99_us,scheduled_max_us,late,dropped,unavailable_s";
    }
    text.push('\n');
    document.timeline.iter().for_each(|each| text.push_str(&row(each, document, has_schedule)));
    text
}

fn row(row: &Row, document: &Document, has_schedule: bool) -> String {
    let errors = row.errors.unwrap_or_default();
    let counts = [errors.connect, errors.read, errors.write, errors.timeout, errors.status];
    let figures = row.figures();
    let mut cells = [row.start_s, row.length_s].map(|seconds| seconds.to_string()).to_vec();
    cells.extend([row.started, row.completed].map(|count| count.to_string()));
    cells.push(format!("{:.2}", rate(row.completed, row.length_s)));
    cells.extend([row.bytes_sent, row.bytes_received].map(|bytes| bytes.to_string()));
    cells.extend(counts.map(|count| count.to_string()));
    cells.extend(latency_cells(&figures.latency));
    if has_schedule {
        cells.extend(latency_cells(&figures.scheduled));
        cells.extend([figures.late, figures.dropped].map(|count| count.to_string()));
        let unavailable = document.open_loop.as_ref().and_then(|open_loop| open_loop.unavailable.as_ref());
        let within_s = unavailable.map(|unavailable| unavailable.within_s(row.start_s, row.length_s));
        cells.push(within_s.map_or(String::new(), |seconds| seconds.to_string()));
    }
    cells.join(",") + "\n"
}

/// Mean, percentiles and maximum. A row without responses has no latency: the cells are empty, not zero.
fn latency_cells(latencies: &Latencies) -> [String; 5] {
    let percentile = |percent| latencies.percentile_ns(percent);
    let max_ns = latencies.mean_ns().map(|_| latencies.max_ns as f64);
    [latencies.mean_ns(), percentile(50.0), percentile(90.0), percentile(99.0), max_ns]
        .map(|ns| ns.map_or(String::new(), |ns| format!("{:.1}", ns / 1e3)))
}
