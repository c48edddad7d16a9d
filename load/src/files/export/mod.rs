//! Renders a document for other programs: spreadsheets, HdrHistogram's plotter, Markdown.

mod csv;
mod hgrm;
mod junit;
mod lines;
pub mod requests;
mod sockets;

pub use lines::timeline_line;
pub use sockets::sample_lines as samples;

use onrush_plan::OutputKind;
use onrush_stats::Corrupt;

use crate::record::Document;
use crate::report;

/// The content of a file of this kind; empty for kinds that are written during the run.
///
/// # Errors
///
/// Fails if the document contains a histogram that cannot be read.
pub fn render_output(kind: OutputKind, document: &Document) -> Result<String, Corrupt> {
    Ok(match kind {
        OutputKind::Json => document.to_json(),
        OutputKind::Csv => csv::render_csv(document),
        OutputKind::Hgrm => hgrm::render_histogram(document)?,
        OutputKind::Markdown => report::markdown::render(document)?,
        OutputKind::Lines | OutputKind::Sockets | OutputKind::Requests | OutputKind::Samples => String::new(),
        OutputKind::Junit => junit::render_junit(document),
    })
}
