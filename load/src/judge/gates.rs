//! Judges gates by the figures of the text output.

use std::collections::BTreeSet;

use onrush_plan::condition::{ComparisonOperator, Condition, Term, Threshold};
use onrush_plan::metric::{LatencyView, Metric, Statistic};
use onrush_plan::{Dialect, LimitedBy};
use onrush_stats::rank;
use onrush_text::{escape_controls, units};

use crate::figures::NS_PER_US;
use crate::figures::bounds::{PercentileBounds, UnboundedRequests};
use crate::figures::estimate::PercentileEstimates;
use crate::record::gate::{Gate, Judged};
use crate::record::{Document, Note, NoteId, OfName, OpenLoop, Requests, Verdict};

/// Formats a line as an error in GitHub's annotation syntax, on one line.
pub fn annotation(line: &str) -> String {
    let line = line.strip_prefix("onrush: ").unwrap_or(line);
    format!("::error title=onrush::{}", line.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// Judges gates, including gates on the verdict.
pub(super) fn judge_gates<'a>(
    conditions: impl IntoIterator<Item = &'a Condition>,
    document: &Document,
    verdict: Option<&Verdict>,
) -> Vec<Gate> {
    conditions.into_iter().map(|condition| judge_gate(condition, document, verdict)).collect()
}

fn judge_gate(condition: &Condition, document: &Document, verdict: Option<&Verdict>) -> Gate {
    Gate::of(judge_terms(condition, document, verdict))
}

/// Notes in a sum that name gates judged in its parts but not in the sum.
pub fn notes_on_missing_gates(sum: &Document) -> impl Iterator<Item = &Note> {
    sum.notes.iter().filter(|note| note.id == NoteId::NoGate)
}

/// Judges the gates that all runs of a sum have in common by the figures of the sum. A note names each of the other
/// gates, because an unjudged gate has not passed.
pub(super) fn judge_sum(sum: &mut Document, read: impl Fn(&str) -> Option<Condition>) {
    let runs = &sum.result.runs;
    let all = || runs.iter().flat_map(|run| &run.gates);
    let mut known = BTreeSet::new();
    let (mut gates, mut missing) = (Vec::new(), Vec::new());
    for gate in all() {
        let condition = gate.condition();
        if !known.insert(condition.clone()) {
            continue;
        }
        let same: Vec<&Gate> = all().filter(|other| other.condition() == condition).collect();
        // A term is lost if it has a figure in some part but none in the sum.
        let is_lost = |(index, term): (usize, &Judged)| {
            let is_known = |other: &&Gate| other.terms.get(index).is_some_and(|term| term.was.is_some());
            term.was.is_none() && same.iter().any(is_known)
        };
        let judged = match gate.is_strict() {
            true => sum.verdict.as_ref().map(Gate::strict),
            false => read(&condition).map(|condition| judge_gate(&condition, sum, sum.verdict.as_ref())),
        };
        let judged = judged.filter(|judged| !judged.terms.iter().enumerate().any(is_lost));
        match judged {
            _ if same.len() < runs.len() => missing.push((condition, "not all results have it")),
            None => missing.push((condition, "its value is unknown for the combined results")),
            Some(judged) => gates.push(judged),
        }
    }
    sum.gates = gates;
    for (condition, why) in missing {
        let note = Note::doubt(
            NoteId::NoGate,
            format!("gate '{}' was not judged for the sum: {why}", escape_controls(&condition)),
        );
        if !sum.notes.contains(&note) {
            sum.notes.push(note);
        }
    }
}

/// Judges each term of a condition on its own, such as the terms of a search objective.
pub fn judge_objective(condition: &Condition, document: &Document) -> Vec<Judged> {
    judge_terms(condition, document, document.verdict.as_ref())
}

fn judge_terms(condition: &Condition, document: &Document, verdict: Option<&Verdict>) -> Vec<Judged> {
    condition.terms.iter().map(|term| judge_term(term, document, verdict)).collect()
}

fn judge_term(term: &Term, document: &Document, verdict: Option<&Verdict>) -> Judged {
    if let Threshold::LimitedBy(expected) = term.value {
        let limited_by = verdict.map(|verdict| verdict.limited_by);
        // An unclear verdict neither confirms nor excludes a limit.
        let is_known = |was: &LimitedBy| *was != LimitedBy::Unclear || expected == LimitedBy::Unclear;
        let is_met = |was| (was == expected) == (term.comparison == ComparisonOperator::Equal);
        let holds = limited_by.filter(is_known).is_some_and(is_met);
        let was = limited_by.map(|was| was.name().to_owned());
        return Judged { term: term.text.clone(), was, holds, undecided: false };
    }
    if let Some(judged) = judge_percentile(term, document) {
        return judged;
    }
    let of_name = term.name.as_ref().and_then(|name| document.names.iter().find(|it| it.name.as_ref() == Some(name)));
    let figure = match &term.name {
        None => document.value(term.metric),
        Some(_) => of_name.and_then(|of_name| of_name.value(term.metric, document.duration_s)),
    };
    let total = of_name.map_or(document.requests.all(), OfName::all) as f64;
    let is_count = term.metric.description().unit.adds_up();
    let asked = document.open_loop.as_ref().map(AskedRate::from_open_loop);
    let (figure, value) = match term.value {
        Threshold::Time(time) => (figure, time.as_nanos() as f64 / NS_PER_US),
        Threshold::Number(number) => (figure, number),
        Threshold::Share(share) if is_count => (figure.filter(|_| total > 0.0).map(|count| count / total), share),
        Threshold::Share(share) => (figure, share),
        Threshold::OfAsked(factor) => {
            (figure.filter(|_| asked.is_some()), factor * asked.map_or(0.0, |asked| asked.by_end_per_s))
        }
        Threshold::LimitedBy(_) => (None, 0.0),
    };
    let was = figure.map(|figure| match term.value {
        Threshold::Time(_) => units::format_us(figure),
        Threshold::Share(_) if term.metric == Metric::Unavailable => format!("{:.3} % of the time", figure * 100.0),
        Threshold::Share(_) => share_or_count(figure, total),
        Threshold::OfAsked(_) => {
            asked.map_or(String::new(), |asked| asked.describe_reached(figure, document.requests.open))
        }
        Threshold::LimitedBy(_) => String::new(),
        Threshold::Number(_) if is_count => units::format_thousands(figure as u64),
        Threshold::Number(_) => format!("{figure:.2}"),
    });
    let values = match term.metric {
        Metric::Latency(LatencyView::Class(class), _) => {
            document.value(Metric::StatusClass(class)).map_or(0, |it| it as u64)
        }
        _ => of_name.map_or(document.latency.service.count, |of_name| of_name.completed),
    };
    let was = was.map(|was| was + &largest_value_clause(term.metric, values));
    let holds = figure.is_some_and(|figure| term.comparison.holds(figure, value));
    Judged { term: term.text.clone(), was, holds, undecided: figure.is_none() && !passes_without_figure(term) }
}

/// True if a term passes when its figure is missing: the latency of unsuccessful statuses is missing only if there were
/// none.
fn passes_without_figure(term: &Term) -> bool {
    matches!(term.metric, Metric::Latency(LatencyView::Class(3..), _)) && term.name.is_none()
}

/// The requested rate.
#[derive(Clone, Copy)]
struct AskedRate {
    per_s: f64,
    /// Rate of the requests that were due early enough to be answered by the end.
    by_end_per_s: f64,
}

impl AskedRate {
    /// The requested rate of an open loop.
    fn from_open_loop(open_loop: &OpenLoop) -> Self {
        Self { per_s: open_loop.asked_per_s, by_end_per_s: open_loop.asked_by_end_per_s }
    }

    /// Compares the rate reached with the rate requested; `open` is the number of requests in flight at the end.
    fn describe_reached(self, reached_per_s: f64, open: u64) -> String {
        let Self { per_s, by_end_per_s } = self;
        let (asked, late) = (format!("{per_s:.2}"), format!("{:.2}", per_s - by_end_per_s));
        if late == "0.00" {
            return format!("{reached_per_s:.2} of {asked} requests/s");
        }
        // Without requests in flight, the run ended with the last response of `-n`.
        let why = match open {
            0 => "because nothing was left to send while the last responses came",
            _ => "because they were due too close to the end to have a response",
        };
        format!(
            "{reached_per_s:.2} of the {by_end_per_s:.2} requests/s that count: of {asked} asked for, {late} are left \
             out, {why}"
        )
    }
}

/// A share (0 to 1) of all requests, shown as a count if `total` is small.
fn share_or_count(share: f64, total: f64) -> String {
    match total as u64 {
        few if few < units::PERCENT_MIN => units::format_share((share * total).round() as u64, few),
        _ => format!("{:.3} % of requests", share * 100.0),
    }
}

/// A clause for runs so small that the percentile is simply the largest value.
fn largest_value_clause(metric: Metric, values: u64) -> String {
    match metric {
        Metric::Latency(_, Statistic::Percentile(percent))
            if percent.value() < 100.0 && rank(percent.value(), values) >= values =>
        {
            format!(" (the largest of {})", units::format_count(values, "value"))
        }
        _ => String::new(),
    }
}

/// Judges a percentile of the latency since the due time, over all due requests. Failed, abandoned and dropped requests
/// count as too slow. Undecided if the outcome depends on requests still open when the run stopped. `None` for other
/// terms, or if nothing was measured.
fn judge_percentile(term: &Term, document: &Document) -> Option<Judged> {
    let Metric::Latency(view @ (LatencyView::Shown | LatencyView::Scheduled), Statistic::Percentile(percent)) =
        term.metric
    else {
        return None;
    };
    let Threshold::Time(limit) = term.value else { return None };
    if term.name.is_some() {
        return None;
    }
    let open_loop = document.open_loop.as_ref()?;
    let estimate = document.estimate_since_due().ok()??;
    let percent = percent.value();
    let mut lower_ns = estimate.bounds(percent)?.lower_ns;
    let [mut at_once, mut never] = estimate.extremes(percent);
    if view == LatencyView::Shown && !document.imitates(Dialect::Native) {
        // The imitated tool prints only the latencies of complete responses.
        lower_ns = (document.value(term.metric)? * NS_PER_US).round() as u64;
        [at_once, never] = [at_once, never].map(|ns| ns.map(|ns| ns.max(lower_ns)));
    }
    let holds = |ns: Option<u64>| {
        let figure = ns.map_or(f64::INFINITY, |ns| ns as f64);
        term.comparison.holds(figure, limit.as_nanos() as f64)
    };
    let between = PercentileBounds { lower_ns: at_once.map_or(lower_ns, |ns| ns.min(lower_ns)), upper_ns: never };
    let mut was = between.with_reason(count_unbounded_requests(&document.requests, open_loop, &estimate, true));
    if never.is_some() {
        was += &largest_value_clause(term.metric, estimate.due());
    }
    let undecided = holds(at_once) != holds(never);
    Some(Judged { term: term.text.clone(), was: Some(was), holds: holds(never) && !undecided, undecided })
}

/// Counts the requests without an upper bound on latency, by outcome. `any_open` counts every request still open when
/// the run stopped; otherwise only those older than any response count.
pub(super) fn count_unbounded_requests(
    requests: &Requests,
    open_loop: &OpenLoop,
    estimate: &PercentileEstimates,
    any_open: bool,
) -> UnboundedRequests {
    let due = estimate.requests();
    let slowest_ns = due.completed.max().filter(|_| !any_open && due.is_steady).unwrap_or(0);
    let left: u64 = due.open.values().filter(|(age_ns, _)| *age_ns > slowest_ns).map(|(_, count)| count).sum();
    let dropped = requests.dropped.unwrap_or(0) + open_loop.later_dropped;
    let unsent = if open_loop.run_on_s > 0.0 { 0 } else { requests.unsent.unwrap_or(0).min(left) };
    UnboundedRequests {
        due: estimate.due(),
        failed: due.failed,
        abandoned: (due.censored.count() - due.open.count().min(due.censored.count())).saturating_sub(dropped),
        dropped,
        unsent,
        hanging: left - unsent,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::Plan;
    use onrush_plan::metric::ErrorKind;
    use onrush_stats::{Cause, Phase};

    use super::*;
    use crate::fixtures::{fill_from_latencies, flawless, plan, record_failures, schedule, with_received_bytes};
    use crate::record::RunResult;
    use crate::run::Outcome;

    const URL: &str = "http://127.0.0.1/";

    fn build_term(metric: Metric, comparison: ComparisonOperator, value: Threshold) -> Term {
        Term { text: String::new(), metric, name: None, comparison, value }
    }

    /// The value of a metric, and true if it exceeds `value`.
    fn judge_metric(plan: &Plan, outcome: &Outcome, metric: Metric, value: Threshold) -> (Option<String>, bool) {
        let judged =
            judge_term(&build_term(metric, ComparisonOperator::More, value), &Document::of(plan, outcome), None);
        (judged.was, judged.holds)
    }

    /// An outcome of 1,000 requests: six 503 responses, four late ones, and 20 requests without a response.
    fn flawed_outcome() -> Outcome {
        let mut outcome = flawless(980, 1);
        (0..6).for_each(|_| outcome.totals.statuses.record(503));
        record_failures(&mut outcome, 6, Phase::Status, Cause::Status(503));
        record_failures(&mut outcome, 20, Phase::Head, Cause::Errno(104));
        record_failures(&mut outcome, 4, Phase::Timeout, Cause::Late);
        let counters = &mut outcome.totals.counters;
        (counters.started, counters.unsuccessful, counters.failed) = (1_000, 10, 20);
        outcome
    }

    #[test]
    fn gates_use_the_shown_figures() {
        let (plan, outcome) = (plan(Dialect::Native, URL, 1, 1, 1), flawed_outcome());
        let p99 = Statistic::Percentile("99".parse().unwrap());
        let ms = |ms| Threshold::Time(Duration::from_millis(ms));
        for (metric, value, was, holds) in [
            (Metric::Latency(LatencyView::Shown, p99), ms(1), "1.00ms", false),
            (Metric::Latency(LatencyView::Service, Statistic::Max), ms(0), "1.00ms", true),
            (Metric::Latency(LatencyView::Shown, Statistic::Mean), ms(2), "1.00ms", false),
            (Metric::Rate, Threshold::Number(999.0), "1000.00", true),
            (Metric::Errors, Threshold::Share(0.029), "3.000 % of requests", true),
            (Metric::Errors, Threshold::Share(0.031), "3.000 % of requests", false),
            (Metric::ErrorsOf(ErrorKind::Read), Threshold::Number(19.0), "20", true),
            (Metric::ErrorsOf(ErrorKind::Timeout), Threshold::Share(0.01), "0.400 % of requests", false),
            (Metric::ErrorsOf(ErrorKind::Connect), Threshold::Number(0.0), "0", false),
            (Metric::Status(503), Threshold::Number(5.0), "6", true),
            (Metric::StatusClass(5), Threshold::Share(0.01), "0.600 % of requests", false),
        ] {
            assert_eq!(
                judge_metric(&plan, &outcome, metric, value),
                (Some(was.to_owned()), holds),
                "{metric:?} {value:?}"
            );
        }
    }

    #[test]
    fn rate_gates_count_from_due_times() {
        let (mut plan, mut outcome) = (plan(Dialect::Native, URL, 1, 1, 1), flawless(900, 1));
        plan.schedule = Some(schedule(1_000));
        outcome.elapsed = Duration::from_secs(1);
        let open_loop = outcome.totals.open_loop.get_or_insert_default();
        open_loop.scheduled.record_many(5_000_000, 900);
        open_loop.censored.record_many(40_000_000, 100);
        open_loop.open.get_or_insert_default().record_many(40_000_000, 40);
        (open_loop.due, open_loop.late, open_loop.dropped, open_loop.unsent) = (1_000, 300, 60, 40);
        let p = |percent: &str| Statistic::Percentile(percent.parse().unwrap());
        let zero = Threshold::Time(Duration::ZERO);
        for (metric, value, was) in [
            (Metric::Latency(LatencyView::Shown, p("50")), zero, "5.00ms"),
            (
                Metric::Latency(LatencyView::Scheduled, p("100")),
                zero,
                "at least 40.00ms, with no upper bound, because 6 % of the requests due were dropped and 4 % were not sent by \
                 the end",
            ),
            (Metric::Latency(LatencyView::Shown, Statistic::Max), zero, "5.00ms"),
            (Metric::Latency(LatencyView::Service, p("99")), zero, "1.00ms"),
            (Metric::Late, Threshold::Number(0.0), "300"),
            (Metric::Dropped, Threshold::Share(0.05), "6.000 % of requests"),
            (Metric::Errors, Threshold::Share(0.0), "10.000 % of requests"),
            (Metric::Rate, Threshold::OfAsked(0.8), "900.00 of 1000.00 requests/s"),
        ] {
            assert_eq!(
                judge_metric(&plan, &outcome, metric, value),
                (Some(was.to_owned()), true),
                "{metric:?} {value:?}"
            );
        }
        assert!(!judge_metric(&plan, &outcome, Metric::Rate, Threshold::OfAsked(0.95)).1);
        // In an overlong run, fewer due requests do not bring the reached rate closer to the requested one.
        outcome.totals.open_loop.as_mut().unwrap().due = 900;
        let slow = judge_metric(&plan, &outcome, Metric::Rate, Threshold::OfAsked(0.95));
        assert_eq!(slow, (Some("900.00 of 1000.00 requests/s".to_owned()), false));
        let words = |open| AskedRate { per_s: 100.0, by_end_per_s: 90.0 }.describe_reached(60.0, open);
        let asked = "60.00 of the 90.00 requests/s that count: of 100.00 asked for, 10.00 are left out,";
        assert_eq!(words(10), format!("{asked} because they were due too close to the end to have a response"));
        assert_eq!(words(0), format!("{asked} because nothing was left to send while the last responses came"));
    }

    /// The figure of a gate after 1 % failed requests.
    const ONE_PERCENT: &str = "at least 2.00ms, with no upper bound, because 1 % of the requests due failed and \
                               0.1 % had no response by the end";
    const TEN_PERCENT: &str = "at least 2.00ms, with no upper bound, because 10 % of the requests due failed and \
                               0.1 % had no response by the end";

    #[test]
    fn gates_judge_percentile_upper_bounds() {
        let mut plan = plan(Dialect::Native, URL, 5, 1, 1);
        plan.schedule = Some(schedule(200));
        // 1,000 due requests: `failed` failed, and one is in flight.
        let outcome = |failed: u64| {
            let mut outcome = flawless(999 - failed, 1);
            let counters = &mut outcome.totals.counters;
            (counters.started, counters.failed, counters.open_at_end) = (1_000, failed, 1);
            let open_loop = outcome.totals.open_loop.get_or_insert_default();
            open_loop.scheduled.record_many(2_000_000, 999 - failed);
            open_loop.censored.record(200_000);
            open_loop.open.get_or_insert_default().record(200_000);
            open_loop.due = 1_000;
            outcome
        };
        let limit = Threshold::Time(Duration::from_millis(50));
        let metric = |view, percent: &str| Metric::Latency(view, Statistic::Percentile(percent.parse().unwrap()));
        for (failed, view, percent, was, breaks) in [
            (0, LatencyView::Shown, "99", "2.00ms", false),
            (0, LatencyView::Shown, "99.8", "2.00ms", false),
            (8, LatencyView::Shown, "99", "2.00ms", false),
            (10, LatencyView::Shown, "99", ONE_PERCENT, true),
            (100, LatencyView::Shown, "99", TEN_PERCENT, true),
            (100, LatencyView::Scheduled, "95", TEN_PERCENT, true),
            (100, LatencyView::Scheduled, "89", "2.00ms", false),
            // The service latency counts only requests that were sent and answered.
            (100, LatencyView::Service, "99", "1.00ms", false),
        ] {
            let judged = judge_metric(&plan, &outcome(failed), metric(view, percent), limit);
            assert_eq!(judged, (Some(was.to_owned()), breaks), "{failed} {view:?} p{percent}");
            // A required term, as in a search, does not hold either.
            let held = judge_term(
                &build_term(metric(view, percent), ComparisonOperator::Less, limit),
                &Document::of(&plan, &outcome(failed)),
                None,
            )
            .holds;
            assert_eq!(held, !breaks, "{failed} {view:?} p{percent}");
        }
        plan.dialect = Dialect::Wrk2;
        let judged = judge_metric(&plan, &outcome(100), metric(LatencyView::Shown, "99"), limit);
        assert_eq!(judged, (Some(TEN_PERCENT.to_owned()), true));
    }

    #[test]
    fn open_requests_leave_gates_undecided() {
        let mut plan = plan(Dialect::Native, URL, 5, 1, 1);
        plan.schedule = Some(schedule(200));
        // One of 1,000 requests was still open when the run stopped, 20 ms after its due time.
        let mut outcome = flawless(999, 1);
        (outcome.totals.counters.started, outcome.totals.counters.open_at_end) = (1_000, 1);
        let open_loop = outcome.totals.open_loop.get_or_insert_default();
        open_loop.scheduled.record_many(2_000_000, 999);
        open_loop.censored.record(20_000_000);
        open_loop.open.get_or_insert_default().record(20_000_000);
        open_loop.due = 1_000;
        let judged = |percent: &str, comparison, limit_ms: u64| {
            let metric = Metric::Latency(LatencyView::Shown, Statistic::Percentile(percent.parse().unwrap()));
            let term = build_term(metric, comparison, Threshold::Time(Duration::from_millis(limit_ms)));
            let judged = judge_term(&term, &Document::of(&plan, &outcome), None);
            (judged.holds, judged.undecided)
        };
        let (no, yes, undecided) = ((false, false), (true, false), (false, true));
        for (percent, limit_ms, more) in
            [("99", 50, no), ("99.99", 50, undecided), ("99.99", 10, yes), ("100", 50, undecided), ("99.8", 1, yes)]
        {
            assert_eq!(judged(percent, ComparisonOperator::More, limit_ms), more, "{percent} {limit_ms}");
            let less = (!more.0 && !more.1, more.1);
            assert_eq!(judged(percent, ComparisonOperator::AtMost, limit_ms), less, "{percent} {limit_ms}");
        }
    }

    #[test]
    fn gates_without_a_figure_do_not_pass() {
        let plan = plan(Dialect::Native, URL, 1, 1, 1);
        let mut outcome = flawless(0, 1);
        outcome.totals.latency.record_many(50_000_000, 10);
        (outcome.totals.counters.completed, outcome.totals.counters.started) = (10, 10);
        (0..10).for_each(|_| {
            outcome.totals.by_class.get_or_insert_default().record(503, 50_000_000);
            outcome.totals.statuses.record(503);
        });
        let document = Document::of(&plan, &outcome);
        let gate = |metric: &str, name: Option<&str>| {
            let text = format!("{metric}{}>1s", name.map_or(String::new(), |name| format!("[{name}]")));
            let name = name.map(str::to_owned);
            let value = Threshold::Time(Duration::from_secs(1));
            let term =
                Term { text, metric: metric.parse().unwrap(), name, comparison: ComparisonOperator::More, value };
            let gate = judge_gate(&Condition { terms: vec![term] }, &document, None);
            (gate.broken, gate.undecided, gate.lacks_figure())
        };
        assert_eq!(gate("p99.5xx", None), (false, false, false), "judged");
        assert_eq!(gate("p99.2xx", None), (false, true, false));
        assert_eq!(gate("mean.3xx", None), (false, false, true), "passed with a note");
        assert_eq!(gate("p99", Some("order")), (false, true, false));
    }

    #[test]
    fn unmeasured_figures_break_no_gate() {
        let (plan, outcome) = (plan(Dialect::Native, URL, 1, 1, 1), flawless(0, 1));
        let metrics = [
            Metric::Latency(LatencyView::Shown, Statistic::Max),
            Metric::Latency(LatencyView::Service, Statistic::Least),
        ];
        for metric in metrics {
            assert_eq!(judge_metric(&plan, &outcome, metric, Threshold::Time(Duration::ZERO)), (None, false));
        }
        assert_eq!(judge_metric(&plan, &outcome, Metric::Errors, Threshold::Share(0.0)), (None, false));
    }

    #[test]
    fn small_runs_gate_on_counts_and_maxima() {
        let plan = plan(Dialect::Native, URL, 1, 1, 1);
        let mut outcome = flawless(9, 1);
        (outcome.totals.counters.started, outcome.totals.counters.failed) = (14, 5);
        let percentile = |percent: &str| Statistic::Percentile(percent.parse().unwrap());
        let zero = Threshold::Time(Duration::ZERO);
        for (metric, value, was) in [
            (Metric::Errors, Threshold::Share(0.01), "5 of 14"),
            (Metric::Status(200), Threshold::Share(0.01), "9 of 14"),
            (Metric::Latency(LatencyView::Shown, percentile("80")), zero, "1.00ms"),
            (Metric::Latency(LatencyView::Shown, percentile("99")), zero, "1.00ms (the largest of 9 values)"),
            (Metric::Latency(LatencyView::Shown, percentile("100")), zero, "1.00ms"),
        ] {
            assert_eq!(judge_metric(&plan, &outcome, metric, value), (Some(was.to_owned()), true), "{metric:?}");
        }
    }

    #[test]
    fn gates_break_when_all_terms_hold() {
        let (plan, outcome) = (plan(Dialect::Native, URL, 1, 1, 1), flawed_outcome());
        let rate = Term {
            text: "rate>10".to_owned(),
            ..build_term(Metric::Rate, ComparisonOperator::More, Threshold::Number(10.0))
        };
        let dead = Term {
            text: "rate<10".to_owned(),
            ..build_term(Metric::Rate, ComparisonOperator::Less, Threshold::Number(10.0))
        };
        let of = |terms: &[&Term]| Condition { terms: terms.iter().map(|term| (*term).clone()).collect() };
        let conditions = [of(&[&rate]), of(&[&dead]), of(&[&rate, &dead]), of(&[&rate, &rate])];
        let gates = judge_gates(&conditions, &Document::of(&plan, &outcome), None);
        assert_eq!(gates.iter().map(|gate| gate.broken).collect::<Vec<_>>(), [true, false, false, true]);
        assert_eq!((gates[0].condition(), gates[0].was()), ("rate>10".to_owned(), "it was 1000.00".to_owned()));
        assert_eq!(gates[3].was(), "rate>10 was 1000.00, rate>10 was 1000.00");
    }

    #[test]
    fn gates_impossible_for_sums_are_named() {
        let plan = plan(Dialect::Native, URL, 1, 1, 1);
        let read = |text: &str| {
            let metric = if text == "errors" { Metric::Errors } else { Metric::Requests };
            let term = Term {
                text: text.to_owned(),
                ..build_term(metric, ComparisonOperator::AtLeast, Threshold::Share(0.0))
            };
            Some(Condition { terms: vec![term] })
        };
        let result = |conditions: &[&str], bytes: u64| {
            let mut document =
                with_received_bytes(Document::judged(&plan, &fill_from_latencies(flawless(1_000, 1))), bytes);
            let gates = judge_gates(&conditions.iter().filter_map(|it| read(it)).collect::<Vec<_>>(), &document, None);
            document.keep_judgement(None, gates, Vec::new());
            document
        };
        let sum_of = |parts: &[Document], read: &dyn Fn(&str) -> Option<Condition>| {
            let results = parts.iter().map(|document| ("x".to_owned(), RunResult::clone(&document.result)));
            crate::judge::judge_result(RunResult::sum(results).unwrap(), read)
        };
        let sum = |parts: &[Document]| sum_of(parts, &read);
        let conditions = |document: &Document| document.gates.iter().map(Gate::condition).collect::<Vec<_>>().join(" ");
        let has = |document: &Document, note: &str| document.notes.iter().filter(|it| it.text == note).count();
        let (lacks, lost) = (
            "gate 'errors' was not judged for the sum: not all results have it",
            "gate 'errors' was not judged for the sum: its value is unknown for the combined results",
        );
        let both = sum(&[result(&["errors", "requests"], 1), result(&["requests", "errors"], 2)]);
        assert_eq!((conditions(&both).as_str(), has(&both, lacks) + has(&both, lost)), ("errors requests", 0));
        let some = sum(&[result(&["requests"], 1), result(&["requests", "errors"], 2)]);
        assert_eq!((conditions(&some).as_str(), has(&some, lacks)), ("requests", 1), "{:?}", some.notes);
        // A sum of sums reports a missing gate once.
        let more = sum(&[some, result(&["requests", "errors"], 3)]);
        assert_eq!((conditions(&more).as_str(), has(&more, lacks)), ("requests", 1), "{:?}", more.notes);
        let parts = [1, 2].map(|bytes| result(&["errors", "requests"], bytes));
        let unread = sum_of(&parts, &|text| read(text).filter(|_| text != "errors"));
        assert_eq!((conditions(&unread).as_str(), has(&unread, lost)), ("requests", 1), "{:?}", unread.notes);
    }

    #[test]
    fn verdict_gates_take_names_only() {
        let (plan, outcome) = (plan(Dialect::Native, URL, 1, 1, 1), flawless(1_000, 1));
        let mut document = Document::judged(&plan, &outcome);
        let mut judged = |was, comparison, limited_by| {
            document.verdict.as_mut().unwrap().limited_by = was;
            let term = build_term(Metric::Verdict, comparison, Threshold::LimitedBy(limited_by));
            let judged = judge_term(&term, &document, document.verdict.as_ref());
            (judged.was.unwrap(), judged.holds)
        };
        for (was, comparison, limited_by, holds) in [
            (LimitedBy::Connections, ComparisonOperator::Equal, LimitedBy::Connections, true),
            (LimitedBy::Connections, ComparisonOperator::Unequal, LimitedBy::Connections, false),
            (LimitedBy::Connections, ComparisonOperator::Equal, LimitedBy::Target, false),
            (LimitedBy::Connections, ComparisonOperator::Unequal, LimitedBy::Target, true),
            (LimitedBy::Unclear, ComparisonOperator::Equal, LimitedBy::Target, false),
            (LimitedBy::Unclear, ComparisonOperator::Unequal, LimitedBy::Target, false),
            (LimitedBy::Unclear, ComparisonOperator::Equal, LimitedBy::Unclear, true),
            (LimitedBy::Target, ComparisonOperator::Unequal, LimitedBy::Unclear, true),
        ] {
            assert_eq!(judged(was, comparison, limited_by), (was.name().to_owned(), holds), "{limited_by:?}");
        }
    }

    #[test]
    fn annotations_are_one_workflow_line() {
        assert_eq!(annotation("onrush: 5 %\nof it"), "::error title=onrush::5 %25%0Aof it");
    }
}
