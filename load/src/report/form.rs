//! Prints a document in one of several forms: the text of the report, another tool's, or the document itself.
//!
//! One function produces the output at the end of a run, the output of `onrush show`, and the text of a sum. A
//! form is only a layout; the figures come from the document.

use std::fmt::Write;

use onrush_plan::{Breakout, Dialect};
use onrush_stats::{Corrupt, Distribution as Values};
use onrush_text::escape_controls;
use onrush_text::units::format_thousands;

use super::percentiles::Percentiles;
use super::spectrum::Spectrum;
use super::table::TableLayout;
use super::text::{ReportText, ReportTotals, StreamLimits};
use super::{account, markdown, opening, parts, table};
use crate::figures::estimate::{DueRequests, KnownPercentile, PercentileEstimates};
use crate::figures::latency::ShownLatency;
use crate::figures::{IncompleteRequests, NS_PER_US, SummaryStatistics, rate};
use crate::record::{Distribution, Document, Phases, Requests, VERDICT_MIN};

/// Form of a result printed on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportForm {
    /// The text of the report, with the notes.
    #[default]
    Report,
    /// The complete text as printed by wrk.
    Wrk,
    /// The complete text as printed by wrk-cmm.
    WrkCmm,
    /// The complete text as printed by wrk2.
    Wrk2,
    /// The document itself, as JSON.
    Json,
    /// The JSON block printed by wrk-cmm's script.
    CmmJson,
    /// Markdown, to paste into a ticket.
    Markdown,
}

impl ReportForm {
    /// The forms that `--format` can name, with their names.
    pub const NAMED: [(Self, &'static str); 6] = [
        (Self::Wrk, "wrk"),
        (Self::WrkCmm, "wrk-cmm"),
        (Self::Wrk2, "wrk2"),
        (Self::Json, "json"),
        (Self::CmmJson, "cmm-json"),
        (Self::Markdown, "md"),
    ];
}

/// Output for one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintedReport {
    /// Text for standard output.
    pub text: String,
    /// Lines for standard error; only in the form of the report.
    pub notes: Vec<String>,
}

/// Renders a document in a form. `percentiles`: shows those of the latency even if the run did not ask for them.
///
/// # Errors
///
/// Fails if the document contains an unreadable histogram.
pub fn print(document: &Document, form: ReportForm, percentiles: bool) -> Result<PrintedReport, Corrupt> {
    let text = match form {
        ReportForm::Json => document.to_json(),
        ReportForm::Markdown => markdown::render(document)?,
        ReportForm::CmmJson => wrk_cmm_json(document)?,
        ReportForm::Report | ReportForm::Wrk | ReportForm::WrkCmm | ReportForm::Wrk2 => {
            opening::for_document(document, form == ReportForm::Report) + &text(document, form, percentiles)?.render()
        }
    };
    let notes = if form == ReportForm::Report { note_lines(document) } else { Vec::new() };
    Ok(PrintedReport { text, notes })
}

/// The text of the report without its first lines, which a run prints before it starts.
///
/// # Errors
///
/// Fails if the document contains an unreadable histogram.
pub fn closing(document: &Document) -> Result<String, Corrupt> {
    Ok(text(document, ReportForm::Report, false)?.render())
}

/// The lines that follow the report: notes and verdict.
fn note_lines(document: &Document) -> Vec<String> {
    let mut lines: Vec<String> =
        document.notes.iter().map(|note| format!("note: {}", escape_controls(&note.text))).collect();
    let verdict = document.verdict.as_ref().filter(|_| document.duration_s >= VERDICT_MIN.as_secs_f64());
    lines.extend(verdict.map(|verdict| format!("verdict: {}", escape_controls(&verdict.to_string()))));
    lines
}

