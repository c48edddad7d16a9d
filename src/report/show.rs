//! `onrush show`: prints a saved result as the text that was printed when its run ended, or in another tool's format.
//!
//! A form is only a layout; the figures are those of the document.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::{Breakout, Dialect, Kind, Stop};
use onrush_stats::{Corrupt, Distribution as Values};
use onrush_text::printable;

use super::percentiles::Percentiles;
use super::result::{self, Distribution, Document, Phases};
use super::spectrum::{Incomplete, Spectrum};
use super::table::{Figures, Layout};
use super::text::{Text, Totals};
use super::{NS_PER_US, VERDICT_MIN, export, parts, rate};

/// What to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Show {
    /// The files, at least one.
    pub inputs: Vec<PathBuf>,
    /// The form.
    pub form: Form,
    /// Whether percentiles are shown even if the report had none.
    pub percentiles: bool,
}

/// The form of a result on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The text of the report, with the notes.
    #[default]
    Report,
    /// wrk's complete text.
    Wrk,
    /// wrk-cmm's.
    WrkCmm,
    /// wrk2's.
    Wrk2,
    /// The document.
    Json,
    /// The block of JSON that the script of wrk-cmm writes.
    CmmJson,
    /// What one pastes into a ticket, in Markdown.
    Markdown,
}

impl Form {
    /// All forms with a name for `--format`.
    pub const NAMED: [(Self, &'static str); 6] = [
        (Self::Wrk, "wrk"),
        (Self::WrkCmm, "wrk-cmm"),
        (Self::Wrk2, "wrk2"),
        (Self::Json, "json"),
        (Self::CmmJson, "cmm-json"),
        (Self::Markdown, "md"),
    ];
}

/// What is printed of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// What goes to standard output.
    pub text: String,
    /// Lines about it, for standard error.
    pub notes: Vec<String>,
}

/// Reads and prints each file.
pub fn run(show: &Show) -> impl Iterator<Item = anyhow::Result<Printed>> {
    show.inputs.iter().map(|path| {
        let document = Document::read(path)?;
        let printed = print(&document, show.form, show.percentiles);
        printed.map_err(|corrupt| result::damaged(path, corrupt))
    })
}

/// Prints a document in a form.
///
/// # Errors
///
/// When it holds a histogram that cannot be read.
pub fn print(document: &Document, form: Form, percentiles: bool) -> Result<Printed, Corrupt> {
    let text = match form {
        Form::Json => document.to_json(),
        Form::Markdown => export::render(Kind::Markdown, document)?,
        Form::CmmJson => cmm_json(document)?,
        Form::Report | Form::Wrk | Form::WrkCmm | Form::Wrk2 => {
            opening(document, form) + &closing(document, form, percentiles)?.render()
        }
    };
    let notes = if form == Form::Report { notes(document) } else { Vec::new() };
    Ok(Printed { text, notes })
}

/// The lines after the report.
fn notes(document: &Document) -> Vec<String> {
    let mut lines: Vec<String> = document.notes.iter().map(|note| format!("note: {}", printable(note))).collect();
    let verdict = document.verdict.as_ref().filter(|_| document.duration_s >= VERDICT_MIN.as_secs_f64());
    lines.extend(verdict.map(|verdict| format!("verdict: {}", printable(&verdict.to_string()))));
    lines
}

/// The lines before the run.
fn opening(document: &Document, form: Form) -> String {
    let plan = &document.plan;
    // A century exceeds any run and does not overflow durations.
    let duration = plan.duration_s.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 3e9)));
    let stop = Stop { duration, requests: plan.requests };
    let is_native = form == Form::Report && plan.dialect == Dialect::Native.name();
    let due = super::due(plan.schedule.as_ref().filter(|_| is_native));
    super::first_lines(stop, &printable(&plan.url), plan.threads, plan.connections) + &due
}

