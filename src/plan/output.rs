//! Where a result goes, and in which form.

use std::path::{Path, PathBuf};

/// A file that a result is written into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its path, as typed.
    pub path: PathBuf,
    /// What it holds.
    pub kind: Kind,
}

/// The forms of a result file, told by the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything, as one document.
    Json,
    /// The time line, a row a second.
    Csv,
    /// The percentiles, as HdrHistogram's plotter reads them.
    Hgrm,
    /// A row of a Markdown table.
    Markdown,
    /// A line a second, written while the run lasts.
    Lines,
}

impl Kind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Json, "json"),
        (Self::Csv, "csv"),
        (Self::Hgrm, "hgrm"),
        (Self::Markdown, "md"),
        (Self::Lines, "ndjson"),
    ];

    /// The form that a path's extension asks for.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        Self::ALL.iter().find(|(_, known)| extension.eq_ignore_ascii_case(known)).map(|&(kind, _)| kind)
    }
}

/// What stands on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The imitated tool's text.
    Text,
    /// The document that a `.json` file holds.
    Json,
}

/// Which phases of a request have rows of their own in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakout {
    /// None.
    None,
    /// Connect, first byte and last byte, as in wrk-cmm.
    WrkCmm,
    /// The TLS handshake too.
    All,
}