/// The content of everything below the first lines.
pub(super) fn text(document: &Document, form: ReportForm, percentiles: bool) -> Result<ReportText, Corrupt> {
    let known = &document.shown;
    let (layout, breakout) = match form {
        ReportForm::WrkCmm => (TableLayout::Cmm, Breakout::WrkCmm),
        ReportForm::Wrk | ReportForm::Wrk2 => (TableLayout::Wrk, Breakout::None),
        _ => (if known.cmm_layout { TableLayout::Cmm } else { TableLayout::Wrk }, known.phases()),
    };
    let imitates = !document.imitates(Dialect::Native);
    let is_native = form == ReportForm::Report && !imitates;
    let latency = document.text_latency()?;
    let wanted = Percentiles {
        layout,
        is_native,
        are_asked_for: percentiles || form != ReportForm::Report || known.percentiles,
        has_spectrum: form == ReportForm::Wrk2 || form == ReportForm::Report && known.spectrum,
        has_service: matches!(form, ReportForm::Wrk2 | ReportForm::Report) && known.service_latency,
        asked: document.plan.percentiles.as_deref(),
    };
    let mut percentiles = render_percentiles(document, &wanted, &latency, form)?;
    if is_native {
        let parts =
            [parts::classes(document)?, parts::names(document)?, parts::stages(document)?, parts::machines(document)];
        parts.iter().flatten().for_each(|parts| percentiles += &parts.text());
    }
    let mut latency_us = latency.summary_us();
    if is_native && latency_us.within.is_some() {
        latency_us.max = document.max_us().unwrap_or(latency_us.max);
    }
    let elapsed_us = document.elapsed().as_micros() as f64;
    // The imitated tools use whole microseconds.
    let seconds = if imitates { elapsed_us / 1e6 } else { document.duration_s };
    Ok(ReportText {
        layout,
        has_zeros: !is_native,
        latency_us,
        phases_us: phase_rows(document, breakout)?,
        rates: document.thread_rates.figures(document.imitates(Dialect::Wrk2)),
        percentiles,
        totals: ReportTotals {
            counted: document.counted(),
            carried: if is_native { document.requests.completed - document.counted() } else { 0 },
            account: if is_native { account_lines(&document.requests) } else { String::new() },
            elapsed_us,
            bytes: document.bytes_received,
            errors: document.errors,
            expected: document.plan.expected_status().cloned(),
            interim: if breakout == Breakout::All { document.requests.interim } else { 0 },
            streams: stream_limits(document).filter(|_| is_native),
            statuses: if is_native { document.status.clone().into_iter().collect() } else { Vec::new() },
            rate_per_s: rate::count_per_second(document.counted(), seconds),
            bytes_per_s: rate::count_per_second(document.bytes_received, seconds),
        },
    })
}

/// How requests ended and which of them are errors, one line each, or nothing.
fn account_lines(requests: &Requests) -> String {
    let ends = account::request_ends(requests).map(|ends| {
        let (whole, all) = (account::covered_requests(requests), format_thousands(requests.all()));
        format!("  Requests {whole}: {all} ({ends})\n")
    });
    let errors = account::error_summary(requests).map(|errors| format!("  Errors: {errors}\n"));
    ends.into_iter().chain(errors).collect()
}

/// The server's limit on streams, if any.
fn stream_limits(document: &Document) -> Option<StreamLimits> {
    let http2 = document.http2.as_ref()?;
    Some(StreamLimits {
        asked: document.plan.http2?.streams?,
        allowed: http2.streams_allowed?,
        is_constant: !http2.streams_allowed_varied,
    })
}

/// The requested percentiles of the displayed latency, and of the service latency.
fn render_percentiles(
    document: &Document,
    wanted: &Percentiles<'_>,
    latency: &ShownLatency<'_>,
    form: ReportForm,
) -> Result<String, Corrupt> {
    let is_open = form == ReportForm::Wrk2 || form == ReportForm::Report && document.open_loop.is_some();
    if !wanted.is_native && !wanted.are_asked_for {
        return Ok(String::new());
    }
    if !is_open && !wanted.is_native {
        let us = percentile_us(document, latency)?;
        return Ok(wanted.layout.percentiles(wanted.asked, |label, percent| table::percentile(label, us(percent))));
    }
    let wrk2 = document.latency.wrk2.as_ref();
    let recorded = match wrk2 {
        Some(wrk2) => Spectrum::from_wrk2_bins(&wrk2.scheduled_us.values()?),
        None => latency_spectrum(document, form, &document.shown_latency().values()?, true)?,
    };
    let service = match wrk2.and_then(|wrk2| wrk2.service_us.as_ref()) {
        _ if !wanted.has_service => None,
        Some(bins) => Some(Spectrum::from_wrk2_bins(&bins.values()?)),
        None => Some(latency_spectrum(document, form, &document.latency.service.values()?, false)?),
    };
    Ok(wanted.render(is_open, &recorded, service.as_ref()))
}

