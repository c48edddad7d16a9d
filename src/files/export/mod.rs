//! Renders a document in formats that other programs read: spreadsheets, HdrHistogram's plotter, Markdown.

mod csv;
mod hgrm;
mod junit;
mod lines;
pub mod requests;
mod sockets;

pub use lines::line;
pub use sockets::lines as samples;

use onrush_plan::Kind;
use onrush_stats::Corrupt;

use crate::record::Document;
use crate::report;

/// The content of a file of this kind; empty for kinds that are written line by line.
///
/// # Errors
///
/// When the document holds a histogram that cannot be read.
pub fn render(kind: Kind, document: &Document) -> Result<String, Corrupt> {
    Ok(match kind {
        Kind::Json => document.to_json(),
        Kind::Csv => csv::render(document),
        Kind::Hgrm => hgrm::render(document)?,
        Kind::Markdown => report::markdown::render(document)?,
        Kind::Lines | Kind::Sockets | Kind::Requests | Kind::Samples => String::new(),
        Kind::Junit => junit::render(document),
    })
}
