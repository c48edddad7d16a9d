//! A result in Markdown, to paste into a ticket: command, results, and doubts.

use std::time::Duration;

use onrush_plan::Percent;
use onrush_stats::{Corrupt, Errors, has_enough_beyond};
use onrush_text::units::{self, format_count, format_thousands};
use onrush_text::{escape_controls, escape_markdown};

use super::text::counts;
use super::{account, parts};
use crate::figures::NS_PER_US;
use crate::figures::estimate::KnownPercentile;
use crate::record::gate::Gate;
use crate::record::{Document, VERDICT_MIN, count_per_second};

/// Default percentiles, shown if enough values lie beyond them.
const UNASKED: [&str; 2] = ["50", "99"];

/// The command, tables of the figures, and the notes, in Markdown.
///
/// # Errors
///
/// Fails if the document contains an unreadable histogram.
pub fn render(document: &Document) -> Result<String, Corrupt> {
    let sum = document.sources.as_ref().and_then(|sources| Some((sources.count, sources.names()?)));
    let of = sum.map(|(count, names)| {
        let of = format!(
            "The sum of {}: {names}; the command and the URL are those of the first.",
            format_count(count, "result")
        );
        escape_markdown(&of) + "\n\n"
    });
    let mut text = of.unwrap_or_default() + &format!("{}\n\n| | |\n|---|---|\n", inline_code(&document.command));
    for (name, cell) in table_rows(document)? {
        text += &format!("| {name} | {} |\n", escape_markdown(&cell));
    }
    let all = [parts::classes(document)?, parts::names(document)?, parts::stages(document)?, parts::machines(document)];
    for parts in all.iter().flatten() {
        text += &format!("\n{}", parts.markdown());
    }
    if !document.notes.is_empty() {
        text += "\n";
    }
    document.notes.iter().for_each(|note| text += &format!("* {}\n", escape_markdown(&note.text)));
    Ok(text)
}

/// Formats a line as code, between more backticks than its longest run of them.
fn inline_code(line: &str) -> String {
    let line = escape_controls(line);
    let runs = line.split(|c| c != '`').map(str::len);
    let ticks = "`".repeat(runs.max().unwrap_or(0) + 1);
    let blank = if ticks.len() > 1 { " " } else { "" };
    format!("{ticks}{blank}{line}{blank}{ticks}")
}

/// The rows of the table that apply to this document.
fn table_rows(document: &Document) -> Result<Vec<(&'static str, String)>, Corrupt> {
    let Document { requests, duration_s, rate_per_s, bytes_received, status, gates, .. } = document;
    let elapsed = units::format_us((duration_s * 1e6).floor());
    let bytes_per_s = units::format_bytes(count_per_second(*bytes_received, *duration_s));
    let latency = if document.open_loop.is_some() { "latency since due" } else { "latency" };
    let statuses: Vec<(u16, u64)> = status.clone().into_iter().collect();
    let verdict = document.verdict.as_ref().filter(|_| Duration::from_secs_f64(duration_s.max(0.0)) >= VERDICT_MIN);
    let broken = gates.iter().filter(|gate| gate.broken);
    let listed = |gates: Vec<&Gate>| -> Vec<String> {
        gates.iter().map(|gate| format!("{}: {}", gate.condition(), gate.was())).collect()
    };
    let broken = listed(broken.collect());
    let undecided = listed(gates.iter().filter(|gate| gate.undecided).collect());
    let passed = (!gates.is_empty() && broken.is_empty()).then(|| "none".to_owned());
    let unavailable = document.open_loop.as_ref().and_then(|open_loop| open_loop.unavailable.as_ref());
    let carried = requests.completed - document.counted();
    let carried =
        if carried == 0 { String::new() } else { format!(", and {} from the warm-up", format_thousands(carried)) };
    let ends = account::request_ends(requests).map(|ends| format!("{} ({ends})", format_thousands(requests.all())));
    let rows = [
        ("URL", Some(document.plan.url.clone())),
        ("verdict", verdict.map(ToString::to_string)),
        ("requests", Some(format!("{} in {elapsed}{carried}", format_thousands(document.counted())))),
        (account::covered_requests(requests), ends),
        ("rate", Some(format!("{} requests/s, {bytes_per_s}B/s", units::format_per_second(*rate_per_s)))),
        (latency, latency_cell(document)?),
        ("statuses", (!statuses.is_empty()).then(|| counts(&statuses))),
        ("errors", Some(account::error_summary(requests).unwrap_or_else(|| "none".to_owned()))),
        ("socket errors", socket_errors_cell(&document.errors)),
        ("failed checks", (document.errors.check > 0).then(|| format_thousands(document.errors.check))),
        (
            "unavailable",
            unavailable.map(|unavailable| format!("{} of the time", units::format_percentage(unavailable.share))),
        ),
        ("broken gates", passed.or((!broken.is_empty()).then(|| broken.join("; ")))),
        ("undecided gates", (!undecided.is_empty()).then(|| undecided.join("; "))),
    ];
    Ok(rows.into_iter().filter_map(|(name, cell)| Some((name, cell?))).collect())
}

/// Percentiles of the displayed latency, with differing bounds, and the maximum; `None` without a response.
fn latency_cell(document: &Document) -> Result<Option<String>, Corrupt> {
    let estimate = document.estimate()?;
    let Some(max_us) = document.max_us().filter(|_| document.shown_latency().count > 0) else { return Ok(None) };
    let words = |percent: f64| {
        let (Some(known), Some(between)) = (estimate.percentile(percent), estimate.bounds(percent)) else {
            return String::new();
        };
        if matches!(known, KnownPercentile::About(_)) && !between.is_known() {
            between.to_string()
        } else {
            known.to_string()
        }
    };
    let usual = UNASKED.iter().filter_map(|text| text.parse().ok());
    let usual = usual.filter(|percent: &Percent| has_enough_beyond(percent.value(), estimate.due()));
    let percents: Vec<Percent> = document.plan.percentiles.clone().unwrap_or_else(|| usual.collect());
    let mut parts: Vec<String> =
        percents.iter().map(|percent| format!("p{percent} {}", words(percent.value()))).collect();
    parts.push(format!("max {}", units::format_us(max_us)));
    let oldest = estimate.requests().censored.max().map(|ns| ns as f64 / NS_PER_US);
    let oldest = oldest.filter(|oldest_us| *oldest_us > max_us);
    let oldest =
        oldest.map_or(String::new(), |oldest_us| format!(", the oldest after {}", units::format_us(oldest_us)));
    let unknown = match estimate.incomplete() {
        0 => String::new(),
        count => format!(" ({} without a response{oldest})", format_count(count, "request")),
    };
    Ok(Some(parts.join(", ") + &unknown))
}

/// wrk's errors, if any.
fn socket_errors_cell(errors: &Errors) -> Option<String> {
    let Errors { connect, read, write, timeout, .. } = *errors;
    let socket = [("connect", connect), ("read", read), ("write", write), ("timeout", timeout)];
    let some = socket.into_iter().filter(|(_, count)| *count > 0);
    let some: Vec<String> = some.map(|(name, count)| format!("{name} {}", format_thousands(count))).collect();
    (!some.is_empty()).then(|| some.join(", "))
}