/// A percentile of the displayed latency, in microseconds, including the ages of unanswered requests. The imitated
/// tools use whole microseconds.
fn percentile_us<'a>(
    document: &Document,
    latency: &'a ShownLatency<'_>,
) -> Result<Box<dyn Fn(f64) -> f64 + 'a>, Corrupt> {
    if !matches!(latency, ShownLatency::Measured(_)) {
        return Ok(Box::new(|percent| latency.percentile_us(percent)));
    }
    let (estimate, is_exact) = (document.estimate()?, document.imitates(Dialect::Native));
    Ok(Box::new(move |percent| {
        let us = estimate.percentile(percent).map_or(0, KnownPercentile::ns) as f64 / NS_PER_US;
        if is_exact { us } else { us.round() }
    }))
}

/// Spectrum of a latency: computed like wrk2's for the form of wrk2 and for recorded wrk2 runs, otherwise as measured.
/// `is_shown`: true for the displayed latency, false for the service latency.
fn latency_spectrum(
    document: &Document,
    form: ReportForm,
    values: &Values<u64>,
    is_shown: bool,
) -> Result<Spectrum, Corrupt> {
    if form == ReportForm::Wrk2 || document.imitates(Dialect::Wrk2) && document.requests.completed > 0 {
        return Ok(Spectrum::from_wrk2_bins(&microseconds(values)));
    }
    if !is_shown {
        let due = DueRequests { completed: values.clone(), is_steady: true, ..DueRequests::default() };
        return Ok(Spectrum::from_measured(values, PercentileEstimates::new(due), IncompleteRequests::default()));
    }
    Ok(Spectrum::from_measured(values, document.estimate()?, document.incomplete()))
}

/// Nanoseconds as whole microseconds.
fn microseconds(values: &Values<u64>) -> Values<u64> {
    let mut whole = Values::new();
    values.values().for_each(|(ns, count)| whole.record_many((ns + 500) / 1_000, count));
    whole
}

/// Rows of the displayed phases.
fn phase_rows(document: &Document, breakout: Breakout) -> Result<Vec<(&'static str, SummaryStatistics)>, Corrupt> {
    let phases = document.phases.as_ref();
    let of = |phase: fn(&Phases) -> Option<&Distribution>| phases.and_then(phase);
    let connect = ("Connect", of(|phases| Some(&phases.connect)));
    let tls = ("TLS", of(|phases| phases.tls.as_ref()));
    let ttfb = ("TTFB", of(|phases| Some(&phases.ttfb)));
    let ttlb = ("TTLB", of(|phases| Some(&phases.ttlb)));
    let rows = match breakout {
        Breakout::None => Vec::new(),
        Breakout::WrkCmm => vec![connect, ttfb, ttlb],
        Breakout::All => vec![connect, tls, ttfb, ttlb],
    };
    let figures = |phase: &Distribution| Ok(SummaryStatistics::from_distribution(&phase.values()?, NS_PER_US));
    rows.into_iter()
        .map(|(name, phase)| Ok((name, phase.map_or_else(|| Ok(SummaryStatistics::default()), figures)?)))
        .collect()
}

