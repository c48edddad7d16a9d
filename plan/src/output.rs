//! The output of a run: shown parts of the result, with destinations and formats.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::machines::Machines;
use super::{Condition, Percent, Position, Probing, SocketSampling};

/// Output on the machine that started the run. Not part of a plan for another machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputOptions {
    /// True if latency percentiles were requested. A native report always shows some.
    pub percentiles: bool,
    /// True to print the spectrum of the percentiles, as wrk2 does; in compat dialects, only with a rate.
    pub spectrum: bool,
    /// True to print the service latency in addition to the latency from due times.
    pub u_latency: bool,
    /// True if a batch of pipelined requests has a single latency, instead of one per response.
    pub batch_latency: bool,
    /// The percentiles to show; `None`: the usual ones, which differ between the text and the files.
    pub percents: Option<Vec<Percent>>,
    /// The phases of requests that get separate rows in the text.
    pub breakout: Breakout,
    /// True for the layout of wrk-cmm.
    pub cmm_layout: bool,
    /// Format of standard output.
    pub format: Format,
    /// The result files to write.
    pub outputs: Vec<Output>,
    /// Which sockets to sample; `None`: none are sampled.
    pub sockets: Option<SocketSampling>,
    /// The request log; `None`: no log.
    pub request_log: Option<RequestLogOptions>,
    /// How samples of responses are written to a folder; `None`: no samples.
    pub samples: Option<SampleOptions>,
    /// The gates: the run fails if one of these conditions holds.
    pub gates: Vec<Condition>,
    /// The probe that may follow the run; `None`: none follows.
    pub probing: Option<Probing>,
    /// True to fail the run if onrush itself was its limit.
    pub is_strict: bool,
    /// True to print failures as GitHub annotations, too.
    pub annotates: bool,
    /// The command line, as stored in files.
    pub command: String,
    /// True if files may contain secrets; otherwise they are redacted.
    pub keeps_secrets: bool,
    /// The labels of the run, each with its value (`--label`).
    pub labels: BTreeMap<String, String>,
    /// The run's position in an experiment; `None`: it is not part of one.
    pub position: Option<Position>,
    /// The machines of a distributed run; `None`: only this one.
    pub machines: Option<Machines>,
    /// True for `-v`: prints the backend in use and the reason, and after the run the verdict, resource usage and all
    /// notes. Called as wrk, it prints the version instead.
    pub verbose: bool,
    /// True if notes follow the report on standard error.
    pub notes: bool,
    /// True if only errors are printed on standard error.
    pub is_quiet: bool,
}

impl OutputOptions {
    /// True if the phases of requests are shown or written to a file.
    pub fn wants_phases(&self) -> bool {
        let is_json = |output: &Output| output.kind == OutputKind::Json;
        self.breakout != Breakout::None || self.format == Format::Json || self.outputs.iter().any(is_json)
    }

    /// All output files: the result, samples of sockets, the request log, and the folder with samples of responses.
    pub fn files(&self) -> Vec<Output> {
        let samples =
            self.sockets.iter().map(|sampling| Output { path: sampling.output.clone(), kind: OutputKind::Sockets });
        let log = self.request_log.iter().map(|log| Output { path: log.path.clone(), kind: OutputKind::Requests });
        let folder = self.samples.iter().map(|it| Output { path: it.folder.clone(), kind: OutputKind::Samples });
        self.outputs.iter().cloned().chain(samples).chain(log).chain(folder).collect()
    }
}

/// How the request log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLogOptions {
    /// Path of the log file.
    pub path: PathBuf,
    /// One in `one_of` requests is logged; at least 1, which logs every request.
    pub one_of: u64,
}

/// Settings for samples of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleOptions {
    /// The folder for the samples: created, or empty.
    pub folder: PathBuf,
    /// Number of samples per status, and per failing check, at least 1.
    pub each: u32,
}

/// A file or folder to which a run writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The path as typed.
    pub path: PathBuf,
    /// The content and format of the file.
    pub kind: OutputKind,
}

/// The kinds of output; the file extension selects most of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Everything, as one document.
    Json,
    /// The timeline, one row per second.
    Csv,
    /// The percentiles, as HdrHistogram's plotter reads them.
    Hgrm,
    /// Markdown, to paste into a ticket.
    Markdown,
    /// One line per second, written during the run.
    Lines,
    /// A JUnit test suite with one case per gate.
    Junit,
    /// One line per socket and sample, written during the run. It has its own option.
    Sockets,
    /// One line per request, written during the run. It has its own option.
    Requests,
    /// A folder with samples of responses, one file each, written during the run. It has its own option.
    Samples,
}

impl OutputKind {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Json, "json"),
        (Self::Csv, "csv"),
        (Self::Hgrm, "hgrm"),
        (Self::Markdown, "md"),
        (Self::Lines, "ndjson"),
        (Self::Junit, "xml"),
    ];

    /// The option that names a file of this kind.
    pub fn option(self) -> &'static str {
        match self {
            Self::Sockets => "--sockets-output",
            Self::Requests => "--request-log",
            Self::Samples => "--sample-responses",
            _ => "--output",
        }
    }

    /// The kind that belongs to a path's extension; `None`: unknown extension. Only a JSON document may be compressed
    /// (`.json.gz`).
    pub fn for_path(path: &Path) -> Option<Self> {
        if is_compressed(path) {
            return Self::for_path(Path::new(path.file_stem()?)).filter(|kind| *kind == Self::Json);
        }
        let extension = path.extension()?.to_str()?;
        Self::ALL.iter().find(|(_, known)| extension.eq_ignore_ascii_case(known)).map(|&(kind, _)| kind)
    }
}

/// True if a path's extension means gzip compression.
pub fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Output on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text in the layout of onrush or of the imitated tool.
    #[default]
    Text,
    /// The document that a `.json` file holds.
    Json,
}

/// The phases of a request with separate rows in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Breakout {
    /// None.
    #[default]
    None,
    /// Connect, first byte and last byte, as in wrk-cmm.
    WrkCmm,
    /// These phases and the TLS handshake.
    All,
}

impl Breakout {
    /// The name of the choice in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::WrkCmm => "wrk-cmm",
            Self::All => "all",
        }
    }

    /// The choice with this name in files; [`Self::None`] for an unknown name.
    pub fn named(name: &str) -> Self {
        [Self::WrkCmm, Self::All].into_iter().find(|breakout| breakout.name() == name).unwrap_or_default()
    }
}
