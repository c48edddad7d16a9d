//! The time line as comma-separated values: a heading, then a row a second.

use super::super::result::{Document, Row, rate};

/// The heading and the rows.
pub fn render(document: &Document) -> String {
    let mut text = String::from(
        "start_s,length_s,started,completed,rate_per_s,bytes_sent,bytes_received,connect_errors,read_errors,\
         write_errors,timeouts,status_errors,mean_us,p50_us,p90_us,p99_us,max_us\n",
    );
    document.timeline.iter().for_each(|stretch| text.push_str(&row(stretch)));
    text
}

fn row(row: &Row) -> String {
    let errors = row.errors.unwrap_or_default();
    let counts = [errors.connect, errors.read, errors.write, errors.timeout, errors.status];
    let stretch = row.stretch();
    // A second without an answer has no latency: the cell is empty, not zero.
    let us = |us: Option<f64>| us.map_or(String::new(), |us| format!("{us:.1}"));
    let percentile = |percent| us(stretch.percentile_ns(percent).map(|ns| ns / 1e3));
    let mut cells = [row.start_s, row.length_s].map(|seconds| seconds.to_string()).to_vec();
    cells.extend([row.started, row.completed].map(|count| count.to_string()));
    cells.push(format!("{:.2}", rate(row.completed, row.length_s)));
    cells.extend([row.bytes_sent, row.bytes_received].map(|bytes| bytes.to_string()));
    cells.extend(counts.map(|count| count.to_string()));
    cells.extend([us(row.mean_us), percentile(50.0), percentile(90.0), percentile(99.0), us(row.max_us)]);
    cells.join(",") + "\n"
}
