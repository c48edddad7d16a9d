//! The output of a run: what it shows of the result, where and in which form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Condition, Percent, Place, SocketWatch};

/// What becomes of the result on the machine that asked for the run: it is no part of a plan that is sent away.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Show {
    /// Whether the percentiles are printed.
    pub percentiles: bool,
    /// Whether, with a rate, they are printed with their spectrum, as wrk2 does.
    pub spectrum: bool,
    /// Whether the service latency is printed beside the one from when requests were due.
    pub u_latency: bool,
    /// Whether a batch of requests has one latency.
    pub batch_latency: bool,
    /// Which percentiles; `None`: those the text, or the file, usually has.
    pub percents: Option<Vec<Percent>>,
    /// Which phases have rows of their own.
    pub breakout: Breakout,
    /// Whether the text is laid out as wrk-cmm's.
    pub cmm_layout: bool,
    /// What goes to standard output.
    pub format: Format,
    /// The files the result is written into.
    pub outputs: Vec<Output>,
    /// The sockets that are sampled, if there are any.
    pub sockets: Option<SocketWatch>,
    /// The run fails if one of these holds.
    pub gates: Vec<Condition>,
    /// Whether the run fails if onrush itself was its limit.
    pub is_strict: bool,
    /// Whether what went wrong is said in the words that GitHub makes annotations of.
    pub annotates: bool,
    /// The command line as files show it.
    pub command: String,
    /// Whether files may contain secrets.
    pub keeps_secrets: bool,
    /// What the run is one of.
    pub labels: BTreeMap<String, String>,
    /// Which run of an experiment it is, if it is of one.
    pub place: Option<Place>,
    /// Whether to say which backend runs and why.
    pub verbose: bool,
    /// Whether notes follow the report on standard error.
    pub notes: bool,
}

impl Show {
    /// Whether the phases of every request are shown or written somewhere.
    pub fn wants_phases(&self) -> bool {
        let is_json = |output: &Output| output.kind == Kind::Json;
        self.breakout != Breakout::None || self.format == Format::Json || self.outputs.iter().any(is_json)
    }

    /// All files that are written: those with the result, and the one with samples of sockets.
    pub fn files(&self) -> Vec<Output> {
        let samples = self.sockets.iter().map(|watch| Output { path: watch.output.clone(), kind: Kind::Sockets });
        self.outputs.iter().cloned().chain(samples).collect()
    }
}

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
    /// A test suite as JUnit has it, a case for each gate.
    Junit,
    /// A line for each socket and sample, written while the run lasts. It has an option of its own.
    Sockets,
}

impl Kind {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Json, "json"),
        (Self::Csv, "csv"),
        (Self::Hgrm, "hgrm"),
        (Self::Markdown, "md"),
        (Self::Lines, "ndjson"),
        (Self::Junit, "xml"),
    ];

    /// The option that a file of this form is named by.
    pub fn option(self) -> &'static str {
        if self == Self::Sockets { "--sockets-output" } else { "--output" }
    }

    /// The form that a path's extension asks for. A document may be compressed.
    pub fn of(path: &Path) -> Option<Self> {
        if is_compressed(path) {
            return Self::of(Path::new(path.file_stem()?)).filter(|kind| *kind == Self::Json);
        }
        let extension = path.extension()?.to_str()?;
        Self::ALL.iter().find(|(_, known)| extension.eq_ignore_ascii_case(known)).map(|&(kind, _)| kind)
    }
}

/// Whether a path's extension asks for compression.
pub fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// What goes to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The imitated tool's text.
    #[default]
    Text,
    /// The document that a `.json` file holds.
    Json,
}

/// Which phases of a request have rows of their own in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Breakout {
    /// None.
    #[default]
    None,
    /// Connect, first byte and last byte, as in wrk-cmm.
    WrkCmm,
    /// The TLS handshake too.
    All,
}

impl Breakout {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::WrkCmm => "wrk-cmm",
            Self::All => "all",
        }
    }

    /// The one of this name; of any other, no phases.
    pub fn named(name: &str) -> Self {
        [Self::WrkCmm, Self::All].into_iter().find(|breakout| breakout.name() == name).unwrap_or_default()
    }
}