/// Everything after the run.
fn closing(document: &Document, form: Form, percentiles: bool) -> Result<Text, Corrupt> {
    let known = document.shown.clone().unwrap_or_default();
    let own = document.plan.dialect.as_str();
    let (layout, breakout) = match form {
        Form::WrkCmm => (Layout::Cmm, Breakout::WrkCmm),
        Form::Wrk | Form::Wrk2 => (Layout::Wrk, Breakout::None),
        _ => (if known.cmm_layout { Layout::Cmm } else { Layout::Wrk }, known.phases()),
    };
    let is_native = form == Form::Report && own == Dialect::Native.name();
    let latency = document.shown_latency().values()?;
    let wanted = Percentiles {
        layout,
        is_native,
        are_asked_for: percentiles || form != Form::Report || known.percentiles,
        has_spectrum: form == Form::Wrk2 || form == Form::Report && known.spectrum,
        has_service: matches!(form, Form::Wrk2 | Form::Report) && known.service_latency,
        asked: document.plan.percentiles.as_deref(),
    };
    let mut percentiles = self::percentiles(document, &wanted, &latency, form)?;
    if is_native {
        let parts = [parts::classes(document)?, parts::stages(document)?];
        parts.iter().flatten().for_each(|parts| percentiles += &parts.text());
    }
    Ok(Text {
        layout,
        has_zeros: !is_native,
        latency_us: Figures::measured(&latency, NS_PER_US),
        phases_us: phases(document, breakout)?,
        rates: document.thread_rates.map(result::ThreadRates::figures),
        percentiles,
        totals: Totals {
            completed: document.requests.completed,
            elapsed_us: (document.duration_s * 1e6).floor(),
            bytes: document.bytes_received,
            errors: document.errors,
            interim: if breakout == Breakout::All { document.requests.interim } else { 0 },
            statuses: if is_native { document.status.clone().into_iter().collect() } else { Vec::new() },
            rate_per_s: document.rate_per_s,
            bytes_per_s: rate::rate(document.bytes_received, document.duration_s),
        },
    })
}

/// The ages of requests without a complete response, where the percentiles contain them.
fn censored(document: &Document) -> Result<Values<u64>, Corrupt> {
    let censored = document.bounded().and_then(|open_loop| open_loop.censored.as_ref());
    censored.map_or_else(|| Ok(Values::new()), Distribution::values)
}

/// A percentile; the imitated tools use whole microseconds.
fn percentile_us(document: &Document, all: &Values<u64>, percent: f64) -> f64 {
    let us = all.percentile(percent) as f64 / NS_PER_US;
    if document.plan.dialect == Dialect::Native.name() { us } else { us.round() }
}

/// The percentiles that are wanted of the latency shown, and of the service latency.
fn percentiles(
    document: &Document,
    wanted: &Percentiles<'_>,
    latency: &Values<u64>,
    form: Form,
) -> Result<String, Corrupt> {
    let is_open = form == Form::Wrk2 || form == Form::Report && document.open_loop.is_some();
    if !is_open && !wanted.is_native {
        let all = document.least()?;
        let percentile_us = |percent| percentile_us(document, &all, percent);
        return Ok(if wanted.are_asked_for {
            wanted.layout.percentiles(wanted.asked, percentile_us)
        } else {
            String::new()
        });
    }
    let is_wrk2 = form == Form::Wrk2 || document.plan.dialect == Dialect::Wrk2.name();
    let spectrum = |values: &Values<u64>, censored: &Values<u64>, Incomplete { in_flight, failed, .. }: Incomplete| {
        match is_wrk2 {
            true => Spectrum::of_wrk2(&microseconds(values)),
            false => Spectrum::measured(values, censored, in_flight, failed),
        }
    };
    let recorded = spectrum(latency, &censored(document)?, document.incomplete());
    let service = document.latency.service.values()?;
    Ok(wanted.render(is_open, &recorded, || spectrum(&service, &Values::new(), Incomplete::default())))
}