/// The block written by wrk-cmm's script `json.lua`, for scripts that read this format.
fn wrk_cmm_json(document: &Document) -> Result<String, Corrupt> {
    const PERCENTS: [(&str, f64); 5] = [("50", 50.0), ("75", 75.0), ("90", 90.0), ("99", 99.0), ("99.999", 99.999)];
    let latency = document.text_latency()?;
    let percentile_us = percentile_us(document, &latency)?;
    let mut text = String::from("{\n");
    let _ = writeln!(text, "\t\"requests\": {},", document.requests.completed);
    let _ = writeln!(text, "\t\"duration_in_microseconds\": {:.2},", document.duration_s * 1e6);
    let _ = writeln!(text, "\t\"bytes\": {},", document.bytes_received);
    let _ = writeln!(text, "\t\"requests_per_sec\": {:.2},", document.rate_per_s);
    let bytes_per_s = rate::count_per_second(document.bytes_received, document.duration_s);
    let _ = writeln!(text, "\t\"bytes_transfer_per_sec\": {bytes_per_s:.2},");
    let entries = PERCENTS.map(|(name, percent)| {
        let us = percentile_us(percent);
        format!("\t\t{{\n\t\t\t\"percentile\": {name},\n\t\t\t\"latency_in_microseconds\": {us:.0}\n\t\t}}")
    });
    let _ = write!(text, "\t\"latency_distribution\": [\n{}\n\t]\n}}\n", entries.join(",\n"));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::{OutputOptions as Options, Plan, Random};
    use onrush_stats::{Cause, Phase};
    use onrush_text::units::format_us;

    use super::super::opening as printed_before;
    use super::*;
    use crate::fixtures::{self, report_closing as printed_after};
    use crate::judge;
    use crate::record::{Note, NoteId};
    use crate::run::Outcome;

    /// A run with errors, phases and rates, whose report shows everything.
    fn run(dialect: Dialect, is_open: bool) -> (Plan, Outcome) {
        let mut plan = fixtures::plan(dialect, "http://127.0.0.1:8080/", 10, 2, 10);
        plan.schedule = is_open.then(|| fixtures::schedule(100));
        let breakout = if dialect == Dialect::Wrk { Breakout::None } else { Breakout::All };
        plan.output = Options {
            percentiles: true,
            u_latency: is_open,
            breakout,
            cmm_layout: dialect == Dialect::WrkCmm,
            ..plan.output
        };
        let mut outcome = fixtures::flawless(1_000, 10);
        let totals = &mut outcome.totals;
        totals.counters.bytes_received = 123_456;
        totals.counters.interim = 3;
        (1..=9).for_each(|rate| totals.rates.record(rate * 10));
        (1..=100).for_each(|us| totals.phases.get_or_insert_default().ttfb.record(us * 1_000));
        totals.ledger.record(Phase::Timeout, Cause::Late, 0, Vec::new);
        totals.ledger.record(Phase::Status, Cause::Status(404), 0, Vec::new);
        totals.statuses.record(404);
        if is_open {
            let open_loop = totals.open_loop.get_or_insert_default();
            (1..=1_000).for_each(|us| open_loop.record_response(us * 2_000, 1_000_000, dialect == Dialect::Wrk2));
            open_loop.censored.record(5_000_000_000);
        }
        outcome.elapsed = Duration::from_secs(10);
        (plan, outcome)
    }

    fn report(document: &Document) -> String {
        print(document, ReportForm::Report, false).unwrap().text
    }

    #[test]
    fn saved_results_reproduce_the_printed_report() {
        for (dialect, is_open) in [
            (Dialect::Native, false),
            (Dialect::Native, true),
            (Dialect::Wrk, false),
            (Dialect::Wrk, true),
            (Dialect::WrkCmm, false),
            (Dialect::Wrk2, true),
        ] {
            let (mut plan, outcome) = run(dialect, is_open);
            // With -U, with neither, with --percentiles full, and with a list.
            let listed = Some(vec!["99".parse().unwrap()]);
            for (asked_for, u_latency, spectrum, percents) in [
                (true, is_open, false, None),
                (false, false, false, None),
                (true, false, false, None),
                (true, false, true, None),
                (true, is_open, false, listed),
            ] {
                plan.output = Options { percentiles: asked_for, u_latency, spectrum, percents, ..plan.output };
                let read = fixtures::read_back(&Document::judged(&plan, &outcome));
                let printed = printed_before(&plan, None) + &printed_after(&plan, &outcome);
                assert_eq!(report(&read), printed, "{dialect:?} {:?}", plan.output);
            }
            let document = Document::judged(&plan, &outcome);
            let judgement = judge::judge_document(&Document::of(&plan, &outcome), &plan.output);
            let notes = judgement.notes.into_iter().map(|note| format!("note: {}", note.text));
            let verdict = judgement.verdict.map(|verdict| format!("verdict: {verdict}"));
            let said: Vec<String> = notes.chain(verdict).collect();
            assert_eq!(print(&document, ReportForm::Report, false).unwrap().notes, said, "{dialect:?}");
        }
    }

    #[test]
    fn documents_reproduce_reports_to_the_byte() {
        let mut random = Random::new(7);
        for round in 0..60 {
            let dialect = [Dialect::Native, Dialect::Wrk, Dialect::WrkCmm, Dialect::Wrk2][round % 4];
            let (plan, mut outcome) = run(dialect, dialect == Dialect::Wrk2);
            let unit = if dialect == Dialect::Native { 1 } else { 1_000 };
            let up_to = 1 << (4 + random.below(24));
            for _ in 0..random.below(500) {
                let ns = random.below(up_to) * unit;
                outcome.totals.latency.record_many(ns, 1 + random.below(3));
                outcome.totals.rates.record(random.below(up_to));
                if let Some(open_loop) = &mut outcome.totals.open_loop {
                    open_loop.record_response(ns * 3, ns, true);
                }
            }
            let document = Document::judged(&plan, &outcome);
            let read = fixtures::read_back(&document);
            let (was, is) = (ShownLatency::from_outcome(&plan, &outcome), read.text_latency().unwrap());
            let row = |latency: &ShownLatency<'_>| TableLayout::Cmm.row("Latency", &latency.summary_us(), format_us);
            assert_eq!(row(&is), row(&was), "{round} {dialect:?}");
            for percent in [0.0, 50.0, 75.0, 90.0, 99.0, 99.99, 100.0] {
                let cells = [&was, &is].map(|latency| format_us(latency.percentile_us(percent)));
                assert_eq!(cells[1], cells[0], "{round} {dialect:?} {percent} %");
            }
        }
    }

    #[test]
    fn rewritten_latencies_are_verified() {
        let (plan, outcome) = run(Dialect::Wrk, false);
        let mut document = Document::judged(&plan, &outcome);
        assert!(text(&document, ReportForm::Report, false).is_ok());
        document.latency.wrk_spacing_us = Some(1);
        assert_eq!(text(&document, ReportForm::Report, false).err(), Some(Corrupt::Count));
    }

    #[test]
    fn every_form_has_the_figures_of_the_result() {
        let (plan, outcome) = run(Dialect::Native, false);
        let document = Document::judged(&plan, &outcome);
        let text = |form| print(&document, form, false).unwrap().text;
        assert!(text(ReportForm::Wrk).contains("\n     90%    1.00ms\n") && !text(ReportForm::Wrk).contains("TTFB"));
        assert!(
            text(ReportForm::WrkCmm).contains("\n  99.99%    1.00ms\n")
                && text(ReportForm::WrkCmm).contains("\n    TTFB ")
        );
        assert!(
            text(ReportForm::Wrk2).contains("\n 99.999%    1.00ms\n")
                && text(ReportForm::Wrk2).contains("Percentile spectrum")
        );
        assert_eq!(text(ReportForm::Json), document.to_json());
        assert!(text(ReportForm::Markdown).contains("\n| latency | p50 1.00ms, p99 1.00ms, max 1.00ms |\n"));
        assert!(print(&document, ReportForm::Wrk, false).unwrap().notes.is_empty());
    }

    #[test]
    fn wrk_cmm_output_matches_to_the_byte() {
        let mut outcome = fixtures::flawless(0, 1);
        outcome.totals.counters.completed = 97_397;
        outcome.totals.counters.bytes_received = 22_790_898;
        outcome.elapsed = Duration::from_micros(3_006_606);
        // Ranks of the percentiles among 100,000 values.
        let latency = &mut outcome.totals.latency;
        for (us, count) in [(2_960, 50_001), (3_716, 25_000), (4_311, 15_000), (8_215, 9_000), (16_261, 999)] {
            latency.record_many(us * 1_000, count);
        }
        let plan = fixtures::plan(Dialect::Native, "http://localhost/index.php", 3, 2, 100);
        let document = Document::judged(&plan, &outcome);
        let published = include_str!("../../../tests/fixtures/buffers.md");
        let begin = published.find("{\n        \"requests\"").unwrap();
        let block = published[begin..].split("\n```").next().unwrap().replace("        ", "\t");
        assert_eq!(print(&document, ReportForm::CmmJson, false).unwrap().text, block + "\n");
    }

    #[test]
    fn file_contents_cannot_control_terminals() {
        let (plan, outcome) = run(Dialect::Native, false);
        let mut document = Document::judged(&plan, &outcome);
        document.plan.url = "http://\x1b[2J/".to_owned();
        document.plan.duration_s = Some(f64::MAX);
        document.notes = vec![Note::hint(NoteId::Sum, "\x1b]0;x\x07")];
        let PrintedReport { text, notes } = print(&document, ReportForm::Report, false).unwrap();
        assert!(!text.contains('\x1b') && !notes[0].contains('\x1b'), "{text}{notes:?}");
    }
}
