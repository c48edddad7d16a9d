//! Descriptions of the metrics: the output of `onrush table --columns help`, and `docs/metrics.md`.

use onrush_plan::metric::METRICS;

/// Explains how names of metrics are formed.
const NAMES: &str = "\
Conditions (--fail-if, --find-max), stop terms (--until) and limits of comparisons
(--fail-if-worse) take the first name of a metric. Tables take either name, with
one exception: in a table, rate is the rate that was asked for.

Latencies are those of the report: since requests were due if there is a rate,
and since they were sent otherwise. With scheduled. before the name, such as
scheduled.p99, they always count from when requests were due, and with service.
from when they were sent (columns scheduled_p99_us and service_p99_us).
";

/// The list of metrics for a terminal, one per line.
pub fn listing() -> String {
    let row = |[name, column, unit, words]: [&str; 4]| format!("{name:<15} {column:<25} {unit:<6} {words}\n");
    let rows = METRICS.iter().map(|about| {
        let column = about.columns.first().unwrap_or(&"-");
        row([about.id, column, about.unit.symbol(), about.words])
    });
    let head = row(["metric", "column", "unit", "meaning"]);
    format!("{head}{}\n{NAMES}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use onrush_load::record::schema;
    use onrush_plan::metric::Better;

    use super::*;

    #[test]
    fn metric_lines_fit_a_wide_terminal() {
        let text = listing();
        for about in &METRICS {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(about.id)).unwrap();
            assert!(line.ends_with(about.words) && line.contains(about.unit.symbol()), "{line}");
            assert!(line.len() <= 160, "{line}");
        }
    }

    #[test]
    fn the_document_of_metrics_is_the_table() {
        let rows = METRICS.iter().map(|about| {
            let column = about.columns.first().map_or(String::new(), |column| format!("`{column}`"));
            let better = match about.better {
                Better::Lower => "lower",
                Better::Higher => "higher",
                Better::Neither => "",
            };
            let adds_up = if about.unit.adds_up() { "yes" } else { "" };
            let unit = about.unit.symbol();
            format!("| `{}` | {column} | {unit} | {better} | {adds_up} | {} |\n", about.id, about.words)
        });
        let text = format!(
            "# Metrics\n\nEvery figure of a run that has a name: for [conditions](conditions.md#conditions), for \
             [comparisons](compare.md),\nand as a column of [tables](tables.md#columns) and of the \
             [timeline](output.md#csv). `onrush table --columns help` prints\nthis table in a terminal. A cell is empty \
             where a table has no such column, and where neither value is better.\n\n{NAMES}\n\
             | metric | column | unit | better | adds up | meaning |\n|---|---|---|---|---|---|\n{}\n\
             What adds up is the sum over all runs in the [sum of results](output.md#merging).\n",
            rows.collect::<String>()
        );
        schema::check_text("docs/metrics.md", &text, "the_document_of_metrics");
    }
}