/// Nanoseconds in whole microseconds.
fn microseconds(values: &Values<u64>) -> Values<u64> {
    let mut whole = Values::new();
    values.values().for_each(|(ns, count)| whole.record_many((ns + 500) / 1_000, count));
    whole
}

/// The rows of the phases, if any are shown.
fn phases(document: &Document, breakout: Breakout) -> Result<Vec<(&'static str, Figures)>, Corrupt> {
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
    let figures = |phase: &Distribution| Ok(Figures::measured(&phase.values()?, NS_PER_US));
    rows.into_iter().map(|(name, phase)| Ok((name, phase.map_or_else(|| Ok(Figures::default()), figures)?))).collect()
}

/// The block that wrk-cmm's script `json.lua` writes, for scripts that read it.
fn cmm_json(document: &Document) -> Result<String, Corrupt> {
    const PERCENTS: [(&str, f64); 5] = [("50", 50.0), ("75", 75.0), ("90", 90.0), ("99", 99.0), ("99.999", 99.999)];
    let all = document.least()?;
    let mut text = String::from("{\n");
    let _ = writeln!(text, "\t\"requests\": {},", document.requests.completed);
    let _ = writeln!(text, "\t\"duration_in_microseconds\": {:.2},", document.duration_s * 1e6);
    let _ = writeln!(text, "\t\"bytes\": {},", document.bytes_received);
    let _ = writeln!(text, "\t\"requests_per_sec\": {:.2},", document.rate_per_s);
    let bytes_per_s = rate::rate(document.bytes_received, document.duration_s);
    let _ = writeln!(text, "\t\"bytes_transfer_per_sec\": {bytes_per_s:.2},");
    let entries = PERCENTS.map(|(name, percent)| {
        let us = percentile_us(document, &all, percent);
        format!("\t\t{{\n\t\t\t\"percentile\": {name},\n\t\t\t\"latency_in_microseconds\": {us:.0}\n\t\t}}")
    });
    let _ = write!(text, "\t\"latency_distribution\": [\n{}\n\t]\n}}\n", entries.join(",\n"));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::{Plan, Show as Options};
    use onrush_stats::{Cause, Phase};

    use super::super::{Judgement, closing as printed_after, fixtures, opening as printed_before};
    use super::*;
    use crate::run::Outcome;

    /// A run with errors, phases and rates, whose report shows everything.
    fn run(dialect: Dialect, is_open: bool) -> (Plan, Outcome) {
        let mut plan = fixtures::plan(dialect, "http://127.0.0.1:8080/", 10, 2, 10);
        plan.schedule = is_open.then(|| fixtures::schedule(100));
        let breakout = if dialect == Dialect::Wrk { Breakout::None } else { Breakout::All };
        plan.show = Options {
            percentiles: true,
            u_latency: is_open,
            breakout,
            cmm_layout: dialect == Dialect::WrkCmm,
            ..plan.show
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
            (1..=1_000).for_each(|us| open_loop.complete(us * 2_000, 1_000_000, false));
            open_loop.censored.record(5_000_000_000);
        }
        outcome.elapsed = Duration::from_secs(10);
        (plan, outcome)
    }

    fn report(document: &Document) -> String {
        print(document, Form::Report, false).unwrap().text
    }

    #[test]
    fn a_saved_result_is_the_report_that_was_printed() {
        for (dialect, is_open) in
            [(Dialect::Native, false), (Dialect::Native, true), (Dialect::Wrk, false), (Dialect::WrkCmm, false)]
        {
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
                plan.show = Options { percentiles: asked_for, u_latency, spectrum, percents, ..plan.show };
                let document = Document::judged(&plan, &outcome);
                let printed = printed_before(&plan) + &printed_after(&plan, &outcome);
                assert_eq!(report(&document), printed, "{dialect:?} {:?}", plan.show);
            }
            let document = Document::judged(&plan, &outcome);
            let Judgement { verdict, notes, .. } = Judgement::of(&plan, &outcome);
            let notes = notes.into_iter().map(|note| format!("note: {}", note.in_full()));
            let verdict = verdict.map(|verdict| format!("verdict: {verdict}"));
            let said: Vec<String> = notes.chain(verdict).collect();
            assert_eq!(print(&document, Form::Report, false).unwrap().notes, said, "{dialect:?}");
        }
    }

    #[test]
    fn of_an_older_file_the_rows_that_it_lacks_are_left_out() {
        let (plan, outcome) = run(Dialect::Native, false);
        let whole = Document::judged(&plan, &outcome);
        let older = Document { thread_rates: None, shown: None, ..whole.clone() };
        let lines: Vec<String> =
            report(&older).lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
        let percentiles = ["Latency", "50%", "75%", "90%", "99%", "max"];
        assert_eq!(lines[..4], ["Running", "2", "Thread", "Latency"]);
        assert_eq!(lines[4..10], percentiles);
        assert_eq!(lines[10..], ["1000", "Socket", "Non-2xx", "Status", "Requests/sec:", "Transfer/sec:"]);
        assert!(print(&older, Form::Report, true).unwrap().text.contains("\n     95%    1.00ms\n"));
    }

    #[test]
    fn every_form_has_the_figures_of_the_result() {
        let (plan, outcome) = run(Dialect::Native, false);
        let document = Document::judged(&plan, &outcome);
        let text = |form| print(&document, form, false).unwrap().text;
        assert!(text(Form::Wrk).contains("\n     90%    1.00ms\n") && !text(Form::Wrk).contains("TTFB"));
        assert!(text(Form::WrkCmm).contains("\n  99.99%    1.00ms\n") && text(Form::WrkCmm).contains("\n    TTFB "));
        assert!(
            text(Form::Wrk2).contains("\n 99.999%    1.00ms\n") && text(Form::Wrk2).contains("Percentile spectrum")
        );
        assert_eq!(text(Form::Json), document.to_json());
        assert!(text(Form::Markdown).contains("\n| latency | p50 1.00ms, p99 1.00ms, max 1.00ms |\n"));
        assert!(print(&document, Form::Wrk, false).unwrap().notes.is_empty());
    }

    #[test]
    fn the_block_of_wrk_cmm_is_written_to_the_byte() {
        let mut outcome = fixtures::flawless(0, 1);
        outcome.totals.counters.completed = 97_397;
        outcome.totals.counters.bytes_received = 22_790_898;
        outcome.elapsed = Duration::from_micros(3_006_606);
        // Of 100,000 values, these are at the percentiles' ranks.
        let latency = &mut outcome.totals.latency;
        for (us, count) in [(2_960, 50_001), (3_716, 25_000), (4_311, 15_000), (8_215, 9_000), (16_261, 999)] {
            latency.record_many(us * 1_000, count);
        }
        let plan = fixtures::plan(Dialect::Native, "http://localhost/index.php", 3, 2, 100);
        let document = Document::judged(&plan, &outcome);
        let published = include_str!("../../tests/fixtures/buffers.md");
        let begin = published.find("{\n        \"requests\"").unwrap();
        let block = published[begin..].split("\n```").next().unwrap().replace("        ", "\t");
        assert_eq!(print(&document, Form::CmmJson, false).unwrap().text, block + "\n");
    }

    #[test]
    fn what_a_file_says_gives_a_terminal_no_orders() {
        let (plan, outcome) = run(Dialect::Native, false);
        let mut document = Document::judged(&plan, &outcome);
        document.plan.url = "http://\x1b[2J/".to_owned();
        document.plan.duration_s = Some(f64::MAX);
        document.notes = vec!["\x1b]0;x\x07".to_owned()];
        let Printed { text, notes } = print(&document, Form::Report, false).unwrap();
        assert!(!text.contains('\x1b') && !notes[0].contains('\x1b'), "{text}{notes:?}");
    }
}
