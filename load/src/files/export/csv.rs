//! The timeline as comma-separated values: a header, followed by one row per second.

use onrush_plan::Metric;
use onrush_plan::metric::MetricUnit;

use crate::record::{Document, Row};

/// The columns, named like the metrics.
const COLUMNS: &str = "start_s,length_s,started,completed,rate_per_s,bytes_sent,bytes_received,connect_errors,\
                       read_errors,write_errors,timeouts,status_errors,check_errors,abandoned_requests,errors,\
                       mean_us,p50_us,p90_us,p99_us,max_us";

/// Further columns with a schedule: latencies since the due time, numbers of late and dropped requests, and the
/// target's unavailability.
const SCHEDULED: &str = ",scheduled_mean_us,scheduled_p50_us,scheduled_p90_us,scheduled_p99_us,scheduled_max_us,late,\
                         dropped,unavailable_s";

/// A further column of a run on several machines: the number of machines lost.
const MACHINES: &str = ",machines_lost";

/// The header and the rows of the timeline.
pub fn render_csv(document: &Document) -> String {
    let scheduled = if document.latency.scheduled.is_some() { SCHEDULED } else { "" };
    let machines = if document.machines.is_empty() { "" } else { MACHINES };
    let heading = format!("{COLUMNS}{scheduled}{machines}");
    let cells = |row: &Row| heading.split(',').map(|name| cell(name, row, document)).collect::<Vec<_>>().join(",");
    let rows: String = document.timeline.iter().map(|row| cells(row) + "\n").collect();
    format!("{heading}\n{rows}")
}

/// A cell with a figure of a row. Without responses there is no latency: the cell is empty, not zero.
fn cell(name: &str, row: &Row, document: &Document) -> String {
    let metric = || Metric::of_column(name).or_else(|| name.parse().ok());
    let (value, decimals) = match name {
        "start_s" => return row.start_s.to_string(),
        "length_s" => return row.length_s.to_string(),
        // A count instead of a share, because not all requests of a row end in it.
        "errors" => return row.erroneous.unwrap_or(0).to_string(),
        "machines_lost" => return row.machines_lost.unwrap_or(0).to_string(),
        "unavailable_s" => {
            let unavailable = document.open_loop.as_ref().and_then(|open_loop| open_loop.unavailable.as_ref());
            let within_s = unavailable.map(|unavailable| unavailable.within_s(row.start_s, row.length_s));
            return within_s.map_or(String::new(), |seconds| seconds.to_string());
        }
        _ => match metric().map(|metric| (row.value(metric), metric.description().unit)) {
            Some((value, MetricUnit::Time)) => (value, 1),
            Some((value, MetricUnit::PerSecond)) => (value, 2),
            Some((value, _)) => (value, 0),
            None => (None, 0),
        },
    };
    value.map_or(String::new(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::Dialect;
    use onrush_stats::{Cause, Phase};

    use super::*;
    use crate::fixtures::{flawless, plan, record_failures};
    use crate::run::MachineShare;

    #[test]
    fn csv_rows_have_abandoned_and_errors() {
        let mut outcome = flawless(20, 1);
        let counters = &mut outcome.totals.counters;
        (counters.started, counters.abandoned, counters.unsuccessful) = (30, 10, 2);
        record_failures(&mut outcome, 10, Phase::Abandoned, Cause::GivenUp);
        outcome.timeline.record(&outcome.totals);
        let text = render_csv(&Document::judged(&plan(Dialect::Native, "http://h/", 1, 1, 1), &outcome));
        let cells = |line: usize| text.lines().nth(line).unwrap().split(',').collect::<Vec<_>>();
        let at = |name| cells(1)[cells(0).iter().position(|cell| *cell == name).unwrap()];
        assert_eq!([at("abandoned_requests"), at("errors"), at("timeouts")], ["10", "12", "0"]);
    }

    #[test]
    fn csv_rows_count_missing_machines() {
        let mut outcome = flawless(3_000, 1);
        let machine = |lost: Option<&str>, ms| MachineShare {
            elapsed: Duration::from_millis(ms),
            lost: lost.map(str::to_owned),
            ..MachineShare::default()
        };
        outcome.machines = vec![machine(None, 3_000), machine(Some("it has ended"), 1_500)];
        outcome.timeline.end_run(3_000_000_000);
        let document = Document::judged(&plan(Dialect::Native, "http://h/", 1, 1, 1), &outcome);
        let last =
            |text: &str| text.lines().map(|line| line.rsplit(',').next().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(last(&render_csv(&document)), ["machines_lost", "0", "1", "1"]);
        assert_eq!(document.timeline.iter().map(|row| row.machines_lost).collect::<Vec<_>>(), [None, Some(1), Some(1)]);
        outcome.machines.clear();
        let document = Document::judged(&plan(Dialect::Native, "http://h/", 1, 1, 1), &outcome);
        assert_eq!(last(&render_csv(&document))[0], "max_us");
    }
}
