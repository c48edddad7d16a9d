//! Accounts for all requests of a run: how they ended, and which of them are errors as defined by the metric `errors`.

use onrush_text::units::{format_share_of, format_thousands};

use crate::record::Requests;

/// How many requests ended in which way: `20 completed, 10 abandoned`, and how many were carried over from a warm-up.
/// Covers the requests that were due, or without a schedule those that were sent. `None` if all were completed or were
/// still in flight as usual.
pub fn request_ends(requests: &Requests) -> Option<String> {
    let Requests { completed, abandoned, open, unknown, .. } = *requests;
    let (failed, dropped, unsent) = (requests.failed(), requests.dropped.unwrap_or(0), requests.unsent.unwrap_or(0));
    if failed + abandoned + dropped + unsent + unknown == 0 {
        return None;
    }
    let ends = [
        (completed, "completed"),
        (failed, "failed"),
        (abandoned, "abandoned"),
        (dropped, "dropped"),
        (open, "in flight at the end"),
        (unsent, "unsent at the end"),
        (unknown, "in flight where a thread or machine was lost"),
    ];
    let before = requests.carried + requests.due_before.unwrap_or(0);
    let before = (before > 0).then(|| format!("; {} of them from the warm-up", format_thousands(before)));
    Some(nonzero_parts(&ends) + &before.unwrap_or_default())
}

/// Term for the requests that [`request_ends`] covers: `due` or `sent`.
pub fn covered_requests(requests: &Requests) -> &'static str {
    if requests.due.is_some() { "due" } else { "sent" }
}

/// Number and share of errors among all requests, and their kinds; `None` without errors.
pub fn error_summary(requests: &Requests) -> Option<String> {
    let errors = Some(requests.errors()).filter(|errors| *errors > 0)?;
    let kinds = [
        (requests.failed(), "failed"),
        (requests.abandoned, "abandoned"),
        (requests.dropped.unwrap_or(0), "dropped"),
        (requests.unsent.unwrap_or(0), "unsent at the end"),
        (requests.open_late, "late and in flight at the end"),
        (requests.unsuccessful, "with a late or unsuccessful response"),
    ];
    Some(format!("{} ({})", format_share_of(errors, requests.all(), "request"), nonzero_parts(&kinds)))
}

fn nonzero_parts(parts: &[(u64, &str)]) -> String {
    let some = parts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{} {what}", format_thousands(*count))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use onrush_plan::Dialect;
    use onrush_stats::{Cause, Counters, Phase};

    use super::super::form::{ReportForm, print};
    use crate::fixtures::{flawless, plan, record_failures, report_closing, schedule};
    use crate::record::Document;
    use crate::run::Outcome;

    /// 30 requests, ten of which were abandoned before they were late, in a row of the timeline.
    fn run_with_abandoned_requests() -> Outcome {
        let mut outcome = flawless(20, 1);
        let counters = &mut outcome.totals.counters;
        (counters.started, counters.abandoned) = (30, 10);
        record_failures(&mut outcome, 10, Phase::Abandoned, Cause::GivenUp);
        outcome.totals.censored.get_or_insert_default().record_many(1_000_000_000, 10);
        outcome.timeline.record(&outcome.totals);
        outcome.timeline.end_run(crate::run::nanos(outcome.elapsed));
        outcome
    }

    #[test]
    fn abandoned_requests_are_errors_everywhere() {
        let (plan, outcome) = (plan(Dialect::Native, "http://h/", 1, 1, 1), run_with_abandoned_requests());
        let document = Document::judged(&plan, &outcome);
        document.result.check().unwrap();
        let text = report_closing(&plan, &outcome);
        let lines = "\n  Requests sent: 30 (20 completed, 10 abandoned)\n  Errors: 10 of 30 requests (10 abandoned)\n";
        assert!(text.contains(lines) && !text.contains("Socket errors"), "{text}");
        let markdown = print(&document, ReportForm::Markdown, false).unwrap().text;
        assert!(markdown.contains("\n| sent | 30 (20 completed, 10 abandoned) |\n"), "{markdown}");
        assert!(markdown.contains("\n| errors | 10 of 30 requests (10 abandoned) |\n"), "{markdown}");
        let note = "10 of 30 requests got no complete response: 10 were abandoned (--give-up) after 1.00s";
        assert!(document.notes.iter().any(|note_| note_.text == note), "{:?}", document.notes);
        assert_eq!((document.errors.abandoned, document.ledger[0].phase.as_str()), (10, "abandoned"));
        let row = &document.timeline[0];
        assert_eq!((row.errors.unwrap().abandoned, row.erroneous), (10, Some(10)));
        let imitated = Document::judged(&crate::fixtures::plan(Dialect::Wrk, "http://h/", 1, 1, 1), &outcome);
        let text = print(&imitated, ReportForm::Wrk, false).unwrap().text;
        assert!(!text.contains("Errors") && !text.contains("Requests sent"), "{text}");
    }

    #[test]
    fn every_due_request_has_an_end() {
        let mut plan = plan(Dialect::Native, "http://h/", 1, 1, 1);
        plan.schedule = Some(schedule(100));
        let mut outcome = flawless(20, 1);
        let counters = &mut outcome.totals.counters;
        *counters = Counters { started: 34, failed: 3, abandoned: 4, open_at_end: 10, carried: 3, ..*counters };
        let open_loop = outcome.totals.open_loop.get_or_insert_default();
        (open_loop.due, open_loop.dropped, open_loop.unsent) = (139, 5, 100);
        let document = Document::of(&plan, &outcome);
        let ends = "20 completed, 3 failed, 4 abandoned, 5 dropped, 10 in flight at the end, 100 unsent at the end; 3 of them \
                    from the warm-up";
        assert_eq!(super::request_ends(&document.requests).unwrap(), ends);
        assert_eq!(document.requests.all(), 20 + 3 + 4 + 5 + 10 + 100);
        assert_eq!(
            super::error_summary(&document.requests).unwrap(),
            "78.87 % of 142 requests (3 failed, 4 abandoned, 5 dropped, 100 unsent at the end)"
        );
    }

    #[test]
    fn ordinary_requests_need_no_account() {
        let mut outcome = flawless(20, 1);
        let counters = &mut outcome.totals.counters;
        (counters.started, counters.open_at_end) = (21, 1);
        let text = report_closing(&plan(Dialect::Native, "http://h/", 1, 1, 1), &outcome);
        assert!(!text.contains("Requests sent") && !text.contains("Errors"), "{text}");
    }
}
